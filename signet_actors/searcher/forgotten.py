"""What was forgotten is not told without being asked for, from the transcripts of the sessions that said it.

A forgotten memory counts for as long as its row is kept, unless a live one says what the text says: a newer version of
it, or the same again.

Source: docs/concepts.md "What happens later"; docs/guides/hooks.md "Each prompt".
"""

from __future__ import annotations

from typing import Final

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
from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.searcher.reader import Reader
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads.contents import beginnings, contents_by_seq
from signet_actors.store.reads.tombstones import last_forgotten

_MOST_KNOWN: Final = 4000
_COMPARED: Final = 8
"""Of the live memories with words of a forgotten one, the best."""


class Forgotten:
    """The forgotten memories of an agent in a project, and those without a project."""

    def __init__(self, reader: Reader, snapshot: Snapshot, read: ReadScope, filters: Filters) -> None:
        self._reader, self._snapshot, self._read, self._filters = reader, snapshot, read, filters.projects
        reader.columns.sync(snapshot)
        rows = last_forgotten(snapshot, read, self._filters)
        known, generation = reader.statements, reader.columns.generation
        missing = [(seq, version) for seq, version in rows if (generation, seq, version) not in known]
        if len(known) + len(missing) > _MOST_KNOWN:
            known.clear()
            missing = rows
        texts = beginnings(snapshot, [seq for seq, _ in missing], MOST_CHARS) if missing else {}
        known |= {(generation, seq, version): statement_of(texts[seq]) for seq, version in missing}
        self._statements = {seq: known[generation, seq, version] for seq, version in rows}

    def tells(self, text: str) -> bool:
        """Return whether the text says what a forgotten memory says."""
        return bool(self._statements and self._said_in(text))

    def without(self, text: str, before: str = "") -> str:
        """Return the text without the sentences that say it, alone or as the answer to what was said ``before``."""
        said = self._said_in(f"{before}\n{text}") if self._statements else []
        return without_said(text, said, before) if said else text

    def _said_in(self, text: str) -> list[Statement]:
        passage = passage_of(text)
        said = [(seq, each) for seq, each in self._statements.items() if says(passage, each)]
        return [each for seq, each in said if not self._is_live(seq, each, passage)]

    def _is_live(self, seq: int, said: Statement, passage: Passage) -> bool:
        """Return whether a live memory says as much of the passage about the same."""
        reader, snapshot = self._reader, self._snapshot
        allowed = reader.allowed_rows(snapshot, self._read, self._filters)
        text = beginnings(snapshot, [seq], MOST_CHARS)[seq]
        hits = reader.keyword.search(snapshot, text, allowed, pool=_COMPARED)
        live = contents_by_seq(snapshot, self._read, hits.seqs[:_COMPARED].tolist())
        return any(says_rather(passage, statement_of(content), said) for content in live.values())
