"""Recall by the knowledge graph: candidates, sources, what is shown beside the results, explanations, and who sees it.

Source: architecture.txt "Traversal-primary search"; knowledge-graph.txt "Graph Traversal"; docs/decisions.md 9, 35.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from signet_actors.config.schema import RosterEntry
from signet_actors.domain.ranking.stage_settings import Dampening, Traversal
from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.protocol.message import Principal
from signet_actors.protocol.sessions import FindSessionStart
from signet_actors.protocol.writer import ForgetMemory
from signet_actors.searcher.queries.sessions import session_start
from tests.support.graph_tables import GraphTables
from tests.support.store_room import StoreRoom

WALK = Traversal()
BOOST = Traversal(is_primary=False)


@pytest.fixture
def tables(room: StoreRoom) -> GraphTables:
    return GraphTables(room.connection)


def stated(room: StoreRoom, tables: GraphTables, entity: str, content: str, **fields: Any) -> str:
    """Store a memory that states an attribute of the entity; return its id."""
    kind, importance = fields.pop("kind", "attribute"), fields.pop("importance_of", 0.8)
    source, aspect = fields.pop("source", "structured"), fields.pop("aspect", None)
    memory = room.remember(content, **fields).id
    tables.attribute(
        memory,
        entity,
        aspect or tables.aspect(entity, content, 0.9),
        content,
        kind=kind,
        importance=importance,
        source=source,
    )
    return memory


def sources(found: Any) -> dict[str, str]:
    return {row.content: row.source for row in found.rows}


class TestCandidates:
    def test_an_index_in_disorder_costs_a_recall_the_graph_alone_and_is_counted(
        self, room: StoreRoom, tables: GraphTables
    ) -> None:
        stated(room, tables, tables.entity("billing"), "invoices go out monthly")
        room.remember("the billing page is blue")
        assert len(room.recall("billing", graph=WALK).rows) == 2
        room.reader.graph.ids.clear()  # numbers of entities lead nowhere now
        assert [row.content for row in room.recall("billing", graph=WALK).rows] == ["the billing page is blue"]
        assert room.reader.graph_failures == 1

    def test_what_no_leg_finds_is_found_by_the_graph_and_says_how(self, room: StoreRoom, tables: GraphTables) -> None:
        billing, postgres = tables.entity("billing"), tables.entity("postgres")
        stated(room, tables, billing, "invoices go out monthly")
        stated(room, tables, billing, "Ann owns it", source="pipeline")
        stated(room, tables, postgres, "port 5433")
        tables.dependency(billing, postgres, 0.9)
        room.remember("the billing page is blue")
        assert sources(room.recall("what about billing?")) == {"the billing page is blue": "keyword"}
        assert sources(room.recall("what about billing?", graph=WALK)) == {
            "the billing page is blue": "keyword",
            "invoices go out monthly": "structured",
            "Ann owns it": "ka_traversal",
            "port 5433": "traversal",
        }

    def test_flat_results_keep_their_order_and_a_share_of_the_places(
        self, room: StoreRoom, tables: GraphTables
    ) -> None:
        billing = tables.entity("billing")
        for number in range(30):
            stated(room, tables, billing, f"stated {number}", importance_of=1.0)
        for number in range(8):
            room.remember(f"billing {'note ' * number}{number}")
        flat = [row.content for row in room.recall("billing", limit=10).rows]
        found = room.recall("billing", limit=10, graph=WALK).rows
        assert [row.source for row in found[:4]] == ["keyword"] * 4
        assert [row.content for row in found if row.source == "keyword"] == flat[
            : sum(r.source == "keyword" for r in found)
        ]
        assert "structured" in {row.source for row in found}

    def test_a_boost_raises_what_is_linked_and_finds_it(self, room: StoreRoom, tables: GraphTables) -> None:
        billing = tables.entity("billing")
        linked, plain = room.remember("late fees are due").id, room.remember("invoices of all kinds").id
        tables.mention(linked, billing)
        weak, strong = (msgspec.structs.replace(BOOST, boost=boost) for boost in (0.2, 1.5))
        assert [row.id for row in room.recall("billing invoices", graph=weak).rows] == [plain, linked]
        assert [row.id for row in room.recall("billing invoices", graph=strong).rows] == [linked, plain]
        assert sources(room.recall("billing", graph=BOOST, min_score=0.1)) == {"late fees are due": "graph"}

    def test_filters_scopes_and_forgetting_hold(self, room: StoreRoom, tables: GraphTables) -> None:
        billing = tables.entity("billing")
        rule = stated(room, tables, billing, "never on Friday", type="rule")
        stated(room, tables, billing, "elsewhere", project="/other")
        gone = stated(room, tables, billing, "gone")
        room.ask(ForgetMemory(gone, "test", Principal()))
        filters = Filters(project="/mine", or_no_project=True)
        assert sources(room.recall("billing", graph=WALK, filters=filters)) == {"never on Friday": "structured"}
        assert [row.id for row in room.recall("billing", graph=WALK, filters=Filters(type="rule")).rows] == [rule]

    def test_only_the_graph_of_the_own_agent_is_used(self, room: StoreRoom, tables: GraphTables) -> None:
        room.sync_roster(RosterEntry(name="ann", read_policy="shared"), RosterEntry(name="bob", read_policy="shared"))
        hers = tables.entity("billing", agent="ann")
        stated(room, tables, hers, "stated for all", agent_id="ann")
        ann, bob = ReadScope("ann"), ReadScope("bob")
        assert sources(room.recall("billing", graph=WALK, read=ann)) == {"stated for all": "structured"}
        assert room.recall("billing", graph=WALK, read=bob).rows == []
        assert room.recall("billing", graph=WALK, read=msgspec.structs.replace(ann, user="x")).rows == []
        room.sync_roster(RosterEntry(name="bob", read_policy="shared"))
        assert room.recall("billing", graph=WALK, read=ann).rows == []

    @pytest.mark.parametrize(("limits", "broken"), [(WALK, "walk"), (BOOST, "boosted")])
    def test_an_error_in_the_graph_leaves_the_other_results(
        self, room: StoreRoom, tables: GraphTables, monkeypatch: pytest.MonkeyPatch, limits: Traversal, broken: str
    ) -> None:
        stated(room, tables, tables.entity("billing"), "monthly")
        plain = room.remember("billing is late").id

        def fail(*_: Any) -> None:
            raise KeyError("entity")

        monkeypatch.setattr(f"signet_actors.searcher.graph.stage.{broken}", fail)
        assert [row.id for row in room.recall("billing", graph=limits).rows] == [plain]


class TestBeside:
    def test_constraints_of_what_is_named_surface_those_of_a_person_first(
        self, room: StoreRoom, tables: GraphTables
    ) -> None:
        billing = tables.entity("billing")
        inferred = [
            stated(room, tables, billing, f"inferred {n}", kind="constraint", importance_of=0.9) for n in range(3)
        ]
        named = stated(room, tables, billing, "named", kind="constraint", importance_of=0.2, type="rule")
        pinned = stated(room, tables, billing, "pinned", kind="constraint", importance_of=0.1, pinned=True)
        for number in range(4):
            room.remember(f"billing {number}")
        found = room.recall("billing", graph=WALK, limit=2, beside=True)
        assert [row.source for row in found.rows] == ["keyword"] * 2
        assert [(row.id, row.supplementary) for row in found.beside] == [
            (each, "constraint") for each in (pinned, named, inferred[-1])
        ]
        received = tuple(row.wording for row in found.beside)
        again = room.recall("billing", graph=WALK, limit=2, beside=True, received=received)
        assert [row.id for row in again.beside] == [inferred[1], inferred[0]]
        assert room.recall("billing", graph=WALK, limit=2).beside == []
        assert room.recall("shipping", graph=WALK, limit=2, beside=True).beside == []

    def test_a_constraint_among_the_results_is_not_repeated(self, room: StoreRoom, tables: GraphTables) -> None:
        rule = stated(room, tables, tables.entity("billing"), "billing never on Friday", kind="constraint")
        found = room.recall("billing", graph=WALK, beside=True)
        assert ([row.id for row in found.rows], found.beside) == ([rule], [])

    def test_a_decision_brings_the_reason_of_the_same_aspect(self, room: StoreRoom, tables: GraphTables) -> None:
        entity = tables.entity("storage layer")
        aspect, other = tables.aspect(entity, "decisions"), tables.aspect(entity, "other")
        decision = stated(room, tables, entity, "we went with SQLite", type="decision", aspect=aspect)
        why = stated(room, tables, entity, "because nobody wants to run a server", aspect=aspect)
        stated(room, tables, entity, "it has four tables", aspect=aspect)
        stated(room, tables, entity, "because of the licence", aspect=other)
        found = room.recall("which database went with us? SQLite", graph=BOOST, beside=True)
        assert [row.id for row in found.rows] == [decision]
        assert [(row.id, row.supplementary) for row in found.beside] == [(why, "rationale")]
        limited = ReadScope(user="test")
        room.connection.execute("UPDATE memories SET who = 'test'")
        found = room.recall("which database went with us? SQLite", graph=BOOST, beside=True, read=limited)
        assert ([row.id for row in found.rows], found.beside) == ([decision], [])

    def test_an_entity_is_described_by_its_constraints_and_what_is_asked(
        self, room: StoreRoom, tables: GraphTables
    ) -> None:
        entity = tables.entity("Billing", "project")
        owner = stated(room, tables, entity, "Ann owns it")
        stated(room, tables, entity, "the page is blue")
        rule = stated(room, tables, entity, "never on Friday", kind="constraint")
        stated(room, tables, entity, "hidden by a filter", kind="constraint", project="/other")
        (found,) = room.recall("who owns billing?", graph=WALK, facts=5, filters=Filters(no_project=True)).entities
        assert (found.name, found.entity_type) == ("Billing", "project")
        assert [(fact.memory_id, fact.kind) for fact in found.facts] == [(rule, "constraint"), (owner, "attribute")]
        (plain,) = room.recall("who owns billing?", graph=WALK).entities
        assert (plain.name, plain.facts) == ("Billing", [])


class TestExplained:
    def test_the_path_is_named(self, room: StoreRoom, tables: GraphTables) -> None:
        billing, postgres = tables.entity("Billing"), tables.entity("Postgres")
        own = tables.aspect(billing, "schedule", 0.9)
        stated(room, tables, billing, "invoices go out monthly", aspect=own)
        stated(room, tables, postgres, "port 5433", aspect=tables.aspect(postgres, "location", 0.9))
        tables.dependency(billing, postgres, 0.9, "depends_on")
        found = {row.content: row.explanation for row in room.recall("billing", graph=WALK, explain=True).rows}
        assert found["invoices go out monthly"].path == ["Billing", "schedule", "invoices go out monthly"]
        assert found["port 5433"].path == ["Billing", "depends_on", "Postgres", "location", "port 5433"]
        for why in found.values():
            assert why.base + sum(move.points for move in why.moves) == pytest.approx(why.score, abs=1e-5)

    def test_what_may_not_be_read_has_no_path(self, room: StoreRoom, tables: GraphTables) -> None:
        billing = tables.entity("billing", agent="ann")
        hidden = stated(room, tables, billing, "hers", agent_id="ann", visibility="private")
        found = room.recall("billing", graph=WALK, explain_id=hidden).explained
        assert (found.outcome, found.explanation) == ("not_found", None)


class TestDampening:
    def test_each_stage_moves_its_rows_and_says_so(self, room: StoreRoom, tables: GraphTables) -> None:
        decision = room.remember("tea over coffee", type="decision", vector=[1.0]).id
        hub, rare = tables.entity("signet"), tables.entity("kettle")
        for number in range(10):
            tables.mention(room.remember(f"filler {number}").id, hub)
        about_hub = room.remember("tea for all", vector=[0.9, 0.4]).id
        unlike = room.remember("a hot drink", vector=[1.0, 0.05]).id
        tables.mention(about_hub, hub)
        tables.mention(decision, hub, rare)
        plain = {row.id: row.score for row in room.recall("tea", vector=[1.0], limit=50).rows}

        def moved(**stages: Any) -> dict[str, float]:
            off = Dampening(gravity=False, hub=False, resolution=False)
            found = room.recall("tea", vector=[1.0], limit=50, dampening=msgspec.structs.replace(off, **stages))
            ranks = [row.score for row in found.rows]
            assert ranks == sorted(ranks, reverse=True)
            return {
                row.id: row.score / plain[row.id] for row in found.rows if plain[row.id] and row.score != plain[row.id]
            }

        assert moved(gravity=True)[unlike] == pytest.approx(max(0.3 / plain[unlike], 0.5), abs=1e-3)
        assert moved(hub=True) == {about_hub: pytest.approx(0.7, abs=1e-3)}
        raised = moved(resolution=True)
        assert list(raised) == [decision] or plain[decision] == 1.0
        assert moved() == {}


class TestSessionStart:
    def start(self, room: StoreRoom, **fields: Any) -> list[str]:
        with room.reader.open_snapshot() as view:
            query = FindSessionStart(ReadScope(), room.clock.wall_ms(), graph=WALK, **fields)
            return [memory.content for memory in session_start(room.reader, view, query).constraints]

    def test_constraints_of_the_projects_entity_are_told(self, room: StoreRoom, tables: GraphTables) -> None:
        project, other = tables.entity("webshop", "project"), tables.entity("redis")
        stated(room, tables, project, "inferred", kind="constraint", source="linker")
        stated(room, tables, project, "stated", kind="constraint", importance_of=0.1)
        stated(room, tables, other, "of another", kind="constraint")
        stated(room, tables, project, "of the other project", kind="constraint", project="/elsewhere")
        room.remember("pinned", pinned=True)
        assert self.start(room, project="/home/me/webshop") == ["pinned", "stated", "inferred"]
        assert self.start(room, project="/home/me/shop") == ["pinned"]

    def test_what_the_last_session_was_about_comes_first(self, room: StoreRoom, tables: GraphTables) -> None:
        stated(room, tables, tables.entity("webshop", "project"), "of the project", kind="constraint")
        redis = tables.entity("redis")
        stated(room, tables, redis, "of redis", kind="constraint")
        room.connection.execute(
            'INSERT INTO session_checkpoints (id, session_key, agent_id, project, project_normalized, "trigger",'
            " digest, prompt_count, memory_queries, recent_remembers, ended, created_at, focal_entity_ids)"
            " VALUES ('c', 'before', 'default', '/home/me/webshop', '/home/me/webshop', 'session_end',"
            f" '', 1, '[]', '[]', 1, '2026-01-01T00:00:00.000Z', '[\"{redis}\"]')"
        )
        assert self.start(room, project="/home/me/webshop") == ["of redis"]
        assert self.start(room, project="/home/you/webshop") == ["of the project"]
