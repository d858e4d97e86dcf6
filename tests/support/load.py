"""Clients that remember and recall continuously and record every response.

They check the contract from outside: after 200 the memory is on disk exactly once; after 503 it is certainly not
applied; anything else (504, a broken connection) is unknown until a retry with the same Idempotency-Key decides.

Source: docs/reliability.md "HTTP outcomes", R1.
"""

from __future__ import annotations

import http.client
import itertools
import secrets
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.bus_harness import eventually
from tests.support.live_daemon import Client, LiveDaemon

UNKNOWN = 0
"""The status of a request whose connection broke."""
PAUSE_S = 0.02
"""Between the requests of a client: six that never pause take every processor for as long as a test waits."""
_RETRY_S = 0.02


@dataclass
class Wish:
    """A memory that a client stores, and every status that it received for it."""

    content: str
    key: str
    statuses: list[int] = field(default_factory=list)
    answer: Any = None


class Load:
    """``writers`` threads remember, and ``readers`` threads recall what was stored, until ``stop``."""

    def __init__(self, daemon: LiveDaemon, *, writers: int = 4, readers: int = 2, pause_s: float = PAUSE_S) -> None:
        self.daemon = daemon
        self._pause_s = pause_s
        self._readers = readers
        self.name = secrets.token_hex(3)
        self.wishes: list[Wish] = []
        self.recalls: Counter[int] = Counter()
        self.problems: list[str] = []
        self.stopping = threading.Event()
        self.finished = threading.Event()
        self._numbers = itertools.count()
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(writers)]
        self._threads += [threading.Thread(target=self._read) for _ in range(readers)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self, *, settle: bool = True) -> None:
        """Stop all clients. With ``settle``, each first determines the outcome of its last request."""
        self.stopping.set()
        if not settle:
            self.finished.set()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive(), "a client hangs"

    @property
    def kept(self) -> dict[str, Any]:
        """Return content and response of each memory that was answered with 200."""
        return {wish.content: wish.answer for wish in list(self.wishes) if wish.answer is not None}

    @property
    def statuses(self) -> Counter[int]:
        """Return how often each status was received for a remember."""
        return Counter(status for wish in list(self.wishes) for status in list(wish.statuses))

    def progress(self, count: int = 30) -> None:
        """Wait until ``count`` more memories were answered with 200, and some recalls if there are readers."""
        kept, recalled = len(self.kept), self.recalls[200]
        eventually(lambda: len(self.kept) >= kept + count, within_s=60, what="more memories answered")
        if self._readers:
            eventually(lambda: self.recalls[200] > recalled, within_s=60, what="more recalls answered")

    def check(self) -> None:
        """Check that each accepted memory is stored exactly once, and that rejected ones are not stored."""
        assert self.problems == [], self.problems[:10]
        rows = [row for row in self.daemon.api.listed() if row["content"].startswith(f"{self.name} ")]
        times = Counter(row["content"] for row in rows)
        assert [content for content, count in times.items() if count > 1] == [], "stored twice"
        kept = self.kept
        stored = {row["content"]: row["id"] for row in rows}
        lost = [content for content, answer in kept.items() if stored.get(content) != answer["id"]]
        assert lost == [], f"{len(lost)} of {len(kept)} answered memories are not there"
        refused = {wish.content for wish in self.wishes if wish.statuses and set(wish.statuses) == {503}}
        assert [content for content in stored if content in refused] == [], "there, although it was only refused"
        doubled = [content for content, answer in kept.items() if answer["deduped"]]
        assert doubled == [], "a retry acted a second time"

    def _write(self, number: int) -> None:
        client = self.daemon.api
        while not self.stopping.is_set():
            serial = next(self._numbers)
            wish = Wish(f"{self.name} memory {number} {serial} t{secrets.token_hex(8)}", secrets.token_hex(8))
            self.wishes.append(wish)
            while not self.finished.is_set():
                status, answer = self._ask(client, "/api/memory/remember", wish)
                wish.statuses.append(status)
                if status == 200:
                    wish.answer = answer
                    self.stopping.wait(self._pause_s)
                    break
                if status not in {503, 504, UNKNOWN}:
                    self.problems.append(f"remember was answered {status}: {answer}")
                    return
                if serial % 2 and set(wish.statuses) == {503}:
                    break  # abandoned: the memory must never appear
                self.finished.wait(_RETRY_S)

    def _read(self) -> None:
        client = self.daemon.api
        while not self.stopping.is_set():
            kept = list(self.kept.items())[-20:]
            content, answer = kept[0] if kept else (self.name, None)
            status, found = self._ask(client, "/api/memory/recall", content.split()[-1])  # no other memory has the word
            self.recalls[status] += 1
            if status == 200:
                if answer is not None and answer["id"] not in {row["id"] for row in found["results"]}:
                    self.problems.append(f"answered, but not recalled: {content}")
            elif status not in {503, UNKNOWN}:
                self.problems.append(f"recall was answered {status}: {found}")
            self.stopping.wait(self._pause_s if status == 200 else _RETRY_S)

    def _ask(self, client: Client, target: str, what: Wish | str) -> tuple[int, Any]:
        try:
            if isinstance(what, Wish):
                headers = {"Idempotency-Key": what.key}
                answer = client.request("POST", target, {"content": what.content}, headers)
            else:
                answer = client.request("POST", target, {"query": what, "limit": 20})
        except (OSError, http.client.HTTPException):
            return UNKNOWN, None
        if answer.status == 503 and "retry-after" not in answer.headers:
            self.problems.append("a 503 without Retry-After")
        return answer.status, answer.json


@contextmanager
def load_on(daemon: LiveDaemon, *, writers: int = 4, readers: int = 2, pause_s: float = PAUSE_S) -> Iterator[Load]:
    """Start a load, wait for its first responses, and stop its clients at the end of the block."""
    load = Load(daemon, writers=writers, readers=readers, pause_s=pause_s)
    load.start()
    try:
        load.progress()
        yield load
    finally:
        load.stop(settle=False)
