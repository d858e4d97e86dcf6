"""Find the values of Kubernetes Secret manifests, in YAML and JSON: every value of ``data`` and ``stringData``.

Lines and JSON tokens are read once, each by bounded patterns, so scanning takes linear time.

Source: Kubernetes Docs: Secrets, "Constraints on Secret names and data", "Editing a Secret".
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final

from signet_actors.domain.lazy_patterns import compile_later
from signet_actors.domain.redaction.values import SecretSpan, has_placeholder
from signet_actors.domain.windowed_search import windowed_matches

MANIFEST_MARK: Final = "Secret"
"""A text without it has no manifest."""

_KIND_OF_SECRET = compile_later(
    r"kind(?:(?P<escapes>\\{0,8}+)(?P<mark>[\"']))?\s{0,40}+:\s{0,40}+\\{0,8}+[\"']?Secret(?:List)?(?![A-Za-z])"
)
_REACH: Final = 256
_KIND = compile_later(r"[\"']?kind[\"']?:[ \t]{1,4}[\"']?(?:(?P<secret>Secret(?:List)?)(?![A-Za-z]))?.{0,253}")
_SECTION = compile_later(r"[\"']?(?:data|stringData)[\"']?:[ \t]{0,4}(?P<flow>\{.{0,65536})?(?:\#.{0,1024})?")
_KEY = compile_later(r"[\"']?[A-Za-z0-9._/-]{1,253}+[\"']?:(?:\s.{0,65536})?")
_PAIR = compile_later(r"[\"']?(?P<key>[A-Za-z0-9._-]{1,253}+)[\"']?:[ \t]{1,4}+(?P<value>\S.{0,65536}+)")
_FLOW_PAIR = compile_later(
    r"(?<![A-Za-z0-9._-])(?P<key>[A-Za-z0-9._-]{1,253}+)[\"']?:[ \t]{0,4}+"
    r"(?P<value>\"[^\"]{0,4096}+\"|'[^']{0,4096}+'|[^\s,{}]{1,4096}+)"
)
_BARE_KEY = compile_later(r"[\"']?[A-Za-z0-9._-]{1,253}+[\"']?:")
_COMMENT = compile_later(r"\s\#")
_BLOCK_MARKS: Final = ("|", ">", "&", "!")
_SECRETS: Final = ("Secret", "SecretList")
_PUBLIC: Final = (".crt", "certificate-authority-data")
"""Certificates are public."""

_JSON_START = compile_later(r"\{(?>(?:\s|\\{1,8}[nrt]){0,400})(?P<escapes>\\{0,8}+)(?P<mark>[\"'])")
_JSON_TOKEN = {mark: compile_later(rf"(?<!\\)(?P<escapes>\\{{0,64}}+){mark}|[{{}}\[\]:,\n]") for mark in "\"'"}
_MAX_DEPTH: Final = 64
_MAX_DASHES: Final = 4
_JSON_SECTIONS: Final = ("data", "stringData")


def manifest_values(plain: str) -> Iterator[SecretSpan]:
    """Yield the values of each Secret: in YAML documents and their lists, and in JSON, also inside a JSON string."""
    kinds = {(found["escapes"] or "", found["mark"]) for found in windowed_matches(_KIND_OF_SECRET, plain, _REACH)}
    if any(not escapes for escapes, _ in kinds):
        yield from _yaml_values(plain)
    for escapes, mark in kinds:
        if mark:
            yield from _json_values(plain, escapes, mark)


class _Mapping:
    """A mapping of YAML or JSON: where it stands, its kind, and the values of its sections."""

    def __init__(self, indentation: int = 0, *, section: bool = False) -> None:
        self.indentation = indentation
        self.section = section
        self.kind: str | None = None
        self.values: list[tuple[int, int]] = []

    def secrets(self) -> Iterator[SecretSpan]:
        if self.kind in _SECRETS:
            for start, end in self.values:
                yield "kubernetes-secret", start, end


def _yaml_values(plain: str) -> Iterator[SecretSpan]:
    mappings: list[_Mapping] = []
    at = 0
    block: int | None = None  # the indentation of a key whose value is the block below it
    for line in plain.split("\n"):
        begin, at = at, at + len(line) + 1
        text = line.lstrip(" \t")
        begin += len(line) - len(text)
        column = len(line) - len(text)
        text = text.rstrip()
        if block is not None and column > block:
            if text:
                mappings[-1].values.append((begin, begin + len(text)))
            continue
        block = None
        if not text or text.startswith("#"):
            continue
        item = text.startswith("- ")
        for _ in range(_MAX_DASHES if item else 0):
            if not text.startswith("- "):
                break
            inner = text[2:].lstrip()
            begin, column, text = begin + len(text) - len(inner), column + len(text) - len(inner), inner
        if mappings and mappings[-1].section and not item and column > mappings[-1].indentation:
            if (pair := _PAIR.fullmatch(text)) is not None and pair["value"][0] != "#":
                if pair["value"].startswith(_BLOCK_MARKS):
                    block = column
                else:
                    _add(mappings[-1], pair["key"], pair["value"], begin + pair.start("value"), comments=True)
            elif _BARE_KEY.match(text):
                block = column
            continue
        is_key = _KEY.fullmatch(text) is not None
        kind = _KIND.fullmatch(text)
        while mappings and (
            mappings[-1].indentation > column
            or (
                mappings[-1].indentation == column
                and (item or not is_key or (kind is not None and mappings[-1].kind is not None))
            )
        ):
            yield from mappings.pop().secrets()
        if not is_key:
            continue
        if not mappings or mappings[-1].indentation < column:
            if len(mappings) >= _MAX_DEPTH:
                yield from mappings.pop().secrets()
            mappings.append(_Mapping(column))
        mapping = mappings[-1]
        mapping.section = False
        if kind is not None:
            mapping.kind = kind["secret"] or ""
        elif (section := _SECTION.fullmatch(text)) is not None:
            mapping.section = True
            for pair in _FLOW_PAIR.finditer(section["flow"] or ""):
                _add(mapping, pair["key"], pair["value"], begin + section.start("flow") + pair.start("value"))
    for mapping in mappings:
        yield from mapping.secrets()


def _add(mapping: _Mapping, key: str, value: str, start: int, *, comments: bool = False) -> None:
    """Add a value, without its quotation marks and without the comment behind it."""
    value = value.rstrip()
    if value[0] in "\"'" and (end := value.find(value[0], 1)) > 0 and (comments or end == len(value) - 1):
        end = value.rfind(value[0]) if _COMMENT.search(value, end) is None else end
        value, start = value[1:end], start + 1
    elif comments and (comment := _COMMENT.search(value)):
        value = value[: comment.start()].rstrip()
    if value and not key.endswith(_PUBLIC) and not has_placeholder(value[:256]):
        mapping.values.append((start, start + len(value)))


def _json_values(plain: str, escapes: str, mark: str) -> Iterator[SecretSpan]:
    """Yield the values of the JSON objects whose quotation marks are ``mark`` behind as many backslashes as
    ``escapes``: in a JSON string, they are escaped.
    """
    at = 0
    while begin := _JSON_START.search(plain, at):
        at = begin.end()
        if (begin["escapes"], begin["mark"]) == (escapes, mark):
            at = yield from _object_values(plain, begin.start(), len(escapes), mark)


def _object_values(plain: str, at: int, escapes: int, mark: str) -> Generator[SecretSpan, None, int]:
    """Yield the values of the JSON object at ``at``. Return where it ends, or where it turned out to be none."""
    stack: list[_Mapping] = []
    string: int | None = None
    last = ""  # the string before, which is a key if a colon follows
    key = ""
    for token in _JSON_TOKEN[mark].finditer(plain, at):
        sign = token[0][-1]
        at = token.end()
        if sign == mark:
            backslashes = len(token["escapes"])
            if backslashes % (2 * escapes + 2) != escapes:
                continue
            if string is None:
                string = at
                continue
            start, end, string = string, token.start() + backslashes - escapes, None
            last = plain[start : min(end, start + 256)]
            if key == "kind":
                stack[-1].kind = last
            elif key and stack[-1].section and end > start and not key.endswith(_PUBLIC) and not has_placeholder(last):
                stack[-2].values.append((start, end))
        elif string is not None:
            if sign == "\n":
                break
        elif sign == ":":
            key = last
        elif sign in "{[":
            if len(stack) >= _MAX_DEPTH:
                break
            stack.append(_Mapping(section=bool(stack) and sign == "{" and key in _JSON_SECTIONS))
            key = ""
        elif sign in "}]":
            closed = stack.pop()
            key = ""
            if closed.kind is None and stack:
                stack[-1].values += closed.values  # items of a SecretList have no kind
            else:
                yield from closed.secrets()
            if not stack:
                return at
        elif sign == ",":
            key = ""
    for mapping in stack:
        yield from mapping.secrets()
    return at
