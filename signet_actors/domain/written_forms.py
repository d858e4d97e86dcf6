"""Other ways to write a word: without special letters, by its parts, by its beginning; and emoji as words.

What the tokenizer of the text index cannot know is derived here: for a text, the words that are indexed beside it in
the column ``cjk``; for a term of a query, the spellings that mean the same and count like it.

Source: docs/quality.md "Other spellings".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import islice
from typing import Final

from signet_actors.domain.normalization import cjk_bigrams, sanitize_text

INDEXED_CHARS: Final = 16_000
"""The text index has this beginning of a memory, as migration 20 says; to remove it takes less than 100 ms.

In a megabyte of distinct words or of Chinese, that took seconds, in which nothing else could be written.
"""
MAX_DERIVED: Final = 20_000
"""The most words that are derived from one text; a megabyte of German or of code has fewer."""
MAX_TURN_WORDS: Final = 8_192
"""The most different words that are derived from one row of a turn. 32,768 Chinese characters of a manual have 8,500.

Verse has 20,000, chance characters 30,000; each takes some 20 us to index, and to remove, if the index is large.
"""
_MAX_NAME_CHARS: Final = 64
"""A longer run of letters and digits is no name, but encoded data."""

_PLAIN: Final = str.maketrans({
    "ß": "ss", "ẞ": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "\u0131": "i",
    "ħ": "h", "ŧ": "t", "ŋ": "ng", "ĳ": "ij", "ŀ": "l", "\u017f": "s", "ƒ": "f",
    "\ufb00": "ff", "\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl", "\ufb05": "st", "\ufb06": "st",
})  # fmt: skip
"""Letters that Unicode does not decompose, so the tokenizer keeps them."""
_IN_TWO_LETTERS: Final = {**_PLAIN, **str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa", "đ": "dj"})}
"""The spelling without umlauts: Groesse, Aarhus, Djokovic."""
_SPECIAL: Final = re.compile(
    "[ßẞæÆœŒøØłŁđĐðÐþÞıħĦŧŦŋŊĳĲŀĿſƒäÄöÖüÜåÅ\ufb00-\ufb06]|[aouAOU]\u0308|[aA]\u030a"
)  # fmt: skip

# A name of several words. Two capitalized parts may be a brand (JavaScript), which is found only as a whole.
_CAMEL: Final = re.compile(r"(?<![^\W_])[^\W_]*?[a-z\d][A-Z][^\W_]*")
_INNER_CAPITAL: Final = re.compile(r"[a-z\d][A-Z]")
_WORD_OF_CAMEL: Final = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PART: Final = re.compile(r"[^\W\d_]{2,}\d{0,3}")
_LETTERS_DIGITS: Final = re.compile(r"([^\W\d_]+)(\d+)|(\d+)([^\W\d_]+)")
_JOINED: Final = re.compile(r"[^\W_]+(?:[-_][^\W_]+){1,3}")
_HEX: Final = re.compile(r"(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}")
_SHORT_HASH_CHARS: Final = range(7, 13)
"""How many letters of a hash are shown where it is abbreviated."""

_COMPOUND_CHARS: Final = 10
_FIRST_PART_CHARS: Final = 3
_LAST_PART_CHARS: Final = 6

_SHORT_FORMS: Final = """
    a11y accessibility|auth authentication|cert certificate|certs certificates|config configuration|creds credentials
    db database|dbs databases|deps dependencies|dev development|docs documentation|env environment
    i18n internationalization|infra infrastructure|js javascript|k8s kubernetes|l10n localization|o11y observability
    perf performance|pg postgres postgresql|prod production|pwd password|py python|repo repository|repos repositories
    ts typescript
