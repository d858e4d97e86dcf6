"""A transcript as turns, the pieces of them that are stored, and the text that they make together.

A turn that is stored is known by a key of its role, time and text, and by how many equal ones are before it in the
transcript. So a later capture of a session adds only what is new, also if the harness kept only the end of its file.

Source: architecture.txt "session_transcripts"; memory-pipeline.txt "Lossless Session Transcripts".
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Final, Literal, NamedTuple

from signet_actors.domain.normalization import sanitize_text
from signet_actors.domain.program_text import is_accepted_plan, is_hand_over, said_by_agent, said_by_user, summary_of

Role = Literal["user", "assistant", "system", "text"]
"""Who said it; ``text``: a part of a transcript whose format is not known."""
TranscriptFormat = Literal["claude-code", "codex", "gemini", "qwen", "cursor", "opencode", "json", "dialogue", "text"]
"""How a transcript was read. ``json``: messages in JSON; ``dialogue``: lines such as "User: ..."; ``text``: unknown."""

ROLES: Final[dict[str, Role]] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "agent": "assistant",
    "ai": "assistant",
    "bot": "assistant",
    "model": "assistant",
    "system": "system",
}
"""Roles by the names that formats have for them; of any other role nothing is kept."""
MAX_TEXT_CHARS: Final = 8 << 20
"""Longest conversation, without what tools returned: more than a million words. A longer one would take too long."""
MAX_TURNS: Final = 50_000
"""Most turns of a conversation: a reply a second for a whole day has fewer."""
MAX_LINES: Final = 500_000
"""Most lines of a transcript that are looked at, ten for each turn."""
PIECE_CHARS: Final = 32_768
"""A longer turn is stored in pieces: rows stay short, and an index of words is written in steps."""

_LABELS: Final[dict[str, str]] = {"user": "User: ", "assistant": "Assistant: ", "system": "System: ", "text": ""}
_KEY_BYTES: Final = 16


class TranscriptTooLong(Exception):
    """The conversation exceeds a limit; ``limit`` names it with its unit."""

    def __init__(self, limit: str) -> None:
        super().__init__(f"the conversation has more than {limit}, so it is not stored")


class Turn(NamedTuple):
    """What one side said at once, and when, in storage form; None if the transcript does not tell."""

    role: Role
    text: str
    said_at: str | None = None


@dataclass(slots=True)
class Transcript:
    """What was read of a transcript. ``skipped`` counts records that could not be read, ``chars`` those of the turns.

    ``session_key`` is the session that the transcript names. ``unfinished``: its last line is not complete, because it
    was still being written. ``losses``: how often the agent's model lost a part of it; None if the format
    does not tell, or an event of the harness does.
    """

    format: TranscriptFormat
    turns: list[Turn] = field(default_factory=list)
    ids: list[str | None] = field(default_factory=list, compare=False)
    """By which each turn is known in the session of which this one is a copy, and in this one."""
    session_key: str | None = None
    skipped: int = 0
    unfinished: bool = False
    chars: int = 0
    losses: int | None = None
    _summaries: set[str] = field(default_factory=set, repr=False, compare=False)

    def add(self, turn: Turn | None, id: str | None = None) -> None:  # noqa: A002 - as the programs call it
        """Append the turn, if there is one. Raises TranscriptTooLong.

        A summary is kept once, and not as the answer of the agent that wrote it, too.
        """
        if turn is None:
            return
        if turn.role == "system":
            if turn.text in self._summaries:
                return
            self._summaries.add(turn.text)
            if self.turns and self.turns[-1].role == "assistant" and summary_of(self.turns[-1].text) == turn.text:
                self.chars -= len(self.turns.pop().text)
                self.ids.pop()
        self.turns.append(turn)
        self.ids.append(id)
        self.chars += len(turn.text)
        if len(self.turns) > MAX_TURNS:
            raise TranscriptTooLong(f"{MAX_TURNS} turns")
        if self.chars > MAX_TEXT_CHARS:
            raise TranscriptTooLong(f"{MAX_TEXT_CHARS} characters")


class StoredTurn(NamedTuple):
    """A turn, or a piece of it, as it is stored; ``continues``: it goes on where the piece before it ends.

    ``basis`` is equal for equal turns, and ``number`` counts those before it in the capture. ``name`` is a digest of
    the turn's id and of the number of the piece.
    """

    basis: bytes
    number: int
    role: Role
    text: str
    said_at: str | None
    continues: bool
    name: bytes | None = None


def turn_of(role: str | None, text: str, said_at: str | None = None) -> Turn | None:
    """Return the turn, or None if nothing of such a role is kept or nothing was said.

    What a program said in the name of the user or the agent is left out; a summary or a plan that it hands over is the
    system's.
    """
    known = ROLES.get(role.strip().lower()) if role is not None and len(role) <= PIECE_CHARS else None
    text = sanitize_text(text)
    if known == "user" and (is_hand_over(text) or is_accepted_plan(text)):
        known = "system"
    if known == "system":
        text = summary_of(text)
    elif known is not None:
        text = said_by_user(text) if known == "user" else said_by_agent(text)
    text = text.strip("\r\n \t")
    return Turn(known, text, said_at) if known is not None and text else None


def stored_turns(
    turns: Iterable[Turn], clean: Callable[[str], str], ids: Iterable[str | None] = ()
) -> Iterator[StoredTurn]:
    """Yield what is stored of the turns; ``clean`` removes secrets, and what memory supplied, from each whole text.

    ``ids`` are those of the turns, as far as they have any.
    """
    seen: dict[bytes, int] = {}
    for (role, text, said_at), turn_id in zip(turns, chain(ids, repeat(None)), strict=False):
        cleaned = clean(text)
        for number, piece in enumerate(pieces(cleaned) if cleaned.strip() or not text.strip() else ()):
            continues = number > 0
            basis = turn_basis(role, piece, said_at, continues=continues)
            earlier = seen.get(basis, 0)
            seen[basis] = earlier + 1
            name = None if turn_id is None else hashlib.sha256(f"{turn_id}\0{number}".encode()).digest()[:_KEY_BYTES]
            yield StoredTurn(basis, earlier, role, piece, said_at, continues, name)


def turn_basis(role: str, text: str, said_at: str | None, *, continues: bool) -> bytes:
    """Return the digest that equal turns have in common."""
    return hashlib.sha256(f"{role}\0{said_at or ''}\0{int(continues)}\0{text}".encode()).digest()


def turn_key(basis: bytes, number: int) -> bytes:
    """Return the key of a turn with ``number`` equal ones before it."""
    return hashlib.sha256(basis + number.to_bytes(8)).digest()[:_KEY_BYTES]


def pieces(text: str) -> Iterator[str]:
    """Yield ``text`` in pieces of at most ``PIECE_CHARS``, cut after a line end where there is one.

    The pieces of a text that grew are those of the shorter text, except for its last one.
    """
    at = 0
    while len(text) - at > PIECE_CHARS:
        line_end = text.rfind("\n", at, at + PIECE_CHARS) + 1
        end = line_end if line_end > at else at + PIECE_CHARS
        yield text[at:end]
        at = end
    yield text[at:]


def without_labels(text: str) -> str:
    """Return the text of a conversation without the words that say who speaks."""
    for label in _LABELS.values():
        text = text.replace(label, "")
    return text


def conversation(turns: Sequence[tuple[str, str, bool]]) -> str:
    """Return the text of turns that are given as role, text and whether a turn continues the one before it."""
    parts: list[str] = []
    for role, text, continues in turns:
        if not continues:
            parts += ("\n\n" if parts else "", _LABELS.get(role, ""))
        parts.append(text)
    return "".join(parts)


def turns_of_conversation(text: str) -> list[tuple[str, str, bool]]:
    """Return role, text and whether a turn continues the one before it, of what ``conversation`` returned."""
    turns: list[tuple[str, str, bool]] = []
    for part in text.split("\n\n"):
        role = next((role for role, label in _LABELS.items() if label and part.startswith(label)), None)
        if role is None and turns:
            turns[-1] = (turns[-1][0], f"{turns[-1][1]}\n\n{part}", turns[-1][2])
        else:
            turns.append((role or "text", part.removeprefix(_LABELS[role]) if role else part, False))
    return turns
