"""Operator tasks: backup, restore, checks, upgrades, and permanent deletion."""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from signet_actors.store.sqlite.connect import open_copy, open_writer
from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon, run_signet

pytestmark = pytest.mark.system


@pytest.fixture
def daemon() -> Iterator[LiveDaemon]:
    with live_daemon() as daemon:
        yield daemon


def signet(daemon: LiveDaemon, *arguments: str, **more: str) -> tuple[int, Any, str]:
    """Exit code, the JSON that was printed, and what was said on standard error."""
    ran = run_signet(daemon, *arguments, "--json", environ=more)
    try:
        told = json.loads(ran.stdout)
    except ValueError:
        told = ran.stdout
    return ran.returncode, told, ran.stderr


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_backup_of_a_running_daemon_is_verified_private_and_can_be_restored(
    daemon: LiveDaemon, tmp_path: Path
) -> None:
    kept = daemon.api.remember("written before the backup")["id"]
    code, told, said = signet(daemon, "backup", "--to", str(tmp_path))
    assert (code, told["success"], told["memories"]) == (0, True, 1), said
    (inside,) = (daemon.workspace / "memory" / "backups").iterdir()
    assert (mode(inside), mode(inside.parent), mode(Path(told["path"]))) == (0o600, 0o700, 0o600)
    assert Path(told["path"]).read_bytes() == inside.read_bytes()
    assert daemon.api.get("/api/status").ok()["retention"]["lastBackupAt"] is not None
    lost = daemon.api.remember("written after the backup")["id"]

    code, _, said = signet(daemon, "restore", "latest", "--yes")
    assert (code, "signet stop" in said) == (73, True)
    assert daemon.stop() == 0
    code, told, said = signet(daemon, "restore", "latest")
    assert (code, told) == (1, "")
    assert "Of the 2 memories in the database, the backup lacks 1;" in said
    assert f"with {inside} (1 memory, made " in said
    assert "Nothing was changed." in said
    code, told, said = signet(daemon, "restore", "latest", "--yes")
    assert (code, told["memories_before"], told["memories_after"]) == (0, 2, 1), said
    assert (Path(told["aside"]) / "memories.db").is_file()

    daemon.start()
    assert [row["id"] for row in daemon.api.listed()] == [kept]
    assert daemon.api.recalled("written before the backup") == [kept]
    assert lost not in {row["id"] for row in daemon.api.listed()}


def test_old_backups_are_shown_and_deleted_only_after_a_yes(daemon: LiveDaemon) -> None:
    directory = daemon.workspace / "memory" / "backups"
    daemon.api.remember("in each backup")
    made = [signet(daemon, "backup")[1]["name"] for _ in range(3)]
    code, told, said = signet(daemon, "backup", "--prune")
    assert (code, told["pruned"], len(list(directory.iterdir()))) == (0, [], 4), said  # backup.keep is 7
    code, told, said = signet(daemon, "backup", "--prune", "--keep", "3")
    assert (code, told["pruned"], len(list(directory.iterdir()))) == (1, [], 5)
    assert [line.split()[0] for line in said.splitlines() if str(directory) in line] == [
        str(directory / name) for name in (made[1], made[0])
    ]
    assert "Delete these 2 backups?" in said
    code, told, said = signet(daemon, "backup", "--prune", "--keep", "3", "--yes")
    assert (code, told["pruned"], len(list(directory.iterdir()))) == (0, [made[2], made[1], made[0]], 3), said
    assert signet(daemon, "backup", "--keep", "3")[0] == 2


