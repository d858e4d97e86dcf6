"""The status overview and the features of this daemon.

Source: docs/compatibility.md "Health and status". ``actors`` and ``detail`` are ours.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from signet_actors.domain.permissions import Permission
from signet_actors.operations.health import ActorBrief
from signet_actors.operations.operation import Operation
from signet_actors.operations.request_fields import NoFields


class ActorReport(ActorBrief, frozen=True, rename="camel"):
    """One process with its process id and its counters, as of its last heartbeat."""

    pid: int | None = None
    counters: dict[str, float] = {}


class StoreReport(msgspec.Struct, frozen=True, rename="camel"):
    """Row counts over all agents; ``bytes`` is the size of the database file.

    ``entities``: of the knowledge graph, that live memories mention or that are pinned. ``sessions``: those with a
    transcript.
    """

    memories: int
    tombstones: int
    embeddings: int
    agents: int
    entities: int
    schema_version: int
    bytes: int
    sessions: int = 0


class WriterReport(msgspec.Struct, frozen=True, rename="camel"):
    """The writer's counters since it started."""

    commits: int
    rows: int
    largest_batch: int
    wal_bytes: int
    storage_full: bool
    schema_version: int
    sqlite_version: str
    damage: str | None = None


class RetentionReport(msgspec.Struct, frozen=True, rename="camel"):
    """The last sweep and the newest verified backup.

    ``suspended_reason`` says why purging waits, if it does. ``scrub_findings`` are the defects that the last check of
    the database found.
    """

    last_sweep_at: str | None
    next_sweep_in_ms: int
    last_counts: dict[str, int]
    suspended_reason: str | None
    last_backup_at: str | None = None
    backup_problem: str | None = None
    scrub_findings: list[str] = []


class HealthScore(msgspec.Struct, frozen=True):
    """``score`` is the share of the daemon's processes that are up."""

    score: float
    status: str


class EmbeddingReport(msgspec.Struct, frozen=True):
    """The embedding back end of this process; ``available`` is false while search is by keyword only.

    ``second``: the model of the better vectors that follow the first ones.
    """

    provider: str
    model: str
    dimensions: int
    available: bool
    second: str | msgspec.UnsetType = msgspec.UNSET


class ProviderChoice(msgspec.Struct, frozen=True):
    """The configured provider, and the one that is used."""

    configured: str
    resolved: str
    effective: str


class ProviderResolution(msgspec.Struct, frozen=True):
    """Providers of language models."""

    extraction: ProviderChoice
    synthesis: ProviderChoice


class LogPlaces(msgspec.Struct, frozen=True, rename="camel"):
    """The paths of the log."""

    log_dir: str
    log_file: str


class UpdateReport(msgspec.Struct, frozen=True, rename="camel"):
    """Always false: the daemon does not check for updates."""

    update_available: bool = False
    pending_restart: bool = False


class StatusReply(msgspec.Struct, frozen=True, rename="camel"):
    """A summary of everything. A part that could not be queried in time is null, and ``notes`` says why.

    ``jobs`` maps job states to rows; ``waiting`` describes in words what waits for what.
    """

    status: Literal["running", "stopping"]
    version: str
    pid: int
    uptime: float
    started_at: str
    port: int
    host: str
    bind_host: str
    agents_dir: str
    memory_db: bool
    health: HealthScore
    detail: str
    actors: list[ActorReport]
    gateway: dict[str, int]
    bus: dict[str, int]
    db: StoreReport | None
    writer: WriterReport | None
    retention: RetentionReport | None
    jobs: dict[str, int] | None
    oldest_pending_job: str | None
    waiting: list[str]
    notes: list[str]
    embedding: EmbeddingReport
    mutations_frozen: bool
    pipeline_v2: dict[str, Any] = msgspec.field(name="pipelineV2")
    provider_resolution: ProviderResolution
    logging: LogPlaces
    active_sessions: int = 0
    bypassed_sessions: int = 0
    agent_created_at: str | None = None
    update: UpdateReport = UpdateReport()


STATUS: Final[Operation[NoFields, StatusReply]] = Operation(
    name="status.get",
    summary="Status of processes, jobs and configuration, with counts",
    tag="status",
    paths=("/api/status",),
    replies={200: StatusReply},
    permission=Permission.DIAGNOSTICS,
)
FEATURES: Final[Operation[NoFields, dict[str, bool]]] = Operation(
    name="status.features",
    summary="What this daemon can do",
    tag="status",
    paths=("/api/features",),
    replies={200: dict[str, bool]},
    permission=Permission.DIAGNOSTICS,
)
OPERATIONS: Final = (STATUS, FEATURES)
