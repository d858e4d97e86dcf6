"""How a hook looks for the mark in a transcript: as the daemon does, and without reading all of a long session.

Source: docs/guides/hooks.md "Switch it off".
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from signet_actors.domain.transcripts import parse
from signet_actors.domain.transcripts.turns import TranscriptTooLong
from signet_actors.hook import off_mark
from signet_actors.hook.off_mark import is_in_transcript

MARK = "[signet off] we plan"


def lines(*records: Any) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in records)


def claude(role: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": role, "sessionId": "s", "message": {"role": role, "content": content}, **fields}


def codex(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-11-21T10:00:00.000Z", "type": "response_item", "payload": {"type": kind, **payload}}


def codex_message(role: str, text: str) -> dict[str, Any]:
    return codex("message", role=role, content=[{"type": "input_text", "text": text}])


def codex_answer(text: str) -> str:
    asked = {"questions": [{"id": "q", "question": "Shall I?"}]}
    said = {"answers": {"q": {"answers": [f"user_note: {text}"]}}}
    return lines(
        codex_message("user", "hello"),
        codex("function_call", name="request_user_input", call_id="c", arguments=json.dumps(asked)),
        codex("function_call_output", call_id="c", output=json.dumps(said)),
    )


def gemini(text: str, kind: str = "user") -> dict[str, Any]:
    return {"id": kind, "timestamp": "2026-11-22T08:00:00.000Z", "type": kind, "content": [{"text": text}]}


def opencode(text: str) -> dict[str, Any]:
    return {"info": {}, "messages": [{"info": {"role": "user"}, "parts": [{"type": "text", "text": text}]}]}


HEAD = {"sessionId": "s", "projectHash": "8f2b"}
QUEUED = {"type": "attachment", "attachment": {"type": "queued_command", "prompt": MARK, "commandMode": "prompt"}}
HELLO = claude("user", "hello")
TRANSCRIPTS: dict[str, tuple[str, bool]] = {
    "Claude Code": (lines(claude("user", MARK)), True),
    "later": (lines(HELLO, claude("assistant", "Hi"), claude("user", MARK), claude("assistant", "Yes")), True),
    "capitals": (lines(HELLO, claude("user", "[Signet OFF] x")), True),
    "parts": (lines(HELLO, claude("user", [{"type": "text", "text": MARK}])), True),
    "queued": (lines(HELLO, {**QUEUED, "sessionId": "s"}), True),
    "Codex": (lines(codex_message("user", "hello"), codex_message("user", MARK)), True),
    "an answer to Codex": (codex_answer(MARK), True),
    "Gemini CLI": (lines(HEAD, gemini(MARK)), True),
    "an old file of Gemini CLI": (json.dumps({**HEAD, "messages": [gemini(MARK)]}, indent=2), True),
    "OpenCode": (json.dumps(opencode(MARK)), True),
    "OpenCode in lines": (json.dumps(opencode(MARK), indent=2), True),
    "messages": (lines({"role": "user", "content": "hello"}, {"role": "user", "content": MARK}), True),
    "a list of messages": (json.dumps([{"role": "user", "content": MARK}], indent=1), True),
    "a list in lines": (f"[\n{json.dumps({'role': 'user', 'content': MARK})}\n]", True),
    "a dialogue": (f"User: hello\nAssistant: Hi\nUser: {MARK}\nAssistant: Yes\n", True),
    "a dialogue with breaks": (f"User: hello\nAssistant: Hi\nUser:\n{MARK}\nAssistant: Yes\n", True),
    "far behind": (lines(*(claude("assistant", "x" * 9000) for _ in range(300)), claude("user", MARK)), True),
    "the agent": (lines(HELLO, claude("assistant", MARK)), False),
    "a tool": (lines(HELLO, claude("user", [{"type": "tool_result", "content": MARK}])), False),
    "a subagent": (lines(HELLO, claude("user", MARK, isSidechain=True)), False),
    "within a line": (lines(HELLO, claude("user", "What does [signet off] do?")), False),
    **{
        f"spelled {mark!a}": (lines(HELLO, claude("user", f"{mark} we plan")), True)
        for mark in (
            "[Signet-Off.]",
            "[ signet  off ]",
            "[signet\u00a0\u00a0\u00a0:\u00a0off\u00a0]",
            "[signet \u2013 off!]",
        )
    },
    "another spelling in a line": (lines(HELLO, claude("user", "What does [signet-off] do?")), False),
    "another switch": (lines(HELLO, claude("user", "[on / off] and [signet on]")), False),
    "a file that has it": (lines(HELLO, {"type": "attachment", "content": MARK}), False),
    "an answer of an agent of Codex": (lines(codex_message("user", "x"), codex_message("assistant", MARK)), False),
    "nothing": ("", False),
}


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_the_mark_is_found_in_the_prompts_of_a_transcript_and_nowhere_else(name: str, tmp_path: Path) -> None:
    text, expected = TRANSCRIPTS[name]
    path = tmp_path / "s.jsonl"
    path.write_text(text)
    assert is_in_transcript({}, str(path)) is expected
    assert is_in_transcript({"transcript": text}, "") is expected


class Parsed:
    """Receives what would be parsed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.texts: list[bytes] = []
        self._parse = parse.parse_transcript
        monkeypatch.setattr(parse, "parse_transcript", self)

    def __call__(self, raw: bytes, make_way: Callable[[], None] = lambda: None) -> Any:
        self.texts.append(raw)
        return self._parse(raw, make_way)


def test_of_a_long_session_only_the_lines_that_may_have_the_mark_are_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = Parsed(monkeypatch)
    other = [claude("assistant", f"The switch is [on / off], {number}") for number in range(200)]
    assert not is_in_transcript({"transcript": lines(HELLO, *other)}, "")
    assert parsed.texts == []
    quoted = claude("assistant", "Type [signet off] there")
    assert not is_in_transcript({"transcript": lines(HELLO, *other, quoted)}, "")
    assert is_in_transcript({"transcript": lines(HELLO, *other, quoted, claude("user", MARK))}, "")
    assert [len([line for line in text.splitlines() if line]) for text in parsed.texts] == [2, 3]


def test_a_conversation_that_is_too_long_to_be_read_counts_as_one_with_the_mark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise TranscriptTooLong("8 characters")

    monkeypatch.setattr(parse, "parse_transcript", refuse)
    assert is_in_transcript({"transcript": lines(HELLO, claude("user", MARK))}, "")
    assert not is_in_transcript({"transcript": lines(HELLO)}, "")


def test_a_search_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(off_mark, "SEARCH_LIMIT_S", -1)
    assert not is_in_transcript({"transcript": lines(HELLO, claude("user", MARK))}, "")
