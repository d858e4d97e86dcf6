"""Rules of aggregate recalls: budgets, what a model's answers mean, the key of an answer, and who may read it.

Source: memory-api.txt "POST /api/memory/recall"; docs/guides/aggregate-recall.md; docs/decisions.md 19.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from itertools import zip_longest
from typing import Any, Final, TypeVar

import msgspec

from signet_actors.domain.extraction.facts import short
from signet_actors.domain.extraction.llm_output import read_json
from signet_actors.domain.extraction.prompts import MAX_RESULTS
from signet_actors.domain.normalization import collapsed, sanitize_text
from signet_actors.domain.providers import AggregateUsage, UsageStage

BUDGETS: Final = {"small": 3, "medium": 5, "large": 8}
"""Recalls of each budget, the first one included."""
MAX_EVIDENCE: Final = MAX_RESULTS
"""Memories from which an answer is made. The prompt shows a part of each."""
MAX_QUERY_CHARS: Final = 300
MAX_ANSWER_CHARS: Final = 2_000
_LEAST_QUERY_CHARS: Final = 2

T = TypeVar("T")


def parse_plan(answer: str | bytes, query: str, most: int) -> tuple[str, ...]:
    """Return at most ``most`` further queries, each once and none like ``query``. Never raises."""
    value = read_json(answer, ("queries",)).value
    found = value.get("queries") if isinstance(value, dict) else value
    queries: dict[str, str] = {}
    for each in found if isinstance(found, list) else ():
        text = short(sanitize_text(each), MAX_QUERY_CHARS) if isinstance(each, str) else ""
        if len(text) >= _LEAST_QUERY_CHARS and len(queries) < most and _folded(text) != _folded(query):
            queries.setdefault(_folded(text), text)
    return tuple(queries.values())


def parse_answer(answer: str | bytes, shown: int) -> tuple[str | None, tuple[int, ...]]:
    """Return the text, None if there is none, and which of the ``shown`` results, from 1, it cites. Never raises."""
    value = read_json(answer, ("answer",)).value
    if not isinstance(value, dict) or not isinstance(value.get("answer"), str):
        return None, ()
    text, cited = sanitize_text(value["answer"])[: 2 * MAX_ANSWER_CHARS].strip(), value.get("sources")
    text = text if len(text) <= MAX_ANSWER_CHARS else text[: MAX_ANSWER_CHARS - 1] + "\u2026"
    known = (each for each in cited if isinstance(each, int) and 1 <= each <= shown) if isinstance(cited, list) else ()
    return text or None, tuple(sorted({int(each) for each in known if not isinstance(each, bool)}))


def merged(found: Iterable[Sequence[T]], ids: Iterable[Sequence[str]]) -> list[T]:
    """Return the rows of several recalls, each once: the best of each recall, then the second best of each, ..."""
    rows: dict[str, T] = {}
    pairs = [list(zip(of_one, named, strict=True)) for of_one, named in zip(found, ids, strict=True)]
    for rank in zip_longest(*pairs):
        for row, row_id in filter(None, rank):
            rows.setdefault(row_id, row)
    return list(rows.values())[:MAX_EVIDENCE]


def idempotency_key(agent_id: str, query: str, project: str | None, budget: str, source_ids: Collection[str]) -> str:
    """Return what equal requests have in common that found the same memories."""
    parts = (agent_id, collapsed(query), project, budget, sorted(source_ids))
    return f"aggregate:{hashlib.sha256(msgspec.json.encode(parts)).hexdigest()}"


def visibility_of(sources: Iterable[str]) -> str:
    """Return ``global`` if all sources, given by their visibility, are global memories."""
    return "global" if set(sources) == {"global"} else "private"


def shared_project(projects: Sequence[str | None]) -> str | None:
    """Return the project that all sources have.

    Departs: not that of the filter, which also finds memories of the project under another name: a token for exactly
    this name must not read what it says of those.
    """
    return projects[0] if len(set(projects)) == 1 else None


def usage_of(stages: Sequence[UsageStage]) -> AggregateUsage | None:
    """Return what the calls used together, None without a call. A sum that lacks a part is no sum."""
    if not stages:
        return None

    def total(name: str) -> Any:
        values = [getattr(stage, name) for stage in stages]
        return None if None in values else sum(values)

    names = [name for name in AggregateUsage.__struct_fields__ if name != "stages"]
    return AggregateUsage(**{name: total(name) for name in names}, stages=list(stages))


def _folded(query: str) -> str:
    return collapsed(query).casefold().rstrip(" ?!.")
