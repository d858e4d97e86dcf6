"""An edit of a memory is what somebody says now: newer than other versions, and what it replaced is not told again.

Source: docs/quality.md "Versions of a fact"; docs/guides/hooks.md "Each prompt".
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import Client
from tests.system.edited_pairs import EDITS, PARTLY
from tests.system.fact_versions import VERSIONS
from tests.system.test_fact_versions import FACT_TIME, first
from tests.system.test_told_after_forgetting import PROJECT, SAID, Said, forget, given, recalled, started, talk

pytestmark = pytest.mark.system
NEW_WORDS: Final = {
    "backup3": "heron8",
    "osprey4": "kestrel2",
    "5433": "5434",
    "Frankfurt": "Dublin",
    "pnpm": "yarn",
    "Mia": "Tariq",
    "90 days": "365 days",
    "Thursday": "Tuesday",
    "tariff.example.com": "rates.example.net",
    "tabs over": "blanks over",
    "15 percent": "20 percent",
    "checkout_v2": "checkout_v3",
    "fixtures:7": "fixtures:9",
    "Kormoran": "Seeadler",
    "Lund": "Brandt",
    "2121": "2222",
    "300 euros": "450 euros",
    "85 percent": "92 percent",
    "Monday": "Friday",
    "Pelikan": "Albatros",
}


def edit(client: Client, memory: str, **changes: Any) -> None:
    client.request("PATCH", f"/api/memory/{memory}", {"reason": "corrected", **changes}).ok()


def says(text: str, word: str) -> bool:
    text = re.sub(r"\b\d\d:\d\d\b", "", text)  # the time of the session
    return re.search(rf"(?<!\w){re.escape(word)}(?![0-9a-z])", text) is not None


def new_text(said: Said) -> str:
    return said.stored.replace(said.word, NEW_WORDS[said.word])


def test_what_a_session_said_before_an_edit_is_given_with_no_prompt_and_no_start(
    empty_rooms: Callable[[], Client],
) -> None:
    old, without_new, after_forgetting = [], [], []
    for said in SAID:
        room = empty_rooms()
        memory = room.remember(said.stored, project=PROJECT, createdAt="2026-01-05T08:00:00Z")["id"]
        talk(room, said)
        edit(room, memory, content=new_text(said))
        prompted = given(room, said)
        old += [text for text in (prompted, started(room)) if says(text, said.word)]
        without_new += [] if says(prompted, NEW_WORDS[said.word]) else [prompted]
        forget(room, memory)
        after_forgetting += [text for text in (given(room, said), started(room)) if says(text, said.word)]
        assert said.word in recalled(room, said)  # who asks is told what was said
    assert (old, without_new, after_forgetting) == ([], [], [])


def test_an_edit_that_leaves_the_fact_as_it_is_takes_nothing_from_a_session(empty_rooms: Callable[[], Client]) -> None:
    untold = []
    for said in SAID:
        room = empty_rooms()
        memory = room.remember(f"{said.stored}!", project=PROJECT)["id"]
        talk(room, said)
        edit(room, memory, content=said.stored)
        if "earlier session" not in given(room, said):
            untold.append(said)
    assert untold == []


def prompted(room: Client, question: str) -> str:
    body = {"harness": "claude-code", "sessionKey": f"asks-{uuid.uuid4()}", "project": PROJECT}
    room.post("/api/hooks/session-start", body).ok()
    inject: str = room.post("/api/hooks/user-prompt-submit", {**body, "userPrompt": question}).ok()["inject"]
    return inject


def edited_after(room: Client, old: str, new: str, user: str, agent: str) -> str:
    """Store the former text, have the exchange, edit the memory; return the memory's id."""
    memory: str = room.remember(old, project=PROJECT, createdAt="2026-01-05T08:00:00Z")["id"]
    talk(room, Said(user, agent, old, user, ""))
    edit(room, memory, content=new)
    return memory


def test_an_exchange_that_only_states_the_former_value_is_given_with_no_prompt(
    empty_rooms: Callable[[], Client],
) -> None:
    told = []
    for pair in EDITS:
        for user, agent in pair.outdated:
            room = empty_rooms()
            edited_after(room, pair.old, pair.new, user, agent)
            given_ = prompted(room, user)
            told += [(user, agent, given_)] if "earlier session" in given_ else []
    assert told == []