@contextlib.contextmanager
def stopped_command(daemon: LiveDaemon, point: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The command, and the pid of its tool, which has stopped at a sync point."""
    fired = daemon.root / "fired"
    environment = daemon.environment(SIGNET_SYNC_POINTS=f"{point}=stop:60000", SIGNET_SYNC_POINTS_FIRED=str(fired))
    command = subprocess.Popen([sys.executable, "-m", "signet_actors.cli", *arguments], env=environment)
    try:
        eventually(lambda: fired.exists() and fired.read_text().endswith("\n"), within_s=60, what="the point reached")
        yield command, int(fired.read_text().split()[2])
    finally:
        command.kill()
        command.wait(60)


def is_running(pid: int) -> bool:
    """Return whether the process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel kills a tool with its command only there")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_restore_whose_command_is_killed_replaces_nothing(daemon: LiveDaemon, number: signal.Signals) -> None:
    assert signet(daemon, "backup")[0] == 0
    lost = daemon.api.remember("written after the backup")["id"]
    assert daemon.stop() == 0
    with stopped_command(daemon, "restore.before_decision", "restore", "latest", "--yes") as (command, tool):
        command.send_signal(number)
        assert command.wait(60) == -number
        eventually(lambda: not is_running(tool), within_s=60, what="the end of the tool")
    daemon.start()
    assert [row["id"] for row in daemon.api.listed()] == [lost]
    assert not list(daemon.database.parent.glob("aside-*"))


def test_commands_during_a_restore_report_the_restore(daemon: LiveDaemon) -> None:
    assert signet(daemon, "backup")[0] == 0
    assert daemon.stop() == 0
    with stopped_command(daemon, "restore.copied", "restore", "latest", "--yes") as (_, tool):
        for arguments, expected in (
            (("stop",), 73),
            (("start",), 73),
            (("up",), 73),
            (("restore", "latest", "--yes"), 73),
            (("doctor", "--repair", "--yes"), 73),
            (("status",), 3),
            (("doctor",), 0),
        ):
            code, told, said = signet(daemon, *arguments)
            assert code == expected, (arguments, told, said)
            assert f"a restore (pid {tool}) is" in f"{told} {said}", (arguments, told, said)
            assert "daemon runs on" not in said.replace("no daemon runs on", ""), arguments
        refused = subprocess.run(
            daemon.command, env=daemon.environment(), capture_output=True, text=True, check=False, timeout=60
        )
        said = refused.stdout + refused.stderr
        assert (refused.returncode, f"a restore (pid {tool}) is running" in said) == (73, True), said
        assert "signet stop" not in said


def spoil(daemon: LiveDaemon, sql: str) -> None:
    """Something was changed behind the stopped daemon's back."""
    connection = open_writer(daemon.database, busy=lambda calls: False)  # which overwrites what it deletes
    try:
        connection.execute(sql)
    finally:
        connection.close()


def tear(path: Path) -> None:
    """Pages in the middle of the file are not what SQLite wrote; the first ones can still be read."""
    raw = bytearray(path.read_bytes())
    (root,) = _root_pages(path, "idx_memory_jobs_pending")
    raw[(root - 1) * 4096 : root * 4096] = b"\x5a" * 4096
    path.write_bytes(raw)


def _root_pages(path: Path, name: str) -> list[int]:
    connection = open_copy(path)
    try:
        return [page for (page,) in connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,))]
    finally:
        connection.close()


def test_a_damaged_database_is_read_but_not_written_until_it_is_restored(daemon: LiveDaemon) -> None:
    room = daemon.api
    kept = room.remember("the zebra crosses at noon")["id"]
    assert signet(daemon, "backup")[0] == 0
    assert daemon.stop() == 0
    tear(daemon.database)
    before = daemon.database.read_bytes()

    daemon.launch()
    eventually(lambda: health(daemon).get("status") == "degraded", within_s=60, what="degraded")
    assert "damaged" in health(daemon)["detail"]
    assert room.recalled("zebra") == [kept]
    refused = room.post("/api/memory/remember", {"content": "not now"}).refused(503, code="not_applied")
    assert "signet restore latest" in refused["error"]
    room.get("/health/ready").refused(503)
    assert "damaged" in room.get("/api/status").ok()["writer"]["damage"]
    code, told, _ = signet(daemon, "doctor", "--deep")
    assert code == 1
    assert any("damaged" in finding["detail"] for finding in told["findings"])
    assert daemon.actors()["writer"]["restarts"] == 0
    assert daemon.stop() == 0
    assert daemon.database.read_bytes() == before

    code, told, _ = signet(daemon, "doctor", "--deep")
    assert code == 1
    assert any("signet restore latest" in finding["remedy"] for finding in told["findings"])
    code, told, said = signet(daemon, "restore", "latest", "--yes")
    assert code == 0, (told, said)
    assert (Path(told["aside"]) / "memories.db").read_bytes() == before
    daemon.start()
    assert daemon.api.recalled("zebra") == [kept]
    daemon.api.remember("and written again")


