"""A model's reason may quote the memories that it was shown: the reason is erased with the first of them, hidden while
one is forgotten, and not stored if one was erased before.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from signet_actors.domain.extraction.facts import EntityTriple, Fact
from signet_actors.domain.extraction.proposals import MAX_CANDIDATES, Proposal
from signet_actors.errors import ErrorCode
from signet_actors.features.reviews.api import LIST_REVIEWS, ListReviewsRequest
from signet_actors.features.reviews.reads import listed
from signet_actors.features.runs.api import ProposalReport
from signet_actors.protocol.leases import FailJob
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Principal, message_of
from signet_actors.protocol.pipeline import ApproveProposal, HeldLease, ReleaseJobs
from signet_actors.protocol.searcher import GetHistory
from signet_actors.protocol.writer import ForgetMany, ForgetMemory, ForgetTarget, PurgeStep, RecoverMemory
from signet_actors.searcher.queries.memories import get_history
from tests.store.test_apply_proposals import everywhere
from tests.support.pipeline_harness import PipelineHarness, add, change, configured, refused, run_of
from tests.support.store_room import kept_sound, plan_of

ME = Principal(changed_by="mira", actor_type="operator")
CANARY = "wolverine"
LATER = "2100-01-01T00:00:00.000Z"


@pytest.fixture
def room(tmp_path: Path) -> Iterator[PipelineHarness]:
    with kept_sound(PipelineHarness(tmp_path, config=configured(allow_update_delete=True))) as room:
        yield room


def said(action: Any, content: str, reason: str, target: tuple[str, int] | None = None) -> Proposal:
    proposal = add(content) if target is None else change(action, content, target, contradiction=True)
    return msgspec.structs.replace(proposal, action=action, reason=reason)


def decided(room: PipelineHarness) -> tuple[str, str, str]:
    """``(secret, other, source)``: of three reasons two were given in sight of the secret, and quote it."""
    secret = room.remember(f"The code word is {CANARY}", vector=[1.0]).id
    other = room.remember("The build uses Make", vector=[1.0]).id
    source = room.remember("We have moved the build", vector=[1.0]).id
    for _ in range(2):
        room.report(room.take())
    answer = room.report(
        room.take(),
        said("none", "The build moved", f"nothing to do with the {CANARY}"),
        said("update", "The build does not use Make", f"{CANARY} is another thing", (other, 1)),
        said("add", "Builds take four minutes", "not stored yet"),
        run_id="run",
        shown=((secret, other), (other, secret), (other,)),
    )
    assert [result.outcome for result in answer.results] == ["recorded", "review", "created"]
    return secret, other, source


def erase(room: PipelineHarness, *ids: str) -> None:
    answer = room.ask(ForgetMany(targets=tuple(map(ForgetTarget, ids)), reason="r", principal=ME, hard=True))
    assert [result.status for result in answer.results] == ["deleted"] * len(ids)


def forget(room: PipelineHarness, memory_id: str) -> None:
    assert room.ask(ForgetMemory(id=memory_id, reason="r", principal=ME)).status == "deleted"


def proposals(room: PipelineHarness) -> list[ProposalReport]:
    with room.reader.open_snapshot() as view:
        return run_of(view, "run").proposals


def relations(room: PipelineHarness) -> list[str]:
    with room.reader.open_snapshot() as view:
        return [one.source for one in run_of(view, "run").entities]


def trail(room: PipelineHarness, memory_id: str) -> list[str]:
    with room.reader.open_snapshot() as view:
        events = get_history(view, GetHistory(memory_id, ReadScope())).events
    assert events is not None
    return [str(event) for event in events]


def rationales(room: PipelineHarness) -> list[str | None]:
    return [row[0] for row in room.connection.execute("SELECT rationale FROM memory_proposals ORDER BY ordinal")]


def reasons_in_history(room: PipelineHarness) -> list[str | None]:
    return [
        row[0]
        for row in room.connection.execute(
            "SELECT h.metadata ->> '$.decisionReason' FROM memory_proposals p"
            " JOIN memory_history h ON h.id = p.history_id ORDER BY p.ordinal"
        )
    ]


def test_erasing_a_memory_erases_every_reason_that_may_quote_it_and_no_other(room: PipelineHarness) -> None:
    secret, _, _ = decided(room)
    assert {"memories", "memory_proposals", "memory_history"} <= set(everywhere(room, CANARY))
    assert reasons_in_history(room) == rationales(room)
    erase(room, secret)
    assert everywhere(room, CANARY) == []
    assert rationales(room) == reasons_in_history(room) == [None, None, "not stored yet"]
    assert [row.fact_content for row in proposals(room)] == [
        "The build moved",
        "The build does not use Make",
        "Builds take four minutes",
    ], "facts were taken from the source alone"


def test_the_purge_of_a_tombstone_erases_such_reasons_too(room: PipelineHarness) -> None:
    secret, _, _ = decided(room)
    forget(room, secret)
    for step in ("graph_links", "embeddings", "tombstones"):
        room.ask(PurgeStep(step, LATER, 500))
    assert everywhere(room, CANARY) == []
    assert rationales(room) == [None, None, "not stored yet"]


def changed(room: PipelineHarness) -> tuple[str, list[str]]:
    """``(secret, memories)``: two memories that a run made and updated, each for a reason that quotes the secret."""
    secret = room.remember(f"The code word is {CANARY}", vector=[1.0]).id
    other = room.remember("The build uses Make", vector=[1.0]).id
    room.remember("We have moved the build", vector=[1.0])
    for _ in range(2):
        room.report(room.take())
    update = change("update", "The build uses Bazel", (other, 1))
    answer = room.report(
        room.take(),
        said("add", "Builds take four minutes", f"no {CANARY} says so"),
        msgspec.structs.replace(update, reason=f"{CANARY} is another thing"),
        run_id="run",
        shown=((secret,), (other, secret)),
    )
    assert [result.outcome for result in answer.results] == ["created", "updated"]
    return secret, [str(result.memory_id) for result in answer.results]


def test_the_reason_in_a_history_event_is_erased_with_the_quoted_memory(room: PipelineHarness) -> None:
    secret, memories = changed(room)
    assert [CANARY in trail(room, memory)[-1] for memory in memories] == [True, True]
    forget(room, secret)
    assert [CANARY in str(trail(room, memory)) for memory in memories] == [False, False]
    room.ask(RecoverMemory(id=secret, reason="r", principal=ME))
    assert [CANARY in trail(room, memory)[-1] for memory in memories] == [True, True]
    erase(room, secret)
    assert everywhere(room, CANARY) == []
    reasons = [row[0] for row in room.connection.execute("SELECT reason FROM memory_history WHERE reason IS NOT NULL")]
    assert reasons == ["r"], "only the reason that was given for the erasure itself"


def test_a_review_without_its_reason_can_still_be_decided(room: PipelineHarness) -> None:
    secret, other, _ = decided(room)
    erase(room, secret)
    (waiting,) = (row.id for row in proposals(room) if row.review_state == "pending")
    assert room.ask(ApproveProposal(waiting, ME)).status == "approved"
    assert room.memory(other, "content") == ("The build does not use Make",)


def test_a_reason_that_may_quote_a_memory_erased_meanwhile_is_not_stored(room: PipelineHarness) -> None:
    secret = room.remember(f"The code word is {CANARY}", vector=[1.0]).id
    other = room.remember("The build uses Make", vector=[1.0]).id
    room.remember("We have moved the build", vector=[1.0])
    for _ in range(2):
        room.report(room.take())
    job = room.take()
    erase(room, secret)
    room.report(
        job,
        said("add", "The build moved", f"nothing to do with the {CANARY}"),
        said("delete", "There is no code word", f"{CANARY} is over", (secret, 1)),
        said("none", "The build uses Make", "it says so"),
        run_id="run",
        shown=((other, secret), (), (other,)),
    )
    assert everywhere(room, CANARY) == []
    assert rationales(room) == reasons_in_history(room) == [None, None, "it says so"]


def test_a_reason_is_hidden_while_a_quoted_memory_is_forgotten(room: PipelineHarness) -> None:
    secret, _, source = decided(room)
    before = proposals(room)
    forget(room, secret)
    assert [row.rationale for row in proposals(room)] == [None, None, "not stored yet"]
    with room.reader.open_snapshot() as view:
        (item,) = listed(view, message_of(LIST_REVIEWS)(request=ListReviewsRequest())).items
    assert (item.rationale, item.fact_content) == (None, "The build does not use Make")
    assert [CANARY in event for event in trail(room, source)] == [False] * 3
    room.ask(RecoverMemory(id=secret, reason="r", principal=ME))
    assert proposals(room) == before
    assert [CANARY in event for event in trail(room, source)].count(True) == 2


def test_proposals_of_a_forgotten_source_are_neither_shown_nor_applied(
    room: PipelineHarness,
) -> None:
    _, other, source = decided(room)
    before = proposals(room)
    forget(room, source)
    assert [(row.fact_content, row.rationale) for row in proposals(room)] == [(None, None)] * 3
    with room.reader.open_snapshot() as view:
        (item,) = listed(view, message_of(LIST_REVIEWS)(request=ListReviewsRequest())).items
    assert (item.fact_content, item.rationale) == (None, None)
    assert room.ask(ApproveProposal(item.id, ME)).status == "source_gone"
    assert room.memory(other, "version") == (1,)
    room.ask(RecoverMemory(id=source, reason="r", principal=ME))
    assert proposals(room) == before
    assert room.ask(ApproveProposal(item.id, ME)).status == "approved"


def test_no_event_or_relation_shows_the_text_of_a_forgotten_source(room: PipelineHarness) -> None:
    other = room.remember("The build uses Make", vector=[1.0]).id
    source = room.remember(f"The {CANARY} has ended the use of Make", vector=[1.0]).id
    room.report(room.take())
    quoting = change("delete", f"The {CANARY} uses no Make", (other, 1))
    quoting = msgspec.structs.replace(quoting, reason=f"the {CANARY} says so")
    found = EntityTriple(CANARY, "ended", "Make", 0.9)
    answer = room.report(room.take(), quoting, run_id="run", shown=((other,),), entities=[found])
    assert [result.outcome for result in answer.results] == ["deleted"]
    room.ask(RecoverMemory(id=other, reason="r", principal=ME))
    before = (trail(room, other), relations(room))
    assert [CANARY in event for event in before[0]] == [False, True, False]
    assert before[1] == [CANARY]
    forget(room, source)
    assert [CANARY in event for event in trail(room, other)] == [False] * 3
    assert relations(room) == []
    room.ask(RecoverMemory(id=source, reason="r", principal=ME))
    assert (trail(room, other), relations(room)) == before


def test_a_fact_is_hidden_while_its_memory_is_forgotten(room: PipelineHarness) -> None:
    decided(room)
    made = proposals(room)[2].result_memory_id
    assert made is not None
    forget(room, made)
    assert [row.fact_content is None for row in proposals(room)] == [False, False, True]


def test_the_error_of_a_job_is_erased_with_its_memory(room: PipelineHarness) -> None:
    words = f"the server has never heard of a {CANARY}"
    erased = [room.remember(f"The {CANARY} of room {number}", vector=[1.0]).id for number in range(3)]
    dead, late, returned = room.take_all()
    room.connection.execute("UPDATE memory_jobs SET attempts = max_attempts WHERE id = ?", (dead.id,))
    assert room.ask(FailJob(dead.id, dead.lease_id, words)).state == "dead"
    assert everywhere(room, "never heard of") == ["memory_jobs"]
    erase(room, *erased)
    room.ask(FailJob(late.id, late.lease_id, words))
    room.ask(ReleaseJobs((HeldLease(returned.id, returned.lease_id),), words))
    assert everywhere(room, CANARY) == []
    assert room.value("SELECT error FROM memory_jobs WHERE status = 'dead'") == "the memory was erased"


def test_rows_to_erase_are_found_by_index(room: PipelineHarness) -> None:
    secret, _, _ = decided(room)
    changes: list[str] = []

    def note(_cursor: Any, sql: str, _bindings: Any) -> bool:
        changes.append(sql)
        return True

    room.connection.exec_trace = note
    erase(room, secret)
    room.connection.exec_trace = None
    tables = ("memory_proposals", "memory_history", "shown_memories", "memory_jobs")
    changes = [sql for sql in changes if sql.startswith(("UPDATE", "DELETE")) and any(name in sql for name in tables)]
    assert len(changes) >= 8
    for sql in changes:
        plan = plan_of(room.connection, sql)
        assert not [step for step in plan if step.startswith("SCAN")], (sql, plan)


@pytest.mark.parametrize("shown", [((),), (tuple(f"m{n}" for n in range(MAX_CANDIDATES + 1)), ())])
def test_an_incomplete_list_of_shown_memories_is_refused(room: PipelineHarness, shown: Any) -> None:
    room.remember("We have moved the build", vector=[1.0])
    job = room.take()
    answer = refused(room.report(job, add("One fact of it"), add("Another fact of it"), shown=shown))
    assert (answer.code, answer.field) == (ErrorCode.INVALID_REQUEST, "shown")


def test_the_list_of_shown_memories_is_purged_with_its_run(room: PipelineHarness) -> None:
    decided(room)
    assert room.value("SELECT count(*) FROM shown_memories") == 5
    room.ask(PurgeStep("pipeline_runs", LATER, 500))
    assert room.value("SELECT count(*) FROM shown_memories") == 0


def test_a_fact_without_candidates_keeps_its_reason(room: PipelineHarness) -> None:
    room.remember("We have moved the build", vector=[1.0])
    room.extract(Proposal("add", Fact("The build moved", "fact", 0.9), 0.9, "nothing is known"), shown=((),))
    assert rationales(room) == ["nothing is known"]
