"""A real daemon counts which skills an agent uses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from signet_actors.cli.harnesses.registry import CLAUDE_CODE
from tests.support.bus_harness import eventually
from tests.support.live_daemon import Client, live_daemon
from tests.support.replayed_session import hooked_home

pytestmark = pytest.mark.system

PATH = "/api/hooks/skill-invocation"


def used(client: Client, use_id: str, skill: str) -> None:
    """Report a use until it is counted; on a busy machine an answer may be out of time."""
    body = {"harness": "claude-code", "skill": skill, "sessionKey": "s-1", "toolUseId": use_id}
    for _ in range(20):
        if client.post(PATH, body).ok()["recorded"]:
            return
    pytest.fail("the use was not counted")


def skills(client: Client, **parameters: Any) -> list[tuple[str, int]]:
    listed = client.get(PATH, **parameters).ok()["skills"]
    return [(skill["skill_name"], skill["use_count"]) for skill in listed]


def test_a_use_is_counted_once_for_its_agent_and_survives_a_restart() -> None:
    with live_daemon(patient=True) as daemon:
        for use_id, skill in (("1", "pdf"), ("2", "release-notes"), ("1", "pdf"), ("3", "pdf")):
            used(daemon.api, use_id, skill)
        used(daemon.agent("cleo"), "1", "pdf")
        assert skills(daemon.api) == [("pdf", 2), ("release-notes", 1)]
        assert skills(daemon.agent("cleo")) == [("pdf", 1)]
        daemon.stop()
        daemon.start()
        assert skills(daemon.api) == [("pdf", 2), ("release-notes", 1)]
        assert skills(daemon.api, limit=1) == [("pdf", 2)]


def test_claude_code_reports_each_skill_that_its_agent_loads(tmp_path: Path) -> None:
    with hooked_home(CLAUDE_CODE, tmp_path) as room:
        session = room.session()
        loaded = {"tool_name": "Skill", "tool_input": {"skill": "release-notes"}, "tool_use_id": "toolu_01"}

        def is_counted() -> bool:
            assert session.fire("PostToolUse", **loaded) == "", "it gives nothing to the model"
            return bool(skills(room.daemon.api))

        eventually(is_counted, within_s=60, what="the skill is counted")
        session.fire("PostToolUse", **loaded)
        assert skills(room.daemon.api) == [("release-notes", 1)]
