"""The client for programs without an event loop."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self, TypeVar

import httpx
import msgspec

from signet_actors.client.encoding import HttpReply
from signet_actors.client.exchange import Exchange, Limits, Lost, Outcome, Pause, Send
from signet_actors.client.http_transport import Body, build_request, client_options, connections, lost, make_caller
from signet_actors.client.location import Location
from signet_actors.client.methods import Methods
from signet_actors.operations.import_export import MemoryLine
from signet_actors.operations.operation import Operation

T = TypeVar("T")
ReplyT = TypeVar("ReplyT")
RequestT = TypeVar("RequestT", bound=msgspec.Struct)


class Client(Methods):
    """A client of one daemon. Threads may share it; ``close`` it, or use it in a ``with`` block.

    - ``url``: the daemon's address; without it, that of the daemon of ``workspace`` or of the environment.
    - ``token``: a token or an API key; without it, SIGNET_TOKEN, else SIGNET_API_KEY, else that of `signet login`.
    - ``agent``: whose memories are read and written. ``session``: the key of the conversation.
    - ``actor``, ``actor_type``: who the history says made a change.
    - ``limits``: how long calls may take.
    - ``transport``: replaces the connections of httpx, for example in tests.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        workspace: str | Path | None = None,
        token: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        actor: str | None = None,
        actor_type: str | None = None,
        limits: Limits = Limits(),  # noqa: B008 - it is immutable
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Raise InvalidRequest for a URL that is none; nothing is sent yet."""
        location = Location(url, workspace)
        self.caller = make_caller(
            location, limits, token=token, agent=agent, session=session, actor=actor, actor_type=actor_type
        )
        if transport is None and (local := location.socket) is not None:
            transport = httpx.HTTPTransport(uds=local, verify=False, trust_env=False, limits=connections())
        self._http = httpx.Client(transport=transport, **client_options(location))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def call(self, operation: Operation[RequestT, ReplyT], request: RequestT | None = None, /, **path: str) -> ReplyT:
        """Call any declared operation and return its reply; ``path`` has the parameters of its path."""
        return self.run(self.caller.call(operation, request, **path))

    def export_memories(self, *, scope: str | None = None) -> Iterator[MemoryLine]:
        """Yield all memories that the caller may read, oldest first, one page at a time."""
        after: int | None = 0
        while after is not None:
            page = self.export_page(after=after, scope=scope)
            yield from page.memories
            after = page.next

    def run(self, exchange: Exchange[T]) -> T:
        """Perform an exchange."""
        try:
            step = next(exchange)
            while True:
                step = exchange.send(self._perform(step))
        except StopIteration as end:
            value: T = end.value
            return value

    def _perform(self, step: Send | Pause) -> Outcome:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        return self._send(step)

    def _send(self, send: Send) -> HttpReply | Lost:
        try:
            response = self._http.send(build_request(self._http, send), stream=True)
            try:
                body = Body(response)
                for chunk in response.iter_bytes():
                    body.add(chunk)
                return body.reply()
            finally:
                response.close()
        except (httpx.TransportError, httpx.DecodingError) as error:
            return lost(error, send.url)
