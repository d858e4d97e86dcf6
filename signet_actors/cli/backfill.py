"""The command backfill: store the sessions that programs kept on this machine as transcripts.

Sessions are sent one at a time through the same operation as the hook at the end of a session, oldest first, with
pauses in between. Sending one again is harmless, because the daemon stores only the turns that it lacks.

Source: docs/guides/backfill.md; docs/guides/transcripts.md.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import click
import msgspec

from signet_actors.cli import presentation as output
from signet_actors.cli.connection import DaemonClient, DaemonReply, until_known
from signet_actors.cli.exit_codes import REFUSED
from signet_actors.cli.import_progress import cache_directory
from signet_actors.cli.invocation import HarnessName, Invocation, command
from signet_actors.cli.past_sessions import chat_export, line_files, opencode
from signet_actors.cli.past_sessions.line_files import Message, PastSession, Unreadable
from signet_actors.cli.tables import Column, print_records
from signet_actors.config.regular_file import read_regular
from signet_actors.domain.timestamps import epoch_ms, iso, local_time
from signet_actors.errors import ConfigError, ErrorCode, RequestRefused, SignetError
from signet_actors.runtime.file_draft import replace_file

SOURCES: Final[Mapping[str, Callable[[Mapping[str, str]], Iterator[PastSession]]]] = {
    "claude-code": line_files.claude_code,
    "codex": line_files.codex,
    "gemini": line_files.gemini,
    "qwen": line_files.qwen,
    "opencode": opencode.sessions,
}
PATH: Final = "/api/hooks/session-end"
PART_CHARS: Final = 512 * 1024
"""Text of one request, if the daemon does not read the file itself; far below the limit of a request's body."""
LONGEST_PAUSE_S: Final = 2.0
CLIENT_WAIT_S: Final = 120.0
SHOWN_LEFT_OUT: Final = 20


class Outcome(msgspec.Struct, rename="camel"):
    """What became of the sessions. ``left_out`` has those that were not stored, each with the reason."""

    stored: int = 0
    new_turns: int = 0
    nothing_new: int = 0
    unchanged: int = 0
    running: int = 0
    redacted: int = 0
    left_out: list[dict[str, str]] = []

    def leave_out(self, session: str, reason: str) -> None:
        self.left_out.append({"session": session, "reason": reason})


