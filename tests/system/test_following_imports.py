"""Searchers follow a large import by themselves, and say what is not completely indexed yet."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon

pytestmark = pytest.mark.system

LINES = 700
REQUESTS = 6


@pytest.fixture(scope="module")
def daemon() -> Iterator[LiveDaemon]:
    with live_daemon() as running:
        yield running
        assert running.faults() == []


def batch(number: int) -> bytes:
    lines = (f"batch {number} line {line} about subject{number * LINES + line}" for line in range(LINES))
    return b"".join(json.dumps({"content": text}).encode() + b"\n" for text in lines)


def test_an_import_is_indexed_without_any_query(daemon: LiveDaemon) -> None:
    agent = daemon.api
    for number in range(REQUESTS):
        answer = agent.post("/api/memory/import", batch(number))
        assert answer.ok()["imported"] == LINES
        found = agent.recall(f"subject{number * LINES + LINES - 1}")
        assert found["results"][0]["content"].startswith(f"batch {number} line {LINES - 1} ")  # found at once
        told = found["meta"].get("indexing")
        assert told is None or told["pending"] > 0
    imported_at = daemon.health()["uptime"]

    def has_followed() -> bool:
        """A heartbeat of some seconds later names nothing that is not indexed."""
        health = daemon.health()
        return bool(health["uptime"] > imported_at + 3 and health["indexing"] == {"pending": 0})

    eventually(has_followed, within_s=60)
    assert daemon.health()["status"] == "healthy"
    assert "indexing" not in agent.recall("what about subject7")["meta"]
