"""What an importer could not read, and what it left out of that which it read.

Source: docs/transfer.md "Other formats".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from signet_actors.cli.importers.source import (
    MAX_TAG_CHARS,
    MAX_TAGS,
    NotThisFormat,
    listed,
    text_of,
    time_of,
)
from signet_actors.cli.presentation import counted, one_line
from signet_actors.domain.memories import memory_type

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
