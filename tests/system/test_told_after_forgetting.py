"""What was forgotten is not given by itself from the transcript of the session that said it.

Source: docs/concepts.md "What happens later"; docs/guides/hooks.md "Each prompt".
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import Client
from tests.support.said_pairs import FULLER, NOT_FULLER, NOT_SPREAD, OTHER, OTHERWISE, SAME, SPREAD

pytestmark = pytest.mark.system
PROJECT = "/home/ada/ferry"
SESSIONS = count()


class Said(NamedTuple):
    """What the user said, what the agent answered and stored of it, a later question, and a word that tells it."""

    user: str
    agent: str
    stored: str
    question: str
    word: str


SAID = (
    Said(
        "Our nightly backup job runs on host backup3 at 02:00. Remember this.",
        "Remembered.",
        "The nightly backup job runs on host backup3 at 02:00",
        "where and when does the nightly backup job run?",
        "backup3",
    ),
    Said(
        "On which host does the nightly restore test run?",
        "On osprey4, after the backup.",
        "The nightly restore test runs on osprey4",
        "on which host does the nightly restore test run?",
        "osprey4",
    ),
    Said(
        "Please remember: the staging database listens on port 5433.",
        "Noted: staging database, port 5433.",
        "Staging database port: 5433",
        "which port has the staging database?",
        "5433",
    ),
    Said(
        "We deploy the billing service with Helm to the Frankfurt region.",
        "Good, I keep that in mind.",
        "Billing service is deployed to the Frankfurt region with Helm",
        "how and where do we deploy the billing service?",
        "Frankfurt",
    ),
    Said(
        "Use pnpm as the package manager of the web client, never npm.",
        "Understood, pnpm it is.",
        "pnpm is the package manager of the web client",
        "which package manager has the web client?",
        "pnpm",
    ),
    Said(
        "The on-call phone of the harbour team is with Mia this quarter.",
        "Thanks, I will ask Mia then.",
        "Mia has the on-call phone of the harbour team",
        "who has the on-call phone of the harbour team?",
        "Mia",
    ),
    Said(
        "The retention of the audit log is 90 days, legal said so.",
        "All right, 90 days.",
        "Audit log retention is 90 days (as of 2026-11-20)",
        "how long is the retention of the audit log?",
        "90 days",
    ),
    Said(
        "Our release train leaves every second Thursday at 14:00.",
        "Every second Thursday, 14:00, remembered.",
        "The release train leaves every second Thursday at 14:00",
        "when does our release train leave?",
        "Thursday",
    ),
    Said(
        "The admin console of the tariff server is at https://tariff.example.com/console.",
        "Stored.",
        "Tariff server admin console: https://tariff.example.com/console",
        "where is the admin console of the tariff server?",
        "tariff.example.com",
    ),
    Said(
        "I prefer tabs over spaces in the Go code of the router.",
        "Tabs, then.",
        "User prefers tabs over spaces in the Go code of the router",
        "do I prefer tabs or spaces in the Go code of the router?",
        "tabs over",
    ),
    Said(
        "The customer Lindqvist pays by invoice with a discount of 15 percent.",
        "I have stored the discount of Lindqvist.",
        "Customer Lindqvist has a discount of 15 percent and pays by invoice",
        "what discount has the customer Lindqvist?",
        "15 percent",
    ),
    Said(
        "The feature flag for the new checkout is called checkout_v2_enabled.",
        "Remembered the flag.",
        "Feature flag for the new checkout: checkout_v2_enabled",
        "what is the feature flag for the new checkout called?",
        "checkout_v2",
    ),
    Said(
        "Integration tests of the parser need the docker image parser-fixtures:7.",
        "I will pull it before.",
        "The integration tests of the parser need the docker image parser-fixtures:7",
        "which docker image do the integration tests of the parser need?",
        "fixtures:7",
    ),
    Said(
        "Der nächtliche Abgleich der Lagerbestände läuft um 3 Uhr auf dem Server Kormoran.",
        "Gemerkt.",
        "Der nächtliche Abgleich der Lagerbestände läuft auf dem Server Kormoran um 3 Uhr",
        "wann und auf welchem Server läuft der nächtliche Abgleich der Lagerbestände?",
        "Kormoran",
    ),
    Said(
        "Die Urlaubsvertretung von Petersen in der Werkstatt ist Frau Lund.",
        "Ist notiert.",
        "Frau Lund ist die Urlaubsvertretung von Petersen in der Werkstatt",
        "wer ist die Urlaubsvertretung von Petersen in der Werkstatt?",
        "Lund",
    ),
    Said(
        "Le serveur de fichiers de l'atelier écoute sur le port 2121.",
        "C'est noté.",
        "Serveur de fichiers de l'atelier: port 2121",
        "sur quel port écoute le serveur de fichiers de l'atelier?",
        "2121",
    ),
    Said(
        "El límite de la tarjeta del taller es de 300 euros al mes.",
        "Anotado.",
        "El límite de la tarjeta del taller es 300 euros al mes",
        "¿cuál es el límite de la tarjeta del taller?",
        "300 euros",
    ),
    Said(
        "The coverage threshold of the importer package is 85 percent, otherwise the build fails.",
        "Fine.",
        "Importer package: coverage threshold 85 percent",
        "what is the coverage threshold of the importer package?",
        "85 percent",
    ),
    Said(
        "The seed password rotation of the kiosk terminals happens on the first Monday of a month.",
        "Understood.",
        "Kiosk terminals: seed password rotation on the first Monday of the month",
        "when does the seed password rotation of the kiosk terminals happen?",
        "Monday",
    ),
    Said(
        "We call the internal message broker of the depot Pelikan.",
        "Nice name.",
        "The internal message broker of the depot is called Pelikan",
        "what do we call the internal message broker of the depot?",
        "Pelikan",
    ),
)


class Kept(NamedTuple):
    """What was said, what was forgotten, what is still known, and a question whose answer has the word."""

    user: str
    agent: str
    forgotten: str
    known: str | None
    question: str
    word: str


KEPT = (
    Kept(
        "The nightly backup job runs on host backup7 at 02:00 now.",
        "Remembered.",
        "The nightly backup job runs on host backup3 at 02:00",
        "The nightly backup job runs on host backup7 at 02:00",
        "where and when does the nightly backup job run?",
        "backup7",
    ),
    Kept(
        "The nightly backup job runs on host backup7 at 02:00 now.",
        "Remembered.",
        "The nightly backup job runs on host backup3 at 02:00",
        None,
        "where and when does the nightly backup job run?",
        "backup7",
    ),
    Kept(
        "The nightly backup job moved from host backup3 to host backup7.",
        "Updated.",
        "The nightly backup job runs on host backup3",
        "The nightly backup job runs on host backup7",
        "where does the nightly backup job run?",
        "backup7",
    ),
    Kept(
        "The staging database listens on port 5434.",
        "Noted.",
        "The staging database listens on port 5433",
        None,
        "which port has the staging database?",
        "5434",
    ),
    Kept(
        "Use npm as the package manager of the web client from now on.",
        "Understood.",
        "pnpm is the package manager of the web client",
        "npm is the package manager of the web client",
        "which package manager has the web client?",
        "npm",
    ),
    Kept(
        "The planning meeting of the kiosk team is on Monday in the big room.",
        "Good.",
        "The planning meeting of the kiosk team is on Tuesday in the big room",
        None,
        "when is the planning meeting of the kiosk team?",
        "Monday",
    ),
    Kept(
        "We deploy the billing service to the Dublin region.",
        "Good.",
        "We deploy the billing service to the Frankfurt region",
        None,
        "where do we deploy the billing service?",
        "Dublin",
    ),
    Kept(
        "The retention of the audit log is 365 days.",
        "Good.",
        "The retention of the audit log is 90 days",
        None,
        "how long is the retention of the audit log?",
        "365",
    ),
    Kept(
        "The owner of the billing service is Tom.",
        "Good.",
        "The owner of the billing service is Ann",
        None,
        "who is the owner of the billing service?",
        "Tom",
    ),
    Kept(
        "The crawler of the price list stops after 40 pages.",
        "Good.",
        "The crawler of the price list is written in Rust",
        None,
        "after how many pages does the crawler of the price list stop?",
        "40",
    ),
    Kept(
        "The nightly backup job writes to the bucket arch-2.",
        "Good.",
        "The nightly backup job runs on host backup3 at 02:00",
        None,
        "to which bucket does the nightly backup job write?",
        "arch-2",
    ),
    Kept(
        "The tariff server needs the licence key of Hamburg.",
        "Good.",
        "Use tabs",
        None,
        "which licence key does the tariff server need?",
        "Hamburg",
    ),
    Kept(
        "Replace the tabs of the settings page of the tariff server with a menu.",
        "The tabs of the settings page are a menu now.",
        "Use tabs",
        None,
        "what happened to the tabs of the settings page of the tariff server?",
        "menu",
    ),
    Kept(
        "The address of the print server is 10.4.2.9.",
        "Good.",
        "The address of the print server is 10.4.1.9",
        None,
        "what is the address of the print server?",
        "10.4.2.9",
    ),
    Kept(
        "The importer needs Python 3.12 since the last release.",
        "Good.",
        "The importer needs Python 3.10",
        None,
        "which python does the importer need?",
        "3.12",
    ),
    Kept(
        "The release train of the mobile app leaves on day 12 of the month.",
        "Good.",
        "The release train of the mobile app leaves on day 10 of the month",
        "The release train of the mobile app leaves on day 12 of the month",
        "when does the release train of the mobile app leave?",
        "12",
    ),
    Kept(
        "Der nächtliche Abgleich der Lagerbestände läuft um 4 Uhr.",
        "Gemerkt.",
        "Der nächtliche Abgleich der Lagerbestände läuft um 3 Uhr",
        None,
        "wann läuft der nächtliche Abgleich der Lagerbestände?",
        "4 Uhr",
    ),
    Kept(
        "Le serveur de fichiers de l'atelier écoute sur le port 2222.",
        "C'est noté.",
        "Le serveur de fichiers de l'atelier écoute sur le port 2121",
        None,
        "sur quel port écoute le serveur de fichiers de l'atelier?",
        "2222",
    ),
    Kept(
        "The retention of the access log is 90 days.",
        "Good.",
        "The retention of the audit log is 90 days, legal said so in March",
        None,
        "how long is the retention of the access log?",
        "90",
    ),
    Kept(
        "The feature flag for the old checkout is called checkout_v1.",
        "Good.",
        "The feature flag for the new checkout is called checkout_v2",
        None,
        "what is the feature flag for the old checkout called?",
        "checkout_v1",
    ),
)


def hook(client: Client, name: str, **fields: Any) -> dict[str, Any]:
    body = {"harness": "claude-code", "sessionKey": f"told-{next(SESSIONS)}", "project": PROJECT, **fields}
    answer: dict[str, Any] = client.post(f"/api/hooks/{name}", body).ok()
    return answer


def talk(client: Client, said: Said | Kept) -> str:
    """Store the conversation and return the key of its session."""
    session = f"talk-{next(SESSIONS)}"
    transcript = f"User: {said.user}\nAssistant: {said.agent}"
    hook(client, "session-end", sessionKey=session, transcript=transcript, reason="logout")
    return session


def given(client: Client, said: Said | Kept) -> str:
    inject: str = hook(client, "user-prompt-submit", userPrompt=said.question)["inject"]
    return inject


def started(client: Client) -> str:
    inject: str = hook(client, "session-start")["inject"]
    return inject


def recalled(client: Client, said: Said) -> str:
    body = {"query": said.question, "project": PROJECT}
    return " ".join(one["content"] for one in client.post("/api/memory/recall", body).ok()["results"])


def forget(client: Client, memory: str) -> None:
    client.request("DELETE", f"/api/memory/{memory}", {"reason": "wrong"}).ok()


def test_what_was_forgotten_is_given_with_no_prompt_and_no_start_but_found(empty_rooms: Callable[[], Client]) -> None:
    untold, told, unfound = [], [], []
    for said in SAID:
        room = empty_rooms()
        talk(room, said)
        # A start right after the end of a session may not know it yet.
        is_started = any(said.word in started(room) for _ in range(50))
        if not is_started or said.word not in given(room, said):
            untold.append(said)
        memory = room.remember(said.stored, project=PROJECT)["id"]
        forget(room, memory)
        told += [text for text in (given(room, said), started(room)) if said.word in text]
        if said.word not in recalled(room, said):
            unfound.append(said)
        room.post(f"/api/memory/{memory}/recover", {"reason": "right"}).ok()
        if said.word not in given(room, said):
            untold.append(said)
    assert (untold, told, unfound) == ([], [], [])


def test_what_is_said_otherwise_than_in_a_forgotten_memory_is_given(empty_rooms: Callable[[], Client]) -> None:
    untold = []
    for said in KEPT:
        room = empty_rooms()
        forget(room, room.remember(said.forgotten, project=PROJECT)["id"])
        if said.known is not None:
            room.remember(said.known, project=PROJECT)
        talk(room, said)
        text = given(room, said)
        if said.word not in text or (said.known is not None and "earlier session" not in text):
            untold.append((said, text))
    assert untold == []


def left_in_starts(room: Client, cases: list[tuple[str, str, str]]) -> list[list[str]]:
    """Return for each memory, prompt and answer the lines of a start after the memory was stored and forgotten.

    Each case has a project of its own. Fails if the start before did not have all that was said.
    """
    found = []
    for memory, prompt, answer in cases:
        project = f"/home/ada/case-{next(SESSIONS)}"
        transcript = [{"role": "user", "content": prompt}, {"role": "assistant", "content": answer}]
        session = f"case-{next(SESSIONS)}"
        turns = "\n".join(json.dumps(turn) for turn in transcript)
        hook(room, "session-end", sessionKey=session, project=project, transcript=turns, reason="logout")
        both = {" ".join(prompt.split()), " ".join(answer.split())}

        def lines(project: str = project) -> list[str]:
            inject: str = hook(room, "session-start", project=project)["inject"]
            last = [line for line in inject.splitlines() if line.startswith(("- Last prompt: ", "- Last answer: "))]
            return [line.split(": ", 1)[1] for line in last]

        eventually(lambda both=both, lines=lines: both == set(lines()), what=f"the start with {both}")
        forget(room, room.remember(memory, project=project)["id"])
        found.append(lines())
    return found


def test_a_start_keeps_of_the_last_turns_what_does_not_say_what_was_forgotten(room: Client) -> None:
    spread = [(memory, before or "Noted.", text) for memory, before, text, _ in SPREAD]
    answers = [
        (text, [line for line in lines if line != (before or "Noted.")], [" ".join(left.split())] if left else [])
        for (_, before, text, left), lines in zip(SPREAD, left_in_starts(room, spread), strict=True)
    ]
    assert [each for each in answers if each[1] != each[2]] == []
    prompts = [(memory, text, "Noted.") for memory, before, text, _ in SPREAD if not before]
    left = [left for _, before, _, left in SPREAD if not before]
    told = zip(prompts, left, left_in_starts(room, prompts), strict=True)
    assert [each for each in told if each[2] != [" ".join(each[1].split()), "Noted."][not each[1] :]] == []


def test_a_start_is_told_nothing_forgotten_however_the_agent_had_noted_it(room: Client) -> None:
    same = [(memory, said, "Fine, done.") for said, memory in (*SAME, *FULLER)]
    assert [each for each in zip(same, left_in_starts(room, same), strict=True) if each[0][1] in each[1]] == []


def test_a_start_has_what_is_about_something_else_than_what_was_forgotten(room: Client) -> None:
    others = [(memory, said, "Fine, done.") for said, memory in (*OTHER, *NOT_FULLER)]
    others += [(memory, said, "Fine, done.") for memory, said in NOT_SPREAD]
    told = zip(others, left_in_starts(room, others), strict=True)
    assert [each for each in told if each[1] != [" ".join(each[0][1].split()), "Fine, done."]] == []


def test_the_summary_of_a_compaction_tells_nothing_forgotten_and_is_named(empty_rooms: Callable[[], Client]) -> None:
    wrong = []
    room = empty_rooms()
    for number, said in enumerate(SAID):
        project, task = f"/home/ada/compacted-{number}", f"CSV writer of export {number}"
        note = f"{said.user} {said.agent}" if said.user.endswith("?") else said.user
        summary = f"- Fix the {task}.\n- {note}\n- Deploy."
        told = hook(room, "compaction-complete", summary=summary, project=project)["memoryId"]
        prompt = f"what about the {task}, {said.question}"
        before = hook(room, "user-prompt-submit", userPrompt=prompt, project=project)["inject"]

        def is_started(project: str = project, word: str = said.word) -> bool:
            return word in hook(room, "session-start", project=project)["inject"]

        eventually(is_started, what="a start with what was asked for")
        memory = room.remember(said.stored, project=project)["id"]
        answer = room.request("DELETE", f"/api/memory/{memory}", {"reason": "wrong"}).ok()
        start = hook(room, "session-start", project=project)["inject"]
        after = hook(room, "user-prompt-submit", userPrompt=prompt, project=project)["inject"]
        is_told = [said.word in text.partition(task)[2].partition(" [session")[0] for text in (before, start, after)]
        is_known = [task in text for text in (before, start, after)]
        if is_told != [True, False, False] or is_known != [True] * 3 or answer.get("saidBy") != [told]:
            wrong.append((said.word, is_told, is_known, answer))
    assert wrong == []


def test_forgetting_names_the_sessions_whose_transcripts_keep_what_was_said(empty_rooms: Callable[[], Client]) -> None:
    wrong = []
    for said in SAID:
        room = empty_rooms()
        session = talk(room, said)
        talk(room, Said("Paint the fence of the garden green.", "Painted.", "", "", ""))
        one, many = (room.remember(text, project=PROJECT)["id"] for text in (said.stored, f"{said.stored} (again)"))
        answer = room.request("DELETE", f"/api/memory/{one}", {"reason": "wrong"}).ok()
        preview = room.post("/api/memory/forget", {"ids": [many], "force": True}).ok()
        body = {"ids": [many], "mode": "execute", "force": True, "reason": "wrong"}
        erased = room.post("/api/memory/forget", {**body, "confirm_token": preview["confirmToken"]}).ok()
        found = (answer.get("saidIn"), erased.get("saidIn"))
        room.request("DELETE", f"/api/sessions/{session}/transcript").ok()
        last = room.remember(f"{said.stored} (last)", project=PROJECT)["id"]
        rest = room.request("DELETE", f"/api/memory/{last}", {"reason": "wrong"}).ok()
        if found != ([session], [session]) or "saidIn" in rest:
            wrong.append((said.word, found, rest))
    assert wrong == []


def test_forgetting_names_no_session_that_says_something_else(empty_rooms: Callable[[], Client]) -> None:
    wrong = []
    for said in KEPT:
        if said.forgotten.split()[-1] in said.user:
            continue
        room = empty_rooms()
        talk(room, said)
        memory = room.remember(said.forgotten, project=PROJECT)["id"]
        answer = room.request("DELETE", f"/api/memory/{memory}", {"reason": "wrong"}).ok()
        if "saidIn" in answer:
            wrong.append((said, answer))
    assert wrong == []


def test_forgetting_names_the_sessions_that_may_say_it_in_other_words(room: Client) -> None:
    wrong = []
    for said, memory in (*OTHERWISE, *FULLER):
        project = f"/home/ada/case-{next(SESSIONS)}"
        key = f"case-{next(SESSIONS)}"
        transcript = f"User: {said}\nAssistant: Done."
        hook(room, "session-end", sessionKey=key, project=project, transcript=transcript, reason="logout")
        stored = room.remember(memory, project=project)["id"]
        done = room.request("DELETE", f"/api/memory/{stored}", {"reason": "wrong"}).ok()
        sure, perhaps = done.get("saidIn", []), done.get("mayBeSaidIn", [])
        if (key in sure, key in perhaps) != ((said, memory) in FULLER, (said, memory) in OTHERWISE):
            wrong.append((said, memory, sure, perhaps))
    assert wrong == []


FACTS_OF_A_LONG_TEXT = (
    ("The payroll of Ottokar Brandt is 5210 euros per month", "what is the payroll of Ottokar?", "5210"),
    ("The badge of Ludmilla Sever opens gates 4 and 9 of the harbour", "which gates does the badge open?", "gates 4"),
    ("The spare key of the boathouse hangs behind the Beluga poster", "where hangs the spare key?", "Beluga"),
    ("The auditor Quentin Maro comes on May 12 at 10:00 with two colleagues", "when comes the auditor?", "10:00"),
    ("Invoices of the Zander shipyard are paid from account 7734", "from which account are invoices paid?", "7734"),
    (
        "The insurance number of the ferry Albatros is HX-20418",
        "what is the insurance number of the ferry?",
        "HX-20418",
    ),
    ("The skipper Tamsin Roe has a licence until 2029 for the northern route", "until when is the licence?", "2029"),
    ("Diesel is ordered from Petrofin in lots of 4000 litres each Tuesday", "from whom is diesel ordered?", "Petrofin"),
)


def long_text() -> str:
    return ". ".join(fact for fact, *_ in FACTS_OF_A_LONG_TEXT) + "."


def tell_each(room: Client) -> None:
    for fact, question, _ in FACTS_OF_A_LONG_TEXT:
        said = f"User: {question}\nAssistant: {fact}."
        hook(room, "session-end", sessionKey=f"one-{next(SESSIONS)}", transcript=said, reason="logout")


def told_facts(room: Client) -> list[str]:
    """Return the words of the facts that a start and prompts of new sessions are given."""
    start = hook(room, "session-start", sessionKey=f"start-{next(SESSIONS)}")["inject"]
    texts = [
        hook(room, "user-prompt-submit", sessionKey=f"asks-{next(SESSIONS)}", userPrompt=question)["inject"]
        for _, question, _ in FACTS_OF_A_LONG_TEXT
    ]
    return [word for _, _, word in FACTS_OF_A_LONG_TEXT if word in f"{start} {' '.join(texts)}"]


def test_no_fact_of_a_forgotten_long_text_is_told_again_alone(empty_rooms: Callable[[], Client]) -> None:
    room = empty_rooms()
    stored = room.remember(long_text(), project=PROJECT)
    tell_each(room)
    assert len(told_facts(room)) >= 7, "before it is forgotten, the facts are given"
    told = room.request("DELETE", f"/api/memory/{stored['ids'][0]}", {"reason": "asked to", "whole": True}).ok()
    assert told_facts(room) == []
    assert len(told["saidIn"]) >= 6


def test_the_facts_of_a_long_text_that_is_stored_again_are_told(empty_rooms: Callable[[], Client]) -> None:
    room = empty_rooms()
    stored = room.remember(long_text(), project=PROJECT)
    tell_each(room)
    room.request("DELETE", f"/api/memory/{stored['ids'][0]}", {"reason": "corrected", "whole": True}).ok()
    room.remember(long_text().replace("4000 litres", "6000 litres"), project=PROJECT)
    assert len(told_facts(room)) >= 6
