"""The check of ``signet connect --check``: run what is installed, and tell what the agent would get.

Hooks and the MCP server are started as the harness would. The proof is a memory with a word of its own: it is stored, a
prompt and a search of the server ask for it, and the text for the agent must have it.

Source: docs/cli.md "Harnesses"; docs/guides/claude-code.md "Check it"; Model Context Protocol, 2025-11-25,
"Lifecycle", "Tools".
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shlex
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import click

from signet_actors.cli.connection import DaemonClient
from signet_actors.cli.exit_codes import NOT_RUNNING, REFUSED
from signet_actors.cli.harnesses.hook_settings import command_words
from signet_actors.cli.harnesses.identity_files import unread_files
from signet_actors.cli.harnesses.registry import Harness
from signet_actors.cli.harnesses.server_entry import is_our_server, server_words
from signet_actors.cli.invocation import Invocation
from signet_actors.cli.presentation import below_home, on_terminal, one_line, print_result, printable, wrapped
from signet_actors.cli.tables import print_wrapped
from signet_actors.domain.session_keys import CHECK_PREFIX
from signet_actors.errors import DaemonNotRunning, RequestRefused, SignetError
from signet_actors.hook.harness_events import STARTS_WITH_PROMPT, is_switched_off

OK, NOTE, FAILED = "✓", "!", "✗"
_QUOTES = re.compile(r"['\"\\]")


@dataclass
class Check:
    """The check of one harness. ``parts`` are the results as JSON; the same is printed line by line, unless quiet."""

    harness: Harness
    file: str
    quiet: bool
    verbose: bool = False
    exit_code: int = 0
    notes: list[str] = field(default_factory=list)
    parts: dict[str, Any] = field(default_factory=dict)

    @property
    def as_json(self) -> dict[str, Any]:
        """The check as ``--json`` prints it."""
        return {
            "harness": self.harness.name,
            "file": self.file,
            "ok": self.exit_code == 0,
            "exitCode": self.exit_code,
            "notes": self.notes,
            **self.parts,
        }

    def say(self, mark: str, text: str, *, part: str = "") -> None:
        """Print a line of the check, about one ``part`` of it."""
        if not self.quiet:
            lead = f"{mark} {part:<10}  " if part else f"{mark} "
            print_wrapped(text, lead=lead, indent=len(lead), chop=False)

    def detail(self, text: str, *, lead: str = "    ", is_command: bool = False) -> None:
        """Print lines below the last one, if they are wanted; each line that a terminal breaks keeps its ``lead``.

        The lines of a command that is broken are still one for a shell; one with quotes is not broken.
        """
        if self.verbose and not self.quiet:
            for line in text.splitlines():
                shown = printable(line)
                if on_terminal() and not (is_command and (_QUOTES.search(line) or not line.isascii())):
                    taken, end = (len(lead) + len(" \\"), " \\\n") if is_command else (len(lead), "\n")
                    shown = wrapped(line, taken=taken).replace("\n", end)
                click.echo("\n".join(f"{lead}{part}".rstrip() for part in shown.split("\n")))

    def note(self, text: str) -> None:
        """Add what the user should know, and print it."""
        self.notes.append(text)
        self.say(NOTE, text)

    def fail(self, exit_code: int, problem: str, *, part: str = "") -> None:
        """Print the problem, of the whole check or of a ``part`` that is in ``parts`` already."""
        if not part:
            self.parts["problem"] = problem
        self.exit_code = max(self.exit_code, exit_code)
        self.say(FAILED, problem, part=part)


def check_harness(invocation: Invocation, harness: Harness, *, verbose: bool = False) -> Check:
    """Check one harness, and print what came back unless the output is JSON. Raises ConfigError."""
    environ = {**invocation.environment, **({"SIGNET_DAEMON_URL": invocation.url} if invocation.url else {})}
    file = str(harness.settings(environ).path)
    check = Check(harness, file, quiet=invocation.as_json, verbose=verbose)
    if not check.quiet:
        print_result(f"{harness.title}: {below_home(file)}")
    for note in (*harness.checked_notes(environ), *unread_files(invocation.workspace, harness, environ)):
        check.note(note)
    if is_switched_off(environ):
        check.note("SIGNET_NO_HOOKS or SIGNET_BYPASS is set here, so every hook is silent and the tools are off.")
    if environ.get("SIGNET_DAEMON_URL"):
        check.note(f"daemon: {environ['SIGNET_DAEMON_URL']}, as SIGNET_DAEMON_URL or --url names it")
    session = check_session(environ)
    if harness.events:
        started = run_installed(harness, "session-start", {**session, "source": "startup"}, environ)
        check.parts["sessionStart"] = _hook_json(started)
        _tell_start(check, started)
        if check.exit_code:
            return check
    _check_memory(invocation, check, session, environ)
    return check


def _tell_start(check: Check, run: HookRun) -> None:
    if run.problem:
        check.fail(REFUSED, run.problem, part="start")
    elif run.message:
        reason = run.message.removeprefix(NO_MEMORY).removeprefix(", because ")
        check.fail(NOT_RUNNING, f"the agent gets no memory: {reason}", part="start")
    elif run.context:
        check.say(OK, f"the agent gets {len(run.context):,} characters", part="start")
    else:
        later = check.harness.name in STARTS_WITH_PROMPT
        check.say(OK, "what it has comes with the first prompt" if later else "nothing for the agent yet", part="start")
    _detail_run(check, run)


def _check_memory(invocation: Invocation, check: Check, session: Mapping[str, str], environ: Mapping[str, str]) -> None:
    """Have a memory asked for by the hook of a prompt and by the tools."""
    harness = check.harness
    found = harness.installed_server(environ)
    entry = found if is_our_server(found) else None
    if entry is None and not harness.events:
        _tell_no_tools(check, found)
        return
    try:
        client = invocation.client(invocation.address_of_programs())
        client.agent = None  # the programs name theirs
        with stored_canary(client, session["cwd"]) as canary:
            prompted = prompt_brings(canary, harness, session, environ) if harness.events else None
            if prompted is not None and prompted.problem and (reason := reason_of_silence(client, session["cwd"])):
                prompted = replace(prompted, problem=reason)
            kept = _transcript_json(client, harness, session, environ) if harness.events else None
            served = run_server(entry, canary, environ) if entry is not None else None
    except DaemonNotRunning as error:
        check.fail(NOT_RUNNING, f"no memory was asked for: {error.detail}. {error.remedy}")
        return
    except SignetError as error:
        check.fail(REFUSED, f"no memory was asked for, because the daemon refused it: {one_line(error.detail)}")
        return
    if prompted is not None:
        _tell_prompt(check, prompted)
    if kept is not None:
        _tell_transcript(check, kept)
    if served is not None:
        _tell_tools(check, served)
    else:
        _tell_no_tools(check, found)


def _tell_prompt(check: Check, run: HookRun) -> None:
    check.parts["prompt"] = _hook_json(run)
    if run.problem:
        check.fail(REFUSED, f"a memory was stored to be asked for, but {run.problem}", part="prompt")
    else:
        check.say(OK, "a memory that was stored just now comes back", part="prompt")
    _detail_run(check, run)


def _transcript_json(
    client: DaemonClient, harness: Harness, session: Mapping[str, str], environ: Mapping[str, str]
) -> dict[str, Any]:
    """Return where the harness keeps its sessions, and why the daemon would keep none. Raises ConfigError."""
    folder = str(next(iter(harness.noted(environ, None).session_folders), ""))
    told = {name for name in map(harness.event_of, ("session-start", "user-prompt-submit")) if name is not None}
    missing = [name for name in harness.missing_events(environ) if name not in told]
    problem = f"the settings have no hook of Signet for {' and '.join(missing)}; `signet connect {harness.name}`"
    return {
        "folder": folder or None,
        "problem": problem if missing else transcript_problem(client, harness, folder, session) or None,
    }


def _tell_transcript(check: Check, kept: dict[str, Any]) -> None:
    check.parts["transcript"] = kept
    if kept["problem"] is not None:
        problem = one_line(kept["problem"])
        check.fail(REFUSED, f"sessions are not kept: {below_home(problem)}", part="transcript")
    elif kept["folder"] is not None:
        check.say(OK, f"sessions in {below_home(kept['folder'])} are kept", part="transcript")
    else:
        check.say(OK, "sessions are kept", part="transcript")


def _tell_tools(check: Check, run: ServerRun) -> None:
    problem = one_line(run.problem) if run.problem else None
    check.parts["tools"] = {"readyMs": round(run.ms), "tools": run.tools, "problem": problem}
    if problem is not None:
        check.fail(REFUSED, problem, part="tools")
    else:
        check.say(OK, f"{run.tools} tools; memory_search finds the same memory", part="tools")
        check.detail(f"ready in {run.ms:.0f} ms")


def _tell_no_tools(check: Check, found: Any) -> None:
    """Tell that there is no entry of ours; ``found``: a server of the same name, which the user has added."""
    if found is not None:
        check.parts["tools"] = {"problem": None}
        check.say(NOTE, "not checked: the server named signet is not one of `signet connect`", part="tools")
    elif check.harness.servers is not None:
        problem = f"not installed; `signet connect {check.harness.name}` adds them"
        check.parts["tools"] = {"problem": problem}
        check.fail(REFUSED, problem, part="tools")


def _detail_run(check: Check, run: HookRun) -> None:
    check.detail(below_home(run.command), is_command=True)
    if run.ms:
        check.detail(f"answered in {run.ms:.0f} ms")
    check.detail(run.context, lead="    │ ")


def _hook_json(run: HookRun) -> dict[str, Any]:
    return {
        "command": run.command,
        "answeredMs": round(run.ms),
        "context": run.context,
        "problem": run.problem or run.message or None,
    }


MISSING = "missing"
NO_MEMORY = "Signet: no memory in this session"
"""How the text for the agent begins if the daemon did not answer."""
DEFAULT_TIMEOUT_S = 60


@dataclass(frozen=True)
class HookRun:
    """One run of an installed hook. ``problem`` is empty if the harness would have accepted the answer."""

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
    """Ask for the canary by the installed hook; without it, the run has a ``problem``. Raises ConfigError."""
    run = run_installed(harness, "user-prompt-submit", {**session, "prompt": canary.prompt}, environ)
    run_installed(harness, "session-end", {**session, "reason": "clear"}, environ)  # so that no session goes on with it
    if not run.problem and canary.word not in run.context:
        came = f"{len(run.context):,} characters without it" if run.context else "nothing"
        return HookRun(run.command, run.ms, run.context, problem=f"a prompt that asks for it brought {came}")
    return run


LIMIT_S: Final = 30.0
PROTOCOL: Final = "2025-11-25"


@dataclass(frozen=True)
class ServerRun:
    """One run of the server: how many tools it offers, and how long the handshake took. ``problem``: what failed."""

    ms: float = 0
    tools: int = 0
    problem: str = ""


class _NoReply(Exception):
    """The server ended, or said something else."""


def run_server(entry: Mapping[str, Any], canary: Canary | None, environ: Mapping[str, str]) -> ServerRun:
    """Run the server of this entry, and search for the canary if there is one."""
    words = server_words(entry)
    started = time.monotonic()
    try:
        process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(environ)
        )
    except OSError as error:
        return ServerRun(problem=f"{words[0]} cannot be started: {error.strerror}")
    timer = threading.Timer(LIMIT_S, process.kill)
    timer.start()
    try:
        opening = {
            "protocolVersion": PROTOCOL,
            "capabilities": {},
            "clientInfo": {"name": "signet-check", "version": "1"},
        }
        _ask(process, 1, "initialize", opening)
        ms = (time.monotonic() - started) * 1000
        _tell(process, {"method": "notifications/initialized"})
        tools = len(_ask(process, 2, "tools/list", {})["tools"])
        if canary is not None:
            found = _ask(process, 3, "tools/call", {"name": "memory_search", "arguments": {"query": canary.prompt}})
            if canary.word not in json.dumps(found):
                said = f" ({found['content'][0]['text']})" if found.get("isError") else ""
                return ServerRun(ms, tools, f"memory_search did not find a memory that was stored just before{said}")
        return ServerRun(ms, tools)
    except (_NoReply, OSError, KeyError, TypeError, ValueError) as error:
        return ServerRun(problem=_what_failed(process, error))
    finally:
        timer.cancel()
        _end(process)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def _ask(process: subprocess.Popen[bytes], number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request. Raises _NoReply, and others if the reply has another form."""
    _tell(process, {"id": number, "method": method, "params": params})
    assert process.stdout is not None
    for line in process.stdout:
        reply = json.loads(line)
        if reply.get("id") == number:
            if "error" in reply:
                raise _NoReply(f"{method} was refused: {reply['error'].get('message')}")
            result: dict[str, Any] = reply["result"]
            return result
    raise _NoReply("it ended without an answer")


def _tell(process: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    process.stdin.flush()


def _what_failed(process: subprocess.Popen[bytes], error: Exception) -> str:
    if not isinstance(error, _NoReply | OSError):
        return "its answer is not what the harness reads"
    _end(process)
    assert process.stderr is not None
    said = " ".join(process.stderr.read().decode(errors="replace").split())[-300:]
    reason = str(error) if isinstance(error, _NoReply) else "it ended without an answer"
    return f"{reason}{f' ({said})' if said else ''}"


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        process.wait(2)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
