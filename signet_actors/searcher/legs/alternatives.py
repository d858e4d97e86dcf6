"""What to search for instead of a term that no memory holds: typing errors, other endings, parts of identifiers.

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
_ENDING_CHARS: Final = 3
"""Stems of one word family differ by at most so many letters at their end (night, nightly; config, configure)."""
_FAMILY_CHARS: Final = 5
"""The shorter stem of a family has at least so many letters."""
_SAME_BEGINNING: Final = 2
"""The first letters are taken as right: errors are rare there, and the index is ordered by them."""


def alternatives(snapshot: Snapshot, phrase: str, parts: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Return terms to search for instead of ``phrase``, at most ``MAX_ALTERNATIVES``.

    ``parts``: the words of each identifier of the query.
    """
    found = parts[phrase] if phrase in parts else _similar_terms(snapshot, phrase)
    return found[:MAX_ALTERNATIVES]


def _similar_terms(snapshot: Snapshot, word: str) -> list[str]:
    """Return terms of the index that differ from ``word`` by one typing error; if none, by its ending; if none, by two
    typing errors in a long word.
    """
    stems = snapshot.stem(word)
    if len(stems) != 1 or len(stems[0]) < _FAMILY_CHARS or not stems[0].isalpha():
        return []
    stem = stems[0]
    misspelt = _misspelt(snapshot, stem)
    return misspelt.get(1) or _same_family(snapshot, stem) or misspelt.get(2, [])


def _same_family(snapshot: Snapshot, stem: str) -> list[str]:
    """Return words whose stem begins with ``stem`` or is its beginning, the most alike first."""
    beginning = stem[: max(_FAMILY_CHARS, len(stem) - _ENDING_CHARS)]
    known = snapshot.terms(beginning, len(beginning), len(stem) + _ENDING_CHARS, MAX_COMPARED)
    family = [term for term in known if term.startswith(stem) or stem.startswith(term)]
    family.sort(key=lambda term: abs(len(term) - len(stem)))
    return _words(snapshot, family)


def _misspelt(snapshot: Snapshot, stem: str) -> dict[int, list[str]]:
    """Return words whose stem differs from ``stem`` by one typing error, else by two, under the number of errors."""
    if len(stem) < _ONE_ERROR_CHARS:
        return {}
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
        words = _words(snapshot, [term for term in known if within_distance(stem, term, errors)])
        if words:
            return {errors: words}
    return {}


def _words(snapshot: Snapshot, terms: Sequence[str]) -> list[str]:
    """Return a word for each of the first terms that has one."""
    found = [_word_of(snapshot, term) for term in terms[:MAX_ALTERNATIVES]]
    return [word for word in found if word is not None]


def _word_of(snapshot: Snapshot, term: str) -> str | None:
    """Return a word that the index stems to ``term``, since it stems what is searched for ("databas": "database")."""
    words = (term + ending for ending in ("", "e", "s", "es"))
    return next((word for word in words if snapshot.stem(word) == [term]), None)
