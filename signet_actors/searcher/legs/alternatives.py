"""What to search for instead of a term that no memory holds: words that differ by a typing error, parts of identifiers.

Source: docs/quality.md "Terms that no memory holds".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from signet_actors.domain.edit_distance import within_distance
from signet_actors.store.engine import Snapshot

MAX_TERMS: Final = 4
"""At most so many terms of a query get alternatives."""
MAX_ALTERNATIVES: Final = 4
MAX_COMPARED: Final = 4_000
"""Terms of the index that are compared with one word, of about its length; the first in the order of the alphabet."""
_ONE_ERROR_CHARS: Final = 6
"""Shorter stems have too many neighbours (trait, train, trail)."""
_TWO_ERRORS_CHARS: Final = 9
_SAME_BEGINNING: Final = 2
"""The first letters are taken as right: errors are rare there, and the index is ordered by them."""


def alternatives(snapshot: Snapshot, phrase: str, parts: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Return terms to search for instead of ``phrase``, at most ``MAX_ALTERNATIVES``.

    ``parts``: the words of each identifier of the query.
    """
    found = parts[phrase] if phrase in parts else _similar_terms(snapshot, phrase)
    return found[:MAX_ALTERNATIVES]


def _similar_terms(snapshot: Snapshot, word: str) -> list[str]:
    """Return terms of the index that differ from ``word`` by one typing error; if none, by two in a long word."""
    stems = snapshot.stem(word)
    if len(stems) != 1 or len(stems[0]) < _ONE_ERROR_CHARS or not stems[0].isalpha():
        return []
    stem = stems[0]
    most = 2 if len(stem) >= _TWO_ERRORS_CHARS else 1
    # An error changes at most two letters of the set; this leaves few terms to compare letter by letter.
    letters = set(stem)
    known = [
        term
        for term in snapshot.terms(stem[:_SAME_BEGINNING], len(stem) - most, len(stem) + most, MAX_COMPARED)
        if len(letters.symmetric_difference(term)) <= 2 * most
    ]
    snapshot.check_preempted()
    for errors in range(1, most + 1):
        near = [term for term in known if within_distance(stem, term, errors)]
        found = [_word_of(snapshot, term) for term in near[:MAX_ALTERNATIVES]]
        words = [word for word in found if word is not None]
        if words:
            return words
    return []


def _word_of(snapshot: Snapshot, term: str) -> str | None:
    """Return a word that the index stems to ``term``, since it stems what is searched for ("databas": "database")."""
    words = (term + ending for ending in ("", "e", "s", "es"))
    return next((word for word in words if snapshot.stem(word) == [term]), None)
