"""Optional children are started and stopped by the configuration at each SIGHUP."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.bus_harness import eventually
from tests.support.echo_daemon import QUICK, Daemon, alive, changed, daemon

pytestmark = pytest.mark.system

TREE = "tests.support.echo_tree_optional"


def switched(pipeline: bool, tracker: bool = False, config: dict[str, Any] | None = None) -> str:
    pipelines = {"enabled": pipeline, "embeddingTracker": {"enabled": tracker}}
    return json.dumps({**(config or QUICK), "memory": {"pipelineV2": pipelines}})


@pytest.fixture
def workspace() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sgt-", dir="/tmp") as directory:
        yield Path(directory) / "w"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.json"


def reload(running: Daemon, file: Path, text: str) -> None:
    before = len(running.events("configuration_reloaded"))
    file.write_text(text, encoding="utf-8")
    running.process.send_signal(signal.SIGHUP)
    running.wait_for("configuration_reloaded", count=before + 1)


def test_children_that_the_new_configuration_needs_are_started_in_order(workspace: Path, file: Path) -> None:
    file.write_text(switched(pipeline=False), encoding="utf-8")
    with daemon(workspace, tree=TREE, SIGNET_TEST_CONFIG=str(file)) as running:
        core = {name: running.pid_of(name) for name in ("writer", "searcher", "gateway")}
        assert running.events("spawned", child="decider") == []
        reload(running, file, switched(pipeline=True))
        running.wait_for("child_up", child="extractor")
        running.wait_for("child_up", child="decider")
        assert {name: running.pid_of(name) for name in core} == core
        assert [line["child"] for line in running.events("spawned")][-2:] == ["decider", "extractor"]
        assert running.events("child_exited") == []


def test_unneeded_children_are_drained_clients_before_servers_and_not_restarted(workspace: Path, file: Path) -> None:
    file.write_text(switched(pipeline=True), encoding="utf-8")
    with daemon(workspace, tree=TREE, SIGNET_TEST_CONFIG=str(file)) as running:
        running.wait_for("child_up", child="extractor")
        running.wait_for("child_up", child="decider")
        pids = [running.pid_of("decider"), running.pid_of("extractor")]
        reload(running, file, switched(pipeline=False))
        running.wait_for("child_stopped", child="decider")
        assert [line["child"] for line in running.events("child_stopped")] == ["extractor", "decider"]
        assert (workspace / "drained").read_text(encoding="utf-8").split() == ["extractor", "decider"]
        assert not any(alive(pid) for pid in pids)
        assert running.events("child_exited") == []
        # Restarts of other children continue as usual, and start none of these.
        os.kill(running.pid_of("searcher"), signal.SIGKILL)
        running.wait_for("child_up", child="searcher", child_incarnation=2)
        assert len(running.events("spawned", child="extractor")) == 1
        running.process.send_signal(signal.SIGTERM)
        assert running.exit_code() == 0


def test_only_an_unneeded_child_is_stopped(workspace: Path, file: Path) -> None:
    file.write_text(switched(pipeline=True), encoding="utf-8")
    with daemon(workspace, tree=TREE, SIGNET_TEST_CONFIG=str(file)) as running:
        running.wait_for("child_up", child="extractor")
        reload(running, file, switched(pipeline=False, tracker=True))
        running.wait_for("child_stopped", child="decider")
        assert [line["child"] for line in running.events("child_stopped")] == ["decider"]
        assert alive(running.pid_of("extractor"))
        eventually((workspace / "reloaded-extractor").exists)


def test_a_child_disabled_and_enabled_at_once_is_restarted_without_counting_it(workspace: Path, file: Path) -> None:
    file.write_text(switched(pipeline=True), encoding="utf-8")
    with daemon(workspace, tree=TREE, SIGNET_TEST_CONFIG=str(file)) as running:
        for incarnation in range(1, 8):  # more than any budget of restarts allows
            running.wait_for("child_up", child="extractor", child_incarnation=incarnation)
            reload(running, file, switched(pipeline=False))
            reload(running, file, switched(pipeline=True))
            running.wait_for("spawned", child="extractor", child_incarnation=incarnation + 1)
        assert running.events("child_restart_postponed") == []
        assert running.events("child_restart_scheduled") == []
        # It was wanted again before its turn to leave had come, or it has left and begins again.
        eventually(lambda: alive(running.pid_of("decider")))


def test_an_unneeded_child_that_does_not_drain_is_killed_at_the_deadline(workspace: Path, file: Path) -> None:
    config = changed(QUICK, drainMs=200)
    file.write_text(switched(pipeline=True, config=config), encoding="utf-8")
    with daemon(workspace, tree=TREE, orders="extractor=deaf", SIGNET_TEST_CONFIG=str(file)) as running:
        running.wait_for("child_up", child="extractor")
        reload(running, file, switched(pipeline=False, config=config))
        (stopped, *_) = running.wait_for("child_stopped", child="extractor")
        assert "was killed because it did not stop in time" in stopped["cause"]
        running.wait_for("child_stopped", child="decider")


def test_a_failed_child_is_started_again_when_it_is_needed_again(workspace: Path, file: Path) -> None:
    file.write_text(switched(pipeline=True), encoding="utf-8")
    with daemon(workspace, tree=TREE, orders="decider=boot_exit:1", SIGNET_TEST_CONFIG=str(file)) as running:
        running.wait_for("child_restart_postponed", child="decider", within_s=60)
        spawned_before = len(running.events("spawned", child="decider"))
        reload(running, file, switched(pipeline=False))
        running.wait_for("child_stopped", child="extractor")
        reload(running, file, switched(pipeline=True))
        running.wait_for("spawned", child="decider", count=spawned_before + 1)
        running.wait_for("child_up", child="extractor", child_incarnation=2)


def test_a_daemon_stops_normally_while_a_child_is_draining(workspace: Path, file: Path) -> None:
    config = changed(QUICK, drainMs=1500)
    file.write_text(switched(pipeline=True, config=config), encoding="utf-8")
    with daemon(workspace, tree=TREE, orders="extractor=deaf", SIGNET_TEST_CONFIG=str(file)) as running:
        running.wait_for("child_up", child="extractor")
        reload(running, file, switched(pipeline=False, config=config))
        running.wait_for("child_no_longer_needed", child="extractor")
        running.process.send_signal(signal.SIGTERM)
        assert running.exit_code() == 0
        assert running.events("child_exited") == []


def test_a_shorter_heartbeat_interval_kills_no_child_with_the_old_one(workspace: Path, file: Path) -> None:
    """The last beat of a process may be older than the reloaded time limits, and its next one still further away."""
    file.write_text(switched(pipeline=True, config=changed(QUICK, heartbeatMs=20_000)), encoding="utf-8")
    with daemon(workspace, tree=TREE, SIGNET_TEST_CONFIG=str(file)) as running:
        running.wait_for("child_up", child="extractor")
        spawned_before = len(running.events("spawned"))
        time.sleep(0.5)  # longer than the reloaded time limits: what the last beats are then
        reload(running, file, switched(pipeline=True, config=changed(QUICK, heartbeatMs=100)))
        os.kill(running.pid_of("extractor"), signal.SIGSTOP)
        running.wait_for("unresponsive_child_killed")  # the reloaded time limits are in force
        assert [event["child"] for event in running.events("unresponsive_child_killed")] == ["extractor"]
        running.wait_for("spawned", count=spawned_before + 1)
        assert len(running.events("spawned")) == spawned_before + 1


def test_the_quarantine_is_started_after_the_first_crash_of_the_extractor(workspace: Path, file: Path) -> None:
    file.write_text(switched(pipeline=True), encoding="utf-8")
    environ = {"SIGNET_TEST_CONFIG": str(file), "SIGNET_TEST_QUARANTINE": "1"}
    with daemon(workspace, tree=TREE, **environ) as running:
        running.wait_for("child_up", child="extractor")
        assert running.events("spawned", child="quarantine") == []
        os.kill(running.pid_of("extractor"), signal.SIGKILL)
        running.wait_for("child_up", child="quarantine")
        assert len(running.events("child_up", child="extractor")) == 2, "the extractor is there before it"
        os.kill(running.pid_of("quarantine"), signal.SIGKILL)
        running.wait_for("child_up", child="quarantine", child_incarnation=2)
        reload(running, file, switched(pipeline=False))
        running.wait_for("child_stopped", child="quarantine")
        running.wait_for("child_stopped", child="extractor")
        reload(running, file, switched(pipeline=True))
        running.wait_for("child_up", child="extractor", child_incarnation=3)
        running.process.send_signal(signal.SIGTERM)
        assert running.exit_code() == 0
