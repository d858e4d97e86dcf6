"""What SQLite spells in its own way inside the store's statements, and the tokens of its text index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import apsw
import msgspec

from signet_actors.store.engine import RankedSearch

_TOKENIZER: Final = ("porter", ["unicode61", "remove_diacritics", "2"])


class SqliteDialect:
    """The parts of a statement that are SQLite's own."""

    ranked_search: Final = RankedSearch(
        "memories_fts JOIN memories m ON m.seq = memories_fts.rowid WHERE memories_fts MATCH :match",
        "bm25(memories_fts)",
        "memories_fts.rank",
    )
    turn_search: Final = RankedSearch(
        "session_turns_fts JOIN session_turns u ON u.seq = session_turns_fts.rowid"
        " JOIN session_transcripts m ON m.seq = u.transcript_seq WHERE session_turns_fts MATCH :match",
        "bm25(session_turns_fts)",
        "session_turns_fts.rank",
    )
    text_sizes: Final = "memories_fts_docsize"
    hint_sizes: Final = "memory_hints_fts_docsize"

    def token_count(self, size: bytes | None) -> int:
        """Return the number of tokens of a row, from its ``sz`` in FTS5's ``docsize`` table; 0 for a row without one.

        Source: https://www.sqlite.org/fts5.html "The %_docsize table" (one varint per column).
        """
        if size is None:
            return 0
        total = number = 0
        for byte in size:
            number = number << 7 | byte & 0x7F
            if byte < 0x80:
                total, number = total + number, 0
        return total

    def members(self, name: str) -> str:
        return f"SELECT value FROM json_each(:{name})"

    def listed(self, values: Sequence[int] | Sequence[str]) -> str:
        return msgspec.json.encode(values).decode()

    def unix_ms(self, column: str) -> str:
        return f"CAST(round(unixepoch({column}, 'subsec') * 1000) AS INTEGER)"

    def without_keys(self, column: str, *keys: str) -> str:
        paths = ", ".join(f"'$.{key}'" for key in keys)
        return f"json_remove({column}, {paths})"


DIALECT: Final = SqliteDialect()


def stem(connection: apsw.Connection, text: str) -> list[str]:
    """Return the stemmed tokens that the index would store for ``text``."""
    tokenizer = connection.fts5_tokenizer(*_TOKENIZER)
    tokens = tokenizer(text.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False, include_colocated=False)
    return [str(token) for token in tokens]
