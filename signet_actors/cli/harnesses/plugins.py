"""Plugins that a harness installs as a whole: its hooks, the MCP server, and a skill for models.

They are made from the tables of ``registry.py``. Their commands are bare names, found on the PATH, so that a plugin can
be shared. Claude Code and Gemini CLI read hooks from the same file name, so each has a directory of its own.

Source: docs/guides/plugins.md; https://code.claude.com/docs/en/plugins-reference; https://agentskills.io/specification;
https://geminicli.com/docs/extensions/reference; https://docs.openclaw.ai/plugins/manifest; Agent Plugins 1.0.0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from signet_actors import __version__
from signet_actors.cli.harnesses.hook_settings import PROGRAM, source
from signet_actors.cli.harnesses.registry import CLAUDE_CODE, GEMINI, OPENCLAW, Event, Harness
from signet_actors.cli.harnesses.server_entry import NAME
from signet_actors.errors import ConfigError

AGENT_PLUGINS: Final = "https://agent-plugins.org/schemas/1.0.0"
DESCRIPTION: Final = "Long-term memory for agents, kept on this machine by the Signet daemon"
OPENCLAW_PREFIX: Final = "signet_"
"""OpenClaw has tools named memory_search and memory_get itself."""
OPENCLAW_EVENTS: Final = (
    Event("session_start", "session-start", 5),
    Event("before_prompt_build", "user-prompt-submit", 5),
    Event("before_compaction", "pre-compaction", 5),
    Event("after_compaction", "compaction-complete", 5),
    Event("agent_end", "checkpoint", 5),
    Event("session_end", "session-end", 5),
)
"""Hooks of OpenClaw's plugins; its settings have none. Its session starts with the first prompt."""
PACKAGE: Final = "signet-actors"
OWNER: Final = {"name": "Signet Actors"}
SKILL: Final = Path(__file__).with_name("skill.md")
SKILL_PATH: Final = "skills/signet-memory/SKILL.md"
INSTALL: Final = {
    "claude-code": "In Claude Code: `/plugin marketplace add {directory}`, then `/plugin install signet@signet`.",
    "gemini": "`gemini extensions install {directory}` installs it.",
    "openclaw": "`openclaw plugins install {directory} --force --accept-capabilities` installs it;"
    " docs/guides/plugins.md has its settings.",
    "generic": "Put it where your program looks for Agent Plugins.",
}
"""The harnesses that have a plugin, and how each installs it. The first file of a plugin is its manifest."""


def plugin_files(harness: str, options: list[str]) -> dict[str, str]:
    """Return the text of each file of the plugin; ``options`` are added to the commands of hooks and server."""
    manifest: dict[str, Any] = {"name": NAME, "version": __version__, "description": DESCRIPTION}
    if harness == CLAUDE_CODE.name:
        listed = {"name": NAME, "source": "./", "description": DESCRIPTION}
        files: dict[str, Any] = {
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
    elif harness == OPENCLAW.name:
        files = _openclaw(manifest, options)
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
    texts = {
        path: content if isinstance(content, str) else json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        for path, content in files.items()
    }
    skill = SKILL.read_text(encoding="utf-8")
    if harness == OPENCLAW.name:
        from signet_actors.operations.tools import TOOLS  # noqa: PLC0415 - slow; other commands need it not

        for name in TOOLS:
            skill = skill.replace(f"`{name}`", f"`{OPENCLAW_PREFIX}{name}`")
    return {**texts, SKILL_PATH: skill}


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


def _openclaw(manifest: dict[str, Any], options: list[str]) -> dict[str, Any]:
    """Return the files of a plugin that runs in OpenClaw: it has its own names for the tools, and six of its hooks."""
    from signet_actors.operations.tools import TOOLS, input_schema  # noqa: PLC0415 - slow; other commands need it not

    tools = {
        f"{OPENCLAW_PREFIX}{name}": {
            "tool": name,
            "description": tool.description,
            "parameters": input_schema(tool, operation),
        }
        for name, (tool, operation) in TOOLS.items()
    }
    hooks = replace(OPENCLAW, events=OPENCLAW_EVENTS, exec_form=True, plugin=True).groups([PROGRAM, *options])
    server = {"command": NAME, "args": ["mcp", "--harness", OPENCLAW.name, *options]}
    return {
        "openclaw.plugin.json": {
            "id": NAME,
            **manifest,
            "activation": {"onStartup": True},
            "contracts": {"tools": list(tools)},
            "skills": ["./skills"],
            "configSchema": {"type": "object", "additionalProperties": False, "properties": {}},
        },
        "package.json": {
            "name": f"{PACKAGE}-openclaw",
            "version": __version__,
            "private": True,
            "type": "module",
            "openclaw": {"extensions": ["./index.js"]},
        },
        "index.js": source("openclaw", hooks=hooks, tools=tools, server=server),
    }


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
