"""The memory routes in the real gateway application, in this process, with a scripted bus."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec
import numpy as np
import structlog

from signet_actors.config.schema import Config
from signet_actors.domain.redaction.scan import Redactor
from signet_actors.errors import Unavailable
from signet_actors.gateway.app import Application
from signet_actors.gateway.common_words import CommonWordsCache
from signet_actors.gateway.routes import ROUTES
from signet_actors.gateway.server.asgi_extensions import IS_DISCONNECTED
from signet_actors.gateway.state import GatewayState
from signet_actors.protocol.control import UP, ChildState, TreeChanged
from signet_actors.protocol.memories import Memory
from signet_actors.protocol.searcher import CommonWords, GetCommonWords
from signet_actors.providers.embedding import Vectors
from signet_actors.runtime.histogram import Histogram
from signet_actors.runtime.messaging.bus_client import BusHealth
from signet_actors.runtime.processes.child_context import ChildContext

DIMENSIONS = 4
NOW_MS = 1_771_668_000_000  # 2026-02-21T10:00:00Z


EVERYBODY_UP = tuple(
    ChildState(name, name.partition("-")[0], UP, 1, 0, 11 + number)
    for number, name in enumerate(("writer", "searcher-1", "retention", "decider", "extractor", "gateway"))
)


class SetClock:
    """A clock that only a test advances."""

    def __init__(self, now_ms: int = NOW_MS) -> None:
        self.now_ms = now_ms

    def wall_ms(self) -> int:
        return self.now_ms

    def monotonic_ns(self) -> int:
        return self.now_ms * 1_000_000


class WordEmbedder:
    """Unit vectors from a digest of the text; none for texts in ``meaningless``. Fails while ``failure`` is set."""

    provider = "embedded"
    model = "test-model"
    dimensions = DIMENSIONS
    local = True
    token_codes = None
    endpoint = None

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.meaningless: set[str] = set()
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> Vectors:
        self.texts.append(text)
        if self.failure is not None:
            raise self.failure
        if text in self.meaningless:
            return np.zeros(DIMENSIONS, dtype=np.float32)
        raw = np.frombuffer(hashlib.sha256(text.encode()).digest()[:DIMENSIONS], dtype=np.uint8).astype(np.float32) + 1
        unit: Vectors = raw / np.linalg.norm(raw)
        return unit


@dataclass
class Sent:
    """A message that the gateway sent."""

    body: Any
    frames: list[bytes]


Script = Any | Exception | Callable[[Any], Any]


@dataclass
class RecordingBus:
    """Answers each kind of request by script: a reply, an exception, or a function of the request.

    A searcher's reply with frames is a tuple. A request without a script is unavailable, except for the common words,
    which are empty. ``told`` contains the messages that expect no reply.
    """

    script: dict[type, Script] = field(default_factory=dict)
    asked: list[Sent] = field(default_factory=list)
    told: list[Any] = field(default_factory=list)
    tree: TreeChanged = field(default_factory=lambda: TreeChanged(list(EVERYBODY_UP)))
    counters: dict[str, int] = field(default_factory=dict)
    latency: dict[str, Histogram] = field(default_factory=dict)
    writer_backlog: int = 0
    search_backlog: int = 0
    unanswered_searches: int = 0
    searchers_known: int = 0

    def health(self) -> BusHealth:
        return BusHealth()

    async def ask_tree(self) -> TreeChanged:
        return self.tree

    async def ask_retention(self, request: Any, *, trace_id: str, timeout_ms: int = 0) -> Any:
        return self._answer(request, ())

    async def ask_decider(self, request: Any, *, trace_id: str, timeout_ms: int) -> Any:
        return self._answer(request, ())

    last_timeout_ms: int | None = None

    async def ask_writer(self, request: Any, *, trace_id: str, timeout_ms: int | None = None, frames: Any = ()) -> Any:
        return self._answer(request, frames)

    async def ask_extractor(self, request: Any, *, trace_id: str, timeout_ms: int) -> Any:
        self.last_timeout_ms = timeout_ms
        return self._answer(request, ())

    async def ask_searcher(
        self, request: Any, *, trace_id: str, timeout_ms: int | None = None, frames: Any = ()
    ) -> tuple[Any, list[bytes]]:
        answer = self._answer(request, frames)
        return answer if isinstance(answer, tuple) else (answer, [])

    def tell_writer(self, message: Any, *, trace_id: str) -> bool:
        self.told.append(message)
        return True

    def _answer(self, request: Any, frames: Any) -> Any:
        msgspec.msgpack.encode(request)  # every message must be encodable
        self.asked.append(Sent(request, list(frames)))
        answer = self.script.get(type(request))
        if answer is None:
            if isinstance(request, GetCommonWords):
                return CommonWords(scope_key="k", version=0, words=[])
            raise Unavailable("not scripted")
        if callable(answer) and not isinstance(answer, msgspec.Struct):
            answer = answer(request)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def only(self, kind: type) -> Sent:
        """Return the only message of ``kind``."""
        (found,) = [sent for sent in self.asked if type(sent.body) is kind]
        return found


@dataclass
class Answer:
    """An HTTP response; ``json`` is its body."""

    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)


class MemoryApi:
    """The application of one gateway incarnation; ``request`` sends one HTTP request."""

    def __init__(self, workspace: Path, *, config: Config | None = None) -> None:
        self.bus = RecordingBus()
        self.clock = SetClock()
        self.embedder = WordEmbedder()
        config = config or Config()
        self.state = GatewayState(
            boot=ChildContext(
                name="gateway",
                role="gateway",
                incarnation=1,
                boot_id="b",
                supervisor_pid=1,
                workspace=str(workspace),
                socket_dir=str(workspace),
                config=config,
            ),
            config=config,
            bus=cast("Any", self.bus),
            clock=self.clock,
            rng=random.Random(7),
            log=cast("Any", structlog.wrap_logger(None, processors=[_drop])),
            embedder=self.embedder,
            redactor=Redactor(),
            signing_key=bytes(range(32)),
            common_words=CommonWordsCache(),
            port=3850,
            started_at_ms=NOW_MS,
        )
        self.edge = _edge(self.state)
        self.is_disconnected = False  # a test sets it when the client is to disconnect

    def request(self, method: str, target: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        """Send one request; any body except bytes is sent as JSON."""
        raw = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        return asyncio.run(self.requested(method, target, raw, headers or {}))

    async def requested(self, method: str, target: str, raw: bytes, headers: Mapping[str, str]) -> Answer:
        """Like ``request``, on a running loop."""
        parts = urlsplit(target)
        scope: Any = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": parts.path,
            "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(),
            "root_path": "",
            "headers": [
                (b"host", b"127.0.0.1:3850"),
                *([(b"content-length", str(len(raw)).encode())] if raw else []),
                *((name.lower().encode(), value.encode()) for name, value in headers.items()),
            ],
            "client": ("127.0.0.1", 50000),
            "server": None,  # there is no connection, so its owner cannot be looked up
            "state": {},
            IS_DISCONNECTED: lambda: self.is_disconnected,
        }
        messages: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": raw, "more_body": False}

        async def send(message: Any) -> None:
            messages.append(message)

        await self.edge(scope, receive, send)
        start = messages[0]
        return Answer(
            status=start["status"],
            headers={name.decode(): value.decode() for name, value in start["headers"]},
            raw=b"".join(message.get("body", b"") for message in messages[1:]),
        )


_built: list[Application] = []


def _edge(state: GatewayState) -> Application:
    """Return the test process's only application, given ``state``: building its router takes longer than most tests."""
    if not _built:
        _built.append(Application(state, ROUTES))
    _built[0].state = state
    return _built[0]


def _drop(_: Any, __: str, ___: Any) -> Any:
    raise structlog.DropEvent


def memory(**changes: Any) -> Memory:
    """Return a stored memory."""
    stored = Memory(
        id="m1",
        content="User prefers vim keybindings",
        type="preference",
        importance=0.9,
        tags=["preference", "editor"],
        pinned=0,
        who="claude-code",
        project=None,
        scope=None,
        agent_id="default",
        visibility="global",
        source_type="manual",
        source_id="ext-1",
        source_path="/a/b.md",
        runtime_path="memory/MEMORY.md",
        idempotency_key="key-1",
        session_id=None,
        confidence=None,
        access_count=3,
        last_accessed="2026-02-21T11:00:00.000Z",
        injected_count=0,
        is_deleted=0,
        deleted_at=None,
        extraction_status="none",
        embedding_model="test-model",
        version=2,
        created_at="2026-02-21T10:00:00.000Z",
        content_at=None,
        updated_at="2026-02-21T10:30:00.000Z",
        updated_by="operator",
    )
    return msgspec.structs.replace(stored, **changes)
