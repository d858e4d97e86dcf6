"""Run a module as a child process that ends with its supervisor.

``python -m signet_actors.runtime.processes.child_main SUPERVISOR_PID MODULE``

A child is tied to its supervisor before it imports its own code. Imports take up to seconds on a busy machine, and no
child may be left over when the supervisor is killed meanwhile.

Source: docs/reliability.md R10.
"""

from __future__ import annotations

import runpy
import sys

from signet_actors.errors import ExitCode
from signet_actors.runtime.processes.parent_death import die_with_supervisor


def main() -> None:
    """Run the module as the main program of this process."""
    supervisor_pid, module = int(sys.argv[1]), sys.argv[2]
    if not die_with_supervisor(supervisor_pid):
        raise SystemExit(ExitCode.GIVE_UP)
    sys.argv[1:] = []
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
