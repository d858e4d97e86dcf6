"""Nothing that a harness reports of a session is stored or kept once its transcript was erased.

Source: docs/guides/transcripts.md "How long it is kept, and how to erase it".
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from signet_actors.hook.drain import drain_for_daemon
from signet_actors.hook.spool import Spool
from tests.support.harness_home import PROGRAM
from tests.support.live_daemon import LiveDaemon

pytestmark = pytest.mark.system


class Erased:
    """A session whose transcript was stored and erased; ``word`` is what was said in it and stands nowhere else."""

    def __init__(self, daemon: LiveDaemon, word: str) -> None:
        self.daemon = daemon
        self.word = word
        self.key = f"erased-{word}"
        self.file = daemon.workspace / "transcripts" / f"{self.key}.jsonl"
        self.file.parent.mkdir(exist_ok=True)
        self.says(f"My diagnosis is {word}")
        self.run("checkpoint", transcript_path=str(self.file))
        daemon.api.request("DELETE", f"/api/sessions/{self.key}/transcript").ok()
        self.says(f"And what helps against {word}?")

    def says(self, text: str) -> None:
        line = {"type": "user", "sessionId": self.key, "message": {"role": "user", "content": text}}
        with self.file.open("a") as file:
            file.write(json.dumps(line) + "\n")

    @property
    def talk(self) -> str:
        return f"User: My diagnosis is {self.word}\nAssistant: Sorry about the {self.word}\nUser: What helps?"

    @property
    def summary(self) -> str:
        return f"The user has {self.word}; therapy was discussed."

    def run(self, name: str, *, harness: str = "claude-code", **event: Any) -> None:
        subprocess.run(
            [sys.executable, "-c", PROGRAM, name, "-H", harness],
            input=json.dumps({"session_id": self.key, "cwd": "/srv/shop", **event}),
            env={name: value for name, value in self.daemon.environment().items() if name != "SIGNET_PORT"},
            text=True,
            capture_output=True,
            check=True,
            timeout=120,
        )

    def late(self, path: str, **body: Any) -> None:
        """Have a report sent that waited, as the daemon does every minute."""
        report = {"harness": "opencode", "sessionKey": self.key, "idempotencyKey": f"{path}-{self.word}", **body}
        Spool(str(self.daemon.workspace)).put(f"/api/hooks/{path}", report)
        drain_for_daemon(str(self.daemon.workspace), {})


def recalled(daemon: LiveDaemon, word: str) -> list[str]:
    return [row["content"] for row in daemon.api.recall(word)["results"]]


REPORTS: dict[str, Callable[[Erased], None]] = {
    "turn": lambda one: one.run("checkpoint", transcript_path=str(one.file)),
    "end": lambda one: one.run("session-end", transcript_path=str(one.file), reason="other"),
    "clear": lambda one: one.run("session-end", transcript_path=str(one.file), reason="clear"),
    "emptyend": lambda one: one.run("session-end", reason="other"),
    "opencode": lambda one: one.run("checkpoint", harness="opencode", transcript=one.talk),
    "openclaw": lambda one: one.run("session-end", harness="openclaw", transcript=one.talk),
    "summary": lambda one: one.run("compaction-complete", compact_summary=one.summary),
    "precompaction": lambda one: one.run("pre-compaction", transcript_path=str(one.file)),
    "lateturn": lambda one: one.late("session-checkpoint-extract", transcript=one.talk),
    "lateend": lambda one: one.late("session-end", transcript=one.talk),
    "latesummary": lambda one: one.late("compaction-complete", summary=one.summary),
}


def test_no_report_of_an_erased_session_is_stored_or_stays_in_a_file(daemon: LiveDaemon) -> None:
    spool = daemon.workspace / "memory" / "spool"
    for name, report in REPORTS.items():
        one = Erased(daemon, f"quux{name}itis")
        report(one)
        kept = [path.name for path in spool.iterdir() if one.word in path.read_text()] if spool.exists() else []
        assert kept == [], f"{name}: it waits"
        assert not any(one.word in text for text in recalled(daemon, one.word)), f"{name}: it is stored"
        assert daemon.api.get(f"/api/sessions/{one.key}/transcript").status == 404, name


def test_a_session_that_was_not_erased_keeps_the_summary_of_its_compaction(daemon: LiveDaemon) -> None:
    Erased(daemon, "neighbouritis").run(
        "compaction-complete", session_id="kept-1", compact_summary="We chose quayside."
    )
    assert any("quayside" in text for text in recalled(daemon, "quayside"))
