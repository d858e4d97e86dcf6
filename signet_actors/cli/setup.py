"""The command setup: ask which of the harnesses on this machine to connect.

Source: docs/cli.md "Harnesses".
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from signet_actors.cli.connect import NOT_CONNECTED, connect_one, state_of
from signet_actors.cli.harnesses.registry import HARNESSES
from signet_actors.cli.invocation import agent_option, shared_options
from signet_actors.cli.presentation import ask_confirmation, print_json, print_message, print_result, printable
from signet_actors.errors import ConfigError

if TYPE_CHECKING:
    from signet_actors.cli.invocation import Invocation


@click.command()
@agent_option
@shared_options
@click.pass_obj
def setup(invocation: Invocation, agent: str | None) -> None:
    """Ask which of the harnesses on this machine to connect, and connect them.

    Without a terminal it asks nothing and changes nothing: it lists the harnesses that were found.
    """
    found = [harness for harness in HARNESSES if harness.is_found(invocation.environ)]
    states = {harness.name: state_of(harness, invocation) for harness in found}
    if invocation.as_json:
        print_json({"harnesses": [{"harness": name, "state": state} for name, state in states.items()]})
        return
    if not found:
        print_result("None of the harnesses that `signet connect` knows was found on this machine.")
    for harness in found:
        path = printable(str(harness.settings(invocation.environ).path))
        if states[harness.name] != NOT_CONNECTED:
            print_result(f"{harness.title}: {printable(states[harness.name])} ({path}).")
        elif not can_ask():
            print_result(f"{harness.title}: not connected ({path}). `signet connect {harness.name}` connects it.")
        elif ask_confirmation(
            f"Connect {harness.title} ({path})?", instead=f"`signet connect {harness.name}` connects it"
        ):
            try:
                connect_one(invocation, harness, None, agent)
            except ConfigError as error:  # the others can be connected all the same
                print_message(printable(error.detail))


def can_ask() -> bool:
    """Return whether a question can be asked and answered: on a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()
