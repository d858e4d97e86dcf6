"""Whatever a model answered, the JSON that it meant is found, or it is said that there is none; nothing is raised.

Reading takes bounded time and memory: ``MAX_ANSWER_CHARS`` of the answer are looked at, at most ``_MAX_STARTS`` places
are tried, and all of them share ``_MAX_STEPS`` steps. Nothing recurses, so depth costs no stack.

A place is read strictly first: valid JSON comes out exactly as the standard library reads it. Only what it refuses is
read tolerantly, and each repair is counted by kind. An item that was cut off is dropped, never completed: half a
sentence would be stored as if the user had said it.

Why own code: ``json_repair`` (MIT, maintained) was measured first, release 0.64. It raises RecursionError on 10,000
brackets, takes 2.4 s of CPU for a megabyte of objects with trailing commas and has no bound, turns ``1e999`` into
infinity, and, what matters most, closes a cut-off string and keeps the half fact; none of this can be configured.

Source: memory-pipeline.txt "Extraction Stage", "Decision Stage"; reliability.md R12; wire.md section 3 "Extraction
parsing".
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from enum import Enum, auto
from typing import Any, Final

from msgspec import Struct

MAX_ANSWER_CHARS: Final = 1_000_000
"""Of a longer answer the rest is not looked at; thoughts may make an answer long."""

_MAX_DOCUMENT_CHARS: Final = 262_144
"""JSON is looked for in this many characters behind the thoughts: twenty facts and fifty triples take a fifth."""

_MAX_STEPS: Final = 60_000
"""Tokens, and characters inside a string that may end it: fifty times what the largest answer has."""

_MAX_STARTS: Final = 64
_MAX_DEPTH: Final = 64
_MAX_ENCODINGS: Final = 3
_MAX_NUMBER_CHARS: Final = 400


class LlmOutput(Struct, frozen=True):
    """The JSON of an answer. ``found`` is False where there is none; then ``value`` is None.

    ``value`` is an object or an array, its depth at most that of the standard library's recursion limit: take it apart
    by ``isinstance``, do not print or compare it whole. ``repaired`` counts repairs, ``dropped`` items that were cut
    off or nested too deep, and ``repairs`` names the kinds of both, in order.
    """

    value: object = None
    found: bool = False
    repaired: int = 0
    dropped: int = 0
    repairs: tuple[str, ...] = ()


_NOTHING: Final = LlmOutput()


def read_json(answer: str | bytes, keys: tuple[str, ...] = ()) -> LlmOutput:
    """The object or array that ``answer`` means, out of thoughts, code fences and prose.

    ``keys`` are the members that the wanted object has: of several documents in one answer those that have one are
    taken, and where two have the same, only the later: an example or a draft loses against the answer, and lends it
    nothing. Objects one after the other without such members are read as one array.
    """
    text = _text_of(answer)
    best = _NOTHING
    for encodings in range(_MAX_ENCODINGS):
        whole = _whole(text)
        output = whole or _read(text, keys)
        if encodings and output.found:
            output = _also(output, "double_encoding")
        best = output if output.found else best
        if whole or _has(output.value, keys) or (output.value and not output.repairs):
            break
        inner = _encoded(text)
        if inner is None:
            break
        text = inner
    return best


def _text_of(answer: str | bytes) -> str:
    if isinstance(answer, bytes):
        answer = answer[: 4 * MAX_ANSWER_CHARS].decode("utf-8", errors="replace")
    return answer[:MAX_ANSWER_CHARS].strip(" \t\r\n\ufeff\x00")


def _encoded(text: str) -> str | None:
    """The text inside JSON that was encoded twice: a string that holds a document, or a document with ``\\"``."""
    if text.startswith('"'):
        try:
            inner, _ = _STRICT.raw_decode(text[:_MAX_DOCUMENT_CHARS])
        except (ValueError, RecursionError):
            inner = None
        if isinstance(inner, str):
            return inner.strip()
    if '{\\"' in text or '[\\"' in text or "{\\n" in text:
        return text.replace("\\n", "\n").replace('\\"', '"')
    return None


