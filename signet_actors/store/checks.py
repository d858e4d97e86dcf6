"""Everything that can be found wrong with a database, in one list that tests, doctor and the daily scrub share.

A finding says of what kind it is, because the kind decides what follows: damage of the *structure* means that no read
is to be trusted and that writes must stop; an *index* is derived from rows and can be built anew; *content* is a
row that is not what was stored; *rows* contradict each other.

``integrity_check`` compares an index with its table but never looks at what an unindexed column says, hence the
checksum of each content, the hash of its normal form, and each vector's comparison with its twin in ``vec0``.

Nothing here raises for damage: a check that cannot be carried out is a finding itself.

Source: reliability.md R18 and appendix D.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterator
from itertools import islice
from math import isfinite
from typing import Final, NamedTuple

import apsw

from signet_actors.domain.normalization import content_hash

STRUCTURE: Final = "structure"
INDEX: Final = "index"
CONTENT: Final = "content"
ROWS: Final = "rows"

MOST_FINDINGS: Final = 200
"""A check that finds more says no more: what follows is the same."""


class Finding(NamedTuple):
    """``kind`` is one of the four above, ``text`` is for a person."""

    kind: str
    text: str


NO_HISTORY_PURGED: Final = "EXISTS (SELECT 1 FROM memory_history WHERE seq = 1)"
"""Old history is purged by the oldest event: while the first is there, all are."""

INVARIANTS: Final[tuple[tuple[str, str, str], ...]] = (
    (
        ROWS,
        "a live content twice in one scope",
        (
            "SELECT agent_id, visibility, project, scope, content_hash FROM memories WHERE is_deleted = 0"
            " GROUP BY 1, 2, coalesce(project, ''), coalesce(scope, ''), 5 HAVING count(*) > 1"
        ),
    ),
    (
        ROWS,
        "a memory without a created event",
        (
            f"SELECT m.id FROM memories m WHERE {NO_HISTORY_PURGED} AND NOT EXISTS"
            " (SELECT 1 FROM memory_history h WHERE h.memory_id = m.id AND h.event = 'created')"
        ),
    ),
    (
        ROWS,
        "a version that history does not explain",
        (
            f"SELECT m.id FROM memories m WHERE {NO_HISTORY_PURGED} AND m.version <> 1 +"
            " (SELECT count(*) FROM memory_history h"
            " WHERE h.memory_id = m.id AND h.event IN ('updated', 'deleted', 'recovered', 'merged'))"
        ),
    ),
    (
        ROWS,
        "an idempotency key twice",
        (
            "SELECT idempotency_key FROM memories WHERE idempotency_key IS NOT NULL"
            " GROUP BY agent_id, visibility, coalesce(project, ''), coalesce(scope, ''), idempotency_key"
            " HAVING count(*) > 1"
        ),
    ),
    (
        ROWS,
        "a job in limbo",
        "SELECT id FROM memory_jobs WHERE status = 'pending' AND attempts >= max_attempts",
    ),
    (
        ROWS,
        "a mention of nothing",
        (
            "SELECT x.memory_id FROM memory_entity_mentions x LEFT JOIN memories m ON m.id = x.memory_id"
            " WHERE m.id IS NULL"
        ),
    ),
    (
        ROWS,
        "a miscounted entity",
        (
            "SELECT e.id FROM entities e WHERE e.mentions <>"
            " (SELECT count(*) FROM memory_entity_mentions x WHERE x.entity_id = e.id)"
        ),
    ),
    (
        INDEX,
        "an embedding of nothing",
        (
            "SELECT e.seq FROM embeddings e LEFT JOIN memories m ON m.id = e.source_id"
            " WHERE e.source_type = 'memory' AND m.id IS NULL"
        ),
    ),
    (
        INDEX,
        "a vector that the row does not name",
        (
            "SELECT m.id FROM memories m LEFT JOIN embeddings e ON e.seq = m.embedding_seq"
            " WHERE m.embedding_seq IS NOT NULL AND (e.seq IS NULL OR e.source_id <> m.id)"
        ),
    ),
    (
        INDEX,
        "a vector of another content",
        (
            "SELECT m.id FROM memories m JOIN embeddings e ON e.seq = m.embedding_seq"
            " WHERE e.content_hash <> m.content_hash"
        ),
    ),
    (
        INDEX,
        "tags that differ from their rows",
        (
            "SELECT m.id FROM memories m WHERE"
            " EXISTS (SELECT value FROM json_each(m.tags)"
            "         EXCEPT SELECT t.tag FROM memory_tags t WHERE t.memory_seq = m.seq)"
            " OR (SELECT count(DISTINCT value) FROM json_each(m.tags))"
            "    <> (SELECT count(*) FROM memory_tags t WHERE t.memory_seq = m.seq)"
        ),
    ),
    (
        INDEX,
        "a tag row of nothing",
        "SELECT t.tag FROM memory_tags t LEFT JOIN memories m ON m.seq = t.memory_seq WHERE m.seq IS NULL",
    ),
)
"""What may never be true, whatever happened before: kind, name, and a query for the rows of which it is true."""


def scrub(connection: apsw.Connection, *, deep: bool = True, beat: Callable[[], None] = lambda: None) -> list[Finding]:
    """Everything that is wrong, at most ``MOST_FINDINGS``; empty when the database is whole.

    Without ``deep``: structure, foreign keys, the text index, and each content's checksum.

    ``connection`` may write: the text index compares itself with its rows by an INSERT that changes nothing.
    """
    found: list[Finding] = []
    for check in (*_SHALLOW, *(_DEEP if deep else ())):
        found += _guarded(check(connection), "cannot be read")
        beat()
        if len(found) >= MOST_FINDINGS:
            break
    return found[:MOST_FINDINGS]


def is_structural(findings: list[Finding]) -> bool:
    """True when no read of this file is to be trusted."""
    return any(finding.kind == STRUCTURE for finding in findings)


def _guarded(check: Iterator[Finding], what: str, *, missing: str = STRUCTURE) -> Iterator[Finding]:
    """The check's findings; one that breaks on what it reads is a finding of structure.

    ``missing`` is the kind of a table or column that is not there.
    """
    try:
        yield from islice(check, MOST_FINDINGS)
    except (apsw.Error, UnicodeDecodeError, OSError) as error:
        kind = missing if isinstance(error, apsw.SQLError) else STRUCTURE
        yield Finding(kind, f"{what}: {type(error).__name__}: {error}")


def _structure(connection: apsw.Connection) -> Iterator[Finding]:
    for (verdict,) in connection.execute("PRAGMA integrity_check"):
        if verdict != "ok":
            text = str(verdict)
            derived = "memories_fts" in text or "vec_embeddings" in text
            yield Finding(INDEX if derived else STRUCTURE, text)


def _foreign_keys(connection: apsw.Connection) -> Iterator[Finding]:
    for row in connection.execute("PRAGMA foreign_key_check"):
        yield Finding(ROWS, f"foreign key of {row[0]} row {row[1]}")


def _text_index(connection: apsw.Connection) -> Iterator[Finding]:
    try:
        connection.execute("INSERT INTO memories_fts (memories_fts, rank) VALUES ('integrity-check', 1)")
    except apsw.ReadOnlyError:
        raise
    except apsw.Error as error:
        yield Finding(INDEX, f"the text index does not match its rows: {error}")


def _contents(connection: apsw.Connection) -> Iterator[Finding]:
    for memory_id, content, checksum, digest in connection.execute(
        "SELECT CAST(id AS BLOB), CAST(content AS BLOB), content_sha256, CAST(content_hash AS BLOB) FROM memories"
    ):
        name = memory_id.decode(errors="replace")
        if hashlib.sha256(content).digest() != checksum:
            yield Finding(CONTENT, f"memory {name}: the content does not match its checksum")
        elif content_hash(content.decode()).encode() != digest:
            yield Finding(CONTENT, f"memory {name}: the content does not match its hash")


def _invariants(connection: apsw.Connection) -> Iterator[Finding]:
    for kind, name, sql in INVARIANTS:
        yield from _guarded(_rows_of(connection, kind, name, sql), name)


def _rows_of(connection: apsw.Connection, kind: str, name: str, sql: str) -> Iterator[Finding]:
    for row in connection.execute(sql):
        yield Finding(kind, f"{name}: {row}")


def _vectors(connection: apsw.Connection) -> Iterator[Finding]:
    """Each vector has its length, is finite, and equals its twin; only vectors of live memories have one."""
    tables: dict[tuple[str, int], str] = {
        (model, dimensions): f"vec_embeddings_{number}"
        for number, model, dimensions in connection.execute("SELECT id, model, dimensions FROM embedding_models")
    }
    for (model, dimensions), table in tables.items():
        yield from _guarded(_vectors_of(connection, model, dimensions, table), f"the vectors of {model}", missing=INDEX)
    unknown = connection.execute(
        "SELECT count(*) FROM embeddings e WHERE NOT EXISTS"
        " (SELECT 1 FROM embedding_models x WHERE x.model = e.model AND x.dimensions = e.dimensions)"
    ).get
    if unknown:
        yield Finding(INDEX, f"{unknown} vectors of a model that is not registered")


def _vectors_of(connection: apsw.Connection, model: str, dimensions: int, table: str) -> Iterator[Finding]:
    for seq, raw, twin, live in connection.execute(
        f"SELECT e.seq, e.vector, v.embedding, coalesce(m.is_deleted, 1) = 0 FROM embeddings e"
        f" LEFT JOIN {table} v ON v.rowid = e.seq"
        " LEFT JOIN memories m ON m.id = e.source_id AND e.source_type = 'memory'"
        " WHERE e.model = ? AND e.dimensions = ?",
        (model, dimensions),
    ):
        if len(raw) != 4 * dimensions or not all(map(isfinite, array("f", raw))):
            yield Finding(INDEX, f"vector {seq} is not {dimensions} finite numbers")
        elif live and twin is None:
            yield Finding(INDEX, f"vector {seq} is missing from its search index")
        elif not live and twin is not None:
            yield Finding(INDEX, f"vector {seq} of a forgotten memory is in its search index")
        elif twin is not None and bytes(twin) != bytes(raw):
            yield Finding(INDEX, f"vector {seq} differs from its search index")
    extra = connection.execute(
        f"SELECT count(*) FROM (SELECT rowid FROM {table} EXCEPT SELECT seq FROM embeddings)"
    ).get
    if extra:
        yield Finding(INDEX, f"{extra} entries of {table} belong to no vector")


_SHALLOW = (_structure, _foreign_keys, _text_index, _contents)
_DEEP = (_invariants, _vectors)
