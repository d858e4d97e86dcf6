"""A name of a project means every directory with this last part, and past sessions are listed by it.

Source: docs/concepts.md "Who may see it"; docs/guides/transcripts.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from tests.support.live_daemon import Client

pytestmark = pytest.mark.system
TEXT: Final = "The frontend of the shop runs on port 5173"
QUESTION: Final = "which port has the frontend?"
CASES: Final = (
    # stored with, asked with, found
    ("orderdesk", "orderdesk", True),
    ("orderdesk", "/home/you/orderdesk", True),
    ("orderdesk", "/srv/work/orderdesk", True),
    ("orderdesk", "/home/you/orderdesk/", True),
    ("/home/you/orderdesk", "orderdesk", True),
    ("/srv/deep/er/orderdesk", "orderdesk", True),
    ("/home/you/orderdesk", "/home/you/orderdesk", True),
    ("/home/you/my shop", "my shop", True),
    ("/home/you/läden", "läden", True),
    ("/home/you/a%b", "a%b", True),
    ("/home/you/a_b", "a_b", True),
    ("/home/you/orderdesk", "/srv/orderdesk", False),
    ("orderdesk", "orderdes", False),
    ("orderdesk", "desk", False),
    ("/home/you/orderdesk", "desk", False),
    ("/home/you/orderdesk", "you", False),
    ("/home/you/orderdesk", "home", False),
    ("/home/you/orderdesk/web", "orderdesk", False),
    ("/home/you/orderdesk", "Orderdesk", False),
    ("/home/you/axb", "a_b", False),
    ("/home/you/axxb", "a%b", False),
    ("orderdesk", "/home/you/desk", False),
    ("web", "/home/you/orderdesk", False),
    ("org/billing", "billing", True),
    ("billing", "org/billing", False),
    ("work", "D:\\work", True),
    ("/home/you/desk", "orderdesk", False),
)


def test_a_name_without_a_slash_is_each_directory_that_ends_with_it(empty_rooms: Callable[[], Client]) -> None:
    wrong = []
    for stored, asked, expected in CASES:
        room = empty_rooms()
        room.remember(TEXT, project=stored)
        found = {
            "recall": bool(room.recalled(QUESTION, project=asked, min_relevance=0.5)),
            "list": bool(room.get("/api/memories", project=asked).ok()["memories"]),
            "search": bool(room.get("/memory/search", q="frontend", project=asked).ok()["results"]),
        }
        if "/" in asked:
            prompt = {"harness": "x", "userPrompt": QUESTION, "sessionKey": f"s-{asked}-{stored}", "project": asked}
            found["prompt"] = TEXT in room.post("/api/hooks/user-prompt-submit", prompt).ok()["inject"]
        wrong += [(stored, asked, way) for way, was_found in found.items() if was_found is not expected]
    assert wrong == []


def test_past_sessions_are_listed_with_their_first_prompt_and_found_by_the_name_of_their_directory(
    room: Client,
) -> None:
    for key, cwd, said in (
        ("a1-first", "/home/you/orderdesk", "Write the import"),
        ("a1-second", "/srv/orderdesk", "Test the import"),
        ("b2-third", "/home/you/web", "Make it blue"),
    ):
        end = {"harness": "codex", "sessionKey": key, "cwd": cwd, "transcript": f"User: {said}\nAssistant: Done."}
        room.post("/api/hooks/session-end", end).ok()
    listed = room.get("/api/sessions/past").ok()
    assert [(one["sessionKey"], one["prompt"], one["turns"]) for one in listed["sessions"]] == [
        ("b2-third", "Make it blue", 2),
        ("a1-second", "Test the import", 2),
        ("a1-first", "Write the import", 2),
    ]
    assert {(one["harness"], one["summary"]) for one in listed["sessions"]} == {("codex", None)}
    assert listed["total"] == 3

    def keys(**asked: object) -> list[str]:
        return [one["sessionKey"] for one in room.get("/api/sessions/past", **asked).ok()["sessions"]]

    assert keys(project="orderdesk") == ["a1-second", "a1-first"]
    assert keys(project="/srv/orderdesk") == ["a1-second"]
    assert keys(prefix="a1-") == ["a1-second", "a1-first"]
    assert keys(prefix="a1-s", limit=1) == ["a1-second"]
    assert keys(limit=1, offset=2) == ["a1-first"]
    assert keys(prefix="zz") == keys(project="desk") == []


def test_sessions_of_another_agent_are_not_listed(empty_rooms: Callable[[], Client]) -> None:
    one, other = empty_rooms(), empty_rooms()
    end = {"harness": "x", "sessionKey": "mine", "transcript": "User: a\nAssistant: b"}
    one.post("/api/hooks/session-end", end).ok()
    assert other.get("/api/sessions/past").ok() == {"sessions": [], "total": 0}


def test_an_agent_is_told_that_no_session_has_run_in_a_directory_of_the_name(
    empty_rooms: Callable[[], Client],
) -> None:
    room = empty_rooms()
    turns = [{"role": "user", "content": "Paint the shed"}, {"role": "assistant", "content": "Painted."}]
    end = {
        "harness": "codex",
        "sessionKey": "shed",
        "project": "/home/you/shed",
        "transcript": turns,
        "reason": "logout",
    }
    room.post("/api/hooks/session-end", end).ok()
    agent = room.acting(x_signet_actor="codex", x_signet_actor_type="agent")
    for who, project, is_told in (
        (agent, "barn", True),
        (agent, "shed", False),
        (agent, "/home/you/barn", False),
        (agent, "", False),
        (room, "barn", False),
    ):
        body = {"content": f"{TEXT} of {project} {len(who.headers)}", "project": project}
        warnings = " ".join(who.post("/api/memory/remember", body).ok().get("warnings", []))
        assert ("No session has run in a directory named barn yet" in warnings) is is_told, (project, warnings)
