from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from signet_actors.config.schema import Config
from signet_actors.errors import DatabaseDisplaced, ErrorCode, StoreIOError
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Failure, Idempotency, Principal
from signet_actors.protocol.searcher import Recall
from signet_actors.protocol.writer import (
    ForgetMany,
    ForgetMemory,
    ForgetTarget,
    NewMemory,
    PurgeStep,
    Remember,
    RememberChunks,
    TouchMemories,
    Vector,
)
from signet_actors.runtime import sync_points
from signet_actors.searcher.recall import recall
from signet_actors.store.sqlite.writer import SqliteTransaction
from signet_actors.writer import dispatch
from signet_actors.writer.disk_reserve import DiskReserve
from signet_actors.writer.group_commit import reply_to_unstarted
from tests.support.store_room import DIMENSIONS, MODEL, Asked, StoreRoom, remembering

ME = Principal()
RETENTION_MS = Config().writer.reply_retention_ms


@pytest.fixture(autouse=True)
def _disarmed() -> Any:
    yield
    sync_points.arm("")


def batch_of(room: StoreRoom, count: int) -> list[Asked]:
    return [room.asked(*remembering(f"memory number {index}")) for index in range(count)]


def test_all_waiting_commands_are_one_commit(room: StoreRoom) -> None:
    asked = batch_of(room, 40)
    room.group.commit(asked)
    assert (room.group.metrics.commits, room.group.metrics.rows, room.group.metrics.largest_batch) == (1, 40, 40)
    assert len({item.answer.id for item in asked}) == 40


