"""What the writer reports of itself: its status, the counters of its heartbeat, and syncs that take long.

Source: docs/metrics.md; docs/reliability.md "The writer's loop".
"""

from __future__ import annotations

from typing import Final

from signet_actors.config.workspace import Workspace
from signet_actors.protocol.writer import WriterStatus
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.processes.call_reporter import ReportedCall
from signet_actors.store.sqlite.connect import check_sqlite_version
from signet_actors.store.sqlite.migrate import schema_version
from signet_actors.writer.group_commit import GroupCommit

_NS: Final = 1_000_000_000
_SLOW_SYNC_NS: Final = _NS
_REPORTED_NS: Final = 60 * _NS
"""How long a slow sync is reported when none follows it."""


class SlowSyncs:
    """How long the last sync of a commit took, if that was long."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._took_ns = 0
        self._at_ns = 0

    def note(self, sync: ReportedCall) -> None:
        """Record how long the sync of a commit took; nothing if the commands were refused without one."""
        took_ns, sync.last_ns = sync.last_ns, 0
        if not took_ns:
            return
        self._took_ns = took_ns if took_ns >= _SLOW_SYNC_NS else 0
        self._at_ns = self._clock.monotonic_ns()

    def reported_s(self) -> float:
        """Return the duration of the last sync in seconds; 0 if it was short or long ago."""
        return 0.0 if self._clock.monotonic_ns() - self._at_ns > _REPORTED_NS else self._took_ns / _NS


def commit_counters(group: GroupCommit) -> dict[str, float]:
    """Return the metrics of the commits since the process started."""
    metrics = group.metrics
    return {
        "commits": metrics.commits,
        "rows": metrics.rows,
        "largest_batch": metrics.largest_batch,
        "refused_full": metrics.refused_full,
        "refused_busy": metrics.refused_busy,
        "replayed": metrics.replayed,
        "fenced": metrics.fenced,
        "storage_full": float(group.storage_full),
        "touches_dropped": group.touches.dropped,
    }


def writer_status(workspace: Workspace, group: GroupCommit) -> WriterStatus:
    """Return the reply to ``GetWriterStatus``."""
    wal = workspace.database.with_name(workspace.database.name + "-wal")
    return WriterStatus(
        commits=group.metrics.commits,
        rows=group.metrics.rows,
        largest_batch=group.metrics.largest_batch,
        wal_bytes=wal.stat().st_size if wal.exists() else 0,
        storage_full=group.storage_full,
        schema_version=schema_version(group.connection),
        sqlite_version=check_sqlite_version(),
    )
