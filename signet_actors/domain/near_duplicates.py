"""Whether a text that a hook wants to store says the same as a memory, in the same words.

Source: docs/compatibility.md "Hooks and sessions".
Departs: the reference daemon takes a text for a duplicate if a memory has 70 % of its words. That loses what the rest
says: "may deploy" and "may not deploy", "on Mondays" and "on Tuesdays" share more.
"""

from __future__ import annotations

import string
from itertools import islice
from typing import Final

MIN_CHARS: Final = 3
"""Shorter words are not searched for."""
SEARCHED_WORDS: Final = 10
_AROUND_WORDS: Final = string.punctuation + "\u2018\u2019\u201c\u201d\u2026"
_ENGLISH: Final = "a an the is are it its we our there please also note"
_GERMAN: Final = "der die das den dem ein eine einen einem ist sind wir es auch bitte"
_FILLERS: Final = frozenset(f"{_ENGLISH} {_GERMAN}".split())
"""Words that may come or go without a change of what is said. Negations, prepositions, tenses may not."""


def search_text(text: str) -> str:
    """Return the words by which memories that the text may repeat are searched for."""
    counted = (word for word in dict.fromkeys(_words(text)) if len(word) >= MIN_CHARS)
    return " ".join(islice(counted, SEARCHED_WORDS))


def repeats(text: str, memory: str) -> bool:
    """Return whether both have the same words in the same order, apart from fillers, case and punctuation."""
    given = _without_fillers(text)
    return bool(given) and given == _without_fillers(memory)


def _without_fillers(text: str) -> list[str]:
    return [word for word in _words(text) if word not in _FILLERS]


def _words(text: str) -> list[str]:
    """Return the words in lower case, without the punctuation around them."""
    return list(filter(None, (word.strip(_AROUND_WORDS) for word in text.lower().split())))
