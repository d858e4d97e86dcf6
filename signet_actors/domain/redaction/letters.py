"""Replace look-alike letters by the ASCII letters that they imitate, with a map back to the original positions."""

from __future__ import annotations

import html
import unicodedata
from array import array
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from signet_actors.domain.lazy_patterns import compile_later

_IMITATIONS: Final = {
    "a": "\u0430\u03b1\u0251",
    "b": "\u0184",
    "c": "\u0441\u03f2",
    "d": "\u0501",
    "e": "\u0435\u0454",
    "h": "\u04bb",
    "i": "\u0456\u03b9\u0131\u0130",
    "j": "\u0458",
    "k": "\u043a\u03ba\u212a",
    "m": "\u043c",
    "n": "\u0578",
    "o": "\u043e\u03bf\u0585",
    "p": "\u0440\u03c1",
    "q": "\u051b",
    "r": "\u0433",
    "s": "\u0455\u017f",
    "t": "\u0442\u03c4",
    "u": "\u057d\u03c5",
    "v": "\u03bd\u0475",
    "w": "\u051d\u0461\u03c9",
    "x": "\u0445\u03c7",
    "y": "\u0443\u03b3",
    "A": "\u0410\u0391",
    "B": "\u0412\u0392",
    "C": "\u0421\u03f9",
    "E": "\u0415\u0395",
    "H": "\u041d\u0397",
    "I": "\u0406\u0399",
    "J": "\u0408",
    "K": "\u041a\u039a",
    "M": "\u041c\u039c",
    "N": "\u039d",
    "O": "\u041e\u039f",
    "P": "\u0420\u03a1",
    "S": "\u0405",
    "T": "\u0422\u03a4",
    "X": "\u0425\u03a7",
    "Y": "\u04ae\u03a5",
    "Z": "\u0396",
    ":": "\u02d0\ua789\ufe55",
    "=": "\ua78a\u2550",
}
_ESCAPED: Final = compile_later(
    "\x1b\\[[0-9;?]{0,32}[A-Za-z]|[\x7f\u00ad\u034f\u061c\u180e\u200b-\u200f\u2060-\u2064\ufeff]+"
    r"|(?:%|\\u00|\\x)(?P<code>[2-7][0-9A-Fa-f])|\\(?P<sign>[=:])"
    r"|&(?:amp;){0,3}(?P<entity>\#[0-9]{1,7};|\#[xX][0-9A-Fa-f]{1,6};|[A-Za-z][A-Za-z0-9]{1,30};)"
)
"""What is not seen, such as the colours of a terminal, and characters written by their number or name, or escaped."""
_MAY_BE_ESCAPED: Final = "\x7f\x1b%\\&"


def _table() -> dict[int, str]:
    """Return the imitations by code point: the listed ones, full-width forms, and mathematical letters."""
    table = {ord(char): plain for plain, chars in _IMITATIONS.items() for char in chars}
    for code in (*range(0xFF01, 0xFF5F), *range(0x1D400, 0x1D800)):
        plain = unicodedata.normalize("NFKC", chr(code))
        if len(plain) == 1 and plain.isascii():
            table[code] = plain
    return table


_TABLE: Final = _table()
_IMITATING: Final = compile_later(f"[{''.join(chr(code) for code in _TABLE if code < 0x10000)}\U0001d400-\U0001d7ff]+")
"""To translate all of a text takes a dictionary look-up for each of its characters, which may be Chinese."""


class PlainText(NamedTuple):
    """``text`` in plain letters, with the original ``positions`` of its characters; None if they are unchanged.

    ``lengths``: of the original of a character, by its position, where it is not 1.
    """

    text: str
    positions: Sequence[int] | None
    lengths: Mapping[int, int] = {}

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the position of ``text[start:end]`` in the original."""
        if self.positions is None or start == end:
            return start, end
        last = self.positions[end - 1]
        return self.positions[start], last + self.lengths.get(last, 1)


def plain_letters(text: str) -> PlainText:
    """Return ``text`` with look-alike letters and escaped characters replaced and invisible ones removed."""
    ascii_only = text.isascii()
    if ascii_only and not any(map(text.__contains__, _MAY_BE_ESCAPED)):
        return PlainText(text, None)
    parts: list[str] = []
    positions = array("L")
    lengths: dict[int, int] = {}
    at = 0
    for match in _ESCAPED.finditer(text):
        shown = match["sign"] or (chr(int(match["code"], 16)) if match["code"] else "")
        if match["entity"] and len(shown := html.unescape("&" + match["entity"])) != 1:
            continue
        parts += (text[at : match.start()], shown)
        positions.extend(range(at, match.start() + len(shown)))
        if shown:
            lengths[match.start()] = len(match[0])
        at = match.end()
    if parts:
        positions.extend(range(at, len(text)))
        text = "".join((*parts, text[at:]))
    if not ascii_only:
        text = _IMITATING.sub(lambda run: run[0].translate(_TABLE), text)
    return PlainText(text, positions if parts else None, lengths)
