"""Types of the fields that a caller may send: what each accepts, and in which form the request holds it.

Values are read leniently where real clients differ; anything else is an ``InvalidRequest`` that names the field. A type
stands in ``Annotated`` beside the plain type of a request's field (``request_reader.py``).

Source: docs/compatibility.md "Query parsing", "Remember", "Forget and modify"; docs/decisions.md 30, 31, 33.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Final, NamedTuple

from signet_actors.domain.memories import memory_type, parse_tags
from signet_actors.domain.normalization import sanitize_text
from signet_actors.domain.timestamps import iso, normalize_timestamp
from signet_actors.errors import ErrorCode, InvalidRequest

MAX_CONTENT_BYTES: Final = 1_000_000
MAX_TYPE_CHARS: Final = 64
"""UTF-8 bytes of one remembered or patched content. The chunks in a message to the writer stay below its mailbox limit.
"""
MAX_TEXT_CHARS: Final = 4096
MAX_NAME_CHARS: Final = 500
MAX_QUERY_CHARS: Final = 20_000
MAX_TAGS: Final = 100
MAX_TAGS_CHARS: Final = MAX_TAGS * (MAX_NAME_CHARS + 1)
"""Characters of all tags as they are given, with commas and white space. More are refused before they are split."""
MAX_OFFSET: Final = 1_000_000_000
MAX_VERSION: Final = 2**53

DAY_MS = 86_400_000
_TRUE = frozenset({"true", "1"})
_FALSE = frozenset({"false", "0"})
LEADING_INTEGER = re.compile(r"\s*([+-]?)([0-9]+)")
NUMBER = re.compile(r"[+-]?(?:[0-9]++(?>(?:\.[0-9]*+)?)|\.[0-9]++)(?:[eE][+-]?[0-9]{1,3})?")
WHOLE_INTEGER = re.compile(r"\s*\+?([0-9]{1,16})\s*")


class ArgumentForm(Enum):
    """How a field's value is given on a command line.

    TEXT: sent as typed. FLAG: yes or no. JSON: a number or an object. LIST: texts, one for each repetition. JSON_LIST:
    objects, one for each repetition.
    """

    TEXT = "text"
    FLAG = "flag"
    JSON = "json"
    LIST = "list"
    JSON_LIST = "json_list"


class SecretRule(Enum):
    """What happens to a secret in a field.

    CUT: a placeholder replaces it. REFUSE: the request is invalid, because two different names must never become equal.
    DIGEST: a digest of the whole text replaces the text, so that different keys stay different. KEEP: the field is not
    stored, or another step redacts it.
    """

    CUT = "cut"
    DIGEST = "digest"
    REFUSE = "refuse"
    KEEP = "keep"


class Absent(Enum):
    """The result of reading a value that counts as not given, such as a blank text."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT


class Given(NamedTuple):
    """A value as the caller sent it; never null.

    ``name`` is the spelling that the caller used, and ``default`` the default of the field. ``now_ms`` is the wall
    clock. Lenient readings are added to ``warnings``.
    """

    name: str
    value: Any
    default: Any
    in_query: bool
    now_ms: int
    warnings: list[str]

    def invalid(self, rule: str) -> InvalidRequest:
        """Return the error "<name> <rule>"."""
        return InvalidRequest(f"{self.name} {rule}", field=self.name)


