"""Memories as Markdown: exported, edited and imported again, with live daemons."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from signet_actors.cli.main import cli
from tests.support.live_daemon import LiveDaemon, live_daemon

pytestmark = pytest.mark.system
AGENTS = [f"agent-{number}" for number in range(9)]
"""One for each test; none reads what another one stores."""
ISOLATED = "agents:\n  roster:\n" + "".join(f"    - {{name: {name}, read_policy: isolated}}\n" for name in AGENTS)


@pytest.fixture(scope="module")
def daemon() -> Iterator[LiveDaemon]:
    with live_daemon(config=ISOLATED) as daemon:
        yield daemon


class Shell:
    """Commands of one agent, with a cache of its own."""

    def __init__(self, daemon: LiveDaemon, agent: str, cache: Path) -> None:
        self.daemon, self.agent, self.cache = daemon, agent, cache
        self.api = daemon.agent(agent)

    def run(self, *arguments: str, exit_code: int = 0) -> Any:
        address = ["--url", f"http://127.0.0.1:{self.daemon.port}", "--agent", self.agent, "--json"]
        result = CliRunner(env={"XDG_CACHE_HOME": str(self.cache)}).invoke(cli, [*address, *arguments])
        assert result.exit_code == exit_code, (result.stdout, result.stderr)
        return json.loads(result.stdout)

    def exported(self) -> list[str]:
        address = ["--url", f"http://127.0.0.1:{self.daemon.port}", "--agent", self.agent]
        return sorted(CliRunner().invoke(cli, [*address, "export", "-"]).stdout.splitlines())

    def import_(self, directory: Path, *, exit_code: int = 0) -> dict[str, Any]:
        told: dict[str, Any] = self.run("import", str(directory), "--from", "signet-markdown", exit_code=exit_code)
        return told


@pytest.fixture
def shell(daemon: LiveDaemon, tmp_path: Path) -> Shell:
    return Shell(daemon, AGENTS.pop(), tmp_path / "cache")


def file_of(directory: Path, word: str) -> Path:
    [path] = [path for path in directory.rglob("*.md") if word in path.read_text(encoding="utf-8")]
    return path


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_an_empty_daemon_has_the_same_memories_after_an_import(shell: Shell, tmp_path: Path) -> None:
    shell.api.remember("critical: [Ops,Ünïcode]: the pager is on line two 🚒", project="p", who="alice")
    shell.api.remember("私は東京に住んでいます", type="fact", importance=0.25, occurredAt="2024-02-29")
    shell.api.remember("only hers", visibility="private", sourceType="note", sourceId="n1", idempotencyKey="k1")
    shell.api.remember("in a room", scope="room-1", tags=["a", "b"], validFrom="2020-01-01", validUntil="2021-01-01")
    shell.api.remember("---\nid: 5\n---\n\n# A heading\n\n    code")
    shell.api.remember("Never push to main")
    shell.api.remember("The pager is loud", type="rule")
    directory = tmp_path / "memories"
    assert shell.run("export", "--markdown", str(directory))["exported"] == 7
    assert len(list(directory.rglob("*.md"))) == 7
    with live_daemon(config=ISOLATED) as other:
        there = Shell(other, shell.agent, tmp_path / "cache")
        assert there.import_(directory)["imported"] == 7
        assert there.exported() == shell.exported()
        again = there.import_(directory)
        assert (again["imported"], again["changed"], again["unchanged"]) == (0, 0, 7)


def test_an_edited_file_changes_its_memory_and_can_be_edited_again(shell: Shell, tmp_path: Path) -> None:
    memory = shell.api.remember("The ferry leaves at nine", tags=["timetable"], type="fact")["id"]
    shell.api.remember("Nothing changes here")
    directory = tmp_path / "memories"
    shell.run("export", "--markdown", str(directory))
    path = file_of(directory, "ferry")
    edit(path, "at nine", "at ten")
    edit(path, "tags: [timetable]", "tags: [timetable, winter]")
    told = shell.import_(directory)
    assert (told["changed"], told["unchanged"], told["imported"], told["refusedCount"]) == (1, 1, 0, 0)
    stored = shell.api.memory(memory)
    assert (stored["content"], stored["tags"]) == ("The ferry leaves at ten", "timetable,winter")
    assert shell.import_(directory)["changed"] == 0
    edit(path, "at ten", "at eleven")
    assert shell.import_(directory)["changed"] == 1
    assert shell.api.memory(memory)["content"] == "The ferry leaves at eleven"
    assert len(shell.exported()) == 3


@pytest.mark.parametrize("before", ["", "\ufeff"])
def test_the_line_ends_of_an_editor_on_windows_stay_in_an_edited_file(
    shell: Shell, tmp_path: Path, before: str
) -> None:
    shell.api.remember("The barge leaves at nine\nand the tug follows", tags=["timetable"], type="fact")
    directory = tmp_path / "memories"
    shell.run("export", "--markdown", str(directory))
    path = file_of(directory, "barge")
    lines = (before + path.read_text()).replace("at nine", "at ten").replace("\n", "\r\n")
    path.write_bytes(lines.encode())
    assert shell.import_(directory)["changed"] == 1
    kept = path.read_bytes().decode()
    assert [line for line in kept.split("\r\n") if not line.startswith("exported: ")] == [
        line for line in lines.split("\r\n") if not line.startswith("exported: ")
    ]
    assert kept != lines, "it has the new digest"
    assert shell.import_(directory)["changed"] == 0
    path.write_bytes(kept.replace("at ten", "at eleven").encode())
    assert shell.import_(directory)["changed"] == 1


def test_a_memory_that_changed_since_the_export_is_never_set_back(shell: Shell, tmp_path: Path) -> None:
    first = shell.api.remember("Alpha is red")["id"]
    second = shell.api.remember("Beta is red")["id"]
    directory = tmp_path / "memories"
    shell.run("export", "--markdown", str(directory))
    for memory, content in ((first, "Alpha is green"), (second, "Beta is green")):
        shell.api.request("PATCH", f"/api/memory/{memory}", {"reason": "r", "content": content}).ok()
    edit(file_of(directory, "Beta"), "Beta is red", "Beta is blue")
    told = shell.import_(directory, exit_code=1)
    assert (told["changed"], told["unchanged"], told["refusedCount"]) == (0, 1, 1)
    assert "has changed since the export" in told["refused"][0]["error"]
    assert shell.api.memory(first)["content"] == "Alpha is green"
    assert shell.api.memory(second)["content"] == "Beta is green"


def test_a_file_that_a_person_adds_becomes_a_memory(shell: Shell, tmp_path: Path) -> None:
    shell.api.remember("Something")
    directory = tmp_path / "memories"
    shell.run("export", "--markdown", str(directory))
    (directory / "new.md").write_text("---\ntype: decision\ntags: [harbour]\n---\nWe berth at pier 4.\n")
    told = shell.import_(directory)
    assert (told["imported"], told["unchanged"]) == (1, 1)
    [found] = [row for row in shell.api.listed() if "pier 4" in row["content"]]
    assert (found["type"], found["tags"]) == ("decision", "harbour")


def test_the_directory_of_the_database_is_no_place_for_an_export(daemon: LiveDaemon, tmp_path: Path) -> None:
    environ = {"SIGNET_WORKSPACE": str(daemon.workspace)}
    inside = daemon.workspace / "memory" / "export"
    result = CliRunner(env=environ).invoke(cli, ["export", "--markdown", str(inside)])
    assert (result.exit_code, "belongs to the workspace" in result.stderr) == (2, True)
    assert not inside.exists()


def test_an_import_of_edits_says_in_one_sentence_what_became_of_the_files(shell: Shell, tmp_path: Path) -> None:
    shell.api.remember("Deployments: never on Fridays")
    shell.api.remember("The pager is on line two")
    directory = tmp_path / "memories"
    shell.run("export", "--markdown", str(directory))
    edit(file_of(directory, "Fridays"), "never on Fridays", "on any day")
    (directory / "added.md").write_text("The cellar floods in March.\n", encoding="utf-8")
    address = ["--url", f"http://127.0.0.1:{shell.daemon.port}", "--agent", shell.agent]
    command = [*address, "import", str(directory), "--from", "signet-markdown"]
    result = CliRunner(env={"XDG_CACHE_HOME": str(shell.cache)}).invoke(cli, command)
    assert result.stdout == "Changed 1 memory, 1 unchanged, 1 new, 0 refused.\n"
    assert "hanged" not in result.stderr
    again = CliRunner(env={"XDG_CACHE_HOME": str(shell.cache)}).invoke(cli, command)
    assert again.stdout == "Changed 0 memories, 2 unchanged, 0 new, 1 existed already, 0 refused.\n"
