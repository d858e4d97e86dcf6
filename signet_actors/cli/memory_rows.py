"""Memories and turns of sessions in rows: the text in its lines, and below it one dim line about it.

On a pipe, one line of tab-separated columns for each row.

Source: docs/cli.md "Output".
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Final

import click

from signet_actors.cli.invocation import advised
from signet_actors.cli.presentation import (
    LEAST_VALUE,
    cell_count,
    cut,
    in_colour,
    on_terminal,
    one_line,
    printable,
    tags_text,
    terminal_width,
    wrap,
    wrap_parts,
)
from signet_actors.cli.times import time_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SEPARATOR: Final = " · "
ANSWERS: Final = 0.5
"""From this relevance on, a memory most likely answers the question (docs/quality.md "Relevance")."""
TURN: Final = "session_turn"
SHOWN_LINES: Final = 6
SHORT_ID: Final = 13
"""The characters of an id that tell the millisecond in which it was made."""
_SHORT_ID_OF_BATCH: Final = 23
"""What is stored together may have a millisecond in common: these also tell its random part."""
_UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_HEADING = re.compile(r"#{1,6}\s+(\S.*)")
_CUT: Final = " [truncated]"
"""How the daemon ends a text that it cut."""
_WITHOUT_NAME: Final = frozenset(("", "user", "daemon"))
"""Authors that tell nothing: the one that `remember` assumes, and that of the API."""


def print_memories(
    rows: Sequence[Mapping[str, Any]], *, lead: str = "created_at", scored: bool = False, asked: str = ""
) -> None:
    """Print each memory or turn in a row.

    ``lead`` names what stands before the text: a time, or ``relevance``. On a pipe: ``id type created tags content``
    (of a session its key), with the relevance before them if ``scored``, or the score in an answer that has none.
    ``asked``: a question; of a long text the lines about it are shown.
    """
    if not on_terminal():
        for row in rows:
            cells = [
                _id(row),
                row.get("type"),
                row.get("created_at"),
                tags_text(row.get("tags")),
                row.get("content"),
            ]
            leading = [row.get("relevance", row.get("score"))] if scored else []
            click.echo("\t".join(one_line(cell) for cell in leading + cells))
        return
    ids = short_ids(rows)
    names = {_id(row): id_ for row, id_ in zip(rows, ids, strict=True)}
    leads = [_lead(row, lead) for row in rows]
    indent = max(map(cell_count, leads), default=0) + 2
    room = terminal_width() - indent
    if room < LEAST_VALUE:
        indent, room = 2, max(terminal_width() - 2, LEAST_VALUE)
    for row, id_, first in zip(rows, ids, leads, strict=True):
        answers = lead != "relevance" or relevance_of(row) >= ANSWERS
        head = _styled(first, **({"fg": "green"} if answers else {"dim": True})) if lead == "relevance" else first
        lines, is_cut = _lines_about(str(row.get("content") or "").removesuffix(_CUT), asked, room)
        if is_cut or row.get("truncated"):
            lines = [*lines[:SHOWN_LINES], _styled(advised(f"… (signet show {id_})"), dim=True)]
        begin = head + " " * (indent - cell_count(first))
        if cell_count(first) + 2 > indent:
            click.echo(head)
            begin = " " * indent
        click.echo((begin + lines[0]).rstrip())
        for line in lines[1:]:
            click.echo(f"{' ' * indent}{line}".rstrip())
        for line in filter(None, wrap_parts(_about(row, names, lead, room), room)):
            click.echo(" " * indent + _styled(line, dim=True))


def _lines_about(text: str, asked: str, width: int) -> tuple[list[str], bool]:
    """Return the styled lines of a text, of a long one those about what was asked, and whether there are more."""
    from signet_actors.domain.query_words import words_of  # noqa: PLC0415 - only for results
    from signet_actors.domain.stop_words import stop_words_of  # noqa: PLC0415 - likewise
    from signet_actors.domain.transcripts.excerpts import best_line, excerpt  # noqa: PLC0415 - likewise

    words = words_of(asked)
    telling = sorted(set(words) - stop_words_of(words))
    given = list(filter(str.strip, text.splitlines()))
    most = width * (SHOWN_LINES - 1) // min(len(given) or 1, 2)
    lines = [excerpt(line, telling, most) if telling and len(line) > most else line for line in given]
    is_cut = lines != given
    at = best_line(lines, telling)
    if sum(1 + len(line) // width for line in lines[: at + 1]) <= SHOWN_LINES:
        shown = text_lines("\n".join(lines) if is_cut else text, width)
        return shown, is_cut or len(shown) > SHOWN_LINES
    heading = lines[:1] if lines[0].startswith("#") else []
    begin = min(at, max(1, len(lines) - SHOWN_LINES + len(heading) + 1))
    return text_lines("\n".join([*heading, "…", *lines[begin:]]), width), True


def print_rule(text: str) -> None:
    """Print a dim line with a text across the terminal."""
    width = min(terminal_width(), 80)
    click.echo(_styled(f"── {text} ".ljust(width, "─"), dim=True))


def short_ids(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return for each row the beginning of its id that no other memory has; a key that is no UUID as it is."""
    ids = [_id(row) for row in rows]
    return [one_line(_beginning(id_, row.get("source_type"), ids)) for id_, row in zip(ids, rows, strict=True)]


