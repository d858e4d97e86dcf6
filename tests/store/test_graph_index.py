"""The searcher's index of the knowledge graph equals the tables at every commit, and walks as slow statements do.

Source: knowledge-graph.txt "Graph Traversal"; docs/decisions.md 62, 63.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signet_actors.domain.ranking.stage_settings import Traversal
from signet_actors.domain.ranking.traversal import telling_tokens
from signet_actors.protocol.memories import ReadScope
from signet_actors.searcher.graph.focus import Focal, focal_entities
from signet_actors.searcher.graph.graph_index import GraphIndex
from signet_actors.searcher.graph.links import Links
from signet_actors.searcher.graph.walk import Walked, boosted, walk
from signet_actors.writer.commands import purge
from tests.support.graph_tables import GraphTables
from tests.support.store_room import StoreRoom

NAMES = ("billing", "billing service", "Postgres", "The Who", "Redis cache", "go", "Google Cloud", "signet")


@pytest.fixture
def tables(room: StoreRoom) -> GraphTables:
    return GraphTables(room.connection)


def synced(room: StoreRoom, index: GraphIndex | None = None, *, max_rows: int = 1000) -> GraphIndex:
    """Return an index that includes everything, read in steps of ``max_rows``."""
    index = index or GraphIndex()
    for _ in range(10_000):
        with room.reader.open_snapshot() as view:
            index.sync(view, max_rows=max_rows)
        if index.complete:
            return index
    raise AssertionError("the index never becomes complete")


def content_of(index: GraphIndex) -> dict[str, Any]:
    """Return all that the index holds, by ids instead of numbers."""
    aspects = {number: id_ for id_, number in index._aspects.items()}
    entities = {
        id_: (
            index.names[at],
            index._flags[at],
            index.override(at),
            index.ids[index._merged_into[at]] if index._merged_into[at] >= 0 else None,
            sorted(index.ids[each] for each in index.with_members(at)),
            sorted(index.ids[each] for each in index.named_with(index._agent[at], telling_tokens(index.names[at]))),
        )
        for at, id_ in enumerate(index.ids)
        if index.names[at]
    }

    def edges(links: Links) -> list[tuple[str, str, float]]:
        return sorted((index.ids[a], index.ids[b], round(float(c), 4)) for a, b, c in links.all().tolist())

    contributions = sorted(
        (seq, index.ids[entity], aspects.get(aspect, ""), round(importance, 4), is_constraint, structured)
        for seq, entity, aspect, importance, is_constraint, structured in index.attributes.all().tolist()
    )
    mentions = sorted((seq, index.ids[entity]) for seq, entity in index.mentioned.all().tolist())
    weights = {id_: round(float(index._weights[number]), 4) for id_, number in index._aspects.items()}
    used = {each[2] for each in contributions}
    return {
        "entities": entities,
        "contributions": contributions,
        "mentions": mentions,
        "dependencies": edges(index.dependencies),
        "relations": edges(index.relations),
        "weights": {id_: weight for id_, weight in weights.items() if id_ in used},
    }


def number_of(index: GraphIndex, entity: str) -> int:
    (number,) = index.find([entity])
    return number


def focal(index: GraphIndex, *entities: str) -> list[Focal]:
    return [Focal(number_of(index, entity), 1.0, "query") for entity in entities]


def all_rows(room: StoreRoom, *, among: list[str] | None = None) -> Any:
    with room.reader.open_snapshot() as view:
        room.reader.sync(view)
        mask = room.reader.readable_rows(view, ReadScope(), ()).copy()
    if among is not None:
        wanted = {room.value("SELECT seq FROM memories WHERE id = ?", each) for each in among}
        mask &= np.isin(np.arange(len(mask)), list(wanted))
    return mask


def walked(room: StoreRoom, index: GraphIndex, starts: list[Focal], **limits: Any) -> Walked:
    agent = index.agent("default")
    return walk(index, agent, starts, all_rows(room), Traversal(**limits), lambda: False)


def ids(room: StoreRoom, rows: Any) -> list[str]:
    return [room.value("SELECT id FROM memories WHERE seq = ?", seq) for seq in rows["seq"].tolist()]


class TestFollowing:
    def test_an_index_that_follows_commits_equals_one_that_is_made_anew(self, room: StoreRoom) -> None:
        tables, rng = GraphTables(room.connection), random.Random(3)
        followed = synced(room)
        memories: list[str] = []
        entities: list[str] = []
        aspects: dict[str, list[str]] = {}
        for step in range(150):
            choice = rng.random()
            if choice < 0.3 or not entities:
                memories.append(room.remember(f"memory {step}").id)
                entities.append(tables.entity(f"{rng.choice(NAMES)} {step}"))
                aspects[entities[-1]] = [tables.aspect(entities[-1], f"aspect {at}", rng.random()) for at in range(2)]
            elif choice < 0.5:
                entity = rng.choice(entities)
                kind = rng.choice(["attribute", "constraint"])
                aspect = rng.choice([*aspects[entity], None])
                tables.attribute(rng.choice(memories), entity, aspect, kind=kind, importance=rng.random())
            elif choice < 0.6:
                tables.mention(rng.choice(memories), *rng.sample(entities, min(2, len(entities))))
            elif choice < 0.7 and len(entities) > 1:
                source, target = rng.sample(entities, 2)
                tables.relation(source, target, f"r{step}")
                tables.dependency(source, target, rng.random(), f"d{step}")
            elif choice < 0.75:
                tables.unlink(rng.choice(memories))
            elif choice < 0.8:
                changes = ("SET status = 'superseded'", "SET importance = 0.9", "SET kind = 'constraint'")
                room.connection.execute(f"UPDATE entity_attributes {rng.choice(changes)} WHERE seq % 3 = {step % 3}")
            elif choice < 0.85:
                room.connection.execute("UPDATE entity_aspects SET weight = 1 - weight WHERE id > 'aspect-00010'")
            elif choice < 0.9 and len(entities) > 3:
                tables.merge(entities[-1], entities[0] if rng.random() < 0.5 else None)
            elif choice < 0.95 and len(entities) > 3:
                gone = entities.pop(1)
                room.connection.execute("UPDATE entities SET merged_into = NULL WHERE merged_into = ?", (gone,))
                room.connection.execute("DELETE FROM entities WHERE id = ?", (gone,))
            else:
                room.connection.execute(
                    "UPDATE entities SET canonical_name = canonical_name || 'x', pinned = 1 - pinned"
                )
            if step % 7 == 0:
                synced(room, followed, max_rows=3)
                assert content_of(followed) == content_of(synced(room, max_rows=5))
        assert content_of(synced(room, followed)) == content_of(synced(room))

    def test_a_step_is_bounded_and_the_index_is_incomplete_until_the_last_one(self, room: StoreRoom) -> None:
        tables = GraphTables(room.connection)
        memory = room.remember("a memory").id
        index = GraphIndex()
        for number in range(10):
            tables.attribute(memory, (entity := tables.entity(f"name{number}")), tables.aspect(entity))
        complete = []
        for _ in range(9):
            with room.reader.open_snapshot() as view:
                index.sync(view, max_rows=2)
            complete.append(index.complete)
        assert complete.index(True) == 5
        assert content_of(index) == content_of(synced(room))

    def test_a_trimmed_feed_is_read_anew(self, room: StoreRoom) -> None:
        tables = GraphTables(room.connection)
        memory, entity = room.remember("a memory").id, tables.entity("billing")
        index = synced(room)
        tables.mention(memory, entity, tables.entity("redis"))
        with room.engine.begin() as tx:
            purge.purge_rows.trim_changes(tx, kept=1, limit=100)
            tx.commit()
        assert room.value("SELECT count(*) FROM graph_changes") == 2
        assert content_of(synced(room, index)) == content_of(synced(room))

    def test_housekeeping_trims_the_feed_of_the_graph(self, room: StoreRoom, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(purge, "_CHANGES_KEPT", 3)
        tables = GraphTables(room.connection)
        for number in range(10):
            tables.entity(f"name{number}")
        room.group.housekeep()
        assert room.value("SELECT count(*) FROM graph_changes") == 4

    def test_what_holds_the_chunks_of_a_long_text_is_no_entity(self, room: StoreRoom) -> None:
        tables = GraphTables(room.connection)
        tables.mention(room.remember("a memory").id, tables.entity("group of chunks", "chunk_group"))
        assert content_of(synced(room))["mentions"] == []


class TestFocus:
    def named(self, room: StoreRoom, query: str, **fields: Any) -> list[str]:
        index = synced(room)
        found = focal_entities(index, index.agent("default"), all_rows(room), query=query, **fields)
        return [f"{each.source} {index.names[each.entity]}" for each in found]

    def test_names_are_matched_by_whole_words_the_best_covered_and_most_mentioned_first(
        self, room: StoreRoom, tables: GraphTables
    ) -> None:
        memories = [room.remember(f"memory {number}").id for number in range(3)]
        for name in ("go", "google", "billing service", "billing", "redis cache"):
            tables.mention(memories[0], tables.entity(name))
        tables.mention(memories[1], *(id_ for (id_,) in tables.rows("SELECT id FROM entities WHERE name = 'go'")))
        assert self.named(room, "does Billing use go?") == ["query go", "query billing", "query billing service"]
        assert self.named(room, "googled it") == []

    def test_a_name_of_stop_words_needs_all_of_them_and_counts_little(
        self, room: StoreRoom, tables: GraphTables
    ) -> None:
        memory = room.remember("a memory").id
        tables.mention(memory, tables.entity("The Who"), tables.entity("vinyl"))
        assert self.named(room, "the vinyl of the who") == ["query vinyl", "query the who"]
        assert self.named(room, "who has the vinyl?") == ["query vinyl", "query the who"]
        assert self.named(room, "the vinyl") == ["query vinyl"]

    def test_an_entity_of_most_memories_is_a_weak_focus(self, room: StoreRoom, tables: GraphTables) -> None:
        hub, rare = tables.entity("signet"), tables.entity("postgres")
        memories = [room.remember(f"memory {number}").id for number in range(150)]
        for memory in memories:
            tables.mention(memory, hub)
        tables.mention(memories[0], rare)
        index = synced(room)
        found = focal_entities(index, index.agent("default"), all_rows(room), query="signet and postgres")
        assert [round(each.weight, 2) for each in found] == [1.0, 0.1]

    def test_the_project_then_the_session_label_count_if_nothing_is_named(
        self, room: StoreRoom, tables: GraphTables
    ) -> None:
        memory = room.remember("a memory").id
        other = tables.entity("shop")
        tables.mention(memory, tables.entity("webshop", "project"), other, tables.entity("redis"))
        assert self.named(room, "what now?", project="/home/me/webshop") == ["project webshop"]
        assert self.named(room, "is redis up?", project="/home/me/webshop") == ["query redis"]
        assert self.named(room, "what now?", project="/home/me/shop") == []
        assert self.named(room, "what now?", session_key="agent:redis:1") == ["session_key redis"]
        carried = {"checkpoint": lambda: [other], "project": "/home/me/webshop"}
        assert self.named(room, "what now?", **carried) == ["checkpoint shop"]

    def test_pinned_entities_are_always_focal_and_suppressed_ones_never(
        self, room: StoreRoom, tables: GraphTables
    ) -> None:
        memory = room.remember("a memory").id
        tables.mention(memory, (hidden := tables.entity("redis")), tables.entity("billing"))
        tables.entity("release", pinned=True)
        tables.suppress(hidden)
        assert self.named(room, "redis of billing") == ["query billing", "pinned release"]

    def test_a_merged_name_means_the_entity_that_it_was_merged_into(self, room: StoreRoom, tables: GraphTables) -> None:
        memory = room.remember("a memory").id
        tables.mention(memory, (source := tables.entity("pg")), (target := tables.entity("postgres")))
        tables.merge(source, target)
        assert self.named(room, "is pg up?") == ["query postgres"]
        tables.merge(source, None)
        assert self.named(room, "is pg up?") == ["query pg"]

    def test_entities_of_forgotten_memories_and_of_other_agents_are_invisible(
        self, room: StoreRoom, tables: GraphTables
    ) -> None:
        tables.mention(room.remember("hers", agent_id="ann").id, tables.entity("redis", agent="ann"))
        tables.entity("billing")
        assert self.named(room, "redis and billing") == []


class TestWalk:
    def test_a_focal_entity_and_its_neighbour_are_collected_with_their_scores(
        self, room: StoreRoom, tables: GraphTables
    ) -> None:
        one, two, three = (room.remember(f"memory {number}").id for number in range(3))
        e1, e2 = tables.entity("billing"), tables.entity("postgres")
        for memory in (one, two):
            tables.attribute(memory, e1, tables.aspect(e1, memory, 0.8), importance=0.5)
        tables.attribute(three, e2, tables.aspect(e2, weight=1.0), importance=1.0)
        tables.dependency(e1, e2, 0.4)
        index = synced(room)
        found = walked(room, index, focal(index, e1))
        assert (found.entities, found.timed_out, ids(room, found.found)) == (2, False, [one, two, three])
        assert found.found["score"].round(3).tolist() == [0.4, 0.4, 0.4]

    def test_weak_dependencies_are_not_followed_and_cycles_end(self, room: StoreRoom, tables: GraphTables) -> None:
        memories = [room.remember(f"memory {number}").id for number in range(3)]
        entities = [tables.entity(f"name{number}") for number in range(3)]
        for memory, entity in zip(memories, entities, strict=True):
            tables.attribute(memory, entity, tables.aspect(entity))
        tables.dependency(entities[0], entities[1], 0.29)
        tables.dependency(entities[0], entities[2], 0.3)
        tables.dependency(entities[2], entities[0], 1.0)
        tables.dependency(entities[2], entities[1], 1.0)
        index = synced(room)
        assert ids(room, walked(room, index, focal(index, entities[0])).found) == [memories[0], memories[2]]

    def test_every_constraint_is_found_whatever_the_limits_are(self, room: StoreRoom, tables: GraphTables) -> None:
        entity = tables.entity("billing")
        memories = [room.remember(f"memory {number}").id for number in range(6)]
        for number, memory in enumerate(memories):
            aspect = tables.aspect(entity, f"aspect {number}", number / 10)
            tables.attribute(
                memory, entity, aspect, kind="constraint" if number < 4 else "attribute", importance=0.1 * number
            )
        tables.attribute(memories[5], entity, None, kind="constraint", importance=0.9)
        index = synced(room)
        found = walked(room, index, focal(index, entity), max_aspects=1)
        assert ids(room, found.constraints) == [memories[at] for at in (5, 3, 2, 1, 0)]
        assert sorted(ids(room, found.found)) == sorted(memories[at] for at in (0, 1, 2, 3, 5))

    def test_a_deadline_ends_the_walk_with_what_was_found(
        self, room: StoreRoom, tables: GraphTables, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("signet_actors.searcher.graph.walk.BATCH", 1)
        memories = [room.remember(f"memory {number}").id for number in range(3)]
        entities = [tables.entity(f"name{number}") for number in range(3)]
        for memory, entity in zip(memories, entities, strict=True):
            tables.attribute(memory, entity, tables.aspect(entity))
        index = synced(room)
        checks = iter([False, False, True])
        found = walk(
            index, index.agent("default"), focal(index, *entities), all_rows(room), Traversal(), lambda: next(checks)
        )
        assert (found.timed_out, found.entities, ids(room, found.found)) == (True, 2, memories[:2])

    def test_only_allowed_rows_are_found(self, room: StoreRoom, tables: GraphTables) -> None:
        entity = tables.entity("billing")
        aspect = tables.aspect(entity)
        memories = [room.remember(f"memory {number}").id for number in range(4)]
        for memory in memories:
            tables.attribute(memory, entity, aspect, kind="constraint")
            tables.mention(memory, entity)
        index = synced(room)
        allowed, starts = all_rows(room, among=memories[1:3]), focal(index, entity)
        found = walk(index, index.agent("default"), starts, allowed, Traversal(), lambda: False)
        assert ids(room, found.found) == memories[1:3]
        assert {*ids(room, found.constraints)} == {*memories[1:3]}
        linked = boosted(index, index.agent("default"), starts, allowed, lambda: False)
        assert sorted(linked.tolist()) == np.flatnonzero(allowed).tolist()

    def test_a_boost_goes_one_step_along_relations_in_both_directions(
        self, room: StoreRoom, tables: GraphTables
    ) -> None:
        memories = [room.remember(f"memory {number}").id for number in range(4)]
        entities = [tables.entity(f"name{number}") for number in range(4)]
        for memory, entity in zip(memories, entities, strict=True):
            tables.mention(memory, entity)
        tables.relation(entities[0], entities[1])
        tables.relation(entities[2], entities[0])
        tables.relation(entities[2], entities[3])
        index = synced(room)
        linked = boosted(index, index.agent("default"), focal(index, entities[0]), all_rows(room), lambda: False)
        assert {room.value("SELECT id FROM memories WHERE seq = ?", seq) for seq in linked.tolist()} == {*memories[:3]}


_WALK = """
WITH visible AS (
  SELECT coalesce(e.merged_into, e.id) AS target, e.id AS member FROM entities e WHERE e.agent_id = 'default'
), attributes AS (
  SELECT v.target AS entity, a.aspect_id, p.weight, a.importance, m.seq, a.kind FROM visible v
  JOIN entity_attributes a ON a.entity_id = v.member AND a.status = 'active'
  JOIN memories m ON m.id = a.memory_id AND m.is_deleted = 0
  LEFT JOIN entity_aspects p ON p.id = a.aspect_id WHERE v.target = :entity
), ranked AS (
  SELECT *, dense_rank() OVER (ORDER BY weight DESC, aspect_id) AS aspect_rank,
  row_number() OVER (PARTITION BY aspect_id ORDER BY importance DESC, seq DESC) AS place
  FROM attributes WHERE aspect_id IS NOT NULL
)
SELECT seq FROM ranked WHERE aspect_rank <= :aspects AND place <= :attributes
UNION SELECT seq FROM attributes WHERE kind = 'constraint'
"""
_NEIGHBOURS = """
SELECT t.id, max(d.strength) FROM entities s JOIN entity_dependencies d ON d.source_entity_id = s.id
JOIN entities o ON o.id = d.target_entity_id JOIN entities t ON t.id = coalesce(o.merged_into, o.id)
WHERE coalesce(s.merged_into, s.id) IN (SELECT value FROM json_each(:starts)) AND d.strength >= :least
AND t.id NOT IN (SELECT value FROM json_each(:starts)) AND t.agent_id = 'default'
AND t.id NOT IN (SELECT entity_id FROM entity_pinning WHERE pin_type = 'suppress')
GROUP BY t.id ORDER BY max(d.strength) DESC, t.id LIMIT :most
"""


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 1 << 30),
    aspects=st.integers(1, 3),
    attributes=st.integers(1, 3),
    neighbours=st.integers(0, 4),
)
def test_on_any_graph_a_walk_finds_what_slow_statements_find(
    seed: int, aspects: int, attributes: int, neighbours: int
) -> None:
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as directory:
        room = StoreRoom(Path(directory))
        try:
            tables = GraphTables(room.connection)
            memories = [room.remember(f"memory {number}").id for number in range(12)]
            entities = [
                tables.entity(f"name{number}", agent="default" if rng.random() < 0.8 else "ann") for number in range(7)
            ]
            for entity in entities:
                made = [tables.aspect(entity, f"aspect {at}", round(rng.random(), 3)) for at in range(4)]
                for memory in rng.sample(memories, rng.randint(0, 8)):
                    kind = "constraint" if rng.random() < 0.2 else "attribute"
                    status = "active" if rng.random() < 0.8 else "superseded"
                    aspect = rng.choice([*made, None])
                    tables.attribute(
                        memory, entity, aspect, kind=kind, importance=round(rng.random(), 3), status=status
                    )
                for target in rng.sample(entities, 3):
                    if target != entity:
                        tables.dependency(entity, target, round(rng.random(), 3))
            own = [id_ for (id_,) in tables.rows("SELECT id FROM entities WHERE agent_id = 'default'")]
            if len(own) > 3:
                tables.merge(own[0], own[1])
                tables.suppress(own[2])
                own = own[1:2] + own[3:]
            starts = rng.sample(own, min(2, len(own)))
            room.connection.execute("UPDATE memories SET is_deleted = 1, deleted_at = created_at WHERE seq % 5 = 0")
            index = synced(room)
            limits = {"max_aspects": aspects, "max_attributes": attributes, "max_neighbours": neighbours}
            found = walked(room, index, focal(index, *starts), **limits)
            near = tables.rows(_NEIGHBOURS, {"starts": str(starts).replace("'", '"'), "least": 0.3, "most": neighbours})
            visited = [*starts, *(entity for entity, _ in near)]
            expected = {
                seq
                for entity in visited
                for (seq,) in tables.rows(_WALK, {"entity": entity, "aspects": aspects, "attributes": attributes})
            }
            assert {*found.found["seq"].tolist()} == expected
            assert len(found.found) == len(expected)
            assert found.entities == len(visited)
        finally:
            room.close()


def test_a_name_in_a_script_without_spaces_counts_as_a_whole(room: StoreRoom) -> None:
    tables = GraphTables(room.connection)
    tables.mention(room.remember("a memory").id, tables.entity("東京支店"), tables.entity("京都"))
    assert TestFocus().named(room, "東京支店の鍵は?") == ["query 東京支店"]
