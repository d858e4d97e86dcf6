"""Liveness, readiness, health and metrics.

Source: docs/compatibility.md "Health and status"; docs/reliability.md R22; docs/metrics.md. ``actors`` and ``detail``
are ours.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from signet_actors.domain.permissions import Permission
from signet_actors.operations.operation import Operation
from signet_actors.operations.request_fields import NoFields


class ActorBrief(msgspec.Struct, frozen=True, rename="camel"):
    """One process of the daemon: ``state`` is starting, up, restarting, stopping or failed."""

    name: str
    role: str
    state: str
    incarnation: int
    restarts: int
    detail: str = ""


class PipelineHealth(msgspec.Struct, frozen=True, rename="camel"):
    """The extraction of facts, as of the extractor's last heartbeat.

    ``extraction_running``: it is enabled and its process is up.
    ``extraction_stalled``: it is enabled and takes no jobs, because its process is down or no model answers.
    ``extraction_backoff_ms``: how long it will take none at least, 0 if that is not known.
    ``extraction_pending``: pending jobs; null unless ``/metrics`` or ``/api/pipeline/status`` counted them within the
    last minute (health itself never queries the database).
    """

    extraction_running: bool
    extraction_stalled: bool
    extraction_pending: int | None
    extraction_backoff_ms: int


class ResourcesHealth(msgspec.Struct, frozen=True, rename="camel"):
    """CPU and memory of all daemon processes except the supervisor, as of their last heartbeats.

    ``rss_bytes`` is 0 if the system does not report it. A page that processes share counts in each of them.
    """

    processes: int
    cpu_seconds: float
    rss_bytes: int
    rss_peak_bytes: int


class IndexingHealth(msgspec.Struct, frozen=True, rename="camel"):
    """Memories that some searcher has not completely indexed yet, as of the searchers' last heartbeats.

    After a large import recall may find them by their words alone, until ``pending`` is 0.
    """

    pending: int


class SynthesisHealth(msgspec.Struct, frozen=True, rename="camel"):
    """The making of ``MEMORY.md``, of all agents, as of the last check or run.

    ``failing``: the last attempt for an agent failed; ``lastError`` says why. Its present file stays.
    """

    running: bool
    failing: bool
    last_error: str | None


class HealthReply(msgspec.Struct, frozen=True, rename="camel"):
    """The health of the daemon. ``uptime`` is in seconds; ``detail`` names what is down.

    ``db`` is true while the writer has the database open.
    """

    status: Literal["healthy", "degraded", "unhealthy"]
    uptime: float
    pid: int
    version: str
    port: int
    agents_dir: str
    db: bool
    shutting_down: bool
    detail: str
    actors: list[ActorBrief]
    pipeline: PipelineHealth
    indexing: IndexingHealth
    resources: ResourcesHealth
    synthesis: SynthesisHealth
    update_available: bool = False
    pending_restart: bool = False


class LiveReply(msgspec.Struct, frozen=True):
    """The gateway answers requests."""

    status: Literal["live"]
    uptime: float


class ReadyReply(msgspec.Struct, frozen=True, rename="camel"):
    """Whether the daemon is ready. ``not_up`` names the processes that are not up.

    With status 200 they may still be listed, if others can do their work.
    """

    ready: bool
    status: Literal["healthy", "degraded", "unhealthy"]
    not_up: list[str]
    detail: str
    error: str | msgspec.UnsetType = msgspec.UNSET
    code: str | msgspec.UnsetType = msgspec.UNSET


HEALTH: Final[Operation[NoFields, HealthReply]] = Operation(
    name="health.get",
    summary="State of the daemon",
    tag="health",
    paths=("/health",),
    replies={200: HealthReply},
    permission=None,
    public=True,
)
LIVE: Final[Operation[NoFields, LiveReply]] = Operation(
    name="health.live",
    summary="Liveness of the gateway",
    tag="health",
    paths=("/health/live",),
    replies={200: LiveReply},
    permission=None,
    public=True,
)
READY: Final[Operation[NoFields, ReadyReply]] = Operation(
    name="health.ready",
    summary="Readiness: whether memories can be written and read",
    tag="health",
    paths=("/health/ready",),
    replies={200: ReadyReply, 503: ReadyReply},
    permission=None,
    public=True,
)


METRICS_MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""The Prometheus text format that every scraper reads, whatever its Accept header lists."""

METRICS: Final[Operation[NoFields, str]] = Operation(
    name="metrics.get",
    summary="Metrics for Prometheus",
    tag="status",
    paths=("/metrics",),
    replies={200: str},
    permission=Permission.DIAGNOSTICS,
    media_types=(METRICS_MEDIA_TYPE,),
    description="The text exposition format 0.0.4. A process's counters restart at 0 when it restarts.",
)
OPERATIONS: Final = (HEALTH, LIVE, READY, METRICS)
