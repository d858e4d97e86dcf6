"""Output for people and for pipes: rich tables on a terminal, tab-separated lines on a pipe, JSON on request.

Stored text is not trusted: control characters, escape sequences and direction overrides in a memory are printed as
escapes and never act on the terminal.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rich.console import Console

_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_SPACE = re.compile(r"\s+")


def on_terminal() -> bool:
    """Return whether standard output is a terminal."""
    return sys.stdout.isatty()


class OutputFailed(OSError):
    """Standard output takes nothing more (a full disk). A closed pipe is a BrokenPipeError instead."""


class _StandardOutput(io.FileIO):
    """The descriptor of standard output, whose errors can be told from those of other files."""

    def write(self, data: Any, /) -> int:
        """Write as ``FileIO`` does. Raises BrokenPipeError and OutputFailed."""
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputFailed(error.errno, error.strerror) from error


def prepare_output() -> None:
    """Have standard output raise OutputFailed, and write an escape for each character that the encoding lacks."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.flush()
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(_StandardOutput(sys.stdout.fileno(), "wb", closefd=False)),
            encoding=sys.stdout.encoding,
            errors="backslashreplace",
            line_buffering=sys.stdout.line_buffering,
        )
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(errors="backslashreplace")


def discard_output() -> None:
    """Lead standard output to ``/dev/null``, so that the interpreter's last flush succeeds."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def in_colour() -> bool:
    """Return whether to print colours: on a terminal that is not dumb, unless NO_COLOR is set."""
    return on_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def printable(text: str) -> str:
    """Return the text with all characters that could control a terminal escaped."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def print_bytes(data: bytes) -> None:
    """Print the bytes unchanged; on a terminal, escape all characters that could control it.

    In JSON these escapes are valid JSON escapes.
    """
    click.echo(printable(data.decode(errors="backslashreplace")) if on_terminal() else data, nl=False)


def one_line(value: Any, limit: int | None = None) -> str:
    """Return the value as one printable line of at most ``limit`` characters."""
    text = printable(_SPACE.sub(" ", "" if value is None else str(value)).strip())
    return text if limit is None or len(text) <= limit else text[: limit - 1] + "…"


def tags_text(value: Any) -> str:
    """Return tags as comma-separated text; ``value`` is a list, a text or None."""
    if isinstance(value, list):
        return ",".join(str(tag) for tag in value)
    return "" if value is None else str(value)


def format_minute(value: Any) -> str:
    """Return an ISO timestamp cut to the minute."""
    return str(value or "")[:16].replace("T", " ")


def print_message(text: str) -> None:
    """Print a message for the user to standard error."""
    click.echo(printable(text), err=True)


def ask_confirmation(question: str) -> bool:
    """Ask the question and return whether the answer is yes; no if there is no input."""
    try:
        return click.confirm(question, default=False, err=True)
    except click.Abort:
        print_message("\nNo answer; use --yes to skip the question.")
        return False


def print_json(value: Any) -> None:
    """Print the value as indented JSON, with all characters that could control a terminal escaped."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    click.echo(_UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def console(*, stderr: bool = False) -> Console:
    """Return a rich console; rich itself respects NO_COLOR and TERM."""
    from rich.console import Console  # noqa: PLC0415 - slow; needed only on a terminal

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


@contextlib.contextmanager
def progress_bar(verb: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on standard error if it is a terminal; yield the function that updates it."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.progress import (  # noqa: PLC0415 - slow; needed only on a terminal
        BarColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %" if total is not None else "{task.completed}"),
        TimeRemainingColumn(),
        console=console(stderr=True),
        transient=True,
    ) as progress:
        task = progress.add_task(verb, total=total)
        yield lambda completed: progress.update(task, completed=completed)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, fold: str = "") -> None:
    """Print the rows in columns; the column named ``fold`` takes the remaining width.

    On a pipe: one line for each row, tab-separated, without a heading.
    """
    cells = [[one_line(cell) for cell in row] for row in rows]
    if not on_terminal():
        for row in cells:
            click.echo("\t".join(row))
        return
    from rich import box  # noqa: PLC0415 - slow; needed only on a terminal
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


def _memory_id(row: Mapping[str, Any]) -> str:
    """Return the id of the row's memory; in a timeline it stands beside the entry's own id. A session has none."""
    if row.get("subject_type") is None:
        return str(row.get("id") or "")
    return str(row["subject_id"]) if row["subject_type"] == "memory" else ""


def print_memories(rows: Sequence[Mapping[str, Any]], *, scored: bool = False) -> None:
    """Print each memory in a row, with its id on a separate line so that it is easy to copy.

    On a pipe: ``[score] id type created tags content``, tab-separated.
    """
    if not on_terminal():
        for row in rows:
            cells = [
                _memory_id(row),
                row.get("type"),
                row.get("created_at"),
                tags_text(row.get("tags")),
                row.get("content"),
            ]
            click.echo("\t".join(one_line(cell) for cell in ([row.get("score")] if scored else []) + cells))
        return
    from rich import box  # noqa: PLC0415 - slow; needed only on a terminal
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
                _memory_id(row),
                one_line(row.get("who")),
                f"relevance {float(row['relevance']):.2f}" if scored and row.get("relevance") is not None else "",
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
    """Print ``name: value`` lines; fields without a value are omitted."""
    for name, value in fields:
        if value is None or value == "":
            continue
        label = click.style(f"{name}:", bold=True) if in_colour() else f"{name}:"
        click.echo(f"{label} {one_line(value)}")
