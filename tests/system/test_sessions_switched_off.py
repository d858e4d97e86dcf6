"""A session for which memory is off receives nothing and stores nothing, however it names itself, then or later.

Source: docs/guides/hooks.md "Sessions".
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest

from tests.support.bus_harness import eventually
from tests.support.harness_home import PROGRAM
from tests.support.live_daemon import Answer, Client, LiveDaemon

pytestmark = pytest.mark.system
NAMES = itertools.count(1)
OFF = "Memory is switched off for this session"


class Said(NamedTuple):
    """What was said, when, and by which number it is known in each copy of the session."""

    number: int
    role: str
    text: str
    at: datetime

    @property
    def iso(self) -> str:
        return self.at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{self.at.microsecond // 1000:03}Z"


def at(**later: float) -> datetime:
    return datetime.now(UTC) + timedelta(**later)


def lines(records: Iterable[dict[str, Any]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def claude(key: str, said: Iterable[Said], **_: str) -> str:
    return lines(
        {"type": t.role, "sessionId": key, "uuid": f"u-{t.number}", "timestamp": t.iso, "message": message(t)}
        for t in said
    )


def forked(key: str, said: Iterable[Said], origin: str = "") -> str:
    records = [json.loads(line) for line in claude(key, said).splitlines()]
    marks = {"forkedFrom": {"sessionId": origin}} if origin else {}
    return lines(
        {**record, **marks, "uuid": record["uuid"] if not origin else f"new-{record['uuid']}"}
        | ({"forkedFrom": {"sessionId": origin, "messageUuid": record["uuid"]}} if origin else {})
        for record in records
    )


def message(said: Said) -> dict[str, Any]:
    return {"role": said.role, "content": said.text}


def qwen(key: str, said: Iterable[Said], **_: str) -> str:
    return lines(
        {
            "type": t.role,
            "sessionId": key,
            "uuid": f"u-{t.number}",
            "timestamp": t.iso,
            "message": {"role": {"assistant": "model"}.get(t.role, t.role), "parts": [{"text": t.text}]},
        }
        for t in said
    )


def codex(key: str, said: Iterable[Said], origin: str = "") -> str:
    meta = {"id": key, "cwd": "/srv/shop", **({"forked_from_id": origin} if origin else {})}
    return lines(
        [
            {"timestamp": at().isoformat(), "type": "session_meta", "payload": meta},
            *(
                {
                    "timestamp": t.iso,
                    "type": "response_item",
                    "payload": {"type": "message", "role": t.role, "content": [{"type": "input_text", "text": t.text}]},
                }
                for t in said
            ),
        ]
    )


def codex_seconds(key: str, said: Iterable[Said], origin: str = "") -> str:
    return codex(key, [t._replace(at=t.at.replace(microsecond=0)) for t in said], origin)


def gemini(key: str, said: Iterable[Said], **_: str) -> str:
    kinds = {"assistant": "gemini"}
    return lines(
        [
            {"sessionId": key, "projectHash": "8f2b", "startTime": "2026-11-22T08:00:00.000Z"},
            *(
                {"id": f"{key}-{t.number}", "timestamp": t.iso, "type": kinds.get(t.role, t.role), "content": t.text}
                for t in said
            ),
        ]
    )


def opencode(key: str, said: Iterable[Said], **_: str) -> str:
    messages = [
        {
            "info": {"role": t.role, "sessionID": key, "time": {"created": int(t.at.timestamp() * 1000)}},
            "parts": [{"type": "text", "text": t.text}],
        }
        for t in said
    ]
    return json.dumps({"info": {"id": key}, "messages": messages})


def cursor(_: str, said: Iterable[Said], **__: str) -> str:
    def content(t: Said) -> str:
        time = t.at.strftime("%A, %b %-d, %Y, %-I:%M %p (UTC)")
        return (
            t.text if t.role == "assistant" else f"<timestamp>{time}</timestamp>\n<user_query>\n{t.text}\n</user_query>"
        )

    return lines({"role": t.role, "message": {"content": [{"type": "text", "text": content(t)}]}} for t in said)


def json_lines(_: str, said: Iterable[Said], **__: str) -> str:
    return lines({**message(t), "timestamp": t.iso} for t in said)


def dialogue(_: str, said: Iterable[Said], **__: str) -> str:
    return "\n".join(f"{t.role.title()}: {t.text}" for t in said)


TIMED: dict[str, Callable[..., str]] = {
    "claude-code": claude,
    "claude-code, forked": forked,
    "codex": codex,
    "codex, whole seconds": codex_seconds,
    "qwen": qwen,
    "gemini": gemini,
    "opencode": opencode,
    "cursor": cursor,
    "messages with times": json_lines,
}
COPIED = [name for name in TIMED if name != "cursor"]
"""Programs in whose files a copied turn keeps its id or its time; in those of Cursor, answers have neither."""


class Session:
    """A session of an agent of its own, with what is said in it."""

    def __init__(self, agent: Client, program: Callable[..., str] = claude, *, name: str = "off") -> None:
        self.agent, self.program = agent, program
        self.key = f"{name}-{next(NAMES)}"
        self.said: list[Said] = []
        self.hook("session-start")

    def hook(self, name: str, **fields: Any) -> Any:
        return self.agent.post(f"/api/hooks/{name}", {"harness": "x", "sessionKey": self.key, **fields}).ok()

    def switch(self, *, off: bool) -> None:
        self.agent.post(f"/api/sessions/{self.key}/bypass", {"enabled": off}).ok()

    def say(self, word: str, time: datetime) -> None:
        for role in ("user", "assistant"):
            number = len(self.said)
            text = f"{role} speaks of the {word} {number}"
            self.said.append(Said(number, role, text, time + timedelta(milliseconds=1)))

    def report(self, name: str = "session-end", *, key: str = "", origin: str = "", **fields: Any) -> Any:
        text = self.program(key or self.key, self.said, **({"origin": origin} if origin else {}))
        return self.hook(name, **{"transcript": text, "sessionKey": key or self.key, **fields})

    def stored(self, key: str = "") -> str:
        answer = self.agent.get(f"/api/sessions/{key or self.key}/transcript")
        return "" if answer.status == 404 else str(answer.ok()["content"])


@pytest.fixture
def agent(room: Client) -> Client:
    return room


def interrupted(agent: Client, program: Callable[..., str]) -> Session:
    """A session in which memory was off for a while."""
    session = Session(agent, program)
    session.say("beforeword", at(hours=-1))
    session.switch(off=True)
    session.say("hiddenword", at())
    assert session.report("session-checkpoint-extract")["bypassed"] is True
    session.switch(off=False)
    session.say("afterword", at(minutes=5))
    return session


@pytest.mark.parametrize("report", ["session-end", "session-checkpoint-extract"])
@pytest.mark.parametrize("program", TIMED)
def test_what_was_said_while_memory_was_off_stays_out_when_it_is_on_again(
    agent: Client, program: str, report: str
) -> None:
    session = interrupted(agent, TIMED[program])
    for _ in range(2):
        assert session.report(report)["stored"] is True
        stored = session.stored()
        assert ("beforeword" in stored, "hiddenword" in stored, "afterword" in stored) == (True, False, True)
    assert session.stored().count("word") == 4


@pytest.mark.parametrize("program", COPIED)
@pytest.mark.parametrize("is_on_again", [True, False])
def test_a_resumed_or_forked_session_does_not_store_what_was_said_while_memory_was_off(
    agent: Client, program: str, is_on_again: bool
) -> None:
    session = Session(agent, TIMED[program])
    session.say("beforeword", at(hours=-1))
    session.switch(off=True)
    session.say("hiddenword", at())
    assert session.report()["reason"] == "bypassed"
    if is_on_again:
        session.hook("session-start")
        session.switch(off=False)
    fork = f"fork-of-{session.key}"
    session.say("ownword", at(minutes=5))
    session.hook("session-start", sessionKey=fork, source="resume")
    for reason in ("exit", "backfill"):
        assert session.report(key=fork, origin=session.key if "code" in program else "", reason=reason)["stored"]
        stored = session.stored(fork)
        assert ("beforeword" in stored, "hiddenword" in stored, "ownword" in stored) == (True, False, True)
    found = agent.post("/api/sessions/search", {"query": "hiddenword"}).ok()["hits"]
    assert found == []


def test_a_fork_has_what_was_said_right_before_memory_was_switched_off(agent: Client) -> None:
    session, fork = Session(agent), f"fork-of-off-{next(NAMES)}"
    for word, off in (("beforeword", True), ("hiddenword", False), ("afterword", False)):
        session.say(word, at(milliseconds=-50) if off else at())
        session.report("session-checkpoint-extract")
        session.switch(off=off)
    session.report(key=fork)
    for key in (session.key, fork):
        stored = session.stored(key)
        assert ("beforeword" in stored, "hiddenword" in stored, "afterword" in stored) == (True, False, True), key


def test_a_report_of_a_turn_is_enough_to_know_the_copies_of_it(agent: Client, daemon: LiveDaemon) -> None:
    session = Session(agent)
    session.switch(off=True)
    session.say("hiddenword", at())
    before = daemon.read("SELECT count(*) FROM left_out_turns")[0][0]
    session.report("session-checkpoint-extract")
    eventually(lambda: daemon.read("SELECT count(*) FROM left_out_turns")[0][0] == before + 2, what="noted")
    session.report(key=f"fork-of-{session.key}")
    assert session.stored(f"fork-of-{session.key}") == ""


@pytest.mark.parametrize("program", [dialogue, lambda key, said: lines(message(t) for t in said)])
def test_what_has_no_time_stays_out_of_a_session_that_was_off(agent: Client, program: Callable[..., str]) -> None:
    session = interrupted(agent, program)
    session.report()
    assert session.stored() == ""


def test_nothing_else_of_a_session_that_was_off_repeats_what_was_said(agent: Client) -> None:
    session = interrupted(agent, claude)
    session.said.append(Said(9, "user", "They spoke of the hiddenword in a summary", at(minutes=6)))
    records = [json.loads(line) for line in claude(session.key, session.said).splitlines()]
    records[-1]["isCompactSummary"] = True
    session.hook("session-end", transcript=lines(records))
    assert "hiddenword" not in session.stored()
    summary = session.hook("compaction-complete", summary="They spoke of the hiddenword and more.")
    assert (summary["success"], summary["reason"]) == (False, "bypassed")
    session.hook("user-prompt-submit", userPrompt="and that?", lastAssistantMessage="The hiddenword merger is planned.")
    session.hook("pre-compaction")
    kept = agent.get(f"/api/checkpoints/{session.key}").ok()
    assert "hiddenword" not in json.dumps(kept)
    assert agent.post("/api/memory/recall", {"query": "hiddenword"}).ok()["results"] == []
    control = Session(agent)
    assert control.hook("compaction-complete", summary="They spoke of the openword and more.")["success"] is True


def compacted(text: str, said: Iterable[str]) -> str:
    """Mark the turns with these texts as summaries that Claude Code wrote."""
    records = [json.loads(line) for line in text.splitlines()]
    return lines({**each, "isCompactSummary": each["message"]["content"] in said} for each in records)


@pytest.mark.parametrize("program", [claude, forked])
@pytest.mark.parametrize("in_parts", [False, True])
def test_a_summary_made_in_a_fork_does_not_bring_back_what_was_said_while_memory_was_off(
    agent: Client, program: Callable[..., str], in_parts: bool
) -> None:
    session = Session(agent, program)
    early, late = "They spoke of the beforeword.", "They spoke of the hiddenword and more."
    session.said.append(Said(90, "user", early, at(hours=-2)))
    session.say("beforeword", at(hours=-1))
    session.switch(off=True)
    session.say("hiddenword", at())
    session.report("session-checkpoint-extract")
    session.switch(off=False)
    session.say("afterword", at(minutes=5))
    session.report()
    fork, control = f"fork-of-{session.key}", Session(agent, program)
    session.hook("session-start", sessionKey=fork, source="fork")

    def report(name: str) -> Any:
        origin = session.key if program is forked else ""
        text = compacted(program(fork, session.said, origin=origin), {early, late})
        return session.hook(name, sessionKey=fork, transcript=text)

    if in_parts:
        report("session-checkpoint-extract")
    session.said.append(Said(91, "user", late, at(minutes=6)))
    session.say("lateword", at(minutes=7))
    report("session-checkpoint-extract")
    summary = session.hook("compaction-complete", sessionKey=fork, summary=late)
    assert (summary["success"], summary.get("reason")) == (False, "bypassed")
    assert report("session-end")["stored"] is True
    stored = session.stored(fork)
    assert ("hiddenword" in stored, "lateword" in stored, early in stored) == (False, True, True)
    assert ("beforeword 1" in stored, "afterword" in stored) == (True, True)
    assert agent.post("/api/memory/recall", {"query": "hiddenword"}).ok()["results"] == []
    control.say("openword", at())
    control.said.append(Said(92, "user", "They spoke of the openword.", at(minutes=1)))
    text = compacted(claude(control.key, control.said), {"They spoke of the openword."})
    assert control.hook("session-end", transcript=text)["newTurns"] == 3
    assert control.hook("compaction-complete", summary="They spoke of the openword.")["success"] is True


PLANNED = (
    "Implement the following plan:\n\n# Move the hiddenword\n\nIf you need specific details from before exiting plan"
    " mode (like exact code snippets, error messages, or content you generated), read the full transcript at: "
)


class Planned(NamedTuple):
    """A session that was begun with the plan of another one."""

    agent: Client
    key: str
    plan: str

    def hook(self, name: str, **fields: Any) -> Any:
        return self.agent.post(f"/api/hooks/{name}", {"harness": "x", "sessionKey": self.key, **fields}).ok()

    def report(self, *, reason: str = "exit", later: str = "") -> tuple[str, Any]:
        """Report the session; return what is stored of it, and the answer."""
        said = [
            Said(next(NAMES), "user", self.plan, at(minutes=-3)),
            Said(next(NAMES), "assistant", "I move it as planned, readably", at(minutes=-2)),
            *([Said(next(NAMES), "user", later, at(minutes=-1))] if later else []),
        ]
        answer = self.hook("session-end", transcript=compacted(claude(self.key, said), {later}), reason=reason)
        found = self.agent.get(f"/api/sessions/{self.key}/transcript")
        return "" if found.status == 404 else str(found.ok()["content"]), answer


def planned(agent: Client, path: str, key: str) -> Planned:
    return Planned(agent, key, f"{PLANNED}{path}")


def test_a_session_that_is_begun_with_the_plan_of_one_that_is_off_is_off(agent: Client) -> None:
    origin = Session(agent)
    origin.say("hiddenword", at(minutes=-5))
    origin.switch(off=True)
    for number, reason in enumerate(("exit", "backfill")):
        session = planned(
            agent, f"/home/ann/.claude/projects/-srv/{origin.key}.jsonl", f"{origin.key}-planned-{number}"
        )
        assert session.report(reason=reason)[0] == ""
    told = planned(agent, f"C:\\Users\\ann\\{origin.key}.jsonl", f"{origin.key}-told")
    assert "switched it off" in told.hook("user-prompt-submit", userPrompt=told.plan)["inject"]
    assert told.report()[1]["reason"] == "bypassed"


def test_a_session_that_is_begun_with_the_plan_of_one_that_was_switched_on_again_is_on(
    agent: Client, daemon: LiveDaemon
) -> None:
    origin = Session(agent)
    folder = daemon.workspace / "transcripts" / "on again"
    folder.mkdir(parents=True)
    path = folder / f"{origin.key}.jsonl"
    path.write_text(claude(origin.key, [Said(0, "user", "[signet off] my hiddenword", at(minutes=-9))]), "utf-8")
    origin.hook("user-prompt-submit", userPrompt="[signet off] my hiddenword")
    off = planned(agent, str(path), f"{origin.key}-while-off")
    assert off.report()[1]["reason"] == "memory is switched off in this session"
    origin.switch(off=False)
    session = planned(agent, str(path), f"{origin.key}-while-on")
    for _ in range(2):
        stored, _ = session.report(reason="turn")
        assert ("as planned" in stored, "Move the hiddenword" in stored) == (True, False), "the plan was made while off"
        assert "skipped" not in session.hook("user-prompt-submit", userPrompt="and now the tests of the lighthouse")


def test_the_plan_of_a_session_that_was_off_is_left_out_and_so_is_a_summary_of_it(agent: Client) -> None:
    origin = interrupted(agent, claude)
    path = f"/home/ann/.claude/projects/-srv/{origin.key}.jsonl"
    session = planned(agent, path, f"{origin.key}-planned")
    session.hook("user-prompt-submit", userPrompt=session.plan)
    session.hook("pre-compaction")
    assert "hiddenword" not in json.dumps(agent.get(f"/api/checkpoints/{session.key}").ok())
    stored, _ = session.report(later="They spoke of the hiddenword.")
    assert ("hiddenword" in stored, "as planned" in stored) == (False, True)
    summary = session.hook("compaction-complete", summary="They moved the hiddenword.")
    assert (summary["success"], summary.get("reason")) == (False, "bypassed")
    control = Session(agent)
    session = planned(agent, f"/home/ann/.claude/projects/-srv/{control.key}.jsonl", f"{control.key}-planned")
    stored, _ = session.report(later="They spoke of the hiddenword.")
    assert ("Move the hiddenword" in stored, "They spoke" in stored) == (True, True)
    assert session.hook("compaction-complete", summary="They moved the hiddenword.")["success"] is True


def test_the_mark_in_a_session_counts_for_those_that_its_plans_begin(agent: Client, daemon: LiveDaemon) -> None:
    folder = daemon.workspace / "transcripts" / "plans"
    folder.mkdir(parents=True)

    def file(name: str, text: str) -> str:
        path = folder / f"{name}.jsonl"
        path.write_text(claude(name, [Said(0, "user", text, at(minutes=-9))]), encoding="utf-8")
        return str(path)

    marked, quiet = file("marked", "[signet off] my hiddenword"), file("quiet", "what does [signet off] do?")
    between = file("between", f"{PLANNED}{marked}")
    circle = file("circle", f"{PLANNED}{folder}/circle.jsonl")
    cases = (
        *((marked, ""), (between, ""), (quiet, "as planned"), (circle, "as planned")),
        *((f"{folder}/gone.jsonl", "as planned"), ("/etc/marked.jsonl", "as planned"), ("marked.jsonl", "as planned")),
    )
    for number, (path, expected) in enumerate(cases):
        for reason in ("backfill", "exit"):
            session = planned(agent, path, f"of-a-plan-{number}-{reason}")
            stored, answer = session.report(reason=reason)
            assert (expected in stored, bool(stored)) == (True, bool(expected)), (path, reason)
            if not expected:
                assert answer["reason"] == "memory is switched off in this session"


def test_a_transcript_beside_a_memory_is_left_out_too(agent: Client) -> None:
    session = Session(agent)
    session.switch(off=True)
    session.say("hiddenword", at())
    agent.remember("A fact about the quay", sourceId=session.key, transcript=claude(session.key, session.said))
    session.switch(off=False)
    agent.remember("A fact about the pier", sourceId=session.key, transcript=claude(session.key, session.said))
    assert session.stored() == ""


def test_the_hook_program_stores_nothing_of_what_was_said_while_memory_was_off(daemon: LiveDaemon) -> None:
    session = Session(daemon.api)
    file = daemon.workspace / "transcript.jsonl"

    def run(name: str, key: str = "") -> None:
        file.write_text(claude(key or session.key, session.said), encoding="utf-8")
        event = {"session_id": key or session.key, "hook_event_name": name, "transcript_path": str(file)}
        command = [sys.executable, "-c", PROGRAM, "-H", "claude-code"]
        environ = {name: value for name, value in daemon.environment().items() if name != "SIGNET_PORT"}
        done = subprocess.run(command, input=json.dumps(event), env=environ, text=True, capture_output=True, check=True)
        assert "no memory in this session" not in done.stdout

    for word, off, time in (
        ("beforeword", False, at(hours=-1)),
        ("hiddenword", True, at()),
        ("afterword", False, at()),
    ):
        run("SessionStart")
        session.switch(off=off)
        session.say(word, max(time, at()) if word != "beforeword" else time)
        run("Stop")
    fork = f"fork-of-{session.key}"
    for key in (session.key, fork):
        run("SessionStart", key)
        eventually(lambda key=key: run("SessionEnd", key) or "afterword" in session.stored(key), what="stored")
        assert "beforeword" in session.stored(key)
        assert "hiddenword" not in session.stored(key)
    file.unlink()


def mcp(agent: Client, name: str, **arguments: Any) -> tuple[bool, str]:
    """Call a tool; return whether it succeeded, and its text."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    answer = agent.post("/mcp", call, accept="application/json, text/event-stream").ok()["result"]
    return not answer.get("isError", False), answer["content"][0]["text"]


