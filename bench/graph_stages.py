"""What the knowledge graph is worth in a recall: ``python -m bench.graph_stages FILE``.

FILE is a LoCoMo file. Its turns are stored once; then a graph is made of them in one of two ways, and the daemon is
asked over HTTP in each variant. ``rules``: the names that the inline linker recognises. ``extractor``: what a model
might answer, made of the file's observations: triples of a speaker, a verb and the last words of a sentence, for the
turns in which it was observed. ``*`` marks a difference from the row without a graph whose 95 % confidence interval
excludes 0.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.table import Table

from bench.ablation import HARD, LIMIT, Session, Variant
from bench.daemon import DaemonFailed, leave_on_sigterm, throw_away_workspace
from bench.figures import circumstances, write_result
from signet_actors.config.workspace import Workspace
from signet_actors.domain.evaluation.bootstrap import differences, estimates
from signet_actors.domain.evaluation.locomo import Conversation, question_set, read_conversations
from signet_actors.domain.evaluation.measures import measure_names
from signet_actors.domain.graph.candidates import aspect_of, clauses
from signet_actors.domain.graph.names import canonical_name
from signet_actors.domain.query_words import words_of
from signet_actors.domain.stop_words import STOP_WORDS

PIPELINE: Final = "memory.pipelineV2"
OFF: Final = (
    f"{PIPELINE}.graph.enabled=false",
    *(f"{PIPELINE}.dampening.{stage}Enabled=false" for stage in ("gravity", "hub", "resolution")),
)
GRAPH: Final = f"{PIPELINE}.graph.enabled=true"
FLAT: Final = f"{PIPELINE}.traversal.enabled=false"
VARIANTS: Final = (
    Variant("without a graph", OFF),
    Variant("as shipped"),
    Variant("traversal", (*OFF[1:], GRAPH)),
    Variant("boost", (*OFF[1:], GRAPH, FLAT, f"{PIPELINE}.graph.boostWeight=0.15")),
    Variant("gravity", (*OFF[:1], *OFF[2:], f"{PIPELINE}.dampening.gravityEnabled=true")),
    Variant(
        "hub",
        (*OFF[1:2], *OFF[3:], GRAPH, FLAT, f"{PIPELINE}.graph.boostWeight=0", f"{PIPELINE}.dampening.hubEnabled=true"),
    ),
    Variant("resolution", (*OFF[:3], f"{PIPELINE}.dampening.resolutionEnabled=true")),
)
_NOW: Final = "2026-01-01T00:00:00.000Z"
_OBJECT_WORDS: Final = 2


class Statement(msgspec.Struct, frozen=True):
    """That a memory (by its key) says something of ``subject``, and what else it names."""

    key: str
    subject: str
    aspect: str
    text: str
    others: tuple[str, ...] = ()


def by_rules(conversation: Conversation) -> Iterator[Statement]:
    """Yield what the rules of the inline linker recognise in each turn."""
    for memory in conversation.memories():
        for clause in clauses(str(memory.line["content"])):
            yield Statement(memory.key, clause.names[0], clause.aspect, clause.text, clause.names[1:])


def by_extractor(conversation: Conversation) -> Iterator[Statement]:
    """Yield a triple for each observation and each turn in which it was made."""
    speakers = {turn.speaker for session in conversation.sessions for turn in session.turns}
    for session in conversation.sessions:
        for text, labels in session.observations:
            subject = next((speaker for speaker in speakers if text.startswith(speaker)), None)
            words = [word for word in words_of(text) if word not in STOP_WORDS]
            if subject is None or len(words) <= _OBJECT_WORDS:
                continue
            target = " ".join(words[-_OBJECT_WORDS:])
            for label in labels:
                yield Statement(conversation.key(label), subject, aspect_of(text), text, (target,))


MADE_BY: Final[dict[str, Callable[[Conversation], Iterator[Statement]]]] = {
    "rules": by_rules,
    "extractor": by_extractor,
}


class GraphWriter:
    """Writes a graph into the database of a daemon that does not run."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._numbers = count(1)
        self._known: dict[tuple[str, ...], str] = {}

    def clear(self) -> None:
        """Delete every graph."""
        for table in ("entity_attributes", "entity_dependencies", "memory_entity_mentions", "relations"):
            self._connection.execute(f"DELETE FROM {table}")
        self._connection.execute("DELETE FROM entities")

    def state(self, agent: str, memory: str, statement: Statement) -> None:
        """Store one statement."""
        subject = self._entity(agent, statement.subject)
        aspect = self._row(
            ("aspect", subject, statement.aspect),
            "INSERT INTO entity_aspects (id, entity_id, agent_id, name, canonical_name, created_at, updated_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (subject, agent, statement.aspect, statement.aspect, _NOW, _NOW),
        )
        self._row(
            ("attribute", aspect, memory),
            "INSERT INTO entity_attributes (id, entity_id, aspect_id, agent_id, memory_id, content, source, source_at,"
            " created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, 'pipeline', ?, ?, ?)",
            (subject, aspect, agent, memory, statement.text, _NOW, _NOW, _NOW),
        )
        self._mention(memory, subject)
        for name in statement.others:
            other = self._entity(agent, name)
            self._mention(memory, other)
            if other != subject:
                self._row(
                    ("relation", subject, other),
                    "INSERT INTO relations (id, source_entity_id, target_entity_id, relation_type, created_at,"
                    " updated_at) VALUES (?, ?, ?, 'related_to', ?, ?)",
                    (subject, other, _NOW, _NOW),
                )
                self._row(
                    ("dependency", subject, other),
                    "INSERT INTO entity_dependencies (id, agent_id, source_entity_id, target_entity_id,"
                    " dependency_type, created_at, updated_at) VALUES (?, ?, ?, ?, 'related_to', ?, ?)",
                    (agent, subject, other, _NOW, _NOW),
                )

    def finish(self) -> None:
        """Count the mentions."""
        self._connection.execute(
            "UPDATE entities SET mentions ="
            " (SELECT count(*) FROM memory_entity_mentions x WHERE x.entity_id = entities.id)"
        )

    def _entity(self, agent: str, name: str) -> str:
        canonical = canonical_name(name)
        return self._row(
            ("entity", agent, canonical),
            "INSERT INTO entities (id, name, canonical_name, entity_type, agent_id, created_at, updated_at)"
            " VALUES (?, ?, ?, 'extracted', ?, ?, ?)",
            (name, canonical, agent, _NOW, _NOW),
        )

    def _mention(self, memory: str, entity: str) -> None:
        key = ("mention", memory, entity)
        if key not in self._known:
            self._known[key] = entity
            self._connection.execute(
                "INSERT INTO memory_entity_mentions (memory_id, entity_id, created_at) VALUES (?, ?, ?)",
                (memory, entity, _NOW),
            )

    def _row(self, key: tuple[str, ...], sql: str, values: Sequence[Any]) -> str:
        if key not in self._known:
            self._known[key] = f"{key[0]}-{next(self._numbers):08}"
            self._connection.execute(sql, (self._known[key], *values))
        return self._known[key]


