"""What the pipeline adds to the graph: relations and facts of a run, their aspects, and what later ones replace.

Source: memory-pipeline.txt "Knowledge Graph", "Structural Classification"; knowledge-graph.txt "Graph Persistence",
"Retroactive Supersession"; wire rules "Graph".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from signet_actors.config.schema import Config
from signet_actors.domain.extraction.facts import EntityTriple
from signet_actors.domain.extraction.proposals import Proposal
from signet_actors.domain.graph.classification import Assignment
from signet_actors.errors import ErrorCode
from signet_actors.features.classification.api import EntityPart, SemanticConflict, StoreClassification
from signet_actors.features.entities.api import MERGE, UNMERGE, ChangeEntityRequest, MergeRequest
from signet_actors.protocol.leases import LeasedJob
from signet_actors.protocol.message import Caller, Principal, message_of
from signet_actors.protocol.pipeline import SettleAttributes
from signet_actors.protocol.writer import ForgetMemory, MemoryPatch, ModifyMemory, RecoverMemory
from signet_actors.writer.commands import graph_pipeline
from tests.support.graph_state import attributes_with, graph_of_contributions, orphans, stored_graph
from tests.support.pipeline_harness import LEASE_MS, PipelineHarness, add, configured, refused, undo_run
from tests.support.store_room import kept_sound

ME = Principal(changed_by="tester")
DAY_MS = 86_400_000
KIND = "structural_classify"
NOOR_USES_VIM = EntityTriple("Noor", "uses", "Vim", 0.9)


def config(*, shadow: bool = False, review: bool = False, graph: bool = True, frozen: bool = False) -> Config:
    base = configured(shadow=shadow)
    pipeline = base.memory.pipeline_v2
    pipeline = msgspec.structs.replace(
        pipeline,
        confirm="review" if review else "auto",
        graph=msgspec.structs.replace(pipeline.graph, enabled=graph),
        autonomous=msgspec.structs.replace(pipeline.autonomous, frozen=frozen),
    )
    return msgspec.structs.replace(base, memory=msgspec.structs.replace(base.memory, pipeline_v2=pipeline))


class GraphHarness(PipelineHarness):
    """``learn`` runs an extraction of a new memory; ``classify`` does the pending job of an entity."""

    def learn(self, *facts: str | Proposal, entities: Any = (NOOR_USES_VIM,), text: str = "", **fields: Any) -> str:
        """Return the id of the run, ``run-N``, of which ``self.source`` is the memory."""
        self.source = self.remember(text or f"A note {self.runs} about {facts}", vector=[1.0], **fields).id
        proposals = [add(fact) if isinstance(fact, str) else fact for fact in facts]
        self.extract(*proposals, entities=entities)
        return f"run-{self.runs}"

    def due(self) -> list[LeasedJob]:
        self.clock.advance(5_000)
        return self.take_all(KIND)

    def classify(self, *aspects: str, kind: str = "attribute", entity_type: str | None = None, **fields: Any) -> Any:
        """Report these aspects for the facts of the one job that is due, in the order of their rows."""
        (job,) = self.due()
        return self.classified(job, *aspects, kind=kind, entity_type=entity_type, **fields)

    def classified(self, job: LeasedJob, *aspects: str, kind: Any = "attribute", **fields: Any) -> Any:
        part = msgspec.json.decode(job.payload or "", type=EntityPart)
        rows = self.connection.execute(
            "SELECT seq, id FROM entity_attributes WHERE entity_id = ? AND aspect_id IS NULL AND seq > ? ORDER BY seq",
            (part.entity, part.after),
        ).fetchall()[: len(aspects)]
        return self.ask(
            StoreClassification(
                job_id=job.id,
                lease_id=job.lease_id,
                attribute_ids=tuple(each for _, each in rows),
                assignments=tuple(Assignment(at, aspect, kind) for at, aspect in enumerate(aspects, 1)),
                through=rows[-1][0] if rows else 0,
                **fields,
            )
        )

    def entity(self, name: str) -> Any:
        return self.connection.execute(
            "SELECT entity_type, mentions FROM entities WHERE canonical_name = ?", (name,)
        ).fetchone()

    def texts(self, status: str = "active") -> list[tuple[str, str]]:
        """Return aspect and content of the attributes with this status."""
        return [(aspect, content) for _, aspect, content, _ in attributes_with(self.connection, status)]

    def superseding(self) -> list[dict[str, Any]]:
        rows = self.connection.execute(
            "SELECT event, metadata FROM memory_history"
            " WHERE event IN ('attribute_superseded', 'supersession_proposal') ORDER BY seq"
        )
        return [{"event": event, **msgspec.json.decode(metadata)} for event, metadata in rows]

    def counted(self) -> tuple[int, ...]:
        tables = ("entities", "relations", "memory_entity_mentions", "entity_attributes", "entity_dependencies")
        return tuple(self.value(f"SELECT count(*) FROM {table}") for table in tables)


@pytest.fixture
def room(tmp_path: Path) -> Iterator[GraphHarness]:
    with kept_sound(GraphHarness(tmp_path, config=config())) as opened:
        yield opened
        opened.reconfigure(config())
        opened.ask(SettleAttributes(limit=1_000))
        assert stored_graph(opened.connection) == graph_of_contributions(opened.connection)
        assert orphans(opened.connection) == []


def test_a_triple_becomes_two_entities_one_relation_and_two_mentions(room: GraphHarness) -> None:
    room.learn(entities=[EntityTriple("Noor  Ali", "works on", "Signet", 0.9)])
    assert (room.entity("noor ali"), room.entity("signet")) == (("extracted", 1), ("extracted", 1))
    relation = room.connection.execute("SELECT relation_type, strength, mentions, confidence FROM relations").fetchall()
    assert relation == [("works_on", 1.0, 1, 0.9)]
    mentions = room.connection.execute("SELECT memory_id, mention_text, confidence FROM memory_entity_mentions")
    assert sorted(mentions) == [(room.source, "Noor Ali", 0.9), (room.source, "Signet", 0.9)]


def test_a_relation_that_two_memories_state_has_their_mean_confidence(room: GraphHarness) -> None:
    room.learn(entities=[NOOR_USES_VIM])
    room.learn(entities=[EntityTriple("noor", "Uses", "VIM", 0.5)])
    assert room.value("SELECT mentions FROM relations") == 2
    assert room.value("SELECT confidence FROM relations") == pytest.approx(0.7)
    assert room.entity("noor") == ("extracted", 2)
    assert room.value("SELECT dependency_type FROM entity_dependencies") == "uses"


def test_a_type_is_set_once_and_only_if_it_is_known(room: GraphHarness) -> None:
    for said, kept in (("deity", "extracted"), ("person", "person"), ("tool", "person")):
        room.learn(entities=[EntityTriple("Noor", "uses", "Vim", 0.9, source_type=said)])
        assert room.entity("noor")[0] == kept


def test_a_name_of_one_character_is_dropped(room: GraphHarness) -> None:
    room.learn(entities=[EntityTriple("Noor", "uses", "C", 0.9), EntityTriple("Go", "is", "fast", 0.9)])
    assert [room.entity(name) for name in ("c", "noor", "go")] == [None, None, ("extracted", 1)]


def test_a_fact_is_linked_to_what_it_names_and_is_an_attribute_of_its_subject(room: GraphHarness) -> None:
    room.learn("Every day Vim is opened by Noor", "The weather was nice that day")
    rows = room.connection.execute(
        "SELECT e.name, a.aspect_id, a.content, a.source, a.kind, m.source_id FROM entity_attributes a"
        " JOIN entities e ON e.id = a.entity_id JOIN memories m ON m.id = a.memory_id"
    ).fetchall()
    assert rows == [("Noor", None, "Every day Vim is opened by Noor", "pipeline", "attribute", room.source)]
    assert (room.entity("noor"), room.entity("vim")) == (("extracted", 2), ("extracted", 2))


def test_a_fact_that_tells_a_decision_is_a_constraint(room: GraphHarness) -> None:
    room.learn("Noor decided to use Vim for all notes")
    assert room.connection.execute("SELECT kind, importance FROM entity_attributes").fetchall() == [
        ("constraint", 0.85)
    ]
    room.classify("decisions")
    assert room.value("SELECT kind FROM entity_attributes") == "constraint", "a model does not make it less"


def test_a_report_that_is_repeated_or_late_adds_nothing(room: GraphHarness) -> None:
    room.remember("Noor uses Vim", vector=[1.0])
    job = room.take()
    report = {"entities": [NOOR_USES_VIM], "run_id": "run"}
    room.report(job, add("Noor uses Vim every day"), **report)
    before = room.counted()
    room.report(job, add("Noor uses Vim every day"), **report)
    late = room.report(job, add("Noor uses Emacs"), run_id="other", entities=[EntityTriple("Noor", "uses", "Emacs", 1)])
    assert refused(late).code is ErrorCode.LEASE_LOST
    assert room.counted() == before
    assert len(room.due()) == 1


@pytest.mark.parametrize("off", [config(shadow=True), config(graph=False), config(review=True)])
def test_nothing_is_added_where_the_pipeline_may_not_write(room: GraphHarness, off: Config) -> None:
    room.reconfigure(off)
    room.learn("Noor uses Vim every day")
    assert room.counted() == (0, 0, 0, 0, 0)


def test_nothing_is_added_for_a_text_that_has_changed_or_was_forgotten(room: GraphHarness) -> None:
    changed, gone = (room.remember(text, vector=[1.0]) for text in ("Noor uses Vim", "Noor uses Vim a lot"))
    first, second = room.take_all()
    room.ask(ModifyMemory(MemoryPatch(changed.id, "it is wrong", content="Noor uses nothing"), ME))
    room.ask(ForgetMemory(gone.id, "it is wrong", ME))
    for job in (first, second):
        room.report(job, add("Noor uses Vim every day"), entities=[NOOR_USES_VIM])
    assert room.counted() == (0, 0, 0, 0, 0)


def test_a_failure_in_the_graph_takes_nothing_from_the_facts(
    room: GraphHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("planted")

    monkeypatch.setattr(graph_pipeline, "_link_fact", fail)
    room.learn("Noor uses Vim every day")
    assert room.counted() == (0, 0, 0, 0, 0)
    assert room.value("SELECT count(*) FROM memories WHERE source_id = ?", room.source) == 1
    assert room.value("SELECT status FROM memory_jobs WHERE job_type = 'extract'") == "completed"
    assert room.value("SELECT count FROM pipeline_counters WHERE name = 'graph.failed'") == 1
    assert room.due() == []


def test_an_entity_has_one_job_for_all_its_facts(room: GraphHarness) -> None:
    room.learn("Noor uses Vim every day", "Noor uses Vim at night")
    room.learn("Noor uses Vim on Sundays")
    (job,) = room.due()
    room.learn("Noor uses Vim on Mondays")
    assert room.due() == []
    room.classified(job, "Habits", "habits", "HABITS ")
    (following,) = room.take_all(KIND)
    room.classified(following, "Habits")
    assert room.due() == []
    assert room.value("SELECT count(*) FROM entity_aspects") == 1
    assert len(room.texts()) == 4


def test_a_fact_that_the_model_leaves_out_is_asked_for_again_only_with_another_one(room: GraphHarness) -> None:
    room.learn("Noor uses Vim every day")
    (job,) = room.due()
    room.ask(StoreClassification(job_id=job.id, lease_id=job.lease_id, through=1_000))
    assert room.due() == []
    room.learn("Noor uses Vim at night")
    room.classify("habits", "habits")
    assert {aspect for aspect, _ in room.texts()} == {"habits"}


def test_a_report_of_a_lost_lease_classifies_nothing(room: GraphHarness) -> None:
    room.learn("Noor uses Vim every day")
    (job,) = room.due()
    room.clock.advance(LEASE_MS + 1)
    assert refused(room.classified(job, "habits")).code is ErrorCode.LEASE_LOST
    assert room.texts() == [("", "Noor uses Vim every day")]


def test_a_classification_that_is_reported_twice_counts_once(room: GraphHarness) -> None:
    room.learn("Noor uses Vim every day")
    (job,) = room.due()
    assert not hasattr(room.classified(job, "habits"), "code")
    assert refused(room.classified(job, "other")).code is ErrorCode.LEASE_LOST
    assert room.texts() == [("habits", "Noor uses Vim every day")]


def test_a_model_says_what_an_entity_is_only_if_nothing_has(room: GraphHarness) -> None:
    room.learn("Noor uses Vim every day")
    room.classify("habits", entity_type="person")
    assert room.entity("noor")[0] == "person"
    room.learn("Noor uses Vim at night")
    room.classify("habits", entity_type="tool")
    assert room.entity("noor")[0] == "person"


def test_a_forgotten_fact_is_not_classified_and_comes_back_unclassified(room: GraphHarness) -> None:
    room.learn("Noor uses Vim every day")
    fact = room.value("SELECT memory_id FROM entity_attributes")
    (job,) = room.due()
    room.ask(ForgetMemory(fact, "it is wrong", ME))
    room.classified(job, "habits")
    assert room.value("SELECT count(*) FROM entity_aspects") == 0
    room.ask(RecoverMemory(fact, "it was right", ME))
    assert room.texts() == [("", "Noor uses Vim every day")]


def settled(room: GraphHarness, *facts: str, days: int = 0) -> None:
    """Learn the facts about Noor one after another, each in the aspect `habits`."""
    for fact in facts:
        room.learn(fact)
        room.clock.advance(days * DAY_MS)
        room.classify("habits")


def test_a_classified_fact_replaces_the_one_that_it_contradicts_and_history_says_so(room: GraphHarness) -> None:
    settled(room, "Noor lives in Denver", "Noor lives in Boulder")
    assert room.texts() == [("habits", "Noor lives in Boulder")]
    assert room.texts("superseded") == [("habits", "Noor lives in Denver")]
    (event,) = room.superseding()
    ids = dict(room.connection.execute("SELECT content, id FROM entity_attributes").fetchall())
    assert event == {
        "event": "attribute_superseded",
        "old_attribute_id": ids["Noor lives in Denver"],
        "new_attribute_id": ids["Noor lives in Boulder"],
        "aspect_id": room.value("SELECT id FROM entity_aspects"),
        "method": "value",
        "confidence": 0.75,
        "reasoning": "the two name different values of the same thing",
    }
    room.ask(SettleAttributes())
    assert len(room.superseding()) == 1


def test_what_was_said_earlier_is_older_even_if_it_is_learned_later(room: GraphHarness) -> None:
    settled(room, "Noor lives in Boulder")
    room.learn("Noor lives in Denver", created_at="2020-01-01T00:00:00.000Z")
    room.classify("habits")
    assert room.texts() == [("habits", "Noor lives in Boulder")]


def test_a_forgotten_fact_gives_back_what_it_replaced_and_a_recovered_one_takes_it_again(room: GraphHarness) -> None:
    settled(room, "Noor lives in Rome", "Noor lives in Oslo", "Noor lives in Bonn")
    newest = room.value("SELECT memory_id FROM entity_attributes WHERE content = 'Noor lives in Bonn'")
    before = stored_graph(room.connection)
    room.ask(ForgetMemory(newest, "it is wrong", ME))
    assert room.texts() == [("habits", "Noor lives in Oslo")]
    room.ask(RecoverMemory(newest, "it was right", ME))
    assert stored_graph(room.connection) == before
    patch = MemoryPatch(newest, "it is wrong", content="Bonn is a city")
    room.ask(ModifyMemory(patch, ME))
    assert room.texts() == [("habits", "Noor lives in Oslo")]


def test_a_merged_entity_has_its_facts_compared_with_those_of_the_other_until_that_is_undone(
    room: GraphHarness,
) -> None:
    settled(room, "Noor lives in Denver")
    room.learn("Noor Ali lives in Boulder", entities=[EntityTriple("Noor Ali", "uses", "Vim", 0.9)])
    room.classify("habits")
    before = room.texts()
    ids = dict(room.connection.execute("SELECT canonical_name, id FROM entities").fetchall())
    merge = message_of(MERGE)(caller=Caller(path={"id": ids["noor ali"]}), request=MergeRequest(into=ids["noor"]))
    room.ask(merge)
    assert room.texts() == [("habits", "Noor Ali lives in Boulder")]
    undo = message_of(UNMERGE)(caller=Caller(path={"id": ids["noor ali"]}), request=ChangeEntityRequest())
    room.ask(undo)
    assert room.texts() == before


def test_constraints_and_pinned_facts_are_not_replaced(room: GraphHarness) -> None:
    room.learn("Noor never uses tabs in reports")
    room.classify("habits", kind="constraint")
    settled(room, "Noor lives in Denver")
    denver = room.value("SELECT memory_id FROM entity_attributes WHERE content LIKE '%Denver'")
    room.ask(ModifyMemory(MemoryPatch(denver, "it matters", pinned=True), ME))
    settled(room, "Noor uses tabs in reports", "Noor lives in Boulder")
    assert len(room.texts()) == 4
    assert room.superseding() == []


@pytest.mark.parametrize("only_proposes", [config(shadow=True), config(frozen=True), config(review=True)])
def test_where_the_pipeline_only_proposes_the_sweep_writes_one_proposal_and_no_status(
    room: GraphHarness, only_proposes: Config
) -> None:
    settled(room, "Noor uses Vim at home")
    room.learn("Noor uses Emacs at work")
    room.reconfigure(only_proposes)
    room.classify("habits")
    for _ in range(3):
        room.ask(SettleAttributes())
    assert [event["event"] for event in room.superseding()] == ["supersession_proposal"]
    assert len(room.texts()) == 2


def test_what_a_model_finds_holds_while_the_newer_fact_is_there(room: GraphHarness) -> None:
    settled(room, "Noor stores the orders in PostgreSQL tables")
    room.learn("Noor keeps the orders within MongoDB tables")
    older, newer = (each for (each,) in room.connection.execute("SELECT id FROM entity_attributes ORDER BY seq"))
    (job,) = room.due()
    room.classified(job, "habits", conflicts=(SemanticConflict(older, newer, 0.9),))
    (event,) = room.superseding()
    assert (event["method"], event["confidence"]) == ("semantic", 0.9)
    memories = [each for (each,) in room.connection.execute("SELECT memory_id FROM entity_attributes ORDER BY seq")]
    for memory in (*memories, memories[1], memories[0]):
        room.ask(ForgetMemory(memory, "it is wrong", ME))
        room.ask(SettleAttributes())
        room.ask(RecoverMemory(memory, "it was right", ME))
        assert room.texts() == [("habits", "Noor keeps the orders within MongoDB tables")]
    room.ask(ForgetMemory(memories[1], "it is wrong", ME))
    assert room.texts() == [("habits", "Noor stores the orders in PostgreSQL tables")]
    room.ask(RecoverMemory(memories[1], "it was right", ME))


def test_an_undone_run_takes_back_what_it_added_and_leaves_what_was_there(room: GraphHarness) -> None:
    settled(room, "Noor lives in Denver")
    before = stored_graph(room.connection)
    found = [NOOR_USES_VIM, EntityTriple("Noor", "owns", "Lamp", 0.8)]
    run = room.learn("Noor lives in Boulder", entities=found, text="Someone has moved and owns something")
    room.classify("habits")
    assert room.entity("lamp") == ("extracted", 1)
    room.ask(undo_run(run, ME))
    assert stored_graph(room.connection) == before
    assert room.entity("lamp") is None
    assert room.texts() == [("habits", "Noor lives in Denver")]


def test_a_short_memory_is_the_fact_itself_and_an_undo_takes_only_what_the_run_made_of_it(room: GraphHarness) -> None:
    settled(room, "Noor lives in Denver")
    before = attributes_with(room.connection, "active")
    run = room.learn("Noor lives in Boulder", text="Noor lives in Boulder.")
    assert room.value("SELECT count(*) FROM memories WHERE content LIKE '%Boulder%'") == 1
    room.classify("places")
    room.learn("Noor lives in Bonn", text="Noor lives in Bonn")
    room.classify("places")
    assert dict(room.texts()) == {
        "habits": "Noor lives in Denver",
        "places": "Noor lives in Bonn",
    }
    room.ask(undo_run(f"run-{room.runs}", ME))
    assert ("places", "Noor lives in Boulder") in room.texts()
    room.ask(undo_run(run, ME))
    assert attributes_with(room.connection, "active") == before
    assert room.value("SELECT count(*) FROM memories WHERE is_deleted = 0 AND content LIKE '%in B%'") == 2


def test_a_run_that_finds_the_same_again_adds_no_second_attribute_to_a_classified_one(room: GraphHarness) -> None:
    room.learn("Noor lives in Denver", text="Noor lives in Denver")
    room.classify("places")
    for content in ("Noor lives elsewhere", "Noor lives in Denver"):
        room.ask(ModifyMemory(MemoryPatch(room.source, "it is wrong", content=content), ME))
        room.extract(add(content), entities=[NOOR_USES_VIM])
        room.classify("places")
    other = room.value("SELECT max(seq) FROM memory_jobs")
    room.connection.execute(
        "INSERT INTO memory_jobs (id, job_type, memory_id, max_attempts, created_at, updated_at)"
        " VALUES ('again', 'extract', ?, 3, '2026', '2026')",
        (room.source,),
    ).fetchall()
    room.extract(add("Noor lives in Denver"), entities=[NOOR_USES_VIM])
    assert room.texts() == [("places", "Noor lives in Denver")]
    assert room.value("SELECT count(*) FROM memory_jobs WHERE seq > ? AND job_type = ?", other, KIND) == 0


def test_an_undone_run_keeps_what_its_memory_said_before_and_what_a_later_run_found(room: GraphHarness) -> None:
    room.learn(entities=[NOOR_USES_VIM])
    run = room.learn(text="Noor is here", entities=[EntityTriple("Noor", "likes", "Lamp", 0.8)])
    source = room.source
    room.ask(ModifyMemory(MemoryPatch(source, "it is wrong", content="Noor is there"), ME))
    room.extract(entities=[EntityTriple("Noor", "likes", "Lamp", 0.8)])
    before = stored_graph(room.connection)
    room.ask(undo_run(run, ME))
    assert stored_graph(room.connection) == before
