"""``signet recall --explain`` and ``--explain-id`` with a scripted daemon. Source: docs/cli.md "Memories"."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from click.testing import Result

from tests.support.scripted_daemon import ScriptedDaemon

if TYPE_CHECKING:
    from collections.abc import Callable

ID = "6f1c3b52-6c52-4d10-9d6e-4a7e7a2f0b11"
EXPLANATION: dict[str, Any] = {
    "legs": [
        {"leg": "keyword", "rank": 3, "score": 5.124},
        {"leg": "vector", "rank": None, "score": 0.6125},
    ],
    "terms": ["port", "heron"],
    "missing_terms": ["production"],
    "similar_terms": ["product"],
    "base": 0.8,
    "moves": [{"stage": "subject", "points": 0.15}, {"stage": "question", "points": -0.1}],
    "score": 0.85,
    "coverage": 0.71,
    "standing": 2.34,
    "relevance": 0.93,
    "because": ["It has 2 of 3 words that were asked for: port, heron."],
}
ROW: dict[str, Any] = {"id": ID, "content": "heron listens\non port 7420", "score": 0.85, "explanation": EXPLANATION}


def answer(daemon: ScriptedDaemon, results: list[dict[str, Any]], **fields: Any) -> None:
    daemon.on(
        "POST", "/api/memory/recall", {"results": results, "query": "q", "method": "hybrid", "meta": {}, **fields}
    )


def test_each_result_is_printed_with_the_way_of_its_score(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    answer(daemon, [ROW])
    result = signet("recall", "which port?", "--explain")
    assert (result.exit_code, daemon.asked[0].body) == (0, {"query": "which port?", "limit": 10, "explain": True})
    assert result.stdout.splitlines() == [
        "1. heron listens on port 7420",
        f"   {ID}",
        "   It has 2 of 3 words that were asked for: port, heron.",
        "   found by: keyword (rank 3, BM25 5.12), vector (not among its best, cosine 0.613)",
        "   score: 0.800 by words and meaning +0.150 subject -0.100 question = 0.850",
        "   relevance: 0.930: 71% of the words by weight, +2.3 spreads from unrelated memories",
    ]


def test_a_named_memory_is_told_in_a_sentence_also_without_results(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    why = "it is left out by the filter type, project"
    answer(daemon, [], explained={"id": ID, "outcome": "filtered", "why": why, "explanation": None})
    result = signet("recall", "q", "--explain-id", ID)
    assert (result.exit_code, result.stderr) == (0, f"Nothing found.\n{ID}: {why}\n")
    assert daemon.asked[0].body["explainId"] == ID


def test_on_a_pipe_the_rows_of_the_results_are_not_mixed_with_the_sentence_on_a_named_memory(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    answer(daemon, [ROW], explained={"id": ID, "outcome": "returned", "why": "it is there", "explanation": EXPLANATION})
    result = signet("recall", "q", "--explain-id", ID)
    assert [len(row.split("\t")) for row in result.stdout.splitlines()] == [6]
    assert (
        f"{ID}: it is there\n   It has 2 of 3 words that were asked for: port, heron.\n   found by: " in result.stderr
    )


def test_terms_of_a_query_do_not_control_the_terminal(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    evil = "a\x1b]0;owned\x07b\u202ec"
    row = {
        **ROW,
        "content": evil,
        "explanation": {**EXPLANATION, "because": [evil]},
    }
    answer(daemon, [row], explained={"id": evil, "outcome": "filtered", "why": evil, "explanation": EXPLANATION})
    result = signet("recall", "q", "--explain", "--explain-id", ID)
    assert result.exit_code == 0
    assert not set(result.stdout) & {"\x1b", "\x07", "\u202e"}


def test_json_is_the_response(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    answer(daemon, [ROW])
    result = signet("recall", "q", "--explain", "--json")
    assert json.loads(result.stdout)["results"] == [ROW]
