"""The script ``signet``: Ctrl-C while the modules are imported ends it as at any other time.

A command is short: the garbage collector runs rarely, and not at all when the process exits. An entry of an earlier
release, a plugin and a person start it without ``-I``, so that PYTHONPATH is heeded.
"""

# ruff: noqa: E402 - the import path comes first

from __future__ import annotations

from signet_actors.runtime.processes.import_path import prefer_standard_library

prefer_standard_library()

import atexit
import gc
import sys

COLLECT_AFTER = 50_000
"""New containers between two collections. The imports alone make 20,000, of which none is garbage."""


def main() -> None:
    """Run the command line. ``signet hook`` is the program of ``signet-hook``, which a harness waits for."""
    if sys.argv[1:2] == ["hook"] and not {"-h", "--help"} & set(sys.argv):
        from signet_actors.hook.program import main as run_hook  # noqa: PLC0415 - imports nothing of the command line

        run_hook(sys.argv[2:])
    gc.set_threshold(COLLECT_AFTER)
    atexit.register(gc.freeze)
    try:
        from signet_actors.cli.main import main as run  # noqa: PLC0415 - Ctrl-C is handled during this import, too

        run()
    except KeyboardInterrupt:
        from signet_actors.cli.exit_codes import INTERRUPTED  # noqa: PLC0415 - rarely needed

        sys.exit(INTERRUPTED)
