"""The harnesses that ``signet connect`` knows: where their settings are, and which of their events call which hook.

Source: https://code.claude.com/docs/en/hooks, https://developers.openai.com/codex/hooks (for both also the schemas of
SchemaStore), https://geminicli.com/docs/hooks/reference, https://cursor.com/docs/hooks,
https://code.visualstudio.com/docs/agents/reference/mcp-configuration, https://docs.windsurf.com/windsurf/cascade/mcp,
https://opencode.ai/docs/mcp-servers, https://opencode.ai/docs/plugins, https://docs.openclaw.ai/cli/mcp. Files for
instructions: https://code.claude.com/docs/en/memory, https://developers.openai.com/codex/guides/agents-md,
https://geminicli.com/docs/cli/gemini-md, https://opencode.ai/docs/rules.
"""

from __future__ import annotations

import contextlib
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeGuard

from signet_actors.cli.harnesses import hook_settings
from signet_actors.cli.harnesses.agent_workspaces import AgentWorkspaces, kept
from signet_actors.cli.harnesses.json_text import object_of
from signet_actors.cli.harnesses.server_entry import NAME, ServerEntry, TomlServer, is_our_server, server_words
from signet_actors.cli.harnesses.settings_file import Change, ManagedFile, Part, SettingsFile
from signet_actors.cli.presentation import home_of
from signet_actors.domain.session_keys import DEFAULT_AGENT
from signet_actors.errors import ConfigError
from signet_actors.runtime.connected_harnesses import ConnectedHarness

VERSION_LIMIT_S: Final = 10
_ANY_START: Final = "startup|resume|clear|compact"


@dataclass(frozen=True)
class Event:
    """An event of a harness, and the hook that it calls. ``since``: the first release whose settings may name it."""

    name: str
    hook: str
    timeout_s: int
    matcher: str | None = None
    since: tuple[int, ...] = ()


@dataclass(frozen=True)
class Servers:
    """The MCP servers of a harness: in which file, and in which form.

    ``file_names``: the first that exists, else the first. ``in_home``: the file is not in the settings directory but
    beside it, unless that has moved. ``form``: members that the entry has beside command and arguments.
    ``is_one_list``: both are one list. ``skips_mark``: the harness reads a file that begins with a byte order mark.
    """

    file_names: tuple[str, ...]
    part: ServerEntry | TomlServer
    form: dict[str, Any]
    is_one_list: bool = False
    in_home: bool = False
    skips_mark: bool = False

    def entry(self, words: list[str]) -> dict[str, Any]:
        """Return the entry that starts the server with these words."""
        command = {"command": words} if self.is_one_list else {"command": words[0], "args": words[1:]}
        return {**self.form, **command}


