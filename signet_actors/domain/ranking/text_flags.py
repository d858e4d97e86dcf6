"""What recall knows of a memory's text before any query: five flags and a subject.

A chat line is often found by its form: questions ask for a time or a number, and an answer follows a question. All
patterns run in time linear in the text.

Source: docs/quality.md "Context and priors".
"""

from __future__ import annotations

import re
import zlib
from typing import Final, NamedTuple

from signet_actors.domain.normalization import MAYBE_CJK
from signet_actors.domain.query_words import words_of
from signet_actors.domain.ranking.relevance import ASKING_WORDS
from signet_actors.domain.stop_words import STOP_WORDS, stop_words_of
from signet_actors.domain.temporal.change import speaks_of_change

ASKS: Final = 1
"""The text asks a question."""
TELLS_TIME: Final = 2
"""The text names a time: a date, a weekday, yesterday, last year."""
HOLDS_NUMBER: Final = 4
"""The text holds a number."""
TELLS_CHANGE: Final = 8
"""The text says that something has changed."""
SAYS_LITTLE: Final = 16
"""The text has two telling words at most: its meaning is near to that of much, and only its words can tell."""
_LEAST_TELLING: Final = 3
MAX_CHARS: Final = 10_000
"""Flags are read from so many characters; what follows in a longer text is ignored."""

_MAX_LITTLE_CHARS: Final = 100
_MAX_SOUND_CHARS: Final = 2
"""Shorter words are sounds ("hm") more often than names."""

_ASKS: Final = re.compile(r"\?(?=[\s\"'\u201d\u2019)\]]|$)")
_TIMES: Final = """
    yesterday today tonight tomorrow last next ago recently week weeks weekend weekends month year years since morning
    evening monday tuesday wednesday thursday friday saturday sunday january february march april june july august
    september october november december
"""
_TIME_WORDS: Final = frozenset(_TIMES.split())
"""Without "may", which is more often a verb."""
_NUMBERS: Final = "one two three four five six seven eight nine ten once twice couple several"
_NUMBER_WORDS: Final = frozenset(_NUMBERS.split())
_TOKEN: Final = re.compile(r"\w+")
_ORDINAL: Final = re.compile(r"[0-9]{1,2}(?:st|nd|rd|th)")
_SPEAKER: Final = re.compile(r"[^:\n]{1,40}: ")
_FIRST_WORD: Final = re.compile(r"\W*([^\W\d_]+)")
_WHEN: Final = re.compile(
    r"\W*(?:when|what (?:date|day|year|month|time)|how long|(?:in )?which (?:year|month)|which day)\b", re.IGNORECASE
)
_HOW_MANY: Final = re.compile(r"\W*how (?:many|much|often|old)\b", re.IGNORECASE)


class TextFlags(NamedTuple):
    """``flags``: the sum of those that hold. ``subject``: ``subject_code`` or 0."""

    flags: int
    subject: int


def text_flags(text: str) -> TextFlags:
    """Return the flags of ``text`` and its subject: its first word, which in a chat is the speaker.

    Time and number are looked for behind a speaker's name. A text that begins with a digit has no subject.
    """
    text = text[:MAX_CHARS]
    speaker = _SPEAKER.match(text)
    tokens = set(_TOKEN.findall(text.lower(), speaker.end() if speaker else 0))
    numbers = [token for token in tokens if token[0].isdecimal()]
    flags = ASKS if _ASKS.search(text) else 0
    dated = any((len(token) == 4 and token.isdecimal()) or _ORDINAL.fullmatch(token) for token in numbers)
    if dated or not _TIME_WORDS.isdisjoint(tokens):
        flags |= TELLS_TIME
    if not _NUMBER_WORDS.isdisjoint(tokens) or any(map(str.isdecimal, numbers)):
        flags |= HOLDS_NUMBER
    if speaks_of_change(text):
        flags |= TELLS_CHANGE
    if len(text) < _MAX_LITTLE_CHARS and not any(map(str.isdigit, text)) and MAYBE_CJK.search(text) is None:
        words = words_of(text)
        telling = {word for word in words if len(word) > _MAX_SOUND_CHARS} - stop_words_of(words) - ASKING_WORDS
        if len(telling) < _LEAST_TELLING:
            flags |= SAYS_LITTLE
    first = _FIRST_WORD.match(text)
    return TextFlags(flags, subject_code(first[1].lower()) if first else 0)


def subject_code(word: str) -> int:
    """Return a 32-bit code of a word in lower case, never 0, and 0 for a stop word."""
    return 0 if word in STOP_WORDS else (zlib.crc32(word.encode()) or 1)


def subject_codes(query: str) -> set[int]:
    """Return the codes of the words of ``query`` that may be subjects."""
    return {subject_code(word) for word in words_of(query)} - {0}


def wanted_flags(query: str) -> int:
    """Return the flags that an answer to ``query`` should have: when asks for a time, how many for a number."""
    return (TELLS_TIME if _WHEN.match(query) else 0) | (HOLDS_NUMBER if _HOW_MANY.match(query) else 0)
