"""What each stage of a recall is worth and costs: ``python -m bench.ablation FILE``.

FILE is a LoCoMo file, or JSON lines as for ``signet eval``. Its memories are stored once; then the daemon is started
again for each row of the table and asked over HTTP. A stage is a switch (``search.*`` that is true or false), or a
weight of ``signet_actors/domain/ranking/context.py`` that is set to 0 in the searcher (``bench.weighted_child``). The
cost is CPU time, by the stages of ``meta.timings``. ``*`` marks a difference from the first row whose 95 % confidence
interval excludes 0.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from rich.console import Console
from rich.table import Table

from bench.daemon import Daemon, DaemonFailed, leave_on_sigterm, throw_away_workspace
from bench.figures import circumstances, write_result
from bench.weighted_child import WEIGHTS_VARIABLE
from signet_actors.cli.connection import DaemonClient
from signet_actors.cli.eval import Overrides, measured_mapping, read_questions, settings_text
from signet_actors.cli.eval_run import Answers, FilledStore, ask, fill, wait_for_vectors
from signet_actors.config.daemon_address import Address
from signet_actors.config.keys import keys
from signet_actors.config.schema import MINILM_MODEL, Config
from signet_actors.config.workspace import Workspace
from signet_actors.domain.evaluation.bootstrap import Estimate, differences, estimates
from signet_actors.domain.evaluation.measures import measure_names
from signet_actors.domain.evaluation.question_set import QuestionSet

LIMIT: Final = 50
WEIGHTS: Final = {
    "NEIGHBOUR": ("neighbours", "search.context"),
    "ANSWER": ("question before", "search.context"),
    "EPISODE": ("episode", "search.context"),
    "COMPENSATION": ("compensation", "search.context"),
    "SUBJECT": ("subject", "search.priors"),
    "QUESTION": ("rows that ask", "search.priors"),
    "TIME": ("time", "search.priors"),
    "NUMBER": ("number", "search.priors"),
}
"""The weights: what each is called, and the switch without which it has no effect."""
SEED: Final = 7
HARD: Final = "multi-hop"
"""The kind of question that has a column of its own, if the file has it."""


class Variant(msgspec.Struct, frozen=True):
    """A row of the table: the keys and the weights that differ from the default."""

    name: str
    settings: tuple[str, ...] = ()
    weights: Mapping[str, float] = {}
    second_share: float = 1.0
    """Only so many memories have their second vector."""


def switches() -> dict[str, object]:
    """Return the default of each stage that has a switch, by key."""
    return {key.dotted: key.default for key in keys() if key.path[0] == "search" and key.field.plain is bool}


def all_off() -> tuple[str, ...]:
    """Return the settings that switch every stage off."""
    return tuple(f"{switch}=false" for switch in switches())


def variants() -> Iterator[Variant]:
    """Yield every row of the table."""
    known, none = switches(), all_off()
    on = [switch for switch, default in known.items() if default]
    yield Variant("default")
    for switch, default in known.items():
        yield Variant(f"{'without' if default else 'with'} {switch}", (f"{switch}={str(not default).lower()}",))
    for weight, (name, _) in WEIGHTS.items():
        yield Variant(f"without {name}", (), {weight: 0.0})
    yield Variant("none of these", none)
    for switch in on:
        yield Variant(f"only {switch}", (*none, f"{switch}=true"))
    for weight, (name, switch) in WEIGHTS.items():
        if switch in known and weight != "COMPENSATION":  # which has an effect beside others only
            others = {other: 0.0 for other in WEIGHTS if other != weight}
            yield Variant(f"only {name}", (*none, f"{switch}=true"), others)
    yield Variant("keywords alone", (*none, "embedding.provider=none"))
    yield Variant("half of the second vectors", second_share=0.5)
    yield Variant("no second vectors", second_share=0.0)


class Row(msgspec.Struct, frozen=True):
    """A measured variant: estimates of each measure, their differences from the first row, and the cost in CPU ms."""

    name: str
    estimates: list[Estimate]
    differences: list[Estimate]
    hard: float | None
    stages_ms: dict[str, float]

    @property
    def cost_ms(self) -> float:
        """The CPU time of a recall in the searcher."""
        return sum(took for name, took in self.stages_ms.items() if name not in NOT_SEARCHER)


NOT_SEARCHER: Final = ("query_embedding_wait", "searcher_round_trip", "llm_summary")
"""Stages that the gateway adds; they are waiting times."""


class Session:
    """One store, asked in one variant after the other."""

    def __init__(self, workspace: Path, asked: QuestionSet, settings: Sequence[str]) -> None:
        self._workspace = workspace
        self._asked = asked
        self._always = Overrides("--set", settings)
        self._store: FilledStore | None = None

    @property
    def store(self) -> FilledStore:
        """What was stored by the first ``answers``."""
        assert self._store is not None, "answers() fills the store"
        return self._store

    def answers(self, variant: Variant) -> Answers:
        """Start the daemon with the variant and ask every question; fill the store first if it is empty."""
        overrides = self._always + Overrides("--set", variant.settings)
        mapping = measured_mapping(Config(), overrides)
        if variant.second_share < 1.0:
            mapping["memory"]["pipelineV2"]["embeddingTracker"] = {"enabled": False}
        text = settings_text(mapping, overrides)
        environment = {WEIGHTS_VARIABLE: msgspec.json.encode(variant.weights).decode()}
        if variant.second_share < 1.0:
            remove_second_vectors(Workspace(self._workspace), variant.second_share)
        with Daemon(self._workspace, settings=text, module="bench.weighted_tree", environment=environment) as daemon:
            client = DaemonClient(Address(daemon.address.host, daemon.address.port), print_warnings=False)
            try:
                if self._store is None:
                    self._store = fill(client, self._asked)
                if variant.second_share == 1.0 and not wait_for_vectors(client):
                    raise DaemonFailed("not every memory has its vectors")
                return ask(client, self._store, LIMIT)
            finally:
                client.close()


def remove_second_vectors(workspace: Workspace, kept: float) -> None:
    """Remove the second vectors of all but a share of the memories from the database of a daemon that does not run."""
    with closing(sqlite3.connect(workspace.database)) as connection, connection:
        sql = "SELECT seq FROM embeddings WHERE model = ? ORDER BY seq"
        rows = connection.execute(sql, (MINILM_MODEL,)).fetchall()
        chosen = random.Random(SEED).sample(rows, round((1 - kept) * len(rows)))
        connection.executemany("DELETE FROM embeddings WHERE seq = ?", chosen)
    for file in (workspace.daemon_dir / "index").glob("*.vectors"):
        file.unlink()


def measure(session: Session, chosen: Sequence[Variant], progress: Console) -> list[Row]:
    """Return a row for each variant."""
    rows: list[Row] = []
    first: Answers | None = None
    for variant in chosen:
        answers = session.answers(variant)
        first = first or answers
        kinds = [question.category for question in session.store.questions]
        hard = [scores[1] for scores, kind in zip(answers.scores, kinds, strict=True) if kind == HARD]
        rows.append(
            Row(
                variant.name,
                estimates(answers.scores),
                differences(first.scores, answers.scores),
                sum(hard) / len(hard) if hard else None,
                answers.mean_stages_ms(),
            )
        )
        progress.print(f"[dim]{variant.name}: R@10 {100 * rows[-1].estimates[1].mean:.1f}[/dim]", highlight=False)
    return rows


def table_of(rows: Sequence[Row]) -> Table:
    """Return a table of the measures in per cent and the cost of each variant."""
    table = Table(title="Stages of a recall")
    names = ("", *measure_names(LIMIT), *([f"{HARD} R@10"] if rows[0].hard is not None else []), "CPU ms")
    for name in names:
        table.add_column(name, justify="right" if name else "left")
    for row in rows:
        cells = [
            f"{100 * one.mean:.1f}{' *' if other.is_significant else ''}"
            for one, other in zip(row.estimates, row.differences, strict=True)
        ]
        hard = [f"{100 * row.hard:.1f}"] if row.hard is not None else []
        table.add_row(row.name, *cells, *hard, f"{row.cost_ms:.2f}")
    return table


def cost_table(row: Row) -> Table:
    """Return a table of the CPU time of each stage."""
    table = Table(title=f"CPU milliseconds of a recall in the searcher, {row.name}")
    table.add_column("stage")
    table.add_column("mean", justify="right")
    for name, took in row.stages_ms.items():
        if name not in NOT_SEARCHER:
            table.add_row(name, f"{took:.3f}")
    table.add_row("whole", f"{row.cost_ms:.3f}", style="bold")
    return table


def result_of(rows: Sequence[Row], session: Session) -> dict[str, Any]:
    """Return the result to be written: figures without any text."""
    return {
        "circumstances": circumstances(),
        "memories": session.store.memories,
        "questions": len(session.store.questions),
        "measures": measure_names(LIMIT),
        "rows": rows,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; the exit code is 0 if it could be measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.ablation", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path, help="a LoCoMo file, or JSON lines as for `signet eval`")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--only", metavar="TEXT", help="besides the default, only rows whose name contains this text")
    options = parser.parse_args(arguments)
    leave_on_sigterm()
    progress = Console(stderr=True)
    try:
        asked = read_questions(options.file)
    except click.UsageError as error:
        progress.print(f"[red]{error.message}[/red]", highlight=False)
        return 66
    every = list(variants())
    chosen = [one for one in every if options.only is None or one is every[0] or options.only in one.name]
    with throw_away_workspace() as workspace:
        session = Session(workspace, asked, options.settings)
        try:
            rows = measure(session, chosen, progress)
        except DaemonFailed as error:
            progress.print(f"[red]{error}[/red]", highlight=False)
            return 1
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table_of(rows))
    console.print(cost_table(rows[0]))
    console.print(str(write_result("ablation", result_of(rows, session))), highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
