"""Rebuild derived data from the rows: text indexes, tag rows, vector tables, last numbers.

Stored content is never changed. A memory whose content does not match its checksum stays as it is, and the next check
finds it again.

Source: docs/reliability.md R18; docs/decisions.md 5 and 36.
"""

from __future__ import annotations

from typing import Any

import apsw

from signet_actors.store.sqlite.vector_checks import MAX_SEQ, largest_number, numbered_tables
from signet_actors.store.sqlite.vectors import create_vec_table


def repair_indexes(connection: apsw.Connection) -> tuple[str, ...]:
    """Rebuild every index in one transaction; return descriptions of what was done.

    A vector that is unusable, or that belongs to other content of its memory, is dropped; until the memory is embedded
    again, it is found by its words only. Raises apsw errors (nothing was changed).
    """
    done = []
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute("INSERT INTO memories_fts (memories_fts) VALUES ('rebuild')")
        done.append("the text index was rebuilt")
        if connection.pragma("user_version") >= 2:
            connection.execute(
                "DELETE FROM memory_hints WHERE NOT EXISTS"
                " (SELECT 1 FROM memories m WHERE m.id = memory_id AND m.seq = memory_seq AND m.is_deleted = 0)"
            )
            connection.execute("INSERT INTO memory_hints_fts (memory_hints_fts) VALUES ('rebuild')")
            done.append("the index of hints was rebuilt")
        if connection.pragma("user_version") >= 7:
            connection.execute("INSERT INTO session_turns_fts (session_turns_fts) VALUES ('rebuild')")
            done.append("the index of transcripts was rebuilt")
        connection.execute("DELETE FROM memory_tags")
        connection.execute(
            "INSERT INTO memory_tags (tag, memory_seq)"
            " SELECT DISTINCT t.value, m.seq FROM memories m, json_each(m.tags) t WHERE json_valid(m.tags)"
        )
        done.append("the tag rows were rebuilt")
        dropped = _drop_unusable_vectors(connection)
        if dropped:
            done.append(f"{dropped} unusable vectors were deleted; the daemon computes them again in the background")
        models: list[tuple[Any, ...]] = connection.execute(
            "SELECT id, model, dimensions FROM embedding_models"
        ).fetchall()
        for number, model, dimensions in models:
            connection.execute(f"DROP TABLE IF EXISTS vec_embeddings_{number}")
            table = create_vec_table(connection, number, dimensions)
            connection.execute(
                f"INSERT INTO {table} (rowid, embedding) SELECT e.seq, e.vector FROM embeddings e"
                " JOIN memories m ON m.id = e.source_id AND e.source_type = 'memory'"
                " WHERE e.model = ? AND e.dimensions = ? AND m.is_deleted = 0",
                (model, dimensions),
            )
        done.append("the vector tables were rebuilt")
        numbered = _renumber(connection)
        if numbered:
            done.append(f"the sequence number of {', '.join(numbered)} was set to the highest row number")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return tuple(done)


def _renumber(connection: apsw.Connection) -> list[str]:
    """Set what each table last gave out to its highest row where that is not possible as it is; return the tables."""
    wrong = []
    for table in numbered_tables(connection):
        highest = connection.execute(f'SELECT coalesce(max(rowid), 0) FROM "{table}"').get
        rows = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchall()
        stored = rows[0][0] if len(rows) == 1 else None
        right = isinstance(stored, int) and highest <= stored <= largest_number(connection, table, stored)
        if right or (not rows and not highest) or highest > MAX_SEQ:
            continue
        connection.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
        connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table, highest))
        wrong.append(table)
    return wrong


def _drop_unusable_vectors(connection: apsw.Connection) -> int:
    connection.execute(
        "DELETE FROM embeddings WHERE length(vector) <> 4 * dimensions OR (source_type = 'memory' AND NOT EXISTS"
        " (SELECT 1 FROM memories m WHERE m.id = embeddings.source_id AND m.content_hash = embeddings.content_hash))"
    )
    dropped = connection.changes()
    connection.execute(
        "UPDATE memories SET embedding_seq = NULL, embedding_model = NULL WHERE embedding_seq IS NOT NULL"
        " AND NOT EXISTS (SELECT 1 FROM embeddings e WHERE e.seq = memories.embedding_seq"
        " AND e.source_id = memories.id)"
    )
    return dropped
