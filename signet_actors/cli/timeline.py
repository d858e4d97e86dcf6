"""The command timeline: what happened to a memory or an entity. Source: docs/compatibility.md "Timeline"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import click

from signet_actors.cli.connection import print_answer
from signet_actors.cli.graph import entity_named
from signet_actors.cli.invocation import Invocation, command, page_options
from signet_actors.cli.presentation import one_line, print_message, time_text
from signet_actors.cli.tables import Column, print_records


def _details(details: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {one_line(value, 100)}" for name, value in details.items())


COLUMNS: Final = (
    Column("when", "timestamp", time_text),
    "source",
    "event",
    Column("details", "details", _details, wrap=True),
)


@command(agent=True)
@click.argument("named", metavar="ID")
@page_options(1000, "events", default=200)
@click.option("--newest", is_flag=True, help="The newest event first.")
@click.option("--export", "whole", is_flag=True, help="Print all events as JSON.")
def timeline(invocation: Invocation, named: str, limit: int, offset: int, newest: bool, whole: bool) -> None:
    """Show what happened to a memory or an entity, sessions and jobs included.

    ID is that of a memory, or the id or name of an entity. On a pipe: time, source, event, details; separated by tabs.
    """
    client = invocation.client()
    if "/" in named:  # no part of a path: a name such as C++ / Qt
        named = entity_named(client, named)["id"]
    path = f"/api/timeline/{quote(named, safe='')}"
    if whole:
        print_answer(client.get(f"{path}/export"))
        return
    answer = client.get(path, limit=limit, offset=offset, order="desc" if newest else None)
    events = answer.records("events")
    if invocation.has_printed(answer):
        return
    print_records(COLUMNS, events, none="There are no events.")
    if answer.body.get("hasMore"):
        print_message(f"There are more: `--offset {offset + len(events)}`.")
