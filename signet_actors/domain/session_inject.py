"""The texts that hooks add to an agent's context: the start of a session, and the memories for a prompt.

Every heading is a mark that the extraction of facts removes again (``extraction/injected_text.py``). What memories and
files say does not end such a block. A memory is one line with the beginning of its id, by which it can be corrected or
forgotten.

Source: docs/guides/hooks.md "The start of a session", "Each prompt"; docs/decisions.md 17, 49.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from signet_actors.domain.extraction.injected_text import as_prose, without_marks, without_tags
from signet_actors.domain.normalization import CONTROL, collapsed
from signet_actors.domain.timestamps import local_time
from signet_actors.domain.transcripts.excerpts import beginning_or_best

BANNER: Final = '[memory active | signet recall "\u2026" | signet remember "\u2026"]'
TOOLS_BANNER: Final = "[memory active | memory_search | memory_store]"
"""For a harness whose agents have the tools of MCP."""
MAX_INJECT_CHARS: Final = 24_000
MEMORY_CHARS: Final = 2000
CONSTRAINT_CHARS: Final = 4000
MAX_CONSTRAINT_CHARS: Final = 500
"""Of one constraint, with its tags, its id and its date; of a longer one the beginning is shown."""
PREFERRED_CHARS: Final = 1500
"""Of ``MEMORY_CHARS``, for preferences and decisions; what they leave is for what was asked for."""
SUMMARY_CHARS: Final = 800
MAX_ITEM_CHARS: Final = 600
"""Of a memory that is shown whole at the start."""
MAX_LINE_CHARS: Final = 400
"""Of the content of a memory that is cut."""
_MAX_READ: Final = 16 * MAX_LINE_CHARS
"""Of a memory's text, so that it takes the same time however long the text is."""
MAX_TAGS: Final = 5
MIN_LINE_CHARS: Final = 40
"""A memory is not cut to less than this."""
SHORT_ID_CHARS: Final = 18
"""Characters of an id that name one memory: the time in milliseconds, and 12 random bits."""
MAX_KEY_CHARS: Final = 200
"""A session key that is longer is not shown."""
CUT: Final = "…"
NEWER: Final = " (see the newer {id})"
"""Behind a memory of whose subject a newer one says that something has changed, perhaps something else: the reader sees
both, with their dates, and decides.
"""
TURN: Final = "From an earlier session: "
TURN_CHARS: Final = 300
"""Of what was said in an earlier session."""
_MINUTE_MS: Final = 60_000
_NOT_IN_KEYS: Final = frozenset('"<>[]\\ ')
"""Characters that would end a mark, or that a model could not copy."""


class IdentityFile(NamedTuple):
    """A file of the workspace that is part of the start of a session; at most ``chars`` of it.

    ``rank``: what has the lowest is kept longest when the text is too long.
    """

    name: str
    heading: str
    chars: int
    rank: int


RECENT_FILE: Final = "MEMORY.md"
"""The file about what is going on at present."""
IDENTITY_FILES: Final = (
    IdentityFile("AGENTS.md", "## Agent Instructions", 12_000, 6),
    IdentityFile("SOUL.md", "## Soul", 4000, 7),
    IdentityFile("IDENTITY.md", "## Identity", 2000, 8),
    IdentityFile("USER.md", "## About Your User", 6000, 9),
    IdentityFile(RECENT_FILE, "## Working Memory", 10_000, 5),
)
PEERS_HEADING: Final = "## Active Peer Sessions"
END: Final = "[END OF SIGNET MEMORY]"
STATUS_HEADING: Final = "## Signet Status"
CONSTRAINTS_HEADING: Final = "## Active Constraints"
PREFERRED_HEADING: Final = "## From Memory: Preferences and Decisions"
USED_HEADING: Final = "## From Memory: Used Before"
LAST_SESSION_HEADING: Final = "## From Memory: Last Session"
LEFT_OUT: Final = (
    "- {count} more of them left out here: memory_list (pinned, type rule, type constraint), `signet list --pinned`"
)
"""The last line below the constraints, if not all of them are shown: how to read the others."""
MAX_PEERS: Final = 5
_STATUS_RANK: Final = 0
_CONSTRAINTS_RANK: Final = 1
_RECOVERY_RANK: Final = 2
_MEMORIES_RANK: Final = 3
_NEWS_RANK: Final = 4


