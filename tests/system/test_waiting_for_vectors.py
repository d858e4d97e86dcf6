"""A remember with a vector from a server: ``embedded`` is true if it is stored, and the wait is limited.

Source: docs/decisions.md 23.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon
from tests.support.scripted_provider import ScriptedProvider

pytestmark = pytest.mark.system

LONG_MS = 30_000
HANG_GUARD_S = 60
AT_ONCE_S = 15
"""Half of the longest budget: a request that had waited would take longer."""


def config_of(provider: ScriptedProvider, wait_ms: int, pipeline: str = "") -> str:
    return f"""
embedding: {{provider: ollama, model: vectors, dimensions: 8, endpoint: "{provider.url}", waitMs: {wait_ms}}}
gateway: {{requestTimeoutMs: 120000}}
memory:
  pipelineV2:
    enabled: false
{pipeline}
"""


@contextmanager
def room(wait_ms: int, pipeline: str = "") -> Iterator[tuple[LiveDaemon, ScriptedProvider]]:
    """A daemon whose vectors come from a server; the pipeline itself is off."""
    with (
        ScriptedProvider(models=("vectors",)) as provider,
        live_daemon(config=config_of(provider, wait_ms, pipeline)) as daemon,
    ):
        if not pipeline:
            wait_for_extractor(daemon)
        yield daemon, provider
        if daemon.process is not None and daemon.process.poll() is None:
            assert daemon.stop() == 0
        assert daemon.broken_invariants() == []


def wait_for_extractor(daemon: LiveDaemon) -> None:
    """The extractor starts after the daemon is ready; until then no request waits for a vector."""
    up = lambda: daemon.every_process().get("extractor", {}).get("state") == "up"  # noqa: E731
    eventually(up, within_s=HANG_GUARD_S, what="the extractor is up")


def vectors(daemon: LiveDaemon) -> int:
    """How many memories have one."""
    return int(daemon.read("SELECT count(*) FROM memories WHERE embedding_seq IS NOT NULL")[0][0])


def at_once(daemon: LiveDaemon, content: str) -> Any:
    """The answer to a remember that did not wait."""
    began = time.monotonic()
    answer = daemon.api.remember(content)
    assert time.monotonic() - began < AT_ONCE_S
    return answer


def is_in_state(daemon: LiveDaemon, status: str) -> dict[str, Any] | None:
    """The answer of health if it has this status and ``signet status`` would say the same."""
    health: dict[str, Any] = daemon.api.get("/health").json
    shown = daemon.api.get("/api/status").json
    same = shown["health"]["status"] == health["status"] and shown["detail"] == health["detail"]
    return health if same and health["status"] == status else None


def test_the_vector_of_a_fast_server_is_stored_and_found_when_the_remember_is_answered() -> None:
    with room(LONG_MS) as (daemon, provider):
        provider.spoil_vectors = lambda rows: [[1.0] * 8 for _ in rows]  # everything means the same
        answer = daemon.api.remember("The staging port is 5433")
        assert answer["embedded"] is True
        assert vectors(daemon) == 1
        assert daemon.api.recalled("harbour") == [answer["id"]], "no word of it is there: found by its vector"
        texts = [text for asked in provider.asked for text in asked.texts]
        assert texts == ["The staging port is 5433", "harbour"], "a server that costs money is asked once"

        changed = daemon.api.request(
            "PATCH", f"/api/memory/{answer['id']}", {"content": "The staging port is 5434", "reason": "moved"}
        ).ok()
        assert (changed["contentChanged"], changed["embedded"]) == (True, True)
        second = daemon.api.remember("Traefik terminates TLS")["id"]
        patches = [
            {"id": answer["id"], "content": "The staging port is 5435"},
            {"id": second, "content": "Caddy terminates TLS"},
            {"id": second, "tags": ["proxy"]},
        ]
        results = daemon.api.post("/api/memory/modify", {"reason": "moved", "patches": patches}).ok()["results"]
        assert [result.get("embedded") for result in results] == [True, True, None]
        assert vectors(daemon) == 2


def test_concurrent_remembers_share_calls_and_are_all_answered() -> None:
    with room(LONG_MS) as (daemon, provider), ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(daemon.api.remember, [f"Row {number} of the ledger" for number in range(6)]))
        assert [answer["embedded"] for answer in answers] == [True] * 6
        assert sorted(text for asked in provider.asked for text in asked.texts) == [
            f"Row {number} of the ledger" for number in range(6)
        ]


def test_a_slow_server_delays_a_remember_by_the_wait_budget_only() -> None:
    with room(300) as (daemon, provider):
        provider.stuck, provider.drip_s = "slow_drip", 1.0
        headers = {"Idempotency_Key": "k1"}
        body = {"content": "The staging port is 5433"}
        first = daemon.api.post("/api/memory/remember", body, **headers).ok()
        assert first["embedded"] is False
        assert vectors(daemon) == 0
        assert first["id"] in daemon.api.recalled("staging port"), "found by its words meanwhile"
        provider.stuck, provider.drip_s = None, 0.0
        eventually(lambda: vectors(daemon) == 1, within_s=HANG_GUARD_S, what="the vector")
        again = daemon.api.post("/api/memory/remember", body, **headers).ok()
        assert again == {**first, "embedded": True}, "a repeated answer says what is true now"
        assert daemon.api.remember("The staging port is 5433")["embedded"] is True, "a duplicate, too"
        status = daemon.api.get("/api/embeddings/status").ok()
        assert status["tracker"]["queueDepth"] == 0
        eventually(
            lambda: daemon.api.remember(f"Said at {time.monotonic_ns()}")["embedded"],
            within_s=HANG_GUARD_S,
            what="remembers wait again",
        )


def test_with_a_hung_server_only_the_first_remember_waits() -> None:
    with room(300) as (daemon, provider):
        provider.stuck = "hang"
        assert at_once(daemon, "The first one waits")["embedded"] is False
        provider.await_asked(1)
        answers = [at_once(daemon, f"The others do not: {number}") for number in range(20)]
        assert [answer["embedded"] for answer in answers] == [False] * 20
        assert len(provider.asked) == 1, "nobody but the job asks the server"
        provider.stuck = None
        provider.die()
        provider.revive()
        eventually(lambda: vectors(daemon) == 21, within_s=HANG_GUARD_S, what="all vectors")


def test_a_remember_does_not_wait_for_a_server_known_to_be_down() -> None:
    with room(LONG_MS) as (daemon, provider):
        provider.stuck = "http_503"
        assert at_once(daemon, "Whoever waits is told that the call failed")["embedded"] is False
        assert [at_once(daemon, f"While it is left alone: {number}")["embedded"] for number in range(10)] == [
            False
        ] * 10
        health = eventually(lambda: is_in_state(daemon, "degraded"), within_s=HANG_GUARD_S, what="the outage in health")
        assert "new memories are found by their words only" in health["detail"]
        assert daemon.api.get("/health/ready").status == 200
        provider.stuck = None
        eventually(lambda: vectors(daemon) == 11, within_s=HANG_GUARD_S, what="all vectors")
        eventually(lambda: is_in_state(daemon, "healthy"), within_s=HANG_GUARD_S, what="health after the outage")
        assert at_once(daemon, "Nothing was in vain, so this waits at once")["embedded"] is True


def test_without_a_wait_budget_no_remember_waits_until_a_reload_sets_one() -> None:
    with room(0) as (daemon, provider):
        assert at_once(daemon, "The first one")["embedded"] is False
        eventually(lambda: vectors(daemon) == 1, within_s=HANG_GUARD_S, what="its vector")
        daemon.configure(config_of(provider, LONG_MS))
        assert daemon.process is not None
        daemon.process.send_signal(signal.SIGHUP)
        eventually(
            lambda: daemon.api.remember(f"Said at {time.monotonic_ns()}")["embedded"],
            within_s=HANG_GUARD_S,
            what="remembers wait",
        )


def test_without_embedding_a_remember_is_answered_at_once() -> None:
    with room(LONG_MS, pipeline="    embeddingTracker: {enabled: false}") as (daemon, provider):
        assert at_once(daemon, "The staging port is 5433")["embedded"] is False
        assert provider.asked == []


def test_a_stop_answers_waiting_remembers_and_the_vector_is_computed_after_the_next_start() -> None:
    with room(LONG_MS) as (daemon, provider), ThreadPoolExecutor(1) as pool:
        provider.stuck = "hang"
        waiting = pool.submit(at_once, daemon, "The staging port is 5433")
        provider.await_asked(1)
        assert daemon.stop() == 0
        answer = waiting.result(timeout=HANG_GUARD_S)
        assert answer["embedded"] is False
        provider.stuck = None
        daemon.start()
        eventually(lambda: vectors(daemon) == 1, within_s=HANG_GUARD_S, what="the vector")


def test_a_crash_of_the_extractor_delays_a_remember_by_the_wait_budget_only() -> None:
    with room(1500) as (daemon, provider), ThreadPoolExecutor(1) as pool:
        provider.stuck = "hang"
        waiting = pool.submit(daemon.api.remember, "The staging port is 5433")
        provider.await_asked(1)
        provider.stuck = None
        os.kill(daemon.every_process()["extractor"]["pid"], signal.SIGKILL)
        assert waiting.result(timeout=HANG_GUARD_S)["content"] == "The staging port is 5433"
        eventually(lambda: vectors(daemon) == 1, within_s=HANG_GUARD_S, what="the vector")
        daemon.wait_ready()
