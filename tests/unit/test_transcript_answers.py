"""What a person answers to a tool is in the transcript, although the programs record it as the tool's result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from signet_actors.cli.past_sessions import opencode as past_opencode
from signet_actors.domain.transcripts.parse import parse_transcript
from tests.support.foreign_memories import database

Turns = list[tuple[str, str]]

REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the"
    " new_string was NOT written to the file). "
)
TO_TELL = f"{REFUSED}To tell you how to proceed, the user said:\n"
NOTE = (
    "\n\nNote: The user's next message may contain a correction or preference. Pay close attention \u2014 if they"
    " explain what went wrong or how they'd prefer you to work, consider saving that to memory for future sessions."
)
CLARIFY = (
    "The user wants to clarify these questions.\n    This means they may have additional information, context or"
    " questions for you.\n    Take their response into account and then reformulate the questions if appropriate.\n"
    "    Start by asking them what they would like to clarify.\n\n    Questions asked:\n"
)
ENOUGH = (
    "The user has indicated they have provided enough answers for the plan interview.\nStop asking clarifying questions"
    " and proceed to finish the plan with the information you have.\n\nQuestions asked and answers provided:\n"
)


def lines(*records: Any) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def turns_of(raw: bytes) -> Turns:
    return [(turn.role, turn.text) for turn in parse_transcript(raw).turns]


def asked(*pairs: tuple[str, str]) -> Turns:
    return [("user", f"> {question}\n{answer}") for question, answer in pairs]


def claude(*blocks: Any, result: Any = None, **fields: Any) -> bytes:
    """Return a session of Claude Code in which a tool was called and returned this."""
    about = {"sessionId": "s", "timestamp": "2026-11-29T04:00:08.200Z"}
    call = {"type": "tool_use", "id": "t", "name": "Edit", "input": {"questions": [{"question": "not shown"}]}}
    return lines(
        {"type": "user", "uuid": "u1", "message": {"role": "user", "content": "Change the schema."}, **about},
        {"type": "assistant", "uuid": "u2", "message": {"role": "assistant", "content": [call]}, **about},
        {
            "type": "user",
            "uuid": "u3",
            "message": {"role": "user", "content": list(blocks)},
            "toolUseResult": result,
            **about,
            **fields,
        },
    )


def returned(content: Any, *, is_error: bool = False) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "t", "content": content, "is_error": is_error}


REFUSALS: tuple[tuple[Any, str], ...] = (
    ("never edit generated/schema.ts by hand", "never edit generated/schema.ts by hand"),
    ("Hold.", "Hold."),
    ("\u3084\u3081\u3066", "\u3084\u3081\u3066"),
    ("nein, nimm die Tabelle sailings_v3", "nein, nimm die Tabelle sailings_v3"),
    ("first run the tests\nand only then commit", "first run the tests\nand only then commit"),
    ("  use pnpm here, not npm  ", "use pnpm here, not npm"),
    ("[signet off] my salary is 98000 euros", "[signet off] my salary is 98000 euros"),
    (f"keep the old name{NOTE}", "keep the old name"),
    ("Note: the port is 5433", "Note: the port is 5433"),
    ("why is <task-notification> in my log?", "why is <task-notification> in my log?"),
    ("<system-reminder>x</system-reminder>\nsplit the plan in two", "split the plan in two"),
    ("The user wants a plan first", "The user wants a plan first"),
)
QUESTIONED: tuple[tuple[str, Turns], ...] = (
    (f'{CLARIFY}- "Which store?"\n  Answer: SQLite', asked(("Which store?", "SQLite"))),
    (f'{CLARIFY}- "Which store?"\n  (No answer provided)', []),
    (
        f'{CLARIFY}- "Which?"\n  (No answer provided)\n- "Keep \\"daily\\" files?"\n  Answer: only\nthree{NOTE}',
        asked(('Keep \\"daily\\" files?', "only\nthree")),
    ),
    (
        f'{CLARIFY}- "Which port?"\n  Answer: 5433\n  User notes: only on staging',
        asked(("Which port?", "5433\nonly on staging")),
    ),
    (f'{ENOUGH}- "Which pier?"\n  Answer: pier 12', asked(("Which pier?", "pier 12"))),
)
ANSWERS: tuple[tuple[Any, Turns], ...] = (
    (
        {"questions": [{"question": "Which db?"}], "answers": {"Which db?": "Postgres"}},
        asked(("Which db?", "Postgres")),
    ),
    (
        {"questions": [], "answers": {"Which db?": "Postgres", "Which port?": "5433"}, "annotations": {}},
        asked(("Which db?", "Postgres"), ("Which port?", "5433")),
    ),
    (
        {"questions": [], "answers": {"Colour?": "blue"}, "annotations": {"Colour?": {"notes": "but not navy"}}},
        asked(("Colour?", "blue\nbut not navy")),
    ),
    (
        {"questions": [], "answers": {"Colour?": "  blue"}, "annotations": {"Colour?": {"notes": "blue"}}},
        asked(("Colour?", "blue")),
    ),
    (
        {"questions": [], "answers": {}, "annotations": {"Colour?": {"notes": "any, go on"}}},
        asked(("Colour?", "any, go on")),
    ),
    ({"questions": [], "answers": {"In two\nlines?": "A"}}, [("user", "> In two\n> lines?\nA")]),
    ({"questions": [], "answers": {"Which?": "A, B"}}, asked(("Which?", "A, B"))),
    ({"questions": [], "answers": {"Salary?": "[signet off] 98000"}}, asked(("Salary?", "[signet off] 98000"))),
)
NO_ANSWERS: tuple[Any, ...] = (
    {"questions": [{"question": "Which db?"}], "answers": {}},
    {"questions": [{"question": "Which db?"}], "answers": {"Which db?": "  "}},
    {"questions": [{"question": "Which db?"}], "answers": {"Which db?": 7}},
    {"questions": [{"question": "Which db?"}], "answers": "Postgres"},
    {"questions": [], "answers": None, "annotations": {"Colour?": {"preview": "blue"}}},
    {"answers": {"of": "another tool"}},
    {"stdout": "5433", "stderr": ""},
    "Error: it failed",
    ["5433"],
    None,
)
NOT_REFUSED: tuple[Any, ...] = (
    f"{REFUSED}STOP what you are doing and wait for the user to tell you how to proceed.",
    f"{REFUSED}STOP what you are doing and wait for the user to tell you how to proceed.{NOTE}",
    f"Exit code 1\n{TO_TELL}from a file",
    f"     1\t{TO_TELL}from a file",
    "the user said:\nnothing of the program",
    "The agent proposed a plan that was rejected by the user. Rejected plan:\n# Plan",
    "",
    None,
    7,
)


def test_what_a_person_says_when_they_refuse_a_tool_of_claude_code_is_theirs() -> None:
    before: Turns = [("user", "Change the schema.")]
    for text, said in REFUSALS:
        for content in (f"{TO_TELL}{text}", [{"type": "text", "text": f"{TO_TELL}{text}"}]):
            raw = claude(
                returned(content, is_error=True), result="User rejected tool use", toolDenialKind="user-rejected"
            )
            assert turns_of(raw) == [*before, ("user", said)], text
    for text, expected in QUESTIONED:
        assert turns_of(claude(returned(f"{TO_TELL}{text}", is_error=True))) == [*before, *expected], text
    for content in NOT_REFUSED:
        assert turns_of(claude(returned(content, is_error=True))) == before, content
    for feedback, expected in (
        ("not that file", [("user", "not that file")]),
        (f'{CLARIFY}- "Which store?"\n  Answer: SQLite', asked(("Which store?", "SQLite"))),
        ("", []),
        (None, []),
    ):
        assert turns_of(claude(returned("denied", is_error=True), userFeedback=feedback)) == [*before, *expected]
        assert turns_of(claude(returned("done"), userFeedback=feedback)) == before
    on_one_line = returned(f"{TO_TELL.rstrip()} Hold.", is_error=True)
    assert turns_of(claude(on_one_line, userFeedback="Hold.")) == [*before, ("user", "Hold.")]
    of_a_file = returned(f"{TO_TELL}from a file")
    assert turns_of(claude(of_a_file)) == before
    refusal = returned(f"{TO_TELL}Hold.", is_error=True)
    for of_another in ({"isSidechain": True}, {"isMeta": True}):
        assert turns_of(claude(refusal, **of_another)) == before


def test_answers_to_the_questions_of_claude_code_are_turns_with_the_questions() -> None:
    before: Turns = [("user", "Change the schema.")]
    answered = returned("User has answered your questions: \u2026")
    for result, expected in ANSWERS:
        assert turns_of(claude(answered, result=result)) == [*before, *expected], result
        assert turns_of(claude(returned("dismissed", is_error=True), result=result)) == before, result
    for result in NO_ANSWERS:
        assert turns_of(claude(answered, result=result)) == before, result
    found = parse_transcript(claude(answered, {"type": "text", "text": "and go on"}, result=ANSWERS[1][0]))
    assert [turn.text for turn in found.turns[1:]] == ["> Which db?\nPostgres", "> Which port?\n5433", "and go on"]
    assert found.ids == ["u1", "u3/0", "u3/1", "u3"]
    assert {turn.said_at for turn in found.turns} == {"2026-11-29T04:00:08.200Z"}


def codex(questions: Any, output: Any, name: str = "request_user_input") -> bytes:
    def item(**payload: Any) -> dict[str, Any]:
        return {"timestamp": "2026-11-21T10:00:00.000Z", "type": "response_item", "payload": payload}

    return lines(
        {"type": "session_meta", "payload": {"id": "s"}},
        item(type="message", role="user", content=[{"type": "input_text", "text": "Plan it."}]),
        item(type="function_call", name=name, call_id="c", arguments=json.dumps({"questions": questions})),
        item(type="function_call_output", call_id="c", output=output),
        item(type="message", role="assistant", content=[{"type": "output_text", "text": "Done."}]),
    )


PORT = {"id": "port", "header": "Port", "question": "Which port?", "options": [{"label": "5432"}, {"label": "5433"}]}
SCOPE = {"id": "scope", "header": "Scope", "question": "Which scope?"}


def answers(**said: list[str]) -> str:
    return json.dumps({"answers": {name: {"answers": texts} for name, texts in said.items()}})


OF_CODEX: tuple[tuple[Any, Any, Turns], ...] = (
    ([PORT], answers(port=["5433"]), asked(("Which port?", "5433"))),
    ([PORT], answers(port=["5433", "user_note: only on staging"]), asked(("Which port?", "5433\nonly on staging"))),
    ([PORT], answers(port=["None of the above", "user_note: 7719"]), asked(("Which port?", "7719"))),
    ([PORT], answers(port=["None of the above"]), asked(("Which port?", "None of the above"))),
    ([SCOPE], answers(scope=["user_note: \u5168\u90e8"]), asked(("Which scope?", "\u5168\u90e8"))),
    (
        [PORT, SCOPE],
        answers(scope=["all"], port=["5432"]),
        asked(("Which port?", "5432"), ("Which scope?", "all")),
    ),
    ([PORT, SCOPE], answers(scope=["all"], port=[]), asked(("Which scope?", "all"))),
    ([PORT], {"content": answers(port=["5433"]), "success": True}, asked(("Which port?", "5433"))),
    ([SCOPE], answers(scope=["[signet off] all of it"]), asked(("Which scope?", "[signet off] all of it"))),
    ([{**SCOPE, "isSecret": True}], answers(scope=["kT9#mQ2vLx7p"]), []),
    ([{**SCOPE, "is_secret": True}, PORT], answers(scope=["kT9"], port=["5433"]), asked(("Which port?", "5433"))),
    ([PORT], "request_user_input was cancelled before receiving a response", []),
    ([PORT], answers(other=["5433"]), []),
    ([PORT], '{"answers": {"port": "5433"}}', []),
    ([PORT], '{"answers": [', []),
    ([PORT], None, []),
    ([PORT], [1], []),
    ("no list", answers(port=["5433"]), []),
    ([None, "x", {}], answers(port=["5433"]), []),
    ([{"id": "port", "question": ""}], answers(port=["5433"]), [("user", "5433")]),
)


def test_answers_to_the_questions_of_codex_are_turns_with_the_questions() -> None:
    for questions, output, expected in OF_CODEX:
        around = [("user", "Plan it."), *expected, ("assistant", "Done.")]
        assert turns_of(codex(questions, output)) == around, output
    other = turns_of(codex([PORT], answers(port=["5433"]), "exec_command"))
    assert other == [("user", "Plan it."), ("assistant", "Done.")]
    found = parse_transcript(codex([PORT], answers(port=["5433"])))
    assert found.ids == ["s\0000", "s\0001", "s\0002"]


def gemini_call(name: str, args: Any, output: Any, call: str = "c1") -> dict[str, Any]:
    response = {"functionResponse": {"id": call, "name": name, "response": {"output": output}}}
    return {"id": call, "name": name, "args": args, "result": [response], "timestamp": "2026-11-22T08:00:05.000Z"}


PLAN = "Plan rejected. User feedback: {}\n\nThe plan is stored at: /tmp/plan.md\nRevise the plan based on the feedback."
TWO = {"questions": [{"question": "Which pier?", "header": "Pier"}, {"question": "When?", "type": "text"}]}
OF_GEMINI: tuple[tuple[str, Any, Any, Turns], ...] = (
    (
        "ask_user",
        TWO,
        '{"answers": {"0": "pier 12", "1": "at night"}}',
        asked(("Which pier?", "pier 12"), ("When?", "at night")),
    ),
    ("ask_user", TWO, '{"answers": {"1": "at night"}}', asked(("When?", "at night"))),
    ("ask_user", TWO, '{"answers": {"0": "[signet off] 98000"}}', asked(("Which pier?", "[signet off] 98000"))),
    ("ask_user", TWO, '{"answers": {}}', []),
    ("ask_user", TWO, "User dismissed ask_user dialog without answering.", []),
    ("ask_user", TWO, '{"answers": ["pier 12"]}', []),
    ("ask_user", TWO, None, []),
    ("ask_user", None, '{"answers": {"0": "pier 12"}}', []),
    ("exit_plan_mode", {"plan_filename": "p.md"}, PLAN.format("split step 2"), [("user", "split step 2")]),
    ("exit_plan_mode", {}, PLAN.format("first\n\nthen that"), [("user", "first\n\nthen that")]),
    ("exit_plan_mode", {}, "Plan rejected. No feedback provided.\n\nThe plan is stored at: /tmp/plan.md", []),
    ("exit_plan_mode", {}, "The approved implementation plan is stored at: /tmp/plan.md", []),
    ("read_file", {}, PLAN.format("of a file"), []),
    ("read_file", TWO, '{"answers": {"0": "pier 12"}}', []),
)
SESSION = {"sessionId": "s", "projectHash": "8f2b"}


def test_a_result_of_gemini_in_another_form_answers_nothing() -> None:
    user = {"id": "1", "timestamp": "2026-11-22T08:00:00.000Z", "type": "user", "content": "Plan it."}
    odd = (5, 0, -1.5, True, False, None, "", "pier 12", {}, {"output": "x"}, [], [5], [None], ["x"], [[]], [{}])
    for result in (*odd, [{"functionResponse": 5}], [{"functionResponse": {"response": 5}}], {"functionResponse": {}}):
        for name in ("ask_user", "exit_plan_mode"):
            call = {"id": "c", "name": name, "args": TWO, "result": result}
            agent = {**user, "id": "2", "type": "gemini", "content": "", "toolCalls": [call]}
            assert turns_of(lines(SESSION, user, agent)) == [("user", "Plan it.")], result


def test_answers_to_the_tools_of_gemini_are_turns_once_however_often_they_are_written() -> None:
    def said(name: str, kind: str, text: str, **fields: Any) -> dict[str, Any]:
        return {
            "id": name,
            "timestamp": "2026-11-22T08:00:00.000Z",
            "type": kind,
            "content": [{"text": text}],
            **fields,
        }

    user, agent = said("1", "user", "Plan it."), said("2", "gemini", "I ask.")
    for name, args, output, expected in OF_GEMINI:
        called = {**agent, "toolCalls": [gemini_call(name, args, output)]}
        again = {"$set": {"messages": [user, {**called, "id": "9"}]}}
        around = [("user", "Plan it."), ("assistant", "I ask."), *expected]
        for raw in (
            lines(SESSION, user, agent, called, called, again),
            json.dumps({**SESSION, "messages": [user, called]}, indent=1).encode(),
        ):
            assert turns_of(raw) == around, output


def qwen(display: Any, **fields: Any) -> bytes:
    def record(kind: str, *parts: Any, **more: Any) -> dict[str, Any]:
        return {"type": kind, "sessionId": "s", "uuid": kind, "message": {"role": kind, "parts": list(parts)}, **more}

    return lines(
        record("user", {"text": "Plan it."}),
        record("assistant", {"functionCall": {"id": "c", "name": "ask_user_question", "args": {}}}),
        record(
            "tool_result", {"functionResponse": {}}, toolCallResult={"callId": "c", "resultDisplay": display}, **fields
        ),
    )


def displayed(*pairs: Any) -> dict[str, Any]:
    said = [{"question": question, "answer": answer} for question, answer in pairs]
    return {"type": "ask_user_question_answers", "text": "\u2026", "answers": said}


OF_QWEN: tuple[tuple[Any, Turns], ...] = (
    (displayed(("Which pier?", "pier 12")), asked(("Which pier?", "pier 12"))),
    (displayed(("A?", "first\n**B**: in"), ("B?", "2")), asked(("A?", "first\n**B**: in"), ("B?", "2"))),
    (displayed(("A?", None)), []),
    (displayed(), []),
    ({"type": "ask_user_question_answers"}, []),
    ({"type": "plan_summary", "answers": [{"question": "A?", "answer": "1"}]}, []),
    ("User has provided the following answers:\n\n**Pier**: pier 12", [("user", "**Pier**: pier 12")]),
    ("User has provided the following answers:\n\nNo valid answers were provided.", []),
    ("User declined to answer the questions.", []),
    ("a file: User has provided the following answers:\n\nx", []),
    (None, []),
    (7, []),
)


def test_answers_to_the_questions_of_qwen_code_are_turns() -> None:
    for display, expected in OF_QWEN:
        assert turns_of(qwen(display)) == [("user", "Plan it."), *expected], display
        assert turns_of(qwen(display, agentId="a")) == [("user", "Plan it.")]


def tool(name: Any, **state: Any) -> dict[str, Any]:
    return {"type": "tool", "tool": name, "callID": "c", "state": state}


FEEDBACK = "The user rejected permission to use this specific tool call with the following feedback: "
ASKED = {"questions": [{"question": "Which pier?", "header": "Pier"}, {"question": "When?", "header": "When"}]}
OF_OPENCODE: tuple[tuple[Any, Turns], ...] = (
    (
        tool(
            "question",
            status="completed",
            input=ASKED,
            output="\u2026",
            metadata={"answers": [["pier 12"], ["at night", "at noon"]]},
        ),
        asked(("Which pier?", "pier 12"), ("When?", "at night\nat noon")),
    ),
    (tool("question", status="completed", input=ASKED, metadata={"answers": [[], ["soon"]]}), asked(("When?", "soon"))),
    (
        tool("question", status="completed", input=ASKED, metadata={"answers": [["pier 12"]]}),
        asked(("Which pier?", "pier 12")),
    ),
    (tool("question", status="completed", input=ASKED, metadata={"answers": "pier 12"}), []),
    (tool("question", status="completed", input={}, metadata={"answers": [["pier 12"]]}), []),
    (tool("question", status="error", input=ASKED, error="The user dismissed this question"), []),
    (tool("question", status="running", input=ASKED), []),
    (tool("edit", status="error", error=f"{FEEDBACK}never edit the schema"), [("user", "never edit the schema")]),
    (tool("bash", status="error", error=f"{FEEDBACK}use pnpm\nnot npm"), [("user", "use pnpm\nnot npm")]),
    (tool("bash", status="error", error="The user rejected permission to use this specific tool call."), []),
    (tool("bash", status="completed", output=f"{FEEDBACK}of a file", metadata={"answers": [["x"]]}), []),
    (tool("bash", status="error", error=f"Exit 1: {FEEDBACK}of a file"), []),
    (tool("bash"), []),
    ({"type": "tool", "tool": "question"}, []),
    ({"type": "tool", "state": {"status": "error", "error": f"{FEEDBACK}x"}}, []),
)


@pytest.mark.parametrize("store", ["export", "database"])
def test_answers_to_the_tools_of_opencode_are_turns(store: str, tmp_path: Path) -> None:
    for number, (part, expected) in enumerate(OF_OPENCODE):
        parts = [{"type": "text", "text": "I ask."}, part]
        found = _of_export(parts) if store == "export" else _of_database(parts, tmp_path / str(number))
        assert found == [("assistant", "I ask."), *expected], part


def _of_export(parts: list[Any]) -> Turns:
    message = {"info": {"id": "m", "role": "assistant", "time": {"created": 1_790_000_000_000}}, "parts": parts}
    return turns_of(json.dumps({"info": {"id": "s"}, "messages": [message]}).encode())


def _of_database(parts: list[Any], home: Path) -> Turns:
    folder = home / ".local" / "share" / "opencode"
    folder.mkdir(parents=True)
    database(
        folder / "opencode.db",
        session=[{"id": "s", "parent_id": None, "directory": "/srv", "title": "Piers", "time_updated": 1}],
        message=[{"id": "m", "session_id": "s", "time_created": 1, "data": json.dumps({"role": "assistant"})}],
        part=[
            {"id": f"p{number}", "message_id": "m", "session_id": "s", "data": json.dumps(part)}
            for number, part in enumerate(parts)
        ],
    )
    (session,) = past_opencode.sessions({"HOME": str(home)})
    return [(message["role"], message["content"]) for message in session.messages()]
