"""What a person or a pipe reads: rich tables on a terminal, tab-separated lines elsewhere, JSON where asked.

Stored text is data: control characters, escape sequences and direction overrides in a memory are shown as
escapes and never reach the terminal as commands.
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import Console

    from signet_actors.cli.connection import DaemonReply

_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_SPACE = re.compile(r"\s+")


def on_terminal() -> bool:
    """A person reads standard output."""
    return sys.stdout.isatty()


def in_colour() -> bool:
    """Standard output takes colours: a terminal that is not dumb, and NO_COLOR is not set."""
    return on_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def printable(text: str) -> str:
    """The text with everything that could command a terminal written as an escape."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def print_bytes(data: bytes) -> None:
    """Print the bytes as they came; on a terminal, with everything that could command it written as an escape.

    In JSON these escapes are JSON's own.
    """
    click.echo(printable(data.decode(errors="backslashreplace")) if on_terminal() else data, nl=False)


def one_line(value: Any, limit: int | None = None) -> str:
    """The value as one printable line, cut at ``limit`` characters."""
    text = printable(_SPACE.sub(" ", "" if value is None else str(value)).strip())
    return text if limit is None or len(text) <= limit else text[: limit - 1] + "…"


def tags_text(value: Any) -> str:
    """Tags as they are shown: comma-separated, whether the answer has a list, a text or nothing."""
    if isinstance(value, list):
        return ",".join(str(tag) for tag in value)
    return "" if value is None else str(value)


def format_minute(value: Any) -> str:
    """An ISO timestamp to the minute."""
    return str(value or "")[:16].replace("T", " ")


def say(text: str) -> None:
    """A remark for the person, beside the output."""
    click.echo(printable(text), err=True)


def ask_confirmation(question: str) -> bool:
    """The person said yes; without anybody to ask, the answer is no."""
    try:
        return click.confirm(question, default=False, err=True)
    except click.Abort:
        say("\nNobody answered; add --yes to go without asking.")
        return False


def print_answer(answer: DaemonReply) -> None:
    """The daemon's answer as JSON: indented for a person, as it came for a pipe."""
    if on_terminal() and answer.body is not None:
        print_json(answer.body)
    else:
        print_bytes(answer.raw.rstrip(b"\n") + b"\n")


def print_json(value: Any) -> None:
    """The value as indented JSON without anything that could command a terminal."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    click.echo(_UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def console(*, stderr: bool = False) -> Console:
    """A rich console; rich follows NO_COLOR and TERM by itself."""
    from rich.console import Console  # noqa: PLC0415 - only a terminal pays for rich

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, fold: str = "") -> None:
    """The rows under their columns; ``fold`` names the column that takes the rest of the width.

    On a pipe: one line a row, separated by tabs, without a heading.
    """
    cells = [[one_line(cell) for cell in row] for row in rows]
    if not on_terminal():
        for row in cells:
            click.echo("\t".join(row))
        return
    from rich import box  # noqa: PLC0415 - only a terminal pays for rich
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        if column == fold:
            table.add_column(column, ratio=1, overflow="fold")
        else:
            table.add_column(column, no_wrap=column in {"id", "when", "created"})
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    console().print(table)


def print_memories(rows: Sequence[Mapping[str, Any]], *, scored: bool = False) -> None:
    """One memory a row, with its id on a line of its own where a person can copy it.

    On a pipe: ``[score] id type created tags content``, separated by tabs.
    """
    if not on_terminal():
        for row in rows:
            cells = [
                row.get("id"),
                row.get("type"),
                row.get("created_at"),
                tags_text(row.get("tags")),
                row.get("content"),
            ]
            click.echo("\t".join(one_line(cell) for cell in ([row.get("score")] if scored else []) + cells))
        return
    from rich import box  # noqa: PLC0415 - only a terminal pays for rich
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("score" if scored else "created", no_wrap=True)
    table.add_column("type", no_wrap=True)
    table.add_column("memory", ratio=1, overflow="fold")
    for row in rows:
        about = " · ".join(
            part
            for part in (
                str(row.get("id") or ""),
                one_line(row.get("who")),
                format_minute(row.get("created_at")) if scored else "",
                one_line(tags_text(row.get("tags"))),
                "pinned" if row.get("pinned") else "",
            )
            if part
        )
        lead = f"{float(row.get('score') or 0):.2f}" if scored else format_minute(row.get("created_at"))
        memory = Text(one_line(row.get("content"), 600))
        memory.append("\n" + about, style="dim")
        table.add_row(lead, one_line(row.get("type")), memory)
    console().print(table)


def print_fields(fields: Iterable[tuple[str, Any]]) -> None:
    """One ``name: value`` a line; fields without a value are left out."""
    for name, value in fields:
        if value is None or value == "":
            continue
        label = click.style(f"{name}:", bold=True) if in_colour() else f"{name}:"
        click.echo(f"{label} {one_line(value)}")


def print_relations(run: DaemonReply) -> None:
    """What the pipeline's run found between things, one a line; nothing where that is not kept any more."""
    for one in run.body.get("entities") or []:
        click.echo(one_line(f"relation: {one.get('source')} {one.get('relationship')} {one.get('target')}"))
