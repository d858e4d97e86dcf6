"""The transcripts of each harness become turns: who said what, when, in which session. Nothing said is lost."""

from __future__ import annotations

import json
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.domain.transcripts.gemini import Session
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


def test_a_session_of_gemini_in_one_document_is_what_the_user_and_the_agent_said() -> None:
    expected = [
        Turn("user", "Which table has the sailings?", "2026-11-20T10:00:00.500Z"),
        Turn("assistant", "I look it up.", "2026-11-20T10:00:03.000Z"),
        Turn("assistant", "It is sailings_v3.", "2026-11-20T10:00:08.000Z"),
    ]
    found = read("gemini.json")
    assert (found.format, found.session_key) == ("gemini", "7d1f3c52-0a4b-4c8e-9a55-2f6b1c0d9e21")
    assert found.turns == expected
    on_one_line = parse_transcript(json.dumps(json.loads((FILES / "gemini.json").read_text())).encode())
    assert (on_one_line.format, on_one_line.turns) == ("gemini", expected)


def test_a_session_of_gemini_in_lines_has_each_turn_once_and_the_summary_of_its_compression() -> None:
    found = read("gemini.jsonl")
    assert (found.format, found.session_key) == ("gemini", "b2c41e90-6f3a-4d27-8c11-9e0d7a5b3f44")
    assert found.turns == [
        Turn("user", "How long may a ferry wait for a late bus? See @rules.md", "2026-11-22T08:00:10.000Z"),
        Turn("assistant", "Up to 7 minutes, but never in fog.", "2026-11-22T08:00:20.000Z"),
        Turn("user", "Write that into the schedule.", "2026-11-22T08:01:00.000Z"),
        Turn("assistant", "Done: WAIT_MINUTES is 7.", "2026-11-22T08:01:10.000Z"),
        Turn(
            "system",
            "<state_snapshot>\n    <overall_goal>Let ferries wait for late buses, at most 7 minutes.</overall_goal>"
            "\n</state_snapshot>",
            "2026-11-22T08:01:20.000Z",
        ),
        Turn("user", "Write that into the schedule.", "2026-11-22T08:02:00.000Z"),
        Turn("assistant", "It is there already.", "2026-11-22T08:02:05.000Z"),
    ]


def test_a_session_of_qwen_code_is_what_the_user_and_the_agent_said() -> None:
    found = read("qwen.jsonl")
    assert (found.format, found.session_key) == ("qwen", "4f0c2a51-7f2f-4d55-9a51-0d2c1b7e8a10")
    assert found.turns == [
        Turn("user", "Where is the gangway of the ferry stored in winter?", "2026-11-23T08:00:01.000Z"),
        Turn("assistant", "I look into the plan.", "2026-11-23T08:00:04.000Z"),
        Turn("assistant", "In hangar 3, behind the dredger.", "2026-11-23T08:00:08.000Z"),
        Turn("user", "And its key?", "2026-11-23T08:01:00.000Z"),
    ]


def gemini(name: str, text: str, kind: str = "user") -> dict[str, Any]:
    return {"id": name, "timestamp": "2026-11-22T08:00:00.000Z", "type": kind, "content": [{"text": text}]}


SESSION = {"sessionId": "s", "projectHash": "8f2b"}


def history(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"$set": {"messages": list(messages)}}


def test_the_turns_of_gemini_are_counted_once_however_often_its_history_is_written_anew() -> None:
    copies = (gemini("c1", "yes"), gemini("c2", "done", "gemini"), gemini("c3", "yes"))
    again = (gemini("d1", "yes"), gemini("d2", "done", "gemini"), gemini("d3", "yes"))
    found = parse_transcript(
        lines(
            SESSION,
            gemini("a1", "yes"),
            gemini("a2", "done", "gemini"),
            gemini("a3", "yes"),
            *copies,
            history(*copies),
            gemini("a4", "yes"),
            gemini("image", ""),
            {"$rewindTo": "image"},
            history(*again, gemini("a4", "yes")),
        )
    )
    assert [turn.text for turn in found.turns] == ["yes", "done", "yes", "yes"]
    assert found.losses == 1, "it was rewound to a picture"


