"""Plugins that a harness installs as a whole: its hooks, the MCP server, and a skill for models.

They are made from the tables of ``registry.py``. Their commands are bare names, found on the PATH of the machine that
uses them, so that a plugin can be shared. Claude Code and Gemini CLI read hooks from the same file name in their own
forms, so each has a directory of its own.

Source: https://code.claude.com/docs/en/plugins-reference; https://geminicli.com/docs/extensions/reference;
https://agent-plugins.org/specification (1.0.0); https://agentskills.io/specification;
https://modelcontextprotocol.io/registry/package-types; docs/guides/plugins.md.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from signet_actors import __version__
from signet_actors.cli.harnesses.hook_settings import PROGRAM
from signet_actors.cli.harnesses.registry import CLAUDE_CODE, GEMINI, Harness
from signet_actors.cli.harnesses.server_entry import NAME
from signet_actors.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

AGENT_PLUGINS: Final = "https://agent-plugins.org/schemas/1.0.0"
DESCRIPTION: Final = "Long-term memory for agents, kept on this machine by the Signet daemon"
PACKAGE: Final = "signet-actors"
MCP_SDK: Final = "mcp>=2.3,<3"
"""The extra ``mcp`` of the package: a registry's entry cannot name an extra."""
OWNER: Final = {"name": "Signet Actors"}
SKILL: Final = Path(__file__).with_name("skill.md")
SKILL_PATH: Final = "skills/signet-memory/SKILL.md"
INSTALL: Final = {
    "claude-code": "In Claude Code: `/plugin marketplace add {directory}`, then `/plugin install signet@signet`.",
    "gemini": "`gemini extensions install {directory}` installs it.",
    "generic": "Put it where your program looks for Agent Plugins.",
}
"""The harnesses that have a plugin, and how each installs it. The first file of a plugin is its manifest."""


def plugin_files(harness: str, options: list[str]) -> dict[str, str]:
    """Return the text of each file of the plugin; ``options`` are added to the commands of hooks and server."""
    manifest: dict[str, Any] = {"name": NAME, "version": __version__, "description": DESCRIPTION}
    if harness == CLAUDE_CODE.name:
        listed = {"name": NAME, "source": "./", "description": DESCRIPTION}
        files = {
            ".claude-plugin/plugin.json": {**manifest, "author": OWNER, "license": "Apache-2.0"},
            ".claude-plugin/marketplace.json": {"name": NAME, "owner": OWNER, "plugins": [listed]},
            "hooks/hooks.json": _hooks(CLAUDE_CODE, options),
            ".mcp.json": _servers(CLAUDE_CODE, options),
        }
    elif harness == GEMINI.name:
        files = {
            "gemini-extension.json": {**manifest, **_servers(GEMINI, options)},
            "hooks/hooks.json": _hooks(GEMINI, options),
        }
    else:
        server = {"type": "stdio", "command": NAME, "args": ["mcp", *options]}
        files = {
            "plugin.json": {
                "$schema": f"{AGENT_PLUGINS}/plugin.schema.json",
                **manifest,
                "author": OWNER,
                "license": "Apache-2.0",
                "keywords": ["memory", "mcp"],
            },
            "mcp.json": {"$schema": f"{AGENT_PLUGINS}/mcp.schema.json", "mcpServers": {NAME: server}},
            "server.json": _registry_entry(),
        }
    texts = {path: json.dumps(content, indent=2, ensure_ascii=False) + "\n" for path, content in files.items()}
    return {**texts, SKILL_PATH: SKILL.read_text(encoding="utf-8")}


def write_plugin(directory: Path, files: Mapping[str, str]) -> None:
    """Write the files. Raises ConfigError if the directory has something else in it, or cannot be written."""
    try:
        if directory.exists() and any(directory.iterdir()) and not _is_ours(directory / next(iter(files))):
            raise ConfigError(f"{directory} has other files in it; name a new directory")
        for name, text in files.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{error.filename or directory} cannot be written: {error.strerror}") from None


def _hooks(harness: Harness, options: list[str]) -> dict[str, Any]:
    return {"hooks": {event: [group] for event, group in harness.groups([PROGRAM, *options]).items()}}


def _servers(harness: Harness, options: list[str]) -> dict[str, Any]:
    assert harness.servers is not None, "the harness has MCP servers"
    return {"mcpServers": {NAME: harness.servers.entry([NAME, "mcp", "--harness", harness.name, *options])}}


def _registry_entry() -> dict[str, Any]:
    """Return what a registry of MCP servers says about ours: how it runs from the package index."""
    return {
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": f"io.github.{PACKAGE}/{PACKAGE}",
        "title": "Signet",
        "description": DESCRIPTION,
        "version": __version__,
        "packages": [
            {
                "registryType": "pypi",
                "identifier": PACKAGE,
                "version": __version__,
                "runtimeHint": "uvx",
                "runtimeArguments": [{"type": "named", "name": "--with", "value": MCP_SDK}],
                "packageArguments": [{"type": "positional", "value": "mcp"}],
                "transport": {"type": "stdio"},
            }
        ],
    }


def _is_ours(manifest: Path) -> bool:
    """Return whether the manifest is that of an earlier plugin of ours."""
    try:
        found = json.loads(manifest.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("name") == NAME and found.get("description") == DESCRIPTION
