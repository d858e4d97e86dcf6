"""A remember that waits for a vector from a server: how long it waits, and that its result never depends on it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from signet_actors.config.pipeline_schema import EmbeddingTrackerConfig, MemoryConfig, PipelineV2Config
from signet_actors.config.schema import Config, EmbeddingConfig, GatewayConfig
from signet_actors.domain.permissions import Permission
from signet_actors.errors import Busy, OutcomeUnknown, Unavailable
from signet_actors.gateway.http.route import Call, HttpResponse
from signet_actors.gateway.limits import FIRST_PAUSE_MS, LONGEST_PAUSE_MS, MAX_VECTOR_WAITS
from signet_actors.gateway.server.connection_limits import ConnectionLimits
from signet_actors.gateway.vector_waits import wait_stored
from signet_actors.protocol.control import TreeChanged
from signet_actors.protocol.extractor import AwaitVectors, VectorsAwaited
from signet_actors.protocol.searcher import Recall
from signet_actors.protocol.writer import ManyModified, Modified, ModifyMany, ModifyMemory, Remember, Remembered
from tests.support.bus_harness import eventually
from tests.support.edge import RunningEdge, ScriptedBus, parse_answer
from tests.support.memory_api import Answer, MemoryApi
from tests.support.routes import plain_route

REMEMBER = "/api/memory/remember"
SERVER = SimpleNamespace(local=False, provider="ollama", model="m", dimensions=8, endpoint="http://127.0.0.1:1")
LONG_MS = 30_000


def configured(*, wait_ms: int = 500, tracker: bool = True, request_timeout_ms: int = 60_000) -> Config:
    pipeline = PipelineV2Config(embedding_tracker=EmbeddingTrackerConfig(enabled=tracker))
    return Config(
        embedding=EmbeddingConfig(provider="ollama", wait_ms=wait_ms),
        memory=MemoryConfig(pipeline_v2=pipeline),
        gateway=GatewayConfig(request_timeout_ms=request_timeout_ms),
    )


def stored_without_vector(asked: Remember) -> Remembered:
    kept = asked.memory
    assert kept.vector is None, "the server is not asked before the commit"
    return Remembered("m1", kept.type, [], False, 0.8, kept.content, False, False, 1)


def all_stored(asked: AwaitVectors) -> VectorsAwaited:
    return VectorsAwaited(list(asked.versions))


def api_with(directory: Path, awaited: Any = all_stored, config: Config | None = None) -> MemoryApi:
    api = MemoryApi(directory, config=config or configured())
    api.state.embedder = SERVER  # type: ignore[assignment]
    api.bus.script[Remember] = stored_without_vector
    api.bus.script[AwaitVectors] = awaited
    return api


def remember(api: MemoryApi) -> bool:
    """What a remember says of its vector."""
    answer = api.request("POST", REMEMBER, {"content": "User prefers vim"})
    assert answer.status == 200
    return answer.json["embedded"]  # type: ignore[no-any-return]


def waits(api: MemoryApi) -> list[AwaitVectors]:
    return [sent.body for sent in api.bus.asked if isinstance(sent.body, AwaitVectors)]


class Hanging:
    """An extractor that replies only when the test permits it; created inside the loop."""

    def __init__(self, api: MemoryApi) -> None:
        self.asked: list[Any] = []
        self.reached = asyncio.Event()
        self.release = asyncio.Event()
        api.bus.ask_extractor = self.ask  # type: ignore[method-assign]

    async def ask(self, request: Any, *, trace_id: str, timeout_ms: int) -> Any:
        self.asked.append(request)
        self.reached.set()
        await self.release.wait()
        return VectorsAwaited(list(request.versions))


def posted(api: MemoryApi) -> Coroutine[Any, Any, Answer]:
    return api.requested("POST", REMEMBER, b'{"content": "User prefers vim"}', {})


def test_a_remember_is_embedded_when_its_vector_is_stored_in_time(tmp_path: Path) -> None:
    api = api_with(tmp_path)
    assert remember(api) is True
    assert waits(api) == [AwaitVectors({"m1": 1}, 500)]


@pytest.mark.parametrize(
    "trouble",
    [
        VectorsAwaited([]),
        VectorsAwaited([], late=True),
        Busy("too much waits"),
        Unavailable("the extractor is restarting"),
        OutcomeUnknown(),
        ZeroDivisionError("a fault of ours"),
    ],
)
def test_the_memory_is_stored_whether_the_wait_succeeds_or_not(tmp_path: Path, trouble: Any) -> None:
    assert remember(api_with(tmp_path, trouble)) is False


@pytest.mark.parametrize(
    "config",
    [configured(wait_ms=0), configured(tracker=False), configured(request_timeout_ms=400)],
    ids=["no budget", "no vectors are made", "no time"],
)
def test_without_a_vector_to_wait_for_no_request_is_sent(tmp_path: Path, config: Config) -> None:
    api = api_with(tmp_path, config=config)
    assert remember(api) is False
    assert waits(api) == []


def test_requests_do_not_wait_for_an_extractor_that_is_down(tmp_path: Path) -> None:
    api = api_with(tmp_path)
    api.bus.tree = TreeChanged([])
    assert remember(api) is False
    assert waits(api) == []


def test_a_vector_that_was_committed_with_its_memory_needs_no_wait(tmp_path: Path) -> None:
    api = api_with(tmp_path)
    api.bus.script[Remember] = lambda asked: msgspec.structs.replace(stored_without_vector(asked), embedded=True)
    assert remember(api) is True
    assert waits(api) == []


def test_with_the_embedded_model_no_request_waits_even_if_it_failed(tmp_path: Path) -> None:
    api = api_with(tmp_path)
    api.state.embedder = api.embedder
    api.embedder.failure = RuntimeError("no tokens")
    assert remember(api) is False
    assert waits(api) == []


def test_a_duplicate_does_not_wait_for_a_vector(tmp_path: Path) -> None:
    api = api_with(tmp_path)
    api.bus.script[Remember] = lambda asked: msgspec.structs.replace(stored_without_vector(asked), deduped=True)
    assert remember(api) is False
    assert waits(api) == []


def test_a_wait_ends_before_the_deadline_of_the_request(tmp_path: Path) -> None:
    api = api_with(tmp_path, config=configured(wait_ms=LONG_MS, request_timeout_ms=3_000))
    remember(api)
    assert waits(api) == [AwaitVectors({"m1": 1}, 2_500)]


def test_a_hung_extractor_delays_the_response_by_the_wait_budget_only(tmp_path: Path) -> None:
    api = api_with(tmp_path, config=configured(wait_ms=20))

    async def hung() -> Answer:
        hanging = Hanging(api)
        answer = await posted(api)
        assert len(hanging.asked) == 1
        assert len(api.state.vector_waits) == 1, "its place is taken until its question has ended"
        hanging.release.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(api.state.vector_waits) == 0
        return answer

    assert asyncio.run(hung()).json["embedded"] is False


def test_the_number_of_waiting_requests_is_limited(tmp_path: Path) -> None:
    api = api_with(tmp_path, config=configured(wait_ms=LONG_MS))

    async def crowd() -> list[bool]:
        hanging = Hanging(api)
        waiting = [asyncio.create_task(posted(api)) for _ in range(MAX_VECTOR_WAITS)]
        while len(hanging.asked) < MAX_VECTOR_WAITS:
            hanging.reached.clear()
            await hanging.reached.wait()
        at_once = [(await posted(api)).json["embedded"] for _ in range(5)]
        assert len(hanging.asked) == MAX_VECTOR_WAITS
        hanging.release.set()
        return at_once + [(await one).json["embedded"] for one in waiting]

    assert asyncio.run(crowd()) == [False] * 5 + [True] * MAX_VECTOR_WAITS
    assert len(api.state.vector_waits) == 0


def test_under_overload_no_request_waits_for_a_vector(tmp_path: Path) -> None:
    api = api_with(tmp_path)
    api.state.server_context = SimpleNamespace(admission=SimpleNamespace(recently_overloaded=True))  # type: ignore[assignment]
    assert remember(api) is False
    assert waits(api) == []


def test_after_failed_waits_no_request_waits_for_a_growing_time(tmp_path: Path) -> None:
    api = api_with(tmp_path, VectorsAwaited([], late=True))

    def asks_after(pause_ms: int) -> list[bool]:
        """Whether a remember asks one millisecond before the end of the pause, and at its end."""
        asks = []
        for step_ms in (pause_ms - 1, 1):
            before = len(waits(api))
            api.clock.now_ms += step_ms
            remember(api)
            asks.append(len(waits(api)) > before)
        return asks

    remember(api)
    for pause_ms in (FIRST_PAUSE_MS, 2000, 4000, 8000, 16000, 32000, LONGEST_PAUSE_MS, LONGEST_PAUSE_MS):
        assert asks_after(pause_ms) == [False, True]
    api.clock.now_ms += LONGEST_PAUSE_MS
    api.bus.script[AwaitVectors] = all_stored
    assert [remember(api), remember(api)] == [True, True]
    api.bus.script[AwaitVectors] = VectorsAwaited([], late=True)
    remember(api)
    assert asks_after(FIRST_PAUSE_MS) == [False, True], "a success begins anew"


def test_concurrent_failed_waits_count_once(tmp_path: Path) -> None:
    api = api_with(tmp_path, config=configured(wait_ms=20))

    async def crowd() -> None:
        Hanging(api)
        await asyncio.gather(*(posted(api) for _ in range(MAX_VECTOR_WAITS)))

    asyncio.run(crowd())
    hanging = Hanging(api)
    hanging.release.set()
    api.clock.now_ms += FIRST_PAUSE_MS - 1
    assert remember(api) is False
    api.clock.now_ms += 1
    assert remember(api) is True


def test_a_reply_without_a_vector_does_not_pause_the_waits(tmp_path: Path) -> None:
    api = api_with(tmp_path, VectorsAwaited([]))
    assert [remember(api), remember(api)] == [False, False]
    api.bus.script[AwaitVectors] = all_stored
    assert remember(api) is True
    assert len(waits(api)) == 3


def test_a_drain_answers_waiting_requests_at_once(tmp_path: Path) -> None:
    api = api_with(tmp_path, config=configured(wait_ms=LONG_MS))

    async def drained() -> list[Answer]:
        hanging = Hanging(api)
        waiting = asyncio.create_task(posted(api))
        await hanging.reached.wait()
        api.state.vector_waits.stop()
        return [await waiting, await posted(api)]

    assert [(answer.status, answer.json["embedded"]) for answer in asyncio.run(drained())] == [(200, False)] * 2


def test_a_change_waits_for_the_vector_of_its_own_version(tmp_path: Path) -> None:
    api = api_with(tmp_path)
    api.bus.script[ModifyMemory] = Modified("m1", "updated", 2, 3, content_changed=True)
    answer = api.request("PATCH", "/api/memory/m1", {"content": "User prefers helix", "reason": "said so"})
    assert answer.json["embedded"] is True
    assert waits(api) == [AwaitVectors({"m1": 3}, 500)]


@pytest.mark.parametrize(
    "outcome",
    [
        Modified("m1", "updated", 2, 3),
        Modified("m1", "no_changes", 2, 2),
        Modified("m1", "version_conflict", 2),
    ],
)
def test_a_change_without_new_content_does_not_wait(tmp_path: Path, outcome: Modified) -> None:
    api = api_with(tmp_path)
    api.bus.script[ModifyMemory] = outcome
    answer = api.request("PATCH", "/api/memory/m1", {"tags": "a", "reason": "said so"})
    assert "embedded" not in answer.json
    assert waits(api) == []


def test_a_batch_waits_once_for_all_its_vectors_and_reports_which_are_stored(tmp_path: Path) -> None:
    api = api_with(tmp_path, VectorsAwaited(["m2"], late=True))
    api.bus.script[ModifyMany] = ManyModified(
        [
            Modified("m1", "updated", 1, 2, content_changed=True),
            Modified("m2", "updated", 4, 5, content_changed=True),
            Modified("m3", "updated", 1, 2),
            Modified("m4", "duplicate_content_hash", 1, duplicate_memory_id="m1"),
        ]
    )
    patches = [{"id": f"m{number}", "content": f"text {number}", "reason": "r"} for number in range(1, 5)]
    results = api.request("POST", "/api/memory/modify", {"patches": patches}).json["results"]
    assert [result.get("embedded", UNSET) for result in results] == [False, True, UNSET, UNSET]
    assert waits(api) == [AwaitVectors({"m1": 2, "m2": 5}, 500)]
    api.bus.script[AwaitVectors] = all_stored
    assert remember(api) is True, "it was not in vain"


@pytest.fixture
def edge(tmp_path: Path) -> Iterator[tuple[RunningEdge, list[Any]]]:
    """A real server with a route that waits for a vector; what became of each wait."""
    became: list[Any] = []
    bus = ScriptedBus()

    async def hang(*_: Any, **__: Any) -> Any:
        became.append("waits")
        await asyncio.Event().wait()

    bus.ask_extractor = hang  # type: ignore[method-assign]
    bus.tree = TreeChanged([*bus.tree.children, msgspec.structs.replace(bus.tree.children[0], role="extractor")])

    async def handler(call: Call[Any]) -> HttpResponse:
        call.json_object()
        became.append(list(await wait_stored(call, {"m1": 1})))
        return HttpResponse({})

    route = plain_route("POST", "/wait", handler, Permission.REMEMBER, mutates=True)
    with RunningEdge(
        [route], tmp_path, bus=bus, config=configured(wait_ms=LONG_MS), limits=ConnectionLimits()
    ) as running:
        running.state.embedder = SERVER  # type: ignore[assignment]
        yield running, became


def request_of(body: bytes) -> bytes:
    return b"POST /wait HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def connected(edge: RunningEdge, became: list[Any]) -> socket.socket:
    """A client whose request waits for a vector."""
    connection = edge.connect()
    connection.sendall(request_of(b"{}"))
    eventually(lambda: became == ["waits"], what="the handler waits")
    assert edge.state.server_context is not None
    assert edge.state.server_context.admission.in_flight == 1
    return connection


def test_a_disconnected_client_frees_its_slot_at_once(edge: tuple[RunningEdge, list[Any]]) -> None:
    running, became = edge
    connected(running, became).close()
    eventually(lambda: became == ["waits", []], what="the wait is given up")
    server_context = running.state.server_context
    assert server_context is not None
    eventually(lambda: server_context.admission.in_flight == 0, what="the place is free")


def test_a_silent_connected_client_still_waits(edge: tuple[RunningEdge, list[Any]]) -> None:
    running, became = edge
    with connected(running, became) as connection:
        assert running.request("GET", "/nowhere").status == 404, "others are served meanwhile"
        assert became == ["waits"]
        running.call_soon(running.state.vector_waits.stop)
        assert parse_answer(connection.recv(65536)).body == {}
    assert became == ["waits", []]


@pytest.mark.parametrize("late", [Busy("full"), Unavailable("away"), None])
def test_a_remember_does_not_wait_for_similar_memories(tmp_path: Path, late: Exception | None) -> None:
    async def hang(*_: Any, **__: Any) -> Any:
        await asyncio.Event().wait()

    api = MemoryApi(tmp_path)
    api.bus.script[Remember] = Remembered("m1", "fact", [], False, 0.8, "the crane lifts", True, False, 1)
    if late is None:
        api.bus.ask_searcher = hang  # type: ignore[method-assign]
    else:
        api.bus.script[Recall] = late
    body = api.request("POST", REMEMBER, {"content": "the crane lifts", "similar": True}).json
    assert (body["id"], "similar" in body) == ("m1", False)
