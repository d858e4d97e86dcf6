"""The periodic duty of retention that keeps identity files in the files of connected harnesses.

Source: architecture.txt "How It Works" (2 s debounced sync), "Multi-Agent Support".
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import structlog

from signet_actors.config.schema import AgentsConfig, Config, HarnessFilesConfig, RosterEntry
from signet_actors.retention import workspace_sync
from signet_actors.retention.periodic.workspace_files import WorkspaceFiles
from signet_actors.retention.workspace_sync import SyncResult, WorkspaceSync, sync_harness_files
from signet_actors.runtime.connected_harnesses import (
    ConnectedHarness,
    add_connected,
    has_identity,
    read_connected,
    remove_connected,
)

SETTINGS = "/home/ada/.claude/settings.json"


class HandClock:
    def __init__(self) -> None:
        self.ns = 1_000_000_000

    def monotonic_ns(self) -> int:
        return self.ns

    def wall_ms(self) -> int:
        return self.ns // 1_000_000


class Room:
    """A workspace with ``AGENTS.md``, a connected harness, and the duty with a clock that the test moves."""

    def __init__(self, root: Path) -> None:
        self.workspace, self.home = root / "workspace", root / "home"
        self.workspace.mkdir()
        self.home.mkdir()
        self.target = self.home / "CLAUDE.md"
        self.clock = HandClock()
        self.logged: list[dict[str, Any]] = []
        self.begun = 0
        log = structlog.wrap_logger(structlog.ReturnLogger(), processors=[self._note])
        self.duty = WorkspaceFiles(self.clock, log, Config(), self.workspace, self._begin)
        (self.workspace / "AGENTS.md").write_text("Run the tests.\n")

    def _begin(self, workspace: Path, *, harness_files: bool, agents: Sequence[str]) -> WorkspaceSync:
        self.begun += 1
        return WorkspaceSync(workspace, harness_files=harness_files, agents=agents)

    def _note(self, _: Any, level: str, event: dict[str, Any]) -> dict[str, Any]:
        self.logged.append({"level": level, **event})
        return event

    def connect(self, **fields: str) -> None:
        given = {"identity_file": str(self.target), **fields}
        add_connected(self.workspace, ConnectedHarness("claude-code", "Claude Code", SETTINGS, **given))

    def pass_s(self, seconds: float) -> None:
        """Step once a second, and wait for each process that is begun."""
        for _ in range(round(seconds)):
            self.clock.ns += 1_000_000_000
            self.duty.step()
            deadline = time.monotonic() + 60
            while self.duty.running and time.monotonic() < deadline:
                time.sleep(0.01)
                self.duty.step()


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


def test_a_change_reaches_the_harness_two_seconds_after_the_last_one(room: Room) -> None:
    room.connect()
    room.pass_s(3)
    assert "Run the tests." in room.target.read_text()
    assert room.begun == 1
    for number in range(4):
        (room.workspace / "AGENTS.md").write_text(f"Version {number} of the rules.\n")
        room.pass_s(1)
    assert (room.begun, "Version" in room.target.read_text()) == (1, False), "it is still being changed"
    room.pass_s(2)
    assert room.begun == 2
    assert "Version 3" in room.target.read_text()
    assert has_identity(room.workspace, "claude-code", "default")
    room.pass_s(100)
    assert room.begun == 2, "no process is begun while nothing changes"


def test_nothing_is_done_for_harnesses_that_are_not_connected(room: Room) -> None:
    room.pass_s(10)
    assert (room.begun, room.target.exists()) == (0, False)
    done = room.duty.sync_now()
    room.pass_s(1)
    assert (room.duty.runs, room.begun) == (done, 0)


def test_every_way_of_saving_is_noticed(room: Room) -> None:
    room.connect()
    room.pass_s(3)
    (room.workspace / "new").write_text("Replaced.\n")
    (room.workspace / "new").rename(room.workspace / "AGENTS.md")
    room.pass_s(3)
    assert "Replaced." in room.target.read_text()
    (room.workspace / "AGENTS.md").unlink()
    room.pass_s(3)
    assert not room.target.exists(), "without identity files there is no block, and the file was made for it"


def test_an_agents_own_files_count(room: Room) -> None:
    own = room.workspace / "agents" / "bob"
    own.mkdir(parents=True)
    (room.workspace / "SOUL.md").write_text("Calm.\n")
    (own / "SOUL.md").write_text("Loud.\n")
    room.connect(agent="bob")
    room.pass_s(3)
    text = room.target.read_text()
    assert ("Run the tests." in text, "Loud." in text, "Calm." in text) == (True, True, False)
    (own / "SOUL.md").unlink()
    room.pass_s(3)
    assert "Calm." in room.target.read_text()
    assert has_identity(room.workspace, "claude-code", "bob")


def test_openclaw_gets_an_assembled_file_for_each_agent(room: Room) -> None:
    for name in ("bob", "eve", ".git"):
        (room.workspace / "agents" / name).mkdir(parents=True)
    (room.workspace / "agents" / "eve" / "SOUL.md").write_text("Loud.\n")
    add_connected(room.workspace, ConnectedHarness("openclaw", "OpenClaw", "/home/ada/.openclaw/openclaw.json"))
    room.pass_s(3)
    texts = {path.parts[-3]: path.read_text() for path in room.workspace.glob("agents/*/workspace/AGENTS.md")}
    assert {name: "Run the tests." in text for name, text in texts.items()} == {"bob": True, "eve": True}
    assert ("Loud." in texts["eve"], "Loud." in texts["bob"]) == (True, False)
    assert has_identity(room.workspace, "openclaw", "eve")
    assert not has_identity(room.workspace, "openclaw", "carol"), "it has no directory, so no file"
    (room.workspace / "agents" / "carol").mkdir()
    room.pass_s(3)
    assert has_identity(room.workspace, "openclaw", "carol")


def test_openclaw_gets_a_file_for_each_agent_that_the_configuration_names(room: Room) -> None:
    names = ("-bob", "eve eve", ".git")
    roster = tuple(RosterEntry(name) for name in names)
    room.duty.reload(Config(agents=AgentsConfig(roster=roster)))
    room.connect()
    room.pass_s(3)
    assert not (room.workspace / "agents").exists(), "only OpenClaw needs them"
    add_connected(room.workspace, ConnectedHarness("openclaw", "OpenClaw", "/home/ada/.openclaw/openclaw.json"))
    room.pass_s(3)
    assert [has_identity(room.workspace, "openclaw", name) for name in names] == [True, True, False]
    room.duty.reload(Config(agents=AgentsConfig(roster=(RosterEntry("zoë"),))))
    room.pass_s(3)
    assert has_identity(room.workspace, "openclaw", "zoë")


def test_switched_off_the_part_is_taken_out(room: Room) -> None:
    room.target.write_text("# Mine\n")
    room.connect()
    room.pass_s(3)
    room.duty.reload(Config(harness_files=HarnessFilesConfig(sync=False)))
    room.pass_s(1)
    assert [(path.name, path.read_text()) for path in room.home.iterdir()] == [("CLAUDE.md", "# Mine\n")]
    room.duty.reload(Config())
    room.pass_s(1)
    assert has_identity(room.workspace, "claude-code", "default")


def test_a_file_that_cannot_be_written_is_reported_once_and_tried_again(room: Room) -> None:
    (room.home / "mine.md").write_text("# Mine\n")
    room.target.symlink_to(room.home / "mine.md")
    room.connect()
    room.pass_s(200)
    told = [event for event in room.logged if event["event"] == "harness_file_not_written"]
    assert [(event["file"], event["reason"]) for event in told] == [(str(room.target), "it is a symbolic link")]
    assert 3 <= room.begun <= 5
    assert (room.home / "mine.md").read_text() == "# Mine\n"
    assert not has_identity(room.workspace, "claude-code", "default")
    room.target.unlink()
    room.pass_s(61)
    assert has_identity(room.workspace, "claude-code", "default")


def test_a_harness_that_is_disconnected_meanwhile_keeps_no_block(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    room.connect()
    put = workspace_sync.put_block

    def late(path: Path, block: bytes) -> bool:
        remove_connected(room.workspace, "claude-code", SETTINGS)
        return put(path, block)

    monkeypatch.setattr(workspace_sync, "put_block", late)
    sync_harness_files(room.workspace)
    assert not room.target.exists()
    assert read_connected(room.workspace) == ()


def test_a_process_that_hangs_holds_up_nothing_and_grows_nothing(room: Room) -> None:
    class Hung:
        def poll(self) -> SyncResult | None:
            return None

        def stop(self) -> None:
            pass

    begun: list[Hung] = []

    def begin(workspace: Path, *, harness_files: bool, agents: Sequence[str]) -> Hung:
        begun.append(Hung())
        return begun[-1]

    room.connect()
    log = structlog.wrap_logger(structlog.ReturnLogger(), processors=[room._note])
    duty = WorkspaceFiles(room.clock, log, Config(), room.workspace, begin)
    for number in range(500):
        duty.step()
        if begun:
            (room.workspace / "AGENTS.md").write_text(f"{number}\n")
        room.clock.ns = duty.due_ns
    assert len(begun) == 1
    assert len([event for event in room.logged if event["event"] == "harness_file_not_written"]) == 1


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"harnesses": 5}', '{"harnesses": [5, {"harness": 5}, {"harness": "x"}]}', "\0", "[" * 100_000],
)
def test_a_note_that_is_not_valid_names_no_harness(room: Room, text: str) -> None:
    (room.workspace / "memory").mkdir()
    (room.workspace / "memory" / "harnesses.json").write_text(text)
    assert read_connected(room.workspace) == ()


def test_only_an_absolute_path_is_written(room: Room) -> None:
    room.connect(identity_file="CLAUDE.md")
    assert read_connected(room.workspace) == ()
