"""The hook command: what it sends, what the harness gets to read, and that it never fails, waits or loses anything.

Each test runs the program as a harness does: a process, JSON on standard input, a daemon behind a real socket.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from signet_actors.config.workspace import Workspace
from signet_actors.errors import ExitCode
from signet_actors.hook import daemon as daemon_module
from signet_actors.hook import spool
from signet_actors.hook.drain import drain_for_daemon
from signet_actors.hook.harness_events import HOOKS, is_switched_off
from signet_actors.hook.injected_text import CUT_NOTE, fitted
from tests.support.bus_harness import REPOSITORY
from tests.support.harness_home import LONG_LIMITS
from tests.support.scripted_daemon import ScriptedDaemon

ROOT = str(Path(__file__).resolve().parents[2])
PROGRAM = "from signet_actors.hook.program import main; main()"
PATIENT_PROGRAM = f"{LONG_LIMITS}; {PROGRAM}"
CLAUDE = ("-H", "claude-code")
START = {
    "session_id": "6f1c3b52-6c52-4d10-9d6e-000000000000",
    "transcript_path": "/home/ann/.claude/projects/-home-ann-shop/6f1c3b52.jsonl",
    "cwd": "/home/ann/shop",
    "hook_event_name": "SessionStart",
    "source": "startup",
}
END = {**START, "hook_event_name": "SessionEnd", "reason": "prompt_input_exit"}
COMPACTED = {**START, "hook_event_name": "PostCompact", "trigger": "auto", "compact_summary": "We chose a port."}


@pytest.fixture
def daemon() -> Iterator[ScriptedDaemon]:
    scripted = ScriptedDaemon()
    yield scripted
    scripted.close()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return tmp_path / "agents"


def environment(workspace: Path, url: str | None = None, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SIGNET_")}
    given = {"SIGNET_DAEMON_URL": url} if url else {}
    return {**kept, "HOME": str(workspace.parent), "SIGNET_WORKSPACE": str(workspace), **given, **more}


def hook(
    *arguments: str,
    event: Any,
    workspace: Path,
    url: str | None = None,
    program: str = PATIENT_PROGRAM,
    **more: str,
) -> subprocess.CompletedProcess[str]:
    """Run the program; give ``PROGRAM``, with the real limits, if the daemon does not answer."""
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        input=event if isinstance(event, str) else json.dumps(event),
        env=environment(workspace, url, **more),
        cwd=workspace.parent,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@contextlib.contextmanager
def holding(workspace: Path) -> Iterator[None]:
    """Hold the workspace as its daemon does."""
    held = os.open(workspace / "memory", os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(held)


def closed_port() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def waiting(workspace: Path) -> list[dict[str, Any]]:
    while True:
        with contextlib.suppress(FileNotFoundError):  # one that is put off gets another name
            return [json.loads(path.read_text()) for path in sorted((workspace / "memory" / "spool").glob("*.json"))]


def drained(workspace: Path) -> bool:
    """Wait until nothing waits any more."""
    deadline = time.monotonic() + 60
    kept = spool.Spool(str(workspace))
    while kept.waiting() and time.monotonic() < deadline:
        time.sleep(0.005)
    return not kept.waiting()


def context(done: subprocess.CompletedProcess[str]) -> str:
    text: str = json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]
    return text


def test_session_start_injects_the_daemons_text(daemon: ScriptedDaemon, workspace: Path) -> None:
    daemon.on("POST", "/api/hooks/session-start", {"inject": "[memory active]\nprefers vim", "memories": []})
    done = hook("session-start", *CLAUDE, event=START, workspace=workspace, url=daemon.url)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {
        "hookSpecificOutput": {
            "hookEventName": "SessionStart",
            "additionalContext": "[memory active]\nprefers vim",
        }
    }
    asked = daemon.asked[0]
    assert asked.body == {
        "harness": "claude-code",
        "project": "/home/ann/shop",
        "sessionKey": START["session_id"],
        "source": "startup",
        "transcriptPath": START["transcript_path"],
        "maxInjectChars": 10_000,
    }
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["x-signet-actor-type"] == "harness"


def test_a_prompt_is_sent_with_the_assistants_last_message(daemon: ScriptedDaemon, workspace: Path) -> None:
    daemon.on("POST", "/api/hooks/user-prompt-submit", {"inject": "", "memoryCount": 0})
    event = {
        **START,
        "hook_event_name": "UserPromptSubmit",
        "prompt": "which port \ud83d?",
        "last_assistant_message": "Done.",
    }
    done = hook("user-prompt-submit", *CLAUDE, event=event, workspace=workspace, url=daemon.url)
    assert (done.returncode, done.stdout) == (0, "")
    sent = daemon.asked[0].body
    assert (sent["userPrompt"], sent["lastAssistantMessage"]) == ("which port ??", "Done.")


@pytest.mark.parametrize(
    ("name", "event", "expected"),
    [
        (
            "pre-compaction",
            {"hook_event_name": "PreCompact", "trigger": "manual", "custom_instructions": "keep the port"},
            {"sessionContext": "keep the port", "transcriptPath": START["transcript_path"]},
        ),
        (
            "compaction-complete",
            {"hook_event_name": "PostCompact", "trigger": "auto", "compact_summary": "We chose a port."},
            {"summary": "We chose a port."},
        ),
        ("session-end", END, {"sessionId": START["session_id"], "cwd": "/home/ann/shop", "reason": END["reason"]}),
        (
            "skill-invocation",
            {
                "hook_event_name": "PostToolUse",
                "tool_name": "Skill",
                "tool_input": {"skill": "release-notes", "args": "2.0"},
                "tool_response": {"success": True},
                "tool_use_id": "toolu_01ABC",
                "duration_ms": 12,
            },
            {"skill": "release-notes", "toolUseId": "toolu_01ABC", "durationMs": 12},
        ),
    ],
)
def test_what_the_harness_does_not_read_is_not_printed(
    daemon: ScriptedDaemon, workspace: Path, name: str, event: dict[str, Any], expected: dict[str, Any]
) -> None:
    daemon.on("POST", f"/api/hooks/{name}", {"inject": "x", "summaryPrompt": "y", "success": True})
    done = hook(name, *CLAUDE, event={**START, **event}, workspace=workspace, url=daemon.url)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    sent = daemon.asked[0].body
    assert {**sent, **expected} == sent


def test_opencode_gets_the_guidelines_for_the_summary_of_a_compaction(daemon: ScriptedDaemon, workspace: Path) -> None:
    for answer in ({"guidelines": "- port numbers", "inject": "x"}, {"guidelines": ""}, {"guidelines": 7}):
        daemon.on("POST", "/api/hooks/pre-compaction", answer)
    event = {"session_id": "ses_1", "cwd": "/srv/shop", "hook_event_name": "experimental.session.compacting"}
    said = context(hook("pre-compaction", "-H", "opencode", event=event, workspace=workspace, url=daemon.url))
    assert said.startswith("Memory keeps this summary")
    assert said.endswith("\n- port numbers")
    for _ in range(2):
        assert hook("pre-compaction", "-H", "opencode", event=event, workspace=workspace, url=daemon.url).stdout == ""


CURSOR_START = {
    "conversation_id": "9a0c1f52-0000-4d10-9d6e-000000000000",
    "generation_id": "1",
    "model": "gpt-5.5",
    "hook_event_name": "sessionStart",
    "cursor_version": "3.20.17",
    "workspace_roots": ["/home/ann/shop", "/home/ann/lib"],
    "transcript_path": None,
    "is_background_agent": False,
    "composer_mode": "agent",
}


@pytest.mark.parametrize(
    ("event", "path", "expected"),
    [
        (CURSOR_START, "session-start", {"additional_context": "known"}),
        (
            {**CURSOR_START, "hook_event_name": "beforeSubmitPrompt", "prompt": "which port?", "attachments": []},
            "user-prompt-submit",
            {"continue": True, "additional_context": "known"},
        ),
    ],
)
def test_cursor_gets_what_it_reads(
    daemon: ScriptedDaemon, workspace: Path, event: dict[str, Any], path: str, expected: dict[str, Any]
) -> None:
    daemon.on("POST", f"/api/hooks/{path}", {"inject": "known"})
    daemon.on("POST", f"/api/hooks/{path}", {"inject": ""})
    done = hook(path, "-H", "cursor", event=event, workspace=workspace, url=daemon.url)
    assert json.loads(done.stdout) == expected
    body = daemon.asked[0].body
    assert (body["sessionKey"], body["project"]) == (CURSOR_START["conversation_id"], "/home/ann/shop")
    assert hook(path, "-H", "cursor", event=event, workspace=workspace, url=daemon.url).stdout == ""


@pytest.mark.parametrize(
    ("harness", "event", "begins"),
    [
        ("cursor", {**CURSOR_START, "hook_event_name": "preCompact", "trigger": "auto", "message_count": 45}, True),
        ("gemini", {**START, "hook_event_name": "PreCompress", "trigger": "manual"}, True),
        ("gemini", {**START, "hook_event_name": "PreCompress", "trigger": "auto"}, False),
        ("claude-code", {**START, "hook_event_name": "PreCompact", "trigger": "auto"}, False),
    ],
)
def test_a_harness_that_reports_no_end_of_a_compaction_begins_the_epoch_before_it(
    daemon: ScriptedDaemon, workspace: Path, harness: str, event: dict[str, Any], begins: bool
) -> None:
    daemon.on("POST", "/api/hooks/pre-compaction", {"guidelines": "x"})
    done = hook("pre-compaction", "-H", harness, event=event, workspace=workspace, url=daemon.url)
    assert (done.returncode, done.stdout) == (0, "")
    assert daemon.asked[0].body.get("beginsEpoch", False) is begins


def test_gemini_gets_the_memories_for_a_prompt(daemon: ScriptedDaemon, workspace: Path) -> None:
    daemon.on("POST", "/api/hooks/user-prompt-submit", {"inject": "known"})
    event = {**START, "hook_event_name": "BeforeAgent", "timestamp": "2026-11-23T12:00:00Z", "prompt": "which port?"}
    done = hook("user-prompt-submit", "-H", "gemini", event=event, workspace=workspace, url=daemon.url)
    output = {"hookEventName": "BeforeAgent", "additionalContext": "known"}
    assert json.loads(done.stdout) == {"hookSpecificOutput": output}
    assert daemon.asked[0].body["userPrompt"] == "which port?"


def test_gemini_gets_the_text_of_the_start_with_the_first_prompt(daemon: ScriptedDaemon, workspace: Path) -> None:
    daemon.on("POST", "/api/hooks/session-start", {"inject": ""})
    daemon.on("POST", "/api/hooks/user-prompt-submit", {"inject": "start and memories"})
    assert hook("session-start", "-H", "gemini", event=START, workspace=workspace, url=daemon.url).stdout == ""
    prompt = {**START, "hook_event_name": "BeforeAgent", "prompt": "/greet Bob"}
    done = hook("user-prompt-submit", "-H", "gemini", event=prompt, workspace=workspace, url=daemon.url)
    assert context(done) == "start and memories"
    assert [asked.body.get("deferred", False) for asked in daemon.asked] == [True, False]
    assert [asked.body.get("withStart", False) for asked in daemon.asked] == [False, True]
    assert daemon.asked[0].body["source"] == "startup"


@pytest.mark.parametrize("harness", ["claude-code", "codex", "qwen"])
def test_a_prompt_asks_for_the_start_that_the_session_may_have_missed(
    daemon: ScriptedDaemon, workspace: Path, harness: str
) -> None:
    missed = hook("session-start", "-H", harness, event=START, workspace=workspace, url=closed_port())
    assert "no memory in this session" in missed.stdout
    daemon.on("POST", "/api/hooks/user-prompt-submit", {"inject": "start and memories"})
    prompt = {**START, "hook_event_name": "UserPromptSubmit", "prompt": "which port?"}
    done = hook("user-prompt-submit", "-H", harness, event=prompt, workspace=workspace, url=daemon.url)
    assert context(done) == "start and memories"
    assert daemon.asked[0].body["withStart"] is True


def test_other_callers_get_the_text_of_the_start_at_once(daemon: ScriptedDaemon, workspace: Path) -> None:
    plain = {name: value for name, value in START.items() if name != "hook_event_name"}
    for harness, event in (("gemini", plain), ("claude-code", START), ("codex", START), ("opencode", START)):
        daemon.on("POST", "/api/hooks/session-start", {"inject": "known"})
        hook("session-start", "-H", harness, event=event, workspace=workspace, url=daemon.url)
    assert not any("deferred" in asked.body for asked in daemon.asked)


def test_without_a_daemon_the_user_of_gemini_is_told_at_the_start_and_its_model_with_the_first_prompt(
    workspace: Path, tmp_path: Path
) -> None:
    file = tmp_path / "session.jsonl"
    event = {**START, "transcript_path": str(file)}
    told = json.loads(hook("session-start", "-H", "gemini", event=event, workspace=workspace, url=closed_port()).stdout)
    assert told["systemMessage"].startswith("Signet: no memory in this session")
    assert told["hookSpecificOutput"]["additionalContext"] == ""
    prompt = {**event, "hook_event_name": "BeforeAgent", "prompt": "which port?"}
    for said, is_told in (
        ("", True),
        ('{"type":"info"}\n', True),
        ('{"$set":{"messages":[{"type":"user","content":"This is the Gemini CLI."}]}}\n', True),
        ('{"type":"user","content":"hi"}\n{"type": "gemini","content":"hello"}\n', False),
    ):
        file.write_text(said)
        done = hook("user-prompt-submit", "-H", "gemini", event=prompt, workspace=workspace, url=closed_port())
        assert bool(done.stdout) is is_told, said
        assert not is_told or context(done).startswith("Signet: no memory in this session")


def test_a_spool_that_is_full_by_bytes_says_that_the_next_reports_are_lost(workspace: Path) -> None:
    waiting = workspace / "memory" / "spool"
    waiting.mkdir(parents=True)
    for number, size, is_full in ((1, 1000, False), (2, spool.MAX_BYTES - 1000, True)):
        with (waiting / f"{number:020d}-7.json").open("wb") as file:
            file.truncate(size)
        said = context(hook("session-start", *CLAUDE, event=START, workspace=workspace, url=closed_port()))
        assert ("the next ones are lost" in said) is is_full, said


def test_a_caller_of_plain_text_gets_nothing_that_controls_its_terminal(
    daemon: ScriptedDaemon, workspace: Path
) -> None:
    raw = "one\x1b[31mtwo\x07\x9b2J\x00\x08\x7f\rthree\n\tfour öäü 端口 🙂"
    daemon.on("POST", "/api/hooks/session-start", {"inject": raw})
    done = hook("session-start", event="", workspace=workspace, url=daemon.url)
    assert done.stdout == "one[31mtwo2Jthree\n\tfour öäü 端口 🙂\n"
    daemon.on("POST", "/api/hooks/recall", {"results": [{"content": raw}]})
    done = hook("recall", "--json", event={"query": "x"}, workspace=workspace, url=daemon.url)
    assert not set(map(chr, (*range(9), *range(11, 32), *range(127, 160)))) & set(done.stdout)
    assert json.loads(done.stdout)["results"][0]["content"].startswith("one\x1b[31mtwo\x07")


ENCODED: dict[str, Callable[[str], bytes]] = {
    "plain": lambda text: text.encode(),
    "UTF-8 with a mark": lambda text: text.encode("utf-8-sig"),
    "UTF-8 with two marks": lambda text: f"\ufeff\ufeff{text}".encode(),
    "UTF-8 with a mark and line ends": lambda text: f"\ufeff\r\n{text}\r\n".encode(),
    "UTF-16": lambda text: text.encode("utf-16"),
    "UTF-16 with a line end": lambda text: f"{text}\r\n".encode("utf-16"),
    "UTF-16 with a line end of one byte": lambda text: text.encode("utf-16") + b"\n",
    "UTF-16 BE with a mark": lambda text: f"\ufeff{text}".encode("utf-16-be"),
    "UTF-16 LE without a mark": lambda text: text.encode("utf-16-le"),
    "UTF-16 BE without a mark": lambda text: text.encode("utf-16-be"),
    "UTF-32": lambda text: text.encode("utf-32"),
    "with zeros behind it": lambda text: text.encode() + b"\0\0",
}


@pytest.mark.parametrize("stays", [False, True])
def test_an_event_is_read_in_every_encoding_and_also_if_its_sender_stays(
    daemon: ScriptedDaemon, workspace: Path, stays: bool
) -> None:
    text = json.dumps({**START, "cwd": "/home/änn/shop"}, ensure_ascii=False)
    command = [sys.executable, "-c", PATIENT_PROGRAM, "session-start", *CLAUDE]
    for form, encode in ENCODED.items():
        daemon.on("POST", "/api/hooks/session-start", {"inject": "known"})
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(workspace, daemon.url)
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(encode(text))
            process.stdin.flush()
            if not stays:
                process.stdin.close()
            said = process.stdout.read()
        assert (process.returncode, b"known" in said) == (0, True), form
        assert daemon.asked[-1].body["project"] == "/home/änn/shop", form


def test_the_event_names_the_hook_if_the_command_line_does_not(daemon: ScriptedDaemon, workspace: Path) -> None:
    daemon.on("POST", "/api/hooks/session-start", {"inject": "known"})
    assert context(hook(*CLAUDE, event=START, workspace=workspace, url=daemon.url)) == "known"


def test_a_caller_that_is_no_harness_gets_plain_text(daemon: ScriptedDaemon, workspace: Path) -> None:
    daemon.on("POST", "/api/hooks/session-start", {"inject": "known", "memories": []})
    arguments = ("session-start", "-H", "codex", "--project", "/srv/shop")
    done = hook(*arguments, event="", workspace=workspace, url=daemon.url)
    assert done.stdout == "known\n"
    assert daemon.asked[0].body["project"] == "/srv/shop"
    assert "sessionKey" not in daemon.asked[0].body
    done = hook(*arguments, "--json", event="", workspace=workspace, url=daemon.url)
    assert json.loads(done.stdout) == {"inject": "known", "memories": []}


@pytest.mark.parametrize("variable", ["SIGNET_NO_HOOKS", "SIGNET_BYPASS"])
def test_a_variable_switches_every_hook_off(daemon: ScriptedDaemon, workspace: Path, variable: str) -> None:
    for name in HOOKS:
        done = hook(name, event=START, workspace=workspace, url=daemon.url, **{variable: "1"})
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert daemon.asked == []
    assert not workspace.exists()


@pytest.mark.parametrize(
    ("value", "is_off"), [("1", True), ("true", True), (" TRUE ", True), ("", False), ("0", False), ("false", False)]
)
def test_a_switch_is_spelled_1_or_true(value: str, is_off: bool) -> None:
    assert is_switched_off({"SIGNET_BYPASS": value}) is is_off


@pytest.mark.parametrize("variable", ["SIGNET_TOKEN", "SIGNET_API_KEY"])
def test_the_token_of_the_environment_is_sent(daemon: ScriptedDaemon, workspace: Path, variable: str) -> None:
    daemon.on("POST", "/api/hooks/session-start", {"inject": ""})
    hook("session-start", event=START, workspace=workspace, url=daemon.url, **{variable: "abc.def"})
    assert daemon.asked[0].headers["authorization"] == "Bearer abc.def"


def test_the_start_of_a_session_says_that_no_daemon_answers(workspace: Path) -> None:
    url = closed_port()
    done = hook("session-start", *CLAUDE, event=START, workspace=workspace, url=url)
    assert (done.returncode, done.stderr) == (0, "")
    line = f"Signet: no memory in this session, because no daemon answers at {url}. Start it with `signet start`."
    assert context(done) == line
    assert json.loads(done.stdout)["systemMessage"] == line


def test_the_start_of_a_session_says_what_is_wrong_with_the_configuration(workspace: Path) -> None:
    port = closed_port().rpartition(":")[2]
    (workspace / ".daemon").mkdir(parents=True)
    workspace.chmod(0o700)
    (workspace / "agent.yaml").write_text("gateway:\n  port: [\n")
    started = [sys.executable, str(REPOSITORY / "supervisor.py")]
    refused = subprocess.run(started, env=environment(workspace), capture_output=True, text=True, check=False)
    assert refused.returncode == ExitCode.CONFIG, refused.stderr
    done = hook("session-start", *CLAUDE, event=START, workspace=workspace, SIGNET_PORT=port)
    assert "because the daemon could not start: " in context(done)
    assert "agent.yaml" in context(done)
    assert "line 3" in context(done)
    assert context(done).endswith("Correct it with `signet config edit`, then start the daemon with `signet start`.")
    elsewhere = hook("session-start", *CLAUDE, event=START, workspace=workspace, url=f"http://127.0.0.1:{port}")
    assert "could not start" not in context(elsewhere)
    (workspace / "agent.yaml").write_text("gateway: {}\n")
    os.utime(workspace / "agent.yaml", (time.time() + 60, time.time() + 60))
    done = hook("session-start", *CLAUDE, event=START, workspace=workspace, SIGNET_PORT=port)
    assert context(done).endswith("Start it with `signet start`."), "it was corrected since"


@pytest.mark.parametrize("name", [name for name in HOOKS if name not in {"session-start", "remember", "recall"}])
def test_other_hooks_are_silent_while_the_daemon_is_away(workspace: Path, name: str) -> None:
    done = hook(name, *CLAUDE, event=END, workspace=workspace, url=closed_port())
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("scripted", [{"drop": True}, {"body": b"\xff{", "status": 200}, {"body": {"inject": 3}}])
def test_an_answer_cut_off_or_malformed_is_no_answer(
    daemon: ScriptedDaemon, workspace: Path, scripted: dict[str, Any]
) -> None:
    daemon.on("POST", "/api/hooks/session-start", **scripted)
    done = hook("session-start", *CLAUDE, event=START, workspace=workspace, url=daemon.url)
    assert done.returncode == 0
    assert context(done).startswith("Signet: no memory in this session, because the ")


@pytest.mark.parametrize(("status", "advice"), [(404, "Upgrade"), (503, "signet status")])
def test_a_refusal_is_explained(daemon: ScriptedDaemon, workspace: Path, status: int, advice: str) -> None:
    daemon.on("POST", "/api/hooks/session-start", {"error": "no\nway"}, status=status)
    done = hook("session-start", *CLAUDE, event=START, workspace=workspace, url=daemon.url)
    assert advice in context(done)
    assert "\n" not in context(done)


@pytest.mark.parametrize(("status", "told"), [(401, "Run `signet login`."), (403, "lacks 'recall' permission")])
def test_a_refusal_for_want_of_rights_is_told_to_the_user_and_never_to_the_model(
    daemon: ScriptedDaemon, workspace: Path, status: int, told: str
) -> None:
    refusal = {"error": "role 'x' lacks 'recall' permission"}
    daemon.on("POST", "/api/hooks/session-start", refusal, status=status)
    daemon.on("POST", "/api/hooks/user-prompt-submit", refusal, status=status)
    daemon.on("POST", "/api/hooks/session-end", refusal, status=status)
    done = hook("session-start", *CLAUDE, event=START, workspace=workspace, url=daemon.url)
    shown = json.loads(done.stdout)
    assert context(done) == ""
    assert told in shown["systemMessage"]
    plain = hook("session-start", *CLAUDE, event={"session_id": "1"}, workspace=workspace, url=daemon.url)
    cursor = hook("session-start", "-H", "cursor", event=START, workspace=workspace, url=daemon.url)
    later = hook("session-end", *CLAUDE, event=END, workspace=workspace, url=daemon.url)
    for silent in (plain, cursor, later):
        assert (silent.returncode, silent.stdout, silent.stderr) == (0, "", "")
    assert len(waiting(workspace)) == 1, "the report is kept until a right token is there"


def test_a_200_that_says_that_nothing_was_done_is_no_answer(daemon: ScriptedDaemon, workspace: Path) -> None:
    for reason in ("busy", "no_hooks"):
        daemon.on("POST", "/api/hooks/session-start", {"inject": "", "memories": [], "skipped": True, "reason": reason})
        daemon.on("POST", "/api/hooks/session-end", {"memoriesSaved": 0, "skipped": True, "reason": reason})
    done = hook("session-start", *CLAUDE, event=START, workspace=workspace, url=daemon.url)
    assert "could not answer (busy). Check `signet status`." in context(done)
    assert hook("session-start", *CLAUDE, event=START, workspace=workspace, url=daemon.url).stdout == ""
    hook("session-end", *CLAUDE, event=END, workspace=workspace, url=daemon.url)
    assert len(waiting(workspace)) == 1
    hook("session-end", *CLAUDE, event=END, workspace=workspace, url=daemon.url)
    assert drained(workspace)


def test_a_spool_that_cannot_be_written_holds_nothing_up(daemon: ScriptedDaemon, workspace: Path) -> None:
    workspace.mkdir()
    (workspace / "memory").write_text("a file")
    daemon.on("POST", "/api/hooks/session-end", {"memoriesSaved": 0})
    daemon.on("POST", "/api/hooks/session-start", {"inject": "known"})
    done = hook("session-end", *CLAUDE, event=END, workspace=workspace, url=daemon.url)
    assert (done.returncode, done.stdout, len(daemon.asked)) == (0, "", 1)
    assert context(hook("session-start", *CLAUDE, event=START, workspace=workspace, url=daemon.url)) == "known"


@pytest.mark.parametrize("name", ["session-start", "user-prompt-submit", "session-end"])
def test_a_daemon_that_hangs_does_not_hold_the_harness(daemon: ScriptedDaemon, workspace: Path, name: str) -> None:
    daemon.on("POST", f"/api/hooks/{name}", hang=True)
    done = hook(name, *CLAUDE, event=START, workspace=workspace, url=daemon.url, program=PROGRAM)
    assert (done.returncode, done.stderr) == (0, "")
    assert ("did not answer in time" in done.stdout) == (name == "session-start")
    assert len(waiting(workspace)) == (1 if name == "session-end" else 0)


def test_a_harness_that_never_closes_standard_input_is_not_held(workspace: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "session-start", *CLAUDE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(workspace, closed_port()),
    )
    assert process.wait(60) == 0
    assert process.stdout is not None
    assert b"did not answer in time" in process.stdout.read()
    process.stdin.close()
    process.stdout.close()


@pytest.mark.parametrize("given", ["", "{", "[1]", '{"session_id": 5, "hook_event_name": {}}', "[" * 200_000, "\0"])
@pytest.mark.parametrize("name", ["session-start", "session-end", "no-such-hook"])
def test_odd_input_ends_with_exit_code_0(daemon: ScriptedDaemon, workspace: Path, name: str, given: str) -> None:
    daemon.on("POST", f"/api/hooks/{name}", {"inject": ""})
    done = hook(name, event=given, workspace=workspace, url=daemon.url)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_module_of_the_project_is_not_imported(daemon: ScriptedDaemon, workspace: Path) -> None:
    daemon.on("POST", "/api/hooks/session-start", {"inject": "known"})
    (workspace.parent / "json.py").write_text("raise SystemExit(3)")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "signet_actors.hook", "session-start"],
        input=json.dumps(START),
        env=environment(workspace, daemon.url, PYTHONPATH=f"{ROOT}{os.pathsep}."),
        cwd=workspace.parent,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, context(done)) == (0, "known")


def test_the_transcript_is_sent_after_each_answer_and_nothing_is_printed(
    daemon: ScriptedDaemon, workspace: Path
) -> None:
    daemon.on("POST", "/api/hooks/session-checkpoint-extract", {"queued": False, "stored": True})
    event = {**START, "hook_event_name": "Stop", "stop_hook_active": False, "last_assistant_message": "Done."}
    done = hook("checkpoint", *CLAUDE, event=event, workspace=workspace, url=daemon.url)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (asked,) = daemon.asked
    assert asked.body == {
        "harness": "claude-code",
        "project": "/home/ann/shop",
        "sessionKey": START["session_id"],
        "transcriptPath": START["transcript_path"],
        "reason": "turn",
    }


def test_claude_codes_time_for_the_end_of_a_session_is_kept(daemon: ScriptedDaemon, workspace: Path) -> None:
    """Claude Code ends all hooks of SessionEnd after 1.5 seconds; what is in the spool by then is sent later."""
    assert HOOKS["session-end"].limit_s < 1.5
    daemon.on("POST", "/api/hooks/session-end", hang=True)
    hook("session-end", *CLAUDE, event=END, workspace=workspace, url=daemon.url, program=PROGRAM)
    assert len(waiting(workspace)) == 1


def test_a_summary_that_waits_tells_when_the_compaction_was(workspace: Path) -> None:
    event = {**END, "compact_summary": "The footer of the invoice is finished."}
    hook("compaction-complete", *CLAUDE, event=event, workspace=workspace, url=closed_port())
    (entry,) = waiting(workspace)
    assert entry["path"] == "/api/hooks/compaction-complete"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry["body"]["capturedAt"])


def test_what_must_not_be_lost_waits_in_the_workspace(workspace: Path) -> None:
    hook("session-end", *CLAUDE, event=END, workspace=workspace, url=closed_port())
    (entry,) = waiting(workspace)
    assert entry["path"] == "/api/hooks/session-end"
    assert entry["body"]["transcriptPath"] == START["transcript_path"]
    assert re.fullmatch(r"hook-[0-9a-f]{32}", entry["body"]["idempotencyKey"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry["body"]["capturedAt"])
    directory = workspace / "memory" / "spool"
    (path,) = directory.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert Workspace(workspace).spool_dir == directory


def test_waiting_requests_are_sent_once_when_the_daemon_is_back(daemon: ScriptedDaemon, workspace: Path) -> None:
    record_address(workspace, daemon.port)
    for reason in ("clear", "logout"):
        hook("session-end", *CLAUDE, event={**END, "reason": reason}, workspace=workspace)
    hook("remember", "-H", "codex", event={"content": "the port is 5433"}, workspace=workspace)
    keys = [entry["body"]["idempotencyKey"] for entry in waiting(workspace)]
    assert len(set(keys)) == 3
    daemon.on("POST", "/api/hooks/session-start", {"inject": "known"})
    daemon.on("POST", "/api/hooks/session-end", {"memoriesSaved": 0, "queued": True})
    daemon.on("POST", "/api/hooks/remember", {"saved": True, "id": "1"})
    with holding(workspace):
        assert context(hook("session-start", *CLAUDE, event=START, workspace=workspace)) == "known"
        assert drained(workspace)
    sent = daemon.asked[1:]
    assert [asked.headers["x-signet-actor"] for asked in sent] == ["claude-code", "claude-code", "codex"]
    assert [asked.body.get("reason") for asked in sent] == ["clear", "logout", None]
    assert [asked.headers["idempotency-key"] for asked in sent] == keys
    hook("session-start", *CLAUDE, event=START, workspace=workspace, url=daemon.url)
    assert len(daemon.asked) == 5


def test_a_summary_waits_and_is_marked_as_late_when_it_is_sent_again(daemon: ScriptedDaemon, workspace: Path) -> None:
    daemon.on("POST", "/api/hooks/compaction-complete", drop=True)
    daemon.on("POST", "/api/hooks/compaction-complete", {"success": True, "memoryId": "1"})
    daemon.on("POST", "/api/hooks/session-start", {"inject": ""})
    done = hook("compaction-complete", *CLAUDE, event=COMPACTED, workspace=workspace, url=daemon.url)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (entry,) = waiting(workspace)
    assert re.fullmatch(r"hook-[0-9a-f]{32}", entry["body"]["idempotencyKey"])
    hook("session-start", *CLAUDE, event=START, workspace=workspace, url=daemon.url)
    assert drained(workspace)
    first, _, again = daemon.asked
    assert again.body == first.body == entry["body"]
    assert first.headers["idempotency-key"] == again.headers["idempotency-key"] == entry["body"]["idempotencyKey"]
    assert ("x-signet-late" in first.headers, again.headers["x-signet-late"]) == (False, "1")


@pytest.mark.parametrize("name", ["compaction-complete", "remember"])
def test_a_report_without_what_the_daemon_requires_is_not_kept(workspace: Path, name: str) -> None:
    hook(name, *CLAUDE, event=START, workspace=workspace, url=closed_port())
    assert waiting(workspace) == []


def test_a_request_whose_answer_was_lost_is_sent_again_with_its_key(daemon: ScriptedDaemon, workspace: Path) -> None:
    daemon.on("POST", "/api/hooks/session-end", drop=True)
    daemon.on("POST", "/api/hooks/session-end", {"memoriesSaved": 0})
    hook("session-end", *CLAUDE, event=END, workspace=workspace, url=daemon.url)
    hook("session-end", *CLAUDE, event=END, workspace=workspace, url=daemon.url)
    assert drained(workspace)
    first, second, repeated = (asked.body["idempotencyKey"] for asked in daemon.asked)
    assert (repeated, second) == (first, second)
    assert first != second


def test_a_hook_that_is_killed_while_it_waits_loses_nothing(daemon: ScriptedDaemon, workspace: Path) -> None:
    daemon.on("POST", "/api/hooks/session-end", hang=True)
    process = subprocess.Popen(
        [sys.executable, "-c", PATIENT_PROGRAM, "session-end", *CLAUDE],
        stdin=subprocess.PIPE,
        env=environment(workspace, daemon.url),
    )
    process.stdin.write(json.dumps(END).encode())
    process.stdin.close()
    deadline = time.monotonic() + 60
    while not daemon.asked and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    assert [entry["body"]["idempotencyKey"] for entry in waiting(workspace)] == [
        asked.body["idempotencyKey"] for asked in daemon.asked
    ]


def test_a_request_that_the_daemon_will_never_accept_is_set_aside(daemon: ScriptedDaemon, workspace: Path) -> None:
    daemon.on("POST", "/api/hooks/session-end", {"error": "no"}, status=400)
    record_address(workspace, daemon.port)
    hook("session-end", *CLAUDE, event=END, workspace=workspace)
    daemon.on("POST", "/api/hooks/session-start", {"inject": ""})
    with holding(workspace):
        for _ in range(2):
            hook("session-end", *CLAUDE, event=END, workspace=workspace)
        hook("session-start", *CLAUDE, event=START, workspace=workspace)
        assert drained(workspace)
    assert len(list((workspace / "memory" / "spool").glob("*.rejected"))) == 3


@pytest.mark.parametrize("status", [401, 404, 429, 500, 503, 507])
def test_a_request_that_is_refused_for_now_keeps_waiting(daemon: ScriptedDaemon, workspace: Path, status: int) -> None:
    daemon.on("POST", "/api/hooks/session-end", {"error": "no"}, status=status)
    hook("session-end", *CLAUDE, event=END, workspace=workspace, url=daemon.url)
    assert len(waiting(workspace)) == 1


def test_the_spool_is_bounded_and_drops_nothing_that_it_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "MAX_ENTRIES", 3)
    kept = spool.Spool(str(tmp_path))
    for number in range(3):
        kept.put("/api/hooks/remember", {"idempotencyKey": str(number)})
    with pytest.raises(spool.SpoolFull):
        kept.put("/api/hooks/remember", {"idempotencyKey": "4"})
    sent: list[str] = []
    kept.drain(lambda _, body, *__: sent.append(body["idempotencyKey"]) or 200, most=2)
    assert sent == ["0", "1"]
    assert len(kept.waiting()) == 1


def test_a_workspace_that_a_report_makes_is_for_its_owner_alone(tmp_path: Path) -> None:
    kept = spool.Spool(str(tmp_path / "agents"))
    before = os.umask(0)
    try:
        kept.put("/api/hooks/remember", {"idempotencyKey": "1"})
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    made = [tmp_path / "agents", tmp_path / "agents" / "memory", Path(kept.directory)]
    assert [path.stat().st_mode & 0o777 for path in made] == [0o700] * 3


def test_the_spool_is_bounded_in_bytes(tmp_path: Path) -> None:
    kept = spool.Spool(str(tmp_path))
    with pytest.raises(spool.SpoolFull):
        kept.put("/api/hooks/remember", {"content": "x" * spool.MAX_ENTRY_BYTES})
    for _ in range(spool.MAX_BYTES // spool.MAX_ENTRY_BYTES):
        kept.put("/api/hooks/remember", {"content": "x" * (spool.MAX_ENTRY_BYTES - 200)})
    with pytest.raises(spool.SpoolFull):
        kept.put("/api/hooks/remember", {"content": "x" * (spool.MAX_ENTRY_BYTES - 100)})


def test_a_file_of_another_form_in_the_spool_is_set_aside(daemon: ScriptedDaemon, workspace: Path) -> None:
    directory = workspace / "memory" / "spool"
    directory.mkdir(parents=True)
    (directory / "1.json").write_text('{"path": "http://example.org", "body": {"idempotencyKey": "a"}}')
    (directory / "2.json").write_text("{")
    (directory / "3.json").symlink_to("1.json")
    (directory / "4.json").mkdir()
    (directory / "5.json").write_text("[]")
    daemon.on("POST", "/api/hooks/session-start", {"inject": ""})
    hook("session-start", event=START, workspace=workspace, url=daemon.url)
    assert drained(workspace)
    assert sorted(path.name for path in directory.iterdir()) == [f"{number}.json.rejected" for number in range(1, 6)]
    assert len(daemon.asked) == 1


def test_the_start_of_a_session_says_how_much_waits(workspace: Path) -> None:
    hook("session-end", *CLAUDE, event=END, workspace=workspace, url=closed_port())
    done = hook("session-start", *CLAUDE, event=START, workspace=workspace, url=closed_port())
    assert context(done).endswith("Start it with `signet start`. 1 report waits for it.")


def test_remember_says_that_the_memory_waits(workspace: Path) -> None:
    done = hook("remember", event={"content": "the port is 5433"}, workspace=workspace, url=closed_port())
    said = json.loads(done.stdout)
    assert said["spooled"] is True
    assert "no daemon answers" in said["error"]


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("remember", {"ok": True}),
        ("remember", {"saved": "yes"}),
        ("remember", {"saved": False, "skipped": True, "reason": "a reason of later releases"}),
        ("session-end", {}),
        ("session-end", {"saved": True}),
        ("session-end", {"memoriesSaved": 0, "skipped": True, "reason": "a reason of later releases"}),
        ("compaction-complete", {}),
        ("compaction-complete", {"success": False}),
        ("compaction-complete", {"success": False, "skipped": True, "reason": "unavailable"}),
    ],
)
def test_a_report_waits_until_a_reply_says_that_the_daemon_has_it(
    daemon: ScriptedDaemon, workspace: Path, name: str, answer: dict[str, Any]
) -> None:
    daemon.on("POST", f"/api/hooks/{name}", answer)
    daemon.on("POST", "/api/hooks/session-start", {"inject": "known"})
    done = hook(name, *CLAUDE, event={**END, "content": "x", "summary": "y"}, workspace=workspace, url=daemon.url)
    if name == "remember":
        assert json.loads(done.stdout)["spooled"] is True
    assert len(waiting(workspace)) == 1
    hook("session-start", *CLAUDE, event=START, workspace=workspace, url=daemon.url)
    deadline = time.monotonic() + 60
    while len(daemon.asked) < 3 and time.monotonic() < deadline:
        time.sleep(0.005)
    assert len(daemon.asked) == 3
    assert len(waiting(workspace)) == 1


def test_the_end_of_a_session_without_a_transcript_does_not_wait(daemon: ScriptedDaemon, workspace: Path) -> None:
    """There is nothing to store, which the daemon answers as skipped; a retry would be answered the same."""
    daemon.on("POST", "/api/hooks/session-end", {"memoriesSaved": 0, "skipped": True, "reason": "there is neither"})
    without = {name: value for name, value in END.items() if name != "transcript_path"}
    hook("session-end", *CLAUDE, event=without, workspace=workspace, url=daemon.url)
    kept = spool.Spool(str(workspace))
    assert (len(daemon.asked), kept.waiting(), kept.rejected()) == (1, [], [])


@pytest.mark.parametrize(
    ("answer", "is_kept"),
    [
        ({"stored": True, "queued": False}, False),
        ({"stored": True, "queued": True, "jobId": "j"}, False),
        ({"stored": False, "turns": 0, "reason": "no words of a user or an agent are found"}, False),
        ({"stored": False, "skipped": True, "reason": "bypassed", "bypassed": True}, False),
        ({"stored": False, "skipped": True, "reason": "disabled"}, False),
        ({"stored": False, "skipped": True, "reason": "other_project"}, False),
        ({"stored": False, "skipped": True, "reason": "no_hooks"}, False),
        ({"stored": False, "skipped": True, "reason": "claimed", "claimedBy": "legacy"}, False),
        ({"stored": False, "skipped": True, "reason": "busy"}, True),
        ({"stored": False, "skipped": True, "reason": "timeout"}, True),
        ({"stored": False, "skipped": True, "reason": "unavailable"}, True),
        ({"stored": False, "skipped": True, "reason": "a reason of later releases"}, True),
        ({}, True),
        ({"ok": True}, True),
        (None, True),
    ],
    ids=repr,
)
def test_what_a_session_has_said_in_no_file_waits_until_the_daemon_has_it_or_does_not_want_it(
    daemon: ScriptedDaemon, workspace: Path, answer: dict[str, Any] | None, is_kept: bool
) -> None:
    event = {"session_id": "s", "transcript": "User: Where is the ferry?", "hook_event_name": "session.idle"}
    if answer is not None:
        daemon.on("POST", "/api/hooks/session-checkpoint-extract", answer)
    url = closed_port() if answer is None else daemon.url
    hook("checkpoint", "-H", "opencode", event=event, workspace=workspace, url=url)
    kept = spool.Spool(str(workspace))
    assert (len(kept.waiting()), kept.rejected()) == (int(is_kept), [])


def test_the_newest_state_of_a_session_replaces_what_waits_of_it_and_nothing_else(tmp_path: Path) -> None:
    kept = spool.Spool(str(tmp_path))
    path = "/api/hooks/session-checkpoint-extract"
    other = [
        kept.put("/api/hooks/session-end", {"sessionKey": "s", "idempotencyKey": "e"}),
        *(
            kept.put(path, {"sessionKey": key}, replaces=key)
            for key in (":s2", ":t", "ada:s", ":S", ":ß", ":s" * 200, "ann" + ":s" * 200, "x" * 90 + ":s")
        ),
    ]
    for number in range(5):
        name = kept.put(path, {"number": number}, replaces=":s")
        if number == 1:
            kept.put_off(name, is_failure=True)
    assert kept.waiting() == sorted([*other, name])


UNWANTED = [
    *({"reason": reason} for reason in ("no_hooks", "bypassed", "claimed", "disabled", "other_project", "review")),
    {"reason": "ended by another path", "claimedBy": "legacy"},
]


@pytest.mark.parametrize("name", ["session-end", "compaction-complete", "remember"])
def test_nothing_is_left_of_a_report_that_the_daemon_does_not_want(
    daemon: ScriptedDaemon, workspace: Path, name: str
) -> None:
    """A session that is switched off, or elsewhere: what it said is in no file, sent at once or later."""
    event = {**END, "content": "the safe is 4711", "summary": "the safe is 4711"}
    kept = spool.Spool(str(workspace))
    for answer in UNWANTED:
        daemon.on("POST", f"/api/hooks/{name}", {"memoriesSaved": 0, "saved": False, "skipped": True, **answer})
        hook(name, *CLAUDE, event=event, workspace=workspace, url=daemon.url)
        assert os.listdir(kept.directory) == [], answer
        hook(name, *CLAUDE, event=event, workspace=workspace, url=closed_port())
        kept.drain(
            lambda path, body, *_, answer=answer: daemon_module.status_of_report(
                path, body, {"skipped": True, **answer}
            ),
            most=5,
            destinations=[entry["destination"] for entry in waiting(workspace)],
        )
        assert os.listdir(kept.directory) == [], answer


@pytest.mark.parametrize("waits", [True, False])
def test_a_report_that_was_set_aside_is_deleted_after_a_week(
    daemon: ScriptedDaemon, workspace: Path, monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    record_address(workspace, daemon.port)
    daemon.on("POST", "/api/hooks/remember", {"error": "not now"}, status=503)
    kept = spool.Spool(str(workspace))
    kept.set_aside(kept.put("/api/hooks/remember", {"content": "the safe is 4711", "idempotencyKey": "1"}))
    (Path(kept.directory) / "1.json.rejected").mkdir()
    if waits:
        kept.put("/api/hooks/remember", {"content": "still to be sent", "idempotencyKey": "2"})
    now_s = time.time()
    for days, left in ((6.9, 2), (7.1, 1)):
        monkeypatch.setattr(spool.time, "time", lambda days=days: now_s + days * 86_400)
        with holding(workspace):
            drain_for_daemon(str(workspace), {})
        assert (len(kept.rejected()), len(kept.waiting())) == (left, waits)


def test_a_report_goes_only_to_the_daemon_that_it_was_for(daemon: ScriptedDaemon, workspace: Path) -> None:
    away = closed_port()
    hook("session-end", *CLAUDE, event=END, workspace=workspace, url=away)
    record_address(workspace, daemon.port)
    hook("remember", *CLAUDE, event={"content": "mine"}, workspace=workspace)
    daemon.on("POST", "/api/hooks/session-start", {"inject": "known"})
    daemon.on("POST", "/api/hooks/remember", {"saved": True})
    with holding(workspace):
        hook("session-start", *CLAUDE, event=START, workspace=workspace)
        deadline = time.monotonic() + 60
        while len(waiting(workspace)) > 1 and time.monotonic() < deadline:
            time.sleep(0.005)
    (entry,) = waiting(workspace)
    assert (entry["destination"], entry["harness"]) == (away, "claude-code")
    assert [asked.path for asked in daemon.asked] == ["/api/hooks/session-start", "/api/hooks/remember"]


def test_a_long_memory_is_kept_and_sent_whole(daemon: ScriptedDaemon, workspace: Path) -> None:
    content = "\u65e5\U0001f642" * 120_000
    hook("remember", event={"content": content}, workspace=workspace, url=closed_port())
    assert [entry["body"]["content"] for entry in waiting(workspace)] == [content]
    daemon.on("POST", "/api/hooks/remember", {"saved": True})
    hook("remember", event={"content": content}, workspace=workspace, url=daemon.url)
    assert daemon.asked[0].body["content"] == content


def test_half_a_character_is_kept_as_it_came(workspace: Path) -> None:
    hook("remember", event='{"content": "a \\ud83d b"}', workspace=workspace, url=closed_port())
    kept = spool.Spool(str(workspace))
    (path,) = Path(kept.directory).iterdir()
    assert json.loads(path.read_bytes())["body"]["content"] == "a \ud83d b"


def test_refusals_that_are_not_about_the_daemons_state_hold_nothing_up(tmp_path: Path) -> None:
    kept = spool.Spool(str(tmp_path))
    for number in range(6):
        kept.put("/api/hooks/remember", {"idempotencyKey": str(number)})
    kept.drain(lambda _, body, *__: 200 if body["idempotencyKey"] == "5" else 403, most=64)
    assert len(kept.waiting()) == 5


def test_reports_that_were_set_aside_leave_room_and_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "MAX_ENTRIES", 2)
    kept = spool.Spool(str(tmp_path))
    names = []
    for _ in range(3):
        names.append(kept.put("/api/hooks/remember", {"idempotencyKey": "1"}))
        kept.set_aside(names[-1])
    assert kept.rejected() == [f"{name}.rejected" for name in names[1:]]
    kept.put("/api/hooks/remember", {"idempotencyKey": "1"})
    assert len(kept.waiting()) == 1


def test_a_spool_that_fails_after_the_answer_takes_nothing_from_it(daemon: ScriptedDaemon, workspace: Path) -> None:
    (workspace / "memory").mkdir(parents=True)
    (workspace / "memory" / "spool").write_text("a file")
    daemon.on("POST", "/api/hooks/session-start", {"inject": ""})
    done = hook("session-start", *CLAUDE, event=START, workspace=workspace, url=daemon.url)
    assert (done.returncode, done.stdout) == (0, "")


def test_at_the_limit_it_is_said_whether_the_memory_waits(daemon: ScriptedDaemon, workspace: Path) -> None:
    workspace.mkdir()
    (workspace / "memory").write_text("a file")
    daemon.on("POST", "/api/hooks/remember", hang=True)
    done = hook("remember", event={"content": "x"}, workspace=workspace, url=daemon.url, program=PROGRAM)
    assert json.loads(done.stdout)["spooled"] is False


@pytest.mark.parametrize("fault", ["another pid", "no lock file", "another user's port"])
def test_a_prompt_is_not_sent_to_a_port_that_is_not_known_to_be_our_daemons(
    daemon: ScriptedDaemon, workspace: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    record_address(workspace, daemon.port)
    lock = workspace / ".daemon" / "lock"
    if fault == "another pid":
        lock.write_text("1")
    elif fault == "no lock file":
        lock.unlink()
    else:
        monkeypatch.setattr(daemon_module, "_is_other_users_port", lambda port: port == daemon.port)
    with holding(workspace), pytest.raises(daemon_module.NoAnswer, match="no daemon runs on"):
        daemon_module.find_daemon({}, str(workspace))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_not_believed(daemon: ScriptedDaemon, workspace: Path) -> None:
    record_address(workspace, daemon.port)
    os.chown(workspace / ".daemon" / "lock", 65_534, -1)
    with holding(workspace), pytest.raises(daemon_module.NoAnswer):
        daemon_module.find_daemon({}, str(workspace))
    kept = spool.Spool(str(workspace))
    name = kept.put("/api/hooks/remember", {"idempotencyKey": "1"})
    os.chown(Path(kept.directory, name), 65_534, -1)
    kept.drain(lambda *_: pytest.fail("it was sent"), most=5)
    assert len(kept.rejected()) == 1


def record_address(workspace: Path, port: int) -> None:
    (workspace / ".daemon").mkdir(parents=True)
    (workspace / "memory").mkdir(exist_ok=True)
    (workspace / ".daemon" / "lock").write_text(f"{os.getpid()}\n")
    (workspace / ".daemon" / "address").write_text(json.dumps({"host": "0.0.0.0", "port": port, "pid": os.getpid()}))
    (workspace / ".daemon" / "owner-token").write_text("ab12" * 16)


def test_the_recorded_address_counts_while_a_daemon_holds_the_workspace(
    daemon: ScriptedDaemon, workspace: Path
) -> None:
    daemon.on("POST", "/api/hooks/session-start", {"inject": "known"})
    record_address(workspace, daemon.port)
    done = hook("session-start", *CLAUDE, event=START, workspace=workspace)
    assert f"no daemon runs on {workspace}" in context(done)
    assert daemon.asked == []
    with holding(workspace):
        assert context(hook("session-start", *CLAUDE, event=START, workspace=workspace)) == "known"
    assert daemon.asked[0].headers["x-signet-owner-token"] == "ab12" * 16


def test_a_daemon_that_may_serve_another_workspace_hears_nothing(daemon: ScriptedDaemon, workspace: Path) -> None:
    """What must not be lost waits in the spool of the workspace."""
    for path in ("session-start", "user-prompt-submit", "session-end", "remember"):
        daemon.on("POST", f"/api/hooks/{path}", {"inject": "theirs", "memoriesSaved": 0, "saved": True})
    port = {"SIGNET_PORT": str(daemon.port)}
    for more in (port, {**port, "SIGNET_HOST": "localhost"}, {"SIGNET_PORT": "x"}, {}):
        said = context(hook("session-start", *CLAUDE, event=START, workspace=workspace, **more))
        assert said.startswith(f"Signet: no memory in this session, because no daemon runs on {workspace}. Start it")
    prompt = {**START, "hook_event_name": "UserPromptSubmit", "prompt": "when is my appointment?"}
    assert hook("user-prompt-submit", *CLAUDE, event=prompt, workspace=workspace, **port).stdout == ""
    hook("session-end", *CLAUDE, event=END, workspace=workspace, **port)
    kept = hook("remember", event={"content": "Acme's CFO is Lee"}, workspace=workspace, **port)
    assert json.loads(kept.stdout)["spooled"] is True
    off = hook("user-prompt-submit", *CLAUDE, event={**prompt, "prompt": "[signet off] x"}, workspace=workspace, **port)
    assert "the user has switched it off for this session" in off.stdout
    assert daemon.asked == []
    paths = [entry["path"].rpartition("/")[2] for entry in waiting(workspace)]
    assert paths == ["user-prompt-submit", "remember"], "the switch has removed the end of its session"


@pytest.mark.parametrize("url", ["ftp://127.0.0.1", "http://a@b:1", "http://127.0.0.1:x", "http://[::1]:1", "::"])
def test_an_address_that_is_none_is_reported(workspace: Path, url: str) -> None:
    done = hook("session-start", event=START, workspace=workspace, url=url)
    assert done.returncode == 0
    assert context(done).startswith("Signet: no memory in this session")


TCP_TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:0F0A 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 20711 1 0000000000000000
   1: 0100007F:9C40 0100007F:0F0A 01 00000000:00000000 00:00000000 00000000  1002        0 20712 1 0000000000000000
   2: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 20713 1 0000000000000000
"""


