"""Insert into a JSON text and remove from it, without touching a byte of the rest.

The standard library parses; here only the places of members and elements are found, in a text of equal length without
comments and trailing commas. Whether they are allowed is up to ``parsed``: Claude Code and Codex ignore a whole file
that has one.

Source: RFC 8259; https://github.com/anthropics/claude-code/issues/83190; codex-rs/hooks/src/engine/discovery.rs;
https://code.visualstudio.com/docs/languages/json "JSON with Comments".
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

_SPACE = re.compile(r"[ \t\r\n]*")
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"?|//[^\n]*|/\*(?:.*?\*/|.*)', re.DOTALL)
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[{][ \t\r\n]*,|,(?=[ \t\r\n]*[\]}])', re.DOTALL)
"""The comma of ``{,}`` stays, because it is none after a value."""
_NOT_LINE_END = re.compile(r"[^\r\n]")
_COMMENT = r"//(?:[^\r\n]|\r(?!\n))*|/\*(?:[^*]|\*(?!/))*\*/"
_COMMENTS = re.compile(rf"(?>(?:[ \t]*(?:{_COMMENT}))*)(?=[ \t]*\r?\n)|")
"""Those that begin on the line of what is before them, if nothing else follows on it."""
_UNTIL_COMMA = re.compile(rf"(?>(?:[ \t\r\n]|{_COMMENT})*),")
_DECODER = json.JSONDecoder()
DEFAULT_INDENT = "  "


class InvalidText(Exception):
    """The text cannot be edited; ``line`` says where. ``is_json`` is false if no JSON parser reads it."""

    def __init__(self, line: int, problem: str, *, is_json: bool = True) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line = line
        self.problem = problem
        self.is_json = is_json


@dataclass(frozen=True, slots=True)
class Part:
    """A member of an object, or an element of an array: from ``start`` to ``end``, its value from ``value`` on."""

    start: int
    value: int
    end: int
    key: str = ""


def parsed(text: str, *, comments: bool = False) -> Any:
    """Return the value of the text, which may have comments and trailing commas if ``comments``. Raises InvalidText."""
    try:
        return json.loads(plain(text) if comments else text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        comment = text[error.pos : error.pos + 2] in ("//", "/*")
        problem = "comments are not valid in JSON" if comment else f"not valid JSON ({error.msg})"
        raise InvalidText(error.lineno, problem, is_json=False) from None
    except (ValueError, RecursionError) as error:
        raise InvalidText(1, f"not valid JSON ({str(error)[:100]})", is_json=False) from None


def object_of(text: str | None, *, comments: bool) -> dict[str, Any]:
    """Return the object that the text is; an empty one for no text. Raises InvalidText if it is something else."""
    document = parsed(text, comments=comments) if text is not None and text.strip() else {}
    if not isinstance(document, dict):
        raise InvalidText(1, "not an object in braces")
    return document


@lru_cache(maxsize=4)
def plain(text: str) -> str:
    """Return the text with spaces in place of comments and trailing commas; each character keeps its place.

    A settings file may have megabytes, of which each edit asks several times, and mostly there are none.
    """
    with contextlib.suppress(ValueError, RecursionError):
        json.loads(text)
        return text
    bare = _STRING_OR_COMMENT.sub(
        lambda found: found[0] if found[0][0] == '"' else _NOT_LINE_END.sub(" ", found[0]), text
    )
    return _STRING_OR_COMMA.sub(lambda found: " " if found[0] == "," else found[0], bare)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def line_of(text: str, place: int) -> int:
    """Return the number of the line, from 1."""
    return text.count("\n", 0, place) + 1


def root_of(text: str) -> int:
    return _skip(plain(text), 0)


def parts(text: str, container: int) -> list[Part]:
    """Return the parts of the object or array that begins at ``container``, in a text that ``parsed`` accepts."""
    text = plain(text)
    is_object = text[container] == "{"
    found: list[Part] = []
    place = _skip(text, container + 1)
    while text[place] not in "]}":
        start, key = place, ""
        if is_object:
            key, place = _DECODER.raw_decode(text, place)
            place = _skip(text, _skip(text, place) + 1)
        value = place
        _, place = _DECODER.raw_decode(text, place)
        found.append(Part(start, value, place, key))
        place = _skip(text, place)
        if text[place] == ",":
            place = _skip(text, place + 1)
    return found


def member(text: str, container: int, key: str) -> Part | None:
    """Return the member of the object with this key; None if there is none. Raises InvalidText if there are two."""
    found = [part for part in parts(text, container) if part.key == key]
    if len(found) > 1:
        raise InvalidText(line_of(text, found[1].start), f"{json.dumps(key)} is there twice")
    return found[0] if found else None


def value_of(text: str, container: int, key: str) -> int:
    """Return where the value of a member begins that the document has."""
    found = member(text, container, key)
    assert found is not None, "the document has this member"
    return found.value


def appended(text: str, container: int, value: Any, key: str | None = None) -> str:
    """Return the text with a part more at the end of the object (with ``key``) or array, in the style of the text."""
    found = parts(text, container)
    head = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
    newline = "\r\n" if "\r\n" in text else "\n"
    if found:
        before, last, comma = plain(text)[container + 1 : found[0].start], found[-1].end, _comma_after(text, found[-1])
        until, begin, end = (text[:last], last, "") if comma is None else (text[:comma], comma + 1, ",")
        if "\n" not in before:
            return f"{until}, {head}{json.dumps(value, ensure_ascii=False)}{end}{text[begin:]}"
        indent = before.rpartition("\n")[2]
        rendered = _rendered(value, indent, _unit(text), newline)
        beside = _COMMENTS.match(text, begin)
        assert beside is not None, "the pattern matches the empty text"
        return f"{until},{beside[0]}{newline}{indent}{head}{rendered}{end}{text[beside.end() :]}"
    outer = _line_indent(text, container)
    indent = outer + _unit(text)
    close = _skip(plain(text), container + 1)
    comments = text[container + 1 : close].rstrip()
    rendered = _rendered(value, indent, _unit(text), newline)
    return f"{text[: container + 1]}{comments}{newline}{indent}{head}{rendered}{newline}{outer}{text[close:]}"


def inserted(text: str, keys: Sequence[str], key: str, value: Any) -> str:
    """Return the text with a member more in the object at ``keys``, which is made if it is not there."""
    container = root_of(text)
    for place, outer in enumerate(keys):
        inner = member(text, container, outer)
        if inner is None:
            missing: dict[str, Any] = {key: value}
            for each in reversed(keys[place + 1 :]):
                missing = {each: missing}
            return appended(text, container, missing, outer)
        container = inner.value
    return appended(text, container, value, key)


def removed(text: str, container: int, place: int) -> str:
    """Return the text without the part at index ``place`` and its comma; comments beside the part stay."""
    found, bare = parts(text, container), plain(text)
    part = found[place]
    if len(found) == 1:
        close, comma = _skip(bare, part.end), _comma_after(text, part)
        after = text[part.end : close] if comma is None else text[part.end : comma] + text[comma + 1 : close]
        if text[container + 1 : part.start].strip() or after.strip():
            return text[: part.start] + after.lstrip(" ") + text[close:]
        return text[: container + 1] + text[close:]
    if place:
        comma, own = bare.index(",", found[place - 1].end), _comma_after(text, part)
        before = text[comma + 1 : part.start].rstrip()
        after = text[part.end :] if own is None else text[part.end : own] + text[own + 1 :]
        if before and after.lstrip(" \t")[:1] not in ("\r", "\n"):
            before += "\n"
        return text[: comma if own is None else comma + 1] + before + after
    return text[: part.start] + text[_skip(text, bare.index(",", part.end) + 1) :]


def without_empty(text: str, keys: Sequence[str], former: str | None = None) -> str:
    """Return the text without the object or array at ``keys``, and without those around it, as far as they are empty.

    One that was empty in the ``former`` text stays, with what is between its braces there.
    """
    for depth in range(len(keys), -1, -1):
        place, before = _place_of(text, keys[:depth]), _former_place(former, keys[:depth])
        if parts(text, place):
            return text
        if former is not None and before is not None:
            inner, close = former[before + 1 : _skip(plain(former), before + 1)], _skip(plain(text), place + 1)
            is_same = not parts(former, before) and inner.split() == text[place + 1 : close].split()
            return text[: place + 1] + inner + text[close:] if is_same else text
        if depth:
            outer = _place_of(text, keys[: depth - 1])
            text = removed(text, outer, [part.key for part in parts(text, outer)].index(keys[depth - 1]))
    return text


def _place_of(text: str, keys: Sequence[str]) -> int:
    """Return where the value at ``keys`` begins, which is there."""
    place = root_of(text)
    for key in keys:
        place = value_of(text, place, key)
    return place


def _former_place(former: str | None, keys: Sequence[str]) -> int | None:
    """Return where the object or array at ``keys`` begins; None if there was none."""
    try:
        value: Any = object_of(former, comments=True) if former and former.strip() else None
    except InvalidText:
        return None
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return _place_of(former, keys) if former and isinstance(value, dict | list) else None


def _comma_after(text: str, part: Part) -> int | None:
    """Return the place of the comma that follows the part; None if there is none."""
    found = _UNTIL_COMMA.match(text, part.end)
    return None if found is None else found.end() - 1


def _rendered(value: Any, indent: str, unit: str, newline: str) -> str:
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    return (newline + indent).join(lines)


def _unit(text: str) -> str:
    """Return by how much the text indents."""
    found = parts(text, root_of(text))
    before = plain(text)[root_of(text) + 1 : found[0].start] if found else ""
    indent = before.rpartition("\n")[2] if "\n" in before else ""
    return indent or DEFAULT_INDENT


def _line_indent(text: str, place: int) -> str:
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _skip(text: str, place: int) -> int:
    """Return the place of the next character that is no white space; the end of the text if there is none."""
    found = _SPACE.match(text, place)
    assert found is not None, "the pattern matches the empty text"
    return found.end()
