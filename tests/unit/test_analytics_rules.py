"""The documented quantiles and error codes."""

from __future__ import annotations

import pytest

from signet_actors.domain.jobs import EMBED, EXTRACT, SUMMARIZE
from signet_actors.errors import NoDecision, ProviderError, ProviderErrorKind, SignetError, Unavailable, UnusableAnswer
from signet_actors.features.analytics.rules import CLASS_OF, MESSAGES, job_error, latency_of, refused_change
from signet_actors.operations.pipeline import LatencyReport
from signet_actors.operations.registry import OPERATIONS


def test_quantiles_are_samples_and_the_mean_is_exact() -> None:
    assert latency_of([float(number) for number in range(100, 0, -1)]) == LatencyReport(50, 95, 99, 100, 50.5)
    assert latency_of([0.125]) == LatencyReport(0.12, 0.12, 0.12, 1, 0.12)
    assert latency_of([]) == LatencyReport()


def failed(kind: ProviderErrorKind) -> ProviderError:
    return ProviderError(kind, "the words of the provider")


@pytest.mark.parametrize(
    ("kind", "error", "code"),
    [
        (EXTRACT, failed(ProviderErrorKind.TIMEOUT), "EXTRACTION_TIMEOUT"),
        (EXTRACT, failed(ProviderErrorKind.MALFORMED), "EXTRACTION_PARSE_FAIL"),
        (EXTRACT, UnusableAnswer("nothing usable"), "EXTRACTION_PARSE_FAIL"),
        (EXTRACT, failed(ProviderErrorKind.OVER_BUDGET), None),
        (EXTRACT, NoDecision("no reply", timed_out=True), "DECISION_TIMEOUT"),
        (EXTRACT, NoDecision("not JSON", timed_out=False), "DECISION_INVALID"),
        (EMBED, failed(ProviderErrorKind.TIMEOUT), "EMBEDDING_TIMEOUT"),
        (EMBED, failed(ProviderErrorKind.UNAVAILABLE), "EMBEDDING_PROVIDER_DOWN"),
        (EMBED, Unavailable("the writer is away"), None),
        (SUMMARIZE, failed(ProviderErrorKind.TIMEOUT), None),
    ],
)
def test_an_attempt_that_failed_has_the_code_of_its_stage(kind: str, error: SignetError, code: str | None) -> None:
    assert job_error(kind, error) == code
    assert code is None or code in MESSAGES


def test_only_refused_changes_of_memories_are_errors_of_changes() -> None:
    assert refused_change("mutate", 409) == "MUTATION_CONFLICT"
    assert refused_change("remember", 403) == "MUTATION_SCOPE_DENIED"
    assert refused_change("mutate", 404) is None
    assert refused_change("recall", 403) is None
    assert refused_change("other", 409) is None


def test_each_class_names_operations_that_exist() -> None:
    assert CLASS_OF.keys() <= {operation.name for operation in OPERATIONS}
