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
_ENDPOINT_FORM: Final = "an http:// or https:// address without user, query or fragment"
_HOST_FORM: Final = "a host name or an address without brackets and port"
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
_PROGRAM_MODEL_FORM: Final = "a name without blanks that does not begin with -"
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
        _described("Who turns text into vectors: `auto` is the embedded model, `none` is keyword search only"),
    ] = "auto"
    model: Annotated[
        str, _text("Model of the provider; empty is the provider's own", pattern=MODEL_PATTERN, form=_MODEL_FORM)
    ] = ""
    dimensions: Annotated[int, _ranged(8, 4096, "Length of a vector; the embedded model has 256")] = EMBEDDED_DIMENSIONS
    endpoint: Annotated[
        str,
        _text(
            "Address of a network provider; also read as `baseUrl`",
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
            0, 30 * _SECOND_MS, "Longest wait for a network provider's vector, after a memory or a change is committed"
        ),
    ] = 500


class SearchConfig(Struct, frozen=True):
    """How the legs of a recall are combined. Source: memory-system.txt "Alpha Blending"; docs/decisions.md 7."""

    fusion: Annotated[
        Fusion, _described("How keyword and vector results are joined: weighted scores, or reciprocal ranks")
    ] = "convex"
    alpha: Annotated[float, _ranged(0.0, 1.0, "Weight of the vector score; the rest is the keyword score's")] = 0.5
    min_score: Annotated[float, _ranged(0.0, 1.0, "Results below this score are dropped")] = 0.1
    pool: Annotated[int, _ranged(10, 2000, "Candidates that each leg brings to the fusion")] = 200


class RetentionConfig(Struct, frozen=True, rename="camel"):
    """How long data that is no longer needed is kept. Source: memory-system.txt "Retention Worker".

    The minimum is one hour, so that a number of days, minutes or seconds given as milliseconds is rejected instead of
    purging everything.
    """

    interval_ms: Annotated[int, _ranged(_SECOND_MS, 7 * _DAY_MS, "Time between two sweeps")] = 6 * _HOUR_MS
    batch_limit: Annotated[int, _ranged(1, 10_000, "Most rows that one step of a sweep purges")] = 500
    tombstone_retention_ms: Annotated[
        int, _ranged(_HOUR_MS, 3650 * _DAY_MS, "A forgotten memory is purged for good after this long")
    ] = 30 * _DAY_MS
    history_retention_ms: Annotated[
        int, _ranged(_HOUR_MS, 3650 * _DAY_MS, "History events are purged after this long")
    ] = 180 * _DAY_MS
    completed_job_retention_ms: Annotated[
        int, _ranged(_HOUR_MS, 3650 * _DAY_MS, "Completed jobs are purged after this long")
    ] = 14 * _DAY_MS
    dead_job_retention_ms: Annotated[int, _ranged(_HOUR_MS, 3650 * _DAY_MS, "Dead jobs are purged after this long")] = (
        30 * _DAY_MS
    )


class BackupConfig(Struct, frozen=True, rename="camel"):
    """Verified copies of the database. Source: docs/reliability.md R17, R18 and R23."""

    interval_ms: Annotated[
        int,
        _ranged(0, 90 * _DAY_MS, "Time between two backups, each a full check of the database; 0 makes none by itself"),
    ] = _DAY_MS
    keep: Annotated[int, _ranged(1, 1000, "Backups that are kept; a forgotten memory is in them until they go")] = 7


