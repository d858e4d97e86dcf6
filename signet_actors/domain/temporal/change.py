"""Whether a text says that something has changed, and of what, in English, German, French or Spanish.

Source: docs/quality.md "Versions of a fact".
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Final, NamedTuple

from signet_actors.domain.query_words import words_of
from signet_actors.domain.stop_words import STOP_WORDS

_CHANGE: Final = """
    abandoned anymore cancelled canceled changed deprecated discontinued downgraded dropped extended formerly gone
    increased instead lowered meanwhile migrated moved nowadays now obsolete outdated postponed previously raised
    reduced removed renamed replaced replaces retired revoked rewritten shifted shortened since superseded supersedes
    swapped switched upgraded
    abgelöst abgeschafft abgeschaltet anstatt anstelle ausgetauscht ersetzt geändert gekündigt gewechselt inzwischen
    jetzt migriert mittlerweile neuerdings nun seit statt stattdessen umbenannt umgestellt umgezogen verschoben veraltet
    erhöht gesenkt verkürzt verlängert aufgeschoben reporté aplazado
    abandonné actuellement changé désormais depuis dorénavant déplacé maintenant migré obsolète remplacé remplacée
    remplace renommé résilié
    abandonado actualmente ahora cambiado cambió cancelado desde migrado movido movida obsoleto reemplazado reemplazada
    reemplaza renombrado sustituido sustituida trasladado
"""
_WORDS: Final = frozenset(_CHANGE.split())
_PHRASES: Final = (
    *("as of", "from now on", "merged into", "no longer", "no more", "not any more", "phased out", "shut down"),
    *("took over", "turned off", "used to", "nicht mehr", "kein mehr", "keine mehr", "ab sofort", "au lieu"),
    *("à la place", "n est plus", "ne sont plus", "ya no", "en lugar", "en vez"),
)
_REFUSALS: Final = ("no", "nope", "wrong", "incorrect", "nein", "falsch", "non", "faux", "incorrecto", "falso")
_REFUTING_PHRASES: Final = ("actually", "not true", "not right", "is wrong", "s wrong", "stimmt nicht", "est faux")
_GOES_ON_WORDS: Final = """
    now thanks thank ok okay great good perfect nice yes yep done fine cool
    jetzt danke gut super ja perfekt maintenant merci oui ahora gracias sí bien
"""
_GOES_ON: Final = frozenset(_GOES_ON_WORDS.split())
"""A reply that begins so takes the answer as it is."""
_MOST_REPLY_CHARS: Final = 300
_OBJECTS: Final = frozenset(("abandoned", "dropped", "removed", "renamed", "replaced", "retired", "swapped"))
"""What stands behind one of these has changed, and counts like a name."""
_WEEK: Final = """
    monday tuesday wednesday thursday friday saturday sunday
    montag dienstag mittwoch donnerstag freitag samstag sonntag
    lundi mardi mercredi jeudi vendredi samedi dimanche
    lunes martes miércoles jueves viernes sábado domingo
