"""Entities and attributes that a text states by its form: what ``graph.inlineLinker: create`` stores.

Proper nouns are told by their capital letters, aspects by the verb of the clause. No model, no network, linear time.

Source: memory-pipeline.txt "Inline Entity Linker"; architecture.txt "Pipeline V2".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from signet_actors.domain.graph.names import MAX_NAME_CHARS, MIN_NAME_CHARS, canonical_name
from signet_actors.domain.stop_words import STOP_WORDS

MAX_CANDIDATES: Final = 10
"""Of one text."""
MAX_CLAUSES: Final = 50
MAX_CLAUSE_CHARS: Final = 300
MAX_TEXT_CHARS: Final = 20_000
GENERAL: Final = "general"
"""The aspect of a clause whose verb says nothing."""

_CLAUSE: Final = re.compile(r"[^.!?;\n]+(?>(?:[.](?=\S)[^.!?;\n]*+)*)")
_NAME: Final = re.compile(r"(?<![\w.-])[^\W\d_a-z][\w+#.-]*+(?: [^\W\d_a-z][\w+#.-]*+){0,4}")
_MARKED: Final = re.compile(r".[^\W\d_a-z]|[\d+#_-]")
"""A capital letter inside, a digit or a sign: the first word of a sentence is a name by that."""
_STATES: Final = re.compile(r"(?:is|was|are|has|had)\b", re.IGNORECASE)
_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)

ASPECT_VERBS: Final = tuple(
    (aspect, re.compile(rf"\b(?:{verbs})\b", re.IGNORECASE))
    for aspect, verbs in (
        ("preferences", "prefers?|likes?|loves?|hates?|favou?rs?|enjoys?|wants?"),
        ("decisions", "decided|chose|chosen|picked|switched|migrated|adopted|settled|committed"),
        ("technology", "uses?|using|runs? on|built (?:with|on|in)|written in|powered by|deployed (?:to|on|with)"),
        ("dependencies", "depends? on|requires?|needs?|imports?|relies on"),
        ("location", "lives? in|located|based in|hosted (?:on|in|at)|listens? on"),
        ("role", "works? (?:at|for|on|as|with)|leads?|manages?|owns?|maintains?|is responsible for"),
        ("rules", "must|never|always|should|forbidden|required"),
    )
)
"""Which aspect of its entity a clause with one of these verbs is about; the first that occurs counts."""


class Clause(NamedTuple):
    """A clause of a text: the entities that it names, the first one being its subject, and what it is about."""

    text: str
    names: tuple[str, ...]
    aspect: str


def aspect_of(clause: str) -> str:
    """Return the aspect that the verb of the clause names."""
    return next((aspect for aspect, verbs in ASPECT_VERBS if verbs.search(clause)), GENERAL)


def clauses(text: str) -> list[Clause]:
    """Return the clauses that name an entity, with at most ``MAX_CANDIDATES`` different entities in all."""
    known: dict[str, str] = {}
    found = []
    for clause in _split(text):
        names: dict[str, None] = {}
        for name in proper_nouns(clause):
            canonical = canonical_name(name)
            if canonical in known or len(known) < MAX_CANDIDATES:
                names[known.setdefault(canonical, name)] = None
        if names:
            found.append(Clause(clause[:MAX_CLAUSE_CHARS], tuple(names), aspect_of(clause)))
    return found


def proper_nouns(clause: str) -> Iterator[str]:
    """Yield runs of capitalised words.

    The first word of a clause has a capital letter anyway: it counts if its form marks it, or a verb follows it.
    """
    for match in _NAME.finditer(clause):
        words = match[0].rstrip(".-").split(" ")
        if not clause[: match.start()].strip() and len(words) == 1 and not _MARKED.search(words[0]):
            rest = clause[match.end() :].removeprefix("'s").lstrip()
            if not (_STATES.match(rest) or any(verbs.match(rest) for _, verbs in ASPECT_VERBS)):
                continue
        while words and words[0].lower() in STOP_WORDS:
            words = words[1:]
        name = " ".join(words).rstrip(".-")
        if MIN_NAME_CHARS <= len(name) <= MAX_NAME_CHARS and name.lower() not in (*_DAYS, *_MONTHS):
            yield name


def _split(text: str) -> Iterator[str]:
    for count, match in enumerate(_CLAUSE.finditer(text[:MAX_TEXT_CHARS])):
        if count == MAX_CLAUSES:
            return
        clause = match[0].strip()
        if clause:
            yield clause
