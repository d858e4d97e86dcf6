"""What an agent may read of its graph: bounded in time however much there is, and the same after a merge is undone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signet_actors.features.entities import api, reads
from signet_actors.features.entities.reads import OwnGraph
from signet_actors.features.knowledge import api as views_api
from signet_actors.features.knowledge import reads as views
from signet_actors.operations.operation import Operation
from signet_actors.operations.structured import read_structured
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Answered, Caller, message_of
from tests.store.test_graph import config
from tests.support.graph_state import graph_of_contributions, orphans, stored_graph
from tests.support.store_room import StoreRoom, kept_sound, plan_of

TABLES = (
    "entities",
    "entity_aspects",
    "entity_attributes",
    "entity_dependencies",
    "relations",
    "memory_entity_mentions",
    "memory_relation_mentions",
    "entity_pinning",
)
MANY = 300


@pytest.fixture
def room(tmp_path: Path) -> Iterator[StoreRoom]:
    with kept_sound(StoreRoom(tmp_path, config=config())) as opened:
        yield opened


def ask(room: StoreRoom, operation: Operation[Any], entity: str, agent: str = "default", **fields: Any) -> Any:
    caller = Caller(agent, path={"id": entity})
    return room.ask(message_of(operation)(caller=caller, request=operation.request(**fields)))


def graph_tables(room: StoreRoom) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of the graph without the times of changes."""
    found = {}
    for table in TABLES:
        columns = [row[0] for row in room.connection.execute("SELECT name FROM pragma_table_info(?)", (table,))]
        kept = ", ".join(column for column in columns if column != "updated_at")
        found[table] = sorted(room.connection.execute(f"SELECT {kept} FROM {table}"), key=repr)
    return found


def remember(room: StoreRoom, number: int, entity: str, text: str) -> None:
    attribute = {"content": text, "claimKey": "port"}
    parts = {
        "entities": [{"source": entity, "relationship": "uses", "target": "Store"}],
        "aspects": [{"entity": entity, "aspect": "network", "attributes": [attribute]}],
    }
    room.remember(f"Memory {number} of {entity}: {text}", structured=read_structured(parts))


NAMES = ("Alpha", "Beta", "Gamma", "Delta", "Store")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    said=st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(("1", "2", "3"))), min_size=4, max_size=10),
    merges=st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), min_size=1, max_size=5),
)
def test_merging_and_undoing_it_leaves_the_graph_as_it_was(
    tmp_path: Path, said: list[tuple[str, str]], merges: list[tuple[str, str]]
) -> None:
    directory = tmp_path / str(len(list(tmp_path.iterdir())))
    directory.mkdir()
    with kept_sound(StoreRoom(directory, config=config())) as room:
        for number, (entity, text) in enumerate(said):
            remember(room, number, entity, text)
        ids = dict(room.connection.execute("SELECT name, id FROM entities"))
        steps = []
        for source, into in merges:
            if source in ids and into in ids:
                before = graph_tables(room)
                done = ask(room, api.MERGE, ids[source], into=ids[into])
                after = graph_tables(room)
                assert isinstance(done, Answered) or before == after
                if before != after:
                    steps.append((source, before))
                assert stored_graph(room.connection) == graph_of_contributions(room.connection)
        for source, before in reversed(steps):
            ask(room, api.UNMERGE, ids[source])
            assert graph_tables(room) == before
        assert orphans(room.connection) == []


def test_a_merge_moves_what_was_merged_before_and_gives_it_back(room: StoreRoom) -> None:
    for number, name in enumerate(NAMES[:4]):
        remember(room, number, name, str(number))
    ids = dict(room.connection.execute("SELECT name, id FROM entities"))
    for source, into in (("Alpha", "Beta"), ("Beta", "Gamma"), ("Gamma", "Delta")):
        ask(room, api.MERGE, ids[source], into=ids[into])
    merged = "SELECT name, (SELECT t.name FROM entities t WHERE t.id = e.merged_into) FROM entities e ORDER BY name"

    def targets() -> dict[str, str | None]:
        return {name: into for name, into in room.connection.execute(merged) if name != "Store"}

    assert targets() == {"Alpha": "Delta", "Beta": "Delta", "Gamma": "Delta", "Delta": None}
    ask(room, api.UNMERGE, ids["Beta"])
    assert targets() == {"Alpha": "Beta", "Beta": None, "Gamma": "Delta", "Delta": None}


def test_no_agent_changes_the_entity_of_another_one(room: StoreRoom) -> None:
    remember(room, 1, "Alpha", "1")
    remember(room, 2, "Beta", "2")
    ids, before = dict(room.connection.execute("SELECT name, id FROM entities")), graph_tables(room)
    for operation in (api.PIN, api.UNPIN, api.SUPPRESS, api.UNSUPPRESS, api.UNMERGE):
        ask(room, operation, ids["Alpha"], "cleo")
    ask(room, api.MERGE, ids["Alpha"], "cleo", into=ids["Beta"])
    assert graph_tables(room) == before


def test_a_removed_agent_reads_and_changes_nothing(room: StoreRoom) -> None:
    remember(room, 1, "Alpha", "1")
    (alpha,) = next(room.connection.execute("SELECT id FROM entities WHERE name = 'Alpha'"))
    room.connection.execute(
        "INSERT INTO agents (id, name, read_policy, created_at, updated_at, archived_at)"
        " VALUES ('default', 'default', 'shared', '', '', 'now') ON CONFLICT (id) DO UPDATE SET archived_at = 'now'"
    )
    before = graph_tables(room)
    ask(room, api.PIN, alpha)
    assert graph_tables(room) == before
    with room.reader.open_snapshot() as snapshot:
        graph = OwnGraph(snapshot, ReadScope("default"))
        assert graph.entities() == []
        assert graph.entity(alpha) is None