def test_no_command_is_answered_before_the_commit(room: StoreRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = batch_of(room, 3)
    seen: list[int] = []
    commit = SqliteTransaction.commit

    def watched(tx: SqliteTransaction) -> None:
        seen.append(sum(len(item.answers) for item in asked))
        commit(tx)
        seen.append(sum(len(item.answers) for item in asked))

    monkeypatch.setattr(SqliteTransaction, "commit", watched)
    room.group.commit(asked)
    assert seen == [0, 0]
    assert all(item.answers for item in asked)


def test_a_refused_command_does_not_affect_the_others_of_its_batch(room: StoreRoom) -> None:
    before, refused, after = (
        room.asked(*remembering("before")),
        room.asked(PurgeStep(step="everything", cutoff="2026-01-01T00:00:00.000Z", limit=1)),
        room.asked(*remembering("after")),
    )
    room.group.commit([before, refused, after])
    assert isinstance(refused.answer, Failure)
    assert refused.answer.code is ErrorCode.INVALID_REQUEST
    assert room.value("SELECT count(*) FROM memories") == 2


def test_an_exception_in_one_command_fails_only_that_command(room: StoreRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    execute = dispatch.execute

    def flawed(session: Any, command: Any) -> Any:
        reply = execute(session, command)
        if command.memory.content == "flawed":
            raise ZeroDivisionError
        return reply

    monkeypatch.setattr(dispatch, "execute", flawed)
    good, bad = room.asked(*remembering("good")), room.asked(*remembering("flawed", agent_id="new-agent"))
    room.group.commit([bad, good])
    assert bad.answer.code is ErrorCode.INTERNAL
    assert room.connection.execute("SELECT content FROM memories").fetchall() == [("good",)]
    # The agent that was registered in the undone command must be registered again when it really comes.
    monkeypatch.undo()
    room.remember("flawed", agent_id="new-agent")
    assert room.value("SELECT count(*) FROM agents WHERE id = 'new-agent'") == 1


def test_a_removed_file_refuses_the_batch_as_not_applied_and_ends_the_writer(room: StoreRoom) -> None:
    first = room.asked(*remembering("answered before"), message_id="first")
    room.group.commit([first])
    assert not isinstance(first.answer, Failure)
    gone = "memories.db was removed or renamed"
    room.group.displaced = lambda: gone
    key = Idempotency("a key", "a digest")
    new, keyed = room.asked(*remembering("new")), room.asked(*remembering("keyed", idempotency=key))
    repeated = room.asked(*remembering("answered before"), message_id="first")
    with pytest.raises(DatabaseDisplaced, match=gone):
        room.group.commit([new, keyed, repeated])
    assert [item.answer.code for item in (new, keyed)] == [ErrorCode.NOT_APPLIED] * 2
    assert repeated.answer.code is ErrorCode.OUTCOME_UNKNOWN
    assert all(gone in item.answer.detail for item in (new, keyed, repeated))
    assert room.value("SELECT count(*) FROM memories") == 1


def test_a_foreign_lock_refuses_the_batch_as_not_applied(room: StoreRoom) -> None:
    intruder = apsw.Connection(str(room.path))
    intruder.execute("BEGIN EXCLUSIVE")
    asked = batch_of(room, 2)
    room.group.commit(asked)
    assert {item.answer.code for item in asked} == {ErrorCode.NOT_APPLIED}
    assert all(item.answer.retry_after_ms for item in asked)
    intruder.execute("ROLLBACK")
    intruder.close()
    room.group.commit(again := batch_of(room, 2))
    assert all(not isinstance(item.answer, Failure) for item in again)


def test_a_full_disk_refuses_writes_serves_reads_and_recovers(room: StoreRoom) -> None:
    kept = room.remember("kept from before")
    pages = room.connection.pragma("page_count")
    room.connection.pragma("max_page_count", pages)
    asked = [room.asked(*remembering("x" * 200_000))]
    room.group.commit(asked)
    assert asked[0].answer.code is ErrorCode.STORAGE_FULL
    assert room.group.storage_full
    refused = room.asked(*remembering("small"))
    room.group.commit([refused])
    assert refused.answer.code is ErrorCode.STORAGE_FULL
    assert [row.id for row in room.recall("kept").rows] == [kept.id]
    assert not room.group.probe_storage()
    room.connection.pragma("max_page_count", 1 << 30)
    assert room.group.probe_storage()
    assert not isinstance(room.ask(*remembering("small")), Failure)


@pytest.mark.parametrize(
    ("point", "code", "applied"),
    [
        ("writer.after_begin", ErrorCode.NOT_APPLIED, 0),
        ("writer.mid_batch", ErrorCode.NOT_APPLIED, 0),
        ("writer.before_commit", ErrorCode.OUTCOME_UNKNOWN, 0),
        ("writer.after_commit", ErrorCode.OUTCOME_UNKNOWN, 2),
    ],
)
def test_a_failing_disk_is_answered_truthfully_and_ends_the_writer(
    room: StoreRoom, point: str, code: ErrorCode, applied: int
) -> None:
    asked = batch_of(room, 2)
    sync_points.arm(f"{point}=raise:EIO")
    with pytest.raises(StoreIOError):
        room.group.commit(asked)
    assert {item.answer.code for item in asked} == {code}
    assert room.value("SELECT count(*) FROM memories") == applied


def test_a_message_that_was_delivered_twice_is_not_called_unapplied_after_its_commit(room: StoreRoom) -> None:
    command, frames = remembering("stored before the disk failed")
    first, again, other = (room.asked(command, frames, message_id=name) for name in ("m", "m", "other"))
    sync_points.arm("writer.after_commit=raise:EIO")
    with pytest.raises(StoreIOError):
        room.group.commit([first])
    reply_to_unstarted([first, again, other], begun=1)  # type: ignore[list-item]
    assert room.value("SELECT count(*) FROM memories") == 1
    assert [item.answers[0].code for item in (first, again, other)] == [
        ErrorCode.OUTCOME_UNKNOWN,
        ErrorCode.OUTCOME_UNKNOWN,
        ErrorCode.NOT_APPLIED,
    ]


def test_a_retry_after_an_unknown_outcome_gets_the_committed_answer(room: StoreRoom) -> None:
    command, frames = remembering("did it reach the disk?")
    first = room.asked(command, frames, message_id="m")
    sync_points.arm("writer.after_commit=raise:EIO")
    with pytest.raises(StoreIOError):
        room.group.commit([first])
    answer = room.ask(command, frames, message_id="m")
    assert answer.id == room.value("SELECT id FROM memories")
    assert not answer.deduped


def test_accesses_are_coalesced_into_one_commit_and_injections_counted_separately(room: StoreRoom) -> None:
    memory = room.remember("touched")
    for _ in range(3):
        room.group.touches.add(TouchMemories(ids=(memory.id, "gone")))
    room.group.touches.add(TouchMemories(ids=(memory.id,), kind="injected"))
    room.group.housekeep()
    assert room.connection.execute("SELECT access_count, injected_count FROM memories").fetchall() == [(3, 1)]
    assert room.value("SELECT last_accessed FROM memories") == "2026-01-01T00:00:00.000Z"
    assert room.value("SELECT count(*) FROM memory_changes") == 0


def test_pending_accesses_are_bounded(room: StoreRoom) -> None:
    for start in range(0, 12_000, 100):
        room.group.touches.add(TouchMemories(ids=tuple(f"id-{index}" for index in range(start, start + 100))))
    assert len(room.group.touches.pending) == 10_000
    assert room.group.touches.dropped == 2_000


def test_old_replies_are_pruned_and_young_ones_kept(room: StoreRoom) -> None:
    room.ask(*remembering("old"), message_id="old")
    room.clock.advance(RETENTION_MS + 1)
    room.ask(*remembering("young"), message_id="young")
    room.group.housekeep()
    assert room.connection.execute("SELECT request_id FROM request_replies").fetchall() == [("young",)]


def test_after_a_clock_jump_a_retry_gets_the_stored_reply_until_the_retention_has_really_passed(
    room: StoreRoom,
) -> None:
    first = room.ask(*remembering("before the jump"), message_id="before")
    room.clock.wall += 366 * 24 * 3_600_000
    room.group.housekeep()
    room.clock.advance(RETENTION_MS - 1)
    room.group.housekeep()
    assert room.ask(*remembering("before the jump"), message_id="before") == first
    room.ask(*remembering("after it"), message_id="after")
    room.clock.advance(1)
    room.group.housekeep()
    assert room.connection.execute("SELECT request_id FROM request_replies").fetchall() == [("after",)]
    room.clock.wall -= 366 * 24 * 3_600_000
    room.group.housekeep()
    assert room.connection.execute("SELECT request_id FROM request_replies").fetchall() == [("after",)]


def test_a_retry_of_an_applied_command_is_never_answered_not_applied(room: StoreRoom) -> None:
    command, frames = remembering("applied in an earlier life")
    first = room.ask(command, frames, message_id="m")
    intruder = apsw.Connection(str(room.path))
    intruder.execute("BEGIN IMMEDIATE")
    assert room.ask(command, frames, message_id="m") == first
    intruder.execute("ROLLBACK")
    intruder.close()
    room.group.storage_full = True
    assert room.ask(command, frames, message_id="m") == first
    room.group.storage_full = False


def test_forgetting_works_on_a_full_disk_because_of_the_disk_reserve(tmp_path: Path) -> None:
    room = StoreRoom(tmp_path)
    room.group.disk_reserve = DiskReserve(tmp_path / "reserve", 1 << 20)
    assert room.group.disk_reserve.allocate()
    memory = room.remember("kept")
    room.connection.pragma("max_page_count", room.connection.pragma("page_count"))
    room.ask(*remembering("x" * 200_000))
    assert room.group.storage_full
    assert not room.group.disk_reserve.path.exists()
    room.connection.pragma("max_page_count", room.connection.pragma("page_count") + 64)
    assert room.ask(ForgetMemory(id=memory.id, reason="r", principal=ME)).status == "deleted"
    assert room.ask(*remembering("still refused")).code is ErrorCode.STORAGE_FULL
    room.connection.pragma("max_page_count", 1 << 30)
    assert room.group.probe_storage()
    assert room.group.disk_reserve.path.stat().st_size == 1 << 20
    room.close()


def test_no_stored_reply_contains_the_content(room: StoreRoom) -> None:
    command, frames = remembering("a canary in the reply")
    answer = room.ask(command, frames, message_id="m")
    assert room.value("SELECT count(*) FROM request_replies WHERE instr(reply, CAST('canary' AS BLOB)) > 0") == 0
    assert room.ask(command, frames, message_id="m") == answer
    assert answer.content == "a canary in the reply"


def test_a_forgotten_chunked_import_can_be_imported_again_under_its_key(room: StoreRoom) -> None:
    chunks = ("one.", "two.", "three.")
    memory = NewMemory(content=" ".join(chunks), type="fact", importance=0.8, idempotency_key="k")
    first = room.ask(RememberChunks(memory, chunks, ME))
    room.ask(ForgetMemory(id=first.ids[1], reason="r", principal=ME))
    refused = room.ask(RememberChunks(memory, chunks, ME))
    assert refused.code is ErrorCode.CONFLICT
    assert "were forgotten" in refused.detail
    for memory_id in (first.ids[0], first.ids[2]):
        room.ask(ForgetMemory(id=memory_id, reason="r", principal=ME))
    again = room.ask(RememberChunks(memory, chunks, ME))
    assert not again.deduped
    assert not set(again.ids) & set(first.ids)


def test_an_unusable_vector_is_not_stored(room: StoreRoom) -> None:
    for bad in (bytes(4 * DIMENSIONS), b"\x00\x00\xc0\x7f" * DIMENSIONS, b"\x00" * 3):
        command, _ = remembering(f"text {bad!r}", vector=[1.0])
        assert not room.ask(command, [bad]).embedded


def test_one_model_with_two_dimensions_has_two_tables(room: StoreRoom) -> None:
    room.remember("eight", vector=[1.0])
    memory = NewMemory(content="three", type="fact", importance=0.8, vector=Vector(MODEL, 3, 0))
    assert room.ask(Remember(memory, ME), [np.ones(3, "<f4").tobytes()]).embedded
    assert room.value("SELECT count(*) FROM embedding_models") == 2
    assert [row.content for row in room.recall("zzz", vector=[1.0]).rows] == ["eight"]
    with room.reader.open_snapshot() as view:
        command = Recall(query="zzz", read=ReadScope(), vector_model=MODEL)
        found = recall(room.reader, view, command, [np.ones(3, "<f4").tobytes()])
    assert [row.content for row in found.rows] == ["three"]


def test_a_failed_transaction_has_no_effect(tmp_path: Path) -> None:
    room = StoreRoom(tmp_path)
    room.remember("answered")

    def interrupted() -> None:
        with room.engine.begin() as tx:
            tx.execute("UPDATE memories SET type = 'rule'")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        interrupted()
    other = apsw.Connection(str(room.path))
    assert other.execute("SELECT content, type FROM memories").fetchall() == [("answered", "fact")]
    other.close()
    room.close()


def test_a_refused_batch_forget_leaves_its_idempotency_key_unused(room: StoreRoom) -> None:
    memory = room.remember("to be forgotten")
    refused = ForgetMany(targets=(), reason="r", principal=ME, idempotency=Idempotency("k", "first body"))
    assert room.ask(refused).results == []
    wish = ForgetMany(
        targets=(ForgetTarget(id=memory.id, version=memory.version),),
        reason="r",
        principal=ME,
        idempotency=Idempotency("k", "second body"),
    )
    done = room.ask(wish)
    assert [outcome.status for outcome in done.results] == ["deleted"]
    assert room.ask(wish) == done
    retry = ForgetMany(targets=(), reason="r", principal=ME, idempotency=Idempotency("k", "second body"))
    assert room.ask(retry) == done  # by then its candidates are gone
