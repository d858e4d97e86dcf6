"""The sessions of Claude Code, Codex, Gemini CLI and Qwen Code: a file for each, which the daemon can read itself.

Of a file of JSON lines only the beginning is read here, for its session or the directory of its project.

Source: docs/guides/backfill.md; docs/guides/transcripts.md "Formats".
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from signet_actors.cli.presentation import counted, home_of
from signet_actors.domain.timestamps import iso
from signet_actors.domain.transcripts.codex import is_of_subagent
from signet_actors.domain.transcripts.gemini import session_of
from signet_actors.domain.transcripts.json_values import decode_json_text, text_at
from signet_actors.domain.transcripts.parse import FIRST_LINES, first_directory, parse_transcript
from signet_actors.domain.transcripts.turns import TranscriptTooLong

_LINE_BYTES: Final = 1 << 20
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")


def claude_code(environ: Mapping[str, str]) -> Iterator[PastSession]:
    """Yield the sessions below ``projects``, without those of subagents, which belong to another session."""
    for path in sorted(claude_code_projects(environ).glob("*/*.jsonl")):
        if _UUID.match(path.stem):
            yield from _session("claude-code", path, lambda path: (path.stem, project_of(path)))


def codex(environ: Mapping[str, str]) -> Iterator[PastSession]:
    """Yield the sessions of the rollout files without subagents'; then raise Unreadable if Codex packed others."""
    packed = []
    for name in ("sessions", "archived_sessions"):
        for path in sorted((codex_home(environ) / name).rglob("rollout-*.jsonl")):
            if _UUID.match(path.stem[-36:]):
                yield from _session("codex", path, _of_codex)
        packed += [path for path in (codex_home(environ) / name).rglob("rollout-*.jsonl.zst") if not _is_unpacked(path)]
    if packed:
        first = shlex.quote(str(min(packed)))
        others = "" if len(packed) == 1 else ", and so on"
        raise Unreadable(
            f"{counted(len(packed), 'session')} packed by Codex (.jsonl.zst); unpack with `zstd -d {first}`{others}"
        )


def gemini(environ: Mapping[str, str]) -> Iterator[PastSession]:
    """Yield the sessions below ``tmp``, also those of JSON documents, without those of subagents."""
    for path in sorted((home_of(environ) / ".gemini" / "tmp").glob("*/chats/session-*.json*")):
        if path.suffix in {".jsonl", ".json"}:
            yield from _session("gemini", path, _of_gemini)


def qwen(environ: Mapping[str, str]) -> Iterator[PastSession]:
    """Yield the sessions below ``projects``, without those of subagents, which stand in another folder."""
    home = environ.get("QWEN_RUNTIME_DIR") or environ.get("QWEN_HOME") or home_of(environ) / ".qwen"
    for path in sorted((Path(home) / "projects").glob("*/chats/*.jsonl")):
        if _UUID.match(path.stem):
            yield from _session("qwen", path, lambda path: (path.stem, project_of(path)))


def _is_unpacked(path: Path) -> bool:
    """Return whether the session is also there as it was, or its file is none of a session."""
    return not _UUID.match(Path(path.stem).stem[-36:]) or path.with_suffix("").is_file()


def claude_code_projects(environ: Mapping[str, str]) -> Path:
    """Return the directory in which Claude Code has a folder for each project."""
    return Path(environ.get("CLAUDE_CONFIG_DIR") or home_of(environ) / ".claude") / "projects"


def codex_home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("CODEX_HOME") or home_of(environ) / ".codex")


def _session(
    source: str, path: Path, described: Callable[[Path], tuple[str | None, str | None]]
) -> Iterator[PastSession]:
    """Yield the session of the file; nothing if it has gone, is empty or no regular file.

    ``described`` returns its key and its project.
    """
    try:
        if path.is_symlink() or not path.is_file():
            return
        found = path.stat()
        key, project = described(path)
    except OSError:
        return
    if found.st_size and key is not None:
        modified_ms = found.st_mtime_ns // 1_000_000
        yield PastSession(source, key, found.st_size, modified_ms, partial(_messages, path), project, path.absolute())


def _of_gemini(path: Path) -> tuple[str | None, str | None]:
    """Return the key and the project of a session; the folder of its project names the directory. Raises OSError."""
    with path.open("rb") as file:
        key = session_of(file.readline(_LINE_BYTES) if path.suffix == ".jsonl" else file.read())
    root = path.parents[1] / ".project_root"
    named = root.read_bytes().decode("utf-8", "replace").strip() if root.is_file() else ""
    return key, os.path.normpath(named) if named else None


def _of_codex(path: Path) -> tuple[str | None, str | None]:
    """Return the key and the project of a session, no key for a subagent's. Raises OSError."""
    first = next((record for record in _first_records(path) if text_at(record, "type") == "session_meta"), {})
    return None if is_of_subagent(first) else path.stem[-36:], project_of(path)


def project_of(path: Path) -> str | None:
    """Return the directory that the first lines of a session name. Raises OSError."""
    with path.open("rb") as file:
        directory = first_directory(file.readline(_LINE_BYTES) for _ in range(FIRST_LINES))
    return None if directory is None else os.path.normpath(directory)


def _first_records(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the objects in the first lines of a file. Raises OSError."""
    with path.open("rb") as file:
        for _ in range(FIRST_LINES):
            record = decode_json_text(file.readline(_LINE_BYTES))
            if isinstance(record, dict):
                yield record


def _messages(path: Path) -> list[Message]:
    try:
        found = parse_transcript(path.read_bytes())
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror}") from error
    except TranscriptTooLong as error:
        raise Unreadable(f"{path}: {error}") from error
    return [{"role": turn.role, "content": turn.text, "timestamp": turn.said_at} for turn in found.turns]


Message: TypeAlias = "dict[str, Any]"
"""What one side said: ``role``, ``content`` and, if it is known, ``timestamp`` (ISO)."""


@dataclass(frozen=True)
class PastSession:
    """A session in the directory ``project``. ``path`` is its file if the daemon can read that itself."""

    source: str
    key: str
    size: int
    modified_ms: int
    messages: Callable[[], list[Message]]
    project: str | None = None
    path: Path | None = None

    @property
    def name(self) -> str:
        return f"{self.source} {self.key}"

    @property
    def stamp(self) -> str:
        """What changes when the session goes on."""
        return f"{self.size}:{self.modified_ms}"

    @property
    def modified_at(self) -> str:
        return iso(self.modified_ms)

    def is_below(self, directory: Path) -> bool:
        """Return whether the session worked in the directory or below it."""
        if self.project is None:
            return False
        real = os.path.realpath(self.project)
        return Path(self.project).is_relative_to(directory) or Path(real).is_relative_to(directory)


class Unreadable(Exception):
    """A session, or a file with sessions, that cannot be read; the text names it and says why."""
