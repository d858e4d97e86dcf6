"""The simulation of the pipeline finds what it is for: each of these broken daemons is caught within a few seeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from signet_actors.domain.jobs import JobEvent, advance
from signet_actors.store.writes import leases as lease_rows
from signet_actors.store.writes.leases import ActiveLease
from signet_actors.writer.commands import jobs, leases
from tests.sim.pipeline import Run, expired_leases, lost_lease_replies, outage, poison_jobs, simulate

BUDGET = 9
Patch = pytest.MonkeyPatch


def no_fencing(patch: Patch) -> str:
    """A report counts whatever lease it comes with."""

    def held(session: Any, job_id: str, _lease_id: str) -> ActiveLease:
        row = session.tx.one(
            "SELECT seq, attempts, max_attempts, job_type, memory_id, leased_hash, releases, 0 FROM memory_jobs"
            " WHERE id = ?",
            (job_id,),
        )
        return ActiveLease(*row)

    patch.setattr(leases, "active_lease", held)
    return "a run of a job that is not completed"


def reaper_without_limit(patch: Patch) -> str:
    """A lost attempt always leads to another, also the last."""
    patch.setattr(jobs.domain_jobs, "event_after_failure", lambda *_: JobEvent.RETRY)
    return "has no attempts left"


def attempts_not_given_back(patch: Patch) -> str:
    """A model that is away is the job's failure."""
    give_back = leases._return_job

    def spent(session: Any, job: ActiveLease, state: Any, why: str, **how: Any) -> None:
        give_back(session, job, state, why, **{**how, "attempts": job.attempts})

    patch.setattr(leases, "_return_job", spent)
    return "an outage cost an attempt"


def no_notifications(patch: Patch) -> str:
    """What was handed out in an answer that was lost is left to its lease."""
    patch.setattr(leases, "_redeliver", lambda *_: [])
    return "a lost answer cost an attempt"


def poison_jobs_leased_together(patch: Patch) -> str:
    """Jobs that lost their worker together are handed out together again."""
    patch.setattr(lease_rows, "is_poison_job_leased", lambda *_: False)
    patch.setattr(lease_rows, "_ROW", lease_rows._ROW.replace("j.error IS :poison_error", "0"))
    patch.setattr(lease_rows, "_READY", lease_rows._READY.replace("j.error IS :poison_error", "0"))
    return "poison took another with it"


def kept_lease_of_exited_worker(patch: Patch) -> str:
    """A job is handed out while its lease lasts."""
    ready = lease_rows._READY.replace("j.status = 'pending'", "j.status IN ('pending', 'leased')")
    patch.setattr(lease_rows, "_READY", ready)
    patch.setattr(leases, "advance", lambda state, event: advance(state, event) if event != "lease" else "leased")
    return "is leased twice"


def lost_event(patch: Patch) -> str:
    """A proposal that changes nothing leaves no event."""
    from signet_actors.writer.commands import proposals

    patch.setattr(proposals.history, "record", lambda *_a, **_k: None)
    return "a proposal without its event"


MUTANTS: list[tuple[Callable[[Patch], str], Callable[[int], Run]]] = [
    (no_fencing, expired_leases),
    (reaper_without_limit, lambda seed: poison_jobs(seed, "nightshade")),
    (attempts_not_given_back, lambda seed: outage(seed, "refuses")),
    (no_notifications, lost_lease_replies),
    (poison_jobs_leased_together, lambda seed: poison_jobs(seed, "nightshade")),
    (kept_lease_of_exited_worker, simulate),
    (lost_event, simulate),
]


@pytest.mark.slow
@pytest.mark.parametrize(("mutant", "scenario"), MUTANTS, ids=[mutant.__name__ for mutant, _ in MUTANTS])
def test_a_broken_pipeline_is_detected(
    mutant: Callable[[Patch], str], scenario: Callable[[int], Run], monkeypatch: Patch
) -> None:
    symptom = mutant(monkeypatch)
    seen: list[str] = []
    for seed in range(1, BUDGET + 1):
        seen = scenario(seed).wrong
        if any(symptom in text for text in seen):
            return
    pytest.fail(f"{mutant.__name__} was not caught in {BUDGET} seeds; last seen: {seen[:3]}")
