"""Request ``/health`` at fixed times from a separate process, so that delays of the load generator do not count.

Every request has its own connection and is sent when it is due, whether or not the previous one is answered: sent one
after the other, responses of 21 ms each would add up to a delay of a second. The delay of the probe itself is reported
too; on a machine without a free core it is the floor. The process exits when its standard input is closed.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

from bench.client import Connection, ProtocolError, encode_request
from bench.daemon import REPOSITORY, Address

EVERY_S: Final = 0.02
END_BUDGET_S: Final = 60.0
OK: Final = 200


class Probed(msgspec.Struct):
    """The results of the probe."""

    latencies_ms: list[float] = []
    late_ms: list[float] = []
    failed: list[str] = []


class HealthProbe:
    """Sends requests between entering and leaving ``running``; ``found`` is complete afterwards."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self.found = Probed()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Start the probe, and collect its results at the end of the block."""
        command = [sys.executable, "-P", "-m", "bench.health_probe", self._address.host, str(self._address.port)]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        assert process.stdout is not None
        try:
            process.stdout.readline()  # the probe has started
            yield
        finally:
            said, _ = process.communicate(timeout=END_BUDGET_S)  # the probe exits when its standard input is closed
        self.found = msgspec.json.decode(said, type=Probed)


def main() -> None:
    """Probe the address in the arguments until the standard input is closed; print the results."""
    host, port = sys.argv[1], int(sys.argv[2])
    ending = threading.Event()

    def heed_the_end() -> None:
        sys.stdin.buffer.read()
        ending.set()

    threading.Thread(target=heed_the_end, daemon=True).start()
    found = Probed()

    request = encode_request("GET", "/health", host=f"{host}:{port}")

    async def ask() -> None:
        began = time.perf_counter()
        try:
            connection = await Connection.open(host, port)
            try:
                status, _ = await connection.exchange(request)
            finally:
                connection.close()
        except (ProtocolError, TimeoutError, OSError) as error:
            found.failed.append(repr(error))
            return
        found.latencies_ms.append((time.perf_counter() - began) * 1000)
        if status != OK:
            found.failed.append(str(status))

    async def ask_when_due() -> None:
        print("begun", flush=True)
        due = time.perf_counter()
        async with asyncio.TaskGroup() as asking:
            while not ending.is_set():
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                now = time.perf_counter()
                found.late_ms.append((now - due) * 1000)
                asking.create_task(ask())
                due += EVERY_S * max(1, (now - due) // EVERY_S)  # missed requests are not sent later

    asyncio.run(ask_when_due())
    print(msgspec.json.encode(found).decode(), flush=True)


if __name__ == "__main__":
    main()
