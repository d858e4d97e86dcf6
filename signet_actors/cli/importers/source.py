"""What the readers share: bounded reading, refusals that help, and values of unknown kinds made fit for a line."""

from __future__ import annotations

import itertools
import json
import unicodedata
import uuid
from collections import Counter
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Final

from signet_actors.config.regular_file import read_regular
from signet_actors.domain.memories import MEMORY_TYPES
from signet_actors.domain.temporal.phrases import PhraseKind, date_phrase
from signet_actors.errors import ConfigError, InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

Line = dict[str, Any]
"""A memory as a line of an import has it; see docs/transfer.md "The format"."""

DATABASE_MAGIC: Final = b"SQLite format 3\0"
MAX_TEXT_BYTES: Final = 16 * 1024 * 1024
MAX_JSON_BYTES: Final = 512 * 1024 * 1024
MAX_TAGS: Final = 20
MAX_TAG_CHARS: Final = 64


class NotThisFormat(InvalidRequest):
    """The file does not have the format that it is imported as."""


class Unreadable(NotThisFormat):
    """A file, perhaps one of many, that cannot be read; the sentence names it, the line if known, and the remedy."""


def read_bytes(path: Path, limit: int) -> bytes:
    """Return the content of a regular file; raise Unreadable if it cannot be read or is longer than ``limit``."""
    try:
        return read_regular(path, limit, advice="")
    except ConfigError as error:
        raise Unreadable(error.detail) from error
    except OSError as error:
        raise Unreadable(f"cannot read {path}: {error.strerror}") from error


def read_text(path: Path) -> str:
    """Return the text of a file, with uniform line ends; raise Unreadable if it is not UTF-8 or no text."""
    data = read_bytes(path, MAX_TEXT_BYTES)
    if data.startswith(DATABASE_MAGIC):
        raise Unreadable(f"{path} is a database; `--from claude-mem` and `--from reference` read theirs")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Unreadable(f"{path}, line {line}: is not UTF-8 text; convert it first, or move it away") from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise Unreadable(f"{path}, line {line}: contains a NUL character, so it is no text; move the file away")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_json(path: Path, wanted: str) -> Any:
    """Return the JSON value of a file; raise NotThisFormat, which says what is ``wanted``."""
    if path.is_dir():
        raise NotThisFormat(f"{path} is a directory, not a file of JSON; {wanted}")
    try:
        return json.loads(read_bytes(path, MAX_JSON_BYTES))
    except (ValueError, RecursionError) as error:
        raise NotThisFormat(f"{path} is not JSON; {wanted}") from error


def refuse_json(path: Path, text: str) -> None:
    """Raise NotThisFormat if the text, or its first line, is a JSON object or list."""
    for part in (text, text.lstrip().partition("\n")[0]):
        try:
            is_json = isinstance(json.loads(part), dict | list)
        except (ValueError, RecursionError):
            continue
        if is_json:
            raise NotThisFormat(
                f"{path} is JSON; an export of this daemon is imported without `--from`, others with `--from mem0`"
                " or `--from claude-mem`"
            )


def line(content: str, **members: Any) -> Line:
    """Return a line without the members that have no value."""
    given = {name: value for name, value in members.items() if value not in (None, "", [], ())}
    return {"content": content, **given}


def with_one_former(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield the lines, and let one supersede a former text only if no other one of its file has the same place."""
    for _, of_file in itertools.groupby(lines, lambda each: each.get("sourcePath")):
        file = list(of_file)
        counts = Counter(each.get("supersedes") for each in file)
        yield from (
            {name: each[name] for name in each if name != "supersedes" or counts[each[name]] == 1} for each in file
        )


def tags_of(*groups: Iterable[Any]) -> list[str]:
    """Return the tags of all groups, once each, without the commas that separate tags."""
    found = (str(tag).replace(",", " ").strip()[:MAX_TAG_CHARS] for group in groups for tag in group)
    return [tag for tag in dict.fromkeys(found) if tag][:MAX_TAGS]


def tag_of(text: Any) -> str:
    """Return a heading as a tag: its letters and digits in lower case, joined by hyphens."""
    folded = unicodedata.normalize("NFC", str(text)).lower()
    words = "".join(char if char.isalnum() or char in "_./" else " " for char in folded).split()
    return "-".join(words)[:MAX_TAG_CHARS].strip("-")


def listed(value: Any) -> list[Any]:
    """Return a list, a list in JSON, or a comma-separated text as a list."""
    if isinstance(value, str):
        try:
            decoded = json.loads(value)
        except (ValueError, RecursionError):
            decoded = None
        value = decoded if isinstance(decoded, list) else value.split(",")
    return [item for item in value if str(item).strip()] if isinstance(value, list) else []


def time_of(*values: Any) -> str | None:
    """Return the first of the values that is a time, in ISO form; a time without a zone is left as it is.

    A full date in another form counts (``31.12.2024``). A relative one does not: nobody knows what it is relative to.
    """
    for value in values:
        if isinstance(value, datetime | date):
            return value.isoformat()
        if isinstance(value, str):
            try:
                datetime.fromisoformat(value.strip())
            except ValueError:
                day = full_date(value)
                if day is None:
                    continue
                return day.isoformat()
            return value.strip()
    return None


def full_date(text: str) -> date | None:
    """Return the day if the text is a full date, as a recall understands it, and nothing else."""
    phrase = date_phrase(text, datetime.now(UTC))
    if phrase is None or phrase.kind is PhraseKind.RELATIVE or phrase.rest.strip():
        return None
    return phrase.first


def text_of(value: Any) -> str | None:
    """Return the value if it is a text."""
    return value if isinstance(value, str) else None


def uuid_of(value: Any) -> str | None:
    """Return the value if it is a UUID, the only kind of id that an import keeps."""
    try:
        return str(uuid.UUID(value)) if isinstance(value, str) else None
    except ValueError:
        return None


def type_of(value: Any) -> str | None:
    """Return a type that the specification names, or None, which leaves the choice to the daemon."""
    return value if value in MEMORY_TYPES else None