def test_every_tool_and_route_that_names_a_session_that_is_off_is_refused(agent: Client) -> None:
    known = agent.remember("The harbour crane lifts forty tons", project="/srv/shop")["id"]
    session = Session(agent)
    key = session.key
    tools: dict[str, dict[str, Any]] = {
        "memory_store": {"content": "hiddenword is stored", "session_key": key},
        "memory_search": {"query": "harbour crane", "session_key": key},
        "memory_feedback": {"ratings": {known: 1}, "session_key": key},
        "session_search": {"query": "harbour", "current_session_key": key},
    }
    posts: dict[str, dict[str, Any]] = {
        "/api/memory/remember": {"content": "hiddenword is stored"},
        "/api/memory/save": {"content": "hiddenword is stored"},
        "/api/memory/recall": {"query": "harbour crane"},
        "/api/memory/feedback": {"feedback": {known: 1}},
        "/api/memory/modify": {"patches": [{"id": known, "reason": "r", "content": "hiddenword"}]},
        "/api/memory/forget": {"mode": "preview", "query": "crane"},
    }
    gets = ("/api/memory/search?q=crane", "/api/memories", f"/api/memory/{known}", f"/api/memory/{known}/history")

    def answers() -> dict[str, Answer]:
        header = {"x-signet-session-key": key}
        found = {f"body {path}": agent.post(path, {**body, "sessionKey": key}) for path, body in posts.items()}
        found |= {f"header {path}": agent.request("POST", path, body, header) for path, body in posts.items()}
        found |= {f"header {path}": agent.request("GET", path, None, header) for path in gets}
        by_id = {"x-signet-session-id": key}
        found |= {f"id {path}": agent.request("POST", path, body, by_id) for path, body in posts.items()}
        found |= {f"id {path}": agent.request("GET", path, None, by_id) for path in gets}
        found |= {
            f"id and key {path}": agent.request("GET", path, None, {**by_id, "x-signet-session-key": "another"})
            for path in gets
        }
        found |= {f"query {path}": agent.get(f"{path}{'&' if '?' in path else '?'}sessionKey={key}") for path in gets}
        found["patch"] = agent.request(
            "PATCH", f"/api/memory/{known}", {"content": "hiddenword", "reason": "r", "sessionKey": key}
        )
        found["delete"] = agent.request("DELETE", f"/api/memory/{known}?reason=r&sessionKey={key}")
        return found

    assert all(mcp(agent, name, **arguments)[0] for name, arguments in tools.items() if name != "memory_store")
    assert mcp(agent, "session_bypass", session_key=key, enabled=True)[0]
    for name, arguments in tools.items():
        done, text = mcp(agent, name, **arguments)
        assert not done, name
        assert OFF in text, name
    for name, answer in answers().items():
        assert answer.status == 403, name
        assert OFF in answer.json["error"], name
    assert [row["content"] for row in agent.listed()] == ["The harbour crane lifts forty tons"]
    assert session.hook("recall", query="harbour crane")["reason"] == "bypassed"
    assert session.hook("remember", content="hiddenword is stored")["reason"] == "bypassed"
    by_id = {"x-signet-session-id": f"session:{key}"}
    told = agent.request("POST", "/api/hooks/remember", {"harness": "x", "content": "hiddenword is stored"}, by_id).ok()
    assert (told["reason"], told["saved"]) == ("bypassed", False)
    assert agent.request("GET", "/api/memories", None, {"x-signet-session-id": "another"}).ok()["memories"]
    assert agent.post("/api/checkpoints", {"harness": "x", "sessionKey": key}).ok()["reason"] == "bypassed"
    assert agent.request("GET", f"/api/sessions/{key}", None, {"x-signet-session-key": key}).ok()["bypassed"] is True
    assert mcp(agent, "memory_search", query="harbour crane")[0], "a call without a session is not of this one"
    assert mcp(agent, "memory_search", query="harbour crane", session_key="another")[0]
    assert mcp(agent, "session_bypass", session_key=key, enabled=False)[0]
    assert all(mcp(agent, name, **arguments)[0] for name, arguments in tools.items())


