"""Leases: a job is leased to one worker, its end is reported once, and a lost lease changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from signet_actors.domain.jobs import PoisonJobs
from signet_actors.errors import ErrorCode
from signet_actors.protocol.leases import CompleteJob, FailJob, JobsLeased, LeasedJob, LeaseJobs, ReapLeases, RenewLease
from signet_actors.protocol.message import Failure, Principal
from signet_actors.protocol.pipeline import HeldLease, ReleaseJobs
from signet_actors.protocol.writer import ForgetMemory, MemoryPatch, ModifyMemory
from signet_actors.store.command_context import QueueChanges
from signet_actors.writer.commands import leases
from tests.support.store_room import StoreRoom

LEASE_MS = 60_000
UNTIL_SETTLED_MS = 2_500
"""So long a job waits that lost its worker."""


@pytest.fixture
def room(tmp_path: Path) -> Iterator[StoreRoom]:
    room = StoreRoom(tmp_path)
    yield room
    room.close()


def leased(room: StoreRoom, limit: int = 1) -> list[LeasedJob]:
    answer = room.ask(LeaseJobs(kinds=("extract",), limit=limit, lease_ms=LEASE_MS))
    assert isinstance(answer, JobsLeased)
    return answer.jobs


def state(room: StoreRoom, job: LeasedJob) -> Any:
    return room.value("SELECT status FROM memory_jobs WHERE id = ?", job.id)


def assert_lost(answer: Any) -> None:
    assert isinstance(answer, Failure)
    assert answer.code is ErrorCode.LEASE_LOST


def test_jobs_are_leased_oldest_first_and_to_one_worker_only(room: StoreRoom) -> None:
    memories = [room.remember(f"Memory number {number}") for number in range(3)]
    first = leased(room, 2)
    assert [job.memory_id for job in first] == [memory.id for memory in memories[:2]]
    assert [(job.attempt, job.max_attempts) for job in first] == [(1, 3), (1, 3)]
    assert [job.memory_id for job in leased(room, 2)] == [memories[2].id]
    assert leased(room, 2) == []


def test_memories_are_embedded_newest_first(room: StoreRoom) -> None:
    memories = [room.remember(f"Memory number {number}") for number in range(4)]

    def embedding(limit: int) -> list[LeasedJob]:
        return room.ask(LeaseJobs(kinds=("embed",), limit=limit, lease_ms=LEASE_MS)).jobs  # type: ignore[no-any-return]

    first = embedding(2)
    assert [job.memory_id for job in first] == [memories[3].id, memories[2].id]
    room.ask(FailJob(first[0].id, first[0].lease_id, "the server rejects this text"))
    room.clock.advance(60_000)
    memories.append(room.remember("The newest memory"))
    # A job that is tried again counts as new when it is due.
    assert [job.memory_id for job in embedding(9)] == [memories[at].id for at in (4, 3, 1, 0)]
    assert embedding(1) == []


def test_a_job_that_failed_with_a_future_clock_is_leased_before_later_jobs(
    room: StoreRoom,
) -> None:
    first = room.remember("The first memory")
    (job,) = leased(room)
    room.clock.wall += 365 * 86_400_000
    room.ask(FailJob(job.id, job.lease_id, "the model does not answer"))
    room.clock.wall += 60_000 - 365 * 86_400_000
    second = room.remember("The second memory")
    assert [job.memory_id for job in leased(room, 2)] == [first.id, second.id]


def test_a_repeated_request_for_jobs_gets_the_same_jobs_again(room: StoreRoom) -> None:
    for number in range(2):
        room.remember(f"Memory number {number}")
    command = LeaseJobs(kinds=("extract",), limit=1, lease_ms=LEASE_MS)
    once = room.ask(command, message_id="the-request")
    assert room.ask(command, message_id="the-request") == once
    assert room.value("SELECT count(*) FROM memory_jobs WHERE status = 'leased'") == 1


def test_jobs_of_other_kinds_are_not_leased(room: StoreRoom) -> None:
    room.remember("A memory")
    assert room.ask(LeaseJobs(kinds=("summarize",), limit=5, lease_ms=LEASE_MS)).jobs == []


def test_a_completed_job_keeps_its_result_and_is_never_leased_again(room: StoreRoom) -> None:
    room.remember("A memory")
    (job,) = leased(room)
    assert room.ask(CompleteJob(job.id, job.lease_id, '{"facts":[]}')).state == "completed"
    assert room.value("SELECT result FROM memory_jobs WHERE id = ?", job.id) == '{"facts":[]}'
    assert_lost(room.ask(CompleteJob(job.id, job.lease_id)))
    room.clock.advance(10 * LEASE_MS)
    room.ask(ReapLeases())
    assert leased(room) == []


def test_a_failed_attempt_delays_the_next_and_the_last_one_makes_the_job_dead(room: StoreRoom) -> None:
    room.remember("A memory")
    for attempt in (1, 2, 3):
        (job,) = leased(room)
        assert job.attempt == attempt
        ended = room.ask(FailJob(job.id, job.lease_id, "the model said nothing"))
        assert ended.state == ("dead" if attempt == 3 else "pending")
        assert leased(room) == [], "it was tried again at once"
        room.clock.advance(31_000)
    assert leased(room) == []
    assert room.value("SELECT error FROM memory_jobs WHERE id = ?", job.id) == "the model said nothing"


def test_a_late_worker_has_lost_its_lease_and_changes_nothing(room: StoreRoom) -> None:
    room.remember("A memory")
    (job,) = leased(room)
    room.clock.advance(LEASE_MS + 1)
    assert room.ask(ReapLeases()).requeued == 1
    room.clock.advance(UNTIL_SETTLED_MS)
    (again,) = leased(room)
    assert again.id == job.id
    assert again.lease_id != job.lease_id
    for late in (
        RenewLease(job.id, job.lease_id, LEASE_MS),
        CompleteJob(job.id, job.lease_id, "late"),
        FailJob(job.id, job.lease_id, "late"),
    ):
        assert_lost(room.ask(late))
    assert state(room, again) == "leased"
    assert room.ask(CompleteJob(again.id, again.lease_id, "in time")).state == "completed"
    assert room.value("SELECT result FROM memory_jobs WHERE id = ?", job.id) == "in time"


def test_an_expired_lease_changes_nothing_even_before_the_reaper_runs(room: StoreRoom) -> None:
    room.remember("A memory")
    (job,) = leased(room)
    room.clock.advance(LEASE_MS)
    assert_lost(room.ask(CompleteJob(job.id, job.lease_id, "late")))
    assert state(room, job) == "leased"


def test_a_renewed_lease_is_not_reaped(room: StoreRoom) -> None:
    room.remember("A memory")
    (job,) = leased(room)
    room.clock.advance(LEASE_MS - 1)
    renewed = room.ask(RenewLease(job.id, job.lease_id, LEASE_MS))
    assert renewed.expires_ns == room.clock.monotonic_ns() + LEASE_MS * 1_000_000
    room.clock.advance(LEASE_MS - 1)
    assert room.ask(ReapLeases()).requeued == 0
    assert state(room, job) == "leased"


def asked_by(room: StoreRoom, command: Any, name: str, incarnation: int) -> Any:
    """The answer to a command that this life of this process sends."""
    asked = room.asked(command)
    asked.header = msgspec.structs.replace(asked.header, sender=name, incarnation=incarnation)
    room.group.commit([asked])
    return asked.answer


def taken_by(room: StoreRoom, name: str, incarnation: int, limit: int = 8) -> list[LeasedJob]:
    return asked_by(room, LeaseJobs(("extract",), limit, LEASE_MS), name, incarnation).jobs  # type: ignore[no-any-return]


def test_a_new_incarnation_expires_only_the_leases_of_its_earlier_incarnations(room: StoreRoom) -> None:
    for number in range(3):
        room.remember(f"Memory number {number}")
    (mine,) = taken_by(room, "extractor", 1, 1)
    (of_another,) = taken_by(room, "extractor-2", 1, 1)
    (of_my_namesake,) = taken_by(room, "extract", 9, 1)
    assert taken_by(room, "extractor", 2) == [], "who has just been born is spared what may have killed its former life"
    room.clock.advance(UNTIL_SETTLED_MS)
    (again,) = taken_by(room, "extractor", 2)
    assert (again.id, again.attempt) == (mine.id, 2)
    assert_lost(room.ask(CompleteJob(mine.id, mine.lease_id)))
    for other in (of_another, of_my_namesake):
        assert room.ask(CompleteJob(other.id, other.lease_id)).state == "completed"
    assert room.ask(CompleteJob(again.id, again.lease_id)).state == "completed"


def test_a_late_message_of_an_earlier_incarnation_leases_nothing_for_long(room: StoreRoom) -> None:
    room.remember("A memory")
    assert taken_by(room, "extractor", 2, 0) == []
    (late,) = taken_by(room, "extractor", 1)
    assert taken_by(room, "extractor", 2) == []
    room.clock.advance(UNTIL_SETTLED_MS)
    (again,) = taken_by(room, "extractor", 2)
    assert again.id == late.id


def test_poison_jobs_are_leased_one_at_a_time_after_other_jobs(room: StoreRoom) -> None:
    lost = [room.remember(f"Memory number {number}").id for number in range(3)]
    assert len(taken_by(room, "extractor", 1)) == 3
    assert taken_by(room, "extractor", 2) == []
    room.clock.advance(UNTIL_SETTLED_MS)
    fresh = room.remember("A memory that nobody has tried yet").id
    first = taken_by(room, "extractor", 2)
    assert [job.memory_id for job in first] == [fresh, lost[0]]
    assert taken_by(room, "extractor", 2) == []
    assert leases.ready_kinds(room.engine, ("extract",), room.clock.wall_ms()) == ()
    room.group.queue_changes = QueueChanges()
    room.ask(CompleteJob(first[1].id, first[1].lease_id))
    assert "extract" in room.group.queue_changes.ready
    assert leases.ready_kinds(room.engine, ("extract",), room.clock.wall_ms()) == ("extract",)
    assert [job.memory_id for job in taken_by(room, "extractor", 2)] == [lost[1]]


def test_the_quarantine_leases_only_poison_jobs_and_the_extractor_none(
    room: StoreRoom,
) -> None:
    def taken(name: str, incarnation: int, poison_jobs: PoisonJobs) -> list[str | None]:
        command = LeaseJobs(("extract",), 8, LEASE_MS, poison_jobs=poison_jobs)
        return [job.memory_id for job in asked_by(room, command, name, incarnation).jobs]

    def ready(poison_jobs: PoisonJobs) -> bool:
        return bool(leases.ready_kinds(room.engine, ("extract",), room.clock.wall_ms(), poison_jobs))

    def due(poison_jobs: PoisonJobs) -> bool:
        return leases.next_due(room.engine, ("extract",), room.clock.wall_ms(), poison_jobs) is not None

    lost = [room.remember(f"Memory number {number}").id for number in range(2)]
    assert taken("quarantine", 1, PoisonJobs.ONLY) == []
    assert not ready(PoisonJobs.ONLY)
    assert taken("extractor", 1, PoisonJobs.INCLUDED) == lost
    assert taken("extractor", 2, PoisonJobs.EXCLUDED) == []
    assert (due(PoisonJobs.ONLY), due(PoisonJobs.EXCLUDED)) == (True, False)
    room.clock.advance(UNTIL_SETTLED_MS)
    fresh = room.remember("A memory that nobody has tried yet").id
    assert taken("quarantine", 1, PoisonJobs.ONLY) == [lost[0]]
    assert not ready(PoisonJobs.ONLY), "one at a time"
    room.clock.advance(leases.POISON_DELAY_MS)
    assert ready(PoisonJobs.EXCLUDED)
    assert taken("extractor", 2, PoisonJobs.EXCLUDED) == [fresh]
    assert not ready(PoisonJobs.EXCLUDED)
    assert taken("quarantine", 2, PoisonJobs.ONLY) == [lost[1]], "its own death ends the lease on the first"


def test_a_poison_job_that_is_given_back_untried_stays_with_the_quarantine(room: StoreRoom) -> None:
    lost = room.remember("A memory whose worker has exited").id
    assert len(taken_by(room, "extractor", 1)) == 1
    only, excluded = (
        LeaseJobs(("extract",), 8, LEASE_MS, poison_jobs=kind) for kind in (PoisonJobs.ONLY, PoisonJobs.EXCLUDED)
    )
    assert asked_by(room, excluded, "extractor", 2).jobs == []
    room.clock.advance(UNTIL_SETTLED_MS)
    (job,) = asked_by(room, only, "quarantine", 1).jobs
    room.ask(ReleaseJobs((HeldLease(job.id, job.lease_id),), "the daemon is stopping"))
    room.clock.advance(leases.POISON_DELAY_MS)
    assert asked_by(room, excluded, "extractor", 2).jobs == []
    (again,) = asked_by(room, only, "quarantine", 1).jobs
    assert (again.memory_id, again.attempt) == (lost, job.attempt)


def test_a_poison_job_waits_behind_other_jobs_for_at_most_a_minute(room: StoreRoom) -> None:
    lost = room.remember("Memory number 0").id
    assert len(taken_by(room, "extractor", 1)) == 1
    assert taken_by(room, "extractor", 2) == []
    room.clock.advance(UNTIL_SETTLED_MS)
    fresh = [room.remember(f"A memory that nobody has tried yet, {number}").id for number in range(3)]
    assert [job.memory_id for job in taken_by(room, "extractor", 2, 1)] == fresh[:1]
    room.clock.advance(leases.POISON_DELAY_MS)
    assert [job.memory_id for job in taken_by(room, "extractor", 2, 1)] == [lost]


def test_a_poison_job_of_a_kind_that_takes_the_newest_first_waits_no_longer(room: StoreRoom) -> None:
    def embedding(incarnation: int) -> list[str | None]:
        command = LeaseJobs(kinds=("embed",), limit=1, lease_ms=LEASE_MS)
        return [job.memory_id for job in asked_by(room, command, "extractor", incarnation).jobs]

    lost = room.remember("Memory number 0").id
    assert embedding(1) == [lost]
    assert embedding(2) == []
    room.clock.advance(UNTIL_SETTLED_MS)
    newer = [room.remember(f"A newer memory, {number}").id for number in range(3)]
    assert embedding(2) == newer[2:]
    room.clock.advance(leases.POISON_DELAY_MS)
    assert embedding(2) == [lost]


def test_a_poison_job_is_dead_after_its_attempts_and_costs_no_other_job_its_attempts(room: StoreRoom) -> None:
    poison = room.remember("A memory that kills whoever reads it").id
    innocent = [room.remember(f"Memory number {number}").id for number in range(12)]
    incarnation = 1
    for _ in range(40):
        jobs = taken_by(room, "extractor", incarnation, 4)
        if not jobs:
            room.clock.advance(UNTIL_SETTLED_MS)
            continue
        if poison in {job.memory_id for job in jobs}:
            incarnation += 1
            continue
        for job in jobs:
            room.ask(CompleteJob(job.id, job.lease_id))
    rows = room.connection.execute("SELECT memory_id, status, attempts FROM memory_jobs WHERE job_type = 'extract'")
    ends = {memory: (status, attempts) for memory, status, attempts in rows}
    assert ends.pop(poison) == ("dead", 3)
    assert set(ends) == set(innocent)
    assert {status for status, _ in ends.values()} == {"completed"}
    assert max(attempts for _, attempts in ends.values()) <= 3


def told_what(room: StoreRoom, incarnation: int, *holding: LeasedJob, limit: int = 8) -> list[LeasedJob]:
    """What the extractor is handed that says it holds these."""
    known = tuple(job.lease_id for job in holding)
    answer = asked_by(room, LeaseJobs(("extract",), limit, LEASE_MS, known), "extractor", incarnation)
    return answer.jobs  # type: ignore[no-any-return]


def test_jobs_of_a_lost_reply_are_delivered_again_in_the_same_attempt(room: StoreRoom) -> None:
    for number in range(3):
        room.remember(f"Memory number {number}")
    (held,) = taken_by(room, "extractor", 1, 1)
    unheard = told_what(room, 1, held, limit=1)
    room.clock.advance(LEASE_MS - 1)
    again = told_what(room, 1, held, limit=0)
    assert again == unheard
    assert [job.attempt for job in again] == [1]
    room.clock.advance(LEASE_MS - 1)
    assert room.ask(CompleteJob(again[0].id, again[0].lease_id)).state == "completed", "it lasts as long as a new one"
    (third,) = told_what(room, 1, limit=1)
    assert third.id == held.id, "what is past its time and not yet taken back is nobody else's"
    assert third.attempt == 1
    (last,) = told_what(room, 1, third)
    assert told_what(room, 1, third, last) == []


def test_a_lost_reply_with_long_memories_is_delivered_again_with_few_others(room: StoreRoom) -> None:
    for number in range(12):
        room.remember(f"Memory number {number} {'x' * 900_000}")
    unheard = told_what(room, 1, limit=64)
    assert told_what(room, 1, limit=64) == unheard, "both replies fit into a message of the bus"


def test_jobs_of_another_process_are_not_delivered_again(room: StoreRoom) -> None:
    room.remember("A memory")
    (job,) = taken_by(room, "extractor-2", 1)
    assert told_what(room, 1) == []
    assert room.ask(CompleteJob(job.id, job.lease_id)).state == "completed"


def test_an_undelivered_attempt_ends_with_its_memory(room: StoreRoom) -> None:
    memory = room.remember("A memory")
    (job,) = taken_by(room, "extractor", 1)
    room.ask(ForgetMemory(id=memory.id, reason="r", principal=Principal()))
    assert told_what(room, 1) == []
    assert state(room, job) == "completed"


def test_a_memory_changed_before_redelivery_gets_another_job(room: StoreRoom) -> None:
    memory = room.remember("A memory")
    taken_by(room, "extractor", 1)
    patch = MemoryPatch(id=memory.id, reason="r", content="A memory of something else")
    room.ask(ModifyMemory(patch, Principal()))
    (again,) = told_what(room, 1)
    assert again.subject is not None
    assert again.subject.content == "A memory of something else"
    room.ask(CompleteJob(again.id, again.lease_id))
    (successor,) = told_what(room, 1)
    assert successor.id != again.id


def test_leasing_jobs_compiles_no_statement_twice(room: StoreRoom) -> None:
    compiled: list[tuple[Any, ...]] = []

    def asked(*what: Any) -> int:
        compiled.append(what)
        return apsw.SQLITE_OK

    room.connection.authorizer = asked  # asked whenever a statement is compiled, and only then
    for limit in (1, 2, 3):
        for number in range(limit):
            room.remember(f"Memory {number} of {limit}")
        compiled.clear()
        jobs = leased(room, limit)
        assert len(jobs) == limit
        for job in jobs:
            room.ask(CompleteJob(job.id, job.lease_id, None))
        assert bool(compiled) is (limit == 1), "the first round compiles, and no other"
    room.connection.authorizer = None