@dataclass(frozen=True)
class Harness:
    """A program that runs agents.

    ``directory``: its settings, below the home directory unless the variable ``moved_by`` names another. ``exec_form``:
    it starts a command from an argument list; otherwise a shell reads the command. ``flat``: its hooks have the form of
    Cursor. ``plugin``: they are run by a plugin, a file of our own. ``timeout_unit``: how many of its units a second
    has; 0 if it has none that is documented. ``comments``: its settings may have comments. ``skips_mark``: it reads
    settings that begin with a byte order mark. ``instructions``: the file in its settings directory that it reads in
    every session; the first that is not empty, else the last.
    """

    name: str
    title: str
    program: str
    directory: str
    after_connect: str
    moved_by: str = ""
    file_name: str = ""
    events: tuple[Event, ...] = ()
    servers: Servers | None = None
    exec_form: bool = False
    flat: bool = False
    plugin: bool = False
    timeout_unit: int = 1
    comments: bool = True
    skips_mark: bool = False
    instructions: tuple[str, ...] = ()

    def settings_directory(self, environ: Mapping[str, str]) -> Path:
        """Return the directory of its settings."""
        moved = environ.get(self.moved_by) if self.moved_by else None
        if moved:
            return Path(moved).expanduser()
        first, _, rest = self.directory.partition("/")
        configured = environ.get("XDG_CONFIG_HOME", "") if first == ".config" else ""
        return Path(configured) / rest if configured.startswith("/") else home_of(environ) / self.directory

    def settings(self, environ: Mapping[str, str]) -> SettingsFile:
        """Return the file with our hooks; that with our MCP server if the harness has no hooks."""
        if not self.events:
            return self.servers_file(environ)
        return SettingsFile(self.settings_directory(environ) / self.file_name, self.skips_mark)

    def servers_file(self, environ: Mapping[str, str]) -> SettingsFile:
        """Return the file with our MCP server."""
        assert self.servers is not None, "the harness has MCP servers"
        moved = self.moved_by and environ.get(self.moved_by)
        directory = home_of(environ) if self.servers.in_home and not moved else self.settings_directory(environ)
        paths = [directory / name for name in self.servers.file_names]
        path = next((path for path in paths if path.exists()), paths[0])
        return SettingsFile(path, self.servers.skips_mark)

    def instructions_of(self, environ: Mapping[str, str]) -> Path:
        return self.settings_directory(environ) / self.instructions[-1]

    def noted(self, environ: Mapping[str, str], agent: str | None) -> ConnectedHarness:
        """Return what the daemon is told about this harness. Links in the path of its directory are resolved."""
        directory = self.settings_directory(environ).resolve()
        paths = [directory / name for name in self._instruction_names(environ)]
        found: Path | str = next(filter(_has_content, paths), paths[-1] if paths else "")
        if self is OPENCODE and not _has_content(paths[0]) and _has_content(CLAUDE_CODE.instructions_of(environ)):
            found = ""  # OpenCode reads these, and would no longer do so
        settings = str(self.settings(environ).path)
        return ConnectedHarness(self.name, self.title, settings, str(found), agent or DEFAULT_AGENT)

    def _instruction_names(self, environ: Mapping[str, str]) -> tuple[str, ...]:
        """Return the names of its files for instructions; Gemini CLI can be set to read others."""
        if self is not GEMINI:
            return self.instructions
        try:
            context = self._document(environ).get("context")
        except ConfigError:
            return self.instructions
        named = context.get("fileName") if isinstance(context, dict) else None
        names = [name for name in (named if isinstance(named, list) else [named]) if _is_file_name(name)]
        return self.instructions if not names or self.instructions[0] in names else (names[0],)

    def found_by(self, environ: Mapping[str, str]) -> str:
        """Return by what it is found here: ``program``, ``settings`` (that `connect` did not make), or nothing."""
        if shutil.which(self.program, path=environ.get("PATH")):
            return "program"
        directory, settings = self.settings_directory(environ), self.settings(environ)
        levels = sum(parent.is_relative_to(directory) for parent in settings.path.parents)
        return "settings" if directory.is_dir() and not 0 < levels <= settings.made_directories() else ""

    def installed_programs(self, environ: Mapping[str, str]) -> list[str]:
        """Return the programs that our entries start: hooks, server, last their Python. Raises ConfigError."""
        commands = self._installed_commands(environ)
        return list(dict.fromkeys(words[0] for words in (*map(hook_settings.program_words, commands), *commands)))

    def installed_workspaces(self, environ: Mapping[str, str]) -> list[str]:
        """Return the workspaces that our entries name. Raises ConfigError if a file is not valid."""
        pairs = (pair for words in self._installed_commands(environ) for pair in pairwise(words))
        return list(dict.fromkeys(value for option, value in pairs if option == "--workspace"))

    def _installed_commands(self, environ: Mapping[str, str]) -> list[list[str]]:
        entry, hooks = self.installed_server(environ), self.installed_hooks(environ).values()
        return [*map(hook_settings.started_words, hooks), *([server_words(entry)] if is_our_server(entry) else [])]

    def environ_of(self, settings: str, environ: Mapping[str, str]) -> Mapping[str, str]:
        """Return the environment in which the harness has its settings in this file, where it was connected."""
        if not self.moved_by or str(self.settings(environ).path) == settings:
            return environ
        return {**environ, self.moved_by: str(Path(settings).parents[self.file_name.count("/")])}

    def event_of(self, hook: str) -> str | None:
        return next((event.name for event in self.events if event.hook == hook), None)

    def missing_events(self, environ: Mapping[str, str]) -> list[str]:
        """Return the events that call no hook of ours although every release knows them. Raises ConfigError."""
        installed = self.installed_hooks(environ)
        return [event.name for event in self.events if not event.since and event.name not in installed]

    def groups(self, command: list[str]) -> dict[str, dict[str, Any]]:
        """Return our entries; ``command`` is the hook program with its options."""
        return {event.name: self._group(event, command) for event in self.events}

    def _known_groups(self, environ: Mapping[str, str], command: list[str]) -> dict[str, dict[str, Any]]:
        """Return our entries for the events that the installed release knows."""
        release = self._release(environ) if any(event.since for event in self.events) else ()
        unknown = {event.name for event in self.events if event.since > release}
        return {name: group for name, group in self.groups(command).items() if name not in unknown}

    def _release(self, environ: Mapping[str, str]) -> tuple[int, ...]:
        """Return the release as its program tells it; empty if it tells none."""
        program = shutil.which(self.program, path=environ.get("PATH"))
        if program is None:
            return ()
        try:
            said = subprocess.run(
                [program, "--version"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=VERSION_LIMIT_S,
                env=dict(environ),
                check=True,
            ).stdout
        except (OSError, subprocess.SubprocessError):
            return ()
        numbers = said[:100].decode("ascii", "replace").partition(" ")[0].strip().split(".")
        return tuple(map(int, numbers)) if all(number.isdigit() for number in numbers) else ()

    def _group(self, event: Event, command: list[str]) -> dict[str, Any]:
        words = [*hook_settings.start_words(command[0]), event.hook, "-H", self.name, *command[1:]]
        if self.flat:
            return {"command": shlex.join(words)}
        handler: dict[str, Any] = {"type": "command", "command": words[0], "args": words[1:]}
        if not self.exec_form:
            handler = {"type": "command", "command": shlex.join(words)}
        handler["timeout"] = event.timeout_s * self.timeout_unit
        if self.plugin:
            return handler
        group: dict[str, Any] = {} if event.matcher is None else {"matcher": event.matcher}
        return {**group, "hooks": [handler]}

    def connecting(
        self,
        environ: Mapping[str, str],
        command: list[str],
        server: list[str] | None,
        workspaces: Mapping[str, str] | None = None,
    ) -> list[Change]:
        """Return the changes that add our entries, or bring them up to date.

        ``server`` is the command of the MCP server; without one, its entry stays as it is. ``workspaces``: those that
        agents get, by name. Raises ConfigError if a file is not valid, or has vanished since we were connected.
        """

        def wanted(part: Part) -> Any:
            if isinstance(part, AgentWorkspaces):
                return workspaces
            if self.servers is None or part is not self.servers.part:
                return self._known_groups(environ, command)
            return None if server is None else self.servers.entry([*server, "--harness", self.name, *command[1:]])

        changes = [file.connecting(tuple(map(wanted, file.parts))) for file in self._files(environ)]
        return [change for change in changes if change.was_connected or change.is_needed]

    def disconnecting(self, environ: Mapping[str, str]) -> list[Change]:
        """Return the changes that remove our entries. Raises ConfigError if a file is not valid."""
        return [file.disconnecting() for file in self._files(environ)]

    def is_connected(self, environ: Mapping[str, str]) -> bool:
        """Return whether a file has entries of ours. Raises ConfigError if one is not valid."""
        return any(file.is_connected() for file in self._files(environ))

    def installed_hooks(self, environ: Mapping[str, str]) -> dict[str, dict[str, Any]]:
        """Return the handler of each event that calls our hook. Raises ConfigError if the file is not valid."""
        found: dict[str, dict[str, Any]] = {}
        for file in self._files(environ):
            with file.refusing():
                for part in file.parts:
                    if isinstance(part, hook_settings.PluginFile):
                        found |= part.installed(file.file.read())
                    elif isinstance(part, hook_settings.HookGroups):
                        entries = part.installed(file.file.read())
                        found |= {event: part.handler_of(entry) for event, entry in entries.items()}
        return found

    def installed_server(self, environ: Mapping[str, str]) -> Any:
        """Return the MCP server named signet, ours or not; None if there is none. Raises ConfigError."""
        if self.servers is None:
            return None
        file = ManagedFile(self.servers_file(environ), (self.servers.part,), self.title)
        with file.refusing():
            return self.servers.part.found(file.file.read())

    def tools_from(self, environ: Mapping[str, str]) -> str:
        """Return the path of the file with our MCP server; empty if there is none. Raises ConfigError."""
        is_ours = is_our_server(self.installed_server(environ))
        return str(self.servers_file(environ).path) if is_ours else ""

    def kept_workspaces(self, environ: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
        """Return where OpenClaw's agents work that keep what they have instead of these. Raises ConfigError."""
        if self is not OPENCLAW:
            return {}
        (file,) = self._files(environ)
        with file.refusing():
            return kept(file.file.read(), wanted, self.settings_directory(environ))

    def notes(self, environ: Mapping[str, str]) -> list[str]:
        """Return what keeps the hooks from working although they are in the file. Raises ConfigError."""
        notes = []
        if self in (CLAUDE_CODE, CODEX):
            document = self._document(environ)
            if document.get("disableAllHooks") is True:
                notes.append(f"{self.title} runs no hooks: disableAllHooks is true in {self.settings(environ).path}.")
            if self is CODEX and _codex_hooks_off(self.servers_file(environ).read()):
                notes.append("Codex runs no hooks: [features] hooks is false in config.toml.")
            if any(hook_settings.is_of_other_signet(handler) for _, handler in hook_settings.handlers(document)):
                notes.append("Hooks of another Signet (`signet hook …`) are in the file, too; remove them.")
        switches = self._document(environ).get("hooksConfig") if self is GEMINI else None
        if isinstance(switches, dict) and switches.get("enabled") is False:
            notes.append(f"Gemini CLI runs no hooks: hooksConfig.enabled is false in {self.settings(environ).path}.")
        plugin = self.settings(environ)
        if self.plugin and (plugin.read() or "").strip() and not hook_settings.is_our_plugin(plugin.read() or ""):
            notes.append(f"{plugin.path} is a plugin that `signet connect` did not make; it stays, and no hook runs.")
        entry = self.installed_server(environ)
        if entry is not None and not is_our_server(entry):
            path = self.servers_file(environ).path
            notes.append(f"{path} has an MCP server named {NAME} that `signet connect` did not add; it stays as it is.")
        return notes

    def checked_notes(self, environ: Mapping[str, str]) -> list[str]:
        """Return the notes, and what a check of our files cannot tell. Raises ConfigError."""
        notes = self.notes(environ)
        if self is OPENCODE and is_our_server(self.installed_server(environ)):
            file = self.servers_file(environ)
            if not isinstance((object_of(file.read(), comments=True).get("mcp") or {}).get("servers"), dict):
                notes.append(
                    f"The tools are in `mcp.{NAME}` of {file.path}, as OpenCode 1 reads them. For OpenCode 2, run"
                    ' `signet disconnect opencode`, add `"mcp": {"servers": {}}`, and connect again.'
                )
        return notes

    def _document(self, environ: Mapping[str, str]) -> dict[str, Any]:
        (file,) = (file for file in self._files(environ) if file.file.path == self.settings(environ).path)
        with file.refusing():
            return hook_settings.HookGroups(comments=self.comments).document(file.file.read())

    def _hooks_part(self) -> Part:
        if self.plugin:
            return hook_settings.PluginFile()
        return hook_settings.HookGroups(comments=self.comments, flat=self.flat)

    def _files(self, environ: Mapping[str, str]) -> list[ManagedFile]:
        found: list[tuple[SettingsFile, Part]] = []
        if self.events:
            found.append((self.settings(environ), self._hooks_part()))
        if self.servers is not None:
            found.append((self.servers_file(environ), self.servers.part))
        if self is OPENCLAW:
            file, part = found[0]
            return [ManagedFile(file, (AgentWorkspaces(), part), self.title)]
        if len(found) == 2 and found[0][0].path == found[1][0].path:
            return [ManagedFile(found[0][0], (found[0][1], found[1][1]), self.title)]
        return [ManagedFile(file, (part,), self.title) for file, part in found]


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _is_file_name(name: Any) -> TypeGuard[str]:
    return isinstance(name, str) and name not in ("", "..") and "\0" not in name and Path(name).name == name


CLAUDE_CODE: Final = Harness(
    name="claude-code",
    title="Claude Code",
    program="claude",
    directory=".claude",
    moved_by="CLAUDE_CONFIG_DIR",
    file_name="settings.json",
    events=(
        Event("SessionStart", "session-start", 5, _ANY_START),
        Event("UserPromptSubmit", "user-prompt-submit", 5),
        Event("PreCompact", "pre-compaction", 5),
        Event("PostCompact", "compaction-complete", 5, since=(2, 1, 76)),
        Event("PostToolUse", "skill-invocation", 5, "Skill"),
        Event("Stop", "checkpoint", 5),
        Event("SessionEnd", "session-end", 5),
    ),
    servers=Servers(
        (".claude.json",),
        ServerEntry(("mcpServers",), comments=False),
        {"type": "stdio", "alwaysLoad": True},  # the model has the tools at once, and need not search for them
        in_home=True,
    ),
    exec_form=True,
    comments=False,
    after_connect="It counts from the next session on; `/hooks` in Claude Code shows it.",
    skips_mark=True,
    instructions=("CLAUDE.md",),
)
CODEX: Final = Harness(
    name="codex",
    title="Codex",
    program="codex",
    directory=".codex",
    moved_by="CODEX_HOME",
    file_name="hooks.json",
    events=(
        Event("SessionStart", "session-start", 5, _ANY_START),
        Event("UserPromptSubmit", "user-prompt-submit", 5),
        Event("PreCompact", "pre-compaction", 5),
        Event("Stop", "checkpoint", 5),
        Event("SessionEnd", "session-end", 3),
    ),
    servers=Servers(("config.toml",), TomlServer(), {}, skips_mark=True),
    comments=False,
    after_connect="Codex asks whether you trust new hooks: start it, type `/hooks`, and trust those of signet-hook.",
    instructions=("AGENTS.override.md", "AGENTS.md"),
)
GEMINI: Final = Harness(
    name="gemini",
    title="Gemini CLI",
    program="gemini",
    directory=".gemini",
    file_name="settings.json",
    events=(
        Event("SessionStart", "session-start", 5),
        Event("BeforeAgent", "user-prompt-submit", 5),
        Event("PreCompress", "pre-compaction", 5, "manual"),  # an automatic one is announced before each request
        Event("AfterAgent", "checkpoint", 5),
        Event("SessionEnd", "session-end", 5),
    ),
    servers=Servers(("settings.json",), ServerEntry(("mcpServers",), comments=True), {}),
    timeout_unit=1000,
    after_connect="It counts from the next session on; `/hooks` and `/mcp` in Gemini CLI show it.",
    instructions=("GEMINI.md",),
)
CURSOR: Final = Harness(
    name="cursor",
    title="Cursor",
    program="cursor",
    directory=".cursor",
    file_name="hooks.json",
    events=(
        Event("sessionStart", "session-start", 5),
        Event("beforeSubmitPrompt", "user-prompt-submit", 5),
        Event("preCompact", "pre-compaction", 5),
        Event("stop", "checkpoint", 5),
        Event("sessionEnd", "session-end", 5),
    ),
    servers=Servers(("mcp.json",), ServerEntry(("mcpServers",), comments=True), {}),
    flat=True,
    after_connect="It counts from the next conversation on; Cursor's settings show it below Hooks and MCP.",
)
VSCODE: Final = Harness(
    name="vscode",
    title="VS Code",
    program="code",
    directory="Library/Application Support/Code/User" if sys.platform == "darwin" else ".config/Code/User",
    servers=Servers(("mcp.json",), ServerEntry(("servers",), comments=True), {"type": "stdio"}, skips_mark=True),
    after_connect="Start the server once: MCP: List Servers in the command palette, signet, Start Server.",
)
WINDSURF: Final = Harness(
    name="windsurf",
    title="Windsurf",
    program="windsurf",
    directory=".codeium/windsurf",
    servers=Servers(("mcp_config.json",), ServerEntry(("mcpServers",), comments=True), {}),
    after_connect="Reload the list of MCP servers in Windsurf's Cascade panel.",
)
OPENCODE: Final = Harness(
    name="opencode",
    title="OpenCode",
    program="opencode",
    directory=".config/opencode",
    moved_by="OPENCODE_CONFIG_DIR",
    file_name="plugins/signet.js",
    events=(
        Event("session.created", "session-start", 5),
        Event("chat.message", "user-prompt-submit", 5),
        Event("experimental.session.compacting", "pre-compaction", 5),
        Event("session.compacted", "compaction-complete", 5),
        Event("session.idle", "checkpoint", 5),
        Event("session.deleted", "session-end", 5),
    ),
    servers=Servers(
        ("opencode.json", "opencode.jsonc"),
        ServerEntry(("mcp",), comments=True, inner="servers"),
        {"type": "local"},
        is_one_list=True,
    ),
    exec_form=True,
    plugin=True,
    after_connect="It counts from the next start of OpenCode on.",
    instructions=("AGENTS.md",),
)
OPENCLAW: Final = Harness(
    name="openclaw",
    title="OpenClaw",
    program="openclaw",
    directory=".openclaw",
    servers=Servers(("openclaw.json",), ServerEntry(("mcp", "servers"), comments=True), {}, skips_mark=True),
    after_connect="`openclaw mcp status` shows it.",
)
HARNESSES: Final = (CLAUDE_CODE, CODEX, GEMINI, CURSOR, VSCODE, WINDSURF, OPENCODE, OPENCLAW)


def connected_titles(environ: Mapping[str, str]) -> list[str]:
    """Return the titles of the programs that are connected; one whose settings cannot be read is left out."""
    titles = []
    for harness in HARNESSES:
        with contextlib.suppress(ConfigError):
            if harness.is_connected(environ):
                titles.append(harness.title)
    return titles


def _codex_hooks_off(text: str | None) -> bool:
    try:
        features = tomllib.loads(text or "").get("features")
    except ValueError:
        return False
    return isinstance(features, dict) and features.get("hooks", features.get("codex_hooks")) is False
