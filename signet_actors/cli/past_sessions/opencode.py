"""The sessions of OpenCode: rows of its database, or, before OpenCode 1.2, files of JSON below ``storage``.

Only what was said is kept; the parts of a message that are tools, files and reasoning are left out, and so are the
summary of a compaction and a session of a subagent, which has a parent.

Source: docs/guides/backfill.md; OpenCode's tables ``session``, ``message`` and ``part``.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from signet_actors.cli.importers.rows import each_row, is_database
from signet_actors.cli.importers.source import NotThisFormat
from signet_actors.cli.past_sessions.session import Message, PastSession, Unreadable
from signet_actors.domain.transcripts.json_values import decode_json_text, object_at, text_at, time_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SOURCE: Final = "opencode"


def sessions(environ: Mapping[str, str]) -> Iterator[PastSession]:
    """Yield the sessions of the database, then those of files that the database does not have."""
    data = Path(environ.get("XDG_DATA_HOME") or Path(environ.get("HOME") or Path.home()) / ".local" / "share")
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
    texts: dict[str, list[tuple[str, str]]] = defaultdict(list)
    try:
        for table, row in each_row(path, ("session", "message", "part")):
            if row is None:
                continue
            data = _decoded(row.get("data"))
            if table == "session":
                found.append(row)
            elif table == "message":
                messages[str(row.get("session_id"))].append((row.get("time_created") or 0, str(row.get("id")), data))
            elif (text := _text(data)) is not None:
                texts[str(row.get("message_id"))].append((str(row.get("id")), text))
    except NotThisFormat as error:
        raise Unreadable(error.detail) from error
    for row in found:
        key = row.get("id")
        if not isinstance(key, str) or row.get("parent_id"):
            continue
        said = [
            message
            for created, name, data in sorted(messages[key], key=lambda one: one[:2])
            if (message := _message(data, created, sorted(texts[name]))) is not None
        ]
        size = sum(len(message["content"]) for message in said)
        if said:
            yield PastSession(SOURCE, key, size, _ms(row.get("time_updated")), partial(list, said), _directory(row))


def _of_file(path: Path, storage: Path) -> PastSession | None:
    """Return the session of the file, or None if it is none, has a parent, or nothing was said."""
    about = _read(path)
    key = text_at(about, "id")
    if key is None or key != path.stem or text_at(about, "parentID") is not None:
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
    found: list[tuple[int, str, Message]] = []
    for file in files:
        data = _read(file)
        parts = [(part.stem, _text(_read(part))) for part in sorted((storage / "part" / file.stem).glob("*.json"))]
        created = _ms(object_at(data, "time").get("created"))
        message = _message(data, created, [(name, text) for name, text in parts if text is not None])
        if message is not None:
            found.append((created, file.stem, message))
    return [message for _, _, message in sorted(found, key=lambda one: one[:2])]


def _message(data: Mapping[str, Any], created: int, parts: list[tuple[str, str]]) -> Message | None:
    role = text_at(data, "role")
    if role is None or not parts or data.get("summary") is True:
        return None
    said_at = time_at(object_at(data, "time"), "created") or time_at({"created": created}, "created")
    return {"role": role, "content": "\n".join(text for _, text in parts), "timestamp": said_at}


def _text(part: Mapping[str, Any]) -> str | None:
    """Return what was said in the part, or None."""
    if part.get("type") != "text" or part.get("synthetic") or part.get("ignored"):
        return None
    return text_at(part, "text")


def _directory(about: Mapping[str, Any]) -> str | None:
    return text_at(about, "directory")


def _ms(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _decoded(value: Any) -> dict[str, Any]:
    decoded = decode_json_text(value.encode("utf-8", "replace")) if isinstance(value, str) else None
    return decoded if isinstance(decoded, dict) else {}


def _read(path: Path) -> dict[str, Any]:
    try:
        decoded = decode_json_text(path.read_bytes())
    except OSError:
        return {}
    return decoded if isinstance(decoded, dict) else {}
