"""All subjects and their operations, in the order of the API document. A new subject is added here and nowhere else.

It imports every file of this package and the ``api.py`` of every feature, so only the gateway and callers of any
operation import it.

Source: docs/architecture.md "How to add".
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from signet_actors.operations import (
    api_docs,
    auth,
    batch_modify,
    codex_notes,
    config_files,
    embeddings,
    forget,
    git,
    harnesses,
    health,
    hooks,
    identity,
    import_export,
    mcp,
    memories,
    memory_changes,
    notifications,
    pipeline,
    recall,
    remember,
    repair,
    requeue,
    sessions,
    status,
    synthesis,
    transcripts,
)
from signet_actors.operations.operation import Operation

SUBJECTS: Final = (
    remember,
    memories,
    memory_changes,
    recall,
    batch_modify,
    forget,
    import_export,
    codex_notes,
    hooks,
    notifications,
    import_module("signet_actors.features.skills.api"),
    sessions,
    import_module("signet_actors.features.session_memories.api"),
    transcripts,
    import_module("signet_actors.features.session_summaries.api"),
    import_module("signet_actors.features.session_scores.api"),
    import_module("signet_actors.features.checkpoints.api"),
    synthesis,
    pipeline,
    import_module("signet_actors.features.pipeline_ids.api"),
    import_module("signet_actors.features.runs.api"),
    requeue,
    import_module("signet_actors.features.reviews.api"),
    embeddings,
    status,
    health,
    config_files,
    identity,
    harnesses,
    git,
    repair,
    auth,
    mcp,
    api_docs,
)
"""The modules of the operations. For each in this package ``gateway/routes/`` has one of the same name, with handlers.

Those of features, which are above this package, are imported by their names.
"""

OPERATIONS: Final[tuple[Operation[Any], ...]] = tuple(one for subject in SUBJECTS for one in subject.OPERATIONS)
