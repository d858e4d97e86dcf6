"""Explanations of a recall over HTTP. Source: docs/compatibility.md "Recall"; docs/decisions.md 35."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.live_daemon import Client, LiveDaemon

pytestmark = pytest.mark.system

MISSING = "00000000-0000-7000-8000-000000000000"


def test_each_result_is_explained_on_request(room: Client) -> None:
    memory = room.remember("The staging database listens on port 5433")["id"]
    (row, *_) = room.recall("which port does staging listen on?", explain=True)["results"]
    assert row["id"] == memory
    why = row["explanation"]
    assert {leg["leg"]: leg["rank"] for leg in why["legs"]} == {"keyword": 1, "vector": 1}
    assert (why["terms"], why["missing_terms"]) == (["port", "staging", "listen"], [])
    assert why["base"] + sum(move["points"] for move in why["moves"]) == pytest.approx(row["score"], abs=1e-4)
    assert why["relevance"] == row["relevance"]
    (plain, *_) = room.recall("which port does staging listen on?")["results"]
    assert plain == {name: value for name, value in row.items() if name != "explanation"}


@pytest.mark.parametrize("spelling", ["explainId", "explain_id"])
def test_a_named_memory_says_why_it_is_not_there(room: Client, spelling: str) -> None:
    room.remember("The staging database listens on port 5433")
    other = room.remember("The office was painted blue", project="house")["id"]
    answer = room.recall("staging port", project="elsewhere", **{spelling: other})
    assert answer["explained"]["outcome"] == "filtered"
    assert answer["explained"]["filters"] == ["project"]
    by_get = room.get("/api/memory/search", q="staging port", project="elsewhere", **{spelling: other}).ok()
    assert by_get["explained"] == answer["explained"]
    assert "explained" not in room.recall("staging port")


def test_a_timeline_says_that_it_is_not_explained(room: Client) -> None:
    room.remember("The staging database listens on port 5433")
    answer = room.recall("what happened today?", explain=True, explainId=MISSING)
    assert answer["meta"]["temporal"]["mode"] == "timeline"
    assert "explained" not in answer
    assert "a timeline is in order of its facets and times; explain has no effect" in answer["warnings"]


def test_a_hidden_memory_is_explained_like_a_missing_one(daemon: LiveDaemon) -> None:
    hidden = daemon.agent("dan").remember("The gate code is quince", visibility="private")["id"]
    asking: Any = daemon.agent("eve")
    found, missing = (asking.recall("gate code", explain=True, explainId=key) for key in (hidden, MISSING))
    for answer, key in ((found, hidden), (missing, MISSING)):
        assert answer["explained"].pop("id") == key
        answer["meta"].pop("timings")
    assert found == missing
    assert found["explained"]["outcome"] == "not_found"
