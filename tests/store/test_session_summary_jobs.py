"""The job that summarizes a session: requested once, continued after a crash, fenced, and gone with what it is about.

Source: docs/compatibility.md "Summaries of sessions"; docs/reliability.md R6.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from signet_actors.domain.session_summaries import SummaryPart
from signet_actors.domain.transcripts.turns import Turn, stored_turns
from signet_actors.errors import ErrorCode
from signet_actors.features.session_summaries import reads as session_summaries
from signet_actors.features.session_summaries.api import LIST, FindDated, ListSummariesRequest
from signet_actors.protocol.leases import LeasedJob, ReapLeases
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Caller, Principal, message_of
from signet_actors.protocol.session_summaries import (
    DropNotes,
    FindForgottenNotes,
    ForgottenNote,
    NotesFound,
    NoteWritten,
    RecordNote,
    StoreSummary,
    SummaryStored,
)
from signet_actors.protocol.transcripts import (
    CapturedTurn,
    ForgetTranscript,
    GetTranscript,
    StoreTurns,
    TranscriptStored,
)
from signet_actors.protocol.writer import ForgetMany, ForgetMemory, ForgetTarget
from signet_actors.searcher.queries import transcripts
from tests.support.pipeline_harness import PipelineHarness, configured, refused

DIGEST = "0" * 64
CONTENT = "Session summary: The login form\n\nThe login form was moved to the new router."


@pytest.fixture
def room(tmp_path: Path) -> Iterator[PipelineHarness]:
    made = PipelineHarness(tmp_path)
    yield made
    made.close()


def turns(count: int = 6) -> tuple[CapturedTurn, ...]:
    said = [
        Turn(role, f"{role} says {number}: " + "many words " * 12)
        for number in range(count)
        for role in ("user", "assistant")
    ]
    rows = stored_turns([Turn(each.role, each.text) for each in said], clean=lambda text: text)
    return tuple(CapturedTurn(row.basis, row.number, row.role, row.text) for row in rows)


def end(room: PipelineHarness, key: str = "s-1", agent: str = "default", **fields: Any) -> TranscriptStored:
    given = {"turns": turns(), "project": "/ferry", "harness": "codex", **fields}
    answer = room.ask(StoreTurns(key, agent, "json", ended=True, **given))
    assert isinstance(answer, TranscriptStored), answer
    return answer


def store(room: PipelineHarness, job: LeasedJob, content: str = CONTENT) -> Any:
    return room.ask(StoreSummary(job.id, job.lease_id, content))


def listed(room: PipelineHarness, agent: str = "default") -> list[str]:
    with room.reader.open_snapshot() as snapshot:
        asked = message_of(LIST)(caller=Caller(agent), request=ListSummariesRequest())
        found = session_summaries.listed(snapshot, asked)
        dated = session_summaries.dated(snapshot, FindDated(agent, limit=50, chars=9)).summaries
    assert found.total == len(found.summaries)
    assert [(one.id, one.at, one.content) for one in dated] == [
        (summary.id, summary.latest_at, summary.content[:9]) for summary in found.summaries
    ]
    return [summary.id for summary in found.summaries]


def named(said: tuple[CapturedTurn, ...]) -> tuple[CapturedTurn, ...]:
    return tuple(msgspec.structs.replace(turn, name=b"%d" % number) for number, turn in enumerate(said))


def test_turns_that_were_copied_from_another_session_are_not_summarized_again(room: PipelineHarness) -> None:
    said = named(turns(12))
    assert end(room, turns=said[:12]).job_id is not None
    assert end(room, "forked", turns=said[:12]).job_id is None, "nothing is new"
    assert end(room, "resumed", turns=said).job_id is not None
    parts = {part.session_key: part for part in (summarized(room.take("summarize")) for _ in range(2))}
    assert set(parts) == {"s-1", "resumed"}
    with room.reader.open_snapshot() as view:
        found = transcripts.get(view, GetTranscript("resumed", ReadScope()))
    resumed = parts["resumed"]
    rest = [turn.content for turn in found.turns if resumed.after < turn.seq <= resumed.through]
    assert rest == [turn.content for turn in said[12:]]


def summarized(job: LeasedJob) -> SummaryPart:
    assert job.payload is not None
    return msgspec.json.decode(job.payload, type=SummaryPart)


def test_an_end_requests_one_summary_of_what_was_said_since_the_last_one(room: PipelineHarness) -> None:
    first = end(room)
    assert first.job_id is not None
    assert end(room).job_id is None
    assert end(room, turns=()).job_id is None
    job = room.take("summarize")
    assert (job.id, job.memory_id, job.subject) == (first.job_id, None, None)
    part = msgspec.json.decode(job.payload or "", type=SummaryPart)
    assert (part.session_key, part.agent_id, part.after) == ("s-1", "default", 0)
    assert end(room, turns=turns(12)).job_id is not None, "the session went on"
    later = msgspec.json.decode(room.take("summarize").payload or "", type=SummaryPart)
    assert later.after == part.through < later.through


def test_a_crash_after_the_answer_was_stored_goes_on_with_it(room: PipelineHarness) -> None:
    end(room)
    job = room.take("summarize")
    stored = store(room, job)
    assert isinstance(stored, SummaryStored)
    assert stored.memory is not None
    room.clock.advance(120_000)
    room.ask(ReapLeases())
    room.clock.advance(120_000)
    again = room.take("summarize")
    assert again.id == job.id
    assert again.subject is not None
    assert (again.subject.id, again.subject.content) == (stored.memory.id, CONTENT)
    assert refused(room.ask(RecordNote(job.id, job.lease_id, "x.md", DIGEST))).code is ErrorCode.LEASE_LOST
    assert isinstance(room.ask(RecordNote(again.id, again.lease_id, "x.md", DIGEST)), NoteWritten)
    assert room.value("SELECT note FROM session_summaries") == "x.md"
    assert listed(room) == [stored.memory.id]


def test_a_summary_belongs_to_the_agent_and_the_project_of_its_session_and_its_facts_are_extracted(
    room: PipelineHarness,
) -> None:
    end(room, "agent:ann:main", "ann")
    stored = store(room, room.take("summarize")).memory
    columns = "agent_id, visibility, project, type, source_id, session_id, json_extract(tags, '$')"
    assert room.memory(stored.id, columns) == (
        "ann",
        "private",
        "/ferry",
        "session_summary",
        "agent:ann:main",
        "agent:ann:main",
        '["session","summary","codex"]',
    )
    assert listed(room, "ann") == [stored.id]
    assert listed(room) == []
    assert room.take("extract").memory_id == stored.id


def test_a_report_repeated_with_the_same_lease_makes_no_second_memory(room: PipelineHarness) -> None:
    end(room)
    job = room.take("summarize")
    first, second = store(room, job), store(room, job, f"{CONTENT} Or so.")
    assert first.memory == second.memory
    assert room.value("SELECT count(*) FROM memories") == 1


def test_nothing_is_stored_of_a_transcript_that_was_forgotten_meanwhile(room: PipelineHarness) -> None:
    end(room)
    job = room.take("summarize")
    room.ask(ForgetTranscript("s-1", "default", Principal()))
    assert store(room, job).memory is None
    assert room.value("SELECT count(*) FROM memories") == 0
    assert room.value("SELECT status FROM memory_jobs") == "completed"


def test_nothing_is_stored_while_mutations_are_frozen(room: PipelineHarness) -> None:
    end(room)
    job = room.take("summarize")
    room.reconfigure(configured(frozen=True))
    assert refused(store(room, job)).code is ErrorCode.MUTATIONS_FROZEN
    assert room.value("SELECT count(*) FROM memories") == 0


def noted(room: PipelineHarness, key: str = "s-1") -> str:
    """Return the memory of a summary whose file is recorded."""
    end(room, key)
    job = room.take("summarize")
    memory = store(room, job, f"{CONTENT} It was {key}.").memory
    room.ask(RecordNote(job.id, job.lease_id, f"{key}.md", DIGEST))
    return str(memory.id)


def forgotten_notes(room: PipelineHarness, after: str = "", limit: int = 500) -> NotesFound:
    found = room.ask(FindForgottenNotes(after, limit))
    assert isinstance(found, NotesFound), found
    return found


def test_a_forgotten_summary_is_not_listed_and_an_erased_one_leaves_no_title(room: PipelineHarness) -> None:
    memory = noted(room)
    assert forgotten_notes(room) == NotesFound([], None)
    room.ask(ForgetMemory(memory, "r", Principal()))
    assert listed(room) == []
    expected = NotesFound([ForgottenNote(memory, "s-1.md", DIGEST)], None)
    assert forgotten_notes(room) == expected
    room.ask(ForgetMany((ForgetTarget(memory, None),), "r", Principal(), hard=True))
    assert forgotten_notes(room) == expected, "until its file is gone"
    room.ask(DropNotes((memory,)))
    assert room.value("SELECT count(*) FROM session_summaries") == 0


def test_the_file_of_a_summary_whose_transcript_is_erased_is_to_be_deleted_and_the_memory_stays(
    room: PipelineHarness,
) -> None:
    memories = sorted(noted(room, f"s-{number}") for number in range(5))
    room.ask(ForgetTranscript("s-3", "default", Principal()))
    room.ask(ForgetTranscript("s-4", "another", Principal()))
    pages, after = [], ""
    while True:
        found = forgotten_notes(room, after, 2)
        pages.append([note.note for note in found.notes])
        if found.next is None:
            break
        after = found.next
    assert sorted(note for page in pages for note in page) == ["s-3.md"]
    assert len(pages) == 3
    gone = room.value("SELECT memory_id FROM session_summaries WHERE note = 's-3.md'")
    room.ask(DropNotes((gone,)))
    assert forgotten_notes(room).notes == []
    assert sorted(listed(room)) == memories


def test_a_summary_that_was_forgotten_before_its_note_ends_the_job(room: PipelineHarness) -> None:
    end(room)
    memory = store(room, room.take("summarize")).memory
    room.ask(ForgetMemory(memory.id, "r", Principal()))
    room.clock.advance(120_000)
    room.ask(ReapLeases())
    room.clock.advance(120_000)
    assert room.take_all("summarize") == []
    assert room.value("SELECT status FROM memory_jobs WHERE job_type = 'summarize'") == "completed"
