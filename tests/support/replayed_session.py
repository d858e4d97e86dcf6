"""A harness that replays a session: it runs the installed hooks, and its transcript grows in its own format.

Standard input of the hooks and records of the transcripts: https://code.claude.com/docs/en/hooks and
https://developers.openai.com/codex/hooks, and the files of ``tests/unit/fixtures/transcripts``.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from signet_actors.cli.harnesses.registry import CLAUDE_CODE, CODEX, Harness
from signet_actors.hook.spool import Spool
from tests.support.bus_harness import eventually
from tests.support.harness_home import Home, install_claude, make_home
from tests.support.live_daemon import LiveDaemon, live_daemon

HANG_S = 90
"""A guard against a hook that hangs. It is more than the limit of the hooks that are installed here."""
_ID = re.compile(r"\(id ([0-9a-f-]{18})\)")
_BEGIN = datetime(2026, 11, 20, 9, tzinfo=UTC)


@dataclass
class Transcript:
    """The file of one session. ``turns`` are those that it has, oldest first."""

    path: Path
    session: str
    cwd: Path
    turns: list[tuple[str, str]] = field(default_factory=list)
    records: int = 0

    def say(self, role: str, text: str) -> None:
        """Add a message, with what the harness writes around it."""
        self.turns.append((role, text))
        self.add(*(self.prompt(text) if role == "user" else self.answer(text)))

    def compact(self, summary: str) -> None:
        """Add the record of a compaction."""
        self.turns.append(("system", summary))
        self.add(*self.compacted(summary))

    def add(self, *records: dict[str, Any]) -> None:
        """Write records to the end of the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            for record in records:
                file.write(json.dumps({**self._frame(), **record}) + "\n")

    def _frame(self) -> dict[str, Any]:
        """Return what every record has."""
        self.records += 1
        moment = _BEGIN + timedelta(seconds=self.records)
        return {"timestamp": f"{moment:%Y-%m-%dT%H:%M:%S}.000Z"}

    def begin(self) -> None:
        """Write what a file begins with."""

    def prompt(self, text: str) -> list[dict[str, Any]]:
        raise NotImplementedError

    def answer(self, text: str) -> list[dict[str, Any]]:
        raise NotImplementedError

    def compacted(self, summary: str) -> list[dict[str, Any]]:
        raise NotImplementedError


class ClaudeTranscript(Transcript):
    """A session file of Claude Code."""

    def _frame(self) -> dict[str, Any]:
        return {
            "isSidechain": False,
            "userType": "external",
            "cwd": str(self.cwd),
            "sessionId": self.session,
            "version": "2.1.219",
            "gitBranch": "main",
            "uuid": str(uuid.uuid4()),
            **super()._frame(),
        }

    def begin(self) -> None:
        self.add({"type": "file-history-snapshot", "messageId": str(uuid.uuid4()), "snapshot": {}})

    def prompt(self, text: str) -> list[dict[str, Any]]:
        return [{"type": "user", "message": {"role": "user", "content": text}}]

    def answer(self, text: str) -> list[dict[str, Any]]:
        use = {"type": "tool_use", "id": "toolu_01", "name": "Bash", "input": {"command": "git status"}}
        result = {"tool_use_id": "toolu_01", "type": "tool_result", "content": "nothing to commit"}
        return [
            self._blocks({"type": "thinking", "thinking": "I look first.", "signature": "c2ln"}),
            self._blocks(use),
            {"type": "user", "message": {"role": "user", "content": [result]}},
            self._blocks({"type": "text", "text": text}),
        ]

    def _blocks(self, block: dict[str, Any]) -> dict[str, Any]:
        message = {"model": "claude-opus-4-6", "id": "msg_01", "type": "message", "role": "assistant"}
        return {"type": "assistant", "message": {**message, "content": [block]}, "requestId": "req_01"}

    def compacted(self, summary: str) -> list[dict[str, Any]]:
        return [
            {"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted", "isMeta": False},
            {"type": "user", "message": {"role": "user", "content": summary}, "isCompactSummary": True},
        ]


