"""The section `memory` of agent.yaml: the pipeline that extracts facts from memories.

Source: pipeline.txt; docs/configuration.md.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct, field

from signet_actors.config.field_forms import (
    DAY_MS,
    HOUR_MS,
    KIB,
    MIB,
    MINUTE_MS,
    SECOND_MS,
    described,
    endpoint_url,
    key_variable,
    model_name,
    ranged,
    text,
)

ExtractionProvider = Literal["auto", "none", "ollama", "openai", "claude-code", "opencode"]
InlineLinker = Literal["link", "create"]
MaintenanceMode = Literal["observe", "execute"]
Confirm = Literal["auto", "review"]
SynthesisSchedule = Literal["daily", "weekly", "on-demand"]
SynthesisProvider = Literal["extraction", "auto", "none", "ollama", "openai", "claude-code", "opencode"]


class DampeningConfig(Struct, frozen=True, rename="camel"):
    """Score corrections after fusion. Source: memory-pipeline.txt "Post-Fusion Dampening".

    Departs: all are off by default, because each ranks evidence lower or no better (docs/quality.md "The knowledge
    graph"; docs/decisions.md 9).
    """

    gravity_enabled: Annotated[
        bool, described("Lower the score of vector results that contain no word of the query")
    ] = False
    hub_enabled: Annotated[bool, described("Lower the score of results that only mention very frequent entities")] = (
        False
    )
    resolution_enabled: Annotated[bool, described("Raise the score of decisions, constraints and dated memories")] = (
        False
    )
    hub_percentile: Annotated[float, ranged(0.0, 1.0, "Percentile of frequency above which an entity is a hub")] = 0.9
    hub_penalty: Annotated[float, ranged(0.0, 1.0, "Score factor of the hub stage")] = 0.7
    gravity_penalty: Annotated[float, ranged(0.0, 1.0, "Score factor of the gravity stage")] = 0.5
    resolution_boost: Annotated[float, ranged(1.0, 10.0, "Score factor of the resolution stage")] = 1.2


class BreakerConfig(Struct, frozen=True, rename="camel"):
    """When, and for how long, calls to a failing provider are paused.

    Source: docs/decisions.md 14; docs/reliability.md R11.
    """

    failures: Annotated[int, ranged(1, 100, "Consecutive failed calls after which calls are paused")] = 5
    cooldown_ms: Annotated[int, ranged(SECOND_MS, HOUR_MS, "First pause; it doubles while the provider fails")] = (
        10 * SECOND_MS
    )
    max_cooldown_ms: Annotated[int, ranged(SECOND_MS, HOUR_MS, "Longest pause between two attempts")] = 5 * MINUTE_MS


class ExtractionConfig(Struct, frozen=True, rename="camel"):
    """The extraction stage.

    Source: memory-pipeline.txt "Extraction Stage"; docs/decisions.md 14, 18, 43 and 46.
    Departs: ``model`` is empty by default, which means the provider's own default model: the reference's ``haiku``
    belongs to its provider ``claude-code``, and ours is ``auto``.
    """

    provider: Annotated[
        ExtractionProvider,
        described(
            "Provider of the language model: `auto` is Ollama if it is reachable, else none, and never a paid provider"
        ),
    ] = "auto"
    model: Annotated[str, model_name("Model of the provider; empty means the provider's default")] = ""
    endpoint: Annotated[str, endpoint_url("Base URL of the provider; `baseUrl` is also accepted")] = ""
    api_key_env: Annotated[str, key_variable("Name of the environment variable that holds the key")] = ""
    timeout_ms: Annotated[int, ranged(5 * SECOND_MS, 5 * MINUTE_MS, "Timeout of one call")] = field(
        name="timeout", default=45 * SECOND_MS
    )
    min_confidence: Annotated[float, ranged(0.0, 1.0, "Facts with a lower confidence are not written")] = 0.7
    structured_output: Annotated[
        bool,
        described("Ask the server to enforce the JSON Schema of the answer; not used with a server that rejects it"),
    ] = True
    concurrency: Annotated[int, ranged(1, 64, "Concurrent calls per process; more wait")] = 2
    daily_call_limit: Annotated[
        int, ranged(0, 1_000_000_000, "Calls per day; 0 means no limit for a server on this machine, else 2000")
    ] = 0
    daily_token_limit: Annotated[
        int,
        ranged(
            0,
            1_000_000_000,
            "Input and output tokens per day; 0 means no limit for a server on this machine, else 2000000",
        ),
    ] = 0
    breaker: BreakerConfig = BreakerConfig()


class WorkerConfig(Struct, frozen=True, rename="camel"):
    """The durable job queue. Source: memory-pipeline.txt "Worker Model"; docs/decisions.md 11-15."""

    poll_ms: Annotated[int, ranged(100, MINUTE_MS, "Time between two polls for jobs when no event arrives")] = 2000
    max_retries: Annotated[int, ranged(1, 10, "Attempts per job; after the last one the job is dead")] = 3
    lease_timeout_ms: Annotated[
        int, ranged(10 * SECOND_MS, 10 * MINUTE_MS, "A lease that is not renewed expires after this time")
    ] = 5 * MINUTE_MS


class GraphConfig(Struct, frozen=True, rename="camel"):
    """The knowledge graph. Source: memory-pipeline.txt "Knowledge Graph"; docs/decisions.md 20."""

    enabled: Annotated[bool, described("Maintain entities and relations and use them in recall")] = True
    boost_weight: Annotated[float, ranged(0.0, 1.0, "Score that a link in the graph adds to a result")] = 0.15
    boost_timeout_ms: Annotated[int, ranged(50, 5 * SECOND_MS, "Time limit of the graph step of a recall")] = 500
    inline_linker: Annotated[
        InlineLinker,
        described("On remember: `link` links mentions to existing entities, `create` also creates new entities"),
    ] = "link"


class TraversalConfig(Struct, frozen=True, rename="camel"):
    """The walk over the knowledge graph in a recall. Source: knowledge-graph.txt "Walk Algorithm"."""

    enabled: Annotated[bool, described("Follow the knowledge graph from what a query names")] = True
    primary: Annotated[
        bool,
        described("Add to the candidates what the graph leads to; `false` only raises scores (`graph.boostWeight`)"),
    ] = True
    max_aspects: Annotated[int, ranged(1, 100, "Aspects of an entity, the heaviest first")] = field(
        name="maxAspectsPerEntity", default=10
    )
    max_attributes: Annotated[int, ranged(1, 200, "Attributes of an aspect, the most important first")] = field(
        name="maxAttributesPerAspect", default=20
    )
    max_neighbours: Annotated[int, ranged(0, 500, "Entities that are reached over a dependency")] = field(
        name="maxDependencyHops", default=30
    )
    min_strength: Annotated[float, ranged(0.0, 1.0, "Least strength of a dependency that is followed")] = field(
        name="minDependencyStrength", default=0.3
    )
    timeout_ms: Annotated[int, ranged(50, 5 * SECOND_MS, "Time limit of the walk; what was found by then counts")] = 500


class StructuralConfig(Struct, frozen=True, rename="camel"):
    """The aspects of an entity's facts. Source: memory-pipeline.txt "Structural Classification"."""

    poll_interval_ms: Annotated[
        int, ranged(0, MINUTE_MS, "Time for which facts about an entity are collected before the model is asked")
    ] = 5 * SECOND_MS
    classify_batch_size: Annotated[int, ranged(1, 50, "Facts about one entity per call of the model")] = 20


class FeedbackConfig(Struct, frozen=True, rename="camel"):
    """Weights of aspects, by what sessions use. Source: knowledge-graph.txt "Behavioral Feedback Loop"."""

    delta: Annotated[
        float, ranged(0.0, 1.0, "Added to the weight of an aspect for each of its memories that a session searched for")
    ] = 0.02
    min_weight: Annotated[float, ranged(0.0, 1.0, "Lowest weight of an aspect")] = 0.1
    max_weight: Annotated[float, ranged(0.0, 1.0, "Highest weight of an aspect")] = 1.0
    stale_days: Annotated[int, ranged(1, 3650, "Aspects that have not changed for so long lose weight")] = 14
    decay_rate: Annotated[float, ranged(0.0, 1.0, "What such an aspect loses each time")] = 0.005
    interval: Annotated[int, ranged(1, 10_000, "Ended sessions of an agent between two times")] = 10


class RerankerConfig(Struct, frozen=True, rename="camel"):
    """Optional reranking of the best results. Source: memory-pipeline.txt "Optional Reranking"."""

    enabled: Annotated[bool, described("Reorder the best results by their vectors")] = False
    model: Annotated[str, text("Model of the reranker; empty means the stored vectors, the only choice at present")] = (
        ""
    )
    use_extraction_model: Annotated[
        bool, described("Let the language model summarize the results of a recall in a summary card")
    ] = False
    top_n: Annotated[int, ranged(1, 100, "Number of results to rerank")] = 20
    timeout_ms: Annotated[
        int, ranged(100, 30 * SECOND_MS, "Time limit of the summary card; after it the recall has none")
    ] = 2000


class AutonomousConfig(Struct, frozen=True, rename="camel"):
    """Actions of the daemon on its own. Source: memory-pipeline.txt "Maintenance Worker"; docs/decisions.md 16."""

    enabled: Annotated[bool, described("Run scheduled maintenance, and let agents repair")] = True
    frozen: Annotated[
        bool, described("Emergency stop of everything the daemon does on its own, and of every repair")
    ] = False
    allow_update_delete: Annotated[bool, described("Allow applying a model's update and delete proposals")] = False
    maintenance_interval_ms: Annotated[int, ranged(MINUTE_MS, DAY_MS, "Time between two maintenance cycles")] = (
        30 * MINUTE_MS
    )
    maintenance_mode: Annotated[
        MaintenanceMode, described("`observe` only reports repairs, `execute` performs them")
    ] = "execute"


class RepairConfig(Struct, frozen=True, rename="camel"):
    """Limits of the repairs. Source: memory-pipeline.txt "Configuration Reference"."""

    reembed_cooldown_ms: Annotated[
        int, ranged(10 * SECOND_MS, HOUR_MS, "Minimum time between two re-embed repairs")
    ] = 5 * MINUTE_MS
    reembed_hourly_budget: Annotated[int, ranged(1, 1000, "Re-embed repairs per hour")] = 10
    requeue_cooldown_ms: Annotated[int, ranged(5 * SECOND_MS, HOUR_MS, "Minimum time between two requeues")] = MINUTE_MS
    requeue_hourly_budget: Annotated[int, ranged(1, 1000, "Requeues per hour")] = 50
    dedup_cooldown_ms: Annotated[int, ranged(10 * SECOND_MS, HOUR_MS, "Minimum time between two deduplications")] = (
        10 * MINUTE_MS
    )
    dedup_hourly_budget: Annotated[int, ranged(1, 100, "Deduplications per hour")] = 3
    dedup_semantic_threshold: Annotated[
        float, ranged(0.0, 1.0, "Cosine similarity from which two memories count as duplicates")
    ] = 0.92
    dedup_batch_size: Annotated[int, ranged(10, 1000, "Memories that one deduplication merges at most")] = 100


class DocumentsConfig(Struct, frozen=True, rename="camel"):
    """Document ingest. Source: memory-pipeline.txt "Document Ingest"."""

    worker_interval_ms: Annotated[int, ranged(SECOND_MS, 5 * MINUTE_MS, "Time between two polls for documents")] = (
        10 * SECOND_MS
    )
    chunk_size_chars: Annotated[int, ranged(200, 50_000, "Length of a chunk")] = field(name="chunkSize", default=2000)
    chunk_overlap_chars: Annotated[
        int, ranged(0, 10_000, "Overlap of two adjacent chunks; must be less than `chunkSize`")
    ] = field(name="chunkOverlap", default=200)
    max_content_bytes: Annotated[int, ranged(KIB, 100 * MIB, "Maximum size of a document; a larger one is refused")] = (
        10 * MIB
    )


class GuardrailsConfig(Struct, frozen=True, rename="camel"):
    """Size limits of memories.

    Source: memory-pipeline.txt "Configuration Reference"; docs/compatibility.md "Oversized content".
    """

    max_content_chars: Annotated[
        int, ranged(50, 100_000, "Maximum length of a memory; a longer one is stored as several chunks")
    ] = 500
    chunk_target_chars: Annotated[int, ranged(50, 50_000, "Target length of a chunk")] = 300
    recall_truncate_chars: Annotated[int, ranged(50, 100_000, "Recall truncates a longer text")] = 500


class ContinuityConfig(Struct, frozen=True, rename="camel"):
    """Session checkpoints. Source: memory-pipeline.txt "Session Checkpoints"."""

    enabled: Annotated[bool, described("Write session checkpoints")] = True
    prompt_interval: Annotated[int, ranged(1, 1000, "Prompts between two checkpoints")] = 10
    time_interval_ms: Annotated[int, ranged(MINUTE_MS, HOUR_MS, "Time between two checkpoints")] = 15 * MINUTE_MS
    max_checkpoints_per_session: Annotated[int, ranged(1, 500, "Maximum number of checkpoints per session")] = 50
    retention_days: Annotated[int, ranged(1, 90, "Checkpoints are deleted after this time")] = 7
    recovery_budget_chars: Annotated[int, ranged(200, 10_000, "Maximum length of a recovery digest")] = 2000


class SummaryConfig(Struct, frozen=True, rename="camel"):
    """Summaries of ended sessions. Source: architecture.txt "summary_jobs"."""

    enabled: Annotated[
        bool, described("Let the language model summarize ended sessions, as a memory and a Markdown file")
    ] = True


class SignificanceConfig(Struct, frozen=True, rename="camel"):
    """Which sessions are worth a summary. Source: docs/compatibility.md "Summaries of sessions"."""

    enabled: Annotated[
        bool, described("Summarize a session only if it reaches one of these bounds; otherwise every longer session")
    ] = True
    min_turns: Annotated[int, ranged(1, 100, "Turns of substance from which a session is summarized")] = 5
    min_entity_overlap: Annotated[
        int, ranged(0, 100, "Known entities, named by three memories or more, from which a session is summarized")
    ] = 1
    novelty_threshold: Annotated[
        float, ranged(0.0, 1.0, "Novelty, compared with the agent's last sessions, from which a session is summarized")
    ] = 0.15


class TelemetryConfig(Struct, frozen=True, rename="camel"):
    """Local telemetry, which is never sent anywhere.

    Source: memory-pipeline.txt "Configuration Reference"; docs/decisions.md 27.
    """

    flush_interval_ms: Annotated[int, ranged(5 * SECOND_MS, 10 * MINUTE_MS, "Time between two writes of events")] = (
        MINUTE_MS
    )
    flush_batch_size: Annotated[int, ranged(1, 500, "Events per write")] = 50
    retention_days: Annotated[int, ranged(1, 365, "Events are deleted after this time")] = 90


class EmbeddingTrackerConfig(Struct, frozen=True, rename="camel"):
    """The refresh of missing and stale vectors. Source: memory-pipeline.txt "Embedding Tracker"."""

    enabled: Annotated[bool, described("Recompute missing and stale vectors in the background")] = True
    poll_ms: Annotated[
        int,
        ranged(
            SECOND_MS, MINUTE_MS, "Delay from a change of the embedding model to the first search for stale vectors"
        ),
    ] = 5 * SECOND_MS
    batch_size: Annotated[int, ranged(1, 20, "Texts per embedding call")] = 8


class HintsConfig(Struct, frozen=True, rename="camel"):
    """Questions that a memory may answer. Source: memory-pipeline.txt "Prospective Indexing (Hints)"."""

    enabled: Annotated[
        bool, described("Generate hints for new memories; hints are searched along with the content")
    ] = False
    max_count: Annotated[int, ranged(1, 20, "Maximum number of hints per memory")] = field(name="max", default=5)
    timeout_ms: Annotated[int, ranged(5 * SECOND_MS, 5 * MINUTE_MS, "Timeout of one generation")] = field(
        name="timeout", default=45 * SECOND_MS
    )
    poll_ms: Annotated[int, ranged(SECOND_MS, MINUTE_MS, "Time between two polls for jobs")] = field(
        name="poll", default=5 * SECOND_MS
    )


class SynthesisModelConfig(Struct, frozen=True, rename="camel"):
    """The model with which the daemon makes `MEMORY.md`. Source: docs/guides/working-memory.md.

    Departs: the timeout is not that of the extraction, because the answer is longer.
    """

    enabled: Annotated[bool, described("Let the daemon make `MEMORY.md` with a language model")] = True
    provider: Annotated[
        SynthesisProvider, described("Provider of the language model: `extraction` is the one of `extraction.provider`")
    ] = "extraction"
    model: Annotated[
        str, model_name("Model of the provider; empty means that of the extraction, or the default of another provider")
    ] = ""
    endpoint: Annotated[
        str, endpoint_url("Base URL of the provider, if it is not that of the extraction; `baseUrl` is also accepted")
    ] = ""
    api_key_env: Annotated[
        str, key_variable("Name of the environment variable that holds the key, if it is not that of the extraction")
    ] = ""
    timeout_ms: Annotated[int, ranged(5 * SECOND_MS, 5 * MINUTE_MS, "Timeout of one call")] = field(
        name="timeout", default=2 * MINUTE_MS
    )


class PipelineV2Config(Struct, frozen=True, rename="camel"):
    """The memory pipeline. Source: memory-pipeline.txt "Configuration Reference", "Pipeline Modes"."""

    enabled: Annotated[bool, described("Master switch of the pipeline")] = True
    shadow_mode: Annotated[bool, described("The pipeline records its proposals but changes no memory")] = False
    mutations_frozen: Annotated[
        bool, described("Kill switch: every change of a memory is answered with 503; reads still work")
    ] = False
    confirm: Annotated[
        Confirm,
        described("Whether changes by the pipeline are applied at once, or wait until a person approves each of them"),
    ] = "auto"
    semantic_contradiction_enabled: Annotated[
        bool, described("Ask the language model whether two texts contradict each other")
    ] = False
    semantic_contradiction_timeout_ms: Annotated[
        int, ranged(5 * SECOND_MS, 5 * MINUTE_MS, "Timeout of the contradiction check")
    ] = 45 * SECOND_MS
    telemetry_enabled: Annotated[bool, described("Keep local telemetry; it is never sent anywhere")] = False
    extraction: ExtractionConfig = ExtractionConfig()
    worker: WorkerConfig = WorkerConfig()
    graph: GraphConfig = GraphConfig()
    traversal: TraversalConfig = TraversalConfig()
    structural: StructuralConfig = StructuralConfig()
    feedback: FeedbackConfig = FeedbackConfig()
    reranker: RerankerConfig = RerankerConfig()
    autonomous: AutonomousConfig = AutonomousConfig()
    repair: RepairConfig = RepairConfig()
    documents: DocumentsConfig = DocumentsConfig()
    guardrails: GuardrailsConfig = GuardrailsConfig()
    continuity: ContinuityConfig = ContinuityConfig()
    summary: SummaryConfig = SummaryConfig()
    significance: SignificanceConfig = SignificanceConfig()
    telemetry: TelemetryConfig = TelemetryConfig()
    embedding_tracker: EmbeddingTrackerConfig = EmbeddingTrackerConfig()
    hints: HintsConfig = HintsConfig()
    dampening: DampeningConfig = DampeningConfig()
    synthesis: SynthesisModelConfig = SynthesisModelConfig()


class SynthesisConfig(Struct, frozen=True):
    """Who makes `MEMORY.md`, and how often. Source: docs/guides/working-memory.md.

    Departs: the reference's defaults are the harness ``openclaw`` and its model ``sonnet``, which few people have.
    """

    harness: Annotated[
        str, text("Who makes `MEMORY.md`: `daemon`, or the name of a harness, which then asks for the prompt", least=1)
    ] = "daemon"
    model: Annotated[str, text("Model that the harness is told to use; the daemon does not use it")] = ""
    schedule: Annotated[
        SynthesisSchedule, described("How often it is made anew if memories have changed; `on-demand`: on request only")
    ] = "daily"
    max_tokens: Annotated[int, ranged(200, 16_000, "Maximum length of the text")] = 4000


class MemoryConfig(Struct, frozen=True):
    """Settings of memories. Source: memory-system.txt "Importance Decay"."""

    decay_rate: Annotated[float, ranged(0.0, 1.0, "Factor applied to the importance for each day without access")] = (
        0.95
    )
    pipeline_v2: PipelineV2Config = field(name="pipelineV2", default=PipelineV2Config())
    synthesis: SynthesisConfig = SynthesisConfig()
