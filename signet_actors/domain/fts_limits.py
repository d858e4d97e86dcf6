"""Limits of an FTS5 expression that a caller writes: the number of its words, and what makes a single word expensive.

SQLite cannot interrupt some steps of FTS5, so the cost of an expression must be bounded before it runs. The syntax
itself is left to FTS5, which refuses an invalid expression and deep nesting.

Source: https://www.sqlite.org/fts5.html "Full-text Query Syntax"; docs/compatibility.md "Recall";
docs/security.md A11.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from signet_actors.errors import InvalidRequest

MAX_WORDS: Final = 64
MAX_PREFIXES: Final = 8
"""A prefix reads the rows of every word that begins with it."""
MAX_NEAR_WORDS: Final = 8
MAX_REPEATS: Final = 4
"""FTS5 reads and ranks each occurrence of a word in the text once for every time that the expression contains it."""

_LEXEME: Final = re.compile(r'"(?>(?:[^"]++|"")*)"?|[A-Za-z0-9_\x1a\x80-\U0010ffff]++|[^\s]')
_OPERATORS: Final = frozenset({"AND", "OR", "NOT"})


def check_fts_limits(expression: str, words_of: Callable[[str], Sequence[str]]) -> None:
    """Raise InvalidRequest (field ``q``) if ``expression`` is too expensive.

    ``words_of`` returns the words that the tokenizer of the index finds in a text.
    """
    lexemes = _LEXEME.findall(expression)
    words: Counter[str] = Counter()
    prefixes = near_words = 0
    in_columns = in_near = False
    for former, lexeme, following in zip(["", *lexemes], lexemes, [*lexemes[1:], ""], strict=False):
        if lexeme in {"{", "}"}:
            in_columns = lexeme == "{"
        elif lexeme == "*":
            prefixes += 1
        elif lexeme == "(" and former == "NEAR":
            in_near, near_words = True, 0
        elif lexeme == ")":
            in_near = False
        elif not (
            in_columns  # {content cjk} : word
            or following == ":"  # content : word
            or lexeme in _OPERATORS
            or (lexeme == "NEAR" and following == "(")
            or (in_near and former == ",")  # the distance
        ):
            found = words_of(lexeme)
            words.update(found)
            near_words += len(found) if in_near else 0
        if words.total() > MAX_WORDS:
            raise _refusal(f"at most {MAX_WORDS} words")
        if prefixes > MAX_PREFIXES:
            raise _refusal(f"at most {MAX_PREFIXES} prefixes (word*)")
        if in_near and near_words > MAX_NEAR_WORDS:
            raise _refusal(f"at most {MAX_NEAR_WORDS} words in a NEAR group")
    if words and max(words.values()) > MAX_REPEATS:
        raise _refusal(f"each word at most {MAX_REPEATS} times")


def _refusal(limit: str) -> InvalidRequest:
    return InvalidRequest(f"q must have {limit}", field="q")
