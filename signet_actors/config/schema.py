"""The configuration as frozen structs: every key with its type, range, unit, default and meaning.

The range is in ``msgspec.Meta`` next to the type. The unit is the last word of the attribute's name. The YAML name is
the struct's encoded name, so the same structs are sent to child processes as JSON within ``ChildContext``. ``load.py``
reads the file, reports its problems and accepts older spellings.

Source: memory-pipeline.txt "Configuration Reference"; memory-system.txt "Alpha Blending", "Importance Decay",
"Retention Worker"; memory-api.txt "Recall" (auth.rateLimits); architecture.txt "Multi-Agent Support";
docs/compatibility.md "Authentication"; docs/decisions.md 16, 18, 20, 43, 44, 46; docs/reliability.md "Supervision
policy" and "The writer's loop".
Departs: ``extraction.model`` is empty by default, which means the provider's own default model: the reference's
``haiku`` belongs to its provider ``claude-code``, and ours is ``auto`` (docs/decisions.md 18 and 46).
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field

CONFIG_FILE_NAME: Final = "agent.yaml"

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 3850

EMBEDDED_MODEL: Final = "wordllama-l2-supercat-256"
EMBEDDED_DIMENSIONS: Final = 256
"""The vector width of the embedded provider; a test compares both constants with ``providers.embedded``."""

_SECOND_MS: Final = 1000
_MINUTE_MS: Final = 60 * _SECOND_MS
_HOUR_MS: Final = 60 * _MINUTE_MS
_DAY_MS: Final = 24 * _HOUR_MS
_KIB: Final = 1024
_MIB: Final = 1024 * _KIB

_MAX_NAME_CHARS: Final = 200
_MAX_URL_CHARS: Final = 2000

KEY_VARIABLES: Final = (
    "ANTHROPIC_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "COHERE_API_KEY",
    "DEEPSEEK_API_KEY",
    "FIREWORKS_API_KEY",
    "GEMINI_API_KEY",
    "GROQ_API_KEY",
    "JINA_API_KEY",
    "MISTRAL_API_KEY",
    "OLLAMA_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "TOGETHER_API_KEY",
    "VOYAGE_API_KEY",
    "XAI_API_KEY",
)
"""The environment variables that model providers document for their keys. Apart from these, only ``SIGNET_*`` is
accepted.
"""

KEY_VARIABLE_PATTERN: Final = rf"^(SIGNET_[A-Za-z0-9_]+|{'|'.join(KEY_VARIABLES)})?\Z"
AGENT_NAME_PATTERN: Final = (
    r"^[^\s/:\\\x00-\x1f\x7f-\x9f\u2028\u2029]"
    r"([^/:\\\x00-\x1f\x7f-\x9f\u2028\u2029]*[^\s/:\\\x00-\x1f\x7f-\x9f\u2028\u2029])?\Z"
)
MAX_AGENT_NAME_CHARS: Final = _MAX_NAME_CHARS
HOST_PATTERN: Final = r"^[A-Za-z0-9._:-]+\Z"
ALLOWED_HOST_PATTERN: Final = r"^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?\Z"
ENDPOINT_PATTERN: Final = r"^(https?://[^\s/?#@]+[^\s?#@]*)?\Z"
"""No user, password, query or fragment, so that an endpoint never contains a secret."""

_KEY_VARIABLE_FORM: Final = (
    'a name that begins with SIGNET_, or one of docs/configuration.md, "Keys of providers", such as OPENAI_API_KEY'
)
_ENDPOINT_FORM: Final = "an http:// or https:// URL without user, query or fragment"
_HOST_FORM: Final = "a host name or an IP address without brackets and port"
_ALLOWED_HOST_FORM: Final = "a host name, with or without a port, without wildcards"
_AGENT_NAME_FORM: Final = "an agent's name (no slash, backslash, colon or space at either end)"


def _described(meaning: str) -> Meta:
    return Meta(description=meaning)


def _ranged(low: float, high: float, meaning: str) -> Meta:
    return Meta(ge=low, le=high, description=meaning)


def _text(
    meaning: str, *, chars: int = _MAX_NAME_CHARS, pattern: str | None = None, form: str = "text", least: int = 0
) -> Meta:
    """``form`` describes ``pattern`` in words."""
    return Meta(title=form, min_length=least, max_length=chars, pattern=pattern, description=meaning)


MODEL_PATTERN: Final = r"\A(?!-)[^\x00-\x1f\x7f-\x9f]*\Z"
_MODEL_FORM: Final = "a name that does not begin with -"
PROGRAM_MODEL_PATTERN: Final = r"\A(?!-)[^\s\x00-\x1f\x7f-\x9f]*\Z"
_PROGRAM_MODEL_FORM: Final = "a name without spaces that does not begin with -"
"""The model becomes a command-line argument, which the program must not parse as an option."""

EmbeddingProvider = Literal["auto", "embedded", "ollama", "openai", "fastembed", "none"]
ExtractionProvider = Literal["auto", "none", "ollama", "openai", "claude-code", "opencode"]
Fusion = Literal["convex", "rrf"]
InlineLinker = Literal["link", "create"]
MaintenanceMode = Literal["observe", "execute"]
AuthMode = Literal["local", "team", "hybrid"]
ReadPolicy = Literal["isolated", "shared", "group"]
LogLevel = Literal["debug", "info", "warning", "error"]


class EmbeddingConfig(Struct, frozen=True, rename="camel"):
    """Provider, model and width of vectors. Source: docs/decisions.md 22 and 43."""

    provider: Annotated[
        EmbeddingProvider,
        _described("Provider of vectors: `auto` is the embedded model, `none` is keyword search only"),
    ] = "auto"
    model: Annotated[
        str, _text("Model of the provider; empty means the provider's default", pattern=MODEL_PATTERN, form=_MODEL_FORM)
    ] = ""
    dimensions: Annotated[int, _ranged(8, 4096, "Number of dimensions of a vector; the embedded model has 256")] = (
        EMBEDDED_DIMENSIONS
    )
    endpoint: Annotated[
        str,
        _text(
            "Base URL of a network provider; `baseUrl` is also accepted",
            chars=_MAX_URL_CHARS,
            pattern=ENDPOINT_PATTERN,
            form=_ENDPOINT_FORM,
        ),
    ] = ""
    api_key_env: Annotated[
        str,
        _text(
            "Name of the environment variable that holds the key",
            pattern=KEY_VARIABLE_PATTERN,
            form=_KEY_VARIABLE_FORM,
        ),
    ] = ""
    wait_ms: Annotated[
        int,
        _ranged(
            0, 30 * _SECOND_MS, "Maximum wait for a network provider's vector after a memory or a change is committed"
        ),
    ] = 500


class SearchConfig(Struct, frozen=True):
    """How the legs of a recall are combined. Source: memory-system.txt "Alpha Blending"; docs/decisions.md 7."""

    fusion: Annotated[
        Fusion, _described("How keyword and vector results are combined: weighted scores or reciprocal ranks")
    ] = "convex"
    alpha: Annotated[
        float, _ranged(0.0, 1.0, "Weight of the vector score; the keyword score has the weight 1 - alpha")
    ] = 0.5
    min_score: Annotated[float, _ranged(0.0, 1.0, "Results below this score are dropped")] = 0.1
    pool: Annotated[int, _ranged(10, 2000, "Candidates that each search leg contributes to the fusion")] = 200


class RetentionConfig(Struct, frozen=True, rename="camel"):
    """How long data that is no longer needed is kept. Source: memory-system.txt "Retention Worker".

    The minimum is one hour, so that a number of days, minutes or seconds given as milliseconds is rejected instead of
    purging everything.
    """

    interval_ms: Annotated[int, _ranged(_SECOND_MS, 7 * _DAY_MS, "Time between two retention sweeps")] = 6 * _HOUR_MS
    batch_limit: Annotated[int, _ranged(1, 10_000, "Maximum number of rows that one step of a sweep purges")] = 500
    tombstone_retention_ms: Annotated[
        int, _ranged(_HOUR_MS, 3650 * _DAY_MS, "A forgotten memory is permanently deleted after this time")
    ] = 30 * _DAY_MS
    history_retention_ms: Annotated[
        int, _ranged(_HOUR_MS, 3650 * _DAY_MS, "History events are deleted after this time")
    ] = 180 * _DAY_MS
    completed_job_retention_ms: Annotated[
        int, _ranged(_HOUR_MS, 3650 * _DAY_MS, "Completed jobs are deleted after this time")
    ] = 14 * _DAY_MS
    dead_job_retention_ms: Annotated[
        int, _ranged(_HOUR_MS, 3650 * _DAY_MS, "Dead jobs are deleted after this time")
    ] = 30 * _DAY_MS


class BackupConfig(Struct, frozen=True, rename="camel"):
    """Verified copies of the database. Source: docs/reliability.md R17, R18 and R23."""

    interval_ms: Annotated[
        int,
        _ranged(
            0, 90 * _DAY_MS, "Time between two scheduled backups; each checks the database completely; 0 turns them off"
        ),
    ] = _DAY_MS
    keep: Annotated[
        int, _ranged(1, 1000, "Number of backups to keep; a forgotten memory stays in them until they are deleted")
    ] = 7


class GatewayConfig(Struct, frozen=True, rename="camel"):
    """The HTTP gateway: its listen address and its limits.

    Source: docs/decisions.md 24, 25, 42-44; docs/reliability.md R13.
    """

    host: Annotated[
        str,
        _text(
            "Address that the daemon listens on; must be a loopback address",
            chars=253,
            pattern=HOST_PATTERN,
            form=_HOST_FORM,
            least=1,
        ),
    ] = DEFAULT_HOST
    port: Annotated[
        int,
        _ranged(0, 65_535, "Port that the daemon listens on; 0 picks a free one and writes it to `.daemon/address`"),
    ] = DEFAULT_PORT
    max_body_bytes: Annotated[int, _ranged(_KIB, 64 * _MIB, "A larger request body is answered with 413")] = 4 * _MIB
    max_header_bytes: Annotated[int, _ranged(_KIB, 256 * _KIB, "Larger request headers are answered with 431")] = (
        16 * _KIB
    )
    header_timeout_ms: Annotated[
        int, _ranged(100, 2 * _MINUTE_MS, "The complete request head must arrive within this time")
    ] = 5 * _SECOND_MS
    body_timeout_ms: Annotated[
        int, _ranged(100, 10 * _MINUTE_MS, "The complete request body must arrive within this time")
    ] = 10 * _SECOND_MS
    keep_alive_ms: Annotated[int, _ranged(0, 10 * _MINUTE_MS, "An idle connection is closed after this time")] = (
        10 * _SECOND_MS
    )
    max_connections: Annotated[int, _ranged(1, 65_536, "Maximum number of open connections; more are refused")] = 512
    request_timeout_ms: Annotated[
        int, _ranged(100, 10 * _MINUTE_MS, "Maximum time from a complete request to its response")
    ] = 10 * _SECOND_MS
    allowed_hosts: Annotated[
        tuple[
            Annotated[str, _text("", chars=260, pattern=ALLOWED_HOST_PATTERN, form=_ALLOWED_HOST_FORM, least=1)], ...
        ],
        Meta(
            max_length=64,
            description="Host names accepted besides the loopback names (protection against DNS rebinding)",
        ),
    ] = ()
    require_owner: Annotated[
        bool,
        _described("Owner-only requests need the token in `.daemon/owner-token`"),
    ] = False
    confirm_ttl_ms: Annotated[
        int, _ranged(_SECOND_MS, _HOUR_MS, "The confirmation token of a bulk forget expires after this time")
    ] = 5 * _MINUTE_MS
    listen_backlog: Annotated[
        int, _ranged(1, 65_535, "Connections that the kernel queues while the gateway restarts")
    ] = 1024
    touch_limit: Annotated[
        int, _ranged(0, 1000, "Maximum number of results per recall whose access is recorded; 0 records none")
    ] = 100


class RedactionConfig(Struct, frozen=True, rename="camel"):
    """What is redacted before it is stored. Source: docs/decisions.md 26."""

    memories: Annotated[bool, _described("Replace secrets in a memory before it is stored")] = True


class BreakerConfig(Struct, frozen=True, rename="camel"):
    """When, and for how long, calls to a failing provider are paused.

    Source: docs/decisions.md 14; docs/reliability.md R11.
    """

    failures: Annotated[int, _ranged(1, 100, "Consecutive failed calls after which calls are paused")] = 5
    cooldown_ms: Annotated[int, _ranged(_SECOND_MS, _HOUR_MS, "First pause; it doubles while the provider fails")] = (
        10 * _SECOND_MS
    )
    max_cooldown_ms: Annotated[int, _ranged(_SECOND_MS, _HOUR_MS, "Longest pause between two attempts")] = (
        5 * _MINUTE_MS
    )


class ExtractionConfig(Struct, frozen=True, rename="camel"):
    """The extraction stage. Source: memory-pipeline.txt "Extraction Stage"; docs/decisions.md 14, 18 and 43."""

    provider: Annotated[
        ExtractionProvider,
        _described(
            "Provider of the language model: `auto` is Ollama if it is reachable, else none, and never a paid provider"
        ),
    ] = "auto"
    model: Annotated[
        str,
        _text(
            "Model of the provider; empty means the provider's default",
            pattern=PROGRAM_MODEL_PATTERN,
            form=_PROGRAM_MODEL_FORM,
        ),
    ] = ""
    endpoint: Annotated[
        str,
        _text(
            "Base URL of the provider; `baseUrl` is also accepted",
            chars=_MAX_URL_CHARS,
            pattern=ENDPOINT_PATTERN,
            form=_ENDPOINT_FORM,
        ),
    ] = ""
    api_key_env: Annotated[
        str,
        _text(
            "Name of the environment variable that holds the key",
            pattern=KEY_VARIABLE_PATTERN,
            form=_KEY_VARIABLE_FORM,
        ),
    ] = ""
    timeout_ms: Annotated[int, _ranged(5 * _SECOND_MS, 5 * _MINUTE_MS, "Timeout of one call")] = field(
        name="timeout", default=45 * _SECOND_MS
    )
    min_confidence: Annotated[float, _ranged(0.0, 1.0, "Facts with a lower confidence are not written")] = 0.7
    structured_output: Annotated[
        bool,
        _described("Ask the server to enforce the JSON Schema of the answer; not used with a server that rejects it"),
    ] = True
    concurrency: Annotated[int, _ranged(1, 64, "Concurrent calls per process; more wait")] = 2
    daily_call_limit: Annotated[
        int,
        _ranged(0, 1_000_000_000, "Calls per day; 0 means no limit for a server on this machine, else 2000"),
    ] = 0
    daily_token_limit: Annotated[
        int,
        _ranged(
            0,
            1_000_000_000,
            "Input and output tokens per day; 0 means no limit for a server on this machine, else 2000000",
        ),
    ] = 0
    breaker: BreakerConfig = BreakerConfig()


class WorkerConfig(Struct, frozen=True, rename="camel"):
    """The durable job queue. Source: memory-pipeline.txt "Worker Model"; docs/decisions.md 11-15."""

    poll_ms: Annotated[int, _ranged(100, _MINUTE_MS, "Time between two polls for jobs when no event arrives")] = 2000
    max_retries: Annotated[int, _ranged(1, 10, "Attempts per job; after the last one the job is dead")] = 3
    lease_timeout_ms: Annotated[
        int, _ranged(10 * _SECOND_MS, 10 * _MINUTE_MS, "A lease that is not renewed expires after this time")
    ] = 5 * _MINUTE_MS


class GraphConfig(Struct, frozen=True, rename="camel"):
    """The knowledge graph. Source: memory-pipeline.txt "Knowledge Graph"; docs/decisions.md 20."""

    enabled: Annotated[bool, _described("Maintain entities and relations and use them in recall")] = True
    boost_weight: Annotated[float, _ranged(0.0, 1.0, "Score that a link in the graph adds to a result")] = 0.15
    boost_timeout_ms: Annotated[int, _ranged(50, 5 * _SECOND_MS, "Time limit of the graph step of a recall")] = 500
    inline_linker: Annotated[
        InlineLinker,
        _described("On remember: `link` links mentions to existing entities, `create` also creates new entities"),
    ] = "link"


class RerankerConfig(Struct, frozen=True, rename="camel"):
    """Optional reranking of the best results. Source: memory-pipeline.txt "Optional Reranking"."""

    enabled: Annotated[bool, _described("Reorder the best results by their vectors")] = False
    model: Annotated[
        str, _text("Model of the reranker; empty means the stored vectors, the only choice at present")
    ] = ""
    use_extraction_model: Annotated[
        bool, _described("Let the language model summarize the results of a recall in a summary card")
    ] = False
    top_n: Annotated[int, _ranged(1, 100, "Number of results to rerank")] = 20
    timeout_ms: Annotated[
        int, _ranged(100, 30 * _SECOND_MS, "Time limit of the summary card; after it the recall has none")
    ] = 2000


class AutonomousConfig(Struct, frozen=True, rename="camel"):
    """Actions of the daemon on its own. Source: memory-pipeline.txt "Maintenance Worker"; docs/decisions.md 16."""

    enabled: Annotated[bool, _described("Run scheduled maintenance and repairs")] = True
    frozen: Annotated[bool, _described("Emergency stop of everything the daemon does on its own")] = False
    allow_update_delete: Annotated[bool, _described("Allow applying a model's update and delete proposals")] = False
    maintenance_interval_ms: Annotated[int, _ranged(_MINUTE_MS, _DAY_MS, "Time between two maintenance cycles")] = (
        30 * _MINUTE_MS
    )
    maintenance_mode: Annotated[
        MaintenanceMode, _described("`observe` only reports repairs, `execute` performs them")
    ] = "execute"


class RepairConfig(Struct, frozen=True, rename="camel"):
    """Limits of the repairs. Source: memory-pipeline.txt "Configuration Reference"."""

    reembed_cooldown_ms: Annotated[
        int, _ranged(10 * _SECOND_MS, _HOUR_MS, "Minimum time between two re-embed repairs")
    ] = 5 * _MINUTE_MS
    reembed_hourly_budget: Annotated[int, _ranged(1, 1000, "Re-embed repairs per hour")] = 10
    requeue_cooldown_ms: Annotated[int, _ranged(5 * _SECOND_MS, _HOUR_MS, "Minimum time between two requeues")] = (
        _MINUTE_MS
    )
    requeue_hourly_budget: Annotated[int, _ranged(1, 1000, "Requeues per hour")] = 50
    dedup_cooldown_ms: Annotated[int, _ranged(10 * _SECOND_MS, _HOUR_MS, "Minimum time between two deduplications")] = (
        10 * _MINUTE_MS
    )
    dedup_hourly_budget: Annotated[int, _ranged(1, 100, "Deduplications per hour")] = 3
    dedup_semantic_threshold: Annotated[
        float, _ranged(0.0, 1.0, "Cosine similarity from which two memories count as duplicates")
    ] = 0.92
    dedup_batch_size: Annotated[int, _ranged(10, 1000, "Number of memories that one deduplication compares")] = 100


class DocumentsConfig(Struct, frozen=True, rename="camel"):
    """Document ingest. Source: memory-pipeline.txt "Document Ingest"."""

    worker_interval_ms: Annotated[int, _ranged(_SECOND_MS, 5 * _MINUTE_MS, "Time between two polls for documents")] = (
        10 * _SECOND_MS
    )
    chunk_size_chars: Annotated[int, _ranged(200, 50_000, "Length of a chunk")] = field(name="chunkSize", default=2000)
    chunk_overlap_chars: Annotated[
        int, _ranged(0, 10_000, "Overlap of two adjacent chunks; must be less than `chunkSize`")
    ] = field(name="chunkOverlap", default=200)
    max_content_bytes: Annotated[
        int, _ranged(_KIB, 100 * _MIB, "Maximum size of a document; a larger one is refused")
    ] = 10 * _MIB


class GuardrailsConfig(Struct, frozen=True, rename="camel"):
    """Size limits of memories.

    Source: memory-pipeline.txt "Configuration Reference"; docs/compatibility.md "Oversized content".
    """

    max_content_chars: Annotated[
        int, _ranged(50, 100_000, "Maximum length of a memory; a longer one is stored as several chunks")
    ] = 500
    chunk_target_chars: Annotated[int, _ranged(50, 50_000, "Target length of a chunk")] = 300
    recall_truncate_chars: Annotated[int, _ranged(50, 100_000, "Recall truncates a longer text")] = 500


class ContinuityConfig(Struct, frozen=True, rename="camel"):
    """Session checkpoints. Source: memory-pipeline.txt "Session Checkpoints"."""

    enabled: Annotated[bool, _described("Write session checkpoints")] = True
    prompt_interval: Annotated[int, _ranged(1, 1000, "Prompts between two checkpoints")] = 10
    time_interval_ms: Annotated[int, _ranged(_MINUTE_MS, _HOUR_MS, "Time between two checkpoints")] = 15 * _MINUTE_MS
    max_checkpoints_per_session: Annotated[int, _ranged(1, 500, "Maximum number of checkpoints per session")] = 50
    retention_days: Annotated[int, _ranged(1, 90, "Checkpoints are deleted after this time")] = 7
    recovery_budget_chars: Annotated[int, _ranged(200, 10_000, "Maximum length of a recovery digest")] = 2000


class TelemetryConfig(Struct, frozen=True, rename="camel"):
    """Local telemetry, which is never sent anywhere.

    Source: memory-pipeline.txt "Configuration Reference"; docs/decisions.md 27.
    """

    flush_interval_ms: Annotated[int, _ranged(5 * _SECOND_MS, 10 * _MINUTE_MS, "Time between two writes of events")] = (
        _MINUTE_MS
    )
    flush_batch_size: Annotated[int, _ranged(1, 500, "Events per write")] = 50
    retention_days: Annotated[int, _ranged(1, 365, "Events are deleted after this time")] = 90


class EmbeddingTrackerConfig(Struct, frozen=True, rename="camel"):
    """The refresh of missing and stale vectors. Source: memory-pipeline.txt "Embedding Tracker"."""

    enabled: Annotated[bool, _described("Recompute missing and stale vectors in the background")] = True
    poll_ms: Annotated[
        int,
        _ranged(
            _SECOND_MS, _MINUTE_MS, "Delay from a change of the embedding model to the first search for stale vectors"
        ),
    ] = 5 * _SECOND_MS
    batch_size: Annotated[int, _ranged(1, 20, "Texts per embedding call")] = 8


class HintsConfig(Struct, frozen=True, rename="camel"):
    """Questions that a memory may answer. Source: memory-pipeline.txt "Prospective Indexing (Hints)"."""

    enabled: Annotated[bool, _described("Generate hints for new memories and search them along with the content")] = (
        False
    )
    max_count: Annotated[int, _ranged(1, 20, "Maximum number of hints per memory")] = field(name="max", default=5)
    timeout_ms: Annotated[int, _ranged(5 * _SECOND_MS, 5 * _MINUTE_MS, "Timeout of one generation")] = field(
        name="timeout", default=45 * _SECOND_MS
    )
    poll_ms: Annotated[int, _ranged(_SECOND_MS, _MINUTE_MS, "Time between two polls for jobs")] = field(
        name="poll", default=5 * _SECOND_MS
    )


class DampeningConfig(Struct, frozen=True, rename="camel"):
    """Score corrections after fusion. Source: memory-pipeline.txt "Post-Fusion Dampening"."""

    gravity_enabled: Annotated[
        bool, _described("Lower the score of vector results that contain no word of the query")
    ] = True
    hub_enabled: Annotated[bool, _described("Lower the score of results that only mention very frequent entities")] = (
        True
    )
    resolution_enabled: Annotated[bool, _described("Raise the score of decisions, constraints and dated memories")] = (
        True
    )
    hub_percentile: Annotated[float, _ranged(0.0, 1.0, "Percentile of frequency above which an entity is a hub")] = 0.9
    hub_penalty: Annotated[float, _ranged(0.0, 1.0, "Score factor of the hub stage")] = 0.7
    gravity_penalty: Annotated[float, _ranged(0.0, 1.0, "Score factor of the gravity stage")] = 0.5
    resolution_boost: Annotated[float, _ranged(1.0, 10.0, "Score factor of the resolution stage")] = 1.2


class PipelineV2Config(Struct, frozen=True, rename="camel"):
    """The memory pipeline. Source: memory-pipeline.txt "Configuration Reference", "Pipeline Modes"."""

    enabled: Annotated[bool, _described("Master switch of the pipeline")] = True
    shadow_mode: Annotated[bool, _described("The pipeline records its proposals but changes no memory")] = False
    mutations_frozen: Annotated[bool, _described("Kill switch: every write is answered with 503; reads still work")] = (
        False
    )
    semantic_contradiction_enabled: Annotated[
        bool, _described("Ask the language model whether two texts contradict each other")
    ] = False
    semantic_contradiction_timeout_ms: Annotated[
        int, _ranged(5 * _SECOND_MS, 5 * _MINUTE_MS, "Timeout of the contradiction check")
    ] = 45 * _SECOND_MS
    telemetry_enabled: Annotated[bool, _described("Keep local telemetry; it is never sent anywhere")] = False
    extraction: ExtractionConfig = ExtractionConfig()
    worker: WorkerConfig = WorkerConfig()
    graph: GraphConfig = GraphConfig()
    reranker: RerankerConfig = RerankerConfig()
    autonomous: AutonomousConfig = AutonomousConfig()
    repair: RepairConfig = RepairConfig()
    documents: DocumentsConfig = DocumentsConfig()
    guardrails: GuardrailsConfig = GuardrailsConfig()
    continuity: ContinuityConfig = ContinuityConfig()
    telemetry: TelemetryConfig = TelemetryConfig()
    embedding_tracker: EmbeddingTrackerConfig = EmbeddingTrackerConfig()
    hints: HintsConfig = HintsConfig()
    dampening: DampeningConfig = DampeningConfig()


class MemoryConfig(Struct, frozen=True):
    """Settings of memories. Source: memory-system.txt "Importance Decay"."""

    decay_rate: Annotated[float, _ranged(0.0, 1.0, "Factor applied to the importance for each day without access")] = (
        0.95
    )
    pipeline_v2: PipelineV2Config = field(name="pipelineV2", default=PipelineV2Config())


class RosterEntry(Struct, frozen=True):
    """A named agent and the agents whose memories it reads. Source: architecture.txt "Multi-Agent Support"."""

    name: Annotated[str, _text("Id of the agent", pattern=AGENT_NAME_PATTERN, form=_AGENT_NAME_FORM, least=1)]
    read_policy: Annotated[
        ReadPolicy,
        _described("Readable memories besides its own: none, all global ones, or the global ones of its group"),
    ] = "shared"
    policy_group: Annotated[str, _text("Group that the read policy `group` refers to")] = ""


class AgentsConfig(Struct, frozen=True):
    """The agents that share this daemon. Source: architecture.txt "Multi-Agent Support"."""

    roster: Annotated[
        tuple[RosterEntry, ...],
        Meta(max_length=1000, description="Agents with settings; agents not listed here are accepted too"),
    ] = ()


class RateLimit(Struct, frozen=True, rename="camel"):
    """At most ``max_count`` operations in each window of ``window_ms``."""

    window_ms: Annotated[int, _ranged(_SECOND_MS, _DAY_MS, "Length of the window")] = _MINUTE_MS
    max_count: Annotated[int, _ranged(1, 1_000_000, "Operations in a window")] = field(name="max", default=60)


class RateLimitsConfig(Struct, frozen=True, rename="camel"):
    """A limit for each kind of costly operation.

    Source: docs/compatibility.md "Authentication"; memory-api.txt (recallLlm).
    """

    forget: RateLimit = RateLimit(max_count=30)
    modify: RateLimit = RateLimit(max_count=60)
    batch_forget: RateLimit = RateLimit(max_count=5)
    force_delete: RateLimit = RateLimit(max_count=3)
    admin: RateLimit = RateLimit(max_count=10)
    recall_llm: RateLimit = RateLimit(max_count=60)


class AuthConfig(Struct, frozen=True, rename="camel"):
    """Authentication and rate limits. Source: docs/compatibility.md "Authentication"; docs/decisions.md 44."""

    mode: Annotated[AuthMode, _described("Only `local` works in this release")] = "local"
    default_token_ttl_seconds: Annotated[int, _ranged(60, 31_536_000, "Time until a token expires")] = 604_800
    session_token_ttl_seconds: Annotated[int, _ranged(60, 31_536_000, "Time until a session token expires")] = 86_400
    rate_limits: RateLimitsConfig = RateLimitsConfig()


class UserPromptSubmitConfig(Struct, frozen=True, rename="camel"):
    """The hook that runs at each prompt. Source: docs/compatibility.md "Hooks and sessions"."""

    enabled: Annotated[bool, _described("Offer memories at each prompt")] = True


class HooksConfig(Struct, frozen=True, rename="camel"):
    """Settings of harness hooks. Source: docs/compatibility.md "Hooks and sessions"."""

    user_prompt_submit: UserPromptSubmitConfig = UserPromptSubmitConfig()


class SearcherConfig(Struct, frozen=True, rename="camel"):
    """The pool of searchers. Source: docs/reliability.md "Supervision policy"."""

    processes: Annotated[
        int, _ranged(0, 64, "Number of searcher processes; 0 means the number of cores minus 1, at least 1")
    ] = 0
    queue_limit: Annotated[
        int, _ranged(1, 65_536, "Maximum number of queued queries; more are answered with 503 at once")
    ] = 256
    read_timeout_ms: Annotated[
        int, _ranged(50, _MINUTE_MS, "Maximum time that a query may run; after it the query is cancelled")
    ] = 2000


class WriterConfig(Struct, frozen=True, rename="camel"):
    """The only process that writes. Source: docs/reliability.md "The writer's loop"; docs/decisions.md 3."""

    queue_limit: Annotated[
        int, _ranged(1, 65_536, "Maximum number of queued writes; more are answered with 503 at once")
    ] = 256
    queue_bytes: Annotated[int, _ranged(64 * _KIB, _KIB * _MIB, "Maximum total size of the queued writes")] = 8 * _MIB
    batch_limit: Annotated[int, _ranged(1, 4096, "Maximum number of writes per transaction")] = 256
    busy_timeout_ms: Annotated[
        int, _ranged(0, _MINUTE_MS, "Maximum wait for a database lock held by another program")
    ] = 2000
    request_timeout_ms: Annotated[
        int, _ranged(100, 10 * _MINUTE_MS, "Maximum time a write waits in the queue; after it the write is dropped")
    ] = 5 * _SECOND_MS
    reply_retention_ms: Annotated[
        int, _ranged(_MINUTE_MS, 7 * _DAY_MS, "A retry of a write within this time gets the first response")
    ] = 10 * _MINUTE_MS
    touch_flush_ms: Annotated[int, _ranged(10, 10 * _MINUTE_MS, "Interval at which recorded accesses are written")] = (
        1000
    )
    ballast_bytes: Annotated[
        int,
        _ranged(
            0,
            _KIB * _MIB,
            "Size of a reserve file that is deleted when the disk is full, so that memories can still be deleted",
        ),
    ] = 16 * _MIB


class RestartBudget(Struct, frozen=True, rename="camel"):
    """At most ``restarts`` counted restarts within ``window_ms``."""

    restarts: Annotated[
        int, _ranged(0, 1000, "Restarts allowed in a window; after one more the process is not restarted again")
    ] = 10
    window_ms: Annotated[int, _ranged(_SECOND_MS, _DAY_MS, "Length of the window")] = _MINUTE_MS


class BudgetsConfig(Struct, frozen=True, rename="camel"):
    """A restart budget for each role. Source: docs/reliability.md "Supervision policy"."""

    writer: RestartBudget = RestartBudget(restarts=5)
    searcher: RestartBudget = RestartBudget(restarts=10, window_ms=5 * _MINUTE_MS)
    gateway: RestartBudget = RestartBudget(restarts=10, window_ms=5 * _MINUTE_MS)
    retention: RestartBudget = RestartBudget(restarts=3, window_ms=10 * _MINUTE_MS)
    extractor: RestartBudget = RestartBudget(restarts=5, window_ms=5 * _MINUTE_MS)
    quarantine: RestartBudget = RestartBudget(restarts=100, window_ms=5 * _MINUTE_MS)
    decider: RestartBudget = RestartBudget(restarts=5, window_ms=5 * _MINUTE_MS)


class SupervisionConfig(Struct, frozen=True, rename="camel"):
    """Monitoring and restarting of processes. Source: docs/reliability.md "Supervision policy", R9, R19, R21."""

    heartbeat_ms: Annotated[int, _ranged(50, _MINUTE_MS, "Time between two heartbeats of a process")] = 500
    liveness: Annotated[int, _ranged(2, 100, "Missed heartbeats after which a process counts as hung")] = 3
    start_timeout_ms: Annotated[
        int, _ranged(_SECOND_MS, _HOUR_MS, "Time for a process to become ready; after it the process is killed")
    ] = 2 * _MINUTE_MS
    drain_ms: Annotated[
        int, _ranged(0, 10 * _MINUTE_MS, "Time for a process to finish its work after a stop request")
    ] = 5 * _SECOND_MS
    budgets: BudgetsConfig = BudgetsConfig()
    backoff_min_ms: Annotated[int, _ranged(1, 10 * _MINUTE_MS, "Wait before the first counted restart")] = 100
    backoff_max_ms: Annotated[int, _ranged(1, _HOUR_MS, "Longest wait before a restart")] = 30 * _SECOND_MS
    settled_ms: Annotated[
        int, _ranged(0, _HOUR_MS, "An exit later than this after ready does not count against the budget")
    ] = 2 * _SECOND_MS


class LoggingConfig(Struct, frozen=True, rename="camel"):
    """The daemon's own log. Source: architecture.txt "User Data Layout"."""

    level: Annotated[LogLevel, _described("Lowest level that is written")] = "info"
    max_file_bytes: Annotated[
        int, _ranged(64 * _KIB, _KIB * _MIB, "Size at which a log file is closed and a new one is started")
    ] = 32 * _MIB
    retention_days: Annotated[int, _ranged(1, 3650, "Log files older than this are deleted")] = 14
    max_total_bytes: Annotated[
        int, _ranged(_MIB, 1024 * _KIB * _MIB, "Maximum total size of the log files; the oldest are deleted first")
    ] = 256 * _MIB


class Config(Struct, frozen=True, rename="camel"):
    """The complete configuration, with defaults for every key that the file does not set."""

    embedding: EmbeddingConfig = EmbeddingConfig()
    search: SearchConfig = SearchConfig()
    retention: RetentionConfig = RetentionConfig()
    backup: BackupConfig = BackupConfig()
    gateway: GatewayConfig = GatewayConfig()
    redaction: RedactionConfig = RedactionConfig()
    memory: MemoryConfig = MemoryConfig()
    agents: AgentsConfig = AgentsConfig()
    auth: AuthConfig = AuthConfig()
    hooks: HooksConfig = HooksConfig()
    searcher: SearcherConfig = SearcherConfig()
    writer: WriterConfig = WriterConfig()
    supervision: SupervisionConfig = SupervisionConfig()
    logging: LoggingConfig = LoggingConfig()
