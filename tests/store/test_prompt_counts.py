"""What came of prompts is counted by outcome, hour and project, of one agent, from the rows of the period alone."""

from __future__ import annotations

import random
from typing import Any

import pytest

from signet_actors.domain.timestamps import epoch_ms, iso
from signet_actors.features.analytics import reads
from signet_actors.features.analytics.api import CountPrompts, PromptsReply, PromptsRequest
from signet_actors.features.searches import reads as searches
from signet_actors.features.searches.api import FindLastPrompts, LastPrompts, RecordSearches, Search
from signet_actors.protocol.memories import ReadScope
from tests.support.store_room import StoreRoom, plan_of

NOW_MS = 1_767_225_600_000
HOUR_MS = 3_600_000
PROJECTS = ("/shop", "/api", None)


def recorded(room: StoreRoom, count: int, seed: int, span_h: int = 48, **always: Any) -> list[Search]:
    """Store searches of the last ``span_h`` hours, the older ones first but for some seconds."""
    rnd = random.Random(seed)
    made = []
    for number in range(count):
        ago_ms = int(span_h * HOUR_MS * (1 - number / count)) + rnd.randrange(5_000)
        fields: dict[str, Any] = {
            "kind": rnd.choice(("prompt", "prompt", "start", "recall")),
            "agent_id": "default",
            "project": rnd.choice(PROJECTS),
            "skipped": rnd.choice((None, None, None, "claimed", "timeout")),
            "given": rnd.choice((0, 0, 2)),
            "characters": rnd.randrange(900),
            "duration_ms": float(rnd.randrange(1, 80)),
        }
        made.append(Search(id=f"{seed}-{number}", created_at=iso(NOW_MS - ago_ms), **(fields | always)))
    for at in range(0, count, 100):
        room.ask(RecordSearches(searches=tuple(made[at : at + 100])))
    return made


def counted(room: StoreRoom, agent: str = "default", **wanted: Any) -> PromptsReply:
    asked = CountPrompts(agent_id=agent, request=PromptsRequest(**wanted), now=iso(NOW_MS))
    with room.reader.open_snapshot() as snapshot:
        return reads.prompts(snapshot, asked)


def last(room: StoreRoom, hours: int = 24, harnesses: tuple[str, ...] = ()) -> LastPrompts:
    asked = FindLastPrompts(read=ReadScope("default"), since=iso(NOW_MS - hours * HOUR_MS), harnesses=harnesses)
    with room.reader.open_snapshot() as snapshot:
        return searches.last_prompts(snapshot, asked)


