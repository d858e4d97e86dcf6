"""Threads that read transcripts one at a time, so that one which takes long does not hold up the others.

A reading that is not done after ``LONG_S`` gives its place to the next and goes on in another thread, up to the end of
its request. One that was given up begins in that other thread when it comes again, and after ``MOST_TRIES`` it is
refused: the hook that sends it would repeat it for a day, each time from the beginning.

Source: docs/reliability.md R13; docs/decisions.md 37.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from signet_actors.errors import Busy, Unavailable
from signet_actors.gateway.transcript_files import TranscriptRefused

MOST_WAITING: Final = 5
"""Transcripts that are read or wait, without those that have taken long."""
MOST_LONG: Final = 3
"""Transcripts that have taken long; one of them is read at a time."""
LONG_S: Final = 2.0
MOST_TRIES: Final = 3
NOTED_S: Final = 600.0
"""So long health tells that a transcript was given up."""
_REMEMBERED: Final = 256

T = TypeVar("T")
Check = Callable[[], None]


class ReadingTooLong(Exception):
    """The request that the transcript came with is over, or too many others take long."""


class TranscriptReaders:
    """Serves any number of event loops."""

    def __init__(self, *, long_s: float = LONG_S, clock: Callable[[], float] = time.monotonic) -> None:
        self.long_s = long_s
        self.clock = clock
        self.lock = threading.Lock()
        self.places = {False: threading.Semaphore(1), True: threading.Semaphore(1)}
        """For a reading, and for one that has taken long."""
        self.counts = {False: 0, True: 0}
        self._most = {False: MOST_WAITING, True: MOST_LONG}
        self._given_up: dict[Hashable, int] = {}
        self._given_up_at: float | None = None
        self.sessions: Counter[tuple[str, str | None]] = Counter()
        """The agents and sessions whose transcripts are being read or stored."""
        self._pool = ThreadPoolExecutor(MOST_WAITING + MOST_LONG, thread_name_prefix="long-text-transcript")

    @contextlib.contextmanager
    def capturing(self, agent_id: str, session: str | None) -> Iterator[None]:
        """Count the session while the block reads its transcript and stores it, so that forgetting it prevails."""
        with self.lock:
            self.sessions[agent_id, session] += 1
        try:
            yield
        finally:
            with self.lock:
                self.sessions -= Counter({(agent_id, session): 1})

    async def run(self, work: Callable[[Check], T], name: Hashable, seconds: float) -> T:
        """Return the result of ``work``, which calls its argument often. ``name``: the transcript, when it comes again.

        Raises Busy if too many wait, Unavailable after ``seconds``, TranscriptRefused if that was so too often.
        """
        reading = _Reading(self, self.clock() + seconds, is_long=name in self._given_up)
        if not self.enter(is_long=reading.is_long):
            raise Busy("too many transcripts are being read")
        future = self._pool.submit(reading.run, work)
        future.add_done_callback(lambda _: reading.leave())
        try:
            result = await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            reading.is_cancelled = True
            raise
        except ReadingTooLong:
            tries = self._give_up(name)
            if tries >= MOST_TRIES:
                raise TranscriptRefused(f"reading the transcript took too long {tries} times") from None
            raise Unavailable("reading the transcript takes too long; send it again later") from None
        self._given_up.pop(name, None)
        return result

    def was_given_up(self, name: Hashable) -> bool:
        """Return True if the transcript took too long when it came last."""
        return name in self._given_up

    def note(self) -> str | None:
        """Return a sentence for health if a transcript was given up lately."""
        if self._given_up_at is None or self.clock() - self._given_up_at > NOTED_S:
            return None
        minutes = int((self.clock() - self._given_up_at) // 60)
        return f"reading a transcript took too long and was given up {minutes} min ago (transcript_given_up in the log)"

    def enter(self, *, is_long: bool) -> bool:
        """Count a reading, unless there are too many of its kind."""
        with self.lock:
            if self.counts[is_long] >= self._most[is_long]:
                return False
            self.counts[is_long] += 1
            return True

    def _give_up(self, name: Hashable) -> int:
        self._given_up_at = self.clock()
        tries = self._given_up.pop(name, 0) + 1
        self._given_up[name] = tries
        if len(self._given_up) > _REMEMBERED:
            del self._given_up[next(iter(self._given_up))]
        return tries


class _Reading:
    """One reading; ``deadline`` is the end of its request."""

    def __init__(self, readers: TranscriptReaders, deadline: float, *, is_long: bool) -> None:
        self.is_long = is_long
        self.is_cancelled = False
        self._readers = readers
        self._deadline = deadline
        self._long_at = deadline
        self._has_place = False

    def run(self, work: Callable[[Check], T]) -> T:
        """Wait for a place and return the result. Raises Busy, ReadingTooLong, and what ``work`` raises."""
        if not self._take_place():
            raise Busy("other transcripts are being read")
        self._long_at = self._readers.clock() + self._readers.long_s
        try:
            return work(self._check)
        finally:
            if self._has_place:
                self._readers.places[self.is_long].release()

    def leave(self) -> None:
        """Stop counting the reading."""
        with self._readers.lock:
            self._readers.counts[self.is_long] -= 1

    def _take_place(self) -> bool:
        seconds = max(0.0, self._deadline - self._readers.clock())
        self._has_place = self._readers.places[self.is_long].acquire(timeout=seconds)
        return self._has_place

    def _check(self) -> None:
        """Go on in the place of long readings after a while. Raises ReadingTooLong."""
        now = self._readers.clock()
        if self.is_cancelled or now > self._deadline:
            raise ReadingTooLong
        if not self.is_long and now >= self._long_at:
            if not self._readers.enter(is_long=True):
                raise ReadingTooLong
            self._readers.places[False].release()
            self._has_place = False
            with self._readers.lock:
                self._readers.counts[False] -= 1
                self.is_long = True
            if not self._take_place():
                raise ReadingTooLong
