"""What a recall does with a time: rank its memories higher, filter by it, or list what happened then.

Source: memory-api.txt "POST /api/memory/recall" (time, meta.temporal); docs/compatibility.md "Temporal requests";
docs/decisions.md 58.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple, get_args

from signet_actors.domain.memories import TimeFacet
from signet_actors.domain.stop_words import STOP_WORDS
from signet_actors.domain.temporal.phrases import DatePhrase, PhraseKind, Window, date_phrase, ms_of, window_of

TimeMode = Literal["auto", "timeline", "filter"]
TIME_MODES: Final[tuple[TimeMode, ...]] = get_args(TimeMode)
ALL_FACETS: Final[tuple[TimeFacet, ...]] = ("session", "source", "occurred", "observed", "valid", "captured")

_WEAK: Final = "what were was we you i doing did do on in at the that day date tell me about working worked"
WEAK_WORDS: Final = frozenset(_WEAK.split())
"""Words beside a documented date that are no topic. Source: docs/compatibility.md "Worked examples: dates"."""
_EMPTY: Final = """
    happen happened happening happens done show list everything anything something all s work works worked
    working discuss discussed discussing talk talked talking speak spoke decide decided recap summarize
    summarise summarized learn learned learnt finish finished complete completed get got getting accomplish
    accomplished achieve achieved leave left off remember remembered been make made write wrote say said tell
    told mention mentioned noted give going go went since earlier later day week month time during were have up
    passiert passierte geschah gemacht getan los ist sind war waren wurde wurden haben habe hat hatten wir ich
    du ihr man uns der die das den dem ein eine einen wer wo wie am im an um von vom zu zum zur bei mit es alles
    zeige zeig mir denn da und was an woran worüber woran darüber gearbeitet arbeiten arbeiteten besprochen
    gesprochen geredet entschieden beschlossen fasse fass zusammen erledigt gelernt geschafft stehen geblieben
    seit bisher gib über gibt gab hast habt tag tages arbeit que qu quoi quelle quels quelles avons avez ai as a
    on nous tu vous je j fait faire faisons travaillé parlé discuté décidé résume résumer résumez passé est s se
    c ce cet cette appris fini terminé en étions le la les l un une de du des d tout tous montre montrer moi sur
    il y lors avec c'est qu'est-ce qu'avons-nous qu'ai-je avons-nous avez-vous qu'as-tu pendant journée au aux
    dans depuis qué que hicimos hice hiciste hizo hemos he has hecho hablamos hablé trabajamos trabajé trabajado
    decidimos discutimos resume resumir pasó ocurrió aprendí aprendimos terminamos terminé el los las del lo
    muéstrame mostrar todo con nosotros sobre haciendo estuvimos hablado y durante desde día cosa abbiamo fatto
    please bitte new neu neue neues neuem nouveau nouvelles nuevo nuevas touched
    change changed changing ask asked asking geändert änderten gefragt changé demandé cambiamos cambié cambiado pregunté
    für pour para dich dir mich mir te travail trabajo ensemble juntos
    project projekt projet proyecto repo repository codebase
    ho fizemos fiz fizeste hebben we gedaan heb что мы делали сделали
"""
_DAYS: Final = """
    monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun montag dienstag mittwoch
    donnerstag freitag samstag sonnabend sonntag lundi mardi mercredi jeudi vendredi samedi dimanche lunes martes
    miércoles jueves viernes sábado domingo morning afternoon evening night noon abend nachmittag vormittag morgen
    mittag früh nacht matin soir après-midi midi mañana tarde noche
"""
_BESIDE_DAYS: Final = frozenset(_DAYS.split())
"""Words that belong to a day, and are no topic."""
_EMPTY_WORDS: Final = WEAK_WORDS | STOP_WORDS | _BESIDE_DAYS | frozenset(_EMPTY.split())
"""Words beside any other time that are no topic."""
_REPORTS: Final = frozenset(
    {
        *("summary", "recap", "standup", "stand-up", "review", "overview", "report", "zusammenfassung", "rückblick"),
        *("überblick", "résumé", "bilan", "resumen", "resumo", "samenvatting"),
        *("notes", "notizen", "notas", "news", "updates", "changes", "änderungen"),
    }
)
_OF: Final = frozenset({"of", "for", "from", "von", "vom", "zu", "des", "de", "du", "d", "del", "über", ""})
"""What is asked for at the beginning of a query is no topic before such a word: ``summary of …``, ``standup: …``."""
_LAST: Final = """
    last time / last session / previous session / last conversation / left off / leave off / where were we
    where was i / where did we stop / where did i stop / still open / still unfinished / still to do
    last thing we did / last thing i did / last thing you did / did we last / did i last / did you last
    das letzte was wir gemacht haben / zuletzt
    dernière chose que nous avons faite / dernière chose qu'on a faite / lo último que hicimos
    letztes mal / letzte mal / letzten mal / letzte sitzung / letzten sitzung / letzte session / letzten session
    wo waren wir / wo war ich / stehen geblieben / stehengeblieben / noch offen / noch zu tun
    dernière fois / dernière session / en étions-nous / nous en étions / en était-on / on en était / reste à faire
    última vez / última sesión / nos quedamos / nos habíamos quedado / queda por hacer / sigue pendiente
