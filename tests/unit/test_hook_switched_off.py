"""The hook command and the mark that switches memory off for a session, while no daemon has confirmed it.

Source: docs/guides/hooks.md "Switch it off".
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from signet_actors.gateway.sessions.hook_runner import SWITCHED_OFF_UNSTORED
from signet_actors.hook import spool
from signet_actors.hook.daemon import status_of_report
from tests.support.scripted_daemon import ScriptedDaemon
from tests.unit.test_hook_command import CLAUDE, PROGRAM, closed_port, context, drained, environment, hook, waiting

PROMPT, REMEMBER = "/api/hooks/user-prompt-submit", "/api/hooks/remember"
CHECKPOINT = "/api/hooks/session-checkpoint-extract"
OFF = {"inject": "[signet: memory does not work now]", "engine": "disabled", "bypassed": True}
TOLD = "[signet: memory does not work now, because the user has switched it off for this session]"


@pytest.fixture
def daemon() -> Iterator[ScriptedDaemon]:
    scripted = ScriptedDaemon()
    yield scripted
    scripted.close()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return tmp_path / "agents"


def event(name: str = "UserPromptSubmit", key: str = "s-1", **more: Any) -> dict[str, Any]:
    return {"session_id": key, "cwd": "/srv/shop", "hook_event_name": name, **more}


def mark(workspace: Path, url: str, key: str = "s-1", **more: Any) -> subprocess.CompletedProcess[str]:
    prompt = event(key=key, prompt="[signet off] we plan a divorce", last_assistant_message="A divorce?")
    return hook("user-prompt-submit", *CLAUDE, event={**prompt, **more}, workspace=workspace, url=url)


def remember(workspace: Path, url: str, key: str = "s-1") -> Any:
    given = {"session_id": key, "cwd": "/srv/shop", "content": f"a divorce of {key}"}
    return json.loads(hook("remember", *CLAUDE, event=given, workspace=workspace, url=url).stdout)


def files(workspace: Path) -> str:
    return "\n".join(path.read_text() for path in (workspace / "memory" / "spool").iterdir())


def test_a_switch_waits_without_a_word_of_what_was_said(workspace: Path) -> None:
    url = closed_port()
    assert remember(workspace, url)["spooled"] is True
    done = mark(workspace, url)
    assert (done.returncode, context(done)) == (0, TOLD)
    assert json.loads(done.stdout)["systemMessage"] == TOLD
    assert remember(workspace, url) == {
        "error": "the user has switched memory off for this session.",
        "spooled": False,
    }
    (entry,) = waiting(workspace)
    assert set(entry["body"]) == {"harness", "project", "sessionKey", "userPrompt", "idempotencyKey"}
    assert (entry["body"]["sessionKey"], entry["body"]["userPrompt"]) == ("s-1", "[signet off]")
    assert "divorce" not in files(workspace)


def test_a_switch_that_the_daemon_confirms_leaves_no_file(daemon: ScriptedDaemon, workspace: Path) -> None:
    daemon.on("POST", PROMPT, OFF)
    assert context(mark(workspace, daemon.url)) == OFF["inject"]
    assert (daemon.asked[0].body["userPrompt"], "divorce" in json.dumps(daemon.asked[0].body)) == (
        "[signet off]",
        False,
    )
    assert waiting(workspace) == []


@pytest.mark.parametrize(
    "answer",
    [
        {"inject": "", "skipped": True, "reason": "timeout"},
        {"inject": "", "skipped": True, "reason": "internal"},
        {"inject": "", "skipped": True, "reason": "unavailable"},
        {"inject": "[signet:recall | 1 from memory]\n- a divorce"},
        {"error": "no"},
        [],
    ],
)
def test_a_switch_that_the_daemon_does_not_have_on_its_disk_waits(
    daemon: ScriptedDaemon, workspace: Path, answer: Any
) -> None:
    daemon.on("POST", PROMPT, answer)
    daemon.on("POST", PROMPT, OFF)
    daemon.on("POST", REMEMBER, {"skipped": True, "reason": "bypassed", "saved": False})
    mark(workspace, daemon.url)
    assert len(waiting(workspace)) == 1
    assert remember(workspace, daemon.url)["reason"] == "bypassed"
    assert [asked.path for asked in daemon.asked] == [PROMPT, PROMPT, REMEMBER]
    assert waiting(workspace) == []


def test_a_switch_that_is_not_on_the_daemons_disk_yet_is_sent_again(daemon: ScriptedDaemon, workspace: Path) -> None:
    daemon.on("POST", PROMPT, {"inject": SWITCHED_OFF_UNSTORED, "engine": "disabled"})
    daemon.on("POST", PROMPT, OFF)
    assert context(mark(workspace, daemon.url)) == SWITCHED_OFF_UNSTORED
    assert drained(workspace)
    assert [asked.headers.get("x-signet-late") for asked in daemon.asked] == [None, "1"]


def test_a_switch_waits_however_the_daemon_fails(daemon: ScriptedDaemon, workspace: Path) -> None:
    for number, fault in enumerate(({"status": 500}, {"status": 503}, {"status": 404}, {"drop": True})):
        daemon.on("POST", PROMPT, {"error": "no"}, **fault)
        mark(workspace, daemon.url, key=f"s-{number}")
        assert len(waiting(workspace)) == number + 1, fault


def test_a_hook_that_is_ended_while_the_daemon_hangs_has_kept_the_switch(
    daemon: ScriptedDaemon, workspace: Path
) -> None:
    daemon.on("POST", PROMPT, hang=True)
    given = event(prompt="[signet off] a divorce")
    done = hook("user-prompt-submit", *CLAUDE, event=given, workspace=workspace, url=daemon.url, program=PROGRAM)
    assert done.returncode == 0
    assert [entry["body"]["sessionKey"] for entry in waiting(workspace)] == ["s-1"]


def test_a_full_spool_has_room_for_switches(workspace: Path) -> None:
    kept = spool.Spool(str(workspace))
    for number in range(spool.MAX_ENTRIES):
        key = f"s-{number % 3}"
        kept.put(REMEMBER, {"idempotencyKey": str(number), "sessionKey": key, "content": f"a divorce of {key}"})
    url = closed_port()
    for number in range(3):
        assert remember(workspace, url, key="another")["spooled"] is False or number
        mark(workspace, url, key=f"s-{number}")
        assert f"a divorce of s-{number}" not in files(workspace)
        assert remember(workspace, url, key=f"s-{number}")["spooled"] is False
    keys = [entry["body"]["sessionKey"] for entry in waiting(workspace)]
    assert sorted(key for key in keys if key != "another") == ["s-0", "s-1", "s-2"]


@pytest.mark.parametrize("fault", ["a file", "a file above it"])
def test_without_a_spool_the_user_is_told_that_memory_is_not_off(
    daemon: ScriptedDaemon, workspace: Path, fault: str
) -> None:
    above = workspace if fault == "a file above it" else workspace / "memory"
    above.mkdir(parents=True)
    (above / ("memory" if fault == "a file above it" else "spool")).write_text("a file")
    done = mark(workspace, closed_port())
    assert done.returncode == 0
    assert "memory could not be switched off" in json.loads(done.stdout)["systemMessage"]
    assert remember(workspace, closed_port())["spooled"] is False
    daemon.on("POST", PROMPT, OFF)
    assert context(mark(workspace, daemon.url)) == OFF["inject"]


def test_a_transcript_tells_later_what_could_not_be_kept(workspace: Path, tmp_path: Path) -> None:
    (workspace / "memory").mkdir(parents=True)
    (workspace / "memory" / "spool").write_text("a file")
    mark(workspace, closed_port())
    (workspace / "memory" / "spool").unlink()
    assert remember(workspace, closed_port())["spooled"] is True
    file = tmp_path / "s-1.jsonl"
    said = {"type": "user", "message": {"role": "user", "content": "[signet off] we plan a divorce"}}
    file.write_text(json.dumps(said) + "\n")
    hook("checkpoint", *CLAUDE, event=event("Stop", transcript_path=str(file)), workspace=workspace, url=closed_port())
    entry, _ = waiting(workspace)
    assert json.loads(entry["body"]["transcript"]) == {"role": "user", "content": "[signet off]"}


def transcript(tmp_path: Path, text: str = "[signet off] we plan a divorce") -> str:
    file = tmp_path / "s-1.jsonl"
    file.write_text(json.dumps({"type": "user", "message": {"role": "user", "content": text}}) + "\n")
    return str(file)


@pytest.mark.parametrize("name", ["user-prompt-submit", "checkpoint", "session-end", "pre-compaction"])
def test_a_mark_that_only_the_transcript_shows_removes_nothing_that_was_accepted(
    daemon: ScriptedDaemon, workspace: Path, tmp_path: Path, name: str
) -> None:
    url = closed_port()
    assert remember(workspace, url)["spooled"] is True
    given = event(prompt="go on", transcript_path=transcript(tmp_path))
    hook(name, *CLAUDE, event=given, workspace=workspace, url=url)
    assert remember(workspace, url)["spooled"] is False
    switch, kept = waiting(workspace)
    assert (switch["path"], kept["body"]["content"]) == (CHECKPOINT, "a divorce of s-1")
    sent: list[str] = []

    def send(status: int) -> None:
        def answer(path: str, _body: dict[str, Any], *_: str) -> int:
            sent.append(path)
            return status

        spool.Spool(str(workspace)).drain(answer, most=64, destinations=(url,))

    send(503)
    send(200)
    assert sent == [CHECKPOINT], "nothing of the session is sent before its switch"
    mark(workspace, url)
    assert "divorce" not in files(workspace), "the user has typed it now"


def test_what_was_accepted_is_sent_behind_the_mark_of_a_transcript(workspace: Path, tmp_path: Path) -> None:
    url = closed_port()
    remember(workspace, url)
    given = event("Stop", transcript_path=transcript(tmp_path))
    hook("checkpoint", *CLAUDE, event=given, workspace=workspace, url=url)
    sent: list[str] = []

    def answer(path: str, _body: dict[str, Any], *_: str) -> int:
        sent.append(path)
        return 200

    spool.Spool(str(workspace)).drain(answer, most=64, destinations=(url,))
    assert sent == [CHECKPOINT, REMEMBER]
    assert waiting(workspace) == []


@pytest.mark.parametrize("status", [0, 503, 400])
def test_a_memory_of_which_the_transcript_has_the_mark_is_not_answered_as_kept(
    daemon: ScriptedDaemon, workspace: Path, tmp_path: Path, status: int
) -> None:
    daemon.on("POST", REMEMBER, {"error": "no"}, status=status or 500)
    given = event("", content="a divorce", transcript_path=transcript(tmp_path))
    url = daemon.url if status else closed_port()
    done = hook("remember", *CLAUDE, event=given, workspace=workspace, url=url)
    assert json.loads(done.stdout) == {
        "error": "the user has switched memory off for this session.",
        "spooled": False,
    }
    (switch,) = waiting(workspace)
    assert switch["path"] == CHECKPOINT
    assert "divorce" not in files(workspace)


SWITCH_ANSWERS: tuple[tuple[dict[str, Any], int], ...] = (
    (OFF, 200),
    ({"inject": OFF["inject"], "engine": "disabled"}, 200),
    ({"inject": TOLD, "dynamicContext": TOLD, "engine": "disabled"}, 200),
    ({"inject": "", "engine": "disabled"}, 200),
    ({"inject": "", "skipped": True, "reason": "bypassed", "bypassed": True}, 200),
    ({"inject": "", "skipped": True, "reason": "bypassed"}, 200),
    ({"inject": "", "skipped": True, "reason": "no_session"}, 200),
    ({"inject": "", "skipped": True, "reason": "no_hooks"}, 200),
    ({"inject": SWITCHED_OFF_UNSTORED, "engine": "disabled"}, 500),
    ({"inject": SWITCHED_OFF_UNSTORED, "dynamicContext": SWITCHED_OFF_UNSTORED, "engine": "disabled"}, 500),
    ({"inject": ""}, 500),
    ({"inject": "", "engine": "hybrid"}, 500),
    ({"inject": "[signet:recall | 1 from memory]\n- disabled", "engine": "hybrid"}, 500),
    ({"inject": "", "engine": None}, 500),
    ({"inject": "", "engine": ["disabled"]}, 500),
    ({"inject": "", "bypassed": False}, 500),
    ({"inject": "", "bypassed": 1}, 500),
    ({"inject": "", "skipped": True, "reason": "not_applied"}, 500),
    ({"inject": "", "skipped": True}, 500),
    ({"inject": "", "skipped": True, "reason": 5}, 500),
    ({}, 500),
)


def test_a_switch_waits_until_a_daemon_of_this_or_an_earlier_release_has_it_or_never_will() -> None:
    for answer, status in SWITCH_ANSWERS:
        assert status_of_report(PROMPT, {"sessionKey": "s-1"}, answer) == status, answer


def test_other_sessions_keep_what_they_report(workspace: Path) -> None:
    url = closed_port()
    keys = ["s-10", "S-1", "s", 's-1"', "ß-1", "s-1 ", 'x", "sessionKey": "s-1', "agent:s-1", "s-1\n2"]
    for key in keys:
        assert remember(workspace, url, key=key)["spooled"] is True
    mark(workspace, url)
    for key in keys:
        assert remember(workspace, url, key=key)["spooled"] is (key.strip() != "s-1"), key
    kept = [entry["body"]["sessionKey"] for entry in waiting(workspace) if "content" in entry["body"]]
    assert len(kept) == 2 * (len(keys) - 1)
    assert "s-1" not in kept


def test_a_switch_is_sent_first_and_is_never_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = spool.Spool(str(tmp_path))
    now_ns = [spool.time.time_ns()]
    monkeypatch.setattr(spool.time, "time_ns", lambda: now_ns[0])
    kept.put(REMEMBER, {"idempotencyKey": "1", "sessionKey": "s-2"})
    request = {"idempotencyKey": "2", "sessionKey": "s-1", "userPrompt": "[signet off]"}
    kept.switch_off(PROMPT, request, destination="", harness="x")
    now_ns[0] += 1
    late = kept.put(REMEMBER, {"idempotencyKey": "3", "sessionKey": "s-1"})
    sent: list[str] = []

    def send(path: str, body: dict[str, Any], *_: str) -> int:
        sent.append(body["idempotencyKey"])
        return 500 if path == PROMPT else 200

    for _ in range(3 * spool.MOST_TRIES):
        kept.drain(send, most=64)
        now_ns[0] += 61 * 10**9
    assert late not in kept.waiting()
    assert sent[:2] == ["2", "1"]
    assert sent[2:] == ["2"] * (3 * spool.MOST_TRIES - 1)
    assert kept.switch_of("s-1") is not None


def test_a_switch_for_another_daemon_waits_for_that(daemon: ScriptedDaemon, workspace: Path) -> None:
    daemon.on("POST", PROMPT, OFF)
    daemon.on("POST", REMEMBER, {"skipped": True, "reason": "bypassed", "saved": False})
    mark(workspace, closed_port())
    assert remember(workspace, daemon.url)["reason"] == "bypassed"
    assert len(waiting(workspace)) == 1


def test_only_a_text_that_may_have_the_mark_is_looked_at(daemon: ScriptedDaemon, workspace: Path) -> None:
    daemon.on("POST", PROMPT, {"inject": ""})
    for prompt in ("which port?", "[signet] off", "off] with it", "sign off"):
        told = f"import sys, atexit, os\n{PROGRAM.replace('main()', '')}"
        program = f"{told}\nos._exit = lambda _: print('signet_actors.domain' in sys.modules)\nmain()"
        done = hook(
            "user-prompt-submit", event=event(prompt=prompt), workspace=workspace, url=daemon.url, program=program
        )
        assert done.stdout.split() == ["False"], prompt


def test_a_caller_without_a_session_is_told_nothing(workspace: Path) -> None:
    given = {"prompt": "[signet off] a divorce"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "user-prompt-submit"],
        input=json.dumps(given),
        env=environment(workspace, closed_port()),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout == ""
    assert not workspace.exists()
