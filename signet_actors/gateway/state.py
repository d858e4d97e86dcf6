"""State that the handlers of this process share. One instance per incarnation of the gateway."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from signet_actors.config.schema import Config, RateLimitsConfig
from signet_actors.config.workspace import Workspace
from signet_actors.domain.redaction.scan import Redactor
from signet_actors.errors import RateLimited
from signet_actors.gateway.access_counts import AccessCounts
from signet_actors.gateway.audit_events import AuditEvents
from signet_actors.gateway.auth.identity import Authenticator, Identity
from signet_actors.gateway.auth.page_codes import PageCodes
from signet_actors.gateway.auth.rate_limiter import RateLimiter
from signet_actors.gateway.auth.request_guard import GuardPolicy, guard_policy, served_uids
from signet_actors.gateway.auth.token_registry import TokenRegistry
from signet_actors.gateway.common_words import CommonWordsCache
from signet_actors.gateway.http.event_streams import EventStreams
from signet_actors.gateway.limits import ChunkWriteLimiter, VectorWaitLimiter
from signet_actors.gateway.previous_embedder import PreviousEmbedder
from signet_actors.gateway.projects import Projects
from signet_actors.gateway.server.load_shedding import ServerContext
from signet_actors.gateway.sessions.checkpoints import SessionCheckpoints
from signet_actors.gateway.sessions.ledger import RecallLedger
from signet_actors.gateway.sessions.search_log import SearchLog
from signet_actors.gateway.sessions.session_secrets import SessionSecrets
from signet_actors.gateway.sessions.table import SessionTable
from signet_actors.gateway.skipped_transcripts import SkippedTranscripts
from signet_actors.gateway.status.kept_replies import KeptReplies
from signet_actors.gateway.status.readiness import Readiness, readiness
from signet_actors.gateway.status.replies import StatusRequests
from signet_actors.gateway.status.request_metrics import RequestMetrics
from signet_actors.gateway.status.usage import Usage
from signet_actors.gateway.synthesis.synthesis import Synthesis
from signet_actors.gateway.telemetry import Telemetry
from signet_actors.gateway.transcript_readers import TranscriptReaders
from signet_actors.protocol.control import UP
from signet_actors.providers.embedding import Embedder
from signet_actors.providers.minilm.encoder import AbsentEncoder
from signet_actors.providers.remote_embedder import RemoteEmbedder
from signet_actors.runtime.clock import Clock, new_id
from signet_actors.runtime.connected_harnesses import read_connected
from signet_actors.runtime.messaging.bus_client import BusClient
from signet_actors.runtime.processes.child_context import ChildContext

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


_RATE_FIELDS: Final = {limit.encode_name: limit.name for limit in msgspec.structs.fields(RateLimitsConfig)}
MAX_HARNESSES: Final = 64
"""Names of harnesses that are kept in memory."""


@dataclass(slots=True)
class RequestCounters:
    """Requests since the process started, for the heartbeat and ``/api/status``."""

    requests: int = 0
    in_flight: int = 0
    guarded: int = 0
    client_errors: int = 0
    server_errors: int = 0
    transcripts_skipped: int = 0

    def as_mapping(self) -> dict[str, int]:
        return {
            "requests": self.requests,
            "in_flight": self.in_flight,
            "guarded": self.guarded,
            "client_errors": self.client_errors,
            "server_errors": self.server_errors,
            "transcripts_skipped": self.transcripts_skipped,
        }


@dataclass(slots=True)
class GatewayState:
    """Shared state of the handlers. ``config``, ``guard``, ``users``, ``embedder`` and ``redactor`` follow a reload.

    ``port`` is the port that is listened on. ``started_at_ms`` is when the daemon started, not this process.
    ``supervisor_silent_ms`` returns the age of the process tree. ``owner_token`` is set if ``gateway.requireOwner`` is
    on. ``server_context`` holds what connections hold and what was rejected before the application ran; it is None
    until the server exists. ``embedding_refused``: why the saved settings of the model are not in effect.
    ``captures``: the transcripts of sessions that go on, while they are being stored.
    ``harnesses_seen``: when the last hook of each harness came, in milliseconds since 1970, but for those of a check.
    ``harnesses_with_tools``: those whose agents have searched or stored with the tools of MCP, or that `signet connect`
    gave them.
    """

    boot: ChildContext
    config: Config
    bus: BusClient
    clock: Clock
    rng: random.Random
    log: FilteringBoundLogger
    embedder: Embedder | None
    redactor: Redactor
    signing_key: bytes
    common_words: CommonWordsCache
    port: int
    started_at_ms: int
    guard: GuardPolicy = field(init=False)
    users: frozenset[int] | None = field(init=False)
    logs_every_request: bool = field(init=False)
    chunk_writes: ChunkWriteLimiter = field(default_factory=ChunkWriteLimiter)
    draining: bool = False
    supervisor_silent_ms: Callable[[], int] = lambda: 0
    counters: RequestCounters = field(default_factory=RequestCounters)
    request_metrics: RequestMetrics = field(default_factory=RequestMetrics)
    telemetry: Telemetry = field(init=False)
    usage: Usage = field(init=False)
    status_requests: StatusRequests = field(init=False)
    prompt_counts: KeptReplies = field(init=False)
    access_counts: AccessCounts = field(init=False)
    audit: AuditEvents = field(init=False)
    sessions: SessionTable = field(init=False)
    ledger: RecallLedger = field(init=False)
    searches: SearchLog = field(init=False)
    projects: Projects = field(init=False)
    checkpoints: SessionCheckpoints = field(init=False)
    synthesis: Synthesis = field(init=False)
    streams: EventStreams = field(default_factory=EventStreams)
    captures: dict[tuple[str, str], asyncio.Task[Any]] = field(default_factory=dict)
    transcript_readers: TranscriptReaders = field(default_factory=TranscriptReaders)
    session_secrets: SessionSecrets = field(default_factory=SessionSecrets)
    plans: dict[tuple[str, int, int], tuple[bool, tuple[str, str] | None]] = field(default_factory=dict)
    skipped_transcripts: SkippedTranscripts = field(default_factory=SkippedTranscripts)
    prompts_in_flight: int = 0
    harnesses_seen: dict[str, int] = field(default_factory=dict)
    harnesses_with_tools: set[str] = field(default_factory=set)
    previous_embedder: PreviousEmbedder = field(default_factory=PreviousEmbedder)
    rate_limiter: RateLimiter = field(default_factory=RateLimiter)
    wrong_tokens: RateLimiter = field(default_factory=RateLimiter)
    summaries_waiting: int = 0
    aggregates_waiting: int = 0
    compares_duplicates: bool = False
    vector_waits: VectorWaitLimiter = field(default_factory=VectorWaitLimiter)
    server_context: ServerContext | None = None
    owner_token: str | None = None
    page_codes: PageCodes = field(default_factory=PageCodes)
    authenticator: Authenticator = field(init=False)
    embedding_refused: str = ""

    def note_tool(self, headers: Mapping[str, str]) -> None:
        """Note that a request is of an agent, whose harness so has the tools of MCP."""
        harness, known = headers.get("x-signet-actor"), self.harnesses_with_tools
        if harness and headers.get("x-signet-actor-type") == "agent" and len(known) < MAX_HARNESSES:
            known.add(harness)

    async def has_tools(self, harness: str) -> bool:
        """Return whether agents of this harness have the tools of MCP: they used them, or are connected with them."""
        if harness not in self.harnesses_with_tools:
            connected = await asyncio.to_thread(read_connected, self.workspace)
            self.harnesses_with_tools |= {row.harness for row in connected if row.servers_file}
        return harness in self.harnesses_with_tools

    def __post_init__(self) -> None:
        self.status_requests = StatusRequests(self.bus, self.clock)
        self.prompt_counts = KeptReplies(self.clock)
        self.access_counts = AccessCounts(self.bus)
        self.audit = AuditEvents(self.bus, self.clock, self.log, lambda: new_id(self.clock, self.rng))
        self.telemetry = Telemetry(
            self.bus, self.clock, lambda: new_id(self.clock, self.rng), lambda: self.config.memory.pipeline_v2
        )
        self.usage = Usage(
            *(self.bus, self.clock, self.log, lambda: new_id(self.clock, self.rng)),
            self.request_metrics,
            lambda name: self.redactor.clean(name)[0],
            self.telemetry,
        )
        self.sessions = SessionTable(self.clock, file=Workspace(self.workspace).claims_file)
        self.projects = Projects(self.clock)
        self.authenticator = Authenticator(TokenRegistry(self.bus, self.clock), self.clock)
        self.ledger = RecallLedger(self.bus, self.clock, self.log)
        self.searches = SearchLog(
            self.bus,
            self.clock,
            self.log,
            lambda: new_id(self.clock, self.rng),
            lambda: self.redactor,
        )
        self.checkpoints = SessionCheckpoints(
            self.bus,
            self.ledger,
            self.clock,
            self.log,
            lambda: new_id(self.clock, self.rng),
            lambda: self.config.memory.pipeline_v2.continuity,
            lambda text, known: self.redactor.clean(text, known)[0],
            self.session_secrets,
        )
        self.synthesis = Synthesis(
            self.workspace,
            self.bus,
            self.clock,
            self.rng,
            self.log,
            lambda: self.config,
            lambda: self.redactor,
        )
        self.reconfigure(self.config)

    @property
    def workspace(self) -> Path:
        return Path(self.boot.workspace)

    def take_rate(self, identity: Identity, rate: str | None) -> None:
        """Count an operation of a token's bearer. Raises SignetError at the limit ``rate`` of ``auth.rateLimits``."""
        if rate is None or not identity.has_rate_limits:
            return
        limit = getattr(self.config.auth.rate_limits, _RATE_FIELDS[rate])
        wait_ms = self.rate_limiter.take(f"{identity.id}:{rate}", limit, self.clock.monotonic_ns() // 10**6)
        if wait_ms:
            raise RateLimited(retry_after_ms=wait_ms)

    def count_wrong_token(self, address: str) -> None:
        """Count a token that was not accepted. Raises SignetError beyond ``auth.rateLimits.wrongTokens``.

        A valid token is accepted all the same, so that no caller can lock another one out, whatever address they share.
        """
        limit = self.config.auth.rate_limits.wrong_tokens
        wait_ms = self.wrong_tokens.take(address, limit, self.clock.monotonic_ns() // 10**6)
        if wait_ms:
            raise RateLimited(retry_after_ms=wait_ms)

    def is_up(self, role: str) -> bool:
        """Return True if the supervisor reports a process of the role as up."""
        return any(child.role == role and child.state == UP for child in self.bus.tree.children)

    def readiness(self) -> Readiness:
        """Return what the daemon can do now, as far as its supervisor reports."""
        limits = self.config.supervision
        silent_ms = self.supervisor_silent_ms()
        bus_health = self.bus.health()
        unanswered = {"writer": bus_health.writer, "searcher": bus_health.searcher}
        return readiness(
            self.bus.tree.children,
            draining=self.draining,
            silent_ms=silent_ms if silent_ms > limits.heartbeat_ms * limits.liveness else None,
            unanswered={role: why for role, why in unanswered.items() if why is not None},
            storage_full=bus_health.storage_full,
            notes=(
                *bus_health.notes,
                *filter(None, (self.transcript_readers.note(),)),
                *self.skipped_transcripts.notes(),
                *filter(None, (self.embedding_problem(),)),
            ),
            warning=self.bus.tree.warning,
            failure=self.bus.tree.failure,
        )

    def embedding_problem(self) -> str:
        """Return what is without a vector now, and why; empty if nothing is known to be."""
        if self.embedding_refused:
            return f"the former embedding settings are in effect, the saved ones cannot be: {self.embedding_refused}"
        return self.embedder.problem if isinstance(self.embedder, RemoteEmbedder | AbsentEncoder) else ""

    def counter_values(self) -> dict[str, int]:
        """Return the gateway's counters for the heartbeat, ``/api/status`` and the metrics.

        ``requests_shed``: rejected because of overload. ``refused``: everything that the server rejected before the
        application ran, including ``requests_shed`` and ``connections_refused``. ``unanswered*``: in flight now.
        """
        values = self.counters.as_mapping() | {"streams": self.streams.count}
        if self.server_context is not None:
            admission, rejections = self.server_context.admission, self.server_context.rejections
            values |= {
                "connections": len(self.server_context.connections.served),
                "connections_most": self.server_context.limits.connections,
                "connections_refused": rejections.connections,
                "refused": rejections.total,
                "requests_shed": admission.shed,
                "unanswered": admission.in_flight,
                "unanswered_bytes": admission.body_bytes,
            }
        return values

    def reconfigure(self, config: Config) -> None:
        """Use ``config`` for new requests."""
        self.config = config
        self.projects.configure(config.projects)
        # Building a line that the log level drops would cost more than routing a request.
        self.logs_every_request = config.logging.level == "debug"
        self.guard = guard_policy(
            self.port,
            config.gateway.allowed_hosts,
            is_local=config.auth.mode == "local",
            proxies=() if config.auth.mode == "local" else config.gateway.trusted_proxies,
            has_tls=bool(self.boot.config.gateway.tls_certificate),
        )
        self.users = served_uids(config.gateway.users, lambda name: self.log.warning("unknown_user", name=name))