def test_an_exchange_that_tells_something_else_of_the_former_value_is_given_and_marked(
    empty_rooms: Callable[[], Client],
) -> None:
    wrong = []
    for pair in EDITS:
        for user, agent in pair.telling:
            room = empty_rooms()
            memory = edited_after(room, pair.old, pair.new, user, agent)
            given_ = prompted(room, user)
            if agent[:80] not in given_ or f"see the newer {memory[:8]}" not in given_:
                wrong.append((user, agent, given_))
    assert wrong == []


def test_a_start_marks_what_the_last_session_told_of_the_former_value(room: Client) -> None:
    wrong = []
    cases = [(pair, user, agent) for pair in EDITS for user, agent in pair.telling]
    for number, (pair, user, agent) in enumerate(cases):
        project = f"/home/ada/edited-{number}"
        memory = room.remember(pair.old, project=project, createdAt="2026-01-05T08:00:00Z")["id"]
        body = {"harness": "claude-code", "project": project, "sessionKey": f"last-{uuid.uuid4()}"}
        said = {"transcript": f"User: {user}\nAssistant: {agent}", "reason": "logout"}
        room.post("/api/hooks/session-end", {**body, **said}).ok()
        edit(room, memory, content=pair.new)

        def last_told(body: dict[str, Any] = body) -> list[str]:
            inject: str = room.post("/api/hooks/session-start", {**body, "sessionKey": str(uuid.uuid4())}).ok()[
                "inject"
            ]
            return [line for line in inject.splitlines() if line.startswith(("- Last prompt: ", "- Last answer: "))]

        eventually(last_told, what="a start with the last session")
        last = last_told()
        if agent[:60] not in " ".join(last) or not any(f"(see the newer {memory[:8]}" in line for line in last):
            wrong.append((user, agent, last))
    assert wrong == []


def test_of_an_answer_only_the_sentence_with_the_former_value_is_left_out(empty_rooms: Callable[[], Client]) -> None:
    wrong = []
    for old, new, user, agent, left in PARTLY:
        room = empty_rooms()
        edited_after(room, old, new, user, agent)
        given_ = prompted(room, user)
        if left not in given_ or agent in given_:
            wrong.append((user, given_))
    assert wrong == []


def test_an_edited_memory_is_the_newest_version(empty_rooms: Callable[[], Client]) -> None:
    wrong = []
    for versions in VERSIONS:
        room = empty_rooms()
        former, newest = versions.texts[0], versions.texts[-1]
        memory = room.remember(f"{newest}, as a draft says", createdAt=FACT_TIME.format(1))["id"]
        room.remember(former, createdAt=FACT_TIME.format(2))
        edit(room, memory, content=newest)
        inject = room.post("/api/hooks/user-prompt-submit", {"harness": "t", "userPrompt": versions.question}).ok()
        if newest not in inject["inject"] or former in inject["inject"] or "2026-01" in inject["inject"]:
            wrong.append((versions, inject["inject"]))
        if first(room, versions.question) != newest:
            wrong.append((versions, "recall"))
    assert wrong == []


@pytest.mark.parametrize("change", [{"tags": "old"}, {"importance": 0.9}, {"pinned": True}, {"type": "decision"}, None])
def test_a_change_of_other_fields_and_a_recovery_make_no_version_newer(
    empty_rooms: Callable[[], Client], change: dict[str, Any] | None
) -> None:
    wrong = []
    for versions in VERSIONS:
        room = empty_rooms()
        memory = room.remember(versions.texts[0], createdAt=FACT_TIME.format(1))["id"]
        room.remember(versions.texts[-1], createdAt=FACT_TIME.format(2))
        if change is None:
            forget(room, memory)
            room.post(f"/api/memory/{memory}/recover", {"reason": "right"}).ok()
        else:
            edit(room, memory, **change)
        if first(room, versions.question) != versions.texts[-1]:
            wrong.append(versions)
    assert wrong == []


def test_an_edited_memory_is_still_the_newest_after_an_export_and_an_import(empty_rooms: Callable[[], Client]) -> None:
    wrong = []
    for versions in VERSIONS:
        room, other = empty_rooms(), empty_rooms()
        memory = room.remember(f"{versions.texts[-1]} (draft)", createdAt=FACT_TIME.format(1))["id"]
        room.remember(versions.texts[0], createdAt=FACT_TIME.format(2))
        edit(room, memory, content=versions.texts[-1])
        lines = [json.loads(line) for line in room.get("/api/memory/export").raw.splitlines()]
        moved = "".join(json.dumps({**line, "id": str(uuid.uuid4()), "agentId": None}) + "\n" for line in lines)
        other.request("POST", "/api/memory/import", moved.encode()).ok()
        if first(other, versions.question) != versions.texts[-1]:
            wrong.append(versions)
    assert wrong == []
