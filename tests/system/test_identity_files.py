"""The identity files of a workspace and of its agents, in sessions and in the files of harnesses.

Source: architecture.txt "Multi-Agent Support"; docs/guides/identity.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from signet_actors.runtime.connected_harnesses import ConnectedHarness, add_connected
from tests.support.bus_harness import eventually
from tests.support.live_daemon import Client, LiveDaemon, live_daemon

pytestmark = pytest.mark.system
TEXTS = {
    "AGENTS.md": "Run the tests before each commit.",
    "SOUL.md": "Speak calmly.",
    "IDENTITY.md": "- **Name:** Ada\n- **Vibe:** calm",
    "USER.md": "The user is a gardener.",
}


@pytest.fixture
def daemon() -> Iterator[LiveDaemon]:
    with live_daemon(patient=True) as started:
        for name, text in TEXTS.items():
            (started.workspace / name).write_text(text + "\n")
        yield started


def start(client: Client, **fields: Any) -> str:
    begun = client.post("/api/hooks/session-start", {"harness": "claude-code", **fields}).ok()
    assert isinstance(begun["inject"], str)
    return begun["inject"]


def test_an_agent_has_its_own_soul_and_identity_and_inherits_the_rest(daemon: LiveDaemon) -> None:
    own = daemon.workspace / "agents" / "bob"
    own.mkdir(parents=True)
    (own / "SOUL.md").write_text("Speak in rhymes.\n")
    (own / "IDENTITY.md").write_text("- **Name:** Bob\n")
    (own / "AGENTS.md").write_text("Never run the tests.\n")
    injected = start(daemon.api, sessionKey="agent:bob:1")
    for text in ("Run the tests before", "Speak in rhymes.", "**Name:** Bob", "The user is a gardener."):
        assert text in injected
    for text in ("Never run the tests.", "Speak calmly.", "**Name:** Ada"):
        assert text not in injected
    default = start(daemon.api, sessionKey="s-1")
    assert "Speak calmly." in default
    assert "Speak in rhymes." not in default
    expected = {"name": "Bob", "description": None, "creature": None, "vibe": None}
    assert daemon.api.get("/api/identity", agentId="bob").ok() == {**expected, "source": ["agents/bob/IDENTITY.md"]}
    assert daemon.agent("bob").get("/api/identity").ok()["name"] == "Bob"
    assert daemon.api.get("/api/identity", agentId="carol").ok()["name"] == "Ada"
    assert daemon.api.get("/api/identity").ok()["source"] == ["IDENTITY.md"]
    (own / "SOUL.md").write_text("")
    assert "## Soul" not in start(daemon.api, sessionKey="agent:bob:2"), "an empty file of its own leaves it out"


@pytest.mark.parametrize("name", ["..", ".", ".hidden"])
def test_no_agent_reads_outside_of_its_directory(daemon: LiveDaemon, name: str) -> None:
    (daemon.workspace / "agents" / ".hidden").mkdir(parents=True)
    for directory in (daemon.workspace.parent, daemon.workspace / "agents", daemon.workspace / "agents" / ".hidden"):
        (directory / "SOUL.md").write_text("From elsewhere.\n")
    assert "From elsewhere." not in start(daemon.api, agentId=name, sessionKey="s-2")


def test_a_start_names_the_tools_that_the_harness_is_connected_with_though_none_was_used(daemon: LiveDaemon) -> None:
    assert "signet recall" in start(daemon.api, harness="gemini", sessionKey="bare")
    settings = str(daemon.workspace / "settings.json")
    add_connected(daemon.workspace, ConnectedHarness("codex", "Codex", settings))
    add_connected(daemon.workspace, ConnectedHarness("gemini", "Gemini CLI", settings, servers_file=settings))
    told = start(daemon.api, harness="gemini", sessionKey="tools")
    assert told.startswith('[memory active | memory_search | memory_store]\n[signet:session | session_key="tools"')
    assert "signet recall" in start(daemon.api, harness="codex", sessionKey="bare-2")


def test_a_harness_that_reads_the_files_itself_does_not_get_them_twice(daemon: LiveDaemon, tmp_path: Path) -> None:
    instructions = tmp_path.resolve() / "CLAUDE.md"
    instructions.write_text("# Mine\n")
    (daemon.workspace / "MEMORY.md").write_text("The release is on Monday.\n")
    connected = ConnectedHarness("claude-code", "Claude Code", str(tmp_path / "settings.json"), str(instructions))
    add_connected(daemon.workspace, connected)

    def listed() -> Any:
        (entry,) = daemon.api.get("/api/harnesses").ok()["harnesses"]
        return entry

    eventually(lambda: bool(listed()["identityFiles"][0]["synced"]), what="the daemon has seen the connection")
    assert instructions.read_text().startswith("# Mine\n\n<!-- signet:identity:begin")
    injected = start(daemon.api, sessionKey="s-3")
    assert "The release is on Monday." in injected
    assert [text for text in TEXTS.values() if text in injected] == []
    for other in ({"harness": "codex"}, {"sessionKey": "agent:bob:3"}):
        (daemon.workspace / "agents" / "bob").mkdir(parents=True, exist_ok=True)
        (daemon.workspace / "agents" / "bob" / "SOUL.md").write_text("Speak in rhymes.\n")
        assert "Run the tests before" in start(daemon.api, **other), "another harness or agent gets them"
    assert listed() == {
        "name": "Claude Code",
        "id": "claude-code",
        "path": str(tmp_path / "settings.json"),
        "exists": False,
        "lastSeen": listed()["lastSeen"],
        "identityFiles": [{"path": str(instructions), "agent": "default", "synced": True, "problem": None}],
    }
    assert listed()["lastSeen"].endswith("Z")

    (daemon.workspace / "SOUL.md").write_text("Speak loudly.\n")
    assert "Speak loudly." in start(daemon.api, sessionKey="s-4"), "until the harness has the change"
    done = daemon.api.post("/api/harnesses/regenerate").ok()
    assert (done["success"], done["problems"]) == (True, [])
    assert "Speak loudly." in instructions.read_text()
    assert "Speak loudly." not in start(daemon.api, sessionKey="s-5")
    daemon.kill("retention")
    (daemon.workspace / "SOUL.md").write_text("Whisper.\n")
    eventually(lambda: "Whisper." in instructions.read_text(), what="a restarted process goes on")
