"""The memories that agents have noted by themselves, imported into a live daemon."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from signet_actors.cli.main import cli
from tests.support import native_memories as native
from tests.support.live_daemon import LiveDaemon, live_daemon

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def daemon() -> Iterator[LiveDaemon]:
    with live_daemon() as daemon:
        yield daemon


def imported(daemon: LiveDaemon, home: Path, name: str) -> dict[str, Any]:
    environ = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "CLAUDE_CONFIG_DIR": "", "CODEX_HOME": ""}
    arguments = ["--url", f"http://127.0.0.1:{daemon.port}", "import", "--from", name, "--agent", f"of-{name}"]
    result = CliRunner(env=environ).invoke(cli, [*arguments, "--json"])
    assert result.exit_code == 0, (result.stdout, result.stderr)
    told: dict[str, Any] = json.loads(result.stdout)
    return told


def test_the_memory_of_claude_code_is_found_with_its_project_and_stored_once(
    daemon: LiveDaemon, tmp_path: Path
) -> None:
    project = tmp_path / "ferry"
    project.mkdir()
    folder = native.claude(tmp_path, project)
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    with (folder / "feedback_reviews.md").open("a", encoding="utf-8") as file:
        file.write(f"The token of the mirror is {secret}.\n")
    first = imported(daemon, tmp_path, "claude-memory")
    assert (first["imported"], first["redacted"], first["ofSignet"]) == (4, 1, 0)
    again = imported(daemon, tmp_path, "claude-memory")
    assert (again["imported"], again["deduped"]) == (0, 4)
    agent = daemon.agent("of-claude-memory")
    rows = {row["id"]: agent.memory(row["id"]) for row in agent.listed()}
    assert not any(secret in row["content"] for row in rows.values())
    found = rows[agent.recalled("how often does the upload worker retry")[0]]
    assert found["content"].startswith("The upload worker retries 5 times")
    assert {name: found[name] for name in ("project", "session_id", "created_at", "source_type")} == {
        "project": str(project),
        "session_id": native.SESSION,
        "created_at": "2026-07-29T13:16:34.420Z",
        "source_type": "claude-memory",
    }


def test_a_memory_that_was_shown_to_an_agent_does_not_come_back_from_its_notes(
    daemon: LiveDaemon, tmp_path: Path
) -> None:
    native.openclaw(tmp_path)
    told = imported(daemon, tmp_path, "openclaw")
    assert (told["imported"], told["ofSignet"]) == (2, 1)
    agent = daemon.agent("of-openclaw")
    assert not any("Fridays" in row["content"] for row in agent.listed())


def test_the_memory_of_codex_keeps_the_directory_that_it_is_about(daemon: LiveDaemon, tmp_path: Path) -> None:
    native.codex(tmp_path)
    assert imported(daemon, tmp_path, "codex-memory")["imported"] == 4
    agent = daemon.agent("of-codex-memory")
    rows = [agent.memory(row["id"]) for row in agent.listed() if "publish" in row["content"]]
    assert {row["project"] for row in rows} == {"/home/ada/ferry"}
