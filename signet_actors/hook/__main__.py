"""Run the hook command: ``python -m signet_actors.hook`` is the same as ``signet-hook``."""

from __future__ import annotations

from signet_actors.runtime.processes.import_path import leave_working_directory

leave_working_directory(program=True)

from signet_actors.hook.program import main  # noqa: E402 - imported from the reduced path

main()
