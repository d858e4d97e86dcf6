"""Extract the content words of a text for rough comparison, used by the junk filter and the injection detector."""

from __future__ import annotations

import re
from typing import Final

_WORDS = re.compile(r"[^\W_]+(?:['\u2019.\-/:@][^\W_]+)*")
_STOP_WORD_LINES: Final = """
    a an the this that these those it its he she they them his her their i we you my our your me us him
    is are was were be been being am do does did has have had will would shall should can could may might must
    of to in at by for with from as into about than then so and or but if also just very too there here who which
    user users
"""
_STOP_WORDS: Final = frozenset(_STOP_WORD_LINES.split())
_SUFFIXES: Final = ("ing", "ed", "es", "s")


def content_words(text: str) -> tuple[str, ...]:
    """Return the content words of ``text`` in order, stemmed. Negations count as content words."""
    words = (word.removesuffix("'s").removesuffix("\u2019s") for word in _WORDS.findall(text.lower()))
    return tuple(stem(word) for word in words if word not in _STOP_WORDS)


def stem(word: str) -> str:
    """Return ``word`` without its ending. Prefers, preferred and preferring become the same word."""
    for ending in _SUFFIXES:
        bare = word.removesuffix(ending)
        if len(bare) >= 3 and bare != word and bare.isalpha():
            return bare[:-1] if len(bare) > 3 and bare[-1] == bare[-2] else bare.rstrip("e")
    return word.rstrip("e") if len(word) > 3 else word