class GatewayConfig(Struct, frozen=True, rename="camel"):
    """The HTTP gateway: its listen address and its limits.

    Source: docs/decisions.md 24, 25, 42-44; docs/reliability.md R13.
    """

    host: Annotated[
        str,
        _text(
            "Address that the daemon listens on; a loopback address",
            chars=253,
            pattern=HOST_PATTERN,
            form=_HOST_FORM,
            least=1,
        ),
    ] = DEFAULT_HOST
    port: Annotated[
        int, _ranged(0, 65_535, "Port that the daemon listens on; 0 = any free one (`.daemon/address` names it)")
    ] = DEFAULT_PORT
    max_body_bytes: Annotated[int, _ranged(_KIB, 64 * _MIB, "A longer request body is answered 413")] = 4 * _MIB
    max_header_bytes: Annotated[int, _ranged(_KIB, 256 * _KIB, "Longer request headers are answered 431")] = 16 * _KIB
    header_timeout_ms: Annotated[
        int, _ranged(100, 2 * _MINUTE_MS, "The whole request head must have come within this time")
    ] = 5 * _SECOND_MS
    body_timeout_ms: Annotated[
        int, _ranged(100, 10 * _MINUTE_MS, "The whole request body must have come within this time")
    ] = 10 * _SECOND_MS
    keep_alive_ms: Annotated[int, _ranged(0, 10 * _MINUTE_MS, "An idle connection is closed after this time")] = (
        10 * _SECOND_MS
    )
    max_connections: Annotated[int, _ranged(1, 65_536, "Connections open at once; more are refused")] = 512
    request_timeout_ms: Annotated[
        int, _ranged(100, 10 * _MINUTE_MS, "Longest time from a complete request to its answer")
    ] = 10 * _SECOND_MS
    allowed_hosts: Annotated[
        tuple[
            Annotated[str, _text("", chars=260, pattern=ALLOWED_HOST_PATTERN, form=_ALLOWED_HOST_FORM, least=1)], ...
        ],
        Meta(
            max_length=64,
            description="Host names that requests may carry beside the loopback names (a guard against DNS rebinding)",
        ),
    ] = ()
    require_owner: Annotated[
        bool,
        _described("Requests that only the owner may make need the token in `.daemon/owner-token`"),
    ] = False
    confirm_ttl_ms: Annotated[
        int, _ranged(_SECOND_MS, _HOUR_MS, "A confirm token of a bulk forget expires after this time")
    ] = 5 * _MINUTE_MS
    listen_backlog: Annotated[int, _ranged(1, 65_535, "Connections that wait while the gateway restarts")] = 1024
    touch_limit: Annotated[
        int, _ranged(0, 1000, "Most results of one recall whose access is recorded; 0 records none")
    ] = 100


class RedactionConfig(Struct, frozen=True, rename="camel"):
    """What is redacted before it is stored. Source: docs/decisions.md 26."""

    memories: Annotated[bool, _described("Secrets found in a memory are replaced before it is stored")] = True


class BreakerConfig(Struct, frozen=True, rename="camel"):
    """When, and for how long, calls to a failing provider are paused.

    Source: docs/decisions.md 14; docs/reliability.md R11.
    """

    failures: Annotated[int, _ranged(1, 100, "Failed calls in a row after which calls are paused")] = 5
    cooldown_ms: Annotated[int, _ranged(_SECOND_MS, _HOUR_MS, "First pause; it doubles while the provider fails")] = (
        10 * _SECOND_MS
    )
    max_cooldown_ms: Annotated[int, _ranged(_SECOND_MS, _HOUR_MS, "Longest pause between two tries")] = 5 * _MINUTE_MS