@pytest.mark.parametrize(
    ("change", "losses"),
    [
        (history(gemini("n", "<state_snapshot>short</state_snapshot>"), gemini("c", "second")), 1),
        (history(gemini("a", "first")), 1),
        ({"$rewindTo": "b"}, 1),
        ({"$rewindTo": "gone"}, 1),
        (history(gemini("a", "first"), gemini("b", "second")), 0),
        ({"$set": {"lastUpdated": "2026-11-22T08:00:00.000Z"}}, 0),
    ],
)
def test_what_the_model_of_gemini_lost_is_counted_and_what_was_said_stays(change: dict[str, Any], losses: int) -> None:
    found = parse_transcript(lines(SESSION, gemini("a", "first"), gemini("b", "second"), change))
    assert found.losses == losses
    assert [turn.text for turn in found.turns if turn.role == "user"] == ["first", "second"]


@pytest.mark.parametrize(
    ("restored", "losses"),
    [(("a", "b"), 0), (("a", "b", "c"), 0), (("a",), 1), ((), 1)],
)
def test_a_process_of_gemini_that_resumes_a_session_has_lost_what_it_does_not_restore(
    restored: tuple[str, ...], losses: int
) -> None:
    said = {"a": gemini("a", "first"), "b": gemini("b", "second"), "c": gemini("c", "third")}
    head = {**SESSION, "startTime": "2026-11-22T08:00:00.000Z"}
    set_up = (
        "<session_context>\nThis is the Gemini CLI. We are setting up the context for our chat.\n</session_context>"
    )
    begins = (head, history(gemini("set-up", set_up)))
    resumed = (*begins, {"$set": {"sessionId": "s"}}, history(*(said[name] for name in restored)))
    found = parse_transcript(lines(*begins, said["a"], said["b"], *resumed, gemini("d", "fourth")))
    assert found.losses == losses
    again = parse_transcript(lines(*begins, said["a"], said["b"], *resumed, gemini("d", "fourth"), *resumed))
    assert again.losses == losses, "nothing has followed yet"


def test_a_session_of_gemini_is_read_in_linear_time_however_often_it_is_rewound() -> None:
    session = Session()
    for number in range(100_000):
        session.read(gemini(f"m{number}", "x"))
    began = time.monotonic()
    for number in reversed(range(100_000)):
        session.read({"$rewindTo": f"m{number}"})
    assert session.losses == 100_000
    assert time.monotonic() - began < 30


def test_a_document_of_gemini_that_is_too_long_or_half_written_is_not_kept_as_text() -> None:
    document = json.dumps({**SESSION, "messages": [gemini("a", "first")]}, indent=1).encode()
    half = parse_transcript(document[:-10])
    assert (half.format, half.turns, half.unfinished) == ("gemini", [], True)
    with pytest.raises(TranscriptTooLong, match="bytes in one JSON document"):
        parse_transcript(document.replace(b"first", b"x" * (17 << 20)))


def test_messages_with_a_role_are_not_taken_for_those_of_gemini() -> None:
    record = {"id": "1", "type": "user", "role": "user", "content": "q", "timestamp": "2026-11-22T08:00:00Z"}
    assert [turn.text for turn in parse_transcript(lines(record)).turns] == ["q"]


def test_a_transcript_of_cursor_is_what_the_user_and_the_agent_said() -> None:
    found = read("cursor.jsonl")
    assert (found.format, found.session_key, found.skipped) == ("cursor", None, 0)
    assert found.turns == [
        Turn("user", "Which pier does the night ferry use?", "2026-11-22T08:05:00.000Z"),
        Turn("assistant", "Let me read the timetable."),
        Turn("assistant", "Pier 12, behind the fish market."),
        Turn("user", "Paint it like <module> in the picture.", "2026-11-22T11:30:00.000Z"),
        Turn("assistant", "The pier is blue now."),
    ]


