"""The terms in the status of a provider are the documented ones, and each of them occurs.

Source: memory-pipeline.txt "Provider Abstraction", "Embedding Tracker"; architecture.txt "Provider tracker";
docs/decisions.md 14 and 18.
"""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from signet_actors.config.pipeline_schema import ExtractionProvider
from signet_actors.domain.providers import NO_PROVIDER, CircuitState, OutcomeCounts
from signet_actors.errors import ProviderError, ProviderErrorKind
from signet_actors.operations.embeddings import Tracker
from signet_actors.providers.llm.breaker import BreakerPolicy, CircuitBreaker
from signet_actors.providers.llm.cli_provider import ClaudeCodeProvider
from signet_actors.providers.llm.guarded import CallOutcome, CallOutcomes
from signet_actors.providers.llm.ollama import DEFAULT_ENDPOINT, DEFAULT_MODEL

COSTS_AN_ATTEMPT = {"timeout", "http", "malformed"}
COSTS_NONE = {"unavailable", "rate_limited", "refused", "over_budget"}


@pytest.mark.parametrize("kind", list(ProviderErrorKind))
def test_each_kind_of_failure_defines_whether_it_costs_an_attempt(
    kind: ProviderErrorKind,
) -> None:
    assert (kind.value in COSTS_AN_ATTEMPT) is not (kind.value in COSTS_NONE)
    assert ProviderError(kind, "").costs_attempt is (kind.value in COSTS_AN_ATTEMPT)


def test_every_kind_of_failure_is_tested() -> None:
    assert {kind.value for kind in ProviderErrorKind} == COSTS_AN_ATTEMPT | COSTS_NONE


def test_the_circuit_is_closed_then_open_then_half_open_then_closed_again() -> None:
    breaker = CircuitBreaker(BreakerPolicy(failures=1, cooldown_ms=10, max_cooldown_ms=10))
    said = [breaker.state(0).value]
    permit = breaker.admit(0)
    assert permit is not None
    breaker.failed(permit, 0)
    said.append(breaker.state(1).value)
    probe = breaker.admit(10)
    assert probe is not None
    said.append(breaker.state(10).value)
    breaker.succeeded(probe)
    said.append(breaker.state(11).value)
    assert said == ["closed", "open", "half_open", "closed"]
    assert {state.value for state in CircuitState} == set(said)


def test_a_call_is_a_success_a_failure_or_a_timeout_and_the_rate_is_over_all_of_them() -> None:
    assert {outcome.value for outcome in CallOutcome} == {"success", "failure", "timeout"}
    ring = CallOutcomes()
    assert ring.counts.availability_rate == 1.0
    for outcome in (CallOutcome.SUCCESS, CallOutcome.SUCCESS, CallOutcome.FAILURE, CallOutcome.TIMEOUT):
        ring.record(outcome)
    assert ring.counts == OutcomeCounts(total=4, successes=2, failures=1, timeouts=1)
    assert ring.counts.availability_rate == 0.5


def test_the_providers_are_the_documented_ones() -> None:
    assert set(get_args(ExtractionProvider)) == {"auto", "none", "ollama", "openai", "claude-code", "opencode"}
    assert NO_PROVIDER == "none"


def test_the_defaults_of_the_providers_are_the_documented_ones() -> None:
    assert (DEFAULT_ENDPOINT, DEFAULT_MODEL) == ("http://localhost:11434", "qwen3:4b")
    assert ClaudeCodeProvider("", environment={}).model == "haiku"


def test_the_tracker_has_the_documented_fields() -> None:
    told = {field.encode_name for field in msgspec.structs.fields(Tracker)}
    assert {"running", "processed", "failed", "skippedCycles", "lastCycleAt", "queueDepth"} <= told
