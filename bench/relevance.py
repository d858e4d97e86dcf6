"""How well ``relevance`` tells memories that answer from those that do not: ``python -m bench.relevance``.

Each question is asked with limit 10, by default and with keywords only. A related question is above a threshold if the
memory that answers it has at least that relevance; an unrelated one is below it if no result has. The constants were
chosen on the calibration half; the held-out half gives the figures to publish. ``--settings FILE`` names an agent.yaml.

Source: docs/quality.md "Relevance".
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import uvloop
from rich.console import Console
from rich.table import Table

from bench.client import Connection, ProtocolError
from bench.daemon import Daemon, DaemonFailed, leave_on_sigterm, post_json, throw_away_workspace
from bench.figures import circumstances, write_result
from bench.relevance_texts import EvaluationSet, evaluation_set

LIMIT: Final = 10
THRESHOLDS: Final = (0.3, 0.4, 0.5, 0.6, 0.7)
HALVES: Final = ("calibration", "held out")
LATER: Final = "written later"
KEYWORD_ONLY: Final = "embedding:\n  provider: none\n"


class Measured(msgspec.Struct, frozen=True):
    """The relevance of each question of one part: of the right memory (0 if it was not found), or of the best result.

    ``first`` counts the related questions whose memory is the first result, ``found`` those with it in the first ten.
    """

    related: list[float]
    unrelated: list[float]
    first: int
    found: int


def _share(count: int, of: int) -> str:
    """Return ``count`` in per cent of ``of``."""
    return f"{100 * count / of:.1f}" if of else "–"  # noqa: RUF001 - a dash


async def fill(daemon: Daemon, texts: EvaluationSet) -> dict[str, str]:
    """Store every memory; return the ids of those that answer a question, by question."""
    ids = {}
    connection = await Connection.open(daemon.address.host, daemon.address.port)
    try:
        for related in texts.related:
            body = {"content": related.memory, "project": related.project}
            ids[related.question] = (await post_json(daemon, connection, "/api/memory/remember", body))["id"]
        for text in texts.others:
            await post_json(daemon, connection, "/api/memory/remember", {"content": text})
    finally:
        connection.close()
    return ids


async def ask(daemon: Daemon, texts: EvaluationSet, ids: Mapping[str, str]) -> dict[str, Measured]:
    """Ask every question; return the figures of each part."""
    connection = await Connection.open(daemon.address.host, daemon.address.port)
    measured = {}
    try:
        parts = [(half, texts.related[at::2], texts.unrelated[at::2]) for at, half in enumerate(HALVES)]
        for part, pairs, others in (*parts, (LATER, [], texts.later)):
            related, ranks = [], []
            for pair in pairs:
                results = await _recall(daemon, connection, pair.question)
                found = [result["id"] for result in results]
                rank = found.index(ids[pair.question]) if ids[pair.question] in found else None
                related.append(0.0 if rank is None else results[rank]["relevance"])
                ranks.append(rank)
            unrelated = []
            for question in others:
                results = await _recall(daemon, connection, question)
                unrelated.append(max((result["relevance"] for result in results), default=0.0))
            measured[part] = Measured(
                related, unrelated, sum(rank == 0 for rank in ranks), sum(rank is not None for rank in ranks)
            )
    finally:
        connection.close()
    return measured


async def _recall(daemon: Daemon, connection: Connection, question: str) -> list[dict[str, Any]]:
    reply = await post_json(daemon, connection, "/api/memory/recall", {"query": question, "limit": LIMIT})
    results: list[dict[str, Any]] = reply["results"]
    return results


def measure(texts: EvaluationSet, settings: str, workspace: Path) -> dict[str, dict[str, Measured]]:
    """Measure with the settings, and again with keywords only, on one workspace."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        with Daemon(workspace, settings=settings) as daemon:
            ids = runner.run(fill(daemon, texts))
            daemon.wait_for_vectors()
            found = {"as configured": runner.run(ask(daemon, texts, ids))}
        with Daemon(workspace, settings=KEYWORD_ONLY) as daemon:
            found["keywords only"] = runner.run(ask(daemon, texts, ids))
    return found


def table_of(found: Mapping[str, Mapping[str, Measured]]) -> Table:
    """Return a table: for each threshold, related questions above and unrelated ones below, in per cent."""
    table = Table(title="Relevance: right memories above / unrelated questions below a threshold, %")
    for name in ("", "questions", "first", "in ten", *(f"{threshold:g}" for threshold in THRESHOLDS)):
        table.add_column(name, justify="left" if not name else "right")
    for way, halves in found.items():
        for half, figures in halves.items():
            count = len(figures.related)
            others = len(figures.unrelated)
            cells = (
                f"{_share(sum(value >= threshold for value in figures.related), count)}"
                f" / {_share(sum(value < threshold for value in figures.unrelated), others)}"
                for threshold in THRESHOLDS
            )
            table.add_row(
                f"{way}, {half}",
                f"{count} + {others}",
                _share(figures.first, count),
                _share(figures.found, count),
                *cells,
                style="bold" if half == HALVES[-1] else None,
            )
        table.add_section()
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; the exit code is 0 if it could be measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.relevance", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--settings", type=Path, help="an agent.yaml to measure with")
    options = parser.parse_args(arguments)
    leave_on_sigterm()
    console = Console(width=None if sys.stdout.isatty() else 140)
    texts = evaluation_set()
    with throw_away_workspace() as workspace:
        try:
            found = measure(texts, options.settings.read_text() if options.settings else "", workspace)
        except (OSError, DaemonFailed, ProtocolError, TimeoutError) as error:
            Console(stderr=True).print(f"[red]{error}[/red]", highlight=False)
            return 1
    console.print(table_of(found))
    console.print(str(write_result("relevance", {"circumstances": circumstances(), "found": found})), highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
