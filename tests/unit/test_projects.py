"""Which directories are one project."""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
from pathlib import Path

import pytest

from signet_actors.gateway import projects
from signet_actors.gateway.projects import Projects, main_working_tree
from signet_actors.runtime.clock import SystemClock


def git(where: Path, *arguments: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *who, *arguments], cwd=where, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    made = tmp_path / "shop"
    (made / "src" / "deep").mkdir(parents=True)
    git(made, "init", "--quiet")
    git(made, "commit", "--quiet", "--allow-empty", "--message", "first")
    return made


def test_a_subdirectory_belongs_to_its_repository(repository: Path) -> None:
    assert main_working_tree(str(repository / "src" / "deep")) == str(repository)
    assert main_working_tree(str(repository)) == str(repository)


def test_a_worktree_belongs_to_its_repository(repository: Path) -> None:
    tree = repository.parent / "feature"
    git(repository, "worktree", "add", "--quiet", str(tree))
    (tree / "src").mkdir()
    assert main_working_tree(str(tree)) == str(repository)
    assert main_working_tree(str(tree / "src")) == str(repository)


def test_a_worktree_of_a_bare_repository_belongs_to_it(repository: Path) -> None:
    bare, tree = repository.parent / "bare.git", repository.parent / "tree"
    git(repository, "clone", "--quiet", "--bare", ".", str(bare))
    git(bare, "worktree", "add", "--quiet", str(tree))
    assert main_working_tree(str(tree)) == str(bare)


def test_a_submodule_is_a_project_of_its_own(repository: Path) -> None:
    other = repository.parent / "other"
    git(repository.parent, "clone", "--quiet", str(repository), str(other))
    git(repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "part")
    assert (repository / "part" / ".git").is_file()
    assert main_working_tree(str(repository / "part")) == str(repository / "part")


def test_a_repository_in_the_home_directory_does_not_count(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(repository))
    assert main_working_tree(str(repository / "src")) == str(repository / "src")


@pytest.mark.parametrize("text", ["gitdir: ", "", "gitdir: /nowhere/at/all", "\0", "x" * 10_000])
def test_a_broken_git_file_makes_its_directory_a_project(tmp_path: Path, text: str) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / ".git").write_text(text)
    assert main_working_tree(str(tmp_path / "odd")) == str(tmp_path / "odd")


def claim(directory: Path, common: Path, *, back: Path | None = None) -> None:
    """Make ``directory`` look like a worktree of the repository ``common``, by files of its own."""
    own = directory / "own"
    own.mkdir(parents=True)
    (own / "commondir").write_text(f"{common}\n")
    (own / "gitdir").write_text(f"{back or directory / '.git'}\n")
    (directory / ".git").write_text("gitdir: own\n")


def test_a_directory_that_its_repository_does_not_name_is_a_project_of_its_own(repository: Path) -> None:
    unpacked, copied = repository.parent / "unpacked", repository.parent / "copied"
    claim(unpacked, repository / ".git")
    assert main_working_tree(str(unpacked)) == str(unpacked)
    git(repository, "worktree", "add", "--quiet", str(repository.parent / "feature"))
    copied.mkdir()
    (copied / ".git").write_text((repository.parent / "feature" / ".git").read_text())
    assert main_working_tree(str(copied)) == str(copied)


def test_a_worktree_with_relative_paths_belongs_to_its_repository(repository: Path) -> None:
    tree = repository.parent / "feature"
    git(repository, "worktree", "add", "--quiet", str(tree))
    (tree / ".git").write_text("gitdir: ../shop/.git/worktrees/feature\n")
    (repository / ".git" / "worktrees" / "feature" / "gitdir").write_text("../../../../feature/.git\n")
    assert main_working_tree(str(tree)) == str(repository)


@pytest.mark.parametrize("name", [".git", "own/commondir", "own/gitdir"])
def test_a_fifo_in_place_of_a_file_of_git_is_not_waited_for(repository: Path, name: str) -> None:
    odd = repository.parent / "odd"
    claim(odd, repository / ".git")
    (odd / name).unlink()
    os.mkfifo(odd / name)
    assert main_working_tree(str(odd)) == str(odd)


@pytest.mark.parametrize("name", ["commondir", "gitdir"])
def test_a_path_that_no_file_can_have_is_ignored(repository: Path, name: str) -> None:
    odd = repository.parent / "odd"
    claim(odd, repository / ".git")
    (odd / "own" / name).write_bytes(b"/a\0b\n")
    assert main_working_tree(str(odd)) == str(odd)


def test_other_names_are_kept(tmp_path: Path) -> None:
    async def ask() -> None:
        known = Projects(SystemClock())
        for name in ("billing", "src/deep", str(tmp_path), str(tmp_path / "missing"), "/a\0b", "C:\\shop"):
            assert await known.project_of(name) == name

    asyncio.run(ask())


def test_a_file_system_that_hangs_holds_requests_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    released, asked = threading.Event(), []

    def hang(directory: str) -> str:
        asked.append(directory)
        released.wait(30)
        return "never seen"

    monkeypatch.setattr(projects, "main_working_tree", hang)
    monkeypatch.setattr(projects, "WAIT_S", 0.05)

    async def ask() -> None:
        known = Projects(SystemClock())
        try:
            for number in range(20):
                assert await known.project_of(f"/net/shop-{number}") == f"/net/shop-{number}"
        finally:
            released.set()

    asyncio.run(ask())
    assert asked == ["/net/shop-0"]
