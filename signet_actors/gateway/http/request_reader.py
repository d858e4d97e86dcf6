"""Public fields read one by one: leniently where real clients differ, with a 400 that names the field where they err.

Both spellings of a name are accepted (the first one given is the one that counts), unknown fields are not read (see
``request_warnings.py``), ``null`` and an absent field mean the same unless a reader says otherwise.

Source: docs/compatibility.md "Query parsing", "Remember", "Forget and modify"; docs/decisions.md 30, 31, 33.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from signet_actors.domain.memories import TIME_FACETS, memory_type, parse_tags
from signet_actors.domain.normalization import sanitize_text
from signet_actors.domain.timestamps import normalize_timestamp
from signet_actors.errors import ErrorCode, InvalidRequest
from signet_actors.gateway.http.request_warnings import integer_warning
from signet_actors.gateway.http.route import HttpRequest
from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.protocol.writer import TemporalEdge
from signet_actors.runtime.clock import iso

MAX_CONTENT_BYTES: Final = 1_000_000
"""UTF-8 bytes of one remembered or patched content; the parts of a message to the writer stay below its mailbox."""
MAX_TEXT_CHARS: Final = 4096
MAX_NAME_CHARS: Final = 500
MAX_QUERY_CHARS: Final = 20_000
MAX_TAGS: Final = 100
MAX_OFFSET: Final = 1_000_000_000
MAX_VERSION: Final = 2**53

_DAY_MS = 86_400_000
_TRUE = frozenset({"true", "1"})
_FALSE = frozenset({"false", "0"})
_LEADING_INTEGER = re.compile(r"\s*([+-]?)([0-9]+)")
_NUMBER = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?[0-9]{1,3})?")
_WHOLE_INTEGER = re.compile(r"\s*\+?([0-9]{1,16})\s*")
_MOMENTS = (
    ("occurred", ("occurredAt", "occurred_at")),
    ("observed", ("observedAt", "observed_at")),
    ("source", ("sourceCreatedAt", "source_created_at")),
)
_VALID_FROM = ("validFrom", "valid_from")
_VALID_UNTIL = ("validUntil", "valid_until")
_EDGE_NAMES = (*(name for _, names in _MOMENTS for name in names), *_VALID_FROM, *_VALID_UNTIL)
_TIME_MODES = ("auto", "timeline", "filter")


def parse_flag(value: object) -> bool | None:
    """true/1/"1"/"true" and false/0/"0"/"false" in any case; None for everything else."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float) and value in {0, 1}:
        return value == 1
    if isinstance(value, str):
        word = value.strip().lower()
        return True if word in _TRUE else False if word in _FALSE else None
    return None


def parse_integer(text: str, default: int, low: int, high: int) -> int:
    """The integer at the beginning of ``text`` ("12abc" is 12), clamped; ``default`` where there is none."""
    match = _LEADING_INTEGER.match(text)
    if match is None:
        return default
    sign, digits = match.groups()
    # 16 digits decide every clamp below 2**53, and a 5,000-digit number never reaches int().
    magnitude = int(digits.lstrip("0")[:17] or "0")
    return max(low, min(high, -magnitude if sign == "-" else magnitude))


