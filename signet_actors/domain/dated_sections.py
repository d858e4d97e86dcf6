"""The parts of ``MEMORY.md`` that need no model: short lines of sessions and memories, with their dates and ids.

Each line stands for one memory and ends with the beginning of its id, so it can be found when the memory is forgotten.

Source: docs/guides/working-memory.md "Sections by date"; docs/decisions.md 17, 39.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from signet_actors.domain.normalization import collapsed
from signet_actors.domain.session_inject import SHORT_ID_CHARS, harmless
from signet_actors.domain.session_summaries import title_of
from signet_actors.domain.timestamps import iso, local_time
from signet_actors.domain.working_memory import project_heading

LEDGER_DAYS: Final = 30
DAY_MS: Final = 86_400_000
HEAD_CHARS: Final = 400
READ_CHARS: Final = 4 * HEAD_CHARS
"""Of the text of a memory, for its line."""
LINE_CHARS: Final = 140
MAX_LINES: Final = 15
"""In the ledger, and in the index, of what belongs to no project."""
MAX_PROJECT_LINES: Final = 8
SUMMARY_TYPE: Final = "session_summary"
_WORD: Final = re.compile(r"[^\W_]+")
_HEADING: Final = re.compile(r"#{1,6}(?=[ \t]|\Z)")
_AROUND: Final = re.compile(
    r"^[ \t>]{0,20}(?:[-*+\u2022]|\d{1,3}[.)])?[ \t]{0,9}(?:\[[ x]\] )?(?:\d{4}-\d\d-\d\d(?: \d\d:\d\d)?:?)?"
    r"|[ \t]{0,9}\((?:ids? [^()]{0,1000}|[A-Z][a-z]{2} \d{1,2}, \d{4}|\d{4}-\d\d-\d\d)\)[ \t]{0,9}"
)
"""The bullet and the date before a line, and the ids and dates behind it."""
_MOST_COMPARED: Final = 4_000
_LEAST_WORDS: Final = 4
"""Of a line that is cut, before it is taken for the beginning of a memory."""
_NOT_INDEXED: Final = (SUMMARY_TYPE, "document_chunk")


class DatedMemory(NamedTuple):
    """A memory, or the summary of a session. ``at``: when it was stored, or when the session ended; ISO text."""

    id: str
    version: int
    type: str
    content: str
    at: str
    project: str | None


class Dated(NamedTuple):
    """The sections of one project, or of none. ``sources``: the versions of the memories that they show, by id."""

    project: str | None
    text: str
    sources: Mapping[str, int]


def dated(
    project: str | None, summaries: Iterable[DatedMemory], memories: Iterable[DatedMemory], now_ms: int
) -> Dated | None:
    """Return the sections from the summaries and memories of ``project``, each the newest first; None without any."""
    most = MAX_LINES if project is None else MAX_PROJECT_LINES
    since = iso(now_ms - LEDGER_DAYS * DAY_MS)
    sessions = [each for each in summaries if each.project == project and each.at >= since][:most]
    indexed = [each for each in memories if each.project == project and each.type not in _NOT_INDEXED][:most]
    level = "##" if project is None else "###"
    sections = [
        _section(f"{level} {heading}", lines)
        for heading, lines in (
            ("Thread Heads", [_line(each, HEAD_CHARS) for each in sessions[:1]]),
            (f"Session Ledger (Last {LEDGER_DAYS} Days)", [_line(each, LINE_CHARS, titled=True) for each in sessions]),
            ("Temporal Index", [_line(each, LINE_CHARS) for each in indexed]),
        )
        if lines
    ]
    if not sections:
        return None
    return Dated(project, "\n\n".join(sections), {each.id: each.version for each in (*sessions, *indexed)})


def short_id(memory_id: str) -> str:
    """Return the beginning of an id, as a line shows it."""
    return memory_id[:SHORT_ID_CHARS]


def assembled(parts: Sequence[tuple[str | None, str]], sections: Sequence[Dated]) -> str:
    """Return what stands below the line in the file: what the model made, each with its project, and the sections.

    What belongs to no project begins and ends the text; the heading of a project covers all that follows it.
    """
    made, by_date = dict(parts), {each.project: each.text for each in sections}
    projects = sorted({project for project in (*made, *by_date) if project is not None})
    texts = [made.get(None, "")]
    for project in projects:
        texts += [project_heading(project), made.get(project, ""), by_date.get(project, "")]
    texts.append(by_date.get(None, ""))
    return "\n\n".join(text for text in texts if text)


class Remaining(NamedTuple):
    """A text without the lines of some memories. ``unclear``: it may still say something of one of them."""

    text: str
    unclear: bool


def without_memories(text: str, gone: Iterable[str], others: Iterable[str]) -> Remaining:
    """Return the text without the lines that show one of the ids ``gone``, and what belongs to such a line.

    It is unclear if such a line shows another memory, one of ``others``, too, or if no line shows any memory.
    """
    missing = {short_id(each) for each in gone}
    kept_ids = {short_id(each) for each in others} - missing
    cites = unclear = dropping = False
    lines = []
    for line in text.split("\n"):
        shown = shown_ids(line)
        cites = cites or bool(shown & (missing | kept_ids))
        unclear = unclear or bool(shown & missing and shown & kept_ids)
        dropping = bool(shown & missing) or (dropping and line[:1] in {" ", "\t"})
        if not dropping:
            lines.append(line)
    return Remaining("\n".join(lines), unclear or (bool(missing) and not cites))


def shown_ids(line: str) -> set[str]:
    """Return the beginnings of ids that the line ends with, or has: ``(id 01a2059b-7c1e-7e35, 01a2059b-7c1e-7e36)``."""
    found: set[str] = set()
    for part in line.replace("(ids ", "(id ").split("(id ")[1:]:
        given, closed, _ = part.partition(")")
        if closed:
            found.update(given.replace(",", " ").split())
    return found


def unrepeated(text: str, told: Iterable[tuple[str, str]]) -> str:
    """Return the text without the lines that say only what is ``told``, ids and contents of memories.

    Such a line shows no ids but these, or has the words of one of them, or the first ones before a cut. A heading that
    loses all that stands below it is left out too.
    """
    memories = list(told)
    ids = {short_id(memory_id) for memory_id, _ in memories}
    contents = {words for _, content in memories if (words := _words(content))}
    lines: list[str] = []
    dropping = False
    for line in text.split("\n"):
        shown = shown_ids(line)
        dropping = (bool(shown) and shown <= ids) or _repeats(line, contents) or (dropping and line[:1] in {" ", "\t"})
        if not dropping:
            lines.append(line)
    if len(lines) == text.count("\n") + 1:
        return text
    kept: list[str] = []
    below = 0  # the level of the heading that stands next below, 0 for other text
    for line in reversed(lines):
        level = len(line) - len(line.lstrip("#")) if _HEADING.match(line) else 0
        if (level and (not kept or 0 < below <= level)) or not (line.strip() or (kept and kept[-1].strip())):
            continue
        if line.strip():
            below = level
        kept.append(line)
    return "\n".join(reversed(kept)).strip("\n")


def are_in_lines(contents: Sequence[str], texts: Iterable[str]) -> list[bool]:
    """Return of each content whether a line of the ``texts``, or an earlier one of the contents, has the same words."""
    said = {_words(_AROUND.sub("", line)) for text in texts for line in text.split("\n")}
    found = []
    for content in contents:
        words = _words(content)
        found.append(bool(words) and words in said)
        said.add(words)
    return found


def _words(text: str) -> tuple[str, ...]:
    beginning, rest = text[:_MOST_COMPARED], text[_MOST_COMPARED:]
    return (*_WORD.findall(beginning.casefold()), *([rest] if rest else []))


def _repeats(line: str, contents: Collection[tuple[str, ...]]) -> bool:
    """Return whether the line, without its bullet, dates and ids, has the words of one of the ``contents``."""
    bare = _AROUND.sub("", line).rstrip(" *_")
    words = _words(bare)
    if not bare.endswith(("…", "...")):
        return words in contents
    whole, part = words[:-1], words[-1:]
    return len(whole) >= _LEAST_WORDS and any(
        each[: len(whole)] == whole and each[len(whole) :] and each[len(whole)].startswith(part[0]) for each in contents
    )


def _section(heading: str, lines: Sequence[str]) -> str:
    return "\n".join((heading, *lines))


def _line(memory: DatedMemory, chars: int, *, titled: bool = False) -> str:
    title, text = title_of(memory.content) if memory.type == SUMMARY_TYPE else ("", memory.content)
    text = " ".join(line.lstrip("#") for line in text[: 4 * chars].splitlines())
    words = collapsed(title if titled and title else f"{title}: {text}" if title else text)
    shown = harmless(words[: chars + 1])
    end = f" (id {short_id(memory.id)})"
    return (
        f"- {local_time(memory.at).date()}: {shown if len(shown) <= chars else f'{shown[: chars - 1].rstrip()}…'}{end}"
    )
