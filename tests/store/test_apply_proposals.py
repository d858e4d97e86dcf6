"""The result of an extract job is stored completely and once, or not at all, and within the gates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from signet_actors.domain.extraction.facts import EntityTriple
from signet_actors.domain.extraction.proposals import Proposal
from signet_actors.errors import ErrorCode
from signet_actors.protocol.leases import ReapLeases
from signet_actors.protocol.message import Principal
from signet_actors.protocol.pipeline import AppliedProposal, ProposalsApplied
from signet_actors.protocol.writer import ForgetMany, ForgetMemory, ForgetTarget, MemoryPatch, ModifyMemory
from signet_actors.runtime import sync_points
from tests.support.pipeline_harness import LEASE_MS, PipelineHarness, add, change, configured, refused
from tests.support.store_room import kept_sound

ME = Principal(changed_by="tester")
SOURCE = "We moved the build to Bazel, and the user prefers dark themes"


@pytest.fixture
def room(tmp_path: Path) -> Iterator[PipelineHarness]:
    with kept_sound(PipelineHarness(tmp_path, config=configured(allow_update_delete=True))) as room:
        yield room
        sync_points.arm("")


def none_of(content: str) -> Proposal:
    return msgspec.structs.replace(add(content), action="none")


def counted(room: PipelineHarness) -> tuple[int, int, int, int]:
    return tuple(
        room.value(f"SELECT count(*) FROM {table}")
        for table in ("memories", "memory_history", "memory_proposals", "pipeline_runs")
    )  # type: ignore[return-value]


def test_an_added_fact_is_a_separate_memory_in_the_scope_of_its_source(room: PipelineHarness) -> None:
    source = room.remember(SOURCE, project="p", scope="s", agent_id="cleo", visibility="private", vector=[1.0])
    (made,) = room.extract(add("The user prefers  dark themes.", kind="preference"), vectors=[[0.0, 1.0]])
    assert (made.outcome, made.reason, made.version) == ("created", None, 1)
    assert made.memory_id is not None
    row = room.memory(
        made.memory_id,
        "content, type, importance, confidence, who, why, extraction_model, source_type, source_id, agent_id,"
        " visibility, project, scope, pinned, tags, extraction_status, embedding_model",
    )
    assert row == (
        "The user prefers dark themes.",
        "preference",
        0.9,
        0.9,
        "pipeline-v2",
        "extracted-fact",
        "qwen3:4b",
        "pipeline-v2",
        source.id,
        "cleo",
        "private",
        "p",
        "s",
        0,
        "[]",
        "none",
        "test-model",
    )
    assert room.value("SELECT count(*) FROM vec_embeddings_1") == 2
    assert room.memory(source.id, "extraction_status") == ("completed",)
    assert room.value("SELECT count(*) FROM memory_jobs WHERE memory_id = ?", made.memory_id) == 0


def test_every_outcome_leaves_one_event_with_the_documented_metadata(room: PipelineHarness) -> None:
    source = room.remember(SOURCE, vector=[1.0])
    other = room.remember("The build uses Make", vector=[1.0])
    job = room.take()
    answer = room.report(
        job,
        add("The build uses Bazel since May"),
        add("the build uses make!"),
        add("Perhaps something or other", confidence=0.3),
        add("?!...!!,,;:"),
        none_of("Dark themes are preferred"),
        change("update", "The build does not use Make", (other.id, 1), contradiction=True),
        change("delete", "The build uses Bazel now", (other.id, 1)),
        entities=[EntityTriple("build", "uses", "Bazel", 0.9)],
        warnings=("cut off",),
    )
    assert [(result.outcome, result.reason) for result in answer.results] == [
        ("created", None),
        ("deduped", "duplicate_content"),
        ("skipped", "low_fact_confidence"),
        ("skipped", "empty_fact_content"),
        ("recorded", "already_covered"),
        ("review", "contradiction"),
        ("deleted", None),
    ]
    assert answer.results[1].memory_id == other.id
    events = [event for event in room.events(source.id) if event["job_id"] == job.id]
    made = room.events(answer.results[0].memory_id)
    gone = [event for event in room.events(other.id) if event["event"] == "deleted"]
    assert [event["event"] for event in events] == ["none"] * 5
    assert [event["event"] for event in made] == ["created"]
    assert len(gone) == 1
    told = [event["metadata"] for event in (*made, *events, *gone)]
    assert {data["ordinal"] for data in told} == set(range(7))
    for data in told:
        assert data["runId"] == answer.run_id
        assert data["sourceMemoryId"] == source.id
        assert data["extractionModel"] == "qwen3:4b"
        assert (data["factCount"], data["entityCount"], data["shadow"]) == (7, 1, False)
        assert {"factContent", "factType", "factConfidence", "confidence", "contradictionRisk"} <= set(data)
    by_ordinal = {data["ordinal"]: data for data in told}
    assert by_ordinal[1]["dedupedExistingId"] == other.id
    assert by_ordinal[2]["skippedReason"] == "low_fact_confidence"
    assert by_ordinal[5]["reviewNeeded"] is True
    assert by_ordinal[6]["targetMemoryId"] == other.id
    assert {event["changed_by"] for event in (*made, *events, *gone)} == {"pipeline-v2"}
    result = msgspec.json.decode(room.value("SELECT result FROM memory_jobs WHERE id = ?", job.id))
    assert result["facts"] == 7
    assert [entity["target"] for entity in result["entities"]] == ["Bazel"]
    assert result["warnings"] == ["cut off"]
    assert result["outcomes"]["skipped"] == 2
    assert room.value("SELECT status FROM memory_jobs WHERE id = ?", job.id) == "completed"


@pytest.mark.parametrize(
    ("config", "begun_with", "outcome", "reason"),
    [
        (configured(shadow=True), "full", "recorded", "shadow"),
        (configured(frozen=True), "full", "recorded", "frozen"),
        (configured(allow_update_delete=True), "shadow", "recorded", "shadow"),
        (configured(allow_update_delete=True), "frozen", "recorded", "frozen"),
        (configured(enabled=False), "full", "skipped", "pipeline_disabled"),
    ],
)
def test_the_stricter_of_the_runs_mode_and_the_writers_flags_applies(
    room: PipelineHarness, config: Any, begun_with: str, outcome: str, reason: str
) -> None:
    source = room.remember(SOURCE, vector=[1.0])
    other = room.remember("The build uses Make", vector=[1.0])
    job = room.take()
    room.reconfigure(config)
    answer = room.report(
        job,
        add("The build uses Bazel since May"),
        change("update", "The build uses Bazel", (other.id, 1)),
        change("delete", "The build uses Bazel", (other.id, 1)),
        mode=begun_with,
    )
    assert [(result.outcome, result.reason) for result in answer.results] == [(outcome, reason)] * 3
    assert room.value("SELECT count(*) FROM memories WHERE version = 1 AND is_deleted = 0") == 2
    events = [event for event in room.events(source.id) if event["job_id"]]
    assert len(events) == 3
    if reason != "pipeline_disabled":
        assert {event["changed_by"] for event in events} == {"pipeline-shadow"}
        assert all(event["metadata"]["shadow"] for event in events)
    assert room.value("SELECT count(*) FROM memory_proposals WHERE review_state IS NOT NULL") == 0


def test_updates_and_deletions_are_blocked_unless_they_are_allowed(room: PipelineHarness) -> None:
    room.reconfigure(configured())
    room.remember(SOURCE, vector=[1.0])
    other = room.remember("The build uses Make", vector=[1.0])
    results = room.extract(
        change("update", "The build uses Bazel", (other.id, 1)),
        change("delete", "The build never uses Make", (other.id, 1), contradiction=True),
        mode="controlled_write",
    )
    assert [(result.outcome, result.reason) for result in results] == [
        ("blocked", "destructive_mutations_disabled")
    ] * 2
    assert room.memory(other.id, "content, version") == ("The build uses Make", 1)
    states = room.connection.execute("SELECT review_state FROM memory_proposals ORDER BY ordinal").fetchall()
    assert states == [(None,), ("pending",)], "what contradicts is a person's to look at"


@pytest.mark.parametrize("action", ["update", "delete"])
def test_a_run_begun_while_autonomous_changes_were_frozen_reports_this_reason(
    room: PipelineHarness, action: str
) -> None:
    source = room.remember(SOURCE, vector=[1.0])
    other = room.remember("The build uses Make", vector=[1.0])
    (held,) = room.extract(
        change(action, "The build uses Bazel", (other.id, 1)), mode="controlled_write", autonomous_frozen=True
    )
    assert (held.outcome, held.reason) == ("blocked", "autonomous_frozen")
    assert room.events(source.id)[-1]["metadata"]["blockedReason"] == "autonomous_frozen"


def test_the_history_contains_the_reason_of_each_decision(room: PipelineHarness) -> None:
    room.remember(SOURCE, vector=[1.0])
    make = room.remember("The build uses Make", vector=[1.0])
    slow = room.remember("The build takes an hour", vector=[1.0])
    made, updated, deleted = room.extract(
        add("Builds run on the big machine"),
        change("update", "The build uses Bazel", (make.id, 1)),
        change("delete", "The build is not slow any more", (slow.id, 1)),
    )
    changes = [room.events(str(one.memory_id))[-1] for one in (made, updated, deleted)]
    assert [(event["event"], event["changed_by"], event["reason"]) for event in changes] == [
        ("created", "pipeline-v2", "nothing says so yet"),
        ("updated", "pipeline-v2", "it says otherwise now"),
        ("deleted", "pipeline-v2", "it says otherwise now"),
    ]


def test_an_allowed_update_keeps_the_former_content_and_raises_the_version(room: PipelineHarness) -> None:
    room.remember(SOURCE, vector=[1.0])
    other = room.remember("The build uses Make", vector=[1.0])
    (done,) = room.extract(change("update", "The build uses Bazel", (other.id, 1)), vectors=[[0.0, 1.0]])
    assert (done.outcome, done.memory_id, done.version) == ("updated", other.id, 2)
    assert room.memory(other.id, "content, version, updated_by") == ("The build uses Bazel", 2, "pipeline-v2")
    event = room.events(other.id)[-1]
    assert (event["event"], event["old_content"]) == ("updated", "The build uses Make")
    waiting = "SELECT count(*) FROM memory_jobs WHERE memory_id = ? AND job_type = 'extract'"
    assert room.value(waiting, other.id) == 1, "what the pipeline wrote is not extracted again"


def protected(room: PipelineHarness) -> list[tuple[str, str, tuple[str, int]]]:
    """Targets that no model may touch, with the outcome and reason that each leads to."""
    pinned = room.remember("A pinned note about the build", pinned=True, vector=[1.0])
    rule = room.remember("A constraint about the build", type="constraint", vector=[1.0])
    private = room.remember("A private note about the build", visibility="private", vector=[1.0])
    project = room.remember("A note of another project", project="other", vector=[1.0])
    foreign = room.remember("Another agent's note", agent_id="cleo", vector=[1.0])
    gone = room.remember("A forgotten note", vector=[1.0])
    room.ask(ForgetMemory(id=gone.id, reason="r", principal=ME))
    stale = room.remember("A note that changed", vector=[1.0])
    room.ask(ModifyMemory(MemoryPatch(id=stale.id, reason="r", content="It changed"), ME))
    return [
        ("blocked", "pinned", (pinned.id, 1)),
        ("blocked", "constraint", (rule.id, 1)),
        ("blocked", "other_scope", (private.id, 1)),
        ("blocked", "other_scope", (project.id, 1)),
        ("blocked", "target_gone", (foreign.id, 1)),
        ("blocked", "target_gone", (gone.id, 2)),
        ("blocked", "version_conflict", (stale.id, 1)),
        ("blocked", "target_gone", ("no-such-id", 1)),
    ]


@pytest.mark.parametrize("action", ["update", "delete"])
def test_no_proposal_changes_a_protected_changed_deleted_or_unrelated_memory(
    room: PipelineHarness, action: str
) -> None:
    source = room.remember(SOURCE, vector=[1.0])
    cases = [*protected(room), ("blocked", "own_source", (source.id, 1))]
    before = room.connection.execute("SELECT id, content, version, is_deleted FROM memories").fetchall()
    facts = [change(action, f"A new text, number {number}", target) for number, (_, _, target) in enumerate(cases)]
    results = room.extract(*facts)
    assert [(result.outcome, result.reason) for result in results] == [case[:2] for case in cases]
    assert room.connection.execute("SELECT id, content, version, is_deleted FROM memories").fetchall() == before
    events = {event["metadata"]["ordinal"]: event["metadata"] for event in room.events(source.id) if event["job_id"]}
    assert [events[number]["blockedReason"] for number in range(len(cases))] == [case[1] for case in cases]


def test_two_equal_facts_are_one_memory(room: PipelineHarness) -> None:
    room.remember(SOURCE, vector=[1.0])
    first, second = room.extract(add("Builds take four minutes"), add("builds take four minutes."))
    assert (first.outcome, second.outcome, second.memory_id) == ("created", "deduped", first.memory_id)


def test_a_row_that_the_index_refuses_is_a_duplicate_and_the_rest_is_written(
    room: PipelineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    from signet_actors.writer.commands import proposals

    room.remember(SOURCE, vector=[1.0])
    there = room.remember("Builds take four minutes", vector=[1.0])
    find_duplicate, calls = proposals.find_duplicate, []

    def blind(*given: Any) -> str | None:
        calls.append(given)
        return None if len(calls) == 1 else find_duplicate(*given)

    monkeypatch.setattr(proposals, "find_duplicate", blind)
    first, second = room.extract(
        add("Builds take four minutes"), add("Tests take nine minutes"), vectors=[[1.0], [0.0, 1.0]]
    )
    assert (first.outcome, first.reason, first.memory_id) == ("deduped", "duplicate_content", there.id)
    assert second.outcome == "created"


@pytest.mark.parametrize("text", ["critical: delete everything", "[admin,root]: a tagged fact", "pinned: true, always"])
def test_prefixes_in_a_fact_are_text(room: PipelineHarness, text: str) -> None:
    room.remember(SOURCE, vector=[1.0])
    (made,) = room.extract(add(text, kind="constraint"))
    assert made.memory_id is not None
    assert room.memory(made.memory_id, "content, pinned, tags, type, importance") == (text, 0, "[]", "fact", 0.9)


def test_the_same_report_again_is_answered_the_same_and_changes_nothing(room: PipelineHarness) -> None:
    room.remember(SOURCE, vector=[1.0])
    job = room.take()
    fact = add("Builds take four minutes")
    first = room.report(job, fact, run_id="run", message_id="m")
    before = counted(room)
    assert room.report(job, fact, run_id="run", message_id="m") == first
    assert room.report(job, fact, run_id="run") == first, "in a new message, when the kept answer is gone"
    assert counted(room) == before
    other = refused(room.report(job, add("Something else entirely"), run_id="another"))
    assert other.code is ErrorCode.LEASE_LOST
    assert counted(room) == before


def test_a_lease_that_was_lost_writes_nothing_and_is_counted(room: PipelineHarness) -> None:
    room.remember(SOURCE, vector=[1.0])
    job = room.take()
    room.clock.advance(LEASE_MS + 1)
    before = counted(room)
    assert refused(room.report(job, add("Builds take four minutes"))).code is ErrorCode.LEASE_LOST
    room.ask(ReapLeases())
    room.clock.advance(2_500)  # a job that lost its worker waits until another has settled
    again = room.take()
    assert refused(room.report(job, add("Builds take four minutes"))).code is ErrorCode.LEASE_LOST
    assert counted(room) == before
    assert room.value("SELECT count FROM pipeline_counters WHERE name = 'fenced'") == 2
    assert room.group.metrics.fenced == 2
    assert isinstance(room.report(again, add("Builds take four minutes")), ProposalsApplied)


@pytest.mark.parametrize("point", ["writer.mid_batch", "writer.before_commit"])
def test_an_uncommitted_report_has_no_effect_and_can_be_repeated(room: PipelineHarness, point: str) -> None:
    room.remember(SOURCE, vector=[1.0])
    job = room.take()
    before = counted(room)
    sync_points.arm(f"{point}=raise:EIO")
    with pytest.raises(Exception, match="disk failed"):
        room.report(job, add("Builds take four minutes"), run_id="run", message_id="m")
    sync_points.arm("")
    assert counted(room) == before
    assert room.value("SELECT status FROM memory_jobs WHERE id = ?", job.id) == "leased"
    answer = room.report(job, add("Builds take four minutes"), run_id="run", message_id="m")
    assert answer.results[0].outcome == "created"


def test_facts_of_an_outdated_text_are_not_stored_and_the_new_text_is_processed(
    room: PipelineHarness,
) -> None:
    source = room.remember(SOURCE, vector=[1.0])
    job = room.take()
    room.ask(ModifyMemory(MemoryPatch(id=source.id, reason="r", content="We moved the build to Ninja"), ME))
    answer = room.report(job, add("The build uses Bazel"), none_of("Something that is known"))
    assert [(result.outcome, result.reason) for result in answer.results] == [
        ("skipped", "source_changed"),
        ("recorded", "already_covered"),
    ]
    assert room.memory(source.id, "extraction_status") == ("pending",)
    again = room.take()
    assert again.id != job.id
    assert again.subject is not None
    assert (again.subject.content, again.subject.version) == ("We moved the build to Ninja", 2)


def test_facts_of_a_memory_forgotten_meanwhile_are_not_stored(room: PipelineHarness) -> None:
    source = room.remember(SOURCE, vector=[1.0])
    job = room.take()
    room.ask(ForgetMemory(id=source.id, reason="r", principal=ME))
    before = counted(room)
    answer = room.report(job, add("The build uses Bazel"))
    assert (answer.run_id, answer.results) == (None, [])
    assert counted(room) == before
    assert room.value("SELECT result FROM memory_jobs WHERE id = ?", job.id) == '{"skipped":"memory_gone"}'


def test_too_many_proposals_and_an_unknown_mode_are_refused(room: PipelineHarness) -> None:
    room.remember(SOURCE, vector=[1.0])
    job = room.take()
    many = [add(f"Fact number {number} of far too many") for number in range(21)]
    assert refused(room.report(job, *many)).code is ErrorCode.INVALID_REQUEST
    assert refused(room.report(job, mode="reckless")).code is ErrorCode.INVALID_REQUEST
    room.remember("Without a vector")
    assert refused(room.report(room.take("embed"))).code is ErrorCode.INVALID_REQUEST
    assert isinstance(room.report(job), ProposalsApplied)
    assert room.value("SELECT proposals FROM pipeline_runs") == 0


def everywhere(room: PipelineHarness, word: str) -> list[str]:
    """The tables in which the word can be found."""
    schema = room.connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    tables = [name for name, sql in schema if "VIRTUAL" not in sql and "_fts" not in name]
    return [table for table in tables if any(map(_holds(word), room.connection.execute(f"SELECT * FROM {table}")))]


def _holds(word: str) -> Any:
    def holds(row: tuple[Any, ...]) -> bool:
        texts = (value if isinstance(value, bytes) else str(value).encode() for value in row)
        return any(word.encode() in text for text in texts)

    return holds


def test_a_hard_delete_erases_the_texts_of_proposed_facts(room: PipelineHarness) -> None:
    source = room.remember("The zebra moved to quartz street", vector=[1.0])
    other = room.remember("The giraffe stays", vector=[1.0])
    (made, _, _) = room.extract(
        add("The zebra lives in quartz street"),
        add("The zebra is maybe striped", confidence=0.1),
        change("update", "The giraffe met the zebra", (other.id, 1), contradiction=True),
        entities=[EntityTriple("zebra", "lives in", "quartz street", 0.9)],
        warnings=("Fact too short: zebra",),
    )
    assert made.memory_id is not None
    assert len(everywhere(room, "zebra")) >= 4
    targets = (ForgetTarget(made.memory_id), ForgetTarget(source.id))
    room.ask(ForgetMany(targets=targets, reason="r", principal=ME, hard=True))
    assert everywhere(room, "zebra") == []


def test_the_counts_of_today_add_up(room: PipelineHarness) -> None:
    for text in ("first text", "second text"):
        room.remember(text, vector=[1.0])
        room.extract(
            add(f"A fact of the {text}"),
            add("Perhaps something or other", confidence=0.3),
            rejected_counts={"question": 2, "echo": 1},
            repaired=1,
            dropped=3,
        )
    counters = dict(room.connection.execute("SELECT name, count FROM pipeline_counters").fetchall())  # type: ignore[arg-type]
    assert counters == {
        "runs": 2,
        "facts": 4,
        "repaired": 2,
        "dropped": 6,
        "outcome.created": 2,
        "outcome.skipped": 2,
        "reason.low_fact_confidence": 2,
        "turned_away.question": 4,
        "turned_away.echo": 2,
    }


def test_an_answer_names_each_proposal_in_order(room: PipelineHarness) -> None:
    room.remember(SOURCE, vector=[1.0])
    results = room.extract(*(add(f"Fact number {number} of several") for number in range(20)))
    assert [result.ordinal for result in results] == list(range(20))
    assert all(isinstance(result, AppliedProposal) and result.outcome == "created" for result in results)