def make_graph(
    workspace: Workspace, session: Session, conversations: Sequence[Conversation], made_by: str
) -> dict[str, int]:
    """Replace the graph by that of another extractor; return how many rows it has."""
    with closing(sqlite3.connect(workspace.database)) as connection, connection:
        connection.execute("PRAGMA foreign_keys = ON")
        writer = GraphWriter(connection)
        writer.clear()
        for conversation in conversations:
            for statement in MADE_BY[made_by](conversation):
                for memory in session.store.rows.get(statement.key, ()):
                    writer.state(conversation.agent, memory, statement)
        writer.finish()
        tables = ("entities", "memory_entity_mentions", "entity_attributes", "entity_dependencies")
        return {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables}


class Row(msgspec.Struct, frozen=True):
    """A measured variant: R@10 and nDCG@10 of all questions and of the hard ones, in per cent."""

    name: str
    of_all: list[str]
    hard: list[str]


def row_of(name: str, first: Any, answers: Any, kinds: Sequence[str]) -> Row:
    """Return the row of a table; ``*`` marks a significant difference from ``first``."""
    hard = [at for at, kind in enumerate(kinds) if kind == HARD]

    def cells(which: Sequence[int]) -> list[str]:
        before, after = ([answers.scores[at] for at in which] for answers in (first, answers))
        names = measure_names(LIMIT)
        return [
            f"{100 * mean.mean:.2f}{' *' if change.is_significant else ''}"
            for name, mean, change in zip(names, estimates(after), differences(before, after), strict=True)
            if name in {"R@10", "nDCG@10", f"R@{LIMIT}"}
        ]

    return Row(name, cells(range(len(kinds))), cells(hard))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; the exit code is 0 if it could be measured."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.graph_stages", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("file", type=Path, help="a LoCoMo file")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--only", metavar="TEXT", help="besides the first row, only rows whose name contains this text")
    options = parser.parse_args(arguments)
    leave_on_sigterm()
    progress, console = Console(stderr=True), Console(width=None if sys.stdout.isatty() else 120)
    conversations = read_conversations(options.file.read_bytes())
    chosen = [one for one in VARIANTS[1:] if options.only is None or options.only in one.name]
    result: dict[str, Any] = {"circumstances": circumstances()}
    with throw_away_workspace() as workspace:
        session = Session(workspace, question_set(conversations), options.settings)
        try:
            first = session.answers(VARIANTS[0])
            kinds = [question.category for question in session.store.questions]
            for made_by in MADE_BY:
                sizes = make_graph(Workspace(workspace), session, conversations, made_by)
                rows = [row_of(VARIANTS[0].name, first, first, kinds)]
                for variant in chosen:
                    rows.append(row_of(variant.name, first, session.answers(variant), kinds))
                    progress.print(f"[dim]{made_by}, {rows[-1]}[/dim]", highlight=False)
                result[made_by] = {"sizes": sizes, "rows": rows}
                table = Table(title=f"graph made by {made_by}: {sizes}")
                names = [name for name in measure_names(LIMIT) if name in {"R@10", "nDCG@10", f"R@{LIMIT}"}]
                for name in ("", *names, *(f"{HARD} {name}" for name in names)):
                    table.add_column(name, justify="right" if name else "left")
                for row in rows:
                    table.add_row(row.name, *row.of_all, *row.hard)
                console.print(table)
        except DaemonFailed as error:
            progress.print(f"[red]{error}[/red]", highlight=False)
            return 1
    console.print(str(write_result("graph", result)), highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
