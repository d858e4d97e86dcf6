"""``signet connect openclaw`` has each agent that Signet knows work in its assembled workspace.

Source: architecture.txt "Per-agent workspace"; docs/guides/editors.md "Workspaces of OpenClaw's agents".
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from signet_actors.cli.harnesses.json_text import parsed
from signet_actors.cli.harnesses.registry import OPENCLAW
from tests.support.harness_home import Home, make_home

OWN = "~/.openclaw/ben"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    made = make_home(tmp_path, monkeypatch)
    made.install_signet()
    for name in ("ben", "main"):
        (made.root / ".agents" / "agents" / name).mkdir(parents=True)
    (made.root / ".agents" / "agent.yaml").write_text("agents: {roster: [{name: ada}]}\n")
    return made


def settings(home: Home) -> Path:
    return home.root / ".openclaw" / "openclaw.json"


def assembled(home: Home, name: str) -> str:
    return str(home.root / ".agents" / "agents" / name / "workspace")


def furnish(home: Home, text: str) -> None:
    settings(home).parent.mkdir()
    settings(home).write_text(text)


def agents(home: Home) -> Any:
    return parsed(settings(home).read_text(), comments=True)["agents"]


LISTED = """{
  // two agents, and one that Signet does not know
  "agents": {
    "list": [
      { "id": "ada", "model": "m", },
      { "id": "stranger" },
      { "id": "ben", "workspace": "%s" }
    ],
  },
}
"""
ENTRIES = '{"agents": {"entries": {"ada": {}, "stranger": {"name": "x"}, "ben": {"workspace": "%s"}}}, "gateway": {}}'


@pytest.mark.parametrize("text", [LISTED % OWN, ENTRIES % OWN], ids=["list", "entries"])
def test_agents_get_their_workspace_except_where_one_is_set(home: Home, text: str) -> None:
    furnish(home, text)
    done = home.connect(OPENCLAW)
    assert done.exit_code == 0, done.output
    found = agents(home)
    each = {one["id"]: one for one in found["list"]} if "list" in found else found["entries"]
    assert {name: one.get("workspace") for name, one in each.items()} == {
        "ada": assembled(home, "ada"),
        "stranger": None,
        "ben": OWN,
    }
    assert f"agent ben keeps its workspace {OWN}" in " ".join(done.output.split())
    assert assembled(home, "ben") in done.output.replace("\n", "")
    connected = settings(home).read_text()
    assert "is connected already" in home.connect(OPENCLAW).output
    assert settings(home).read_text() == connected
    assert home.disconnect(OPENCLAW).exit_code == 0
    assert settings(home).read_text() == text


def test_the_only_agent_of_a_new_installation_is_main(home: Home) -> None:
    assert home.connect(OPENCLAW).exit_code == 0
    assert agents(home) == {"defaults": {"workspace": assembled(home, "main")}}
    assert home.disconnect(OPENCLAW).exit_code == 0
    assert not settings(home).exists()


@pytest.mark.parametrize("text", ["{}", ENTRIES % OWN], ids=["main", "entries"])
def test_an_agent_whose_directory_in_openclaw_has_files_keeps_it(home: Home, text: str) -> None:
    furnish(home, text)
    for name in ("workspace", "workspace-ada"):
        (settings(home).parent / name).mkdir()
        (settings(home).parent / name / "MEMORY.md").write_text("mine")
    done = home.connect(OPENCLAW)
    assert done.exit_code == 0
    assert "ada keeps its workspace" in done.output or "main keeps its workspace" in done.output
    document = parsed(settings(home).read_text(), comments=True)
    assert document.get("agents") == parsed(text).get("agents")


def test_what_changed_meanwhile_stays_at_a_disconnect_and_so_does_what_the_user_had_set(home: Home) -> None:
    before = {"agents": {"entries": {"ada": {}, "ben": {"workspace": assembled(home, "ben")}}}}
    furnish(home, str(before).replace("'", '"'))
    assert home.connect(OPENCLAW).exit_code == 0
    text = settings(home).read_text()
    settings(home).write_text(text.replace('"entries"', '"ownership": "explicit", "entries"'))
    assert home.disconnect(OPENCLAW).exit_code == 0
    after = {**before["agents"], "ownership": "explicit"}
    assert parsed(settings(home).read_text()) == {"agents": after}


@pytest.mark.parametrize(
    "text", ['{"agents": []}', '{"agents": {"list": {}, "defaults": 1}}', '{"agents": {"list": [1, {}]}}']
)
def test_settings_of_another_form_get_only_the_tools(home: Home, text: str) -> None:
    furnish(home, text)
    assert home.connect(OPENCLAW).exit_code == 0
    assert agents(home) == parsed(text)["agents"]
    assert home.disconnect(OPENCLAW).exit_code == 0
    assert settings(home).read_text() == text
