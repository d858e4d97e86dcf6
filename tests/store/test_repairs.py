"""Repairs mend what is broken, and are recorded; the health counts what is broken."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from signet_actors.config.schema import Config, EmbeddingConfig
from signet_actors.domain.timestamps import iso
from signet_actors.errors import ErrorCode
from signet_actors.features.diagnostics import reads as diagnostics
from signet_actors.features.diagnostics.api import ChangeFigures, CountChanges, HealthFigures, MeasureHealth
from signet_actors.features.repairs import reads
from signet_actors.features.repairs.api import (
    CHECK_TEXT,
    CLEAN,
    GAPS,
    REEMBED,
    RELEASE,
    BatchRequest,
    CheckTextRequest,
    EnterRepair,
    FindWork,
    GapsReply,
    MeasureStore,
    RecordRepair,
    StoreFigures,
    Work,
)
from signet_actors.operations.repair import RepairReply
from signet_actors.operations.request_fields import NoFields
from signet_actors.operations.transcripts import OwnAgent
from signet_actors.protocol.leases import FailJob
from signet_actors.protocol.message import Answered, Caller, Principal, message_of
from signet_actors.protocol.writer import ForgetMemory, RecoverMemory
from tests.support.pipeline_harness import LEASE_MS, PipelineHarness, configured, refused
from tests.support.store_room import kept_sound

ME = Principal("tester")
CALLER = Caller(principal=ME)


@pytest.fixture
def room(tmp_path: Path) -> Iterator[PipelineHarness]:
    with kept_sound(PipelineHarness(tmp_path)) as room:
        yield room


def stored(room: PipelineHarness, *texts: str, **fields: Any) -> list[str]:
    return [room.remember(text, vector=[1.0, 2.0], **fields).id for text in texts]


def done(answer: Any) -> tuple[bool, int]:
    assert isinstance(answer, Answered), answer
    reply = answer.read(RepairReply)
    return reply.success, reply.affected


def release(room: PipelineHarness, caller: Caller = CALLER) -> Any:
    return room.ask(message_of(RELEASE)(caller=caller, request=OwnAgent()))


def check(room: PipelineHarness, *, repair: bool) -> Any:
    return room.ask(message_of(CHECK_TEXT)(caller=CALLER, request=CheckTextRequest(repair=repair)))


def clean(room: PipelineHarness, limit: int = 100) -> Any:
    return room.ask(message_of(CLEAN)(caller=CALLER, request=BatchRequest(limit=limit)))


def reembed(room: PipelineHarness, limit: int = 100) -> Any:
    return room.ask(message_of(REEMBED)(caller=CALLER, request=BatchRequest(limit=limit)))


def health(room: PipelineHarness) -> HealthFigures:
    with room.reader.open_snapshot() as snapshot:
        return diagnostics.measured(snapshot, MeasureHealth(iso(room.clock.wall)))


def changes(room: PipelineHarness) -> ChangeFigures:
    with room.reader.open_snapshot() as snapshot:
        return diagnostics.counted(snapshot, CountChanges(iso(room.clock.wall)))


def work(room: PipelineHarness) -> Work:
    with room.reader.open_snapshot() as snapshot:
        return reads.work(snapshot, FindWork())


def unindexed(room: PipelineHarness, count: int) -> None:
    """The text index lacks the first memories."""
    room.connection.execute(
        "INSERT INTO memories_fts (memories_fts, rowid, content, cjk)"
        " SELECT 'delete', seq, content, cjk FROM memories ORDER BY seq LIMIT ?",
        (count,),
    )


def recorded(room: PipelineHarness) -> list[tuple[str, Any]]:
    return [(event["reason"], event["metadata"]["affected"]) for event in room.events("system")]


def frozen(*, enabled: bool = True, is_frozen: bool = False) -> Config:
    config = configured()
    autonomous = msgspec.structs.replace(config.memory.pipeline_v2.autonomous, enabled=enabled, frozen=is_frozen)
    pipeline = msgspec.structs.replace(config.memory.pipeline_v2, autonomous=autonomous)
    return msgspec.structs.replace(config, memory=msgspec.structs.replace(config.memory, pipeline_v2=pipeline))


def test_expired_leases_are_released_and_live_ones_stay(room: PipelineHarness) -> None:
    stored(room, "one", "two", "three")
    assert len(room.take_all(limit=2)) == 2
    room.clock.advance(LEASE_MS + 1)
    assert len(room.take_all(limit=1)) == 1
    assert done(release(room)) == (True, 2)
    assert room.value("SELECT count(*) FROM memory_jobs WHERE job_type = 'extract' AND status = 'leased'") == 1
    assert recorded(room) == [("releaseStaleLeases", 2)]


def test_a_repair_without_anything_to_do_is_not_recorded_and_does_not_count(room: PipelineHarness) -> None:
    stored(room, "sound")
    for _ in range(2):
        assert [done(release(room)), done(clean(room)), done(check(room, repair=True))] == [(True, 0)] * 3
    assert recorded(room) == []


def test_a_second_repair_waits_for_its_own_cooldown(room: PipelineHarness) -> None:
    stored(room, "one", "two")
    room.take_all(limit=1)
    room.clock.advance(LEASE_MS + 1)
    assert done(release(room)) == (True, 1)
    room.clock.advance(59_000)
    answer = refused(release(room))
    assert (answer.code, answer.retry_after_ms) == (ErrorCode.RATE_LIMITED, 1_000)
    assert done(clean(room)) == (True, 0), "another action"
    room.clock.advance(1_000)
    assert done(release(room)) == (True, 0)


def test_the_switches_stop_every_repair(room: PipelineHarness) -> None:
    room.reconfigure(frozen(is_frozen=True))
    attempts = (release(room), check(room, repair=False), clean(room), reembed(room))
    entered = room.ask(EnterRepair(action="retention_sweep", principal=ME))
    assert [refused(answer).code for answer in (*attempts, entered)] == [ErrorCode.FORBIDDEN] * 5
    room.reconfigure(frozen(enabled=False))
    assert refused(release(room, Caller(principal=Principal("bot", "agent")))).code is ErrorCode.FORBIDDEN
    assert done(release(room)) == (True, 0)


def test_a_text_index_that_lacks_rows_is_found_and_rebuilt(room: PipelineHarness) -> None:
    stored(room, *(f"the walrus number {number}" for number in range(10)))
    unindexed(room, 2)
    assert (health(room).memories, health(room).text_rows) == (10, 8)
    assert done(check(room, repair=False)) == (False, 0)
    assert health(room).text_rows == 8
    assert done(check(room, repair=True)) == (True, 10)
    assert health(room).text_rows == 10
    assert len(room.recall("walrus", limit=20).rows) == 10
    assert recorded(room) == [("checkFtsConsistency", 10)]


def test_a_text_index_that_differs_by_a_tenth_is_left_alone(room: PipelineHarness) -> None:
    stored(room, *(f"the walrus number {number}" for number in range(10)))
    unindexed(room, 1)
    assert done(check(room, repair=True)) == (True, 0)
    assert health(room).text_rows == 9
    room.connection.execute("INSERT INTO memories_fts (memories_fts) VALUES ('rebuild')")


def test_vectors_of_memories_that_are_gone_are_deleted_and_no_others(room: PipelineHarness) -> None:
    kept, *_ = stored(room, "kept", "first", "second", "third")
    room.connection.execute("UPDATE embeddings SET source_id = 'gone-' || source_id WHERE source_id <> ?", (kept,))
    room.connection.execute("UPDATE memories SET embedding_seq = NULL, embedding_model = NULL WHERE id <> ?", (kept,))
    assert work(room) == Work(unembedded=3, orphans=3)
    assert done(clean(room, limit=2)) == (True, 2)
    room.clock.advance(60_000)
    assert done(clean(room)) == (True, 1)
    assert room.value("SELECT group_concat(source_id) FROM embeddings") == kept
    assert work(room) == Work(unembedded=3, orphans=0)


def test_memories_without_a_vector_are_counted_and_embedded_again(room: PipelineHarness) -> None:
    stored(room, "whole")
    bare = {room.remember(text).id for text in ("first", "second")}
    for _ in bare:
        job = room.take("embed")
        room.connection.execute("UPDATE memory_jobs SET attempts = max_attempts WHERE id = ?", (job.id,))
        assert room.ask(FailJob(job.id, job.lease_id, "no answer")).state == "dead"
    with room.reader.open_snapshot() as snapshot:
        assert reads.gaps(snapshot, message_of(GAPS)(request=NoFields())) == GapsReply(2, 3, "33.3%")
    assert done(reembed(room, limit=1)) == (True, 1)
    room.clock.advance(300_000)
    assert done(reembed(room)) == (True, 1), "the other one: the first has a job"
    rows = room.connection.execute("SELECT memory_id FROM memory_jobs WHERE job_type = 'embed' AND status = 'pending'")
    assert {memory_id for (memory_id,) in rows} == bare


def test_nothing_is_embedded_again_without_a_model(room: PipelineHarness) -> None:
    stored(room, "text")
    room.reconfigure(msgspec.structs.replace(configured(), embedding=EmbeddingConfig(provider="none")))
    assert done(reembed(room)) == (False, 0)


def test_a_repair_of_another_process_is_admitted_and_recorded(room: PipelineHarness) -> None:
    enter = EnterRepair(action="retention_sweep", principal=ME)
    assert isinstance(room.ask(enter), Answered)
    room.ask(RecordRepair(action="retention_sweep", affected=7, principal=ME))
    assert recorded(room) == [("retention_sweep", 7)]
    assert refused(room.ask(enter)).code is ErrorCode.RATE_LIMITED


def test_the_writer_measures_the_same_as_a_searcher(room: PipelineHarness) -> None:
    first, *_ = stored(room, "one", "two", "three")
    room.take_all(limit=1)
    room.ask(ForgetMemory(id=first, reason="r", principal=ME))
    figures = room.ask(MeasureStore()).read(StoreFigures)
    assert (figures.health, figures.changes) == (health(room), changes(room))
    assert (figures.health.memories, figures.health.tombstones, figures.changes.deletes) == (2, 1, 1)


def test_the_changes_of_seven_days_and_duplicates_of_an_agent_are_counted(room: PipelineHarness) -> None:
    memory_id, *_ = stored(room, "again and again")
    stored(room, "again and again", project="/p")
    stored(room, "again and again", project="/q")
    for _ in range(2):
        assert room.ask(ForgetMemory(id=memory_id, reason="r", principal=ME)).status == "deleted"
        assert room.ask(RecoverMemory(id=memory_id, reason="r", principal=ME)).status == "recovered"
    assert changes(room) == ChangeFigures(recovers=2, deletes=2, clusters=1, duplicates=2, memories=3)
    room.clock.advance(7 * 86_400_000 + 1)
    assert (changes(room).recovers, changes(room).deletes) == (0, 0)
