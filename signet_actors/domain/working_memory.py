"""The text of ``MEMORY.md``: what a person wrote, a line that ends it, and below that what was made from memories.

What a person writes above the line stays as it is. A line that a person adds below it moves above it when that part is
made anew. What was made from the memories of one project stands below a heading that names it.

Source: docs/guides/working-memory.md.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from itertools import islice
from typing import Final

from signet_actors.domain.code_fences import is_in_fence
from signet_actors.domain.extraction.injected_text import without_tags
from signet_actors.domain.extraction.llm_output import without_leading_reasoning
from signet_actors.domain.normalization import CONTROL, collapsed, sanitize_text

PROJECT_HEADING: Final = "## Project: "
MAX_PROJECT_CHARS: Final = 4096
MAX_DIFF_LINES: Final = 2_000
_MARK_BEGIN: Final = "<!-- signet: "
_MARK: Final = re.compile(rf"^{_MARK_BEGIN}[^\n]{{0,400}}-->[^\S\n]{{0,20}}$", re.MULTILINE)
_MAX_MARKS: Final = 50
_HEADING: Final = re.compile(r"#{1,6}(?=[ \t])")
_FENCE: Final = re.compile(r"```(?:markdown|md|text)?[ \t]*")


def project_heading(project: str) -> str:
    """Return the heading of what was made from the memories of ``project``."""
    return f"{PROJECT_HEADING}{CONTROL.sub('', collapsed(project))[:MAX_PROJECT_CHARS].strip()}"


def split(text: str) -> tuple[str, str]:
    """Return what a person wrote, and what was made; without the line between them, all of it is a person's."""
    mark = _mark(text)
    if mark is None:
        return text.strip("\n"), ""
    return text[: mark.start()].strip("\n"), text[mark.end() :].strip("\n")


def joined(own: str, made: str, made_at: str) -> str:
    """Return the text of the file."""
    mark = f"{_MARK_BEGIN}made from memories at {made_at}; what you write above this line stays as it is -->"
    return "\n\n".join(part for part in (own.strip("\n"), mark, made.strip("\n")) if part) + "\n"


def own_part(text: str, former: Sequence[str]) -> str:
    """Return what a person wrote: the part above the line, and the lines below it that are in no ``former`` part.

    If a person removed the line, the lines of the former parts are left out of the whole text.
    """
    known = {line.strip() for part in former for line in part.splitlines()} - {""}
    own, made = split(text)
    mark = _mark(text)
    if mark is not None and not known and is_in_fence(text, mark.start(), mark.end()):
        return text.strip("\n")  # a quotation: nothing was made yet
    if mark is None:
        return _unknown_lines(own, known) if known else own
    added = _unknown_lines(made, known)
    return "\n\n".join(part for part in (own, added) if part)


def _mark(text: str) -> re.Match[str] | None:
    """Return the line between the parts: the first one that is not quoted in a fence of code, if there is one."""
    marks = list(islice(_MARK.finditer(text), _MAX_MARKS))
    bare = (mark for mark in marks if not is_in_fence(text, mark.start(), mark.end()))
    return next(bare, marks[0] if marks else None)


def _unknown_lines(text: str, known: set[str]) -> str:
    lines = [line for line in text.splitlines() if line.strip() not in known]
    kept = [line for at, line in enumerate(lines) if line.strip() or (at and lines[at - 1].strip())]
    return "\n".join(kept).strip("\n")


def for_session(text: str, project: str | None) -> str:
    """Return the text for an agent that works on ``project``: without what was made for other projects."""
    own, made = split(text)
    here = None if project is None else project_heading(project)
    shown = True
    kept = []
    for line in made.splitlines():
        if line.startswith(("# ", "## ")):
            shown = not line.startswith(PROJECT_HEADING.rstrip()) or line.strip() == here
        if shown:
            kept.append(line)
    return "\n\n".join(part for part in (own, "\n".join(kept).strip("\n")) if part)


def readable_answer(text: str, max_chars: int) -> str:
    """Return the Markdown in a model's answer, at most ``max_chars`` of it: whole lines; empty if there is none.

    Reasoning, a code fence around all of it, and control characters are left out, and no tag is left.
    """
    text = without_leading_reasoning(sanitize_text(text).strip()).replace("\r\n", "\n")
    before, closed, after = text.partition("</think>")  # some chat templates put the opening tag into the prompt
    text = CONTROL.sub("", after if closed and "<think>" not in before else text).strip()
    lines = [line for line in text.split("\n") if not line.startswith(_MARK_BEGIN)]
    if lines and _FENCE.fullmatch(lines[0]):
        lines = lines[1:-1] if lines[-1].strip() == "```" else lines[1:]
    text = without_tags("\n".join(line.rstrip() for line in lines)).strip("\n")
    if len(text) > max_chars:
        text = text[:max_chars].rpartition("\n")[0] or text[:max_chars]
    return text.rstrip() if any(map(str.isalnum, text)) else ""


def below(text: str, level: int) -> str:
    """Return Markdown in which no heading is above ``level``, and none looks like that of a project."""
    lines = []
    for line in text.split("\n"):
        heading = _HEADING.match(line)
        if heading is None:
            lines.append(line)
            continue
        least = max(level, 3) if line.startswith(PROJECT_HEADING.rstrip()) else level
        lines.append("#" * max(least, heading.end()) + line[heading.end() :])
    return "\n".join(lines)


def difference(former: str, present: str, names: tuple[str, str]) -> str:
    """Return a unified diff without the dates of the lines between the parts; of very long texts, if they differ."""
    before, after = (_MARK.sub(f"{_MARK_BEGIN}-->", text).splitlines() for text in (former, present))
    if max(len(before), len(after)) > MAX_DIFF_LINES:
        return "" if before == after else f"The texts differ; they are longer than {MAX_DIFF_LINES} lines.\n"
    return "".join(f"{line}\n" for line in difflib.unified_diff(before, after, *names, lineterm=""))
