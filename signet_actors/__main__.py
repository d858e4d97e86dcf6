"""Run the command line: ``python -m signet_actors`` is the same as ``signet``."""

from __future__ import annotations

from signet_actors.runtime.processes.import_path import leave_working_directory

leave_working_directory(program=True)

from signet_actors.cli.entry import main  # noqa: E402 - imported from the reduced path

main()
