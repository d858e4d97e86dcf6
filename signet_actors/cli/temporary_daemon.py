"""A daemon on a temporary workspace, for commands that measure. The user's workspace is neither read nor changed.

Leaving the ``with`` block stops the daemon and deletes the workspace, also after SIGTERM and SIGHUP: it may hold a copy
of the user's memories. Its directory has the mode 0700. After SIGKILL the daemon ends, too, but the workspace is left.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from signet_actors.cli.edited_text import exit_on_signals
from signet_actors.cli.lifecycle import launch, wait_until_ready
from signet_actors.config.daemon_address import Address, recorded_address
from signet_actors.config.workspace import CONFIG_FILE_NAME
from signet_actors.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

START_S = 60.0
STOP_S = 15.0
SHOWN_OUTPUT_CHARS = 500


class TemporaryDaemon:
    """A daemon in a temporary directory. ``ready_s`` is the time of its last start in seconds."""

    def __init__(self, directory: Path, environ: Mapping[str, str]) -> None:
        self.workspace = directory / "workspace"
        self.ready_s = 0.0
        self._environ = {name: value for name, value in environ.items() if not name.startswith("SIGNET_")}
        self._child: subprocess.Popen[bytes] | None = None
        self._address: Address | None = None

    @property
    def address(self) -> Address:
        """Return the address of the running daemon; raise Unavailable if it does not run."""
        if self._address is None:
            raise Unavailable("the temporary daemon does not run")
        return self._address

    def start(self, settings: str = "") -> None:
        """Start the daemon with this text as ``agent.yaml``; raise Unavailable if it does not become ready."""
        self.workspace.mkdir(mode=0o700, exist_ok=True)
        (self.workspace / CONFIG_FILE_NAME).write_text(settings, encoding="utf-8")
        began = time.perf_counter()
        environ = {**self._environ, "SIGNET_WORKSPACE": str(self.workspace), "SIGNET_PORT": "0"}
        self._child, start_log = launch(self.workspace, environ, ends_with_this=True)
        ended = wait_until_ready(self.workspace, self._child, time.monotonic() + START_S)
        self._address = recorded_address(self.workspace)
        if ended is not None or self._address is None:
            output = start_log.read_text(errors="replace")[-SHOWN_OUTPUT_CHARS:]
            raise Unavailable(f"the temporary daemon did not start: {output}")
        self.ready_s = time.perf_counter() - began

    def clear(self) -> None:
        """Delete the workspace of the stopped daemon."""
        shutil.rmtree(self.workspace)

    def stop(self) -> None:
        """Stop the daemon if it runs: let it finish, and kill it if that fails."""
        child, self._child, self._address = self._child, None, None
        if child is None:
            return
        child.terminate()
        try:
            child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait(STOP_S)


@contextlib.contextmanager
def temporary_daemon(environ: Mapping[str, str]) -> Iterator[TemporaryDaemon]:
    """Yield a daemon that is not started yet, and remove every trace of it afterwards."""
    with (
        exit_on_signals(),
        tempfile.TemporaryDirectory(prefix="signet-", ignore_cleanup_errors=True) as directory,
    ):
        daemon = TemporaryDaemon(Path(directory), environ)
        try:
            yield daemon
        finally:
            daemon.stop()
