"""What was said in earlier sessions, as results of a recall beside memories.

Source: docs/guides/transcripts.md "In every recall".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.live_daemon import Client, LiveDaemon, live_daemon
from tests.support.program_messages import ENDLESS_FORMS, WHOLE_FORMS

pytestmark = pytest.mark.system
ASKED = "On which port does the staging database listen?"
TALK = f"User: {ASKED}\nAssistant: On port 5433, behind the tunnel."


@pytest.fixture(scope="module")
def daemon() -> Iterator[LiveDaemon]:
    with live_daemon(patient=True) as daemon:
        yield daemon


def agent_with_talk(daemon: LiveDaemon, name: str, session: str, talk: str = TALK, **fields: Any) -> Client:
    agent = daemon.agent(name)
    agent.post("/api/hooks/session-end", {"harness": "x", "sessionKey": session, "transcript": talk, **fields}).ok()
    return agent


def recalled(agent: Client, query: str, **fields: Any) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = agent.post("/api/memory/recall", {"query": query, **fields}).ok()["results"]
    return results


def turns(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in results if one["type"] == "session_turn"]


def test_a_turn_is_a_result_with_its_session_and_what_was_said_beside_it(daemon: LiveDaemon) -> None:
    agent = agent_with_talk(daemon, "ann", "said", cwd="/home/ada/ferry")
    [turn] = recalled(agent, "port of the staging database")
    assert turn["content"] == TALK.replace("\n", "\n\n")
    expected = {"source": "transcript", "session_key": "said", "project": "/home/ada/ferry", "visibility": "private"}
    assert {name: turn[name] for name in expected} == expected
    assert 0.5 <= turn["relevance"] <= 1.0
    agent.get(f"/api/memory/{turn['id']}").refused(404)


def test_turns_follow_memories_and_take_none_of_their_places(daemon: LiveDaemon) -> None:
    agent = agent_with_talk(daemon, "ben", "said")
    ids = [agent.remember(f"The staging database number {number} has a port")["id"] for number in range(3)]
    found = recalled(agent, "port of the staging database", limit=5)
    assert {one["id"] for one in found[:3]} == set(ids)
    assert [one["type"] for one in found[3:]] == ["session_turn"]
    assert found[3]["score"] <= found[2]["score"]
    assert turns(recalled(agent, "port of the staging database", limit=3)) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"tags": "ops"},
        {"since": "2020-01-01"},
        {"scope": "a"},
        {"pinned": True},
        {"project": "/home/ada/other"},
        {"sessionKey": "said"},
        {"type": "decision"},
    ],
)
def test_no_turn_is_a_result_of_a_recall_for_something_that_it_has_not(
    daemon: LiveDaemon, fields: dict[str, Any]
) -> None:
    agent = agent_with_talk(daemon, "cem", "said", cwd="/home/ada/ferry")
    assert turns(recalled(agent, "port of the staging database")) != []
    assert turns(recalled(agent, "port of the staging database", **fields)) == []


def test_a_turn_below_the_least_relevance_is_no_result(daemon: LiveDaemon) -> None:
    agent = agent_with_talk(daemon, "cleo", "said")
    query = "port of the staging database in Bremen"
    [turn] = recalled(agent, query)
    assert recalled(agent, query, min_relevance=turn["relevance"]) == [turn]
    assert recalled(agent, query, min_relevance=turn["relevance"] + 0.0001) == []


def test_with_expand_a_session_of_a_memory_is_not_repeated_as_a_turn(daemon: LiveDaemon) -> None:
    agent = daemon.agent("dan")
    agent.remember("The staging database has a port", sourceId="said", transcript=TALK)
    assert [one["session_key"] for one in turns(recalled(agent, "port of the staging database"))] == ["said"]
    assert turns(recalled(agent, "port of the staging database", expand=True)) == []


def test_turns_can_be_asked_for_alone_and_in_their_project(daemon: LiveDaemon) -> None:
    agent = agent_with_talk(daemon, "dora", "said", cwd="/home/ada/ferry")
    agent.remember("The staging database listens on a port")
    for fields in ({"type": "session_turn"}, {"type": "session_turn", "project": "/home/ada/ferry"}):
        assert [one["session_key"] for one in recalled(agent, ASKED, **fields)] == ["said"]


def test_what_has_nothing_to_do_with_the_query_is_no_result(daemon: LiveDaemon) -> None:
    agent = agent_with_talk(daemon, "eve", "said")
    for query in ("Which port wine goes with cheese and walnuts?", "How do I renew my passport?", "?!"):
        assert recalled(agent, query) == []


def test_the_turns_of_other_agents_and_erased_ones_are_no_results(daemon: LiveDaemon) -> None:
    agent = agent_with_talk(daemon, "finn", "said")
    other = daemon.agent("gus")
    other.remember("The heron nests in March")
    assert turns(recalled(other, ASKED)) == []
    assert turns(recalled(agent, ASKED)) != []
    agent.request("DELETE", "/api/sessions/said/transcript").ok()
    assert recalled(agent, ASKED) == []


def test_a_secret_that_was_said_is_redacted_in_a_result(daemon: LiveDaemon) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    agent = agent_with_talk(daemon, "hal", "said", f"User: {ASKED}\nAssistant: On 5433, with the token {secret}.")
    [turn] = recalled(agent, ASKED)
    assert "[REDACTED:" in turn["content"]
    assert secret not in turn["content"]


def test_a_prompt_is_not_given_turns(daemon: LiveDaemon) -> None:
    asked = "Who repairs the lamp of the lighthouse?"
    agent = agent_with_talk(daemon, "ida", "said", f"User: {asked}\nAssistant: Marit does, on Fridays.")
    assert turns(recalled(agent, asked)) != []
    about = {"harness": "x", "sessionKey": "now", "userMessage": asked}
    told = agent.post("/api/hooks/user-prompt-submit", about).ok()
    assert (told["memoryCount"], told["inject"]) == (0, "")


def test_a_turn_keeps_what_a_person_writes_after_the_message_of_a_program(daemon: LiveDaemon) -> None:
    said = {
        f"{form}\n\n{number}: {words}": f"{number}: {words}"
        for number, form in enumerate(WHOLE_FORMS)
        for words in (ASKED, "Ab Freitag nehmen wir 5433.")
    }
    said |= dict.fromkeys((*WHOLE_FORMS, *ENDLESS_FORMS), "")
    talk = "\n".join(json.dumps({"role": "user", "content": text}) for text in said)
    agent = agent_with_talk(daemon, "jon", "said", talk)
    kept = agent.get("/api/sessions/said/transcript", view="turns").ok()["turns"]
    assert [turn["content"] for turn in kept] == [words for words in said.values() if words]


def test_turns_are_switched_off_by_configuration() -> None:
    with live_daemon(config="search:\n  transcripts: false\n", patient=True) as daemon:
        agent = agent_with_talk(daemon, "default", "said")
        assert recalled(agent, ASKED) == []


EXCHANGES = (
    ("Which port has the metrics endpoint?", "The metrics endpoint has port 9464."),
    ("Who rotates the signing keys?", "Marit rotates the signing keys on the first Monday."),
    ("What flag skips the flaky browser suite?", "Pass --no-chrome to skip the browser suite."),
    ("Why was the cron of the warehouse moved?", "The cron of the warehouse collided with the nightly backup."),
    ("Where do the invoices get archived?", "Invoices get archived in the bucket cold-ledger."),
    ("Wo liegen die Zugangsdaten der Druckerei?", "Die Zugangsdaten der Druckerei liegen im Tresor drei."),
    ("Quel serveur héberge le catalogue des cartes?", "Le catalogue des cartes est sur le serveur brume."),
    ("¿Qué rama usa el despliegue de pruebas?", "El despliegue de pruebas usa la rama faro."),
    ("How long is a shopping basket kept?", "A shopping basket is kept for nineteen days."),
    ("Which compiler builds the firmware?", "The firmware is built with clang 18."),
    ("What did the auditors object to?", "The auditors objected to shared root logins."),
    ("Which regex matches a parcel number?", "A parcel number matches [A-Z]{2}\\d{9}."),
    ("When is the harbour feed refreshed?", "The harbour feed is refreshed every 40 minutes."),
    ("Who owns the translation glossary?", "The translation glossary is owned by Ines."),
    ("What is the retry budget of the courier webhook?", "The courier webhook has a retry budget of seven."),
    ("Which timezone do the tide tables use?", "Tide tables use UTC, never local time."),
    ("What made the thumbnails blurry?", "Thumbnails were blurry because of chroma subsampling."),
    ("How is the beekeeping dataset licensed?", "The beekeeping dataset is licensed CC-BY-SA."),
    ("Which quota stopped the satellite import?", "The satellite import was stopped by the inode quota."),
    ("What replaces the fax gateway?", "The fax gateway is replaced by PostPigeon."),
    ("What does error E4711 of the scanner mean?", "E4711 of the scanner means a dusty lens."),
)
SMALL_TALK = "Nothing of this matters later on, it only fills the page. " * 6
LONG = "First a list of what else was looked at, which was all in order. " * 60


@pytest.mark.parametrize("before", ["", LONG])
def test_what_was_asked_and_answered_is_shown_and_nothing_of_what_was_said_before(
    daemon: LiveDaemon, before: str
) -> None:
    said = [
        line
        for asked, answered in EXCHANGES
        for line in (f"User: {SMALL_TALK}", "Assistant: I see.", f"User: {asked}", f"Assistant: {before}{answered}")
    ]
    agent = agent_with_talk(daemon, "kim" if before else "lea", "said", "\n".join(said), cwd="/home/ada/ferry")
    for number, (asked, answered) in enumerate(EXCHANGES):
        [turn] = turns(recalled(agent, asked))
        assert turn["content"].startswith(f"User: {asked}\n\nAssistant: "), turn["content"]
        assert answered.split()[-1] in turn["content"]
        assert SMALL_TALK[:50] not in turn["content"]
        assert (len(turn["content"]) <= 850, turn["truncated"]) == (True, False)
        about = {"harness": "x", "sessionKey": f"now-{number}", "userMessage": asked, "project": "/home/ada/ferry"}
        told = agent.post("/api/hooks/user-prompt-submit", about).ok()["inject"]
        assert asked in told or turn["relevance"] < 0.8


def test_an_answer_in_several_messages_is_shown_as_far_as_there_is_room(daemon: LiveDaemon) -> None:
    talk = f"User: {ASKED}\nAssistant: Let me look.\nAssistant: On 5433.\nUser: Thanks for the port.\nAssistant: Sure."
    messages = [dict(zip(("role", "content"), line.split(": ", 1), strict=True)) for line in talk.split("\n")]
    agent = agent_with_talk(daemon, "mia", "said", "\n".join(map(json.dumps, messages)))
    [turn] = turns(recalled(agent, ASKED))
    assert turn["content"] == f"User: {ASKED}\n\nAssistant: Let me look.\n\nAssistant: On 5433."


def test_the_id_of_what_is_no_memory_leads_to_how_it_is_read(daemon: LiveDaemon) -> None:
    agent = agent_with_talk(daemon, "noa", "said")
    [turn] = turns(recalled(agent, ASKED))
    error = agent.get(f"/api/memory/{turn['id']}").refused(404)["error"]
    assert "session_key" in error
    assert "signet show SESSION" in error
