"""The notes of a Basic Memory project: an observation or a relation is a memory, and so is each section of other text.

Source: docs/transfer.md "Other formats"; the note format of Basic Memory (frontmatter, observations, relations).
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from signet_actors.cli.importers.markdown import MARKDOWN, Note, lines_of, notes, sections
from signet_actors.cli.importers.source import Findings, Line, tag_of, type_of

SOURCE_TYPE = "basic-memory"
DEFAULT_KIND = "note"
"""The `type` that Basic Memory writes into every note that has no other: it says nothing about a memory."""


def memories(path: Path, findings: Findings) -> Iterator[Line]:
    """Return the memories of the notes; raise NotThisFormat if none of the files is a note of Basic Memory."""
    ours = (note for note in notes(path, MARKDOWN, findings) if "permalink" in note.matter)
    refusal = (
        f"{path} has no note of Basic Memory: no Markdown file has a permalink in its front matter."
        " `--from markdown` imports any Markdown"
    )
    return lines_of(ours, _memories, findings, refusal)


def _memories(note: Note) -> Iterator[Line]:
    lines = note.body.split("\n")
    taken: set[int] = set()
    for number, first in enumerate(lines):
        if number in taken or not _is_item(first):
            continue
        end = _end_of_item(lines, number)
        taken.update(range(number, end))
        yield _item(note, first.strip(), textwrap.dedent("\n".join(lines[number + 1 : end])))
    for headings, text in sections(note.body, without=taken):
        yield note.section(headings, text, **_about(note))


def _about(note: Note) -> dict[str, Any]:
    about: dict[str, Any] = {"sourceType": SOURCE_TYPE}
    return {**about, "type": None} if note.matter.get("type") == DEFAULT_KIND else about


def _item(note: Note, first: str, rest: str) -> Line:
    """Return an observation or a relation as a memory: its first line, and the lines below that belong to it."""
    more = f"\n{rest}" if rest else ""
    observed, related = _observation(first), _relation(first)
    if observed is not None:
        category, words = observed
        tags = [category, *(word[1:] for word in (words + more).split() if word.startswith("#") and len(word) > 1)]
        told = {**_about(note), "type": type_of(category)}
        return note.line(f"{note.title}: {words}{more}", tag_of(category), tags=tags, **told)
    assert related is not None
    relation, target, context = related
    content = " ".join(filter(None, (note.title, relation, target, context)))
    place = f"{tag_of(relation)}-{tag_of(target)}"
    return note.line(content + more, place, tags=["relation"], **_about(note))


def _is_item(text: str) -> bool:
    return _observation(text.strip()) is not None or _relation(text.strip()) is not None


def _end_of_item(lines: list[str], start: int) -> int:
    """Return the number of the line after the item: what is indented below it and no item of its own belongs to it."""
    indent = _indent(lines[start])
    end = start + 1
    for number in range(start + 1, len(lines)):
        if lines[number].strip():
            if _indent(lines[number]) <= indent or _is_item(lines[number]):
                break
            end = number + 1
    return end


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _observation(item: str) -> tuple[str, str] | None:
    """Return the category and the text of ``- [category] text``; None for a task, a link and anything else."""
    if not item.startswith("- ["):
        return None
    category, closed, text = item[3:].partition("]")
    if not closed or len(category) < 2 or category.startswith("[") or not text.startswith(" ") or not text.strip():
        return None
    return category.strip(), text.strip()


def _relation(item: str) -> tuple[str, str, str] | None:
    """Return relation, other note and context of ``- relation [[Title]] (context)``; None for anything else."""
    if not item.startswith("- "):
        return None
    relation, opened, rest = item[2:].partition("[[")
    target, closed, context = (part.strip() for part in rest.partition("]]"))
    words = relation.strip()
    if not opened or not closed or not words or not target or len(words.split()) > 3:
        return None
    if context and not (context.startswith("(") and context.endswith(")")):
        return None  # a sentence with a link in it
    return words.replace("_", " "), target, context
