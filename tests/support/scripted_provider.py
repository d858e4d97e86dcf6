"""A scripted model server on loopback: real HTTP, in the wire formats of Ollama and OpenAI.

It runs in its own thread and event loop on bare sockets, because HTTP libraries prevent most of its faults (reset a
connection, send one byte at a time, send a gigabyte). Every request is recorded. A function of the request, a queue of
faults, or the current fault decides the response.

``FakeCli`` writes programs that behave like ``claude`` and ``opencode``, with similar faults.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import math
import os
import socket
import stat
import struct
import sys
import textwrap
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self

Fault = Literal[
    "ok",
    # Faults of the model: valid HTTP with a text that was not requested.
    "garbage",
    "think_block",
    "fenced",
    "cut_json",
    "empty",
    # Faults of the server.
    "timeout",
    "hang",
    "slow_drip",
    "http_400",
    "http_401",
    "http_404",
    "http_429",
    "http_500",
    "http_503",
    "redirect",
    "rst",
    "cut_off",
    "huge",
    "bomb",
    "not_http",
    "broken_json",
    "wrong_shape",
    "wrong_content_type",
    "die",
]

MODEL_FAULTS: Final[tuple[Fault, ...]] = ("garbage", "think_block", "fenced", "cut_json")
CLIENT_WAIT_S: Final = 60.0
_HUGE_BYTES: Final = 1 << 30
_REASONS: Final = {200: "OK", 307: "Temporary Redirect", 400: "Bad Request", 429: "Too Many Requests"}


@dataclass(frozen=True)
class Asked:
    """One request as received. ``prompt`` and ``texts`` are empty if it contains none."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    prompt: str
    texts: tuple[str, ...]
    number: int
    """Number among all generations and embeddings, from 0; -1 for a request of the model list."""
    port: int = 0
    """The client's port."""


@dataclass(frozen=True)
class Act:
    """The reaction to a request: a fault, and the model's answer."""

    fault: Fault = "ok"
    text: str | None = None
    retry_after: str | None = None


Script = Callable[[Asked], Act | Fault]


