"""Export of memories as lines and their import, below HTTP."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from signet_actors.errors import ErrorCode
from signet_actors.protocol.leases import LeaseJobs
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Idempotency, Principal
from signet_actors.protocol.pipeline import ApplyProposals
from signet_actors.protocol.searcher import ExportMemories
from signet_actors.protocol.writer import (
    ForgetMany,
    ForgetMemory,
    ForgetTarget,
    ImportLine,
    ImportMemories,
    LineRefused,
    MemoriesImported,
    NewMemory,
    TemporalEdge,
    Vector,
)
from signet_actors.searcher.queries import import_export
from tests.support.store_room import DIMENSIONS, MODEL, StoreRoom, raw

ID = "6f1c3b52-6c52-4d10-9d6e-4a7e7a2f0b11"


def new(content: str, **fields: Any) -> NewMemory:
    return NewMemory(**{"content": content, "type": "fact", "importance": 0.5, "session_bound": True, **fields})


def imported(room: StoreRoom, *lines: ImportLine, frame: bytes = b"", **more: Any) -> MemoriesImported:
    command = ImportMemories(lines=lines, principal=Principal(), dimensions=DIMENSIONS, **more)
    answer = room.ask(command, [frame] if frame else [])
    assert isinstance(answer, MemoriesImported), answer
    return answer


def outcome(room: StoreRoom, *lines: ImportLine, **more: Any) -> tuple[int, int, list[LineRefused]]:
    """How many lines were imported and deduplicated, and which were refused."""
    done = imported(room, *lines, **more)
    return done.imported, done.deduped, done.refused


def exported(
    room: StoreRoom, agent: str = "default", *, scope: str | None = None, **limits: int
) -> list[dict[str, Any]]:
    """Every line, however many pages it takes."""
    lines: list[dict[str, Any]] = []
    after: int | None = 0
    while after is not None:
        with room.reader.open_snapshot() as view:
            page, (frame,) = import_export.export(view, ExportMemories(ReadScope(agent, scope), after=after, **limits))
        found = [msgspec.json.decode(line) for line in frame.splitlines()]
        assert len(found) == page.count
        lines += found
        after = page.next
    return lines


def test_a_line_becomes_a_memory_with_history_job_and_vector(room: StoreRoom) -> None:
    line = ImportLine(
        line=1,
        memory=new(
            "A fact",
            tags=("a", "b"),
            pinned=True,
            who="alice",
            project="p",
            scope="s",
            agent_id="alice",
            visibility="private",
            source_type="note",
            source_id="n1",
            idempotency_key="k",
            created_at="2020-01-02T03:04:05.006Z",
            temporal=(TemporalEdge("valid", "2020-01-01T00:00:00.000Z", None),),
            vector=Vector(MODEL, DIMENSIONS, 1),
        ),
        id=ID,
        session_id="session",
        updated_at="2021-01-02T03:04:05.006Z",
        access_count=3,
        injected_count=4,
        last_accessed="2022-01-02T03:04:05.006Z",
    )
    assert outcome(room, line, frame=raw([9.0]) + raw([0.0, 1.0])) == (1, 0, [])
    assert exported(room, "alice") == [
        {
            "content": "A fact",
            "id": ID,
            "type": "fact",
            "tags": ["a", "b"],
            "importance": 0.5,
            "pinned": True,
            "who": "alice",
            "project": "p",
            "scope": "s",
            "agentId": "alice",
            "visibility": "private",
            "sourceType": "note",
            "sourceId": "n1",
            "idempotencyKey": "k",
            "sessionId": "session",
            "createdAt": "2020-01-02T03:04:05.006Z",
            "updatedAt": "2021-01-02T03:04:05.006Z",
            "accessCount": 3,
            "injectedCount": 4,
            "lastAccessed": "2022-01-02T03:04:05.006Z",
            "times": [{"facet": "valid", "start": "2020-01-01T00:00:00.000Z"}],
        }
    ]
    assert room.value("SELECT vector FROM embeddings") == raw([0.0, 1.0])
    assert room.connection.execute("SELECT event, reason FROM memory_history").fetchall() == [("created", "imported")]
    assert room.value("SELECT count(*) FROM memory_jobs WHERE memory_id = ?", ID) == 1


def test_an_id_in_use_is_replaced_by_a_new_one(room: StoreRoom) -> None:
    lines = [ImportLine(line=n, memory=new(f"memory {n}"), id=ID) for n in (1, 2)]
    assert imported(room, *lines).imported == 2
    ids = [line["id"] for line in exported(room)]
    assert ids[0] == ID
    assert len(set(ids)) == 2


def test_a_repeated_line_is_always_recognised(room: StoreRoom) -> None:
    line = ImportLine(line=1, memory=new("Said once"), id=ID)
    assert outcome(room, line, msgspec.structs.replace(line, line=2)) == (1, 1, [])
    assert outcome(room, line) == (0, 1, [])
    assert len(exported(room)) == 1


def test_two_memories_of_one_session_stay_two(room: StoreRoom) -> None:
    lines = [ImportLine(line=n, memory=new(f"memory {n}", source_id="session-1")) for n in (1, 2)]
    assert imported(room, *lines).imported == 2


def test_a_line_without_an_id_is_recognised_by_its_source(room: StoreRoom) -> None:
    lines = [ImportLine(line=n, memory=new(f"memory {n}", source_id="note-1", session_bound=False)) for n in (1, 2)]
    assert outcome(room, *lines) == (1, 1, [])


def test_a_batch_sent_twice_is_stored_once_and_answered_equally(room: StoreRoom) -> None:
    key = Idempotency("key", "digest")
    first = imported(room, ImportLine(line=1, memory=new("one")), idempotency=key)
    assert imported(room, ImportLine(line=1, memory=new("one")), idempotency=key) == first
    assert (first.imported, first.receipt != "") == (1, True)
    assert imported(room, ImportLine(line=1, memory=new("one"))).receipt != first.receipt
    other = room.ask(ImportMemories(lines=(), principal=Principal(), idempotency=Idempotency("key", "another digest")))
    assert other.code is ErrorCode.IDEMPOTENCY_CONFLICT


def test_an_oversized_line_is_stored_in_parts_or_not_at_all(room: StoreRoom) -> None:
    room.remember("third part", idempotency_key="key")
    keyed = new("second part third part", idempotency_key="key")
    refused = ImportLine(line=2, memory=keyed, chunks=("second part", "third part"))
    stored = ImportLine(
        line=3,
        memory=new("fourth part fifth part"),
        chunks=("fourth part", "fifth part"),
        vectors=(Vector(MODEL, DIMENSIONS, 0), Vector(MODEL, DIMENSIONS, 1)),
    )
    lines = [ImportLine(line=1, memory=new("first")), refused, stored, ImportLine(line=4, memory=new("last"))]
    answer = imported(room, *lines, frame=raw([1.0]) + raw([0.0, 1.0]))
    assert (answer.imported, answer.deduped) == (3, 0)
    assert [(line.line, line.code) for line in answer.refused] == [(2, ErrorCode.CONFLICT)]
    assert [line["content"] for line in exported(room)] == ["third part", "first", "fourth part", "fifth part", "last"]
    assert room.group.metrics.commits == 2


def test_vectors_of_another_size_are_not_stored(room: StoreRoom) -> None:
    line = ImportLine(line=1, memory=new("one", vector=Vector(MODEL, DIMENSIONS, 0)))
    assert imported(room, line, frame=b"odd").imported == 1
    assert room.value("SELECT count(*) FROM embeddings") == 0


def test_an_export_contains_what_its_agent_may_read_in_every_scope(room: StoreRoom) -> None:
    room.remember("open", agent_id="bob")
    room.remember("secret", agent_id="bob", visibility="private")
    room.remember("scoped", scope="room")
    forgotten = room.remember("forgotten")
    room.ask(ForgetMemory(id=forgotten.id, reason="r", principal=Principal()))
    assert [line["content"] for line in exported(room)] == ["open", "scoped"]
    assert [line["content"] for line in exported(room, scope="room")] == ["scoped"]
    assert [line["content"] for line in exported(room, "bob")] == ["open", "secret", "scoped"]
    assert exported(room, "stranger-without-a-row") == []


@pytest.mark.parametrize("limits", [{"limit": 1}, {"limit": 7}, {"limit": 500, "max_bytes": 1}, {"max_bytes": 40}])
def test_pages_of_any_size_make_the_same_export(room: StoreRoom, limits: dict[str, int]) -> None:
    for number in range(20):
        room.remember(f"memory number {number} 東京", tags=("t",))
    assert exported(room, **limits) == exported(room)
    assert len(exported(room)) == 20


def erased(room: StoreRoom, memory_id: str) -> None:
    room.ask(ForgetMany((ForgetTarget(memory_id),), reason="r", principal=Principal(), hard=True))
    assert room.value("SELECT count(*) FROM memories WHERE id = ?", memory_id) == 0


def test_a_job_of_an_erased_memory_does_not_change_an_imported_one(
    room: StoreRoom,
) -> None:
    """Not even where both say the same, and no trace but the job is left of the first."""
    line = ImportLine(line=1, memory=new("It was here before"), id=ID)
    imported(room, line)
    lease = LeaseJobs(("extract",), 1, 60_000)
    (job,) = room.ask(lease).jobs
    erased(room, ID)
    room.connection.execute("DELETE FROM memory_history")
    imported(room, line)
    (new_id,) = (row[0] for row in room.connection.execute("SELECT id FROM memories"))
    assert new_id != ID
    assert room.ask(ApplyProposals(job.id, job.lease_id, "run", "full", "scripted", "model", ())).run_id is None
    (own,) = room.ask(lease).jobs
    assert own.memory_id == new_id
    assert room.ask(lease).jobs == []


def test_an_id_of_an_erased_memory_is_not_reused(room: StoreRoom) -> None:
    """Proposals, reviews and undos name a memory by its id and version, long after its jobs have ended."""
    imported(room, ImportLine(line=1, memory=new("It was here before"), id=ID))
    erased(room, ID)
    room.connection.execute("DELETE FROM memory_jobs")
    imported(room, ImportLine(line=1, memory=new("Something else altogether"), id=ID))
    assert room.value("SELECT count(*) FROM memories WHERE id = ?", ID) == 0
    assert room.value("SELECT content FROM memories") == "Something else altogether"
