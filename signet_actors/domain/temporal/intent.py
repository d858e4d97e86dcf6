"""What a recall does with a time: rank its memories higher, filter by it, or list what happened then.

Source: memory-api.txt "POST /api/memory/recall" (time, meta.temporal); docs/compatibility.md "Temporal requests";
docs/decisions.md 58.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple, get_args

from signet_actors.domain.memories import TimeFacet
from signet_actors.domain.stop_words import STOP_WORDS
from signet_actors.domain.temporal.phrases import PhraseKind, Window, date_phrase, window_of

TimeMode = Literal["auto", "timeline", "filter"]
TIME_MODES: Final[tuple[TimeMode, ...]] = get_args(TimeMode)
ALL_FACETS: Final[tuple[TimeFacet, ...]] = ("session", "source", "occurred", "observed", "valid", "captured")

_WEAK: Final = "what were was we you i doing did do on in at the that day date tell me about working worked"
WEAK_WORDS: Final = frozenset(_WEAK.split())
"""Words beside a documented date that are no topic. Source: docs/compatibility.md "Worked examples: dates"."""
_EMPTY: Final = """
    happen happened happening show list everything anything all s passiert passierte geschah gemacht getan los ist sind
    war waren wurde haben habe hat hatten wir ich du ihr man uns der die das den dem ein eine einen wer wo wie am im an
    um von vom zu zum zur bei mit es alles zeige zeig mir denn da und
"""
_EMPTY_WORDS: Final = WEAK_WORDS | STOP_WORDS | frozenset(_EMPTY.split())
"""Words beside any other time that are no topic."""
_PUNCTUATION: Final = ".,;:!?()[]{}<>\"'\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u00bf\u00a1\u2026"


class Intent(NamedTuple):
    """``mode`` auto: memories of the window rank higher. ``search_text`` is what is searched for.

    ``content_query`` is the same in lower case and without punctuation if the time came from the query.
    ``is_requested``: the caller sent the window, so nothing outside it is an answer.
    """

    mode: TimeMode
    content_query: str
    search_text: str
    window: Window
    facets: tuple[TimeFacet, ...]
    is_requested: bool


def intent_of_request(query: str, window: Window, facets: Sequence[TimeFacet] | None, mode: str | None) -> Intent:
    """Return the intent of a request with a window. In mode auto, a query without a topic is a timeline."""
    topic = _content(query, _EMPTY_WORDS)
    chosen: TimeMode = "timeline" if mode == "timeline" or (mode != "filter" and not topic) else "filter"
    words = " ".join(topic) if chosen == "timeline" else query
    return Intent(chosen, query, words, window, tuple(dict.fromkeys(facets or ALL_FACETS)), is_requested=True)


def intent_of_query(query: str, now: datetime) -> Intent | None:
    """Return the intent of a query that names a time, or None. ``now`` is its moment in the caller's time zone.

    A documented date with a topic filters by it. A date or another time without a topic is a timeline. Anything else,
    and a full date in another form, only ranks.
    """
    phrase = date_phrase(query, now)
    if phrase is None or now.tzinfo is None:
        return None
    window = window_of(phrase, now.tzinfo)
    if phrase.kind is PhraseKind.EXACT:
        topic = _content(phrase.rest, WEAK_WORDS)
    else:
        topic = _content(phrase.rest, _EMPTY_WORDS)
        if topic or phrase.is_limit or phrase.kind is PhraseKind.FULL:
            return Intent("auto", query, query, window, ("captured",), is_requested=False)
    shown = " ".join(_core(token).lower() for token in topic)
    return Intent("filter" if topic else "timeline", shown, " ".join(topic), window, ALL_FACETS, is_requested=False)


def _content(text: str, empty_words: frozenset[str]) -> list[str]:
    """Return the words of ``text`` that may be a topic, as they are written."""
    kept = []
    for token in text.split():
        core = _core(token).lower()
        head = core.replace("\u2019", "'").partition("'")[0]
        if any(map(str.isalnum, core)) and core not in empty_words and head not in empty_words:
            kept.append(token)
    return kept


def _core(token: str) -> str:
    return token.strip(_PUNCTUATION)
