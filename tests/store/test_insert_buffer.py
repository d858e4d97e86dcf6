"""Rows inserted by one statement have the same effect as rows inserted one by one."""

from __future__ import annotations

from typing import Any

import pytest

from signet_actors.errors import ErrorCode
from signet_actors.protocol.message import Failure, Idempotency, Principal
from signet_actors.protocol.writer import (
    ForgetMemory,
    MemoryPatch,
    ModifyMemory,
    NewMemory,
    PurgeStep,
    RememberChunks,
)
from signet_actors.store.command_context import CommandContext
from signet_actors.store.sqlite.vectors import vec_table
from tests.support.store_room import DIMENSIONS, MODEL, StoreRoom, broken_invariants, remembering


def test_a_large_batch_is_stored_in_order_and_found_by_word_and_vector(room: StoreRoom) -> None:
    asked = [
        room.asked(
            *remembering(f"alpha word{index} 東京{index}", vector=[1.0, index / 100], tags=("a", f"t{index}", "a"))
        )
        for index in range(301)
    ]
    room.group.commit(asked)
    stored = room.connection.execute("SELECT seq, id, embedding_seq FROM memories ORDER BY seq").fetchall()
    assert [row[1] for row in stored] == [item.answer.id for item in asked]
    assert [row[0] for row in stored] == list(range(1, 302))
    assert all(item.answer.embedded for item in asked)
    table = vec_table(room.connection, MODEL, DIMENSIONS)
    assert room.connection.execute(f"SELECT rowid FROM {table} ORDER BY rowid").fetchall() == [
        (row[2],) for row in stored
    ]
    assert [row.id for row in room.recall("word299").rows][:1] == [asked[299].answer.id]
    assert broken_invariants(room.connection) == []


def test_row_numbers_are_never_reused(room: StoreRoom) -> None:
    first = room.remember("first", vector=[1.0])
    room.remember("second", vector=[1.0])
    room.connection.execute("DELETE FROM memories")
    room.connection.execute("DELETE FROM embeddings")
    room.connection.execute("DELETE FROM vec_embeddings_1")
    third = room.remember("third", vector=[1.0])
    assert third.id != first.id
    assert room.connection.execute("SELECT seq, embedding_seq FROM memories").fetchall() == [(3, 3)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({}, {}),
        ({"idempotency_key": "k"}, {"idempotency_key": "k", "content": "said otherwise"}),
        ({"source_id": "s"}, {"source_id": "s", "content": "said otherwise"}),
        ({"scope": "x", "project": "p"}, {"scope": "x", "project": "p"}),
    ],
)
def test_a_duplicate_within_a_batch_is_recognised(
    room: StoreRoom, first: dict[str, Any], second: dict[str, Any]
) -> None:
    asked = [
        room.asked(*remembering("the same", **first)),
        room.asked(*remembering(second.pop("content", "The same."), **second)),
    ]
    room.group.commit(asked)
    assert (asked[0].answer.deduped, asked[1].answer.deduped) == (False, True)
    assert asked[1].answer.id == asked[0].answer.id
    assert room.value("SELECT count(*) FROM memories") == 1


def test_the_same_content_of_two_agents_in_one_batch_is_two_memories(room: StoreRoom) -> None:
    asked = [room.asked(*remembering("the same", agent_id=name)) for name in ("alice", "bob")]
    room.group.commit(asked)
    assert len({item.answer.id for item in asked}) == 2


def test_a_key_twice_in_a_batch_is_applied_once_and_answered_twice(room: StoreRoom) -> None:
    command, frames = remembering("once", idempotency=Idempotency("key", "digest"))
    other, _ = remembering("other", idempotency=Idempotency("key", "another digest"))
    asked = [room.asked(command, frames), room.asked(command, frames), room.asked(other)]
    room.group.commit(asked)
    assert asked[0].answer == asked[1].answer
    assert asked[2].answer.code is ErrorCode.IDEMPOTENCY_CONFLICT
    assert room.value("SELECT count(*) FROM memories") == 1
    assert room.group.metrics.replayed == 2


