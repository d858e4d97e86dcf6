"""Check stored vectors, their search index, and the numbers that tables give out.

``vec0`` keeps a row in three places: ``_rowids`` names a chunk and an offset in it, the chunk's ``rowids`` holds the
row's number at that offset, and a bit of its ``validity`` says that the offset is used. A look-up by rowid reads only
the first, a search only the other two, and an INSERT or DELETE needs all of them. So they are compared.

Source: docs/reliability.md R18; https://sqlite.org/autoinc.html.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from math import isfinite
from typing import Final

import apsw

MAX_SEQ: Final = (1 << 62) - 1
"""The highest allowed row number; beyond it arithmetic would overflow 64 bits, and SQLite would report a full disk."""
_SPARSE_ROWS: Final = 1 << 24
_SPARSE_FACTOR: Final = 64
MAX_CHUNK_ROWS: Final = 1 << 16


def sequence_errors(connection: apsw.Connection) -> Iterator[str]:
    """Describe each table that would give out a number twice or could give out none. Raises apsw errors."""
    if not connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_sequence'").get:
        return
    stored: dict[str, list[object]] = {}
    for name, seq in connection.execute("SELECT name, seq FROM sqlite_sequence").fetchall():
        stored.setdefault(str(name), []).append(seq)
    for table in numbered_tables(connection):
        highest = connection.execute(f'SELECT max(rowid) FROM "{table}"').get
        found = stored.get(table, [])
        if len(found) > 1:
            yield f"the sequence number of {table} is stored {len(found)} times"
        elif not found and highest is not None:
            yield f"the sequence number of {table} is missing; the highest row number is {highest}"
        elif found and (
            not isinstance(found[0], int)
            or not (highest or 0) <= found[0] <= largest_number(connection, table, found[0])
        ):
            yield f"the sequence number of {table} is {str(found[0])[:40]}; the highest row number is {highest}"


def largest_number(connection: apsw.Connection, table: str, given: int) -> int:
    """Return the largest number that a row of ``table`` may have; ``given``: its largest one. Raises apsw errors.

    Searchers keep columns by the numbers of memories, so these may not be much larger than their count.
    """
    if table != "memories" or given <= _SPARSE_ROWS:
        return MAX_SEQ
    return int(_SPARSE_FACTOR * connection.execute("SELECT count(*) FROM memories").get + _SPARSE_ROWS)


def numbered_tables(connection: apsw.Connection) -> list[str]:
    """Return the tables that never reuse the number of a row. Raises apsw errors."""
    rows = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND instr(sql, 'AUTOINCREMENT') > 0 ORDER BY name"
    )
    return [str(name) for (name,) in rows]


def vector_errors(connection: apsw.Connection, model: str, dimensions: int, table: str) -> Iterator[str]:
    """Describe each vector of a model that is unusable or differs from its search index. Raises apsw errors."""
    yield from _vec0_errors(connection, table)
    for seq, raw, twin, live in connection.execute(
        f"SELECT e.seq, e.vector, v.embedding, coalesce(m.is_deleted, 1) = 0 FROM embeddings e"
        f" LEFT JOIN {table} v ON v.rowid = e.seq"
        " LEFT JOIN memories m ON m.id = e.source_id AND e.source_type = 'memory'"
        " WHERE e.model = ? AND e.dimensions = ?",
        (model, dimensions),
    ):
        if len(raw) != 4 * dimensions or not all(map(isfinite, array("f", raw))):
            yield f"vector {seq} does not consist of {dimensions} finite numbers"
        elif live and twin is None:
            yield f"vector {seq} is missing from its search index"
        elif not live and twin is not None:
            yield f"vector {seq} of a forgotten memory is in its search index"
        elif twin is not None and bytes(twin) != bytes(raw):
            yield f"vector {seq} differs from its search index"
    extra = connection.execute(
        f"SELECT count(*) FROM (SELECT rowid FROM {table} EXCEPT SELECT seq FROM embeddings)"
    ).get
    if extra:
        yield f"{extra} entries of {table} belong to a missing vector"


def _vec0_errors(connection: apsw.Connection, table: str) -> Iterator[str]:
    """Describe where the parts of a ``vec0`` table contradict each other."""
    rows_at: dict[int, array[int]] = {}
    for chunk, size in connection.execute(f"SELECT chunk_id, size FROM {table}_chunks"):
        if isinstance(size, int) and 0 < size <= MAX_CHUNK_ROWS and size % 8 == 0:
            rows_at[chunk] = array("q", bytes(8 * size))
        else:
            yield f"{table}: chunk {chunk} has the wrong size {str(size)[:40]}"
    for rowid, chunk, offset in connection.execute(f"SELECT rowid, chunk_id, chunk_offset FROM {table}_rowids"):
        rows = rows_at.get(chunk)
        if rows is None or not isinstance(offset, int) or not 0 <= offset < len(rows):
            yield f"{table}: row {rowid} belongs to no chunk"
        elif rows[offset]:
            yield f"{table}: rows {rows[offset]} and {rowid} have the same offset in chunk {chunk}"
        else:
            rows[offset] = rowid
    for chunk, rows in rows_at.items():
        stored = connection.execute(
            f"SELECT CAST(validity AS BLOB), CAST(rowids AS BLOB) FROM {table}_chunks WHERE chunk_id = ?", (chunk,)
        ).fetchone()
        validity, rowids = stored or (b"", b"")
        if 8 * len(validity) != len(rows) or len(rowids) != 8 * len(rows):
            yield f"{table}: the content of chunk {chunk} has the wrong size"
            continue
        numbers = array("q", rowids)
        for offset, rowid in enumerate(rows):
            used = validity[offset // 8] >> offset % 8 & 1
            if used != (rowid != 0) or (used and numbers[offset] != rowid):
                yield f"{table}: chunk {chunk} contains other rows than the index lists"
                break
