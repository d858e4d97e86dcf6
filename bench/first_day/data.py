"""The data set: memories, notes, sessions of a made-up project, and prompts with what should be given for them.

Times are days before the run. A memory with a ``file`` is a section of a note, which is imported. ``replaced_by`` names
the newer memory of an outdated fact. A ``mark`` is the part without which a memory is no answer. Items without a common
topic have nothing to do with each other.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec

from signet_actors.cli.importers.markdown import sections

DIRECTORY: Final = Path(__file__).resolve().parent
NOTES: Final = DIRECTORY / "notes"
PROJECT: Final = "slotwerk"
SESSION_HOUR: Final = 10
"""The local hour at which each session begins."""


class Memory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A memory to store. ``project`` is null for one that belongs to no project."""

    label: str
    days: float
    topics: list[str]
    text: str = ""
    project: str | None = PROJECT
    type: str | None = None
    replaced_by: str | None = None
    mark: str | None = None
    file: str | None = None
    section: str | None = None


class Turn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a user or an agent said; ``ran`` is the command that the agent ran before."""

    role: str
    text: str
    label: str | None = None
    topics: list[str] = []
    ran: str | None = None
    replaced_by: str | None = None


class Session(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A session; ``end`` is the reason of its end, empty if it crashed."""

    name: str = msgspec.field(name="session")
    days: float
    project: str
    end: str
    turns: list[Turn] = []

    def begin(self, now: datetime) -> datetime:
        """Return when the session began."""
        day = now - timedelta(days=self.days)
        return day.replace(hour=SESSION_HOUR, minute=0, second=0, microsecond=0)


class Prompt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A prompt. One of the lists of ``expect`` should be given whole; nothing at all if there is none.

    ``topics`` are further ones that are no mistake. ``last`` is what the agent has said before.
    """

    label: str
    kind: str
    prompt: str
    expect: list[list[str]]
    topics: list[str] = []
    last: str = ""


class Item(msgspec.Struct, frozen=True):
    """Anything that can be given, by its label."""

    label: str
    text: str
    topics: frozenset[str]
    replaced_by: str | None
    mark: str | None
    made: datetime


class DataSet(msgspec.Struct, frozen=True):
    """``start`` has the labels that a start should give, by what they are."""

    memories: list[Memory]
    sessions: list[Session]
    prompts: list[Prompt]
    start: dict[str, list[str]]

    def items(self, now: datetime) -> dict[str, Item]:
        """Return everything that can be given, as of a run at ``now``."""
        found = [
            Item(
                one.label,
                one.text,
                frozenset(one.topics),
                one.replaced_by,
                one.mark,
                now - timedelta(days=one.days),
            )
            for one in self.memories
        ]
        for session in self.sessions:
            made = session.begin(now)
            found += [
                Item(turn.label, turn.text, frozenset(turn.topics), turn.replaced_by, None, made)
                for turn in session.turns
                if turn.label is not None
            ]
        return {item.label: item for item in found}

    def asked(self, prompt: Prompt, now: datetime) -> tuple[str, datetime | None]:
        """Return the text of a prompt, and the day that it asks for."""
        if prompt.kind != "day":
            return prompt.prompt, None
        if "{date:" not in prompt.prompt:
            return prompt.prompt, now - timedelta(days=1)
        before, _, rest = prompt.prompt.partition("{date:")
        name, _, after = rest.partition("}")
        day = next(session for session in self.sessions if session.name == name).begin(now)
        return f"{before}{day:%B} {day.day}{after}", day


def data_set() -> DataSet:
    """Return the data set."""
    return DataSet(
        memories=[_with_text(one) for one in _lines("memories.jsonl", Memory)],
        sessions=_sessions(),
        prompts=_lines("prompts.jsonl", Prompt),
        start=msgspec.json.decode((DIRECTORY / "start.json").read_bytes(), type=dict[str, list[str]]),
    )


def _lines(name: str, kind: type[Any]) -> list[Any]:
    return [msgspec.json.decode(line, type=kind) for line in (DIRECTORY / name).read_bytes().splitlines()]


def _sessions() -> list[Session]:
    """Return the sessions: a line without a role begins one, the others are its turns."""
    found: list[Session] = []
    for line in (DIRECTORY / "sessions.jsonl").read_bytes().splitlines():
        if b'"session"' in line:
            found.append(msgspec.json.decode(line, type=Session))
        else:
            found[-1].turns.append(msgspec.json.decode(line, type=Turn))
    return found


def _with_text(memory: Memory) -> Memory:
    """Return the memory with the text of its section of a note, if it is one."""
    if memory.file is None:
        return memory
    texts = {headings[-1]: text for headings, text in sections((NOTES / memory.file).read_text()) if headings}
    return msgspec.structs.replace(memory, text=texts[memory.section or ""])
