"""JSON Schemas are sent to model servers that accept them, and not to others."""

from __future__ import annotations

import signal

import pytest

from tests.support.bus_harness import eventually
from tests.support.scripted_model import ScriptedModel, stage_of
from tests.support.scripted_provider import Act, Asked, Fault
from tests.system.test_pipeline import NOTE, SENTENCES, derived, finished, pipeline

pytestmark = pytest.mark.system

AGAIN = "The homelab uses Traefik for its dashboards, too."


def asked_with(asked: list[Asked]) -> list[tuple[str, bool]]:
    """The stage of each prompt, and whether it came with a schema."""
    return [(stage_of(one.prompt), "format" in one.body) for one in asked]


def refusing(_stage: str, asked: Asked) -> Act | Fault | None:
    """A server of before structured outputs."""
    if "format" not in asked.body:
        return None
    return Act("http_400", "json: cannot unmarshal object into Go struct field GenerateRequest.format of type string")


def test_extraction_and_decision_send_their_schemas() -> None:
    with pipeline() as (daemon, provider):
        daemon.api.remember(NOTE)
        finished(daemon)
        daemon.api.remember(AGAIN)
        finished(daemon, count=2)
        assert asked_with(provider.asked) == [("extraction", True), ("extraction", True), ("decision", True)]
        extraction, _, decision = (asked.body["format"]["properties"] for asked in provider.asked)
        assert set(extraction) == {"facts", "entities"}
        assert set(decision) == {"action", "targetId", "confidence", "reason"}


def test_a_server_without_schema_support_is_called_without_schemas_until_a_reload() -> None:
    with pipeline(ScriptedModel(fault=refusing)) as (daemon, provider):
        daemon.api.remember(NOTE)
        finished(daemon)
        assert derived(daemon) == SENTENCES
        assert asked_with(provider.asked) == [("extraction", True), ("extraction", False)]
        daemon.api.remember(AGAIN)
        finished(daemon, count=2)
        assert asked_with(provider.asked)[2] == ("extraction", False), "it is remembered that it was refused"
        assert daemon.read("SELECT DISTINCT attempts FROM memory_jobs WHERE job_type = 'extract'") == [(1,)]
        provider.script = ScriptedModel()
        looks, count = provider.looks, len(provider.asked)
        assert daemon.process is not None
        daemon.process.send_signal(signal.SIGHUP)
        eventually(lambda: provider.looks >= looks + 2, within_s=30, what="both stages have looked at the server again")
        daemon.api.remember("The office in Leipzig opens at nine in the morning.")
        finished(daemon, count=3)
        assert asked_with(provider.asked)[count] == ("extraction", True)


def test_no_schema_is_sent_when_structured_output_is_off() -> None:
    with pipeline(extraction="      structuredOutput: false\n") as (daemon, provider):
        daemon.api.remember(NOTE)
        finished(daemon)
        assert derived(daemon) == SENTENCES
        assert asked_with(provider.asked) == [("extraction", False)]
