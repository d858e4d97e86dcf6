"""What the writer reports of itself: its status, and the counters of its heartbeat.

Source: docs/metrics.md; docs/reliability.md "The writer's loop".
"""

from __future__ import annotations

from signet_actors.config.workspace import Workspace
from signet_actors.protocol.writer import WriterStatus
from signet_actors.store.sqlite.connect import check_sqlite_version
from signet_actors.writer.group_commit import GroupCommit


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


def damaged_status(damage: str | None) -> WriterStatus:
    """Return the reply to ``GetWriterStatus`` while the database is damaged, and therefore closed."""
    return WriterStatus(0, 0, 0, 0, False, 0, check_sqlite_version(), damage)


def writer_status(workspace: Workspace, group: GroupCommit) -> WriterStatus:
    """Return the reply to ``GetWriterStatus``."""
    wal = workspace.database.with_name(workspace.database.name + "-wal")
    return WriterStatus(
        commits=group.metrics.commits,
        rows=group.metrics.rows,
        largest_batch=group.metrics.largest_batch,
        wal_bytes=wal.stat().st_size if wal.exists() else 0,
        storage_full=group.storage_full,
        schema_version=group.engine.schema_version(),
        sqlite_version=check_sqlite_version(),
    )
