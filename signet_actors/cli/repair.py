"""The command repair: list what repairs would do, or run one. Source: docs/compatibility.md "Repair gate"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from signet_actors.cli.exit_codes import REFUSED
from signet_actors.cli.invocation import Invocation, command
from signet_actors.cli.presentation import counted, on_terminal, one_line, print_message, require_confirmation
from signet_actors.cli.tables import Column, print_fields, print_records

if TYPE_CHECKING:
    from signet_actors.cli.connection import DaemonClient

ACTIONS: Final = (
    *("release-leases", "requeue-dead", "check-fts", "retention-sweep"),
    *("re-embed", "clean-orphans", "deduplicate"),
)
BODIES: Final = {"check-fts": {"repair": True}}
COLUMNS: Final = (
    Column("action", "name"),
    Column("why", "reason", wrap=True),
    Column("", "recommended", lambda recommended: "" if recommended else "on request only"),
)


@command(agent=True)
@click.argument("action", required=False, type=click.Choice(ACTIONS))
@click.option("--yes", "-y", is_flag=True, help="Merge duplicates without a question.")
def repair(invocation: Invocation, action: str | None, yes: bool) -> None:
    """List what repairs would do, or run one.

    Without ACTION nothing is changed. `deduplicate` first lists the memories that it would merge, and asks. On a pipe:
    action, reason, and `on request only` if the daemon's maintenance does not do it; separated by tabs. Exit code 1 if
    the repair was not done.
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
    if action == "deduplicate" and not yes and not _wants_merging(client):
        return
    answer = client.send("POST", f"/api/repair/{action}", BODIES.get(action, {}))
    answer.confirm("success", True, False)
    if not invocation.has_printed(answer):
        print_message(one_line(answer.body["message"]))
    if not answer.body["success"]:
        click.get_current_context().exit(REFUSED)


def _wants_merging(client: DaemonClient) -> bool:
    """Print what would be merged, and return whether it is to be done. Raises RequestRefused without a yes."""
    answer = client.send("POST", "/api/repair/deduplicate", {"dryRun": True})
    pairs = answer.records("pairs")
    for pair in pairs:
        print_fields([("keep", pair["keptContent"]), ("merge", f"{pair['mergedContent']} ({pair['similarity']})")])
    if not pairs:
        print_message(one_line(answer.body["message"]))
        return False
    require_confirmation(f"Merge {counted(len(pairs), 'memory')}?", "nothing was merged")
    return True
