"""A daemon, the memories stored in it, and requests about them.

The store is filled with bulk imports of equal size, and only an even sample of the memories is kept for queries: the
load generator needs no more memory for a million memories than for twenty thousand.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from rich.console import Console

from bench.client import BlockingClient, encode_request
from bench.closed_loops import Answered, beside, probe, run, run_clients
from bench.cpu_usage import CpuUsage
from bench.daemon import Daemon, DaemonFailed
from bench.figures import spread
from bench.texts import Asked, Made, Texts

IMPORT_CLIENTS: Final = 2
IMPORT_LINES: Final = 400
SLAB: Final = 20_000
SLAB_BUDGET_S: Final = 600.0
KNOWN: Final = 20_000
REMEMBER_CLIENTS: Final = 16
WARM_UP: Final = 60
_NOT_FOUND: Final = frozenset({404, 405})


class EvenSample:
    """A uniform sample of at most ``size`` of all offered memories (reservoir sampling)."""

    def __init__(self, size: int, seed: int) -> None:
        self.kept: list[Made] = []
        self._size = size
        self._offered = 0
        self._rng = random.Random(seed)

    def offer(self, made: Made) -> None:
        """Offer ``made`` to the sample."""
        self._offered += 1
        if len(self.kept) < self._size:
            self.kept.append(made)
            return
        place = self._rng.randrange(self._offered)
        if place < self._size:
            self.kept[place] = made


class ImportCost:
    """The cost of storing one part. ``refused`` counts requests that had to be sent again."""

    def __init__(self) -> None:
        self.latencies_ms: list[float] = []
        self.refused = 0


class LoadedDaemon:
    """``daemon`` and requests for it. ``size`` is the number of memories that ``grow_to`` has stored."""

    def __init__(self, daemon: Daemon, *, seed: int, console: Console) -> None:
        self.daemon = daemon
        self.size = 0
        self._console = console
        self._stored = Texts(seed)
        self._asked = Texts(seed, stream=1)
        self._sample = EvenSample(KNOWN, seed)

    def say(self, text: str) -> None:
        """Print a line of progress on stderr."""
        self._console.print(f"[dim]{text}[/dim]", highlight=False)

    # filling

    def grow_to(self, size: int) -> dict[str, Any] | None:
        """Store the first ``size`` memories of the seed; return the figures of the import, None if there was none.

        Only the requests are timed, not the generation of the texts.
        """
        missing = size - self.size
        if missing <= 0:
            return None
        imports = self._can_import()
        usage = CpuUsage(self.daemon.processes())
        latencies_ms: list[float] = []
        refused = 0
        while self.size < size:
            slab = [self._stored.memory() for _ in range(min(SLAB, size - self.size))]
            if imports:
                filling = self.import_all(slab, usage)
                latencies_ms += filling.latencies_ms
                refused += filling.refused
            else:
                self._fill([self.remember_of(made) for made in slab], REMEMBER_CLIENTS, usage, lines=None)
            for made in slab:
                self._sample.offer(made)
            self.size += len(slab)
        self.say(f"{size:,} memories; {missing:,} stored in {usage.wall_s:.1f} s")
        if not imports:
            return None
        return {
            "memories": missing,
            "per_s": round(missing / usage.wall_s, 1),
            "latency_ms": spread(latencies_ms),
            "cpu_ms_per_memory": usage.each(missing),
            "refused": refused,
        }

    def import_all(self, memories: Sequence[Made], usage: CpuUsage, **more: str) -> ImportCost:
        """Store all of ``memories`` by bulk import; ``more`` are further fields of each. Raises DaemonFailed."""
        starts = range(0, len(memories), IMPORT_LINES)
        batches = [self.import_of(memories[at : at + IMPORT_LINES], **more) for at in starts]
        return self._fill(batches, IMPORT_CLIENTS, usage, lines=len(memories))

    def _fill(self, requests: Sequence[bytes], clients: int, usage: CpuUsage, *, lines: int | None) -> ImportCost:
        """Send every one of ``requests`` until it is stored. Raises DaemonFailed."""
        filling = ImportCost()
        deadline = time.perf_counter() + SLAB_BUDGET_S
        waiting = list(requests)
        imported = 0
        while waiting:
            left_s = deadline - time.perf_counter()
            if left_s <= 0:
                raise DaemonFailed(f"filling: {len(waiting)} requests were not served in {SLAB_BUDGET_S:.0f} s")
            answered = Answered(keep_bodies=True)
            with usage.measured():
                self.load(waiting, clients, left_s, answered)
            must_have_worked(answered, "filling")
            filling.latencies_ms += answered.latencies_ms
            filling.refused += answered.refused
            if lines is not None:
                imported += sum(msgspec.json.decode(body)["imported"] for body in answered.bodies)
            served = set(answered.at)
            waiting = [request for at, request in enumerate(waiting) if at not in served]
        if lines is not None and imported != lines:
            raise DaemonFailed(f"filling: {lines - imported} of {lines} lines were refused")
        return filling

    def _can_import(self) -> bool:
        """Older revisions have no import; their stores are filled by remembers."""
        address = self.daemon.address
        status, _ = BlockingClient(address.host, address.port).exchange("POST", "/api/memory/import", b"{}")
        return status not in _NOT_FOUND

    # load

    def load(
        self,
        requests: Sequence[bytes],
        clients: int,
        seconds: float,
        answered: Answered | None = None,
        health: Answered | None = None,
    ) -> Answered:
        """Distribute ``requests`` over that many clients, for at most ``seconds``; with ``health`` probed at the same
        time.
        """
        found = answered if answered is not None else Answered()
        until = time.perf_counter() + seconds
        address = self.daemon.address
        probes = [] if health is None else [probe(address, health, until)]
        run(beside(run_clients(address, requests, clients, found, until), *probes))
        return found

    # requests

    def get(self, path: str) -> bytes:
        """Return a GET request for ``path``."""
        return encode_request("GET", path, host=self._host)

    def post(self, path: str, body: object = None) -> bytes:
        """Return a request with ``body`` as JSON, or without one."""
        return encode_request("POST", path, host=self._host, body=b"" if body is None else msgspec.json.encode(body))

    def remember_of(self, made: Made) -> bytes:
        """Return a request to store ``made``."""
        return self.post("/api/memory/remember", made.body())

    def import_of(self, memories: Sequence[Made], **more: str) -> bytes:
        """Return a request to store all of ``memories``; ``more`` are further fields of each."""
        lines = b"\n".join(msgspec.json.encode({**made.body(), **more}) for made in memories)
        return encode_request("POST", "/api/memory/import", host=self._host, body=lines)

    def recall_of(self, asked: Asked) -> bytes:
        """Return a recall request."""
        return self.post("/api/memory/recall", asked.body)

    def questions(self, count: int) -> list[Asked]:
        """Return questions about the stored memories, every second one with a filter."""
        return self._asked.questions(self._sample.kept, count)

    def recalls(self, count: int) -> list[bytes]:
        """Return the requests of that many questions."""
        return [self.recall_of(asked) for asked in self.questions(count)]

    def memories(self, count: int) -> list[Made]:
        """Return new memories, different from the stored ones."""
        return [self._asked.memory() for _ in range(count)]

    def remembers(self, count: int) -> list[bytes]:
        """Return requests to store that many new memories."""
        return [self.remember_of(made) for made in self.memories(count)]

    @property
    def _host(self) -> str:
        return f"{self.daemon.address.host}:{self.daemon.address.port}"

    def complaints(self) -> list[str]:
        """Return the warnings and errors of the daemon's log; such a run may have measured something else."""
        lines: list[str] = []
        for path in sorted((self.daemon.workspace / ".daemon" / "logs").glob("*.log")):
            lines += [
                line
                for line in path.read_text(errors="replace").splitlines()
                if '"level":"warning"' in line or '"level":"error"' in line or '"level":"critical"' in line
            ]
        return lines[-20:]


def must_have_worked(answered: Answered, phase: str) -> None:
    """Raise DaemonFailed with the first failed request, if there is one."""
    if answered.failed:
        raise DaemonFailed(f"{phase}: {len(answered.failed)} requests failed, the first with {answered.failed[0]}")
