"""The harnesses that ``signet connect`` has connected to a workspace, and the files that get its identity files.

``memory/harnesses.json`` is written by the command only. The daemon reads it, so that it knows the directories that the
command found, whatever the daemon's own environment says.

Source: docs/guides/identity.md "In the files of harnesses".
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any, Final, NamedTuple

from signet_actors.config.regular_file import read_regular
from signet_actors.config.workspace import Workspace
from signet_actors.domain.identity_block import identity_block
from signet_actors.domain.session_keys import DEFAULT_AGENT
from signet_actors.errors import ConfigError
from signet_actors.runtime.file_draft import replace_file
from signet_actors.runtime.harness_file import NotOurs, found_block
from signet_actors.runtime.identity_files import is_directory_name, read_identity

OPENCLAW: Final = "openclaw"
"""It has a directory for each agent, which is in the workspace."""
WORKSPACE_OF_AGENT: Final = "workspace"
SESSION_FOLDERS: Final = {
    "claude-code": ("projects",),
    "codex": ("sessions", "archived_sessions"),
    "gemini": ("tmp",),
    "cursor": ("projects",),
}
MAX_BYTES: Final = 256 * 1024
MAX_HARNESSES: Final = 64
MAX_AGENTS: Final = 200
"""Agents whose directories are looked at."""


class ConnectedHarness(NamedTuple):
    """A harness that is connected as ``agent``.

    ``identity_file`` and ``servers_file``, of its MCP tools, are empty if it has none.
    """

    harness: str
    title: str
    settings: str
    identity_file: str = ""
    agent: str = DEFAULT_AGENT
    servers_file: str = ""

    @property
    def session_folders(self) -> tuple[Path, ...]:
        """The folders beside its settings in which it keeps its sessions; none if these are elsewhere."""
        if not os.path.isabs(self.settings):
            return ()
        return tuple(Path(self.settings).parent / name for name in SESSION_FOLDERS.get(self.harness, ()))


class Target(NamedTuple):
    """A file that gets the identity files of an agent."""

    path: Path
    agent_id: str


def read_connected(workspace: Path) -> tuple[ConnectedHarness, ...]:
    """Return the connected harnesses; none if the file is missing or not valid."""
    try:
        found = json.loads(read_regular(Workspace(workspace).harnesses_file, MAX_BYTES))
    except (ConfigError, OSError, ValueError, RecursionError):
        return ()
    rows = found.get("harnesses") if isinstance(found, dict) else None
    return tuple(filter(None, map(_parsed, rows[:MAX_HARNESSES]))) if isinstance(rows, list) else ()


def add_connected(workspace: Path, connected: ConnectedHarness) -> None:
    """Note a harness instead of what was noted for its settings. Raises OSError."""
    before = read_connected(workspace)
    rows = tuple(connected if _is_same(row, connected.harness, connected.settings) else row for row in before)
    rows = rows if connected in rows else (*rows, connected)
    if rows != before:
        for directory in (workspace, Workspace(workspace).memory_dir):  # ``mode`` is not that of its parents
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(workspace, rows)


def remove_connected(workspace: Path, harness: str, settings: str) -> None:
    """Forget a harness. What was made only for this note goes, too. Raises OSError."""
    rows = read_connected(workspace)
    left = tuple(row for row in rows if not _is_same(row, harness, settings))
    if left:
        if left != rows:
            _write(workspace, left)
        return
    file = Workspace(workspace).harnesses_file
    if rows:
        file.unlink(missing_ok=True)
        for directory in (file.parent, workspace):
            with contextlib.suppress(OSError):  # it holds something else
                directory.rmdir()


def targets_of(workspace: Path, connected: ConnectedHarness) -> list[Target]:
    """Return the files of a harness that get identity files. The file system is read for OpenClaw only."""
    if connected.harness == OPENCLAW:
        agents = Workspace(workspace).agents_dir
        return [Target(agents / name / WORKSPACE_OF_AGENT / "AGENTS.md", name) for name in agents_of(workspace)]
    return [Target(Path(connected.identity_file), connected.agent)] if connected.identity_file else []


def wanted_block(workspace: Path, target: Target) -> bytes:
    """Return the part with the identity files that the file is to have."""
    return identity_block(read_identity(workspace, target.agent_id, target=target.path))


def has_identity(workspace: Path, harness: str, agent_id: str) -> bool:
    """Return whether the harness gets the present identity of this agent from a file of its own."""
    targets = [
        target
        for row in read_connected(workspace)
        if row.harness == harness
        for target in targets_of(workspace, row)
        if harness != OPENCLAW or target.agent_id == agent_id
    ]
    if not targets:
        return False
    try:
        paths = [target.path for target in targets]
        return all(found_block(path) == wanted_block(workspace, Target(path, agent_id)) for path in paths)
    except NotOurs:
        return False


def agents_of(workspace: Path) -> list[str]:
    """Return the agents that have a directory of their own, in order."""
    try:
        with os.scandir(Workspace(workspace).agents_dir) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted(filter(is_directory_name, names))[:MAX_AGENTS]


def _is_same(row: ConnectedHarness, harness: str, settings: str) -> bool:
    return (row.harness, row.settings) == (harness, settings)


def _write(workspace: Path, rows: tuple[ConnectedHarness, ...]) -> None:
    content = json.dumps({"harnesses": [row._asdict() for row in rows]}, ensure_ascii=False, indent=2) + "\n"
    replace_file(Workspace(workspace).harnesses_file, content.encode())


def _parsed(row: Any) -> ConnectedHarness | None:
    if not isinstance(row, dict):
        return None
    given = {name: row[name] for name in ConnectedHarness._fields if name in row}
    if not all(isinstance(value, str) and "\0" not in value for value in given.values()):
        return None
    try:
        connected = ConnectedHarness(**given)
    except TypeError:
        return None
    is_absolute = not connected.identity_file or os.path.isabs(connected.identity_file)
    return connected if is_absolute else None
