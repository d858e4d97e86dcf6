"""What has a time in a window: sessions, explicit times of memories, and memories that were captured then.

Scores say how telling an entry is: a session 1, an explicit time its confidence, a captured memory 0.7. The relevance
is 1, or 0 for entries without the words of the query.

Source: docs/compatibility.md "Temporal requests"; docs/decisions.md 35.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Final, NamedTuple

import numpy as np

from signet_actors.domain.normalization import collapsed
from signet_actors.domain.query_words import match_terms
from signet_actors.protocol.searcher import ListTimeline, Recalled, RecalledRow, RowTime, StageTiming
from signet_actors.searcher.columns import Mask, Seqs
from signet_actors.searcher.legs.keyword import searched_terms
from signet_actors.searcher.reader import Reader
from signet_actors.searcher.times import EXPLICIT_FACETS, captured, explicit, sessions
from signet_actors.searcher.within import moment
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads.contents import RecallableRow, recalled_by_seq
from signet_actors.store.rows import decode_tags

SESSION_SCORE: Final = 1.0
CAPTURED_SCORE: Final = 0.7
LEAST_SCORE: Final = 0.1
MOST_SESSION_MEMORIES: Final = 10
"""So many of a session's memories, the first ones, are its content."""
MOST_WORDS: Final = 16
MOST_SHOWN_CHARS: Final = 900
MOST_READ_CHARS: Final = 8_000
"""Characters of a content that are read for the line that is shown."""
_BETWEEN_MEMORIES: Final = " \u00b7 "


class _Entry(NamedTuple):
    """``seqs``: the memory, or the first memories of a session."""

    score: float
    start_ms: int
    end_ms: int
    facet: str
    seqs: tuple[int, ...]
    is_session: bool = False


def timeline(reader: Reader, snapshot: Snapshot, command: ListTimeline) -> Recalled:
    """Return the entries of the window, the highest score first, then the latest."""
    began = perf_counter()
    reader.sync(snapshot)
    allowed = reader.allowed_rows(snapshot, command.read, command.filters)
    entries: list[_Entry] = []
    worded = _rows_with_all(reader, snapshot, allowed, command.words)
    if worded is not None:
        entries = _entries(reader, snapshot, command, worded)
    # What has a time in the window is what the caller asked for, unless it lacks the words.
    relevance = 1.0 if entries or worded is None else 0.0
    entries = entries or _entries(reader, snapshot, command, allowed)
    entries.sort(key=lambda entry: (-entry.score, -entry.start_ms, -entry.seqs[0]))
    entries = [entry for entry in entries if entry.score >= command.min_score and relevance >= command.min_relevance]
    rows = _read(snapshot, command, entries[: command.limit], relevance)
    took = StageTiming("timeline", round((perf_counter() - began) * 1000, 3))
    return Recalled(rows=rows, method="keyword", timings=[took])


def _entries(reader: Reader, snapshot: Snapshot, command: ListTimeline, allowed: Mask) -> list[_Entry]:
    """Return the entries of allowed rows; of each kind at least as many as the limit, the latest ones."""
    columns, window, limit = reader.columns, command.window, command.limit
    found: list[_Entry] = []
    for facet in (facet for facet in EXPLICIT_FACETS if facet in window.facets):
        times = explicit(snapshot, allowed, facet, window.start_ms, window.end_ms)
        for seq, start, end, confidence in zip(*(part.tolist() for part in times), strict=True):
            found.append(_Entry(max(LEAST_SCORE, min(1.0, confidence)), start, end, facet, (seq,)))
    if "captured" in window.facets:
        rows = _latest(columns.created_ms, captured(columns, allowed, window.start_ms, window.end_ms), limit)
        created = columns.created_ms[rows].tolist()
        found += [
            _Entry(CAPTURED_SCORE, ms, ms, "captured", (seq,)) for seq, ms in zip(rows.tolist(), created, strict=True)
        ]
    if "session" in window.facets:
        there = sessions(columns, allowed, window.start_ms, window.end_ms)
        for number in np.lexsort((-np.arange(len(there.start_ms)), -there.start_ms))[:limit].tolist():
            members = there.seqs[there.session == number]
            members = members[np.lexsort((members, columns.created_ms[members]))][:MOST_SESSION_MEMORIES]
            start, end = int(there.start_ms[number]), int(there.end_ms[number])
            found.append(_Entry(SESSION_SCORE, start, end, "session", tuple(members.tolist()), is_session=True))
    return found


def _latest(created_ms: Seqs, rows: Seqs, limit: int) -> Seqs:
    """Return the last created of ``rows``, the newer row first among equals."""
    if len(rows) > limit:
        created = created_ms[rows]
        rows = rows[created >= np.partition(created, len(rows) - limit)[len(rows) - limit]]
    return rows[np.lexsort((-rows, -created_ms[rows]))][:limit]


def _rows_with_all(reader: Reader, snapshot: Snapshot, allowed: Mask, words: str) -> Mask | None:
    """Return the allowed rows that contain every word; None if there are no words."""
    searched = searched_terms(match_terms(words, max_terms=MOST_WORDS))
    if not words or not searched:
        return None
    mask = allowed.copy()
    for term in searched:
        holds = np.zeros(len(mask), np.bool_)
        holds[term.rows(snapshot, reader.postings)] = True
        mask &= holds
    return mask


def _read(snapshot: Snapshot, command: ListTimeline, entries: list[_Entry], relevance: float) -> list[RecalledRow]:
    """Read the entries' memories. SQL applies policy and filters again before any content is read."""
    seqs = sorted({seq for entry in entries for seq in entry.seqs})
    stored = recalled_by_seq(snapshot, command.read, command.filters, seqs)
    return [_row(entry, stored, relevance) for entry in entries if any(seq in stored for seq in entry.seqs)]


def _row(entry: _Entry, stored: Mapping[int, RecallableRow], relevance: float) -> RecalledRow:
    members = [stored[seq] for seq in entry.seqs if seq in stored]
    row = members[0]
    line = row.content[:MOST_READ_CHARS]
    if entry.is_session:
        line = _BETWEEN_MEMORIES.join(collapsed(member.content[:MOST_READ_CHARS]) for member in members)
    is_whole = len(row.content) <= MOST_READ_CHARS
    start, end = moment(entry.start_ms), moment(entry.end_ms)
    subject_type, subject_id = ("session", row.session_id or "") if entry.is_session else ("memory", row.id)
    return RecalledRow(
        id=f"temporal:{subject_type}:{subject_id}:{entry.facet}",
        content=line[: MOST_SHOWN_CHARS + 1],
        score=round(entry.score, 6),
        source=f"temporal_{entry.facet}",
        type="session" if entry.is_session else row.type,
        tags=["temporal", "session"] if entry.is_session else decode_tags(row.tags),
        pinned=not entry.is_session and bool(row.pinned),
        importance=max(member.importance for member in members),
        who=row.who,
        project=row.project,
        scope=row.scope,
        visibility=row.visibility,
        agent_id=row.agent_id,
        created_at=(start or row.created_at) if entry.is_session else row.created_at,
        session_id=row.session_id,
        source_id=None if entry.is_session else row.source_id,
        source_type=None if entry.is_session else row.source_type,
        source_path=None if entry.is_session else row.source_path,
        content_version=row.content_version,
        content_length=len(line) if is_whole or entry.is_session else len(row.content),
        relevance=relevance,
        time=RowTime(entry.facet, start, end, subject_type, subject_id),
    )
