"""Fill a daemon through the interfaces of a user: remembers, an import of notes, and sessions of Claude Code.

The hooks get the requests of the installed program; a session's file is in the form of Claude Code, with the commands
that the agent ran. Nothing outside of the given directory is read or written.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import copyfile
from typing import Any, Final

import msgspec

from bench.client import BlockingClient
from bench.daemon import Daemon, DaemonFailed
from bench.first_day.data import NOTES, PROJECT, DataSet, Memory, Session
from signet_actors.hook.harness_events import HOOKS, Options, request_of

HARNESS: Final = "claude-code"
SETTINGS: Final = "memory: {pipelineV2: {extraction: {provider: none}}}\n"
"""No language model, whatever this machine has."""
RECALLED: Final = 100
TURN_S: Final = 120
_ONCE_MORE: Final = 3


class FirstDay:
    """The home of a user in ``home``, with a daemon with these ``settings``. ``now`` is the time of the run."""

    def __init__(self, home: Path, now: datetime, settings: str = SETTINGS) -> None:
        self.now = now
        self._home = home
        self.daemon = Daemon(
            home / ".agents",
            settings=settings,
            environment={"HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / ".claude")},
        )

    def directory(self, project: str) -> Path:
        """Return the directory of a project."""
        return self._home / "code" / project

    def fill(self, data: DataSet) -> None:
        """Store everything, and wait until it has its vectors. Raises DaemonFailed."""
        for project in {session.project for session in data.sessions}:
            self.directory(project).mkdir(parents=True)
        for memory in sorted(data.memories, key=lambda one: -one.days):
            if memory.file is None:
                self._remember(memory)
        self._import_notes(data.memories)
        for session in sorted(data.sessions, key=lambda one: -one.days):
            self._replay(session)
        self.wait_for_vectors()

    def wait_for_vectors(self) -> str:
        """Wait until every memory has its vectors; return the name of the model. Raises DaemonFailed."""
        return self.daemon.wait_for_vectors()

    def hook(self, name: str, session: str, project: str = PROJECT, **event: Any) -> dict[str, Any]:
        """Send a hook as the installed program does; return the answer, the last one if it was skipped each time."""
        options = Options([name, "-H", HARNESS])
        hook = HOOKS[name]
        told = {"session_id": session, "cwd": str(self.directory(project)), **event}
        body = request_of(hook, told, options)
        if "captured_at" in event:
            body["capturedAt"] = event["captured_at"]
        for _ in range(_ONCE_MORE):
            answer = self._post(hook.path, body)
            if not answer.get("skipped"):
                break
        return answer

    def recall(self, query: str) -> list[dict[str, Any]]:
        """Return the results of a recall, which has no threshold."""
        results: list[dict[str, Any]] = self._post("/api/memory/recall", {"query": query, "limit": RECALLED})["results"]
        return results

    def _remember(self, memory: Memory) -> None:
        project = None if memory.project is None else str(self.directory(memory.project))
        body = {
            "content": memory.text,
            "type": memory.type,
            "project": project,
            "createdAt": _iso(self.now - timedelta(days=memory.days)),
        }
        self._post("/api/memory/remember", {name: value for name, value in body.items() if value is not None})

    def _import_notes(self, memories: list[Memory]) -> None:
        """Copy the notes with the time at which each was written, and import them with the command."""
        folder = self._home / "notes"
        folder.mkdir()
        for name, days in {one.file: one.days for one in memories if one.file is not None}.items():
            copyfile(NOTES / name, folder / name)
            written = (self.now - timedelta(days=days)).timestamp()
            os.utime(folder / name, (written, written))
        address = self.daemon.address
        command = [sys.executable, "-m", "signet_actors", "import", str(folder), "--from", "markdown"]
        done = subprocess.run(
            [*command, "--url", f"http://{address.host}:{address.port}"],
            env={**os.environ, "HOME": str(self._home), "XDG_CACHE_HOME": str(self._home / ".cache")},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if done.returncode:
            raise DaemonFailed(f"the import of the notes failed: {done.stdout}{done.stderr}")

    def _replay(self, session: Session) -> None:
        """Send the hooks of a session, whose file is complete, and its end unless it crashed."""
        begin = session.begin(self.now)
        key = str(uuid.uuid5(uuid.NAMESPACE_URL, session.name))
        cwd = self.directory(session.project)
        path = self._home / ".claude" / "projects" / str(cwd).replace("/", "-").replace(".", "-") / f"{key}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{json.dumps(one)}\n" for one in _records(session, begin, key, str(cwd))))
        self.hook("session-start", key, session.project, source="startup")
        last = ""
        for turn in session.turns:
            if turn.role == "user":
                self.hook("user-prompt-submit", key, session.project, prompt=turn.text, last_assistant_message=last)
            last = turn.text if turn.role == "assistant" else last
        told = {
            "transcript_path": str(path),
            "captured_at": _iso(begin + timedelta(seconds=TURN_S * len(session.turns))),
        }
        name = "session-end" if session.end else "checkpoint"
        answer = self.hook(name, key, session.project, **told, **({"reason": session.end} if session.end else {}))
        if not answer.get("stored"):
            raise DaemonFailed(f"the transcript of {session.name} was not stored: {answer}")

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        address = self.daemon.address
        client = BlockingClient(address.host, address.port)
        status, raw = client.exchange("POST", path, msgspec.json.encode(body))
        if status != 200:
            raise DaemonFailed(f"POST {path} was answered {status}: {raw[:200]!r}")
        answer: dict[str, Any] = msgspec.json.decode(raw)
        return answer


def _records(session: Session, begin: datetime, key: str, cwd: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of the session's file, as Claude Code writes them."""
    parent = None
    number = 0

    def record(kind: str, message: dict[str, Any], at: datetime, **more: Any) -> dict[str, Any]:
        nonlocal parent, number
        number += 1
        name = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{session.name}-{number}"))
        framed = {
            "parentUuid": parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": cwd,
            "sessionId": key,
            "version": "2.1.37",
            "gitBranch": "main",
            "type": kind,
            "message": {"role": kind, **message},
            "uuid": name,
            "timestamp": _iso(at),
            **more,
        }
        parent = name
        return framed

    for at, turn in enumerate(session.turns):
        moment = begin + timedelta(seconds=TURN_S * at)
        if turn.role == "user":
            yield record("user", {"content": turn.text}, moment)
            continue
        if turn.ran is not None:
            call = {"type": "tool_use", "id": f"toolu_{at}", "name": "Bash", "input": {"command": turn.ran}}
            result = {"type": "tool_result", "tool_use_id": f"toolu_{at}", "content": "(no output)"}
            yield record("assistant", {"type": "message", "content": [call]}, moment)
            yield record("user", {"content": [result]}, moment, toolUseResult={"stdout": "", "stderr": ""})
        yield record("assistant", {"type": "message", "content": [{"type": "text", "text": turn.text}]}, moment)


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