@pytest.mark.parametrize(
    ("text", "said", "at"),
    [
        ("plain words", "plain words", None),
        ("<user_query>open end", "open end", None),
        (
            "<timestamp>Friday, May 8, 2026, 12:05 AM (UTC+5:30)</timestamp>hi",
            "hi",
            "2026-05-07T18:35:00.000Z",
        ),
        ("<timestamp>Friday, Mai 8, 2026, 12:05 AM (UTC)</timestamp>\n<user_query>\nhi\n</user_query>", "hi", None),
        (
            "<timestamp>Feb 31, 2026, 1:05 PM (UTC-05:00)</timestamp><user_query>see </user_query> there</user_query>",
            "see </user_query> there",
            None,
        ),
    ],
)
def test_a_prompt_of_cursor_is_the_users_words_with_the_time_if_it_is_one(text: str, said: str, at: str | None) -> None:
    record = {"role": "user", "message": {"content": [{"type": "text", "text": text}]}}
    assert parse_transcript(lines(record)).turns == [Turn("user", said, at)]


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
        b"System: alone",
        b"Agent: a program that acts by itself",
    ],
)
def test_an_unknown_format_is_kept_as_text(raw: bytes) -> None:
    found = parse_transcript(raw)
    assert (found.format, found.turns) == ("text", [Turn("text", raw.decode())])


@pytest.mark.parametrize(
    "beginning", ["User: yes", "**User:** yes\n", "# User\nyes", "Human: yes\n\n", "System: s\nUser: yes"]
)
def test_a_dialogue_that_has_no_answer_yet_has_the_turns_that_it_has_later(beginning: str) -> None:
    turns = parse_transcript(beginning.encode()).turns
    assert turns[-1] == Turn("user", "yes")
    assert parse_transcript(f"{beginning}\nAssistant: done".encode()).turns == [*turns, Turn("assistant", "done")]


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


NAMES = (
    *("type", "message", "role", "content", "payload", "text", "timestamp", "messages", "parts", "info"),
    *("id", "sessionId", "projectHash", "$set", "$rewindTo", "thought", "functionResponse"),
)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(NAMES),
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
    parse_transcript(lines({"role": "user", "message": value}, {**gemini("a", "q"), "content": value}, {"$set": value}))
    parse_transcript(json.dumps({**SESSION, "messages": value}, indent=1).encode())


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


def test_a_session_of_claude_code_has_no_words_of_the_program() -> None:
    found = parse_transcript(
        lines(
            said("user", "<command-name>/clear</command-name>\n<command-message>clear</command-message>"),
            said("user", "<local-command-stdout>Total cost: $1.20</local-command-stdout>"),
            said("user", [{"type": "text", "text": OPENED}, {"type": "text", "text": "Which port?"}]),
            said("assistant", [{"type": "text", "text": "Port 5433."}]),
            said("assistant", "API Error: 529 because of the night", isApiErrorMessage=True),
            {
                **said("assistant", []),
                "message": {"role": "assistant", "model": "<synthetic>", "content": "Odd notice"},
            },
            said("user", [{"type": "text", "text": "[Request interrupted by user]"}]),
            said("user", "<bash-input>ls</bash-input>"),
            said("user", "Why is <bash-input> in my file?"),
            said("assistant", "No response requested."),
        )
    )
    assert [(turn.role, turn.text) for turn in found.turns] == [
        ("user", "Which port?"),
        ("assistant", "Port 5433."),
        ("user", "Why is <bash-input> in my file?"),
    ]


def queued(prompt: Any, mode: Any = "prompt", **fields: Any) -> dict[str, Any]:
    return {"type": "queued_command", "prompt": prompt, "commandMode": mode, **fields}


