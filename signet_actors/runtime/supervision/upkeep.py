"""What the supervisor does now and then: its socket's path, log rotation, and systemd's watchdog and start timeout.

Source: docs/reliability.md "Supervision policy"; docs/operations.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from signet_actors.config.schema import Config, LoggingConfig
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.logging.configuration import log_path
from signet_actors.runtime.supervision.control_socket import ControlSocket
from signet_actors.runtime.supervision.sd_notify import Notifier

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

_MS: Final = 1_000_000
_ROTATE_MS: Final = 10_000


class Upkeep:
    """Periodic duties of the supervisor. ``next_*_ns`` are the monotonic times at which the next ones are due."""

    def __init__(
        self, workspace: Path, control: ControlSocket, notifier: Notifier, clock: Clock, log: FilteringBoundLogger
    ) -> None:
        self.next_rotation_ns = 0
        self.next_watchdog_ns = 0
        self._log_directory = workspace / ".daemon" / "logs"
        self._control = control
        self._notifier = notifier
        self._clock = clock
        self._log = log
        self._next_path_check_ns = 0
        self._next_extension_ns = 0

    def run(self, config: Config) -> bool:
        """Do what is due. Return True if the logs were due for rotation, which happens every ten seconds."""
        now = self._clock.monotonic_ns()
        if now >= self._next_path_check_ns:
            self._next_path_check_ns = now + config.supervision.heartbeat_ms * _MS
            if self._control.reclaim_path():
                self._log.error("socket_path_missing", socket="supervisor")
        rotation_due = now >= self.next_rotation_ns
        if rotation_due:
            self.next_rotation_ns = now + _ROTATE_MS * _MS
            try:
                rotate_logs(self._log_directory, config.logging, self._clock.wall_ms())
            except OSError as error:
                self._log.warning("log_rotation_failed", exc_info=error)
        if self._notifier.watchdog_s is not None and now >= self.next_watchdog_ns:
            self.next_watchdog_ns = now + int(self._notifier.watchdog_s * 1e9)
            self._notifier.notify("WATCHDOG=1", wait_s=0)
        return rotation_due

    def extend_start(self, now: int, start_timeout_ms: int) -> None:
        """Ask systemd for more time, since a child reports progress in starting."""
        if now >= self._next_extension_ns:
            self._next_extension_ns = now + start_timeout_ms * _MS // 4
            self._notifier.notify(f"EXTEND_TIMEOUT_USEC={2 * start_timeout_ms * 1000}", wait_s=0)


_DAY_MS = 86_400_000


def rotate_logs(directory: Path, limits: LoggingConfig, wall_ms: int) -> None:
    """Bring the directory within ``limits``; today's file is never removed.

    A full file is renamed to ``daemon-<day>.<n>.log``; the processes notice by its inode and open a new one. Files that
    are too old are removed, then the oldest beyond the total size.
    """
    current = log_path(directory, wall_ms)
    try:
        if current.stat().st_size >= limits.max_file_bytes:
            current.rename(_next_name(current))
    except FileNotFoundError:
        pass
    oldest_ms = wall_ms - limits.retention_days * _DAY_MS
    found: list[tuple[float, int, Path]] = []
    for path in directory.glob("daemon-*.log"):
        try:
            facts = path.stat()
        except FileNotFoundError:
            continue
        found.append((facts.st_mtime, facts.st_size, path))
    total = sum(size for _, size, _ in found)
    for mtime, size, path in sorted(found):
        if path == current or (mtime * 1000 >= oldest_ms and total <= limits.max_total_bytes):
            continue
        path.unlink(missing_ok=True)
        total -= size


def _next_name(current: Path) -> Path:
    number = 1
    while (candidate := current.with_name(f"{current.stem}.{number}.log")).exists():
        number += 1
    return candidate
