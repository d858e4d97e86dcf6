"""The process that checks a copy of the database. It is separate because retention has no handle to any database.

Source: docs/architecture.md "Dependency rules" 3; docs/reliability.md R18.
"""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec

from signet_actors.protocol.backups import BackupVerification

_KILL_WAIT_S = 5.0


class Verification:
    """``python -m signet_actors.writer --verify`` at low priority; it exits together with this process."""

    def __init__(self, name: str, last_seq: int) -> None:
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-P", "-m", "signet_actors.writer"),
                *("--verify", name, "--last-seq", str(last_seq), "--parent", str(os.getpid())),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )

    def poll(self) -> BackupVerification | None:
        """Return the result, or None while the process runs. The output fits into the pipe, so writing never blocks."""
        code = self._process.poll()
        if code is None:
            return None
        output = self._read()
        try:
            verdict = msgspec.json.decode(output, type=BackupVerification)
        except msgspec.MsgspecError:
            return BackupVerification(False, [], 0, f"the check of the copy failed (exit code {code})")
        return msgspec.structs.replace(verdict, ok=verdict.ok and code == 0)

    def stop(self) -> None:
        """Kill the process if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(_KILL_WAIT_S)
        self._read()

    def _read(self) -> bytes:
        assert self._process.stdout is not None
        if self._process.stdout.closed:
            return b""
        with self._process.stdout as pipe:
            return pipe.read()
