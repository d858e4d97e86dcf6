"""The installed hook command and a real daemon: what was stored reaches the agent, and nothing is lost or doubled."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from signet_actors.cli.harnesses.registry import HARNESSES, Harness
from signet_actors.cli.main import cli
from signet_actors.config.workspace import Workspace
from signet_actors.hook.spool import Spool
from tests.support.bus_harness import REPOSITORY, eventually
from tests.support.harness_home import LONG_LIMITS
from tests.support.live_daemon import LiveDaemon, live_daemon
from tests.support.plugin_hosts import TURNS_1, needs_node, play, play_openclaw

pytestmark = pytest.mark.system
PROMPT = {"session_id": "s-1", "cwd": "/srv/shop", "hook_event_name": "UserPromptSubmit"}


@pytest.fixture(scope="module")
def daemon() -> Iterator[LiveDaemon]:
    with live_daemon(patient=True) as daemon:
        yield daemon


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, daemon: LiveDaemon) -> Path:
    """An installed ``signet-hook`` beside ``signet``, in an environment that names the daemon's workspace only."""
    for name in [name for name in os.environ if name.startswith("SIGNET_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PWD", str(tmp_path))
    monkeypatch.setenv("SHELL", "/bin/sh")
    monkeypatch.setenv("SIGNET_WORKSPACE", str(daemon.workspace))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "OPENCODE_CONFIG_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, module in (("signet", "signet_actors.cli.entry"), ("signet-hook", "signet_actors.hook.program")):
        path = tmp_path / name
        path.write_text(
            f"#!{sys.executable}\nimport sys; sys.path.insert(0, {str(REPOSITORY)!r})\n"
            f"{LONG_LIMITS}\nfrom {module} import main; main()\n"
        )
        path.chmod(0o755)
    return path


def hook(program: Path, name: str, event: dict[str, Any]) -> str:
    """Run the hook and return its output."""
    command = [str(program), name, "-H", "claude-code"]
    done = subprocess.run(command, input=json.dumps(event), capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def signet(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, prog_name="signet")


@pytest.mark.parametrize("harness", HARNESSES, ids=lambda harness: harness.name)
def test_check_passes_and_leaves_no_memory(program: Path, daemon: LiveDaemon, harness: Harness) -> None:
    before = [row["id"] for row in daemon.api.listed()]
    assert signet("connect", harness.name, "--command", str(program)).exit_code == 0
    checks: list[Result] = []

    def passes() -> bool:  # a hook may be late on a busy machine; each check has a memory of its own
        checks.append(signet("connect", harness.name, "--check"))
        print(checks[-1].output)
        return checks[-1].exit_code == 0

    eventually(passes, what="the check passes")
    done = checks[-1]
    marks = [line[:12].strip() for line in done.output.splitlines() if line[0] in "✓✗"]
    assert marks == [*(["✓ start", "✓ prompt", "✓ transcript"] if harness.events else []), "✓ tools"]
    assert json.loads(signet("list", "--deleted", "--json").output)["memories"] == []
    assert [row["id"] for row in daemon.api.listed()] == before
    assert not [row for row in daemon.api.get("/api/sessions/past").ok()["sessions"] if "signet-check" in str(row)]
    eventually(lambda: Spool(str(daemon.workspace)).waiting() == [], within_s=180, what="no report waits")
    started = {"session_id": f"after-{harness.name}", "cwd": os.environ["PWD"], "source": "startup"}
    assert "signet-check" not in hook(program, "session-start", {**started, "hook_event_name": "SessionStart"})


def test_sessions_in_a_folder_that_only_the_shell_knows_are_kept_once_it_is_connected(
    program: Path, daemon: LiveDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon has no CLAUDE_CONFIG_DIR, as a service has none."""
    settings = tmp_path / "work claude"
    path = settings / "projects" / "-srv-shop" / "s-work.jsonl"
    path.parent.mkdir(parents=True)
    said = [{"role": "user", "content": "Where are the crates?"}, {"role": "assistant", "content": "In hall 7."}]
    path.write_text("".join(json.dumps({"type": one["role"], "message": one}) + "\n" for one in said))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(settings))
    end = {"session_id": "s-work", "cwd": "/srv/shop", "transcript_path": str(path), "reason": "other"}
    noted = Workspace(daemon.workspace).harnesses_file

    def detail() -> str:
        return str(daemon.api.get("/health").ok().get("detail", ""))

    assert signet("connect", "claude-code", "--command", str(program)).exit_code == 0
    connected = noted.read_bytes()
    noted.unlink()
    hook(program, "session-end", {**end, "hook_event_name": "SessionEnd"})
    eventually(lambda: "a session of claude-code was not kept" in detail(), what="health tells of it")
    assert daemon.api.get("/health").ok()["status"] == "degraded"
    assert "a session of claude-code was not kept" in signet("status").output
    checked = signet("connect", "claude-code", "--check")
    assert checked.exit_code == 1
    assert f"the daemon does not read {settings}/projects; `signet connect claude-code`" in flat(checked.output)
    assert str(path) not in detail()
    noted.write_bytes(connected)

    def passes() -> bool:
        return "✓ transcript" in signet("connect", "claude-code", "--check").output

    eventually(passes, what="the check passes")
    assert "was not kept" not in detail()
    hook(program, "session-end", {**end, "hook_event_name": "SessionEnd"})
    eventually(lambda: daemon.api.get("/api/sessions/s-work/transcript").status == 200, within_s=180, what="it is kept")


def flat(text: str) -> str:
    return " ".join(text.split())


def test_the_very_next_prompt_brings_a_memory_and_an_unrelated_one_does_not(program: Path, daemon: LiveDaemon) -> None:
    daemon.api.remember("The staging database of the shop listens on port 5433")
    asked = hook(program, "user-prompt-submit", {**PROMPT, "prompt": "Which port does the staging database use?"})
    output = json.loads(asked)["hookSpecificOutput"]
    assert output["hookEventName"] == "UserPromptSubmit"
    assert "5433" in output["additionalContext"]
    assert "5433" not in hook(program, "user-prompt-submit", {**PROMPT, "prompt": "Translate this poem into French."})


def test_the_transcript_of_a_session_that_is_killed_is_there_but_for_its_last_answer(
    program: Path, daemon: LiveDaemon
) -> None:
    """Each answer of the agent is stored by Stop; a killed session has no SessionEnd, and a resumed one goes on."""
    path = daemon.workspace / "s-stop.jsonl"
    event = {"session_id": "s-stop", "cwd": "/srv/shop", "transcript_path": str(path)}
    stop = {**event, "hook_event_name": "Stop"}

    def say(role: str, text: str) -> None:
        with path.open("a") as file:
            message = {"type": role, "sessionId": "s-stop", "message": {"role": role, "content": text}}
            file.write(json.dumps(message) + "\n")

    hook(program, "session-start", {**event, "hook_event_name": "SessionStart", "source": "startup"})
    for number in range(3):
        say("user", f"How many crates are in hall {number}?")
        say("assistant", f"There are {number + 40} crates in hall {number}.")
        assert hook(program, "checkpoint", stop) == ""

    def has_turns(count: int) -> bool:
        found = daemon.api.get("/api/sessions/s-stop/transcript")
        return found.status == 200 and found.json["turnCount"] == count

    def are_stored() -> bool:  # a report that finds the last one still running is skipped, and the next one has it all
        return has_turns(6) or (hook(program, "checkpoint", stop) == "" and has_turns(6))

    eventually(are_stored, within_s=90, what="the turns are stored")
    say("user", "And in hall 9?")
    found = daemon.api.get("/api/sessions/s-stop/transcript").ok()
    assert found["turnCount"] == 6
    assert "There are 42 crates in hall 2." in found["content"]
    assert "s-stop" in [session["key"] for session in daemon.api.get("/api/sessions").ok()["sessions"]]
    hook(program, "session-end", {**event, "hook_event_name": "SessionEnd", "reason": "other"})
    eventually(lambda: has_turns(7), within_s=180, what="the last turn is stored")
    assert "s-stop" not in [session["key"] for session in daemon.api.get("/api/sessions").ok()["sessions"]]


def test_a_memory_that_the_daemon_missed_is_stored_once_when_it_is_back(program: Path) -> None:
    with live_daemon() as other:
        os.environ["SIGNET_WORKSPACE"] = str(other.workspace)  # monkeypatch restores it
        other.kill_supervisor()
        said = json.loads(hook(program, "remember", {"content": "The deploy needs the flag --drain"}))
        assert said["spooled"] is True
        spool = Spool(str(other.workspace))
        (name,) = spool.waiting()
        copy = f"9{name}"
        shutil.copy(Path(spool.directory, name), Path(spool.directory, copy))
        other.start()
        eventually(lambda: spool.waiting() == [], within_s=180, what="the daemon to have what waited")
        assert [row["content"] for row in other.api.listed()] == ["The deploy needs the flag --drain"]
        assert spool.rejected() == []


def test_hooks_end_well_and_lose_nothing_while_a_child_is_killed(program: Path) -> None:
    with live_daemon() as other:
        os.environ["SIGNET_WORKSPACE"] = str(other.workspace)
        spool = Spool(str(other.workspace))
        stored: list[str] = []
        for child in ("gateway", "writer", "searcher-1"):
            stored += remembered_beside_a_kill(program, other, child)
            other.wait_ready()
            eventually(lambda: spool.waiting() == [], within_s=180, what="the daemon to have what waited")
            assert sorted(row["content"] for row in other.api.listed()) == sorted(stored), child
            assert spool.rejected() == [], child


def remembered_beside_a_kill(program: Path, other: LiveDaemon, child: str) -> list[str]:
    """Kill the child while hooks are on their way, and return what they were told to remember."""
    command = [str(program), "remember", "-H", "claude-code"]
    contents = [f"The {child} of team {number} is deployed from branch {number}" for number in range(6)]
    running = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in contents
    ]
    asking = {"session-start": {"source": "startup"}, "user-prompt-submit": {"prompt": "Which branch is deployed?"}}
    for place, (process, content) in enumerate(zip(running, contents, strict=True)):
        process.stdin.write(json.dumps({"content": content}).encode())
        process.stdin.close()
        process.stdin = None
        if place == len(contents) // 2:
            other.kill(child)
    for name, event in asking.items():
        hook(program, name, {"session_id": child, "cwd": "/srv/shop", "hook_event_name": "x", **event})
    for process in running:
        said, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, b"")
        answer = json.loads(said)
        assert answer.get("saved") is True or answer["spooled"] is True
    return contents


def kept_transcript(daemon: LiveDaemon, session: str) -> Any:
    """Return the stored transcript; a plugin does not wait for it for long."""
    path = f"/api/sessions/{session}/transcript"
    eventually(lambda: daemon.api.get(path).status == 200, what="the transcript is stored")
    return daemon.api.get(path).ok()


@needs_node
@pytest.mark.parametrize("api", [1, 2])
def test_a_session_of_opencode_gets_memories_and_leaves_its_transcript(
    program: Path, daemon: LiveDaemon, tmp_path: Path, api: int
) -> None:
    daemon.api.remember(f"The warehouse robot number {api} charges at dock {api + 70}")
    assert signet("connect", "opencode", "--command", str(program)).exit_code == 0
    plugin = tmp_path / ".config/opencode/plugins/signet.js"
    asked = f"At which dock charges the warehouse robot number {api}?"
    steps = ({"prompt": asked}, {"request": True}, {"event": "session.idle"}, {"compact": "x"}, {"end": True})
    found = play(plugin, api, *({**step, "session": f"ses_{api}"} for step in steps))
    assert found["problems"] == []
    assert f"dock {api + 70}" in "\n".join(found["requests"][0])
    ((guidelines,),) = found["compactions"]
    assert "decisions and their reasons" in guidelines
    kept = kept_transcript(daemon, f"ses_{api}")
    assert kept["content"] == "User: Which port has the database?\n\nAssistant: It is port 5433."
    assert (kept["harness"], kept["project"], kept["format"]) == ("opencode", "/srv/shop", "opencode")


def said_in(title: str, count: int = 1, size: int = 40) -> list[dict[str, Any]]:
    """Return a conversation as OpenCode 1 has it."""
    filler = 'warehouse 倉庫 "C:\\x"\n'
    texts = [f"{title} {number} {filler * (size // len(filler))}end" for number in range(2 * count)]
    return [
        {
            "info": {
                "id": f"m{at}",
                "role": ("user", "assistant")[at % 2],
                "time": {"created": 1_790_000_000_000 + at},
            },
            "parts": [{"type": "text", "text": text}],
        }
        for at, text in enumerate(texts)
    ]


@needs_node
def test_a_session_of_opencode_is_kept_whenever_the_daemon_was_away(program: Path, tmp_path: Path) -> None:
    """The daemon is killed or away; OpenCode ends in order, is killed, or goes on; what was said is stored later."""
    idle, answered, end = {"event": "session.idle"}, {"request": True}, {"end": True}
    ways = {
        "ends": (1, said_in("Ends"), (idle, end)),
        "ends_2": (2, None, (idle, end)),
        "killed": (1, said_in("Killed"), (idle, answered)),
        "killed_2": (2, None, (idle, answered)),
        "often": (1, said_in("Often", 3), (idle, idle, idle, end)),
        "long": (1, said_in("Long", 50, 4000), (idle, end)),
    }
    with live_daemon() as other:
        os.environ["SIGNET_WORKSPACE"] = str(other.workspace)  # monkeypatch restores it
        assert signet("connect", "opencode", "--command", str(program)).exit_code == 0
        plugin = tmp_path / ".config/opencode/plugins/signet.js"
        other.kill_supervisor()
        for name, (api, said, steps) in ways.items():
            plan = {} if said is None else {"messages": said}
            play(plugin, api, *({**step, "session": name} for step in ({"prompt": "Hello"}, *steps)), **plan)
        spool = Spool(str(other.workspace))
        ended = [name for name, (_, _, steps) in ways.items() if end in steps]
        assert len(spool.waiting()) == len(ways) + len(ended), "of each session the last state, and its end"
        other.start()
        eventually(lambda: spool.waiting() == [], within_s=180, what="the daemon to have what waited")
        assert spool.rejected() == []
        for name, (_, said, _) in ways.items():
            kept = other.api.get(f"/api/sessions/{name}/transcript").ok()
            assert kept["turnCount"] == len(said or TURNS_1)
            assert kept["content"].startswith(f"User: {name.capitalize()} 0" if said else "User: Which port")
            assert "tool" not in kept["content"]
        assert other.api.get("/api/sessions").ok()["sessions"] == [], "what is reported late begins no session"
        checkpoints = other.read("SELECT session_key FROM session_checkpoints WHERE ended = 1")
        assert sorted({key for (key,) in checkpoints}) == sorted(ended)
        assert other.faults() == []


@needs_node
def test_a_session_of_openclaw_gets_memories_and_leaves_its_transcript(
    program: Path, daemon: LiveDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    daemon.api.remember("The greenhouse heating is set to 17 degrees at night")
    plugin = tmp_path / "plugin"
    assert signet("connect", "openclaw", "--plugin", str(plugin)).exit_code == 0
    said = [{"role": "user", "content": "How warm?"}, {"role": "assistant", "content": "It is 17 degrees at night."}]
    asked = "To how many degrees is the greenhouse heating set at night?"
    steps = [
        {"prompt": asked},
        {"tool": "signet_memory_search", "params": {"query": asked}},
        {"end": said},
        {"over": "idle"},
        {"stop": True},
    ]
    key = "agent:default:main"
    found = play_openclaw(plugin, "/srv/garden", *({**step, "key": key} for step in steps))
    assert found["problems"] == []
    assert "17 degrees" in found["given"][0]["appendSystemContext"]
    assert "17 degrees" in found["given"][1]["content"][0]["text"]
    kept = kept_transcript(daemon, f"{key}:s-1")
    assert kept["content"] == "User: How warm?\n\nAssistant: It is 17 degrees at night."
    assert (kept["harness"], kept["project"], kept["agentId"]) == ("openclaw", "/srv/garden", "default")
