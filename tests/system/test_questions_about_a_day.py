"""A question with a time lists the time, unless its other words say what is asked for.

Source: docs/compatibility.md "Temporal requests".
"""

from __future__ import annotations

import pytest

from tests.support.live_daemon import Client, LiveDaemon

NOW = {"now": "2026-11-28T12:00:00Z", "timeZone": "UTC", "limit": 10}
"""A Saturday."""
DAY = {
    "The invoice export writes commas again": "2026-11-27T08:10:00Z",
    "Dana prefers the tram over the bus": "2026-11-27T11:30:00Z",
    "Kestrel was chosen as the name of the cluster": "2026-11-27T15:45:00Z",
    "The greenhouse sensor reads four degrees too high": "2026-11-27T21:05:00Z",
}
OTHER = {
    "We worked on the standup summary and decided to discuss it": "2026-10-12T09:00:00Z",
    "The walrus gateway answers on port 5433": "2026-10-13T09:00:00Z",
    "Version 27.11 of the compiler drops the old linker": "2026-10-14T09:00:00Z",
    "The board on monday.com lists the suppliers": "2026-10-15T09:00:00Z",
    "Deploys may begin at 10.27.11.26 only after the audit": "2026-10-16T09:00:00Z",
    "The ratio of cache hits is 27/11": "2026-10-17T09:00:00Z",
    "The tariff costs 27.11 euro a month": "2026-10-18T09:00:00Z",
}

ABOUT_THE_DAY = """
what did I work on yesterday?
what did we work on yesterday?
what did we discuss yesterday?
what did we talk about yesterday?
summarize yesterday
recap of yesterday
yesterday's work
where did we leave off yesterday?
what did you remember yesterday?
what have we been doing since yesterday?
what did we do yesterday afternoon?
what did we get up to yesterday?
what were we up to yesterday?
what have you been up to since yesterday?
anything new yesterday?
what is new since yesterday?
notes from yesterday please
please show the changes of yesterday
updates from yesterday
fasse den gestrigen Tag zusammen
was war am gestrigen Tag los?
gab es gestern etwas Neues?
die Notizen von gestern bitte
what did we do on Friday, November 27?
what did we do on Friday, November 27, 2026?
show me what we did on 2026-11-27
anything from 2026-11-27
what did I learn yesterday?
what did I finish yesterday?
what did I get done yesterday?
standup: what did I do yesterday?
what did we decide yesterday?
what did we do on 27 November 2026?
what did we do on 27.11.2026?
what did we do on 11/27/2026?
what did we do on 27/11/2026?
what did we do on the 27th?
what did we get settled on Nov 27th?
what kept us busy on Friday?
which things came up one day ago?
please list whatever we touched yesterday evening
was haben wir gestern gemacht?
woran haben wir gestern gearbeitet?
worum ging es gestern Abend?
was haben wir am 27.11. besprochen?
was war am Freitag, den 27. November 2026 los?
Zusammenfassung von gestern
gib mir einen \u00dcberblick \u00fcber gestern
qu'avons-nous fait hier ?
sur quoi avons-nous travaill\u00e9 hier soir ?
r\u00e9sum\u00e9 d'hier
que s'est-il pass\u00e9 vendredi ?
qu'avons-nous d\u00e9cid\u00e9 le 27 novembre 2026 ?
\u00bfqu\u00e9 hicimos ayer?
\u00bfen qu\u00e9 trabajamos ayer por la tarde?
\u00bfqu\u00e9 pas\u00f3 el 27 de noviembre?
resumen de ayer
cosa abbiamo fatto ieri?
\u6628\u5929\u6211\u4eec\u505a\u4e86\u4ec0\u4e48\uff1f
""".strip().splitlines()

# What is asked for, and a word of the memory that answers it first.
ABOUT_A_TOPIC = {
    "what did we say about the invoice export yesterday?": "invoice",
    "which name did the cluster get on 27 November 2026?": "Kestrel",
    "what about the greenhouse sensor on Friday?": "greenhouse",
    "what was wrong with the invoice export on 2026-11-27?": "invoice",
    "wie hei\u00dft der Cluster seit gestern, Kestrel?": "Kestrel",
    "which port has the walrus gateway?": "walrus",
    "which port did the walrus gateway have last week?": "walrus",
    "what is in version 27.11 of the compiler?": "27.11",
    "what is on the board on monday.com?": "monday.com",
    "may deploys begin before the audit?": "audit",
    "when may I deploy after the audit?": "audit",
    "what runs at 10.27.11.26?": "10.27.11.26",
    "what is the ratio of cache hits 27/11?": "ratio",
    "what costs 27.11 euro a month?": "tariff",
    "how is the tariff of 27.11?": "tariff",
    "is walrus on port 5433?": "walrus",
    "wer ist hier f\u00fcr das Walross gateway walrus?": "walrus",
    "greenhouse": "greenhouse",
    "does Dana like the tram?": "Dana",
    "which port did the walrus gateway have up to yesterday?": "walrus",
    "what is new about the greenhouse sensor since yesterday?": "greenhouse",
    "please tell me the ratio of cache hits": "ratio",
    "notes about the invoice export from yesterday": "invoice",
    "which cache hits ratio do we have": "ratio",
    "compiler linker": "compiler",
}


@pytest.fixture(scope="module")
def diary(daemon: LiveDaemon) -> Client:
    client = daemon.agent("lone")
    for text, moment in {**DAY, **OTHER}.items():
        client.remember(text, createdAt=moment, visibility="private", project="day")
    return client


def contents(client: Client, query: str) -> list[str]:
    found = client.post("/api/memory/recall", {"query": query, "project": "day", **NOW}).ok()
    return [row["content"] for row in found["results"]]


def test_a_question_about_a_day_lists_all_of_the_day(diary: Client) -> None:
    for query in ABOUT_THE_DAY:
        listed = contents(diary, query)
        assert set(listed) >= set(DAY), query


def test_a_question_about_a_topic_is_answered_by_the_topic(diary: Client) -> None:
    for query, word in ABOUT_A_TOPIC.items():
        listed = contents(diary, query)
        assert listed, query
        assert word in listed[0], (query, listed)


def test_a_limit_in_the_past_lists_no_day(diary: Client) -> None:
    listed = contents(diary, "which port had the walrus gateway before yesterday?")
    assert "walrus" in listed[0]
    assert set(contents(diary, "what did we do before Friday?")) != set(DAY)


NAMING = {
    "what did we do in April?": "In April 2026 we migrated from CircleCI to GitHub Actions",
    "is there anything on December 18?": "Code freeze starts on December 18, 2026",
    "was haben wir im Februar gemacht?": "Im Februar 2026 haben wir auf Kotlin umgestellt",
}


def test_a_time_in_which_nothing_happened_is_found_in_the_texts_that_name_it(daemon: LiveDaemon) -> None:
    client = daemon.agent("planner")
    for text in (*NAMING.values(), "The build takes 18 minutes", "In April 2021 the project began"):
        client.remember(text, createdAt="2026-11-20T10:00:00Z", visibility="private", project="day")
    assert {question: contents(client, question) for question in NAMING} == {q: [t] for q, t in NAMING.items()}
    assert contents(client, "what did we do in June?") == []