@dataclass(frozen=True, kw_only=True)
class FieldType:
    """A type of field. ``schema`` are keywords for its JSON Schema.

    ``null`` is what the request holds for a null in the body; ABSENT if null counts as absent. A request without a
    required field is refused with ``missing``, where ``{name}`` is the field's name.
    """

    argument: ClassVar[ArgumentForm] = ArgumentForm.TEXT

    secret: SecretRule = SecretRule.KEEP
    null: Any = ABSENT
    refuses_null: bool = False
    missing: str = "{name} is required"

    @property
    def schema(self) -> Mapping[str, Any]:
        """Return keywords that describe the accepted values in JSON Schema."""
        return {}

    def read(self, given: Given) -> Any:
        """Return the value in the form that the request holds, or ABSENT. Raises InvalidRequest."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Text(FieldType):
    """A string that SQLite can store, without surrounding white space; a blank one counts as absent."""

    max_chars: int = MAX_NAME_CHARS
    secret: SecretRule = SecretRule.CUT

    @property
    def schema(self) -> Mapping[str, Any]:
        return {"maxLength": self.max_chars}

    def read(self, given: Given) -> Any:
        value = given.value
        if not isinstance(value, str):
            raise given.invalid("must be a string")
        if len(value) > self.max_chars:
            raise given.invalid(f"must be at most {self.max_chars} characters")
        return sanitize_text(value).strip() or ABSENT


@dataclass(frozen=True, kw_only=True)
class OptionalName(Text):
    """The name that a field of a memory gets; null or a blank text: it has none, which the request holds as ""."""

    null: Any = ""

    def read(self, given: Given) -> Any:
        value = super().read(given)
        return "" if value is ABSENT else value


@dataclass(frozen=True, kw_only=True)
class Choice(FieldType):
    """One of ``values``; blank counts as absent."""

    values: tuple[str, ...]

    def read(self, given: Given) -> Any:
        value = _NAME.read(given)
        if value is not ABSENT and value not in self.values:
            raise given.invalid(f"must be one of: {', '.join(self.values)}")
        return value


@dataclass(frozen=True, kw_only=True)
class Content(FieldType):
    """The raw content of a memory with prefixes and white space, limited in size. The gateway redacts it."""

    @property
    def schema(self) -> Mapping[str, Any]:
        return {"maxLength": MAX_CONTENT_BYTES}

    def read(self, given: Given) -> Any:
        if not isinstance(given.value, str):
            raise given.invalid("must be a string")
        text = sanitize_text(given.value)
        if len(given.value) > MAX_CONTENT_BYTES or len(text.encode()) > MAX_CONTENT_BYTES:
            raise InvalidRequest(
                f"{given.name} must be at most {MAX_CONTENT_BYTES} bytes",
                code=ErrorCode.PAYLOAD_TOO_LARGE,
                field=given.name,
            )
        return text


@dataclass(frozen=True, kw_only=True)
class Flag(FieldType):
    """A boolean: true, false, 1, 0, or one of these as text. A blank query parameter counts as absent."""

    argument: ClassVar[ArgumentForm] = ArgumentForm.FLAG

    @property
    def schema(self) -> Mapping[str, Any]:
        return {"anyOf": [{"type": "boolean"}, {"enum": [0, 1, "0", "1", "true", "false"]}]}

    def read(self, given: Given) -> Any:
        if given.in_query and not str(given.value).strip():
            return ABSENT
        flag = parse_flag(given.value)
        if flag is None:
            raise given.invalid("must be a boolean")
        return flag


@dataclass(frozen=True, kw_only=True)
class Number(FieldType):
    """A finite number, also in a string. ``low`` and ``high`` bound it in a body, not in a query."""

    argument: ClassVar[ArgumentForm] = ArgumentForm.JSON

    low: float | None = None
    high: float | None = None

    @property
    def schema(self) -> Mapping[str, Any]:
        bounds = {"minimum": self.low, "maximum": self.high}
        return {key: bound for key, bound in bounds.items() if bound is not None}

    def read(self, given: Given) -> Any:
        if given.in_query:
            text = _NAME.read(given)
            if text is ABSENT:
                return ABSENT
            if NUMBER.fullmatch(text) is None:
                raise given.invalid("must be a number")
            return _finite(given, float(text))
        value = number_of(given.value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise given.invalid("must be a number")
        value = _finite(given, value)
        low, high = self.low, self.high
        if (low is not None and value < low) or (high is not None and value > high):
            raise given.invalid(f"must be a number between {low:g} and {high:g}")
        return value


@dataclass(frozen=True, kw_only=True)
class Clamped(FieldType):
    """An integer, clamped to ``low`` and ``high``.

    In a query it is read like parseInt, with a warning and the default where the text begins with no integer. In a body
    a fraction is cut off, and a number in a string is accepted.
    """

    argument: ClassVar[ArgumentForm] = ArgumentForm.JSON

    low: int
    high: int

    @property
    def schema(self) -> Mapping[str, Any]:
        bounds = f"{self.low} to {self.high}; a value beyond counts as the nearest bound"
        return {"type": "number", "description": bounds}

    def read(self, given: Given) -> Any:
        if given.in_query:
            text = _QUERY.read(given)
            if text is ABSENT:
                return ABSENT
            if LEADING_INTEGER.match(text) is None:
                given.warnings.append(integer_warning(given.name, given.default))
            return parse_integer(text, given.default, self.low, self.high)
        value = number_of(given.value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise given.invalid("must be a number")
        return int(max(self.low, min(self.high, value)))


@dataclass(frozen=True, kw_only=True)
class Cursor(FieldType):
    """A cursor from an earlier response. An invalid one is refused, because 0 would start again."""

    argument: ClassVar[ArgumentForm] = ArgumentForm.JSON

    high: int

    def read(self, given: Given) -> Any:
        text = _NAME.read(given)
        if text is ABSENT:
            return ABSENT
        if WHOLE_INTEGER.fullmatch(text) is None:
            raise given.invalid("must be an integer")
        return parse_integer(text, 0, 0, self.high)


@dataclass(frozen=True, kw_only=True)
class Version(FieldType):
    """The version of a memory: a positive integer, also given as text."""

    argument: ClassVar[ArgumentForm] = ArgumentForm.JSON

    @property
    def schema(self) -> Mapping[str, Any]:
        return {"minimum": 1, "maximum": MAX_VERSION}

    def read(self, given: Given) -> Any:
        value = given.value
        if isinstance(value, str):
            match = WHOLE_INTEGER.fullmatch(value) if len(value) <= MAX_NAME_CHARS else None
            value = int(match[1]) if match else None
        elif isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_VERSION:
            # The documented text has this spelling for both.
            raise InvalidRequest("if_version must be a positive integer", field=given.name)
        return value


@dataclass(frozen=True, kw_only=True)
class Tags(FieldType):
    """Tags from a comma-separated string or an array, as a tuple."""

    argument: ClassVar[ArgumentForm] = ArgumentForm.LIST

    secret: SecretRule = SecretRule.CUT

    @property
    def schema(self) -> Mapping[str, Any]:
        array = {"type": "array", "items": {"type": "string", "maxLength": MAX_NAME_CHARS}, "maxItems": MAX_TAGS}
        return {"anyOf": [{"type": "string", "maxLength": MAX_TAGS_CHARS}, array]}

    def read(self, given: Given) -> Any:
        is_short = not (isinstance(given.value, list) and len(given.value) > MAX_TAGS)  # as the document says
        tags = parse_tags(given.value) if is_short and _tags_chars(given.value) <= MAX_TAGS_CHARS else None
        if tags is None or len(tags) > MAX_TAGS or any(len(tag) > MAX_NAME_CHARS for tag in tags):
            raise InvalidRequest(
                f"tags must be at most {MAX_TAGS} of at most {MAX_NAME_CHARS} characters each", field=given.name
            )
        return tags


@dataclass(frozen=True, kw_only=True)
class MemoryType(FieldType):
    """The type of a memory, in storage form."""

    secret: SecretRule = SecretRule.REFUSE

    @property
    def schema(self) -> Mapping[str, Any]:
        return {"maxLength": MAX_TYPE_CHARS}

    def read(self, given: Given) -> Any:
        value = _NAME.read(given)
        if value is ABSENT:
            return ABSENT
        name = memory_type(value) if len(given.value) <= MAX_TYPE_CHARS else None
        if name is None:
            raise given.invalid(f"must be a name of at most {MAX_TYPE_CHARS} letters, digits, _ and -")
        return name


@dataclass(frozen=True, kw_only=True)
class Timestamp(FieldType):
    """An ISO time, in storage form. A ``past`` one may be a day ahead of our clock, as clocks and time zones differ."""

    past: bool = False

    @property
    def schema(self) -> Mapping[str, Any]:
        return {"anyOf": [{"type": "string", "format": "date-time"}, {"enum": [""]}]}

    def read(self, given: Given) -> Any:
        value = given.value
        if isinstance(value, str) and not value.strip():
            return ABSENT
        moment = normalize_timestamp(value) if isinstance(value, str) and len(value) <= MAX_NAME_CHARS else None
        if moment is None:
            raise given.invalid("must be a valid ISO timestamp")
        if self.past and moment > iso(given.now_ms + DAY_MS):
            raise given.invalid("must not be in the future")
        return moment


@dataclass(frozen=True, kw_only=True)
class Names(FieldType):
    """An array of strings that are not blank, as a tuple in order and without duplicates."""

    argument: ClassVar[ArgumentForm] = ArgumentForm.LIST

    max_items: int
    max_chars: int = MAX_NAME_CHARS

    @property
    def schema(self) -> Mapping[str, Any]:
        return {"maxItems": self.max_items}

    def read(self, given: Given) -> Any:
        value = given.value
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise given.invalid("must be an array of strings")
        distinct = dict.fromkeys(value)
        if not all(map(str.strip, distinct)):
            raise given.invalid("must be an array of strings")
        items = tuple(dict.fromkeys(sanitize_text(item).strip() for item in distinct))
        if len(items) > self.max_items:
            raise given.invalid(f"must be at most {self.max_items}")
        if any(len(item) > self.max_chars for item in items):
            raise given.invalid(f"must be at most {self.max_chars} characters each")
        return items


@dataclass(frozen=True, kw_only=True)
class JsonObject(FieldType):
    """A JSON object of any content."""

    argument: ClassVar[ArgumentForm] = ArgumentForm.JSON

    def read(self, given: Given) -> Any:
        if not isinstance(given.value, dict):
            raise given.invalid("must be an object")
        return given.value


@dataclass(frozen=True, kw_only=True)
class CallerField(FieldType):
    """A field that the gateway settles for every operation: agent, session, scope, author. It is documented only.

    ``in_query``: it counts in a query too.
    """

    in_query: bool = True

    def read(self, given: Given) -> Any:  # noqa: ARG002
        return ABSENT


_NAME: Final = Text()
_QUERY: Final = Text(max_chars=MAX_QUERY_CHARS)


def parse_flag(value: object) -> bool | None:
    """Return True for true/1/"1"/"true", False for false/0/"0"/"false" in any case, None for anything else."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float) and value in {0, 1}:
        return value == 1
    if isinstance(value, str) and len(value) <= MAX_NAME_CHARS:
        word = value.strip().lower()
        return True if word in _TRUE else False if word in _FALSE else None
    return None


