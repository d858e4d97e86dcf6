"""The lines of the log, and the streams of new lines and of changes of memories, over HTTP."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import pytest

from signet_actors.gateway.http.event_streams import MAX_OF_TOKEN, MAX_STREAMS
from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon
from tests.support.team import team_daemon

pytestmark = pytest.mark.system

ROSTER = """
agents:
  roster:
    - {name: ada, readPolicy: isolated}
    - {name: bob, readPolicy: isolated}
gateway:
  bodyTimeoutMs: 1000
  requestTimeoutMs: 1000
logging:
  level: debug
"""


@pytest.fixture(scope="module")
def daemon() -> Iterator[LiveDaemon]:
    with live_daemon(config=ROSTER) as daemon:
        yield daemon


def test_a_client_of_http_1_0_gets_responses_with_a_length_and_no_stream(daemon: LiveDaemon) -> None:
    statuses = {}
    for path in ("/api/logs", "/api/logs/stream", "/api/changes"):
        with socket.create_connection(("127.0.0.1", daemon.port), timeout=20) as client:
            client.sendall(f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{daemon.port}\r\n\r\n".encode())
            reply = b"".join(iter(lambda client=client: client.recv(65536), b""))
        head, _, body = reply.partition(b"\r\n\r\n")
        assert b"transfer-encoding" not in head.lower()
        assert f"content-length: {len(body)}".encode() in head.lower()
        statuses[path] = (head.split()[1], json.loads(body).get("error"))
    refused = (b"400", "A stream of events needs HTTP/1.1")
    assert statuses == {"/api/logs": (b"200", None), "/api/logs/stream": refused, "/api/changes": refused}


class Stream:
    """A client of a stream of events."""

    def __init__(self, daemon: LiveDaemon, path: str, headers: Mapping[str, str] | None = None, **query: Any) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=20)
        self.connection.request("GET", f"{path}?{urlencode(query)}", headers=dict(headers or {}))
        self.response = self.connection.getresponse()
        assert self.response.status == 200, self.response.read()
        assert self.response.headers["content-type"] == "text/event-stream"
        assert self.next() == {"type": "connected"}

    def next(self) -> Any:
        """Return the data of the next event, None at the end of the stream."""
        while line := self.response.readline():
            if line.startswith(b"data: "):
                return json.loads(line.removeprefix(b"data: "))
        return None


@contextlib.contextmanager
def stream(daemon: LiveDaemon, path: str, headers: Mapping[str, str] | None = None, **query: Any) -> Iterator[Stream]:
    opened = Stream(daemon, path, headers, **query)
    try:
        yield opened
    finally:
        opened.response.close()
        opened.connection.close()


def test_lines_of_the_log_are_found_by_level_process_time_and_text(daemon: LiveDaemon) -> None:
    found = daemon.api.get("/api/logs", limit=1000).ok()
    assert found["count"] == len(found["logs"]) > 5
    assert found["complete"]
    times = [line["timestamp"] for line in found["logs"]]
    assert times[0] > times[-1], "the newest first; lines of processes that write at once may change places"
    opened = daemon.api.get("/api/analytics/logs", text="STORE_OPEN", actor="writer", level="info").ok()["logs"]
    assert [(line["category"], line["message"], line["level"]) for line in opened] == [("writer", "store_open", "info")]
    assert opened[0]["data"]["schema"] > 20
    at = opened[0]["timestamp"]
    assert daemon.api.get("/api/logs", text="store_open", since=at).ok()["count"] == 1
    assert daemon.api.get("/api/logs", text="store_open", until="2026-01-01").ok()["count"] == 0
    about = daemon.api.get("/api/logs", category="searcher").ok()["logs"]
    assert {line["data"].get("child") or line["category"] for line in about} == {"searcher-1"}
    assert daemon.api.get("/api/logs", limit=2).ok()["count"] == 2
    assert daemon.api.get("/api/logs", level="error").ok()["count"] == 0
    daemon.api.get("/api/logs", level="loud").refused(400, field="level")


def test_a_new_line_of_the_log_is_an_event(daemon: LiveDaemon) -> None:
    with stream(daemon, "/api/logs/stream", text="most-used") as lines:
        daemon.api.get("/api/memories/most-used").ok()
        line = lines.next()
        assert (line["category"], line["message"]) == ("gateway", "request")
        assert line["data"]["route"] == "/api/memories/most-used"


def test_a_change_is_an_event_for_those_who_may_read_the_memory(daemon: LiveDaemon) -> None:
    ada, bob = {"x-signet-agent-id": "ada"}, {"x-signet-agent-id": "bob"}
    with stream(daemon, "/api/changes", ada) as adas, stream(daemon, "/api/changes", bob) as bobs:
        hers = daemon.api.acting(**ada).remember("the ledger of ada is green", visibility="private")["id"]
        his = daemon.api.acting(**bob).remember("the ledger of bob is blue")["id"]
        daemon.api.acting(**bob).request("DELETE", f"/api/memory/{his}?reason=r").ok()
        assert adas.next() == {"type": "change", "id": hers, "event": "created", "kind": "memory"}
        assert [(bobs.next(), bobs.next())] == [
            (
                {"type": "change", "id": his, "event": "created", "kind": "memory"},
                {"type": "change", "id": his, "event": "deleted", "kind": "memory"},
            )
        ]
        daemon.api.acting(**ada).request("DELETE", f"/api/memory/{hers}?reason=r").ok()
        assert adas.next()["event"] == "deleted", "nothing of bob came in between"


def test_many_changes_at_once_are_one_event(daemon: LiveDaemon) -> None:
    lines = b"\n".join(json.dumps({"content": f"the heron number {number} waits"}).encode() for number in range(200))
    with stream(daemon, "/api/changes") as changes:
        daemon.api.request("POST", "/api/memory/import", lines, {"Content-Type": "application/x-ndjson"}).ok()
        assert changes.next() == {"type": "resync"}
        kept = daemon.api.remember("the heron flies")["id"]
        while (found := changes.next()) == {"type": "resync"}:
            pass
        assert found == {"type": "change", "id": kept, "event": "created", "kind": "memory"}


def test_the_number_of_streams_is_bounded_and_a_closed_one_makes_room(daemon: LiveDaemon) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(MAX_STREAMS):
            stack.enter_context(stream(daemon, "/api/changes"))
        refused = daemon.api.get("/api/changes")
        assert refused.refused(503, code="busy")
        assert refused.headers["retry-after"] == "5"
        daemon.api.remember("reads and writes go on beside all streams")
        assert open_streams(daemon) == MAX_STREAMS
    eventually(lambda: daemon.api.get("/api/changes", seconds=0).status == 200, what="room for a stream")


def test_the_head_of_a_stream_ends_at_once(daemon: LiveDaemon) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=10)
    for method, path in (("HEAD", "/api/changes"), ("HEAD", "/api/logs/stream"), ("GET", "/health")):
        connection.request(method, path)
        response = connection.getresponse()
        assert response.status == 200
        assert bool(response.read()) is (method == "GET")
    connection.close()
    eventually(lambda: open_streams(daemon) == 0, what="no stream is open")


def test_a_stream_ends_with_its_token_and_one_token_has_a_share() -> None:
    with team_daemon() as team, contextlib.ExitStack() as stack:
        issued = team.issue("agent", "Ada", agent="ada")
        headers = {"Authorization": f"Bearer {issued['token']}"}
        opened = [stack.enter_context(stream(team.daemon, "/api/changes", headers)) for _ in range(MAX_OF_TOKEN)]
        ada = team.with_token(issued["token"])
        assert ada.get("/api/changes").refused(503, code="busy")
        admin = {"Authorization": f"Bearer {team.issue('admin')['token']}"}
        all_changes = stack.enter_context(stream(team.daemon, "/api/changes", admin))
        first = ada.remember("Ada has the red keys")["id"]
        assert opened[0].next()["id"] == first
        team.owner.request("DELETE", f"/api/auth/tokens/{issued['id']}").ok()
        team.bearer("admin").acting(x_signet_agent_id="ada").remember("Ada has the blue keys")
        assert opened[0].next() is None
        assert all_changes.response.isclosed() is False


def test_a_stream_ends_after_its_time(daemon: LiveDaemon) -> None:
    with stream(daemon, "/api/changes", seconds=1) as changes:
        assert changes.next() is None


def test_a_client_that_does_not_read_is_disconnected(daemon: LiveDaemon) -> None:
    with socket.create_connection(("127.0.0.1", daemon.port)) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.sendall(b"GET /api/logs/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert slow.recv(15) == b"HTTP/1.1 200 OK"
        log = max((daemon.workspace / ".daemon" / "logs").glob("daemon-*.log"))
        until = time.monotonic() + 60
        while time.monotonic() < until and open_streams(daemon):
            with log.open("ab") as file:
                file.write(b'{"timestamp":"2026-11-30T10:00:00.000Z","level":"info","event":"filler"}\n' * 10_000)
            time.sleep(0.1)
        assert not open_streams(daemon), "the stream is still open"


def open_streams(daemon: LiveDaemon) -> int:
    """Return the number of open streams."""
    page = daemon.api.get("/metrics").raw.decode()
    return int(float(next(line for line in page.splitlines() if line.startswith("signet_http_streams ")).split()[1]))


def test_an_open_stream_does_not_delay_the_end_of_the_daemon() -> None:
    with live_daemon(config="supervision: {drainMs: 60000}\n") as daemon, stream(daemon, "/api/changes") as changes:
        began = time.monotonic()
        assert daemon.stop() == 0
        assert time.monotonic() - began < 30, "the time for requests was waited for"
        assert changes.next() is None
