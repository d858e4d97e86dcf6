"""A settings file of a harness with the parts that are ours, and the changes that bring and remove them.

Source: docs/guides/claude-code.md "What connect changes".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from signet_actors.cli.harnesses.json_text import InvalidText
from signet_actors.cli.harnesses.settings_file import Change, SettingsFile
from signet_actors.errors import ConfigError


class Part(Protocol):
    """Our entries of one kind in a file. Every method raises InvalidText if the file has another form."""

    def installed(self, text: str | None) -> dict[str, Any]:
        """Return our entries as they are in the text; empty if there are none."""

    def connected(self, text: str | None, wanted: Any) -> str:
        """Return the text with exactly our wanted entries."""

    def stripped(self, text: str, former: str | None = None) -> str:
        """Return the text without our entries, and without what only they filled; what ``former`` has stays."""

    def is_pure(self, entries: Any) -> bool:
        """Return whether nothing of other programs is in our entries."""

    def is_blank(self, text: str) -> bool:
        """Return whether the text has no settings."""


@dataclass(frozen=True)
class ManagedFile:
    """A file, and what of it is ours. ``title`` is the name of its program."""

    file: SettingsFile
    parts: tuple[Part, ...]
    title: str

    def connecting(self, wanted: tuple[Any, ...]) -> Change:
        """Return the change that brings the wanted entries of each part; None leaves a part as it is.

        Raises ConfigError if the file is not valid, or has vanished since we were connected.
        """
        before, former = self.file.read(), self.file.former()
        if not (before or "").strip() and (former or "").strip():
            what = "is missing" if before is None else "is empty"
            raise ConfigError(
                f"{self.file.path} {what}, but {self.file.backup} has its former content: restore or delete that"
            )
        try:
            installed = [part.installed(before) for part in self.parts]
            after = former if self._is_made_from(former, before) else before
            for part, given, found in zip(self.parts, wanted, installed, strict=True):
                entries = given or found
                after = part.connected(after, entries) if entries else after
        except InvalidText as error:
            raise self.refusal(error) from None
        return Change(self.file, before, after, connects=True, was_connected=any(installed))

    def disconnecting(self) -> Change:
        """Return the change that removes our entries. Raises ConfigError if the file is not valid.

        If the file is what ``connecting`` makes of its former content, that comes back byte for byte. Otherwise another
        program has changed it since, and our entries are removed from what it is now. A file that connect made is
        deleted.
        """
        before, former = self.file.read(), self.file.former()
        try:
            is_connected = self.is_connected(before)
            after = before
            for part in self.parts:
                after = None if after is None else part.stripped(after, former)
            if former is not None and self._is_made_from(former, before):
                after = former
            elif is_connected and self.file.was_missing() and all(part.is_blank(after or "") for part in self.parts):
                after = None
        except InvalidText as error:
            raise self.refusal(error) from None
        return Change(self.file, before, after, connects=False, was_connected=is_connected)

    def is_connected(self, text: str | None) -> bool:
        """Return whether entries of ours are in the text. Raises InvalidText."""
        return any(part.installed(text) for part in self.parts)

    def refusal(self, error: InvalidText) -> ConfigError:
        """Return the error for a file that cannot be edited."""
        neither = "" if error.is_json else f"; {self.title} does not read such a file either"
        return ConfigError(f"{self.file.path}, line {error.line}: {error.problem}{neither}. Nothing was changed")

    def _is_made_from(self, former: str | None, text: str | None) -> bool:
        """Return whether the text is what ``connecting`` makes of the former one, and nothing has changed it since."""
        try:
            made = former
            for part in self.parts:
                entries = part.installed(text)
                if not part.is_pure(entries):
                    return False
                made = part.connected(made, entries) if entries else made
            return made == text and self.is_connected(text)
        except InvalidText:
            return False