def _also(output: LlmOutput, kind: str) -> LlmOutput:
    return LlmOutput(output.value, True, output.repaired + 1, output.dropped, (kind, *output.repairs))


def _has(value: object, keys: tuple[str, ...]) -> bool:
    return isinstance(value, dict) and any(key in value for key in keys)


def _refuse_constant(name: str) -> object:
    raise ValueError(name)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(digits[:20])
    return number


_STRICT: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)

_TAG = re.compile(r"<(/?)(?:think|thinking|thought|reasoning|reflection)(?:\s[^<>]{0,80})?>", re.IGNORECASE)
_START = re.compile(r"[\[{]|<(?=(?:think|thinking|thought|reasoning|reflection)[\s>])", re.IGNORECASE)
# Behind a root that was closed too early: , "entities": [
_GOES_ON = re.compile(r"\s{0,20}[}\]]?\s{0,20},\s{0,20}[\"'][A-Za-z_]\w{0,40}[\"']\s{0,20}:")


class _Found:
    """One document of the answer."""

    def __init__(self, value: object, repairs: Counter[str], dropped: int) -> None:
        self.value = value
        self.repairs = repairs
        self.dropped = dropped


def _behind_thoughts(text: str, at: int) -> int:
    """The place behind the thoughts whose opening tag stands at ``at``; the end of ``text`` where they never end."""
    depth = 0
    for tag in _TAG.finditer(text, at):
        depth += -1 if tag[1] else 1
        if depth == 0:
            return tag.end()
    return len(text)


def _without_leading_thoughts(text: str) -> str:
    """``text`` behind thoughts at its beginning, also where only their end is marked: the template of some models
    writes the opening tag into the prompt.
    """
    at = 0
    while (tag := _TAG.match(text, at)) and not tag[1]:
        at = _behind_thoughts(text, at)
        while at < len(text) and text[at].isspace():
            at += 1
    tag = _TAG.search(text, at)
    if tag and tag[1] and _START.search(text, tag.end()):
        at = tag.end()
    return text[at:]


def _whole(text: str) -> LlmOutput | None:
    """The commonest answer of all, nothing but JSON; its strings may speak of thoughts and fences."""
    if text[:1] not in ("{", "["):
        return None
    whole = _strictly(text[:_MAX_DOCUMENT_CHARS], 0)
    return LlmOutput(whole[0], True) if whole is not None and not text[whole[1] :].strip() else None


def _read(text: str, keys: tuple[str, ...]) -> LlmOutput:
    text = _without_leading_thoughts(text)
    found: list[_Found] = []
    steps = _Steps()
    at = starts = 0
    end_of_text = min(len(text), _MAX_DOCUMENT_CHARS)
    while starts < _MAX_STARTS and steps.left > 0 and (start := _START.search(text, at)):
        begin = start.start()
        starts += 1
        if text[begin] == "<":
            at = _behind_thoughts(text, begin)
            text, at = text[at:], 0
            end_of_text = min(len(text), _MAX_DOCUMENT_CHARS)
            continue
        if begin >= end_of_text:
            break
        strict = _strictly(text, begin, end_of_text)
        if strict is not None and not _GOES_ON.match(text, strict[1]):
            found.append(_Found(strict[0], Counter(), 0))
            at = strict[1]
            continue
        reader = _Reader(text, begin, end_of_text, steps)
        document = reader.read()
        if document is None:
            at = begin + 1
            continue
        found.append(document)
        # What ran to the end without being what was wanted may have swallowed it: look inside.
        at = begin + 1 if reader.cut_off and keys and not _has(document.value, keys) else max(reader.at, begin + 1)
    return _chosen(found, keys)


def _strictly(text: str, at: int, end: int | None = None) -> tuple[object, int] | None:
    try:
        value, after = _STRICT.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None
    return None if end is not None and after > end else (value, after)


