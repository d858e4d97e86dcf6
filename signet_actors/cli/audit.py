"""The command audit: what was changed, exported or denied, and whether the log of it is whole.

Source: docs/operations.md "Audit log".
"""

from __future__ import annotations

from typing import Any, Final

import click

from signet_actors.cli.exit_codes import REFUSED
from signet_actors.cli.invocation import Invocation, command, page_options
from signet_actors.cli.presentation import SINCE, counted, time_text
from signet_actors.cli.tables import Column, print_records

KINDS: Final = ("denied", "change", "export", "configuration", "restore", "more")


def _subject(event: dict[str, Any]) -> str:
    """Return what the event is about: an operation, or the names of configuration keys."""
    detail = event.get("detail") or {}
    return detail.get("operation") or ", ".join(detail.get("keys") or ()) or detail.get("reason") or ""


def _rest(event: dict[str, Any]) -> str:
    detail = event.get("detail") or {}
    return ", ".join(f"{name} {value}" for name, value in detail.items() if name not in {"operation", "keys", "reason"})


COLUMNS: Final = (
    Column("number", "seq", right=True, drop=2),
    Column("when", "createdAt", time_text),
    "kind",
    Column("by", "actor", wrap=True),
    "outcome",
    Column("times", "count", right=True, drop=1),
    Column("what", form=_subject, wrap=True),
    Column("detail", form=_rest, wrap=True, drop=3),
)


@command()
@click.option("--kind", type=click.Choice(KINDS), help="Only events of this kind.")
@click.option("--since", metavar="TIME", type=SINCE, help="Recorded then or later (ISO time, date, `yesterday`, …).")
@page_options(1000, "events")
@click.option("--verify", is_flag=True, help="Check that no row was changed or removed.")
def audit(invocation: Invocation, kind: str | None, since: str | None, limit: int, offset: int, verify: bool) -> None:
    """Show what was changed, exported or denied, newest first.

    On a pipe: number, when, kind, by, outcome, times, what, detail; separated by tabs. With --verify: exit code 1 if a
    row was changed or is missing.
    """
    if verify:
        _verify(invocation)
        return
    answer = invocation.client().get("/api/audit", kind=kind, since=since, limit=limit, offset=offset or None)
    events = answer.records("events")
    if not invocation.has_printed(answer):
        print_records(COLUMNS, events, none="Nothing was recorded.")


def _verify(invocation: Invocation) -> None:
    """Have the daemon check the log, part by part, and print the result."""
    client, rows, after = invocation.client(), 0, None
    while True:
        answer = client.get("/api/audit/verify", after=after)
        answer.confirm("intact", True, False)
        rows += answer.body["rows"]
        after, broken_at = answer.body.get("next"), answer.body.get("brokenAt")
        if after is None:
            break
    found = f"The log is intact: {counted(rows, 'row')}."
    if broken_at is not None:
        found = f"Row {broken_at} was changed or is missing; the {counted(rows, 'row')} before it fit."
    invocation.print_done({"intact": broken_at is None, "rows": rows, "brokenAt": broken_at}, found)
    if broken_at is not None:
        click.get_current_context().exit(REFUSED)
