"""Texts that make a regular expression try many ways to match, made from the expression itself.

A part that repeats is what backtracking divides in many ways. So for each such part there is a text that leads to it,
and a text that the part matches, to be repeated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from re import _constants as codes  # type: ignore[attr-defined]  # the names of what a parsed expression consists of
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final

_REPEATS: Final = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
_CLASSES: Final = {
    codes.CATEGORY_DIGIT: "1",
    codes.CATEGORY_SPACE: " ",
    codes.CATEGORY_WORD: "a",
    codes.CATEGORY_NOT_DIGIT: "a",
    codes.CATEGORY_NOT_SPACE: "a",
    codes.CATEGORY_NOT_WORD: "-",
}
_PLAIN: Final = "aA1 -_.\n"


def pump_texts(pattern: re.Pattern[Any]) -> list[tuple[str, str]]:
    """Return pairs of a beginning and a text to repeat after it, one or more for each repeated part of ``pattern``."""
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    return list(dict.fromkeys(_of(list(parser.parse(text, pattern.flags & ~re.DEBUG)), "")))


def most_needed(pattern: re.Pattern[Any]) -> int:
    """Return the largest number of times that something must be repeated before the rest of ``pattern`` is tried."""
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    return max(_needed(parser.parse(text, pattern.flags & ~re.DEBUG), 1))


def _needed(value: Any, times: int) -> Iterator[int]:
    yield times
    for part in value if isinstance(value, list | tuple | parser.SubPattern) else ():
        is_repeat = isinstance(part, tuple) and len(part) == 2 and part[0] in _REPEATS
        yield from _needed(part[1][2], times * max(1, part[1][0])) if is_repeat else _needed(part, times)


def _of(parts: list[Any], before: str) -> Iterator[tuple[str, str]]:
    for code, value in parts:
        if code in _REPEATS:
            _, most, body = value
            if most > 2:
                yield from ((before, unit) for unit in _samples(list(body)) if unit)
            yield from _of(list(body), before)
        elif code == codes.BRANCH:
            for branch in value[1]:
                yield from _of(list(branch), before)
        elif code == codes.SUBPATTERN:
            yield from _of(list(value[3]), before)
        elif code == codes.ATOMIC_GROUP:
            yield from _of(list(value), before)
        elif code in {codes.ASSERT, codes.ASSERT_NOT}:
            yield from _of(list(value[1]), before)
        before += next(_samples([(code, value)]), "")


def _samples(parts: list[Any]) -> Iterator[str]:
    """Yield some texts that the parts match: the shortest, and those of the branches of the first part with any."""
    texts = [""]
    for code, value in parts:
        ways = _ways(code, value)
        texts = [text + way for text in texts for way in (ways if len(texts) == 1 else ways[:1])]
    yield from dict.fromkeys(texts)


def _ways(code: Any, value: Any) -> list[str]:
    if code == codes.LITERAL:
        return [chr(value)]
    if code == codes.IN:
        return _members(value)
    if code == codes.BRANCH:
        return [text for branch in value[1] for text in list(_samples(list(branch)))[:1]]
    if code == codes.SUBPATTERN:
        return list(_samples(list(value[3])))
    if code == codes.ATOMIC_GROUP:
        return list(_samples(list(value)))
    if code in _REPEATS:
        least, most, body = value
        return [text * max(least, min(most, 1)) for text in _samples(list(body))]
    if code in {codes.ANY, codes.NOT_LITERAL}:
        return ["a" if value != ord("a") else "b"]
    return [""]


def _members(members: list[Any]) -> list[str]:
    if members and members[0][0] == codes.NEGATE:
        excluded = {text for member in members[1:] for text in _members([member])}
        return [next((text for text in _PLAIN if text not in excluded), "\u00e9")]
    texts: list[str] = []
    for code, value in members:
        if code == codes.LITERAL:
            texts.append(chr(value))
        elif code == codes.RANGE:
            texts.append(chr(value[0]))
        elif code == codes.CATEGORY:
            texts.append(_CLASSES[value])
    return texts[:4]
