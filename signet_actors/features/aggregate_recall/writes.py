"""What the answers of aggregate recalls were made from, inside a write transaction.

Source: docs/guides/aggregate-recall.md; docs/reliability.md R23.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from signet_actors.features.aggregate_recall.api import AnswerSource
from signet_actors.protocol.memories import ReadScope
from signet_actors.store.engine import Insert, WriteTransaction
from signet_actors.store.read_policy import readable

SOURCE_FORGOTTEN: Final = "a memory that it was made from was forgotten"
SOURCE_CHANGED: Final = "a memory that it was made from was changed"

_SOURCES: Final = Insert(
    "aggregate_sources",
    ("memory_id", "source_id", "content_hash", "cited"),
    "ON CONFLICT (memory_id, source_id) DO NOTHING",
)
_SOURCE: Final = (
    "SELECT m.content_hash, m.agent_id, m.visibility, m.project FROM memories m"
    " WHERE m.id = :id AND m.content_version = :version AND m.is_deleted = 0 AND {}"
)
_CITED: Final = "SELECT a.source_id FROM aggregate_sources a WHERE a.memory_id = :id AND a.cited = 1"
_ANSWERS: Final = "SELECT a.memory_id FROM aggregate_sources a WHERE a.source_id = :id ORDER BY a.memory_id"
_PROJECTS: Final = (
    "SELECT m.project FROM aggregate_sources a JOIN memories m ON m.id = a.source_id WHERE a.memory_id = :id"
)
_FORGOTTEN_WITH: Final = (
    f"{_ANSWERS.partition(' ORDER')[0]} AND coalesce((SELECT h.reason FROM memory_history h"
    " WHERE h.memory_id = a.memory_id AND h.event = 'deleted' ORDER BY h.seq DESC LIMIT 1), '')"
    f" IN {(SOURCE_FORGOTTEN, SOURCE_CHANGED)} ORDER BY a.memory_id"
)
_LACKS_SOURCE: Final = (
    "SELECT 1 FROM aggregate_sources a WHERE a.memory_id = :id AND NOT EXISTS (SELECT 1 FROM memories m"
    " WHERE m.id = a.source_id AND m.is_deleted = 0 AND m.content_hash = a.content_hash) LIMIT 1"
)
_FORGET: Final = (
    "DELETE FROM aggregate_sources WHERE memory_id = :id",
    "DELETE FROM aggregate_sources WHERE source_id = :id",
)


class SourceRow(NamedTuple):
    """The columns of a source that its answer depends on."""

    content_hash: str
    agent_id: str
    visibility: str
    project: str | None


def source_row(tx: WriteTransaction, source: AnswerSource, read: ReadScope) -> SourceRow | None:
    """Return the source, None unless it is live, has the same words, and may be read."""
    predicate, bindings = readable(tx, read)
    values = {"id": source.id, "version": source.content_version}
    row = tx.one(_SOURCE.format(predicate), values | bindings)
    return None if row is None else SourceRow(*row)


def name_sources(tx: WriteTransaction, memory_id: str, sources: Iterable[tuple[AnswerSource, SourceRow]]) -> list[str]:
    """Record what the answer was made from, and return which of it the answer cites. What is recorded stays."""
    values: list[Any] = []
    for source, row in sources:
        values += [memory_id, source.id, row.content_hash, int(source.cited)]
    tx.insert(_SOURCES, values)
    return [source_id for (source_id,) in tx.rows(_CITED, {"id": memory_id})]


def answers_of(tx: WriteTransaction, source_id: str) -> list[str]:
    """Return the ids of the answers, live and deleted, that were made from the memory."""
    return [memory_id for (memory_id,) in tx.rows(_ANSWERS, {"id": source_id})]


def projects_of_sources(tx: WriteTransaction, memory_id: str) -> list[str | None]:
    """Return the project of each memory that the answer was made from."""
    return [project for (project,) in tx.rows(_PROJECTS, {"id": memory_id})]


def forgotten_with(tx: WriteTransaction, source_id: str) -> list[str]:
    """Return those of its answers that were last deleted because of one of their sources."""
    return [memory_id for (memory_id,) in tx.rows(_FORGOTTEN_WITH, {"id": source_id})]


def has_all_sources(tx: WriteTransaction, memory_id: str) -> bool:
    """Return whether all sources of the answer are live, in the words that they had."""
    return tx.one(_LACKS_SOURCE, {"id": memory_id}) is None


def forget(tx: WriteTransaction, memory_id: str) -> None:
    """Delete all rows about the memory."""
    for sql in _FORGET:
        tx.execute(sql, {"id": memory_id})


WRITES: Final[dict[Any, Any]] = {}