def test_a_chunked_content_that_conflicts_within_its_batch_is_undone_alone(room: StoreRoom) -> None:
    small = room.asked(*remembering("one part"))
    chunked = room.asked(
        RememberChunks(
            memory=NewMemory(content="zero part one part", type="fact", importance=0.5),
            chunks=("zero part", "one part"),
            principal=Principal(),
        )
    )
    last = room.asked(*remembering("last part", idempotency=Idempotency("key", "digest")))
    room.group.commit([small, chunked, last])
    assert isinstance(chunked.answer, Failure)
    assert chunked.answer.code is ErrorCode.CONFLICT
    assert room.connection.execute("SELECT content FROM memories ORDER BY seq").fetchall() == [
        ("one part",),
        ("last part",),
    ]
    assert (room.group.metrics.commits, room.group.metrics.rows, room.group.metrics.replayed) == (1, 3, 0)
    assert broken_invariants(room.connection) == []


def test_a_change_sees_earlier_memories_of_the_same_batch(room: StoreRoom) -> None:
    room.clock.advance(1)
    made = room.asked(*remembering("made"))
    room.group.commit([made])
    again, patched, forgotten = (
        room.asked(*remembering("made as well", vector=[1.0])),
        room.asked(
            ModifyMemory(patch=MemoryPatch(id=made.answer.id, reason="r", content="made anew"), principal=Principal())
        ),
        room.asked(ForgetMemory(id=made.answer.id, reason="r", principal=Principal())),
    )
    room.group.commit([again, patched, forgotten])
    assert (patched.answer.status, forgotten.answer.status) == ("updated", "deleted")
    assert [row.content for row in room.recall("made").rows] == ["made as well"]
    assert broken_invariants(room.connection) == []


def test_a_row_that_the_store_rejects_fails_only_its_command(room: StoreRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = CommandContext.new_id
    monkeypatch.setattr(CommandContext, "new_id", lambda session: "the-same-id")
    asked = [room.asked(*remembering(f"memory {index}", vector=[1.0])) for index in range(3)]
    room.group.commit(asked)
    # Jobs share the id too, so the first is stored and the other two are refused by the unique indexes.
    assert [isinstance(item.answer, Failure) for item in asked] == [False, True, True]
    assert asked[1].answer.code is ErrorCode.INTERNAL
    monkeypatch.setattr(CommandContext, "new_id", fresh)
    assert room.connection.execute("SELECT content FROM memories").fetchall() == [("memory 0",)]
    assert room.value("SELECT count(*) FROM request_replies") == 1
    assert broken_invariants(room.connection) == []


def test_a_refusal_without_a_write_does_not_roll_the_batch_back(
    room: StoreRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[object] = []
    begin = CommandContext.begin
    monkeypatch.setattr(CommandContext, "begin", lambda *given: begun.append(1) or begin(*given))
    asked = [
        room.asked(*remembering("before")),
        room.asked(PurgeStep(step="everything", cutoff="2026-01-01T00:00:00.000Z", limit=1)),
        room.asked(*remembering("after")),
    ]
    room.group.commit(asked)
    assert asked[1].answer.code is ErrorCode.INVALID_REQUEST
    assert len(begun) == 1
    assert room.value("SELECT count(*) FROM memories") == 2


def test_a_duplicate_lookup_works_with_buffered_rows(room: StoreRoom) -> None:
    good, frames = remembering("good")
    bad = remembering("bad", importance=7.0)[0]
    asked = [
        room.asked(good, frames, message_id="twin"),
        room.asked(bad),
        room.asked(good, frames, message_id="twin"),
    ]
    room.group.commit(asked)
    first, refused, second = (item.answer for item in asked)
    assert second == first
    assert isinstance(refused, Failure)
    assert refused.code is ErrorCode.INTERNAL
    assert room.value("SELECT count(*) FROM memories") == 1
