"""The command retention: run the periodic clean-up now.

Source: architecture.txt "Retention", "POST /api/repair/retention-sweep".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from signet_actors.cli.exit_codes import REFUSED
from signet_actors.cli.invocation import shared_options
from signet_actors.cli.presentation import on_terminal, one_line, print_message
from signet_actors.cli.reply import print_answer
from signet_actors.cli.tables import Column, print_table

if TYPE_CHECKING:
    from signet_actors.cli.invocation import Invocation


@click.group()
@shared_options
def retention() -> None:
    """Run the periodic clean-up now."""


@retention.command()
@click.option("--confirm-clock", is_flag=True, help="The clock of this machine is right: purge although it jumped.")
@shared_options
@click.pass_obj
def sweep(invocation: Invocation, confirm_clock: bool) -> None:
    """Purge data past its retention: deleted memories, history, finished jobs.

    After the clock has jumped, nothing is purged until the jump is confirmed with --confirm-clock.
    """
    body = {"confirmClock": True} if confirm_clock else {}
    answer = invocation.client(timeout_s=120).send("POST", "/api/repair/retention-sweep", body)
    answer.confirm("success", True, False)
    steps = answer.records("steps")
    if invocation.as_json:
        print_answer(answer)
        return
    print_table(
        ("step", Column("purged", right=True), ""),
        [(step.get("step"), step.get("count"), "more left" if step.get("more") else "") for step in steps],
    )
    if answer.body.get("message") and (on_terminal() or not answer.body["success"]):
        print_message(one_line(answer.body["message"]))
    if not answer.body["success"]:
        click.get_current_context().exit(REFUSED)
