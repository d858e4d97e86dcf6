"""The graph that memories make: what is stored with them, and what becomes of it when they change or go.

Source: memory-api.txt "POST /api/memory/remember" (structured); knowledge-graph.txt "Graph Persistence".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signet_actors.config.schema import Config
from signet_actors.operations.structured import Structured, read_structured
from signet_actors.protocol.message import Principal
from signet_actors.protocol.pipeline import SettleAttributes
from signet_actors.protocol.writer import (
    ForgetMany,
    ForgetMemory,
    ForgetTarget,
    MemoryPatch,
    ModifyMemory,
    NewMemory,
    PurgeStep,
    RecoverMemory,
    RememberChunks,
)
from tests.support.graph_state import attributes_with, graph_of_contributions, orphans, stored_graph
from tests.support.store_room import StoreRoom, kept_sound


def config(linker: str = "link", *, enabled: bool = True) -> Config:
    base = Config()
    pipeline = base.memory.pipeline_v2
    graph = msgspec.structs.replace(pipeline.graph, inline_linker=linker, enabled=enabled)
    memory = msgspec.structs.replace(base.memory, pipeline_v2=msgspec.structs.replace(pipeline, graph=graph))
    return msgspec.structs.replace(base, memory=memory)


@pytest.fixture
def room(tmp_path: Path) -> Iterator[StoreRoom]:
    with kept_sound(StoreRoom(tmp_path, config=config())) as opened:
        yield opened
        assert_consistent(opened)


def assert_consistent(room: StoreRoom) -> None:
    room.ask(SettleAttributes(limit=1_000))
    assert stored_graph(room.connection) == graph_of_contributions(room.connection)
    assert orphans(room.connection) == []


def stating(**parts: Any) -> Structured:
    return read_structured(parts)


def triple(source: str, relationship: str, target: str, **more: Any) -> dict[str, Any]:
    return {"source": source, "relationship": relationship, "target": target, **more}


def claim(entity: str, content: str, *, aspect: str = "network", key: str | None = "port", **more: Any) -> Structured:
    attribute = {"content": content, "groupKey": "staging", "claimKey": key, **more}
    return stating(aspects=[{"entity": entity, "aspect": aspect, "attributes": [attribute]}])


def forget(room: StoreRoom, memory_id: str) -> None:
    assert room.ask(ForgetMemory(id=memory_id, reason="outdated", principal=Principal())).status == "deleted"


def recover(room: StoreRoom, memory_id: str) -> None:
    assert room.ask(RecoverMemory(id=memory_id, reason=None, principal=Principal())).status == "recovered"


def active(room: StoreRoom) -> list[str]:
    return [content for _, _, content, _ in stored_graph(room.connection).attributes]


def mentioned_by(room: StoreRoom, memory_id: str) -> list[str]:
    rows = room.connection.execute(
        "SELECT e.name FROM memory_entity_mentions x JOIN entities e ON e.id = x.entity_id WHERE x.memory_id = ?"
        " ORDER BY e.name",
        (memory_id,),
    )
    return [name for (name,) in rows]


def test_what_a_caller_states_is_stored_with_the_memory(room: StoreRoom) -> None:
    stated = stating(
        entities=[triple("Signet", "depends on", "ZeroMQ", confidence=0.8, sourceType="Project"), {"name": "Ada"}],
        aspects=[{"entity": "Signet", "aspect": "Data Store", "attributes": ["uses SQLite", {"content": "never MySQL",
                 "kind": "constraint"}]}],
        hints=["which database does Signet use?"],
    )  # fmt: skip
    memory = room.remember("Signet keeps its memories in one file", structured=stated)
    graph = stored_graph(room.connection)
    assert graph.entities == {("default", "signet"): 1, ("default", "zeromq"): 1, ("default", "ada"): 1}
    assert graph.relations == {("signet", "depends_on", "zeromq"): (1, 0.8)}
    assert graph.dependencies == {("signet", "depends_on", "zeromq"): 0.8}
    assert [row[:3] for row in graph.attributes] == [
        ("signet", "data store", "never MySQL"),
        ("signet", "data store", "uses SQLite"),
    ]
    kinds = dict(room.connection.execute("SELECT content, kind FROM entity_attributes"))
    assert kinds == {"uses SQLite": "attribute", "never MySQL": "constraint"}
    assert room.value("SELECT entity_type FROM entities WHERE name = 'Signet'") == "project"
    assert room.value("SELECT hint FROM memory_hints WHERE memory_id = ?", memory.id) == (
        "which database does Signet use?"
    )


def test_a_newer_statement_of_a_claim_replaces_the_older_one(room: StoreRoom) -> None:
    first = room.remember("The API listens on 5432", structured=claim("API", "port 5432"))
    second = room.remember("The API listens on 5433", structured=claim("API", "port 5433"))
    assert active(room) == ["port 5433"]
    old, new = (
        room.value("SELECT superseded_by FROM entity_attributes WHERE memory_id = ?", first.id),
        room.value("SELECT id FROM entity_attributes WHERE memory_id = ?", second.id),
    )
    assert old == new
    assert room.value("SELECT count(*) FROM memory_history WHERE event = 'attribute_superseded'") == 1


def test_the_time_of_the_source_decides_which_claim_is_the_newer_one(room: StoreRoom) -> None:
    room.remember("now", structured=claim("API", "port 5433"))
    room.remember("then", structured=claim("API", "port 5432"), created_at="2020-01-01T00:00:00.000Z")
    assert active(room) == ["port 5433"]


@pytest.mark.parametrize(
    "other",
    [
        claim("Queue", "port 1"),
        claim("API", "port 1", aspect="other"),
        claim("API", "port 1", key="tls port"),
        claim("API", "port 1", groupKey="production"),
        claim("API", "port 1", key=None),
    ],
)
def test_a_claim_of_another_entity_aspect_group_or_key_replaces_nothing(room: StoreRoom, other: Structured) -> None:
    room.remember("one", structured=claim("API", "port 5432"))
    room.remember("two", structured=other)
    assert len(active(room)) == 2


def test_a_constraint_is_replaced_by_another_constraint_only(room: StoreRoom) -> None:
    room.remember("one", structured=claim("API", "never on Friday", key="deploy", kind="constraint"))
    room.remember("two", structured=claim("API", "on Friday", key="deploy"))
    assert active(room) == ["never on Friday", "on Friday"]
    room.remember("three", structured=claim("API", "only on Monday", key="deploy", kind="constraint"))
    assert active(room) == ["only on Monday"]


def test_a_constraint_that_was_replaced_does_not_come_back_with_an_attribute(room: StoreRoom) -> None:
    for text, kind in (("c1", "constraint"), ("a1", "attribute"), ("c2", "constraint"), ("a2", "attribute")):
        room.remember(text, structured=claim("API", text, kind=kind))
    assert active(room) == ["a2", "c2"]


def test_each_statement_of_a_claim_is_replaced_once_by_the_next_one(room: StoreRoom) -> None:
    for number in range(12):
        room.remember(f"text {number}", structured=claim("API", f"port {number}"))
    assert active(room) == ["port 11"]
    assert room.value("SELECT count(*) FROM memory_history WHERE event = 'attribute_superseded'") == 11
    replaced = room.connection.execute(
        "SELECT a.content, b.content FROM entity_attributes a JOIN entity_attributes b ON b.id = a.superseded_by"
        " ORDER BY a.seq"
    )
    assert list(replaced) == [(f"port {number}", f"port {number + 1}") for number in range(11)]


def test_what_is_said_again_is_the_newest_statement_of_its_claim(room: StoreRoom) -> None:
    up = claim("API", "up")
    room.remember("The API is up", structured=up)
    room.clock.advance(1000)
    room.remember("The API is down", structured=claim("API", "down"))
    room.clock.advance(1000)
    assert room.remember("The API is up", structured=up).deduped
    assert active(room) == ["up"]


@pytest.mark.parametrize("again", [{"idempotency_key": "k"}, {"source_id": "s"}])
def test_a_memory_that_is_sent_again_says_nothing_newer(room: StoreRoom, again: dict[str, str]) -> None:
    up = claim("API", "up")
    room.remember("The API is up", structured=up, **again)
    room.clock.advance(1000)
    room.remember("The API is down", structured=claim("API", "down"))
    room.clock.advance(1000)
    assert room.remember("The API is up", structured=up, **again).deduped
    assert active(room) == ["down"]


def test_an_entity_is_no_group_of_chunks_whatever_it_is_called(room: StoreRoom) -> None:
    room.remember("one", structured=stating(entities=[{"name": "Signet", "type": "chunk group"}]))
    memory = room.remember("two", structured=stating(entities=[{"name": "ZeroMQ", "type": "Chunk_Group"}]))
    parts = RememberChunks(memory=NewMemory("a. b", "fact", 0.5), chunks=("a.", "b"), principal=Principal())
    group = room.ask(parts).group_id
    named = room.remember("three", structured=claim(f"Chunk group {group}", "said of it"))
    for each in (memory, named):
        forget(room, each.id)
    assert active(room) == []
    assert room.value("SELECT mentions FROM entities WHERE id = ?", group) == 2
    assert room.value("SELECT mentions FROM entities WHERE name = 'ZeroMQ'") == 0


def test_what_replaced_a_claim_gives_it_back_when_it_is_forgotten(room: StoreRoom) -> None:
    room.remember("one", structured=claim("API", "port 5432"))
    second = room.remember("two", structured=claim("API", "port 5433"))
    forget(room, second.id)
    assert active(room) == ["port 5432"]
    recover(room, second.id)
    assert active(room) == ["port 5433"]


def test_the_same_statement_twice_is_stored_once(room: StoreRoom) -> None:
    stated = stating(
        entities=[triple("Signet", "uses", "SQLite")],
        aspects=[{"entity": "Signet", "aspect": "store", "attributes": ["one file"]}],
    )
    before = room.remember("Signet uses SQLite", structured=stated)
    graph = stored_graph(room.connection)
    again = room.remember("Signet uses SQLite", structured=stated)
    assert again.deduped
    assert again.id == before.id
    assert stored_graph(room.connection) == graph


def test_a_text_is_linked_to_the_entities_that_it_names_and_to_no_other(room: StoreRoom) -> None:
    room.remember("names", structured=stating(entities=[{"name": n} for n in ("Go", "API Gateway", "Rust", "C++")]))
    memory = room.remember("The api-gateway is written in Go, not in C++; it may go down, like rusty gates")
    assert mentioned_by(room, memory.id) == ["API Gateway", "C++", "Go"]
    assert room.value("SELECT count(*) FROM entities") == 4
    assert room.value("SELECT count(*) FROM entity_attributes") == 0


def test_the_entities_of_another_agent_are_not_linked(room: StoreRoom) -> None:
    room.remember("names", structured=stating(entities=[{"name": "Signet"}]), agent_id="ada")
    memory = room.remember("Signet is fast")
    assert mentioned_by(room, memory.id) == []


def test_nothing_is_linked_while_the_graph_is_off(tmp_path: Path) -> None:
    with kept_sound(StoreRoom(tmp_path, config=config(enabled=False))) as room:
        stated = stating(entities=[{"name": "Signet"}], hints=["what is Signet?"])
        room.remember("Signet is a daemon", structured=stated)
        assert room.value("SELECT count(*) FROM entities") == 0
        assert room.value("SELECT count(*) FROM memory_hints") == 1


def test_the_linker_creates_what_a_text_shows_by_its_form(tmp_path: Path) -> None:
    with kept_sound(StoreRoom(tmp_path, config=config("create"))) as room:
        memory = room.remember("Signet uses PostgreSQL 16 in production. Nicholai lives in Denver")
        assert mentioned_by(room, memory.id) == ["Denver", "Nicholai", "PostgreSQL", "Signet"]
        assert [row[:3] for row in stored_graph(room.connection).attributes] == [
            ("nicholai", "location", "Nicholai lives in Denver"),
            ("signet", "technology", "Signet uses PostgreSQL 16 in production"),
        ]
        room.remember("We decided to use ZeroMQ for messages")
        kind, importance = room.connection.execute(
            "SELECT kind, importance FROM entity_attributes WHERE content LIKE 'We decided%'"
        ).fetchone()
        assert (kind, importance) == ("constraint", 0.85)
        assert_consistent(room)


def test_a_changed_text_says_nothing_of_what_the_old_one_said(room: StoreRoom) -> None:
    room.remember("names", structured=stating(entities=[{"name": "Rust"}, {"name": "Go"}]))
    memory = room.remember("The hook is written in Rust", structured=claim("hook", "language Rust"))
    patch = MemoryPatch(id=memory.id, reason="moved", content="The hook is written in Go")
    assert room.ask(ModifyMemory(patch=patch, principal=Principal())).status == "updated"
    assert mentioned_by(room, memory.id) == ["Go"]
    assert active(room) == []


def test_a_forgotten_memory_counts_nowhere_and_a_recovered_one_as_before(room: StoreRoom) -> None:
    stated = stating(entities=[triple("Signet", "uses", "ZeroMQ", confidence=0.4)])
    room.remember("one", structured=stated)
    second = room.remember("Signet, again", structured=stating(entities=[triple("Signet", "uses", "ZeroMQ")]))
    before = stored_graph(room.connection)
    assert before.relations == {("signet", "uses", "zeromq"): (2, 0.7)}
    forget(room, second.id)
    graph = stored_graph(room.connection)
    assert graph.entities == {("default", "signet"): 1, ("default", "zeromq"): 1}
    assert graph.relations == {("signet", "uses", "zeromq"): (1, 0.4)}
    recover(room, second.id)
    assert stored_graph(room.connection) == before


def test_the_last_memory_takes_its_entities_with_it_when_it_is_purged(room: StoreRoom) -> None:
    kept = room.remember("one", structured=stating(entities=[{"name": "Signet"}]))
    gone = room.remember("two", structured=stating(entities=[triple("Signet", "uses", "ZeroMQ")]))
    room.remember("three", structured=stating(entities=[{"name": "Pinned"}]))
    room.connection.execute("UPDATE entities SET pinned = 1 WHERE name = 'Pinned'")
    for memory_id in (gone.id, room.value("SELECT id FROM memories WHERE content = 'three'")):
        forget(room, memory_id)
    for step in ("graph_links", "embeddings", "tombstones"):
        room.ask(PurgeStep(step=step, cutoff="2100-01-01T00:00:00.000Z", limit=100))
    names = [name for (name,) in room.connection.execute("SELECT name FROM entities ORDER BY name")]
    assert names == ["Pinned", "Signet"]
    assert mentioned_by(room, kept.id) == ["Signet"]
    assert room.value("SELECT count(*) FROM relations") == 0


def test_an_erased_memory_leaves_nothing(room: StoreRoom) -> None:
    stated = stating(entities=[triple("Signet", "uses", "ZeroMQ")], aspects=[
        {"entity": "Signet", "aspect": "a", "attributes": ["said"]}])  # fmt: skip
    memory = room.remember("one", structured=stated)
    wish = ForgetMany(targets=(ForgetTarget(memory.id),), reason="for good", principal=Principal(), hard=True)
    room.ask(wish)
    for table in ("entities", "entity_aspects", "entity_attributes", "relations", "memory_relation_mentions"):
        assert room.value(f"SELECT count(*) FROM {table}") == 0, table


_NAMES = st.sampled_from(["Signet", "ZeroMQ", "Ada", "API Gateway", "Go"])
_STATED = st.one_of(
    st.builds(lambda a, b, c: stating(entities=[triple(a, "uses", b, confidence=c)]), _NAMES, _NAMES,
              st.sampled_from([0.2, 0.5, 1.0])),
    st.builds(lambda a, v, k: claim(a, f"value {v}", kind=k), _NAMES, st.integers(0, 2),
              st.sampled_from(["attribute", "constraint"])),
    st.builds(lambda a: stating(entities=[{"name": a}]), _NAMES),
)  # fmt: skip
_STEP = st.one_of(
    st.tuples(st.just("remember"), st.integers(0, 8), _STATED, st.integers(0, 5)),
    st.tuples(st.sampled_from(["forget", "recover", "erase"]), st.integers(0, 8), st.none(), st.just(0)),
    st.tuples(st.just("modify"), st.integers(0, 8), st.none(), st.integers(0, 99)),
    st.tuples(st.just("purge"), st.just(0), st.none(), st.just(0)),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(_STEP, min_size=1, max_size=25), linker=st.sampled_from(["link", "create"]))
def test_after_any_changes_the_graph_is_what_its_live_memories_contribute(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Any], linker: str
) -> None:
    room = StoreRoom(tmp_path_factory.mktemp("graph"), config=config(linker))
    ids: list[str] = []
    try:
        for number, (what, at, stated, value) in enumerate(steps):
            memory_id = ids[at % len(ids)] if ids else None
            if what == "remember":
                text = f"Memory {number} of Signet and Ada says that the API Gateway uses Go in {value}"
                created = f"2026-0{value + 1}-01T00:00:00.000Z"
                ids.append(room.remember(text, structured=stated, created_at=created).id)
            elif what == "purge":
                for step in ("graph_links", "embeddings", "tombstones"):
                    room.ask(PurgeStep(step=step, cutoff="2100-01-01T00:00:00.000Z", limit=100))
            elif memory_id is not None and what == "forget":
                room.ask(ForgetMemory(id=memory_id, reason="x", principal=Principal()))
            elif memory_id is not None and what == "recover":
                room.ask(RecoverMemory(id=memory_id, reason=None, principal=Principal()))
            elif memory_id is not None and what == "modify":
                patch = MemoryPatch(id=memory_id, reason="x", content=f"Ada says {value} of ZeroMQ in step {number}")
                room.ask(ModifyMemory(patch=patch, principal=Principal()))
            elif memory_id is not None:
                target = (ForgetTarget(memory_id),)
                room.ask(ForgetMany(targets=target, reason="x", principal=Principal(), hard=True))
            assert_consistent(room)
    finally:
        room.close()


def test_no_other_status_is_left_behind(room: StoreRoom) -> None:
    first = room.remember("one", structured=claim("API", "port 1"))
    room.remember("two", structured=claim("API", "port 2"))
    forget(room, first.id)
    assert attributes_with(room.connection, "superseded") == [("api", "network", "port 1", first.id)]
    assert room.value("SELECT superseded_by FROM entity_attributes WHERE memory_id = ?", first.id) is None
