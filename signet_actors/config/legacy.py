"""Older spellings of keys, and the keys of ``agent.yaml`` that are ignored without a warning.

Source: memory-pipeline.txt "Configuration Reference" (legacy flat keys; nested keys take precedence) and the flat names
that the documents use elsewhere; docs/decisions.md 43 (aliases) and 46 (posthog*).
"""

from __future__ import annotations

from typing import Final

PIPELINE: Final = ("memory", "pipelineV2")

FLAT_KEYS: Final[tuple[tuple[str, str], ...]] = (
    ("extractionProvider", "extraction.provider"),
    ("extractionModel", "extraction.model"),
    ("extractionEndpoint", "extraction.endpoint"),
    ("extractionTimeout", "extraction.timeout"),
    ("minFactConfidenceForWrite", "extraction.minConfidence"),
    ("workerPollMs", "worker.pollMs"),
    ("workerMaxRetries", "worker.maxRetries"),
    ("leaseTimeoutMs", "worker.leaseTimeoutMs"),
    ("graphEnabled", "graph.enabled"),
    ("graphBoostWeight", "graph.boostWeight"),
    ("graphBoostTimeoutMs", "graph.boostTimeoutMs"),
    ("rerankerEnabled", "reranker.enabled"),
    ("rerankerModel", "reranker.model"),
    ("rerankerTopN", "reranker.topN"),
    ("rerankerTimeoutMs", "reranker.timeoutMs"),
    ("autonomousEnabled", "autonomous.enabled"),
    ("autonomousFrozen", "autonomous.frozen"),
    ("allowUpdateDelete", "autonomous.allowUpdateDelete"),
    ("maintenanceIntervalMs", "autonomous.maintenanceIntervalMs"),
    ("maintenanceMode", "autonomous.maintenanceMode"),
    ("repairReembedCooldownMs", "repair.reembedCooldownMs"),
    ("repairReembedHourlyBudget", "repair.reembedHourlyBudget"),
    ("repairRequeueCooldownMs", "repair.requeueCooldownMs"),
    ("repairRequeueHourlyBudget", "repair.requeueHourlyBudget"),
    ("repairDedupCooldownMs", "repair.dedupCooldownMs"),
    ("repairDedupHourlyBudget", "repair.dedupHourlyBudget"),
    ("repairDedupSemanticThreshold", "repair.dedupSemanticThreshold"),
    ("repairDedupBatchSize", "repair.dedupBatchSize"),
    ("documentWorkerIntervalMs", "documents.workerIntervalMs"),
    ("documentChunkSize", "documents.chunkSize"),
    ("documentChunkOverlap", "documents.chunkOverlap"),
    ("documentMaxContentBytes", "documents.maxContentBytes"),
)
"""Flat keys under ``memory.pipelineV2``, and the nested key of each."""

MOVED_KEYS: Final[tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]] = (
    *(((*PIPELINE, flat), (*PIPELINE, *nested.split("."))) for flat, nested in FLAT_KEYS),
    (("search", "reranking"), (*PIPELINE, "reranker", "enabled")),
    (("authMode",), ("auth", "mode")),
)
"""Old and new path of each moved key. If both are given, the new one takes precedence."""

ALIASES: Final[tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]] = (
    (("embedding", "endpoint"), ("baseUrl", "base_url")),
    ((*PIPELINE, "extraction", "endpoint"), ("baseUrl", "base_url")),
    ((*PIPELINE, "synthesis", "endpoint"), ("baseUrl", "base_url")),
)
"""Other names of a key in the same section. The camelCase and snake_case spellings of a name need no entry."""

IGNORED_KEYS: Final[tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]] = (
    (
        (),
        (
            "version",
            "schema",
            "name",
            "description",
            "agent",
            "owner",
            "identity",
            "harnesses",
            "paths",
            "trust",
            "services",
            "skills",
            "secrets",
            "tasks",
            "plugins",
            "connectors",
            "dashboard",
            "update",
            "updates",
            "inference",
            "capabilities",
            "created",
            "updated",
        ),
    ),
    (("memory",), ("database", "session_budget", "dreaming", "scripts", "vectors")),
    (
        PIPELINE,
        (
            "dependencySynthesis",
            "predictor",
            "predictorPipeline",
            "procedural",
            "modelRegistry",
        ),
    ),
    ((*PIPELINE, "extraction"), ("rateLimit", "command")),
    ((*PIPELINE, "worker"), ("maxLoadPerCpu", "overloadBackoffMs")),
    ((*PIPELINE, "hints"), ("maxTokens",)),
    ((*PIPELINE, "synthesis"), ("structuredOutput", "rateLimit")),
    ((*PIPELINE, "telemetry"), ("posthogHost", "posthogApiKey")),
    (("search",), ("top_k", "rehearsal_enabled", "rehearsal_weight", "rehearsal_half_life_days")),
    (("agents",), ("defaults",)),
)
"""Keys, by section, that are accepted without a warning and have no effect, because other programs read them or this
release ignores them. Their contents are not checked.
"""
