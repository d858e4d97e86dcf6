"""A mark that only the transcript shows counts from the next hook that names the transcript, before it does anything.

Source: docs/guides/hooks.md "Switch it off".
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.live_daemon import Client

pytestmark = pytest.mark.system
NUMBERS = itertools.count(1)
MARK = "[signet off] we speak of the axolotl"


def claude(role: str, text: str) -> dict[str, Any]:
    return {"type": role, "message": {"role": role, "content": text}}


def queued(text: str) -> dict[str, Any]:
    return {
        "type": "attachment",
        "attachment": {"type": "queued_command", "prompt": text, "commandMode": "prompt"},
    }


def codex(role: str, text: str) -> dict[str, Any]:
    said = {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}
    return {"type": "response_item", "payload": said}


def lines(*records: Any) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in records)


def array(*records: Any) -> str:
    """The file of a program that writes its end anew with each message."""
    messages = [{"info": {"role": role}, "parts": [{"type": "text", "text": text}]} for role, text in records]
    return json.dumps({"info": {"id": "x"}, "messages": messages}, indent=2)


def dialogue(*records: Any) -> str:
    return "\n\n".join(f"{role.title()}: {text}" for role, text in records) + "\n"


def of(record: Callable[[str, str], Any]) -> Callable[..., str]:
    return lambda *records: lines(*(each if isinstance(each, dict) else record(*each) for each in records))


FILES: dict[str, Callable[..., str]] = {
    "claude": of(claude),
    "codex": of(codex),
    "messages": of(lambda role, text: {"role": role, "content": text}),
    "array": array,
    "dialogue": dialogue,
}
HELLO: list[Any] = [("user", "hello there"), ("assistant", "hi")]
MARKED: dict[str, list[Any]] = {
    "typed": [("user", MARK)],
    "behind a picture": [("user", f"[Image #1] {MARK}")],
    "behind a stamp": [("user", f"[Wed 2026-01-28 20:30 EST] {MARK}")],
    "before an answer": [("user", MARK), ("assistant", "Fine. " * 2000)],
    "after much else": [("assistant", "Well. " * 2000), ("user", MARK)],
}
NOT_MARKED: dict[str, list[Any]] = {
    "nothing": [],
    "of the agent": [("assistant", MARK)],
    "within a line": [("user", "what does [signet off] do?")],
    "quoted": [("user", "`[signet off]` ought to be in the manual, is it?")],
}
HOOKS: dict[str, dict[str, Any]] = {
    "user-prompt-submit": {"userPrompt": "which plans has the axolotl?"},
    "remember": {"content": "The axolotl plans to leave"},
    "compaction-complete": {"summary": "They spoke of the axolotl and its plans."},
    "pre-compaction": {"sessionContext": "keep the axolotl"},
    "session-start": {"source": "resume"},
}


class Session(NamedTuple):
    agent: Client
    key: str
    file: Path
    write: Callable[..., str]

    def hook(self, name: str, **fields: Any) -> Any:
        body = {"harness": "x", "sessionKey": self.key, "transcriptPath": str(self.file), **fields}
        return self.agent.post(f"/api/hooks/{name}", body).ok()

    def kept(self) -> str:
        """What of the session can be found."""
        checkpoints = self.agent.get(f"/api/checkpoints/{self.key}").ok()["checkpoints"]
        return json.dumps([checkpoints, [row["content"] for row in self.agent.listed()]])


@pytest.fixture
def began(room: Client) -> Callable[[str], Session]:
    def begin(program: str) -> Session:
        folder = room.daemon.workspace / "transcripts" / "marks"
        folder.mkdir(parents=True, exist_ok=True)
        key = f"marked-{next(NUMBERS)}"
        session = Session(room, key, folder / f"{key}.jsonl", FILES[program])
        session.file.write_text(session.write(*HELLO))
        return session

    return begin


@pytest.mark.parametrize("program", FILES)
def test_each_hook_that_names_the_transcript_looks_for_a_mark_before_it_does_anything(
    began: Callable[[str], Session], program: str
) -> None:
    cases = list(itertools.product({**MARKED, **NOT_MARKED}.items(), HOOKS, (True, False)))
    for (case, said), name, is_new in cases if program == "claude" else cases[::7]:
        session = began(program)
        if not is_new:  # hooks have read the file before
            session.hook("session-start")
            session.hook("user-prompt-submit", userPrompt="hello there")
        session.file.write_text(session.write(*HELLO, *said))
        answer = session.hook(name, **HOOKS[name])
        is_off = case in MARKED
        assert (answer.get("reason") == "bypassed") is is_off, (case, name, is_new, answer)
        if is_off:
            session.hook("pre-compaction")
            assert session.hook("remember", content="The axolotl is gone")["reason"] == "bypassed"
            assert session.agent.get(f"/api/sessions/{session.key}").ok()["bypassed"] is True
            assert "axolotl" not in session.kept(), (case, name, is_new)
        session.file.unlink()
        for row in session.agent.listed():
            session.agent.request("DELETE", f"/api/memory/{row['id']}?reason=test").ok()


def test_a_prompt_that_was_queued_while_the_agent_worked_counts_for_the_next_one(
    began: Callable[[str], Session],
) -> None:
    session = began("claude")
    session.hook("session-start")
    with session.file.open("a") as file:
        file.write(lines(queued(MARK)))
    assert session.hook("user-prompt-submit", userPrompt="which plans has the axolotl?")["bypassed"] is True
    assert session.hook("session-checkpoint-extract", reason="turn")["reason"] == "bypassed"
    assert session.hook("session-end")["reason"] == "bypassed"
    assert session.agent.get(f"/api/sessions/{session.key}/transcript").status == 404
    assert "axolotl" not in session.kept()


def test_a_mark_in_a_file_that_is_too_long_to_be_stored_counts(began: Callable[[str], Session]) -> None:
    for is_marked in (False, True):
        session = began("claude")
        with session.file.open("a") as file:
            file.write(lines(*[claude("assistant", "Well. " * 200_000)] * 60))  # more than transcripts.maxFileBytes
        for _ in range(2):
            assert "skipped" not in session.hook("user-prompt-submit", userPrompt="which plans has the otter?")
        with session.file.open("a") as file:
            file.write(lines(queued(MARK if is_marked else "which plans?")))
        answer = session.hook("user-prompt-submit", userPrompt="which plans has the axolotl?")
        assert (answer.get("reason") == "bypassed") is is_marked
        session.file.unlink()


def test_a_mark_that_was_answered_by_switching_memory_on_again_does_not_count_twice(
    began: Callable[[str], Session],
) -> None:
    session = began("claude")
    session.file.write_text(session.write(*HELLO, ("user", MARK)))
    assert session.hook("user-prompt-submit", userPrompt="go on")["bypassed"] is True
    session.agent.post(f"/api/sessions/{session.key}/bypass", {"enabled": False}).ok()
    for said in (("user", "and now the otter"), ("assistant", "The otter.")):
        session.file.write_text(session.write(*HELLO, ("user", MARK), said))
        assert session.hook("remember", content=f"The otter is back {said}")["saved"] is True
    assert "otter" in session.kept()


def test_a_file_that_is_made_anew_or_is_no_transcript_of_the_user_is_read_or_left(
    began: Callable[[str], Session],
) -> None:
    session = began("claude")
    session.file.write_text(session.write(*HELLO, ("assistant", "Well. " * 5000)))
    session.hook("session-start")
    session.file.write_text(session.write(("user", MARK)))
    assert session.hook("user-prompt-submit", userPrompt="go on")["bypassed"] is True
    for path in ("/etc/passwd", str(session.file.with_name("gone.jsonl")), "relative.jsonl"):
        other = session._replace(key=f"marked-{next(NUMBERS)}")
        assert "skipped" not in other.hook("user-prompt-submit", userPrompt="go on", transcriptPath=path), path
