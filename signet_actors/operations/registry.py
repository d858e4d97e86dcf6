"""All subjects and their operations, in the order of the API document. A new subject is added here and nowhere else.

It imports every file of this package and the ``api.py`` of every feature, so only the gateway and callers of any
operation import it.

Source: docs/architecture.md "How to add".
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from signet_actors.operations.operation import Operation

SUBJECTS: Final = tuple(
    import_module(f"signet_actors.{name}")
    for name in (
        "operations.remember",
        "operations.memories",
        "features.facets.api",
        "operations.memory_changes",
        "operations.recall",
        "features.changes.api",
        "features.aggregate_recall.api",
        "operations.batch_modify",
        "operations.forget",
        "operations.import_export",
        "operations.codex_notes",
        "operations.hooks",
        "operations.notifications",
        "features.skills.api",
        "operations.sessions",
        "features.session_memories.api",
        "features.searches.api",
        "operations.transcripts",
        "features.conversation.api",
        "features.session_summaries.api",
        "features.session_scores.api",
        "features.checkpoints.api",
        "features.timeline.api",
        "features.entities.api",
        "features.knowledge.api",
        "operations.synthesis",
        "operations.pipeline",
        "features.diagnostics.api",
        "features.analytics.api",
        "features.telemetry.api",
        "features.logs.api",
        "features.pipeline_ids.api",
        "features.classification.api",
        "features.communities.api",
        "features.runs.api",
        "operations.requeue",
        "features.reviews.api",
        "operations.embeddings",
        "features.projection.api",
        "operations.status",
        "operations.health",
        "operations.config_files",
        "operations.identity",
        "operations.harnesses",
        "operations.git",
        "operations.repair",
        "features.repairs.api",
        "features.duplicates.api",
        "operations.auth",
        "features.audit.api",
        "features.auth_tokens.api",
        "operations.mcp",
        "operations.page",
        "operations.api_docs",
    )
)
"""The modules of the operations. ``gateway/routes/`` has a module with handlers for each of this package.

They are imported by their names, because those of features are above this package.
"""

OPERATIONS: Final[tuple[Operation[Any], ...]] = tuple(one for subject in SUBJECTS for one in subject.OPERATIONS)
