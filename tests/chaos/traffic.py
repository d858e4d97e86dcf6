"""Clients that continuously remember, change, forget and recall, and check the result from outside.

Every memory belongs to one client, which acts on it one step after another. So the expected state of each memory is
known exactly: the last acknowledged step counts, a step that was only refused (503) must not have happened, and a step
with an unknown outcome (504, a broken connection) may have, until a retry with the same Idempotency-Key decides.

Source: docs/reliability.md "HTTP outcomes", "Invariants", R1 and R25.
"""

from __future__ import annotations

import http.client
import random
import secrets
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon

BROKEN = 0
"""The status of a request whose connection broke."""
DEADLINE_S = 20.0
"""Twice the longest time that the daemon takes for a request."""
_RETRY_S = 0.03


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its outcome; times of ``time.monotonic``."""

    kind: str
    begun: float
    ended: float
    status: int


@dataclass(slots=True)
class Memory:
    """The expected state of one memory. ``pending`` is the state after a last step with an unknown outcome."""

    token: str
    id: str | None = None
    content: str = ""
    version: int = 0
    deleted: bool = False
    answered: bool = False
    refused: bool = False
    pending: tuple[str, int, bool] | None = None


@dataclass(slots=True)
class Twins:
    """Two memories that say the same, of which a deduplication makes one. ``ids``: of those that were acknowledged."""

    token: str
    contents: tuple[str, str]
    ids: dict[str, str] = field(default_factory=dict)

    def wrong(self, found: list[tuple[str, str, int, bool]]) -> str | None:
        """Return what is wrong with the rows of the two; None if they are as they were, or merged as a whole."""
        ids = {content: row_id for row_id, content, _, _ in found}
        if len(ids) < len(found) or set(ids) - set(self.contents):
            return f"is stored as {found}"
        if any(ids.get(content) != known for content, known in self.ids.items()):
            return f"is not stored as answered: {found}"
        states = sorted((version, deleted) for _, _, version, deleted in found)
        return None if states in ([], [_NEW], [_NEW, _NEW], [(2, False), (2, True)]) else f"is half merged: {found}"


_NEW = (1, False)


@dataclass
class Book:
    """The result of a check; everything but ``acknowledged`` and ``memories`` must be empty."""

    acknowledged: int = 0
    memories: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    phantom: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> list[str]:
        return [
            f"{name}: {item}"
            for name in ("lost", "doubled", "changed", "phantom", "problems")
            for item in getattr(self, name)
        ]


class Traffic:
    """Runs ``clients`` threads at ``rate`` steps per second in total, until ``stop``.

    ``faulty``: statuses that an injected fault may also cause; they count as unknown outcomes. ``twins``: also remember
    memories that say the same twice, and have them merged.
    """

    def __init__(
        self,
        daemon: LiveDaemon,
        *,
        clients: int = 8,
        rate: float = 50.0,
        seed: int = 0,
        faulty: frozenset[int] = frozenset(),
        twins: bool = False,
    ) -> None:
        self.daemon = daemon
        self.name = secrets.token_hex(3)
        self.exchanges: list[Exchange] = []
        self.memories: list[Memory] = []
        self.problems: list[str] = []
        self.acknowledged = 0
        self.twins: list[Twins] | None = [] if twins else None
        self.merged = 0
        self._unknown = frozenset({503, 504, BROKEN}) | faulty
        self._interval = clients / rate
        self._stopping = threading.Event()
        self._finished = threading.Event()
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._client, args=(random.Random(f"{seed}/{number}"),))
            for number in range(clients)
        ]

    # what a test says

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self, *, settle: bool = True) -> None:
        """Stop the clients. ``settle``: each first finds out the outcome of its last step."""
        self._stopping.set()
        if not settle:
            self._finished.set()
        for thread in self._threads:
            thread.join(120)
            assert not thread.is_alive(), "a client hangs"

    def progress(self, count: int = 20) -> None:
        """Wait until that many more steps were answered 200, a recall among them."""
        since = len(self.exchanges)

        def enough() -> bool:
            done = [exchange.kind for exchange in self.exchanges[since:] if exchange.status == 200]
            return len(done) >= count and "recall" in done

        eventually(enough, within_s=60, what="more steps answered")

    @property
    def statuses(self) -> Counter[int]:
        return Counter(exchange.status for exchange in list(self.exchanges))

    # the check

    def check(self) -> Book:
        """Compare every memory with the disk and return the result; the clients have stopped, the daemon may run."""
        book = Book(acknowledged=self.acknowledged, memories=len(self.memories), problems=list(self.problems))
        rows: dict[str, list[tuple[str, str, int, bool]]] = {}
        for row_id, content, version, deleted in self.daemon.read(
            "SELECT id, content, version, is_deleted FROM memories WHERE content LIKE ?", f"{self.name} %"
        ):
            rows.setdefault(content.split()[1], []).append((row_id, content, version, bool(deleted)))
        for memory in self.memories:
            self._compare(memory, rows.pop(memory.token, []), book)
        for pair in self.twins or ():
            if (wrong := pair.wrong(rows.pop(pair.token, []))) is not None:
                book.changed.append(f"{pair.token} {wrong}")
        book.phantom += [f"nobody asked for {token}" for token in rows]
        return book

    @staticmethod
    def _compare(memory: Memory, found: list[tuple[str, str, int, bool]], book: Book) -> None:
        token = memory.token
        if len(found) > 1:
            book.doubled.append(f"{token} is stored {len(found)} times")
        elif not memory.answered:
            if found and memory.refused:
                book.phantom.append(f"{token} was only refused and is there")
            elif found and found[0][1:] != memory.pending:
                book.changed.append(f"{token}: unanswered as {memory.pending}, is {found[0][1:]}")
        elif not found or found[0][0] != memory.id:
            book.lost.append(f"{token} ({memory.id})")
        else:
            state = found[0][1:]
            if state not in {(memory.content, memory.version, memory.deleted), memory.pending}:
                wanted = (memory.content, memory.version, memory.deleted)
                book.changed.append(f"{token}: answered as {wanted}, pending {memory.pending}, is {state}")

    # a client

    def _client(self, rng: random.Random) -> None:
        own: list[Memory] = []
        due = time.monotonic()
        try:
            while not self._stopping.is_set():
                due = max(due + self._interval, time.monotonic() - 1.0)
                self._step(rng, own)
                self._stopping.wait(max(0.0, due - time.monotonic()))
        except Exception as error:  # an unnoticed exception in the thread would skip the checks
            self.problems.append(f"a client failed: {error!r}")
            raise

    def _step(self, rng: random.Random, own: list[Memory]) -> None:
        way = rng.random()
        if self.twins is not None and rng.random() < 0.05:
            self._remember_twins(rng, self.twins)
            self.deduplicate()
            return
        if len(own) < 3 or way < 0.45:
            memory = self._remember(rng)
            if memory is not None:
                own.append(memory)
            return
        memory = own[rng.randrange(max(0, len(own) - 40), len(own))]
        if way < 0.60:
            self._modify(rng, memory, own)
        elif way < 0.68:
            self._forget(rng, memory, own)
        else:
            self._recall(memory)

    def _remember(self, rng: random.Random) -> Memory | None:
        """Return an acknowledged memory, or None if it was given up or its outcome is unknown."""
        token = f"t{rng.getrandbits(64):016x}"
        memory = Memory(token, pending=None)
        content = f"{self.name} {token} was noted first"
        memory.pending = (content, 1, False)
        with self._lock:
            self.memories.append(memory)
        answer, certain = self._until_answered(rng, "remember", "POST", "/api/memory/remember", {"content": content})
        if answer is None:
            memory.refused = certain
            return None
        if answer["deduped"]:
            self.problems.append(f"the retry of {token} acted a second time")
        memory.id, memory.content, memory.version, memory.answered = answer["id"], content, 1, True
        memory.pending = None
        if rng.random() < 0.5:
            self._recall(memory)
        return memory

    def _remember_twins(self, rng: random.Random, twins: list[Twins]) -> None:
        token = f"w{rng.getrandbits(64):016x}"
        said = f"{self.name} {token} was noted as"
        pair = Twins(token, (f"{said} first of all", f"{said} the first of all"))
        with self._lock:
            twins.append(pair)
        for content in pair.contents:
            body = {"content": content}
            answer, _ = self._until_answered(rng, "remember", "POST", "/api/memory/remember", body)
            if answer is not None:
                pair.ids[content] = answer["id"]

    def deduplicate(self) -> bool:
        """Have twins merged; return False if that was refused, mostly by a cooldown. It must merge nothing else."""
        try:
            answer = self.daemon.api.request("POST", "/api/repair/deduplicate", {}, timeout=DEADLINE_S)
        except (OSError, http.client.HTTPException):
            return False
        if answer.status == 200:
            for pair in answer.json["pairs"]:
                self.merged += 1
                if pair["keptContent"].split()[1] != pair["mergedContent"].split()[1]:
                    self.problems.append(f"merged: {pair}")
        elif answer.status not in {429, *self._unknown}:
            self.problems.append(f"a deduplication was answered {answer.status}: {answer.raw[:200]!r}")
        return answer.status == 200

    def _modify(self, rng: random.Random, memory: Memory, own: list[Memory]) -> None:
        content = f"{self.name} {memory.token} was changed to {rng.getrandbits(48):012x}"
        memory.pending = (content, memory.version + 1, False)
        body = {"content": content, "reason": "the tests change it"}
        answer, certain = self._until_answered(rng, "modify", "PATCH", f"/api/memory/{memory.id}", body)
        if answer is None:
            self._give_up(memory, own, certain=certain)
            return
        if answer["status"] != "updated" or answer["newVersion"] != memory.version + 1:
            self.problems.append(f"{memory.token} of version {memory.version} was changed to {answer}")
        memory.content, memory.version, memory.pending = content, answer["newVersion"], None
        if rng.random() < 0.5:
            self._recall(memory)

    def _forget(self, rng: random.Random, memory: Memory, own: list[Memory]) -> None:
        memory.pending = (memory.content, memory.version + 1, True)
        target = f"/api/memory/{memory.id}?reason=tests"
        answer, certain = self._until_answered(rng, "forget", "DELETE", target, None)
        if answer is None:
            self._give_up(memory, own, certain=certain)
            return
        if answer["newVersion"] != memory.version + 1:
            self.problems.append(f"{memory.token} of version {memory.version} was forgotten as {answer}")
        memory.version, memory.deleted, memory.pending = answer["newVersion"], True, None
        own.remove(memory)
        if rng.random() < 0.3:
            self._recall(memory)

    @staticmethod
    def _give_up(memory: Memory, own: list[Memory], *, certain: bool) -> None:
        """Record a failed step: if it was only refused it has not happened; otherwise both states are possible and the
        memory is no longer used.
        """
        if certain:
            memory.pending = None
        else:
            own.remove(memory)

    def _recall(self, memory: Memory) -> None:
        """Check that an acknowledged memory is found at once by its unique word and is unchanged."""
        while not self._finished.is_set():
            status, found = self._ask("recall", "POST", "/api/memory/recall", {"query": memory.token, "limit": 5}, {})
            if status == 200:
                contents = {row["id"]: row["content"] for row in found["results"]}
                if memory.deleted and memory.id in contents:
                    self.problems.append(f"forgotten, but recalled: {memory.token}")
                elif not memory.deleted and contents.get(str(memory.id)) != memory.content:
                    self.problems.append(f"answered {memory.content!r}, recalled {contents.get(str(memory.id))!r}")
                return
            if status not in self._unknown or status == 504:
                self.problems.append(f"recall was answered {status}: {found}")
                return
            if self._stopping.wait(_RETRY_S):
                return

    def _until_answered(
        self, rng: random.Random, kind: str, method: str, target: str, body: Any
    ) -> tuple[Any | None, bool]:
        """Return the answer of a 200; else None, and whether it is certain that nothing was applied.

        Every attempt has the same Idempotency-Key. A third of the clients do not retry requests that were only refused.
        """
        headers = {"Idempotency-Key": f"{rng.getrandbits(96):024x}"}
        gives_up = rng.random() < 0.33
        statuses: set[int] = set()
        while True:
            status, answer = self._ask(kind, method, target, body, headers)
            statuses.add(status)
            if status == 200:
                with self._lock:
                    self.acknowledged += 1
                return answer, True
            if status not in self._unknown:
                self.problems.append(f"{kind} was answered {status}: {answer}")
                return None, False
            certain = statuses == {503}
            if (gives_up and certain) or self._finished.wait(_RETRY_S):
                return None, certain

    def _ask(self, kind: str, method: str, target: str, body: Any, headers: dict[str, str]) -> tuple[int, Any]:
        begun = time.monotonic()
        answer = None
        try:
            answer = self.daemon.api.request(method, target, body, headers, timeout=DEADLINE_S)
            status = answer.status
        except (OSError, http.client.HTTPException) as error:
            status = BROKEN
            if isinstance(error, TimeoutError | socket.timeout):
                self.problems.append(f"{kind} had no outcome within {DEADLINE_S} s")
        self.exchanges.append(Exchange(kind, begun, time.monotonic(), status))
        if answer is None:
            return status, None
        if status == 503 and "retry-after" not in answer.headers:
            self.problems.append(f"a 503 without Retry-After: {answer.raw[:200]!r}")
        try:
            return status, answer.json
        except ValueError:
            self.problems.append(f"{kind} was answered {status} without JSON: {answer.raw[:200]!r}")
            return status, None


@contextmanager
def traffic_on(daemon: LiveDaemon, **options: Any) -> Iterator[Traffic]:
    """Run traffic after its first answers; the clients end with the block."""
    traffic = Traffic(daemon, **options)
    traffic.start()
    try:
        traffic.progress()
        yield traffic
    finally:
        traffic.stop(settle=False)
