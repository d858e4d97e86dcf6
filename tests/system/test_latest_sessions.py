"""Of what several past sessions said of one thing a prompt is given the latest, and a true fact beside its newer one.

Source: docs/guides/hooks.md "Each prompt".
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from tests.support.live_daemon import Client

pytestmark = pytest.mark.system
PROJECT = "/home/ada/ferry"
SESSIONS = count()
SERIES = (
    ("set the worker concurrency of the ferry service to {}", "what is the worker concurrency of the ferry service?"),
    ("release version {} of the mobile app", "which version of the mobile app did we release last?"),
    ("change the timeout of the api gateway to {}", "what is the timeout of the api gateway?"),
    ("raise the heap size of the indexer to {}", "what is the heap size of the indexer?"),
    ("move the deploy target of the booking site to {}", "what is the deploy target of the booking site?"),
    ("stelle die Stapelgröße des Importeurs auf {}", "welche Stapelgröße hat der Importeur?"),
)
VALUES = tuple(f"value{number}x" for number in range(1, 14))


def hook(client: Client, name: str, **fields: Any) -> dict[str, Any]:
    body = {"harness": "claude-code", "sessionKey": f"latest-{next(SESSIONS)}", "project": PROJECT, **fields}
    answer: dict[str, Any] = client.post(f"/api/hooks/{name}", body).ok()
    return answer


@pytest.mark.parametrize("sessions", [2, 3, 13])
def test_a_prompt_is_given_what_the_latest_session_said_first(empty_rooms: Callable[[], Client], sessions: int) -> None:
    wrong = []
    for said, question in SERIES:
        room = empty_rooms()
        for value in VALUES[:sessions]:
            transcript = f"User: {said.format(value)}\nAssistant: Done."
            hook(room, "session-end", transcript=transcript, reason="logout")
        inject = hook(room, "user-prompt-submit", userPrompt=question)["inject"]
        given = sorted((inject.find(value), value) for value in VALUES if value in inject)
        if [value for _, value in given] != [VALUES[sessions - 1], VALUES[sessions - 2]]:
            wrong.append((question, inject))
    assert wrong == []


@pytest.mark.parametrize("values", [(3, 1, 2), (3, 2, 1), (1, 3, 2)])
def test_a_session_of_long_ago_that_is_stored_last_is_not_the_latest(
    empty_rooms: Callable[[], Client], values: tuple[int, ...]
) -> None:
    wrong = []
    for said, question in SERIES:
        room = empty_rooms()
        for value in values:
            key = f"dated-{next(SESSIONS)}"
            texts = (("user", said.format(f"value{value}x")), ("assistant", "Done."))
            records = [
                {
                    "type": role,
                    "sessionId": key,
                    "uuid": f"{key}-{role}",
                    "timestamp": f"2026-0{value}-10T12:00:0{second}.000Z",
                    "message": {"role": role, "content": text},
                }
                for second, (role, text) in enumerate(texts)
            ]
            hook(room, "session-end", sessionKey=key, transcript="\n".join(map(json.dumps, records)), reason="logout")
        inject = hook(room, "user-prompt-submit", userPrompt=question)["inject"]
        found = sorted((inject.find(value), value) for value in VALUES if value in inject)
        results = room.recall(question)["results"]
        if [value for _, value in found] != ["value3x", "value2x"] or "value3x" not in results[0]["content"]:
            wrong.append((question, inject, results))
    assert wrong == []


@pytest.mark.parametrize(
    ("fact", "newer", "question"),
    [
        (
            "The Datadog site is datadoghq.eu",
            "We decided to move logs to Datadog, no longer CloudWatch",
            "which Datadog site do we use?",
        ),
        (
            "Dagster assets live in pipelines/assets",
            "We decided to use Dagster instead of Airflow",
            "where do the Dagster assets live?",
        ),
        (
            "Tailwind tokens are defined in packages/ui/theme.css",
            "I prefer Tailwind instead of styled-components",
            "where are the Tailwind tokens defined?",
        ),
    ],
)
def test_a_fact_is_given_though_the_session_has_a_newer_memory_of_the_same_thing(
    room: Client, fact: str, newer: str, question: str
) -> None:
    room.remember(fact, project=PROJECT)
    room.remember(newer, project=PROJECT)
    assert newer in hook(room, "session-start", sessionKey="goes-on")["inject"]
    assert fact in hook(room, "user-prompt-submit", sessionKey="goes-on", userPrompt=question)["inject"]


@pytest.mark.parametrize(
    ("sessions", "question", "latest"),
    [
        (
            (
                ("where are the feature flags configured?", "Feature flags are configured in config/flags.yaml."),
                ("add the flag new_checkout", "Added it to config/flags.yaml, where the feature flags are configured."),
                ("move the feature flags to Unleash", "The feature flags live in Unleash, flags.yaml is deleted."),
            ),
            "where are the feature flags configured?",
            "Unleash",
        ),
        (
            (
                ("who reviews changes of the payment module?", "Nadia reviews changes of the payment module."),
                ("open a PR for the payment module fix", "Opened PR 231; Nadia reviews it, as all of payment module."),
                ("Nadia left, Omar reviews payment changes", "CODEOWNERS of the payment module is @omar."),
            ),
            "who has to review my payment module PR?",
            "@omar",
        ),
        (
            (
                ("wo liegen die Backups der Datenbank?", "Die Backups der Datenbank liegen auf nas1."),
                ("prüf die Backups der Datenbank", "Geprüft: die Backups der Datenbank liegen vollständig auf nas1."),
                (
                    "verlege die Backups der Datenbank nach S3",
                    "Erledigt, die Datenbank sichert nach S3, Backups von nas1 weg.",
                ),
            ),
            "wo liegen die Backups der Datenbank?",
            "S3",
        ),
    ],
)
def test_what_a_later_session_said_in_other_words_is_given_beside_the_best(
    room: Client, sessions: tuple[tuple[str, str], ...], question: str, latest: str
) -> None:
    for asked, answer in sessions:
        hook(room, "session-end", transcript=f"User: {asked}\nAssistant: {answer}", reason="logout")
    assert latest in hook(room, "user-prompt-submit", userPrompt=question)["inject"]


def test_the_date_behind_a_memory_is_when_it_occurred(room: Client) -> None:
    room.remember(
        "Version 2.4 of the ferry app was released to the stores", project="/p", occurredAt="2026-03-04T12:00:00Z"
    )
    body = {"harness": "t", "project": "/p", "userPrompt": "when was version 2.4 of the ferry app released?"}
    assert "(Mar 4, 2026)" in room.post("/api/hooks/user-prompt-submit", body).ok()["inject"]
