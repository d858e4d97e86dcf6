"""Print why memories are among the results of a recall, and why a named one is not.

Source: docs/cli.md "Memories"; docs/compatibility.md "Recall".
"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

import click

from signet_actors.cli.memory_rows import short_ids
from signet_actors.cli.presentation import emphasised, on_terminal, one_line
from signet_actors.cli.tables import print_fields, print_wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_SCALES = {"keyword": "BM25 {:.2f}", "hint": "{:.2f} of the best match of words", "vector": "cosine {:.3f}"}
_STAGES = {
    "token_similarity": "word by word",
    "subject": "about the subject of the question",
    "question": "asks itself",
    "time": "tells a time",
    "number": "has a number",
    "date": "is near the date",
    "neighbours": "a neighbour matches",
    "answer": "follows a question that matches",
    "episode": "the best of its conversation",
    "compensation": "outside conversations",
    "scale": "scaled to 1",
    "outside_window": "outside the time window",
    "rerank": "reranked by cosine",
    "newest_first": "the newest of equals first",
    "exact_match": "has the identifier literally",
}
_OUTCOMES = {
    "not_found": "there is no such memory, or you may not read it",
    "filtered": "left out by the filter {filters}",
    "not_a_candidate": "no candidate: others match better by words and by meaning",
    "below_min_score": "its score of {value:.3f} before priors and context is below the minimum {threshold:g}",
    "below_min_relevance": "its relevance {value:.3f} is below the minimum {threshold:g}",
    "already_recalled": "left out, because the session has received it",
    "beyond_limit": "at rank {rank}, beyond the limit of {threshold:g}",
    "returned": "among the results, at rank {rank}",
}


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
        _print_outcome(explained)


def _print_outcome(explained: Mapping[str, Any]) -> None:
    values = {**explained, "filters": ", ".join(map(str, explained.get("filters") or []))}
    template = _OUTCOMES.get(str(explained.get("outcome")), "{outcome}")
    print_wrapped(f"{explained.get('id')}: {template.format(**values)}", indent=2)
    _print_explanation(explained.get("explanation"))


def _print_explanation(explanation: Mapping[str, Any] | None) -> None:
    if not explanation:
        return
    print_fields(_lines(explanation), indent=3)


def _lines(explanation: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "found by", ", ".join(_leg(leg) for leg in explanation["legs"]) or "context or date alone"
    yield "words", ", ".join(explanation["terms"])
    yield "similar", ", ".join(explanation["similar_terms"])
    yield "without", ", ".join(explanation["missing_terms"])
    moves = [f"{move['points']:+.3f} {_STAGES.get(move['stage'], move['stage'])}" for move in explanation["moves"]]
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