"""
_DAYS: Final = {day.removesuffix("s"): f"#{at % 7}" for at, day in enumerate(_WEEK.split())}
_GERMAN: Final = frozenset(("der", "die", "das", "den", "dem", "und", "ist", "sind", "wir", "für", "nicht", "im"))
"""A text with one of these has a capital letter in each noun, which so need not be a name."""
_MOST_CHARS: Final = 1500
"""A longer text has words of change by chance."""
_STEM_CHARS: Final = 6
_LEAST_SHARED: Final = 2
_TOPICS: Final = 2
_NEAR: Final = 4
"""A name so many words from a word of change is what has changed."""
_AROUND: Final = ".,;:!?\"'`()[]{}<>\u201c\u201d\u2018\u2019"


def speaks_of_change(text: str) -> bool:
    """Return True if the text has words of change."""
    if len(text) > _MOST_CHARS:
        return False
    words = words_of(text)
    spoken = f" {' '.join(words)} "
    return not _WORDS.isdisjoint(words) or any(f" {phrase} " in spoken for phrase in _PHRASES)


def refuting_words(reply: str) -> tuple[str, ...]:
    """Return the words of what a user replied if it may say that the answer is wrong or outdated, without the refusal.

    Empty if it asks or goes on. Whether it is about the answer, the words do not tell.
    """
    words = words_of(reply)
    if not words or len(reply) > _MOST_REPLY_CHARS or reply.rstrip().endswith("?") or words[0] in _GOES_ON:
        return ()
    refuses = words[0] in _REFUSALS
    spoken = f" {' '.join(words)} "
    if (
        refuses
        or speaks_of_change(reply)
        or ", not " in reply
        or any(f" {each} " in spoken for each in _REFUTING_PHRASES)
    ):
        return tuple(words[refuses:])
    return ()


class Subject(NamedTuple):
    """The telling words of a text by their stems, which of these are names, and which stand near a word of change.

    ``topics``: those with which it begins.
    """

    words: dict[str, str]
    names: frozenset[str]
    changed: frozenset[str]
    topics: tuple[str, ...] = ()


class Shared(NamedTuple):
    """What an older text and a newer one are both about.

    ``share``: of the words of the shorter one, without common ones. ``has_name``: a rare name that has changed.
    ``has_topic``: one begins with a rare word, the other nearly, and the newer one says that it has changed.
    """

    share: float
    has_name: bool
    has_topic: bool


NOTHING: Final = Subject({}, frozenset(), frozenset())


def subject_of(text: str) -> Subject:
    """Return what a text is about. Of a long one, the beginning counts."""
    text = text[:_MOST_CHARS]
    words = words_of(text)
    telling = [word not in STOP_WORDS and word not in _WORDS for word in words]
    spoken = " ".join(words)
    marks = [at for at, word in enumerate(words) if word in _WORDS]
    marks += [spoken[:found].count(" ") for phrase in _PHRASES if (found := f" {spoken} ".find(f" {phrase} ")) >= 0]
    near = {at for mark in marks for at in range(mark - _NEAR, mark + _NEAR + 1)}
    return Subject(
        {stem(word): word for word, tells in zip(words, telling, strict=True) if tells},
        frozenset(names_in(text)).union(stem(word) for before, word in pairwise(words) if before in _OBJECTS),
        frozenset(stem(word) for at, word in enumerate(words) if telling[at] and at in near),
        tuple([stem(word) for word, tells in zip(words, telling, strict=True) if tells][:_TOPICS]),
    )


def shared(
    older: Subject, newer: Subject, is_rare: Callable[[str], bool], is_very_rare: Callable[[str], bool]
) -> Shared:
    """Return what both texts are about. ``is_rare``: few memories have the word; ``is_very_rare``: hardly any other."""
    both = older.words.keys() & newer.words.keys()
    rare = {stem for stem in both if is_rare(older.words[stem])}
    shorter = min(len(older.words), len(newer.words)) - len(both) + len(rare)
    is_enough = len(both) >= _LEAST_SHARED and shorter >= _LEAST_SHARED
    names = rare & newer.changed & (older.names | newer.names)
    has_name = any(is_very_rare(older.words[stem]) for stem in names if not stem.startswith("#") or is_enough)
    return Shared(
        len(rare) / shorter if is_enough else 0.0,
        has_name,
        has_topic=not (rare & newer.changed).isdisjoint(_topics(older, newer)),
    )


def _topics(one: Subject, other: Subject) -> set[str]:
    return {*one.topics[:1]}.intersection(other.topics) | {*other.topics[:1]}.intersection(one.topics)


def stem(word: str) -> str:
    """Return the beginning that forms of the word have in common; of a weekday, which one it is in all languages."""
    bare = word.removesuffix("s") if len(word) > _STEM_CHARS // 2 else word
    return _DAYS.get(bare) or bare[:_STEM_CHARS]


def names_in(text: str) -> set[str]:
    """Return the stems of names: with a capital or a digit inside, or a capital within a sentence; and of days."""
    is_german = not _GERMAN.isdisjoint(words_of(text))
    found = set()
    begins = True
    for token in text.split():
        core = token.strip(_AROUND)
        inner = core[1:]
        is_name = any(map(str.isupper, inner)) or (any(map(str.isdigit, inner)) and any(map(str.isalpha, core)))
        if is_name or (core[:1].isupper() and not begins and not is_german):
            found |= set(map(stem, words_of(core)))
        begins = token.endswith((".", "!", "?", ":")) or token in {"-", "*", "#", "##"}
    return found.union(_DAYS.values())
