"""Memories that are so long that an answer with many of them does not fit into a message of the bus.

Source: docs/reliability.md R13, R24; docs/messaging.md rule 19.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.live_daemon import LiveDaemon, live_daemon

pytestmark = pytest.mark.system

COUNT = 10
LONG = "staging database port {} " * 40_000


@pytest.fixture(scope="module")
def daemon() -> Iterator[LiveDaemon]:
    with live_daemon() as daemon:
        for number in range(COUNT):
            stored = daemon.api.remember(f"The staging database of region {number} listens on port {5000 + number}")
            patch = {"content": LONG.format(*[number] * 40_000)[:990_000], "reason": "made long"}
            daemon.api.request("PATCH", f"/api/memory/{stored['id']}", patch).ok()
        yield daemon


def test_an_oversized_list_is_refused_at_once_with_the_remedy(daemon: LiveDaemon) -> None:
    refusal = daemon.api.get("/api/memories").refused(413, code="payload_too_large")
    assert "limit" in refusal["error"]
    assert len(daemon.api.get("/api/memories?limit=5").ok()["memories"]) == 5


def test_an_oversized_search_is_refused_at_once(daemon: LiveDaemon) -> None:
    daemon.api.get("/memory/search?q=staging&limit=10").refused(413, code="payload_too_large")


def test_stored_embeddings_are_in_shorter_pages(daemon: LiveDaemon) -> None:
    found, more = [], True
    while more:
        page = daemon.api.get("/api/embeddings", limit=50, offset=len(found)).ok()
        assert page["count"] == len(page["embeddings"]) > 0
        found += [row["id"] for row in page["embeddings"]]
        more = page["hasMore"]
    assert len(set(found)) == len(found) == page["total"] >= COUNT


def test_a_recall_truncates_long_memories(daemon: LiveDaemon) -> None:
    results = daemon.api.recall("staging database port", limit=10)["results"]
    assert len(results) == COUNT
    for result in results:
        assert result["truncated"] is True
        assert len(result["content"]) < 600
        assert result["contentLength" if "contentLength" in result else "content_length"] > 900_000


def test_an_oversized_history_is_refused_and_a_shorter_one_is_not(daemon: LiveDaemon) -> None:
    stored = daemon.api.remember("The memory that is changed many times")
    for number in range(6):
        patch = {"content": f"{number} " + "x" * 990_000, "reason": "made long"}
        daemon.api.request("PATCH", f"/api/memory/{stored['id']}", patch).ok()
    daemon.api.get(f"/api/memory/{stored['id']}/history").refused(413, code="payload_too_large")
    assert daemon.api.get(f"/api/memory/{stored['id']}/history?limit=1").ok()["count"] == 1


def test_parts_for_which_a_response_has_no_room_are_named_and_left_out(daemon: LiveDaemon) -> None:
    text = " ".join(f"The mail rollout reached stage number {number} without any trouble." for number in range(60))
    ids = daemon.api.post("/api/memory/remember", {"content": text}).ok()["ids"]
    for number, memory_id in enumerate(ids[:9]):
        patch = {"content": f"part {number} " + "x" * 990_000, "reason": "made long"}
        daemon.api.request("PATCH", f"/api/memory/{memory_id}", patch).ok()
    answer = daemon.api.get(f"/api/memory/{ids[8]}", withParts="true").ok()
    assert [part["id"] for part in answer["parts"]] == ids
    assert answer["content"].startswith("part 8 xxx")
    missing = [part["id"] for part in answer["parts"] if part["content"] is None]
    assert ids[8] in missing
    assert f"{len(missing)} contents are left out" in answer["warnings"][0]
