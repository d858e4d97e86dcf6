"""The command dashboard: open the page at ``/`` in a browser. Source: docs/guides/dashboard.md."""

from __future__ import annotations

import webbrowser

import click

from signet_actors.cli.invocation import Invocation, command
from signet_actors.cli.presentation import print_json, print_message, print_result


@command()
@click.option("--print", "only_print", is_flag=True, help="Print the address instead of opening a browser.")
def dashboard(invocation: Invocation, only_print: bool) -> None:
    """Open the page of the daemon in a browser.

    Where the daemon needs a token (auth.mode, gateway.requireOwner), the address has a code that the page exchanges
    for one: it is valid once, for half a minute.
    """
    client = invocation.client(timeout_s=10)
    answer = client.send("POST", "/api/auth/page-code", {})
    code = answer.body.get("code")
    page = f"{client.address}/"
    address = f"{page}#/today?code={code}" if code else page
    if invocation.as_json:
        print_json({"url": address})
    elif only_print or not webbrowser.open(address):
        print_result(address)
    else:
        print_message(f"Opened {page}")
