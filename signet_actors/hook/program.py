"""The program ``signet-hook NAME``: standard input is the harness's JSON, standard output what the harness understands.

It never fails and never waits longer than its limit: whatever happens, it exits with 0. A thread ends the process at
the limit, because a read of standard input or a DNS query cannot be interrupted otherwise.

An entry of an earlier release, a plugin and a person start it without ``-I``, so that PYTHONPATH is heeded.

Source: docs/guides/claude-code.md, docs/guides/codex.md; docs/guides/hooks.md "In any environment";
docs/decisions.md 34.
"""
# ruff: noqa: E402 - the import path comes first

from __future__ import annotations

from signet_actors.runtime.processes.import_path import prefer_standard_library

prefer_standard_library()

import _thread
import json
import os
import sys
import time

from signet_actors.hook import daemon, harness_events
from signet_actors.hook.drain import DRAIN_LIMIT_S, drain, drain_for_daemon
from signet_actors.hook.injected_text import fitted
from signet_actors.hook.off_mark import is_in_transcript, switch_request, switches_off, told, transcript_with_mark
from signet_actors.hook.spool import FINAL_REFUSALS, Spool, SpoolFull

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

MAX_EVENT_BYTES = 16 << 20
DEFAULT_LIMIT_S = 2.0
"""The limit until the hook is known."""
PAUSE_S = 0.05
"""After so long without more, what was read is tried."""
MARGIN_S = 0.1
"""The end of the limit that is left for the output."""
EXIT_GRACE_S = 0.5
NOT_PERMITTED = (401, 403)
CONTROLS = dict.fromkeys((*range(9), *range(11, 32), *range(127, 160)))
"""What a terminal would obey, of an answer that may be another program's. JSON has none of them, but for DEL and C1."""
USAGE = f"""Usage: signet-hook NAME [-H HARNESS] [--project DIR] [--workspace DIR] [--agent NAME] [--json]

Send what a harness reports on standard input (JSON) to the Signet daemon, and print its answer.
Names: {", ".join(harness_events.HOOKS)}. Exits with 0 always.
With --drain instead of a name, sends what is kept in the workspace to its daemon, which runs this every minute.
SIGNET_NO_HOOKS=1 or SIGNET_BYPASS=1 turns it off.
"""


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the hook and exit with 0, whatever happens. The interpreter's own clean-up would take a millisecond more."""
    try:
        _run(harness_events.Options(sys.argv[1:] if arguments is None else arguments), time.monotonic())
    finally:
        os._exit(0)


def _run(options: harness_events.Options, started: float) -> None:
    if options.help:
        _write(1, USAGE)
        return
    if options.drain:
        _thread.start_new_thread(_exit_at, (DRAIN_LIMIT_S + EXIT_GRACE_S,))
        drain_for_daemon(daemon.workspace_of(dict(os.environ), options.workspace), dict(os.environ))
        return
    if harness_events.is_switched_off(os.environ):
        return
    named = harness_events.HOOKS.get(options.name)
    output = _Output()
    limit_s = harness_events.limit_of(named, options.harness) if named else DEFAULT_LIMIT_S
    if named is not None:
        output.prepare(named, {}, options)
    _thread.start_new_thread(output.end_at, (limit_s,))
    event = _read_event()
    hook = named or harness_events.HOOKS.get(harness_events.NAME_OF_EVENT.get(str(event.get("hook_event_name")), ""))
    if hook is None:
        return
    output.prepare(hook, event, options)
    try:
        _Call(hook, event, options, started + limit_s - MARGIN_S).run(output)
    except Exception as error:  # noqa: BLE001 - a disk that fails, or a fault of this program
        output.report(daemon.NoAnswer(f"signet-hook failed ({type(error).__name__}: {error})", ""))


def _exit_at(limit_s: float) -> None:
    time.sleep(limit_s)
    os._exit(0)


