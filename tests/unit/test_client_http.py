"""The blocking and the asyncio client over real sockets, with a daemon that answers by script."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from signet_actors.client import (
    AsyncClient,
    Client,
    DaemonUnreachable,
    Limits,
    NoReply,
    NotPermitted,
    TemporarilyRefused,
    http_transport,
)
from signet_actors.client.exchange import Send
from signet_actors.client.http_transport import build_request
from signet_actors.operations.remember import RememberReply
from tests.support.held_workspace import held_workspace
from tests.support.scripted_daemon import ScriptedDaemon

STORED = {
    "id": "m1",
    "type": "fact",
    "tags": None,
    "pinned": False,
    "importance": 0.8,
    "content": "x",
    "embedded": True,
    "deduped": False,
}
REMEMBER = ("POST", "/api/memory/remember")
HURRIED = Limits(total_s=1.0, attempt_s=0.3, start_s=0.3)

Act = Callable[[Any], Any]
Perform = Callable[..., Any]


def blocking(url: str, act: Act, **options: Any) -> Any:
    with Client(url, **options) as client:
        return act(client)


def awaited(url: str, act: Act, **options: Any) -> Any:
    async def go() -> Any:
        async with AsyncClient(url, **options) as client:
            return await act(client)

    return asyncio.run(go())


both = pytest.mark.parametrize("perform", [blocking, awaited])


def remember(client: Any) -> Any:
    return client.remember("x", tags=["a"])


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@both
def test_a_call_sends_its_request_and_returns_the_declared_reply(daemon: ScriptedDaemon, perform: Perform) -> None:
    daemon.on(*REMEMBER, STORED)
    reply = perform(daemon.url, remember, agent="Ärger", token="t")
    assert reply == RememberReply("m1", "fact", None, False, 0.8, "x", True, False)
    (asked,) = daemon.asked
    assert asked.body == {"content": "x", "tags": ["a"]}
    assert asked.headers["authorization"] == "Bearer t"
    assert asked.headers["x-signet-agent-id"].encode("latin-1").decode() == "Ärger"
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["accept-encoding"] == "identity"
    assert "x-signet-owner-token" not in asked.headers


@both
def test_a_busy_daemon_is_asked_again_after_its_retry_time(daemon: ScriptedDaemon, perform: Perform) -> None:
    daemon.on(*REMEMBER, {"error": "busy", "code": "busy"}, status=503, headers={"Retry-After": "0.05"})
    daemon.on(*REMEMBER, STORED)
    assert perform(daemon.url, remember).id == "m1"
    first, second = daemon.asked
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]


@both
def test_a_daemon_that_stays_busy_is_reported_with_its_sentence(daemon: ScriptedDaemon, perform: Perform) -> None:
    daemon.on(*REMEMBER, {"error": "too much", "code": "busy"}, status=503, headers={"Retry-After": "0.2"})
    with pytest.raises(TemporarilyRefused, match=r"^too much$"):
        perform(daemon.url, remember, limits=Limits(total_s=2.0, attempt_s=30.0))
    assert len(daemon.asked) > 1


@both
def test_a_broken_connection_is_replaced(daemon: ScriptedDaemon, perform: Perform) -> None:
    daemon.on(*REMEMBER, drop=True)
    daemon.on(*REMEMBER, STORED)
    assert perform(daemon.url, remember).id == "m1"
    first, second = daemon.asked
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]


@both
def test_a_daemon_that_does_not_answer_is_reported_in_time(daemon: ScriptedDaemon, perform: Perform) -> None:
    daemon.on(*REMEMBER, hang=True)
    with pytest.raises(NoReply, match=r"no answer in time from http://127\.0\.0\.1.*is unknown"):
        perform(daemon.url, remember, limits=HURRIED)
    assert len({asked.headers["idempotency-key"] for asked in daemon.asked}) == 1


@both
def test_a_client_whose_connections_are_all_in_use_says_that_nothing_was_sent(
    daemon: ScriptedDaemon, perform: Perform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_transport, "MAX_CONNECTIONS", 1)
    daemon.on("GET", "/health/live", {"status": "live"})

    def blocking_act(client: Client) -> None:
        held = client._http.build_request("GET", f"{daemon.url}/health/live")
        with contextlib.closing(client._http.send(held, stream=True)):
            remember(client)

    async def async_act(client: AsyncClient) -> None:
        held = client._http.build_request("GET", f"{daemon.url}/health/live")
        async with contextlib.aclosing(await client._http.send(held, stream=True)):
            await remember(client)

    with pytest.raises(TemporarilyRefused, match=r"^all 1 connections to .* were in use; nothing was sent$"):
        perform(daemon.url, blocking_act if perform is blocking else async_act, limits=HURRIED)
    assert [asked.path for asked in daemon.asked] == ["/health/live"]


def test_each_wait_of_a_request_has_what_the_earlier_ones_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """``attempt_s``: "from the wait for a free connection to the end of the response"."""
    now_s = 1000.0
    monkeypatch.setattr(http_transport.time, "monotonic", lambda: now_s)
    with httpx.Client() as client:
        send = Send("GET", "http://127.0.0.1:9/", {}, None, timeout_s=10)
        timeouts = build_request(client, send).extensions["timeout"]
    left = []
    for phase in ("pool", "connect", "write", "read"):
        left.append(timeouts.get(phase))
        now_s += 4
    assert left == [10, 6, 2, pytest.approx(0, abs=0.01)]
    assert timeouts.is_over


def answer(request: httpx.Request) -> httpx.Response:
    assert request.url.path == "/api/memory/remember"
    return httpx.Response(200, json=STORED)


def test_a_transport_of_a_test_can_replace_the_connections() -> None:
    """``Client``: the transport "replaces the connections of httpx, for example in tests"."""
    transport = httpx.MockTransport(answer)
    for perform in (blocking, awaited):
        assert perform("http://127.0.0.1:9", remember, transport=transport).id == "m1"


def test_a_client_of_another_event_loop_says_so() -> None:
    client = AsyncClient("http://127.0.0.1:9", transport=httpx.MockTransport(answer))
    assert asyncio.run(remember(client)).id == "m1"
    for act in (lambda: remember(client), client.close):
        with pytest.raises(RuntimeError, match="belongs to another event loop; make a client in each loop"):
            asyncio.run(act())


@both
def test_each_call_goes_to_the_daemon_that_runs_now(tmp_path: Path, perform: Perform) -> None:
    """docs/guides/python.md "Where the daemon is": the daemon that runs on the workspace."""
    daemons = [ScriptedDaemon(), ScriptedDaemon()]
    ports = [urlsplit(daemon.url).port or 0 for daemon in daemons]
    for number, daemon in enumerate(daemons):
        daemon.on(*REMEMBER, {**STORED, "id": f"m{number}"})

    def blocking_act(client: Client) -> list[str]:
        ids = []
        for port in ports:
            with held_workspace(tmp_path, port):
                ids.append(remember(client).id)
        return ids

    async def async_act(client: AsyncClient) -> list[str]:
        ids = []
        for port in ports:
            with held_workspace(tmp_path, port):
                ids.append((await remember(client)).id)
        return ids

    try:
        act = blocking_act if perform is blocking else async_act
        assert perform(None, act, workspace=tmp_path) == ["m0", "m1"]
    finally:
        for daemon in daemons:
            daemon.close()


@both
def test_no_daemon_is_reported_with_its_address_and_the_remedy(perform: Perform) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(DaemonUnreachable, match=f"^no daemon answers at {url}; start it with `signet start`$"):
        perform(url, remember, limits=HURRIED)


@both
def test_a_wrong_token_is_refused_at_once(daemon: ScriptedDaemon, perform: Perform) -> None:
    daemon.on(*REMEMBER, {"error": "invalid signature", "code": "unauthorized"}, status=401)
    with pytest.raises(NotPermitted, match=r"^invalid signature$") as refused:
        perform(daemon.url, remember, token="wrong")
    assert (refused.value.status, len(daemon.asked)) == (401, 1)


@both
def test_a_response_that_never_ends_is_given_up_in_time(perform: Perform) -> None:
    """httpx limits only the wait for each chunk of a response."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        ended = threading.Event()
        thread = threading.Thread(target=drip, args=(listener, ended))
        thread.start()
        try:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            with pytest.raises(NoReply, match="no answer in time"):
                perform(url, lambda client: client.health(), limits=HURRIED)
        finally:
            ended.set()
            thread.join(10)
    assert not thread.is_alive()