def block(*texts: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text} for text in texts]


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
TYPED_MEANWHILE = (
    (queued("Wait: never touch the gateway module"), "Wait: never touch the gateway module"),
    (queued("use port 7719 there\nand nowhere else"), "use port 7719 there\nand nowhere else"),
    (queued("  stop after the first test  "), "stop after the first test"),
    (queued("[signet off] my salary is 98000 euros"), "[signet off] my salary is 98000 euros"),
    (queued("nicht im Ordner build suchen"), "nicht im Ordner build suchen"),
    (queued("本番では使わないで"), "本番では使わないで"),
    (queued(block("the column is called sailed_at")), "the column is called sailed_at"),
    (queued(block("first this", "then that")), "first this\nthen that"),
    (queued([*block("like in this picture"), IMAGE]), "like in this picture"),
    (queued(["as a bare text"]), "as a bare text"),
    (queued("yes", isMeta=False), "yes"),
    (queued("typed in the terminal", origin={"kind": "human"}), "typed in the terminal"),
    (queued("with an id of its own", source_uuid="u7"), "with an id of its own"),
    (queued("also with images", imagePasteIds=[1]), "also with images"),
    ({"type": "queued_command", "prompt": "of a release without modes"}, "of a release without modes"),
    (queued(f"{'long ' * 9}prompt"), f"{'long ' * 9}prompt"),
    (queued("what is a queued_command?"), "what is a queued_command?"),
    (queued("<system-reminder>a</system-reminder>\nkeep the old name"), "keep the old name"),
    (queued("why is <task-notification> in my log?"), "why is <task-notification> in my log?"),
    (queued("/plan move the login form"), "/plan move the login form"),
)
NOT_TYPED_MEANWHILE: tuple[Any, ...] = (
    queued("<task-notification>\n<status>done</status>\n</task-notification>", "task-notification"),
    queued("The build in the background is done", "task-notification"),
    queued("ls -la", "bash"),
    queued("remember the port", "memory"),
    queued("a mode to come", "orphaned-permission"),
    queued("no mode", None),
    queued("another mode", ["prompt"]),
    queued("of the program", isMeta=True),
    queued("of a task", origin={"kind": "task-notification"}),
    queued("of a channel", origin={"kind": "channel", "server": "chat"}),
    queued("<task-notification>\n<status>done</status>\n</task-notification>"),
    queued("<system-reminder>a</system-reminder>"),
    queued(""),
    queued("  \n"),
    queued([IMAGE]),
    queued(None),
    queued(7),
    {"type": "queued_command"},
    {"type": "todo_reminder", "content": "the list is empty", "prompt": "x", "commandMode": "prompt"},
    {"type": "file", "filename": "/home/you/dock.py", "content": "port = 1"},
    {"type": "hook_success", "content": "a memory"},
    {},
    "queued_command",
)


def test_what_a_person_types_while_claude_code_works_is_said_by_the_user() -> None:
    before, after = said("user", "Move the login form."), said("assistant", "I leave that alone.")
    around = [("user", "Move the login form."), ("assistant", "I leave that alone.")]
    at = {"sessionId": "s", "uuid": "u8", "timestamp": "2026-11-29T04:00:08.200Z"}

    def read_between(attachment: Any, **fields: Any) -> Transcript:
        operation = {"type": "queue-operation", "operation": "enqueue", "sessionId": "s", "content": "in the queue"}
        record = {"type": "attachment", "attachment": attachment, **at, **fields}
        return parse_transcript(lines(before, operation, record, {**operation, "operation": "remove"}, after))

    for attachment, text in TYPED_MEANWHILE:
        found = read_between(attachment)
        assert [(turn.role, turn.text) for turn in found.turns] == [around[0], ("user", text), around[1]], attachment
        assert (found.turns[1].said_at, found.ids[1]) == ("2026-11-29T04:00:08.200Z", "u8")
        assert read_between(attachment, forkedFrom={"messageUuid": "u1"}).ids[1] == "u1"
    for attachment in NOT_TYPED_MEANWHILE:
        assert [(turn.role, turn.text) for turn in read_between(attachment).turns] == around, attachment
    for of_another in ({"isSidechain": True}, {"isMeta": True}):
        assert [turn[:2] for turn in read_between(queued("go on"), **of_another).turns] == around


