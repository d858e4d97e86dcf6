"""Run a child of the daemon and record when each function of the package is called.

``BENCH_TRACED_MODULE`` is the module to run. On a drain the process writes the calls as JSON into
``$BENCH_PROFILE_DIR``: pairs of monotonic nanoseconds and file. Tracing makes a process several times slower: it shows
which code runs, not how fast it is.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any, Final

MODULE_VARIABLE: Final = "BENCH_TRACED_MODULE"
DIRECTORY_VARIABLE: Final = "BENCH_PROFILE_DIR"
_PACKAGE: Final = "/signet_actors/"


def main() -> None:
    """Run the module like ``python -m``, and write its calls; raises its SystemExit."""
    calls: list[tuple[int, str]] = []

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call":
            filename = frame.f_code.co_filename
            if _PACKAGE in filename and frame.f_code.co_name != "<module>":
                calls.append((time.monotonic_ns(), filename.rpartition(_PACKAGE)[2]))

    module = os.environ[MODULE_VARIABLE]
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        sys.setprofile(None)
        path = Path(os.environ[DIRECTORY_VARIABLE]) / f"{module.rpartition('.')[2]}-{os.getpid()}.json"
        path.write_text(json.dumps(calls), encoding="utf-8")


if __name__ == "__main__":
    main()
