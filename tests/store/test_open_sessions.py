"""Which part of a session a job is queued for: at its end, on request while it goes on, and after it fell silent.

Source: docs/guides/transcripts.md "Summaries"; docs/decisions.md 65.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from signet_actors.domain.session_summaries import SummaryPart
from signet_actors.domain.timestamps import iso
from signet_actors.protocol.message import Principal
from signet_actors.protocol.session_summaries import EndIdleSessions, IdleSessionsEnded
from signet_actors.protocol.sessions import RecordSessions, SessionContext
from signet_actors.protocol.transcripts import ForgetTranscript, StoreTurns
from tests.store.test_session_summary_jobs import turns
from tests.support.pipeline_harness import PipelineHarness, configured

IDLE_MS = 30 * 60_000
MINUTE_MS = 60_000
Part = tuple[int, int]
"""The rows of turns behind the first number, up to the second. Each of ``turns(n)`` are two rows, of 290 characters."""


@pytest.fixture
def room(tmp_path: Path) -> Iterator[PipelineHarness]:
    made = PipelineHarness(tmp_path)
    yield made
    made.close()


def told(room: PipelineHarness, what: str, count: int, *, key: str = "s", minutes_ago: int = 0) -> None:
    """Report ``count`` turns of the session, and ``what`` it does then."""
    at = iso(room.clock.wall_ms() - minutes_ago * MINUTE_MS)
    then = what if what in ("goes_on", "extract", "dropped") else None
    said = turns(count) if count else ()
    room.ask(StoreTurns(key, "default", "json", said, captured_at=at, ended=what == "ended", then=then))  # type: ignore[arg-type]


def silent(room: PipelineHarness, minutes: int = 31) -> list[str]:
    """Let time pass; return the sessions that are ended then."""
    room.clock.advance(minutes * MINUTE_MS)
    done = room.ask(EndIdleSessions(iso(room.clock.wall_ms() - IDLE_MS)))
    assert isinstance(done, IdleSessionsEnded), done
    return [session.session_key for session in done.sessions]


def parts(room: PipelineHarness) -> list[Part]:
    """Return what the queued jobs are about, in their order."""
    rows = room.connection.execute(
        "SELECT payload FROM memory_jobs WHERE job_type = 'summarize' ORDER BY seq"
    ).fetchall()
    found = [msgspec.json.decode(payload, type=SummaryPart) for (payload,) in rows]
    return [(part.after, part.through) for part in found]


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ("extract 2", [(0, 4)]),
        ("extract 1", []),
        ("extract 0", []),
        ("extract 1, extract 2", [(0, 4)]),
        ("extract 2, extract 2", [(0, 4)]),
        ("extract 2, extract 3", [(0, 4)]),
        ("extract 2, extract 3, extract 4", [(0, 4), (4, 8)]),
        ("extract 2, ended 2", [(0, 4)]),
        ("extract 2, ended 8", [(0, 4), (4, 16)]),
        ("extract 2, ended 0", [(0, 4)]),
        ("extract 8, extract 2, ended 8", [(0, 16)]),
        ("goes_on 8, extract 8", [(0, 16)]),
        ("goes_on 8, ended 0", [(0, 16)]),
        ("goes_on 8", []),
        ("past 8", []),
        ("dropped 8", []),
        ("goes_on 8, silent", [(0, 16)]),
        ("goes_on 8, silent, silent", [(0, 16)]),
        ("goes_on 8, silent, ended 8", [(0, 16)]),
        ("goes_on 8, silent, goes_on 12, silent", [(0, 16), (16, 24)]),
        ("goes_on 8, silent, extract 12, silent", [(0, 16), (16, 24)]),
        ("goes_on 8, silent, extract 9, ended 12", [(0, 16), (16, 24)]),
        ("extract 8, silent", [(0, 16)]),
        ("extract 8, goes_on 12, silent", [(0, 16), (16, 24)]),
        ("goes_on 1, silent", []),
        ("goes_on 1, silent, goes_on 4, silent", [(0, 8)]),
        ("ended 8, silent", [(0, 16)]),
        ("goes_on 8, ended 8, silent", [(0, 16)]),
        ("goes_on 8, dropped 8, silent", []),
        ("goes_on 8, past 8, silent", [(0, 16)]),
        ("past 8, silent", []),
        ("past 8, goes_on 9, silent", [(0, 18)]),
        ("ended 8, goes_on 12, silent", [(0, 16), (16, 24)]),
    ],
)
def test_each_turn_is_part_of_one_job(room: PipelineHarness, history: str, expected: list[Part]) -> None:
    for step in history.split(", "):
        what, _, count = step.partition(" ")
        if what == "silent":
            silent(room)
        else:
            told(room, what, int(count))
        room.clock.advance(MINUTE_MS)
    assert parts(room) == expected


def test_a_session_ends_as_idle_and_goes_on_when_it_speaks_again(room: PipelineHarness) -> None:
    told(room, "goes_on", 8)
    told(room, "goes_on", 8, key="another")
    assert silent(room, 29) == []
    told(room, "goes_on", 8, key="another")
    assert silent(room, 2) == ["s"]
    state = "SELECT ended_at IS NOT NULL, end_reason, open_at IS NULL FROM session_transcripts WHERE session_key = 's'"
    assert room.connection.execute(state).fetchall() == [(1, "idle", 1)]
    told(room, "goes_on", 9)
    assert room.connection.execute(state).fetchall()[0][2] == 0
    told(room, "ended", 9)
    assert room.connection.execute(state).fetchall() == [(1, None, 1)]
    assert silent(room) == ["another"]


def test_a_session_whose_prompts_go_on_is_not_silent(room: PipelineHarness) -> None:
    told(room, "goes_on", 8)
    room.clock.advance(31 * MINUTE_MS)
    now = iso(room.clock.wall_ms())
    room.ask(RecordSessions((SessionContext("s", "default", started_at=now, last_active_at=now),)))
    assert silent(room, 1) == []
    assert silent(room, 31) == ["s"]


def test_an_end_that_is_reported_late_ends_nothing_that_was_heard_since(room: PipelineHarness) -> None:
    told(room, "goes_on", 8)
    told(room, "ended", 0, minutes_ago=10)
    assert parts(room) == [(0, 16)]
    told(room, "goes_on", 12)
    assert silent(room) == ["s"]
    told(room, "goes_on", 14, minutes_ago=60)
    assert silent(room) == [], "what is reported late was said before that end"


def test_nothing_is_queued_of_a_forgotten_session_or_without_a_pipeline(room: PipelineHarness) -> None:
    told(room, "goes_on", 8)
    room.ask(ForgetTranscript("s", "default", Principal()), message_id="f" * 32)
    told(room, "extract", 8)
    assert silent(room) == []
    room.reconfigure(configured(enabled=False))
    told(room, "extract", 8, key="t")
    told(room, "goes_on", 8, key="u")
    assert silent(room) == ["t", "u"]
    assert parts(room) == []
