"""What was forgotten is not told without being asked for, from the transcripts of the sessions that said it.

A forgotten memory counts for as long as its row is kept, and what a memory said before an edit for as long as its
history is, unless a live memory says what the text says: a newer version of it, or the same again. Of an edited memory
only what states its former value is left out; what else was said about it may still be right.

Source: docs/concepts.md "What happens later"; docs/guides/hooks.md "Each prompt".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec

from signet_actors.domain.dated_sections import SUMMARY_TYPE
from signet_actors.domain.said_again import (
    MOST_CHARS,
    Former,
    Passage,
    Statement,
    former_of,
    has_former,
    says,
    says_rather,
    statements_of,
    tells_more,
    without_said,
)
from signet_actors.domain.session_inject import NEWER, SHORT_ID_CHARS
from signet_actors.domain.transcripts.turns import conversation, turns_of_conversation, without_labels
from signet_actors.protocol.memories import Filters, Memory, ReadScope
from signet_actors.protocol.searcher import RecalledRow
from signet_actors.searcher.reader import Reader
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads.contents import beginnings, contents_by_seq
from signet_actors.store.reads.tombstones import Edit, former_beginnings, former_texts, last_forgotten

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
        edits = former_texts(snapshot, read, self._filters)
        now = {edit.event: (generation, edit.seq, edit.version) for edit in edits if not edit.is_forgotten}
        keys: list[tuple[int, ...]] = [*rows, *((edit.event,) for edit in edits), *now.values()]
        known = reader.statements
        missing = [key for key in keys if key not in known]
        if len(known) + len(missing) > _MOST_KNOWN:
            known.clear()
            missing = keys
        known |= {key: statements_of(text) for key, text in self._texts(missing).items()}
        strict = [*rows, *((edit.event,) for edit in edits if edit.is_forgotten)]
        self._statements: dict[tuple[int, ...], tuple[Statement, ...]] = {key: known[key] for key in strict}
        formers = {
            edit: former_of(known[edit.event,][0], known[now[edit.event]][0]) for edit in edits if edit.event in now
        }
        self._formers = {edit: former for edit, former in formers.items() if former is not None}

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
        formers = self._outdated_in(f"{before}\n{text}")
        return without_said(text, said, before, formers.values()) if said or formers else text

    def marked(self, text: str, before: str = "") -> str:
        """Return what ``without`` leaves; if it has the former value of an edited memory, that is named behind it."""
        left = self.without(text, before)
        newer = next((edit.memory_id for edit in self._outdated_in(left)), None)
        return left if newer is None else f"{left.rstrip()}{NEWER.format(id=newer[:SHORT_ID_CHARS])}"

    def left_of(self, row: Row) -> Row | None:
        """Return the row; the summary of a session without the sentences that say it, None if it has no others."""
        if row.type != SUMMARY_TYPE or row.pinned:
            return row
        text = self.without(row.content)
        return msgspec.structs.replace(row, content=text) if text else None

    def left_of_turn(self, row: RecalledRow) -> RecalledRow | None:
        """Return the exchange without what states a former value; None if it says what was forgotten, or nothing else.

        If it still has the former value, it is marked with the memory that was edited.
        """
        text = without_labels(row.content)
        if self.tells(text):
            return None
        outdated = self._outdated_in(text)
        if not outdated:
            return row
        formers, before, left = [*outdated.values()], "", []
        turns = turns_of_conversation(row.content)
        for role, said, continues in turns:
            left.append((role, without_said(said, (), before, formers), continues))
            before = f"{before}\n{said}"
        kept = [each for each in left if each[1]]
        rest = "\n".join(each[1] for each in kept)
        roles = {role for role, *_ in turns} - {role for role, *_ in kept}
        if [each[1] for each in left] != [said.strip() for _, said, _ in turns] and (
            "assistant" in roles or not tells_more(rest, formers)
        ):
            return None
        newer = next((edit.memory_id for edit in self._outdated_in(rest)), row.newer_id)
        return msgspec.structs.replace(row, content=conversation(kept), newer_id=newer)

    def _outdated_in(self, text: str) -> dict[Edit, Former]:
        """Return the edits after which the text may have a former value, which no live memory has."""
        if not self._formers:
            return {}
        passage = Passage(text)
        words = frozenset[str]().union(*(part.words for part in passage.parts))
        found = {edit: former for edit, former in self._formers.items() if has_former(words, former)}
        return {edit: each for edit, each in found.items() if not self._is_live((edit.event,), each.said, passage)}

    def _said_in(self, text: str) -> list[Statement]:
        passage = Passage(text)
        said = [(key, each) for key, memory in self._statements.items() for each in memory if says(passage, each)]
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
        return any(says_rather(passage, each, said) for content in live.values() for each in statements_of(content))
