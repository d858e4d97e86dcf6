"""Summaries of ended sessions: which sessions get one, what a model is shown of them, and the note in the workspace.

Source: docs/compatibility.md "Summaries of sessions"; architecture.txt "summary_jobs".
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from math import ceil
from typing import Final, NamedTuple, Protocol

import msgspec

from signet_actors.domain.normalization import collapsed
from signet_actors.domain.transcripts.turns import conversation

MIN_CHARS: Final = 500
"""A shorter conversation is not summarized: it is its own summary."""
NOVELTY_CHARS: Final = 2_000
"""Of the beginning of a session, which is compared with the beginnings of earlier ones."""
COMPARED_SESSIONS: Final = 5
KNOWN_MENTIONS: Final = 3
"""Memories that mention an entity before it counts as known."""
MIN_USER_CHARS: Final = 20
MIN_ASSISTANT_CHARS: Final = 50
"""A turn counts if the user says more than this, and the answers have more than that together."""

TURN_CHARS: Final = 2_000
PART_CHARS: Final = 24_000
"""Of shortened turns, which one prompt carries. A longer conversation is summarized part by part."""
MAX_PARTS: Final = 8
HEAD_CHARS: Final = 64_000
TAIL_CHARS: Final = MAX_PARTS * PART_CHARS - HEAD_CHARS
"""What models are shown of a session: shortened turns from its beginning and, mostly, from its end."""
LEFT_OUT: Final = "[… {} turns are left out …]"
_CUT: Final = " [… cut …] "

PREFIX: Final = "Session summary: "
MAX_SLUG_CHARS: Final = 50
_WORD = re.compile(r"[a-z0-9]{3,}")
_KNOWN: Final = 0.1
_NEW: Final = 0.3


class SummaryPart(msgspec.Struct, frozen=True):
    """The part of a session that a job summarizes: the rows of turns after ``after``, up to ``through``."""

    session_key: str
    agent_id: str
    after: int
    through: int
    ended_at: str
    harness: str | None = None


class Significance(Protocol):
    """Bounds below which a session is not worth a summary; see ``is_significant``."""

    @property
    def enabled(self) -> bool: ...
    @property
    def min_turns(self) -> int: ...
    @property
    def min_entity_overlap(self) -> int: ...
    @property
    def novelty_threshold(self) -> float: ...


class SpokenLength(NamedTuple):
    """Who said something, and how many characters it has."""

    role: str
    chars: int


def substantive_turns(lengths: Iterable[SpokenLength]) -> int:
    """Return how many times the user said something of substance and got an answer of substance."""
    count = asked = answered = 0
    for role, chars in lengths:
        if role == "user":
            count += _is_substantive(asked, answered)
            asked, answered = chars, 0
        elif role == "assistant":
            answered += chars
    return count + _is_substantive(asked, answered)


def _is_substantive(asked: int, answered: int) -> bool:
    return asked > MIN_USER_CHARS and answered > MIN_ASSISTANT_CHARS


def novelty(beginning: str, earlier: Sequence[str]) -> float:
    """Return the share of words of ``beginning`` that no ``earlier`` beginning has, scaled to 0 (0.1) and 1 (0.3)."""
    words = set(_WORD.findall(beginning[:NOVELTY_CHARS].lower()))
    known = {word for text in earlier for word in _WORD.findall(text[:NOVELTY_CHARS].lower())}
    if not words or not known:
        return 1.0
    share = len(words - known) / len(words)
    return min(1.0, max(0.0, (share - _KNOWN) / (_NEW - _KNOWN)))


def is_significant(bounds: Significance, *, turns: int, entities: int, new_words: float) -> bool:
    """Return False only if the session has few turns, names few known entities, and says little that is new."""
    return (
        not bounds.enabled
        or turns >= bounds.min_turns
        or entities >= bounds.min_entity_overlap
        or new_words >= bounds.novelty_threshold
    )


class ConversationPart(NamedTuple):
    """What one prompt shows of a session, and what of it the user said."""

    text: str
    said_by_user: str


class ConversationSample:
    """Collects the turns of a session in a bounded space: those at its beginning, and those at its end.

    ``left_out`` counts the turns between them that are not kept.
    """

    def __init__(self) -> None:
        self._head: list[tuple[str, str]] = []
        self._tail: deque[tuple[str, str]] = deque()
        self._head_room = HEAD_CHARS
        self._tail_chars = 0
        self.left_out = 0

    def add(self, role: str, text: str, *, continues: bool) -> None:
        """Add a turn, or the next piece of the last one."""
        if continues and (former := self._pop()) is not None:
            role, text = former[0], former[1] + text
        self._push(role, _shortened(text))

    def text(self) -> str:
        """Return the conversation, with a mark where turns are left out."""
        return conversation([(role, text, False) for role, text in self._turns()])

    def parts(self) -> list[ConversationPart]:
        """Return the conversation in parts of about the same length, one for each prompt; none without turns."""
        turns = self._turns()
        total = max(1, sum(len(text) for _, text in turns))
        count = min(MAX_PARTS, ceil(total / PART_CHARS))
        parts: list[list[tuple[str, str]]] = [[] for _ in range(count)]
        before = 0
        for turn in turns:
            parts[min(before * count // total, count - 1)].append(turn)
            before += len(turn[1])
        return [
            ConversationPart(
                conversation([(role, text, False) for role, text in part]),
                "\n".join(text for role, text in part if role == "user"),
            )
            for part in parts
            if part
        ]

    def _turns(self) -> list[tuple[str, str]]:
        mark = [("text", LEFT_OUT.format(self.left_out))] if self.left_out else []
        return [*self._head, *mark, *self._tail]

    def _pop(self) -> tuple[str, str] | None:
        if self._tail:
            former = self._tail.pop()
            self._tail_chars -= len(former[1])
            return former
        if self._head:
            former = self._head.pop()
            self._head_room += len(former[1])
            return former
        return None

    def _push(self, role: str, text: str) -> None:
        if not self._tail and len(text) <= self._head_room:
            self._head.append((role, text))
            self._head_room -= len(text)
            return
        self._tail.append((role, text))
        self._tail_chars += len(text)
        while self._tail_chars > TAIL_CHARS and len(self._tail) > 1:
            self._tail_chars -= len(self._tail.popleft()[1])
            self.left_out += 1


def _shortened(text: str) -> str:
    if len(text) <= TURN_CHARS:
        return text
    half = (TURN_CHARS - len(_CUT)) // 2
    return f"{text[:half]}{_CUT}{text[-half:]}"


def memory_text(title: str, summary: str) -> str:
    return f"{PREFIX}{title}\n\n{summary}"


def not_covered(turns: int, missing: Sequence[int], parts: int) -> str:
    """Return the sentence with which a summary says what of the session it leaves out; empty if nothing."""
    gaps = [f"{turns} turns in its middle"] if turns else []
    gaps += [f"part {number} of {parts}" for number in missing]
    return f"Not covered of this long session: {', '.join(gaps)}." if gaps else ""


def title_of(content: str) -> tuple[str, str]:
    """Return title and summary of the memory's text; the title is empty if the text was changed."""
    first, _, rest = content.partition("\n")
    if not first.startswith(PREFIX):
        return "", content
    return collapsed(first.removeprefix(PREFIX)), rest.strip("\n")


def note_name(day: str, title: str, project: str | None) -> str:
    """Return ``day`` and the words of the title, or else of the project, as the name of a Markdown file."""
    slug = _slug(title) or _slug((project or "").rstrip("/").rpartition("/")[2]) or "session"
    return f"{day}-{slug}"


def _slug(text: str) -> str:
    plain = "".join(letter if letter.isalnum() else " " for letter in text.lower())
    return "-".join(plain.split())[:MAX_SLUG_CHARS].strip("-")


def note_text(day: str, content: str, about: Sequence[tuple[str, str | None]]) -> str:
    """Return the note: the properties that have a value as front matter, then title and summary."""
    title, summary = title_of(content)
    properties = "".join(
        f"{name}: {msgspec.json.encode(value).decode()}\n" for name, value in about if value is not None
    )
    return f"---\n{properties}---\n\n# {day}{f' {title}' if title else ''}\n\n{summary}\n"
