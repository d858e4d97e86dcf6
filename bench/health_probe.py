"""``/health`` asked at fixed times by a process of its own, so that no delay of the load generator is the daemon's.

Every request has a connection of its own and is sent when it is due, whether or not the one before it is answered:
asked one after the other, answers of 21 ms each would add up to the latency of a probe that is a second behind. How
late the probe itself was is told beside; on a machine without a free core that is the floor. The process ends when its
standard input does.
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
    """What the probe found."""

    latencies_ms: list[float] = []
    late_ms: list[float] = []
    failed: list[str] = []


class HealthProbe:
    """Asks between entering and leaving ``running``; ``found`` is complete afterwards."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self.found = Probed()

    @contextmanager
    def running(self) -> Iterator[None]:
        """The probe has begun; on leaving it has ended, and told what it found."""
        command = [sys.executable, "-P", "-m", "bench.health_probe", self._address.host, str(self._address.port)]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        assert process.stdout is not None
        try:
            process.stdout.readline()  # it has begun
            yield
        finally:
            said, _ = process.communicate(timeout=END_BUDGET_S)  # its standard input ends, and so does it
        self.found = msgspec.json.decode(said, type=Probed)


def main() -> None:
    """Asks the address in the arguments until the standard input ends; prints what it found."""
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
                due += EVERY_S * max(1, (now - due) // EVERY_S)  # what was missed is not made up for

    asyncio.run(ask_when_due())
    print(msgspec.json.encode(found).decode(), flush=True)


if __name__ == "__main__":
    main()