class Line(NamedTuple):
    """A memory to show. ``said_at``: when it was given its words, ISO text. ``newer_id``: the memory that says what
    has changed of it since."""

    id: str
    content: str
    tags: Sequence[str]
    said_at: str
    newer_id: str | None = None


class Shown(NamedTuple):
    """Memories as items of a list, and the ids of those that are shown; ``whole``: of those without a cut."""

    items: tuple[str, ...]
    ids: tuple[str, ...]
    whole: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.items)


class Peer(NamedTuple):
    """Another session of the same project that is going on."""

    key: str
    harness: str | None
    idle_ms: int


class SessionStart(NamedTuple):
    """The text for the start of a session, empty if there is nothing to say, and the ids of the memories in it.

    ``whole``: of those that are not cut. ``stable`` is the part of it that is the same in each session while the files
    are the same, ``dynamic`` the rest.
    """

    text: str
    ids: tuple[str, ...]
    whole: tuple[str, ...] = ()
    stable: str = ""
    dynamic: str = ""


class _Section(NamedTuple):
    """A section; ``lines`` after the first one may each be an item of several lines, a memory of ``ids``."""

    rank: int
    lines: tuple[str, ...]
    ids: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    is_stable: bool = False
    is_prose: bool = False


def shown_key(key: str | None) -> str | None:
    """Return the session key if a text can show it, else None."""
    plain = key is not None and len(key) <= MAX_KEY_CHARS and key.isprintable() and _NOT_IN_KEYS.isdisjoint(key)
    return key if plain else None


def session_line(key: str | None, chars: int) -> str:
    """Return the line that tells a model the key of its session, and how it rates memories with the tools.

    It is empty without a key, or if it is over ``chars``.
    """
    line = f'[signet:session | session_key="{key}" | memory_feedback: rate by id what helped (1) or misled (-1)]'
    return line if shown_key(key) is not None and len(line) <= chars else ""


def news(new_memories: int, idle_ms: int | None) -> str | None:
    """Return the line about what is new since the last session, None if nothing is."""
    if idle_ms is None or new_memories == 0:
        return None
    memories = "memory" if new_memories == 1 else "memories"
    return f"[since last session: {new_memories} new {memories}, last active {_ago(idle_ms)}]"


def _ago(idle_ms: int) -> str:
    minutes = max(0, idle_ms) // _MINUTE_MS
    time = f"{minutes}m" if minutes < 60 else f"{minutes // 60}h" if minutes < 48 * 60 else f"{minutes // (24 * 60)}d"
    return f"{time} ago"


