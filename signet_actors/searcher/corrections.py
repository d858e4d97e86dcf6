"""What a newer memory says has changed stands beside the older one that a recall has found.

A newer memory with words of change is about the older one if its relevance to it, as if that were a query, is high, or
if it says of a rare name of the older one, or of a rare word with which both begin, that it has changed.

Source: docs/quality.md "Versions of a fact"; docs/compatibility.md "Recall".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from signet_actors.domain.query_words import phrase_expression, words_of
from signet_actors.domain.ranking import relevance
from signet_actors.domain.ranking.text_flags import TELLS_CHANGE
from signet_actors.domain.stop_words import STOP_WORDS
from signet_actors.domain.temporal.change import NOTHING, Subject, shared, subject_of
from signet_actors.domain.timestamps import epoch_ms
from signet_actors.domain.transcripts.turns import without_labels
from signet_actors.protocol.memories import Filters, ReadScope, Wording
from signet_actors.protocol.searcher import Recall, Recalled, RecalledRow
from signet_actors.searcher.columns import Seqs
from signet_actors.searcher.own_times import own_times
from signet_actors.searcher.postings import MATCH
from signet_actors.searcher.reader import Reader
from signet_actors.searcher.recalled_rows import RowScores, recalled_row
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads.contents import RecallableRow, contents_by_seq, recalled_by_seq

ANSWERS: Final = 0.5
NEARLY_ALL: Final = 0.75
MOST_ROWS: Final = 5
"""Of the rows that answer, the best ones."""
MOST_CHANGES: Final = 2000
"""Of the memories with words of change, the newest ones."""
MOST_COMPARED: Final = 6
"""Of these, the nearest to the older memory."""
MOST_WITHOUT_VECTOR: Final = 100
"""If it is not known which are nearest: the newest of these."""
SURELY: Final = 0.83
"""The least relevance of the newer memory to the older one, as if that were a query."""
RARE_ROWS: Final = 8
RARE_SHARE: Final = 0.08
"""A word that more memories have tells nothing of what two of them are about."""
MOST_SUBJECTS: Final = 2000
"""Of texts, what they are about is remembered."""
NAMED_ROWS: Final = 3
"""A name that no more memories have, and that has changed, is enough."""
_EXTENT: Final = 2.0

Floats = npt.NDArray[np.float64]


class Corrections:
    """Finds what the memories that a request may read say has changed."""

    def __init__(self, reader: Reader, snapshot: Snapshot, read: ReadScope, filters: Filters) -> None:
        self._reader, self._snapshot, self._read, self._filters = reader, snapshot, read, filters
        allowed = reader.allowed_rows(snapshot, read, filters)
        flags = reader.flags.records["flags"][: len(allowed)]
        self._changes = np.flatnonzero(allowed[: len(flags)] & ((flags & TELLS_CHANGE) > 0))[-MOST_CHANGES:]

    def newest(self, seq: int, content: str) -> RecallableRow | None:
        """Return the newest memory that says what has changed of the row with this content, None if there is none."""
        return self.newest_since(int(self._reader.columns.content_ms[seq]), content, seq)

    def newest_since(self, said_ms: int, content: str, seq: int | None = None) -> RecallableRow | None:
        """Return the newest memory after this time that says what has changed of the content."""
        times = self._reader.columns.content_ms
        newer = self._changes[times[self._changes] > said_ms]
        if not len(newer):
            return None
        near, standing = self._nearest(seq, newer)
        subject = subject_of(content)
        both = [shared(subject, other, self._is_rare, self._is_very_rare) for other in self._subjects(near)]
        about = relevance.relevance(np.array([each.share for each in both]), standing, _EXTENT) >= SURELY
        # A turn names much: it has to share more with the newer one than the name.
        by_name = np.array([(each.has_name or each.has_topic) and (seq is not None or each.share > 0) for each in both])
        by_name &= ~(standing <= 0.0)
        passing = near[about | by_name]
        if not len(passing):
            return None
        newest = int(passing[np.lexsort((passing, times[passing]))[-1]])
        return recalled_by_seq(self._snapshot, self._read, self._filters, [newest]).get(newest)

    def _subjects(self, rows: Seqs) -> list[Subject]:
        """Return what each of the rows is about, which the reader remembers."""
        known, columns = self._reader.change_subjects, self._reader.columns
        keys = [(columns.generation, *wording) for wording in columns.wordings(rows)]
        missing = [seq for key, seq in zip(keys, rows.tolist(), strict=True) if key not in known]
        if len(known) > MOST_SUBJECTS:
            known.clear()
            missing = rows.tolist()
        texts = contents_by_seq(self._snapshot, self._read, missing) if missing else {}
        known |= {key: subject_of(texts[key[1]]) for key in keys if key[1] in texts}
        return [known.get(key, NOTHING) for key in keys]

    def _nearest(self, seq: int | None, newer: Seqs) -> tuple[Seqs, Floats]:
        """Return those of the ``newer`` rows that are nearest to the row, and how far they stand above unrelated ones.

        Without a vector of the row: the newest ones, and NaN.
        """
        reader = self._reader
        for leg in reader.vector_legs():
            vector = None if seq is None else leg.vector_of(seq)
            if vector is not None:
                cosines = leg.cosines(self._snapshot, reader.columns, vector, newer)
                best = np.argsort(-np.nan_to_num(cosines, nan=-1.0), kind="stable")[:MOST_COMPARED]
                counted = reader.counted_rows(self._snapshot, self._read, self._filters)
                mean, spread = reader.unrelated.get(leg, counted)
                return newer[best], (cosines[best] - mean) / spread
        near = newer[-MOST_WITHOUT_VECTOR:]
        return near, np.full(len(near), np.nan)

    def _is_rare(self, word: str) -> bool:
        return self._holding(word) <= max(RARE_ROWS, RARE_SHARE * self._reader.columns.indexed_rows)

    def _is_very_rare(self, word: str) -> bool:
        return self._holding(word) <= NAMED_ROWS

    def _holding(self, word: str) -> int:
        """Return how many memories have the word."""
        return len(self._reader.postings.lookup(self._snapshot, MATCH, phrase_expression(word)))


def with_corrections(reader: Reader, snapshot: Snapshot, command: Recall, found: Recalled) -> Recalled:
    """Return ``found`` with the newer memory after each older one that it corrects, which is marked.

    The order of what was found stays: the newer one may leave the question open.
    """
    answering = [row for row in found.rows if row.relevance >= ANSWERS][:MOST_ROWS]
    if not answering:
        return found
    corrections = Corrections(reader, snapshot, command.read, command.filters)
    rows = list(found.rows)
    for row in answering:
        newer = corrections.newest(row.seq, row.content)
        if newer is not None:
            beside = _row(reader, snapshot, newer, row, command)
            is_first = _answers_as_much(command.query, row.content, newer.content)
            rows = _beside(rows, row, beside, command.received, is_first=is_first)
    return msgspec.structs.replace(found, rows=rows[: command.limit])


def with_newer_than_turns(reader: Reader, snapshot: Snapshot, command: Recall, found: Recalled) -> Recalled:
    """Return ``found`` with the newer memory of what each turn says has changed since; the turn is marked."""
    if not found.turns:
        return found
    corrections = Corrections(reader, snapshot, command.read, command.filters)
    rows, turns = list(found.rows), list(found.turns)
    for at, turn in enumerate(turns[:MOST_ROWS]):
        newer = corrections.newest_since(epoch_ms(turn.created_at) or 0, without_labels(turn.content))
        if newer is None:
            continue
        turns[at] = msgspec.structs.replace(turn, newer_id=newer.id)
        row = _row(reader, snapshot, newer, turn, command)
        rows = [each for each in rows if each.id != row.id or each.relevance >= ANSWERS]
        if row.wording not in command.received and all(each.id != row.id for each in rows):
            rows.insert(sum(each.relevance >= ANSWERS for each in rows), row)
    return msgspec.structs.replace(found, rows=rows[: command.limit], turns=turns)


def _answers_as_much(query: str, older: str, newer: str) -> bool:
    """Return whether the newer text has nearly all words of the query that the older one has."""
    asked = (set(words_of(query)) - STOP_WORDS) & set(words_of(older))
    return len(asked & set(words_of(newer))) >= NEARLY_ALL * len(asked)


def _beside(
    rows: list[RecalledRow], older: RecalledRow, newer: RecalledRow, received: Sequence[Wording], *, is_first: bool
) -> list[RecalledRow]:
    """Return the rows with ``newer`` directly after the older one, unless it stands before it or is ``received``.

    With ``is_first`` it stands directly before the older one if it was found, too, and answers. Where it stands before
    it, it answers as well.
    """
    at = next(at for at, row in enumerate(rows) if row.id == older.id)
    before = [
        msgspec.structs.replace(row, relevance=max(row.relevance, older.relevance)) if row.id == newer.id else row
        for row in rows[:at]
    ]
    after = [row for row in rows[at + 1 :] if row.id != newer.id]
    is_there = newer.wording in received or any(row.id == newer.id for row in before)
    marked = msgspec.structs.replace(rows[at], newer_id=newer.id)
    if is_first and not is_there and any(row.id == newer.id and row.relevance >= ANSWERS for row in rows):
        return [*before, newer, marked, *after]
    return [*before, marked, *([] if is_there else [newer]), *after]


def _row(reader: Reader, snapshot: Snapshot, row: RecallableRow, older: RecalledRow, command: Recall) -> RecalledRow:
    """Return the row of the newer memory, which answers as well as the older one."""
    seqs = np.array([row.seq])
    own, version = own_times(snapshot, reader.columns, seqs)[0], reader.columns.content_version[row.seq]
    return recalled_row(
        row, command, RowScores(older.score, older.relevance, older.source, row.seq, int(own), int(version))
    )
