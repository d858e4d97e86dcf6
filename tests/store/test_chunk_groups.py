"""The chunks of a long text are linked to a group entity, which is deleted with them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from signet_actors.domain.normalization import content_hash
from signet_actors.protocol.message import Principal
from signet_actors.protocol.writer import (
    ChunksRemembered,
    ForgetMany,
    ForgetTarget,
    MemoryPatch,
    ModifyMemory,
    NewMemory,
    RememberChunks,
    Vector,
)
from signet_actors.store.sqlite.connect import open_writer
from signet_actors.store.sqlite.migrate import migrate
from signet_actors.writer.check import check_database
from tests.support.store_room import DIMENSIONS, MODEL, SetClock, StoreRoom

ME = Principal()
GOLDEN = Path(__file__).parents[1] / "golden"
GROUP = "01a20465-083e-715f-b659-059c4a2e8d9a"


@pytest.fixture
def room(tmp_path: Path) -> Iterator[StoreRoom]:
    room = StoreRoom(tmp_path)
    yield room
    room.close()
    assert check_database(room.path, deep=True).findings == []


def remember(room: StoreRoom, *chunks: str, message_id: str | None = None, **fields: str) -> ChunksRemembered:
    command = RememberChunks(NewMemory("\n".join(chunks), "fact", 0.8, **fields), chunks, ME)
    answer = room.ask(command, message_id=message_id)
    assert isinstance(answer, ChunksRemembered), answer
    return answer


def test_a_group_is_an_entity_that_its_chunks_are_linked_to(room: StoreRoom) -> None:
    stored = remember(room, "one.", "two.", source_type="file", source_id="notes.md")
    group = stored.group_id
    assert room.connection.execute("SELECT id, entity_type, agent_id, mentions FROM entities").fetchall() == [
        (group, "chunk_group", "default", 2)
    ]
    linked = room.connection.execute("SELECT memory_id, entity_id FROM memory_entity_mentions").fetchall()
    assert sorted(linked) == sorted((chunk, group) for chunk in stored.ids)
    assert room.connection.execute("SELECT id, source_type, source_id, content_hash FROM chunk_groups").fetchall() == [
        (group, "file", "notes.md", content_hash("one. two."))
    ]


def test_a_group_is_deleted_with_its_last_chunk(room: StoreRoom) -> None:
    stored = remember(room, "one.", "two.", "three.", source_id="notes.md")
    for gone, left in ((stored.ids[:1], 1), (stored.ids[1:], 0)):
        room.ask(ForgetMany(tuple(map(ForgetTarget, gone)), "r", ME, hard=True))
        assert room.value("SELECT count(*) FROM entities") == left
        assert room.value("SELECT count(*) FROM chunk_groups") == left
    assert not remember(room, "one.", "two.", "three.", source_id="notes.md").deduped


def test_a_refused_long_text_leaves_no_group(room: StoreRoom) -> None:
    room.remember("two.")
    room.ask(RememberChunks(NewMemory("one.\ntwo.", "fact", 0.8), ("one.", "two."), ME))
    for table in ("entities", "chunk_groups", "memory_entity_mentions"):
        assert room.value(f"SELECT count(*) FROM {table}") == 0


def test_a_long_text_with_a_changed_chunk_does_not_count_as_stored(room: StoreRoom) -> None:
    stored = remember(room, "one.", "two.")
    room.ask(ModifyMemory(MemoryPatch(id=stored.ids[0], reason="r", content="another"), ME))
    refused = room.ask(RememberChunks(NewMemory("one.\ntwo.", "fact", 0.8), ("one.", "two."), ME))
    assert refused.detail == "chunk content already exists"


def test_a_long_text_with_other_chunk_boundaries_is_the_same(room: StoreRoom) -> None:
    for fields in ({}, {"idempotency_key": "k"}):
        stored = remember(room, "One.", "two, three.", scope=str(fields), **fields)
        again = remember(room, "one. two,", "THREE.", scope=str(fields), **fields)
        assert (again.ids, again.group_id, again.deduped) == (stored.ids, stored.group_id, True)


@pytest.mark.parametrize(
    ("stored", "chunks", "expected"),
    [
        (["a.", "b."], ["a.", "c."], ["a.\nc."]),
        (["a.", "b."], ["c.", "a.", "d.", "e."], ["c.", "a.\nd.", "e."]),
        (["a.", "b."], ["c.", "d.", "b."], ["c.", "d.\nb."]),
        (["a.", "b."], ["a.", "b.", "c."], ["a.\nb.", "c."]),
        (["a.", "b."], ["c.", "a.", "b."], ["c.", "a.\nb."]),
        (["a.", "a.\nb."], ["a.", "b.", "c.", "d."], ["a.\nb.\nc.", "d."]),
        (["b.", "c."], ["x.", "b.", "c.", "b."], ["x.", "b.\nc.\nb."]),
        (["a.", "b."], ["c.", "d."], ["c.", "d."]),
    ],
)
def test_a_text_that_may_repeat_others_is_stored_whole_in_chunks_of_its_own(
    room: StoreRoom, stored: list[str], chunks: list[str], expected: list[str]
) -> None:
    for text in stored:
        room.remember(text)
    memory = NewMemory("\n".join(chunks), "fact", 0.8)
    answer = room.ask(RememberChunks(memory, tuple(chunks), ME, may_repeat=True))
    contents = dict(room.connection.execute("SELECT id, content FROM memories").fetchall())
    assert [contents[chunk] for chunk in answer.ids] == expected
    again = room.ask(RememberChunks(memory, tuple(chunks), ME, may_repeat=True))
    assert (again.ids, again.deduped) == (answer.ids, True)


def test_a_text_that_may_repeat_others_and_is_one_memory_is_that_memory(room: StoreRoom) -> None:
    for text in ("a.", "b.", "a.\nb."):
        whole = room.remember(text)
    answer = room.ask(RememberChunks(NewMemory("a.\nb.", "fact", 0.8), ("a.", "b."), ME, may_repeat=True))
    assert (answer.id, answer.deduped) == (whole.id, True)


def test_a_chunk_keeps_its_vector_and_a_joined_one_is_embedded_by_a_job(room: StoreRoom) -> None:
    room.remember("a.", vector=[1.0])
    raw = [bytes(np.eye(DIMENSIONS, dtype="<f4")[index]) for index in range(3)]
    vectors = tuple(Vector(MODEL, DIMENSIONS, index) for index in range(3))
    command = RememberChunks(NewMemory("c.\na.\nd.", "fact", 0.8), ("c.", "a.", "d."), ME, vectors, may_repeat=True)
    first, joined = room.ask(command, raw).ids
    assert room.value("SELECT embedding_seq IS NOT NULL FROM memories WHERE id = ?", first) == 1
    assert room.value("SELECT embedding_seq IS NULL FROM memories WHERE id = ?", joined) == 1
    assert room.connection.execute(
        "SELECT memory_id FROM memory_jobs WHERE job_type = 'embed' AND status = 'pending'"
    ).fetchall() == [(joined,)]


def test_chunks_of_an_earlier_release_get_a_group(tmp_path: Path) -> None:
    path = tmp_path / "memories.db"
    shutil.copyfile(GOLDEN / "schema-3.sqlite", path)
    connection = open_writer(path, busy=lambda calls: False)
    live = "SELECT seq FROM memories WHERE is_deleted = 0 AND agent_id = 'default' AND scope IS NULL"
    mine, callers = (
        [seq for (seq,) in connection.execute(f"{live} ORDER BY seq LIMIT 2 OFFSET ?", (offset,))] for offset in (0, 2)
    )
    for group, seqs in ((GROUP, mine), ("a caller's own", callers)):
        for seq in seqs:
            connection.execute("UPDATE memories SET source_type = 'chunk', source_id = ? WHERE seq = ?", (group, seq))
    migrate(connection, path, SetClock())
    assert connection.execute("SELECT id, entity_type, mentions FROM entities WHERE id = ?", (GROUP,)).fetchall() == [
        (GROUP, "chunk_group", 2)
    ]
    assert connection.execute("SELECT id, content_hash, source_id FROM chunk_groups").fetchall() == [
        (GROUP, None, None)
    ]
    texts = [content for (content,) in connection.execute("SELECT content FROM memories WHERE seq IN (?, ?)", mine)]
    connection.close()
    assert check_database(path, deep=True).findings == []
    room = StoreRoom(tmp_path)
    again = remember(room, *texts, message_id="after the upgrade")
    room.close()
    assert (again.group_id, again.deduped) == (GROUP, True)
