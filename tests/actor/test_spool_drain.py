"""The periodic duty of retention that has the reports of hooks sent."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
import structlog

from signet_actors.config.workspace import Workspace
from signet_actors.hook.spool import KEPT_S, Spool
from signet_actors.retention.periodic import spool_drain
from signet_actors.retention.periodic.spool_drain import SpoolDrain
from signet_actors.runtime.clock import SystemClock
from tests.support.scripted_daemon import ScriptedDaemon


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[ScriptedDaemon]:
    """A daemon that holds the workspace and has written its address down."""
    scripted = ScriptedDaemon()
    workspace = Workspace(tmp_path)
    workspace.memory_dir.mkdir()
    workspace.daemon_dir.mkdir()
    (workspace.daemon_dir / "lock").write_text(f"{os.getpid()}\n")
    workspace.address_file.write_text(json.dumps({"host": "127.0.0.1", "port": scripted.port, "pid": os.getpid()}))
    held = os.open(workspace.memory_dir, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    yield scripted
    os.close(held)
    scripted.close()


def duty(workspace: Path) -> SpoolDrain:
    log = structlog.wrap_logger(structlog.ReturnLogger())
    return SpoolDrain(SystemClock(), log, workspace)


def step_until_idle(drain: SpoolDrain) -> None:
    drain.step()
    deadline = time.monotonic() + 60
    while drain.running and time.monotonic() < deadline:
        time.sleep(0.02)
        drain.step()
    assert not drain.running


def test_the_daemon_gets_its_own_token_and_none_of_the_environment(
    tmp_path: Path, daemon: ScriptedDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIGNET_TOKEN", "for.another")
    Workspace(tmp_path).owner_token_file.write_text("ab12" * 16)
    body = {"harness": "codex", "content": "1", "idempotencyKey": "hook-1"}
    Spool(str(tmp_path)).put("/api/hooks/remember", body, harness="codex")
    daemon.on("POST", "/api/hooks/remember", {"saved": True, "id": "1"})
    step_until_idle(duty(tmp_path))
    (asked,) = daemon.asked
    assert asked.headers["x-signet-owner-token"] == "ab12" * 16
    assert "authorization" not in asked.headers


def test_waiting_reports_reach_the_daemon_once(tmp_path: Path, daemon: ScriptedDaemon) -> None:
    spool = Spool(str(tmp_path))
    for number in range(3):
        body = {"harness": "codex", "content": str(number), "idempotencyKey": f"hook-{number}"}
        spool.put("/api/hooks/remember", body, harness="codex")
    daemon.on("POST", "/api/hooks/remember", {"saved": True, "id": "1"})
    drain = duty(tmp_path)
    for _ in range(2):
        step_until_idle(drain)
    assert [asked.body["content"] for asked in daemon.asked] == ["0", "1", "2"]
    assert [asked.headers["idempotency-key"] for asked in daemon.asked] == ["hook-0", "hook-1", "hook-2"]
    assert spool.waiting() == []


def test_nothing_is_started_while_nothing_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_drain.subprocess, "Popen", lambda *_, **__: pytest.fail("a process was started"))
    drain = duty(tmp_path)
    drain.step()
    Workspace(tmp_path).spool_dir.mkdir(parents=True)
    (Workspace(tmp_path).spool_dir / "1-1.json.rejected").touch()
    drain.step()
    assert not drain.running


def test_a_report_that_was_set_aside_has_the_process_started_after_a_week(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []
    monkeypatch.setattr(spool_drain.subprocess, "Popen", lambda *_, **__: started.append(1) or Mock())
    spool = Spool(str(tmp_path))
    spool.set_aside(spool.put("/api/hooks/remember", {"content": "x", "idempotencyKey": "1"}))
    now_s = time.time()
    for days, starts in ((6.9, 0), (7.1, 1)):
        monkeypatch.setattr(spool_drain.time, "time", lambda days=days: now_s + days * 86_400)
        duty(tmp_path).step()
        assert len(started) == starts
    assert spool_drain.KEPT_S == KEPT_S


def test_reports_that_were_not_accepted_are_counted_until_they_are(tmp_path: Path, daemon: ScriptedDaemon) -> None:
    spool = Spool(str(tmp_path))
    drain = duty(tmp_path)
    for name, status in (("refused", 503), ("invalid", 422)):
        daemon.on("POST", f"/api/hooks/{name}", {"error": "x"}, status=status)
        spool.put(f"/api/hooks/{name}", {"harness": "codex", "idempotencyKey": name})
    drain.step()
    assert (drain.waiting, drain.rejected) == (0, 0), "they have not been sent yet"
    step_until_idle(drain)
    assert (drain.waiting, drain.rejected) == (1, 1)
    for name in (*spool.waiting(), *spool.rejected()):
        spool.remove(name)
    step_until_idle(drain)
    assert (drain.waiting, drain.rejected) == (0, 0)


def test_stopping_ends_the_process_and_keeps_the_report(tmp_path: Path, daemon: ScriptedDaemon) -> None:
    spool = Spool(str(tmp_path))
    spool.put("/api/hooks/remember", {"content": "x", "idempotencyKey": "1"})
    daemon.on("POST", "/api/hooks/remember", hang=True)
    drain = duty(tmp_path)
    drain.step()
    drain.stop()
    assert not drain.running
    assert len(spool.waiting()) == 1


def test_something_in_the_place_of_the_reports_is_noticed_until_it_is_gone(tmp_path: Path) -> None:
    drain = duty(tmp_path)
    place = Workspace(tmp_path).spool_dir
    place.parent.mkdir(parents=True)
    for put in (place.touch, lambda: place.symlink_to(tmp_path / "nowhere"), lambda: os.mkfifo(place)):
        drain.step()
        assert not drain.is_unusable, "hooks make the directory when they need it"
        put()
        drain.step()
        assert drain.is_unusable
        place.unlink()
    place.mkdir()
    drain.step()
    assert not drain.is_unusable
