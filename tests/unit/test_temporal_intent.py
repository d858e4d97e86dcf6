"""What a recall does with a time. Source: docs/compatibility.md "Worked examples: dates"; docs/decisions.md 58."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from signet_actors.domain.temporal.intent import ALL_FACETS, asks_for_last_session, intent_of_query, intent_of_request
from signet_actors.domain.temporal.phrases import Window

NOW = datetime(2026, 11, 25, 9, 30, tzinfo=UTC)
WINDOW = Window(0, 86_400_000)


@pytest.mark.parametrize(
    ("query", "mode", "content"),
    [
        ("2026/05/13 editor", "filter", "editor"),
        ("tell me about the deploy on 2026-5-3", "filter", "deploy"),
        ("what were we doing on May 13, 2026?", "timeline", ""),
        ("2026-05-13", "timeline", ""),
        ("What happened on 2026-05-13?", "filter", "happened"),
        ("2026-07-25/26 release", "filter", "release"),
        ("Ticket KA-6, on 2026-05-13!", "filter", "ticket ka-6"),
        ("what's the plan for 2026-05-13?", "filter", "plan for"),
        ("2026-05-13: editor - vim", "filter", "editor vim"),
        ("13 May 2026", "timeline", ""),
        ("what happened before yesterday?", "auto", "what happened before yesterday?"),
        ("since monday", "timeline", ""),
        ("before monday", "auto", "before monday"),
        ("not today", "auto", "not today"),
        ("between 2026-05-13 and 2026-05-15 deploy", "auto", "between 2026-05-13 and 2026-05-15 deploy"),
        ("before the 2026-05-13 deploy", "auto", "before the 2026-05-13 deploy"),
        ("what were we doing on 13 May 2026?", "timeline", ""),
        ("the editor on 13 May 2026?", "auto", "the editor on 13 May 2026?"),
        ("the deploy of last week", "auto", "the deploy of last week"),
        ("what did we do yesterday?", "timeline", ""),
        ("yesterday", "timeline", ""),
        ("Was haben wir letzte Woche gemacht?", "timeline", ""),
        ("Was ist am Montag passiert?", "timeline", ""),
        ("Rechnungen im M\u00e4rz", "auto", "Rechnungen im M\u00e4rz"),
        ("in May 2025", "timeline", ""),
    ],
)
def test_the_query_decides_what_its_time_does(query: str, mode: str, content: str) -> None:
    intent = intent_of_query(query, NOW)
    assert intent is not None
    assert (intent.mode, intent.content_query, intent.is_requested) == (mode, content, False)
    assert intent.facets == (("captured",) if mode == "auto" else ALL_FACETS)


@pytest.mark.parametrize(
    "query", ["2026-02-30", "2026-02-30 editor", "may 13", "2026-07-25/01", "editor", "2026-07-25/26th"]
)
def test_a_query_without_a_time_has_no_intent(query: str) -> None:
    assert intent_of_query(query, NOW) is None


ABOUT_THE_LAST_SESSION = """
What did we do last time?
what was still open from last time?
where were we?
Where did we leave off?
Remind me what we worked on last time
what did we do in the last session
let's continue where we left off
pick up where we left off
ok, where was I?
what is still open?
what did you do last time, please?
Where did we stop?
what happened in the previous session?
Was haben wir letztes Mal gemacht?
Was haben wir beim letzten Mal gemacht?
Wo waren wir stehen geblieben?
wo waren wir?
was ist noch offen?
Erinnere mich bitte: was haben wir in der letzten Sitzung gemacht?
Où en étions-nous ?
Qu'avons-nous fait la dernière fois ?
¿Qué hicimos la última vez?
¿Dónde nos quedamos?
Hey, what did we talk about last time?
""".strip().splitlines()
ABOUT_SOMETHING_ELSE = """
when was the last time the deploy failed?
the last session token expired
what is the last session id?
last time I checked, the tests were red
is port 5433 still open?
which issues are still open?
did we rotate the keys last time?
what did we decide about caching last time?
the last time zone bug
letztes Mal hat der Build zehn Minuten gedauert
welche Tickets sind noch offen?
la dernière fois que le serveur est tombé
la última vez que falló el despliegue
add a last session column to the table
left off the semicolon in main.c
where were we using redis?
open the last session log
continue
go on
""".strip().splitlines()


def test_a_question_about_nothing_but_the_last_session_lists_the_sessions() -> None:
    intents = {query: intent_of_query(query, NOW) for query in ABOUT_THE_LAST_SESSION}
    assert [query for query, intent in intents.items() if intent is None or intent.mode != "timeline"] == []
    assert [query for query in ABOUT_SOMETHING_ELSE if asks_for_last_session(query)] == []


def test_the_topic_is_searched_as_it_is_written() -> None:
    intent = intent_of_query("What about readConfig, in src/Read.py, on May 13, 2026?", NOW)
    assert intent is not None
    assert intent.search_text == "readConfig, src/Read.py,"
    assert intent.content_query == "readconfig src/read.py"


@pytest.mark.parametrize(
    ("query", "asked", "mode"),
    [
        ("editor", None, "filter"),
        ("editor", "auto", "filter"),
        ("editor", "filter", "filter"),
        ("editor", "timeline", "timeline"),
        ("what were we doing", None, "timeline"),
        ("what were we doing", "auto", "timeline"),
        ("what were we doing", "filter", "filter"),
    ],
)
def test_a_window_in_the_request_filters_unless_there_is_no_topic(query: str, asked: str | None, mode: str) -> None:
    intent = intent_of_request(query, WINDOW, None, asked)
    assert (intent.mode, intent.content_query, intent.is_requested) == (mode, query, True)
    assert (intent.window, intent.facets) == (WINDOW, ALL_FACETS)


def test_the_facets_of_a_request_are_kept_once_in_order() -> None:
    assert intent_of_request("editor", WINDOW, ["valid", "occurred", "valid"], None).facets == ("valid", "occurred")
    assert intent_of_request("editor", WINDOW, [], None).facets == ALL_FACETS
