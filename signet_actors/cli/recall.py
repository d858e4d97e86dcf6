"""The commands recall, best results first, with the reasons for them, and search, by words alone.

Source: memory-api.txt "POST /api/memory/recall", "GET /memory/search"; docs/compatibility.md "Recall",
"Real clients: command line".
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click

from signet_actors.cli.connection import DaemonReply, print_answer
from signet_actors.cli.invocation import Invocation, command, filter_options, page_options, query_of
from signet_actors.cli.memory_rows import ANSWERS, TURN, full_id, print_memories, print_rule, relevance_of, short_ids
from signet_actors.cli.presentation import emphasised, on_terminal, one_line, print_message
from signet_actors.cli.tables import print_fields, print_wrapped

RECALL: Final = "/api/memory/recall"
MOST_ROWS: Final = 100
LEAD: Final = "temporal_start_at"
_NO_ANSWER: Final = {
    "router_unavailable": "No language model can be asked now: `signet providers` says why.",
    "synthesis_failed": "The language model gave no answer from what was found. Try again, or without --aggregate.",
}
MORE: Final = "; there may be more (-n)"


@command(agent=True)
@click.argument("query", nargs=-1, required=True)
@page_options(100, "memories", default=10, offset=False)
@filter_options
@click.option("--importance-min", type=click.FloatRange(0, 1), help="Minimum importance, from 0 to 1.")
@click.option("--min-score", type=click.FloatRange(0, 1), help="Drop results below this score.")
@click.option("--min-relevance", type=click.FloatRange(0, 1), help="Drop results below this relevance.")
@click.option("--all", "everything", is_flag=True, help="Show also results below relevance 0.5 on a terminal.")
@click.option("--turns", is_flag=True, help="Only what was said in past sessions.")
@click.option("--aggregate", is_flag=True, help="One answer that a language model makes from the memories.")
@click.option(
    "--budget", type=click.Choice(("small", "medium", "large")), help="Of --aggregate: at most 3, 5, 8 searches."
)
@click.option("--no-save", is_flag=True, help="Do not store the answer of --aggregate.")
@click.option("--explain", is_flag=True, default=None, help="Tell how the score of each result came about.")
@click.option("--explain-id", metavar="ID", help="Tell why the memory with this id is there or not.")
def recall(
    invocation: Invocation,
    query: tuple[str, ...],
    limit: int,
    only: dict[str, Any],
    everything: bool,
    turns: bool,
    explain_id: str | None,
    aggregate: bool,
    budget: str | None,
    no_save: bool,
    **given: Any,
) -> None:
    """Find memories that answer a question.

    QUERY is a question in plain words, an identifier, or both. The number before a result is its relevance: from 0.5
    on it most likely answers. A terminal shows only these, and then what was said in past sessions.

    On a pipe: relevance, id, type, created, tags and content, separated by tabs.
    """
    if turns and only["type"]:
        raise click.UsageError("give --turns or --type, not both")
    client = invocation.client()
    explain_id = explain_id and full_id(client, explain_id)
    asked = {"query": " ".join(query), "limit": limit, **only, **given, "explainId": explain_id}
    if turns:
        asked["type"] = TURN
    if aggregate:
        asked |= {"aggregate": True, "aggregateBudget": budget, "saveAggregate": not no_save}
    elif budget or no_save:
        raise click.UsageError("--budget and --no-save need --aggregate")
    answer = client.ask(RECALL, asked)
    results = answer.records("results")
    if invocation.has_printed(answer):
        return
    explained = answer.body.get("explained")
    if aggregate and (not results or on_terminal()):
        _print_aggregate(answer)
    elif not results:
        print_message("Nothing found.")
    elif given["explain"]:
        print_explained_results(results)
    elif not on_terminal():
        print_memories(results, scored=True)
    else:
        is_all = everything or given["min_relevance"] is not None or given["min_score"] is not None
        if results[0].get("subject_type"):  # a timeline, in which every entry lies in the time that was asked for
            if (everything or not is_all) and len(results) == limit and any(map(_is_imported, results)):
                all_rows = client.ask(RECALL, {**asked, "limit": MOST_ROWS}).records("results")
                results = [*filter(_is_session, results), *(row for row in all_rows if not _is_session(row))]
            _print_timeline(results, limit, everything=is_all)
        else:
            _print_found(answer, " ".join(query), limit, everything=is_all)
    if explained:
        print_explained_id(explained)


def _print_aggregate(answer: DaemonReply) -> None:
    """Print an answer that was made from several memories, and which they are; or why there is none."""
    ended = answer.body.get("aggregate") or {}
    for row in answer.records("results"):
        print_wrapped(str(row.get("content")))
        sources = short_ids([{"id": source} for source in ended.get("sourceMemoryIds") or []])
        saved = f"; saved as {short_ids([row])[0]}" if ended.get("saved") else ""
        print_message(f"made from {', '.join(sources)}{saved}")
        return
    print_message(_NO_ANSWER.get(str(ended.get("stoppedReason")), "Nothing found."))


def _print_found(answer: DaemonReply, query: str, limit: int, *, everything: bool) -> None:
    """Print the memories that answer, then turns of sessions; the others only if ``everything`` is to be shown."""
    beside = [row for row in answer.records("results") if row.get("supplementary_reason")]
    results = [row for row in answer.records("results") if not row.get("supplementary_reason")]
    more = MORE if len(results) == limit else ""
    answering = _in_order([row for row in results if relevance_of(row) >= ANSWERS])
    others = _in_order([row for row in results if relevance_of(row) < ANSWERS])
    print_memories(answering, lead="relevance", asked=query)
    if others and everything:
        if answering:
            print_rule("probably not about this")
        print_memories(others, lead="relevance", asked=query)
    if beside:
        print_rule("beside these: rules of what you name, and reasons")
        print_memories(beside, asked=query)
    timings = (answer.body.get("meta") or {}).get("timings") or {}
    took = f" in {timings['totalMs']:.1f} ms" if isinstance(timings.get("totalMs"), int | float) else ""
    by_words = ", by words alone" if answer.body.get("method") == "keyword" else ""
    hidden = f"; {len(others)} below: add --all" if others and not everything else ""
    print_message(
        f"{len(answering) or 'Nothing'} found with relevance {ANSWERS} or more{took}{by_words}{hidden or more}"
    )


def _in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows by the number that is shown, memories before turns.

    A newer memory that the ranking put before an older one with a higher number stays there, and is marked.
    """
    from signet_actors.domain.versions import are_versions  # noqa: PLC0415 - only for results

    numbers = [round(relevance_of(row), 2) for row in rows]
    placed = []
    for at, row in enumerate(rows):
        older = [
            (numbers[later], str(other["id"]))
            for later, other in enumerate(rows[at + 1 :], at + 1)
            if numbers[later] > numbers[at]
            and TURN not in {row.get("type"), other.get("type")}
            and (
                other.get("newer_id") == row["id"]
                or (
                    str(row.get("created_at")) > str(other.get("created_at"))
                    and are_versions(str(row.get("content")), str(other.get("content")))
                )
            )
        ]
        number, older_id = max(older, default=(numbers[at], ""))
        placed.append((number, {**row, "older_id": older_id}))
    placed.sort(key=lambda each: (each[1].get("type") == TURN, -each[0]))
    return [row for _, row in placed]


