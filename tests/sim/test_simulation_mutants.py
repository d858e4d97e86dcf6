"""The simulation finds what it is for: each of these broken daemons is caught within a few seeds."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from signet_actors.errors import ErrorCode
from signet_actors.protocol.message import Failure
from signet_actors.runtime.messaging.async_client import FutureRequest, RequestTracker
from signet_actors.runtime.supervision import children
from signet_actors.runtime.supervision.restart_policy import CrashHistory, Restart
from signet_actors.store.writes.leases import ActiveLease
from signet_actors.writer import group_commit, idempotency
from signet_actors.writer.commands import leases
from signet_actors.writer.group_commit import GroupCommit
from tests.sim.faults import Fault
from tests.sim.run import simulate
from tests.sim.seeds import Run

BUDGET = 9
Patch = pytest.MonkeyPatch


def no_fencing(patch: Patch) -> str:
    """A report counts whatever lease it comes with, so it ends jobs that wait for their next worker."""

    def held(session: Any, job_id: str, _lease_id: str) -> ActiveLease:
        row = session.tx.one(
            "SELECT seq, attempts, max_attempts, job_type, memory_id, leased_hash, releases, 0 FROM memory_jobs"
            " WHERE id = ?",
            (job_id,),
        )
        return ActiveLease(*row)

    patch.setattr(leases, "active_lease", held)
    return "a job's next attempt is too far in the future"


def no_kept_replies(patch: Patch) -> str:
    """A retry acts a second time."""
    patch.setattr(idempotency, "earlier_reply", lambda *_: None)
    patch.setattr(idempotency, "keep_reply", lambda *_: None)
    return "answered"


def answer_before_commit(patch: Patch) -> str:
    """Callers are answered when their command has run, not when it is on disk."""
    run = GroupCommit._run

    def hasty(self: GroupCommit, session: Any, waiting: Any, **how: Any) -> Any:
        answer = run(self, session, waiting, **how)
        waiting.reply(answer)
        return answer

    patch.setattr(GroupCommit, "_run", hasty)
    return "answered"


def another_id_for_each_sending(patch: Patch) -> str:
    """What was in flight to a writer that died is sent to the next one as if it were new."""
    unsent = RequestTracker.next_unsent

    def renamed(self: RequestTracker) -> FutureRequest | None:
        ask = unsent(self)
        if ask is not None and ask.attempt:
            del self._pending[ask.message_id]
            ask.message_id = self._message_factory.next_id()
            self._pending[ask.message_id] = ask
        return ask

    patch.setattr(RequestTracker, "next_unsent", renamed)
    return "a new memory was answered"


def refusal_after_commit(patch: Patch) -> str:
    """A disk that fails inside COMMIT is called certainly not applied."""

    def failed(self: GroupCommit, batch: Any, *, committing: bool, error: BaseException) -> None:
        for waiting in batch:
            waiting.reply(Failure(ErrorCode.NOT_APPLIED, "nothing was applied"))
        raise group_commit.StoreIOError("the disk failed") from error

    patch.setattr(GroupCommit, "_disk_failed", failed)
    return "refused as not applied, and stored"


def no_backoff(patch: Patch) -> str:
    """Whatever dies is started again at once, for ever."""
    patch.setattr(children, "decide_restart", lambda *_a, **_k: Restart(CrashHistory(), 0))
    return "a restart storm"


def storm(seed: int) -> Run:
    """An optional child dies eight times a second."""
    return simulate(seed, [Fault(1.0 + number / 8, "kill", "retention") for number in range(80)])


def failing_commits(seed: int) -> Run:
    """The disk fails inside COMMIT, four times a second."""
    return simulate(seed, [Fault(1.0 + number / 4, "eio", "writer.after_commit", 1) for number in range(20)])


def killed_after_commits(seed: int) -> Run:
    """The writer is killed between its commits and its answers, twice a second."""
    return simulate(seed, [Fault(1.0 + number / 2, "point", "writer.after_commit", 1) for number in range(20)])


def slow_workers(seed: int) -> Run:
    """Most leases run out before their jobs are done, one time after the other."""
    return simulate(seed, [], slow=1.0, until_s=40.0)


MUTANTS: list[tuple[Callable[[Patch], str], Callable[[int], Run]]] = [
    (no_fencing, slow_workers),
    (no_kept_replies, simulate),
    (answer_before_commit, simulate),
    (another_id_for_each_sending, killed_after_commits),
    (refusal_after_commit, failing_commits),
    (no_backoff, storm),
]


@cache
def broken_as_it_is(scenario: Callable[[int], Run]) -> tuple[str, ...]:
    return tuple(scenario(1).wrong)


@pytest.mark.slow
@pytest.mark.parametrize(("mutant", "scenario"), MUTANTS, ids=[mutant.__name__ for mutant, _ in MUTANTS])
def test_a_broken_daemon_is_detected(
    mutant: Callable[[Patch], str], scenario: Callable[[int], Run], monkeypatch: Patch
) -> None:
    assert not broken_as_it_is(scenario), "the daemon as it is fails the same check"
    symptom = mutant(monkeypatch)
    seen: list[str] = []
    for seed in range(1, BUDGET + 1):
        seen = scenario(seed).wrong
        if any(symptom in text for text in seen):
            return
    pytest.fail(f"{mutant.__name__} was not caught in {BUDGET} seeds; last seen: {seen[:3]}")
