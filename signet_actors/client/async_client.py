"""The client for programs with an asyncio event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

import httpx
import msgspec

from signet_actors.client.encoding import HttpReply
from signet_actors.client.exchange import Exchange, Limits, Lost, Outcome, Pause, Send
from signet_actors.client.http_transport import Body, build_request, client_options, connections, lost, make_caller
from signet_actors.client.location import Location
from signet_actors.client.methods import Methods
from signet_actors.operations.import_export import MemoryLine
from signet_actors.operations.operation import Operation

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
ReplyT = TypeVar("ReplyT")
RequestT = TypeVar("RequestT", bound=msgspec.Struct)


class AsyncClient(Methods):
    """A client of one daemon whose methods are awaited; the arguments are those of ``Client``.

    ``close`` it, or use it in an ``async with`` block. Its connections belong to the event loop of its first call: each
    loop needs a client of its own. After a call was cancelled, its change may have been applied.
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
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Raise InvalidRequest for a URL that is none; nothing is sent yet."""
        location = Location(url, workspace)
        self.caller = make_caller(
            location, limits, token=token, agent=agent, session=session, actor=actor, actor_type=actor_type
        )
        if transport is None and (local := location.socket) is not None:
            transport = httpx.AsyncHTTPTransport(uds=local, verify=False, trust_env=False, limits=connections())
        self._http = httpx.AsyncClient(transport=transport, **client_options(location))
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        self._check_loop()
        await self._http.aclose()

    async def call(
        self, operation: Operation[RequestT, ReplyT], request: RequestT | None = None, /, **path: str
    ) -> ReplyT:
        """Call any declared operation and return its reply; ``path`` has the parameters of its path."""
        return await self.run(self.caller.call(operation, request, **path))

    async def export_memories(self, *, scope: str | None = None) -> AsyncIterator[MemoryLine]:
        """Yield all memories that the caller may read, oldest first, one page at a time."""
        after: int | None = 0
        while after is not None:
            page = await self.export_page(after=after, scope=scope)
            for memory in page.memories:
                yield memory
            after = page.next

    async def run(self, exchange: Exchange[T]) -> T:
        """Perform an exchange."""
        try:
            step = next(exchange)
            while True:
                step = exchange.send(await self._perform(step))
        except StopIteration as end:
            value: T = end.value
            return value

    async def _perform(self, step: Send | Pause) -> Outcome:
        if isinstance(step, Pause):
            import asyncio  # noqa: PLC0415 - slow; programs with the blocking client do not need it

            await asyncio.sleep(step.seconds)
            return None
        return await self._send(step)

    def _check_loop(self) -> None:
        """Raise RuntimeError in another event loop than that of the first call."""
        import asyncio  # noqa: PLC0415 - as above

        loop = asyncio.get_running_loop()
        self._loop = self._loop or loop
        if loop is not self._loop:
            raise RuntimeError("this AsyncClient belongs to another event loop; make a client in each loop")

    async def _send(self, send: Send) -> HttpReply | Lost:
        self._check_loop()
        try:
            response = await self._http.send(build_request(self._http, send), stream=True)
            try:
                body = Body(response)
                async for chunk in response.aiter_bytes():
                    body.add(chunk)
                return body.reply()
            finally:
                await response.aclose()
        except (httpx.TransportError, httpx.DecodingError) as error:
            return lost(error, send.url)