def test_a_foreign_trigger_is_reported_and_never_run(daemon: LiveDaemon, tmp_path: Path) -> None:
    kept = daemon.api.remember("as it was stored")["id"]
    assert signet(daemon, "backup", "--to", str(tmp_path / "hostile.db"))[0] == 0
    assert daemon.stop() == 0
    planted = "CREATE TRIGGER planted AFTER INSERT ON memories BEGIN UPDATE memories SET content = 'rewritten'; END"
    connection = open_copy(tmp_path / "hostile.db")
    connection.execute(planted)
    connection.close()
    code, told, _ = signet(daemon, "restore", str(tmp_path / "hostile.db"), "--yes")
    assert code == 74
    assert any("trigger planted" in finding for finding in told["findings"])

    daemon.edit(planted)
    code, told, _ = signet(daemon, "doctor", "--deep")
    assert code == 1
    assert any("trigger planted" in finding["detail"] for finding in told["findings"])
    daemon.launch()
    eventually(lambda: health(daemon).get("status") == "degraded", within_s=60, what="degraded")
    refused = daemon.api.post("/api/memory/remember", {"content": "not now"}).refused(503, code="not_applied")
    assert "trigger planted" in refused["error"]
    assert daemon.api.memory(kept)["content"] == "as it was stored"
    assert daemon.stop() == 0
    assert signet(daemon, "restore", "latest", "--yes")[0] == 0
    daemon.start()
    daemon.api.remember("written again")
    assert daemon.api.memory(kept)["content"] == "as it was stored"


def health(daemon: LiveDaemon) -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError, http.client.HTTPException, KeyError):
        daemon.port = json.loads((daemon.workspace / ".daemon" / "address").read_bytes())["port"]
        return daemon.api.get("/health").json  # type: ignore[no-any-return]
    return {}


def test_an_unreadable_database_ends_the_start_with_the_remedy(daemon: LiveDaemon) -> None:
    daemon.api.remember("gone with the first page")
    assert signet(daemon, "backup")[0] == 0
    assert daemon.stop() == 0
    raw = bytearray(daemon.database.read_bytes())
    raw[100:4096] = b"\xff" * (4096 - 100)
    daemon.database.write_bytes(raw)
    code, said = daemon.refused_start()
    assert code == 78
    assert "signet doctor" in said
    assert "signet restore latest" in said
    assert signet(daemon, "restore", "latest", "--yes")[0] == 0
    daemon.start()
    assert len(daemon.api.listed()) == 1


def test_one_damaged_memory_is_reported_and_the_daemon_continues(daemon: LiveDaemon) -> None:
    memory_id = daemon.api.remember("a text that rots")["id"]
    daemon.api.remember("a text that stays")
    assert daemon.stop() == 0
    raw = bytearray(daemon.database.read_bytes())
    position = raw.index(b"a text that rots")
    raw[position + 5] ^= 1
    daemon.database.write_bytes(raw)
    daemon.start()
    code, told, _ = signet(daemon, "doctor", "--deep")
    assert code == 1
    assert any(memory_id in finding["detail"] for finding in told["findings"])
    eventually(lambda: health(daemon).get("status") == "degraded", within_s=30, what="degraded")
    assert any(memory_id in text for text in daemon.api.get("/api/status").ok()["retention"]["scrubFindings"])
    daemon.api.remember("writes go on")
    code, told, _ = signet(daemon, "backup")
    assert (code, told["success"]) == (1, False)
    assert not list((daemon.workspace / "memory" / "backups").glob("*.db"))


