"""The plugins that ``signet connect HARNESS --plugin DIR`` makes have the formats that harnesses document.

The rules below are those of the pages and specifications that ``signet_actors/cli/harnesses/plugins.py`` names, as of
November 2026.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from signet_actors import __version__
from signet_actors.cli.harnesses.plugins import INSTALL, PACKAGE
from signet_actors.cli.harnesses.registry import CLAUDE_CODE, GEMINI
from signet_actors.hook.harness_events import NAME_OF_EVENT
from signet_actors.operations.tools import TOOLS
from tests.support.harness_home import Home, make_home

ROOT = Path(__file__).resolve().parents[2]
SKILL = "skills/signet-memory/SKILL.md"
FILES = {
    "claude-code": {".claude-plugin/plugin.json", ".claude-plugin/marketplace.json", "hooks/hooks.json", ".mcp.json"},
    "gemini": {"gemini-extension.json", "hooks/hooks.json"},
    "openclaw": {"openclaw.plugin.json", "package.json", "index.js"},
    "generic": {"plugin.json", "mcp.json", "server.json"},
}
EVENTS_OF_CLAUDE_CODE = {
    "SessionStart",
    "UserPromptSubmit",
    "PreCompact",
    "PostCompact",
    "PostToolUse",
    "Stop",
    "SessionEnd",
}
EVENTS_OF_GEMINI = {"SessionStart", "BeforeAgent", "PreCompress", "AfterAgent", "SessionEnd"}
each = pytest.mark.parametrize("harness", INSTALL)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return make_home(tmp_path, monkeypatch)


def made(home: Home, harness: str, *options: str) -> dict[str, Any]:
    """Make a plugin, and return its files: parsed, if they are JSON."""
    directory = home.root / f"plugin-{harness}"
    done = home.run("connect", harness, "--plugin", str(directory), *options)
    assert done.exit_code == 0, done.output
    files = {str(path.relative_to(directory)): path for path in directory.rglob("*") if path.is_file()}
    return {name: json.loads(path.read_text()) if name.endswith(".json") else path for name, path in files.items()}


@each
def test_a_plugin_has_the_files_of_its_format_and_changes_no_settings(home: Home, harness: str) -> None:
    before = home.files()
    assert set(made(home, harness)) == FILES[harness] | {SKILL}
    rest = {path: content for path, content in home.files().items() if not path.startswith("plugin-")}
    assert rest == before


def test_claude_code_finds_the_plugin_in_its_marketplace(home: Home) -> None:
    files = made(home, "claude-code")
    plugin, marketplace = files[".claude-plugin/plugin.json"], files[".claude-plugin/marketplace.json"]
    assert plugin["name"] == "signet"
    assert plugin["version"] == __version__
    assert plugin["author"] == marketplace["owner"] == {"name": "Signet Actors"}
    (listed,) = marketplace["plugins"]
    assert (listed["name"], listed["source"]) == ("signet", "./")
    assert marketplace["name"] == "signet"
    words = {"type": "stdio", "alwaysLoad": True, "command": "signet", "args": ["mcp", "--harness", "claude-code"]}
    assert files[".mcp.json"] == {"mcpServers": {"signet": words}}


def test_the_hooks_of_claude_code_start_a_program_without_a_shell(home: Home) -> None:
    hooks = made(home, "claude-code", "--agent", "alice")["hooks/hooks.json"]["hooks"]
    assert set(hooks) == EVENTS_OF_CLAUDE_CODE == {event.name for event in CLAUDE_CODE.events}
    for event, (group,) in hooks.items():
        assert set(group) <= {"matcher", "hooks"}
        (handler,) = group["hooks"]
        assert handler == {
            "type": "command",
            "command": "signet-hook",
            "args": [NAME_OF_EVENT[event], "-H", "claude-code", "--agent", "alice"],
            "timeout": 5,
        }


def test_the_extension_of_gemini_has_its_server_in_the_manifest_and_milliseconds(home: Home) -> None:
    files = made(home, "gemini")
    manifest = files["gemini-extension.json"]
    assert re.fullmatch("[a-z0-9-]+", manifest["name"])
    assert manifest["version"] == __version__
    assert manifest["mcpServers"] == {"signet": {"command": "signet", "args": ["mcp", "--harness", "gemini"]}}
    hooks = files["hooks/hooks.json"]["hooks"]
    assert set(hooks) == EVENTS_OF_GEMINI == {event.name for event in GEMINI.events}
    for event, (group,) in hooks.items():
        command = f"signet-hook {NAME_OF_EVENT[event]} -H gemini"
        matcher = {"matcher": "manual"} if event == "PreCompress" else {}
        assert group == {**matcher, "hooks": [{"type": "command", "command": command, "timeout": 5000}]}


def test_an_agent_plugin_has_only_the_members_of_the_specification(home: Home) -> None:
    files = made(home, "generic")
    manifest = files["plugin.json"]
    assert manifest["$schema"] == "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
    assert re.fullmatch(r"(?!.*(--|\.\.))[a-z0-9]([a-z0-9.-]*[a-z0-9])?", manifest["name"])
    optional = {"version", "description", "author", "homepage", "repository", "license", "keywords", "extensions"}
    assert set(manifest) <= {"$schema", "name"} | optional
    assert set(manifest["author"]) <= {"name", "email", "url"}
    servers = files["mcp.json"]
    assert set(servers) == {"$schema", "mcpServers"}
    assert servers["$schema"] == "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json"
    (server,) = servers["mcpServers"].values()
    assert server == {"type": "stdio", "command": "signet", "args": ["mcp"]}  # a command is no path outside the plugin


def test_openclaw_knows_the_tools_before_it_loads_the_plugin(home: Home) -> None:
    files = made(home, "openclaw")
    manifest = files["openclaw.plugin.json"]
    assert {"id", "configSchema"} <= set(manifest)  # all that is required
    assert manifest["configSchema"] == {"type": "object", "additionalProperties": False, "properties": {}}
    assert manifest["contracts"] == {"tools": [f"signet_{name}" for name in TOOLS]}
    assert manifest["activation"] == {"onStartup": True}
    (entry,) = files["package.json"]["openclaw"]["extensions"]
    assert entry.removeprefix("./") in files
    assert files["package.json"]["type"] == "module"


def test_the_entry_for_a_registry_runs_the_server_from_the_package(home: Home) -> None:
    entry = made(home, "generic")["server.json"]
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", entry["name"])
    assert f"<!-- mcp-name: {entry['name']} -->" in (ROOT / "README.md").read_text()  # who owns the package
    assert 1 <= len(entry["description"]) <= 100
    (package,) = entry["packages"]
    assert (package["registryType"], package["version"], package["transport"]) == (
        "pypi",
        __version__,
        {"type": "stdio"},
    )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert package["identifier"] == project["name"] == PACKAGE
    assert project["scripts"][PACKAGE] == project["scripts"]["signet"]
    assert any(requirement.startswith("mcp>=") for requirement in project["dependencies"])
    assert package["packageArguments"] == [{"type": "positional", "value": "mcp"}]


@each
def test_the_skill_names_tools_that_exist(home: Home, harness: str) -> None:
    text = made(home, harness)[SKILL].read_text()
    _, front, body = text.split("---\n", 2)
    about = yaml.safe_load(front)
    assert about["name"] == Path(SKILL).parent.name
    assert re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", about["name"])
    assert 1 <= len(about["description"]) <= 1024
    named = set(re.findall(r"`((?:signet_)?(?:memory|session)_\w+)`", body)) - {"session_key"}
    if harness == "openclaw":
        assert all(name.startswith("signet_") for name in named)
        named = {name.removeprefix("signet_") for name in named}
    assert {"memory_search", "memory_store", "memory_modify", "memory_forget"} <= named <= set(TOOLS)
    assert "`session_key`" in body, "an argument, and no tool"
    assert len(body.splitlines()) < 500


@each
def test_a_plugin_is_made_anew_in_its_own_directory_and_in_no_other(home: Home, harness: str) -> None:
    made(home, harness)
    before = home.files()
    made(home, harness)
    assert home.files() == before
    other = home.root / "project"
    other.mkdir()
    (other / "plugin.json").write_text('{"name": "other"}')
    done = home.run("connect", harness, "--plugin", str(other))
    assert (done.exit_code, "has other files in it" in done.output) == (78, True)
    assert [path.name for path in other.iterdir()] == ["plugin.json"]


def test_a_harness_that_is_connected_by_its_settings_is_told(home: Home) -> None:
    home.install_signet()
    home.connect(CLAUDE_CODE)
    done = home.run("connect", "claude-code", "--plugin", str(home.root / "plugin"))
    assert "Claude Code is connected by its settings, too: `signet disconnect claude-code`" in done.output


@pytest.mark.parametrize("words", [["codex"], ["claude-code", "--check"], ["gemini", "--dry-run"], []])
def test_a_plugin_goes_with_one_that_has_plugins(home: Home, words: list[str]) -> None:
    done = home.run("connect", *words, "--plugin", str(home.root / "plugin"))
    assert done.exit_code == 2
    assert not (home.root / "plugin").exists()
