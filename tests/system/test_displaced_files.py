"""Database files that disappear while the daemon runs: no write is acknowledged that a later start would not find.

Source: docs/reliability.md R10 and R26; docs/operations.md "Exit codes" and "What an HTTP answer promises".
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import CLIENT_WAIT_S, LiveDaemon, live_daemon, remove_tree, run_signet
from tests.support.load import UNKNOWN, load_on

pytestmark = pytest.mark.system

GOLDEN = Path(__file__).parents[1] / "golden" / "schema-3.sqlite"


def remove_database(daemon: LiveDaemon) -> None:
    daemon.database.unlink()


def replace_database(daemon: LiveDaemon) -> None:
    other = daemon.root / "other.db"
    shutil.copy(GOLDEN, other)
    other.rename(daemon.database)


def remove_log(daemon: LiveDaemon) -> None:
    daemon.database.with_name("memories.db-wal").unlink()


def remove_log_index(daemon: LiveDaemon) -> None:
    daemon.database.with_name("memories.db-shm").unlink()


def move_workspace(daemon: LiveDaemon) -> None:
    daemon.workspace.rename(daemon.root / "elsewhere")


def replace_workspace(daemon: LiveDaemon) -> None:
    move_workspace(daemon)
    (daemon.workspace / "memory").mkdir(parents=True)
    shutil.copy(GOLDEN, daemon.database)


def ended(daemon: LiveDaemon) -> int:
    """Return the exit code of a daemon that exits by itself; none of its processes is left."""
    assert daemon.process is not None
    code = daemon.process.wait(CLIENT_WAIT_S)
    daemon.gone()
    return code


def truncate_database(daemon: LiveDaemon) -> None:
    os.truncate(daemon.database, 0)


def cut_database(daemon: LiveDaemon) -> None:
    os.truncate(daemon.database, daemon.database.stat().st_size - 1)


def truncate_log(daemon: LiveDaemon) -> None:
    os.truncate(daemon.database.with_name("memories.db-wal"), 0)


TRUNCATE = [truncate_database, cut_database, truncate_log]
DISPLACE = [
    *(remove_database, replace_database, remove_log, remove_log_index, move_workspace, replace_workspace),
    *TRUNCATE,
]


@pytest.mark.parametrize("displace", DISPLACE)
def test_no_write_is_acknowledged_after_a_database_file_was_removed(displace: Callable[[LiveDaemon], None]) -> None:
    with live_daemon() as daemon:
        daemon.api.remember("Answered while everything was in its place")
        displace(daemon)
        refusal = daemon.api.post("/api/memory/remember", {"content": "Asked afterwards"})
        refusal.refused(503, code="not_applied")
        assert ended(daemon) == 74
        assert "memor" in daemon.terminal().splitlines()[-1]
        assert "`signet restore latest`" in daemon.terminal().splitlines()[-1]


@pytest.mark.parametrize("displace", [move_workspace, replace_workspace])
def test_every_write_to_a_displaced_workspace_is_answered_not_applied(
    displace: Callable[[LiveDaemon], None],
) -> None:
    with live_daemon() as daemon:
        assert daemon.process is not None
        daemon.api.remember("Answered while everything was in its place")
        daemon.process.send_signal(signal.SIGSTOP)
        displace(daemon)
        until = time.monotonic() + 2  # several heartbeats, in which each process looks for its socket's path
        while time.monotonic() < until:
            refusal = daemon.api.post("/api/memory/remember", {"content": "Asked afterwards"})
            refusal.refused(503, code="not_applied")
            assert daemon.api.get("/health/ready").status == 503, "from the first refusal on"
        daemon.process.send_signal(signal.SIGCONT)
        assert ended(daemon) == 74


def test_a_request_with_a_new_key_is_answered_not_applied() -> None:
    with live_daemon() as daemon:
        remove_database(daemon)
        answer = daemon.api.post("/api/memory/remember", {"content": "With a key"}, idempotency_key="a key")
        answer.refused(503, code="not_applied")
        assert ended(daemon) == 74


def test_a_retry_is_not_acknowledged_from_a_removed_database() -> None:
    with live_daemon() as daemon:
        body = {"content": "Answered under a key"}
        daemon.api.post("/api/memory/remember", body, idempotency_key="a key").ok()
        remove_database(daemon)
        assert daemon.api.post("/api/memory/remember", body, idempotency_key="a key").status in {503, 504}
        assert ended(daemon) == 74


def test_an_idle_daemon_notices_a_removed_file_reports_it_and_exits() -> None:
    with live_daemon() as daemon:
        assert daemon.api.recall("anything")["results"] == []
        seen: list[dict[str, Any]] = []

        def unhealthy() -> bool:
            health = daemon.api.get("/health").ok()
            if health["status"] == "unhealthy" and str(daemon.database) in health["detail"]:
                seen.append({**health, "ready": daemon.api.get("/health/ready").status})
            return bool(seen)

        remove_database(daemon)
        eventually(unhealthy, what="unhealthy, and the file is named")
        assert seen[0]["ready"] == 503
        assert ended(daemon) == 74


@pytest.mark.parametrize("truncate", TRUNCATE)
def test_an_idle_daemon_notices_a_truncated_file_and_exits(
    truncate: Callable[[LiveDaemon], None],
) -> None:
    with live_daemon() as daemon:
        daemon.api.remember("Answered while everything was in its place")
        truncate(daemon)
        eventually(lambda: daemon.api.get("/health/ready").status == 503, what="no longer ready")
        assert ended(daemon) == 74
        assert "truncated" in daemon.terminal().splitlines()[-1]


def test_a_database_that_is_back_before_the_supervisor_noticed_is_opened_again() -> None:
    with live_daemon() as daemon:
        assert daemon.process is not None
        stored = daemon.api.remember("Before the move")["id"]
        daemon.process.send_signal(signal.SIGSTOP)
        away = daemon.root / "away.db"
        daemon.database.rename(away)
        refusal = daemon.api.post("/api/memory/remember", {"content": "While it was away"})
        refusal.refused(503, code="not_applied")
        away.rename(daemon.database)
        daemon.process.send_signal(signal.SIGCONT)
        eventually(lambda: daemon.every_process()["writer"]["incarnation"] == 2, what="another writer")
        daemon.wait_ready()
        more = daemon.api.remember("After the move")["id"]
        assert {row["id"] for row in daemon.api.listed()} == {stored, more}
        assert daemon.stop() == 0


def test_under_load_no_write_after_the_removal_is_answered_200() -> None:
    with live_daemon() as daemon, load_on(daemon) as load:
        load.progress()
        remove_database(daemon)
        marked = daemon.api.post("/api/memory/remember", {"content": "Asked after the removal, under load"})
        load.stop(settle=False)
        assert marked.status == 503, marked.raw
        assert set(load.statuses) <= {UNKNOWN, 200, 503}, load.statuses
        assert ended(daemon) == 74


def test_a_start_without_the_removed_database_is_refused() -> None:
    with live_daemon() as daemon:
        daemon.api.remember("The only memory")
        shutil.copy(daemon.database, daemon.root / "kept.db")
        remove_database(daemon)
        assert ended(daemon) == 74
        code, said = daemon.refused_start()
        assert code == 78
        assert str(daemon.database) in said
        assert "`signet restore latest`" in said
        assert not daemon.database.exists(), "an empty database was made in place of the lost one"

        note = daemon.workspace / ".daemon" / "database"
        assert str(note) in said
        code, said = tool(daemon, "doctor")
        assert code == 1
        assert f"{daemon.database} is missing, but this workspace has had a database" in said
        assert "`signet restore latest`" in said
        note.unlink()
        daemon.database.with_name(f"{daemon.database.name}-wal").unlink(missing_ok=True)  # named too if it is there
        daemon.start()
        assert daemon.api.listed() == []


def test_a_removed_log_is_applied_to_the_database_and_no_acknowledged_write_is_lost() -> None:
    with live_daemon() as daemon:
        stored = [daemon.api.remember(f"Memory number {number}")["id"] for number in range(5)]
        remove_log(daemon)
        assert ended(daemon) == 74
        daemon.start()
        assert {row["id"] for row in daemon.api.listed()} == set(stored)


def test_a_moved_database_contains_every_acknowledged_write() -> None:
    with live_daemon() as daemon:
        stored = daemon.api.remember("Answered before the move")["id"]
        kept = daemon.root / "moved.db"
        daemon.database.rename(kept)
        assert ended(daemon) == 74
        log = daemon.database.with_name("memories.db-wal")
        assert not log.exists() or log.stat().st_size == 0, "a log would be applied to the next database at the path"
        kept.rename(daemon.database)
        daemon.start()
        assert [row["id"] for row in daemon.api.listed()] == [stored]


def test_a_moved_workspace_is_not_created_again_at_its_old_path(tmp_path: Path) -> None:
    with live_daemon() as daemon:
        stored = daemon.api.remember("In the workspace that moves")["id"]
        move_workspace(daemon)
        assert ended(daemon) == 74
        assert not daemon.workspace.exists()
        (daemon.root / "elsewhere").rename(daemon.workspace)
        daemon.start()
        assert [row["id"] for row in daemon.api.listed()] == [stored]


def test_a_restarted_writer_does_not_create_another_database() -> None:
    with live_daemon() as daemon:
        daemon.api.remember("Before")
        writer = daemon.children()["writer"]
        remove_database(daemon)
        os.kill(writer, signal.SIGKILL)
        assert ended(daemon) == 74
        assert not daemon.database.exists()


def test_a_daemon_without_its_daemon_directory_keeps_serving_and_creates_it_again() -> None:
    with live_daemon() as daemon:
        assert daemon.process is not None
        remove_tree(daemon.workspace / ".daemon")
        second = LiveDaemon(daemon.root, environ={"SIGNET_WORKSPACE": str(daemon.workspace)}, name="unused")
        code, said = second.refused_start()
        assert code == 73
        assert f"pid {daemon.process.pid}" in said
        body = {"content": "Stored all the same"}

        def is_stored() -> bool:  # refused while the processes that lost their sockets are replaced
            return daemon.api.post("/api/memory/remember", body, Idempotency_Key="one").status == 200

        def is_recalled() -> bool:
            answer = daemon.api.post("/api/memory/recall", {"query": "stored"})
            return answer.status == 200 and answer.json["meta"]["totalReturned"] == 1

        eventually(is_stored, what="a memory is stored")
        eventually(is_recalled, what="it is recalled")

        eventually((daemon.workspace / ".daemon" / "address").exists, what="the address is put back")
        assert (daemon.workspace / ".daemon" / "pid").read_text().strip() == str(daemon.process.pid)
        daemon.wait_ready()
        code, said = second.refused_start()
        assert (code, f"pid {daemon.process.pid}" in said) == (73, True)
        killed = daemon.kill("writer")
        eventually(lambda: daemon.every_process()["writer"]["pid"] not in {killed, None}, what="another writer")
        daemon.wait_ready()
        daemon.api.remember("Stored by the next writer")
        assert len(daemon.api.listed()) == 2


def test_a_removed_file_of_the_daemon_directory_is_created_again() -> None:
    with live_daemon() as daemon:
        assert daemon.process is not None
        for name in ("address", "pid", "lock"):
            removed = daemon.workspace / ".daemon" / name
            removed.unlink()
            eventually(removed.exists, within_s=30, what=f"{name} is put back")
            daemon.api.remember(f"Stored all the same without {name}")
            code, said = tool(daemon, "status")
            assert code == 0, (name, said)
        code, said = tool(daemon, "stop")
        assert code == 0, said
        daemon.process.wait(30)


def tool(daemon: LiveDaemon, *arguments: str) -> tuple[int, str]:
    """The exit code of a command of `signet`, and everything that it said."""
    ran = run_signet(daemon, *arguments)
    return ran.returncode, ran.stdout + ran.stderr


def test_a_second_daemon_on_a_hard_link_of_the_database_is_refused() -> None:
    with live_daemon() as daemon:
        stored = daemon.api.remember("Before the link")["id"]
        second = LiveDaemon(daemon.root, name="second")
        second.database.parent.mkdir(mode=0o700)
        second.database.hardlink_to(daemon.database)
        code, said = second.refused_start()
        assert code == 78
        assert str(second.database) in said
        assert "hard links" in said
        assert f"cp {second.database}" in said

        more = [daemon.api.remember(f"Beside the link, number {number}")["id"] for number in range(3)]
        eventually(lambda: linked(daemon), what="the warning")
        writer = daemon.kill("writer")
        eventually(lambda: daemon.every_process()["writer"]["pid"] not in {writer, None}, what="another writer")
        daemon.wait_ready()
        more.append(daemon.api.remember("By the next writer, beside the link")["id"])
        assert daemon.stop() == 0
        assert len(linked(daemon)) == 2, "once by each writer"

        code, said = daemon.refused_start()
        assert (code, str(daemon.database) in said) == (78, True)
        for command in (("doctor", "--deep"), ("restore", "latest", "--yes")):
            code, said = tool(daemon, *command)
            assert code != 0
            assert "hard links" in said, said
        own = daemon.root / "own.db"
        shutil.copy(daemon.database, own)
        own.rename(daemon.database)
        daemon.start()
        assert {row["id"] for row in daemon.api.listed()} == {stored, *more}


def linked(daemon: LiveDaemon) -> list[dict[str, Any]]:
    return [line for line in daemon.log() if line.get("event") == "database_has_hard_link"]


@pytest.mark.parametrize("left", ["the log", "a backup", "a database set aside"])
def test_remains_of_a_database_prevent_the_creation_of_an_empty_one(left: str) -> None:
    with live_daemon() as daemon:
        assert daemon.process is not None
        stored = daemon.api.remember("Answered before the crash")["id"]
        if left == "a backup":
            assert tool(daemon, "backup")[0] == 0
        daemon.kill_supervisor()
        daemon.gone()
        shutil.rmtree(daemon.workspace / ".daemon")
        log = daemon.database.with_name("memories.db-wal")
        kept = daemon.root / "kept"
        kept.mkdir()
        daemon.database.rename(kept / "memories.db")
        trace = {"the log": log, "a backup": daemon.database.parent / "backups"}.get(left)
        if left != "the log":
            log.rename(kept / log.name)
        if trace is None:
            trace = daemon.database.parent / "aside-1"
            kept.rename(trace)
            kept = trace
        before = log.read_bytes() if left == "the log" else b""
        assert left != "the log" or before
        code, said = daemon.refused_start()
        assert code == 78
        assert str(trace) in said
        assert f"move away or remove {trace}" in tool(daemon, "doctor")[1]
        assert not daemon.database.exists()
        if left == "the log":
            assert log.read_bytes() == before
        for file in list(kept.iterdir()):
            file.rename(daemon.database.parent / file.name)
        daemon.start()
        assert [row["id"] for row in daemon.api.listed()] == [stored]


def fifo(path: Path) -> None:
    os.mkfifo(path)


def directory(path: Path) -> None:
    path.mkdir()


def link(path: Path) -> None:
    path.symlink_to(path.with_name("elsewhere"))


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


PLACES = ("memory/memories.db", "memory/memories.db-wal", "memory/memories.db-shm", ".daemon/restore")


@pytest.mark.parametrize(
    ("name", "put"),
    [*((name, fifo) for name in PLACES), *zip(PLACES, (directory, link, unix_socket, directory), strict=True)],
)
def test_a_special_file_in_place_of_a_database_file_is_refused(name: str, put: Callable[[Path], None]) -> None:
    with live_daemon(started=False) as daemon:
        for folder in ("memory", ".daemon"):
            (daemon.workspace / folder).mkdir(mode=0o700)
        if name.endswith(("-wal", "-shm")):
            shutil.copy(GOLDEN, daemon.database)
        path = daemon.workspace / name
        put(path)
        code, said = daemon.refused_start()
        assert code == 78, said
        assert str(path) in said
        code, said = tool(daemon, "restore", str(GOLDEN), "--yes")
        assert code == 78, said
        assert str(path) in said
        assert os.path.lexists(path)


def test_an_invalid_file_name_is_refused_as_a_backup() -> None:
    with live_daemon(started=False) as daemon:
        code, said = tool(daemon, "restore", "n" * 300, "--yes")
        assert code == 78
        assert "does not exist" in said
        assert "Traceback" not in said
