"""The sessions of OpenCode: rows of its database, or, before OpenCode 1.2, files of JSON below ``storage``.

Only what was said is kept, also in answer to a tool; the other parts of a message that are tools, files and reasoning
are left out, and so are the summary of a compaction, a session of a subagent, which has a parent, and those in which
the daemon itself asked a model.

Source: docs/guides/backfill.md; OpenCode's tables ``session``, ``message`` and ``part``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from signet_actors.cli.importers.source import NotThisFormat, each_row, is_database
from signet_actors.cli.past_sessions.line_files import Message, PastSession, Unreadable
from signet_actors.cli.presentation import home_of
from signet_actors.domain.transcripts.answers import turns_of
from signet_actors.domain.transcripts.json_values import decode_json_text, object_at, text_at, time_at
from signet_actors.domain.transcripts.opencode import exchanges_of_tool, is_own

SOURCE: Final = "opencode"
_Said: TypeAlias = tuple[str, str | None, str]
"""The id of a part, the role of who said it, None for that of the message, and the text."""


def sessions(environ: Mapping[str, str]) -> Iterator[PastSession]:
    """Yield the sessions of the database, then those of files that the database does not have."""
    data = Path(environ.get("XDG_DATA_HOME") or home_of(environ) / ".local" / "share")
    folder = data / "opencode"
    database = folder / "opencode.db"
    stored: set[str] = set()
    if is_database(database):
        for session in _of_database(database):
            stored.add(session.key)
            yield session
    for path in sorted((folder / "storage" / "session").glob("*/*.json")):
        kept = _of_file(path, folder / "storage")
        if kept is not None and kept.key not in stored:
            yield kept


def _of_database(path: Path) -> Iterator[PastSession]:
    """Yield the sessions of the database; raise Unreadable."""
    found: list[dict[str, Any]] = []
    messages: dict[str, list[tuple[int, str, Mapping[str, Any]]]] = defaultdict(list)
    said: dict[str, list[_Said]] = defaultdict(list)
    try:
        for table, row in each_row(path, ("session", "message", "part")):
            if row is None:
                continue
            data = _decoded(str(row.get("data")).encode("utf-8", "replace"))
            if table == "session":
                found.append(row)
            elif table == "message":
                messages[str(row.get("session_id"))].append((row.get("time_created") or 0, str(row.get("id")), data))
            elif found_said := _said(str(row.get("id")), data):
                said[str(row.get("message_id"))] += found_said
    except NotThisFormat as error:
        raise Unreadable(error.detail) from error
    for row in found:
        key = row.get("id")
        if not isinstance(key, str) or row.get("parent_id") or is_own(row.get("title"), _directory(row)):
            continue
        kept = [
            message
            for created, name, data in sorted(messages[key], key=lambda one: one[:2])
            for message in _messages_of(data, created, said[name])
        ]
        size = sum(len(message["content"]) for message in kept)
        if kept:
            yield PastSession(SOURCE, key, size, _ms(row.get("time_updated")), partial(list, kept), _directory(row))


def _of_file(path: Path, storage: Path) -> PastSession | None:
    """Return the session of the file, or None if it is none, has a parent, or nothing was said."""
    about = _read(path)
    key = text_at(about, "id")
    if key is None or key != path.stem or text_at(about, "parentID") is not None:
        return None
    if is_own(about.get("title"), _directory(about)):
        return None
    files = sorted((storage / "message" / key).glob("*.json"))
    parts = [part for file in files for part in sorted((storage / "part" / file.stem).glob("*.json"))]
    if not parts:
        return None
    try:
        size = sum(file.stat().st_size for file in parts)
    except OSError:
        return None
    modified_ms = _ms(object_at(about, "time").get("updated"))
    return PastSession(SOURCE, key, size, modified_ms, partial(_messages, files, storage), _directory(about))


def _messages(files: list[Path], storage: Path) -> list[Message]:
    found: list[tuple[int, str, list[Message]]] = []
    for file in files:
        data = _read(file)
        created = _ms(object_at(data, "time").get("created"))
        paths = sorted((storage / "part" / file.stem).glob("*.json"))
        said = [each for path in paths for each in _said(path.stem, _read(path))]
        found.append((created, file.stem, _messages_of(data, created, said)))
    return [message for _, _, messages in sorted(found, key=lambda one: one[:2]) for message in messages]


def _messages_of(data: Mapping[str, Any], created: int, said: list[_Said]) -> list[Message]:
    """Return the message, and what was asked and answered in its tools."""
    role = text_at(data, "role")
    if role is None or data.get("summary") is True:
        return []
    said_at = time_at(object_at(data, "time"), "created") or time_at({"created": created}, "created")
    in_order = sorted(said, key=lambda one: one[0])
    texts = [text for _, of, text in in_order if of is None]
    messages = [(role, "\n".join(texts))] if texts else []
    messages += [(of, text) for _, of, text in in_order if of is not None]
    return [{"role": of, "content": text, "timestamp": said_at} for of, text in messages]


def _said(name: str, part: Mapping[str, Any]) -> list[_Said]:
    if part.get("type") == "tool":
        found = turns_of(exchanges_of_tool(text_at(part, "tool"), object_at(part, "state")), None)
        return [(name, turn.role, turn.text) for turn in found]
    text = text_at(part, "text")
    is_said = part.get("type") == "text" and not part.get("synthetic") and not part.get("ignored")
    return [(name, None, text)] if is_said and text is not None else []


def _directory(about: Mapping[str, Any]) -> str | None:
    return text_at(about, "directory")


def _ms(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _decoded(text: bytes) -> dict[str, Any]:
    decoded = decode_json_text(text)
    return decoded if isinstance(decoded, dict) else {}


def _read(path: Path) -> dict[str, Any]:
    try:
        return _decoded(path.read_bytes())
    except OSError:
        return {}