class ExtractionConfig(Struct, frozen=True, rename="camel"):
    """The extraction stage. Source: memory-pipeline.txt "Extraction Stage"; docs/decisions.md 14, 18 and 43."""

    provider: Annotated[
        ExtractionProvider,
        _described("Who answers prompts: `auto` is Ollama if it answers, else none; a paid provider only when named"),
    ] = "auto"
    model: Annotated[
        str,
        _text(
            "Model of the provider; empty is the provider's own default",
            pattern=PROGRAM_MODEL_PATTERN,
            form=_PROGRAM_MODEL_FORM,
        ),
    ] = ""
    endpoint: Annotated[
        str,
        _text(
            "Address of the provider; also read as `baseUrl`",
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
    timeout_ms: Annotated[int, _ranged(5 * _SECOND_MS, 5 * _MINUTE_MS, "Longest time of one call")] = field(
        name="timeout", default=45 * _SECOND_MS
    )
    min_confidence: Annotated[float, _ranged(0.0, 1.0, "Facts below this confidence are not written")] = 0.7
    structured_output: Annotated[
        bool, _described("Ask servers to hold the model to the JSON Schema of the answer; without where one refuses it")
    ] = True
    concurrency: Annotated[int, _ranged(1, 64, "Calls of one process at once; more wait")] = 2
    daily_call_limit: Annotated[
        int,
        _ranged(
            0, 1_000_000_000, "Calls a day; 0 is no limit for a server on this machine, 2000 for what may cost money"
        ),
    ] = 0
    daily_token_limit: Annotated[
        int,
        _ranged(0, 1_000_000_000, "Tokens a day, in and out; 0 is no limit for a server on this machine, else 2000000"),
    ] = 0
    breaker: BreakerConfig = BreakerConfig()


class WorkerConfig(Struct, frozen=True, rename="camel"):
    """The durable job queue. Source: memory-pipeline.txt "Worker Model"; docs/decisions.md 11-15."""

    poll_ms: Annotated[int, _ranged(100, _MINUTE_MS, "Time between two looks for jobs when no event came")] = 2000
    max_retries: Annotated[int, _ranged(1, 10, "Attempts of a job before it is dead")] = 3
    lease_timeout_ms: Annotated[
        int, _ranged(10 * _SECOND_MS, 10 * _MINUTE_MS, "A lease that is not renewed expires after this time")
    ] = 5 * _MINUTE_MS


class GraphConfig(Struct, frozen=True, rename="camel"):
    """The knowledge graph. Source: memory-pipeline.txt "Knowledge Graph"; docs/decisions.md 20."""

    enabled: Annotated[bool, _described("Entities and relations are kept and used in recall")] = True
    boost_weight: Annotated[float, _ranged(0.0, 1.0, "What a link in the graph adds to a result's score")] = 0.15
    boost_timeout_ms: Annotated[int, _ranged(50, 5 * _SECOND_MS, "Longest time of the graph's part in a recall")] = 500
    inline_linker: Annotated[
        InlineLinker,
        _described("At remember, mentions are linked to entities that exist, or new entities are also created"),
    ] = "link"


class RerankerConfig(Struct, frozen=True, rename="camel"):
    """Optional reranking of the best results. Source: memory-pipeline.txt "Optional Reranking"."""

    enabled: Annotated[bool, _described("The best results are put in order once more by their vectors")] = False
    model: Annotated[str, _text("Model of the reranker; empty is the stored vectors, and there is no other")] = ""
    use_extraction_model: Annotated[bool, _described("A model sums up what a recall found, in a card before it")] = (
        False
    )
    top_n: Annotated[int, _ranged(1, 100, "Results that are reranked")] = 20
    timeout_ms: Annotated[int, _ranged(100, 30 * _SECOND_MS, "Past this time there is no summary card")] = 2000


class AutonomousConfig(Struct, frozen=True, rename="camel"):
    """Actions of the daemon on its own. Source: memory-pipeline.txt "Maintenance Worker"; docs/decisions.md 16."""

    enabled: Annotated[bool, _described("Scheduled maintenance and repairs run")] = True
    frozen: Annotated[bool, _described("Hard stop of everything that nobody asked for")] = False
    allow_update_delete: Annotated[bool, _described("Update and delete proposals of a model may be applied")] = False
    maintenance_interval_ms: Annotated[int, _ranged(_MINUTE_MS, _DAY_MS, "Time between two maintenance cycles")] = (
        30 * _MINUTE_MS
    )
    maintenance_mode: Annotated[MaintenanceMode, _described("Repairs are only reported, or carried out")] = "execute"


class RepairConfig(Struct, frozen=True, rename="camel"):
    """Limits of the repairs. Source: memory-pipeline.txt "Configuration Reference"."""

    reembed_cooldown_ms: Annotated[
        int, _ranged(10 * _SECOND_MS, _HOUR_MS, "Least time between two re-embed repairs")
    ] = 5 * _MINUTE_MS
    reembed_hourly_budget: Annotated[int, _ranged(1, 1000, "Re-embed repairs an hour")] = 10
    requeue_cooldown_ms: Annotated[int, _ranged(5 * _SECOND_MS, _HOUR_MS, "Least time between two requeues")] = (
        _MINUTE_MS
    )
    requeue_hourly_budget: Annotated[int, _ranged(1, 1000, "Requeues an hour")] = 50
    dedup_cooldown_ms: Annotated[int, _ranged(10 * _SECOND_MS, _HOUR_MS, "Least time between two deduplications")] = (
        10 * _MINUTE_MS
    )
    dedup_hourly_budget: Annotated[int, _ranged(1, 100, "Deduplications an hour")] = 3
    dedup_semantic_threshold: Annotated[
        float, _ranged(0.0, 1.0, "Cosine from which two memories count as the same")
    ] = 0.92
    dedup_batch_size: Annotated[int, _ranged(10, 1000, "Memories that one deduplication compares")] = 100


class DocumentsConfig(Struct, frozen=True, rename="camel"):
    """Document ingest. Source: memory-pipeline.txt "Document Ingest"."""

    worker_interval_ms: Annotated[int, _ranged(_SECOND_MS, 5 * _MINUTE_MS, "Time between two looks for documents")] = (
        10 * _SECOND_MS
    )
    chunk_size_chars: Annotated[int, _ranged(200, 50_000, "Length of a chunk")] = field(name="chunkSize", default=2000)
    chunk_overlap_chars: Annotated[
        int, _ranged(0, 10_000, "Characters that two chunks share; less than `chunkSize`")
    ] = field(name="chunkOverlap", default=200)
    max_content_bytes: Annotated[int, _ranged(_KIB, 100 * _MIB, "A larger document is refused")] = 10 * _MIB


class GuardrailsConfig(Struct, frozen=True, rename="camel"):
    """Size limits of memories.

    Source: memory-pipeline.txt "Configuration Reference"; docs/compatibility.md "Oversized content".
    """

    max_content_chars: Annotated[int, _ranged(50, 100_000, "A longer memory is stored as several chunks")] = 500
    chunk_target_chars: Annotated[int, _ranged(50, 50_000, "Length that a chunk aims at")] = 300
    recall_truncate_chars: Annotated[int, _ranged(50, 100_000, "Recall cuts a longer text")] = 500


class ContinuityConfig(Struct, frozen=True, rename="camel"):
    """Session checkpoints. Source: memory-pipeline.txt "Session Checkpoints"."""

    enabled: Annotated[bool, _described("Sessions are checkpointed")] = True
    prompt_interval: Annotated[int, _ranged(1, 1000, "Prompts between two checkpoints")] = 10
    time_interval_ms: Annotated[int, _ranged(_MINUTE_MS, _HOUR_MS, "Time between two checkpoints")] = 15 * _MINUTE_MS
    max_checkpoints_per_session: Annotated[int, _ranged(1, 500, "Checkpoints that a session keeps")] = 50
    retention_days: Annotated[int, _ranged(1, 90, "Checkpoints are purged after this long")] = 7
    recovery_budget_chars: Annotated[int, _ranged(200, 10_000, "Length of a recovery digest")] = 2000


class TelemetryConfig(Struct, frozen=True, rename="camel"):
    """Local telemetry, which is never sent anywhere.

    Source: memory-pipeline.txt "Configuration Reference"; docs/decisions.md 27.
    """

    flush_interval_ms: Annotated[int, _ranged(5 * _SECOND_MS, 10 * _MINUTE_MS, "Time between two writes of events")] = (
        _MINUTE_MS
    )
    flush_batch_size: Annotated[int, _ranged(1, 500, "Events in one write")] = 50
    retention_days: Annotated[int, _ranged(1, 365, "Events are purged after this long")] = 90


class EmbeddingTrackerConfig(Struct, frozen=True, rename="camel"):
    """The refresh of missing and stale vectors. Source: memory-pipeline.txt "Embedding Tracker"."""

    enabled: Annotated[bool, _described("Missing and stale vectors are made anew in the background")] = True
    poll_ms: Annotated[
        int, _ranged(_SECOND_MS, _MINUTE_MS, "Time from a change of the embedding model to the first look for vectors")
    ] = 5 * _SECOND_MS
    batch_size: Annotated[int, _ranged(1, 20, "Texts that are embedded in one call")] = 8


class HintsConfig(Struct, frozen=True, rename="camel"):
    """Questions that a memory may answer. Source: memory-pipeline.txt "Prospective Indexing (Hints)"."""

    enabled: Annotated[bool, _described("Hints are generated for new memories, and searched beside their content")] = (
        False
    )
    max_count: Annotated[int, _ranged(1, 20, "Hints of one memory")] = field(name="max", default=5)
    timeout_ms: Annotated[int, _ranged(5 * _SECOND_MS, 5 * _MINUTE_MS, "Longest time of one generation")] = field(
        name="timeout", default=45 * _SECOND_MS
    )
    poll_ms: Annotated[int, _ranged(_SECOND_MS, _MINUTE_MS, "Time between two looks for jobs")] = field(
        name="poll", default=5 * _SECOND_MS
    )


class DampeningConfig(Struct, frozen=True, rename="camel"):
    """Score corrections after fusion. Source: memory-pipeline.txt "Post-Fusion Dampening"."""

    gravity_enabled: Annotated[bool, _described("Vector results without a word of the query lose score")] = True
    hub_enabled: Annotated[bool, _described("Results that only name very frequent entities lose score")] = True
    resolution_enabled: Annotated[bool, _described("Decisions, constraints and dated memories gain score")] = True
    hub_percentile: Annotated[float, _ranged(0.0, 1.0, "Share of entities below which one is no hub")] = 0.9
    hub_penalty: Annotated[float, _ranged(0.0, 1.0, "Factor of the hub stage")] = 0.7
    gravity_penalty: Annotated[float, _ranged(0.0, 1.0, "Factor of the gravity stage")] = 0.5
    resolution_boost: Annotated[float, _ranged(1.0, 10.0, "Factor of the resolution stage")] = 1.2


class PipelineV2Config(Struct, frozen=True, rename="camel"):
    """The memory pipeline. Source: memory-pipeline.txt "Configuration Reference", "Pipeline Modes"."""

    enabled: Annotated[bool, _described("Master switch of the pipeline")] = True
    shadow_mode: Annotated[bool, _described("The pipeline proposes and records, and changes nothing")] = False
    mutations_frozen: Annotated[bool, _described("Emergency brake: every write is answered 503, reads go on")] = False
    semantic_contradiction_enabled: Annotated[bool, _described("A model is asked whether two texts contradict")] = False
    semantic_contradiction_timeout_ms: Annotated[
        int, _ranged(5 * _SECOND_MS, 5 * _MINUTE_MS, "Longest time of that question")
    ] = 45 * _SECOND_MS
    telemetry_enabled: Annotated[bool, _described("Local telemetry is kept; nothing is sent anywhere")] = False
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

    decay_rate: Annotated[float, _ranged(0.0, 1.0, "Importance is multiplied by this for each day without access")] = (
        0.95
    )
    pipeline_v2: PipelineV2Config = field(name="pipelineV2", default=PipelineV2Config())


class RosterEntry(Struct, frozen=True):
    """A named agent and the agents whose memories it reads. Source: architecture.txt "Multi-Agent Support"."""

    name: Annotated[str, _text("Id of the agent", pattern=AGENT_NAME_PATTERN, form=_AGENT_NAME_FORM, least=1)]
    read_policy: Annotated[
        ReadPolicy, _described("It reads its own memories, all global ones, or the global ones of its group")
    ] = "shared"
    policy_group: Annotated[str, _text("Group of the policy `group`")] = ""


class AgentsConfig(Struct, frozen=True):
    """The agents that share this daemon. Source: architecture.txt "Multi-Agent Support"."""

    roster: Annotated[
        tuple[RosterEntry, ...], Meta(max_length=1000, description="Named agents; others may still come by name")
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
    default_token_ttl_seconds: Annotated[int, _ranged(60, 31_536_000, "Life of a token")] = 604_800
    session_token_ttl_seconds: Annotated[int, _ranged(60, 31_536_000, "Life of a session token")] = 86_400
    rate_limits: RateLimitsConfig = RateLimitsConfig()


class UserPromptSubmitConfig(Struct, frozen=True, rename="camel"):
    """The hook that runs at each prompt. Source: docs/compatibility.md "Hooks and sessions"."""

    enabled: Annotated[bool, _described("Memories are offered at each prompt")] = True


class HooksConfig(Struct, frozen=True, rename="camel"):
    """Settings of harness hooks. Source: docs/compatibility.md "Hooks and sessions"."""

    user_prompt_submit: UserPromptSubmitConfig = UserPromptSubmitConfig()


class SearcherConfig(Struct, frozen=True, rename="camel"):
    """The pool of searchers. Source: docs/reliability.md "Supervision policy"."""

    processes: Annotated[int, _ranged(0, 64, "Searcher processes; 0 is one less than the cores, at least 1")] = 0
    queue_limit: Annotated[
        int, _ranged(1, 65_536, "Queries that wait for a searcher; more are answered 503 at once")
    ] = 256
    read_timeout_ms: Annotated[int, _ranged(50, _MINUTE_MS, "A query that reads for longer is given up")] = 2000


class WriterConfig(Struct, frozen=True, rename="camel"):
    """The only process that writes. Source: docs/reliability.md "The writer's loop"; docs/decisions.md 3."""

    queue_limit: Annotated[
        int, _ranged(1, 65_536, "Writes that wait for the writer; more are answered 503 at once")
    ] = 256
    queue_bytes: Annotated[int, _ranged(64 * _KIB, _KIB * _MIB, "Bytes that wait for the writer")] = 8 * _MIB
    batch_limit: Annotated[int, _ranged(1, 4096, "Writes in one transaction")] = 256
    busy_timeout_ms: Annotated[int, _ranged(0, _MINUTE_MS, "Longest wait for a lock that another program holds")] = 2000
    request_timeout_ms: Annotated[int, _ranged(100, 10 * _MINUTE_MS, "A write that waited longer is dropped")] = (
        5 * _SECOND_MS
    )
    reply_retention_ms: Annotated[
        int, _ranged(_MINUTE_MS, 7 * _DAY_MS, "A retry within this time is given the first answer")
    ] = 10 * _MINUTE_MS
    touch_flush_ms: Annotated[int, _ranged(10, 10 * _MINUTE_MS, "Recorded accesses are written after this time")] = 1000
    ballast_bytes: Annotated[
        int, _ranged(0, _KIB * _MIB, "File that is given up when the disk is full, so that deleting still works")
    ] = 16 * _MIB


class RestartBudget(Struct, frozen=True, rename="camel"):
    """At most ``restarts`` counted restarts within ``window_ms``."""

    restarts: Annotated[int, _ranged(0, 1000, "Restarts in a window; one more gives the process up")] = 10
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
    liveness: Annotated[int, _ranged(2, 100, "Missing heartbeats after which a process counts as hung")] = 3
    start_timeout_ms: Annotated[int, _ranged(_SECOND_MS, _HOUR_MS, "A process that is not ready by then is killed")] = (
        2 * _MINUTE_MS
    )
    drain_ms: Annotated[int, _ranged(0, 10 * _MINUTE_MS, "Time to finish when asked to stop")] = 5 * _SECOND_MS
    budgets: BudgetsConfig = BudgetsConfig()
    backoff_min_ms: Annotated[int, _ranged(1, 10 * _MINUTE_MS, "Wait before the first counted restart")] = 100
    backoff_max_ms: Annotated[int, _ranged(1, _HOUR_MS, "Longest wait before a restart")] = 30 * _SECOND_MS
    settled_ms: Annotated[
        int, _ranged(0, _HOUR_MS, "A death later than this after ready is not counted against the budget")
    ] = 2 * _SECOND_MS


class LoggingConfig(Struct, frozen=True, rename="camel"):
    """The daemon's own log. Source: architecture.txt "User Data Layout"."""

    level: Annotated[LogLevel, _described("The least level that is written")] = "info"
    max_file_bytes: Annotated[int, _ranged(64 * _KIB, _KIB * _MIB, "A log file is closed at this size")] = 32 * _MIB
    retention_days: Annotated[int, _ranged(1, 3650, "Older log files are removed")] = 14
    max_total_bytes: Annotated[
        int, _ranged(_MIB, 1024 * _KIB * _MIB, "Oldest log files are removed beyond this size")
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
