"""Find the passwords and keys in the columns of tables and of lines separated by a sign.

Source: RFC 4180 for quotation marks in comma-separated lines; GitHub Flavored Markdown "Tables"; mysql(1), psql(1) and
sqlite3(1) for the tables that they print.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from signet_actors.domain.lazy_patterns import compile_later
from signet_actors.domain.redaction import values as forms
from signet_actors.domain.redaction.generated import is_generated
from signet_actors.domain.redaction.secret_names import NAME_WORDS, is_password_name

_COLUMN = {
    only: compile_later(rf"(?:[\w.-]{{1,20}}[ _-]){{0,2}}(?P<name>{NAME_WORDS[only]})s?[0-9]?|keys?")
    for only in (True, False)
}
_QUOTED_CELL = compile_later(r'[ \t]*+"([^"]*+(?>(?:""[^"]*+)*))"[ \t\r]*+')
"""A cell of comma-separated lines in quotation marks: a quotation mark in it is doubled."""
_BLANKS: Final = "  "
_SEPARATORS: Final = ("|", "\t", ";", ",", _BLANKS)
_DRAWN: Final = ("|", _BLANKS)
_BARS: Final = dict.fromkeys((0x2502, 0x2503, 0x2551), "|")
_RULE = compile_later(r"[|:\s]*+[-+=\u2500-\u257f][-+=|:\s\u2500-\u257f]*+")
_WORDS = compile_later(r"\S++(?> \S++)*")
_CELL = compile_later(r"[\w .*`\"'()-]{0,60}")
"""A heading where the separator is also in prose; between bars and tabs stands what people like."""
_MOST_OF_HEADING: Final = 60
_PAIR: Final = " / "
_MARKS: Final = "*_~`\"'"
_AROUND: Final = " \t\r*_`\"'"


def column_values(plain: str, folded: str) -> Iterator[forms.SecretSpan]:
    """Yield the values below a name in the head of a table, or of lines separated by tab, ``;``, ``,`` or two blanks.

    A table of Markdown, mysql, psql, sqlite3 and others: its bars may be those of boxes, and rules may divide it.
    """
    ascii_only = folded.isascii()
    header: list[tuple[int, int]] = []
    columns: list[tuple[int, bool | None]] = []
    separator = ""
    below = drawn = False  # whether a rule was below the head; whether it is certain to be one
    at = 0
    if "\n" not in plain or not any(separator in plain for separator in _SEPARATORS):
        return
    if not ascii_only:
        plain, folded = plain.translate(_BARS), folded.translate(_BARS)
    for line in plain.split("\n"):
        if len(header) > 1 and separator in _DRAWN and _RULE.fullmatch(line):
            below = drawn = True
        elif (columns or below) and len(cells := _cells(line, separator)) == len(header):
            yield from _values_of_columns(line, at, cells, columns) if drawn else ()
            if below and separator == "|":  # | DB password | … | … |
                bar = int(not line[slice(*cells[0])].strip())
                start, end = cells[min(bar, len(cells) - 1)]
                name = _COLUMN[ascii_only].fullmatch(folded[at + start : at + end].strip(_AROUND))
                if name and name["name"]:
                    rest = [(index, is_password_name(name["name"])) for index in range(bar + 1, len(cells))]
                    yield from _values_of_columns(line, at, cells, rest)
        else:
            columns, below = [], False
            head = folded[at : at + len(line)]
            for separator in _SEPARATORS:
                header = _cells(head, separator)
                names = [head[start:end].strip(" \t\r") for start, end in header]
                if 1 < len(header) <= 64 and all(_is_heading(name, separator) for name in names):
                    named = [_COLUMN[ascii_only].fullmatch(_name_of(name)) for name in names]
                    columns = [
                        (index, is_password_name(name["name"]) if name["name"] else None)
                        for index, name in enumerate(named)
                        if name
                    ]
                    drawn = separator != _BLANKS or line.isupper()
                    break
            else:
                header = []
        at += len(line) + 1


def _is_heading(name: str, separator: str) -> bool:
    return len(name) <= _MOST_OF_HEADING and (separator in "|\t" or _CELL.fullmatch(name) is not None)


def _name_of(heading: str) -> str:
    """Return a heading without the signs around it; the last one of ``User / Password``."""
    name = heading.rpartition("/")[2]
    telling = [at for at, char in enumerate(name) if char.isalnum()]
    return name[telling[0] : telling[-1] + 1] if telling else ""


def _cells(line: str, separator: str) -> list[tuple[int, int]]:
    """Return start and end of each cell. In quotation marks, a separator belongs to the cell."""
    if separator == _BLANKS:
        return [found.span() for found in _WORDS.finditer(line)]
    cells = []
    at = 0
    while True:
        quoted = _QUOTED_CELL.match(line, at)
        if quoted is not None and (quoted.end() == len(line) or line.startswith(separator, quoted.end())):
            end = quoted.end()
        else:
            end = line.find(separator, at)
            end = len(line) if end < 0 else end
        cells.append((at, end))
        if end == len(line):
            return cells
        at = end + 1


def _values_of_columns(
    line: str, at: int, cells: list[tuple[int, int]], columns: Sequence[tuple[int, bool | None]]
) -> Iterator[forms.SecretSpan]:
    """Yield the values of a line; ``columns``: which, and whether of a password; None for a column *key*."""
    for index, password in columns:
        start, end = cells[index]
        if (quoted := _QUOTED_CELL.fullmatch(line, start, end)) is not None:
            start, end = quoted.span(1)
        value = line[start:end].strip()
        start = at + start + len(line[start:end]) - len(line[start:end].lstrip())
        while len(value) > 2 and value[0] in _MARKS and value[-1] == value[0]:
            value, start = value[1:-1], start + 1
        if not 0 < len(value) <= forms.MAX_CHECKED_CHARS:
            continue
        if password is None:
            if forms.is_random_key(value):
                yield "credential", start, start + len(value)
            continue
        user, slash, rest = value.rpartition(_PAIR)
        if slash and not any(char.isspace() for char in user.strip() + rest):
            value, start = rest, start + len(value) - len(rest)
            found = forms.is_spoken_password(value) or forms.is_symbol_password(value) or is_generated(value)
        elif any(char.isspace() for char in value):
            found = (
                forms.is_passphrase(value) if password and quoted else forms.is_password_with_blanks(value.split(" "))
            )
        elif password:
            found = forms.is_spoken_password(value) or forms.is_symbol_password(value) or is_generated(value)
        else:
            found = forms.is_signed_credential(value)
        if found or (password and quoted is not None and forms.is_password_of_parts(value)):
            yield "password" if password else "credential", start, start + len(value)
