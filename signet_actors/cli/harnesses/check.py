"""Run the hooks that are installed as the harness would, and tell what it would give to the agent.

The proof is a memory that nobody else has: it is stored, a prompt asks for it, and the text for the agent must have it.

Source: docs/guides/claude-code.md "Check it".
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from signet_actors.cli.harnesses.hook_settings import command_words, handlers, is_ours

if TYPE_CHECKING:
    from collections.abc import Mapping

    from signet_actors.cli.connection import DaemonClient

MISSING = "missing"
DEFAULT_TIMEOUT_S = 60


@dataclass(frozen=True)
class HookRun:
    """One run of an installed hook: the text for the agent, the line for the user, and how long it took.

    ``problem`` is empty if the harness would have accepted the answer.
    """

    command: str
    ms: float
    context: str = ""
    message: str = ""
    problem: str = ""


def session_event(environ: Mapping[str, str], name: str, **more: str) -> dict[str, Any]:
    """Return what a harness sends, for a session of its own in the working directory."""
    cwd = environ.get("PWD") or os.getcwd()
    return {"session_id": f"signet-check-{uuid.uuid4()}", "cwd": cwd, "hook_event_name": name, **more}


def run_installed(document: Mapping[str, Any], event: Mapping[str, Any], environ: Mapping[str, str]) -> HookRun:
    """Run our hook of this event, as the settings say and as the harness starts it."""
    name = event["hook_event_name"]
    handler = next((found for at, found in handlers(document) if at == name and is_ours(found)), None)
    if handler is None:
        return HookRun(MISSING, 0, problem=f"the settings have no hook of Signet for {name}")
    shell = [environ.get("SHELL") or "/bin/sh", "-lc", handler["command"]]
    words = command_words(handler) if "args" in handler else shell
    given = handler.get("timeout")
    limit_s = given if isinstance(given, int | float) and given > 0 else DEFAULT_TIMEOUT_S
    started = time.monotonic()
    try:
        done = subprocess.run(
            words,
            input=json.dumps(event).encode(),
            capture_output=True,
            timeout=limit_s,
            env=dict(environ),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return HookRun(handler["command"], 0, problem=f"it did not end within {limit_s} s")
    except OSError as error:
        return HookRun(handler["command"], 0, problem=f"it cannot be started: {error.strerror}")
    return _judged(handler["command"], (time.monotonic() - started) * 1000, done, name)


def _judged(command: str, ms: float, done: subprocess.CompletedProcess[bytes], event: str) -> HookRun:
    """Return what the harness would make of the output."""
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()[-200:]
        return HookRun(command, ms, problem=f"it ended with exit code {done.returncode}{f' ({said})' if said else ''}")
    if not done.stdout.strip():
        return HookRun(command, ms)
    try:
        answer = json.loads(done.stdout)
        given = answer["hookSpecificOutput"]
        context, named = given["additionalContext"], given["hookEventName"]
    except (ValueError, KeyError, TypeError):
        return HookRun(command, ms, problem="its output is not what the harness reads")
    if not isinstance(context, str) or named != event:
        return HookRun(command, ms, problem="its output is not what the harness reads")
    return HookRun(command, ms, context, str(answer.get("systemMessage") or ""))


@dataclass(frozen=True)
class Canary:
    """A memory that only this check has."""

    run: str
    word: str

    @property
    def memory(self) -> str:
        return f"The word of the Signet check {self.run} is {self.word}."

    @property
    def prompt(self) -> str:
        return f"What is the word of the Signet check {self.run}?"


def canary_comes_back(client: DaemonClient, document: Mapping[str, Any], environ: Mapping[str, str]) -> HookRun:
    """Store a canary, ask for it by an installed hook, and forget it. Raises SignetError if the daemon refuses.

    The run has a ``problem`` if the answer lacks the canary.
    """
    canary = Canary(f"C-{secrets.randbelow(10**6):06}", f"kestrel-{secrets.token_hex(4)}")
    event = session_event(environ, "UserPromptSubmit", prompt=canary.prompt)
    body = {"content": canary.memory, "who": "signet-check", "tags": ["signet-check"], "project": event["cwd"]}
    stored = client.send("POST", "/api/memory/remember", body)
    try:
        run = run_installed(document, event, environ)
    finally:
        client.send("DELETE", f"/api/memory/{stored.text('id')}", {"reason": "signet connect --check has ended"})
    if not run.problem and canary.word not in run.context:
        came = f"{len(run.context):,} characters without it" if run.context else "nothing"
        return HookRun(run.command, run.ms, run.context, problem=f"a prompt that asks for it brought {came}")
    return run
