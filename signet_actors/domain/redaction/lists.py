"""Find the values of a list below a heading of several secrets: ``Passwords:``, ``- staging: …``, ``- prod: …``.

A heading is found by its words, and each line below it is read once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from signet_actors.domain.lazy_patterns import compile_later
from signet_actors.domain.redaction import values as forms
from signet_actors.domain.redaction.named_values import secret_end
from signet_actors.domain.redaction.secret_names import HEADINGS_OF_KEYS, HEADINGS_OF_PASSWORDS, words_of
from signet_actors.domain.windowed_search import windowed_matches

_REACH: Final = 512


def _words(headings: str, *, ascii_only: bool) -> str:
    return "|".join(map(re.escape, words_of(headings, ascii_only=ascii_only))).replace(r"\ ", "[ _-]")


_HEADING: Final = {
    only: compile_later(
        rf"(?<![\w-])(?:(?P<key>{_words(HEADINGS_OF_KEYS, ascii_only=only)})"
        rf"|{_words(HEADINGS_OF_PASSWORDS, ascii_only=only)})(?![\w-])"
        r"(?:[ ]?[*_]{0,3}[ ]?:?|(?:[ ][^\s:]{1,30}){1,6}?[ ]?[*_]{0,3}:)[*_]{0,3}[ \t]{0,8}(?=\r?\n)"
    )
    for only in (True, False)
}
_LINE = compile_later(
    r"(?:\r?\n[ \t]{0,20}(?=\r?\n))?\r?\n[ \t]{0,20}"
    r"(?P<bullet>(?:[-*+\u2022\u2013][ \t]{1,4}|\d{1,2}[.)][ \t]{1,4})(?:\[[ x]\][ ])?)?"
    r"(?P<text>[^\s][^\r\n]{0,300})"
)
_ASIDE = compile_later(r"[ \t]{1,4}(?:\([^()\r\n]{1,60}\)|(?:#|//)[ \t][^\r\n]{0,200})[ \t]{0,8}\Z")
"""What is noted behind a value."""
_GLUED = compile_later(r"[\"'`*_]{0,3}(?P<label>[\w.@-]{1,40})[\"'`*_]{0,3}[:=](?=[^\s:=/])")
_SIGNED = compile_later(
    r"(?P<label>[^\s:=][^\r\n]{0,200}?)[\"'`*_)\]]{0,4}\s{0,4}(?:[:=]|=>|->|\u2192|(?<=\s)[-\u2013\u2014|/])\Z"
)
_MARKS: Final = "*_~`\"'\u201c\u201d\u201e\u00ab\u00bb"
_SAYING: Final = """
    name host file path version type role source target provider region id url tool manager hash algorithm policy length
    size see ticket issue branch library where in column field table format expiry expires since date limit
"""
_OF_NO_SECRET: Final = frozenset(_SAYING.split())
"""Entries that say something about the secrets instead of one."""
_STORES: Final = ("1password", "keepass", "bitwarden", "vault", "lastpass", "dashlane", "op:", "sops")
_MOST: Final = 64


def listed_values(plain: str, folded: str) -> Iterator[forms.SecretSpan]:
    """Yield the last word of each item below a heading of secrets if it is the value, and not the end of a sentence."""
    done = 0
    for heading in windowed_matches(_HEADING[folded.isascii()], folded, _REACH):
        at = heading.end()
        if heading.start() < done:
            continue
        for _ in range(_MOST):
            line = _LINE.match(plain, at)
            if line is None:
                break
            span = _value(plain, *line.span("text"), key=heading["key"] is not None, item=line["bullet"] is not None)
            if span is not None:
                yield "credential" if heading["key"] else "password", *span
            elif line["bullet"] is None:
                break
            at = done = line.end()


def _value(plain: str, start: int, end: int, *, key: bool, item: bool) -> tuple[int, int] | None:
    """Return start and end of the secret of an item; None if it has none. A line that is no ``item`` is less sure."""
    text = plain[start:end].rstrip()
    if aside := _ASIDE.search(text):
        text = text[: aside.start()]
    begin = max(text.rfind(" "), text.rfind("\t")) + 1
    before = text[:begin].rstrip()
    label = _SIGNED.match(before) if before else _GLUED.match(text)
    if label and not before:
        begin = label.end()
    first, last = start + begin, start + len(text)
    while first < last and plain[first] in _MARKS:
        first += 1
    while first < last and plain[last - 1] in _MARKS:
        last -= 1
    last = secret_end(plain, first, last)
    value = plain[first:last]
    if not value or value.lower().startswith(_STORES):
        return None
    named = label is not None and _OF_NO_SECRET.isdisjoint(label["label"].lower().split()[-1:])
    if not (item or named):
        return None
    sure = forms.is_unmistakable(value) or forms.is_dense(value)
    if key:
        sure = forms.is_signed_credential(value) if named or not before else forms.is_token(value)
    elif named and item:
        place = forms.is_id_or_place(value) or "/" in value
        sure = sure or (forms.is_signed_password(value.rstrip("!?")) and not place) or forms.is_symbol_password(value)
    elif not before:
        sure = sure or forms.is_told_password(value)
    return (first, last) if sure else None
