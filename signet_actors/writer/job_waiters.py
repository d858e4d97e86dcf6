"""Who waits for a job: a few asks that are held outside of any batch and answered when there is one.

An ask that is waiter here occupies nothing: the mailbox counted it when it came, and neither commits nor other askers
wait for it. A worker is called when a commit made a job of its kinds ready, when a job that waited for its time becomes
due, and in any case when its own wait is over; what the call promises is looked up in the committed store, so that no
job that is ready before the ask is missed, and nobody is called in circles for one that cannot be had.

Source: docs/decisions.md 15.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from signet_actors.domain.jobs import PoisonCandidates
from signet_actors.domain.timestamps import epoch_ms
from signet_actors.protocol.pipeline import JobsReady, WatchJobs
from signet_actors.protocol.writer import WriterCommand
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.messaging.mailbox import Incoming
from signet_actors.store.errors import Connection
from signet_actors.writer.command_context import QueueChanges
from signet_actors.writer.commands.leases import next_due, ready_kinds

MAX_WAITERS: Final = 8
"""One for each worker process, and for lives of theirs that ended; the oldest makes room."""
LONGEST_WAIT_MS: Final = 60_000
_REPLY_MARGIN_NS: Final = 250_000_000
_MS: Final = 1_000_000


@dataclass(slots=True)
class _Waiter:
    incoming: Incoming[WriterCommand]
    kinds: tuple[str, ...]
    candidates: PoisonCandidates
    until_ns: int
    due_ns: int = 0
    """When the queue is to be looked at for it; 0 = at once."""


class JobWaiters:
    """The waiter asks, oldest first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiters: list[_Waiter] = []

    def __len__(self) -> int:
        return len(self._waiters)

    def park(self, incoming: Incoming[WriterCommand]) -> None:
        """The ask waits; ``look``, which comes next, answers it at once where a job is ready."""
        body = incoming.body
        assert isinstance(body, WatchJobs)
        # The same ask once more, doubled on the way: one answer is enough for both.
        message_id = incoming.header.message_id
        self._waiters = [old for old in self._waiters if old.incoming.header.message_id != message_id]
        self._reply(self._waiters[: max(0, len(self._waiters) - MAX_WAITERS + 1)])
        until_ns = self._clock.monotonic_ns() + min(max(0, body.wait_ms), LONGEST_WAIT_MS) * _MS
        if incoming.header.deadline_ns:
            until_ns = min(until_ns, incoming.header.deadline_ns - _REPLY_MARGIN_NS)
        self._waiters.append(_Waiter(incoming, body.kinds, body.suspects, until_ns))

    def notify(self, connection: Connection, changes: QueueChanges, *, may_write: bool) -> float | None:
        """Everybody for whom there is a job, or whose wait is over, has been answered; seconds until the next look."""
        now_ns = self._clock.monotonic_ns()
        self._reply([waiter for waiter in self._waiters if waiter.until_ns <= now_ns])
        if may_write:
            for waiter in list(self._waiters):
                if waiter.due_ns <= now_ns or not (changes.ready | changes.delayed).isdisjoint(waiter.kinds):
                    self._check(connection, waiter, now_ns)
        if not self._waiters:
            return None
        next_ns = min(min(waiter.until_ns, waiter.due_ns if may_write else waiter.until_ns) for waiter in self._waiters)
        return max(0.0, (next_ns - now_ns) / 1e9)

    def reply_to_all(self) -> None:
        """Nobody waits here any more."""
        self._reply(list(self._waiters))

    def _check(self, connection: Connection, waiter: _Waiter, now_ns: int) -> None:
        wall_ms = self._clock.wall_ms()
        ready = ready_kinds(connection, waiter.kinds, wall_ms, waiter.candidates)
        if ready:
            self._reply([waiter], ready)
            return
        due = next_due(connection, waiter.kinds, wall_ms, waiter.candidates)
        due_ms = None if due is None else epoch_ms(due)
        # The wall clock may jump; nobody waits for longer than his own wait because it did.
        wait_ms = LONGEST_WAIT_MS if due_ms is None else due_ms - wall_ms + 1
        waiter.due_ns = min(waiter.until_ns, now_ns + wait_ms * _MS)

    def _reply(self, waiters: list[_Waiter], kinds: tuple[str, ...] = ()) -> None:
        for waiter in waiters:
            self._waiters.remove(waiter)
            if not waiter.incoming.answered:
                waiter.incoming.reply(JobsReady(kinds))
