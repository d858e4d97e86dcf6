"""The workspaces of OpenClaw's agents: each that Signet knows, too, works in its directory ``agents/NAME/workspace``.

An agent whose workspace is set in OpenClaw, or whose own directory there has files, keeps it. OpenClaw has its agents
in ``agents.list``, in later releases in ``agents.entries``; without either, its only one is ``main``, and
``agents.defaults.workspace`` is its workspace.

Source: architecture.txt "Per-agent workspace"; https://docs.openclaw.ai/concepts/agent-workspace;
https://docs.openclaw.ai/gateway/config-agents "agents.defaults.workspace", "agents.entries".
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from signet_actors.cli.harnesses import json_text
from signet_actors.cli.harnesses.server_entry import is_our_server
from signet_actors.cli.harnesses.settings_file import Part
from signet_actors.config.workspace import Workspace
from signet_actors.runtime.connected_harnesses import WORKSPACE_OF_AGENT

KEY: Final = "workspace"
MAIN: Final = "main"
_DEFAULTS: Final = ("agents", "defaults")


class _Agent(NamedTuple):
    """An agent of OpenClaw: the keys and indexes that lead to its settings, and the workspace that is set there."""

    name: str
    place: tuple[str | int, ...]
    workspace: Any


def directory_of(workspace: Path, name: str) -> str:
    """Return the directory in which OpenClaw's agent of this name works, with an ``AGENTS.md`` by the daemon."""
    return str(Workspace(workspace).agents_dir / name / WORKSPACE_OF_AGENT)


def kept(text: str | None, wanted: Mapping[str, str], state: Path) -> dict[str, str]:
    """Return where those agents work that are wanted elsewhere and keep what they have, by name.

    ``state``: the directory of OpenClaw's settings, in which agents have their own directories. Raises InvalidText.
    """
    found = {}
    for agent in _agents(text):
        own = state / (KEY if agent.place == _DEFAULTS else f"{KEY}-{agent.name}")
        if agent.name not in wanted or agent.workspace == wanted[agent.name]:
            continue
        if agent.workspace is not None or (own.is_dir() and any(own.iterdir())):
            found[agent.name] = str(own) if agent.workspace is None else str(agent.workspace)
    return found


class AgentWorkspaces(Part):
    """Those that ``connect`` has set, by name. Without our MCP server in the file they are its owner's."""

    def installed(self, text: str | None) -> dict[str, Any]:
        server: Any = json_text.object_of(text, comments=True)
        for key in ("mcp", "servers", "signet"):
            server = server.get(key) if isinstance(server, dict) else None
        if not is_our_server(server):
            return {}
        return {agent.name: agent.workspace for agent in _agents(text) if _is_ours(agent)}

    def connected(self, text: str | None, wanted: Mapping[str, str]) -> str:
        text = text if text is not None and text.strip() else "{}\n"
        for agent in _agents(text):
            if agent.name in wanted and agent.workspace is None:
                if agent.place == _DEFAULTS:
                    text = json_text.inserted(text, _DEFAULTS, KEY, wanted[agent.name])
                else:
                    text = json_text.appended(text, _value_at(text, agent.place), wanted[agent.name], KEY)
        return text

    def stripped(self, text: str, former: str | None = None) -> str:
        before = {agent.name: agent.workspace for agent in _agents(former)}
        for name, workspace in self.installed(text).items():
            agent = next(agent for agent in _agents(text) if agent.name == name)
            if before.get(name) == workspace:
                continue
            settings = _value_at(text, agent.place)
            text = json_text.removed(text, settings, [part.key for part in json_text.parts(text, settings)].index(KEY))
            if agent.place == _DEFAULTS:
                text = json_text.without_empty(text, _DEFAULTS, former)
        return text

    def is_blank(self, text: str) -> bool:
        return not json_text.object_of(text, comments=True)


def _agents(text: str | None) -> Iterator[_Agent]:
    """Yield the agents, as far as the file has the form that OpenClaw reads."""
    agents = json_text.object_of(text, comments=True).get("agents", {})
    if not isinstance(agents, dict):
        return
    listed, entries = agents.get("list"), agents.get("entries")
    settings: list[tuple[Any, Any, tuple[str | int, ...]]] = []
    if isinstance(entries, dict):
        settings += [(name, each, ("agents", "entries", name)) for name, each in entries.items()]
    if isinstance(listed, list):
        found = [each if isinstance(each, dict) else {} for each in listed]
        settings += [(each.get("id"), each, ("agents", "list", index)) for index, each in enumerate(found)]
    if not settings and isinstance(agents.get("defaults", {}), dict):
        settings.append((MAIN, agents.get("defaults", {}), _DEFAULTS))
    for name, each, place in settings:
        if isinstance(name, str) and isinstance(each, dict):
            yield _Agent(name, place, each.get(KEY))


def _is_ours(agent: _Agent) -> bool:
    path = agent.workspace if isinstance(agent.workspace, str) else ""
    return os.path.isabs(path) and Path(path).parts[-3:] == ("agents", agent.name, WORKSPACE_OF_AGENT)


def _value_at(text: str, place: tuple[str | int, ...]) -> int:
    """Return where the value begins to which these keys and indexes lead."""
    at = json_text.root_of(text)
    for step in place:
        found = json_text.parts(text, at)[step] if isinstance(step, int) else json_text.member(text, at, step)
        assert found is not None, "the document has it"
        at = found.value
    return at
