"""Which directories are one project."""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
import unicodedata
from pathlib import Path

import pytest

from signet_actors.config.schema import JoinedProject, ProjectsConfig
from signet_actors.gateway import projects
from signet_actors.gateway.projects import Place, Projects, main_working_tree
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


def places(settings: ProjectsConfig, *directories: Path | str) -> list[Place]:
    async def ask() -> list[Place]:
        known = Projects(SystemClock(), settings)
        return [await known.place_of(str(directory)) for directory in directories]

    return asyncio.run(ask())


def projects_of(settings: ProjectsConfig, *directories: Path | str) -> list[str]:
    return [place.project for place in places(settings, *directories)]


def test_clones_are_one_project_if_the_configuration_joins_them(repository: Path, tmp_path: Path) -> None:
    clone, tree = tmp_path / "clone", tmp_path / "tree-of-the-clone"
    git(tmp_path, "clone", "--quiet", str(repository), str(clone))
    git(clone, "worktree", "add", "--quiet", str(tree))
    (clone / "src").mkdir()
    joined = ProjectsConfig(joined=(JoinedProject(str(clone), str(repository / "src")),))
    assert projects_of(joined, clone, clone / "src", tree, repository) == [str(repository)] * 4
    assert projects_of(joined, tmp_path / "clone-2") == [str(tmp_path / "clone-2")]
    assert projects_of(ProjectsConfig(), clone) == [str(clone)]


def test_the_deepest_joined_directory_counts_and_its_project_is_not_joined_again(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(repository.parent))
    rows = {"~/shop": "~/elsewhere", "~/shop/src": "parts", "~/elsewhere/": "~/third"}
    for identity in ("repository", "path"):
        joined = ProjectsConfig(identity=identity, joined=tuple(JoinedProject(*row) for row in rows.items()))  # type: ignore[arg-type]
        found = projects_of(joined, repository, repository / "src" / "deep")
        assert found == [str(repository.parent / "elsewhere"), "parts"]


def test_only_chosen_directories_and_their_worktrees_are_chosen(repository: Path, tmp_path: Path) -> None:
    tree, link, other = tmp_path / "feature", tmp_path / "link", tmp_path / "shop-2"
    git(repository, "worktree", "add", "--quiet", str(tree))
    link.symlink_to(repository, target_is_directory=True)
    other.mkdir()
    chosen = ProjectsConfig(only=(f"{repository}/",))
    found = places(chosen, repository, repository / "src", tree, link / "src", other, tmp_path, "shop", "/missing")
    assert [place.is_chosen for place in found] == [True, True, True, True, False, False, False, False]
    by_link = places(ProjectsConfig(identity="path", only=(str(link),)), repository / "src", link, other)
    assert [place.is_chosen for place in by_link] == [True, True, False]
    part = places(ProjectsConfig(only=(str(repository / "src"),)), repository / "src", repository)
    assert [place.is_chosen for place in part] == [True, False]
    assert all(place.is_chosen for place in places(ProjectsConfig(), other, "shop"))


def test_while_the_file_system_hangs_the_names_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()
    monkeypatch.setattr(projects, "main_working_tree", lambda _directory: str(released.wait(30)))
    monkeypatch.setattr(projects, "WAIT_S", 0.05)
    settings = ProjectsConfig(only=("/net/shop",), joined=(JoinedProject("/net/shop/a", "b"),))
    try:
        found = places(settings, "/net/other", "/net/shop/src", "/net/shop/a")
    finally:
        released.set()
    assert found == [Place("/net/other", False), Place("/net/shop/src", True), Place("b", True)]


def test_a_changed_configuration_counts_at_once(repository: Path) -> None:
    async def ask() -> None:
        known = Projects(SystemClock())
        assert await known.place_of(str(repository)) == Place(str(repository), True)
        known.configure(ProjectsConfig(only=("/elsewhere",)))
        assert await known.place_of(str(repository)) == Place(str(repository), False)

    asyncio.run(ask())


