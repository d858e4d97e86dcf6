"""Closed loops: clients that send their next request when the last one is answered, all in this process.

A latency is the waiting time of one client; the throughput is that of all clients together.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Iterator, Sequence
from typing import Final

import uvloop

from bench.client import Connection, ProtocolError, encode_request
from bench.daemon import Address

OK: Final = 200
BUSY: Final = 503
PROBE_EVERY_S: Final = 0.02


class Answered:
    """The results of a phase.

    ``at`` has the index of the request for each of ``latencies_ms``, and ``bodies`` the response if responses are kept.
    ``refused`` counts 503; ``failed`` counts every other status and each broken connection.
    """

    def __init__(self, *, keep_bodies: bool = False) -> None:
        self.at: list[int] = []
        self.latencies_ms: list[float] = []
        self.bodies: list[bytes] = []
        self.refused = 0
        self.failed: list[str] = []
        self._keep_bodies = keep_bodies

    def add(self, at: int, status: int, body: bytes, took_ms: float) -> None:
        """Record one response."""
        if status == OK:
            self.at.append(at)
            self.latencies_ms.append(took_ms)
            if self._keep_bodies:
                self.bodies.append(body)
        elif status == BUSY:
            self.refused += 1
        else:
            self.failed.append(f"{status}: {body[:200].decode(errors='replace')}")


async def closed_loop(
    address: Address, requests: Iterator[tuple[int, bytes]], answered: Answered, until: float, *, every_s: float = 0.0
) -> None:
    """Run one client: send each request when the last one is answered, until the requests end or until ``until``.

    With ``every_s`` requests are at least that far apart.
    """
    connection = await Connection.open(address.host, address.port)
    try:
        for at, request in requests:
            before = time.perf_counter()
            if before >= until:
                return
            status, body = await connection.exchange(request)
            took_ms = (time.perf_counter() - before) * 1000
            answered.add(at, status, body, took_ms)
            if every_s:
                await asyncio.sleep(max(0.0, min(before + every_s, until) - time.perf_counter()))
    except (ProtocolError, TimeoutError, OSError) as error:
        answered.failed.append(repr(error))
    finally:
        connection.close()


async def run_clients(
    address: Address, requests: Sequence[bytes], clients: int, answered: Answered, until: float
) -> None:
    """Distribute ``requests`` over that many closed loops."""
    dealt = iter(enumerate(requests))
    await asyncio.gather(*(closed_loop(address, dealt, answered, until) for _ in range(clients)))


async def probe(address: Address, answered: Answered, until: float) -> None:
    """Request ``/health`` at fixed times; the latency counts from the time at which the request was due."""
    connection = await Connection.open(address.host, address.port)
    request = encode_request("GET", "/health", host=f"{address.host}:{address.port}")
    due = time.perf_counter()
    try:
        while due < until:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            status, body = await connection.exchange(request)
            answered.add(0, status, body, (time.perf_counter() - due) * 1000)
            due += PROBE_EVERY_S
    except (ProtocolError, TimeoutError, OSError) as error:
        answered.failed.append(repr(error))
    finally:
        connection.close()


async def beside(work: Awaitable[None], *others: Awaitable[None]) -> None:
    """Wait for ``work``, then cancel ``others``."""
    tasks = [asyncio.ensure_future(other) for other in others]
    try:
        await work
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    for outcome in ended:
        if isinstance(outcome, Exception):
            raise outcome


def run(work: Awaitable[None]) -> None:
    """Run ``work`` in a new event loop."""

    async def whole() -> None:
        await work

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(whole())