class CodexTranscript(Transcript):
    """A rollout file of Codex."""

    def begin(self) -> None:
        meta = {"id": self.session, "cwd": str(self.cwd), "originator": "codex-tui", "cli_version": "0.150.0"}
        environment = f"<environment_context>\n  <cwd>{self.cwd}</cwd>\n</environment_context>"
        self.add({"type": "session_meta", "payload": meta}, self._message("user", "input_text", environment))

    def _message(self, role: str, kind: str, text: str) -> dict[str, Any]:
        payload = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        return {"type": "response_item", "payload": payload}

    def prompt(self, text: str) -> list[dict[str, Any]]:
        return [
            {"type": "turn_context", "payload": {"cwd": str(self.cwd), "model": "gpt-5.5"}},
            self._message("user", "input_text", text),
            {"type": "event_msg", "payload": {"type": "user_message", "message": text, "kind": "plain"}},
        ]

    def answer(self, text: str) -> list[dict[str, Any]]:
        call = {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "call_1"}
        output = {"type": "function_call_output", "call_id": "call_1", "output": "nothing to commit"}
        return [
            {"type": "response_item", "payload": {"type": "reasoning", "summary": [], "content": None}},
            {"type": "response_item", "payload": call},
            {"type": "response_item", "payload": output},
            {"type": "event_msg", "payload": {"type": "agent_message", "message": text}},
            self._message("assistant", "output_text", text),
        ]

    def compacted(self, summary: str) -> list[dict[str, Any]]:
        return [{"type": "compacted", "payload": {"message": summary}}]


@dataclass
class AgentSession:
    """One session of a harness. ``contexts``: what the hooks gave to its model, one list for each context epoch."""

    room: HookedHome
    key: str
    transcript: Transcript
    contexts: list[list[str]] = field(default_factory=lambda: [[]])

    def begin(self, source: str = "startup") -> str:
        """Run the hooks for the start of a session."""
        if source == "compact":
            self.contexts.append([])
        else:
            self.transcript.begin()
        return self.fire("SessionStart", source=source)

    def prompt(self, text: str) -> str:
        """Send a prompt; return what the hook gives to the model beside it."""
        return self.fire("UserPromptSubmit", prompt=text)

    def exchange(self, prompt: str, answer: str) -> str:
        """Send a prompt, write it and its answer down, and end the turn of the agent."""
        given = self.prompt(prompt)
        self.transcript.say("user", prompt)
        self.transcript.say("assistant", answer)
        self.fire("Stop", stop_hook_active=False, last_assistant_message=answer)
        return given

    def compact(self, summary: str, *, start_first: bool = True) -> None:
        """Compact the context, with the events of the harness in this order."""
        self.fire("PreCompact", trigger="auto", custom_instructions="")
        self.transcript.compact(summary)
        if start_first:
            self.begin("compact")
        if "PostCompact" in self.room.hooks:
            self.fire("PostCompact", trigger="auto", compact_summary=summary)
        if not start_first:
            self.begin("compact")

    def end(self) -> None:
        """Run the hooks for the end of the session."""
        self.fire("SessionEnd", reason="prompt_input_exit")

    def event(self, name: str, **members: Any) -> dict[str, Any]:
        """Return what the harness writes to the hook's standard input."""
        common = {
            "session_id": self.key,
            "transcript_path": str(self.transcript.path),
            "cwd": str(self.transcript.cwd),
            "permission_mode": "default",
            "hook_event_name": name,
        }
        if self.room.harness is CODEX:
            common |= {"model": "gpt-5.5", "turn_id": str(self.transcript.records)}
        return {**common, **members}

    def fire(self, name: str, **members: Any) -> str:
        """Run the hook of the event; return what it gives to the model, and note it."""
        given = context_of(self.room.run(name, self.event(name, **members)))
        self.contexts[-1].append(given)
        return given

    def received(self) -> list[list[str]]:
        """Return the ids of the memories that the model got, in each context epoch."""
        return [_ID.findall("\n".join(given)) for given in self.contexts]


def context_of(output: str) -> str:
    """Return the text for the model in the output of a hook; empty if there is no output."""
    if not output:
        return ""
    answer = json.loads(output)
    text: str = answer["hookSpecificOutput"]["additionalContext"] if "hookSpecificOutput" in answer else output
    return text


