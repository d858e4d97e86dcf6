"""The command recall: find memories that answer a question, best first.

Source: memory-api.txt "POST /api/memory/recall"; docs/compatibility.md "Real clients: command line".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from signet_actors.cli.invocation import agent_option, project_option, shared_options
from signet_actors.cli.memory_ids import full_id
from signet_actors.cli.presentation import on_terminal, print_message
from signet_actors.cli.reply import print_answer
from signet_actors.cli.tables import print_memories
from signet_actors.cli.tag_options import split_tags
from signet_actors.cli.times import SINCE, UNTIL

if TYPE_CHECKING:
    from signet_actors.cli.invocation import Invocation


@click.command()
@click.argument("query", nargs=-1, required=True)
@click.option(
    "--limit", "-n", type=click.IntRange(1, 100), default=10, show_default=True, help="Maximum number of memories."
)
@click.option("--type", "type_", metavar="TYPE", help="Only memories of this type.")
@click.option("--tags", "-t", multiple=True, metavar="A,B", help="Only memories with any of these tags.")
@click.option("--who", help="Only memories of this author.")
@click.option("--since", metavar="TIME", type=SINCE, help="Created then or later (ISO time, date, `yesterday`, …).")
@click.option("--until", metavar="TIME", type=UNTIL, help="Created then or earlier (ISO time, date, `yesterday`, …).")
@project_option("Only memories of this project.")
@click.option("--scope", help="Only memories of this scope (default: those without a scope).")
@click.option("--pinned", is_flag=True, default=None, help="Only pinned memories.")
@click.option("--importance-min", type=click.FloatRange(0, 1), help="Minimum importance, from 0 to 1.")
@click.option("--min-score", type=click.FloatRange(0, 1), help="Drop results below this score.")
@click.option("--min-relevance", type=click.FloatRange(0, 1), help="Drop results below this relevance.")
@click.option("--explain", is_flag=True, default=None, help="Tell how the score of each result came about.")
@click.option("--explain-id", metavar="ID", help="Tell why the memory with this id is there or not.")
@agent_option
@shared_options
@click.pass_obj
def recall(
    invocation: Invocation,
    query: tuple[str, ...],
    limit: int,
    type_: str | None,
    tags: tuple[str, ...],
    who: str | None,
    since: str | None,
    until: str | None,
    project: str | None,
    scope: str | None,
    pinned: bool | None,
    importance_min: float | None,
    min_score: float | None,
    min_relevance: float | None,
    explain: bool | None,
    explain_id: str | None,
    agent: str | None,
) -> None:
    """Find memories that answer a question.

    QUERY is a question in plain words, an identifier, or both. On a pipe: score, id, type, created, tags and
    content, separated by tabs.
    """
    client = invocation.client()
    answer = client.ask(
        "/api/memory/recall",
        {
            "query": " ".join(query),
            "limit": limit,
            "type": type_,
            "tags": split_tags(tags),
            "who": who,
            "since": since,
            "until": until,
            "project": project,
            "scope": scope,
            "pinned": pinned,
            "importance_min": importance_min,
            "min_score": min_score,
            "min_relevance": min_relevance,
            "explain": explain,
            "explainId": explain_id and full_id(client, explain_id, agent=agent),
            "agentId": agent,
        },
    )
    results = answer.records("results")
    if invocation.as_json:
        print_answer(answer)
        return
    explained = answer.body.get("explained")
    if not results:
        print_message("Nothing found.")
    elif explain:
        from signet_actors.cli.explanations import print_explained_results  # noqa: PLC0415 - only to explain

        print_explained_results(results)
    else:
        print_memories(results, scored=True)
    if explained:
        from signet_actors.cli.explanations import print_explained_id  # noqa: PLC0415 - only to explain

        print_explained_id(explained)
    if results and on_terminal():
        timings = (answer.body.get("meta") or {}).get("timings") or {}
        took = f" in {timings['totalMs']:.1f} ms" if isinstance(timings.get("totalMs"), int | float) else ""
        print_message(f"{len(results)} found{took} ({answer.body.get('method')})")