def _read_event() -> dict[str, Any]:
    """Return the JSON object on standard input, complete even if its end stays open; an empty one if there is none."""
    import select  # noqa: PLC0415 - what --help and a hook that is off do not need

    received = bytearray()
    try:
        while not os.isatty(0) and len(received) <= MAX_EVENT_BYTES:
            if received and not select.select([0], [], [], PAUSE_S)[0]:
                if (event := _parsed(received)) is not None:
                    return event
                select.select([0], [], [])
            part = os.read(0, 1 << 16)
            if not part:
                break
            received += part
    except OSError:
        return {}
    return _parsed(received) or {}


def _parsed(received: bytearray) -> dict[str, Any] | None:
    """Return the JSON object, None if it is none; in UTF-8, UTF-16 or UTF-32, with or without byte order marks."""
    encoding = json.detect_encoding(received)
    try:
        text = received.decode(encoding, "surrogatepass")
    except ValueError:
        text = received.decode(encoding, "replace").rstrip("\ufffd")
    try:
        event = json.loads(text.strip("\ufeff\x00 \t\r\n"))
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


class _Call:
    """One request to the daemon, and what follows from its answer."""

    def __init__(
        self, hook: harness_events.Hook, event: dict[str, Any], options: harness_events.Options, deadline: float
    ) -> None:
        self.hook = hook
        self.deadline = deadline
        self.harness = options.harness
        self.environ = dict(os.environ)
        self.workspace = daemon.workspace_of(self.environ, options.workspace)
        self.spool = Spool(self.workspace)
        self.address: daemon.Address | None = None
        self.no_address: daemon.NoAnswer | None = None
        try:
            self.address = daemon.find_daemon(self.environ, self.workspace)
        except daemon.NoAnswer as unknown:
            self.no_address = unknown
        named = self.address is not None and self.address.named
        self.destination = str(self.address) if named else ""
        """The URL of the daemon that this request is for; empty for the daemon of the workspace."""
        self.body = harness_events.request_of(hook, event, options)
        self.transcript = str(event.get("transcript_path") or "")
        self.has_mark = hook.path.endswith(daemon.PROMPT) and switches_off(harness_events.prompt_of(event))
        if self.has_mark:  # and nothing else of what was said
            self.body = switch_request(self.body)

    def run(self, output: _Output) -> None:
        switch = self._switch_off(self.hook.path, self.body) if self.has_mark else self._waiting_switch()
        wanted = switch is None and self.hook.durable and self.body.get(self.hook.needs)
        kept = self._keep() if wanted else None
        output.kept = kept is not None
        try:
            if self.address is None:
                raise self.no_address or daemon.NoAnswer("no daemon was found")
            address = self.address
            if switch is not None and not self.has_mark:
                self._deliver(address, switch)
            headers = daemon.headers_of(self.body, self.harness, self.environ, address)
            answer = daemon.post(address, self.hook.path, self.body, headers, self.deadline)
            if self.hook.injects and not isinstance(answer.get("inject"), str):
                raise daemon.NoAnswer(f"the program at {address} is not a Signet daemon", "Check SIGNET_DAEMON_URL.")
            if self.hook.durable and daemon.status_of_report(self.hook.path, self.body, answer) >= 500:
                raise daemon.NoAnswer(
                    f"the program at {address} did not say that it has the report", "Check `signet status`."
                )
        except daemon.NoAnswer as no_answer:
            self._report(output, no_answer, kept, switch)
            return
        output.answer(answer)
        try:
            if kept is not None:
                self.spool.remove(kept)
            if switch is not None and self.has_mark:
                if daemon.status_of_report(self.hook.path, self.body, answer) < 500:
                    self.spool.remove(switch)
                else:
                    self.spool.sync(switch)
                    if answer.get("engine") != "disabled":  # a later hook asks again
                        return
            if self.spool.due():
                self._drain(address)
        except OSError:
            return  # the answer is given; what waits is sent by a later hook

    def _report(self, output: _Output, no_answer: daemon.NoAnswer, kept: str | None, switch: str | None) -> None:
        """Print why there is no answer, and note what is to be known of the session when there is one again."""
        is_off = switch is not None
        if not is_off and "sessionKey" in self.body and is_in_transcript(self.body, self.transcript):
            is_off = True
            switch = self._switch_off(harness_events.HOOKS["checkpoint"].path, transcript_with_mark(self.body))
        output.kept = kept is not None and not is_off and no_answer.status not in FINAL_REFUSALS
        output.waiting, output.is_full = self._waiting()
        is_ours = no_answer.remedy == daemon.START_IT and not self.environ.get("SIGNET_DAEMON_URL")
        refusal = daemon.refused_start(self.workspace) if is_ours else ""
        if refusal:
            fix = "Correct it with `signet config edit`, then start the daemon with `signet start`."
            no_answer = daemon.NoAnswer(f"the daemon could not start: {refusal.rstrip('.')}", fix)
        if self.has_mark and "sessionKey" in self.body:
            output.tell(told(is_kept=switch is not None))
        elif is_off:
            no_answer = daemon.NoAnswer("the user has switched memory off for this session", "")
        is_told = output.report(no_answer)
        if kept is not None and is_off and is_told:
            self.spool.remove(kept)
        elif kept is not None and not is_off and not output.kept:
            self.spool.set_aside(kept)
        if switch is not None:
            self.spool.sync(switch)

    def _switch_off(self, path: str, request: dict[str, Any]) -> str | None:
        """Keep that memory is off for the session, until the daemon has it; return its name, None if it cannot be."""
        if "sessionKey" not in self.body:
            return None
        request = {**request, "idempotencyKey": f"hook-{os.urandom(16).hex()}"}
        try:
            return self.spool.switch_off(path, request, destination=self.destination, harness=self.harness)
        except OSError:
            return None

    def _waiting_switch(self) -> str | None:
        try:
            return self.spool.switch_of(self.body.get("sessionKey", ""))
        except OSError:
            return None

    def _deliver(self, address: daemon.Address, switch: str) -> None:
        """Have the daemon switch memory off for the session, before it hears more of that. Raises NoAnswer."""
        try:
            entry = self.spool.read(switch)
        except FileNotFoundError:  # another process has delivered it
            return
        path, body = entry["path"], entry["body"]
        answer = daemon.post(
            address, path, body, daemon.headers_of(body, self.harness, self.environ, address), self.deadline
        )
        if daemon.status_of_report(path, body, answer) >= 500:
            raise daemon.NoAnswer(f"the daemon at {address} did not switch memory off", "Check `signet status`.")
        if entry["destination"] == self.destination:
            self.spool.remove(switch)

    def _drain(self, address: daemon.Address) -> None:
        """Send what is due, in a process of its own: the harness waits for this one."""
        if os.fork():
            return
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        drain(self.spool, {self.destination: (address, self.environ)})

    def _keep(self) -> str | None:
        """Store the request, with a key of its own, until the daemon has it; return its name, None if it cannot be."""
        self.body.setdefault("idempotencyKey", f"hook-{os.urandom(16).hex()}")
        is_checkpoint = self.hook.path.endswith(daemon.CHECKPOINT)
        if self.hook.path.endswith((daemon.CHECKPOINT, "/session-end", "/compaction-complete")):
            now = time.time()
            self.body["capturedAt"] = (
                f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now * 1000) % 1000:03}Z"
            )
        try:
            return self.spool.put(
                self.hook.path,
                self.body,
                destination=self.destination,
                harness=self.harness,
                replaces=f"{self.body.get('agentId', '')}:{self.body.get('sessionKey', '')}" if is_checkpoint else "",
            )
        except (OSError, SpoolFull):
            return None

    def _waiting(self) -> tuple[int, bool]:
        try:
            return len(self.spool.waiting()), self.spool.is_full()
        except OSError:
            return 0, False


