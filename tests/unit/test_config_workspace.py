"""A workspace is private, or it is not used."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from signet_actors.config.workspace import Workspace
from signet_actors.errors import ConfigError


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def permissive_umask() -> object:
    before = os.umask(0)
    yield
    os.umask(before)


def test_the_paths_are_those_of_the_documented_layout() -> None:
    workspace = Workspace(Path("/w"))
    assert workspace.config_file == Path("/w/agent.yaml")
    assert workspace.database == Path("/w/memory/memories.db")
    assert workspace.daemon_dir == Path("/w/.daemon")
    assert workspace.pid_file == Path("/w/.daemon/pid")
    assert workspace.lock_file == Path("/w/.daemon/lock")
    assert workspace.secret_file == Path("/w/.daemon/secret")
    assert workspace.log_dir == Path("/w/.daemon/logs")
    assert workspace.index_dir == Path("/w/.daemon/index")
    assert workspace.run_dir == Path("/w/.daemon/run")
    assert workspace.agents_dir == Path("/w/agents")


@pytest.mark.usefixtures("permissive_umask")
def test_everything_created_is_private(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "deep" / "below" / "root")
    workspace.ensure()
    made = [
        workspace.root,
        workspace.memory_dir,
        workspace.daemon_dir,
        workspace.log_dir,
        workspace.index_dir,
        workspace.run_dir,
    ]
    assert {mode(path) for path in made} == {0o700}


def test_a_second_call_changes_nothing(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "root")
    workspace.ensure()
    workspace.database.write_bytes(b"kept")
    workspace.ensure()
    assert workspace.database.read_bytes() == b"kept"


def test_directories_open_to_others_are_made_private(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "root")
    workspace.ensure()
    for path in (workspace.root, workspace.memory_dir, workspace.daemon_dir):
        path.chmod(0o755)
    workspace.ensure()
    assert {mode(path) for path in (workspace.root, workspace.memory_dir, workspace.daemon_dir)} == {0o700}


@pytest.mark.parametrize("name", ["memory", ".daemon", ".daemon/logs", ".daemon/index", ".daemon/run"])
def test_a_link_in_place_of_a_directory_of_the_daemon_is_refused(tmp_path: Path, name: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    link = tmp_path / "root" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere)
    with pytest.raises(ConfigError, match="is a symbolic link"):
        Workspace(tmp_path / "root").ensure()
    assert mode(elsewhere) == 0o755
    assert list(elsewhere.iterdir()) == []


def test_the_root_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "root").symlink_to(tmp_path / "dotfiles")
    Workspace(tmp_path / "root").ensure()
    assert (tmp_path / "dotfiles" / ".daemon" / "run").is_dir()


@pytest.mark.parametrize("name", [".", "memory", ".daemon"])
def test_a_directory_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    workspace = Workspace(tmp_path / "root")
    workspace.ensure()
    foreign = (workspace.root / name).stat().st_ino
    real_fstat = os.fstat

    def fstat(descriptor: int) -> os.stat_result:
        status = real_fstat(descriptor)
        if status.st_ino != foreign:
            return status
        fields = list(status)
        fields[stat.ST_UID] = os.geteuid() + 1
        return os.stat_result(fields)

    monkeypatch.setattr("signet_actors.config.workspace.os.fstat", fstat)
    with pytest.raises(ConfigError, match="belongs to another user"):
        workspace.ensure()


@pytest.mark.parametrize("path", ["/", "/tmp", "/etc", "/usr/../etc"])
def test_a_system_directory_is_refused_and_not_changed(path: str) -> None:
    before = mode(Path(path))
    with pytest.raises(ConfigError, match="is a system directory"):
        Workspace(Path(path)).ensure()
    assert mode(Path(path)) == before


@pytest.mark.parametrize("name", [".", "memory", ".daemon", ".daemon/run"])
def test_a_file_in_place_of_a_directory_is_reported(tmp_path: Path, name: str) -> None:
    obstacle = tmp_path / "root" / name
    obstacle.parent.mkdir(parents=True, exist_ok=True)
    obstacle.write_text("in the way")
    with pytest.raises(ConfigError, match=str(tmp_path / "root")):
        Workspace(tmp_path / "root").ensure()
