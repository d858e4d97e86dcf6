"""A session of 60 turns, replayed through the installed hook commands, and what memory makes of it.

Source: docs/guides/claude-code.md, docs/guides/codex.md, docs/guides/hooks.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.coding_session import (
    COMPACTED_AFTER,
    EXCHANGES,
    FOREIGN,
    RULE,
    STORED,
    SUMMARY,
    UNRELATED,
    foreign_memory,
    foreign_question,
)
from tests.support.replayed_session import CLAUDE_CODE, CODEX, HookedHome, hooked_home
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_provider import ScriptedProvider
from tests.system.test_mcp import over_http, replied, run
from tests.system.test_pipeline import config_for

pytestmark = pytest.mark.system


class Replay:
    """A session that was replayed to its end. ``given``: what the model got beside each prompt."""

    def __init__(self, room: HookedHome) -> None:
        self.room = room
        self.session = room.session()
        self.given: list[str] = []
        self.stored: dict[int, str] = {}

    def run(self) -> None:
        self.session.begin()
        for number, (prompt, answer) in enumerate(EXCHANGES, 1):
            self.given.append(self.session.exchange(prompt, answer))
            if number in STORED:
                self.stored[number] = self._store(*STORED[number])
            if number == COMPACTED_AFTER:
                self.session.compact(SUMMARY)
        self.session.end()

    def _store(self, way: str, content: str) -> str:
        """Store the memory as the agent does, and return its id."""
        api, project = self.room.daemon.api, str(self.room.project)
        if way == "hook":
            found = self.room.remember(content, session_id=self.session.key)
        elif way == "http":
            body = {"content": content, "project": project, "sessionKey": self.session.key}
            found = api.post("/api/memory/remember", body).ok()
        else:
            found = {}

            async def use() -> None:
                async with over_http(self.room.daemon, "default", "auto") as client:
                    arguments = {"content": content, "project": project, "session_key": self.session.key}
                    found.update(await replied(client, "memory_store", **arguments))

            run(use())
        stored: str = found["id"]
        return stored


@pytest.fixture(scope="module", params=[CLAUDE_CODE, CODEX], ids=lambda harness: str(harness.name))
def replay(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replay]:
    """A replayed session beside a rule for all projects, and 1,000 memories of another project about the same."""
    root = tmp_path_factory.mktemp(request.param.name)
    with (
        ScriptedProvider(script=ScriptedModel()) as provider,
        hooked_home(request.param, root, config=config_for(provider)) as room,
    ):
        foreign = [
            json.dumps({"content": foreign_memory(number), "project": str(room.elsewhere), "importance": 1.0})
            for number in range(FOREIGN)
        ]
        room.daemon.api.request("POST", "/api/memory/import", "\n".join(foreign).encode()).ok()
        room.daemon.api.remember(RULE)
        replayed = Replay(room)
        replayed.run()
        room.await_pipeline()
        yield replayed
        assert room.daemon.faults() == []
        assert room.daemon.stop() == 0
        assert room.daemon.broken_invariants() == []


def sentences(content: str) -> list[str]:
    return [f"{sentence}." for sentence in content.rstrip(".").split(". ")]


def test_the_transcript_has_each_turn_once(replay: Replay) -> None:
    turns = replay.session.transcript.turns
    assert len([turn for turn in turns if turn[0] != "system"]) == 60
    assert replay.room.turns(replay.session) == turns


def test_the_session_is_found_by_what_was_said_in_it(replay: Replay) -> None:
    asked = {"query": "why did the test fail with other fonts", "project": str(replay.room.project)}
    hits = replay.room.daemon.api.post("/api/sessions/search", asked).ok()["hits"]
    assert [hit["sessionKey"] for hit in hits] == [replay.session.key]


def test_facts_are_extracted_once_and_belong_to_the_project(replay: Replay) -> None:
    sql = "SELECT content, project FROM memories WHERE who = 'pipeline-v2' AND is_deleted = 0"
    facts = replay.room.daemon.read(sql)
    for _, content in STORED.values():
        for sentence in sentences(content):
            assert facts.count((sentence, str(replay.room.project))) == 1


def test_checkpoints_count_each_prompt_once_and_the_session_is_over(replay: Replay) -> None:
    found = replay.room.checkpoints(replay.session)
    assert found[0]["trigger"] == "session_end"
    assert {each["trigger"] for each in found} <= {"periodic", "agent", "pre_compaction", "session_end"}
    assert sum(each["prompt_count"] for each in found) == len(EXCHANGES)
    stored = {stored for each in found for stored in json.loads(each["recent_remembers"])}
    assert set(replay.stored.values()) <= stored
    ended = "SELECT DISTINCT ended FROM session_checkpoints WHERE session_key = ?"
    assert replay.room.daemon.read(ended, replay.session.key) == [(1,)]


def test_the_session_is_summarized_and_scored_once(replay: Replay) -> None:
    api, key = replay.room.daemon.api, replay.session.key
    of_session = [each for each in api.get("/api/sessions/summaries").ok()["summaries"] if each["session_key"] == key]
    assert [summary["project"] for summary in of_session] == [str(replay.room.project)]
    assert (replay.room.daemon.workspace / "memory" / of_session[0]["note"]).is_file()
    scores = [each for each in api.get("/api/analytics/continuity").ok()["scores"] if each["session_key"] == key]
    assert [score["score"] for score in scores] == [0.75]
    assert scores[0]["memories_recalled"] > 0


def test_what_was_offered_and_shown_is_recorded(replay: Replay) -> None:
    listed = replay.room.daemon.api.get(f"/api/sessions/{replay.session.key}/memories", limit=1000).ok()
    shown = {row["id"][:18] for row in listed["memories"] if row["wasInjected"]}
    assert shown == {short for epoch in replay.session.received() for short in epoch}
    assert listed["metrics"]["injected"] == len(shown)


def test_nothing_is_given_twice_before_a_compaction_nor_after_it(replay: Replay) -> None:
    epochs = replay.session.received()
    assert len(epochs) == 2
    for received in epochs:
        assert len(received) == len(set(received))
        assert received


def test_the_very_next_prompt_brings_a_memory_that_was_just_written(replay: Replay) -> None:
    for number, (_, content) in STORED.items():
        assert replay.stored[number][:18] in replay.given[number], content


def test_a_compaction_brings_back_what_the_model_lost(replay: Replay) -> None:
    before, after = ("\n".join(given) for given in replay.session.contexts)
    assert "never print customer names" in before
    for known in ("never print customer names", "listens on port 9105", "## Session Recovery Context"):
        assert known in after


def test_nothing_of_another_project_is_given(replay: Replay) -> None:
    asking = replay.room.session()
    asking.begin()
    for number in range(0, FOREIGN, 49):
        asking.prompt(foreign_question(number))
    asking.end()
    given = "\n".join(text for epoch in (*replay.session.contexts, *asking.contexts) for text in epoch)
    foreign = replay.room.daemon.read("SELECT id FROM memories WHERE project = ?", str(replay.room.elsewhere))
    assert len(foreign) == FOREIGN
    assert not {memory_id[:18] for (memory_id,) in foreign} & set(re.findall(r"\(id ([0-9a-f-]{18})\)", given))
    there = replay.room.session(project=replay.room.elsewhere)
    brought = [foreign_memory(number) in there.prompt(foreign_question(number)) for number in range(0, FOREIGN, 49)]
    assert any(brought), "the same prompts bring them in their own project"


def test_the_next_session_begins_with_what_this_one_left(replay: Replay) -> None:
    session = replay.room.session()
    start = session.begin()
    assert "never print customer names on the outside of a parcel" in start
    for _, content in STORED.values():
        assert sentences(content)[0] in start
    assert "## Session Recovery Context" not in start, "the session has reported its end"
    for _, content in STORED.values():
        assert content not in session.prompt(f"Tell me again: {content}"), "it was given at the start"
    session.end()


def test_unrelated_prompts_bring_nothing(replay: Replay) -> None:
    session = replay.room.session()
    session.begin()
    assert [session.prompt(prompt) for prompt in UNRELATED] == [""] * len(UNRELATED)


def event_orders(replay: Replay) -> list[Any]:
    return [True, False] if replay.room.harness is CLAUDE_CODE else [True]


def test_a_compaction_is_one_in_whichever_order_its_events_come(replay: Replay) -> None:
    """What the start after the compaction has given is not given again by a prompt, whichever event came first."""
    for start_first in event_orders(replay):
        session = replay.room.session()
        session.begin()
        session.compact(f"We printed labels ({start_first}).", start_first=start_first)
        session.prompt("Which port does the label printer of the packing hall listen on?")
        session.prompt("How are parcel weights rounded?")
        first, second = session.received()
        assert len(second) == len(set(second)), start_first
        assert set(first) & set(second)
        session.end()
