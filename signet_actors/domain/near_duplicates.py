"""Whether a text that a hook wants to store repeats a memory in other words.

Source: docs/compatibility.md "Hooks and sessions".
Departs: a text that may correct the memory is no repetition: it has a number that the memory lacks, each of the two has
a word of substance that the other lacks, or they contradict each other.
"""

from __future__ import annotations

import string
from itertools import islice
from typing import Final

from signet_actors.domain.extraction.contradiction import syntactic_contradiction
from signet_actors.domain.stop_words import stop_words_of

MIN_CHARS: Final = 3
"""Shorter words do not count."""
SEARCHED_WORDS: Final = 10
LEAST_SHARE: Final = 0.7
"""Part of the text's words that the memory has."""
_AROUND_WORDS: Final = string.punctuation + "\u2018\u2019\u201c\u201d\u2026"


def search_text(text: str) -> str:
    """Return the words by which memories that the text may repeat are searched for."""
    counted = (word for word in _words(text) if len(word) >= MIN_CHARS)
    return " ".join(islice(counted, SEARCHED_WORDS))


def repeats(text: str, memory: str) -> bool:
    """Return whether ``text`` says nothing that ``memory`` does not say."""
    given, held = _words(text).keys(), _words(memory).keys()
    counted = {word for word in given if len(word) >= MIN_CHARS}
    if not counted or len(counted & held) < LEAST_SHARE * len(counted):
        return False
    new, other = given - held, held - given
    without_substance = stop_words_of(given | held)
    if new - without_substance and other - without_substance:
        return False
    has_new_number = any(character.isdigit() for word in new for character in word)
    return not has_new_number and not syntactic_contradiction(text, memory)


def _words(text: str) -> dict[str, None]:
    """Return the different words in lower case, in text order, without the punctuation around them."""
    return dict.fromkeys(filter(None, (word.strip(_AROUND_WORDS) for word in text.lower().split())))
