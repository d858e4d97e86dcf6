"""What the environment calls Python's program does not become the program of our processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = os.path.realpath(sys.executable)
NAME = "PYTHONEXECUTABLE"
SHOW = f"import os, sys, signet_actors.cli; print(sys.executable, os.environ.get({NAME!r}))"


def shown(python: str, **variables: str) -> str:
    """What a command of ours sees; it finds the packages as a system's Python does, without a virtual environment."""
    packages = os.pathsep.join([str(ROOT), *(entry for entry in sys.path if entry.endswith("site-packages"))])
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": packages, **variables}
    done = subprocess.run([python, "-c", SHOW], env=environ, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system does not say which program runs")
@pytest.mark.parametrize("value", ["/bin/true", "/nonexistent", "python", "relative/python3", "/bin/sh", "/"])
def test_another_program_named_by_the_environment_is_not_ours(value: str) -> None:
    assert shown(PROGRAM, **{NAME: value}) == f"{PROGRAM} None"


def test_the_interpreter_of_a_virtual_environment_stays() -> None:
    assert shown(sys.executable) == f"{sys.executable} None"
    assert shown(sys.executable, PYTHONEXECUTABLE=sys.executable) == f"{sys.executable} None"
    assert shown(PROGRAM) == f"{PROGRAM} None"
