"""Memories and turns of sessions in rows: the text in its lines, and below it one dim line about it.

On a pipe, one line of tab-separated columns for each row. Of the ids that the user types the first characters suffice
if no other id begins so.

Source: docs/cli.md "Output", "Memories"; docs/compatibility.md "Reading memories".
"""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click

from signet_actors.cli.connection import DaemonClient
from signet_actors.cli.exit_codes import USAGE
from signet_actors.cli.invocation import advised
from signet_actors.cli.presentation import (
    LEAST_VALUE,
    cell_count,
    cut,
    in_colour,
    on_terminal,
    one_line,
    print_message,
    printable,
    tags_text,
    terminal_width,
    time_text,
    wrap,
    wrap_parts,
)
from signet_actors.errors import ErrorCode, RequestRefused

SEPARATOR: Final = " · "
ANSWERS: Final = 0.5
"""From this relevance on, a memory most likely answers the question (docs/quality.md "Relevance")."""
TURN: Final = "session_turn"
CHUNK: Final = "chunk"
"""The kind of source of a memory that is a part of a longer text."""
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
            cells = [_id(row), row.get("type"), row.get("created_at"), tags_text(row.get("tags")), row.get("content")]
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
        "part of a longer text" if row.get("source_type") == CHUNK else "",
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


MIN_PREFIX_CHARS = 6
SHOWN_CANDIDATES = 10
_BY_PREFIX = "/api/memories/by-prefix"
_PIPELINE_NAMES = {
    "run": ("runs", "signet pipeline runs"),
    "job": ("jobs", "signet logs"),
    "proposal": ("proposals", "signet review list"),
}
"""What the ids of each kind are called, and the command that shows them."""


class UnusableId(click.ClickException):
    """Wrong usage, but not of the command's syntax: the id is too short, or begins several ids, which are listed."""

    exit_code = USAGE

    def show(self, file: Any = None) -> None:  # noqa: ARG002 - click's signature
        print_message(f"signet: {self.message}")


def full_id(client: DaemonClient, given: str, *, deleted: bool = False) -> str:
    """Return the id of a memory that begins with ``given``, or ``given`` itself if there is none.

    Live memories are preferred, or deleted ones with ``deleted``. Raises UnusableId if several of those begin with it,
    or if it has fewer than ``MIN_PREFIX_CHARS`` characters.
    """

    def beginning(*, deleted: bool) -> dict[str, Any]:
        query = {"prefix": given, "limit": SHOWN_CANDIDATES + 1, "deleted": deleted}
        return {str(memory["id"]): memory.get("content") for memory in _found(client, _BY_PREFIX, query, "memories")}

    if is_complete(given, shown_by="signet list"):
        return given
    return the_one(given, beginning(deleted=deleted) or beginning(deleted=not deleted), "memories")


def full_pipeline_id(client: DaemonClient, given: str, *kinds: str) -> str:
    """Return the id of a run, job or proposal that begins with ``given``, or ``given`` itself if there is none.

    ``kinds`` are those of the operation; an earlier one is preferred. Raises UnusableId like ``full_id``.
    """
    names, command = _PIPELINE_NAMES[kinds[-1]]
    if is_complete(given, shown_by=command):
        return given
    for kind in kinds:
        query = {"kind": kind, "prefix": given, "limit": SHOWN_CANDIDATES + 1}
        rows = _found(client, "/api/pipeline/by-prefix", query, "found")
        if rows:
            return the_one(given, {str(row["id"]): _described(row) for row in rows}, names)
    return given


def is_complete(given: str, *, shown_by: str) -> bool:
    """Return whether ``given`` is a whole id. Raises UnusableId if it is too short for the beginning of one."""
    if len(given) < MIN_PREFIX_CHARS:
        raise UnusableId(
            f"{one_line(given) or 'an empty text'} is too short for an id: give at least its first {MIN_PREFIX_CHARS}"
            f" characters (`{shown_by}` shows the ids)"
        )
    try:
        return str(uuid.UUID(given)) == given
    except ValueError:
        return False


def the_one(given: str, found: dict[str, Any], names: str) -> str:
    """Return the only id of ``found`` (texts by id), or ``given`` if it has none. Raises UnusableId for several."""
    if not found or given in found:
        return given
    if len(found) > 1:
        raise UnusableId(_ambiguous(given, found, names))
    return next(iter(found))


def _found(client: DaemonClient, path: str, query: dict[str, Any], name: str) -> list[dict[str, Any]]:
    try:
        return client.get(path, **query).records(name)
    except RequestRefused as refused:
        if refused.code in {ErrorCode.NOT_FOUND, ErrorCode.INVALID_REQUEST}:  # no such operation, or no such id
            return []
        raise


def _described(row: dict[str, Any]) -> str:
    about = row.get("about")
    return f"{time_text(row.get('createdAt'))}, {'(erased)' if about is None else about}"


@contextlib.contextmanager
def named_if_unknown(given: str, *, kind: str = "memory") -> Iterator[None]:
    """Name the id if the daemon does not find it."""
    try:
        yield
    except RequestRefused as refused:
        if refused.code is not ErrorCode.NOT_FOUND:
            raise
        why = "unknown, deleted, or another agent's" if kind == "memory" else "unknown, or another agent's"
        why = refused.detail.partition("not found: ")[2] or why
        detail = f"the {kind} {one_line(given)} was not found ({why})"
        raise RequestRefused(detail, code=refused.code, answer=refused.answer) from refused


def _ambiguous(given: str, found: dict[str, Any], names: str) -> str:
    several = f"more than {SHOWN_CANDIDATES}" if len(found) > SHOWN_CANDIDATES else str(len(found))
    shown = [f"  {one_line(id_)}  {one_line(text, 60)}" for id_, text in list(found.items())[:SHOWN_CANDIDATES]]
    more = ["  …"] * (len(found) > SHOWN_CANDIDATES)
    needed = len(given) + 1
    while len({id_[:needed] for id_ in found}) < len(found):
        needed += 1
    advice = f"the ids of {several} {names} begin with {one_line(given)}; give at least {needed} characters:"
    return "\n".join([advice, *shown, *more])
