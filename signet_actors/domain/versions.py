"""Versions of one fact: texts that differ in one value.

Source: docs/guides/hooks.md "Each prompt"; docs/quality.md "Versions of a fact".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from signet_actors.domain.normalization import MAYBE_CJK
from signet_actors.domain.query_words import words_of
from signet_actors.domain.stop_words import STOP_WORDS, stop_words_of

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
_LEAST_SAID_BEFORE: Final = 2
"""Of a short fact ("The staging host is heron"), words before "is"."""
_SHORT_VALUE: Final = 2
_NOW: Final = frozenset(("now", "currently", "nun", "jetzt", "derzeit", "maintenant", "ahora"))
_SAID_BY: Final = frozenset(("is", "ist", "lautet", "heißt", "est", "es", "llama"))
"""What stands before a value of which a thing has one."""
_VERBS: Final = frozenset(
    ("is", "are", "has", "have", "was", "holds", "ist", "sind", "hat", "haben", "est", "a", "es", "tiene")
)
"""A value before such a word is a part of what is spoken of: "Room 12 has a projector"."""
_HOLD_WORDS: Final = """
    has have includes include contains contain exposes supports support
    hat haben enthält unterstützt contient comprend tiene contiene incluye
"""
_HOLDS: Final = frozenset(_HOLD_WORDS.split())
"""Of a thing that has parts, a numbered part is one of several: "The cluster has node 10.0.0.1"."""
_NUMBERED_THINGS: Final = """
    issue ticket bug pr mr story task incident order invoice customer case
    fehler aufgabe vorfall rechnung kunde bestellung tâche commande tarea pedido
"""
_NUMBERED: Final = frozenset(_NUMBERED_THINGS.split())
"""What is told apart by its number: each is another thing."""
_PART: Final = 3
"""Words between such a word and the number of the part."""
_DIGITS_OF_AN_ISSUE: Final = 3
"""API-101 names an issue, arch-2 and GPT-4 are versions."""
_BEGINS_ONE_OF_SEVERAL: Final = "a an one another some each every any ein eine jeder jede un une una otra"
_ONE_OF_SEVERAL: Final = frozenset(_BEGINS_ONE_OF_SEVERAL.split())
_STATE_WORDS: Final = """
    active alive available bad big broken busy clean closed cold correct critical dark dead deep down dry easy empty
    false fast few flaky free fresh full good great happy hard healthy heavy high hot huge idle important inactive
    large late lazy light local long loud low missing new noisy obsolete off offline ok okay old on online open optional
    pending poor private public quick quiet read-only ready remote rich running safe secure shared short sick slow
    small stable strange strict strong sure tall tiny true ugly unstable up urgent warm weak wet wide working wrong
    young
    alt aus bereit defekt fertig frei gesund gross groß hoch kaputt klein kurz lang langsam leer neu niedrig offen
    schlecht schnell sicher stabil voll wichtig
    lent lente rapide plein pleine vide vieux vieille nouveau nouvelle grand grande petit petite prêt prête cassé stable
    lento lenta rápido rápida lleno llena vacío vacía viejo vieja nuevo nueva grande pequeño pequeña listo lista roto
"""
STATES: Final = frozenset(_STATE_WORDS.split())
_ENDS_OF_STATES: Final = ("able", "ible", "ful", "less", "ous", "ized", "ated", "ically")
"""A thing has several states: that the staging host is slow says nothing of its name."""
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
DAYS_AND_MONTHS: Final = frozenset(_DAYS.split())
_UNIT_WORDS: Final = """
    ms s sec secs second seconds min mins minute minutes h hour hours day days week weeks month months year years
    b kb mb gb tb kib mib gib % percent am pm o'clock eur euro euros usd dollar dollars
    sekunde sekunden minuten stunde stunden tag tage tagen woche wochen monat monate monaten jahr jahre jahren uhr
    prozent secondes heure heures jour jours semaine semaines mois an ans segundos minutos hora horas día días semana
    semanas mes meses año años
"""
_UNITS: Final = frozenset(_UNIT_WORDS.split())
_SPANS: Final = frozenset(("to", "and", "until", "till", "-", "\u2013", "bis", "und", "à", "et", "a", "y"))
"""What stands between the numbers of one span."""
_ORDINALS: Final = ("st", "nd", "rd", "th")
_TOOLS: Final = ("npm pnpm yarn bun", "pip uv poetry pipenv pdm", "jest vitest mocha", "maven gradle", "tabs spaces")
"""For one thing one of each is used. Other tools may be used beside each other."""
_USE_WORDS: Final = """
    use run need require prefer nutze benutze verwende nutzen benutzen verwenden utilise utilisons usa usamos