@command(agent=True)
@click.argument("sources", metavar="[SOURCE]...", nargs=-1, type=HarnessName(tuple(SOURCES)))
@click.option(
    "--export", metavar="FILE|DIR", type=click.Path(path_type=Path), help="conversations.json of Claude or ChatGPT."
)
@click.option("--since", metavar="TIME", type=output.SINCE, help="Only sessions that went on then or later.")
@click.option("--project", metavar="DIR", help="Only sessions in this directory or below.")
@click.option("--dry-run", is_flag=True, help="Show what would be stored, and store nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
def backfill(
    invocation: Invocation,
    sources: tuple[str, ...],
    export: Path | None,
    since: str | None,
    project: str | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Store the past sessions of your agents as transcripts.

    Reads what claude-code, codex, gemini, qwen and opencode (default: all of them) have kept on this machine, or an
    export of conversations. Secrets are removed before anything is stored. After an interruption, the same command
    continues; later it stores what is new. Exit code 1 if a session was left out.
    """
    if export is not None and sources:
        raise click.UsageError("`--export` reads a file; leave out the SOURCE")
    outcome = Outcome()
    sessions = _chosen(_found(invocation, sources, export, outcome), since, project)
    progress = BackfillProgress.read(invocation)
    waiting = progress.without_done(sessions)
    outcome.unchanged = len(sessions) - len(waiting)
    if dry_run:
        _show(invocation, waiting, outcome)
        return
    client = invocation.client(timeout_s=CLIENT_WAIT_S)
    client.retry_window_s = CLIENT_WAIT_S
    client.print_warnings = False
    if sessions and progress.is_outdated(client):
        waiting, outcome.unchanged = sessions, 0
    if waiting:
        running = {session.get("key") for session in client.request("GET", "/api/sessions").records("sessions")}
        _refuse_unless_wanted(waiting, client.agent, to_ask=not yes)
        outcome.running = sum(session.key in running for session in waiting)
        waiting = [session for session in waiting if session.key not in running]
        _store_all(client, waiting, outcome, progress, by_path=invocation.uses_workspace_daemon)
    _report(invocation, outcome)
    if outcome.left_out:
        click.get_current_context().exit(REFUSED)


def new_sessions(invocation: Invocation) -> list[PastSession]:
    """Return the sessions of all sources that were not stored yet; those that can be read."""
    found = _chosen(_found(invocation, (), None, Outcome()), None, None)
    return BackfillProgress.read(invocation).without_done(found)


def _found(
    invocation: Invocation, sources: Sequence[str], export: Path | None, outcome: Outcome
) -> Iterator[PastSession]:
    if export is not None:
        yield from chat_export.sessions(export)
        return
    for name in sources or SOURCES:
        try:
            yield from SOURCES[name](invocation.environ)
        except Unreadable as error:
            outcome.leave_out(name, str(error))


def _chosen(found: Iterator[PastSession], since: str | None, project: str | None) -> list[PastSession]:
    """Return the sessions that the options choose, oldest first; of a session that is there twice, the last state."""
    since_ms = None if since is None else epoch_ms(since)
    if since is not None and since_ms is None:
        raise click.BadParameter(f"{since!r} is no time such as 2026-01-31, `yesterday` or `last week`")
    below = None if project is None else Path(project).expanduser()
    directories = () if below is None else (Path(os.path.abspath(below)), Path(os.path.realpath(below)))
    sessions = {
        session.name: session
        for session in sorted(found, key=lambda session: (session.modified_ms, session.key))
        if (since_ms is None or session.modified_ms >= since_ms)
        and (below is None or any(map(session.is_below, directories)))
    }
    return list(sessions.values())


def _refuse_unless_wanted(sessions: Sequence[PastSession], agent: str | None, *, to_ask: bool) -> None:
    """Show what was found and ask whether to store it; raise RequestRefused if the answer is no."""
    if not to_ask:
        return
    for source, group in _grouped(sessions, lambda session: session.source).items():
        output.print_message(f"{source}: {output.counted(len(group), 'session')}, {_size(group)}, {_period(group)}")
    output.require_confirmation(
        f"Store {output.counted(len(sessions), 'session')} as transcripts of the agent {agent or 'default'}?",
        "nothing was stored",
    )


def _store_all(
    client: DaemonClient,
    sessions: Sequence[PastSession],
    outcome: Outcome,
    progress: BackfillProgress,
    *,
    by_path: bool,
) -> None:
    done = size = 0
    with output.progress_bar("stored", sum(session.size for session in sessions)) as advance:
        try:
            for number, session in enumerate(sessions):
                began = time.monotonic()
                _store(client, session, outcome, progress, by_path=by_path)
                done = number + 1
                size += session.size
                advance(size)
                if done < len(sessions):  # half of the time is left to the daemon's other callers
                    time.sleep(min(time.monotonic() - began, LONGEST_PAUSE_S))
        except (KeyboardInterrupt, SignetError):
            output.print_message(
                f"\nStopped after {done} of {output.counted(len(sessions), 'session')}; the same command continues."
            )
            raise
        finally:
            progress.write()


def _store(
    client: DaemonClient, session: PastSession, outcome: Outcome, progress: BackfillProgress, *, by_path: bool
) -> None:
    about = {
        "harness": session.source,
        "sessionKey": session.key,
        "project": session.project,
        "capturedAt": session.modified_at if session.modified_ms else None,
        "reason": "backfill",
    }

    def send(what: dict[str, Any]) -> DaemonReply:
        return until_known(lambda: client.send("POST", PATH, {**about, **what}))

    replies: list[DaemonReply] = []
    try:
        if by_path and session.path is not None:
            replies = [send({"transcriptPath": str(session.path)})]
        if not replies or _is_unread_path(replies[0]):
            replies = [send({"transcript": part}) for part in _parts(session.messages())]
    except Unreadable as error:
        outcome.leave_out(session.name, str(error))
        return
    except RequestRefused as error:
        if error.code not in (ErrorCode.PAYLOAD_TOO_LARGE, ErrorCode.INVALID_REQUEST):
            raise
        outcome.leave_out(session.name, error.detail)
        return
    skipped = next((reply for reply in replies if reply.body.get("skipped")), None)
    if skipped is not None:
        outcome.leave_out(session.name, str(skipped.body.get("reason")))
        return
    new_turns = sum(int(reply.body["newTurns"]) for reply in replies)
    outcome.new_turns += new_turns
    outcome.stored += new_turns > 0
    outcome.nothing_new += new_turns == 0
    outcome.redacted += any(reply.body.get("redacted") is True for reply in replies)
    progress.add(session, is_kept=any(reply.body.get("stored") is True for reply in replies))


def _is_unread_path(reply: DaemonReply) -> bool:
    """Return whether the daemon could not or may not read the file, as in a container."""
    return reply.body.get("skipped") is True and str(reply.body.get("reason")).startswith("transcriptPath")


def _parts(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """Yield the messages in parts that fit into a request. The daemon appends one to the other."""
    part: list[Message] = []
    chars = 0
    for message in messages:
        if part and chars + len(message["content"]) > PART_CHARS:
            yield part
            part, chars = [], 0
        part.append(message)
        chars += len(message["content"])
    if part:
        yield part


def _show(invocation: Invocation, sessions: Sequence[PastSession], outcome: Outcome) -> None:
    rows = [
        {
            "source": source,
            "project": project or None,
            "sessions": len(group),
            "bytes": sum(session.size for session in group),
            "oldest": iso(min(session.modified_ms for session in group)),
            "newest": iso(max(session.modified_ms for session in group)),
        }
        for (source, project), group in _grouped(sessions, lambda one: (one.source, one.project or "")).items()
    ]
    if invocation.as_json:
        output.print_json({"found": rows, "unchanged": outcome.unchanged, "leftOut": outcome.left_out})
        return
    print_records(FOUND, rows, none="There is nothing to store.")
    if sessions:
        output.print_message(f"{output.counted(len(sessions), 'session')}, {_size(sessions)}; nothing was stored")
    if outcome.unchanged:
        output.print_message(f"{output.counted(outcome.unchanged, 'session')} stored before")
    _print_left_out(outcome)


FOUND: Final = (
    "source",
    Column("project", wrap=True),
    Column("sessions", right=True),
    Column("size", "bytes", output.size_text, right=True),
    Column("newest", "newest", output.time_text, drop=1),
)


def _grouped(sessions: Sequence[PastSession], by: Callable[[PastSession], Any]) -> dict[Any, list[PastSession]]:
    groups: dict[Any, list[PastSession]] = defaultdict(list)
    for session in sessions:
        groups[by(session)].append(session)
    return dict(sorted(groups.items()))


def _size(sessions: Sequence[PastSession]) -> str:
    return output.size_text(sum(session.size for session in sessions))


def _period(sessions: Sequence[PastSession]) -> str:
    days = [f"{local_time(iso(session.modified_ms)).date()}" for session in sessions if session.modified_ms]
    if not days:
        return "of unknown date"
    return min(days) if min(days) == max(days) else f"{min(days)} to {max(days)}"


def _report(invocation: Invocation, outcome: Outcome) -> None:
    if invocation.as_json:
        output.print_json(msgspec.to_builtins(outcome))
        return
    _print_left_out(outcome)
    if outcome == Outcome():
        output.print_result("There is nothing to store.")
        return
    parts = [f"Stored {output.counted(outcome.stored, 'session')} ({output.counted(outcome.new_turns, 'new turn')})"]
    if outcome.nothing_new or outcome.unchanged:
        parts.append(f"{outcome.nothing_new + outcome.unchanged} had nothing new")
    if outcome.running:
        parts.append(f"{outcome.running} still running, which their own hooks store")
    if outcome.redacted:
        parts.append(f"secrets redacted in {outcome.redacted}")
    if outcome.left_out:
        parts.append(f"{len(outcome.left_out)} left out")
    output.print_result(", ".join(parts) + ".")


def _print_left_out(outcome: Outcome) -> None:
    for left in outcome.left_out[:SHOWN_LEFT_OUT]:
        output.print_message(output.one_line(f"left out: {left['session']}: {left['reason']}", 300))
    if len(outcome.left_out) > SHOWN_LEFT_OUT:
        output.print_message(f"… and {len(outcome.left_out) - SHOWN_LEFT_OUT} more")


_MAX_BYTES: Final = 64 * 1024 * 1024
_WRITE_S: Final = 2.0
_BEHIND_ALL: Final = 2**53 - 1
"""A cursor behind every turn: the reply says only whether there is a transcript."""


class _Saved(msgspec.Struct):
    """``done``: the stamp of each session that was stored; ``last``: the key of the one that was stored last."""

    done: dict[str, str] = {}
    last: str | None = None


class BackfillProgress:
    """The sessions of one agent that one daemon has. What cannot be read or written is forgotten: all is sent again."""

    def __init__(self, path: Path, saved: _Saved) -> None:
        self._path, self._saved = path, saved
        self._written_s = time.monotonic()
        self._is_reported = False

    @classmethod
    def read(cls, invocation: Invocation) -> BackfillProgress:
        """Return the progress of former runs."""
        daemon = invocation.url or (
            str(invocation.workspace) if invocation.uses_workspace_daemon else invocation.environ["SIGNET_DAEMON_URL"]
        )
        name = hashlib.sha256(f"{daemon}\0{invocation.agent}".encode("utf-8", "surrogateescape")).hexdigest()
        path = cache_directory(invocation.environ) / f"backfill-{name[:32]}.json"
        try:
            saved = msgspec.json.decode(read_regular(path, _MAX_BYTES), type=_Saved)
        except (ConfigError, OSError, msgspec.DecodeError):
            saved = _Saved()
        return cls(path, saved)

    def without_done(self, sessions: Sequence[PastSession]) -> list[PastSession]:
        return [session for session in sessions if self._saved.done.get(session.name) != session.stamp]

    def is_outdated(self, client: DaemonClient) -> bool:
        """Return whether the daemon lacks what was stored last (restored, replaced, erased), and begin anew then."""
        if self._saved.last is None:
            return False
        try:
            path = f"/api/sessions/{quote(self._saved.last, safe='')}/transcript"
            client.get(path, after=_BEHIND_ALL)
        except RequestRefused as error:
            if error.code is not ErrorCode.NOT_FOUND:
                raise
            self._saved = _Saved()
            return True
        return False

    def add(self, session: PastSession, *, is_kept: bool) -> None:
        """Add a session that the daemon has completely; ``is_kept``: there is a transcript, as something was said."""
        self._saved.done[session.name] = session.stamp
        self._saved.last = session.key if is_kept else self._saved.last
        if time.monotonic() - self._written_s > _WRITE_S:
            self.write()

    def write(self) -> None:
        """Save the progress."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._path, json.dumps(msgspec.to_builtins(self._saved)).encode(), durable=False)
        except OSError as error:
            if not self._is_reported:
                output.print_message(f"The progress cannot be saved in {self._path.parent} ({error.strerror}).")
            self._is_reported = True
        self._written_s = time.monotonic()
