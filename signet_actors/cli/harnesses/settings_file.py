"""A settings file of another program: read it, change it in one step, and bring its former content back.

Before the first change its content is kept beside it, or a note that there was no file. A symbolic link stays, and its
target is changed; the mode stays. A file that is not as the program expects it is refused and never written.

Source: docs/guides/claude-code.md "What connect changes".
"""

from __future__ import annotations

import contextlib
import difflib
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from signet_actors.cli.harnesses.json_text import InvalidText
from signet_actors.config.regular_file import read_regular
from signet_actors.errors import ConfigError
from signet_actors.runtime.file_draft import FileDraft, fsync_path
from signet_actors.runtime.harness_file import BACKUP_ENDING, MISSING_ENDING

MAX_BYTES = 64 << 20
"""Claude Code keeps the history of all projects in the file with its MCP servers."""
MADE_DIRECTORY = "directory"
BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True)
class SettingsFile:
    """A settings file, which may be missing or a symbolic link.

    ``may_have_mark``: its program skips a byte order mark at the start, which is then no part of the text and stays.
    """

    path: Path
    may_have_mark: bool = False

    @property
    def real(self) -> Path:
        return Path(os.path.realpath(self.path))

    @property
    def backup(self) -> Path:
        """The content before the first change; exists while our entries are in the file."""
        return self.real.with_name(self.real.name + BACKUP_ENDING)

    @property
    def missing_note(self) -> Path:
        """Says that our first change made the file, with a line ``MADE_DIRECTORY`` for each directory made, too."""
        return self.real.with_name(self.real.name + MISSING_ENDING)

    def was_missing(self) -> bool:
        """Return whether there was no file before the first change."""
        return self.missing_note.exists()

    def made_directories(self) -> int:
        """Return how many directories above the file its first change made."""
        return (_text_of(self.missing_note) or "").split().count(MADE_DIRECTORY)

    def absent_directories(self) -> int:
        return sum(not directory.exists() for directory in self.real.parents)

    def read(self) -> str | None:
        """Return the text; None if there is no file. Raises ConfigError if it cannot be read as UTF-8."""
        return self._without_mark(_text_of(self.path))

    def former(self) -> str | None:
        """Return the text before the first change; None if there was no file, or no change."""
        return self._without_mark(_text_of(self.backup))

    def mark(self) -> str:
        """Return the byte order mark of the file; empty if it has none."""
        is_marked = self.may_have_mark and (_text_of(self.path) or "").startswith(BYTE_ORDER_MARK)
        return BYTE_ORDER_MARK if is_marked else ""

    def _without_mark(self, text: str | None) -> str | None:
        return text.removeprefix(BYTE_ORDER_MARK) if text is not None and self.may_have_mark else text


@dataclass(frozen=True)
class Change:
    """A change of a file from one text to another; None means that the file does not exist.

    ``connects``: the change adds our entries. Otherwise it removes them. ``was_connected``: the file has some already,
    so that what was kept before the first change is not replaced.
    """

    file: SettingsFile
    before: str | None
    after: str | None
    connects: bool
    was_connected: bool

    @property
    def is_needed(self) -> bool:
        return self.before != self.after

    def diff(self) -> str:
        """Return the change as a unified diff; empty if the text stays."""
        old, new = ((text or "").splitlines(keepends=True) for text in (self.before, self.after))
        name = str(self.file.path)
        source = name if self.before is not None else os.devnull
        target = name if self.after is not None else os.devnull
        lines = difflib.unified_diff(old, new, source, target)
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)

    def apply(self) -> None:
        """Write the file. Raises ConfigError if it has changed since it was read, or cannot be written."""
        self._check_unchanged()
        try:
            with contextlib.ExitStack() as undo:
                self._write(undo)
        except OSError as error:
            raise ConfigError(f"{error.filename or self.file.path} cannot be written: {error.strerror}") from None

    def _write(self, undo: contextlib.ExitStack) -> None:
        """Write the file; ``undo`` removes what is kept for a change that fails. Raises OSError and ConfigError."""
        if self.connects and not self.was_connected:
            had_kept = self.file.backup.exists() or self.file.was_missing()
            undo.callback(self._forget_unused, had_kept, self.file.absent_directories())
            self._keep_former()
        if self.after is not None and self.after != self.before:
            self._replace(self.file.real, self.after)
        elif self.after is None and self.before is not None:
            self._check_unchanged()
            self.file.real.unlink()
        if not self.connects and self.was_connected:
            self._forget_former()

    def _check_unchanged(self) -> None:
        if self.file.read() != self.before:
            raise ConfigError(f"{self.file.path} was changed in the meantime; run the command again")

    def _keep_former(self) -> None:
        if self.before is None:
            self._replace(self.file.missing_note, "\n".join([MADE_DIRECTORY] * self.file.absent_directories()))
            return
        mode = self.file.real.stat().st_mode & 0o777
        self._replace(self.file.backup, self.before)
        self.file.backup.chmod(mode)
        self.file.missing_note.unlink(missing_ok=True)

    def _forget_former(self) -> None:
        self._remove_kept(self.file.made_directories() if self.after is None else 0)

    def _forget_unused(self, had_kept: bool, made_directories: int) -> None:
        """Remove what was kept for a first change that was not done; leave what an earlier change had kept."""
        with contextlib.suppress(OSError, ConfigError):
            if not had_kept and self.file.read() != self.after:
                self._remove_kept(made_directories)

    def _remove_kept(self, made_directories: int) -> None:
        self.file.backup.unlink(missing_ok=True)
        self.file.missing_note.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # it holds something else
            for directory in self.file.real.parents[:made_directories]:
                directory.rmdir()

    def _replace(self, path: Path, text: str) -> None:
        """Replace the content of the file in one step; its mode stays. A new file is readable by its owner only.

        The settings are compared again just before, because a sync can take seconds.
        """
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileDraft(path, f".{path.name}.signet-{os.getpid()}-{secrets.token_hex(4)}") as draft:
            draft.file.write((self.file.mark() + text).encode())
            draft.copy_mode()
            draft.sync()
            self._check_unchanged()
            draft.replace()
        fsync_path(path.parent)


