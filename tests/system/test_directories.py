"""A directory is one project for every program, in whatever spelling it stores and asks."""

from __future__ import annotations

import json
import os
import subprocess
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from signet_actors.cli.main import cli
from tests.support.live_daemon import Client

pytestmark = pytest.mark.system
FACT = "We decided to have the ferry timetable printed by the job tide-tables"


def start(client: Client, project: str) -> str:
    body = {"harness": "generic", "project": project, "sessionKey": os.urandom(8).hex()}
    text: str = client.post("/api/hooks/session-start", body).ok()["inject"]
    return text


def signet(client: Client, *arguments: str) -> Any:
    url, agent = f"http://127.0.0.1:{client.daemon.port}", client.headers["x-signet-agent-id"]
    done = CliRunner().invoke(cli, ["--url", url, "--agent", agent, "--json", *arguments])
    assert done.exit_code == 0, (done.stdout, done.stderr)
    return json.loads(done.stdout)


@pytest.fixture
def ferry(tmp_path: Path) -> Path:
    made = Path(os.path.realpath(tmp_path)) / "café" / "ferry"
    (made / "sub").mkdir(parents=True)
    (made.parent / "link").symlink_to(made, target_is_directory=True)
    return made


def spellings(ferry: Path) -> list[str]:
    top = ferry.parent
    return [
        f"{ferry}",
        f"{ferry}/",
        f"{top}/./ferry",
        f"{top}//ferry",
        f"{ferry}/sub/..",
        f"{top}/link",
        f"{top}/link/",
        unicodedata.normalize("NFD", str(ferry)),
    ]


def test_what_is_stored_in_one_spelling_is_found_in_every_other(room: Client, ferry: Path) -> None:
    written = spellings(ferry)
    for number, spelling in enumerate(written):
        fact = f"{FACT} number {number}"
        if number % 2:
            room.remember(fact, project=spelling)
        else:
            room.post("/api/hooks/remember", {"harness": "generic", "content": fact, "project": spelling}).ok()
    assert {memory["project"] for memory in room.listed()} == {str(ferry)}
    everything = {memory["id"] for memory in room.listed()}
    for spelling in written:
        assert set(room.recalled(FACT, project=spelling, limit=20)) == everything, spelling
        listed = room.get("/api/memories", project=spelling).ok()
        assert {memory["id"] for memory in listed["memories"]} == everything, spelling
        assert start(room, spelling).count(FACT) >= 1, spelling
    for other in (f"{ferry}-2", f"{ferry.parent}", f"{ferry.parent}/Ferry", f"{ferry}/sub"):
        assert room.recalled(FACT, project=other) == [], other
        assert FACT not in start(room, other)


@pytest.mark.parametrize("path", ["C:\\Users\\me\\shop", "D:\\work"])
def test_a_path_of_windows_is_one_project(room: Client, path: str) -> None:
    kept = room.remember(FACT, project=path)["id"]
    for spelling in (path, path + "\\", path[0].lower() + path[1:], path.replace("\\", "/"), f"\\\\?\\{path}\\"):
        assert room.recalled(FACT, project=spelling) == [kept], spelling
        assert FACT in start(room, spelling)
    assert room.recalled(FACT, project=f"{path}2") == []


def test_commands_take_a_directory_as_a_shell_does(room: Client, ferry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(ferry.parent))
    for number, (here, option) in enumerate(
        [
            (ferry, "."),
            (ferry, "./"),
            (ferry / "sub", ".."),
            (ferry / "sub", "../"),
            (ferry.parent, "ferry/"),
            (ferry.parent, "./ferry"),
            (ferry.parent, "link/"),
            (ferry.parent.parent, f"{ferry.parent.name}/ferry"),
            (ferry.parent.parent, "~/ferry"),
            (ferry.parent.parent, "~/ferry/"),
            (ferry, str(ferry)),
            (ferry, "../ferry"),
        ]
    ):
        monkeypatch.chdir(here)
        signet(room, "remember", f"{FACT} {number}", "--project", option)
        assert {memory["project"] for memory in room.listed()} == {str(ferry)}, option
        assert len(signet(room, "list", "--project", option)["memories"]) == number + 1, option
        assert len(signet(room, "recall", FACT, "--project", option, "--limit", "50")["results"]) == number + 1, option
    monkeypatch.chdir(ferry.parent)
    for option in (".", "..", "sub/", "~"):
        assert signet(room, "list", "--project", option)["memories"] == [], option
    for name in ("billing", "ferry", "org/billing", "café"):
        signet(room, "remember", f"The project is called {name}", "--project", name)
        listed = {memory["project"] for memory in signet(room, "list", "--project", name)["memories"]}
        assert listed == ({name, str(ferry)} if name == "ferry" else {name})
    (ferry / "sub" / "note.md").write_text("Notes of the ferry are imported")
    monkeypatch.chdir(ferry)
    assert signet(room, "import", "sub", "--project", ".")["imported"] == 1
    assert signet(room, "list", "--project", str(ferry))["memories"][0]["project"] == str(ferry)


def test_a_directory_that_is_gone_belongs_to_its_repository(room: Client, ferry: Path) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=ferry, check=True)
    for gone in (".claude/worktrees/gone", "deleted/part", "sub/deleted/"):
        turns = [{"role": "user", "content": f"{FACT} in {gone}"}, {"role": "assistant", "content": "Understood."}]
        body = {"harness": "generic", "sessionKey": f"session in {gone}", "transcript": turns, "reason": "backfill"}
        assert room.post("/api/hooks/session-end", {**body, "project": f"{ferry}/{gone}"}).ok()["stored"] is True
        room.remember(f"{FACT}, as said in {gone}", project=f"{ferry}/{gone}")
    assert {memory["project"] for memory in room.listed()} == {str(ferry)}
    assert FACT in start(room, f"{ferry}/sub")
    found = room.post("/api/sessions/search", {"query": "tide-tables", "project": str(ferry)}).ok()
    assert len(found["hits"]) >= 3, found


def test_imported_memories_belong_to_the_directory_that_they_name(room: Client, ferry: Path, tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text(
        "".join(
            json.dumps({"content": f"{FACT} {number}", "project": spelling}) + "\n"
            for number, spelling in enumerate([*spellings(ferry), "billing", "c:\\shop\\"])
        )
    )
    assert signet(room, "import", str(file))["imported"] == 10
    projects = sorted(memory["project"] for memory in room.listed())
    assert projects == sorted([str(ferry)] * 8 + ["billing", "C:\\shop"])
    assert signet(room, "import", str(file))["imported"] == 0


def test_memories_stored_under_a_former_spelling_are_found_by_it(room: Client, ferry: Path) -> None:
    link = ferry.parent / "later"
    former = room.remember(f"{FACT} once", project=f"{link}/")["id"]
    assert room.memory(former)["project"] == str(link)
    link.symlink_to(ferry, target_is_directory=True)
    new = room.remember(f"{FACT} today", project=str(ferry))["id"]
    assert set(room.recalled(FACT, project=str(link))) == {former, new}
    assert {memory["id"] for memory in room.get("/api/memories", project=str(link)).ok()["memories"]} == {former, new}
    assert start(room, str(link)).count(FACT) == 2
    assert room.recalled(FACT, project=str(ferry)) == [new]