def test_the_user_of_a_listening_program_is_found() -> None:
    assert daemon_module.listeners(TCP_TABLE, 3850) == {"1001"}
    assert daemon_module.listeners(TCP_TABLE, 22) == {"0"}
    assert daemon_module.listeners(TCP_TABLE, 40_000) == set()
    assert daemon_module.listeners("", 3850) == set()


@pytest.mark.parametrize("ending", [b"", None], ids=["killed", "hung"])
@pytest.mark.parametrize(
    "begun",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n",
        b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"inject": "x',
        b"HT",
    ],
)
def test_a_daemon_that_ends_in_the_middle_of_its_answer_gave_none(
    workspace: Path, begun: bytes, ending: bytes | None
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, contextlib.ExitStack() as opened:

        def answer() -> None:
            connection = opened.enter_context(server.accept()[0])
            connection.recv(1 << 16)
            connection.sendall(begun)
            if ending is not None:
                connection.shutdown(socket.SHUT_RDWR)

        for name in ("session-start", "session-end"):
            thread = threading.Thread(target=answer)
            thread.start()
            url = f"http://127.0.0.1:{server.getsockname()[1]}"
            program = PATIENT_PROGRAM if ending is not None else PROGRAM
            done = hook(name, *CLAUDE, event=END, workspace=workspace, url=url, program=program)
            thread.join(60)
            assert (done.returncode, done.stderr) == (0, "")
            assert ("Signet: no memory in this session" in done.stdout) == (name == "session-start")
    assert len(waiting(workspace)) == 1


SECTIONS = (
    "[memory active | /remember | /recall]\n"
    "[since last session: 3 new memories]\n"
    "## Agent Instructions\n"
    + "be brief\n" * 300
    + "## Relevant Memories (auto-loaded)\n"
    + "- prefers vim\n" * 100
    + "## Active Constraints\n- never push to main\n"
    "## Session Recovery Context\nwe were at step 4\n"
)


def test_what_matters_least_is_cut_first() -> None:
    text = fitted(SECTIONS, 2_000, count_bytes=False)
    assert len(text) <= 2_000
    assert text.endswith(CUT_NOTE)
    for kept in ("[memory active", "never push to main", "step 4", "3 new memories"):
        assert kept in text
    assert text.count("- prefers vim\n") == 100
    assert text.count("be brief\n") < 50
    text = fitted(SECTIONS, 600, count_bytes=False)
    assert "never push to main" in text
    assert "be brief" not in text
    assert 0 < text.count("- prefers vim\n") < 100
    assert text.index("prefers vim") < text.index("never push")


@pytest.mark.parametrize("count_bytes", [False, True])
def test_a_fitted_text_keeps_the_limit_in_the_harnesss_unit(count_bytes: bool) -> None:
    for limit in (100, 1_000, 9_999):
        text = fitted("## Active Constraints\n" + "né 🙂\n" * 5_000, limit, count_bytes=count_bytes)
        assert len(text.encode("utf-8" if count_bytes else "utf-16-le")) // (1 if count_bytes else 2) <= limit


def test_codex_gets_at_most_the_bytes_that_it_shows_in_full(daemon: ScriptedDaemon, workspace: Path) -> None:
    daemon.on("POST", "/api/hooks/session-start", {"inject": "## Active Constraints\n" + "é\n" * 9_000})
    text = context(hook("session-start", "-H", "codex", event=START, workspace=workspace, url=daemon.url))
    assert 9_900 < len(text.encode()) <= 10_000


def test_the_program_imports_almost_nothing() -> None:
    told = (
        f"import sys; sys.path.insert(0, {ROOT!r}); from signet_actors.hook import daemon, program\n"
        "try: daemon.post(daemon.Address('localhost', 1), '/', {}, {}, 1e9)\n"
        "except daemon.NoAnswer: print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", told], capture_output=True, text=True, check=True)
    ours = {name for name in done.stdout.split() if name.startswith("signet_actors.")}
    assert {name for name in ours if not name.startswith("signet_actors.hook")} == {
        "signet_actors.runtime",
        "signet_actors.runtime.processes",
        "signet_actors.runtime.processes.import_path",
    }
    needless = {"click", "msgspec", "http", "email", "urllib", "ssl", "asyncio", "logging", "subprocess", "signal"}
    slow_to_import = {
        "encodings.idna",
        "typing",
        "dataclasses",
        "pathlib",
        "inspect",
        "tempfile",
        "threading",
        "random",
        "datetime",
    }
    assert not (needless | slow_to_import) & set(done.stdout.split())


