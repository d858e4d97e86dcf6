"""Processes of the daemon are killed in the middle of each hook: it ends well, and what it reports arrives once.

The process that answers is stopped first and killed once the hook has connected: its request waits then.

Every event is reported while the gateway is killed; which events meet another victim changes with the commit.

Source: docs/guides/hooks.md; docs/reliability.md "HTTP outcomes".
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.seeds import share
from tests.support.bus_harness import eventually
from tests.support.replayed_session import CLAUDE_CODE, AgentSession, HookedHome, hooked_home

pytestmark = pytest.mark.system

CONNECTED = "03"
"""The state of a connection in ``/proc/net/unix``."""
VICTIMS = ("gateway", "writer", "searcher-1", "everything")
EVENTS: dict[str, dict[str, Any]] = {
    "SessionStart": {"source": "startup"},
    "UserPromptSubmit": {"prompt": "Which port does the parcel scanner use?"},
    "Stop": {"stop_hook_active": False, "last_assistant_message": "It uses port 7071."},
    "PreCompact": {"trigger": "auto", "custom_instructions": ""},
    "PostCompact": {"trigger": "auto", "compact_summary": "The scanner was moved to port 7071."},
    "PostToolUse": {"tool_name": "Skill", "tool_input": {"skill": "pdf"}, "tool_use_id": "toolu_01"},
    "SessionEnd": {"reason": "prompt_input_exit"},
}


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HookedHome]:
    config = "supervision:\n  settledMs: 0\n  budgets:\n" + "".join(
        f"    {child}: {{restarts: 100, windowMs: 60000}}\n" for child in ("gateway", "writer", "searcher")
    )
    with hooked_home(CLAUDE_CODE, tmp_path_factory.mktemp("home"), config=config, patient=False) as room:
        room.daemon.api.remember("The parcel scanner uses port 7070.", project=str(room.project))
        yield room
        assert room.daemon.stop() == 0
        assert room.daemon.broken_invariants() == []


def is_connected(pid: int) -> bool:
    """Return whether the process is connected over a Unix socket."""
    try:
        sockets = {os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()}
        table = Path(f"/proc/{pid}/net/unix").read_text(encoding="ascii", errors="replace")
    except OSError:  # the process, or one of its files, has just gone
        return False
    rows = (line.split() for line in table.splitlines()[1:])
    return any(row[5] == CONNECTED and f"socket:[{row[6]}]" in sockets for row in rows)


def interrupted(room: HookedHome, victim: str, command: list[str], event: dict[str, Any]) -> str:
    """Run a hook, kill ``victim`` while its request waits, and return the hook's output when the daemon is back."""
    room.daemon.wait_ready()
    processes = room.daemon.every_process()
    stopped = processes["gateway" if victim == "everything" else victim]["pid"]
    os.kill(stopped, signal.SIGSTOP)
    hook = room.start(command, event)
    eventually(lambda: hook.poll() is not None or is_connected(hook.pid), what="the hook has connected")
    os.kill(stopped, signal.SIGKILL)
    if victim == "everything":
        room.daemon.kill_supervisor()
        eventually(lambda: not room.daemon.processes(), what="no process is left")
    output = room.finish(hook)
    if victim == "everything":
        room.daemon.start()
    room.daemon.wait_ready()
    return output


def turn(session: AgentSession) -> None:
    session.transcript.say("user", f"Which port does the scanner of session {session.key} use?")
    session.transcript.say("assistant", f"The scanner of session {session.key} uses port 7071.")


def begun(room: HookedHome) -> AgentSession:
    """Return a session in which a prompt was answered."""
    session = room.session()
    session.begin()
    turn(session)
    return session


@pytest.mark.parametrize(
    ("victim", "event"),
    [("gateway", event) for event in EVENTS]
    + share([(victim, event) for victim in VICTIMS[1:] for event in EVENTS], 6),
)
def test_a_hook_whose_daemon_is_killed_ends_well_and_each_turn_is_stored_once(
    room: HookedHome, victim: str, event: str
) -> None:
    session = room.session() if event == "SessionStart" else begun(room)
    if event == "SessionStart":
        session.transcript.begin()
    interrupted(room, victim, room.command(event), session.event(event, **EVENTS[event]))
    if event == "SessionStart":
        turn(session)
    if event != "SessionEnd":
        session.end()
    room.drain()
    assert room.turns(session) == session.transcript.turns

    def ends() -> int:
        return [one["trigger"] for one in room.checkpoints(session)].count("session_end")

    eventually(lambda: ends() > 0, what="the checkpoint of the end")
    assert ends() == 1


