"""What an operator does: back up, restore, check, upgrade, and be sure that what was removed is gone."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.live_daemon import LiveDaemon, live_daemon

pytestmark = pytest.mark.system


@pytest.fixture
def daemon() -> Iterator[LiveDaemon]:
    with live_daemon() as daemon:
        yield daemon


def signet(daemon: LiveDaemon, *arguments: str, **more: str) -> tuple[int, Any, str]:
    """Exit code, the JSON that was printed, and what was said on standard error."""
    ran = subprocess.run(
        [sys.executable, "-m", "signet_actors.cli", *arguments, "--json"],
        env=daemon.environment(**more),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
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
    code, told, said = signet(daemon, "restore", "latest", "--yes")
    assert (code, told["memories_before"], told["memories_after"]) == (0, 2, 1), said
    assert (Path(told["aside"]) / "memories.db").is_file()

    daemon.start()
    assert [row["id"] for row in daemon.api.listed()] == [kept]
    assert daemon.api.recalled("written before the backup") == [kept]
    assert lost not in {row["id"] for row in daemon.api.listed()}
