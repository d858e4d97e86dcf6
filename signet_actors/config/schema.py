"""The configuration as frozen structs: every key with its type, range, unit, default and meaning.

The range is in ``msgspec.Meta`` next to the type, and the unit is the last word of the attribute's name. The YAML name
is the struct's encoded name, so the same structs are sent to child processes as JSON within ``ChildContext``.
``load.py`` reads the file, reports its problems and accepts older spellings.

Source: memory-pipeline.txt "Configuration Reference"; docs/decisions.md 16, 18, 20, 43, 44, 46. Each section cites the
sources of its keys.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field

from signet_actors.config.field_forms import (
    ADDRESS_PATTERN,
    ALLOWED_HOST_FORM,
    ALLOWED_HOST_PATTERN,
    DAY_MS,
    HOST_FORM,
    HOST_PATTERN,
    HOUR_MS,
    KIB,
    MAX_NAME_CHARS,
    MAX_PATH_CHARS,
    MIB,
    MINUTE_MS,
    MODEL_FORM,
    MODEL_PATTERN,
    NAME_PATTERN,
    SECOND_MS,
    USER_FORM,
    USER_PATTERN,
    described,
    directory_path,
    endpoint_url,
    key_variable,
    ranged,
    text,
)
from signet_actors.config.git_schema import GitConfig
from signet_actors.config.hooks_schema import HooksConfig
from signet_actors.config.pipeline_schema import MemoryConfig

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 3850

EMBEDDED_MODEL: Final = "wordllama-l2-supercat-256"
EMBEDDED_DIMENSIONS: Final = 256
"""The vector width of the embedded provider; a test compares both constants with ``providers.embedded``."""
MINILM_MODEL: Final = "all-minilm-l6-v2-int8"
MINILM_DIMENSIONS: Final = 384
MULTILINGUAL_MODEL: Final = "multilingual-e5-small-int8"
MULTILINGUAL_DIMENSIONS: Final = 384


AGENT_NAME_PATTERN: Final = (
    r"^[^\s/:\\\x00-\x1f\x7f-\x9f\u2028\u2029]"
    r"([^/:\\\x00-\x1f\x7f-\x9f\u2028\u2029]*[^\s/:\\\x00-\x1f\x7f-\x9f\u2028\u2029])?\Z"
)
MAX_AGENT_NAME_CHARS: Final = MAX_NAME_CHARS

_AGENT_NAME_FORM: Final = "an agent's name (no slash, backslash, colon or space at either end)"


EmbeddingProvider = Literal["auto", "embedded", "minilm", "multilingual", "ollama", "openai", "fastembed", "none"]
Fusion = Literal["convex", "rrf"]
AuthMode = Literal["local", "team", "hybrid"]
ReadPolicy = Literal["isolated", "shared", "group"]
ProjectIdentity = Literal["repository", "path"]
LogLevel = Literal["debug", "info", "warning", "error"]


class EmbeddingConfig(Struct, frozen=True, rename="camel"):
    """Provider, model and width of vectors. Source: docs/decisions.md 22 and 43."""

    provider: Annotated[
        EmbeddingProvider,
        described(
            "Provider of vectors: `embedded` takes microseconds, `minilm` finds more and is slower, `auto` stores "
            "vectors of the first at once and of the second in the background, `multilingual` understands a hundred "
            "languages and needs a download (`signet setup`), `none` is keyword search only"
        ),
    ] = "auto"
    model: Annotated[
        str, text("Model of the provider; empty means the provider's default", pattern=MODEL_PATTERN, form=MODEL_FORM)
    ] = ""
    dimensions: Annotated[
        int,
        ranged(
            0,
            4096,
            "Number of dimensions of a vector, at least 8; 0 means those of the model, 256 if that is not known",
        ),
    ] = 0
    endpoint: Annotated[str, endpoint_url("Base URL of a network provider; `baseUrl` is also accepted")] = ""
    api_key_env: Annotated[str, key_variable("Name of the environment variable that holds the key")] = ""
    wait_ms: Annotated[
        int,
        ranged(
            0, 30 * SECOND_MS, "Maximum wait for a network provider's vector after a memory or a change is committed"
        ),
    ] = 500


class SearchConfig(Struct, frozen=True):
    """How the legs of a recall are combined. Source: memory-system.txt "Alpha Blending"; docs/decisions.md 7."""

    fusion: Annotated[
        Fusion, described("How keyword and vector results are combined: weighted scores or reciprocal ranks")
    ] = "convex"
    alpha: Annotated[
        float, ranged(0.0, 1.0, "Weight of the vector score; the keyword score has the weight 1 - alpha")
    ] = 0.5
    min_score: Annotated[
        float,
        ranged(0.0, 1.0, "Results that match less are dropped, unless a row beside them in a conversation passes"),
    ] = 0.1
    pool: Annotated[int, ranged(10, 2000, "Candidates that each search leg contributes to the fusion")] = 200
    token_similarity: Annotated[
        bool, described("Raise memories with words like those of the query, compared word by word")
    ] = True
    context: Annotated[
        bool, described("Raise memories whose neighbours in the same conversation match, and answers to questions")
    ] = True
    priors: Annotated[
        bool,
        described(
            "Prefer memories about the subject that the query names, and those with the time or number it asks for"
        ),
    ] = True
    episode_order: Annotated[
        bool,
        described("Put the memories of one episode of a conversation in an order that was learned from conversations"),
    ] = True
    date_boost: Annotated[bool, described("Raise memories created at or near a time that the query names")] = True
    transcripts: Annotated[
        bool, described("Fill places that the memories of a recall leave free with what was said in earlier sessions")
    ] = True
    ledger: Annotated[
        bool,
        described(
            "Keep what hooks and recalls asked for, were given, and why the rest was left out; it stays on this machine"
        ),
    ] = True
    ledger_rows: Annotated[
        int,
        ranged(
            1000,
            10_000_000,
            "So many hooks and recalls of all agents together are kept at most; a sweep deletes the oldest. One takes"
            " 0.5 kB without memories, 1.5 kB with 7, 3.5 kB with 22",
        ),
    ] = 200_000


class RetentionConfig(Struct, frozen=True, rename="camel"):
    """How long data that is no longer needed is kept. Source: memory-system.txt "Retention Worker".

    The minimum is one hour, so that a number of days, minutes or seconds given as milliseconds is rejected instead of
    purging everything.
    """

    interval_ms: Annotated[int, ranged(SECOND_MS, 7 * DAY_MS, "Time between two retention sweeps")] = 6 * HOUR_MS
    batch_limit: Annotated[int, ranged(1, 10_000, "Maximum number of rows that one transaction of a sweep purges")] = (
        500
    )
    tombstone_retention_ms: Annotated[
        int, ranged(HOUR_MS, 3650 * DAY_MS, "A forgotten memory is permanently deleted after this time")
    ] = 30 * DAY_MS
    history_retention_ms: Annotated[
        int, ranged(HOUR_MS, 3650 * DAY_MS, "History events are deleted after this time")
    ] = 180 * DAY_MS
    completed_job_retention_ms: Annotated[
        int, ranged(HOUR_MS, 3650 * DAY_MS, "Completed jobs are deleted after this time")
    ] = 14 * DAY_MS
    dead_job_retention_ms: Annotated[int, ranged(HOUR_MS, 3650 * DAY_MS, "Dead jobs are deleted after this time")] = (
        30 * DAY_MS
    )
    session_retention_ms: Annotated[
        int, ranged(HOUR_MS, 3650 * DAY_MS, "The record of what a session received is deleted after this time")
    ] = 14 * DAY_MS
    session_memory_retention_ms: Annotated[
        int,
        ranged(
            HOUR_MS,
            3650 * DAY_MS,
            "What was asked for and offered of memories, feedback and scores are deleted after this time",
        ),
    ] = 90 * DAY_MS
    transcript_retention_ms: Annotated[
        int, ranged(HOUR_MS, 3650 * DAY_MS, "The transcript of a session is deleted this long after its last new turn")
    ] = 3650 * DAY_MS
    audit_retention_ms: Annotated[
        int, ranged(HOUR_MS, 3650 * DAY_MS, "Rows of the audit log are deleted after this time")
    ] = 365 * DAY_MS


class BackupConfig(Struct, frozen=True, rename="camel"):
    """Verified copies of the database. Source: docs/reliability.md R17, R18 and R23."""

    interval_ms: Annotated[
        int,
        ranged(
            0, 90 * DAY_MS, "Time between two scheduled backups; each checks the database completely; 0 turns them off"
        ),
    ] = DAY_MS
    keep: Annotated[
        int, ranged(1, 1000, "Number of backups to keep; a forgotten memory stays in them until they are deleted")
    ] = 7


class GatewayConfig(Struct, frozen=True, rename="camel"):
    """The HTTP gateway: its listen address and its limits.

    Source: docs/decisions.md 24, 25, 42-44; docs/reliability.md R13.
    """

    host: Annotated[
        str,
        text(
            "Address that the daemon listens on; one that other machines reach needs tokens, and TLS or a proxy",
            chars=253,
            pattern=HOST_PATTERN,
            form=HOST_FORM,
            least=1,
        ),
    ] = DEFAULT_HOST
    port: Annotated[
        int, ranged(0, 65_535, "Port that the daemon listens on; 0 picks a free one and writes it to `.daemon/address`")
    ] = DEFAULT_PORT
    max_body_bytes: Annotated[int, ranged(KIB, 64 * MIB, "A larger request body is answered with 413")] = 4 * MIB
    max_header_bytes: Annotated[int, ranged(KIB, 256 * KIB, "Larger request headers are answered with 431")] = 16 * KIB
    header_timeout_ms: Annotated[
        int, ranged(100, 2 * MINUTE_MS, "The complete request head must arrive within this time")
    ] = 5 * SECOND_MS
    body_timeout_ms: Annotated[
        int, ranged(100, 10 * MINUTE_MS, "The complete request body must arrive within this time")
    ] = 10 * SECOND_MS
    keep_alive_ms: Annotated[int, ranged(0, 10 * MINUTE_MS, "An idle connection is closed after this time")] = (
        10 * SECOND_MS
    )
    max_connections: Annotated[int, ranged(1, 65_536, "Maximum number of open connections; more are refused")] = 512
    request_timeout_ms: Annotated[
        int, ranged(100, 10 * MINUTE_MS, "Maximum time from a complete request to its response")
    ] = 10 * SECOND_MS
    allowed_hosts: Annotated[
        tuple[Annotated[str, text("", chars=260, pattern=ALLOWED_HOST_PATTERN, form=ALLOWED_HOST_FORM, least=1)], ...],
        Meta(
            max_length=64,
            description="Host names accepted besides the loopback names (protection against DNS rebinding)",
        ),
    ] = ()
    trusted_proxies: Annotated[
        tuple[Annotated[str, text("", chars=45, pattern=ADDRESS_PATTERN, form="an IP address", least=1)], ...],
        Meta(
            max_length=16,
            description="Addresses of proxies that end TLS and pass on requests of other machines; not in mode `local`",
        ),
    ] = ()
    tls_certificate: Annotated[
        str, text("File of the certificate chain (PEM) with which the daemon itself ends TLS", chars=MAX_PATH_CHARS)
    ] = ""
    tls_key: Annotated[str, text("File of its private key (PEM)", chars=MAX_PATH_CHARS)] = ""
    users: Annotated[
        tuple[Annotated[str, text("", chars=32, pattern=USER_PATTERN, form=USER_FORM, least=1)], ...],
        Meta(max_length=64, description="Other users of this machine that are served, where the system names them"),
    ] = ()
    require_owner: Annotated[bool, described("Owner-only requests need the token in `.daemon/owner-token`")] = False
    confirm_ttl_ms: Annotated[
        int, ranged(SECOND_MS, HOUR_MS, "The confirmation token of a bulk forget expires after this time")
    ] = 5 * MINUTE_MS
    listen_backlog: Annotated[
        int, ranged(1, 65_535, "Connections that the kernel queues while the gateway restarts")
    ] = 1024
    touch_limit: Annotated[
        int, ranged(0, 1000, "Maximum number of results per recall whose access is recorded; 0 records none")
    ] = 100


class RedactionConfig(Struct, frozen=True, rename="camel"):
    """What is redacted before it is stored. Source: docs/decisions.md 26."""

    memories: Annotated[bool, described("Replace secrets in a memory before it is stored")] = True


class TranscriptsConfig(Struct, frozen=True, rename="camel"):
    """Captured transcripts of sessions. Source: docs/decisions.md 37."""

    max_file_bytes: Annotated[
        int, ranged(64 * KIB, 256 * MIB, "A larger file of a harness is not read as a transcript")
    ] = 64 * MIB


class SessionsConfig(Struct, frozen=True, rename="camel"):
    """Sessions of agents. Source: docs/decisions.md 65."""

    idle_minutes: Annotated[
        int, ranged(1, 7 * 24 * 60, "A session that is silent for so long without reporting its end is ended")
    ] = 30


class JoinedProject(Struct, frozen=True):
    """A directory, with all below it, that has the memories of another project. Source: docs/decisions.md 62."""

    directory: Annotated[str, directory_path("The directory")]
    project: Annotated[
        str, text("The project: a directory of it, or any name", chars=MAX_PATH_CHARS, pattern=NAME_PATTERN, least=1)
    ]


class ProjectsConfig(Struct, frozen=True):
    """Which directories are one project, and where hooks work. Source: docs/decisions.md 62."""

    identity: Annotated[
        ProjectIdentity,
        described("`repository`: all directories and worktrees of a git repository are one; `path`: each is its own"),
    ] = "repository"
    only: Annotated[
        tuple[Annotated[str, directory_path("")], ...],
        Meta(
            max_length=256,
            description="Directories in which hooks work, each with all below it: for sessions that began there. "
            "Elsewhere they inject and store nothing. Empty: everywhere",
        ),
    ] = ()
    joined: Annotated[
        tuple[JoinedProject, ...],
        Meta(max_length=256, description="Directories that have the memories of another project, such as clones"),
    ] = ()


class HarnessFilesConfig(Struct, frozen=True):
    """The identity files in the files of connected harnesses. Source: architecture.txt "How It Works"."""

    sync: Annotated[
        bool, described("Keep the identity files in the instructions of connected harnesses, too; false takes them out")
    ] = True


class RosterEntry(Struct, frozen=True):
    """A named agent and the agents whose memories it reads. Source: architecture.txt "Multi-Agent Support"."""

    name: Annotated[str, text("Id of the agent", pattern=AGENT_NAME_PATTERN, form=_AGENT_NAME_FORM, least=1)]
    read_policy: Annotated[
        ReadPolicy,
        described("Readable memories besides its own: none, all global ones, or the global ones of its group"),
    ] = "shared"
    policy_group: Annotated[str, text("Group that the read policy `group` refers to")] = ""


class AgentsConfig(Struct, frozen=True):
    """The agents that share this daemon. Source: architecture.txt "Multi-Agent Support"."""

    roster: Annotated[
        tuple[RosterEntry, ...],
        Meta(max_length=1000, description="Agents with settings; agents never listed here are accepted too"),
    ] = ()


class RateLimit(Struct, frozen=True, rename="camel"):
    """At most ``max_count`` operations in each window of ``window_ms``."""

    window_ms: Annotated[int, ranged(SECOND_MS, DAY_MS, "Length of the window")] = MINUTE_MS
    max_count: Annotated[int, ranged(1, 1_000_000, "Operations in a window")] = field(name="max", default=60)


class RateLimitsConfig(Struct, frozen=True, rename="camel"):
    """A limit for each kind of costly operation.

    Source: docs/compatibility.md "Authentication"; memory-api.txt "Recall" (auth.rateLimits, recallLlm).
    """

    forget: RateLimit = RateLimit(max_count=30)
    modify: RateLimit = RateLimit(max_count=60)
    batch_forget: RateLimit = RateLimit(max_count=5)
    force_delete: RateLimit = RateLimit(max_count=3)
    admin: RateLimit = RateLimit(max_count=10)
    recall_llm: RateLimit = RateLimit(max_count=60)
    wrong_tokens: RateLimit = RateLimit(max_count=60)


class AuthConfig(Struct, frozen=True, rename="camel"):
    """Authentication and rate limits. Source: docs/compatibility.md "Authentication"; docs/decisions.md 44."""

    mode: Annotated[
        AuthMode,
        described("Who is served: `local` this machine without a token, `team` bearers of tokens, `hybrid` both"),
    ] = "local"
    default_token_ttl_seconds: Annotated[int, ranged(60, 31_536_000, "Time until a token expires")] = 604_800
    session_token_ttl_seconds: Annotated[int, ranged(60, 31_536_000, "Time until a session token expires")] = 86_400
    rate_limits: RateLimitsConfig = RateLimitsConfig()


class SearcherConfig(Struct, frozen=True, rename="camel"):
    """The pool of searchers. Source: docs/reliability.md "Supervision policy"."""

    processes: Annotated[
        int, ranged(0, 64, "Number of searcher processes; 0 means the number of cores minus 1, at least 1")
    ] = 0
    queue_limit: Annotated[
        int, ranged(1, 65_536, "Maximum number of queued queries; more are answered with 503 at once")
    ] = 256
    read_timeout_ms: Annotated[
        int, ranged(50, MINUTE_MS, "Maximum time that a query may run; after it the query is cancelled")
    ] = 2000


class WriterConfig(Struct, frozen=True, rename="camel"):
    """The only process that writes. Source: docs/reliability.md "The writer's loop"; docs/decisions.md 3."""

    queue_limit: Annotated[
        int, ranged(1, 65_536, "Maximum number of queued writes; more are answered with 503 at once")
    ] = 256
    queue_bytes: Annotated[int, ranged(64 * KIB, KIB * MIB, "Maximum total size of the queued writes")] = 8 * MIB
    batch_limit: Annotated[int, ranged(1, 4096, "Maximum number of writes per transaction")] = 256
    busy_timeout_ms: Annotated[
        int, ranged(0, MINUTE_MS, "Maximum wait for a database lock held by another program")
    ] = 2000
    request_timeout_ms: Annotated[
        int, ranged(100, 10 * MINUTE_MS, "Maximum time a write waits in the queue; after it the write is dropped")
    ] = 5 * SECOND_MS
    reply_retention_ms: Annotated[
        int, ranged(MINUTE_MS, 7 * DAY_MS, "A retry of a write within this time gets the first response")
    ] = 10 * MINUTE_MS
    touch_flush_ms: Annotated[int, ranged(10, 10 * MINUTE_MS, "Interval at which recorded accesses are written")] = 1000
    ballast_bytes: Annotated[
        int,
        ranged(
            0,
            KIB * MIB,
            "Size of a reserve file that is deleted when the disk is full, so that memories can still be deleted",
        ),
    ] = 16 * MIB


class RestartBudget(Struct, frozen=True, rename="camel"):
    """At most ``restarts`` counted restarts within ``window_ms``."""

    restarts: Annotated[
        int, ranged(0, 1000, "Restarts allowed in a window; after one more the process is not restarted again")
    ] = 10
    window_ms: Annotated[int, ranged(SECOND_MS, DAY_MS, "Length of the window")] = MINUTE_MS


class BudgetsConfig(Struct, frozen=True, rename="camel"):
    """A restart budget for each role. Source: docs/reliability.md "Supervision policy"."""

    writer: RestartBudget = RestartBudget(restarts=5)
    searcher: RestartBudget = RestartBudget(restarts=10, window_ms=5 * MINUTE_MS)
    gateway: RestartBudget = RestartBudget(restarts=10, window_ms=5 * MINUTE_MS)
    retention: RestartBudget = RestartBudget(restarts=3, window_ms=10 * MINUTE_MS)
    extractor: RestartBudget = RestartBudget(restarts=5, window_ms=5 * MINUTE_MS)
    quarantine: RestartBudget = RestartBudget(restarts=100, window_ms=5 * MINUTE_MS)
    decider: RestartBudget = RestartBudget(restarts=5, window_ms=5 * MINUTE_MS)


class SupervisionConfig(Struct, frozen=True, rename="camel"):
    """Monitoring and restarting of processes. Source: docs/reliability.md "Supervision policy", R9, R19, R21."""

    heartbeat_ms: Annotated[int, ranged(50, MINUTE_MS, "Time between two heartbeats of a process")] = 900
    liveness: Annotated[int, ranged(2, 100, "Missed heartbeats after which a process counts as hung")] = 3
    start_timeout_ms: Annotated[
        int, ranged(SECOND_MS, HOUR_MS, "Time for a process to become ready; after it the process is killed")
    ] = 2 * MINUTE_MS
    drain_ms: Annotated[
        int, ranged(0, 10 * MINUTE_MS, "Time for a process to finish its work after a stop request")
    ] = 5 * SECOND_MS
    budgets: BudgetsConfig = BudgetsConfig()
    backoff_min_ms: Annotated[int, ranged(1, 10 * MINUTE_MS, "Wait before the first counted restart")] = 100
    backoff_max_ms: Annotated[int, ranged(1, HOUR_MS, "Longest wait before a restart")] = 30 * SECOND_MS
    settled_ms: Annotated[
        int, ranged(0, HOUR_MS, "An exit later than this after ready does not count against the budget")
    ] = 2 * SECOND_MS


class LoggingConfig(Struct, frozen=True, rename="camel"):
    """The daemon's own log. Source: architecture.txt "User Data Layout"."""

    level: Annotated[LogLevel, described("Lowest level that is written")] = "info"
    max_file_bytes: Annotated[
        int, ranged(64 * KIB, KIB * MIB, "Size at which a log file is closed and a new one is started")
    ] = 32 * MIB
    retention_days: Annotated[int, ranged(1, 3650, "Log files older than this are deleted")] = 14
    max_total_bytes: Annotated[
        int, ranged(MIB, 1024 * KIB * MIB, "Maximum total size of the log files; the oldest are deleted first")
    ] = 256 * MIB


class Config(Struct, frozen=True, rename="camel"):
    """The complete configuration, with defaults for every key that the file does not set."""

    embedding: EmbeddingConfig = EmbeddingConfig()
    search: SearchConfig = SearchConfig()
    retention: RetentionConfig = RetentionConfig()
    backup: BackupConfig = BackupConfig()
    gateway: GatewayConfig = GatewayConfig()
    redaction: RedactionConfig = RedactionConfig()
    transcripts: TranscriptsConfig = TranscriptsConfig()
    sessions: SessionsConfig = SessionsConfig()
    projects: ProjectsConfig = ProjectsConfig()
    harness_files: HarnessFilesConfig = HarnessFilesConfig()
    git: GitConfig = GitConfig()
    memory: MemoryConfig = MemoryConfig()
    agents: AgentsConfig = AgentsConfig()
    auth: AuthConfig = AuthConfig()
    hooks: HooksConfig = HooksConfig()
    searcher: SearcherConfig = SearcherConfig()
    writer: WriterConfig = WriterConfig()
    supervision: SupervisionConfig = SupervisionConfig()
    logging: LoggingConfig = LoggingConfig()