def _chosen(found: list[_Found], keys: tuple[str, ...]) -> LlmOutput:
    wanted = [document for document in found if _has(document.value, keys)]
    if wanted:
        merged: dict[Any, object] = {}
        parts: list[_Found] = []
        for document in wanted:
            if isinstance(document.value, dict):
                if any(key in merged and key in document.value for key in keys):
                    merged, parts = {}, []
                merged.update(document.value)
                parts.append(document)
        return _output(merged, parts)
    arrays = [d for d in found if isinstance(d.value, list) and any(isinstance(i, dict | str) for i in d.value)]
    if arrays:
        return _output(arrays[-1].value, arrays[-1:])
    objects = [d for d in found if isinstance(d.value, dict) and d.value]
    if len(objects) > 1:
        objects[0].repairs["joined_documents"] += 1
        return _output([d.value for d in objects], objects)
    if objects:
        return _output(objects[0].value, objects)
    empty = [d for d in found if not d.value and not d.repairs]
    return _output(empty[-1].value, empty[-1:]) if empty else _NOTHING


def _output(value: object, documents: list[_Found]) -> LlmOutput:
    repairs: Counter[str] = Counter()
    for document in documents:
        repairs.update(document.repairs)
    dropped = sum(document.dropped for document in documents)
    kinds = (*repairs, "dropped_item") if dropped else tuple(repairs)
    return LlmOutput(value, True, repairs.total(), dropped, kinds)


class _Steps:
    """What is left of the work that one answer may cause."""

    def __init__(self) -> None:
        self.left = _MAX_STEPS


class _Expect(Enum):
    """What a container waits for."""

    KEY = auto()
    COLON = auto()
    VALUE = auto()
    COMMA = auto()


class _Frame:
    """A container that is still open. ``doubled``: a template's ``{{`` opened it, so ``}}`` closes it."""

    __slots__ = ("after_comma", "doubled", "expect", "is_object", "key", "members", "value")

    def __init__(self, is_object: bool) -> None:
        self.is_object = is_object
        self.value: Any = {} if is_object else []
        self.key = ""
        self.expect = _Expect.KEY if is_object else _Expect.VALUE
        self.after_comma = False
        self.doubled = False
        self.members = 0


_SPACE = re.compile(r"(?:[\s\ufeff\u200b]+|//[^\n]*|#[^\n]*|/\*(?s:.*?)(?:\*/|\Z))+")
_KEY_WORD = re.compile(r"[\w$][\w$.-]{0,63}")
_NUMBER = re.compile(r"[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_BARE = re.compile(r"[^,{}\[\]\"\n\r]+")
_HEX4 = re.compile(r"[0-9a-fA-F]{4}")
_LITERALS: Final[dict[str, object]] = {"true": True, "false": False, "null": None}
_FOREIGN_LITERALS: Final[dict[str, object]] = {
    "True": True,
    "TRUE": True,
    "False": False,
    "FALSE": False,
    "None": None,
    "NULL": None,
    "Null": None,
    "nil": None,
    "undefined": None,
}
_NO_NUMBERS: Final = frozenset({"NaN", "nan", "Infinity", "inf", "Inf", "-Infinity", "+Infinity"})
_QUOTES: Final[dict[str, str]] = {'"': '"', "'": "'", "\u201c": "\u201d", "\u2018": "\u2019", "`": "`"}
_STOP: Final[dict[str, re.Pattern[str]]] = {
    quote: re.compile(rf"[\\{re.escape(quote + close)}\x00-\x1f]") for quote, close in _QUOTES.items()
}
_ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "/": "/"}

# What may follow the quote that ends a string; any other quote inside of one was left unescaped. Each looks at most
# some 150 characters ahead.
_AFTER_KEY = re.compile(r"\s{0,40}(?:[:=]|\Z|(?<=\s)[\"'\u201c\[{])")
_AFTER_MEMBER = re.compile(
    r"""\s{0,40}(?:
            [}\]] | \Z | `{3} | // | /\* | ;\s{0,9}["'}\]]
          | ,\s{0,40}(?:
                [}\]{,] | \Z | // | /\* | \#
              | ["'\u201c](?:[^"'\u201d\n]{0,64}(?:["'\u201d]\s{0,8}[:=]|\Z)|\Z)
              | [A-Za-z_]\w{0,40}\s{0,8}:)
          | ["'][\w ]{1,40}["']\s{0,8}:)""",
    re.VERBOSE,
)
_AFTER_ITEM = re.compile(
    r"""\s{0,40}(?:
            [}\]] | \Z | `{3} | // | /\* | [;:]
          | ,\s{0,40}(?:["'\u201c\[{\]},] | \Z | // | /\* | \.{3} | [-+\d] | [A-Za-z]{1,20}\s{0,8}[,\]]))
      | \s{1,40}["'](?=\S)""",
    re.VERBOSE,
)
_TRAILING_COMMENT = re.compile(r"\s(?://|#)")