@pytest.mark.parametrize("goes_on", [False, True])
def test_an_end_that_is_sent_again_after_a_kill_has_one_checkpoint(room: HookedHome, goes_on: bool) -> None:
    session = begun(room)
    session.prompt("Which port does the parcel scanner use?")
    body = {
        "harness": "claude-code",
        "sessionKey": session.key,
        "project": str(room.project),
        "transcriptPath": str(session.transcript.path),
        "reason": "prompt_input_exit",
        "idempotencyKey": f"hook-{session.key}",
        "capturedAt": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime()),
    }

    def ended() -> Any:
        """Send the end until its answer names the checkpoint; on a busy machine a hook may answer without it."""

        def answered() -> Any:
            answer = room.daemon.api.post("/api/hooks/session-end", body).ok()
            return answer if "checkpointId" in answer else None

        return eventually(answered, what="the end is answered")

    first = ended()
    room.daemon.kill("gateway")
    room.daemon.wait_ready()
    if goes_on:
        session.begin("resume")
        session.prompt("Where is the conveyor belt?")
    again = ended()
    assert (again["newTurns"], again["checkpointId"]) == (0, first["checkpointId"])
    sql = 'SELECT "trigger", prompt_count, ended FROM session_checkpoints WHERE session_key = ? ORDER BY seq'
    later = [("periodic", 1, 0)] if goes_on else []
    eventually(lambda: len(room.daemon.read(sql, session.key)) > len(later), what="the checkpoints are stored")
    assert room.daemon.read(sql, session.key) == [("session_end", 1, 1), *later]


@pytest.mark.parametrize("victim", VICTIMS)
def test_a_memory_of_a_hook_whose_daemon_is_killed_is_stored_once(room: HookedHome, victim: str) -> None:
    content = f"The conveyor belt was serviced while the {victim} was away."
    event = {"content": content, "cwd": str(room.project)}
    answer = json.loads(interrupted(room, victim, room.remembering(), event))
    assert answer.get("saved") is True or answer.get("spooled") is True
    room.drain()
    assert room.daemon.read("SELECT count(*) FROM memories WHERE content = ?", content) == [(1,)]


@pytest.mark.parametrize("victim", VICTIMS)
def test_a_summary_whose_daemon_is_killed_is_stored_once_and_its_compaction_begins_one_epoch(
    room: HookedHome, victim: str
) -> None:
    session = begun(room)
    started = "SELECT count(*) FROM session_contexts WHERE session_key = ? AND started_epoch = 0"
    eventually(lambda: room.daemon.read(started, session.key) == [(1,)], what="the start is stored")
    summary = f"The packing table was moved while the {victim} was away."
    event = session.event("PostCompact", trigger="auto", compact_summary=summary)
    interrupted(room, victim, room.command("PostCompact"), event)
    session.begin("compact")
    room.drain()
    stored = room.daemon.read("SELECT type, project FROM memories WHERE content = ?", summary)
    assert stored == [("session_summary", str(room.project))]
    asked = {"query": "packing table", "sessionKey": session.key}

    def epoch() -> Any:
        return room.daemon.api.post("/api/memory/recall", asked).ok()["meta"]["dedupe"]["contextEpoch"]

    eventually(epoch, what="a new epoch")
    assert epoch() == 1


@pytest.mark.parametrize("killed", ["gateway", "everything"])
def test_a_session_that_a_prompt_switched_off_while_the_writer_hung_stays_off_after_kills(
    room: HookedHome, killed: str
) -> None:
    room.daemon.wait_ready()
    client = room.daemon.api
    about = {"harness": "codex", "sessionKey": f"off-beside-{killed}", "project": str(room.project)}
    ask = {**about, "userPrompt": "Which port does the parcel scanner use?"}
    writer = room.daemon.every_process()["writer"]["pid"]
    os.kill(writer, signal.SIGSTOP)
    off = client.post("/api/hooks/user-prompt-submit", {**ask, "userPrompt": f"[signet off] {ask['userPrompt']}"}).ok()
    assert "switched it off for this session" in off["inject"]
    again = client.post("/api/hooks/user-prompt-submit", {**ask, "userPrompt": "[signet off]"}).ok()
    assert "switched it off for this session" in again["inject"]
    os.kill(room.daemon.every_process()["gateway"]["pid"], signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):  # the supervisor replaces a process that is silent
        os.kill(writer, signal.SIGKILL)
    if killed == "everything":
        room.daemon.kill_supervisor()
        eventually(lambda: not room.daemon.processes(), what="no process is left")
        room.daemon.start()
    room.daemon.wait_ready()
    assert client.post("/api/hooks/user-prompt-submit", ask).ok()["reason"] == "bypassed"
    said = "User: the private dock\n\nAssistant: is number nine"
    assert client.post("/api/hooks/session-end", {**about, "transcript": said}).ok()["reason"] == "bypassed"
    stored = "SELECT max(bypassed) FROM session_contexts WHERE session_key = ?"
    eventually(lambda: room.daemon.read(stored, about["sessionKey"]) == [(1,)], what="the writer has it")
    assert client.get(f"/api/checkpoints/{about['sessionKey']}").ok()["checkpoints"] == []
    turns = "SELECT count(*) FROM session_turns WHERE content LIKE '%private dock%'"
    assert room.daemon.read(turns) == [(0,)]


@pytest.mark.parametrize("victim", VICTIMS)
def test_after_a_kill_the_next_prompt_gets_its_memories(room: HookedHome, victim: str) -> None:
    session = room.session()
    session.begin()
    interrupted(room, victim, room.command("Stop"), session.event("Stop", **EVENTS["Stop"]))
    (given,) = session.contexts

    def is_given() -> bool:
        session.prompt("Which port does the parcel scanner use?")
        return "port 7070" in "".join(given)

    eventually(is_given)