"""
_USES: Final = frozenset(_USE_WORDS.split())
_WE: Final = frozenset(("we", "wir", "nous"))
_PRODUCT_WORDS: Final = """
    postgres postgresql mysql mariadb redis mongodb elasticsearch kafka nginx node nodejs python java jdk go rust ruby
    php django rails react vue angular spring ubuntu debian alpine kubernetes terraform gradle swift kotlin scala dotnet
"""
_PRODUCTS: Final = frozenset(_PRODUCT_WORDS.split())
"""What stands behind another name may number a part ("VLAN 10") or a variant ("TLS 1.2"): several are used."""
_NEVER_WORDS: Final = "never not don't no avoid nie niemals nicht kein keine jamais pas nunca"
_NEVER: Final = frozenset(_NEVER_WORDS.split())
"""What is never done may be so for several values."""
_MAJOR_DIGITS: Final = 2
"""Of a version in an address without a "v", before its dot: 1706.03762 numbers a paper."""
_HOST_END: Final = 3
"""Of the parts of an address between slashes, the scheme and the host are the first so many."""
_DOCUMENTS: Final = _NUMBERED.union(("notes", "downloads"))
_PLACED: Final = frozenset(("at", "under", "on", "unter", "auf", "bei", "à", "sur", "en"))
_ARE: Final = frozenset(("are", "sind", "sont", "están"))
AROUND: Final = ".,;:!?\"'()[]\u201c\u201d\u2018\u2019"


def are_alike(one: AbstractSet[str], other: AbstractSet[str], *, much: bool) -> bool:
    """Return True if two texts with these ``telling_words`` have many of them in common."""
    return len(one & other) >= (_MUCH_ALIKE if much else _ALIKE) * len(one | other)


def telling_words(text: str) -> AbstractSet[str]:
    """Return the words of a text's beginning without stop words; of Chinese and the like its characters."""
    beginning = text[:_MOST_CHARS]
    return set(beginning) if MAYBE_CJK.search(beginning) else set(words_of(beginning)) - STOP_WORDS


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
    if max(map(len, values)) > _MOST_CHANGED or not _SPANS.issuperset({*values[0]}.intersection(values[1])):
        return False  # "8080 in dev" and "80 in prod" differ in two places
    follows = first[len(first) - after] if after else ""
    if after and any(is_ordinal(word) for value in values for word in value):
        return False  # the 3rd bug and the 4th, the 3rd floor and the 5th
    if not _NEVER.isdisjoint(first[:before]):
        return False
    if _is_replaced(first[:before], first[len(first) - after :], values):
        return True
    addresses = [word for value in values for word in value if "://" in word]
    if addresses and (not all(map(_is_address, addresses)) or not _ARE.isdisjoint(first[max(0, before - 2) : before])):
        return False
    told = [word for word in first[:before] if word not in STOP_WORDS and word not in _WE]
    behind = [word for word in first[len(first) - after :] if word not in STOP_WORDS]
    if len(told) < len(behind) or follows in _VERBS or _is_of_a_part(first[:before]):
        return False
    if len(told) + len(behind) >= _LEAST_SAID and _differ_in_a_number(*values):
        return True
    return not _SAID_BY.isdisjoint(first[max(0, before - 2) : before]) and _are_of_one(first[:before], behind, values)


def _is_replaced(said: Sequence[str], behind: Sequence[str], values: Sequence[Sequence[str]]) -> bool:
    """Return True if one tool, version of a product, day or address of few words takes the place of another."""
    if not said or {len(value) for value in values} != {1} or said[0] in _ONE_OF_SEVERAL:
        return False
    named = {value[0] for value in values}
    if said[-1] in _USES:
        is_rule = all(word in _WE for word in said[:-1])
        return is_rule and bool(behind) and any(named.issubset(tools.split()) for tools in _TOOLS)
    if behind:
        return False
    if said[-1] in _PRODUCTS:
        uses = said[1:-1] if said[0] in _WE else said[:-1]
        return len(uses) == 1 and uses[0] in _USES and all(map(_is_version, named))
    if said[1:2] == ["are"] and [*said[3:]] == ["on", "the"] and said[2] not in STATES:
        return all(map(is_ordinal, named))
    said = said[:-1] if said[-1] in _PLACED else said
    about = [word for word in said[:-1] if word not in STOP_WORDS]
    if not about or not all(map(_is_address, named)) or not _DOCUMENTS.isdisjoint(about):
        return False
    if len(set(map(_without_version, named))) == 1:
        return said[-1] in _SAID_BY | _ARE
    return said[-1] in _SAID_BY and len(about) >= _LEAST_SAID_BEFORE


def _is_version(word: str) -> bool:
    return word.removeprefix("v").replace(".", "").isdecimal()


def is_ordinal(word: str) -> bool:
    """Return True for a number such as 3rd."""
    return word.endswith(_ORDINALS) and word[:-2].isdecimal()


def _without_version(address: str) -> tuple[str, ...]:
    parts = address.split("/")
    return (*parts[:_HOST_END], *(part for part in parts[_HOST_END:] if not _is_version(part)))


