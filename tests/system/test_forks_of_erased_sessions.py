"""A session that begins with a copy of an erased one stores what is new in it, and nothing of what was erased.

Source: docs/guides/transcripts.md "Copied turns".
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.live_daemon import Client, LiveDaemon
from tests.system.test_sessions_switched_off import COPIED, TIMED, Session, at, claude, lines

pytestmark = pytest.mark.system


@pytest.fixture
def agent(room: Client) -> Client:
    return room


def erase(session: Session, key: str = "") -> Any:
    return session.agent.request("DELETE", f"/api/sessions/{key or session.key}/transcript").ok()["turns"]


def words(session: Session, key: str) -> list[str]:
    stored = session.stored(key)
    return [word for word in ("firstword", "laterword", "ownword") if word in stored]


@pytest.mark.parametrize("program", COPIED)
@pytest.mark.parametrize("goes_on", [True, False])
def test_a_fork_of_an_erased_session_stores_only_what_is_new(agent: Client, program: str, goes_on: bool) -> None:
    session = Session(agent, TIMED[program], name="erased")
    origin, fork = session.key if "code" in program else "", f"fork-of-{session.key}"
    session.say("firstword", at(hours=-1))
    session.report()
    assert erase(session) == 2
    if goes_on:  # under its own name, too
        session.say("laterword", at(minutes=-1))
        assert session.report()["stored"] is False
    session.hook("session-start", sessionKey=fork, source="resume")
    for reason in ("exit", "backfill"):
        session.report(key=fork, origin=origin, reason=reason)
        assert session.stored(fork) == ""
    session.say("ownword", at(minutes=5))
    for reason in ("exit", "backfill"):
        assert session.report(key=fork, origin=origin, reason=reason)["stored"] is True
        assert words(session, fork) == ["ownword"]
    found = agent.post("/api/sessions/search", {"query": "firstword"}).ok()["hits"]
    assert found == []


def test_a_fork_that_was_stored_before_keeps_what_it_has_and_goes_on(agent: Client) -> None:
    session = Session(agent, name="erased")
    session.say("firstword", at(hours=-1))
    session.report()
    session.report(key="early-fork")
    erase(session)
    session.say("ownword", at())
    session.report(key="early-fork")
    assert words(session, "early-fork") == ["firstword", "ownword"]
    assert erase(session, "early-fork") == 4
    session.report(key="late-fork")
    assert session.stored("late-fork") == ""


def test_erasing_a_fork_takes_nothing_from_the_session_that_it_copied(agent: Client) -> None:
    session = Session(agent, name="erased")
    session.say("firstword", at(hours=-1))
    session.report()
    session.report(key="erased-fork")
    erase(session, "erased-fork")
    session.report(key="erased-fork")
    session.say("ownword", at())
    for key in (session.key, "other-fork"):
        session.report(key=key)
        assert words(session, key) == ["firstword", "ownword"]


def test_another_agent_stores_its_own_session_of_the_same_name(daemon: LiveDaemon) -> None:
    session = Session(daemon.agent("of-erased"), name="erased")
    session.say("firstword", at(hours=-1))
    session.report()
    erase(session)
    session.agent = daemon.agent("beside-erased")
    session.report()
    assert words(session, session.key) == ["firstword"]


def test_the_summary_of_a_compaction_in_a_fork_does_not_bring_the_erased_text_back(agent: Client) -> None:
    session, fork = Session(agent, name="erased"), "compacted-fork"
    session.say("firstword", at(hours=-1))
    session.report()
    erase(session)
    session.say("ownword", at())
    records = [json.loads(line) for line in claude(fork, session.said).splitlines()]
    summary = records[-1] | {"uuid": "u-summary", "isCompactSummary": True}
    summary["message"] = {"role": "user", "content": "They spoke of the firstword."}
    session.hook("session-end", sessionKey=fork, transcript=lines([*records, summary]))
    assert words(session, fork) == ["ownword"]
