"""Classes of operations, quantiles, and the documented codes of errors. Source: architecture.txt "Analytics"."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from signet_actors.domain.jobs import EMBED, EXTRACT
from signet_actors.errors import NoDecision, ProviderError, ProviderErrorKind, SignetError, UnusableAnswer
from signet_actors.features.analytics.api import ProjectPrompts, PromptCounts
from signet_actors.operations.pipeline import LatencyReport

MAX_ERRORS: Final = 500
MAX_SAMPLES: Final = 1000
REMEMBER: Final = "remember"
RECALL: Final = "recall"
MUTATE: Final = "mutate"
OTHER: Final = "other"
CLASSES: Final = (REMEMBER, RECALL, MUTATE, OTHER)
MAX_PROJECTS: Final = 20
CHARS_OF_TOKEN: Final = 4
"""Characters of English text for each token, about."""
CLASS_OF: Final[Mapping[str, str]] = {
    **dict.fromkeys(("memories.remember", "hooks.remember", "codex.write_note"), REMEMBER),
    **dict.fromkeys(("memories.recall", "memories.search", "memories.legacy_search", "hooks.recall"), RECALL),
    **dict.fromkeys(
        (
            *("memories.patch", "memories.delete", "memories.recover", "memories.modify", "memories.forget"),
            *("reviews.approve", "reviews.reject", "runs.undo"),
        ),
        MUTATE,
    ),
}
"""The class of an operation by its name; of all others it is ``OTHER``."""

EXTRACTION: Final = "extraction"
DECISION: Final = "decision"
EMBEDDING: Final = "embedding"
MUTATION: Final = "mutation"
CONNECTOR: Final = "connector"
MESSAGES: Final[Mapping[str, tuple[str, str]]] = {
    "EXTRACTION_TIMEOUT": (EXTRACTION, "The model did not extract facts in time"),
    "EXTRACTION_PARSE_FAIL": (EXTRACTION, "The model's answer with facts could not be used"),
    "DECISION_TIMEOUT": (DECISION, "The model did not decide on a fact in time"),
    "DECISION_INVALID": (DECISION, "The model's decision on a fact could not be used"),
    "EMBEDDING_PROVIDER_DOWN": (EMBEDDING, "The embedding model could not be used"),
    "EMBEDDING_TIMEOUT": (EMBEDDING, "The embedding model did not answer in time"),
    "MUTATION_CONFLICT": (
        MUTATION,
        "A change was refused, because the memory had changed or another one says the same",
    ),
    "MUTATION_SCOPE_DENIED": (MUTATION, "A change was refused, because the caller may not make it"),
    "CONNECTOR_SYNC_FAIL": (CONNECTOR, "A source could not be read"),
    "CONNECTOR_AUTH_FAIL": (CONNECTOR, "A source refused the daemon"),
}
"""Stage and message of each code. The message is fixed, so that no text of a memory or of a model is stored."""


class PromptRow(NamedTuple):
    """Searches of a project with the same ``skipped``."""

    project: str | None
    skipped: str | None
    prompts: int
    given: int
    characters: int


def job_error(kind: str, error: SignetError) -> str | None:
    """Return the code of an attempt of a job that failed with this error, None if none is documented."""
    if isinstance(error, NoDecision):
        return "DECISION_TIMEOUT" if error.timed_out else "DECISION_INVALID"
    timed_out = isinstance(error, ProviderError) and error.kind is ProviderErrorKind.TIMEOUT
    malformed = isinstance(error, UnusableAnswer) or (
        isinstance(error, ProviderError) and error.kind is ProviderErrorKind.MALFORMED
    )
    if kind == EXTRACT:
        return "EXTRACTION_TIMEOUT" if timed_out else "EXTRACTION_PARSE_FAIL" if malformed else None
    return embedding_error(timed_out=timed_out) if kind == EMBED and isinstance(error, ProviderError) else None


def embedding_error(*, timed_out: bool) -> str:
    """Return the code of a text that got no vector."""
    return "EMBEDDING_TIMEOUT" if timed_out else "EMBEDDING_PROVIDER_DOWN"


def refused_change(class_of_operation: str, status: int) -> str | None:
    """Return the code of a change of a memory that was refused with this HTTP status, None for other responses."""
    if class_of_operation not in {REMEMBER, MUTATE}:
        return None
    return {409: "MUTATION_CONFLICT", 403: "MUTATION_SCOPE_DENIED"}.get(status)


def counted(rows: Iterable[PromptRow]) -> list[ProjectPrompts]:
    """Return what came of the prompts of each project, the one with most prompts first."""
    found: dict[str | None, ProjectPrompts] = {}
    for row in rows:
        add(found.setdefault(row.project, ProjectPrompts(project=row.project)), row)
    return sorted((one for one in found.values() if one.prompts), key=lambda one: (-one.prompts, one.project or ""))


def add(counts: PromptCounts, row: PromptRow) -> None:
    """Add searches of the same outcome."""
    counts.prompts += row.prompts
    counts.characters += row.characters
    counts.tokens = counts.characters // CHARS_OF_TOKEN
    if row.skipped is None:
        counts.given += row.given
        counts.nothing += row.prompts - row.given
    elif row.prompts:
        counts.skipped[row.skipped] = counts.skipped.get(row.skipped, 0) + row.prompts


def latency_of(samples_ms: Sequence[float]) -> LatencyReport:
    """Return quantiles by nearest rank, number and mean of durations in milliseconds."""
    count = len(samples_ms)
    if not count:
        return LatencyReport()
    ordered = sorted(samples_ms)
    p50, p95, p99 = (round(ordered[math.ceil(count * share) - 1], 2) for share in (0.5, 0.95, 0.99))
    return LatencyReport(p50, p95, p99, count, round(sum(ordered) / count, 2))
