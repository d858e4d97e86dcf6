"""Recall within a time window: its rows first, and on request the others after them.

Source: docs/decisions.md 58; docs/compatibility.md "Temporal requests".
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from signet_actors.domain.ranking.explanation import ExplainedId, Move
from signet_actors.domain.ranking.reasons import with_reasons, with_why
from signet_actors.domain.timestamps import iso
from signet_actors.protocol.searcher import Recall, Recalled, RecalledRow, RowTime, StageTiming
from signet_actors.searcher.explain import TIME_WINDOW
from signet_actors.searcher.reader import Reader
from signet_actors.searcher.recall import recall
from signet_actors.searcher.times import OPEN_MS, Times, rows_in
from signet_actors.store.engine import Snapshot


def recall_within(reader: Reader, snapshot: Snapshot, command: Recall, frames: list[bytes]) -> Recalled:
    """Return the best rows of the command's window, best first, each with its time; of all rows without a window.

    With ``fill``, the best others follow; their scores are lowered so that the scores still descend.
    """
    window = command.within
    if window is None:
        return recall(reader, snapshot, command, frames)
    reader.sync(snapshot)
    allowed = reader.allowed_rows(snapshot, command.read, command.filters)
    found, inside = rows_in(reader.columns, snapshot, allowed, window.facets, window.start_ms, window.end_ms)
    first = recall(reader, snapshot, msgspec.structs.replace(command, near_ms=None), frames, among=inside)
    times = _times(found, {row.seq for row in first.rows})
    rows = [msgspec.structs.replace(row, time=_row_time(row.id, *times[row.seq])) for row in first.rows]
    missing = command.limit - len(rows)
    if not window.fill or missing <= 0:
        return msgspec.structs.replace(first, rows=rows)
    others = recall(reader, snapshot, msgspec.structs.replace(command, limit=missing), frames, among=~inside)
    fate = first.explained
    if fate is not None and fate.filters == [TIME_WINDOW]:
        fate = _after(len(rows), others.explained)
    took = sum(stage.duration_ms for stage in others.timings)
    return msgspec.structs.replace(
        first,
        rows=rows + _below(rows, others.rows),
        explained=fate,
        suppressed=first.suppressed + others.suppressed,
        received_hits=first.received_hits + others.received_hits,
        timings=[*first.timings, StageTiming("outside_window", round(took, 3))],
    )


def _times(found: Mapping[str, Times], wanted: set[int]) -> dict[int, tuple[str, int, int]]:
    """Return the most telling time of each wanted row: ``(facet, start_ms, end_ms)``."""
    telling: dict[int, tuple[str, int, int]] = {}
    seqs = np.array(sorted(wanted), np.int64)
    for facet, times in found.items():
        for at in np.flatnonzero(np.isin(times.seqs, seqs)).tolist():
            telling.setdefault(int(times.seqs[at]), (facet, int(times.start_ms[at]), int(times.end_ms[at])))
    return telling


def _row_time(memory_id: str, facet: str, start_ms: int, end_ms: int) -> RowTime:
    return RowTime(facet, moment(start_ms), moment(end_ms), "memory", memory_id)


def moment(ms: int) -> str | None:
    """Return the time in the storage form, None for an open end."""
    return None if ms == OPEN_MS else iso(ms)


def _below(rows: list[RecalledRow], others: list[RecalledRow]) -> list[RecalledRow]:
    """Return ``others`` with scores of at most the last one of ``rows``, in the same proportions."""
    if not rows or not others or others[0].score <= rows[-1].score:
        return others
    ratio = rows[-1].score / others[0].score
    return [_lowered(row, ratio) for row in others]


def _lowered(row: RecalledRow, ratio: float) -> RecalledRow:
    score, why = round(row.score * ratio, 6), row.explanation
    if why is not None:
        moves = [*why.moves, Move("outside_window", round(score - why.score, 6))]
        why = with_reasons(msgspec.structs.replace(why, moves=moves, score=score))
    return msgspec.structs.replace(row, score=score, explanation=why)


def _after(count: int, fate: ExplainedId | None) -> ExplainedId | None:
    """Return ``fate`` with its rank and limit counted after ``count`` rows of the window."""
    if fate is None or fate.rank is None:
        return fate
    threshold = None if fate.threshold is None else fate.threshold + count
    return with_why(msgspec.structs.replace(fate, rank=fate.rank + count, threshold=threshold))
