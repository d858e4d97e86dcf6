"""The harnesses that ``signet connect`` knows: where their settings are, and which of their events call which hook.

Source: https://code.claude.com/docs/en/hooks, https://developers.openai.com/codex/hooks; for both the schemas
claude-code-settings.json and codex-hooks.json of SchemaStore.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from signet_actors.cli.harnesses.hook_settings import (
    connected,
    document_of,
    handlers,
    installed,
    is_made_from,
    is_of_other_signet,
    stripped,
)
from signet_actors.cli.harnesses.json_text import InvalidText
from signet_actors.cli.harnesses.settings_file import Change, SettingsFile
from signet_actors.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION_LIMIT_S: Final = 10
_ANY_START: Final = "startup|resume|clear|compact"


@dataclass(frozen=True)
class Event:
    """An event of a harness, the hook that it calls, and how long the harness waits for it at most.

    ``since``: the first release that knows the event, if an older one ignores settings that name it.
    """

    name: str
    hook: str
    timeout_s: int
    matcher: str | None = None
    since: tuple[int, ...] = ()


@dataclass(frozen=True)
class Harness:
    """A program that runs agents.

    ``directory``: its settings, below the home directory unless the variable ``moved_by`` names another. ``exec_form``:
    it starts a command from an argument list; otherwise a shell reads the command. ``skips_mark``: it reads settings
    that begin with a byte order mark.
    """

    name: str
    title: str
    program: str
    directory: str
    moved_by: str
    file_name: str
    events: tuple[Event, ...]
    exec_form: bool
    after_connect: str
    skips_mark: bool = False

    def settings_directory(self, environ: Mapping[str, str]) -> Path:
        """Return the directory of its settings."""
        moved = environ.get(self.moved_by)
        home = Path(environ["HOME"]) if environ.get("HOME", "").startswith("/") else Path.home()
        return Path(moved).expanduser() if moved else home / self.directory

    def settings(self, environ: Mapping[str, str]) -> SettingsFile:
        """Return the file that our entries are in."""
        return SettingsFile(self.settings_directory(environ) / self.file_name, self.skips_mark)

    def is_found(self, environ: Mapping[str, str]) -> bool:
        """Return whether the harness seems to be installed: its program, or its settings directory."""
        found = shutil.which(self.program, path=environ.get("PATH"))
        return found is not None or self.settings_directory(environ).is_dir()

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
        words = [command[0], event.hook, "-H", self.name, *command[1:]]
        handler: dict[str, Any] = {"type": "command", "command": words[0], "args": words[1:]}
        if not self.exec_form:
            handler = {"type": "command", "command": shlex.join(words)}
        handler["timeout"] = event.timeout_s
        group: dict[str, Any] = {} if event.matcher is None else {"matcher": event.matcher}
        return {**group, "hooks": [handler]}

    def connecting(self, environ: Mapping[str, str], command: list[str]) -> Change:
        """Return the change that adds our entries, or brings them up to date.

        Raises ConfigError if the file is not valid, or has vanished since we were connected.
        """
        file = self.settings(environ)
        before, former = file.read(), file.former()
        if not (before or "").strip() and (former or "").strip():
            what = "is missing" if before is None else "is empty"
            raise ConfigError(f"{file.path} {what}, but {file.backup} has its former content: restore or delete that")
        try:
            is_connected = bool(installed(before))
            base = former if is_made_from(former, before) else before
            after = connected(base, self._known_groups(environ, command))
        except InvalidText as error:
            raise self._refusal(file, error) from None
        return Change(file, before, after, connects=True, was_connected=is_connected)

    def disconnecting(self, environ: Mapping[str, str]) -> Change:
        """Return the change that removes our entries. Raises ConfigError if the file is not valid.

        If the file is what ``connect`` makes of its former content, that comes back byte for byte. Otherwise somebody
        has changed it since, and our entries are removed from what it is now. A file that
        connect made is deleted.
        """
        file = self.settings(environ)
        before, former = file.read(), file.former()
        try:
            is_connected = bool(installed(before))
            after = None if before is None else stripped(before)
            if former is not None and is_made_from(former, before):
                after = former
            elif is_connected and file.was_missing() and document_of(after) == {}:
                after = None
        except InvalidText as error:
            raise self._refusal(file, error) from None
        return Change(file, before, after, connects=False, was_connected=is_connected)

    def document(self, environ: Mapping[str, str]) -> dict[str, Any]:
        """Return the settings; empty if there is no file. Raises ConfigError if the file is not valid."""
        file = self.settings(environ)
        try:
            return document_of(file.read())
        except InvalidText as error:
            raise self._refusal(file, error) from None

    def notes(self, environ: Mapping[str, str]) -> list[str]:
        """Return what keeps the hooks from working although they are in the file."""
        document = self.document(environ)
        notes = []
        if document.get("disableAllHooks") is True:
            notes.append(f"{self.title} runs no hooks: disableAllHooks is true in {self.settings(environ).path}.")
        if self is CODEX and _codex_hooks_off(self.settings_directory(environ) / "config.toml"):
            notes.append("Codex runs no hooks: [features] hooks is false in config.toml.")
        if any(is_of_other_signet(handler) for _, handler in handlers(document)):
            notes.append("Hooks of another Signet (`signet hook …`) are in the file, too; remove them.")
        return notes

    def _refusal(self, file: SettingsFile, error: InvalidText) -> ConfigError:
        neither = "" if error.is_json else f"; {self.title} does not read such a file either"
        return ConfigError(f"{file.path}, line {error.line}: {error.problem}{neither}. Nothing was changed")


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
        Event("Stop", "checkpoint", 5),
        Event("SessionEnd", "session-end", 5),
    ),
    exec_form=True,
    after_connect="It counts from the next session on; `/hooks` in Claude Code shows it.",
    skips_mark=True,
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
    exec_form=False,
    after_connect="Codex asks whether you trust new hooks: start it, type `/hooks`, and trust those of signet-hook.",
)
HARNESSES: Final = (CLAUDE_CODE, CODEX)


def _codex_hooks_off(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            features = tomllib.load(file).get("features")
    except (OSError, ValueError):
        return False
    return isinstance(features, dict) and features.get("hooks", features.get("codex_hooks")) is False
