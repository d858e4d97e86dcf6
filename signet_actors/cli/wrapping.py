"""Texts in lines that fit the terminal, broken between words and beside wide characters.

Widths are those of the terminal's cells (rich.cells), in which a CJK character takes two. Only that part of rich is
imported: importing its tables takes longer than a recall.

Source: docs/cli.md "Output".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

LEAST_VALUE = 20
"""Fewest cells beside the names of fields; otherwise the values stand below the names."""
_HELD: Final = "\N{NO-BREAK SPACE}"
"""Stands for a space at which no line is broken, and takes a cell as that does."""
_COMMAND: Final = re.compile("`(?! )[^`]+(?<! )`")
"""A command between backquotes; not what stands between one and the next, as of a text that was cut within it."""


def terminal_width() -> int:
    """Return the number of columns of the terminal."""
    import shutil  # noqa: PLC0415 - slow; needed only on a terminal

    return max(shutil.get_terminal_size().columns, LEAST_VALUE)


def wrap_message(text: str, width: int) -> str:
    """Return the lines of a printable message, broken where they do not fit, but not in a path or a command."""
    lines: list[str] = []
    for line in text.split("\n"):
        words = line.lstrip(" ")
        indent = " " * (len(line) - len(words))
        first, *more = wrap(words, max(width - len(indent) - 2, LEAST_VALUE), taken=-2, chop=False)
        lines += [indent + first, *(f"{indent}  {rest}" for rest in more)]
    return "\n".join(lines)


def wrap(text: str, width: int, *, taken: int = 0, chop: bool = True) -> list[str]:
    """Return the text in lines of at most ``width`` cells, broken between words and beside wide characters.

    ``taken`` cells of the first line are in use. A command between backquotes is like a word if a line holds it.
    Without ``chop`` that and a word are one line if they are longer, so that they can be copied.
    """
    if cell_count(text) + taken <= width:
        return [text]
    text = _COMMAND.sub(lambda code: _held(code[0]) if not chop or cell_count(code[0]) <= width else code[0], text)
    lines: list[str] = []
    line, used = "", taken
    for number, word in enumerate(text.split(" ")):
        space = " " if number else ""
        for piece in _pieces(word):
            if used + cell_count(space + piece) <= width:
                line += space + piece
            else:
                *full, line = [line] * (used > 0) + (_chopped(piece, width) if chop else [piece])
                lines += full
                taken = 0
            used = cell_count(line) + taken
            space = ""
    return [released(shown) for shown in (*lines, line)]


def wrap_parts(parts: Iterable[str], width: int) -> list[str]:
    """Return the parts that are not empty in lines that are broken between them, or in one that is too long."""
    held = (_held(part) if cell_count(part) <= width - 2 else part for part in parts if part)
    return [released(line) for line in wrap(f"{_HELD}· ".join(held), width)]


def hold_commands(text: str) -> str:
    """Return the text with spaces at which click breaks no line in its commands; ``released`` undoes that."""
    return _COMMAND.sub(lambda code: _held(" ".join(code[0].split())), text)


def released(text: str) -> str:
    """Return the text with blanks where it was not to be broken."""
    return text.replace(_HELD, " ")


def _held(text: str) -> str:
    return text.replace(" ", _HELD)


def _pieces(word: str) -> list[str]:
    """Return the parts between which a word may be broken: each wide character is one."""
    if word.isascii() or cell_count(word) == len(word):
        return [word]
    import unicodedata  # noqa: PLC0415 - only for wide characters

    from rich.cells import split_graphemes  # noqa: PLC0415 - only for wide characters

    pieces: list[str] = []
    narrow = False
    for start, end, size in split_graphemes(word)[0]:
        closing = bool(pieces) and unicodedata.category(word[start]) in {"Pe", "Po"}  # never begins a line
        if closing or (narrow and size < 2):
            pieces[-1] += word[start:end]
        else:
            pieces.append(word[start:end])
        narrow = size < 2
    return pieces


def _chopped(piece: str, width: int) -> list[str]:
    from rich.cells import chop_cells  # noqa: PLC0415 - only for a word that is longer than a line

    return [piece] if cell_count(piece) <= width else chop_cells(piece, width)


def cut(text: str, width: int) -> str:
    """Return the text as one line of at most ``width`` cells, with an ellipsis in place of what does not fit."""
    if cell_count(text) <= width:
        return text
    from rich.cells import set_cell_size  # noqa: PLC0415 - only for a line that is too long

    return set_cell_size(text, width - 1).rstrip() + "…"


def cell_count(text: str) -> int:
    """Return the number of cells that the text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 - only for other alphabets

    return cell_len(text)
