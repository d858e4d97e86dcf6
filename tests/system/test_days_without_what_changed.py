"""A prompt that asks what was done is not told what was forgotten or edited, also where only an answer says it.

Source: docs/concepts.md "What happens later"; docs/guides/hooks.md "Each prompt".
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from typing import Final, NamedTuple

import pytest

from tests.support.live_daemon import Client
from tests.system.test_told_after_forgetting import hook

pytestmark = pytest.mark.system
NUMBERS = count()


class Answered(NamedTuple):
    """A question, its answer, the memory with what both say, and the word of the answer that tells it, then and now."""

    question: str
    answer: str
    stored: str
    word: str
    new: str


ANSWERED: Final = (
    Answered(
        "when does the nightly export job run?",
        "At 02:30, from the cron file.",
        "The nightly export job runs at 02:30",
        "02:30",
        "04:15",
    ),
    Answered(
        "on which host does the nightly restore test run?",
        "On osprey4, after the backup.",
        "The nightly restore test runs on osprey4",
        "osprey4",
        "kestrel2",
    ),
    Answered(
        "which port has the staging database?", "It is 5433.", "The staging database has port 5433", "5433", "5434"
    ),
    Answered(
        "which package manager does the web client use?",
        "It uses pnpm.",
        "The web client uses the package manager pnpm",
        "pnpm",
        "yarn",
    ),
    Answered(
        "who has the on-call phone of the harbour team?",
        "Mia, this quarter.",
        "Mia has the on-call phone of the harbour team",
        "Mia",
        "Tariq",
    ),
    Answered(
        "how long do we keep the audit log?", "90 days, says legal.", "We keep the audit log for 90 days", "90", "365"
    ),
    Answered(
        "in which region is the billing service deployed?",
        "Frankfurt.",
        "The billing service is deployed in the region Frankfurt",
        "Frankfurt",
        "Dublin",
    ),
    Answered(
        "what is the feature flag of the new checkout?",
        "`checkout_v2`.",
        "The feature flag of the new checkout is checkout_v2",
        "checkout_v2",
        "checkout_v3",
    ),
    Answered(
        "which discount has the customer Lindqvist?",
        "15 percent.",
        "The customer Lindqvist has a discount of 15 percent",
        "15",
        "20",
    ),
    Answered(
        "on which day does the release train leave?",
        "Every second Thursday.",
        "The release train leaves every second Thursday",
        "Thursday",
        "Tuesday",
    ),
    Answered(
        "auf welchem Server läuft der nächtliche Abgleich der Lagerbestände?",
        "Auf Kormoran.",
        "Der nächtliche Abgleich der Lagerbestände läuft auf dem Server Kormoran",
        "Kormoran",
        "Seeadler",
    ),
    Answered(
        "sur quel port écoute le serveur de fichiers de l'atelier?",
        "Sur le port 2121.",
        "Le serveur de fichiers de l'atelier écoute sur le port 2121",
        "2121",
        "2222",
    ),
)
ASKED: Final = ("what did we do today?", "where were we?")
PLACES: Final = pytest.mark.parametrize("is_first", [True, False])


def talked(client: Client, one: Answered, *, is_first: bool) -> str:
    """Store a session with the question at its begin or end, and some other work; return its project."""
    number = next(NUMBERS)
    project = f"/home/ada/day-{number}"
    asked = [("user", one.question), ("assistant", one.answer)]
    work = [("user", "Please add structured logging to it."), ("assistant", "Logging is in jobs/export.py.")]
    turns = [*asked, *work] if is_first else [*work, *asked]
    transcript = "\n".join(json.dumps({"role": role, "content": text}) for role, text in turns)
    hook(client, "session-end", sessionKey=f"day-{number}", project=project, transcript=transcript, reason="logout")
    return project


def told(client: Client, project: str) -> list[str]:
    return [hook(client, "user-prompt-submit", project=project, userPrompt=prompt)["inject"] for prompt in ASKED]


@PLACES
@pytest.mark.parametrize("is_edited", [True, False])
def test_a_day_is_told_without_the_answer_that_says_what_was_edited_or_forgotten(
    room: Client, *, is_first: bool, is_edited: bool
) -> None:
    wrong = []
    for one in ANSWERED:
        project = talked(room, one, is_first=is_first)
        memory = room.remember(one.stored, project=project)["id"]
        before = told(room, project)
        if is_edited:
            change = {"reason": "corrected", "content": one.stored.replace(one.word, one.new)}
            room.request("PATCH", f"/api/memory/{memory}", change).ok()
        else:
            room.request("DELETE", f"/api/memory/{memory}", {"reason": "wrong"}).ok()
        after = told(room, project)
        is_told = [[one.answer in text for text in texts] for texts in (before, after)]
        is_work_told = ["jobs/export.py" in text for text in (*before, *after)]
        if is_told != [[True] * 2, [False] * 2] or not all(is_work_told):
            wrong.append((one, before, after))
    assert wrong == []


@PLACES
def test_a_day_is_told_with_the_answer_to_another_question_than_what_was_forgotten(
    empty_rooms: Callable[[], Client], *, is_first: bool
) -> None:
    wrong = []
    for one, other in zip(ANSWERED, (*ANSWERED[1:], ANSWERED[0]), strict=True):
        room = empty_rooms()
        project = talked(room, one, is_first=is_first)
        room.remember(one.stored, project=project)
        memory = room.remember(other.stored, project=project)["id"]
        room.request("DELETE", f"/api/memory/{memory}", {"reason": "wrong"}).ok()
        wrong += [(one, text) for text in told(room, project) if one.answer not in text]
    assert wrong == []


@PLACES
def test_who_asks_for_the_sessions_of_a_day_is_told_what_was_said(room: Client, *, is_first: bool) -> None:
    for one in ANSWERED:
        project = talked(room, one, is_first=is_first)
        memory = room.remember(one.stored, project=project)["id"]
        room.request("DELETE", f"/api/memory/{memory}", {"reason": "wrong"}).ok()
        body = {"query": "what did we do today?", "project": project}
        found = room.post("/api/memory/recall", body).ok()["results"]
        assert any(one.answer in row["content"] for row in found), one
