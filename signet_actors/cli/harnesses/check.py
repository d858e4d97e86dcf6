"""Run the hooks that are installed as the harness would, and tell what it would give to the agent.

The proof is a memory with a word of its own: it is stored, a prompt asks for it, and the text for the agent must have
it.

Source: docs/guides/claude-code.md "Check it".
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shlex
import subprocess
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from signet_actors.cli.harnesses.hook_settings import command_words
from signet_actors.domain.session_keys import CHECK_PREFIX
from signet_actors.errors import RequestRefused, SignetError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from signet_actors.cli.connection import DaemonClient
    from signet_actors.cli.harnesses.registry import Harness

MISSING = "missing"
NO_MEMORY = "Signet: no memory in this session"
"""How the text for the agent begins if the daemon did not answer."""
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


def check_session(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what a harness sends with each event, for a session of its own in the working directory."""
    return {"session_id": f"{CHECK_PREFIX}{uuid.uuid4()}", "cwd": environ.get("PWD") or os.getcwd()}


def run_installed(harness: Harness, hook: str, event: Mapping[str, Any], environ: Mapping[str, str]) -> HookRun:
    """Run our hook, as the settings say and as the harness starts it. Raises ConfigError if a file is not valid."""
    name = harness.event_of(hook) or hook
    handler = harness.installed_hooks(environ).get(name)
    if handler is None:
        return HookRun(MISSING, 0, problem=f"the settings have no hook of Signet for {name}")
    shell = [environ.get("SHELL") or "/bin/sh", "-lc", handler["command"]]
    words = command_words(handler) if "args" in handler else shell
    command = shlex.join(words) if "args" in handler else handler["command"]
    given = handler.get("timeout")
    unit = harness.timeout_unit
    limit_s = given / unit if isinstance(given, int | float) and given > 0 else DEFAULT_TIMEOUT_S
    started = time.monotonic()
    try:
        done = subprocess.run(
            words,
            input=json.dumps({**event, "hook_event_name": name}).encode(),
            capture_output=True,
            timeout=limit_s,
            env=dict(environ),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return HookRun(command, 0, problem=f"it did not end within {limit_s} s")
    except OSError as error:
        return HookRun(command, 0, problem=f"it cannot be started: {error.strerror}")
    return _judged(command, (time.monotonic() - started) * 1000, done, name, flat=harness.flat)


def _judged(command: str, ms: float, done: subprocess.CompletedProcess[bytes], event: str, *, flat: bool) -> HookRun:
    """Return what the harness would make of the output."""
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()[-200:]
        return HookRun(command, ms, problem=f"it ended with exit code {done.returncode}{f' ({said})' if said else ''}")
    if not done.stdout.strip():
        return HookRun(command, ms)
    try:
        answer = json.loads(done.stdout)
        given = answer if flat else answer["hookSpecificOutput"]
        context, named = given["additional_context" if flat else "additionalContext"], given.get("hookEventName", event)
    except (ValueError, KeyError, TypeError):
        return HookRun(command, ms, problem="its output is not what the harness reads")
    if not isinstance(context, str) or named != event:
        return HookRun(command, ms, problem="its output is not what the harness reads")
    message = str(answer.get("systemMessage") or (context if context.startswith(NO_MEMORY) else ""))
    return HookRun(command, ms, context, message)


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


@contextlib.contextmanager
def stored_canary(client: DaemonClient, project: str) -> Iterator[Canary]:
    """Store a canary, and forget it for good afterwards. Raises SignetError if the daemon refuses."""
    canary = Canary(f"C-{secrets.randbelow(10**6):06}", f"kestrel-{secrets.token_hex(4)}")
    body = {"content": canary.memory, "who": "signet-check", "tags": ["signet-check"], "project": project}
    stored = client.send("POST", "/api/memory/remember", body)
    try:
        yield canary
    finally:
        _forget(client, stored.text("id"))


def _forget(client: DaemonClient, memory_id: str) -> None:
    """Forget the memory for good; so that it can be recovered where only the owner may do that."""
    wanted = {"ids": [memory_id], "force": True, "reason": "signet connect --check has ended"}
    try:
        token = client.ask("/api/memory/forget", {**wanted, "mode": "preview"}).body.get("confirmToken")
        client.send("POST", "/api/memory/forget", {**wanted, "mode": "execute", "confirm_token": token})
    except RequestRefused:
        client.send("DELETE", f"/api/memory/{memory_id}", {"reason": wanted["reason"]})


def reason_of_silence(client: DaemonClient, project: str) -> str:
    """Return why the daemon answers no hook in this directory, as a clause; empty if it does, or does not say."""
    body = {"harness": "signet-check", "query": "the word of the Signet check", "project": project}
    try:
        answer = client.ask("/api/hooks/recall", body).body
    except SignetError:
        return ""
    if answer.get("reason") == "other_project":
        return f"hooks do nothing in {project}, which is not in `projects.only` of the daemon's agent.yaml"
    return ""


def transcript_problem(client: DaemonClient, harness: Harness, folder: str, session: Mapping[str, str]) -> str:
    """Return why the daemon would not keep a transcript of the harness, as a clause; empty if it would.

    It is told of the end of a session whose file is not there, in the folder of the harness, if it has any. So nothing
    is stored.
    """
    key = f"{CHECK_PREFIX}{uuid.uuid4()}"
    path = os.path.join(folder, "signet-check", f"{key}.jsonl") if folder else None
    about = {"transcriptPath": path, "cwd": session["cwd"], "reason": "clear"}
    try:
        answer = client.ask("/api/hooks/session-end", {"harness": harness.name, "sessionKey": key, **about}).body
    except SignetError as error:
        return error.detail
    reason = str(answer.get("reason"))
    if reason == "disabled":
        return "hooks.sessionEnd.enabled is false; `signet config set hooks.sessionEnd.enabled true`"
    if not folder or answer.get("skipped") is not True or reason == "other_project":  # the prompt's line tells that
        return ""
    if "outside" in reason:
        return f"the daemon does not read {folder}; `signet connect {harness.name}` adds it"
    return f"{folder}: {reason}"


def prompt_brings(canary: Canary, harness: Harness, session: Mapping[str, str], environ: Mapping[str, str]) -> HookRun:
    """Ask for the canary by the installed hook. If the answer lacks it, the run has a ``problem``.

    Raises ConfigError if a file of the harness is not valid.
    """
    run = run_installed(harness, "user-prompt-submit", {**session, "prompt": canary.prompt}, environ)
    run_installed(harness, "session-end", {**session, "reason": "clear"}, environ)  # so that no session goes on with it
    if not run.problem and canary.word not in run.context:
        came = f"{len(run.context):,} characters without it" if run.context else "nothing"
        return HookRun(run.command, run.ms, run.context, problem=f"a prompt that asks for it brought {came}")
    return run