@pytest.mark.parametrize("hours", [1, 24, 168])
@pytest.mark.parametrize("project", [None, "/shop"])
def test_the_counts_are_those_of_the_rows(room: StoreRoom, hours: int, project: str | None) -> None:
    rows = recorded(room, 400, 1)
    recorded(room, 50, 2, agent_id="other", project="/shop")
    since = iso(NOW_MS - hours * HOUR_MS)
    rows = [row for row in rows if row.created_at >= since and project in {None, row.project}]
    prompts = [row for row in rows if row.kind == "prompt"]
    found = counted(room, hours=hours, project=project)
    asked = [row for row in prompts if row.skipped is None]
    assert (found.prompts, found.given) == (len(prompts), sum(row.given > 0 for row in asked))
    assert found.nothing == sum(row.given == 0 for row in asked)
    assert found.skipped == {
        reason: number for reason in ("claimed", "timeout") if (number := sum(row.skipped == reason for row in prompts))
    }
    assert found.characters == sum(row.characters for row in rows)
    assert found.tokens == found.characters // 4
    by_hour = [0] * hours
    for row in prompts:
        ago_ms = NOW_MS - (epoch_ms(row.created_at) or 0)
        by_hour[-1 - ago_ms // HOUR_MS] += 1
    assert found.by_hour == by_hour
    by_project = {one.project: (one.prompts, one.nothing) for one in found.projects}
    assert by_project == {
        name: (len(own), sum(row.skipped is None and row.given == 0 for row in own))
        for name in PROJECTS
        if (own := [row for row in prompts if row.project == name])
    }
    assert [one.prompts for one in found.projects] == sorted((one.prompts for one in found.projects), reverse=True)


def test_the_last_prompt_may_be_old_and_the_last_that_was_given_something_is_of_the_period(room: StoreRoom) -> None:
    assert last(room) == LastPrompts(last=None, last_given=None)
    recorded(room, 1, 2, 40, kind="prompt", given=1, skipped=None)
    recorded(room, 1, 3, 4, kind="prompt", given=1, skipped=None)
    recorded(room, 1, 4, 3, kind="prompt", given=0, skipped=None, project="/api")
    recorded(room, 2, 5, 2, kind="recall", given=1)
    recorded(room, 2, 6, 2, kind="prompt", given=1, agent_id="other")
    found = last(room)
    assert found.last is not None
    assert (found.last.id, found.last.outcome) == ("4-0", "no memory fits")
    assert found.last_given is not None
    assert (found.last_given.id, found.last_given.outcome) == ("3-0", "given 1 memory")
    assert last(room, hours=1) == LastPrompts(last=found.last, last_given=None)


def test_a_check_counts_for_nothing(room: StoreRoom) -> None:
    recorded(room, 1, 2, 4, kind="prompt", given=1, skipped=None, harness="codex", session_key="signet-cheque")
    found, heard, count = last(room), last(room, harnesses=("codex",)), counted(room)
    assert heard.heard["codex"] < iso(NOW_MS - 3 * HOUR_MS)
    assert count.prompts == count.ms.count == 1
    recorded(room, 3, 3, 2, kind="prompt", given=2, skipped=None, harness="codex", session_key="signet-check-1")
    assert (last(room), last(room, harnesses=("codex",)), counted(room)) == (found, heard, count)


def test_when_programs_were_heard_is_told_of_those_that_are_asked_for(room: StoreRoom) -> None:
    (first,) = recorded(room, 1, 2, 400, kind="start", harness="codex")
    (second,) = recorded(room, 1, 3, 200, kind="tool", harness="codex")
    recorded(room, 1, 4, 100, kind="prompt", harness="codex", agent_id="other")
    recorded(room, 1, 5, 1, kind="prompt", harness="gemini")
    assert first.created_at < second.created_at
    assert last(room, harnesses=("codex", "opencode")).heard == {"codex": second.created_at}
    assert last(room).heard == {}


def test_of_very_many_searches_the_newest_are_counted(room: StoreRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = recorded(room, 60, 1, kind="prompt", skipped=None)
    recorded(room, 40, 2, 1, agent_id="other", kind="prompt")
    monkeypatch.setattr(reads, "MAX_READ", 60)
    assert (counted(room, hours=168).prompts, counted(room, hours=168).complete) == (60, True)
    monkeypatch.setattr(reads, "MAX_READ", 25)
    found = counted(room, hours=168)
    assert (found.prompts, sum(found.by_hour), found.ms.count, found.complete) == (25, 25, 25, False)
    assert found.characters == sum(row.characters for row in rows[-25:])
    assert counted(room, hours=1).complete, "all of the hour are counted"


def test_times_are_those_of_prompts_that_were_answered(room: StoreRoom) -> None:
    for number, (took, fields) in enumerate(
        ((10.0, {}), (30.0, {}), (500.0, {"skipped": "timeout"}), (900.0, {"kind": "start"}))
    ):
        recorded(room, 1, 10 + number, **{"kind": "prompt", "skipped": None, "duration_ms": took, **fields})
    assert (counted(room).ms.count, counted(room).ms.p50, counted(room).ms.p99) == (2, 10.0, 30.0)


def test_a_question_reads_the_rows_of_the_agent_and_the_period_only(room: StoreRoom) -> None:
    for sql in (
        reads._COUNTS,
        reads._HOURS.format("s.seq"),
        *(searches._LAST_PROMPT, searches._LAST_GIVEN, searches._LAST_HEARD),
    ):
        assert plan_of(room.connection, sql)[0] == "SEARCH s USING INDEX idx_searches_agent (agent_id=? AND rowid>?)"
    assert "COVERING INDEX idx_searches_agent (agent_id=? AND rowid>?)" in str(
        plan_of(room.connection, searches._BEYOND)
    )
    assert "COVERING INDEX idx_searches_created_at (created_at>?)" in str(plan_of(room.connection, searches._FIRST))
