"""Versions of one fact: texts that differ in one value.

Source: docs/guides/hooks.md "Each prompt"; docs/quality.md "Versions of a fact".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from signet_actors.domain.normalization import MAYBE_CJK
from signet_actors.domain.query_words import words_of
from signet_actors.domain.stop_words import STOP_WORDS

_ALIKE: Final = 0.42
_MUCH_ALIKE: Final = 0.6
"""The share of the words of both texts that each has."""
_MOST_CHARS: Final = 4_000
"""Of long texts the beginning is compared."""
_LONGEST_FACT: Final = 600
"""A longer text is no fact with one value."""
_MOST_CHANGED: Final = 4
"""Words of the value in either text."""
_LEAST_SAID: Final = 3
"""Telling words that both texts have, most of them before the value: it is said of the same thing."""
_SAID_BY: Final = frozenset(("is", "ist", "lautet", "heißt", "est", "es", "llama", "now", "nun", "jetzt"))
"""What stands before a value of which a thing has one."""
_VERBS: Final = frozenset(
    ("is", "are", "has", "have", "was", "holds", "ist", "sind", "hat", "haben", "est", "a", "es", "tiene")
)
"""A value before such a word is a part of what is spoken of: "Room 12 has a projector"."""
_DAYS: Final = """
    monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays
    saturdays sundays
    montag dienstag mittwoch donnerstag freitag samstag sonntag montags dienstags mittwochs donnerstags freitags
    lundi mardi mercredi jeudi vendredi samedi dimanche lunes martes miércoles jueves viernes sábado domingo
    january february march april may june july august september october november december
    januar februar märz mai juni juli oktober dezember
    janvier février mars avril juin juillet août septembre octobre novembre décembre
    enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
"""
_DAYS_AND_MONTHS: Final = frozenset(_DAYS.split())
_AROUND: Final = ".,;:!?\"'()[]\u201c\u201d\u2018\u2019"


def are_alike(one: str, other: str, *, much: bool = False) -> bool:
    """Return True if the texts have many telling words in common; of Chinese and the like, characters."""
    first, second = (
        set(text) if MAYBE_CJK.search(text) else {word for word in words_of(text) if word not in STOP_WORDS}
        for text in (one[:_MOST_CHARS], other[:_MOST_CHARS])
    )
    return len(first & second) >= (_MUCH_ALIKE if much else _ALIKE) * len(first | second)


def are_versions(one: str, other: str) -> bool:
    """Return True if both texts say the same of one thing, but for a value, which stands behind most of the words."""
    return _differ_in_a_value(_words(one), _words(other))


def _differ_in_a_value(first: Sequence[str], second: Sequence[str]) -> bool:
    before = 0
    while before < min(len(first), len(second)) and first[before] == second[before]:
        before += 1
    after = 0
    while after < min(len(first), len(second)) - before and first[-1 - after] == second[-1 - after]:
        after += 1
    values = first[before : len(first) - after], second[before : len(second) - after]
    if max(map(len, values)) > _MOST_CHANGED:
        return False
    if not all(map(_is_of_one, values)) and _SAID_BY.isdisjoint(first[max(0, before - 2) : before]):
        return False
    told = [word for word in first[:before] if word not in STOP_WORDS]
    behind = [word for word in first[len(first) - after :] if word not in STOP_WORDS]
    follows = first[len(first) - after] if after else ""
    return len(told) >= len(behind) and len(told) + len(behind) >= _LEAST_SAID and follows not in _VERBS


def _words(text: str) -> list[str]:
    if len(text) > _LONGEST_FACT:
        return []
    if MAYBE_CJK.search(text):
        return list(text)
    return [core for word in text.lower().split() if (core := word.strip(_AROUND))]


def _is_of_one(value: Sequence[str]) -> bool:
    """Return True if a thing has one such value at a time: a number, a day, nothing."""
    return not value or any(word in _DAYS_AND_MONTHS or any(map(str.isnumeric, word)) for word in value)


def newest_versions(texts: Sequence[tuple[str, int]]) -> list[int]:
    """Return which texts to keep, each given with its time, best first: of versions the newest, at the best place."""
    words = [_words(text) for text, _ in texts]
    kept: list[int] = []
    for at, (_, time) in enumerate(texts):
        place = next((place for place, other in enumerate(kept) if _differ_in_a_value(words[at], words[other])), None)
        if place is None:
            kept.append(at)
        elif time > texts[kept[place]][1]:
            kept[place] = at
    return kept
