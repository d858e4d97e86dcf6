"""The times of memories that lie in a window: when they were captured, their explicit times, and their sessions.

A session lasts from its first to its last memory. One that lasts longer than a day is no time: its id is used again and
again, and only its memories within the window count.

Source: memory-api.txt "POST /api/memory/recall" (time.facets); docs/compatibility.md "Temporal requests".
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from signet_actors.domain.timestamps import iso
from signet_actors.searcher.columns import DAY_MS, Mask, MemoryColumns, Seqs
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads import temporal_edges

MOST_EDGES: Final = 2_000
"""Explicit times of a facet, of allowed rows, that begin last in the window; as many may have begun before it."""
MOST_SESSION_ROWS: Final = 50_000
"""Memories with a session that one query considers, the newest."""
OPEN_MS: Final = np.iinfo(np.int64).min
"""Stands for an end that is open."""

EXPLICIT_FACETS: Final = ("occurred", "observed", "valid", "source", "session", "captured")
"""Facets of explicit times, the most telling one first."""


class Times(NamedTuple):
    """Times of one facet in parallel arrays; a row may occur several times. ``OPEN_MS`` is an open end."""

    seqs: Seqs
    start_ms: Seqs
    end_ms: Seqs
    confidence: npt.NDArray[np.float64]


class Sessions(NamedTuple):
    """Sessions in parallel arrays, and their rows: ``session[i]`` is the position of the session of ``seqs[i]``."""

    start_ms: Seqs
    end_ms: Seqs
    seqs: Seqs
    session: npt.NDArray[np.int64]


def captured(columns: MemoryColumns, allowed: Mask, start_ms: int, end_ms: int) -> Seqs:
    """Return the allowed rows that were created in the window, ascending."""
    created = columns.created_ms[: len(allowed)]
    return np.flatnonzero(allowed & (created >= start_ms) & (created < end_ms))


def explicit(snapshot: Snapshot, allowed: Mask, facet: str, start_ms: int, end_ms: int) -> Times:
    """Return the explicit times of a facet in the window, of allowed rows, the latest start first."""
    edges = temporal_edges.overlapping(
        snapshot, facet, iso(start_ms), iso(end_ms), MOST_EDGES, lambda seq: seq < len(allowed) and bool(allowed[seq])
    )
    return Times(
        np.array([edge.seq for edge in edges], np.int64),
        np.array([OPEN_MS if edge.start_ms is None else edge.start_ms for edge in edges], np.int64),
        np.array([OPEN_MS if edge.end_ms is None else edge.end_ms for edge in edges], np.int64),
        np.array([edge.confidence for edge in edges], np.float64),
    )


def sessions(columns: MemoryColumns, allowed: Mask, start_ms: int, end_ms: int) -> Sessions:
    """Return the sessions that overlap the window, with the rows of each that count: the allowed ones within a day."""
    rows = columns.with_session(captured(columns, allowed, start_ms - DAY_MS, end_ms + DAY_MS))
    if len(rows) > MOST_SESSION_ROWS:
        created = columns.created_ms[rows]
        rows = rows[np.argpartition(created, -MOST_SESSION_ROWS)[-MOST_SESSION_ROWS:]]
        rows.sort()
    numbers, session = np.unique(columns.session_numbers(rows), return_inverse=True)
    created = columns.created_ms[rows]
    inside = (created >= start_ms) & (created < end_ms)
    first, last = _ends(created, session, len(numbers))
    long_ = (last - first > DAY_MS) | columns.has_session_rows_outside(
        allowed, numbers, start_ms - DAY_MS, end_ms + DAY_MS
    )
    # A long session is the part of it in the window.
    part_first, part_last = _ends(created[inside], session[inside], len(numbers))
    first, last = np.where(long_, part_first, first), np.where(long_, part_last, last)
    overlaps = (first < end_ms) & (last >= start_ms) & (first <= last)
    counts = overlaps[session] & (inside | ~long_[session])
    position = np.cumsum(overlaps) - 1
    return Sessions(first[overlaps], last[overlaps], rows[counts], position[session[counts]])


def rows_in(
    columns: MemoryColumns, snapshot: Snapshot, allowed: Mask, facets: Collection[str], start_ms: int, end_ms: int
) -> tuple[dict[str, Times], Mask]:
    """Return the times of allowed rows in the window by facet, the most telling facet first, and the rows as a mask."""
    found: dict[str, Times] = {}
    for facet in EXPLICIT_FACETS:
        if facet in facets:
            found[facet] = explicit(snapshot, allowed, facet, start_ms, end_ms)
    if "captured" in facets:
        seqs = captured(columns, allowed, start_ms, end_ms)
        created = columns.created_ms[seqs]
        found["captured"] = _joined(found["captured"], Times(seqs, created, created, np.ones(len(seqs))))
    if "session" in facets:
        there = sessions(columns, allowed, start_ms, end_ms)
        first, last = there.start_ms[there.session], there.end_ms[there.session]
        found["session"] = _joined(found["session"], Times(there.seqs, first, last, np.ones(len(first))))
        found["session"] = found.pop("session")  # what a session says of a memory comes last
    inside = np.zeros(len(allowed), np.bool_)
    for times in found.values():
        inside[times.seqs] = True
    return found, inside


def _ends(created: Seqs, session: npt.NDArray[np.int64], count: int) -> tuple[Seqs, Seqs]:
    """Return the first and last time of each session; the first is after the last for one without rows."""
    first, last = np.full(count, np.iinfo(np.int64).max), np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(first, session, created)
    np.maximum.at(last, session, created)
    return first, last


def _joined(one: Times, other: Times) -> Times:
    return Times(*(np.concatenate(pair) for pair in zip(one, other, strict=True)))