def _is_address(word: str) -> bool:
    """Return True for an address, but not for one with the number of an item: …/issues/12, …/KA-12, …?id=12."""
    path = word.replace("?", "/").split("/")[_HOST_END:]
    numbers = [part.rpartition("=")[2].rpartition("-")[2].partition(".") for part in path]
    items = [major for major, dot, _ in numbers if major.isdecimal() and not (dot and len(major) <= _MAJOR_DIGITS)]
    return "://" in word and not items


def _is_of_a_part(said: Sequence[str]) -> bool:
    """Return True if what is said before a value ends in the name of a part: "has node", but not the count "has"."""
    if not said or said[-1] in _HOLDS:
        return False
    return said[-1] in _NUMBERED or not _HOLDS.isdisjoint(said[-1 - _PART : -1])


def _are_of_one(said: Sequence[str], behind: Sequence[str], values: Sequence[Sequence[str]]) -> bool:
    """Return True if the thing before "is" has one such value; where little is said of it, both must be of one kind."""
    words = words_of(" ".join(said))
    telling = [word for word in words if word not in stop_words_of(words) and word not in _SAID_BY]
    if said[0] in _ONE_OF_SEVERAL:
        return False
    named = [[word for word in value if word not in _SAID_BY] for value in values]
    if any(map(_is_state, (word for value in named for word in value))):
        return False
    if len(telling) + len(behind) >= _LEAST_SAID:
        return not any(map(_is_number, (word for value in named for word in value)))
    return (
        len(telling) >= _LEAST_SAID_BEFORE
        and all(0 < len(value) <= _SHORT_VALUE for value in named)
        and len({all(map(str.isalpha, value)) for value in named}) == 1
    )


def _is_state(word: str) -> bool:
    return word in STATES or word in STOP_WORDS or word.endswith(_ENDS_OF_STATES)


def _words(text: str) -> list[str]:
    if len(text) > _LONGEST_FACT:
        return []
    if MAYBE_CJK.search(text):
        return list(text)
    words = [core for word in text.lower().split() if (core := word.strip(AROUND)) and core not in _NOW]
    return words[1:] if words and words[0] in {"the", "our"} else words


def _differ_in_a_number(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return True if one number or day, or a span of these, stands in place of another, or is left out."""
    others = [[rest for word in value if (rest := _beside_number(word))] for value in (one, other)]
    return others[0] == others[1] and all(not value or any(map(_is_number, value)) for value in (one, other))


def _is_number(word: str) -> bool:
    return word in DAYS_AND_MONTHS or (any(map(str.isnumeric, word)) and not word.startswith("#"))


def _beside_number(word: str) -> str:
    """Return what a word has beside a number, a day and a unit: arch of arch-2; #101 and API-101 name issues."""
    head, _, tail = word.rpartition("-")
    if word.startswith("#") or (head.isalpha() and tail.isdecimal() and len(tail) >= _DIGITS_OF_AN_ISSUE):
        return word
    letters = "" if word in DAYS_AND_MONTHS else "".join(filter(str.isalpha, word))
    return "" if letters in _UNITS or letters in _ORDINALS or letters.isnumeric() else letters


def groups_of_versions(texts: Sequence[str]) -> list[list[int]]:
    """Return which texts are versions of one fact: the places of two or more each, ascending."""
    words = [_words(text) for text in texts]
    groups = _grouped(len(texts), lambda one, other: _differ_in_a_value(words[one], words[other]))
    return [group for group in groups if len(group) > 1]


def _grouped(count: int, are_versions_at: Callable[[int, int], bool]) -> list[list[int]]:
    """Return the places below ``count`` in groups: each joins the first group whose first place is a version of it."""
    groups: list[list[int]] = []
    for at in range(count):
        group = next((group for group in groups if are_versions_at(at, group[0])), None)
        if group is None:
            groups.append([at])
        else:
            group.append(at)
    return groups


class Dated(NamedTuple):
    """A text with its time and the project that it holds in."""

    text: str
    time_ms: int
    project: str | None = None


def newest_versions(texts: Sequence[Dated], asked: Collection[str] = ()) -> list[int]:
    """Return which texts to keep, best first: of versions in one project the newest, at the best place.

    A text with a number or day of the words ``asked`` for is kept beside a version that lacks it.
    """
    words = [_words(each.text) for each in texts]
    wanted = frozenset(word for word in asked if _is_number(word))

    def are_versions_here(at: int, other: int) -> bool:
        return (
            texts[at].project == texts[other].project
            and _differ_in_a_value(words[at], words[other])
            and wanted.isdisjoint({*words[at]} ^ {*words[other]})
        )

    groups = _grouped(len(texts), are_versions_here)
    return [max(group, key=lambda at: texts[at].time_ms) for group in groups]