"""
_GROUPS: Final = [group.split() for line in _SHORT_FORMS.splitlines() for group in line.split("|")]
_OTHER_FORMS: Final = {word: tuple(other for other in group if other != word) for group in _GROUPS for word in group}
"""What programmers abbreviate, and what it is short for, by each of the two."""

_PICTURE: Final = (
    "\u203c\u2049\u231a\u231b\u2328\u23cf\u23e9-\u23f3\u23f8-\u23fa\u25b6\u25c0\u2600-\u27bf\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55"
    "\u3297\u3299\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff"
)
# Two letters make a flag. Skin tones and the selectors of a presentation are left out; a joiner makes one of several.
_EMOJI: Final = re.compile(
    f"[\U0001f1e6-\U0001f1ff]{{2}}|[{_PICTURE}][\ufe0e\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*"
    f"(?:\u200d[{_PICTURE}][\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]*){{0,8}}"
)
_PICTURES: Final = re.compile(f"[\U0001f1e6-\U0001f1ff]{{2}}|[{_PICTURE}]")


def indexed_beside(text: str, *, most: int | None = None) -> str | None:
    """Return the content of the column ``cjk`` for ``text``: words that are found like its own; None without any.

    These are the pairs of CJK characters (``cjk_bigrams``), words with special letters as they are written without
    them, the words of names (CrashLoopBackOff), and emoji. ``most``: of so many different ones, the first.
    """
    text = sanitize_text(text)
    derived = list(islice(_names(text), MAX_DERIVED)) if _INNER_CAPITAL.search(text) else []
    if not text.isascii():
        derived += (cjk_bigrams(text) or "", *islice(_without_special_letters(text), MAX_DERIVED), *emoji_terms(text))
    beside = " ".join(filter(None, derived))
    if most is not None and beside.count(" ") >= most:
        words = beside.split(" ")
        first = frozenset(islice(dict.fromkeys(words), most))
        beside = " ".join(word for word in words if word in first)
    return beside or None


def emoji_terms(text: str) -> list[str]:
    """Return the emoji of ``text`` as words, one made of several (a family, a profession) as a phrase."""
    return [
        " ".join("emoji" + "".join(f"{ord(char):x}" for char in picture) for picture in _PICTURES.findall(found[0]))
        for found in islice(_EMOJI.finditer(text), MAX_DERIVED)
    ]


def same_spellings(term: str) -> tuple[str, ...]:
    """Return how else a term of a query may be written, in lower case and without the term itself.

    "pay-1234" and "pay1234", "crash_loop" and "crashloop", "straße" and "strasse", "k8s" and "kubernetes"; also the
    short forms of a hash.
    """
    found: dict[str, None] = {}
    if others := _OTHER_FORMS.get(term):
        found = dict.fromkeys(others)
    elif not term.isascii() and _SPECIAL.search(term):
        found = dict.fromkeys(_written_plainly(term))
    elif _JOINED.fullmatch(term):
        found = {term.replace("-", "").replace("_", ""): None}
    elif _HEX.fullmatch(term):
        found = dict.fromkeys(term[:chars] for chars in _SHORT_HASH_CHARS if chars < len(term))
    elif split := _LETTERS_DIGITS.fullmatch(term):
        found = {" ".join(filter(None, split.groups())): None}
    found.pop(term, None)
    return tuple(found)


def compound_parts(word: str) -> list[tuple[str, str]]:
    """Return how a long word may consist of two, the last one the longest first: (zeit, umstellung)."""
    if not _COMPOUND_CHARS <= len(word) <= _MAX_NAME_CHARS or not word.isalpha():
        return []
    return [(word[:at], word[at:]) for at in range(_FIRST_PART_CHARS, len(word) - _LAST_PART_CHARS + 1)]


def is_hash(term: str) -> bool:
    """Return whether a term of a query may be a hash or its beginning: hexadecimal, with letters and digits."""
    return _HEX.fullmatch(term) is not None


def words_of_name(name: str) -> list[str]:
    """Return the words of a name in camel case in lower case (HTTPServer: http server); none if it is no such name."""
    if len(name) > _MAX_NAME_CHARS:
        return []
    parts: list[str] = []
    for part in _WORD_OF_CAMEL.split(name):
        if parts and len(parts[-1]) == 1:  # iPhone, OAuth
            parts[-1] += part
        else:
            parts.append(part)
    return [part.lower() for part in parts] if len(parts) > 1 and all(map(_PART.fullmatch, parts)) else []


def _names(text: str) -> Iterator[str]:
    for name in dict.fromkeys(_CAMEL.findall(text)):
        words = words_of_name(name)
        if len(words) > 2 or (words and name[0].islower()):
            yield " ".join(words)


def _without_special_letters(text: str) -> Iterator[str]:
    if _SPECIAL.search(text):
        for word in dict.fromkeys(text.split()):
            if _SPECIAL.search(word):
                yield from _written_plainly(word)


def _written_plainly(word: str) -> Iterator[str]:
    word = unicodedata.normalize("NFC", word[:256]).lower()
    plain, in_two_letters = word.translate(_PLAIN), word.translate(_IN_TWO_LETTERS)
    if plain != word:
        yield plain
    if in_two_letters not in (plain, word):
        yield in_two_letters
