"""What a session has received is not returned again in its epoch, and leaves room for what it has not."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon

QUERY = "harbour crane"
COUNT = 12


@pytest.fixture(scope="module")
def daemon() -> Iterator[LiveDaemon]:
    with live_daemon() as started:
        for number in range(COUNT):
            started.api.remember(f"The harbour crane number {number} lifts crates")
        yield started


def recalled(daemon: LiveDaemon, session: str | None, **fields: Any) -> Any:
    named = {} if session is None else {"sessionKey": session}
    return daemon.api.recall(QUERY, min_score=0, **named, **fields)


def ids(answer: Any) -> list[str]:
    return [row["id"] for row in answer["results"]]


def gauge(daemon: LiveDaemon, name: str) -> float:
    lines = daemon.api.get("/metrics").raw.decode().splitlines()
    (value,) = [line.split()[1] for line in lines if line.startswith(f"{name} ")]
    return float(value)


def test_a_row_is_returned_once_in_a_session_and_others_take_its_place(daemon: LiveDaemon) -> None:
    everything = ids(recalled(daemon, None, limit=COUNT))
    first, second = recalled(daemon, "once", limit=5), recalled(daemon, "once", limit=5)
    assert ids(first) == everything[:5]
    assert ids(second) == everything[5:10]
    assert first["meta"]["dedupe"] == {"enabled": True, "contextEpoch": 0, "suppressed": 0, "repeatedReturned": 0}
    assert second["meta"]["dedupe"]["suppressed"] == 5
    third = recalled(daemon, "once", limit=5)
    assert (ids(third), third["meta"]["dedupe"]["suppressed"]) == (everything[10:], 10)
    assert recalled(daemon, "once", limit=5)["meta"]["noHits"] is True


def test_a_recall_without_a_session_is_unchanged(daemon: LiveDaemon) -> None:
    one, two = recalled(daemon, None), recalled(daemon, "")
    assert ids(one) == ids(two) == ids(recalled(daemon, None))
    assert one["meta"]["dedupe"] == {"enabled": False, "contextEpoch": 0, "suppressed": 0, "repeatedReturned": 0}


def test_repeats_are_returned_on_request_and_marked(daemon: LiveDaemon) -> None:
    first = recalled(daemon, "again", limit=3)
    more = recalled(daemon, "again", limit=5, includeRecalled=True)
    assert [row["already_recalled"] for row in more["results"]] == [True] * 3 + [False] * 2
    assert more["meta"]["dedupe"]["repeatedReturned"] == 3
    assert set(ids(first)) < set(ids(more))
    assert not set(ids(more)) & set(ids(recalled(daemon, "again", limit=5))), "what was new was recorded"


def test_agents_and_sessions_do_not_share_what_they_received(daemon: LiveDaemon) -> None:
    mine = ids(recalled(daemon, "shared", limit=5))
    assert ids(recalled(daemon, "other", limit=5)) == mine
    other = daemon.api.recall(QUERY, min_score=0, limit=5, sessionKey="shared", agentId="default")
    assert not set(ids(other)) & set(mine)
    assert ids(recalled(daemon, "session:shared", limit=5)) == ids(recalled(daemon, None, limit=COUNT))[10:]


def test_all_ways_to_recall_share_one_record(daemon: LiveDaemon) -> None:
    got = ids(recalled(daemon, "ways", limit=4))
    hooked = daemon.api.post(
        "/api/hooks/recall", {"harness": "x", "query": QUERY, "min_score": 0, "limit": 4, "sessionKey": "ways"}
    ).ok()
    searched = daemon.api.get("/api/memory/search", q=QUERY, min_score=0, limit=4, session_key="ways").ok()
    offered = daemon.api.post(
        "/api/hooks/user-prompt-submit", {"harness": "x", "prompt": "where is the harbour crane?", "sessionKey": "ways"}
    ).ok()
    assert len({*got, *ids(hooked), *ids(searched)}) == COUNT
    assert offered["inject"] == ""


def test_a_retry_of_one_request_gets_the_same_rows(daemon: LiveDaemon) -> None:
    body = {"query": QUERY, "sessionKey": "retry", "limit": 4, "min_score": 0}
    for header in ("Idempotency_Key", "x_signet_request_id"):
        first, again = (daemon.api.post("/api/memory/recall", body, **{header: "request-1"}).ok() for _ in range(2))
        assert ids(first) == ids(again)
        assert not any(row["already_recalled"] for row in again["results"])
    other = daemon.api.post("/api/memory/recall", body, Idempotency_Key="request-2").ok()
    assert not set(ids(first)) & set(ids(other))


def test_concurrent_recalls_of_a_session_never_return_a_row_twice(daemon: LiveDaemon) -> None:
    answers: list[Any] = []
    threads = [
        threading.Thread(target=lambda: answers.append(recalled(daemon, "concurrent", limit=3))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [memory_id for answer in answers for memory_id in ids(answer)]
    assert len(found) == len(set(found)) == COUNT


def test_a_timeline_is_not_recorded(daemon: LiveDaemon) -> None:
    window = {"start": "2020-01-01", "end": "2100-01-01", "mode": "timeline"}
    first, again = (recalled(daemon, "timeline", time=window) for _ in range(2))
    assert ids(first) == ids(again) != []
    assert first["meta"]["dedupe"]["enabled"] is False
    assert len(ids(recalled(daemon, "timeline", limit=COUNT))) == COUNT


def test_a_client_that_disconnects_before_its_answer_has_received_nothing(daemon: LiveDaemon) -> None:
    body = json.dumps({"query": QUERY, "sessionKey": "left", "limit": 5, "min_score": 0}).encode()
    head = f"POST /api/memory/recall HTTP/1.1\r\nhost: 127.0.0.1:{daemon.port}\r\ncontent-length: {len(body)}\r\n\r\n"
    stopped = [daemon.kill(name, signal.SIGSTOP) for name in daemon.children() if name.startswith("searcher")]
    try:
        with socket.create_connection(("127.0.0.1", daemon.port), timeout=30) as connection:
            connection.sendall(head.encode() + body)
            eventually(lambda: gauge(daemon, "signet_http_in_flight") == 2, what="the recall waits")
        eventually(lambda: gauge(daemon, "signet_http_connections") == 1, what="its client has left")
    finally:
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError):  # the supervisor replaces a process that is silent
                os.kill(pid, signal.SIGCONT)
    daemon.wait_ready()
    eventually(lambda: gauge(daemon, "signet_http_in_flight") == 1, what="the recall was answered")
    assert recalled(daemon, "left", limit=5)["meta"]["dedupe"]["suppressed"] == 0
    assert recalled(daemon, "left", limit=5)["meta"]["dedupe"]["suppressed"] == 5


def test_what_was_returned_is_stored_soon_and_survives_a_kill_of_all_processes() -> None:
    with live_daemon() as daemon:
        for number in range(6):
            daemon.api.remember(f"The harbour crane number {number} lifts crates")
        first = ids(recalled(daemon, "killed", limit=3))
        body = {"query": QUERY, "sessionKey": "killed", "limit": 1, "min_score": 0}
        marked = ids(daemon.api.post("/api/memory/recall", body, Idempotency_Key="lost").ok())
        eventually(lambda: len(daemon.read("SELECT memory_id FROM session_recalls")) == 4, what="stored")
        daemon.kill_supervisor()
        daemon.gone()
        daemon.start()
        again = ids(daemon.api.post("/api/memory/recall", body, Idempotency_Key="lost").ok())
        assert again == marked
        rest = ids(recalled(daemon, "killed", limit=6))
        assert not {*first, *marked} & set(rest)
        assert len({*first, *marked, *rest}) == 6


def test_a_kill_at_once_may_return_a_row_once_more_and_never_leaves_out_another() -> None:
    with live_daemon() as daemon:
        for number in range(6):
            daemon.api.remember(f"The harbour crane number {number} lifts crates")
        first = ids(recalled(daemon, "killed", limit=3))
        daemon.kill("gateway")
        daemon.wait_ready()
        rest = ids(recalled(daemon, "killed", limit=6))
        assert {*first, *rest} == set(ids(recalled(daemon, None, limit=6)))
        assert len(rest) == len(set(rest))