NOT_OF_A_PERSON: tuple[dict[str, Any], ...] = (
    *({"origin": {"kind": kind}} for kind in ("task-notification", "coordinator", "peer", "channel", "to-come")),
    {"origin": {"kind": "task-notification", "subkind": "scheduled-trigger"}},
    {"origin": {"kind": "task-notification"}, "promptSource": "sdk"},
    {"origin": {"kind": "peer", "from": "general-purpose", "senderTaskId": "a6a1"}},
    {"promptSource": "system"},
    {"promptSource": "system", "origin": {"kind": "human"}},
    {"isMeta": True},
    {"isMeta": True, "origin": {"kind": "human"}},
    {"isSidechain": True},
)
OF_SOMEBODY: tuple[dict[str, Any], ...] = (
    {},
    {"origin": {"kind": "human"}},
    *({"origin": origin} for origin in ({}, None, "human", [])),
    *({"promptSource": source} for source in ("typed", "queued", "sdk", "suggestion_accepted", None, 7)),
    {"isMeta": False, "isSidechain": False, "origin": {"kind": "human"}, "promptSource": "typed"},
)


def test_what_a_record_of_claude_code_says_of_its_origin_tells_who_wrote_it() -> None:
    for fields in NOT_OF_A_PERSON:
        for content in ("The build is done", block("The build is done")):
            assert parse_transcript(lines(said("user", content, **fields))).turns == [], fields
    for fields in OF_SOMEBODY:
        found = parse_transcript(lines(said("user", "The build is done", **fields))).turns
        assert found == [Turn("user", "The build is done")], fields
    plan = "Implement the following plan:\n\n# Rename"
    for fields, role in (({"planContent": "# Rename"}, "system"), ({"planContent": ""}, "user"), ({}, "user")):
        assert parse_transcript(lines(said("user", plan, **fields))).turns == [Turn(role, plan)]


def test_the_mark_alone_behind_a_command_is_kept() -> None:
    for args, kept in (
        ("[signet off]", ["[signet off]"]),
        ("[Signet Off]", ["[Signet Off]"]),
        ("opus", []),
        ("a b", []),
    ):
        command = f"<command-name>/plan</command-name>\n<command-args>{args}</command-args>"
        assert [turn.text for turn in parse_transcript(lines(said("user", command))).turns] == kept


SNAPSHOT = "<state_snapshot>\n<goal>ferries</goal>\n</state_snapshot>"
SNAPSHOTS = (
    (SNAPSHOT, SNAPSHOT),
    (f"\n{SNAPSHOT}\n", SNAPSHOT),
    (f"<scratchpad>\nI think of <state_snapshot>.\n</scratchpad>\n\n{SNAPSHOT}", SNAPSHOT),
    (f"<analysis>a</analysis>{SNAPSHOT}", SNAPSHOT),
    (f"```xml\n{SNAPSHOT}", SNAPSHOT),
    ("<state_snapshot>half", "<state_snapshot>half"),
)
NO_SNAPSHOTS = (
    "Never deploy on Fridays. Also: what does <state_snapshot> mean?",
    f"Explain this:\n{SNAPSHOT}",
    f"Never deploy on Fridays.\n\n{SNAPSHOT}\nIs that right?",
    "what does `<state_snapshot>` mean?",
    "`<state_snapshot>` is what it wrote",
    "```\n<other>\n```\n<state_snapshot>",
    "<scratchpad> and <state_snapshot> are tags",
    "the </state_snapshot> is missing",
    "<state_snapshots>",
)


def test_only_a_message_that_is_a_summary_of_gemini_is_taken_for_one() -> None:
    for text, expected in SNAPSHOTS:
        (turn,) = parse_transcript(lines(SESSION, gemini("1", text))).turns
        assert turn[:2] == ("system", expected), text
    for text in NO_SNAPSHOTS:
        (turn,) = parse_transcript(lines(SESSION, gemini("1", text))).turns
        assert turn[:2] == ("user", text), text


PREFACES = (
    *("Here is the summary:\n", "text\n```xml\n", "Here is the summary:\n```xml\n", "**Snapshot**\n\n", "Summary: "),
    *("<plan>a</plan>\n", "# State\n", "I will now write it.\n\n", "```\nx\n```\n", "<thinking>a</thinking>", "- "),
    *("", "\n", "```\n", "<scratchpad>a</scratchpad>\n", "<scratchpad>half\n", "<analysis>a</analysis>\nThen:\n"),
    *("\u00dcbersicht:\n", "1. ", "> "),
)
TAKEN = "Got it. Thanks for the additional context!"


