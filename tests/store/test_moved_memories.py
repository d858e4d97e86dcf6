"""A memory that moves to another project takes along what was made of it, and is unique there, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from signet_actors.domain.memories import MOVED_WITH
from signet_actors.features.runs.api import UndoReply
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Principal
from signet_actors.protocol.pipeline import ApproveProposal
from signet_actors.protocol.writer import (
    ForgetMany,
    ForgetMemory,
    ForgetTarget,
    ManyModified,
    MemoryPatch,
    Modified,
    ModifyMany,
    ModifyMemory,
    NewMemory,
    PurgeStep,
    RecoverMemory,
    RememberChunks,
)
from signet_actors.writer.check import check_database
from tests.store.test_aggregate_answers import save
from tests.support.pipeline_harness import PipelineHarness, add, change, configured, undo_run

HERE, THERE = "/srv/here", "/srv/there"
LATER = "2100-01-01T00:00:00.000Z"
ME = Principal(changed_by="ada", actor_type="operator")


@pytest.fixture
def room(tmp_path: Path) -> Iterator[PipelineHarness]:
    room = PipelineHarness(tmp_path, config=configured(allow_update_delete=True))
    yield room
    room.close()
    assert check_database(room.path, deep=True).findings == []


def move(room: PipelineHarness, memory_id: str, project: str | None, **fields: Any) -> Modified:
    answer = room.ask(ModifyMemory(MemoryPatch(memory_id, "sorted", project=project, **fields), ME))
    assert isinstance(answer, Modified), answer
    return answer


def project_of(room: PipelineHarness, memory_id: str) -> str | None:
    project: str | None = room.memory(memory_id, "project")[0]
    return project


def with_facts(room: PipelineHarness) -> tuple[str, list[str]]:
    source = room.remember("The ferry is blue and leaves at noon", project=HERE)
    facts = room.extract(add("The ferry is painted blue"), add("The ferry leaves at noon"))
    return source.id, [str(fact.memory_id) for fact in facts]


def test_a_move_is_a_change_with_a_version_and_a_history(room: PipelineHarness) -> None:
    stored = room.remember("The ferry is blue", project=HERE)
    assert move(room, stored.id, HERE).status == "no_changes"
    assert move(room, stored.id, THERE, if_version=2).status == "version_conflict"
    moved = move(room, stored.id, THERE, if_version=1)
    assert (moved.status, moved.new_version, moved.content_changed) == ("updated", 2, False)
    assert move(room, stored.id, None, if_version=2).status == "updated"
    assert room.memory(stored.id, "project, version, updated_by") == (None, 3, "ada")
    changes = [event["metadata"] for event in room.events(stored.id) if event["event"] == "updated"]
    assert [(change["before"], change["after"]) for change in changes] == [
        ({"project": HERE}, {"project": THERE}),
        ({"project": THERE}, {"project": None}),
    ]


def test_a_text_that_the_project_has_already_stays_where_it_is(room: PipelineHarness) -> None:
    one, other = room.remember("The ferry is blue", project=HERE), room.remember("The ferry is blue.", project=THERE)
    refused = move(room, one.id, THERE)
    assert (refused.status, refused.duplicate_memory_id) == ("duplicate_in_project", other.id)
    assert (project_of(room, one.id), room.memory(one.id, "version")) == (HERE, (1,))
    assert move(room, one.id, THERE, content="The ferry is blue now").status == "updated"
    assert move(room, one.id, HERE, content="The FERRY is blue").status == "updated"
    room.ask(ForgetMemory(other.id, "r", ME))
    assert move(room, one.id, THERE).status == "updated"
    assert room.ask(RecoverMemory(other.id, "r", ME)).status == "duplicate_content_hash"


def test_what_was_remembered_there_again_is_the_memory_that_moved(room: PipelineHarness) -> None:
    one = room.remember("The ferry is blue", project=HERE)
    move(room, one.id, THERE)
    assert room.remember("The ferry is blue", project=THERE).id == one.id
    assert room.remember("The ferry is blue", project=HERE).id != one.id


def test_an_idempotency_key_stays_with_one_memory_of_the_project(room: PipelineHarness) -> None:
    one = room.remember("The ferry is blue", project=HERE, idempotency_key="k")
    other = room.remember("The crane is red", project=THERE, idempotency_key="k")
    gone = room.remember("The quay is long", idempotency_key="k")
    room.ask(ForgetMemory(gone.id, "r", ME))
    assert move(room, one.id, None).status == "updated"
    assert [room.memory(each.id, "idempotency_key")[0] for each in (one, other, gone)] == ["k", "k", None]
    assert move(room, one.id, THERE).status == "updated"
    assert [room.memory(each.id, "idempotency_key")[0] for each in (one, other)] == [None, "k"]
    assert room.remember("whatever", project=THERE, idempotency_key="k").id == other.id
    move(room, one.id, HERE)
    assert room.memory(one.id, "idempotency_key") == ("k",), "it is free there"
    assert room.remember("whatever", project=HERE, idempotency_key="k").id == one.id
    move(room, other.id, HERE)
    assert room.memory(other.id, "idempotency_key") == (None,)
    room.ask(ForgetMemory(one.id, "r", ME))
    move(room, other.id, None)
    move(room, other.id, HERE)
    assert room.remember("whatever", project=HERE, idempotency_key="k").id == other.id


def test_the_facts_of_a_memory_move_with_it_and_back(room: PipelineHarness) -> None:
    source, facts = with_facts(room)
    assert move(room, source, THERE).moved_with == facts
    assert move(room, source, None).moved_with == facts
    back = move(room, source, HERE)
    assert (back.moved_with, {project_of(room, fact) for fact in facts}) == (facts, {HERE})
    forgotten = room.ask(ForgetMemory(source, "r", ME))
    assert forgotten.facts == facts, "a move is no change of what they say"


def purge_history(room: PipelineHarness) -> None:
    while room.ask(PurgeStep(step="history", cutoff=LATER, limit=500)).count:
        pass


def moved_by_hand(room: PipelineHarness, source: str, facts: list[str]) -> None:
    for fact in facts:
        move(room, fact, THERE)
    assert move(room, source, THERE).moved_with == []


def moved_in_one_batch(room: PipelineHarness, source: str, facts: list[str]) -> None:
    room.ask(ModifyMany(tuple(MemoryPatch(each, "r", project=THERE) for each in (source, *facts)), ME))


def moved_alone(room: PipelineHarness, source: str, facts: list[str]) -> None:
    for fact in facts:
        move(room, fact, THERE)
    assert project_of(room, source) == HERE


def moved_with_it(room: PipelineHarness, source: str, facts: list[str]) -> None:
    assert move(room, source, THERE).moved_with == facts


def recovered(room: PipelineHarness, source: str, facts: list[str]) -> None:
    for each in (source, facts[0]):
        room.ask(ForgetMemory(each, "r", ME))
        room.ask(RecoverMemory(each, "r", ME))


@pytest.mark.parametrize("purged", [False, True])
@pytest.mark.parametrize("how", [moved_by_hand, moved_in_one_batch, moved_alone, moved_with_it, recovered])
def test_what_only_moved_or_came_back_is_forgotten_with_its_source(
    room: PipelineHarness, how: Any, purged: bool
) -> None:
    source, facts = with_facts(room)
    how(room, source, facts)
    if purged:
        purge_history(room)
        assert [room.events(each) for each in (source, *facts)] == [[], [], []]
    assert room.ask(ForgetMemory(source, "r", ME)).facts == facts
    assert room.ask(RecoverMemory(source, "r", ME)).facts == facts
    (erased,) = room.ask(ForgetMany((ForgetTarget(source),), "r", ME, hard=True)).results
    assert (erased.status, erased.facts) == ("deleted", facts)


def test_a_reason_is_no_proof_that_nobody_changed_a_fact(room: PipelineHarness) -> None:
    source, facts = with_facts(room)
    room.ask(ModifyMemory(MemoryPatch(facts[0], MOVED_WITH, tags=("ops",)), ME))
    room.ask(ModifyMemory(MemoryPatch(facts[1], MOVED_WITH, project=THERE, importance=0.1), ME))
    assert room.ask(ForgetMemory(source, "r", ME)).facts == []


def test_a_fact_in_a_project_that_a_caller_may_not_read_is_neither_forgotten_nor_named(room: PipelineHarness) -> None:
    source, facts = with_facts(room)
    move(room, facts[0], THERE)
    limited = ReadScope(project=HERE)
    assert room.ask(ForgetMemory(source, "r", ME, read=limited)).facts == facts[1:]
    assert room.memory(facts[0], "is_deleted") == (0,)
    room.ask(RecoverMemory(source, "r", ME))
    (erased,) = room.ask(ForgetMany((ForgetTarget(source),), "r", ME, hard=True, read=limited)).results
    assert (erased.status, erased.facts) == ("deleted", facts[1:])
    assert room.memory(facts[0], "is_deleted") == (0,)


def test_a_forgotten_fact_is_recovered_in_the_project_of_its_source(room: PipelineHarness) -> None:
    source, facts = with_facts(room)
    room.ask(ForgetMemory(facts[0], "r", ME))
    assert move(room, source, THERE).moved_with == facts[1:]
    assert (project_of(room, facts[0]), room.memory(facts[0], "is_deleted")) == (THERE, (1,))
    room.clock.advance(1000)
    room.ask(ForgetMemory(source, "r", ME))
    assert room.ask(RecoverMemory(source, "r", ME)).facts == facts[1:], "it was forgotten before its source"
    assert room.ask(RecoverMemory(facts[0], "r", ME)).status == "recovered"
    assert {project_of(room, fact) for fact in facts} == {THERE}


def a_run(room: PipelineHarness) -> tuple[str, str, list[str]]:
    """Return a run, its source, and what it made, changed and deleted."""
    changed = room.remember("The ferry is green", project=HERE, vector=[1.0]).id
    deleted = room.remember("The ferry leaves at dawn", project=HERE, vector=[1.0]).id
    source = room.remember("The ferry is blue and leaves at noon", project=HERE, vector=[1.0]).id
    jobs = {job.memory_id: job for job in (room.take() for _ in range(3))}
    for other in (changed, deleted):
        room.report(jobs[other])
    proposals = (
        add("The ferry leaves at noon"),
        change("update", "The ferry is painted blue", (changed, 1)),
        change("delete", "The ferry leaves at noon", (deleted, 1)),
    )
    answer = room.report(jobs[source], *proposals)
    assert [result.outcome for result in answer.results] == ["created", "updated", "deleted"]
    return answer.run_id, source, [str(result.memory_id) for result in answer.results]


def test_a_run_is_undone_where_its_memories_moved(room: PipelineHarness) -> None:
    run, source, (made, changed, deleted) = a_run(room)
    assert move(room, source, THERE).moved_with == [made]
    for project in (THERE, None, THERE):
        move(room, changed, project)
    undone = room.ask(undo_run(run, ME)).read(UndoReply)
    assert [result.status for result in undone.results] == ["undone"] * 3, undone.results
    assert room.memory(made, "is_deleted, project") == (1, THERE)
    assert room.memory(changed, "content, project") == ("The ferry is green", THERE)
    assert room.memory(deleted, "is_deleted, project") == (0, HERE)


def test_an_undo_keeps_what_was_changed_beside_its_move(room: PipelineHarness) -> None:
    run, source, (made, changed, deleted) = a_run(room)
    move(room, source, THERE)
    move(room, made, None, tags=("ops",))
    move(room, changed, THERE)
    move(room, changed, None, importance=0.1)
    room.ask(RecoverMemory(deleted, "r", ME))
    room.ask(ForgetMemory(deleted, "r", ME))
    undone = room.ask(undo_run(run, ME)).read(UndoReply)
    assert [(result.status, result.reason) for result in undone.results] == [("kept", "changed_since")] * 3


def test_a_purged_history_does_not_hide_that_a_fact_came_back(room: PipelineHarness) -> None:
    run, source, (made, _, _) = a_run(room)
    move(room, source, THERE)
    room.ask(ForgetMemory(made, "r", ME))
    room.ask(RecoverMemory(made, "r", ME))
    purge_history(room)
    undone = room.ask(undo_run(run, ME)).read(UndoReply)
    assert (undone.results[0].status, undone.results[0].reason) == ("kept", "changed_since")


def test_an_addition_is_undone_after_its_history_was_purged(room: PipelineHarness) -> None:
    run, source, _ = a_run(room)
    move(room, source, THERE)
    purge_history(room)
    undone = room.ask(undo_run(run, ME)).read(UndoReply)
    assert [(result.status, result.reason) for result in undone.results] == [
        ("undone", None),
        ("kept", "history_purged"),
        ("undone", None),
    ]


@pytest.mark.parametrize(
    ("moves", "status"), [((True, True), "approved"), ((True, False), "other_scope"), ((False, True), "other_scope")]
)
def test_a_proposal_is_approved_where_both_of_its_memories_are(
    room: PipelineHarness, moves: tuple[bool, bool], status: str
) -> None:
    target = room.remember("The ferry is green", project=HERE, vector=[1.0]).id
    room.report(room.take())
    source = room.remember("The ferry is blue now", project=HERE, vector=[1.0]).id
    proposal = change("update", "The ferry is not green", (target, 1), contradiction=True)
    (waiting,) = room.report(room.take(), proposal).results
    assert waiting.outcome == "review"
    for memory, is_moved in zip((source, target), moves, strict=True):
        if is_moved:
            move(room, memory, THERE)
    proposal_id = room.value("SELECT id FROM memory_proposals WHERE target_id = ?", target)
    assert room.ask(ApproveProposal(proposal_id, ME)).status == status


def test_a_fact_that_was_changed_or_that_is_known_there_stays(room: PipelineHarness) -> None:
    source, facts = with_facts(room)
    room.ask(ModifyMemory(MemoryPatch(facts[0], "mine", tags=("ops",)), ME))
    room.remember("The ferry leaves at noon", project=THERE)
    assert move(room, source, THERE).moved_with == []
    assert {project_of(room, fact) for fact in facts} == {HERE}


def test_many_memories_move_at_once_each_by_its_own_patch(room: PipelineHarness) -> None:
    source, facts = with_facts(room)
    twin = room.remember("The crane is red", project=HERE)
    room.remember("The crane is red", project=THERE)
    patches = [MemoryPatch(each, "r", project=THERE, if_version=1) for each in (source, *facts, twin.id)]
    answer = room.ask(ModifyMany(tuple(patches), ME))
    assert isinstance(answer, ManyModified)
    assert [done.status for done in answer.results] == [*["updated"] * 3, "duplicate_in_project"]
    assert answer.results[0].moved_with == []


def test_a_part_of_a_long_text_names_those_that_stay(room: PipelineHarness) -> None:
    chunks = ("one part.", "another part.", "a last part.")
    parts = room.ask(RememberChunks(NewMemory("\n".join(chunks), "fact", 0.8, project=HERE), chunks, ME)).ids
    assert move(room, parts[0], THERE).parts == parts[1:]
    assert move(room, parts[1], THERE).parts == parts[2:]


def test_an_answer_is_of_the_project_that_all_its_sources_have(room: PipelineHarness) -> None:
    one, two = room.remember("one", project=HERE), room.remember("two", project=HERE)
    saved, forgotten = save(room, one, two), save(room, one, text="forgotten answer")
    room.ask(ForgetMemory(str(forgotten.id), "r", ME))
    move(room, one.id, THERE)
    assert (project_of(room, str(saved.id)), project_of(room, str(forgotten.id))) == (None, THERE)
    limited = ReadScope(project=HERE)
    assert room.ask(ModifyMemory(MemoryPatch(str(saved.id), "r", pinned=True), ME, limited)).status == "not_found"
    room.remember("The answer", project=THERE)
    move(room, two.id, THERE)
    assert room.memory(str(saved.id), "project, is_deleted") == (THERE, 1), "the project says it already"
    move(room, two.id, HERE)
    assert room.memory(str(saved.id), "project, is_deleted") == (None, 0), "its own words stand nowhere else now"
    move(room, one.id, HERE)
    assert room.memory(str(saved.id), "project, is_deleted") == (HERE, 0)
    assert room.memory(str(forgotten.id), "project, is_deleted") == (HERE, 1), "somebody forgot it"


def test_a_memory_outside_of_the_limits_of_a_caller_is_not_found(room: PipelineHarness) -> None:
    one = room.remember("The ferry is blue", project=HERE)
    patch = MemoryPatch(one.id, "r", project=THERE)
    assert room.ask(ModifyMemory(patch, ME, ReadScope(project=THERE))).status == "not_found"
    assert project_of(room, one.id) == HERE
