"""Secrets that a model joins from parts are redacted before they are stored or sent to a model again.

Source: docs/security.md "Poisoned memories".
"""

from __future__ import annotations

import json

import pytest

from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_provider import Act, Asked, Fault
from tests.system.test_pipeline import finished, pipeline

pytestmark = pytest.mark.system

TOKEN = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
FIRST, SECOND = TOKEN[:9], TOKEN[9:]
FACT = {"content": f"The deploy token of the homelab is {TOKEN} and ends in May", "type": "fact", "confidence": 1}
TRIPLE = {"source": f"token {TOKEN}", "relationship": "opens", "target": "homelab", "confidence": 1}


def joining(stage: str, asked: Asked) -> Act | Fault | None:
    """A model that joins what a line end has broken, in every kind of answer."""
    if stage == "extraction":
        return Act("ok", json.dumps({"facts": [FACT, FACT], "entities": [TRIPLE]}))
    if stage == "hints":
        return Act("ok", json.dumps({"hints": [f"Which service takes the token {TOKEN}?"]}))
    reason = f"nothing says {TOKEN} yet"
    return Act("ok", json.dumps({"action": "add", "targetId": None, "confidence": 0.9, "reason": reason}))


def test_a_token_joined_by_a_model_is_nowhere_on_disk_and_in_no_later_prompt() -> None:
    with pipeline(ScriptedModel(fault=joining), "    hints: {enabled: true}\n") as (daemon, provider):
        daemon.api.remember(f"The deploy token of the homelab is {FIRST}\n{SECOND} and it ends in May, says Noor.")
        finished(daemon)
        finished(daemon, kind="prospective_index")
        assert [row[0] for row in daemon.read("SELECT content FROM memories WHERE who = 'pipeline-v2'")] == [
            "The deploy token of the homelab is [REDACTED:github-token] and ends in May"
        ]
        assert all(TOKEN not in asked.prompt for asked in provider.asked)
        assert daemon.stop() == 0
        holders = [
            path for path in daemon.workspace.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()
        ]
        assert holders == []
        daemon.start()
