"""What the readers share: bounded reading, refusals that help, and values of unknown kinds made fit for a line.

The rows of a database are read by a process of the writer's tool: no SQL runs here.

Source: docs/transfer.md "Other formats"; docs/architecture.md "Dependency rules" 5 and 7.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
import unicodedata
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final

from signet_actors.cli.presentation import counted, one_line
from signet_actors.config.regular_file import read_regular
from signet_actors.domain.memories import MEMORY_TYPES, memory_type
from signet_actors.domain.temporal.phrases import PhraseKind, date_phrase
from signet_actors.errors import ConfigError, InvalidRequest

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


KINDS: dict[type, str] = {list: "a list", dict: "a mapping", bool: "true or false", int: "a number", float: "a number"}
SHOWN_CHARS = 60


@dataclass
class Findings:
    """What the user has to know about the source.

    ``unreadable`` has a sentence for each file or directory that cannot be read, ``warnings`` one for each value or
    entry that is left out, ``without_text`` the number of files that became no memory, ``of_signet`` the number of
    parts that Signet itself had written.
    """

    unreadable: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    without_text: int = 0
    of_signet: int = 0

    def refuse_unreadable(self) -> None:
        """Raise NotThisFormat with every file that cannot be read, if there are any."""
        if not self.unreadable:
            return
        summary = (
            f"{counted(len(self.unreadable), 'file')} cannot be read; nothing was imported. Mend what is listed, or"
            " import the others with `--skip-unreadable`"
        )
        raise NotThisFormat("\n".join((summary, *map(one_line, self.unreadable))))

    def left_out(self, place: str, key: str, value: Any, wanted: str) -> None:
        """Warn that ``value`` is left out, unless it is empty."""
        if value is None or (isinstance(value, str | list | dict) and not value):
            return
        shown = KINDS.get(type(value)) or f"{one_line(value, SHOWN_CHARS)!r}"
        self.warnings.append(f"{place}: `{key}` is left out: {shown} is not {wanted}")

    def text(self, place: str, key: str, value: Any) -> str | None:
        """Return the value if it is a text, else warn."""
        if not isinstance(value, str):
            self.left_out(place, key, value, "a text")
        return text_of(value)

    def type(self, place: str, key: str, value: Any) -> str | None:
        """Return the value if it is the name of a type, as ``signet remember --type`` takes it, else warn."""
        name = memory_type(value) if isinstance(value, str) else None
        if name is None:
            self.left_out(place, key, value, "a type: a letter, then letters, digits, `_` and `-`")
        return name

    def time(self, place: str, **values: Any) -> str | None:
        """Return the first of the values that is a time; warn of each other value that is none."""
        found = {key: time_of(value) for key, value in values.items()}
        for key, time in found.items():
            if time is None:
                self.left_out(place, key, values[key], "a time such as 2026-01-31")
        return next(filter(None, found.values()), None)

    def tags(self, place: str, key: str, value: Any) -> list[Any]:
        """Return the value as a list; warn if it is neither a list nor a text, or has too much."""
        tags = listed(value)
        if not isinstance(value, str | list):
            self.left_out(place, key, value, "a list or a text")
        if len(tags) > MAX_TAGS or any(len(str(tag)) > MAX_TAG_CHARS for tag in tags):
            self.warnings.append(
                f"{place}: `{key}` is shortened: a memory has at most {MAX_TAGS} tags of {MAX_TAG_CHARS} characters"
            )
        return tags


def is_database(path: Path) -> bool:
    """Return whether the file begins like a SQLite database."""
    try:
        with path.open("rb") as file:
            return file.read(len(DATABASE_MAGIC)) == DATABASE_MAGIC
    except OSError:
        return False


def rows_of(path: Path, tables: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of those tables that the database has. Raises NotThisFormat if it is unreadable or too large."""
    found: dict[str, list[dict[str, Any]]] = {}
    for table, row in each_row(path, tables, most_bytes=MAX_JSON_BYTES):
        rows = found.setdefault(table, [])
        if row is not None:
            rows.append(row)
    return found


def each_row(
    path: Path, tables: Sequence[str], *, most_bytes: int | None = None
) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Yield each row with its table, table by table; first None for each table that the database has.

    Raises NotThisFormat if it cannot be read, or if its rows have more than ``most_bytes``.
    """
    read_bytes = 0
    tool = [sys.executable, "-P", "-m", "signet_actors.writer", "--rows", str(path.absolute()), "--parent"]
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            [*tool, str(os.getpid()), *(part for table in tables for part in ("--table", table))],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
        ) as reader,
    ):
        try:
            assert reader.stdout is not None
            for text in reader.stdout:
                read_bytes += len(text)
                if most_bytes is not None and read_bytes > most_bytes:
                    raise NotThisFormat(f"{path} has more than {most_bytes // 2**20} MiB of text")
                table, row = json.loads(text)
                yield table, row
            failed = reader.wait() != 0
        finally:
            reader.kill()
        if failed:
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip().splitlines()
            raise NotThisFormat(f"{path} cannot be read: {said[-1] if said else 'the reading process failed'}")
