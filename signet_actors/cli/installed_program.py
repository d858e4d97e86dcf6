"""The programs of this installation, by the paths that settings and services keep."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path


def installed_program(name: str, environ: Mapping[str, str]) -> str:
    """Return the program beside this interpreter, preferably by its name on PATH, which outlives an upgrade."""
    beside = Path(sys.executable).with_name(name)
    found = shutil.which(name, path=environ.get("PATH"))
    if found and (not beside.exists() or os.path.samefile(found, beside)):
        return os.path.abspath(found)
    return str(beside)


def is_program(path: str) -> bool:
    return os.access(path, os.X_OK) and not os.path.isdir(path)


def gone_program(programs: Iterable[str]) -> str:
    """Return the first of the programs that does not exist, or that a script among them needs, else nothing."""
    needed = (each for path in programs for each in (path, *_interpreter_of(path)))
    return next((path for path in needed if not is_program(path)), "")


def _interpreter_of(path: str) -> list[str]:
    """Return the program that runs this script; none if it is not a script that names one."""
    try:
        with open(path, "rb") as file:
            line = file.readline(4096)
    except OSError:
        return []
    return list(map(os.fsdecode, line[2:].split()[:1])) if line.startswith(b"#!") else []


def other_program(programs: Iterable[str], environ: Mapping[str, str]) -> str:
    """Return the first of the programs that exists and is one of another installation, else nothing."""
    for path in programs:
        if is_program(path) and not same_program(path, installed_program(os.path.basename(path), environ)):
            return path
    return ""


def same_program(one: str, other: str) -> bool:
    """Return whether two paths lead to the same file; equal paths do, even if there is no file."""
    return os.path.realpath(one) == os.path.realpath(other)
