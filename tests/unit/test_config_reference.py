"""The schema agrees with the specification, and the documentation with the schema.

The table below is written by hand from the Configuration Reference and from the decisions that change it, and is not
derived from the schema.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from signet_actors.config import legacy
from signet_actors.config.keys import Key, camel, keys, snake
from signet_actors.config.reference import BEGIN, END, WITHOUT_EFFECT, reference

DOCUMENT = Path(__file__).parents[2] / "docs" / "configuration.md"

_DAY = 86_400_000

BOOL = ("true", "false")

SPECIFIED: dict[str, tuple[object, object]] = {
    # Top-level flags.
    "enabled": (True, BOOL),
    "shadowMode": (False, BOOL),
    "mutationsFrozen": (False, BOOL),
    "confirm": ("auto", ("auto", "review")),  # docs/decisions.md 16
    "summary.enabled": (True, BOOL),
    "significance.enabled": (True, BOOL),
    "significance.minTurns": (5, (1, 100)),
    "significance.minEntityOverlap": (1, (0, 100)),
    "significance.noveltyThreshold": (0.15, (0.0, 1.0)),
    "semanticContradictionEnabled": (False, BOOL),
    "semanticContradictionTimeoutMs": (45000, (5000, 300000)),
    "telemetryEnabled": (False, BOOL),
    # docs/decisions.md 18 and 46: the provider is auto, so the model is the provider's own; 43 adds two keys.
    "extraction.provider": ("auto", ("auto", "none", "ollama", "openai", "claude-code", "opencode")),
    "extraction.model": ("", None),
    "extraction.endpoint": ("", None),
    "extraction.apiKeyEnv": ("", None),
    "extraction.timeout": (45000, (5000, 300000)),
    "extraction.minConfidence": (0.7, (0.0, 1.0)),
    "extraction.structuredOutput": (True, BOOL),
    # docs/decisions.md 14 and 18: bounded concurrency, a circuit breaker, hard daily caps.
    "extraction.concurrency": (2, (1, 64)),
    "extraction.dailyCallLimit": (0, (0, 1_000_000_000)),
    "extraction.dailyTokenLimit": (0, (0, 1_000_000_000)),
    "extraction.breaker.failures": (5, (1, 100)),
    "extraction.breaker.cooldownMs": (10_000, (1000, 3_600_000)),
    "extraction.breaker.maxCooldownMs": (300_000, (1000, 3_600_000)),
    "worker.pollMs": (2000, (100, 60000)),
    "worker.maxRetries": (3, (1, 10)),
    "worker.leaseTimeoutMs": (300000, (10000, 600000)),
    "graph.enabled": (True, BOOL),
    "graph.boostWeight": (0.15, (0.0, 1.0)),
    "graph.boostTimeoutMs": (500, (50, 5000)),
    "graph.inlineLinker": ("link", ("link", "create")),  # docs/decisions.md 20
    # knowledge-graph.txt "Walk Algorithm"
    "traversal.enabled": (True, BOOL),
    "traversal.primary": (True, BOOL),
    "traversal.maxAspectsPerEntity": (10, (1, 100)),
    "traversal.maxAttributesPerAspect": (20, (1, 200)),
    "traversal.maxDependencyHops": (30, (0, 500)),
    "traversal.minDependencyStrength": (0.3, (0.0, 1.0)),
    "traversal.timeoutMs": (500, (50, 5000)),
    "reranker.enabled": (False, BOOL),  # docs/decisions.md 46
    "reranker.model": ("", None),
    "reranker.useExtractionModel": (False, BOOL),  # memory-api.txt
    "reranker.topN": (20, (1, 100)),
    "reranker.timeoutMs": (2000, (100, 30000)),
    "autonomous.enabled": (True, BOOL),
    "autonomous.frozen": (False, BOOL),
    "autonomous.allowUpdateDelete": (False, BOOL),  # docs/decisions.md 16 and 46
    "autonomous.maintenanceIntervalMs": (1800000, (60_000, _DAY)),
    "autonomous.maintenanceMode": ("execute", ("observe", "execute")),
    "repair.reembedCooldownMs": (300000, (10_000, 3_600_000)),
    "repair.reembedHourlyBudget": (10, (1, 1000)),
    "repair.requeueCooldownMs": (60000, (5000, 3_600_000)),
    "repair.requeueHourlyBudget": (50, (1, 1000)),
    "repair.dedupCooldownMs": (600000, (10_000, 3_600_000)),
    "repair.dedupHourlyBudget": (3, (1, 100)),
    "repair.dedupSemanticThreshold": (0.92, (0.0, 1.0)),
    "repair.dedupBatchSize": (100, (10, 1000)),
    "documents.workerIntervalMs": (10000, (1000, 300_000)),
    "documents.chunkSize": (2000, (200, 50000)),
    "documents.chunkOverlap": (200, (0, 10000)),
    "documents.maxContentBytes": (10485760, (1024, 104857600)),
    "guardrails.maxContentChars": (500, (50, 100000)),
    "guardrails.chunkTargetChars": (300, (50, 50000)),
    "guardrails.recallTruncateChars": (500, (50, 100000)),
    "continuity.enabled": (True, BOOL),
    "continuity.promptInterval": (10, (1, 1000)),
    "continuity.timeIntervalMs": (900000, (60_000, 3_600_000)),
    "continuity.maxCheckpointsPerSession": (50, (1, 500)),
    "continuity.retentionDays": (7, (1, 90)),
    "continuity.recoveryBudgetChars": (2000, (200, 10000)),
    "telemetry.flushIntervalMs": (60000, (5000, 600_000)),
    "telemetry.flushBatchSize": (50, (1, 500)),
    "telemetry.retentionDays": (90, (1, 365)),
    "embeddingTracker.enabled": (True, BOOL),
    "embeddingTracker.pollMs": (5000, (1000, 60_000)),
    "embeddingTracker.batchSize": (8, (1, 20)),
    "hints.enabled": (False, BOOL),
    "hints.max": (5, (1, 20)),
    "hints.timeout": (45000, (5000, 300000)),
    "hints.poll": (5000, (1000, 60000)),
    # memory-pipeline.txt "Structural Classification", knowledge-graph.txt "Behavioral Feedback Loop": without ranges.
    "structural.pollIntervalMs": (5000, (0, 60_000)),
    "structural.classifyBatchSize": (20, (1, 50)),
    "feedback.delta": (0.02, (0.0, 1.0)),
    "feedback.minWeight": (0.1, (0.0, 1.0)),
    "feedback.maxWeight": (1.0, (0.0, 1.0)),
    "feedback.staleDays": (14, (1, 3650)),
    "feedback.decayRate": (0.005, (0.0, 1.0)),
    "feedback.interval": (10, (1, 10_000)),
    # docs/decisions.md 9: off, because none of them gains.
    "dampening.gravityEnabled": (False, BOOL),
    "dampening.hubEnabled": (False, BOOL),
    "dampening.resolutionEnabled": (False, BOOL),
    "dampening.hubPercentile": (0.9, (0.0, 1.0)),
    "dampening.hubPenalty": (0.7, (0.0, 1.0)),
    "dampening.gravityPenalty": (0.5, (0.0, 1.0)),
    "dampening.resolutionBoost": (1.2, (1.0, 10.0)),  # the document says "multiplier" and gives no range
    # docs/guides/working-memory.md: what is left out is that of the extraction, but for the timeout.
    "synthesis.enabled": (True, BOOL),
    "synthesis.provider": (
        "extraction",
        ("extraction", "auto", "none", "ollama", "openai", "claude-code", "opencode"),
    ),
    "synthesis.model": ("", None),
    "synthesis.endpoint": ("", None),
    "synthesis.apiKeyEnv": ("", None),
    "synthesis.timeout": (120_000, (5000, 300000)),
}

SPECIFIED_ELSEWHERE: dict[str, object] = {
    "embedding.provider": "auto",
    "search.fusion": "convex",
    "search.alpha": 0.5,
    "search.min_score": 0.1,
    "memory.decay_rate": 0.95,
    "retention.intervalMs": 6 * 3_600_000,
    "retention.batchLimit": 500,
    "retention.tombstoneRetentionMs": 30 * _DAY,
    "retention.historyRetentionMs": 180 * _DAY,
    "retention.completedJobRetentionMs": 14 * _DAY,
    "retention.deadJobRetentionMs": 30 * _DAY,
    "gateway.port": 3850,
    "gateway.host": "127.0.0.1",
    "gateway.allowedHosts": (),
    "gateway.confirmTtlMs": 300_000,
    "redaction.memories": True,
    "agents.roster": (),
    "auth.mode": "local",
    "auth.defaultTokenTtlSeconds": 604_800,
    "auth.sessionTokenTtlSeconds": 86_400,
    "auth.rateLimits.forget.max": 30,
    "auth.rateLimits.modify.max": 60,
    "auth.rateLimits.batchForget.max": 5,
    "auth.rateLimits.forceDelete.max": 3,
    "auth.rateLimits.admin.max": 10,
    "auth.rateLimits.recallLlm.max": 60,
    "auth.rateLimits.wrongTokens.max": 60,
    "auth.rateLimits.recallLlm.windowMs": 60_000,
    "hooks.sessionStart.recallLimit": 50,
    "hooks.sessionStart.maxInjectChars": 24_000,
    "hooks.sessionStart.includeIdentity": True,
    "hooks.userPromptSubmit.enabled": True,
    "hooks.userPromptSubmit.recallLimit": 5,
    "hooks.userPromptSubmit.maxInjectChars": 500,
    "hooks.userPromptSubmit.minScore": 0.5,
    "searcher.processes": 0,
    "searcher.queueLimit": 256,
    "searcher.readTimeoutMs": 2000,
    "writer.queueLimit": 256,
    "writer.queueBytes": 8 * 1024 * 1024,
    "writer.batchLimit": 256,
    "writer.busyTimeoutMs": 2000,
    "writer.requestTimeoutMs": 5000,
    "supervision.heartbeatMs": 900,
    "supervision.liveness": 3,
    "supervision.drainMs": 5000,
    "supervision.settledMs": 2000,
    "supervision.backoffMinMs": 100,
    "supervision.backoffMaxMs": 30_000,
    "supervision.budgets.writer.restarts": 5,
    "supervision.budgets.writer.windowMs": 60_000,
    "supervision.budgets.searcher.restarts": 10,
    "supervision.budgets.gateway.restarts": 10,
    "supervision.budgets.retention.restarts": 3,
    "supervision.budgets.retention.windowMs": 600_000,
}

BY_PATH: dict[str, Key] = {key.dotted: key for key in keys()}
PIPELINE = "memory.pipelineV2."


def _allowed(key: Key) -> object:
    if key.field.kind == "true or false":
        return BOOL
    if key.field.choices:
        return key.field.choices
    return None if key.field.low is None else (key.field.low, key.field.high)


@pytest.mark.parametrize("name", SPECIFIED)
def test_a_pipeline_key_has_the_default_and_the_range_of_the_configuration_reference(name: str) -> None:
    key = BY_PATH[PIPELINE + name]
    default, allowed = SPECIFIED[name]
    assert key.default == default
    assert type(key.default) is type(default)
    assert _allowed(key) == allowed


def test_the_pipeline_has_no_key_that_is_not_specified() -> None:
    assert {name.removeprefix(PIPELINE) for name in BY_PATH if name.startswith(PIPELINE)} == set(SPECIFIED)


@pytest.mark.parametrize("name", SPECIFIED_ELSEWHERE)
def test_a_key_outside_the_pipeline_has_the_default_of_the_other_documents(name: str) -> None:
    assert BY_PATH[name].default == SPECIFIED_ELSEWHERE[name]


def test_the_posthog_keys_of_the_reference_are_accepted_and_ignored() -> None:
    assert ((*legacy.PIPELINE, "telemetry"), ("posthogHost", "posthogApiKey")) in legacy.IGNORED_KEYS


def test_every_key_has_a_meaning_and_every_number_both_bounds() -> None:
    for key in keys():
        assert key.field.meaning, key.dotted
        if key.field.kind in {"number", "whole number"}:
            assert key.field.low is not None, key.dotted
            assert key.field.high is not None, key.dotted
            assert isinstance(key.default, int | float), key.dotted
            assert key.field.low <= key.default <= key.field.high, key.dotted


def test_every_older_spelling_maps_to_an_existing_key() -> None:
    assert {".".join(target) for _, target in legacy.MOVED_KEYS} <= set(BY_PATH)
    assert {".".join(target) for target, _ in legacy.ALIASES} <= set(BY_PATH)
    assert len({source for source, _ in legacy.MOVED_KEYS}) == len(legacy.MOVED_KEYS)


def test_every_key_without_effect_exists() -> None:
    places = {".".join(key.path[:end]) for key in keys() for end in range(1, len(key.path) + 1)}
    assert set(WITHOUT_EFFECT) <= places


def test_no_key_is_both_known_and_of_another_program() -> None:
    ours = {key.path[:end] for key in keys() for end in range(1, len(key.path) + 1)}
    ignored = {(*section, name) for section, names in legacy.IGNORED_KEYS for name in names}
    assert not ours & ignored


def test_both_spellings_of_every_name_are_converted_to_each_other() -> None:
    for key in keys():
        for name in key.path:
            assert name in {camel(snake(name)), snake(camel(name))}


def test_the_documentation_contains_exactly_the_generated_reference() -> None:
    text = DOCUMENT.read_text()
    generated = text[text.index(BEGIN) : text.index(END) + len(END)]
    assert generated == reference(), "run: python -m signet_actors.config, and put its output into the document"


def test_the_module_prints_the_reference() -> None:
    ended = subprocess.run([sys.executable, "-m", "signet_actors.config"], capture_output=True, text=True, check=True)
    assert ended.stdout == reference() + "\n"
    assert ended.stderr == ""


def test_the_embedded_model_of_the_schema_is_that_of_the_provider() -> None:
    from signet_actors.config.schema import EMBEDDED_DIMENSIONS, EMBEDDED_MODEL
    from signet_actors.providers import embedded

    assert (EMBEDDED_MODEL, EMBEDDED_DIMENSIONS) == (embedded.MODEL, embedded.DIMENSIONS)
    from signet_actors.config.embedding_models import configured_space
    from signet_actors.config.schema import EmbeddingConfig
    from signet_actors.providers.select import make_embedder

    for config in (
        EmbeddingConfig(),
        EmbeddingConfig(provider="embedded", model=embedded.FAMILY),
        EmbeddingConfig(provider="ollama", dimensions=768),
        EmbeddingConfig(provider="openai", model="some/model", dimensions=10),
    ):
        made = make_embedder(config, {})
        assert made is not None
        assert configured_space(config) == (made.model, made.dimensions), "else all is embedded anew for ever"
    assert configured_space(EmbeddingConfig(provider="none")) is None