class _Output:
    """Standard output, which gets at most one text: the answer, a line that says why there is none, or nothing.

    ``kept``: the request is in the spool. ``waiting``: how many are, as far as it is known.
    """

    def __init__(self) -> None:
        self._once = _thread.allocate_lock()
        self._hook: harness_events.Hook | None = None
        self._event_name = self._harness = ""
        self._is_deferred = False
        self._event: dict[str, Any] = {}
        self._max_chars = 0
        self._as_json = False
        self.kept = False
        self.waiting = 0
        self.is_full = False

    def prepare(self, hook: harness_events.Hook, event: dict[str, Any], options: harness_events.Options) -> None:
        """Note for whom the output is. A harness that names its event reads JSON, any other caller plain text."""
        self._hook = hook
        self._harness = options.harness
        self._max_chars = harness_events.max_inject_chars(options.harness)
        self._as_json = options.as_json
        name = event.get("hook_event_name")
        self._event_name = name if isinstance(name, str) else ""
        self._is_deferred = hook.injects and harness_events.is_start_deferred(event, options.harness)
        self._event = event

    def end_at(self, limit_s: float) -> None:
        """End the process at the limit, with the line for a daemon that does not answer. Runs in its own thread."""
        time.sleep(limit_s)
        try:
            self.report(daemon.NoAnswer("it did not answer in time", "Check it with `signet status`."))
            time.sleep(EXIT_GRACE_S)  # the other thread may be writing
        finally:
            os._exit(0)

    def answer(self, answer: dict[str, Any]) -> None:
        assert self._hook is not None
        text = harness_events.text_for_agent(self._hook, answer, self._harness)
        if self._as_json or self._hook.answers:
            self._print(json.dumps(answer, ensure_ascii=False) + "\n")
        elif text:
            self._print(self._injection(text))
        else:
            self._print("")  # so that nothing else is said later

    def report(self, why: daemon.NoAnswer) -> bool:
        """Print why there is no answer, at the start of a session and to a caller that reads the answer.

        Other hooks print nothing: a harness would take the text for an answer to the prompt. Returns False if the
        caller has read another answer.
        """
        hook = self._hook
        if hook is None:
            return True
        if hook.answers:
            failure = {"error": f"{why}. {why.remedy}".rstrip(), "spooled": self.kept}
            return self._print(json.dumps(failure, ensure_ascii=False) + "\n")
        if hook.path.endswith("/session-start") or (self._is_deferred and harness_events.is_first_prompt(self._event)):
            line = f"Signet: no memory in this session, because {why}. {why.remedy}".rstrip()
            if self.waiting:
                line += f" {self.waiting} {'report waits' if self.waiting == 1 else 'reports wait'} for it"
                line += " (no more fit: the next ones are lost)." if self.is_full else "."
            is_visible = hook.path.endswith("/session-start")
            is_told = why.status not in NOT_PERMITTED  # rights are no matter of the model
            if is_told or (is_visible and self._event_name and self._harness != "cursor"):
                self._print(self._injection(line, visible=is_visible, is_told=is_told))
        return True

    def tell(self, text: str) -> None:
        """Print a text for the agent, which the user sees, too."""
        shown = self._injection(text, visible=not self._is_deferred)
        self._print(json.dumps({"inject": text}) + "\n" if self._as_json else shown)

    def _injection(self, text: str, *, visible: bool = False, is_told: bool = True) -> str:
        """Return the output that puts the text into the agent's context; ``visible``: the user sees it, too.

        Without ``is_told`` the user alone does.
        """
        text = fitted(text, self._max_chars, count_bytes=self._harness == "codex")
        if not self._event_name:
            return text + "\n"
        if self._harness == "cursor":
            goes_on = {} if self._event_name == "sessionStart" else {"continue": True}
            return json.dumps({**goes_on, "additional_context": text}) + "\n"
        output: dict[str, Any] = {"systemMessage": text} if visible else {}
        if not is_told or (visible and self._is_deferred):
            text = ""  # if it is deferred, the agent is told with the first prompt
        output["hookSpecificOutput"] = {"hookEventName": self._event_name, "additionalContext": text}
        return json.dumps(output) + "\n"

    def _print(self, text: str) -> bool:
        is_first = self._once.acquire(blocking=False)
        if is_first:
            _write(1, text.translate(CONTROLS))
        return is_first


def _write(descriptor: int, text: str) -> None:
    """Write the text. What is at the other end may be gone."""
    left = text.encode("utf-8", "replace")
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError:
        return