def test_a_summary_of_gemini_that_its_model_was_given_is_one_whatever_stands_before_it() -> None:
    for preface in PREFACES:
        summary, taken = gemini("n", preface + SNAPSHOT), gemini("m", TAKEN, "gemini")
        for records in ((history(gemini("h", "hello"), summary, taken),), (summary, taken), (summary, taken, summary)):
            found = [turn[:2] for turn in parse_transcript(lines(SESSION, *records)).turns]
            assert ("system", SNAPSHOT) in found, preface
            assert all(SNAPSHOT not in text for role, text in found if role == "user"), preface
    for text in NO_SNAPSHOTS:
        for after in (gemini("m", "It is a tag.", "gemini"), gemini("m", TAKEN)):
            found = [turn[:2] for turn in parse_transcript(lines(SESSION, gemini("n", text), after)).turns]
            assert found[0] == ("user", text), text


OPENED = (
    "<ide_opened_file>The user opened the file /home/you/dock.py in the IDE. This may not be related.</ide_opened_file>"
)
HAND_OVER = (
    "Another language model started to solve this problem and produced a summary of its thinking process. Here is the "
    "summary produced by the other language model, use the information in it to assist with your own analysis:"
)


def message(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    payload = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
    return {"timestamp": "2026-11-21T10:00:00.000Z", "type": "response_item", "payload": payload}


PARENT = "019aa5de-7bd4-7c11-8f0e-5a3f1c2d9e01"
OF_A_SUBAGENT: tuple[dict[str, Any], ...] = (
    {"source": {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "depth": 1}}}, "thread_source": "subagent"},
    {"source": {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "depth": 2}}}},
    {"source": {"subagent": {"thread_spawn": {}}}, "agent_nickname": "Faraday", "agent_role": "explorer"},
    {"source": {"subagent": "review"}},
    {"source": {"subagent": "compact"}},
    {"source": {"subagent": "memory_consolidation"}},
    {"source": {"subagent": {"other": "guardian"}}},
    {"source": {"subagent": {"other": "agent_job:7"}}, "thread_source": "user"},
    {"source": {"subagent": None}},
    {"source": {"subagent": {}}, "forked_from_id": PARENT},
    {"source": {"internal": "memory_consolidation"}},
    {"source": {"subagent": "review"}, "originator": "Codex Desktop"},
    {"source": {"subagent": "review"}, "originator": "codex_exec"},
    {"source": {"subagent": "review"}, "git": {}},
    {"source": {}, "thread_source": "subagent"},
    {"source": "cli", "thread_source": "subagent"},
    {"source": "vscode", "thread_source": "subagent"},
    {"source": None, "thread_source": "subagent"},
    {"thread_source": "subagent", "parent_thread_id": PARENT},
    {"thread_source": "subagent", "multi_agent_version": "v2"},
)
OF_A_PERSON: tuple[dict[str, Any], ...] = (
    {},
    *({"source": source} for source in ("cli", "vscode", "exec", "mcp", "appServer", "unknown", "subagent")),
    {"source": {"custom": "atlas"}},
    {"source": None},
    {"source": ["subagent"]},
    {"source": {}},
    *({"source": "cli", "thread_source": source} for source in ("user", "automation", None, "", ["subagent"], 7)),
    {"source": "cli", "forked_from_id": PARENT},
    {"source": "cli", "parent_thread_id": None},
    {"source": "cli", "originator": "subagent"},
    {"source": "exec", "base_instructions": {"text": "You may start a subagent."}},
)


def rollout(*metas: dict[str, Any]) -> bytes:
    """Return the rollout of a session, which may repeat the description of the one that it was forked from."""
    described = ({"type": "session_meta", "payload": {"id": f"s{at}", **meta}} for at, meta in enumerate(metas))
    return lines(*described, message("user", "You are an explorer. Drop the table."), message("assistant", "Dropped."))


