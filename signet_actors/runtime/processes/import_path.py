"""Keep the current working directory out of the import path of our processes, and another interpreter from them.

A daemon is often started in a project of the user, where a ``json.py`` would be imported instead of the library's. The
option ``-P`` does not cover an empty or relative entry of ``PYTHONPATH``. Imports nothing that Python has not loaded.

Source: docs/operations.md "Files"; https://docs.python.org/3/using/cmdline.html#envvar-PYTHONPATH.
"""

from __future__ import annotations

import os
import sys

_VARIABLE = "PYTHONPATH"
_INTERPRETER = "PYTHONEXECUTABLE"
"""Names the program that Python takes for itself, ``sys.executable``, which later processes would run."""


def leave_working_directory(*, program: bool = False) -> None:
    """Remove the relative entries of ``PYTHONPATH`` from the import path, and from the environment of later processes.

    These have this interpreter, whatever the environment calls it. With ``program``, this process was started with
    ``python -m``: also remove the working directory, which is the first entry then, unless ``-P`` was given.
    """
    try:
        here = os.getcwd()
    except OSError:  # it was removed, so that nothing can be imported from it
        here = ""
    if program and not sys.flags.safe_path and sys.path and sys.path[0] in ("", here):
        del sys.path[0]
    if os.environ.pop(_INTERPRETER, None) and sys.platform == "linux":
        running = os.path.realpath("/proc/self/exe")
        if os.path.realpath(sys.executable) != running and os.path.basename(running).startswith("python"):
            sys.executable = running
    given = os.environ.get(_VARIABLE)
    if not given:
        return
    entries = given.split(os.pathsep)
    absolute = [entry for entry in entries if os.path.isabs(entry)]
    if len(absolute) == len(entries):
        return
    whole = {entry: os.path.normpath(os.path.join(here, entry)) for entry in (*entries, *sys.path)}
    relative = {whole[entry] for entry in entries} - {whole[entry] for entry in absolute}
    sys.path[:] = [entry for entry in sys.path if entry and whole[entry] not in relative]
    if absolute:
        os.environ[_VARIABLE] = os.pathsep.join(absolute)
    else:
        del os.environ[_VARIABLE]


def prefer_standard_library() -> None:
    """Have modules looked for in the absolute entries of ``PYTHONPATH`` last, and so in the standard library first."""
    named = {os.path.normpath(entry) for entry in os.environ.get(_VARIABLE, "").split(os.pathsep)}
    library = os.path.dirname(os.__file__)
    sys.path.sort(key=lambda entry: entry != library and os.path.normpath(entry) in named)
