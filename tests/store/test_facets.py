"""Counts of memories by their values are those of the list, and never of what the caller may not read."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signet_actors.features.facets.api import CountFacets, Facet, FacetsReply
from signet_actors.protocol.memories import Filters, Memory, ReadScope
from signet_actors.protocol.message import Principal
from signet_actors.protocol.searcher import ListMemories
from signet_actors.protocol.writer import ForgetMemory, MemoryPatch, ModifyMemory, NewMemory, RememberChunks
from signet_actors.searcher.queries import facets as facet_queries
from signet_actors.searcher.queries import memories
from signet_actors.searcher.queries.facets import facets
from tests.support.store_room import StoreRoom

ME = Principal()
EVERYTHING = Filters()


def count(room: StoreRoom, filters: Filters = EVERYTHING, *, top: int = 50, **asked: Any) -> FacetsReply:
    names = {"agent": "agent_id", "scope": "scope", "project": "project", "user": "user"}
    read = ReadScope(**{field: asked.pop(name) for name, field in names.items() if name in asked})
    with room.reader.open_snapshot() as view:
        return facets(room.reader, view, CountFacets(read, filters, top, **asked)).read(FacetsReply)


def values(facet: Facet) -> dict[str | None, int]:
    return {one.value: one.count for one in facet.values}


def listed(room: StoreRoom, read: ReadScope, filters: Filters, *, deleted: bool) -> list[Memory]:
    with room.reader.open_snapshot() as view:
        page = memories.list_memories(room.reader, view, ListMemories(read, filters, 1000, deleted=deleted))
    assert page.matching == len(page.memories)
    return page.memories


def fill(room: StoreRoom, number: int) -> list[str]:
    rng = random.Random(number)
    ids = []
    for at in range(number):
        room.clock.advance(rng.randrange(40) * 86_400_000)
        stored = room.remember(
            f"memory {at}",
            type=rng.choice(("fact", "rule")),
            tags=tuple(sorted({rng.choice("abcd") for _ in range(rng.randrange(3))})),
            project=rng.choice((None, "/home/ada/shop", "shop", "/srv/other")),
            who=rng.choice((None, "ada", "bob")),
            scope=rng.choice((None, None, "staging")),
            agent_id=rng.choice(("default", "default", "cleo")),
            visibility=rng.choice(("global", "private")),
            pinned=rng.random() < 0.2,
            source_type=rng.choice(("manual", "hook")),
        )
        ids.append(stored.id)
    return ids


def test_an_alternative_is_counted_without_the_filter_on_it(room: StoreRoom) -> None:
    fill(room, 400)
    chosen: dict[str, Any] = {"type": "rule", "tags": ("a",), "who": "ada", "pinned": True}
    found = count(room, Filters(**chosen), alternatives=True)
    plain = count(room, Filters(**chosen))
    assert (found.total, found.months, found.projects) == (plain.total, plain.months, plain.projects)
    for facet, field in (("types", "type"), ("tags", "tags"), ("who", "who"), ("pinned", "pinned")):
        others = {name: value for name, value in chosen.items() if name != field}
        alone = count(room, Filters(**others))
        assert getattr(found, facet) == getattr(alone, facet)
    assert values(found.types).keys() == {"fact", "rule"}
    assert values(plain.types).keys() <= {"rule"}


@pytest.mark.parametrize("deleted", [False, True])
def test_the_counts_are_those_of_the_listed_memories(room: StoreRoom, deleted: bool) -> None:
    ids = fill(room, 120)
    for memory_id in ids[::3]:
        room.ask(ForgetMemory(id=memory_id, reason="r", force=True, principal=ME))
    for filters in (
        Filters(),
        Filters(type="rule"),
        Filters(tags=("a", "unknown")),
        Filters(project="/home/ada/shop"),
        Filters(who="ada", pinned=True),
        Filters(source_type="hook", since="2026-06-01T00:00:00.000Z"),
    ):
        for agent, scope in (("default", None), ("cleo", None), ("cleo", "staging"), ("nobody", None)):
            rows = listed(room, ReadScope(agent, scope), filters, deleted=deleted)
            found = count(room, filters, agent=agent, scope=scope, deleted=deleted)
            expected: dict[str, Any] = {
                "types": Counter(row.type for row in rows),
                "projects": Counter(row.project for row in rows),
                "agents": Counter(row.agent_id for row in rows),
                "who": Counter(row.who for row in rows),
                "tags": Counter(tag for row in rows for tag in row.tags),
                "sources": Counter(row.source_type for row in rows),
                "months": Counter(row.created_at[:7] for row in rows),
            }
            assert {name: values(getattr(found, name)) for name in expected} == expected
            assert (found.total, found.pinned) == (len(rows), sum(row.pinned for row in rows))
            others = listed(room, ReadScope(agent, scope), filters, deleted=not deleted)
            states = {"deleted" if deleted else "live": len(rows), "live" if deleted else "deleted": len(others)}
            assert values(found.states) == states
            scopes = {
                name: listed(room, ReadScope(agent, name), filters, deleted=deleted) for name in (None, "staging")
            }
            assert values(found.scopes) == {name: len(rows) for name, rows in scopes.items() if rows}


def test_a_part_of_a_long_text_counts_for_both_sources_that_find_it(room: StoreRoom) -> None:
    room.ask(RememberChunks(NewMemory("one.\ntwo.", "fact", 0.8, source_type="manual"), ("one.", "two."), ME))
    found = count(room)
    assert (found.total, values(found.sources)) == (2, {"chunk": 2, "manual": 2})
    for source in ("chunk", "manual"):
        assert count(room, Filters(source_type=source)).total == 2


def test_what_the_caller_may_not_read_is_not_counted(room: StoreRoom) -> None:
    room.remember("hers", agent_id="cleo", visibility="private", tags=("secret",), project="/srv/secret")
    room.remember("mine", agent_id="ada", project="/srv/mine", who="ada")
    room.remember("mine too", agent_id="ada", project="/srv/else", who="bob")
    found = count(room, agent="ada")
    assert (found.total, values(found.agents), found.tags.distinct) == (2, {"ada": 2}, 0)
    assert "/srv/secret" not in values(found.projects)
    limited = count(room, agent="ada", project="/srv/mine")
    assert (limited.total, values(limited.projects), values(limited.scopes)) == (1, {"/srv/mine": 1}, {None: 1})
    assert values(count(room, agent="ada", user="bob").who) == {"bob": 1}


def test_the_counts_follow_changes(room: StoreRoom) -> None:
    stored = room.remember("one", tags=("old",))
    room.remember("two", tags=("old",))
    assert values(count(room).tags) == {"old": 2}
    room.ask(ModifyMemory(MemoryPatch(stored.id, "r", tags=("new",)), ME))
    assert values(count(room).tags) == {"old": 1, "new": 1}
    room.ask(ForgetMemory(id=stored.id, reason="r", principal=ME))
    assert (values(count(room).tags), values(count(room).states)) == ({"old": 1}, {"live": 1, "deleted": 1})
    room.connection.execute("DELETE FROM memories WHERE id = ?", (stored.id,))
    room.connection.execute("DELETE FROM memory_tags WHERE tag = 'new'")
    assert values(count(room).states) == {"live": 1, "deleted": 0}


@pytest.mark.parametrize("many", [1, 3, 1_000])
def test_the_counts_are_right_however_often_the_rows_changed_between(
    room: StoreRoom, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    monkeypatch.setattr("signet_actors.searcher.tags._MANY_CHANGES", many)
    rng, tags = random.Random(many), {}
    for step in range(60):
        if not tags or rng.random() < 0.4:
            name = rng.choice("abc")
            tags[room.remember(f"memory {step}", tags=(name,)).id] = name
        else:
            memory_id, name = rng.choice(list(tags)), rng.choice("abc")
            room.ask(ModifyMemory(MemoryPatch(memory_id, "r", tags=(name,)), ME))
            tags[memory_id] = name
        if rng.random() < 0.5:
            with room.reader.open_snapshot() as view:
                room.reader.columns.sync(view)
                room.reader.tags.sync(view, max_rows=rng.choice((1, 5, 100)))
        if rng.random() < 0.2:
            assert values(count(room).tags) == Counter(tags.values())
    assert values(count(room).tags) == Counter(tags.values())


def test_only_the_most_frequent_values_are_named(room: StoreRoom) -> None:
    for at in range(6):
        room.remember(f"memory {at}", tags=("often",) if at else ("often", "rare", "also rare"))
    found = count(room, top=1)
    assert (values(found.tags), found.tags.distinct) == ({"often": 6}, 3)


def test_the_counts_are_computed_once_between_two_commits(room: StoreRoom) -> None:
    room.remember("one")
    first = count(room)
    with room.reader.open_snapshot() as view:
        asked = CountFacets(ReadScope(), Filters(), 50)
        assert facets(room.reader, view, asked) is facets(room.reader, view, asked)
    room.remember("two")
    assert (first.total, count(room).total) == (1, 2)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.text("abc", max_size=4), st.integers(1, 4), max_size=40), st.integers(1, 45))
def test_the_most_frequent_values_are_the_first_ones_of_all_in_order(counts: dict[str, int], top: int) -> None:
    in_order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    assert facet_queries.most_frequent(counts, top) == in_order[:top]


@pytest.mark.parametrize("bound", [{"_MOST_SEARCHED": 7}, {"_MOST_SEARCHED_BYTES": 80}])
def test_a_search_of_deleted_texts_ends_at_a_bound_and_says_so(
    room: StoreRoom, monkeypatch: pytest.MonkeyPatch, bound: dict[str, int]
) -> None:
    for memory_id in [room.remember(f"crane {at:02d}").id for at in range(12)]:
        room.clock.advance(1000)
        room.ask(ForgetMemory(id=memory_id, reason="r", force=True, principal=ME))

    def found(words: str, limit: int = 100, offset: int = 0) -> tuple[list[str], int, bool]:
        query = ListMemories(ReadScope(), Filters(), limit, offset, deleted=True, words=tuple(words.split()))
        with room.reader.open_snapshot() as view:
            page = memories.list_memories(room.reader, view, query)
        return [row.content for row in page.memories], page.matching, page.complete

    assert found("CRANE", limit=2, offset=1) == (["crane 10", "crane 09"], 12, True)
    for name, most in bound.items():
        monkeypatch.setattr(f"signet_actors.store.reads.memories.{name}", most)
    newest = [f"crane {at:02d}" for at in range(11, 1, -1)]
    searched = 7 if "_MOST_SEARCHED" in bound else 10
    assert found("crane") == (newest[:searched], searched, False)
    assert found("00") == ([], 0, False)
