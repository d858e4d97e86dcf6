"""A user switches memory off while the daemon is away: nothing of the session is stored, and no file has its words.

Source: docs/guides/hooks.md "Switch it off".
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.bus_harness import eventually
from tests.support.harness_home import PROGRAM
from tests.support.live_daemon import LiveDaemon, live_daemon

pytestmark = pytest.mark.system

MARK = "[signet off] I plan to leave"
REQUEST = "# Files mentioned by the user:\n\n## a.py: /srv/a.py\n\n## My request for Codex:\n[signet off] look"


class Talk(NamedTuple):
    """A session of one agent; ``word`` stands in all that is said in it and nowhere else."""

    daemon: LiveDaemon
    key: str
    word: str

    @property
    def file(self) -> Path:
        return self.daemon.workspace / "transcripts" / f"{self.key}.jsonl"

    @property
    def text(self) -> str:
        return f"The {self.word} is hidden under the stairs"

    def run(self, name: str, *options: str, harness: str = "claude-code", **event: Any) -> Any:
        """Run signet-hook, and return what it prints."""
        given = {"session_id": self.key, "cwd": "/srv/shop", **event}
        command = [sys.executable, "-c", PROGRAM, name, "-H", harness, *options]
        environ = {name: value for name, value in self.daemon.environment().items() if name != "SIGNET_PORT"}
        done = subprocess.run(
            command, input=json.dumps(given), env=environ, text=True, capture_output=True, check=True, timeout=120
        )
        return json.loads(done.stdout) if done.stdout.startswith("{") else done.stdout

    def says(self, text: str, role: str = "user", **more: Any) -> None:
        self.file.parent.mkdir(exist_ok=True)
        with self.file.open("a") as file:
            message = {"role": role, "content": text}
            file.write(json.dumps({"type": role, "sessionId": self.key, "message": message, **more}) + "\n")

    def queues(self, prompt: str) -> None:
        queued = {"type": "queued_command", "prompt": prompt, "commandMode": "prompt"}
        self.says(self.text)
        self.says("", attachment=queued, type="attachment")

    def prompt(self, text: str, **more: Any) -> Any:
        return self.run("user-prompt-submit", hook_event_name="UserPromptSubmit", prompt=f"{text} {self.word}", **more)

    def mark(self, **more: Any) -> Any:
        self.says(f"{MARK} {self.word}")
        return self.prompt(MARK, **more)

    def remember(self, *options: str, **more: Any) -> Any:
        return self.run("remember", *options, **{"content": self.text, **more})

    def compaction(self, **more: Any) -> Any:
        path = str(self.file) if self.file.exists() else None
        return self.run("compaction-complete", compact_summary=f"{self.text}.", transcript_path=path, **more)

    def conversation(self, first: str = "How are you?") -> Any:
        said = [("user", f"{first} {self.word}"), ("assistant", self.text)]
        messages = [{"info": {"role": role}, "parts": [{"type": "text", "text": text}]} for role, text in said]
        return self.run("checkpoint", harness="opencode", transcript=json.dumps({"info": {}, "messages": messages}))

    def report(self, name: str, **more: Any) -> Any:
        if not self.file.exists():
            self.says(self.text)
        return self.run(name, transcript_path=str(self.file), reason="other", **more)

    def everything(self, **more: Any) -> None:
        self.remember(**more)
        self.compaction(**more)
        self.report("pre-compaction", **more)
        self.report("checkpoint", **more)
        self.report("session-end", **more)


Act = Callable[[Talk], object]
AWAY: dict[str, Act] = {
    "a memory after the mark": lambda one: (one.mark(), one.remember()),
    "a summary after the mark": lambda one: (one.mark(), one.compaction()),
    "a conversation after the mark": lambda one: (one.mark(), one.conversation()),
    "a file after the mark": lambda one: (one.mark(), one.report("checkpoint"), one.report("session-end")),
    "all reports after the mark": lambda one: (one.mark(), one.everything()),
    "all reports before the mark": lambda one: (one.everything(), one.conversation(), one.mark()),
    "reports on both sides of the mark": lambda one: (one.remember(), one.mark(), one.compaction(), one.remember()),
    "the mark twice": lambda one: (one.mark(), one.remember(), one.mark(), one.remember()),
    "a picture before the mark": lambda one: (one.prompt("[Image #1] [signet off]"), one.remember()),
    "a file before the mark": lambda one: (one.prompt("@notes.md [Signet Off]\n"), one.compaction()),
    "a quotation before the mark": lambda one: (one.prompt("> Shall I?\n[signet off] no"), one.remember()),
    "a request of Codex": lambda one: (one.prompt(REQUEST, harness="codex"), one.remember(harness="codex")),
    "a long prompt": lambda one: (one.prompt(f"{'x ' * 30_000}\n\n{REQUEST} {'y ' * 30_000}"), one.compaction()),
    "another member": lambda one: (one.run("user-prompt-submit", userMessage=MARK), one.remember()),
    "another program": lambda one: (one.mark(), one.remember(harness="codex"), one.compaction(harness="x")),
    "another agent": lambda one: (one.mark(), one.remember("--agent", "nora"), one.remember("--agent", "default")),
    "another spelling": lambda one: (one.mark(), one.remember(session_id=f"session:{one.key}")),
    "a subagent": lambda one: (one.mark(), one.everything(agent_id="a-1", agent_type="Explore")),
    "another directory": lambda one: (one.mark(), one.remember(cwd="/srv/depot"), one.compaction(cwd="/srv/depot")),
    "a queued mark and a summary": lambda one: (one.queues(MARK), one.compaction()),
    "a queued mark after a memory": lambda one: (one.remember(), one.queues(MARK), one.report("checkpoint")),
    "a queued mark and a prompt": lambda one: (
        one.remember(),
        one.queues(MARK),
        one.prompt("go on", transcript_path=str(one.file)),
        one.remember(),
    ),
    "a queued mark and an end": lambda one: (one.compaction(), one.queues(MARK), one.report("session-end")),
    "a mark in a conversation": lambda one: (one.remember(), one.conversation(MARK), one.conversation(MARK)),
    "a report that was set aside": lambda one: (one.remember(), set_aside(one), one.mark()),
    "a start after the mark": lambda one: (one.mark(), one.run("session-start", source="resume"), one.remember()),
}
OF_THE_TRANSCRIPT = (
    *("a queued mark after a memory", "a queued mark and a prompt", "a queued mark and an end"),
    "a mark in a conversation",
)
"""What was accepted before such a mark waits until the daemon refuses it."""
KEPT: dict[str, Act] = {
    "no mark": lambda one: one.remember(),
    "words about the mark": lambda one: (one.prompt("what does [signet off] do?"), one.remember()),
    "the mark within a line": lambda one: (one.prompt("say [signet off] to it"), one.compaction()),
    "an agent that says it": lambda one: (one.says(MARK, "assistant"), one.report("checkpoint"), one.remember()),
    "a memory about the mark": lambda one: one.run("remember", content=f"{MARK} {one.word}"),
    "a file that quotes it": lambda one: (one.says("It says: [signet off] there"), one.compaction()),
}
"""Sessions of which the word is a memory when the daemon is back."""


def set_aside(one: Talk) -> None:
    for path in spool(one.daemon).glob("*.json"):
        if one.word in path.read_text():
            path.rename(f"{path}.rejected")


def spool(daemon: LiveDaemon) -> Path:
    return daemon.workspace / "memory" / "spool"


def files_with(daemon: LiveDaemon, word: str) -> list[str]:
    """Return the files of the workspace that have the word, but for the transcripts, which are not the daemon's."""
    files = [path for path in daemon.workspace.rglob("*") if path.is_file() and "transcripts" not in path.parts]
    return [str(path) for path in files if word.encode() in content(path)]