def test_requests_that_fail_do_not_hold_up_those_behind_them(tmp_path: Path) -> None:
    kept = spool.Spool(str(tmp_path))
    for number in range(8):
        kept.put("/api/hooks/remember", {"idempotencyKey": str(number)})
    sent: list[str] = []
    statuses = {"0": 500, "1": 500, "2": 500, "3": 503, "4": 0, "5": 401}

    def send(_: str, body: dict[str, Any], *__: str) -> int:
        sent.append(body["idempotencyKey"])
        return statuses.get(body["idempotencyKey"], 200)

    kept.drain(send, most=64)
    assert sent == [str(number) for number in range(8)]
    assert len(kept.waiting()) == 6
    kept.drain(send, most=64)
    assert len(sent) == 8, "what failed is not tried again at once"


def test_a_daemon_that_answers_nothing_is_left_alone(tmp_path: Path) -> None:
    kept = spool.Spool(str(tmp_path))
    for number in range(8):
        kept.put("/api/hooks/remember", {"idempotencyKey": str(number)})
    sent: list[str] = []
    kept.drain(lambda *given: bool(sent.append(given[0])), most=64)
    assert len(sent) == 3
    assert len(kept.waiting()) == 8


@pytest.mark.parametrize(("status", "is_bounded"), [(500, True), (0, True), (503, False), (401, False)])
def test_a_request_that_always_fails_is_tried_ever_less_and_then_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, is_bounded: bool
) -> None:
    """The state of the daemon is no failure of the request: a full disk or a missing token loses nothing."""
    kept = spool.Spool(str(tmp_path))
    now_ns = [time.time_ns()]
    monkeypatch.setattr(spool.time, "time_ns", lambda: now_ns[0])
    kept.put("/api/hooks/remember", {"idempotencyKey": "1"})
    tried_at: list[int] = []

    def send(*_: Any) -> int:
        tried_at.append(now_ns[0])
        return status

    for _ in range(4 * 24 * 60):
        kept.drain(send, most=64)
        now_ns[0] += 61 * 10**9
    if is_bounded:
        assert len(tried_at) == spool.MOST_TRIES
        pauses = [later - earlier for earlier, later in itertools.pairwise(tried_at)]
        assert pauses == sorted(pauses)
        assert pauses[-1] > 1000 * pauses[0]
        assert (kept.waiting(), len(kept.rejected())) == ([], 1)
    else:
        assert len(tried_at) == 4 * 24 * 60
        assert (len(kept.waiting()), kept.rejected()) == (1, [])


