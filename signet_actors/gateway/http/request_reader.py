"""Readers of request fields: lenient where real clients differ, else a 400 that names the invalid field.

Both spellings of a name are accepted, and the first one present counts. Unknown fields are ignored (see
``request_warnings.py``). ``null`` means the same as an absent field unless a reader says otherwise.

Source: docs/compatibility.md "Query parsing", "Remember", "Forget and modify"; docs/decisions.md 30, 31, 33.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from signet_actors.domain.memories import memory_type
from signet_actors.domain.normalization import sanitize_text
from signet_actors.domain.timestamps import iso, normalize_timestamp
from signet_actors.errors import ErrorCode, InvalidRequest
from signet_actors.gateway.http.route import HttpRequest
from signet_actors.operations.field_types import (
    DAY_MS,
    LEADING_INTEGER,
    MAX_CONTENT_BYTES,
    MAX_NAME_CHARS,
    MAX_QUERY_CHARS,
    MAX_TEXT_CHARS,
    NUMBER,
    WHOLE_INTEGER,
    FieldType,
    Given,
    Names,
    Tags,
    Version,
    integer_warning,
    parse_flag,
    parse_integer,
)
from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.protocol.writer import TemporalEdge

_MOMENTS = (
    ("occurred", ("occurredAt", "occurred_at")),
    ("observed", ("observedAt", "observed_at")),
    ("source", ("sourceCreatedAt", "source_created_at")),
)
_VALID_FROM = ("validFrom", "valid_from")
_VALID_UNTIL = ("validUntil", "valid_until")
_EDGE_NAMES = (*(name for _, names in _MOMENTS for name in names), *_VALID_FROM, *_VALID_UNTIL)
_TIME_MODES = ("auto", "timeline", "filter")


class RequestReader:
    """Reads the fields of a JSON object or a query by name."""

    def __init__(self, *sources: Mapping[str, Any], warnings: list[str] | None = None) -> None:
        """Search ``sources`` in this order, such as a body before the query. Lenient readings are added to
        ``warnings``.
        """
        self._sources = sources
        self._warnings = warnings if warnings is not None else []

    @property
    def body(self) -> Mapping[str, Any]:
        """The first source."""
        return self._sources[0]

    def find(self, *names: str) -> tuple[str, Any]:
        """Return the first of ``names`` that is present and not null, with its value; (first name, None) if there is
        none.
        """
        for source in self._sources:
            for name in names:
                value = source.get(name)
                if value is not None:
                    return name, value
        return names[0], None

    def has(self, *names: str) -> bool:
        """Return True if one of ``names`` is present, even if it is null."""
        return any(not source.keys().isdisjoint(names) for source in self._sources)

    def text(self, *names: str, max_chars: int = MAX_NAME_CHARS) -> str | None:
        """Return a string that SQLite can store; None if it is absent or blank."""
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
        """Return a string that is not blank; raises "<name> is required"."""
        value = self.text(*names, max_chars=max_chars)
        if value is None:
            raise InvalidRequest(f"{names[0]} is required", field=names[0])
        return value

    def has_text(self, name: str) -> bool:
        """Return True if ``name`` is a string that is not blank. Its length is not checked."""
        _, value = self.find(name)
        if value is not None and not isinstance(value, str):
            raise InvalidRequest(f"{name} must be a string", field=name)
        return bool(value and value.strip())

    def content(self) -> str | None:
        """Return the raw ``content``, limited in size, with prefixes and white space; None if it is absent or null."""
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
        """Return a boolean in any accepted spelling; raises "<name> must be a boolean"."""
        name, value = self.find(*names)
        if value is None:
            return None
        flag = parse_flag(value)
        if flag is None:
            raise InvalidRequest(f"{name} must be a boolean", field=name)
        return flag

    def number(self, *names: str) -> float | None:
        """Return a finite JSON number. Use ``query_number`` for numbers in a query."""
        name, value = self.find(*names)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidRequest(f"{name} must be a number", field=name)
        return _finite(value, name)

    def query_number(self, *names: str) -> float | None:
        """Return a finite number from a query parameter; None if it is absent or blank."""
        value = self.text(*names)
        if value is None:
            return None
        name, _ = self.find(*names)
        if NUMBER.fullmatch(value) is None:
            raise InvalidRequest(f"{name} must be a number", field=name)
        return _finite(float(value), name)

    def importance(self, *names: str) -> float | None:
        """Return a number in [0, 1]."""
        value = self.number(*names)
        if value is not None and not 0.0 <= value <= 1.0:
            name, _ = self.find(*names)
            raise InvalidRequest(f"{name} must be a number between 0 and 1", field=name)
        return value

    def limit(self, default: int, low: int, high: int) -> int:
        """Return ``limit`` of a body, truncated to an integer and clamped. A number in a string is accepted."""
        _, value = self.find("limit")
        if value is None:
            return default
        if isinstance(value, str) and len(value) <= MAX_NAME_CHARS and NUMBER.fullmatch(value.strip()) is not None:
            value = float(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidRequest("limit must be a number", field="limit")
        return int(max(low, min(high, value)))

    def query_integer(self, name: str, default: int, low: int, high: int) -> int:
        """Return an integer query parameter, parsed like parseInt and clamped. Warn if there is none at its start."""
        value = self.text(name, max_chars=MAX_QUERY_CHARS)
        if value is None:
            return default
        if LEADING_INTEGER.match(value) is None:
            self._warnings.append(integer_warning(name, default))
        return parse_integer(value, default, low, high)

    def cursor(self, name: str, high: int) -> int:
        """Return a cursor from an earlier response; 0 if absent. Invalid values raise, since 0 would start again."""
        value = self.text(name)
        if value is not None and WHOLE_INTEGER.fullmatch(value) is None:
            raise InvalidRequest(f"{name} must be an integer", field=name)
        return self.query_integer(name, 0, 0, high)

    def query_flag(self, *names: str) -> bool:
        """Return True if a query parameter is true; False if absent or blank. Raises "<name> must be a boolean"."""
        return self.text(*names) is not None and self.flag(*names) is True

    def tags(self, name: str = "tags") -> tuple[str, ...]:
        """Return tags from a comma-separated string or an array; () if absent or null."""
        return self._read(Tags(), (name,)) or ()

    def memory_type(self) -> str | None:
        """Return the explicit ``type`` in storage form; None if it is absent."""
        value = self.text("type")
        if value is None:
            return None
        name = memory_type(value)
        if name is None:
            raise InvalidRequest("type must be a name of at most 64 letters, digits, _ and -", field="type")
        return name

    def timestamp(self, *names: str) -> str | None:
        """Return an ISO time in storage form; raises "<name> must be a valid ISO timestamp"."""
        name, value = self.find(*names)
        if value is None or (isinstance(value, str) and not value.strip()):
            return None
        return _time(value, name)

    def past_timestamp(self, *names: str, now_ms: int) -> str | None:
        """Return the time of a past event. It may be a day ahead of our clock, as clocks and time zones differ."""
        moment = self.timestamp(*names)
        if moment is not None and moment > iso(now_ms + DAY_MS):
            name = self.find(*names)[0]
            raise InvalidRequest(f"{name} must not be in the future", field=name)
        return moment

    def if_version(self) -> int | None:
        """Return a positive integer, also given as text; raises for 0, 1.5, true and "x"."""
        version: int | None = self._read(Version(), ("if_version", "ifVersion"))
        return version

    def names(self, name: str, *, max_items: int) -> tuple[str, ...]:
        """Return an array of non-blank strings in order, without duplicates; () if absent or null."""
        return self._read(Names(max_items=max_items), (name,)) or ()

    def _read(self, field_type: FieldType, names: tuple[str, ...]) -> Any:
        name, value = self.find(*names)
        if value is None:
            return None
        return field_type.read(Given(name, value, default=None, in_query=False, now_ms=0, warnings=self._warnings))

    def visibility(self) -> str:
        """Return "global" (default) or "private". Only the daemon sets "archived"."""
        value = self.text("visibility")
        if value is None:
            return "global"
        if value not in {"global", "private"}:
            raise InvalidRequest("visibility must be one of: global, private", field="visibility")
        return value

    def temporal_edges(self) -> tuple[TemporalEdge, ...]:
        """Return the explicit times of a memory. Source: memory-api.txt "POST /api/memory/remember"."""
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
        """Return the filters of recall, search and forget. ``pinned`` false is no filter, as in recall-request-v1."""
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


def read_scope_of(request: HttpRequest, body: Mapping[str, Any] | None = None) -> ReadScope:
    """Return what the caller may read, with a validated agent."""
    scope = (body or {}).get("scope", request.query.get("scope"))
    if scope is not None and not isinstance(scope, str):
        raise InvalidRequest("scope must be a string", field="scope")
    if scope and (len(scope) > MAX_NAME_CHARS or "\0" in scope):
        raise InvalidRequest(f"scope must be at most {MAX_NAME_CHARS} characters without NUL", field="scope")
    return ReadScope(agent_id=request.agent_id(body), scope=scope or None)


def joined_tags(tags: Sequence[str]) -> str | None:
    """Return tags as most responses show them: a comma-separated string, or None if there are none."""
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
