"""Insert into a JSON text and remove from it, without touching a byte of the rest.

The standard library parses; here only the places of members and elements are found. It is strict JSON, because Claude
Code and Codex read nothing else: with a comment or a trailing comma they ignore the whole file.

Source: RFC 8259; https://github.com/anthropics/claude-code/issues/83190; codex-rs/hooks/src/engine/discovery.rs.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, NoReturn

_SPACE = re.compile(r"[ \t\r\n]*")
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


def parsed(text: str) -> Any:
    """Return the value of the text. Raises InvalidText."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        comment = text[error.pos : error.pos + 2] in ("//", "/*")
        problem = "comments are not valid in JSON" if comment else f"not valid JSON ({error.msg})"
        raise InvalidText(error.lineno, problem, is_json=False) from None
    except (ValueError, RecursionError) as error:
        raise InvalidText(1, f"not valid JSON ({str(error)[:100]})", is_json=False) from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def line_of(text: str, place: int) -> int:
    """Return the number of the line, from 1."""
    return text.count("\n", 0, place) + 1


def root_of(text: str) -> int:
    """Return where the value of a valid text begins."""
    return _skip(text, 0)


def parts(text: str, container: int) -> list[Part]:
    """Return the parts of the object or array that begins at ``container``, in a text that ``parsed`` accepts."""
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


def appended(text: str, container: int, value: Any, key: str | None = None) -> str:
    """Return the text with a part more at the end of the object (with ``key``) or array, in the style of the text."""
    found = parts(text, container)
    head = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
    newline = "\r\n" if "\r\n" in text else "\n"
    if found:
        before = text[container + 1 : found[0].start]
        if "\n" not in before:
            return f"{text[: found[-1].end]}, {head}{json.dumps(value, ensure_ascii=False)}{text[found[-1].end :]}"
        indent = before.rpartition("\n")[2]
        rendered = _rendered(value, indent, _unit(text), newline)
        return f"{text[: found[-1].end]},{newline}{indent}{head}{rendered}{text[found[-1].end :]}"
    outer = _line_indent(text, container)
    indent = outer + _unit(text)
    close = _skip(text, container + 1)
    rendered = _rendered(value, indent, _unit(text), newline)
    return f"{text[: container + 1]}{newline}{indent}{head}{rendered}{newline}{outer}{text[close:]}"


def removed(text: str, container: int, place: int) -> str:
    """Return the text without the part at index ``place`` of the object or array, and without its comma."""
    found = parts(text, container)
    if len(found) == 1:
        return text[: container + 1] + text[_skip(text, found[0].end) :]
    if place:
        return text[: found[place - 1].end] + text[found[place].end :]
    return text[: found[0].start] + text[found[1].start :]


def _rendered(value: Any, indent: str, unit: str, newline: str) -> str:
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    return (newline + indent).join(lines)


def _unit(text: str) -> str:
    """Return by how much the text indents."""
    found = parts(text, root_of(text))
    before = text[root_of(text) + 1 : found[0].start] if found else ""
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
