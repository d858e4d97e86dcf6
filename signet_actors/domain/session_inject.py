"""The texts that hooks add to an agent's context: the start of a session, and the memories for a prompt.

Every heading is a mark that the extraction of facts removes again (``extraction/injected_text.py``). What memories and
files say does not end such a block. A memory is one line with the beginning of its id, by which it can be corrected or
forgotten.

Source: docs/guides/hooks.md "The start of a session", "Each prompt"; docs/decisions.md 17, 49.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from signet_actors.domain.extraction.injected_text import as_prose, without_marks, without_tags
from signet_actors.domain.normalization import CONTROL, collapsed
from signet_actors.domain.timestamps import local_time

BANNER: Final = "[memory active | /remember | /recall]"
MAX_INJECT_CHARS: Final = 24_000
MEMORY_CHARS: Final = 2000
CONSTRAINT_CHARS: Final = 4000
MAX_LINE_CHARS: Final = 400
_MAX_READ: Final = 16 * MAX_LINE_CHARS
"""Of a memory's text, so that a line of one takes the same time however long the text is."""
"""Of a memory's content on a line."""
MAX_TAGS: Final = 5
MIN_LINE_CHARS: Final = 40
"""A line is not cut to less than this."""
SHORT_ID_CHARS: Final = 18
"""Characters of an id that name one memory: the time in milliseconds, and 12 random bits."""
MAX_KEY_CHARS: Final = 200
"""A session key that is longer is not shown."""
CUT: Final = "…"
_MINUTE_MS: Final = 60_000
_MAX_QUERY_CHARS: Final = 100
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
STATUS_HEADING: Final = "## Signet Status"
CONSTRAINTS_HEADING: Final = "## Active Constraints"
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
    """A memory to show. ``created_at`` is ISO text."""

    id: str
    content: str
    tags: Sequence[str]
    created_at: str


class Shown(NamedTuple):
    """Lines of memories, and the ids of those that they show."""

    text: str
    ids: tuple[str, ...]


class Peer(NamedTuple):
    """Another session of the same project that is going on."""

    key: str
    harness: str | None
    idle_ms: int


class SessionStart(NamedTuple):
    """The text for the start of a session, empty if there is nothing to say, and the ids of the memories in it.

    ``stable`` is the part of it that is the same in each session while the files are the same, ``dynamic`` the rest.
    """

    text: str
    ids: tuple[str, ...]
    stable: str = ""
    dynamic: str = ""


class _Section(NamedTuple):
    rank: int
    lines: tuple[str, ...]
    ids: tuple[str, ...] = ()
    is_stable: bool = False


def stub(now: datetime) -> str:
    """Return the text for a session that has its start already."""
    return f"{BANNER}\n{date_section(now)}"


def date_section(now: datetime) -> str:
    """Return the heading with the date, which a model cannot know otherwise."""
    return f"# Current Date & Time\n{now:%A}, {now:%B} {now.day}, {now.year} at {now:%H:%M} ({now.tzname() or 'UTC'})"


def shown_key(key: str | None) -> str | None:
    """Return the session key if a text can show it, else None."""
    plain = key is not None and len(key) <= MAX_KEY_CHARS and key.isprintable() and _NOT_IN_KEYS.isdisjoint(key)
    return key if plain else None


def session_line(key: str | None, chars: int) -> str:
    """Return the line that tells a model the key of its session; empty without a key, or if it is over ``chars``."""
    line = "" if shown_key(key) is None else f'[signet:session | session_key="{key}"]'
    return line if len(line) <= chars else ""


def news(new_memories: int, captured_sessions: int, idle_ms: int | None) -> str | None:
    """Return the line about what happened since the last session, None if none is known."""
    if idle_ms is None:
        return None
    memories = "memory" if new_memories == 1 else "memories"
    sessions = "session" if captured_sessions == 1 else "sessions"
    return (
        f"[since last session: {new_memories} new {memories}, {captured_sessions} {sessions} captured,"
        f" last active {_ago(idle_ms)}]"
    )


def _ago(idle_ms: int) -> str:
    minutes = max(0, idle_ms) // _MINUTE_MS
    time = f"{minutes}m" if minutes < 60 else f"{minutes // 60}h" if minutes < 48 * 60 else f"{minutes // (24 * 60)}d"
    return f"{time} ago"


