"""Run a module as a child process that dies with its supervisor.

``python -m signet_actors.runtime.processes.child_main SUPERVISOR_PID MODULE``

A child is tied to its supervisor before it imports anything of its own: imports take up to seconds on a busy machine,
and a supervisor that is killed meanwhile must leave nobody behind.

Source: docs/reliability.md R10.
"""

from __future__ import annotations

import runpy
import sys

from signet_actors.errors import ExitCode
from signet_actors.runtime.processes.parent_death import die_with_supervisor


def main() -> None:
    """The module has run as the main program of this process."""
    supervisor_pid, module = int(sys.argv[1]), sys.argv[2]
    if not die_with_supervisor(supervisor_pid):
        raise SystemExit(ExitCode.GIVE_UP)
    sys.argv[1:] = []
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
