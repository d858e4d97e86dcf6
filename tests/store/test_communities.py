"""Entities that depend on each other form communities: how they are found, judged and stored.

Source: architecture.txt "Knowledge Graph" (entity communities).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from signet_actors.config.workspace import Workspace
from signet_actors.features.communities.api import (
    Communities,
    Community,
    DropCommunities,
    GetGraphStamp,
    GraphStamp,
    StoreCommunities,
    Stored,
)
from signet_actors.features.communities.rules import MODERATE, STRONG, quality
from signet_actors.operations.structured import read_structured
from signet_actors.protocol.message import Principal
from signet_actors.protocol.writer import ForgetMemory
from signet_actors.retention.periodic.graph_upkeep import CommunityProcess
from signet_actors.searcher.communities import communities_of
from tests.support.store_room import StoreRoom, kept_sound

TEAMS = (("Ada", "Bea", "Cleo", "Dora"), ("Ulf", "Vera", "Wim", "Xena"))


@pytest.fixture
def room(tmp_path: Path) -> Iterator[StoreRoom]:
    directory = Workspace(tmp_path).memory_dir
    directory.mkdir()
    with kept_sound(StoreRoom(directory)) as opened:
        yield opened


def related(room: StoreRoom, source: str, target: str, **fields: str) -> str:
    triple = {"source": source, "relationship": "works_with", "target": target}
    text = f"{source} and {target} work together"
    return room.remember(text, structured=read_structured({"entities": [triple]}), **fields).id


def two_teams(room: StoreRoom, **fields: str) -> str:
    """Relate everyone with everyone of each team, and one of each team with one of the other; return that memory."""
    for team in TEAMS:
        for source, target in itertools.combinations(team, 2):
            related(room, source, target, **fields)
    return related(room, "Ada", "Ulf", **fields)


def found_by_process(workspace: Path) -> Communities:
    process = CommunityProcess(workspace)
    process._process.wait(60)
    found = process.poll()
    assert found is not None
    return found


def store(room: StoreRoom, found: Communities, at: str) -> None:
    assert room.ask(StoreCommunities(at, tuple(found.communities))).read(Stored) == Stored()
    while room.ask(DropCommunities(at, limit=2)).read(Stored).more:
        pass


def members(room: StoreRoom, agent_id: str = "default") -> dict[str, set[str]]:
    rows = room.connection.execute(
        "SELECT c.label, e.name FROM entities e JOIN entity_communities c ON c.id = e.community_id"
        " AND c.agent_id = e.agent_id WHERE e.agent_id = ?",
        (agent_id,),
    )
    groups: dict[str, set[str]] = {}
    for label, name in rows:
        groups.setdefault(label, set()).add(name)
    return groups


def test_a_process_finds_the_communities_of_each_agent_and_the_writer_stores_them(
    room: StoreRoom, tmp_path: Path
) -> None:
    assert Workspace(tmp_path).database.exists()
    two_teams(room)
    related(room, "Ada", "Zoe", agent_id="cleo")
    found = found_by_process(tmp_path)
    assert found.problem is None
    assert [each.agent_id for each in found.communities].count("cleo") == 1
    store(room, found, "2026-01-01")
    assert members(room) == {"Ada": set(TEAMS[0]), "Ulf": set(TEAMS[1])}
    assert members(room, "cleo") == {"Ada": {"Ada", "Zoe"}}
    rows = room.connection.execute("SELECT size, quality FROM entity_communities WHERE agent_id = 'default'").fetchall()
    assert rows == [(4, "moderate")] * 2


def test_the_same_graph_gives_the_same_communities_in_another_process(room: StoreRoom, tmp_path: Path) -> None:
    two_teams(room)
    assert found_by_process(tmp_path) == found_by_process(tmp_path)


def test_communities_that_are_not_found_any_more_are_deleted_with_their_memberships(
    room: StoreRoom, tmp_path: Path
) -> None:
    two_teams(room)
    store(room, found_by_process(tmp_path), "2026-01-01")
    for (memory,) in room.connection.execute("SELECT id FROM memories WHERE content LIKE '%Vera%'").fetchall():
        room.ask(ForgetMemory(memory, "it is wrong", Principal()))
    store(room, found_by_process(tmp_path), "2026-01-02")
    assert "Vera" not in set().union(*members(room).values())
    assert room.value("SELECT count(*) FROM entity_communities") == len(members(room))
    store(room, Communities(), "2026-01-03")
    assert members(room) == {}
    assert room.value("SELECT count(*) FROM entity_communities") == 0


def test_storing_the_same_again_changes_no_entity(room: StoreRoom, tmp_path: Path) -> None:
    two_teams(room)
    found = found_by_process(tmp_path)
    store(room, found, "2026-01-01")
    before = room.value("SELECT max(change) FROM graph_changes")
    store(room, found, "2026-01-02")
    assert room.value("SELECT max(change) FROM graph_changes") == before


def test_the_stamp_tells_a_changed_graph_and_is_empty_without_one(room: StoreRoom) -> None:
    def stamp() -> str:
        return room.ask(GetGraphStamp()).read(GraphStamp).stamp

    assert stamp() == ""
    memory = two_teams(room)
    first = stamp()
    room.remember("Nothing about anyone")
    assert stamp() == first != ""
    room.ask(ForgetMemory(memory, "it is wrong", Principal()))
    assert stamp() != first


def test_a_merged_entity_counts_as_the_one_that_it_was_merged_into(room: StoreRoom, tmp_path: Path) -> None:
    related(room, "Ada", "Bea")
    related(room, "Ada Lovelace", "Cleo")
    room.connection.execute(
        "UPDATE entities SET merged_into = (SELECT id FROM entities WHERE name = 'Ada') WHERE name = 'Ada Lovelace'"
    ).fetchall()
    (community,) = found_by_process(tmp_path).communities
    names = {room.value("SELECT name FROM entities WHERE id = ?", each) for each in community.members}
    assert names == {"Ada", "Bea", "Cleo"}


def test_a_process_that_cannot_read_the_store_says_so(tmp_path: Path) -> None:
    found = found_by_process(tmp_path)
    assert found.communities == []
    assert found.problem is not None


def test_cohesion_is_the_share_of_the_weight_that_stays_inside() -> None:
    edges = [("a", "b", 1.0), ("b", "a", 1.0), ("b", "c", 1.0), ("c", "d", 4.0)]
    found = communities_of("default", edges, {name: (name, at) for at, name in enumerate("abcd")})
    assert {each.label: (each.members, each.cohesion) for each in found} == {
        "b": (["b", "a"], pytest.approx(2 / 3)),
        "d": (["d", "c"], pytest.approx(4 / 5)),
    }


@pytest.mark.parametrize(
    ("modularity", "word"),
    [
        (-0.5, "fragmented"),
        (MODERATE - 1e-9, "fragmented"),
        (0.3, "moderate"),
        (STRONG - 1e-9, "moderate"),
        (0.6, "strong"),
    ],
)
def test_the_quality_is_named_by_the_modularity(modularity: float, word: str) -> None:
    assert quality(modularity) == word


def test_a_community_is_known_by_its_members_alone() -> None:
    edges = [("a", "b", 1.0), ("c", "d", 1.0)]
    first, second = (
        communities_of("default", edges, {name: (name, mentions) for name in "abcd"}) for mentions in (1, 2)
    )
    other = communities_of("cleo", edges, {name: (name, 1) for name in "abcd"})
    assert [each.id for each in first] == [each.id for each in second]
    assert {each.id for each in first}.isdisjoint(each.id for each in other)
    assert msgspec.json.decode(msgspec.json.encode(first), type=list[Community]) == first