def test_a_directory_is_one_project_however_it_is_spelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row: how the same directory is written. No row may be the same as another one."""
    top = Path(os.path.realpath(tmp_path))
    monkeypatch.setenv("HOME", str(top))
    names = ("ferry", "Ferry", "ferry-2", "ferry.old", "café", "two words", "ferry~", "..ferry", "日本", "q%2F")
    for name in names:
        (top / name / "sub").mkdir(parents=True)
    (top / "link").symlink_to(top / "ferry", target_is_directory=True)
    (top / "chain").symlink_to("link")
    decomposed = unicodedata.normalize("NFD", "café")
    spellings = {
        name: [
            *(f"{top}/{name}", f"{top}/{name}/", f"{top}/./{name}", f"{top}//{name}///", f"~/{name}", f"~//{name}/"),
            *(f"{top}/{name}/sub/..", f"/{top}/{name}", f"{top}/{name}/.", f"{top}/ferry/../{name}"),
            f"{top}/{name}/sub/../",
        ]
        for name in names
    }
    spellings["ferry"] += [f"{top}/link", f"{top}/chain/", f"{top}/link/sub/..", f"{top}/link/../ferry", "~/link"]
    spellings["café"] += [f"{top}/{decomposed}", f"{top}/{decomposed}/"]
    spellings["nowhere"] = [f"{top}/a/b", f"{top}/a/b/", f"{top}/a/./b", f"{top}/a//b", f"{top}/a/c/../b", "~/a/b"]
    spellings["gone below a link"] = [f"{top}/ferry/gone", f"{top}/link/gone", f"{top}/chain/gone/"]
    spellings["missing"] = ["/no/such/\u00e9", "/no/such/e\u0301", "/no/such/e\u0301/"]
    spellings["windows"] = [
        "C:\\Users\\me\\shop",
        "c:\\Users\\me\\shop\\",
        "c:/Users/me/shop/",
        "C:\\Users\\.\\me\\\\shop",
    ]
    spellings["windows"] += ["\\\\?\\c:\\Users\\me\\shop", "C:\\Users\\you\\..\\me\\shop"]
    spellings["another drive"] = ["D:\\Users\\me\\shop", "d:\\Users\\me\\shop\\"]
    spellings["a whole drive"] = ["E:\\", "e:\\", "e:/", "E:\\."]
    spellings["a share"] = [
        "\\\\nas\\work\\shop",
        "\\\\nas\\work\\shop\\",
        "\\\\nas\\work\\.\\shop",
        "\\\\?\\UNC\\nas\\work\\shop",
    ]
    spellings["a whole share"] = ["\\\\nas\\work", "\\\\nas\\work\\"]
    spellings["a name"] = ["billing", "billing/"]
    spellings["another name"] = ["Billing"]
    spellings["a name with a slash"] = ["org/billing", "org/billing/"]
    spellings["an address"] = ["https://example.org/billing", "https://example.org/billing/"]
    spellings["an accent"] = ["Caf\u00e9", "Cafe\u0301"]
    spellings["the root"] = ["/", "//", "/.", "/.."]
    found = {}
    for identity in ("repository", "path"):
        settings = ProjectsConfig(identity=identity)  # type: ignore[arg-type]
        found = {of: set(projects_of(settings, *written)) for of, written in spellings.items()}
        assert {of: projects for of, projects in found.items() if len(projects) != 1} == {}
        assert len(set.union(*found.values())) == len(spellings)
    assert found["ferry"] == {f"{top}/ferry"}
    assert found["windows"] == {"C:\\Users\\me\\shop"}
    assert found["a share"] == {"\\\\nas\\work\\shop"}


def test_what_is_gone_from_a_repository_still_belongs_to_it(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ProjectsConfig()
    for gone in (
        ".claude/worktrees/gone",
        "src/deep/gone",
        "gone/",
        "a/b/c/../d",
        "README.md",
        "src/./gone",
        "src//gone",
    ):
        assert projects_of(settings, f"{repository}/{gone}") == [str(repository)], gone
    beside = repository.parent / "beside"
    assert projects_of(settings, beside / "gone", f"{repository}-2") == [str(beside / "gone"), f"{repository}-2"]
    monkeypatch.setenv("HOME", str(repository))
    assert projects_of(settings, repository / "gone") == [str(repository / "gone")]
    (repository.parent / "home").symlink_to(repository, target_is_directory=True)
    monkeypatch.setenv("HOME", str(repository.parent / "home"))
    assert projects_of(settings, "~/src/gone") == [str(repository / "src" / "gone")]


def test_the_configuration_means_a_directory_in_any_spelling(tmp_path: Path) -> None:
    (tmp_path / "cafe\u0301").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "cafe\u0301", target_is_directory=True)
    for written in ("caf\u00e9", "cafe\u0301/", "link", "./link/"):
        settings = ProjectsConfig(
            only=(f"{tmp_path}/{written}",), joined=(JoinedProject(f"{tmp_path}/{written}", "x"),)
        )
        for asked in ("caf\u00e9", "cafe\u0301", "link/", "link/sub"):
            assert places(settings, f"{tmp_path}/{asked}") == [Place("x", True)], (written, asked)
