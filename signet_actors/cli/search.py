"""The command search: find memories by their words alone.

Source: memory-api.txt "GET /memory/search"; docs/compatibility.md "Recall".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from signet_actors.cli.invocation import agent_option, shared_options
from signet_actors.cli.memory_rows import print_memories
from signet_actors.cli.presentation import on_terminal, print_message
from signet_actors.cli.reply import print_answer
from signet_actors.cli.tag_options import filter_options, query_of

if TYPE_CHECKING:
    from signet_actors.cli.invocation import Invocation


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--limit", "-n", type=click.IntRange(1, 100), default=20, show_default=True, help="Maximum number of memories."
)
@filter_options
@click.option("--expression", is_flag=True, help="WORDS are an FTS5 expression, such as `deploy* NOT friday`.")
@agent_option
@shared_options
@click.pass_obj
def search(
    invocation: Invocation,
    words: tuple[str, ...],
    limit: int,
    only: dict[str, Any],
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
        agentId=agent,
        **query_of(only),
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