def _print_timeline(rows: list[dict[str, Any]], limit: int, *, everything: bool) -> None:
    """Print what happened at a time; of the notes that were imported then one line unless ``everything`` is wanted."""
    imported = [] if everything else list(filter(_is_imported, rows))
    found, more = len(rows), MORE if len(rows) == limit else ""
    if len(imported) > 1:
        places = sorted({os.path.basename(os.path.dirname(str(row["source_path"]))) for row in imported})
        told = f" from {places[0]}" if len(places) == 1 and places[0] else ""
        many = " or more" if found >= MOST_ROWS else ""
        rows = [row for row in rows if not _is_imported(row)][:limit]
        about = {"content": f"{len(imported)}{many} notes imported{told} (--all lists them)", "subject_type": "memory"}
        found, more = len(rows) + len(imported), ""
        rows.append({**about, LEAD: imported[0].get(LEAD)})
    print_memories(rows, lead=LEAD)
    print_message(f"{found} found{more}")


def _is_imported(row: dict[str, Any]) -> bool:
    """Return whether an entry of a timeline is a note that was imported then."""
    from signet_actors.domain.memories import is_imported  # noqa: PLC0415 - only for a list of times

    path = row.get("source_path")
    return bool(path) and is_imported(row.get("source_type"), path) and row.get("temporal_facet") == "captured"