"""
_LAST_SESSION: Final[dict[str, list[list[str]]]] = {}
"""What asks for the end of the last session, if nothing else is asked for: phrases by their first word."""
for _words in filter(None, map(str.split, _LAST.replace("\n", "/").split("/"))):
    _LAST_SESSION.setdefault(_words[0], []).append(_words)
_RESUMING: Final = """
    mach mache machen reprenons reprends reprendre là donde retomemos lass
    remind let's continue continuing continued resume pick picking again please hey hi hello ok okay so now open
    stop stopped still unfinished left erinnere mich bitte beim weiter weitermachen nochmal hallo letzten offen
    rappelle-moi rappelle s'il plaît où continuons bonjour dónde recuérdame recuerda favor sigamos continuemos hola
    quedamos quedó pendiente
"""
_BESIDE_LAST: Final = _EMPTY_WORDS | frozenset(_RESUMING.split())
_LAST_DAYS: Final = 90
_STEM_CHARS: Final = 4
_PUNCTUATION: Final = ".,;:!?()[]{}<>\"'\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u00bf\u00a1\u2026"


class Intent(NamedTuple):
    """``mode`` auto: memories of the window rank higher. ``search_text`` is what is searched for.

    ``content_query`` is the same in lower case and without punctuation if the time came from the query.
    ``is_requested``: the caller sent the window, so nothing outside it is an answer. ``topic``: the words that say more
    than that the caller asks what happened, shortened. ``may_list``: if they match nothing in the window, what happened
    in it is listed. ``words``: those of the topic, whole. ``resumes``: nothing else is asked than how work goes on.
    ``phrase``: the time as the query names it.
    """

    mode: TimeMode
    content_query: str
    search_text: str
    window: Window
    facets: tuple[TimeFacet, ...]
    is_requested: bool
    topic: tuple[str, ...] = ()
    may_list: bool = False
    words: tuple[str, ...] = ()
    resumes: bool = False
    phrase: DatePhrase | None = None


def intent_of_request(query: str, window: Window, facets: Sequence[TimeFacet] | None, mode: str | None) -> Intent:
    """Return the intent of a request with a window. In mode auto, a query without a topic is a timeline."""
    topic = _content(query, _EMPTY_WORDS)
    chosen: TimeMode = "timeline" if mode == "timeline" or (mode != "filter" and not topic) else "filter"
    words = " ".join(topic) if chosen == "timeline" else query
    return Intent(chosen, query, words, window, tuple(dict.fromkeys(facets or ALL_FACETS)), is_requested=True)


def intent_of_query(query: str, now: datetime) -> Intent | None:
    """Return the intent of a query that names a time, or None. ``now`` is its moment in the caller's time zone.

    A documented date with a topic filters by it. A date or another time without a topic is a timeline. Anything else
    only ranks. A query for nothing but the last session ("where were we?") is a timeline of the last 90 days.
    """
    phrase = date_phrase(query, now)
    if phrase is None and asks_for_last_session(query):
        window = Window(ms_of(now - timedelta(days=_LAST_DAYS)), ms_of(now) + 1)
        return Intent("timeline", "", "", window, ALL_FACETS, is_requested=False, may_list=True)
    if phrase is None or now.tzinfo is None:
        return None
    window = window_of(phrase, now.tzinfo)
    if phrase.is_since:
        window = Window(window.start_ms, max(window.end_ms, ms_of(now) + 1))
    resumes = asks_for_last_session(phrase.rest)
    asks = [] if resumes else _content(phrase.rest, _EMPTY_WORDS)
    words = tuple(_core(token).lower() for token in asks)
    topic = asks
    if phrase.kind is PhraseKind.EXACT:
        topic = [token for token in _content(phrase.rest, WEAK_WORDS) if _core(token).lower() not in _BESIDE_DAYS]
    elif topic or (phrase.is_limit and not phrase.is_since):
        may_list = phrase.is_since or not phrase.is_limit
        stems = _stems(topic)
        return Intent(
            "auto", query, query, window, ("captured",), is_requested=False, topic=stems, may_list=may_list, words=words
        )
    shown = " ".join(_core(token).lower() for token in topic)
    return Intent(
        "filter" if topic else "timeline",
        shown,
        " ".join(topic),
        window,
        ALL_FACETS,
        is_requested=False,
        topic=_stems(asks),
        may_list=True,
        words=words,
        resumes=resumes,
        phrase=phrase,
    )


def asks_for_last_session(query: str) -> bool:
    """Return whether a question is about nothing but what the last session did and left: "where were we?"."""
    words = [word for token in query.split() if (word := _core(token).lower().replace("\u2019", "'"))]
    return any(
        words[at : at + len(phrase)] == phrase
        and not _content(" ".join(words[:at] + words[at + len(phrase) :]), _BESIDE_LAST)
        for at, word in enumerate(words)
        for phrase in _LAST_SESSION.get(word, ())
    )


def _content(text: str, empty_words: frozenset[str]) -> list[str]:
    """Return the words of ``text`` that may be a topic, as they are written."""
    kept: list[str] = []
    tokens = text.split()
    for index, token in enumerate(tokens):
        core = _core(token).lower()
        head = core.replace("\u2019", "'").partition("'")[0]
        if not any(map(str.isalnum, core)) or core in empty_words or head in empty_words:
            continue
        follows = "" if token.endswith(":") else next(iter(tokens[index + 1 : index + 2]), "").lower()
        if kept or empty_words is WEAK_WORDS or head not in _REPORTS or _core(follows).partition("'")[0] not in _OF:
            kept.append(token)
    return kept


def _stems(topic: Sequence[str]) -> tuple[str, ...]:
    return tuple(word[: max(_STEM_CHARS, len(word) - 2)] for token in topic if (word := _core(token).lower()))


def _core(token: str) -> str:
    return token.strip(_PUNCTUATION)