class HookedHome:
    """A home directory with a connected harness, and the daemon of its workspace."""

    def __init__(self, harness: Harness, home: Home, daemon: LiveDaemon, hooks: dict[str, dict[str, Any]]) -> None:
        self.harness = harness
        self.home = home
        self.daemon = daemon
        self.hooks = hooks
        self.project = self._directory("work/parcels")
        self.elsewhere = self._directory("work/warehouse")

    def _directory(self, name: str) -> Path:
        path = self.home.root / name
        path.mkdir(parents=True)
        return path

    @property
    def spool(self) -> Spool:
        return Spool(str(self.daemon.workspace))

    def session(self, key: str = "", project: Path | None = None) -> AgentSession:
        """Return a new session; without a key, it has one as the harness makes it."""
        key = key or str(uuid.uuid4())
        cwd = project or self.project
        if self.harness is CODEX:
            path = (
                self.home.root
                / ".codex"
                / "sessions"
                / "2026"
                / "11"
                / "20"
                / f"rollout-2026-11-20T09-00-00-{key}.jsonl"
            )
            return AgentSession(self, key, CodexTranscript(path, key, cwd))
        folder = self.home.root / ".claude" / "projects" / str(cwd).replace("/", "-")
        path = folder / f"{key}.jsonl"
        return AgentSession(self, key, ClaudeTranscript(path, key, cwd))

    def command(self, event: str) -> list[str]:
        """Return the words that the harness starts for the event."""
        handler = self.hooks[event]
        if "args" in handler:
            return [handler["command"], *handler["args"]]
        return ["/bin/sh", "-c", handler["command"]]

    def start(self, command: list[str], event: dict[str, Any]) -> subprocess.Popen[str]:
        """Start a hook, with the event on its standard input."""
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={"PATH": os.environ["PATH"], "HOME": str(self.home.root)},
            cwd=self.home.root,
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(event))
        process.stdin.close()
        process.stdin = None
        return process

    def finish(self, process: subprocess.Popen[str]) -> str:
        """Return the output of a hook, which must end well."""
        try:
            output, errors = process.communicate(timeout=HANG_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        assert (process.returncode, errors) == (0, "")
        return output

    def run(self, event: str, given: dict[str, Any]) -> str:
        """Run the installed hook of the event and return its output."""
        return self.finish(self.start(self.command(event), given))

    def remember(self, content: str, **fields: Any) -> Any:
        """Store a memory with the hook command, as an agent does in a shell; return its answer."""
        given = {"content": content, "cwd": str(self.project), **fields}
        return json.loads(self.finish(self.start(self.remembering(), given)))

    def remembering(self) -> list[str]:
        return [str(self.home.program), "remember", "-H", self.harness.name, "--workspace", str(self.daemon.workspace)]

    def drain(self) -> None:
        """Have the daemon's own program send what waits, as it does every minute, until nothing does."""
        command = [str(self.home.program), "--drain", "--workspace", str(self.daemon.workspace)]

        def is_empty() -> bool:
            if self.spool.due():
                self.finish(self.start(command, {}))
            return not self.spool.waiting()

        eventually(is_empty, within_s=120, what="the daemon has what waited")
        assert self.spool.rejected() == []

    def turns(self, session: AgentSession) -> list[tuple[str, str]]:
        """Return the turns that the daemon has of the session."""
        found = self.daemon.api.get(f"/api/sessions/{session.key}/transcript", view="turns").ok()["turns"]
        return [(turn["role"], turn["content"]) for turn in found]

    def checkpoints(self, session: AgentSession) -> list[dict[str, Any]]:
        """Return the checkpoints of the session, newest first."""
        found: list[dict[str, Any]] = self.daemon.api.get(f"/api/checkpoints/{session.key}", limit=100).ok()[
            "checkpoints"
        ]
        return found

    def await_pipeline(self) -> None:
        """Wait until no job waits."""
        sql = "SELECT count(*) FROM memory_jobs WHERE status IN ('pending', 'leased')"
        eventually(lambda: self.daemon.read(sql) == [(0,)], within_s=120, what="the pipeline has nothing left")


@contextlib.contextmanager
def hooked_home(
    harness: Harness, root: Path, *, config: str = "", patient: bool = True, **environ: str
) -> Iterator[HookedHome]:
    """Yield a home with the harness connected to a running daemon."""
    with (
        pytest.MonkeyPatch.context() as patch,
        live_daemon(config=config, started=False, patient=patient) as daemon,
    ):
        home = make_home(root, patch)
        install_claude(home.root / "claude", "2.1.219 (Claude Code)")
        patch.setenv("SIGNET_WORKSPACE", str(daemon.workspace))
        (home.root / harness.directory).mkdir(exist_ok=True)
        done = home.connect(harness)
        assert done.exit_code == 0, done.output
        daemon.environ |= {"HOME": str(home.root), "CODEX_HOME": str(home.root / ".codex"), **environ}
        daemon.start()
        yield HookedHome(harness, home, daemon, harness.installed_hooks(os.environ))


__all__ = ["CLAUDE_CODE", "CODEX", "AgentSession", "HookedHome", "context_of", "hooked_home"]
