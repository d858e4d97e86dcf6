"""The command recall: find memories that answer a question, best first.

Source: memory-api.txt "POST /api/memory/recall"; docs/compatibility.md "Real clients: command line".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from signet_actors.cli.invocation import agent_option, project_option, shared_options
from signet_actors.cli.memory_ids import full_id
from signet_actors.cli.memory_rows import ANSWERS, TURN, print_memories, print_rule, relevance_of
from signet_actors.cli.presentation import on_terminal, print_message
from signet_actors.cli.reply import print_answer
from signet_actors.cli.tag_options import split_tags
from signet_actors.cli.times import SINCE, UNTIL

if TYPE_CHECKING:
    from signet_actors.cli.invocation import Invocation
    from signet_actors.cli.reply import DaemonReply


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
@click.option("--all", "everything", is_flag=True, help="Show also results below relevance 0.5 on a terminal.")
@click.option("--turns", is_flag=True, help="Only what was said in past sessions.")
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
    everything: bool,
    turns: bool,
    explain: bool | None,
    explain_id: str | None,
    agent: str | None,
) -> None:
    """Find memories that answer a question.

    QUERY is a question in plain words, an identifier, or both. The number before a result is its relevance: from 0.5
    on it most likely answers. A terminal shows only these, and then what was said in past sessions.

    On a pipe: relevance, id, type, created, tags and content, separated by tabs.
    """
    if turns and type_:
        raise click.UsageError("give --turns or --type, not both")
    client = invocation.client()
    answer = client.ask(
        "/api/memory/recall",
        {
            "query": " ".join(query),
            "limit": limit,
            "type": TURN if turns else type_,
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
    elif not on_terminal():
        print_memories(results, scored=True)
    else:
        is_all = everything or min_relevance is not None or min_score is not None
        _print_found(answer, " ".join(query), limit, everything=is_all)
    if explained:
        from signet_actors.cli.explanations import print_explained_id  # noqa: PLC0415 - only to explain

        print_explained_id(explained)


def _print_found(answer: DaemonReply, query: str, limit: int, *, everything: bool) -> None:
    """Print the memories that answer, then turns of sessions; the others only if ``everything`` is to be shown."""
    results = answer.records("results")
    more = "; there may be more (-n)" if len(results) == limit else ""
    if results[0].get("subject_type"):  # of a timeline, in which every entry lies in the time that was asked for
        print_memories(results, lead="temporal_start_at")
        print_message(f"{len(results)} found{more}")
        return
    answering = [row for row in results if relevance_of(row) >= ANSWERS]
    answering.sort(key=lambda row: row.get("type") == TURN)
    others = [row for row in results if relevance_of(row) < ANSWERS]
    print_memories(answering, lead="relevance", asked=query)
    if others and everything:
        if answering:
            print_rule("probably not about this")
        print_memories(others, lead="relevance", asked=query)
    timings = (answer.body.get("meta") or {}).get("timings") or {}
    took = f" in {timings['totalMs']:.1f} ms" if isinstance(timings.get("totalMs"), int | float) else ""
    by_words = ", by words alone" if answer.body.get("method") == "keyword" else ""
    hidden = f"; {len(others)} below: add --all" if others and not everything else ""
    print_message(
        f"{len(answering) or 'Nothing'} found with relevance {ANSWERS} or more{took}{by_words}{hidden or more}"
    )
