"""Tables and fields that can be read at any width; on a pipe, one line of tab-separated columns for each row.

Columns without a value are left out. If the others do not fit, those with the highest ``drop`` go first; if that is not
enough, each row becomes a block of ``name: value`` lines with all columns. An id is never broken, nor is a word of at
most ``LONGEST_WORD`` cells.

Source: docs/cli.md "Output".
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from signet_actors.cli.presentation import (
    LEAST_VALUE,
    cell_count,
    in_colour,
    on_terminal,
    one_line,
    print_message,
    terminal_width,
    wrap,
)

GAP = "  "

LONGEST_WORD = 32
"""A longer word (a path, a URL) may be broken."""
LEAST_TEXT = 24
"""Fewest cells of a column of text that is longer."""
SHOWN_CONTENT_CHARS = 600


@dataclass(frozen=True, slots=True)
class Column:
    """A column, and the value of a record in it: the member ``name`` (default: the title), or what ``form`` makes.

    ``form`` gets that member, or the whole record if there is no name. ``drop``: 0 is never left out, the highest
    number first. ``wrap``: its text may take several lines. ``right``: its numbers are aligned at their last digit.
    ``piped``: it is there on a pipe only.
    """

    title: str
    name: str = ""
    form: Callable[[Any], Any] | None = None
    drop: int = 0
    wrap: bool = False
    right: bool = False
    piped: bool = False

    def value(self, record: Mapping[str, Any]) -> Any:
        """Return the value of the record in this column."""
        if self.form is None:
            return record.get(self.name or self.title)
        return self.form(record.get(self.name) if self.name else record)


@dataclass(frozen=True, slots=True)
class Cell:
    """A text with an id below it."""

    text: str
    whole_id: str


Row = tuple["str | Cell", ...]


def print_table(columns: Sequence[Column | str], rows: Iterable[Sequence[Any]], *, none: str = "") -> None:
    """Print the rows in columns. Without rows, print ``none`` on standard error.

    On a pipe: one line for each row, tab-separated, without a heading.
    """
    cells = [tuple(cell if isinstance(cell, Cell) else one_line(cell) for cell in row) for row in rows]
    if not on_terminal():
        for row in cells:
            click.echo("\t".join(map(_first, row)))
    elif cells:
        named = [Column(column) if isinstance(column, str) else column for column in columns]
        for line in table_lines(named, cells, terminal_width(), _style()):
            click.echo(line)
    if not cells and none:
        print_message(none)


def print_records(columns: Sequence[Column | str], records: Iterable[Mapping[str, Any]], *, none: str = "") -> None:
    """Print a row for each record. A column that is only a title has the member of this name."""
    named = [Column(column) if isinstance(column, str) else column for column in columns]
    named = [column for column in named if not (column.piped and on_terminal())]
    print_table(named, [[column.value(record) for column in named] for record in records], none=none)


def print_fields(fields: Iterable[tuple[str, Any]], *, indent: int = 0) -> None:
    """Print ``name: value`` lines; fields without a value are omitted. A terminal's lines are wrapped."""
    shown = [(name, one_line(value)) for name, value in fields if value is not None and value != ""]
    if not on_terminal():
        for name, value in shown:
            click.echo(f"{' ' * indent}{name}: {value}")
        return
    for line in field_lines([(name, value, False) for name, value in shown], terminal_width(), _style(), indent):
        click.echo(line)


def print_wrapped(text: str, *, lead: str = "", indent: int = 0, chop: bool = True) -> None:
    """Print a paragraph behind ``lead``, wrapped and indented on a terminal; without ``chop`` no path is broken."""
    shown = one_line(text)
    lines = [shown]
    if on_terminal():
        room = max(terminal_width() - indent, LEAST_VALUE)
        lines = wrap(shown, room, taken=cell_count(click.unstyle(lead)) - indent, chop=chop)
    click.echo((lead + lines[0]).rstrip())
    for line in lines[1:]:
        click.echo(" " * indent + line)