def session_start(
    *,
    now: datetime,
    files: Sequence[tuple[IdentityFile, str]],
    constraints: Sequence[Line],
    memories: Sequence[Line],
    since: str | None,
    recovery: str = "",
    session_key: str | None = None,
    all_constraints: int = 0,
    peers: Sequence[Peer] = (),
    status: Sequence[str] = (),
    limit: int = MAX_INJECT_CHARS,
    memory_chars: int = MEMORY_CHARS,
) -> SessionStart:
    """Return the text for the start of a session, at most ``limit`` characters long.

    What does not fit is left out by rank: constraints are kept longest, identity files shortest. A text with the full
    limit begins with the identity files; a shorter one begins with what is kept longest. ``recovery`` is a section,
    ``status`` says what is wrong, and ``all_constraints`` is how many there are, also those that are not given. The
    head names the session, if its key takes no more than a quarter of the limit.
    """
    session = session_line(session_key, limit // 4)
    head = f"{stub(now)}\n{session}".rstrip()
    room = limit - len(head) - sum(len(line) + 1 for line in status) - len(STATUS_HEADING) - len(CONSTRAINTS_HEADING)
    binding = _constraint_lines(constraints, all_constraints, min(CONSTRAINT_CHARS, room - 6))
    relevant = memory_lines(memories, memory_chars)
    if not (binding.text or relevant.ids or files or recovery or status):
        return SessionStart("", ())
    sections: list[_Section] = []
    if since and limit >= MAX_INJECT_CHARS:
        head = f"{BANNER}\n{since}\n{date_section(now)}\n{session}".rstrip()
    elif since:
        sections.append(_Section(_NEWS_RANK, (since,)))
    if peers:
        sections.append(_Section(_NEWS_RANK, (PEERS_HEADING, *_peer_lines(peers))))
    sections += [
        _Section(file.rank, file_section(file, text), is_stable=file.name != RECENT_FILE) for file, text in files
    ]
    if relevant.ids:
        heading = f"## Relevant Memories (auto-loaded | scored by importance x recency | {len(relevant.ids)} results)"
        sections.append(_Section(_MEMORIES_RANK, (heading, *relevant.text.splitlines()), relevant.ids))
    if status:
        sections.append(_Section(_STATUS_RANK, (STATUS_HEADING, *status)))
    if binding.text:
        sections.append(_Section(_CONSTRAINTS_RANK, (CONSTRAINTS_HEADING, *binding.text.splitlines()), binding.ids))
    if recovery:
        sections.append(_Section(_RECOVERY_RANK, tuple(recovery.splitlines())))
    return _fitted(head, sections, limit)


def _constraint_lines(constraints: Sequence[Line], count: int, chars: int) -> Shown:
    """Return the constraints that fit. A cut one says how it is read in full, and a last line how many are left out."""
    count = max(count, len(constraints))
    shown = memory_lines(constraints, chars, mark_cuts=True)
    if len(shown.ids) == count:
        return shown
    shown = memory_lines(constraints, chars - len(LEFT_OUT.format(count=count)) - 1, mark_cuts=True)
    left_out = LEFT_OUT.format(count=count - len(shown.ids))
    return Shown(f"{shown.text}\n{left_out}".lstrip("\n"), shown.ids)


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


def memory_lines(memories: Iterable[Line], chars: int, *, most: int | None = None, mark_cuts: bool = False) -> Shown:
    """Return as many memories as fit into ``chars`` characters, one on a line. The last one may be cut.

    ``mark_cuts``: a line that is cut says how the memory is read in full.
    """
    lines: list[str] = []
    ids: list[str] = []
    for memory in memories:
        if most is not None and len(ids) >= most:
            break
        line = memory_line(memory, chars, mark_cut=mark_cuts)
        if line is None:
            break
        lines.append(line)
        ids.append(memory.id)
        chars -= len(line) + 1
    return Shown("\n".join(lines), tuple(ids))


def memory_line(memory: Line, chars: int, *, mark_cut: bool = False) -> str | None:
    """Return the memory as a line of at most ``chars`` characters, None if it would have to be cut too short.

    ``mark_cut``: if it is cut, the line says how the memory is read in full.
    """
    tags = harmless(f" [{', '.join(map(harmless, memory.tags[:MAX_TAGS]))}]") if memory.tags else ""
    moment = local_time(memory.created_at)
    end = f"{tags} (id {memory.id[:SHORT_ID_CHARS]}) ({moment:%b} {moment.day}, {moment.year})"
    content = harmless(collapsed(memory.content[:_MAX_READ])[: MAX_LINE_CHARS + 1])
    room = min(MAX_LINE_CHARS, chars - len(end) - 2)
    if mark_cut and len(content) > room:
        how = f" [cut; all of it: signet show {memory.id[:SHORT_ID_CHARS]}]"
        end, room = how + end, min(MAX_LINE_CHARS, chars - len(how) - len(end) - 2)
    if room < min(MIN_LINE_CHARS, len(content)):
        return None
    return f"- {_cut(content, room)}{end}"


def harmless(line: str) -> str:
    """Return ``line`` in a form that neither ends the block in which it is shown nor looks like one of our marks."""
    return without_tags(without_marks(CONTROL.sub("", line)))


def prompt_memories(
    terms: Sequence[str], method: str, shown: Shown, *, session_key: str | None = None, limit: int = 0
) -> str:
    """Return the text with the memories for a prompt.

    It asks for feedback about them if the session has a key and the lines leave room for it within ``limit``.
    """
    query = " ".join(terms)[:_MAX_QUERY_CHARS]
    lines = f'[signet:recall | query="{query}" | results={len(shown.ids)} | engine={method}]\n{shown.text}'
    if shown_key(session_key) is None:
        return lines
    asked = (
        f'<memory-feedback>If they helped (1) or misled (-1) you: memory_feedback, session_key="{session_key}", ratings'
        " by id</memory-feedback>"
    )
    return f"{lines}\n{asked}" if len(shown.text) + 1 + len(asked) <= limit else lines


def _cut(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[: max(0, chars - len(CUT))].rstrip() + CUT


def _fitted(head: str, sections: Sequence[_Section], limit: int) -> SessionStart:
    """Return the sections that fit beside ``head``; the first one that does not is cut at the end of a line."""
    room = limit - len(head)
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
    texts = [("\n".join(section.lines), section.is_stable) for _, section in kept]
    return SessionStart(
        "\n\n".join([head, *(text for text, _ in texts)]),
        ids,
        stable="\n\n".join(text for text, is_stable in texts if is_stable),
        dynamic="\n\n".join([head, *(text for text, is_stable in texts if not is_stable)]),
    )


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
    return None if count < 2 else section._replace(lines=section.lines[:count], ids=section.ids[: count - 1])
