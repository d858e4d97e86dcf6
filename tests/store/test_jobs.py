"""The job queue: leases, retries, requeues, missing jobs, and notifications of waiting workers."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signet_actors.config.pipeline_schema import RepairConfig
from signet_actors.config.schema import EMBEDDED_DIMENSIONS, EMBEDDED_MODEL, Config, EmbeddingConfig
from signet_actors.domain.jobs import JOB_KINDS, MAX_DELAY_MS, SECOND_VECTOR
from signet_actors.domain.timestamps import iso
from signet_actors.errors import ErrorCode
from signet_actors.features.diagnostics.api import MeasureHealth
from signet_actors.features.diagnostics.reads import measured
from signet_actors.protocol.leases import CompleteJob, FailJob, ReapLeases
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Idempotency, Principal
from signet_actors.protocol.pipeline import (
    HeldLease,
    JobsReady,
    ReconcileJobs,
    RecordUsage,
    ReleaseJobs,
    RequeueJobs,
    ReserveCalls,
    StoreHints,
    StoreVector,
    WatchJobs,
)
from signet_actors.protocol.searcher import Recall
from signet_actors.protocol.writer import (
    ForgetMany,
    ForgetMemory,
    ForgetTarget,
    MemoryPatch,
    ModifyMemory,
    NewMemory,
    RecoverMemory,
    Remember,
    Vector,
)
from signet_actors.searcher.recall import recall
from signet_actors.writer.commands import jobs as job_commands
from signet_actors.writer.job_waiters import MAX_WAITERS, JobWaiters
from tests.support.pipeline_harness import LEASE_MS, PipelineHarness, configured, refused
from tests.support.store_room import DIMENSIONS, MODEL, Asked, broken_invariants, kept_sound, raw, remembering
from tests.support.writer_script import ScriptedWriter

ME = Principal(changed_by="tester")
SECOND_MS = 1_000
COOLDOWN_MS = 60_000
UNTIL_SETTLED_MS = 2_500
"""So long a job waits that lost its worker."""


@pytest.fixture
def room(tmp_path: Path) -> Iterator[PipelineHarness]:
    with kept_sound(PipelineHarness(tmp_path)) as room:
        yield room


def stored(room: PipelineHarness, text: str, **fields: Any) -> str:
    return room.remember(text, vector=[1.0, 2.0], **fields).id


def edited(room: PipelineHarness, memory_id: str, text: str) -> None:
    answer = room.ask(ModifyMemory(MemoryPatch(id=memory_id, reason="r", content=text), ME))
    assert answer.status == "updated"


def forgotten(room: PipelineHarness, memory_id: str) -> None:
    assert room.ask(ForgetMemory(id=memory_id, reason="r", principal=ME)).status == "deleted"


def jobs_of(room: PipelineHarness, memory_id: str) -> list[tuple[str, str]]:
    rows = room.connection.execute(
        "SELECT job_type, status FROM memory_jobs WHERE memory_id = ? ORDER BY seq", (memory_id,)
    )
    return rows.fetchall()  # type: ignore[return-value]


def died(room: PipelineHarness, kind: str = "extract") -> str:
    """The job of the kind that waits for longest has failed for good; its id."""
    job = room.take(kind)
    room.connection.execute("UPDATE memory_jobs SET attempts = max_attempts WHERE id = ?", (job.id,))
    assert room.ask(FailJob(job.id, job.lease_id, "no answer")).state == "dead"
    return job.id


# which jobs a memory gets


@pytest.mark.parametrize(
    ("config", "vector", "kinds"),
    [
        (configured(), [1.0], ["extract"]),
        (configured(), None, ["embed", "extract"]),
        (configured(hints=True), [1.0], ["extract", "prospective_index"]),
        (configured(enabled=False, hints=True), None, ["embed"]),
        (msgspec.structs.replace(configured(), embedding=EmbeddingConfig(provider="none")), None, ["extract"]),
    ],
)
def test_the_configuration_decides_which_jobs_a_new_memory_gets(
    room: PipelineHarness, config: Config, vector: list[float] | None, kinds: list[str]
) -> None:
    room.reconfigure(config)
    memory = room.remember("A memory", vector=vector)
    assert sorted(jobs_of(room, memory.id)) == [(kind, "pending") for kind in kinds]
    assert set(kinds) <= {kind.name for kind in JOB_KINDS}


def test_a_content_changed_repeatedly_has_one_pending_job(room: PipelineHarness) -> None:
    memory_id = stored(room, "First text")
    edited(room, memory_id, "Second text")
    edited(room, memory_id, "Third text")
    assert jobs_of(room, memory_id) == [("extract", "pending"), ("embed", "pending")]
    subject = room.take().subject
    assert subject is not None
    assert (subject.content, subject.version) == ("Third text", 3)


def test_a_text_changed_during_its_job_is_processed_again(room: PipelineHarness) -> None:
    memory_id = stored(room, "First text")
    job = room.take()
    edited(room, memory_id, "Second text")
    assert [kind for kind, _ in jobs_of(room, memory_id)].count("extract") == 1
    room.ask(CompleteJob(job.id, job.lease_id, "{}"))
    again = room.take()
    assert again.subject is not None
    assert again.subject.content == "Second text"
    assert room.memory(memory_id, "extraction_status") == ("pending",)
    room.ask(CompleteJob(again.id, again.lease_id, "{}"))
    assert room.memory(memory_id, "extraction_status") == ("completed",)
    assert room.take_all() == []


def test_a_tag_changed_during_the_job_causes_no_other_job(room: PipelineHarness) -> None:
    memory_id = stored(room, "First text")
    job = room.take()
    room.ask(ModifyMemory(MemoryPatch(id=memory_id, reason="r", tags=("new",)), ME))
    room.ask(CompleteJob(job.id, job.lease_id, "{}"))
    assert room.take_all() == []


def test_a_dead_job_marks_its_memory_and_a_newer_text_gets_another_job(room: PipelineHarness) -> None:
    memory_id = stored(room, "First text")
    died(room)
    assert room.memory(memory_id, "extraction_status") == ("failed",)
    edited(room, memory_id, "Second text")
    assert room.memory(memory_id, "extraction_status") == ("pending",)
    assert room.take().memory_id == memory_id


# who gets a job


def test_a_job_is_leased_with_its_memory(room: PipelineHarness) -> None:
    memory_id = stored(room, "A text", agent_id="cleo", visibility="private", project="p", scope="s", pinned=True)
    subject = room.take().subject
    assert subject is not None
    assert (subject.id, subject.content, subject.version, subject.pinned) == (memory_id, "A text", 1, True)
    assert (subject.agent_id, subject.visibility, subject.project, subject.scope) == ("cleo", "private", "p", "s")
    assert subject.embedding_model == MODEL


@pytest.mark.parametrize("hard", [False, True])
def test_a_job_of_a_deleted_memory_is_completed_and_never_leased(room: PipelineHarness, hard: bool) -> None:
    gone, kept = stored(room, "Gone"), stored(room, "Kept")
    if hard:
        room.ask(ForgetMany(targets=(ForgetTarget(gone),), reason="r", principal=ME, hard=True))
    else:
        forgotten(room, gone)
    assert [job.memory_id for job in room.take_all(limit=1)] == [kept]
    if not hard:
        ended = room.connection.execute("SELECT status, attempts, result FROM memory_jobs WHERE memory_id = ?", (gone,))
        assert ended.fetchall() == [("completed", 0, '{"skipped":"memory_gone"}')]


def test_a_job_that_ends_after_its_memory_was_erased_stores_no_text(room: PipelineHarness) -> None:
    memory_id = stored(room, "The zebra text")
    job = room.take()
    room.ask(ForgetMany(targets=(ForgetTarget(memory_id),), reason="r", principal=ME, hard=True))
    assert room.ask(CompleteJob(job.id, job.lease_id, '{"zebra":1}')).state == "completed"
    assert room.value("SELECT result FROM memory_jobs WHERE id = ?", job.id) == '{"skipped":"memory_gone"}'


def test_a_repeated_lease_request_returns_the_current_memory_and_stores_no_copy(room: PipelineHarness) -> None:
    from signet_actors.protocol.leases import LeaseJobs

    first, second = stored(room, "The zebra text"), stored(room, "The other text")
    command = LeaseJobs(kinds=("extract",), limit=2, lease_ms=LEASE_MS)
    once = room.ask(command, message_id="m")
    assert room.ask(command, message_id="m") == once
    assert room.value("SELECT count(*) FROM request_replies WHERE instr(reply, 'zebra')") == 0
    forgotten(room, first)
    assert [job.memory_id for job in room.ask(command, message_id="m").jobs] == [second]


def test_a_failing_job_neither_blocks_others_nor_loses_its_turn(
    room: PipelineHarness,
) -> None:
    stored(room, "Fails")
    failing = room.take()
    room.ask(FailJob(failing.id, failing.lease_id, "no answer"))
    before = [stored(room, f"Before {number}") for number in range(3)]
    room.clock.advance(2 * SECOND_MS)
    stored(room, "After")
    order = [job.memory_id for job in room.take_all()]
    assert order[:3] == before
    assert order[3] == failing.memory_id


def test_a_clock_set_back_delays_no_job(room: PipelineHarness) -> None:
    stored(room, "Fails")
    job = room.take()
    room.ask(FailJob(job.id, job.lease_id, "no answer"))
    room.clock.wall -= 10 * 365 * 86_400_000
    assert [again.id for again in room.take_all()] == [job.id]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["take", "fail", "release", "complete", "pass", "reap", "expire"]), max_size=30))
def test_no_sequence_of_events_loses_a_job_or_adds_an_attempt(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    room = PipelineHarness(tmp_path_factory.mktemp("store"))
    for number in range(4):
        stored(room, f"Memory number {number}")
    out: list[Any] = []
    spent = 0
    for step in steps:
        if step == "take":
            taken = room.take_all(limit=2)
            spent += len(taken)
            out += taken
        elif step == "pass":
            room.clock.advance(7 * SECOND_MS)
        elif step == "expire":
            room.clock.advance(LEASE_MS)
        elif step == "reap":
            room.ask(ReapLeases())
        elif out:
            job = out.pop(0)
            if step == "fail":
                room.ask(FailJob(job.id, job.lease_id, "no answer"))
            elif step == "complete":
                room.ask(CompleteJob(job.id, job.lease_id))
            else:
                spent -= room.ask(ReleaseJobs((HeldLease(job.id, job.lease_id),), "away")).released
    assert room.value("SELECT sum(attempts) FROM memory_jobs") == spent
    assert room.value("SELECT count(*) FROM memory_jobs") == 4
    assert broken_invariants(room.connection) == []
    room.close()


# what is given back, revived and found missing


def test_a_returned_attempt_is_never_spent(room: PipelineHarness) -> None:
    stored(room, "Waits for its provider")
    waits = []
    for _ in range(40):
        job = room.take()
        assert job.attempt == 1
        answer = room.ask(ReleaseJobs((HeldLease(job.id, job.lease_id),), "ollama does not answer"))
        assert (answer.released, answer.lost) == (1, 0)
        assert room.take_all() == [], "it was handed out again at once"
        begun = room.clock.wall
        while not room.value("SELECT 1 FROM memory_jobs WHERE available_at <= ?", iso(room.clock.wall)):
            room.clock.advance(100)
        waits.append(room.clock.wall - begun)
    assert 1_000 <= waits[0] <= 1_600
    assert 30_000 <= waits[-1] <= 30_600 <= MAX_DELAY_MS
    row = room.connection.execute(
        "SELECT status, attempts, error FROM memory_jobs WHERE job_type = 'extract'"
    ).fetchone()
    assert row == ("pending", 0, "ollama does not answer")


def test_a_lost_lease_cannot_be_returned(room: PipelineHarness) -> None:
    stored(room, "First")
    stored(room, "Second")
    (late,) = room.take_all(limit=1)
    room.clock.advance(LEASE_MS + 1)
    room.ask(ReapLeases())
    room.clock.advance(UNTIL_SETTLED_MS)
    mine = next(job for job in room.take_all() if job.id != late.id)
    both = (HeldLease(late.id, late.lease_id), HeldLease(mine.id, mine.lease_id))
    answer = room.ask(ReleaseJobs(both, "away"))
    assert (answer.released, answer.lost) == (1, 1)
    assert room.value("SELECT attempts FROM memory_jobs WHERE id = ?", late.id) == 2


def test_the_status_counts_the_leases_that_are_older_than_ten_minutes(room: PipelineHarness) -> None:
    for number in range(3):
        stored(room, f"Given out {number}")
    assert len(room.take_all(limit=2)) == 2
    room.clock.advance(600_000)
    assert len(room.take_all(limit=1)) == 1
    for late_ms, stale in ((0, 0), (1, 2), (600_001, 3)):
        with room.reader.open_snapshot() as view:
            assert measured(view, MeasureHealth(iso(room.clock.wall + late_ms))).stale_leases == stale


def test_a_poison_job_is_dead_after_its_last_attempt(room: PipelineHarness) -> None:
    stored(room, "Poison")
    for _ in range(3):
        assert len(room.take_all(limit=1)) == 1
        room.clock.advance(LEASE_MS + 1)
        room.ask(ReapLeases())
        room.clock.advance(UNTIL_SETTLED_MS)
    other = stored(room, "Harmless")
    assert (
        room.value("SELECT error FROM memory_jobs WHERE status = 'dead'")
        == "the worker process exited during the last attempt"
    )
    assert [job.memory_id for job in room.take_all()] == [other]


def test_a_dead_job_is_requeued_once_with_others_and_again_only_by_id(room: PipelineHarness) -> None:
    memory_id = stored(room, "Poison")
    job_id = died(room)
    assert room.ask(RequeueJobs(kinds=("embed",))).requeued == []
    assert room.ask(RequeueJobs(kinds=("extract",))).requeued == [job_id]
    assert room.memory(memory_id, "extraction_status") == ("pending",)
    assert died(room) == job_id
    room.clock.advance(COOLDOWN_MS)
    assert room.ask(RequeueJobs()).requeued == []
    answer = room.ask(RequeueJobs(ids=(job_id, "no-such-job")))
    assert answer.requeued == [job_id]
    assert [(one.job_id, one.reason) for one in answer.refused] == [("no-such-job", "not_found")]
    room.clock.advance(COOLDOWN_MS)
    assert [one.reason for one in room.ask(RequeueJobs(ids=(job_id,))).refused] == ["not_dead"]


def test_a_dead_job_with_a_live_successor_or_without_its_memory_is_not_requeued(room: PipelineHarness) -> None:
    changed, gone = stored(room, "Changes"), stored(room, "Goes")
    first, second = died(room), died(room)
    edited(room, changed, "Changed")
    forgotten(room, gone)
    reasons = {one.job_id: one.reason for one in room.ask(RequeueJobs(ids=(first, second))).refused}
    assert reasons == {first: "already_waiting", second: "memory_gone"}


def test_a_named_job_of_a_memory_that_the_caller_may_not_read_is_not_found(room: PipelineHarness) -> None:
    memory_id = stored(room, "Private", agent_id="alice", visibility="private")
    job_id = died(room)
    stranger, owner = ReadScope(agent_id="ben"), ReadScope(agent_id="alice")
    for state in ("dead", "deleted"):
        answer = room.ask(RequeueJobs(ids=("no-such-job", job_id), read=stranger))
        assert answer.requeued == [], state
        assert [(one.job_id, one.reason) for one in answer.refused] == [
            ("no-such-job", "not_found"),
            (job_id, "not_found"),
        ]
        if state == "dead":
            room.ask(ForgetMemory(id=memory_id, reason="r", principal=ME, read=owner))
    assert [one.reason for one in room.ask(RequeueJobs(ids=(job_id,), read=owner)).refused] == ["memory_gone"]
    room.ask(RecoverMemory(id=memory_id, reason="r", principal=ME, read=owner))
    assert room.value("SELECT status FROM memory_jobs WHERE id = ?", job_id) == "dead"
    assert room.ask(RequeueJobs(ids=(job_id,), read=owner)).requeued == [job_id]


def test_many_dead_jobs_are_requeued_in_steps(room: PipelineHarness) -> None:
    for number in range(5):
        stored(room, f"Memory number {number}")
        died(room)
    answer = room.ask(RequeueJobs(limit=2))
    assert (len(answer.requeued), answer.more) == (2, True)
    room.clock.advance(COOLDOWN_MS)
    answer = room.ask(RequeueJobs(limit=5))
    assert (len(answer.requeued), answer.more) == (3, False)


def test_requeues_have_a_cooldown_and_an_hourly_limit(room: PipelineHarness) -> None:
    limits = RepairConfig(requeue_cooldown_ms=5_000, requeue_hourly_budget=2)
    room.reconfigure(repairing(limits))
    stored(room, "Poison")
    job_id = died(room)
    again = RequeueJobs(ids=(job_id,), principal=ME)

    def revived_and_dead_again() -> None:
        assert room.ask(again).requeued == [job_id]
        assert died(room) == job_id

    revived_and_dead_again()
    room.clock.advance(4_000)
    answer = refused(room.ask(again))
    assert (answer.code, answer.retry_after_ms) == (ErrorCode.RATE_LIMITED, 1_000)
    assert room.value("SELECT status FROM memory_jobs WHERE id = ?", job_id) == "dead"
    room.clock.advance(1_000)
    revived_and_dead_again()
    room.clock.advance(60_000)
    answer = refused(room.ask(again))
    assert (answer.code, answer.retry_after_ms) == (ErrorCode.RATE_LIMITED, 3_600_000 - 65_000)
    room.clock.advance(3_600_000 - 65_000)
    revived_and_dead_again()
    room.clock.advance(-1_000_000)
    assert room.ask(again).requeued == [job_id], "a clock that went back locks nobody out"
    assert [
        (event["event"], event["reason"], event["changed_by"], event["metadata"]) for event in room.events("system")
    ] == [("none", "requeueDeadJobs", "tester", {"repair": "requeueDeadJobs", "affected": 1})] * 4


def test_a_requeue_without_effect_and_a_retry_do_not_count(room: PipelineHarness) -> None:
    stored(room, "Poison")
    job_id = died(room)
    for _ in range(3):
        assert room.ask(RequeueJobs(kinds=("embed",))).requeued == []
    first = RequeueJobs(ids=(job_id,), idempotency=Idempotency("key", "body"))
    answer = room.ask(first)
    assert answer.requeued == [job_id]
    assert room.ask(first) == answer
    assert refused(room.ask(RequeueJobs())).code is ErrorCode.RATE_LIMITED


def repairing(limits: RepairConfig) -> Config:
    config = configured()
    pipeline = msgspec.structs.replace(config.memory.pipeline_v2, repair=limits)
    return msgspec.structs.replace(config, memory=msgspec.structs.replace(config.memory, pipeline_v2=pipeline))


def embedded_by(model: str, dimensions: int = DIMENSIONS) -> Config:
    embedding = EmbeddingConfig(provider="openai", model=model, dimensions=dimensions)
    return msgspec.structs.replace(configured(), embedding=embedding)


def embedding_jobs(room: PipelineHarness, memory_id: str) -> list[str]:
    return [status for kind, status in jobs_of(room, memory_id) if kind == "embed"]


def content_hash_of(room: PipelineHarness, memory_id: str) -> str:
    return str(room.value("SELECT content_hash FROM memories WHERE id = ?", memory_id))


def reconciled(room: PipelineHarness, limit: int = 2) -> int:
    enqueued, after = 0, 0
    while True:
        answer = room.ask(ReconcileJobs(after, limit))
        enqueued += answer.enqueued
        if answer.next is None:
            return enqueued
        assert answer.next > after
        after = answer.next


def test_a_missing_job_is_enqueued(room: PipelineHarness) -> None:
    lost = stored(room, "Its job was lost")
    bare = room.remember("It has neither job nor vector").id
    stored(room, "It waits as it should")
    room.connection.execute("DELETE FROM memory_jobs WHERE memory_id IN (?, ?)", (lost, bare))
    assert reconciled(room) == 3
    assert jobs_of(room, lost) == [("extract", "pending")]
    assert sorted(jobs_of(room, bare)) == [("embed", "pending"), ("extract", "pending")]
    assert reconciled(room) == 0


def test_reconciliation_enqueues_neither_ended_jobs_nor_old_extractions(room: PipelineHarness) -> None:
    stored(room, "Died")
    died(room)
    room.reconfigure(configured(enabled=False))
    stored(room, "Stored while the pipeline was off")
    room.reconfigure(configured())
    done = room.remember("Its vector could not be made").id
    job = room.take("embed")
    nothing = struct.pack("<8f", *[0.0] * DIMENSIONS)
    room.ask(StoreVector(job.id, job.lease_id, content_hash_of(room, done), MODEL, DIMENSIONS), [nothing])
    extraction = room.take()
    room.ask(CompleteJob(extraction.id, extraction.lease_id, "{}"))
    gone = stored(room, "Gone")
    forgotten(room, gone)
    assert reconciled(room) == 0
    assert jobs_of(room, done) == [("extract", "completed"), ("embed", "completed")]
    room.reconfigure(embedded_by("another-model"))
    assert embedding_jobs(room, done) == ["completed"]
    reconciled(room)
    assert embedding_jobs(room, done) == ["completed", "pending"], "another model may be able to read it"


@pytest.mark.parametrize("end", ["failed", "worker_lost"])
def test_a_dead_embed_job_is_retried_only_with_another_model(room: PipelineHarness, end: str) -> None:
    memory_id = room.remember("No model has read it yet").id

    def dies() -> None:
        for _ in range(3):
            job = room.take("embed")
            if end == "failed":
                room.ask(FailJob(job.id, job.lease_id, "the server cannot read it"))
            else:
                room.clock.advance(LEASE_MS + 1)
                room.ask(ReapLeases())
            room.clock.advance(31_000)

    dies()
    assert embedding_jobs(room, memory_id) == ["dead"]
    assert reconciled(room) == 0, "a dead job is left to a person"
    room.reconfigure(embedded_by("another-model"))
    assert reconciled(room) == 1
    assert reconciled(room) == 0
    dies()
    assert embedding_jobs(room, memory_id) == ["dead", "dead"]
    assert reconciled(room) == 0, "the other model cannot either"
    room.reconfigure(embedded_by(MODEL))
    assert reconciled(room) == 0, "the first one has failed already"
    room.reconfigure(embedded_by(MODEL, DIMENSIONS * 2))
    assert reconciled(room) == 1


def test_after_a_model_change_every_memory_is_embedded_again_and_found_by_its_old_vector_until_then(
    room: PipelineHarness,
) -> None:
    second, first = stored(room, "The second to be embedded"), stored(room, "The first, being newer")
    assert reconciled(room) == 0
    room.reconfigure(embedded_by("another-model"))
    answer = room.ask(ReconcileJobs())
    assert (answer.enqueued, answer.space) == (2, f"another-model:{DIMENSIONS}")
    assert reconciled(room) == 0, "they wait already"
    job = room.take("embed")
    assert job.memory_id == first
    vector = raw([0.0, 1.0])
    room.ask(StoreVector(job.id, job.lease_id, content_hash_of(room, first), "another-model", DIMENSIONS), [vector])
    assert [row.id for row in room.recall("nothing", vector=[1.0, 2.0]).rows] == [second]
    assert found_by_both(room) == ([first, second], ((MODEL, DIMENSIONS),))
    sql = "SELECT model FROM embeddings WHERE source_id = ? ORDER BY seq"
    assert room.connection.execute(sql, (first,)).fetchall() == [(MODEL,), ("another-model",)]
    job = room.take("embed")
    room.ask(StoreVector(job.id, job.lease_id, content_hash_of(room, second), "another-model", DIMENSIONS), [vector])
    assert reconciled(room) == 0, "a round later there is nothing left to do"
    assert found_by_both(room) == ([first, second], ())


def found_by_both(room: PipelineHarness) -> tuple[list[str], tuple[tuple[str, int], ...]]:
    """What a query finds among new vectors and old, and which models are left behind."""
    asked = Recall("nothing", ReadScope(), vector_model="another-model", former_model=MODEL)
    with room.reader.open_snapshot() as view:
        found = recall(room.reader, view, asked, [raw([0.0, 1.0]), raw([1.0, 2.0, 0.5])])
    assert found.method == "hybrid"
    return [row.id for row in found.rows], found.stale_spaces


def test_a_vector_of_another_width_is_a_vector_of_another_model(room: PipelineHarness) -> None:
    stored(room, "Short")
    room.reconfigure(embedded_by(MODEL, DIMENSIONS * 2))
    assert reconciled(room) == 1


def test_without_a_provider_no_embed_job_is_enqueued(room: PipelineHarness) -> None:
    stored(room, "Embedded")
    none = msgspec.structs.replace(configured(), embedding=EmbeddingConfig(provider="none"))
    room.reconfigure(none)
    bare = room.remember("Bare").id
    answer = room.ask(ReconcileJobs())
    assert (answer.enqueued, answer.space) == (0, "")
    assert embedding_jobs(room, bare) == []


def test_a_recovered_memory_gets_its_missing_job(room: PipelineHarness) -> None:
    memory_id = stored(room, "Gone and back")
    forgotten(room, memory_id)
    assert room.take_all() == []
    room.ask(RecoverMemory(id=memory_id, reason="r", principal=ME))
    assert room.take().memory_id == memory_id


# hints, vectors, usage


def test_hints_are_replaced_found_and_deleted_with_their_memory(tmp_path: Path) -> None:
    room = PipelineHarness(tmp_path, config=configured(hints=True))
    memory_id = stored(room, "The build uses Bazel")
    job = room.take("prospective_index")
    assert (
        room.ask(StoreHints(job.id, job.lease_id, ("Which  build tool?", "Which build tool?", " ", "Why?"))).count == 2
    )
    matching = "SELECT count(*) FROM memory_hints_fts WHERE memory_hints_fts MATCH 'tool'"
    assert room.value(matching) == 1
    forgotten(room, memory_id)
    assert (room.value(matching), room.value("SELECT count(*) FROM memory_hints")) == (0, 0)
    room.ask(RecoverMemory(id=memory_id, reason="r", principal=ME))
    job = room.take("prospective_index")
    assert room.ask(StoreHints(job.id, job.lease_id, ("Which build tool?",))).count == 1
    edited(room, memory_id, "The build uses Ninja")
    assert room.value("SELECT count(*) FROM memory_hints") == 0
    job = room.take("prospective_index")
    edited(room, memory_id, "The build uses Make")
    assert room.ask(StoreHints(job.id, job.lease_id, ("Is it Ninja?",))).count == 0, "of a text that is no more"
    job = room.take("prospective_index")
    room.ask(StoreHints(job.id, job.lease_id, ("Is it Make?",)))
    room.ask(ForgetMany(targets=(ForgetTarget(memory_id),), reason="r", principal=ME, hard=True))
    assert room.value("SELECT count(*) FROM memory_hints") == 0
    assert broken_invariants(room.connection) == []
    room.close()


def test_a_vector_is_stored_only_for_the_text_that_it_was_computed_from(room: PipelineHarness) -> None:
    memory_id = room.remember("Without a vector").id
    job = room.take("embed")
    assert job.subject is not None
    command = StoreVector(job.id, job.lease_id, job.subject.content_hash, MODEL, DIMENSIONS)
    assert room.ask(command, [raw([1.0, 2.0])]).stored
    assert room.memory(memory_id, "embedding_model") == (MODEL,)
    assert [row.id for row in room.recall("something", vector=[1.0, 2.0]).rows] == [memory_id]
    other = room.remember("Another without").id
    job = room.take("embed")
    assert job.subject is not None
    edited(room, other, "Another text without")
    late = StoreVector(job.id, job.lease_id, job.subject.content_hash, MODEL, DIMENSIONS)
    assert not room.ask(late, [raw([1.0])]).stored
    job = room.take("embed")
    assert job.subject is not None
    assert not room.ask(StoreVector(job.id, job.lease_id, job.subject.content_hash, MODEL, 3), [b"short"]).stored


def test_daily_caps_are_never_exceeded_and_unused_reservations_are_returned(room: PipelineHarness) -> None:
    caps: dict[str, Any] = {"call_limit": 5, "token_limit": 1000, "model": "m"}
    granted = room.ask(ReserveCalls("ollama", calls=3, tokens=600, **caps))
    assert (granted.granted, granted.calls, granted.tokens, granted.day) == (True, 3, 600, "2026-01-01")
    assert not room.ask(ReserveCalls("ollama", calls=3, **caps)).granted
    assert not room.ask(ReserveCalls("ollama", calls=1, tokens=401, **caps)).granted
    assert room.ask(ReserveCalls("openai", calls=3, **caps)).granted
    spent: dict[str, Any] = {"tokens_in": 90, "tokens_out": 10, "cost_microusd": 5, "reserved_tokens": 600}
    room.ask(RecordUsage("ollama", "m", granted.day, unused_calls=1, **spent))
    again = room.ask(ReserveCalls("ollama", calls=3, tokens=900, **caps))
    assert (again.granted, again.calls, again.tokens) == (True, 5, 1000)
    room.clock.advance(86_400_000)
    tomorrow = room.ask(ReserveCalls("ollama", calls=5, tokens=1000, **caps))
    assert (tomorrow.granted, tomorrow.calls, tomorrow.day) == (True, 5, "2026-01-02")
    assert room.ask(ReserveCalls("ollama", calls=10_000, tokens=1 << 40)).granted, "without a cap"
    usage = room.connection.execute(
        "SELECT calls, tokens_in, tokens_out, tokens_reserved, cost_microusd FROM provider_usage"
        " WHERE provider = 'ollama' AND day = '2026-01-01'"
    )
    assert usage.fetchall() == [(5, 90, 10, 900, 5)]


# who is told


@pytest.fixture
def scripted(tmp_path: Path) -> Iterator[ScriptedWriter]:
    scripted = ScriptedWriter(tmp_path)
    scripted.start()
    yield scripted
    scripted.abandon()


def watching(
    scripted: ScriptedWriter, *kinds: str, wait_ms: int = 30_000, message_id: str = "watch", within_ms: int = 0
) -> Asked:
    asked = Asked(WatchJobs(kinds or ("extract",), wait_ms), message_id)
    if within_ms:
        deadline_ns = scripted.clock.monotonic_ns() + within_ms * 1_000_000
        asked.header = msgspec.structs.replace(asked.header, deadline_ns=deadline_ns)
    handed(scripted, asked)
    return asked


def handed(scripted: ScriptedWriter, *batch: Asked) -> None:
    scripted.writer.handle(list(batch))  # type: ignore[arg-type]


def note(text: str, message_id: str) -> Asked:
    command, frames = remembering(text, vector=[1.0])
    assert isinstance(command, Remember)
    return Asked(command, message_id, frames)


def test_a_waiter_is_notified_by_the_commit_that_makes_a_job_ready(scripted: ScriptedWriter) -> None:
    asked = watching(scripted)
    other = watching(scripted, "prospective_index", message_id="other")
    assert asked.answers == []
    handed(scripted, note("a text", "1"))
    assert asked.answer == JobsReady(("extract",))
    assert other.answers == []


def test_a_waiter_is_notified_at_once_if_a_job_is_already_ready(scripted: ScriptedWriter) -> None:
    together = Asked(WatchJobs(("extract",)), "together")
    handed(scripted, together, note("a text", "1"))
    assert together.answer == JobsReady(("extract",))
    assert watching(scripted).answer == JobsReady(("extract",))


def test_a_waiter_is_notified_of_a_delayed_job_when_it_is_due(scripted: ScriptedWriter) -> None:
    from signet_actors.protocol.leases import LeaseJobs

    leasing = Asked(LeaseJobs(("extract",), 1, LEASE_MS), "lease")
    handed(scripted, note("a text", "1"), leasing)
    (job,) = leasing.answer.jobs
    asked = watching(scripted)
    handed(scripted, Asked(FailJob(job.id, job.lease_id, "no answer"), "fail"))
    assert asked.answers == []
    scripted.writer.tick()
    wish = scripted.writer.tick()
    assert wish is not None
    assert 0.9 < wish < 1.7
    scripted.clock.advance(900)
    scripted.writer.tick()
    assert asked.answers == []
    scripted.clock.advance(700)
    scripted.writer.tick()
    assert asked.answer == JobsReady(("extract",))


def test_a_wait_ends_at_its_limit_or_the_callers_deadline(scripted: ScriptedWriter) -> None:
    short = watching(scripted, wait_ms=1_000, message_id="short")
    hurried = watching(scripted, message_id="hurried", within_ms=5_000)
    scripted.clock.advance(1_000)
    scripted.writer.tick()
    assert short.answer == JobsReady()
    assert hurried.answers == []
    scripted.clock.advance(3_800)
    scripted.writer.tick()
    assert hurried.answer == JobsReady()


def test_the_number_of_waiters_is_limited_and_the_oldest_is_released(scripted: ScriptedWriter) -> None:
    asks = [watching(scripted, message_id=str(number)) for number in range(MAX_WAITERS + 2)]
    assert [len(asked.answers) for asked in asks] == [1, 1] + [0] * MAX_WAITERS
    assert scripted.writer.counters()["watches"] == MAX_WAITERS
    doubled = watching(scripted, message_id=str(MAX_WAITERS))
    handed(scripted, note("a text", "note"))
    assert doubled.answer == JobsReady(("extract",))
    assert asks[MAX_WAITERS].answers == [], "one answer is enough for both"


def test_two_processes_that_wait_for_every_kind_do_not_release_each_other(scripted: ScriptedWriter) -> None:
    kinds = [*(kind.name for kind in JOB_KINDS), SECOND_VECTOR]
    asks = [
        watching(scripted, kind, message_id=f"{name} {kind}") for name in ("extractor", "quarantine") for kind in kinds
    ]
    assert [asked.answers for asked in asks] == [[]] * len(asks)


def test_a_full_disk_notifies_no_waiter_and_a_stop_releases_all(scripted: ScriptedWriter) -> None:
    group = scripted.writer.group
    assert group is not None
    asked = watching(scripted)
    handed(scripted, note("a text", "1"))
    assert asked.answers
    group.enter_storage_full()
    waiting = watching(scripted, message_id="second")
    assert waiting.answers == [], "it could lease nothing"
    group.probe_storage()
    scripted.writer.tick()
    assert waiting.answer == JobsReady(("extract",))
    last = watching(scripted, "prospective_index", message_id="last")
    scripted.writer.drain()
    assert last.answer == JobsReady()


def test_without_waiters_a_commit_looks_nothing_up(scripted: ScriptedWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JobWaiters, "notify", lambda *_, **__: pytest.fail("nobody waits"))
    handed(scripted, note("a text", "1"))
    scripted.writer.tick()
    assert refused(_lost(scripted)).code is ErrorCode.LEASE_LOST


def _lost(scripted: ScriptedWriter) -> Any:
    asked = Asked(CompleteJob("no-such-job", "no-such-lease"), "lost")
    handed(scripted, asked)
    return asked.answer


def test_a_vector_of_the_embedded_model_without_token_codes_is_made_again(room: PipelineHarness) -> None:
    room.reconfigure(msgspec.structs.replace(configured(enabled=False), embedding=EmbeddingConfig()))
    numbers = np.ones(EMBEDDED_DIMENSIONS, "<f4").tobytes()
    made = {}
    for codes in (None, b"", b"\x01\x02"):
        vector = Vector(EMBEDDED_MODEL, EMBEDDED_DIMENSIONS, 0, codes)
        memory = NewMemory(content=f"with {codes!r}", type="fact", importance=0.5, vector=vector)
        made[codes] = room.ask(Remember(memory, ME), [numbers]).id
    assert reconciled(room) == 1
    assert jobs_of(room, made[None]) == [("embed", "pending")]


def test_a_vector_that_a_job_of_an_earlier_release_made_gets_its_token_codes(room: PipelineHarness) -> None:
    room.reconfigure(msgspec.structs.replace(configured(enabled=False), embedding=EmbeddingConfig()))
    memory = room.remember("stored while the model was away").id

    def embedded(codes: bytes | None) -> None:
        job = room.take("embed")
        text = content_hash_of(room, memory)
        command = StoreVector(job.id, job.lease_id, text, EMBEDDED_MODEL, EMBEDDED_DIMENSIONS, codes)
        assert room.ask(command, [np.ones(EMBEDDED_DIMENSIONS, "<f4").tobytes()]).stored

    embedded(None)
    assert reconciled(room) == 1
    embedded(b"\x01\x02")
    assert reconciled(room) == 0


def test_a_round_waits_while_many_vectors_are_missing(room: PipelineHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_commands, "MAX_WAITING", 1)
    first = room.remember("without a vector").id
    room.connection.execute("DELETE FROM memory_jobs")
    assert room.ask(ReconcileJobs(0, 5)).enqueued == 2
    late = room.remember("the newest memory").id
    room.connection.execute("DELETE FROM memory_jobs WHERE memory_id = ? AND job_type = 'extract'", (late,))
    waiting = room.ask(ReconcileJobs(0, 5))
    assert (waiting.enqueued, waiting.next) == (0, 0)
    assert room.take("embed").memory_id == late
    answer = room.ask(ReconcileJobs(0, 5))
    assert (answer.enqueued, answer.next) == (1, None)
    assert ("embed", "pending") in jobs_of(room, first)