def _text_of(path: Path) -> str | None:
    try:
        raw = read_regular(path, MAX_BYTES, follow=True, advice="")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}, line {line}: it is not UTF-8 text; nothing was changed") from None


class Part(Protocol):
    """Our entries of one kind in a file. Every method raises InvalidText if the file has another form."""

    def installed(self, text: str | None) -> dict[str, Any]:
        """Return our entries as they are in the text; empty if there are none."""

    def connected(self, text: str | None, wanted: Any) -> str:
        """Return the text with exactly our wanted entries."""

    def stripped(self, text: str, former: str | None = None) -> str:
        """Return the text without our entries, and without what only they filled; what ``former`` has stays."""

    def is_pure(self, entries: Any) -> bool:  # noqa: ARG002 - of other parts
        """Return whether nothing of other programs is in our entries."""
        return True

    def is_blank(self, text: str) -> bool:
        """Return whether the text has no settings."""
        return not text.strip()


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
        with self.refusing():
            installed = [part.installed(before) for part in self.parts]
            after = former if self._is_made_from(former, before) else before
            for part, given, found in zip(self.parts, wanted, installed, strict=True):
                entries = given or found
                after = part.connected(after, entries) if entries else after
        return Change(self.file, before, after, connects=True, was_connected=any(installed))

    def disconnecting(self) -> Change:
        """Return the change that removes our entries. Raises ConfigError if the file is not valid.

        If the file is what ``connecting`` makes of its former content, that comes back byte for byte. Otherwise another
        program has changed it since, and our entries are removed from what it is now. A file that connect made is
        deleted.
        """
        before, former = self.file.read(), self.file.former()
        with self.refusing():
            is_connected = any(part.installed(before) for part in self.parts)
            after = before
            for part in self.parts:
                after = None if after is None else part.stripped(after, former)
            if former is not None and self._is_made_from(former, before):
                after = former
            elif is_connected and self.file.was_missing() and all(part.is_blank(after or "") for part in self.parts):
                after = None
        return Change(self.file, before, after, connects=False, was_connected=is_connected)

    def is_connected(self) -> bool:
        """Return whether entries of ours are in the file. Raises ConfigError if it is not valid."""
        with self.refusing():
            return any(part.installed(self.file.read()) for part in self.parts)

    @contextlib.contextmanager
    def refusing(self) -> Iterator[None]:
        """Raise ConfigError for a text that cannot be edited."""
        try:
            yield
        except InvalidText as error:
            neither = "" if error.is_json else f"; {self.title} does not read such a file either"
            problem = f"{error.problem}{neither}. Nothing was changed"
            raise ConfigError(f"{self.file.path}, line {error.line}: {problem}") from None

    def _is_made_from(self, former: str | None, text: str | None) -> bool:
        """Return whether the text is what ``connecting`` makes of the former one, and nothing has changed it since."""
        try:
            made = former
            for part in self.parts:
                entries = part.installed(text)
                if not part.is_pure(entries):
                    return False
                made = part.connected(made, entries) if entries else made
            return made == text and any(part.installed(text) for part in self.parts)
        except InvalidText:
            return False
