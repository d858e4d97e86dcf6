"""Stored embeddings: export them, report their coverage and the provider. ``tags`` is an array (docs/decisions.md 31).

Source: memory-api.txt "Embeddings"; docs/compatibility.md "Embeddings".
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from signet_actors.domain.permissions import Permission
from signet_actors.operations.field_types import Clamped, Flag
from signet_actors.operations.operation import MEMORY_READ, Operation
from signet_actors.operations.problem import PROBLEMS
from signet_actors.operations.request_fields import AgentFields, NoFields


class ExportEmbeddingsRequest(AgentFields, frozen=True, kw_only=True, omit_defaults=True):
    """Which page of the stored embeddings to read."""

    limit: Annotated[int, Clamped(low=50, high=5000), Meta(description="Page size")] = 600
    offset: Annotated[int, Clamped(low=0, high=100_000), Meta(description="Page offset")] = 0
    vectors: Annotated[bool, Flag(), Meta(description="true: with the raw vectors")] = False


class ExportedEmbedding(msgspec.Struct, frozen=True, rename="camel"):
    """A stored embedding with its memory; ``vector`` only with ``vectors=true``."""

    id: str
    content: str
    text: str
    who: str | None
    importance: float
    type: str
    tags: list[str]
    source_type: str
    source_id: str
    created_at: str
    vector: list[float] | UnsetType = UNSET


class EmbeddingsReply(msgspec.Struct, frozen=True, rename="camel"):
    """A page of stored embeddings."""

    embeddings: list[ExportedEmbedding]
    count: int
    total: int
    limit: int
    offset: int
    has_more: bool


class Tracker(msgspec.Struct, frozen=True, rename="camel"):
    """Progress in creating missing and stale vectors since the extractor started; zeros if it does not answer.

    ``queue_depth`` memories wait for a vector; ``skipped_cycles`` counts pauses while the provider was unavailable.
    """

    running: bool = False
    processed: int = 0
    failed: int = 0
    skipped_cycles: int = 0
    last_cycle_at: str | None = None
    queue_depth: int = 0


class EmbeddingStatusReply(msgspec.Struct, frozen=True):
    """Whether the embedding provider answers; measured at most every 30 seconds.

    ``second``: the model of the better vectors that follow the first ones.
    """

    provider: str
    model: str | None
    available: bool
    dimensions: int | None
    base_url: str | None
    checked_at: str = msgspec.field(name="checkedAt")
    tracker: Tracker
    error: str | UnsetType = UNSET
    second: str | UnsetType = UNSET


class EmbeddingSettings(msgspec.Struct, frozen=True):
    """The provider in use."""

    provider: str
    model: str | None
    dimensions: int | None


class EmbeddingCheck(msgspec.Struct, frozen=True):
    """One measured property; ``score`` in [0, 1]."""

    name: str
    status: Literal["ok", "warn", "fail"]
    score: float
    message: str
    detail: dict[str, int | float | str | dict[str, int]]


class EmbeddingHealthReply(msgspec.Struct, frozen=True, rename="camel"):
    """How well stored vectors cover the memories; ``coverage`` in percent, ``score`` in [0, 1]."""

    status: Literal["healthy", "degraded", "unhealthy"]
    score: float
    checked_at: str
    coverage: float
    total: int
    embedded: int
    stale: int
    provider_available: bool
    config: EmbeddingSettings
    checks: list[EmbeddingCheck]


EXPORT_EMBEDDINGS: Final[Operation[ExportEmbeddingsRequest, EmbeddingsReply]] = Operation(
    name="embeddings.export",
    summary="Export stored embeddings",
    tag="Embeddings",
    paths=("/api/embeddings",),
    request=ExportEmbeddingsRequest,
    example={"vectors": "true", "limit": 50},
    replies={200: EmbeddingsReply, **PROBLEMS},
    **MEMORY_READ,
    audited=True,
)
EMBEDDING_STATUS: Final[Operation[NoFields, EmbeddingStatusReply]] = Operation(
    name="embeddings.status",
    summary="State of the embedding provider",
    tag="Embeddings",
    paths=("/api/embeddings/status",),
    replies={200: EmbeddingStatusReply, **PROBLEMS},
    permission=Permission.RECALL,
)
EMBEDDING_HEALTH: Final[Operation[NoFields, EmbeddingHealthReply]] = Operation(
    name="embeddings.health",
    summary="Coverage and consistency of the embeddings",
    tag="Embeddings",
    paths=("/api/embeddings/health",),
    replies={200: EmbeddingHealthReply, **PROBLEMS},
    permission=Permission.RECALL,
    served_by="searcher",
)
OPERATIONS: Final = (EXPORT_EMBEDDINGS, EMBEDDING_STATUS, EMBEDDING_HEALTH)