def table_lines(columns: Sequence[Column], rows: Sequence[Row], width: int, style: Callable[..., str]) -> Iterator[str]:
    """Yield the lines of a table, or of blocks if the columns do not fit."""
    used = [place for place in range(len(columns)) if any(_first(row[place]) for row in rows)]
    least = {place: _least_width(columns[place], [row[place] for row in rows]) for place in used}
    while (needed := sum(least[place] for place in used) + len(GAP) * (len(used) - 1)) > width:
        droppable = [place for place in used if columns[place].drop]
        if not droppable:
            yield from _blocks(columns, rows, width, style)
            return
        highest = max(columns[place].drop for place in droppable)
        used = [place for place in used if columns[place].drop != highest]
    widths = _share(columns, rows, used, least, width - needed)
    titles = GAP.join(_aligned(columns[place], columns[place].title, None, widths[place]) for place in used).rstrip()
    if titles:
        yield style(titles, bold=True)
        yield style("─" * (sum(widths.values()) + len(GAP) * (len(used) - 1)), dim=True)
    for row in rows:
        cells = [_cell_lines(row[place], widths[place], style) for place in used]
        for line in itertools.zip_longest(*cells, fillvalue=("", "")):
            parts = (
                _aligned(columns[place], plain, shown, widths[place])
                for place, (plain, shown) in zip(used, line, strict=True)
            )
            yield GAP.join(parts).rstrip()


def field_lines(
    fields: Sequence[tuple[str, str, bool]], width: int, style: Callable[..., str], indent: int = 0
) -> Iterator[str]:
    """Yield the lines of ``(name, value, whole)``; a ``whole`` value is never broken."""
    label = max((cell_count(name) for name, _, _ in fields), default=0) + 2
    room = width - indent - label
    for name, value, whole in fields:
        chop = "`" not in value  # else it may have a command, which is to be copied
        head = f"{name}:" if name else ""
        title = style(head + " " * (label - cell_count(head)), bold=True)
        if room < LEAST_VALUE or (whole and cell_count(value) > room):
            yield " " * indent + title.rstrip()
            yield from (
                [value] if whole else (" " * (indent + 2) + line for line in wrap(value, width - indent - 2, chop=chop))
            )
            continue
        first, *more = [value] if whole else wrap(value, room, chop=chop)
        yield " " * indent + title + first
        yield from (" " * (indent + label) + line for line in more)


def _blocks(columns: Sequence[Column], rows: Sequence[Row], width: int, style: Callable[..., str]) -> Iterator[str]:
    for number, row in enumerate(rows):
        if number:
            yield ""
        fields: list[tuple[str, str, bool]] = []
        for column, cell in zip(columns, row, strict=True):
            if isinstance(cell, Cell):
                fields += [(column.title, cell.text, False), ("id", cell.whole_id, True)]
            else:
                fields.append((column.title, cell, not column.wrap))
        yield from field_lines([field for field in fields if field[1]], width, style)


def _least_width(column: Column, cells: Sequence[str | Cell]) -> int:
    """Return the fewest cells in which the column can be read."""
    widest = max(cell_count(_first(cell)) for cell in cells)
    ids = max((cell_count(cell.whole_id) for cell in cells if isinstance(cell, Cell)), default=0)
    if not column.wrap:
        return max(cell_count(column.title), widest, ids)
    words = max(cell_count(word) for cell in cells for word in (_first(cell).split() or [""]))
    return max(cell_count(column.title), min(words, LONGEST_WORD), min(widest, LEAST_TEXT), ids)


def _share(
    columns: Sequence[Column], rows: Sequence[Row], used: Sequence[int], least: Mapping[int, int], spare: int
) -> dict[int, int]:
    """Return the width of each column: the spare cells go to the columns of text, first to the one that needs least."""
    widths = {place: least[place] for place in used}
    wanted = {place: max(_wanted(row[place]) for row in rows) - widths[place] for place in used if columns[place].wrap}
    for served, (place, more) in enumerate(sorted(wanted.items(), key=lambda want: want[1])):
        given = min(max(more, 0), spare // (len(wanted) - served))
        widths[place] += given
        spare -= given
    return widths


def _cell_lines(cell: str | Cell, width: int, style: Callable[..., str]) -> list[tuple[str, str]]:
    lines = [(line, line) for line in wrap(_first(cell), width)]
    if isinstance(cell, Cell):
        lines += [(cell.whole_id, style(cell.whole_id, dim=True))] * bool(cell.whole_id)
    return lines


def _aligned(column: Column, plain: str, styled: str | None, width: int) -> str:
    space = " " * (width - cell_count(plain))
    text = plain if styled is None else styled
    return space + text if column.right else text + space


def _wanted(cell: str | Cell) -> int:
    return max(cell_count(_first(cell)), cell_count(cell.whole_id) if isinstance(cell, Cell) else 0)


def _first(cell: str | Cell) -> str:
    return cell.text if isinstance(cell, Cell) else cell


def _style() -> Callable[..., str]:
    return click.style if in_colour() else lambda text, **_: text