def test_damage_not_found_at_start_is_found_by_the_scrub_and_stops_writes(daemon: LiveDaemon) -> None:
    daemon.api.remember("whose source is a kestrel", sourceId="kestrel-source")
    assert daemon.stop() == 0
    (root,) = _root_pages(daemon.database, "idx_memories_source_id")
    raw = bytearray(daemon.database.read_bytes())
    raw[raw.index(b"kestrel-source", (root - 1) * 4096, root * 4096)] ^= 1
    daemon.database.write_bytes(raw)
    daemon.start()
    code, told, _ = signet(daemon, "doctor", "--deep")
    assert code == 1
    assert any("signet restore latest" in finding["remedy"] for finding in told["findings"])
    daemon.api.post("/api/memory/remember", {"content": "not now"}).refused(503, code="not_applied")
    assert len(daemon.api.listed()) == 1
    assert daemon.stop() == 0
    daemon.launch()
    eventually(lambda: health(daemon).get("status") == "degraded", within_s=60, what="degraded again")
    assert "damaged" in health(daemon)["detail"]


def test_damaged_indexes_are_rebuilt_on_demand(daemon: LiveDaemon) -> None:
    kept = daemon.api.remember("the index forgets the heron", tags="bird")["id"]
    assert daemon.stop() == 0
    spoil(daemon, "INSERT INTO memories_fts (memories_fts) VALUES ('delete-all'); DELETE FROM memory_tags")
    code, told, _ = signet(daemon, "doctor", "--deep")
    assert code == 1
    assert any("--repair" in finding["remedy"] for finding in told["findings"])
    code, told, said = signet(daemon, "doctor", "--repair", "--yes")
    assert code == 0, (told, said)
    assert any("repaired" in finding["detail"] for finding in told["findings"])
    daemon.start()
    assert daemon.api.recalled("heron") == [kept]
    assert daemon.api.recalled("heron", tags="bird") == [kept]


CANARY = "xyloquartz"


def holders(daemon: LiveDaemon) -> list[str]:
    """Every file of the workspace, except backups, that holds the canary."""
    return [
        str(path.relative_to(daemon.workspace))
        for path in sorted(daemon.workspace.rglob("*"))
        if path.is_file() and "backups" not in path.parts and CANARY.encode() in path.read_bytes().lower()
    ]


def test_a_purged_text_is_in_no_file_of_the_workspace(daemon: LiveDaemon) -> None:
    room = daemon.api
    for number in range(40):
        room.remember(f"an ordinary note number {number}")
    memory_id = room.remember(f"the {CANARY} is in the drawer", tags=f"{CANARY},t")["id"]
    room.request("PATCH", f"/api/memory/{memory_id}", {"content": f"the {CANARY} moved", "reason": "r"}).ok()
    room.recall(CANARY)
    room.request("DELETE", f"/api/memory/{memory_id}?reason=r").ok()
    assert signet(daemon, "backup")[0] == 0
    assert holders(daemon) != []
    assert daemon.stop() == 0
    spoil(daemon, f"UPDATE memories SET deleted_at = '2020-01-01T00:00:00.000Z' WHERE id = '{memory_id}'")
    daemon.start()
    room.post("/api/repair/retention-sweep", {"confirmClock": True}).ok()
    room.get(f"/api/memory/{memory_id}", include_deleted="true").refused(404)
    eventually(lambda: holders(daemon) == [], within_s=30, what=f"nothing left ({holders(daemon)})")

    code, told, _ = signet(daemon, "backup", "--prune", "--keep", "1", "--yes")
    assert (code, len(told["pruned"])) == (0, 1)
    assert not any(CANARY.encode() in path.read_bytes() for path in daemon.workspace.rglob("*") if path.is_file())
    assert daemon.stop() == 0
    assert holders(daemon) == []


def test_a_text_erased_during_the_check_of_a_backup_is_not_in_the_next_backup() -> None:
    with live_daemon(environ={"SIGNET_SYNC_POINTS": "backup.before_rename=sleep:3000"}) as daemon:
        erased = [daemon.api.remember(f"the {CANARY} is in the {place}")["id"] for place in ("drawer", "hall")]
        older = daemon.api.post("/api/repair/backup").ok()["running"]
        eventually(
            lambda: daemon.api.get("/api/repair/backup").ok()["phase"] == "verifying", within_s=30, what="a check"
        )
        assert signet(daemon, "forget", *erased, "--permanently", "--yes", SIGNET_SYNC_POINTS="")[0] == 0
        code, told, said = signet(daemon, "backup", "--prune", "--keep", "1", "--yes", SIGNET_SYNC_POINTS="")
        assert (code, told["pruned"]) == (0, [older]), (told, said)
        assert not any(CANARY.encode() in path.read_bytes() for path in daemon.workspace.rglob("*.db"))


