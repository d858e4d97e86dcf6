"""Relative times and dates in French, Spanish and further languages, as the English phrases that they mean.

Each pattern is bounded, so that reading is linear in the length of the query.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

MONTHS_IN_ENGLISH: Final = {
    name: english
    for english, names in {
        "January": "janvier enero",
        "February": "f\u00e9vrier fevrier febrero",
        "March": "mars marzo",
        "April": "avril abril",
        "May": "mai mayo",
        "June": "juin junio",
        "July": "juillet julio",
        "August": "ao\u00fbt aout agosto",
        "September": "septembre septiembre setiembre",
        "October": "octobre octubre",
        "November": "novembre noviembre",
        "December": "d\u00e9cembre decembre diciembre",
    }.items()
    for name in names.split()
}
_WEEKDAYS: Final = {
    name: english
    for english, names in {
        "Monday": "lundi lunes",
        "Tuesday": "mardi martes",
        "Wednesday": "mercredi mi\u00e9rcoles miercoles",
        "Thursday": "jeudi jueves",
        "Friday": "vendredi viernes",
        "Saturday": "samedi s\u00e1bado sabado",
        "Sunday": "dimanche domingo",
    }.items()
    for name in names.split()
}
_NUMBERS: Final = (
    "un deux trois quatre cinq six sept huit neuf dix",
    "un dos tres cuatro cinco seis siete ocho nueve diez",
)
_COUNTS: Final = {
    "une": "1",
    "una": "1",
    **{word: str(count) for words in _NUMBERS for count, word in enumerate(words.split(), 1)},
}
_UNITS: Final = {
    **dict.fromkeys(("jour", "jours", "d\u00eda", "d\u00edas", "dia", "dias"), "days"),
    **dict.fromkeys(("semaine", "semaines", "semana", "semanas"), "weeks"),
    **dict.fromkeys(("mois", "mes", "meses"), "months"),
    **dict.fromkeys(("an", "ans", "ann\u00e9e", "ann\u00e9es", "a\u00f1o", "a\u00f1os"), "years"),
}
_PART: Final = r"(?:\s(?:matin|midi|soir|apr\u00e8s-midi|por\sla\s(?:ma\u00f1ana|tarde|noche)))?"
_FIXED: Final = {
    "day before yesterday": (
        r"avant-hier|anteayer|antier|l'altro\sieri|anteontem|eergisteren|\u043f\u043e\u0437\u0430\u0432\u0447\u0435\u0440\u0430"
        r"|\u524d\u5929|\u4e00\u6628\u65e5|\u304a\u3068\u3068\u3044|\uadf8\uc800\uaed8"
    ),
    "yesterday": (
        rf"hier{_PART}|ayer{_PART}|anoche|ieri|ontem|gisteren|wczoraj|d\u00fcn|\u0432\u0447\u0435\u0440\u0430|\u6628\u5929"
        r"|\u6628\u65e5|\uc5b4\uc81c"
    ),
    "today": (
        rf"aujourd['\u2019]hui|ce\s(?:matin|soir)|cet\sapr\u00e8s-midi|hoy{_PART}|esta\s(?:ma\u00f1ana|tarde|noche)|oggi|hoje"
        r"|vandaag|dzisiaj|bug\u00fcn|\u0441\u0435\u0433\u043e\u0434\u043d\u044f|\u4eca\u5929|\u4eca\u65e5|\uc624\ub298"
    ),
    "last week": (
        r"semaine\s(?:derni\u00e8re|pass\u00e9e)|semana\spasada|settimana\sscorsa|semana\spassada|vorige\sweek"
        r"|\u4e0a\u5468|\u4e0a\u9031|\u5148\u9031|\uc9c0\ub09c\uc8fc"
    ),
    "this week": (
        r"cette\ssemaine|esta\ssemana|questa\ssettimana|deze\sweek|\u672c\u5468|\u4eca\u9031|\uc774\ubc88\s?\uc8fc"
    ),
    "last month": r"mois\s(?:dernier|pass\u00e9)|mes\spasado|mese\sscorso|m\u00eas\spassado|vorige\smaand",
    "this month": r"ce\smois(?:-ci)?|este\smes",
    "last year": r"ann\u00e9e\s(?:derni\u00e8re|pass\u00e9e)|an\sdernier|a\u00f1o\spasado",
    "this year": r"cette\sann\u00e9e|este\sa\u00f1o",
}
_MONTH: Final = "|".join(sorted(MONTHS_IN_ENGLISH, key=len, reverse=True))
_UNIT: Final = "|".join(sorted(_UNITS, key=len, reverse=True))
_COUNT: Final = rf"[0-9]{{1,3}}|{'|'.join(_COUNTS)}"
_CUES: Final = (
    *("hier", "ayer", "anoche", "antier", "hui", "matin", "soir", "midi", "hoy", "esta", "este", "cette", "ce mois"),
    *(
        "semain",
        "semana",
        "settimana",
        "mois",
        "mes",
        "an ",
        "ann\u00e9e",
        "a\u00f1o",
        "il y a",
        "hace",
        "ieri",
        "ontem",
        "oggi",
    ),
    *(
        "hoje",
        "gisteren",
        "vandaag",
        "deze",
        "vorige",
        "wczoraj",
        "dzisiaj",
        "d\u00fcn",
        "bug\u00fcn",
        "derni",
        "\u00faltim",
        "ultim",
    ),
    *("\u0432\u0447\u0435\u0440\u0430", "\u0441\u0435\u0433\u043e\u0434\u043d\u044f", *MONTHS_IN_ENGLISH, *_WEEKDAYS),
    *("am ", "vom ", "seit ", "on ", "le ", "el "),
)
_PHRASE: Final = re.compile(
    "|".join(rf"(?P<f{number}>{pattern})" for number, pattern in enumerate(_FIXED.values()))
    + rf"""|(?:il\sy\sa|hace)\s(?P<ago>{_COUNT})\s(?P<ago_unit>{_UNIT})
        |(?P<last>{_COUNT})\sderni(?:ers?|\u00e8res?)\s(?P<last_unit>{_UNIT})
        |(?:derni(?:ers?|\u00e8res?)|[\u00fau]ltim[oa]s)\s(?P<last2>{_COUNT})\s(?P<last2_unit>{_UNIT})
        |(?P<day>[0-9]{{1,2}})(?:er)?\s(?:de\s)?(?P<month>{_MONTH})(?:\s(?:del?\s)?(?P<year>[0-9]{{4}}))?
        |(?:en|au\smois\sde|desde|depuis)\s(?P<in_month>{_MONTH})(?:\s(?:del?\s)?(?P<in_year>[0-9]{{4}}))?
        |(?P<weekday>{"|".join(_WEEKDAYS)})(?:\s(?:dernier|pasado))?
        |(?:am|vom|seit|on|le|el)\s(?P<n1>[0-9]{{1,2}})(?P<sep>[./])(?P<n2>[0-9]{{1,2}})(?:\.(?=\W|$))?(?![0-9])
        |(?:am\s(?P<am>[0-9]{{1,2}})\.(?=\W{{0,9}}$|\s[a-z\u00e4\u00f6\u00fc])
        |(?:le|el(?:\sd\u00eda)?)\s(?P<le>[0-9]{{1,2}})(?=\W{{0,9}}$))""",
    re.VERBOSE | re.IGNORECASE,
)
_GERMAN: Final = (
    "der die das den dem ist sind war waren wer wie wo ich wir ihr man und nicht hat haben wurde ein eine mit"
)
_SPEAKS_GERMAN: Final = frozenset(_GERMAN.split())
_GERMAN_HERE: Final = "hier"


def english_phrases(query: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and the English of each time in ``query`` that is written in another language than English."""
    folded = query.lower()
    if len(folded) != len(query) or not (any(cue in folded for cue in _CUES) or not folded.isascii()):
        return
    for match in sorted(_PHRASE.finditer(query), key=lambda match: match["weekday"] is not None):
        start, end = match.span()
        if _is_part(query, start, end):
            continue
        if match[0].lower() == _GERMAN_HERE and not _SPEAKS_GERMAN.isdisjoint(_words(folded)):
            continue
        if (english := _english(match)) is not None:
            yield start, end, english


