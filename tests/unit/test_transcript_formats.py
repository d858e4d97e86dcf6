"""The transcripts of each harness become turns: who said what, when, in which session. Nothing said is lost."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.domain.transcripts.parse import parse_transcript
from signet_actors.domain.transcripts.turns import (
    PIECE_CHARS,
    Transcript,
    TranscriptTooLong,
    Turn,
    conversation,
    stored_turns,
    turn_key,
)

FILES = Path(__file__).parent / "fixtures" / "transcripts"


def read(name: str) -> Transcript:
    return parse_transcript((FILES / name).read_bytes())


def lines(*records: Any) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def said(role: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": role, "sessionId": "s", "message": {"role": role, "content": content}, **fields}


def test_a_session_of_claude_code_is_what_the_user_and_the_agent_said() -> None:
    found = read("claude-code.jsonl")
    assert (found.format, found.session_key) == ("claude-code", "0e9f1d7c-3c1e-4f0e-9a55-6d0c6f1b2a01")
    assert found.turns == [
        Turn("user", "How often does the upload worker retry?", "2026-11-20T09:00:00.000Z"),
        Turn("assistant", "Let me look at the worker.", "2026-11-20T09:00:03.000Z"),
        Turn("assistant", "It retries 4 times, with a pause of 30 seconds.", "2026-11-20T09:00:06.000Z"),
        Turn("user", "Make it 6 times, please.", "2026-11-20T09:02:00.000Z"),
        Turn(
            "system",
            "This session is being continued: the worker's retries are raised from 4 to 6.",
            "2026-11-20T09:03:00.100Z",
        ),
    ]


def test_a_rollout_of_codex_is_what_the_user_and_the_agent_said_once() -> None:
    found = read("codex.jsonl")
    assert (found.format, found.session_key) == ("codex", "019aa5de-7bd4-7c11-8f0e-5a3f1c2d9e01")
    assert found.turns == [
        Turn("user", "Which port does the staging database use?", "2026-11-21T10:00:01.100Z"),
        Turn("assistant", "It uses port 5433.", "2026-11-21T10:00:05.000Z"),
        Turn("system", "The staging database uses port 5433.", "2026-11-21T10:00:06.000Z"),
    ]


def test_a_rollout_of_codex_with_events_alone_is_read_by_its_events() -> None:
    found = parse_transcript(
        lines(
            {
                "timestamp": "2026-11-21T10:00:00Z",
                "type": "event_msg",
                "payload": {"type": "user_message", "message": "q"},
            },
            {
                "timestamp": "2026-11-21T10:00:01Z",
                "type": "event_msg",
                "payload": {"type": "agent_message", "message": "a"},
            },
        )
    )
    assert [(turn.role, turn.text) for turn in found.turns] == [("user", "q"), ("assistant", "a")]


def test_an_earlier_rollout_of_codex_is_read_too() -> None:
    found = read("codex-former.jsonl")
    assert found.format == "codex"
    assert [(turn.role, turn.text) for turn in found.turns] == [
        ("user", "Rename the ferry to barge."),
        ("assistant", "Renamed in 3 files."),
    ]


def test_an_export_of_opencode_is_what_the_user_and_the_agent_said() -> None:
    found = read("opencode.json")
    assert (found.format, found.session_key) == ("opencode", "ses_4b1f0a2c7ffeV3p0S5cXh2m1Qe")
    assert found.turns == [
        Turn("user", "How long is the price list cached?", "2026-11-20T10:00:00.000Z"),
        Turn("assistant", "For 15 minutes.", "2026-11-20T10:00:05.000Z"),
    ]


def test_a_dialogue_is_split_where_a_line_names_the_speaker() -> None:
    found = read("dialogue.txt")
    assert found.format == "dialogue"
    assert [(turn.role, turn.text) for turn in found.turns] == [
        ("user", "What is the ferry's timetable stored in?"),
        ("assistant", "In a table named sailings.\nIt has a row per crossing."),
        ("user", "Thanks: and the fares?"),
        ("assistant", "In fares.csv."),
    ]


def test_messages_in_json_lines_have_their_roles_and_times() -> None:
    found = read("messages.jsonl")
    assert found.format == "json"
    assert found.turns == [
        Turn("system", "You are a helpful agent."),
        Turn("user", "Where do logs go?", "2026-11-20T10:00:00.000Z"),
        Turn("assistant", "To /var/log/ferry.", "2026-11-20T10:00:05.000Z"),
    ]


@pytest.mark.parametrize(
    "document", [[{"role": "user", "content": "q"}], {"messages": [{"from": "human", "value": "q"}]}]
)
def test_messages_in_a_list_are_read(document: Any) -> None:
    assert parse_transcript(json.dumps(document, indent=1).encode()).turns == [Turn("user", "q")]


@pytest.mark.parametrize(
    "raw",
    [
        b"Notes of a meeting\nUser: no, this is prose",
        b'{"kind": "a format from the future"}\n{"kind": 2}',
        b"User: alone",
    ],
)
def test_an_unknown_format_is_kept_as_text(raw: bytes) -> None:
    found = parse_transcript(raw)
    assert (found.format, found.turns) == ("text", [Turn("text", raw.decode())])


@pytest.mark.parametrize("raw", [b"", b" \n\t ", b"\xef\xbb\xbf"])
def test_nothing_has_no_turns(raw: bytes) -> None:
    assert parse_transcript(raw).turns == []


def test_the_calls_of_tools_and_what_they_returned_are_left_out() -> None:
    call = {"type": "tool_use", "name": "mcp__signet__memory_store", "input": {"content": "the port is 5433"}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "the port is 5433"}]}
    found = parse_transcript(lines(said("user", "hi"), said("assistant", [call]), said("user", [result])))
    assert [turn.text for turn in found.turns] == ["hi"]


def test_half_a_last_line_is_left_to_the_next_capture() -> None:
    whole = lines(said("user", "first"), said("assistant", "second"))
    found = parse_transcript(whole[:-20])
    assert ([turn.text for turn in found.turns], found.unfinished, found.skipped) == (["first"], True, 0)
    complete = parse_transcript(whole.rstrip(b"\n"))
    assert ([turn.text for turn in complete.turns], complete.unfinished) == (["first", "second"], False)


def test_a_line_that_is_no_json_is_skipped_and_counted() -> None:
    found = parse_transcript(
        lines(said("user", "one")) + b"garbage\n" + lines(said("user", "two"), said("user", "three"))
    )
    assert ([turn.text for turn in found.turns], found.skipped) == (["one", "two", "three"], 1)


def test_bytes_that_are_not_utf8_and_half_a_surrogate_pair_lose_nothing_else() -> None:
    found = parse_transcript(
        b'{"type":"user","message":{"role":"user","content":"caf\xff one"}}\n'
        b'{"type":"user","message":{"role":"user","content":"two \\ud83d three\\u0000"}}\n'
    )
    assert [turn.text for turn in found.turns] == ["caf\ufffd one", "two \ufffd three"]


def test_a_line_of_ten_megabytes_is_read() -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": "x" * 10_000_000}
    content = [result, {"type": "text", "text": "the picture above"}]
    assert parse_transcript(lines(said("user", content))).turns == [Turn("user", "the picture above")]
    assert parse_transcript(lines(said("user", "x" * 8_000_000))).turns == [Turn("user", "x" * 8_000_000)]


def test_a_line_with_a_million_values_is_skipped() -> None:
    hostile = b'{"type":"user","message":{"role":"user","content":[' + b"[]," * 1_000_000 + b"1]}}\n"
    found = parse_transcript(lines(said("user", "one"), said("user", "two")) + hostile)
    assert ([turn.text for turn in found.turns], found.skipped) == (["one", "two"], 1)


def test_an_export_with_a_million_parts_is_refused_before_it_is_decoded() -> None:
    parts = b'{"type":""},' * 400_000 + b'{"type":"text","text":"q"}'
    with pytest.raises(TranscriptTooLong, match="more than 250000 values in JSON"):
        parse_transcript(b'{"info":{},"messages":[{"info":{"role":"user"},"parts":[' + parts + b"]}]}")


def test_the_lines_of_a_dialogue_take_little_memory() -> None:
    raw = b"User: one\nAssistant: two\n" + b"\n" * 300_000 + b"three"
    tracemalloc.start()
    try:
        found = parse_transcript(raw)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [turn.text.split()[-1] for turn in found.turns] == ["one", "three"]
    assert peak < 6 * len(raw)


@pytest.mark.parametrize("content", [None, 7, [7, None, {"text": 3}, {"type": "text"}], {"parts": 3}, True])
def test_a_content_of_another_type_is_no_turn(content: Any) -> None:
    assert parse_transcript(lines(said("user", content), said("user", "x"))).turns == [Turn("user", "x")]


def test_a_reminder_of_the_program_is_no_word_of_the_user_but_an_open_one_is() -> None:
    found = parse_transcript(
        lines(
            said("user", "<system-reminder>a</system-reminder>one<system-reminder>b</system-reminder> two"),
            said("user", "three <system-reminder> four"),
        )
    )
    assert [turn.text for turn in found.turns] == ["one two", "three <system-reminder> four"]


@given(st.binary(max_size=400))
def test_any_bytes_are_read(raw: bytes) -> None:
    parse_transcript(raw)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(
                    ["type", "message", "role", "content", "payload", "text", "timestamp", "messages", "parts", "info"]
                ),
                inner,
            )
        ),
        max_leaves=20,
    )
)
def test_any_json_is_read(value: Any) -> None:
    raw = json.dumps(value).encode()
    parse_transcript(raw)
    parse_transcript(lines({"type": "user", "message": value}, {"type": "response_item", "payload": value}))


@given(st.lists(st.sampled_from("ab\n"), max_size=40).map("".join), st.integers(0, 40))
def test_the_pieces_of_turns_make_up_the_whole_text(text: str, repeat: int) -> None:
    turns = [Turn("user", text * (1 + repeat * 100)), Turn("assistant", "end")]
    rows = list(stored_turns(turns, lambda each: each))
    assert all(len(row.text) <= PIECE_CHARS for row in rows)
    assert (
        conversation([(row.role, row.text, row.continues) for row in rows])
        == f"User: {turns[0].text}\n\nAssistant: end"
    )


def test_equal_turns_have_different_keys_and_the_same_ones_in_every_capture() -> None:
    turns = [Turn("user", "yes"), Turn("assistant", "done"), Turn("user", "yes")]
    first = [turn_key(row.basis, row.number) for row in stored_turns(turns, lambda each: each)]
    later = [turn_key(row.basis, row.number) for row in stored_turns([*turns, Turn("user", "yes")], lambda each: each)]
    assert len(set(later)) == 4
    assert later[:3] == first
