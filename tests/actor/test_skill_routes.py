"""A harness reports that its agent used a skill: what is counted, and what is not."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from signet_actors.config.pipeline_schema import MemoryConfig, PipelineV2Config
from signet_actors.config.schema import Config, GatewayConfig
from signet_actors.errors import Unavailable
from signet_actors.features.skills.api import RECORD, SkillInvocationRequest
from signet_actors.protocol.message import Answered, Asked, message_of
from signet_actors.protocol.sessions import GetSession, RecordSessions, SessionFound, SessionsRecorded, SetBypass
from tests.support.memory_api import MemoryApi

PATH = "/api/hooks/skill-invocation"
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def made(directory: Path, config: Config | None = None) -> MemoryApi:
    api = MemoryApi(directory) if config is None else MemoryApi(directory, config=config)
    api.bus.script |= {
        GetSession: SessionFound(),
        RecordSessions: SessionsRecorded(),
        SetBypass: SessionsRecorded(),
        message_of(RECORD): Answered(b'{"recorded":true}'),
    }
    return api


@pytest.fixture
def api(tmp_path: Path) -> MemoryApi:
    return made(tmp_path)


def post(api: MemoryApi, headers: dict[str, str] | None = None, **fields: Any) -> Any:
    answer = api.request("POST", PATH, {"harness": "codex", "skill": "pdf", **fields}, headers)
    assert answer.status == 200, answer.raw
    return answer.json


def uses(api: MemoryApi) -> list[Asked[SkillInvocationRequest]]:
    return [sent.body for sent in api.bus.asked if isinstance(sent.body, message_of(RECORD))]


def counted(api: MemoryApi) -> list[tuple[str, str, bool, int | None]]:
    """Agent, skill, success and duration of each use that was sent to the writer."""
    return [(use.caller.agent_id, use.request.used, use.request.success, use.request.duration_ms) for use in uses(api)]


@pytest.mark.parametrize("name", ["skill", "skillName", "skill_name", "name"])
def test_a_use_of_a_skill_is_counted_for_the_agent(api: MemoryApi, name: str) -> None:
    body = {"harness": "codex", name: " pdf ", "agentId": "cleo", "durationMs": 42, "success": False}
    answer = api.request("POST", PATH, body)
    assert (answer.status, answer.json) == (200, {"recorded": True})
    assert counted(api) == [("cleo", "pdf", False, 42)]


@pytest.mark.parametrize("body", [{}, {"harness": "codex"}, {"skill": "pdf"}, {"harness": "codex", "skill": " "}])
def test_a_use_without_harness_or_skill_is_refused(api: MemoryApi, body: dict[str, str]) -> None:
    answer = api.request("POST", PATH, body)
    assert (answer.status, answer.json["error"]) == (400, "harness and skill are required")
    assert uses(api) == []


def test_other_invalid_values_count_as_absent_and_are_named(api: MemoryApi) -> None:
    body = post(api, durationMs="long", success="perhaps", agentId="a/b")
    assert body["recorded"] is True
    assert [warning.partition(" ")[0] for warning in body["warnings"]] == ["agentId", "durationMs", "success"]
    assert counted(api) == [("default", "pdf", True, None)]


def test_the_name_of_a_skill_has_at_most_200_characters(api: MemoryApi) -> None:
    post(api, skill="s" * 200)
    answer = api.request("POST", PATH, {"harness": "codex", "skill": "s" * 201})
    assert answer.status == 400
    assert [len(use.request.used) for use in uses(api)] == [200]


def test_a_secret_in_the_name_of_a_skill_is_not_stored(api: MemoryApi) -> None:
    post(api, skill=f"deploy {SECRET}")
    assert SECRET not in uses(api)[0].request.used


def test_nothing_is_counted_where_memory_is_switched_off(api: MemoryApi) -> None:
    assert post(api, {"x-signet-no-hooks": "1"}) == {"skipped": True, "reason": "no_hooks", "recorded": False}
    post(api, sessionKey="s")
    api.request("POST", "/api/sessions/s/bypass", {"enabled": True})
    for named in ({"sessionKey": "s"}, {"sessionId": "s"}):
        body = post(api, **named)
        assert (body["recorded"], body["reason"], body["bypassed"]) == (False, "bypassed", True)
    assert len(uses(api)) == 1


def test_nothing_is_counted_for_a_path_that_has_not_claimed_the_session(api: MemoryApi) -> None:
    post(api, sessionKey="s", runtimePath="plugin")
    body = post(api, sessionKey="s", runtimePath="legacy")
    assert (body["recorded"], body["reason"], body["claimedBy"]) == (False, "claimed", "plugin")
    assert post(api, sessionKey="s")["recorded"] is True
    assert len(uses(api)) == 2


def test_nothing_is_counted_while_changes_are_frozen(tmp_path: Path) -> None:
    api = made(tmp_path, Config(memory=MemoryConfig(pipeline_v2=PipelineV2Config(mutations_frozen=True))))
    body = post(api)
    assert (body["recorded"], body["reason"]) == (False, "mutations_frozen")
    assert uses(api) == []


def test_a_use_that_is_reported_again_has_the_same_key(api: MemoryApi) -> None:
    same = ({"idempotencyKey": "k"}, {"toolUseId": "t", "sessionKey": "s"}, {"toolUseId": "t", "sessionKey": "other"})
    for fields in same:
        post(api, **fields)
        post(api, **fields, durationMs=5)
    keys = [use.idempotency for use in uses(api)]
    assert keys[0::2] == keys[1::2]
    assert len(set(keys)) == len(same)
    assert None not in keys


def test_the_answer_does_not_wait_for_a_writer_that_hangs(tmp_path: Path) -> None:
    api = made(tmp_path, Config(gateway=GatewayConfig(request_timeout_ms=1000)))

    async def hang(*_: Any, **__: Any) -> Any:
        await asyncio.Event().wait()

    api.bus.ask_writer = hang  # type: ignore[method-assign]
    body = post(api)
    assert (body["recorded"], body["skipped"], body["reason"]) == (False, True, "timeout")


def test_a_writer_that_is_away_is_no_error(api: MemoryApi) -> None:
    api.bus.script[message_of(RECORD)] = Unavailable("the writer restarts")
    body = post(api)
    assert (body["recorded"], body["reason"]) == (False, "unavailable")