def test_a_writer_killed_during_a_backup_makes_it_after_its_restart() -> None:
    with live_daemon(environ={"SIGNET_SYNC_POINTS": "writer.mid_backup=kill@3/1"}) as daemon:
        ids = [daemon.api.remember(f"memory number {number}")["id"] for number in range(20)]
        code, told, said = signet(daemon, "backup", SIGNET_SYNC_POINTS="")
        assert (code, told["memories"]) == (0, 20), said
        assert daemon.actors()["writer"]["restarts"] == 1
        assert {row["id"] for row in daemon.api.listed()} == set(ids)
        names = [path.name for path in (daemon.workspace / "memory" / "backups").iterdir()]
        assert names == [told["name"]]


def test_a_verification_killed_before_the_rename_leaves_no_backup() -> None:
    with live_daemon(environ={"SIGNET_SYNC_POINTS": "backup.before_rename=kill"}) as daemon:
        daemon.api.remember("kept")
        code, told, _ = signet(daemon, "backup", SIGNET_SYNC_POINTS="")
        assert (code, "the check of the copy failed" in told["message"]) == (1, True)
        assert not list((daemon.workspace / "memory" / "backups").glob("*.db"))
        problem = daemon.api.get("/api/status").ok()["retention"]["backupProblem"]
        told = [
            each
            for each in signet(daemon, "doctor", SIGNET_SYNC_POINTS="")[1]["findings"]
            if each["subject"] == "backup"
        ]
        assert [(each["state"], problem in each["detail"]) for each in told] == [("warn", True)]


def test_the_check_of_doctor_writes_nothing(daemon: LiveDaemon) -> None:
    daemon.api.remember("written before the backup")
    assert signet(daemon, "backup")[0] == 0
    assert daemon.stop() == 0
    assert signet(daemon, "restore", "latest", "--yes")[0] == 0
    before = {path.name: path.read_bytes() for path in daemon.database.parent.glob("memories.db*")}
    for options in ((), ("--deep",)):
        assert signet(daemon, "doctor", *options)[0] == 0
    assert {path.name: path.read_bytes() for path in daemon.database.parent.glob("memories.db*")} == before


def test_the_newest_backup_is_not_the_one_whose_name_is_in_the_future(daemon: LiveDaemon) -> None:
    daemon.api.remember("in the backup of a jumped clock")
    assert signet(daemon, "backup")[0] == 0
    (made,) = (daemon.workspace / "memory" / "backups").iterdir()
    ahead = made.rename(made.with_name(f"memories-20991231T000000000Z-{made.name.split('-', 2)[2]}"))
    daemon.api.remember("in the newest backup")
    assert signet(daemon, "backup")[0] == 0
    assert daemon.stop() == 0
    _, told, _ = signet(daemon, "doctor")
    (found,) = [finding for finding in told["findings"] if finding["subject"] == "backup"]
    assert (found["state"], ahead.name in found["detail"]) == ("warn", True)
    code, told, _ = signet(daemon, "restore", "latest", "--yes")
    assert (code, told["memories_after"], told["ahead"]) == (0, 2, [ahead.name])
    code, told, _ = signet(daemon, "restore", ahead.name, "--yes")
    assert (code, told["memories_after"], told.get("age_ms")) == (0, 1, None)


def test_the_database_of_a_running_daemon_is_not_taken_for_a_backup(daemon: LiveDaemon) -> None:
    daemon.api.remember("in use")
    with live_daemon(started=False) as other:
        code, told, _ = signet(other, "restore", str(daemon.database), "--yes")
        assert (code, "a running daemon uses" in told["findings"][0]) == (73, True)
        assert not other.database.exists()
        assert daemon.stop() == 0
        code, told, _ = signet(other, "restore", str(daemon.database), "--yes")
        assert (code, told["memories_after"], told.get("aside")) == (0, 1, None)
        assert not list(other.database.parent.glob("aside-*"))
