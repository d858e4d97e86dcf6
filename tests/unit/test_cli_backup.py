"""Where ``signet backup --to`` puts the copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    from tests.support.scripted_daemon import ScriptedDaemon

NAME = "memories-20260221T100000Z-v1.db"


@pytest.fixture
def made(daemon: ScriptedDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """The content of the backup that the daemon makes."""
    monkeypatch.setenv("SIGNET_WORKSPACE", str(tmp_path / "workspace"))
    backups = tmp_path / "workspace" / "memory" / "backups"
    backups.mkdir(parents=True)
    (backups / NAME).write_bytes(b"the backup")
    state = {"directory": str(backups), "backups": [], "queued": False}
    daemon.on("POST", "/api/repair/backup", {**state, "running": NAME, "last": None})
    last = {"name": NAME, "success": True, "memories": 1}
    daemon.on("GET", "/api/repair/backup", {**state, "running": None, "last": last})
    return b"the backup"


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_copy_goes_into_an_existing_directory(
    made: bytes, signet: Callable[..., Result], tmp_path: Path, slash: str
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    result = signet("backup", "--to", f"{disk}{slash}")
    assert (result.exit_code, result.stdout) == (0, f"{disk / NAME}\n"), result.stderr
    assert (disk / NAME).read_bytes() == made


def test_a_copy_goes_to_a_file_that_is_named(made: bytes, signet: Callable[..., Result], tmp_path: Path) -> None:
    assert signet("backup", "--to", str(tmp_path / "copy.db")).exit_code == 0
    assert (tmp_path / "copy.db").read_bytes() == made


def test_a_copy_replaces_a_backup_and_an_empty_file_and_nothing_else(
    made: bytes, daemon: ScriptedDaemon, signet: Callable[..., Result], tmp_path: Path
) -> None:
    for name, content in (("old.db", b"SQLite format 3\0 and so on"), ("empty", b"")):
        (tmp_path / name).write_bytes(content)
        assert signet("backup", "--to", str(tmp_path / name)).exit_code == 0
        assert (tmp_path / name).read_bytes() == made
    asked = len(daemon.asked)
    for name, content in (("agent.yaml", b"name: anna\n"), ("notes.md", b"# Notes"), ("x", b"S")):
        (tmp_path / name).write_bytes(content)
        result = signet("backup", "--to", str(tmp_path / name))
        assert (result.exit_code, "is no backup" in result.stderr) == (2, True), result.stderr
        assert (tmp_path / name).read_bytes() == content
    assert len(daemon.asked) == asked


@pytest.mark.parametrize("target", ["disk/", "disk/signet", "disk/signet/"])
def test_no_directory_is_made_for_a_copy_because_its_disk_may_not_be_mounted(
    made: bytes, daemon: ScriptedDaemon, signet: Callable[..., Result], tmp_path: Path, target: str
) -> None:
    result = signet("backup", "--to", f"{tmp_path}/{target}")
    assert (result.exit_code, "there is no directory" in result.stderr) == (2, True), result.stderr
    assert daemon.asked == []
    assert not (tmp_path / "disk").exists()
