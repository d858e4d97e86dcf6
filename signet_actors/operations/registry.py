"""All operations, in the order of the API document.

It imports every file of this package, so only the gateway and callers of any operation import it.

Source: docs/architecture.md "How to add".
"""

from __future__ import annotations

from typing import Any, Final

from signet_actors.operations import (
    api_docs,
    auth,
    backup,
    batch_modify,
    codex_notes,
    config_files,
    embeddings,
    forget,
    health,
    identity,
    import_export,
    jobs,
    memories,
    memory_changes,
    metrics,
    pipeline,
    recall,
    remember,
    repair,
    requeue,
    reviews,
    runs,
    status,
)
from signet_actors.operations.operation import Operation

OPERATIONS: Final[tuple[Operation[Any], ...]] = (
    *remember.OPERATIONS,
    *memories.OPERATIONS,
    *memory_changes.OPERATIONS,
    *recall.OPERATIONS,
    *batch_modify.OPERATIONS,
    *forget.OPERATIONS,
    *import_export.OPERATIONS,
    *codex_notes.OPERATIONS,
    *jobs.OPERATIONS,
    *pipeline.OPERATIONS,
    *runs.OPERATIONS,
    *requeue.OPERATIONS,
    *reviews.OPERATIONS,
    *embeddings.OPERATIONS,
    *status.OPERATIONS,
    *health.OPERATIONS,
    *metrics.OPERATIONS,
    *config_files.OPERATIONS,
    *identity.OPERATIONS,
    *repair.OPERATIONS,
    *backup.OPERATIONS,
    *auth.OPERATIONS,
    *api_docs.OPERATIONS,
)
