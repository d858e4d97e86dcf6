"""The command repair: list what repairs would do, or run one. Source: docs/compatibility.md "Repair gate"."""

from __future__ import annotations

from typing import Final

import click

from signet_actors.cli.exit_codes import REFUSED
from signet_actors.cli.invocation import Invocation, command
from signet_actors.cli.presentation import on_terminal, one_line, print_message
from signet_actors.cli.tables import Column, print_records

ACTIONS: Final = (
    *("release-leases", "requeue-dead", "check-fts", "retention-sweep"),
    *("re-embed", "clean-orphans"),
)
BODIES: Final = {"check-fts": {"repair": True}}
COLUMNS: Final = (
    Column("action", "name"),
    Column("why", "reason", wrap=True),
    Column("", "recommended", lambda recommended: "" if recommended else "on request only"),
)


@command()
@click.argument("action", required=False, type=click.Choice(ACTIONS))
def repair(invocation: Invocation, action: str | None) -> None:
    """List what repairs would do, or run one.

    Without ACTION nothing is changed. On a pipe: action, reason, and `on request only` if the daemon's maintenance does
    not do it; separated by tabs. Exit code 1 if the repair was not done.
    """
    client = invocation.client(timeout_s=120)
    if action is None:
        answer = client.get("/api/repair")
        repairs = answer.records("repairs")
        if not invocation.has_printed(answer):
            print_records(COLUMNS, repairs, none="There is nothing to repair.")
            if repairs and on_terminal():
                print_message("Run one with: signet repair ACTION")
        return
    answer = client.send("POST", f"/api/repair/{action}", BODIES.get(action, {}))
    answer.confirm("success", True, False)
    if not invocation.has_printed(answer):
        print_message(one_line(answer.body["message"]))
    if not answer.body["success"]:
        click.get_current_context().exit(REFUSED)