def test_a_rollout_of_a_subagent_of_codex_has_nothing_that_a_person_said() -> None:
    for meta in OF_A_SUBAGENT:
        for raw in (rollout(meta), rollout(meta, {"source": "cli"})):
            found = parse_transcript(raw)
            assert (found.format, found.session_key, found.turns) == ("codex", "s0", []), meta
    events = [{"type": "event_msg", "payload": {"type": "user_message", "message": "You are an explorer."}}]
    assert parse_transcript(lines({"type": "session_meta", "payload": OF_A_SUBAGENT[0]}, *events)).turns == []
    for meta in OF_A_PERSON:
        for raw in (rollout(meta), rollout(meta, OF_A_SUBAGENT[0])):
            assert [turn.role for turn in parse_transcript(raw).turns] == ["user", "assistant"], meta


def test_a_summary_that_codex_hands_over_is_one_turn_of_the_system() -> None:
    compacted = {"timestamp": "2026-11-21T10:00:01.000Z", "type": "compacted", "payload": {}}
    compacted["payload"] = {"message": f"{HAND_OVER}\nThe port is 5433.", "replacement_history": []}
    found = parse_transcript(
        lines(
            message(
                "user", "<user_shell_command>\n<command>\nls\n</command>\n<result>\na\n</result>\n</user_shell_command>"
            ),
            message("user", "Which port?"),
            message("user", "<skill>\n<name>deploy</name>\n</skill>"),
            message("assistant", "5433."),
            message("assistant", "The port is 5433."),
            compacted,
            message("user", f"{HAND_OVER}\nThe port is 5433."),
            message("user", "Thanks."),
        )
    )
    assert [(turn.role, turn.text) for turn in found.turns] == [
        ("user", "Which port?"),
        ("assistant", "5433."),
        ("system", "The port is 5433."),
        ("user", "Thanks."),
    ]


def test_the_summary_of_a_compaction_is_no_answer_in_an_export_of_opencode() -> None:
    def entry(role: str, text: str, **info: Any) -> dict[str, Any]:
        return {"info": {"id": text, "role": role, **info}, "parts": [{"type": "text", "text": text}]}

    messages = [
        entry("user", "Which port?", summary={"title": "Port", "diffs": []}),
        entry("assistant", "5433.", summary=False),
        entry("assistant", "## Goal\nFind the port", summary=True, mode="compaction"),
    ]
    found = parse_transcript(json.dumps({"info": {"id": "ses_1"}, "messages": messages}).encode())
    assert [turn.text for turn in found.turns] == ["Which port?", "5433."]


def test_a_session_of_gemini_has_no_words_of_the_program() -> None:
    shell = "I ran the following shell command:\n```sh\nls\n```\n\nThis produced the following result:\n```\na\n```"
    set_up = "This is the Gemini CLI. We are setting up the context for our chat.\nToday's date is Sunday."
    found = parse_transcript(
        lines(
            SESSION,
            gemini("1", set_up),
            gemini("2", "Got it. Thanks for the context!", "gemini"),
            gemini("3", "!ls -l"),
            gemini("4", "/stats"),
            gemini("5", shell),
            gemini("6", "/greet Bob, please"),
            gemini("7", "<hook_context>a port</hook_context>\n\nWhich port?"),
        )
    )
    assert [turn.text for turn in found.turns] == ["/greet Bob, please", "Which port?"]


def test_any_other_transcript_has_no_words_of_the_program_either() -> None:
    reminder = "<system-reminder>\nThe task tools have not been used.\n</system-reminder>"
    messages = [
        {"role": "user", "content": f"Which port?\n{reminder}"},
        {"role": "user", "content": "<task-notification>\n<task-id>b1</task-id>\n</task-notification>"},
        {"role": "assistant", "content": "Port 5433."},
        {"role": "assistant", "content": "API Error: Connection error."},
    ]
    dialogue = f"User: Which port?\n{reminder}\nAssistant: Port 5433.\nUser: [Request interrupted by user]\n"
    for raw in (lines(*messages), json.dumps({"messages": messages}).encode(), dialogue.encode()):
        assert [turn.text for turn in parse_transcript(raw).turns] == ["Which port?", "Port 5433."]
