"""The tokenizer of the text index, to look terms up in its vocabulary."""

from __future__ import annotations

import apsw

_TOKENIZER = ("porter", ["unicode61", "remove_diacritics", "2"])


def stem(connection: apsw.Connection, text: str) -> list[str]:
    """Return the stemmed tokens that the index would store for ``text``."""
    tokenizer = connection.fts5_tokenizer(*_TOKENIZER)
    tokens = tokenizer(text.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False, include_colocated=False)
    return [str(token) for token in tokens]


def token_count(size: bytes | None) -> int:
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
