"""Relevance over HTTP, with the embedded model. Source: docs/quality.md "Relevance"; docs/compatibility.md "Recall"."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.live_daemon import Client, live_daemon

pytestmark = pytest.mark.system

MEMORIES = (
    "The staging database listens on port 5433",
    "The churn model was retrained on Sunday, its score is 0.83",
    "User prefers vim keybindings in every editor",
    "Ticket KA-6 broke the pre-compaction hook",
    "Nora adopted a puppy named Biscuit last summer",
)
THRESHOLD = 0.5


@pytest.fixture(scope="module")
def filled() -> Iterator[Client]:
    """A store of its own: how rare a word is counts over all memories of a store."""
    with live_daemon() as daemon:
        for text in MEMORIES:
            daemon.api.remember(text)
        yield daemon.api


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("which port does the staging database use?", MEMORIES[0]),
        ("when was the churn model retrained?", MEMORIES[1]),
        ("which keybindings does the user prefer?", MEMORIES[2]),
        ("KA-6", MEMORIES[3]),
    ],
)
def test_a_memory_that_answers_is_relevant(filled: Client, query: str, expected: str) -> None:
    (first, *_) = filled.recall(query)["results"]
    assert first["content"] == expected
    assert THRESHOLD <= first["relevance"] <= 1


@pytest.mark.parametrize(
    "query",
    ["latest score of the football world cup", "how tall is the Eiffel Tower?", "recipe for banana bread without eggs"],
)
@pytest.mark.parametrize("spelling", ["min_relevance", "minRelevance"])
def test_an_unrelated_question_has_no_relevant_memory(filled: Client, query: str, spelling: str) -> None:
    assert all(row["relevance"] < THRESHOLD for row in filled.recall(query)["results"])
    assert filled.recall(query, **{spelling: THRESHOLD})["results"] == []
    assert filled.get("/api/memory/search", q=query, **{spelling: THRESHOLD}).ok()["results"] == []


def test_min_relevance_is_a_number_in_any_range(filled: Client) -> None:
    filled.post("/api/memory/recall", {"query": "x", "min_relevance": "high"}).refused(400, field="min_relevance")
    everything = filled.recall("staging port")["results"]
    assert filled.recall("staging port", min_relevance=-1)["results"] == everything
    best = [row for row in everything if row["relevance"] >= 1]
    assert filled.recall("staging port", min_relevance=2)["results"] == best