class RequestReader:
    """A JSON object or a query, read by name."""

    def __init__(self, *sources: Mapping[str, Any], warnings: list[str] | None = None) -> None:
        """Look in ``sources`` in this order: a body before the query. ``warnings`` takes what is read leniently."""
        self._sources = sources
        self._warnings = warnings if warnings is not None else []

    @property
    def body(self) -> Mapping[str, Any]:
        """The source that is asked first."""
        return self._sources[0]

    def find(self, *names: str) -> tuple[str, Any]:
        """The first of ``names`` that is given and not null, with its value; (first name, None) if none is."""
        for source in self._sources:
            for name in names:
                value = source.get(name)
                if value is not None:
                    return name, value
        return names[0], None

    def has(self, *names: str) -> bool:
        """Whether one of ``names`` is present at all, be it null."""
        return any(not source.keys().isdisjoint(names) for source in self._sources)

    def text(self, *names: str, max_chars: int = MAX_NAME_CHARS) -> str | None:
        """A string that SQLite can hold; None when absent or blank."""
        name, value = self.find(*names)
        if value is None:
            return None
        if not isinstance(value, str):
            raise InvalidRequest(f"{name} must be a string", field=name)
        if len(value) > max_chars:
            raise InvalidRequest(f"{name} must be at most {max_chars} characters", field=name)
        value = sanitize_text(value).strip()
        return value or None

    def required(self, *names: str, max_chars: int = MAX_TEXT_CHARS) -> str:
        """A string that is not blank: "<name> is required"."""
        value = self.text(*names, max_chars=max_chars)
        if value is None:
            raise InvalidRequest(f"{names[0]} is required", field=names[0])
        return value

    def has_text(self, name: str) -> bool:
        """Whether ``name`` is a string that is not blank; its length is the body's business."""
        _, value = self.find(name)
        if value is not None and not isinstance(value, str):
            raise InvalidRequest(f"{name} must be a string", field=name)
        return bool(value and value.strip())

    def content(self) -> str | None:
        """The raw ``content``, bounded; prefixes and white space are still in it. None when absent or null."""
        _, value = self.find("content")
        if value is None:
            return None
        if not isinstance(value, str):
            raise InvalidRequest("content must be a string", field="content")
        text = sanitize_text(value)
        if len(text) > MAX_CONTENT_BYTES or len(text.encode()) > MAX_CONTENT_BYTES:
            raise InvalidRequest(
                f"content must be at most {MAX_CONTENT_BYTES} bytes", code=ErrorCode.PAYLOAD_TOO_LARGE, field="content"
            )
        return text

    def flag(self, *names: str) -> bool | None:
        """A boolean as clients spell it; "<name> must be a boolean" for anything else."""
        name, value = self.find(*names)
        if value is None:
            return None
        flag = parse_flag(value)
        if flag is None:
            raise InvalidRequest(f"{name} must be a boolean", field=name)
        return flag

    def number(self, *names: str) -> float | None:
        """A finite JSON number; numbers in strings only where the source is a query (see ``query_number``)."""
        name, value = self.find(*names)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidRequest(f"{name} must be a number", field=name)
        return _finite(value, name)

    def query_number(self, *names: str) -> float | None:
        """A finite number in a query parameter; None when absent or blank."""
        value = self.text(*names)
        if value is None:
            return None
        name, _ = self.find(*names)
        if _NUMBER.fullmatch(value) is None:
            raise InvalidRequest(f"{name} must be a number", field=name)
        return _finite(float(value), name)

    def importance(self, *names: str) -> float | None:
        """A number in [0, 1]."""
        value = self.number(*names)
        if value is not None and not 0.0 <= value <= 1.0:
            name, _ = self.find(*names)
            raise InvalidRequest(f"{name} must be a number between 0 and 1", field=name)
        return value

    def limit(self, default: int, low: int, high: int) -> int:
        """``limit`` of a body, truncated to an integer and clamped; a number in a string counts, nothing else does."""
        _, value = self.find("limit")
        if value is None:
            return default
        if isinstance(value, str) and len(value) <= MAX_NAME_CHARS and _NUMBER.fullmatch(value.strip()) is not None:
            value = float(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidRequest("limit must be a number", field="limit")
        return int(max(low, min(high, value)))

    def query_integer(self, name: str, default: int, low: int, high: int) -> int:
        """An integer query parameter with parseInt semantics, clamped; the default is named where there is none."""
        value = self.text(name, max_chars=MAX_QUERY_CHARS)
        if value is None:
            return default
        if _LEADING_INTEGER.match(value) is None:
            self._warnings.append(integer_warning(name, default))
        return parse_integer(value, default, low, high)

    def cursor(self, name: str, high: int) -> int:
        """A cursor that an earlier answer gave; 0 when absent. No other word counts, as it would begin anew."""
        value = self.text(name)
        if value is not None and _WHOLE_INTEGER.fullmatch(value) is None:
            raise InvalidRequest(f"{name} must be an integer", field=name)
        return self.query_integer(name, 0, 0, high)

    def query_flag(self, *names: str) -> bool:
        """Whether a query parameter is true; false when absent or blank. "<name> must be a boolean" for other words."""
        return self.text(*names) is not None and self.flag(*names) is True

    def tags(self, name: str = "tags") -> tuple[str, ...]:
        """Tags from a comma string or an array; () when absent or null."""
        _, value = self.find(name)
        tags = parse_tags(value)
        if len(tags) > MAX_TAGS or any(len(tag) > MAX_NAME_CHARS for tag in tags):
            raise InvalidRequest(
                f"tags must be at most {MAX_TAGS} of at most {MAX_NAME_CHARS} characters each", field=name
            )
        return tags

    def memory_type(self) -> str | None:
        """The explicit ``type`` in storage form; None when absent."""
        value = self.text("type")
        if value is None:
            return None
        name = memory_type(value)
        if name is None:
            raise InvalidRequest("type must be a name of at most 64 letters, digits, _ and -", field="type")
        return name

    def timestamp(self, *names: str) -> str | None:
        """An ISO time in storage form: "<name> must be a valid ISO timestamp"."""
        name, value = self.find(*names)
        if value is None or (isinstance(value, str) and not value.strip()):
            return None
        return _time(value, name)

    def past_timestamp(self, *names: str, now_ms: int) -> str | None:
        """The same for what has happened already: a day ahead of our clock at most, as clocks and zones may differ."""
        moment = self.timestamp(*names)
        if moment is not None and moment > iso(now_ms + _DAY_MS):
            name = self.find(*names)[0]
            raise InvalidRequest(f"{name} must not be in the future", field=name)
        return moment

    def if_version(self) -> int | None:
        """A positive integer, also as text; 0, 1.5, true and "x" are refused."""
        name, value = self.find("if_version", "ifVersion")
        if value is None:
            return None
        if isinstance(value, str):
            match = _WHOLE_INTEGER.fullmatch(value)
            value = int(match[1]) if match else None
        elif isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_VERSION:
            raise InvalidRequest("if_version must be a positive integer", field=name)
        return value

    def names(self, name: str, *, max_items: int) -> tuple[str, ...]:
        """An array of non-blank strings without repeats, in order; () when absent or null."""
        _, value = self.find(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
            raise InvalidRequest(f"{name} must be an array of strings", field=name)
        items = tuple(dict.fromkeys(sanitize_text(item).strip() for item in value))
        if len(items) > max_items:
            raise InvalidRequest(f"{name} must be at most {max_items}", field=name)
        if any(len(item) > MAX_NAME_CHARS for item in items):
            raise InvalidRequest(f"{name} must be at most {MAX_NAME_CHARS} characters each", field=name)
        return items

    def visibility(self) -> str:
        """global (default) or private; archived is a state that only the daemon sets."""
        value = self.text("visibility")
        if value is None:
            return "global"
        if value not in {"global", "private"}:
            raise InvalidRequest("visibility must be one of: global, private", field="visibility")
        return value

    def temporal_edges(self) -> tuple[TemporalEdge, ...]:
        """The explicit times of a memory. Source: memory-api.txt "POST /api/memory/remember"."""
        if not self.has(*_EDGE_NAMES):
            return ()
        edges = []
        for facet, names in _MOMENTS:
            moment = self.timestamp(*names)
            if moment is not None:
                edges.append(TemporalEdge(facet=facet, start=moment, end=moment))
        start, end = self.timestamp(*_VALID_FROM), self.timestamp(*_VALID_UNTIL)
        if start is not None and end is not None and end <= start:
            raise InvalidRequest("validUntil must be after validFrom", field="validUntil")
        if start is not None or end is not None:
            edges.append(TemporalEdge(facet="valid", start=start, end=end))
        return tuple(edges)

    def filters(self, *, query: bool = False) -> Filters:
        """The filters of recall, search and forget. ``pinned`` false filters nothing, as in recall-request-v1."""
        minimum = (
            self.query_number("importance_min", "importanceMin")
            if query
            else self.importance("importance_min", "importanceMin")
        )
        pinned = self.query_flag("pinned") if query else self.flag("pinned") is True
        return Filters(
            type=self.memory_type(),
            tags=self.tags(),
            who=self.text("who"),
            pinned=True if pinned else None,
            importance_min=minimum,
            since=self.timestamp("since"),
            until=self.timestamp("until"),
            project=self.text("project"),
            source_type=self.text("source_type", "sourceType"),
        )

    def time_window(self) -> tuple[str, str] | None:
        """The ``time`` object as (start, end), end exclusive and 24 h after start unless given; None when absent.

        Source: docs/compatibility.md "Temporal requests".
        """
        _, value = self.find("time")
        if value is None:
            return None
        if not isinstance(value, dict):
            raise InvalidRequest("time must be an object", field="time")
        if value.get("start") is None:
            raise InvalidRequest("time.start is required when time is provided", field="time.start")
        start = _time(value["start"], "time.start")
        end = _time(value["end"], "time.end") if value.get("end") is not None else _day_after(start)
        if end <= start:  # also where 24 hours more would leave the calendar
            raise InvalidRequest("time.end must be after time.start", field="time.end")
        facets = value.get("facets")
        if facets is not None:
            if not isinstance(facets, list):
                raise InvalidRequest("time.facets must be an array", field="time.facets")
            if not all(isinstance(facet, str) and facet in TIME_FACETS for facet in facets):
                raise InvalidRequest(
                    f"time.facets entries must be one of: {', '.join(TIME_FACETS)}", field="time.facets"
                )
        mode = value.get("mode")
        if mode is not None and (not isinstance(mode, str) or mode not in _TIME_MODES):
            raise InvalidRequest(f"time.mode must be one of: {', '.join(_TIME_MODES)}", field="time.mode")
        return start, end


def read_scope_of(request: HttpRequest, body: Mapping[str, Any] | None = None) -> ReadScope:
    """What the caller may read, with a checked agent."""
    scope = (body or {}).get("scope", request.query.get("scope"))
    if scope is not None and not isinstance(scope, str):
        raise InvalidRequest("scope must be a string", field="scope")
    if scope and (len(scope) > MAX_NAME_CHARS or "\0" in scope):
        raise InvalidRequest(f"scope must be at most {MAX_NAME_CHARS} characters without NUL", field="scope")
    return ReadScope(agent_id=request.agent_id(body), scope=scope or None)


def joined_tags(tags: Sequence[str]) -> str | None:
    """Tags as most answers show them: a comma string, or null when there are none."""
    return ",".join(tags) or None


def _finite(value: float, name: str) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if not -1e300 < number < 1e300:  # false for NaN too
        raise InvalidRequest(f"{name} must be a finite number", field=name)
    return number


def _time(value: object, name: str) -> str:
    moment = normalize_timestamp(value) if isinstance(value, str) and len(value) <= MAX_NAME_CHARS else None
    if moment is None:
        raise InvalidRequest(f"{name} must be a valid ISO timestamp", field=name)
    return moment


def _day_after(start: str) -> str:
    return _moved(start, timedelta(days=1))


def just_before(moment: str) -> str:
    """The last millisecond before ``moment``, both in storage form; for an exclusive end in an inclusive filter."""
    return _moved(moment, timedelta(milliseconds=-1))


def _moved(moment: str, by: timedelta) -> str:
    """``moment`` moved, in storage form; unmoved at the ends of the calendar."""
    try:
        moved = datetime.fromisoformat(moment) + by
    except OverflowError:
        return moment
    return f"{moved.year:04d}-{moved:%m-%dT%H:%M:%S}.{moved.microsecond // 1000:03d}Z"