def content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:  # it is sent
        return b""


@pytest.fixture(scope="module")
def away() -> Iterator[LiveDaemon]:
    """A daemon that does not run, and may be started."""
    with live_daemon(patient=True) as daemon:
        daemon.stop()
        yield daemon


def restarted(daemon: LiveDaemon) -> None:
    daemon.start()
    daemon.wait_ready()
    eventually(lambda: not list(spool(daemon).glob("*.json")), what="what waited is sent")


def test_nothing_of_a_session_that_was_switched_off_while_the_daemon_was_away_is_stored(away: LiveDaemon) -> None:
    talks = {name: Talk(away, f"s-{number}", f"quokka{number}x") for number, name in enumerate((*AWAY, *KEPT), 1)}
    acts = {**AWAY, **KEPT}
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda name: acts[name](talks[name]), talks))
    for name in AWAY.keys() - set(OF_THE_TRANSCRIPT):
        assert files_with(away, talks[name].word) == [], f"{name}: before the daemon is back"
    restarted(away)
    memories = json.dumps(away.api.get("/api/memories", limit=200).ok())
    for name in KEPT:
        assert talks[name].word in memories, name
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda name: (talks[name].compaction(), talks[name].report("session-end")), AWAY))
    for name in AWAY:
        one = talks[name]
        assert away.api.get(f"/api/sessions/{one.key}/transcript").status == 404, name
        assert away.api.get(f"/api/checkpoints/{one.key}").ok()["checkpoints"] == [], name
        assert files_with(away, one.word) == [], name
    off = dict(away.read("SELECT session_key, max(bypassed) FROM session_contexts GROUP BY session_key"))
    assert {name for name, one in talks.items() if off.get(one.key)} == set(AWAY)
    assert not spool(away).exists() or not list(spool(away).iterdir())
    away.kill_supervisor()
    away.gone()
    restarted(away)
    for name in list(AWAY)[::5]:
        assert talks[name].remember()["reason"] == "bypassed", f"{name}: after a restart"
    away.stop()


def test_a_switch_made_while_the_daemon_was_away_can_be_undone(away: LiveDaemon) -> None:
    one = Talk(away, "undone", "wombat1x")
    one.mark()
    one.remember()
    restarted(away)
    away.api.post(f"/api/sessions/{one.key}/bypass", {"enabled": False}).ok()
    assert one.remember()["saved"] is True
    assert one.report("session-end") == ""
    assert away.api.get(f"/api/sessions/{one.key}/transcript").status == 404, "the transcript has the mark"
    away.stop()
    assert one.remember(content="The wombat2x is below the bridge")["spooled"] is True
    one.compaction()
    one.report("checkpoint")
    restarted(away)
    assert "wombat2x" in json.dumps(away.api.get("/api/memories", limit=200).ok())
    answer = one.run("remember", content="It is on again")
    assert answer["saved"] is True, answer
    away.stop()


def test_the_first_report_after_the_daemons_start_comes_too_late_to_be_stored(away: LiveDaemon) -> None:
    """The daemon sends itself what waits two seconds after its start; a session may report before."""
    talks = [Talk(away, f"early-{number}", f"numbat{number}x") for number in range(4)]
    for one in talks:
        told = one.mark()["hookSpecificOutput"]["additionalContext"]
        assert "the user has switched it off for this session" in told
    away.start()
    away.wait_ready()
    for one in talks:
        assert one.remember()["reason"] == "bypassed"
        assert files_with(away, one.word) == []
    away.stop()
