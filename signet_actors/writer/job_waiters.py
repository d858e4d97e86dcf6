"""Pending ``WatchJobs`` requests: the long poll of the job queue.

A waiting request occupies nothing: it no longer counts against the mailbox's limit, and neither commits nor other
requests wait for it. The reply is sent when a commit makes a job of its kinds ready, when a delayed job becomes due, or
when the wait is over. Readiness is checked in the committed store, so no job is missed that was ready before the
request came, and no worker is woken for a job that it cannot lease.

Source: docs/decisions.md 15.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from signet_actors.domain.jobs import JOB_KINDS, SECOND_VECTOR, PoisonJobs
from signet_actors.domain.timestamps import epoch_ms
from signet_actors.protocol.pipeline import JobsReady, WatchJobs
from signet_actors.protocol.writer import WriterCommand
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.messaging.mailbox import Incoming
from signet_actors.store.command_context import QueueChanges
from signet_actors.store.engine import Reads
from signet_actors.writer.commands.leases import next_due, ready_kinds

MAX_WAITERS: Final = 4 * (len(JOB_KINDS) + 1)
"""Two processes wait for each kind and for second vectors, and some waiters are of earlier incarnations of them. Beyond
it the oldest is released; it asks again at once, so fewer would make the processes release each other for ever."""
LONGEST_WAIT_MS: Final = 60_000
_REPLY_MARGIN_NS: Final = 250_000_000
_MS: Final = 1_000_000


@dataclass(slots=True)
class _Waiter:
    incoming: Incoming[WriterCommand]
    kinds: tuple[str, ...]
    poison_jobs: PoisonJobs
    until_ns: int
    due_ns: int = 0
    """When to check the queue for this waiter; 0 = at once."""


class JobWaiters:
    """The pending requests, oldest first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.waiters: list[_Waiter] = []

    def __len__(self) -> int:
        return len(self.waiters)

    def park(self, incoming: Incoming[WriterCommand]) -> None:
        """Add the request. ``notify``, which is called next, replies at once if a job is ready."""
        body = incoming.body
        assert isinstance(body, WatchJobs)
        # The same request may be delivered twice: one reply is enough for both.
        message_id = incoming.header.message_id
        self.waiters = [old for old in self.waiters if old.incoming.header.message_id != message_id]
        self._reply(self.waiters[: max(0, len(self.waiters) - MAX_WAITERS + 1)])
        until_ns = self._clock.monotonic_ns() + min(max(0, body.wait_ms), LONGEST_WAIT_MS) * _MS
        if incoming.header.deadline_ns:
            until_ns = min(until_ns, incoming.header.deadline_ns - _REPLY_MARGIN_NS)
        self.waiters.append(_Waiter(incoming, body.kinds, body.poison_jobs, until_ns))

    def notify(self, reads: Reads, changes: QueueChanges, *, may_write: bool) -> float | None:
        """Reply to each waiter that has a ready job or whose wait is over; return the seconds until the next call."""
        now_ns = self._clock.monotonic_ns()
        self._reply([waiter for waiter in self.waiters if waiter.until_ns <= now_ns])
        if SECOND_VECTOR in changes.ready:
            watching = [waiter for waiter in self.waiters if SECOND_VECTOR in waiter.kinds]
            self._reply(watching, (SECOND_VECTOR,))
        if may_write:
            for waiter in list(self.waiters):
                if waiter.due_ns <= now_ns or not (changes.ready | changes.delayed).isdisjoint(waiter.kinds):
                    self._check(reads, waiter, now_ns)
        if not self.waiters:
            return None
        next_ns = min(min(waiter.until_ns, waiter.due_ns if may_write else waiter.until_ns) for waiter in self.waiters)
        return max(0.0, (next_ns - now_ns) / 1e9)

    def reply_to_all(self) -> None:
        """Release every waiter without a job."""
        self._reply(list(self.waiters))

    def _check(self, reads: Reads, waiter: _Waiter, now_ns: int) -> None:
        wall_ms = self._clock.wall_ms()
        ready = ready_kinds(reads, waiter.kinds, wall_ms, waiter.poison_jobs)
        if ready:
            self._reply([waiter], ready)
            return
        due = next_due(reads, waiter.kinds, wall_ms, waiter.poison_jobs)
        due_ms = None if due is None else epoch_ms(due)
        # The wall clock may jump; ``until_ns`` bounds the wait all the same.
        wait_ms = LONGEST_WAIT_MS if due_ms is None else due_ms - wall_ms + 1
        waiter.due_ns = min(waiter.until_ns, now_ns + wait_ms * _MS)

    def _reply(self, waiters: list[_Waiter], kinds: tuple[str, ...] = ()) -> None:
        for waiter in waiters:
            self.waiters.remove(waiter)
            if not waiter.incoming.answered:
                waiter.incoming.reply(JobsReady(kinds))
