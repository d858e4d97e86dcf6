"""Take off what stands before every line of a pasted block: line numbers, marks of a diff, quotes, boxes, times.

The rules that span lines then read the text as it was before it was numbered, compared, quoted, drawn or logged.

Source: cat(1), nl(1), bat(1), grep(1), git-diff(1), git-blame(1), journalctl(1), "kubectl logs" and "docker compose
logs" in the manuals of these; CommonMark "Block quotes".
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from typing import Final

from signet_actors.domain.lazy_patterns import compile_later
from signet_actors.domain.redaction.letters import PlainText

_MOST_PREFIXES: Final = 4
"""How many may stand before one line: of a quoted diff, the name of a file and a number."""
_LINES_AROUND: Final = 20
"""Lines before and behind a block that may belong to it: of a manifest with one line that was added."""
_BARS: Final = "\u2502\u2503\u2551"
_PREFIX = compile_later(
    r"(?P<quote>[ ]{0,3}>[ ]?)"
    rf"|(?P<drawn>[ \t]{{0,12}}(?P<line>\d{{1,7}}[ \t]{{0,4}}[+~_\u203e-]?[ \t]{{0,4}})?(?P<edge>[{_BARS}])[ ]?)"
    r"|(?P<bar>[ \t]{0,8}\|[ ]?)"
    r"|(?P<time>(?:[^\t\n]{1,80}\t[^\t\n]{1,80}\t)?"
    r"(?:[A-Z][a-z]{2}[ ]{1,2}\d{1,2}[ ](?P<syslog>)|\[?(?:\d{4}[/-]\d\d[/-]\d\d[T ])?)"
    r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[ ]?[+-]\d\d:?\d\d)?\]?"
    r"(?:[ \t]{1,4}\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL)\]?:?)?"
    r"(?(syslog)(?:[ ]\S{1,64}[ ][^\s:]{1,64}:)?)(?:[ \t]|\r?\Z))"
    r"|(?P<numbered>(?P<file>[^\s:]{0,200}?\.\w{1,8}[:-]|[^\s:]{1,200}:)?[ \t]{0,12}(?P<number>\d{1,7})"
    r"(?P<sign>[ \t]{0,4}(?:\u2192|\|[ ]?)|[:-]|\t|[ ]|\r?\Z))"
    r"|(?P<blame>\^?[0-9a-f]{7,40}[ ][^()\n]{0,160}\([^()\n]{1,120}[ ]\d{1,7}\)[ ]?)"
    r"|(?P<same>[\w.-]{1,64}[ ]{1,40}\|[ ]|[ ]?\[[^\]\s]{1,200}\][ ]|[^\s:]{0,200}?\.\w{1,8}[:-]|[\w./-]{1,64}:[ ]?"
    r"|[ \t]{0,12}[+~<;%][ ]|[ \t]{1,12}\*[ ]?|(?:-[ ])?(?:[\w.$:]{1,64}[ ]-{1,2}[ ]){1,3})"
    r"|(?P<comment>[ \t]{0,8}(?:\#|//)[ ]?)"
)
_CELLS: Final = {
    kind: compile_later(rf"[ \t]{{0,8}}(?!\d{{1,7}}[ \t])[^{bars}]{{1,200}}[ \t][{bars}][ \t]{{1,200}}[^\s{bars}]")
    for kind, bars in (("drawn", _BARS), ("bar", "|"))
}
"""The row of a table, between whose bars is no line of a block; it may be the number of one."""
_SURE: Final = ("quote", "drawn", "time", "blame")
"""These are known by themselves, the others by the line above or below."""
_OF_DIFF: Final = ("+", "-", " ", "\\", "\r", "")
_Lines = list[tuple[int, int]]
"""Where the content of each line begins and ends."""


def without_line_prefixes(plain: str) -> Iterator[PlainText]:
    """Yield the blocks before whose lines something stands, without that; the sides of a diff are two of them."""
    if "\n" not in plain:
        return
    lines: _Lines = []
    at = 0
    for line in plain.split("\n"):
        lines.append((at, at + len(line)))
        at += len(line) + 1
    texts = [lines]
    for _ in range(_MOST_PREFIXES):
        shorter = [less for text in texts for less in _once_less(plain, text, may_split=len(texts) == 1)]
        if shorter == texts:
            break
        texts = shorter
    begins = {start for start, _ in lines}
    for text in texts if texts != [lines] else ():
        for block in _blocks(text, begins):
            positions = array("L")
            for start, end in block:
                positions.extend(range(start, end + 1))  # with the end of the line
            yield PlainText("\n".join([plain[start:end] for start, end in block]), positions)


def _blocks(lines: _Lines, begins: set[int]) -> Iterator[_Lines]:
    """Yield the lines before which something stood, with those around them; no whole line of the text is one."""
    begin = end = 0
    for index, (start, _) in enumerate(lines):
        if start not in begins:
            if index - _LINES_AROUND > end:
                if end:
                    yield lines[begin:end]
                begin = index - _LINES_AROUND
            end = index + _LINES_AROUND + 1
    if end:
        yield lines[begin:end]


def _once_less(plain: str, lines: _Lines, *, may_split: bool) -> list[_Lines]:
    """Return the lines without the first thing that stands before each, of a diff the new ones and the old ones."""
    shorter = list(lines)
    signs = [""] * len(lines)
    of_diff = _diff_lines(plain, lines)
    previous: tuple[int, re.Match[str]] | None = None
    for index, (start, end) in enumerate(lines):
        if index in of_diff:
            previous = None
            if start < end:
                shorter[index] = (start + 1, end)
                signs[index] = plain[start]
            continue
        found = _PREFIX.match(plain, start, end)
        if found is None or _is_row(plain, found, end):
            previous = previous if not plain[start:end].strip() else None  # nl(1) does not number blank lines
            continue
        if found.lastgroup in _SURE:
            shorter[index] = _content(plain, found, end)
        elif previous is not None and _follows(found, previous[1]):
            for each, match in (previous, (index, found)):
                shorter[each] = _content(plain, match, lines[each][1])
        previous = index, found
    if may_split and "+" in signs and "-" in signs:
        return [[line for line, sign in zip(shorter, signs, strict=True) if sign != other] for other in "-+"]
    return [shorter]


def _is_row(plain: str, found: re.Match[str], end: int) -> bool:
    cells = _CELLS.get(found.lastgroup or "")
    return cells is not None and not found["line"] and cells.match(plain, found.end(), end) is not None


def _content(plain: str, found: re.Match[str], end: int) -> tuple[int, int]:
    """Return start and end of what stands behind the prefix, and in a box before its right edge."""
    edge = found["edge"] or ("|" if found["bar"] else "")
    start = found.end()
    if edge and (text := plain[start:end].rstrip()).endswith(edge):
        end = start + len(text[:-1].rstrip())
    return start, end


def _follows(found: re.Match[str], above: re.Match[str]) -> bool:
    """Return whether the prefixes of two lines are of one block: their numbers increase, or they are the same."""
    if found.lastgroup != above.lastgroup:
        return False
    if found["number"]:
        step = int(found["number"]) - int(above["number"])
        is_listed = found["sign"].isspace() and found["sign"] != "\t"
        return (found["file"] or "")[:-1] == (above["file"] or "")[:-1] and (step == 1 if is_listed else step > 0)
    return not found["same"] or found[0][:-1] == above[0][:-1]


def _diff_lines(plain: str, lines: _Lines) -> set[int]:
    """Return the indexes of the lines of diffs: blocks whose lines begin with ``+``, ``-`` or a blank.

    Those of a list in Markdown begin with ``-`` and one blank, too.
    """
    of_diff: set[int] = set()
    block: list[int] = []
    is_diff = False
    for index, (start, end) in enumerate((*lines, (-1, -1))):
        if start >= 0 and plain[start : min(end, start + 1)] in _OF_DIFF:
            block.append(index)
            sign, behind = plain[start : start + 1], plain[start + 1 : min(end, start + 3)]
            if start < end and (sign == "+" or (sign == "-" and (behind[:1] != " " or behind == "  "))):
                is_diff = True
            continue
        if is_diff:
            of_diff.update(block)
        block = []
        is_diff = plain.startswith("@@ ", start) if start >= 0 else False
    return of_diff
