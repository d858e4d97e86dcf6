"""The programs of this installation, by the paths that settings and services keep."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def installed_program(name: str, environ: Mapping[str, str]) -> str:
    """Return the program beside this interpreter, preferably by its name on PATH, which outlives an upgrade."""
    beside = Path(sys.executable).with_name(name)
    found = shutil.which(name, path=environ.get("PATH"))
    if found and (not beside.exists() or os.path.samefile(found, beside)):
        return os.path.abspath(found)
    return str(beside)


def is_program(path: str) -> bool:
    """Return whether the path is a file that can be run."""
    return os.access(path, os.X_OK) and not os.path.isdir(path)


def same_program(one: str, other: str) -> bool:
    """Return whether two paths lead to the same file; equal paths do, even if there is no file."""
    return os.path.realpath(one) == os.path.realpath(other)