def _words(folded: str) -> list[str]:
    return "".join(char if char.isalnum() else " " for char in folded).split()


def _is_part(query: str, start: int, end: int) -> bool:
    before, after = query[start - 1 : start], query[end : end + 1]
    if query[start] >= "\u2e80":  # no spaces between words
        return False
    return before.isalnum() or before in {"_", "/", "@"} or after.isalnum() or after in {"_", "/", "@"}


def _english(match: re.Match[str]) -> str | None:
    found = {name: value.lower() for name, value in match.groupdict().items() if value is not None}
    for number, english in enumerate(_FIXED):
        if f"f{number}" in found:
            return english
    if "ago" in found:
        return f"{_COUNTS.get(found['ago'], found['ago'])} {_UNITS[found['ago_unit']]} ago"
    for name in ("last", "last2"):
        if name in found:
            return f"last {_COUNTS.get(found[name], found[name])} {_UNITS[found[f'{name}_unit']]}"
    if "month" in found:
        return f"on {MONTHS_IN_ENGLISH[found['month']]} {found['day']} {found.get('year', '')}".strip()
    if "in_month" in found:
        return f"in {MONTHS_IN_ENGLISH[found['in_month']]} {found.get('in_year', '')}".strip()
    if "weekday" in found:
        return f"on {_WEEKDAYS[found['weekday']]}"
    if "n1" in found:
        day, month = int(found["n1"]), int(found["n2"])
        if match[0].lower().startswith("on"):  # 11/27 or 27/11, where only one of them can be meant
            if found["sep"] == "." or (day <= 12 and month <= 12 and day != month):
                return None
            day, month = max(day, month), min(day, month)
        return f"on {_NAMES[month - 1]} {day}" if 1 <= month <= 12 and 1 <= day <= 31 else None
    return f"on the {found.get('am') or found['le']}th"


_NAMES: Final = list(dict.fromkeys(MONTHS_IN_ENGLISH.values()))
