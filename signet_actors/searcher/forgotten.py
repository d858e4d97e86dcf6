"""What was forgotten is not told without being asked for, from the transcripts of the sessions that said it.

A forgotten memory counts for as long as its row is kept, and what a memory said before an edit for as long as its
history is, unless a live memory says what the text says: a newer version of it, or the same again.

Source: docs/concepts.md "What happens later"; docs/guides/hooks.md "Each prompt".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec

from signet_actors.domain.dated_sections import SUMMARY_TYPE
from signet_actors.domain.said_again import (
    MOST_CHARS,
    Passage,
    Statement,
    passage_of,
    says,
    says_rather,
    statement_of,
    without_said,
)
from signet_actors.protocol.memories import Filters, Memory, ReadScope
from signet_actors.protocol.searcher import RecalledRow
from signet_actors.searcher.reader import Reader
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads.contents import beginnings, contents_by_seq
from signet_actors.store.reads.tombstones import former_beginnings, former_texts, last_forgotten

Row = TypeVar("Row", Memory, RecalledRow)
_MOST_KNOWN: Final = 4000
_COMPARED: Final = 8
"""Of the live memories with words of a forgotten one, the best."""


class Forgotten:
    """The forgotten memories of an agent in a project and of those without a project, and their texts before edits."""

    def __init__(self, reader: Reader, snapshot: Snapshot, read: ReadScope, filters: Filters) -> None:
        self._reader, self._snapshot, self._read, self._filters = reader, snapshot, read, filters.projects
        reader.columns.sync(snapshot)
        generation = reader.columns.generation
        rows = [(generation, *wording) for wording in last_forgotten(snapshot, read, self._filters)]
        keys: list[tuple[int, ...]] = [*rows, *((event,) for event in former_texts(snapshot, read, self._filters))]
        known = reader.statements
        missing = [key for key in keys if key not in known]
        if len(known) + len(missing) > _MOST_KNOWN:
            known.clear()
            missing = keys
        known |= {key: statement_of(text) for key, text in self._texts(missing).items()}
        self._statements = {key: known[key] for key in keys}

    def _texts(self, keys: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...], str]:
        """Return the text of each: of a wording of a memory, or of what an event has changed."""
        wordings, events = [key for key in keys if len(key) > 1], [key[0] for key in keys if len(key) == 1]
        rows = beginnings(self._snapshot, [key[1] for key in wordings], MOST_CHARS) if wordings else {}
        former = former_beginnings(self._snapshot, events, MOST_CHARS) if events else {}
        return {**{key: rows[key[1]] for key in wordings}, **{(event,): text for event, text in former.items()}}

    def tells(self, text: str) -> bool:
        """Return whether the text says what a forgotten memory says."""
        return bool(self._statements and self._said_in(text))

    def without(self, text: str, before: str = "") -> str:
        """Return the text without the sentences that say it, alone or as the answer to what was said ``before``."""
        said = self._said_in(f"{before}\n{text}") if self._statements else []
        return without_said(text, said, before) if said else text

    def left_of(self, row: Row) -> Row | None:
        """Return the row; the summary of a session without the sentences that say it, None if it has no others."""
        if row.type != SUMMARY_TYPE or row.pinned:
            return row
        text = self.without(row.content)
        return msgspec.structs.replace(row, content=text) if text else None

    def _said_in(self, text: str) -> list[Statement]:
        passage = passage_of(text)
        said = [(key, each) for key, each in self._statements.items() if says(passage, each)]
        return [each for key, each in said if not self._is_live(key, each, passage)]

    def _is_live(self, key: tuple[int, ...], said: Statement, passage: Passage) -> bool:
        """Return whether a live memory says as much of the passage about the same; summaries tell what was said."""
        reader, snapshot = self._reader, self._snapshot
        allowed = reader.allowed_rows(snapshot, self._read, self._filters)
        size = len(allowed)
        allowed = allowed & (reader.columns.pinned[:size] | ~reader.columns.with_texts("type", (SUMMARY_TYPE,), size))
        text = self._texts([key])[key]
        hits = reader.keyword.search(snapshot, text, allowed, pool=_COMPARED)
        live = contents_by_seq(snapshot, self._read, hits.seqs[:_COMPARED].tolist())
        return any(says_rather(passage, statement_of(content), said) for content in live.values())