class _Reader:
    """Reads one document tolerantly from ``at`` on; ``None`` where no document begins there."""

    def __init__(self, text: str, at: int, end: int, steps: _Steps) -> None:
        self._text = text if end == len(text) else text[:end]
        self.at = at
        self._steps = steps
        self._repairs: Counter[str] = Counter()
        self._dropped = 0
        self.cut_off = False
        self._value_was_cut = False
        self._stack: list[_Frame] = []

    def read(self) -> _Found | None:
        """The document, and ``self.at`` behind it. ``self.cut_off``: the text ended before the document did."""
        first = self._open()
        while self._stack:
            self._steps.left -= 1
            self._skip_space()
            if self._steps.left <= 0 or self.at >= len(self._text) or self._text.startswith("```", self.at):
                self._close_what_is_open()
                break
            if not self._step():
                return None
        if not first.value and (self._repairs or self.cut_off):
            return None
        return _Found(first.value, self._repairs, self._dropped)

    def _step(self) -> bool:
        """One token; False where the root is no document after all."""
        frame = self._stack[-1]
        char = self._text[self.at]
        if char in "}]":
            self._close(char)
            return True
        if frame.expect is _Expect.KEY:
            return self._key(frame, char)
        if frame.expect is _Expect.COLON:
            return self._colon(frame, char)
        if frame.expect is _Expect.COMMA:
            return self._comma(frame, char)
        return self._value(frame, char)

    def _skip_space(self) -> None:
        space = _SPACE.match(self._text, self.at)
        if space:
            self._steps.left -= len(space[0]) >> 6
            if "/" in space[0] or "#" in space[0]:
                self._repairs["comment"] += 1
            self.at = space.end()

    # Containers

    def _open(self) -> _Frame:
        frame = _Frame(self._text[self.at] == "{")
        self.at += 1
        self._stack.append(frame)
        return frame

    def _close(self, char: str) -> None:
        is_object = char == "}"
        if not any(frame.is_object is is_object for frame in self._stack[-_MAX_DEPTH:]):
            self._repairs["stray_bracket"] += 1
            self.at += 1
            return
        if self._stack[-1].is_object is not is_object:
            self._repairs["missing_bracket"] += 1
            self._shut()
            return
        if len(self._stack) == 1 and self._goes_on():
            return
        self.at += 1
        doubled = self._stack[-1].doubled
        self._shut()
        if doubled and self._text.startswith(char, self.at):
            self.at += 1

    def _goes_on(self) -> bool:
        """The root was closed although its members go on: the bracket is one too many."""
        frame = self._stack[0]
        more = _GOES_ON.match(self._text, self.at + 1) if frame.is_object else None
        if more is None:
            return False
        self._repairs["early_bracket"] += 1
        self.at = self._text.index(",", self.at)
        frame.expect = _Expect.COMMA
        return True

    def _shut(self) -> None:
        """The innermost container is at its end."""
        frame = self._stack.pop()
        if frame.is_object and frame.expect is _Expect.VALUE:
            self._repairs["missing_value"] += 1
            self._put(frame, None)
        elif frame.is_object and frame.expect is _Expect.COLON:
            self._repairs["missing_value"] += 1
        elif frame.after_comma:
            self._repairs["trailing_comma"] += 1
        self._hand_up(frame)

    def _hand_up(self, frame: _Frame) -> None:
        """A closed container becomes a value of the one around it."""
        if not self._stack:
            return
        if len(self._stack) >= _MAX_DEPTH:
            self._dropped += 1
            self._stack[-1].expect = _Expect.COMMA
        else:
            self._put(self._stack[-1], frame.value)

    def _close_what_is_open(self) -> None:
        """The text has ended: an array's object that is still open is dropped, all around it is closed."""
        self.cut_off = True
        self._repairs["cut_off"] += 1
        for index in range(1, len(self._stack)):
            if self._stack[index].is_object and not self._stack[index - 1].is_object:
                del self._stack[index:]
                self._value_was_cut = True
                break
        self._dropped += self._value_was_cut
        while self._stack:
            self._hand_up(self._stack.pop())

    def _put(self, frame: _Frame, value: object) -> None:
        if frame.is_object:
            frame.value[frame.key] = value
        else:
            frame.value.append(value)
        frame.members += 1
        frame.expect = _Expect.COMMA
        frame.after_comma = False

    # Tokens

    def _key(self, frame: _Frame, char: str) -> bool:
        if char == ",":
            self._repairs["extra_comma"] += 1
            self.at += 1
        elif char in _QUOTES:
            key = self._string(_AFTER_KEY)
            if key is None:
                return True
            frame.key = key
            frame.expect = _Expect.COLON
        elif word := _KEY_WORD.match(self._text, self.at):
            self._repairs["unquoted_key"] += 1
            self.at = word.end()
            frame.key = word[0]
            frame.expect = _Expect.COLON
        elif char == "{" and not frame.members and not frame.doubled:
            self._repairs["doubled_bracket"] += 1
            frame.doubled = True
            self.at += 1
        else:
            return self._skip_unreadable(frame)
        return True

    def _colon(self, frame: _Frame, char: str) -> bool:
        if char == ":":
            self.at += 1
        elif self._text.startswith("=>", self.at):
            self._repairs["missing_colon"] += 1
            self.at += 2
        elif char == "=":
            self._repairs["missing_colon"] += 1
            self.at += 1
        elif len(self._stack) == 1 and not frame.members and char not in _QUOTES and char not in "{[":
            return False  # a brace in prose
        elif char == ",":
            self._repairs["missing_value"] += 1
            frame.expect = _Expect.KEY
            frame.after_comma = True
            self.at += 1
            return True
        else:
            self._repairs["missing_colon"] += 1
        frame.expect = _Expect.VALUE
        return True

    def _comma(self, frame: _Frame, char: str) -> bool:
        if char == ",":
            self.at += 1
            frame.after_comma = True
        elif char == ";":
            self._repairs["missing_comma"] += 1
            self.at += 1
        elif char in _QUOTES or char in "{[" or _KEY_WORD.match(self._text, self.at) or char in "+-":
            self._repairs["missing_comma"] += 1
        else:
            return self._skip_unreadable(frame)
        frame.expect = _Expect.KEY if frame.is_object else _Expect.VALUE
        return True

    def _value(self, frame: _Frame, char: str) -> bool:
        if char in "{[":
            self._open()
            return True
        if char in _QUOTES:
            text = self._string(_AFTER_MEMBER if frame.is_object else _AFTER_ITEM)
            if text is not None and not self._is_key_of_parent(text):
                self._put(frame, text)
            return True
        if char == ",":
            self._repairs["missing_value" if frame.is_object else "extra_comma"] += 1
            self.at += 1
            if frame.is_object:
                self._put(frame, None)
                frame.expect = _Expect.KEY
                frame.after_comma = True
            return True
        return self._bare_value(frame)

    def _is_key_of_parent(self, text: str) -> bool:
        """An array's string that a colon follows is a member of the object around it: the array was not closed."""
        self._skip_space()
        if self._stack[-1].is_object or len(self._stack) < 2 or not self._text.startswith(":", self.at):
            return False
        self._repairs["missing_bracket"] += 1
        self._stack[-1].after_comma = False
        self._shut()
        if self._stack[-1].is_object:
            self._stack[-1].key = text
            self._stack[-1].expect = _Expect.COLON
        return True

    def _bare_value(self, frame: _Frame) -> bool:
        """A number, a literal, or a string without quotes."""
        bare = _BARE.match(self._text, self.at)
        if bare is None:
            return self._skip_unreadable(frame)
        word = _TRAILING_COMMENT.split(bare[0], maxsplit=1)[0].strip()
        if bare.end() >= len(self._text) and word not in _LITERALS:
            # Cut off in the middle: 0.9 may have been 0.95.
            self.at = bare.end()
            self._value_was_cut = True
            return True
        value: object
        if word in _LITERALS:
            value = _LITERALS[word]
        elif word in _FOREIGN_LITERALS:
            self._repairs["foreign_literal"] += 1
            value = _FOREIGN_LITERALS[word]
        elif word in _NO_NUMBERS:
            self._repairs["no_number"] += 1
            value = None
        elif _NUMBER.fullmatch(word):
            value = self._number(word)
        elif word.strip(".\u2026") == "":
            return self._drop(frame, bare.end())
        elif frame.is_object:
            self._repairs["unquoted_value"] += 1
            value = word
        elif len(self._stack) == 1 and not frame.members:
            return False  # brackets in prose
        else:
            return self._drop(frame, bare.end())
        self.at = bare.end()
        self._put(frame, value)
        return True

    def _drop(self, frame: _Frame, end: int) -> bool:
        """What stands before ``end`` is no value: an ellipsis, or words between the items of an array."""
        self._dropped += 1
        self.at = end
        frame.expect = _Expect.COMMA
        frame.after_comma = False
        return True

    def _number(self, word: str) -> object:
        """The number that ``word`` spells, None if it is none that JSON could hold."""
        if len(word) <= _MAX_NUMBER_CHARS:
            try:
                return json.loads(word, parse_float=_finite)
            except ValueError:
                number = float(word.replace("_", ""))
                if math.isfinite(number):
                    self._repairs["number"] += 1
                    return number
        self._repairs["no_number"] += 1
        return None

    def _skip_unreadable(self, frame: _Frame) -> bool:
        if len(self._stack) == 1 and not frame.members:
            return False
        self._repairs["unreadable"] += 1
        self.at += 1
        return True

    def _string(self, closing: re.Pattern[str]) -> str | None:
        """The string that begins here, or None if the text ends within it; ``closing`` is what may follow it."""
        text, quote = self._text, self._text[self.at]
        close, stop = _QUOTES[quote], _STOP[quote]
        parts: list[str] = []
        at = begin = self.at + 1
        kinds: set[str] = set() if quote == '"' else {"quotes"}
        while True:
            found = stop.search(text, at)
            self._steps.left -= 1
            if found is None or self._steps.left <= 0:
                self.at = len(text)
                self._value_was_cut = True
                return None
            at = found.start()
            char = found[0]
            if char == "\\":
                parts.append(text[begin:at])
                escaped, at = self._escape(at, kinds)
                parts.append(escaped)
                begin = at
            elif char == close:
                if closing.match(text, at + 1):
                    break
                kinds.add("unescaped_quote")
                at += 1
            elif char == quote:
                at += 1
            else:
                kinds.add("control_character")
                at += 1
        parts.append(text[begin:at])
        self.at = at + 1
        self._repairs.update(kinds)
        return "".join(parts)

    def _escape(self, at: int, kinds: set[str]) -> tuple[str, int]:
        """What the escape at ``at`` means and the place behind it; one that JSON does not know stands for itself."""
        text = self._text
        mark = text[at + 1 : at + 2]
        if mark in _ESCAPES:
            return _ESCAPES[mark], at + 2
        if mark == "u" and (code := _HEX4.match(text, at + 2)):
            unit = int(code[0], 16)
            if 0xD800 <= unit < 0xDC00 and text[at + 6 : at + 8] == "\\u" and (low := _HEX4.match(text, at + 8)):
                second = int(low[0], 16)
                if 0xDC00 <= second < 0xE000:
                    return chr(0x10000 + ((unit - 0xD800) << 10) + second - 0xDC00), at + 12
            return chr(unit), at + 6
        kinds.add("escape")
        if mark in ("'", "\n", "`"):
            return mark, at + 2
        return "\\", at + 1