@pytest.mark.parametrize("moved", [-(10**6), 10**6])
def test_a_clock_that_was_wrong_keeps_no_request_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moved: int
) -> None:
    kept = spool.Spool(str(tmp_path))
    now_ns = time.time_ns()
    monkeypatch.setattr(spool.time, "time_ns", lambda: now_ns + moved * 10**9)
    kept.put("/api/hooks/remember", {"idempotencyKey": "1"})
    monkeypatch.setattr(spool.time, "time_ns", lambda: now_ns)
    kept.drain(lambda *_: 200, most=64)
    assert kept.waiting() == []


def test_the_daemon_has_sent_what_is_for_it(daemon: ScriptedDaemon, workspace: Path) -> None:
    hook("remember", event={"content": "for a daemon elsewhere"}, workspace=workspace, url=closed_port())
    hook("remember", event={"content": "for this workspace"}, workspace=workspace, SIGNET_PORT="0")
    url = {"path": "/api/hooks/remember", "destination": daemon.url, "body": {"content": "x", "idempotencyKey": "y"}}
    (workspace / "memory" / "spool" / "0-1.json").write_text(json.dumps(url))
    daemon.on("POST", "/api/hooks/remember", {"saved": True})
    record_address(workspace, daemon.port)
    hook("--drain", "--workspace", str(workspace), event="", workspace=workspace, url=closed_port())
    assert daemon.asked == [], "no daemon holds the workspace"
    with holding(workspace):
        variables = {"SIGNET_NO_HOOKS": "1", "SIGNET_WORKSPACE": "/nowhere"}
        done = hook(
            "--drain", "--workspace", str(workspace), event="", workspace=workspace, url=closed_port(), **variables
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [asked.body["content"] for asked in daemon.asked] == ["x", "for this workspace"]
    assert [entry["body"]["content"] for entry in waiting(workspace)] == ["for a daemon elsewhere"]


def test_a_key_that_is_no_header_is_sent_in_the_body_only(daemon: ScriptedDaemon, workspace: Path) -> None:
    daemon.on("POST", "/api/hooks/remember", {"saved": True})
    hook("remember", event={"content": "x", "idempotencyKey": "a\r\nb"}, workspace=workspace, url=daemon.url)
    assert daemon.asked[0].body["idempotencyKey"] == "a\r\nb"
    assert "idempotency-key" not in daemon.asked[0].headers


def test_two_processes_do_not_drain_at_once(tmp_path: Path) -> None:
    kept = spool.Spool(str(tmp_path))
    kept.put("/api/hooks/remember", {"idempotencyKey": "1"})
    held = os.open(kept.directory, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        kept.drain(lambda *_: pytest.fail("it was sent"), most=5)
    finally:
        os.close(held)
    assert len(kept.waiting()) == 1


def test_signet_hook_is_the_same_program(daemon: ScriptedDaemon, workspace: Path) -> None:
    daemon.on("POST", "/api/hooks/session-start", {"inject": "known"})
    for arguments in (["hook", "session-start", *CLAUDE], ["--workspace", ".", "hook", "session-start", *CLAUDE]):
        done = subprocess.run(
            [sys.executable, "-c", "from signet_actors.cli.entry import main; main()", *arguments],
            input=json.dumps(START),
            env=environment(workspace, daemon.url),
            cwd=workspace.parent,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (done.returncode, context(done)) == (0, "known")
