"""Rows by a word or a tag that they have.

Numbers are returned as one text, separated by commas: that is much faster than a tuple per row when a word is frequent.
"""

from __future__ import annotations

from collections.abc import Sequence

from signet_actors.store.engine import Snapshot

_TAGGED = (
    "SELECT string_agg(CAST(t.memory_seq AS text), ',') FROM memory_tags t"
    " WHERE t.tag = :tag AND t.memory_seq >= :least"
)
_TAGGED_WITH_ANY = "SELECT t.memory_seq FROM memory_tags t WHERE t.tag IN ({})"


def rows_containing(snapshot: Snapshot, expression: str, least: int) -> str | None:
    """Return the ``memories.seq`` from ``least`` on whose text matches the expression, None if there are none."""
    return snapshot.postings(expression, least)


def rows_tagged(snapshot: Snapshot, tag: str, least: int) -> str | None:
    """Return the ``memories.seq`` from ``least`` on that have the tag, None if there are none."""
    listed: str | None = snapshot.value(_TAGGED, {"tag": tag, "least": least})
    return listed


def rows_tagged_with_any(snapshot: Snapshot, tags: Sequence[str]) -> list[int]:
    """Return the ``memories.seq`` that have at least one of the tags; a row may occur several times."""
    dialect = snapshot.dialect
    rows = snapshot.rows(_TAGGED_WITH_ANY.format(dialect.members("tags")), {"tags": dialect.listed(tags)})
    return [seq for (seq,) in rows]