def _is_session(row: dict[str, Any]) -> bool:
    return row.get("subject_type") == "session"


@command(agent=True)
@click.argument("words", nargs=-1, required=True)
@page_options(100, "memories", offset=False)
@filter_options
@click.option("--expression", is_flag=True, help="WORDS are an FTS5 expression, such as `deploy* NOT friday`.")
def search(invocation: Invocation, words: tuple[str, ...], limit: int, only: dict[str, Any], expression: bool) -> None:
    """Find memories that contain all the words, best first.

    `signet recall` also finds those that say it in other words. On a pipe: score, id, type, created, tags and content,
    separated by tabs.
    """
    text = " ".join(words)
    answer = invocation.client().get(
        "/memory/search",
        q=text if expression else " ".join(f'"{word}"' for word in text.replace('"', " ").split()),
        limit=limit,
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
            print_message(f"{len(results)} found{MORE if len(results) == limit else ''}")


_SCALES = {"keyword": "BM25 {:.2f}", "hint": "{:.2f} of the best match of words", "vector": "cosine {:.3f}"}


def print_explained_results(results: Sequence[Mapping[str, Any]]) -> None:
    """Print each result in a line, and below it how its score came about."""
    for rank, (row, id_) in enumerate(zip(results, short_ids(results), strict=True), start=1):
        if rank > 1:
            click.echo()
        print_wrapped(one_line(row.get("content"), 90), indent=3, lead=emphasised(f"{rank}. "))
        click.echo(f"   {id_ if on_terminal() else one_line(row.get('id'))}")
        _print_explanation(row.get("explanation"))


def print_explained_id(explained: Mapping[str, Any]) -> None:
    """Print what became of the memory that the command names; on a pipe to standard error, apart from the rows."""
    with contextlib.nullcontext() if on_terminal() else contextlib.redirect_stdout(sys.stderr):
        print_wrapped(f"{explained.get('id')}: {explained.get('why')}", indent=2)
        _print_explanation(explained.get("explanation"))


def _print_explanation(explanation: Mapping[str, Any] | None) -> None:
    if explanation:
        for sentence in explanation.get("because", ()):
            print_wrapped(one_line(sentence), indent=3, lead="   ")
        print_fields(_numbers(explanation), indent=3)


def _numbers(explanation: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "found by", ", ".join(_leg(leg) for leg in explanation["legs"]) or "context or date alone"
    moves = [f"{move['points']:+.3f} {move['stage'].replace('_', ' ')}" for move in explanation["moves"]]
    yield (
        "score",
        " ".join([f"{explanation['base']:.3f} by words and meaning", *moves, f"= {explanation['score']:.3f}"]),
    )
    standing = explanation["standing"]
    meaning = "" if standing is None else f", {standing:+.1f} spreads from unrelated memories"
    yield "relevance", f"{explanation['relevance']:.3f}: {explanation['coverage']:.0%} of the words by weight{meaning}"


def _leg(leg: Mapping[str, Any]) -> str:
    scale = _SCALES.get(leg["leg"], "{:.3f}").format(leg["score"])
    rank = "not among its best" if leg["rank"] is None else f"rank {leg['rank']}"
    return f"{leg['leg']} ({rank}, {scale})"