@dataclass
class ScriptedProvider:
    """The server, running inside ``with``.

    ``script`` decides about a request, unless ``queue`` has an entry; each generation or embedding takes one. ``look``
    is the fault for availability checks. ``stuck`` is a fault for everything, including checks, while it is set: the
    provider is down. ``text`` is the default answer. Attributes may be changed at any time.
    """

    script: Script | None = None
    text: str = '{"facts": [], "entities": []}'
    models: Sequence[str] = ("qwen3:4b", "nomic-embed-text:latest")
    look: Fault = "ok"
    stuck: Fault | None = None
    dimensions: int = 8
    queue: deque[Act | Fault] = field(default_factory=deque)
    asked: list[Asked] = field(default_factory=list)
    looks: int = 0
    open_connections: int = 0
    most_at_once: int = 0
    sent_bytes: int = 0
    drip_s: float = 0.05
    thinks_s: float = 0.0
    tokens: tuple[Any, Any] = (11, 7)
    spoil_vectors: Callable[[list[list[float]]], Any] | None = None

    def __post_init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="scripted-provider", daemon=True)
        self._listener: socket.socket | None = None
        self._port = 0
        self._busy = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = threading.Condition()

    # Interface for tests

    def __enter__(self) -> Self:
        self._thread.start()
        self.revive()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.die()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLIENT_WAIT_S)
        assert not self._thread.is_alive(), "the scripted provider did not stop"
        self._loop.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def prompts(self) -> list[str]:
        """Return the received prompts in order."""
        return [asked.prompt for asked in self.asked if asked.prompt]

    def then(self, *acts: Act | Fault) -> None:
        """Queue these faults for the next generations or embeddings, one each."""
        self.queue.extend(acts)

    def die(self) -> None:
        """Stop listening and reset every connection."""
        asyncio.run_coroutine_threadsafe(self._die(), self._loop).result(CLIENT_WAIT_S)

    def revive(self) -> None:
        """Listen again on the same port."""
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(CLIENT_WAIT_S)

    def await_asked(self, count: int) -> None:
        """Wait until ``count`` requests were received."""
        self._await(lambda: len(self.asked) >= count, f"{count} requests")

    def await_quiet(self) -> None:
        """Wait until no connection is open."""
        self._await(lambda: self.open_connections == 0, "the end of all connections")

    def _await(self, reached: Callable[[], bool], what: str) -> None:
        with self._changed:
            assert self._changed.wait_for(reached, CLIENT_WAIT_S), f"waited in vain for {what}"

    # The server, on its own thread

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def _listen(self) -> None:
        if self._listener is None:
            self._listener = socket.create_server(("127.0.0.1", self._port), backlog=100)
            self._listener.setblocking(False)
            self._port = self._listener.getsockname()[1]
            self._loop.add_reader(self._listener, self._accept, self._listener)

    def _accept(self, listener: socket.socket) -> None:
        """Serve the next connection.

        Not with ``asyncio.Server``: its ``close`` loses a connection that was just accepted, and nothing closes that.
        """
        try:
            connection, (_, port) = listener.accept()
        except BlockingIOError:  # the client has gone
            return
        connection.setblocking(False)
        task = self._loop.create_task(self._serve(connection, port))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: connection.close())  # also of a task that was cancelled before it ran

    async def _die(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            self._loop.remove_reader(listener)
            listener.close()
        while others := list(self._tasks):
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, connection: socket.socket, port: int) -> None:
        reader, writer = await asyncio.open_connection(sock=connection)
        self._note(open_by=1)
        try:
            while (asked := await self._read(reader, port)) is not None:
                if not await self._meet(asked, reader, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            _reset(writer)
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()
            self._note(open_by=-1)

    def _note(self, *, open_by: int = 0, asked: Asked | None = None) -> None:
        with self._changed:
            self.open_connections += open_by
            if asked is not None:
                self.asked.append(asked)
            self._changed.notify_all()

    async def _read(self, reader: asyncio.StreamReader, port: int) -> Asked | None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        except asyncio.IncompleteReadError:
            return None
        line, *lines = head.strip().split("\r\n")
        method, path, _ = line.split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in lines)}
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        body = json.loads(raw) if raw else None
        prompt, texts = "", ()
        if isinstance(body, dict):
            messages = body.get("messages") or [{}]
            prompt = body.get("prompt") or messages[-1].get("content") or ""
            given = body.get("input", ())
            texts = (given,) if isinstance(given, str) else tuple(given)
        looks = method == "GET"
        number = -1 if looks else len(self.asked)
        asked = Asked(method, path, headers, body, prompt, texts, number, port)
        if looks:
            self.looks += 1
            self._note()
        else:
            self._note(asked=asked)
        return asked

    def _act(self, asked: Asked) -> Act:
        if self.stuck is not None:
            return Act(self.stuck)
        if asked.number < 0:
            return Act(self.look)
        act: Act | Fault = "ok"
        if self.queue:
            act = self.queue.popleft()
        elif self.script is not None:
            act = self.script(asked)
        return act if isinstance(act, Act) else Act(act)

    async def _meet(self, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Carry out the reaction to the request. Returns True if the connection may serve another."""
        act = self._act(asked)
        self._busy += asked.number >= 0
        self.most_at_once = max(self.most_at_once, self._busy)
        try:
            return await self._do(act, asked, reader, writer)
        finally:
            self._busy -= asked.number >= 0

    async def _do(self, act: Act, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        match act.fault:
            case "timeout" | "hang":
                await reader.read()  # until the client gives up
                return False
            case "slow_drip":
                answer = self._answer(act, asked)
                await self._send(writer, _head(200, "application/json", len(answer)))
                for place in range(len(answer)):
                    await self._send(writer, answer[place : place + 1])
                    await asyncio.sleep(self.drip_s)
                return False
            case "rst":
                _reset(writer)
                return False
            case "cut_off":
                answer = self._answer(act, asked)
                await self._send(writer, _head(200, "application/json", len(answer)) + answer[: len(answer) // 2])
                return False
            case "die":
                # In another task, because this one is cancelled too.
                self._loop.create_task(self._die())
                await reader.read()
                return False
            case "huge":
                await self._send(writer, _head(200, "application/json", _HUGE_BYTES) + b'{"response": "')
                for _ in range(_HUGE_BYTES >> 16):
                    await self._send(writer, b"x" * (1 << 16))
                return False
            case "bomb":
                packed = b"\x1f\x8b" + b"x" * 100
                await self._send(writer, _head(200, "application/json", len(packed), "content-encoding: gzip"))
                await self._send(writer, packed)
                return True
            case "redirect":
                await self._send(writer, _head(307, "text/plain", 0, "location: http://127.0.0.1:1/elsewhere"))
                return True
            case "not_http":
                await self._send(writer, b"SSH-2.0-OpenSSH_9.6\r\n\x00\xff\r\n\r\n")
                return False
            case "broken_json":
                return await self._reply(writer, 200, b'{"response": "never closed')
            case "wrong_shape":
                return await self._reply(writer, 200, b'{"answer": 42, "data": "?", "choices": 1, "models": 3}')
            case "wrong_content_type":
                return await self._reply(writer, 200, b"<html>Please log in</html>", kind="text/html")
            case "http_429":
                extra = [f"retry-after: {act.retry_after}"] if act.retry_after is not None else []
                return await self._reply(writer, 429, b'{"error": "slow down"}', *extra)
            case "http_400" | "http_401" | "http_404" | "http_500" | "http_503":
                echoed = asked.headers.get("authorization", "")
                told = f"{act.fault} of {echoed}\n" + "because " * 100 if act.text is None else act.text
                body = json.dumps({"error": told}).encode()
                return await self._reply(writer, int(act.fault[5:]), body)
            case _:
                if asked.number >= 0 and self.thinks_s:
                    await asyncio.sleep(self.thinks_s)
                return await self._reply(writer, 200, self._answer(act, asked))

    async def _reply(
        self, writer: asyncio.StreamWriter, status: int, body: bytes, *extra: str, kind: str = "application/json"
    ) -> bool:
        await self._send(writer, _head(status, kind, len(body), *extra) + body)
        return True

    async def _send(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        writer.write(data)
        await writer.drain()
        self.sent_bytes += len(data)

    def _answer(self, act: Act, asked: Asked) -> bytes:
        """Return a whole response in the wire format of the requested path."""
        match asked.path:
            case "/api/tags":
                body: Any = {"models": [{"name": name, "model": name, "size": 1} for name in self.models]}
            case "/v1/models":
                body = {"object": "list", "data": [{"id": name, "object": "model"} for name in self.models]}
            case "/api/generate":
                body = {
                    "model": asked.body["model"],
                    "created_at": "2026-02-21T10:00:00Z",
                    "response": self._text(act),
                    "done": True,
                    "prompt_eval_count": self.tokens[0],
                    "eval_count": self.tokens[1],
                }
            case "/v1/chat/completions":
                body = {
                    "id": "chatcmpl-1",
                    "object": "chat.completion",
                    "choices": [
                        {
                            "index": 0,
                            "message": {"role": "assistant", "content": self._text(act)},
                            "finish_reason": "stop",
                        }
                    ],
                    "usage": {"prompt_tokens": self.tokens[0], "completion_tokens": self.tokens[1]},
                }
            case "/api/embed":
                body = {"model": asked.body["model"], "embeddings": self._vectors(asked), "prompt_eval_count": 3}
            case "/v1/embeddings":
                vectors = self._vectors(asked)
                rows = enumerate(vectors) if isinstance(vectors, list) else ()
                # Reversed, because the order is not guaranteed: the index decides.
                data = [{"object": "embedding", "index": place, "embedding": vector} for place, vector in rows]
                body = {"object": "list", "data": data[::-1], "usage": {"prompt_tokens": 3}}
            case _:
                body = {"error": f"no such path {asked.path}"}
        return json.dumps(body).encode()

    def _text(self, act: Act) -> str:
        text = self.text if act.text is None else act.text
        match act.fault:
            case "garbage":
                return "Sure! Here is a poem about llamas instead. {not json"
            case "think_block":
                return f"<think>\nThe user wants JSON. Is {{this}} it?\n</think>\n{text}"
            case "fenced":
                return f"Here you are:\n```json\n{text}\n```\n"
            case "cut_json":
                return text[: max(1, len(text) // 2)]
            case "empty":
                return "  \n"
            case _:
                return text

    def _vectors(self, asked: Asked) -> Any:
        vectors = [vector_of(text, self.dimensions) for text in asked.texts]
        return vectors if self.spoil_vectors is None else self.spoil_vectors(vectors)


def vector_of(text: str, dimensions: int) -> list[float]:
    """Return the server's vector for ``text``: not normalized, always the same."""
    seed = hashlib.sha256(text.encode()).digest()
    return [math.sin(seed[place % 32] + place) * 3 for place in range(dimensions)]


def _head(status: int, kind: str, length: int, *extra: str) -> bytes:
    lines = [
        f"HTTP/1.1 {status} {_REASONS.get(status, 'Something')}",
        f"content-type: {kind}",
        f"content-length: {length}",
        *extra,
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close the connection with a reset instead of an orderly end."""
    plain = writer.get_extra_info("socket")
    if plain is not None:
        with contextlib.suppress(OSError):
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


CliFault = Literal[
    "ok",
    "echo",
    "hang",
    "exit_1",
    "no_log_in",
    "usage_limit",
    "huge",
    "empty",
    "grandchild",
    "grandchild_then_hang",
    "daemon",
    "deaf",
    "chatty_errors",
]


@dataclass(frozen=True)
class FakeCli:
    """A directory for ``PATH`` with scripted programs that record how they were called."""

    directory: Path

    def write(self, program: str, fault: CliFault, *, text: str = '{"facts": [], "entities": []}') -> Path:
        """Write ``program``, which reacts to each call with ``fault``; replaces an earlier version."""
        self.directory.mkdir(exist_ok=True)
        path = self.directory / program
        partial = path.with_suffix(".partial")
        partial.write_text(
            _PROGRAM.format(python=sys.executable, fault=fault, text=text, directory=str(self.directory))
        )
        partial.chmod(partial.stat().st_mode | stat.S_IXUSR)
        partial.replace(path)
        return path

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Return how each call was made, in order: argv, stdin, environment, cwd."""
        return [json.loads(file.read_text()) for file in sorted(self.directory.glob("call-*.json"))]

    @property
    def pids(self) -> list[int]:
        """Return every process that reported itself: a call or a process that it started."""
        return [int(file.name.rpartition("-")[2]) for file in self.directory.glob("pid-*")]

    def await_pids(self, count: int) -> list[int]:
        """Wait until ``count`` processes have reported that they run."""
        deadline = threading.Event()
        for _ in range(int(CLIENT_WAIT_S * 100)):
            if len(self.pids) >= count:
                return self.pids
            deadline.wait(0.01)
        raise AssertionError(f"{count} processes did not start, only {self.pids}")

    def living(self) -> list[int]:
        """Return those of ``pids`` that still run. A zombie does not count as running."""
        return [pid for pid in self.pids if _lives(pid)]

    def await_none_living(self) -> None:
        """Wait until none of ``pids`` runs."""
        pause = threading.Event()
        for _ in range(int(CLIENT_WAIT_S * 100)):
            if not self.living():
                return
            pause.wait(0.01)
        raise AssertionError(f"still there: {self.living()}")


def _lives(pid: int) -> bool:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return fields[0] not in {"Z", "X"}


def kill_all(pids: Iterable[int]) -> None:
    """Kill the processes that a failed test left."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, 9)


_PROGRAM: Final = textwrap.dedent(
    '''\
    #!{python} -IS
    import json, os, signal, sys, time

    FAULT, TEXT, DIRECTORY = {fault!r}, {text!r}, {directory!r}


    def here():
        open(f"{{DIRECTORY}}/pid-{{os.getpid()}}", "w").close()


    def forever():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(3600)


    def grandchild():
        """In a session of its own, with the pipes of its parent."""
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                here()
                os.write(writer, b"x")
                forever()
            os._exit(0)
        os.read(reader, 1)


    here()
    if FAULT == "deaf":
        os.close(0)
        print(TEXT)
        sys.exit(0)
    given = sys.stdin.buffer.read()
    number = f"{{time.time_ns():020d}}-{{os.getpid()}}"
    with open(f"{{DIRECTORY}}/.call-{{number}}", "w") as file:
        json.dump({{
            "argv": sys.argv[1:],
            "stdin": given.decode("utf-8", "surrogateescape"),
            "environment": dict(os.environ),
            "cwd": os.getcwd(),
            "files": os.listdir("."),
        }}, file)
    os.rename(f"{{DIRECTORY}}/.call-{{number}}", f"{{DIRECTORY}}/call-{{number}}.json")
    if FAULT == "exit_1":
        sys.stderr.write("Traceback: key sk-ant-REDACTED-me-please\\n" + "because " * 100)
        sys.exit(1)
    elif FAULT == "no_log_in":
        print("Invalid API key · Please run /login")
        sys.exit(1)
    elif FAULT == "usage_limit":
        print("Claude AI usage limit reached|1792000000")
        sys.exit(1)
    elif FAULT == "hang":
        forever()
    elif FAULT == "huge":
        while True:
            os.write(1, b"x" * 65536)
    elif FAULT == "grandchild":
        grandchild()
        print(TEXT)
    elif FAULT == "grandchild_then_hang":
        grandchild()
        forever()
    elif FAULT == "daemon":
        os.close(1)
        os.close(2)
        forever()
    elif FAULT == "chatty_errors":
        for _ in range(64):
            sys.stderr.write("warning " * 4096)
        print(TEXT)
    elif FAULT == "echo":
        sys.stdout.buffer.write(given)
    elif FAULT != "empty":
        print(TEXT)
    '''
)
