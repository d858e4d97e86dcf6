"""The command search: find memories by their words alone.

Source: memory-api.txt "GET /memory/search"; docs/compatibility.md "Recall".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from signet_actors.cli.invocation import agent_option, project_option, shared_options
from signet_actors.cli.memory_rows import print_memories
from signet_actors.cli.presentation import on_terminal, print_message
from signet_actors.cli.reply import print_answer
from signet_actors.cli.tag_options import split_tags
from signet_actors.cli.times import SINCE, UNTIL

if TYPE_CHECKING:
    from signet_actors.cli.invocation import Invocation


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--limit", "-n", type=click.IntRange(1, 100), default=20, show_default=True, help="Maximum number of memories."
)
@click.option("--type", "type_", metavar="TYPE", help="Only memories of this type.")
@click.option("--tags", "-t", multiple=True, metavar="A,B", help="Only memories with any of these tags.")
@click.option("--who", help="Only memories of this author.")
@click.option("--since", metavar="TIME", type=SINCE, help="Created then or later (ISO time, date, `yesterday`, …).")
@click.option("--until", metavar="TIME", type=UNTIL, help="Created then or earlier (ISO time, date, `yesterday`, …).")
@project_option("Only memories of this project.")
@click.option("--scope", help="Only memories of this scope (default: those without a scope).")
@click.option("--pinned", is_flag=True, default=None, help="Only pinned memories.")
@click.option("--expression", is_flag=True, help="WORDS are an FTS5 expression, such as `deploy* NOT friday`.")
@agent_option
@shared_options
@click.pass_obj
def search(
    invocation: Invocation,
    words: tuple[str, ...],
    limit: int,
    type_: str | None,
    tags: tuple[str, ...],
    who: str | None,
    since: str | None,
    until: str | None,
    project: str | None,
    scope: str | None,
    pinned: bool | None,
    expression: bool,
    agent: str | None,
) -> None:
    """Find memories that contain all the words, best first.

    `signet recall` also finds those that say it in other words. On a pipe: score, id, type, created, tags and content,
    separated by tabs.
    """
    text = " ".join(words)
    answer = invocation.client().get(
        "/memory/search",
        q=text if expression else " ".join(f'"{word}"' for word in text.replace('"', " ").split()),
        limit=limit,
        type=type_,
        tags=",".join(split_tags(tags) or ()) or None,
        who=who,
        since=since,
        until=until,
        project=project,
        scope=scope,
        pinned=pinned,
        agentId=agent,
    )
    results = answer.records("results")
    if invocation.as_json:
        print_answer(answer)
    elif not results:
        print_message("Nothing found.")
    else:
        print_memories(results, scored=True)
        if on_terminal():
            more = "; there may be more (-n)" if len(results) == limit else ""
            print_message(f"{len(results)} found{more}")
