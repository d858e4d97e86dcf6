"""Five commands on a temporary workspace, as a terminal shows them: ``make demo``.

The daemon is always stopped and the workspace removed. The exit code is that of the first command that fails.
"""

from __future__ import annotations

import os
import pty
import shlex
import signal
import subprocess
import sys
import tempfile

COMMANDS = (
    ("start", "--timeout", "45"),
    ("remember", "The staging database listens on port 5433", "--tags", "ops,db"),
    ("remember", "critical: [auth]: never log access tokens"),
    ("recall", "which port do I use for the staging db?"),
    ("recall", "may I log an access token?"),
)


def main() -> int:
    """Run the commands; return the exit code of the first that fails, else 0."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="signet-demo-", ignore_cleanup_errors=True) as directory:
        for name in [name for name in os.environ if name.startswith("SIGNET_")]:
            del os.environ[name]
        os.environ |= {"SIGNET_WORKSPACE": f"{directory}/workspace", "SIGNET_PORT": "0"}
        signet = [sys.executable, "-P", "-m", "signet_actors.cli"]
        try:
            for command in COMMANDS:
                print(f"\n$ {shlex.join(('signet', *command))}", flush=True)
                if code := os.waitstatus_to_exitcode(pty.spawn([*signet, *command])):
                    return code
        finally:
            subprocess.run([*signet, "stop", "--now"], capture_output=True, check=False, timeout=60)
    print("\nThe daemon is stopped, and the workspace of this demo is removed.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
