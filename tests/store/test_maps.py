"""A map shows what the caller may read now, and is made anew when memories were added or changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from signet_actors.features.projection.api import (
    FindProjection,
    FoundProjection,
    Projection,
    ProjectionReply,
    StoreProjection,
)
from signet_actors.features.projection.reads import vectors
from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.protocol.message import Failure, Principal
from signet_actors.protocol.sessions import RecordSessions, SessionContext
from signet_actors.protocol.transcripts import CapturedTurn, StoreTurns
from signet_actors.protocol.writer import ForgetMemory, MemoryPatch, ModifyMemory, RecoverMemory
from signet_actors.searcher.projection import map_of, nearest
from signet_actors.searcher.queries.projection import find
from tests.support.store_room import DIMENSIONS, StoreRoom, kept_sound

ME = Principal("tester")


@pytest.fixture
def room(tmp_path: Path) -> Iterator[StoreRoom]:
    with kept_sound(StoreRoom(tmp_path)) as room:
        yield room


def fill(room: StoreRoom, number: int, **fields: Any) -> list[str]:
    rng = np.random.default_rng(number)
    return [
        room.remember(f"memory {at} of the store", vector=rng.normal(size=DIMENSIONS).tolist(), **fields).id
        for at in range(number)
    ]


def make(room: StoreRoom, agent: str = "default", dimensions: int = 2) -> None:
    """Do what the process and the writer do."""
    with room.reader.open_snapshot() as view:
        found = vectors(view, agent)
    matrix = np.frombuffer(b"".join(raw for _, raw in found.rows), np.float32).reshape(-1, max(1, found.dimensions))
    points = map_of([seq for seq, _ in found.rows], matrix, dimensions)
    room.ask(StoreProjection(agent, dimensions, Projection(points, found.embedded, found.newest)))


def asked(room: StoreRoom, agent: str = "default", **fields: Any) -> FoundProjection:
    names = {"scope": "scope", "limited_to": "project"}
    read = ReadScope(agent, **{field: fields.pop(name) for name, field in names.items() if name in fields})
    query = {"filters": Filters(), "dimensions": 2, "limit": 10_000, "offset": 0} | fields
    with room.reader.open_snapshot() as view:
        return find(room.reader, view, FindProjection(read, **query)).read(FoundProjection)


def shown(room: StoreRoom, agent: str = "default", **fields: Any) -> ProjectionReply:
    found = asked(room, agent, **fields).found
    assert found is not None, "a map is to be made"
    return found


def ids(room: StoreRoom, agent: str = "default", **fields: Any) -> set[str]:
    return {node.id for node in shown(room, agent, **fields).nodes}


@pytest.mark.parametrize("dimensions", [2, 3])
def test_a_map_is_made_once_and_shows_each_memory(room: StoreRoom, dimensions: int) -> None:
    stored = fill(room, 12, tags=("a", "b"), who="ada", pinned=True)
    assert asked(room, dimensions=dimensions) == FoundProjection(None, 12, is_current=False)
    make(room, dimensions=dimensions)
    found = shown(room, dimensions=dimensions)
    assert (found.status, found.dimensions, found.count, found.total, found.has_more) == (
        "cached", dimensions, 12, 12, False
    )  # fmt: skip
    assert {node.id for node in found.nodes} == set(stored)
    one = found.nodes[0]
    assert (one.who, one.tags, one.pinned, one.type, one.created_at[:4]) == ("ada", ["a", "b"], True, "fact", "2026")
    assert all(-210 <= at <= 210 for node in found.nodes for at in (node.x, node.y))
    assert all(isinstance(node.z, float) is (dimensions == 3) for node in found.nodes)
    assert found.edges
    assert all(0 <= a < b < 12 for a, b in found.edges)
    assert asked(room, dimensions=5 - dimensions).found is None


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_few_memories_have_a_map_too(room: StoreRoom, number: int) -> None:
    fill(room, number)
    make(room)
    assert (shown(room).count, shown(room).method) == (number, "pca" if number else None)


def test_what_is_added_or_changed_makes_the_map_outdated(room: StoreRoom) -> None:
    first, *_ = fill(room, 3)
    make(room)
    room.remember("without a vector")
    room.ask(ModifyMemory(MemoryPatch(first, "r", importance=0.1), ME))
    assert shown(room).total == 3
    room.remember("another", vector=[1.0])
    assert (shown(room).total, asked(room).is_current) == (3, False), "the last map is shown until a newer one is made"
    make(room)
    assert (shown(room).total, asked(room).is_current) == (4, True)


def test_an_agent_without_memories_has_an_empty_map(room: StoreRoom) -> None:
    empty = asked(room, "nobody")
    assert (shown(room, "nobody").nodes, empty.total, empty.is_current) == ([], 0, True)


def test_what_is_forgotten_is_gone_at_once_and_back_when_it_is_recovered(room: StoreRoom) -> None:
    gone, *left = fill(room, 5)
    make(room)
    room.ask(ForgetMemory(id=gone, reason="r", principal=ME))
    found = shown(room)
    assert ({node.id for node in found.nodes}, found.total) == (set(left), 4)
    assert all(0 <= a < b < 4 for a, b in found.edges)
    room.ask(RecoverMemory(id=gone, reason=None, principal=ME))
    make(room)
    assert ids(room) == {gone, *left}
    room.connection.execute("UPDATE memories SET visibility = 'archived' WHERE id = ?", (gone,))
    assert ids(room) == set(left)


def test_the_map_of_an_agent_has_only_what_it_may_read(room: StoreRoom) -> None:
    mine = fill(room, 3, agent_id="ada", visibility="private", project="/srv/a")
    fill(room, 4, agent_id="bob", visibility="private", who="bob", scope=None)
    make(room, "ada")
    assert ids(room, "ada") == set(mine)
    assert asked(room, "bob") == FoundProjection(None, 4, is_current=False)
    assert ids(room, "ada", limited_to="/srv/a") == set(mine)
    assert (ids(room, "ada", limited_to="/srv/b"), shown(room, "ada", limited_to="/srv/b").total) == (set(), 0)
    assert room.value("SELECT count(*) FROM umap_cache") == 1
    stored = room.value("SELECT result_json FROM umap_cache")
    assert "memory" not in stored
    assert "srv" not in stored


def test_filters_and_pages_select_from_the_map(room: StoreRoom) -> None:
    fill(room, 6)
    rule = room.remember("deploy on walrus day", vector=[1.0, 2.0], type="rule", importance=0.95, source_type="hook").id
    scoped = room.remember("in a scope", vector=[2.0, 1.0], scope="staging").id
    make(room)
    assert shown(room).total == 7
    assert ids(room, scope="staging") == {scoped}
    assert ids(room, q="WALRUS day") == {rule}
    assert ids(room, q='wal"rus') == set()
    assert ids(room, types=("rule", "preference")) == {rule}
    assert ids(room, source_types=("hook",)) == {rule}
    assert rule not in ids(room, importance_max=0.9)
    assert ids(room, filters=Filters(importance_min=0.9)) == {rule}
    pages: list[str] = []
    while True:
        page = shown(room, limit=3, offset=len(pages))
        assert page.total == 7
        pages += [node.id for node in page.nodes]
        if not page.has_more:
            break
    assert (len(pages), set(pages)) == (7, ids(room))


def test_a_harness_selects_what_its_sessions_have_stored(room: StoreRoom) -> None:
    at = "2026-03-01T00:00:00.000Z"
    stored = {
        (agent, session): room.remember(
            f"said by {agent} in {session}",
            vector=[1.0, number],
            agent_id=agent,
            principal=Principal(session_id=session),
        ).id
        for number, (agent, session) in enumerate(
            [("ada", "one"), ("ada", "session:two"), ("ada", "kept"), ("ada", None), ("bob", "one"), ("bob", "other")]
        )
    }
    sessions = [("ada", "one", "codex"), ("ada", "two", "cursor"), ("bob", "one", "cursor"), ("bob", "other", "codex")]
    room.ask(RecordSessions(tuple(SessionContext(key, who, at, at, harness=name) for who, key, name in sessions)))
    said = CapturedTurn(b"key", 0, "user", "a session of which only the transcript is kept", None, at)
    assert not isinstance(room.ask(StoreTurns("kept", "ada", "text", (said,), harness="codex")), Failure)
    make(room, "ada")
    assert len(ids(room, "ada")) == 6
    assert ids(room, "ada", harness="codex") == {stored["ada", "one"], stored["ada", "kept"]}
    assert ids(room, "ada", harness="cursor") == {stored["ada", "session:two"]}
    assert ids(room, "ada", harness="opencode") == set()


def test_the_nearest_rows_are_those_of_the_least_distance() -> None:
    matrix = np.random.default_rng(3).normal(size=(50, 8)).astype(np.float32)
    matrix[7] = matrix[9]
    found, away = nearest(matrix, 5)
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    exact = 1 - unit @ unit.T
    for row in range(50):
        assert found[row, 0] == row
        assert away[row, 1:].tolist() == pytest.approx(sorted(np.delete(exact[row], row))[:4], abs=1e-5)


@pytest.mark.parametrize("dimensions", [2, 3])
def test_the_map_of_the_extra_package_keeps_what_is_alike_together(dimensions: int) -> None:
    pytest.importorskip("umap", reason="the extra `projection` is not installed")
    rng = np.random.default_rng(5)
    groups = [rng.normal(size=(40, 32)) * 0.1 + sign for sign in (1, -1)]
    matrix = np.concatenate(groups).astype(np.float32)
    made = map_of(list(range(80)), matrix, dimensions)
    assert made.method == "umap"
    assert map_of(list(range(80)), matrix, dimensions) == made, "the same vectors give the same map"
    placed = np.array(made.coordinates)
    apart = np.linalg.norm(placed[:40].mean(axis=0) - placed[40:].mean(axis=0))
    assert apart > 2 * max(placed[:40].std(), placed[40:].std())
