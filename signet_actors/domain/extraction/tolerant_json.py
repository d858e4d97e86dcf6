"""Read one damaged JSON document tolerantly. Repairs are counted by kind, and cut-off items are dropped.

Nothing recurses, and ``StepBudget`` limits the work for a document. ``json_repair`` 0.64 (MIT) was measured and
rejected: it raises RecursionError on 10,000 brackets, takes 2.4 s of CPU for a megabyte of objects with trailing
commas, has no limit, turns ``1e999`` into infinity, and closes a cut-off string, which keeps half a fact. None of this
can be configured.

Source: memory-pipeline.txt "Extraction Stage"; docs/reliability.md R12.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from enum import Enum, auto
from typing import Any, Final

from signet_actors.domain.lazy_patterns import compile_later

_MAX_STEPS: Final = 60_000
"""Limit on tokens, plus characters inside strings that may end them: fifty times what the largest answer needs."""

_MAX_DEPTH: Final = 64
_MAX_NUMBER_CHARS: Final = 400

MORE_MEMBERS = compile_later(r"\s{0,20}[}\]]?\s{0,20},\s{0,20}[\"'][A-Za-z_]\w{0,40}[\"']\s{0,20}:")
"""Matches after a root that was closed too early: ``, "entities": [``."""


def parse_finite(digits: str) -> float:
    """Return the number. Raises ``ValueError`` if it is too large for a float."""
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(digits[:20])
    return number


class Document:
    """A parsed value, its repairs by kind, and ``dropped``, the number of items cut off or nested too deep."""

    def __init__(self, value: object, repairs: Counter[str], dropped: int) -> None:
        self.value = value
        self.repairs = repairs
        self.dropped = dropped


class StepBudget:
    """The remaining work that one answer may cause."""

    def __init__(self) -> None:
        self.left = _MAX_STEPS


class _Expect(Enum):
    """The kind of token that a container expects next."""

    KEY = auto()
    COLON = auto()
    VALUE = auto()
    COMMA = auto()


class _Frame:
    """An open container. ``doubled``: it was opened by ``{{`` from a template, so ``}}`` closes it."""

    __slots__ = ("after_comma", "doubled", "expect", "is_object", "key", "members", "value")

    def __init__(self, is_object: bool) -> None:
        self.is_object = is_object
        self.value: Any = {} if is_object else []
        self.key = ""
        self.expect = _Expect.KEY if is_object else _Expect.VALUE
        self.after_comma = False
        self.doubled = False
        self.members = 0


_SPACE = compile_later(r"(?>(?:[\s\ufeff\u200b]++|//[^\n]*|#[^\n]*|/\*(?s:.*?)(?:\*/|\Z))+)")
_KEY_WORD = compile_later(r"[\w$][\w$.-]{0,63}")
_NUMBER = compile_later(r"[+-]?+(?:\d[\d_]*+(?>(?:\.\d*+)?)|\.\d++)(?>(?:[eE][+-]?\d++)?)")
_BARE = compile_later(r"[^,{}\[\]\"\n\r]+")
_HEX4 = compile_later(r"[0-9a-fA-F]{4}")
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
_NON_FINITE_WORDS: Final = frozenset({"NaN", "nan", "Infinity", "inf", "Inf", "-Infinity", "+Infinity"})
_QUOTES: Final[dict[str, str]] = {'"': '"', "'": "'", "\u201c": "\u201d", "\u2018": "\u2019", "`": "`"}
_STOP: Final[dict[str, re.Pattern[str]]] = {
    quote: compile_later(rf"[\\{re.escape(quote + close)}\x00-\x1f]") for quote, close in _QUOTES.items()
}
_ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "/": "/"}

# What may follow a closing quote. Any other quote inside a string is an unescaped one. Each pattern looks ahead at
# most about 150 characters.
_AFTER_KEY = compile_later(r"\s{0,40}(?:[:=]|\Z|(?<=\s)[\"'\u201c\[{])")
_AFTER_MEMBER = compile_later(
    r"""\s{0,40}(?:
            [}\]] | \Z | `{3} | // | /\* | ;\s{0,9}["'}\]]
          | ,\s{0,40}(?:
                [}\]{,] | \Z | // | /\* | \#
              | ["'\u201c](?:[^"'\u201d\n]{0,64}(?:["'\u201d]\s{0,8}[:=]|\Z)|\Z)
              | [A-Za-z_]\w{0,40}\s{0,8}:)
          | ["'][\w ]{1,40}["']\s{0,8}:)""",
    re.VERBOSE,
)
_AFTER_ITEM = compile_later(
    r"""\s{0,40}(?:
            [}\]] | \Z | `{3} | // | /\* | [;:]
          | ,\s{0,40}(?:["'\u201c\[{\]},] | \Z | // | /\* | \.{3} | [-+\d] | [A-Za-z]{1,20}\s{0,8}[,\]]))
      | \s{1,40}["'](?=\S)""",
    re.VERBOSE,
)
_TRAILING_COMMENT = compile_later(r"\s(?://|#)")


class TolerantReader:
    """Reads one document tolerantly, starting at ``at``."""

    def __init__(self, text: str, at: int, end: int, steps: StepBudget) -> None:
        self._text = text if end == len(text) else text[:end]
        self.at = at
        self._steps = steps
        self._repairs: Counter[str] = Counter()
        self._dropped = 0
        self.cut_off = False
        self._value_was_cut = False
        self._stack: list[_Frame] = []

    def read(self) -> Document | None:
        """Return the document, or None if no document starts here; ``self.at`` is then after it.

        ``self.cut_off`` is set if the text ended before the document did.
        """
        first = self._open()
        while self._stack:
            self._steps.left -= 1
            self._skip_space()
            if self._steps.left <= 0 or self.at >= len(self._text) or self._text.startswith("```", self.at):
                self._close_at_end_of_text()
                break
            if not self._step():
                return None
        if not first.value and (self._repairs or self.cut_off):
            return None
        return Document(first.value, self._repairs, self._dropped)

    def _step(self) -> bool:
        """Consume one token. Returns False if the root turns out not to be a document."""
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
            self._pop_frame()
            return
        if len(self._stack) == 1 and self._was_closed_too_early():
            return
        self.at += 1
        doubled = self._stack[-1].doubled
        self._pop_frame()
        if doubled and self._text.startswith(char, self.at):
            self.at += 1

    def _was_closed_too_early(self) -> bool:
        """Return whether members follow the root's closing bracket. If so, ignore the bracket."""
        frame = self._stack[0]
        more = MORE_MEMBERS.match(self._text, self.at + 1) if frame.is_object else None
        if more is None:
            return False
        self._repairs["early_bracket"] += 1
        self.at = self._text.index(",", self.at)
        frame.expect = _Expect.COMMA
        return True

    def _pop_frame(self) -> None:
        """Close the innermost container."""
        frame = self._stack.pop()
        if frame.is_object and frame.expect is _Expect.VALUE:
            self._repairs["missing_value"] += 1
            self._add_value(frame, None)
        elif frame.is_object and frame.expect is _Expect.COLON:
            self._repairs["missing_value"] += 1
        elif frame.after_comma:
            self._repairs["trailing_comma"] += 1
        self._add_to_parent(frame)

    def _add_to_parent(self, frame: _Frame) -> None:
        """Add a closed container to its parent as a value."""
        if not self._stack:
            return
        if len(self._stack) >= _MAX_DEPTH:
            self._dropped += 1
            self._stack[-1].expect = _Expect.COMMA
        else:
            self._add_value(self._stack[-1], frame.value)

    def _close_at_end_of_text(self) -> None:
        """Close all containers at the end of the text. An unfinished object in an array is dropped."""
        self.cut_off = True
        self._repairs["cut_off"] += 1
        for index in range(1, len(self._stack)):
            if self._stack[index].is_object and not self._stack[index - 1].is_object:
                del self._stack[index:]
                self._value_was_cut = True
                break
        self._dropped += self._value_was_cut
        while self._stack:
            self._add_to_parent(self._stack.pop())

    def _add_value(self, frame: _Frame, value: object) -> None:
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
                self._add_value(frame, text)
            return True
        if char == ",":
            self._repairs["missing_value" if frame.is_object else "extra_comma"] += 1
            self.at += 1
            if frame.is_object:
                self._add_value(frame, None)
                frame.expect = _Expect.KEY
                frame.after_comma = True
            return True
        return self._bare_value(frame)

    def _is_key_of_parent(self, text: str) -> bool:
        """Return whether ``text``, read as an item of an array, is a key of the parent object.

        It is if a colon follows: the array was not closed.
        """
        self._skip_space()
        if self._stack[-1].is_object or len(self._stack) < 2 or not self._text.startswith(":", self.at):
            return False
        self._repairs["missing_bracket"] += 1
        self._stack[-1].after_comma = False
        self._pop_frame()
        if self._stack[-1].is_object:
            self._stack[-1].key = text
            self._stack[-1].expect = _Expect.COLON
        return True

    def _bare_value(self, frame: _Frame) -> bool:
        """Read a number, a literal, or a string without quotes."""
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
        elif word in _NON_FINITE_WORDS:
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
        self._add_value(frame, value)
        return True

    def _drop(self, frame: _Frame, end: int) -> bool:
        """Drop the text up to ``end``, which is no value: an ellipsis, or words between array items."""
        self._dropped += 1
        self.at = end
        frame.expect = _Expect.COMMA
        frame.after_comma = False
        return True

    def _number(self, word: str) -> object:
        """Return the number that ``word`` spells, or None if JSON cannot represent it."""
        if len(word) <= _MAX_NUMBER_CHARS:
            try:
                return json.loads(word, parse_float=parse_finite)
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
        """Return the string that begins here, or None if the text ends inside it. ``closing`` matches its successor."""
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
        """Return the meaning of the escape at ``at`` and the position after it. An unknown escape stands for itself."""
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
