"""Whether a query asks how something was before, in English, German, French or Spanish.

Source: docs/compatibility.md "Recall"; docs/quality.md "Versions of a fact".
"""

from __future__ import annotations

from typing import Final

from signet_actors.domain.query_words import words_of

_PAST: Final = """
    earlier former formerly historically history initial initially old older oldest original originally previous
    previously
    alte altem alten alter altes anfangs damals ehemalig ehemalige ehemaligen ehemals einst früher früheren
    ursprünglich
    ursprüngliche ursprünglichen ursprünglicher vormals
    ancien ancienne anciennement anciennes anciens antérieur antérieure autrefois auparavant initialement jadis
    originellement précédemment précédent précédente
    antaño anterior anteriores anteriormente antigua antiguamente antiguas antiguo antiguos inicialmente
    originalmente previo
"""
_WORDS: Final = frozenset(_PAST.split())
_PHRASES: Final = (
    *(
        "used to",
        "at first",
        "at the beginning",
        "at the start",
        "at that time",
        "at the time",
        "back then",
        "back when",
    ),
    *("in the beginning", "in the past", "when we started", "until then"),
    *("am anfang", "zu anfang", "zu beginn", "bis dahin", "à l origine", "au début", "dans le passé"),
    *("al comienzo", "al inicio", "al principio", "en el pasado", "en un principio"),
)
_BEFORE: Final = frozenset(("before", "avant", "antes", "davor", "vorher", "zuvor"))
_PAST_VERBS: Final = """
    did had used was were
    gab galt hatte hatten hieß lag lief nutzten stand verwendeten war waren wurde wurden
    avaient avait avions étaient était fut utilisait
    era eran estaba estaban fue fueron hacía había tenía teníamos usaba usábamos
"""
_WAS: Final = frozenset(_PAST_VERBS.split())
"""Beside a word for "before" they tell of the past; without one it may join two sentences."""


def asks_for_past(query: str) -> bool:
    """Return True if the query asks how something was, so that the newest version is not the answer."""
    words = words_of(query)
    different = set(words)
    if "how" in different and "old" in different:  # an age
        different.discard("old")
    if different & _WORDS:
        return True
    if different & _BEFORE and (different & _WAS or words[-1] in _BEFORE):
        return True
    text = f" {' '.join(words)} "
    return any(f" {phrase} " in text for phrase in _PHRASES)
