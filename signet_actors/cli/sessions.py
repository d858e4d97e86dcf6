"""The command sessions, and what show prints of a session: what was said in the past.

Source: docs/guides/transcripts.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import click

from signet_actors.cli.invocation import command, page_options, project_option
from signet_actors.cli.memory_ids import UnusableId
from signet_actors.cli.memory_rows import project_name, short_ids
from signet_actors.cli.presentation import (
    cell_count,
    counted,
    emphasised,
    on_terminal,
    one_line,
    print_message,
    printable,
    terminal_width,
    wrap,
    wrap_parts,
)
from signet_actors.cli.reply import print_answer
from signet_actors.cli.tables import print_fields, print_wrapped
from signet_actors.cli.times import full_time_text, time_text
from signet_actors.errors import RequestRefused

if TYPE_CHECKING:
    from signet_actors.cli.connection import DaemonClient
    from signet_actors.cli.invocation import Invocation

PAST: Final = "/api/sessions/past"
SHOWN_PROMPT_CHARS: Final = 160
SHOWN_CANDIDATES: Final = 10


@command(agent=True)
@project_option("Only sessions of this project.")
@page_options(200, "sessions")
def sessions(invocation: Invocation, project: str | None, limit: int, offset: int) -> None:
    """List past sessions, the latest first.

    `signet show SESSION` prints what was said. On a pipe: session, time, harness, project, turns, first prompt and
    summary, separated by tabs.
    """
    answer = invocation.client().get(PAST, project=project, limit=limit, offset=offset or None)
    found = answer.records("sessions")
    if invocation.as_json:
        print_answer(answer)
        return
    if not found:
        print_message(f"There are no {'more ' * bool(offset)}sessions{' of this project' * bool(project)}.")
        return
    if not on_terminal():
        names = ("sessionKey", "updatedAt", "harness", "project", "turns", "prompt", "summary")
        for row in found:
            click.echo("\t".join(one_line(row.get(name)) for name in names))
        return
    times = [time_text(row.get("updatedAt")) for row in found]
    for row, when, key in zip(found, times, short_ids([{"id": row.get("sessionKey")} for row in found]), strict=True):
        lead = when.ljust(max(map(len, times)) + 2)
        prompt = one_line(row.get("prompt"), SHOWN_PROMPT_CHARS) or "(no prompt)"
        print_wrapped(prompt, lead=lead, indent=len(lead))
        if row.get("summary"):
            print_wrapped(
                f"→ {one_line(row['summary'], SHOWN_PROMPT_CHARS)}", lead=" " * len(lead), indent=len(lead) + 2
            )
        about = (key, one_line(row.get("harness")), project_name(row), counted(row.get("turns"), "turn"))
        for line in wrap_parts(map(one_line, about), terminal_width() - len(lead)):
            click.echo(" " * len(lead) + line)
    total = answer.body.get("total", offset + len(found))
    page = f"{offset + 1}-{offset + len(found)} of " if total != len(found) else ""
    after = offset + len(found)
    rest = f"more with `--offset {after}`; " if after < total else ""
    print_message(f"{page}{counted(total, 'session')}; {rest}" + invocation.advice("`signet show SESSION` prints one"))


def find_session(client: DaemonClient, given: str) -> str | None:
    """Return the key of the session that begins with ``given``, or None. Raises UnusableId if several do."""
    try:
        found = client.get(PAST, prefix=given, limit=SHOWN_CANDIDATES + 1).records("sessions")
    except RequestRefused:  # the caller may not list them, or the daemon is older
        return None
    keys = [str(row.get("sessionKey")) for row in found]
    if given in keys:
        return given
    if len(keys) > 1:
        listed = [f"  {one_line(row.get('sessionKey'))}  {one_line(row.get('prompt'), 60)}" for row in found]
        raise UnusableId("\n".join([f"several sessions begin with {one_line(given)}:", *listed[:SHOWN_CANDIDATES]]))
    return keys[0] if keys else None


def print_session(invocation: Invocation, client: DaemonClient, key: str) -> None:
    """Print what was said in the session."""
    path = f"/api/sessions/{quote(key, safe='')}/transcript"
    answer = client.get(path, view="turns")
    if invocation.as_json:
        print_answer(answer)
        return
    body: dict[str, Any] = answer.body
    print_fields(
        (
            ("session", body.get("sessionKey")),
            ("harness", body.get("harness")),
            ("project", body.get("project")),
            ("last change", full_time_text(body.get("updatedAt"))),
            ("turns", body.get("turnCount")),
        )
    )
    while True:
        for turn in answer.records("turns"):
            at = time_text(turn.get("at")) if turn.get("at") else ""
            click.echo(f"\n{emphasised(str(turn.get('role') or '').capitalize())}{f' ({at})' if at else ''}")
            click.echo(_wrapped(printable(str(turn.get("content") or ""))))
        after = answer.body.get("nextCursor")
        if after is None:
            return
        answer = client.get(path, view="turns", after=after)


def _wrapped(text: str) -> str:
    """Return the text with its lines that do not fit on the terminal broken between words."""
    if not on_terminal():
        return text
    width = terminal_width()
    lines = (wrap(line, width) if cell_count(line) > width else [line] for line in text.split("\n"))
    return "\n".join(part for parts in lines for part in parts)
