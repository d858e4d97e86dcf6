"""The index's own tokenizer, for looking terms up in its vocabulary."""

from __future__ import annotations

import apsw

_TOKENIZER = ("porter", ["unicode61", "remove_diacritics", "2"])


def stem(connection: apsw.Connection, text: str) -> list[str]:
    """The tokens that the index would store for ``text``, stemmed."""
    tokenizer = connection.fts5_tokenizer(*_TOKENIZER)
    tokens = tokenizer(text.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False, include_colocated=False)
    return [str(token) for token in tokens]
