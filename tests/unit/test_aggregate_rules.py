"""The rules of aggregate recalls: what a model may plan and say, and what its calls used together."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.domain.providers import UsageStage
from signet_actors.features.aggregate_recall.rules import (
    BUDGETS,
    MAX_ANSWER_CHARS,
    MAX_EVIDENCE,
    MAX_QUERY_CHARS,
    idempotency_key,
    merged,
    parse_answer,
    parse_plan,
    shared_project,
    usage_of,
    visibility_of,
)


def test_the_budgets_are_the_documented_ones() -> None:
    assert BUDGETS == {"small": 3, "medium": 5, "large": 8}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ('{"queries": ["one more", "One  more?", " other "]}', ("one more", "other")),
        ('```json\n{"queries": ["fenced"]}\n```', ("fenced",)),
        ('["an array"]', ("an array",)),
        ('{"queries": ["The query?", "the  QUERY", "", "x", 7, null, ["y"], {"query": "z"}]}', ()),
        ('{"queries": "one more"}', ()),
        ('{"queries": {"a": "b"}}', ()),
        ("nothing of the kind", ()),
        ("", ()),
    ],
)
def test_planned_queries_are_few_distinct_and_not_the_query(answer: str, expected: tuple[str, ...]) -> None:
    assert parse_plan(answer, "the query", 5) == expected


@given(st.lists(st.text(max_size=2 * MAX_QUERY_CHARS), max_size=20), st.integers(0, 7))
def test_a_plan_is_bounded(queries: list[str], most: int) -> None:
    planned = parse_plan(json.dumps({"queries": queries}), "the query", most)
    assert len(planned) <= most
    assert all(0 < len(query) <= MAX_QUERY_CHARS for query in planned)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ('{"answer": "Yes.", "sources": [3, 1, 1]}', ("Yes.", (1, 3))),
        ('{"answer": " Yes. "}', ("Yes.", ())),
        ('{"answer": "Yes.", "sources": [0, -1, 4, true, "2", 2.0, null, [1]]}', ("Yes.", ())),
        ('{"answer": "Yes.", "sources": {"1": 1}}', ("Yes.", ())),
        ('<think>{"answer": "No."}</think>{"answer": "Yes."}', ("Yes.", ())),
        ('{"answer": "  "}', (None, ())),
        ('{"answer": ["Yes."]}', (None, ())),
        ('["Yes."]', (None, ())),
        ("Yes.", (None, ())),
        ("", (None, ())),
    ],
)
def test_an_answer_cites_only_what_was_shown(answer: str, expected: Any) -> None:
    assert parse_answer(answer, 3) == expected


def test_a_long_answer_is_cut() -> None:
    text, _ = parse_answer(json.dumps({"answer": "x" * 10_000}), 1)
    assert text is not None
    assert (len(text), text[-1]) == (MAX_ANSWER_CHARS, "\u2026")


def test_evidence_has_each_memory_once_the_best_of_each_recall_first() -> None:
    found = [["a", "b", "c"], ["b", "d"], [], ["e"]]
    assert merged(found, found) == ["a", "b", "e", "d", "c"]
    many = [[f"{number}-{rank}" for rank in range(100)] for number in range(8)]
    assert len(merged(many, many)) == MAX_EVIDENCE


def test_a_key_depends_on_agent_query_project_budget_and_the_set_of_sources() -> None:
    key = idempotency_key("ada", "which port?", "/p", "small", ["a", "b"])
    assert key == idempotency_key("ada", " which  port?\n", "/p", "small", ["b", "a"])
    others = [
        idempotency_key("bob", "which port?", "/p", "small", ["a", "b"]),
        idempotency_key("ada", "which host?", "/p", "small", ["a", "b"]),
        idempotency_key("ada", "which port?", None, "small", ["a", "b"]),
        idempotency_key("ada", "which port?", "/p", "large", ["a", "b"]),
        idempotency_key("ada", "which port?", "/p", "small", ["a"]),
    ]
    assert len({key, *others}) == 6


def test_an_answer_is_global_only_if_all_sources_are() -> None:
    assert visibility_of(["global", "global"]) == "global"
    for visibility in ("private", "archived"):
        assert visibility_of(["global", visibility]) == "private"


def test_an_answer_has_a_project_only_if_its_sources_share_it() -> None:
    assert shared_project(["/p", "/p"]) == "/p"
    assert shared_project(["/p", None]) is shared_project(["/p", "p"]) is shared_project([None, None]) is None


def test_a_total_lacks_what_one_call_does_not_report() -> None:
    planning = UsageStage("planning", "ollama/m", input_tokens=10, output_tokens=2, total_cost=0.5, total_duration_ms=3)
    synthesis = UsageStage("synthesis", "ollama/m", input_tokens=20, total_cost=0.25, total_duration_ms=4)
    usage = usage_of([planning, synthesis])
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (30, None, None)
    assert (usage.total_cost, usage.total_duration_ms, usage.stages) == (0.75, 7, [planning, synthesis])
    assert usage_of([]) is None