def drip(listener: socket.socket, ended: threading.Event) -> None:
    """Answer each connection with a response of which a byte arrives now and then."""
    listener.settimeout(0.05)
    open_connections: list[socket.socket] = []
    while not ended.is_set():
        try:
            connection, _ = listener.accept()
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
            open_connections.append(connection)
        except TimeoutError:
            pass
        for connection in open_connections:
            try:
                connection.sendall(b" ")
            except OSError:
                continue
    for connection in open_connections:
        connection.close()


@both
def test_neither_a_proxy_nor_a_password_file_of_the_environment_is_used(
    daemon: ScriptedDaemon, perform: Perform, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    daemon.on(*REMEMBER, STORED)
    assert perform(daemon.url, remember).id == "m1"


@both
def test_parallel_calls_share_a_client(daemon: ScriptedDaemon, perform: Perform) -> None:
    daemon.on(*REMEMBER, STORED)

    def blocking_calls(client: Client) -> list[Any]:
        replies: list[Any] = []
        threads = [threading.Thread(target=lambda: replies.append(remember(client))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        return replies

    def awaited_calls(client: AsyncClient) -> Any:
        return asyncio.gather(*(remember(client) for _ in range(8)))

    replies = perform(daemon.url, blocking_calls if perform is blocking else awaited_calls)
    assert [reply.id for reply in replies] == ["m1"] * 8
    assert len({asked.headers["idempotency-key"] for asked in daemon.asked}) == 8


@both
def test_every_page_of_an_export_is_read(daemon: ScriptedDaemon, perform: Perform) -> None:
    lines = {"media_type": {"Content-Type": "application/x-ndjson"}}
    header = b'{"format":"signet-memories","version":1}\n'
    daemon.on(
        "GET", "/api/memory/export", header + b'{"content":"a"}\n', headers={"x-signet-next-cursor": "7"}, **lines
    )
    daemon.on("GET", "/api/memory/export", b'{"content":"b"}\n', **lines)

    async def all_of(client: AsyncClient) -> list[str]:
        return [memory.content async for memory in client.export_memories()]

    def each_of(client: Client) -> list[str]:
        return [memory.content for memory in client.export_memories()]

    assert perform(daemon.url, each_of if perform is blocking else all_of) == ["a", "b"]
    assert [asked.query.get("after") for asked in daemon.asked] == [None, "7"]