def session_start(
    *,
    files: Sequence[tuple[IdentityFile, str]],
    constraints: Sequence[Line],
    preferred: Sequence[Line],
    used: Sequence[Line],
    since: str | None,
    last_session: Sequence[Line] = (),
    recovery: str = "",
    session_key: str | None = None,
    has_tools: bool = False,
    all_constraints: int = 0,
    peers: Sequence[Peer] = (),
    status: Sequence[str] = (),
    limit: int = MAX_INJECT_CHARS,
    memory_chars: int = MEMORY_CHARS,
) -> SessionStart:
    """Return the text for the start of a session, at most ``limit`` characters long.

    What does not fit is left out by rank: constraints are kept longest, identity files shortest. A text with the full
    limit begins with the identity files; a shorter one begins with what is kept longest. ``preferred``: preferences and
    decisions. ``used``: what was asked for. ``last_session``: its summary, else ``recovery`` is a section about it.
    ``status`` says what is wrong, and ``all_constraints`` is how many there are, also those that are not given. The
    head names the session to tools, if its key takes no more than a quarter of the limit.
    """
    session = session_line(session_key, limit // 4) if has_tools else ""
    head = f"{TOOLS_BANNER if has_tools else BANNER}\n{session}".rstrip()
    room = limit - len(head) - sum(len(line) + 1 for line in status) - len(STATUS_HEADING) - len(CONSTRAINTS_HEADING)
    binding = _constraint_lines(constraints, all_constraints, min(CONSTRAINT_CHARS, room - 6))
    liked = memory_lines(preferred, min(PREFERRED_CHARS, memory_chars))
    asked = memory_lines(used, memory_chars - len(liked.text))
    summary = memory_lines(last_session, SUMMARY_CHARS, most=SUMMARY_CHARS, cut=True)
    if not (binding.text or liked.ids or asked.ids or summary.ids or files or recovery or status):
        return SessionStart("", ())
    sections: list[_Section] = []
    if since and limit >= MAX_INJECT_CHARS:
        head = f"{head}\n{since}"
    elif since:
        sections.append(_Section(_NEWS_RANK, (since,)))
    if peers:
        sections.append(_Section(_NEWS_RANK, (PEERS_HEADING, *_peer_lines(peers))))
    sections += [
        _Section(file.rank, file_section(file, text), is_stable=file.name != RECENT_FILE, is_prose=True)
        for file, text in files
    ]
    if status:
        sections.append(_Section(_STATUS_RANK, (STATUS_HEADING, *status)))
    for rank, heading, shown in (
        (_CONSTRAINTS_RANK, CONSTRAINTS_HEADING, binding),
        (_MEMORIES_RANK, PREFERRED_HEADING, liked),
        (_MEMORIES_RANK, USED_HEADING, asked),
        (_RECOVERY_RANK, LAST_SESSION_HEADING, summary),
    ):
        if shown.items:
            sections.append(_Section(rank, (heading, *shown.items), shown.ids, shown.whole))
    if recovery:
        sections.append(_Section(_RECOVERY_RANK, tuple(recovery.splitlines())))
    return _fitted(head, sections, limit)


def _constraint_lines(constraints: Sequence[Line], count: int, chars: int) -> Shown:
    """Return the constraints that fit. A cut one says how it is read in full, and a last line how many are left out."""
    count = max(count, len(constraints))
    shown = memory_lines(constraints, chars, most=MAX_CONSTRAINT_CHARS, cut=True)
    if len(shown.ids) == count:
        return shown
    shown = memory_lines(
        constraints, chars - len(LEFT_OUT.format(count=count)) - 1, most=MAX_CONSTRAINT_CHARS, cut=True
    )
    left_out = LEFT_OUT.format(count=count - len(shown.ids))
    return shown._replace(items=(*shown.items, left_out))


def _peer_lines(peers: Sequence[Peer]) -> list[str]:
    lines = [
        f"- {shown_key(peer.harness) or 'a program'}, session {shown_key(peer.key) or 'without a name'},"
        f" active {_ago(peer.idle_ms)}"
        for peer in peers[:MAX_PEERS]
    ]
    return [*lines, f"- and {len(peers) - MAX_PEERS} more"] if len(peers) > MAX_PEERS else lines


def file_section(file: IdentityFile, text: str) -> tuple[str, ...]:
    """Return the lines of the section with the text of a file, as much of it as may be shown."""
    return (file.heading, *_cut(as_prose(text[: file.chars + 1]), file.chars).split("\n"))


def memory_lines(
    memories: Iterable[Line], chars: int, *, most: int = MAX_ITEM_CHARS, cut: bool = False, words: Sequence[str] = ()
) -> Shown:
    """Return those of the memories that fit into ``chars`` characters, each whole and with at most ``most`` characters.

    ``cut``: of one that has more than ``most``, the beginning is shown, or the lines with most of the ``words``, and
    how it is read in full. A memory whose newer one stands before it and does not fit is left out, too.
    """
    items: list[str] = []
    ids: list[str] = []
    whole: list[str] = []
    left_out: set[str | None] = set()
    for memory in memories:
        if chars < MIN_LINE_CHARS:
            break
        if memory.newer_id in left_out:
            continue
        item = memory_item(memory, min(chars, most))
        if item is not None:
            whole.append(memory.id)
        elif cut and memory_item(memory, most) is None:
            item = _cut_item(memory, min(chars, most), words)
        if item is not None:
            items.append(item)
            ids.append(memory.id)
            chars -= len(item) + 1
        else:
            left_out.add(memory.id)
    return Shown(tuple(items), tuple(ids), tuple(whole))


def memory_item(memory: Line, chars: int) -> str | None:
    """Return the memory as an item of a list, None if that has more than ``chars`` characters.

    Its lines stay, so that a command or a table can be copied.
    """
    if len(memory.content) > chars + _MAX_READ:
        return None
    text = "\n".join(filter(str.strip, harmless(memory.content).splitlines())).strip().replace("\n", "\n  ")
    below = "\n " if "\n" in text and text.rpartition("\n")[2].lstrip().startswith(("```", "~~~", "|")) else ""
    item = f"- {text}{below}{_end(memory)}"
    return item if len(item) <= chars else None


def _cut_item(memory: Line, chars: int, words: Sequence[str]) -> str | None:
    """Return as much of the memory as fits on one line that says how all of it is read; None if that is too little."""
    end = f"{CUT} [cut; all of it: signet show {memory.id[:SHORT_ID_CHARS]}]{_end(memory)}"
    room = min(MAX_LINE_CHARS, chars - len("- ") - len(end))
    if room < MIN_LINE_CHARS:
        return None
    text = beginning_or_best(memory.content[:_MAX_READ], words, room)
    return f"- {harmless(collapsed(text))[:room].rstrip()}{end}"


def turn_item(text: str, said_at: str, chars: int, newer_id: str | None = None) -> str | None:
    """Return what was said in an earlier session as an item; None if it would have to be cut too short.

    ``newer_id``: the memory that says what has changed of it since.
    """
    moment = local_time(said_at)
    end = f"{_newer(newer_id)} ({moment:%b} {moment.day}, {moment.year} at {moment:%H:%M})"
    room = min(TURN_CHARS, chars - len(TURN) - len(end) - 2)
    return None if room < 2 * MIN_LINE_CHARS else f"- {TURN}{_cut(harmless(collapsed(text)), room)}{end}"


def _end(memory: Line) -> str:
    tags = harmless(f" [{', '.join(map(harmless, memory.tags[:MAX_TAGS]))}]") if memory.tags else ""
    moment = local_time(memory.said_at)
    return (
        f"{tags}{_newer(memory.newer_id)} (id {memory.id[:SHORT_ID_CHARS]}) ({moment:%b} {moment.day}, {moment.year})"
    )


def _newer(newer_id: str | None) -> str:
    return "" if newer_id is None else NEWER.format(id=newer_id[:SHORT_ID_CHARS])


def harmless(line: str) -> str:
    """Return ``line`` in a form that neither ends the block in which it is shown nor looks like one of our marks."""
    return without_tags(without_marks(CONTROL.sub("", line)))


def prompt_memories(items: Sequence[str], session: str = "") -> str:
    """Return the text with the memories and turns for a prompt. ``session``: the line for the tools, if it is due."""
    return "\n".join([f"[signet:recall | {len(items)} from memory]", *items, session]).rstrip()


def _cut(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[: max(0, chars - len(CUT))].rstrip() + CUT


def _fitted(head: str, sections: Sequence[_Section], limit: int) -> SessionStart:
    """Return the sections that fit beside ``head``; the first one that does not is cut at the end of a line."""
    room = limit - len(head) - (2 + len(END) if any(section.is_prose for section in sections) else 0)
    kept: list[tuple[int, _Section]] = []
    for place, section in sorted(enumerate(sections), key=lambda pair: pair[1].rank):
        fitting = _first_lines(section, room - 2)
        if fitting is not None:
            kept.append((place, fitting))
            room -= 2 + sum(len(line) + 1 for line in fitting.lines) - 1
        if fitting is None or len(fitting.lines) < len(section.lines):
            break
    if limit >= MAX_INJECT_CHARS:
        kept.sort()
    ids = tuple(memory_id for _, section in kept for memory_id in section.ids)
    whole = tuple(memory_id for _, section in kept for memory_id in section.ids if memory_id in section.whole)
    shown = [section for _, section in kept]
    return SessionStart(
        _text(head, shown),
        ids,
        whole,
        stable="\n\n".join("\n".join(section.lines) for section in shown if section.is_stable),
        dynamic=_text(head, [section for section in shown if not section.is_stable]),
    )


def _text(head: str, sections: Sequence[_Section]) -> str:
    """Return the whole text. After prose its end is marked: what a user writes below is no part of it."""
    end = [END] if sections and sections[-1].is_prose else []
    return "\n\n".join([head, *("\n".join(section.lines) for section in sections), *end])


def _first_lines(section: _Section, room: int) -> _Section | None:
    """Return the section with as many lines as fit; None if that would be its heading alone."""
    count = 0
    for line in section.lines:
        room -= len(line) + (1 if count else 0)
        if room < 0:
            break
        count += 1
    if count == len(section.lines):
        return section
    ids = section.ids[: count - 1]
    return None if count < 2 else section._replace(lines=section.lines[:count], ids=ids)
