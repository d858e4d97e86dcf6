"""The supervisor with real processes: start order, restarts, budgets, drains, and locks."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.bus_harness import eventually
from tests.support.echo_daemon import QUICK, alive, changed, daemon
from tests.support.open_files import family

pytestmark = pytest.mark.system


@pytest.fixture
def workspace() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sgt-", dir="/tmp") as directory:
        yield Path(directory) / "w"


def test_children_start_in_order_and_sigterm_drains_them_in_reverse(workspace: Path) -> None:
    with daemon(workspace) as running:
        spawned = [line["child"] for line in running.events("spawned")]
        assert spawned == ["writer", "searcher-1", "searcher-2", "retention", "gateway"]
        running.wait_for("child_up", child="retention")  # optional, so that nothing waits for it
        ready = [line["child"] for line in running.events("child_up")]
        assert ready.index("writer") < ready.index("searcher-1") < ready.index("gateway")
        running.process.send_signal(signal.SIGTERM)
        assert running.exit_code() == 0
        drained = (workspace / "drained").read_text(encoding="utf-8").split()
        assert [drained[0], drained[1], drained[-1]] == ["gateway", "retention", "writer"]
        assert sorted(drained[2:-1]) == ["searcher-1", "searcher-2"]
        assert not (workspace / ".daemon" / "pid").exists()


def test_the_daemon_prints_its_address_and_keeps_its_files_private(workspace: Path) -> None:
    with daemon(workspace) as running:
        address = json.loads((workspace / ".daemon" / "address").read_text(encoding="utf-8"))
        assert address["pid"] == running.process.pid
        assert (workspace / ".daemon" / "pid").read_text(encoding="ascii").strip() == str(running.process.pid)
        with socket.create_connection((address["host"], address["port"]), timeout=5):
            pass  # accepted by the backlog although this gateway reads nothing
        assert running.process.stderr is not None
        assert f"http://127.0.0.1:{address['port']}" in running.process.stderr.readline()
        for path in [workspace, *workspace.rglob("*")]:
            mode = stat.S_IMODE(path.lstat().st_mode)
            assert mode & 0o077 == 0, f"{path} has mode {mode:o}"


def test_a_killed_child_is_forked_again_also_after_the_fork_server_was_killed(workspace: Path) -> None:
    with daemon(workspace, changed(QUICK, settledMs=0)) as running:
        os.kill(running.pid_of("gateway"), signal.SIGKILL)
        running.wait_for("child_up", child="gateway", child_incarnation=2)
        children = {int(line["pid"]) for line in running.events("spawned")}
        (forks,) = {pid for pid in family(running.process.pid) if alive(pid)} - children - {running.process.pid}
        os.kill(forks, signal.SIGKILL)
        running.wait_for("fork_server_exited")
        os.kill(running.pid_of("gateway"), signal.SIGKILL)
        running.wait_for("child_up", child="gateway", child_incarnation=3)
        assert len(running.events("child_exited")) == 2, "no child ended with the fork server"


def test_a_child_that_reports_its_exit_but_does_not_end_is_killed_and_its_reported_code_counts(workspace: Path) -> None:
    with daemon(workspace, orders="writer=leave:74", serving=False) as running:
        (died, *_) = running.wait_for("child_exited", child="writer")
        assert died["cause"] == "was killed while exiting with 74: told to leave"
        assert running.events("unresponsive_child_killed", child="writer") == []
        running.wait_for("child_up", child="writer", child_incarnation=2)


def test_a_reported_final_exit_code_ends_the_daemon_even_if_the_child_hangs(workspace: Path) -> None:
    with daemon(workspace, orders="writer=leave:78", serving=False) as running:
        assert running.exit_code() == 78
        assert len(running.events("spawned", child="writer")) == 1


def test_a_reader_that_does_not_end_its_snapshot_is_killed_and_the_others_stay(workspace: Path) -> None:
    with daemon(workspace, orders="searcher-2=holds;writer=pressure") as running:
        (killed, *_) = running.wait_for("reader_killed")
        assert killed["child"] == "searcher-2"
        (died, *_) = running.wait_for("child_exited", child="searcher-2")
        assert "held a snapshot" in died["cause"]
        running.wait_for("spawned", count=2, child="searcher-2")
        assert {line["child"] for line in running.events("reader_killed")} == {"searcher-2"}
        assert running.events("child_exited", child="searcher-1") == []


def test_a_child_that_is_never_ready_is_killed_after_the_start_timeout(workspace: Path) -> None:
    config = changed(QUICK, startTimeoutMs=1000)
    with daemon(workspace, config, orders="writer=boot_hang", serving=False) as running:
        died = running.wait_for("child_exited", child="writer")
        assert "not ready in time" in died[0]["cause"]
        running.process.send_signal(signal.SIGTERM)
        assert running.exit_code() == 0


def test_a_slow_start_that_reports_progress_is_waited_for(workspace: Path) -> None:
    config = changed(QUICK, startTimeoutMs=8000)  # an interpreter on a starved machine takes seconds to say anything
    with daemon(workspace, config, orders="writer=boot_sleep:8500") as running:
        assert len(running.events("spawned", child="writer")) == 1


def test_an_optional_child_over_budget_is_failed_and_retried_later(workspace: Path) -> None:
    with daemon(workspace, orders="retention=boot_exit:1", SIGNET_TEST_RETRY_FAILED_MS="400") as running:
        until = running.wait_for("child_restart_postponed", child="retention", count=2)[1]["timestamp"]
        spawned = [line for line in running.events("spawned", child="retention") if line["timestamp"] <= until]
        assert len(spawned) == 4  # three within the budget, one retry
        assert running.process.poll() is None


def test_a_searcher_over_budget_is_failed_while_the_others_serve(workspace: Path) -> None:
    with daemon(workspace, orders="searcher-1=boot_exit:1") as running:
        running.wait_for("child_restart_postponed", child="searcher-1")
        assert running.process.poll() is None
        assert alive(running.pid_of("searcher-2"))


def test_the_last_searcher_over_budget_ends_the_daemon(workspace: Path) -> None:
    config = {**QUICK, "searcher": {"processes": 1}}
    with daemon(workspace, config, orders="searcher-1=boot_exit:1", serving=False) as running:
        assert running.exit_code() == 75


@pytest.mark.parametrize("code", [69, 73, 78])
def test_a_final_exit_code_of_a_child_ends_the_daemon_with_this_code(workspace: Path, code: int) -> None:
    with daemon(workspace, orders=f"writer=boot_exit:{code}", serving=False) as running:
        assert running.exit_code() == code
        assert len(running.events("spawned", child="writer")) == 1
        assert running.process.stderr is not None
        assert "writer: told to leave at boot" in running.process.stderr.read()


def test_nothing_is_left_when_the_supervisor_is_killed_and_the_next_start_works_at_once(workspace: Path) -> None:
    with daemon(workspace) as running:
        children = family(running.process.pid)[1:]
        assert len(children) > len(running.events("spawned"))
        running.process.kill()
        running.exit_code()
        eventually(lambda: not any(alive(pid) for pid in children), what="orphans gone")
    with daemon(workspace, serving=False) as again:
        again.wait_for("serving", count=2)


def test_the_start_after_a_killed_supervisor_logs_what_is_known_of_the_former_run(workspace: Path) -> None:
    with daemon(workspace) as first:
        first.process.kill()
        first.process.wait()
    with daemon(workspace, serving=False) as second:
        (found,) = second.wait_for("former_run_ended_without_stop")
        second.wait_for("serving", count=2)
        assert (found["former_pid"], found["level"]) == (first.process.pid, "warning")
        assert found["started_at"] <= found["last_write_at"] <= found["timestamp"]
    with daemon(workspace, serving=False) as third:  # after a stop
        third.wait_for("serving", count=3)
        assert len(third.events("former_run_ended_without_stop")) == 1


def test_a_child_that_does_not_drain_is_killed_at_the_deadline(workspace: Path) -> None:
    with daemon(workspace, changed(QUICK, drainMs=1500), orders="searcher-1=deaf") as running:
        running.process.send_signal(signal.SIGTERM)
        assert running.exit_code(30) == 0  # the child would stay for a minute
        assert "killed" in running.events("child_stopped", child="searcher-1")[0]["cause"]
        assert "writer" in (workspace / "drained").read_text(encoding="utf-8")


def test_a_signal_to_the_process_group_is_handled_by_the_supervisor_only(workspace: Path) -> None:
    with daemon(workspace) as running:
        for line in running.events("spawned"):
            os.kill(int(line["pid"]), signal.SIGINT)
            os.kill(int(line["pid"]), signal.SIGTERM)
        running.process.send_signal(signal.SIGINT)
        assert running.exit_code() == 0
        assert not running.events("child_exited")


def test_sighup_sends_a_valid_configuration_to_every_child_and_rejects_an_invalid_one(
    workspace: Path, tmp_path: Path
) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(QUICK), encoding="utf-8")
    with daemon(workspace, SIGNET_TEST_CONFIG=str(file)) as running:
        file.write_text('{"writer": {"queueLimit": 0}}', encoding="utf-8")
        running.process.send_signal(signal.SIGHUP)
        assert "queueLimit" in running.wait_for("configuration_refused")[0]["problem"]
        file.write_text(json.dumps({**QUICK, "logging": {"level": "debug"}}), encoding="utf-8")
        running.process.send_signal(signal.SIGHUP)
        eventually(lambda: all((workspace / f"reloaded-{name}").exists() for name in ("writer", "gateway")))
        assert (workspace / "reloaded-writer").read_text(encoding="utf-8") == "debug"


def test_sighup_reaches_a_child_that_has_not_sent_a_message_yet(workspace: Path, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(QUICK), encoding="utf-8")
    with daemon(workspace, serving=False, SIGNET_TEST_CONFIG=str(file)) as running:
        writer = int(running.wait_for("spawned", child="writer")[0]["pid"])
        os.kill(writer, signal.SIGSTOP)  # it sends a message when the new configuration is in effect
        file.write_text(json.dumps({**QUICK, "logging": {"level": "debug"}}), encoding="utf-8")
        running.process.send_signal(signal.SIGHUP)
        running.wait_for("configuration_reloaded")
        os.kill(writer, signal.SIGCONT)
        running.wait_for("serving")
        eventually((workspace / "reloaded-writer").exists)
        assert (workspace / "reloaded-writer").read_text(encoding="utf-8") == "debug"
        assert not (workspace / "reloaded-gateway").exists(), "born with the new configuration, it need not be told"


def test_systemd_is_notified_of_ready_watchdog_and_stopping(workspace: Path, tmp_path: Path) -> None:
    name = f"\0signet-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(name)
        systemd.settimeout(60)
        with daemon(workspace, NOTIFY_SOCKET="@" + name[1:], WATCHDOG_USEC="200000", serving=False) as running:
            said: set[str] = set()
            while not {"READY=1", "WATCHDOG=1"} <= said:
                said.add(systemd.recv(256).decode())
            running.process.send_signal(signal.SIGTERM)
            while "STOPPING=1" not in said:
                said.add(systemd.recv(256).decode())
            assert running.exit_code() == 0


def test_every_log_line_has_actor_time_and_level(workspace: Path) -> None:
    with daemon(workspace) as running:
        running.wait_for("ready", actor="gateway")  # which it writes after it was heard
        lines = running.lines()
        assert {"supervisor", "writer", "gateway"} <= {line["actor"] for line in lines}
        for line in lines:
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["timestamp"])
            assert line["level"] in {"debug", "info", "warning", "error", "critical"}
            assert line["incarnation"] >= 1
