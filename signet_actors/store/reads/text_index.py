"""The index of words: rows that contain an expression, tagged rows, and how many rows contain a term.

Numbers are returned as one text, separated by commas: that is much faster than a tuple per row when a word is frequent.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from signet_actors.store.sqlite.fts_tokens import stem
from signet_actors.store.sqlite.snapshot import Snapshot

_CONTAINING = "SELECT group_concat(rowid) FROM memories_fts WHERE memories_fts MATCH ? AND rowid >= ?"
_TAGGED = "SELECT group_concat(memory_seq) FROM memory_tags WHERE tag = ? AND memory_seq >= ?"
_TAGGED_WITH_ANY = "SELECT memory_seq FROM memory_tags WHERE tag IN (SELECT value FROM json_each(?))"
_ROWS_WITH_TERM = "SELECT doc FROM memories_fts_terms WHERE term = ?"


def rows_containing(snapshot: Snapshot, expression: str, least: int) -> str | None:
    """Return the ``memories.seq`` from ``least`` on whose text matches the FTS5 expression, None if there are none."""
    listed: str | None = snapshot.value(_CONTAINING, (expression, least))
    return listed


def rows_tagged(snapshot: Snapshot, tag: str, least: int) -> str | None:
    """Return the ``memories.seq`` from ``least`` on that have the tag, None if there are none."""
    listed: str | None = snapshot.value(_TAGGED, (tag, least))
    return listed


def rows_tagged_with_any(snapshot: Snapshot, tags: Sequence[str]) -> list[int]:
    """Return the ``memories.seq`` that have at least one of the tags; a row may occur several times."""
    return [seq for (seq,) in snapshot.rows(_TAGGED_WITH_ANY, (msgspec.json.encode(tags).decode(),))]


def row_count_of_term(snapshot: Snapshot, term: str) -> int:
    """Return how many rows contain the stemmed term."""
    return snapshot.value(_ROWS_WITH_TERM, (term,)) or 0


def stemmed(snapshot: Snapshot, text: str) -> list[str]:
    """Return the stemmed terms that the index would store for ``text``."""
    return stem(snapshot.connection, text)
