"""Which attributes of an entity a later one replaces, by their words and their order. No model, no clock.

Attributes are siblings if they are of one entity, aspect and group. Constraints, and attributes with a claim key or of
a caller who stated them as structured, are never compared.

Source: knowledge-graph.txt "Retroactive Supersession"; docs/compatibility.md "Supersession of attributes".
Departs: the words of the entity's name count for nothing where a sentence only says what something is or has, because
all siblings are about it: "Redis is fast" and "Redis is written in C" share no word. Articles and prepositions count
only before a value. An antonym needs no shared word if both sentences say it of the entity itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple

from signet_actors.domain.extraction.contradiction import (
    MIN_OVERLAP,
    MIN_SEMANTIC_OVERLAP,
    NEGATIONS,
    contradiction_words,
)
from signet_actors.domain.stop_words import STOP_WORDS
from signet_actors.domain.timestamps import epoch_ms

THRESHOLD: Final = 0.7
MAX_COMPARED: Final = 30
"""Of the siblings that are active, the last ones."""
MAX_SIBLINGS: Final = 500
"""Of more, only the newest are compared."""

_ANTONYMS: Final = """
    enabled/disabled allow/deny accept/reject always/never on/off true/false together/apart single/dating
    single/married married/divorced single/engaged employed/unemployed active/inactive open/closed public/private
    online/offline likes/dislikes loves/hates start/stop started/stopped required/optional present/absent
    installed/uninstalled connected/disconnected available/unavailable supported/unsupported hired/fired valid/invalid
"""
ANTONYMS: Final = tuple((left, right) for left, _, right in (pair.partition("/") for pair in _ANTONYMS.split()))
_COPULAS: Final = frozenset(["is", "are", "was", "were", "has", "have", "had"])
VERBS: Final = _COPULAS | frozenset(["lives", "works", "uses", "prefers", "runs", "moved", "located", "based"])
"""What both sentences must share for their values to be in conflict."""
MARKERS: Final = frozenset(
    [
        "now",
        "currently",
        "recently",
        "today",
        "used",
        "formerly",
        "previously",
        "was",
        "were",
        "moved",
        "changed",
        "switched",
        "updated",
    ]
)
_EMPTY: Final = STOP_WORDS | VERBS | MARKERS
_DAY_MS: Final = 86_400_000


class Conflict(NamedTuple):
    method: str
    confidence: float


class Claim(NamedTuple):
    """An attribute that may replace earlier siblings. ``is_protected``: it is not replaced itself."""

    id: str
    content: str
    said_at: str
    is_protected: bool = False


class Words(NamedTuple):
    """The words of a text in order, and as a set."""

    listed: tuple[str, ...]
    all: frozenset[str]
    said_ms: int

    @classmethod
    def of(cls, content: str, said_at: str) -> Words:
        """``said_at`` is ISO; one that is no time counts as the beginning of 1970."""
        listed = contradiction_words(content)
        return cls(listed, frozenset(listed), epoch_ms(said_at) or 0)


class Superseded(NamedTuple):
    """What replaces an attribute, and why."""

    by: str
    conflict: Conflict


def conflict(older: Words, newer: Words, entity: frozenset[str] = frozenset()) -> Conflict | None:
    """Return how ``newer`` contradicts ``older``, by the first of the four signs; ``entity``: the words of its name."""
    shared = older.all & newer.all
    content = shared - entity - STOP_WORDS
    is_about_the_same = len(content) >= MIN_OVERLAP
    if is_about_the_same and older.all.isdisjoint(NEGATIONS) is not newer.all.isdisjoint(NEGATIONS):
        return Conflict("negation", 0.85)
    for pair in ANTONYMS:
        if _is_opposite(older, newer, pair, entity, is_about_the_same=is_about_the_same):
            return Conflict("antonym", 0.80)
    if _is_other_value(older, newer, content):
        return Conflict("value", 0.75)
    if is_about_the_same and newer.said_ms - older.said_ms > _DAY_MS and not newer.all.isdisjoint(MARKERS):
        return Conflict("temporal", 0.70)
    return None


def _is_opposite(
    older: Words, newer: Words, pair: tuple[str, str], entity: frozenset[str], *, is_about_the_same: bool
) -> bool:
    """Return whether each text has one word of the pair, another one, and both are about the same."""
    left, right = ([word for word in pair if word in text.all] for text in (older, newer))
    if len(left) != 1 or len(right) != 1 or left == right:
        return False
    subjects = (
        set(text.listed[: text.listed.index(word)]) - entity - _EMPTY
        for text, word in ((older, left[0]), (newer, right[0]))
    )
    return is_about_the_same or not any(subjects)


def _is_other_value(older: Words, newer: Words, content: frozenset[str]) -> bool:
    """Return whether both texts go on after the same verb, with words of which none is in both.

    ``content``: the words that both have, without empty ones. Where the verb says little, it takes one of them besides.
    """
    shared = older.all & newer.all
    verb = next((word for word in older.listed if word in newer.all and word in VERBS), None)
    if verb is None or len((content if verb in _COPULAS else shared) | {verb}) < MIN_OVERLAP:
        return False
    left, right = ({*text.listed[text.listed.index(verb) :]} - _EMPTY for text in (older, newer))
    return bool(left) and bool(right) and left.isdisjoint(right)


def superseded(claims: Iterable[Claim], entity_name: str) -> dict[str, Superseded]:
    """Return those of the claims that a later one replaces; ``claims``: siblings, in the order of their time."""
    entity = frozenset(contradiction_words(entity_name))
    replaced: dict[str, Superseded] = {}
    active: deque[tuple[Claim, Words]] = deque(maxlen=MAX_COMPARED)
    for claim in claims:
        words = Words.of(claim.content, claim.said_at)
        kept = []
        for other, others in active:
            found = None if other.is_protected else conflict(others, words, entity)
            if found is not None and found.confidence >= THRESHOLD:
                replaced[other.id] = Superseded(claim.id, found)
            else:
                kept.append((other, others))
        active.clear()
        active.extend((*kept, (claim, words)))
    return replaced


def needs_model(older: str, newer: str) -> bool:
    """Return whether a model may see a contradiction that the words do not show."""
    return len(frozenset(contradiction_words(older)) & frozenset(contradiction_words(newer))) >= MIN_SEMANTIC_OVERLAP