def _beginning(id_: str, source_type: Any, ids: Sequence[str]) -> str:
    if not _UUID.fullmatch(id_):
        return id_
    lengths = (SHORT_ID, 18, _SHORT_ID_OF_BATCH, len(id_))[0 if source_type in {None, "manual"} else 2 :]
    others = {other for other in ids if other != id_}
    return next((id_[:n] for n in lengths if not any(other.startswith(id_[:n]) for other in others)), id_)


def short_id(memory_id: Any, given: str = "") -> str:
    """Return the id of a new memory as a person needs it on a terminal, or as it was ``given``; whole on a pipe."""
    return one_line(given) or one_line(memory_id)[:SHORT_ID] if on_terminal() else one_line(memory_id)


def text_lines(text: str, width: int) -> list[str]:
    """Return the text in styled lines of ``width`` cells: Markdown's headings in bold, code as it is, without fences.

    Of a long text at least one line more than is shown.
    """
    lines: list[str] = []
    in_code = False
    for line in printable(text.replace("\r\n", "\n")).expandtabs(4).split("\n"):
        if _FENCE.match(line):
            in_code = not in_code
        elif line.strip() and len(lines) <= SHOWN_LINES:
            heading = None if in_code else _HEADING.fullmatch(line.strip())
            parts = wrap(heading[1] if heading else line.rstrip(), width)
            lines += [_styled(part, bold=True) if heading else part for part in parts]
    return lines or [""]


def _id(row: Mapping[str, Any]) -> str:
    """Return the id of the row's memory (in a timeline beside the entry's own), or the key of its session."""
    if row.get("type") == TURN:
        return str(row.get("session_key") or "")
    return str(row.get("id" if row.get("subject_type") is None else "subject_id") or "")


def _lead(row: Mapping[str, Any], name: str) -> str:
    return f"{relevance_of(row):.2f}" if name == "relevance" else time_text(row.get(name))


def relevance_of(row: Mapping[str, Any]) -> float:
    """Return the relevance of a result; 0 if the reply has none."""
    return float(row.get("relevance") or 0)


def _about(row: Mapping[str, Any], names: Mapping[str, str], lead: str, room: int) -> tuple[str, ...]:
    """Return what there is to say about the memory: where it comes from, and when it was made unless that leads.

    ``names``: the short ids of what is shown. File and tags take one line each at most.
    """
    id_ = names[_id(row)]
    is_session = row.get("type") == TURN or row.get("subject_type") == "session"
    path, who = one_line(row.get("source_path")), one_line(row.get("who"))
    newer, older = str(row.get("newer_id") or ""), str(row.get("older_id") or "")
    return (
        f"session {id_}" if is_session else id_,
        "" if is_session else one_line(row.get("type")),
        time_text(row.get("created_at")) if lead == "relevance" else "",
        f"recoverable until {time_text(row['recoverable_until'])}" if row.get("recoverable_until") else "",
        f"see the newer {names.get(newer) or one_line(_beginning(newer, 'unknown', [newer]))}" if newer else "",
        f"newer than {names.get(older, one_line(older))}" if older else "",
        "pinned" if row.get("pinned") else "",
        project_name(row) if is_session else f"project {project_name(row)}" if row.get("project") else "",
        cut(
            "/".join(path.rstrip("/").split("/")[-2:]) or ("" if is_session or who in _WITHOUT_NAME else who), room - 2
        ),
        cut("" if is_session else one_line(tags_text(row.get("tags")).replace(",", ", ")), room - 2),
    )


def project_name(row: Mapping[str, Any]) -> str:
    """Return the last part of the directory of the project; empty without one."""
    project = str(row.get("project") or "")
    return one_line(os.path.basename(os.path.normpath(project)) or project)


def _styled(text: str, **style: Any) -> str:
    return click.style(text, **style) if in_colour() else text
