"""The blocking and the asyncio client over real sockets, with a daemon that answers by script."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from signet_actors.client import (
    AsyncClient,
    Client,
    DaemonUnreachable,
    Limits,
    NoReply,
    NotPermitted,
    TemporarilyRefused,
)
from signet_actors.operations.remember import RememberReply
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
        perform(daemon.url, remember, limits=HURRIED)
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
