"""What a store that mostly holds a series of alike memories gives to a prompt: the few other ones as well.

Source: docs/quality.md "Relevance".
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.support.live_daemon import Client

pytestmark = pytest.mark.system
SERIES: dict[str, Callable[[int], str]] = {
    "measurements": lambda number: f"The nightly backup of run {number} took {number % 50 + 10} minutes",
    "tickets": lambda number: f"Ticket QX-{number} of the harbour shop was closed by Ada after {number % 9} days",
    "builds": lambda number: f"Build {number} of the web frontend passed with {number % 7} warnings",
}
FACTS = {
    "who maintains the crane software?": "Birte maintains the crane software",
    "which broker delivers our messages?": "We use NATS as message broker",
    "where are the customer invoices stored?": "Customer invoices are stored in the bucket ledger-eu",
    "how high is the lighthouse?": "The lighthouse is 31 metres high",
    "how do we deploy the staging system?": "Staging is deployed with Nomad from the branch main",
    "what is the timeout of the ferry API?": "The ferry API times out after 45 seconds",
}
CHANGED = ("Logs are shipped with Fluentd", "Fluentd was replaced by Vector last week", "what ships our logs?")
UNRELATED = (
    "what is the capital of Mongolia?",
    "write a haiku about autumn",
    "how tall is the Eiffel tower?",
    "translate good morning to Finnish",
)


@pytest.mark.parametrize("series", SERIES)
def test_prompts_are_given_the_other_memories_too(empty_rooms: Callable[[], Client], series: str) -> None:
    room = empty_rooms()
    alike = [SERIES[series](number) for number in range(1, 201)]
    texts = [*alike[:100], *FACTS.values(), *CHANGED[:2], *alike[100:]]
    lines = "\n".join(json.dumps({"content": text}) for text in texts)
    room.post("/api/memory/import", {"content": lines, "format": "jsonl"}).ok()
    assert {prompt: text for prompt, fact in FACTS.items() if fact not in (text := given(room, prompt))} == {}
    assert CHANGED[1] in given(room, CHANGED[2])
    assert {prompt: text for prompt in UNRELATED if (text := given(room, prompt))} == {}


def given(room: Client, prompt: str) -> str:
    body = {"harness": "claude-code", "project": "/home/ada/quay", "sessionKey": prompt, "userPrompt": prompt}
    inject: str = room.post("/api/hooks/user-prompt-submit", body).ok()["inject"]
    return inject
