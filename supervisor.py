"""Run the daemon of this checkout: ``python -m supervisor`` is the same as ``python -m signet_actors.supervisor``."""

from __future__ import annotations

import sys

if __name__ == "__main__":  # before anything is imported that a file of the working directory could replace
    from signet_actors.runtime.processes.import_path import leave_working_directory

    leave_working_directory(program=True)

    from signet_actors.supervisor import main

    sys.exit(main())
