"""The rank of the right note for 60 questions about notes of a coding agent: ``python -m bench.natural_questions``.

The notes and questions of ``natural_questions.jsonl`` were written before any was asked, and are not changed to fit the
answers: paraphrases, identifiers, code, typing errors, seven languages. Each note has one question. The program prints
how many are found at rank 1 and within 3, and every question that misses. ``--set KEY=VALUE`` overrides the
configuration, as in ``signet eval``.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.table import Table

from bench.daemon import DaemonFailed
from bench.figures import circumstances, write_result
from signet_actors.cli.bench import temporary_daemon
from signet_actors.cli.connection import DaemonClient
from signet_actors.cli.eval import Overrides, measured_mapping, read_questions, settings_text
from signet_actors.cli.eval_run import ask, fill, wait_for_vectors
from signet_actors.config.schema import Config
from signet_actors.domain.evaluation.question_set import QuestionSet

FILE: Final = Path(__file__).with_suffix(".jsonl")
LIMIT: Final = 60
TARGETS: Final = {1: 50, 3: 56}
"""How many of the 60 questions should find their note within this rank."""


class Found(msgspec.Struct, frozen=True):
    """The rank of a question's note, counted from 1; None if it is no result. ``first`` is the first result's text."""

    question: str
    category: str
    note: str
    rank: int | None
    first: str

    def within(self, rank: int) -> bool:
        """Return whether the note is among the first ``rank`` results."""
        return self.rank is not None and self.rank <= rank


def measure(asked: QuestionSet, overrides: Overrides) -> list[Found]:
    """Store the notes in a temporary daemon and ask every question."""
    with temporary_daemon(os.environ) as daemon:
        daemon.start(settings_text(measured_mapping(Config(), overrides), overrides))
        client = DaemonClient(daemon.address, print_warnings=False)
        try:
            store = fill(client, asked)
            if not wait_for_vectors(client):
                raise DaemonFailed("not every memory has its vectors")
            answers = ask(client, store, LIMIT)
        finally:
            client.close()
    texts = {memory.key: str(memory.line["content"]) for memory in asked.memories}
    by_row = {row: texts[key] for key, rows in store.rows.items() for row in rows}
    found = []
    for question, results in zip(store.questions, answers.found, strict=True):
        (key,) = question.evidence
        rank = next((rank for rank, row in enumerate(results, start=1) if row in store.rows[key]), None)
        first = by_row[results[0]] if results else ""
        found.append(Found(question.text, question.category, texts[key], rank, first))
    return found


def table_of(found: Sequence[Found]) -> Table:
    """Return a table of the kinds of question."""
    table = Table(title="Right note at rank 1 and within 3")
    for name in ("kind", "questions", *(f"within {rank}" for rank in TARGETS)):
        table.add_column(name, justify="left" if name == "kind" else "right")
    for kind in dict.fromkeys(one.category for one in found):
        part = [one for one in found if one.category == kind]
        table.add_row(kind, str(len(part)), *(str(sum(one.within(rank) for one in part)) for rank in TARGETS))
    table.add_section()
    table.add_row("all", str(len(found)), *(str(sum(one.within(rank) for one in found)) for rank in TARGETS))
    table.add_row("target", "", *(f"≥ {least}" for least in TARGETS.values()))
    return table


def result_of(found: Sequence[Found], overrides: Overrides) -> dict[str, Any]:
    """Return the result to be written."""
    return {"circumstances": circumstances(), "overrides": overrides.texts, "found": found}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; the exit code is 0 if it could be measured."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.natural_questions", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("file", type=Path, nargs="?", default=FILE, help="questions with one memory each (JSON lines)")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args(arguments)
    overrides = Overrides("--set", options.settings)
    found = measure(read_questions(options.file), overrides)
    console = Console(width=None if sys.stdout.isatty() else 120, highlight=False, markup=False)
    console.print(table_of(found))
    for one in found:
        if not one.within(1):
            console.print(f"rank {one.rank or 'none'} ({one.category}): {one.question}")
            console.print(f"    right: {one.note}\n    first: {one.first}")
    console.print(str(write_result("natural-questions", result_of(found, overrides))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