def fill_many(room: StoreRoom) -> None:
    """Insert entities that each have two aspects, six attributes, and a dependency on the next one."""
    for number in range(MANY):
        parts: dict[str, Any] = {
            "entities": [
                {"source": f"entity {number}", "relationship": "uses", "target": f"entity {(number + 1) % MANY}"}
            ],
            "aspects": [
                {
                    "entity": f"entity {number}",
                    "aspect": aspect,
                    "attributes": [f"{aspect} {each}" for each in range(3)],
                }
                for aspect in ("network", "storage")
            ],
        }
        room.remember(f"Memory {number}", structured=read_structured(parts))


def requests(entity: str) -> list[tuple[Operation[Any], Any, dict[str, str]]]:
    """Return a request of each read."""
    named: dict[Any, dict[str, Any]] = {
        views_api.EXPAND: {"entity_name": entity},
        views_api.EXPAND_SESSION: {"entity_name": entity},
        views_api.ENTITY: {"name": entity},
        views_api.IMPACT: {"entity_id": entity, "max_depth": 10},
        views_api.PATH: {"source": entity, "target": "entity 7"},
        views_api.GROUPS: {"entity": entity, "aspect": "network"},
        views_api.CLAIMS: {"entity": entity, "aspect": "network"},
        **{each: {"entity": entity} for each in (views_api.ASPECTS, views_api.SLOT, views_api.TREE)},
        api.LIST: {"limit": api.MAX_PAGE},
    }
    path = {"id": entity, "aspect": "network"}
    served: list[Any] = [*reads.READS, *views.READS]
    return [(one, one.request(**named.get(one, {})), path) for one in served]


def test_a_read_asks_few_questions_however_much_it_returns(room: StoreRoom) -> None:
    fill_many(room)
    connection = room.reader.engine._connection  # type: ignore[attr-defined]
    served = {**reads.READS, **views.READS}
    for operation, request, path in requests("entity 0"):
        asked: list[str] = []
        connection.exec_trace = lambda _cursor, sql, _bindings, asked=asked: asked.append(sql) or True
        with room.reader.open_snapshot() as snapshot:
            served[operation](snapshot, message_of(operation)(caller=Caller(path=path), request=request))
        connection.exec_trace = None
        steps = 4 * 10 if operation in (views_api.IMPACT, views_api.PATH) else 0
        assert len(asked) <= 20 + steps, operation.name
        for sql in asked:
            is_of_graph = sql.startswith(("SELECT", "WITH")) and "FROM agents" not in sql
            plan = plan_of(connection, sql) if is_of_graph else []
            whole = [step for step in plan if step.startswith("SCAN")]
            assert not [step for step in whole if step.split()[1] in {"a", "x", "d", "m", "s", "r"}], (sql, plan)


def view(room: StoreRoom, operation: Operation[Any], agent: str = "default", **fields: Any) -> Any:
    asked = message_of(operation)(caller=Caller(agent), request=operation.request(**fields))
    with room.reader.open_snapshot() as snapshot:
        return {**reads.READS, **views.READS}[operation](snapshot, asked)


def test_summaries_of_sessions_that_mention_an_entity_are_found_by_it(room: StoreRoom) -> None:
    for number in (1, 2):
        remember(room, number, "Alpha", str(number))
    memories = [row[0] for row in room.connection.execute("SELECT id FROM memories ORDER BY seq")]
    for number, memory_id in enumerate(memories):
        room.connection.execute(
            "INSERT INTO session_summaries (memory_id, agent_id, session_key, earliest_at, latest_at, created_at)"
            " VALUES (?, 'default', ?, ?, ?, '')",
            (memory_id, f"session-{number}", f"2026-01-0{number + 1}", f"2026-01-0{number + 1}"),
        )
    found = view(room, views_api.EXPAND_SESSION, entity_name="ALPHA")
    assert [each.session_key for each in found.summaries] == ["session-1", "session-0"]
    assert (found.entity_name, found.total) == ("Alpha", 2)
    one = view(room, views_api.EXPAND_SESSION, entity_name="Alpha", session_id="session-0", max_results=1)
    assert ([each.session_key for each in one.summaries], one.total) == (["session-0"], 1)
    assert view(room, views_api.EXPAND_SESSION, "cleo", entity_name="Alpha").total == 0


def test_communities_have_the_names_of_their_most_mentioned_entities(room: StoreRoom) -> None:
    for number, name in enumerate(("Alpha", "Beta", "Beta")):
        remember(room, number, name, str(number))
    room.connection.execute(
        "INSERT INTO entity_communities (id, agent_id, label, size, cohesion, quality, created_at)"
        " VALUES ('c', 'default', 'Store', 3, 0.5, 'moderate', '')"
    )
    room.connection.execute("UPDATE entities SET community_id = 'c'")
    found = view(room, views_api.COMMUNITIES)
    assert (found.count, found.items[0].label, found.items[0].members) == (1, "Store", ["Store", "Beta", "Alpha"])
    assert view(room, views_api.COMMUNITIES, "cleo").count == 0