def test_tools_are_off_after_a_prompt_that_says_so(agent: Client) -> None:
    session = Session(agent)
    session.hook("user-prompt-submit", userPrompt="[signet off] we speak of the hiddenword")
    done, text = mcp(agent, "memory_store", content="the hiddenword is stored", session_key=session.key)
    assert (done, OFF in text) == (False, True)
    assert agent.listed() == []


@pytest.mark.parametrize(
    "key", ["p/4", "agent:main:slack/C1/99", "/home/ann/plan", "a//b", "ends/", "x/bypass", "50%2F"]
)
def test_a_session_whose_key_has_a_slash_can_be_switched_off_and_read(agent: Client, key: str) -> None:
    def about(tail: str = "", root: str = "sessions") -> str:
        return f"/api/{root}/{quote(key, safe='')}{tail}"

    headers = {"harness": "x", "sessionKey": key}
    agent.post("/api/hooks/session-start", headers).ok()
    agent.post("/api/hooks/session-end", {**headers, "transcript": "User: hello\n\nAssistant: hi"}).ok()
    agent.post("/api/hooks/session-start", headers).ok()
    assert agent.get(about()).ok()["key"] == key
    assert "hello" in agent.get(about("/transcript")).ok()["content"]
    assert agent.get(about("/memories")).ok()["sessionKey"] == key
    assert {each["session_key"] for each in agent.get(about(root="checkpoints")).ok()["checkpoints"]} == {key}
    assert agent.post(about("/renew"), {}).status == 200
    assert agent.post(about("/bypass"), {"enabled": True}).ok()["bypassed"] is True
    assert (
        agent.post("/api/hooks/remember", {**headers, "content": "hiddenword is stored"}).ok()["reason"] == "bypassed"
    )
    assert agent.post(about("/bypass"), {"enabled": False}).ok()["bypassed"] is False
    assert agent.request("DELETE", about("/transcript")).ok()["turns"] == 2
