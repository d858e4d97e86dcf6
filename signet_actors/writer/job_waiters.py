"""Who waits for a job: a few asks that are held outside of any batch and answered when there is one.

An ask that is parked here occupies nothing: the mailbox counted it when it came, and neither commits nor other askers
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

MOST_PARKED: Final = 8
"""One for each worker process, and for lives of theirs that ended; the oldest makes room."""
LONGEST_WAIT_MS: Final = 60_000
_BEFORE_DEADLINE_NS: Final = 250_000_000
_MS: Final = 1_000_000


@dataclass(slots=True)
class _Parked:
    incoming: Incoming[WriterCommand]
    kinds: tuple[str, ...]
    suspects: PoisonCandidates
    until_ns: int
    due_ns: int = 0
    """When the queue is to be looked at for it; 0 = at once."""


class JobWaiters:
    """The parked asks, oldest first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._parked: list[_Parked] = []

    def __len__(self) -> int:
        return len(self._parked)

    def park(self, incoming: Incoming[WriterCommand]) -> None:
        """The ask waits; ``look``, which comes next, answers it at once where a job is ready."""
        body = incoming.body
        assert isinstance(body, WatchJobs)
        # The same ask once more, doubled on the way: one answer is enough for both.
        message_id = incoming.header.message_id
        self._parked = [old for old in self._parked if old.incoming.header.message_id != message_id]
        self._answer(self._parked[: max(0, len(self._parked) - MOST_PARKED + 1)])
        until_ns = self._clock.monotonic_ns() + min(max(0, body.wait_ms), LONGEST_WAIT_MS) * _MS
        if incoming.header.deadline_ns:
            until_ns = min(until_ns, incoming.header.deadline_ns - _BEFORE_DEADLINE_NS)
        self._parked.append(_Parked(incoming, body.kinds, body.suspects, until_ns))

    def look(self, connection: Connection, news: QueueChanges, *, may_write: bool) -> float | None:
        """Everybody for whom there is a job, or whose wait is over, has been answered; seconds until the next look."""
        now_ns = self._clock.monotonic_ns()
        self._answer([parked for parked in self._parked if parked.until_ns <= now_ns])
        if may_write:
            for parked in list(self._parked):
                if parked.due_ns <= now_ns or not (news.ready | news.delayed).isdisjoint(parked.kinds):
                    self._look_for(connection, parked, now_ns)
        if not self._parked:
            return None
        wanted_ns = min(
            min(parked.until_ns, parked.due_ns if may_write else parked.until_ns) for parked in self._parked
        )
        return max(0.0, (wanted_ns - now_ns) / 1e9)

    def answer_all(self) -> None:
        """Nobody waits here any more."""
        self._answer(list(self._parked))

    def _look_for(self, connection: Connection, parked: _Parked, now_ns: int) -> None:
        wall_ms = self._clock.wall_ms()
        ready = ready_kinds(connection, parked.kinds, wall_ms, parked.suspects)
        if ready:
            self._answer([parked], ready)
            return
        due = next_due(connection, parked.kinds, wall_ms, parked.suspects)
        due_ms = None if due is None else epoch_ms(due)
        # The wall clock may jump; nobody waits for longer than his own wait because it did.
        wait_ms = LONGEST_WAIT_MS if due_ms is None else due_ms - wall_ms + 1
        parked.due_ns = min(parked.until_ns, now_ns + wait_ms * _MS)

    def _answer(self, answered: list[_Parked], kinds: tuple[str, ...] = ()) -> None:
        for parked in answered:
            self._parked.remove(parked)
            if not parked.incoming.answered:
                parked.incoming.reply(JobsReady(kinds))