def number_of(value: object) -> object:
    """Return the number that a string holds, as some clients send one; anything else as it is."""
    if isinstance(value, str) and len(value) <= MAX_NAME_CHARS and NUMBER.fullmatch(value.strip()) is not None:
        return float(value)
    return value


def parse_integer(text: str, default: int, low: int, high: int) -> int:
    """Return the integer at the start of ``text`` ("12abc" is 12), clamped; ``default`` if there is none."""
    match = LEADING_INTEGER.match(text)
    if match is None:
        return default
    sign, digits = match.groups()
    # 16 digits decide every clamp below 2**53, and a 5,000-digit number never reaches int().
    magnitude = int(digits.lstrip("0")[:17] or "0")
    return max(low, min(high, -magnitude if sign == "-" else magnitude))


def integer_warning(name: str, default: int | None) -> str:
    """Return the warning for a query parameter that should be an integer but does not start with one."""
    return f"{name} is not an integer; the default{'' if default is None else f' {default}'} was used"


def _finite(given: Given, value: float) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if not -1e300 < number < 1e300:  # false for NaN too
        raise given.invalid("must be a finite number")
    return number


def _tags_chars(value: object) -> int:
    """Return the characters of the tags as given, and one for each comma between the elements of an array."""
    if isinstance(value, str):
        return len(value)
    return sum(len(tag) + 1 for tag in value if isinstance(tag, str)) if isinstance(value, list) else 0
