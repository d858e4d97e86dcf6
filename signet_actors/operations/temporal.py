"""Fields of requests and replies of recall about time.

Source: memory-api.txt "POST /api/memory/recall" (time, meta.temporal); docs/compatibility.md "Temporal requests".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, ClassVar
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Meta

from signet_actors.domain.memories import TIME_FACETS, TimeFacet
from signet_actors.domain.temporal.intent import TIME_MODES, TimeMode
from signet_actors.domain.timestamps import moved, normalize_timestamp
from signet_actors.errors import InvalidRequest
from signet_actors.operations import field_types as types
from signet_actors.operations.request_fields import FilterFields

_MAX_ZONE_CHARS = 64


@dataclass(frozen=True, kw_only=True)
class TimeZone(types.FieldType):
    """The name of an IANA time zone that this machine has."""

    @property
    def schema(self) -> Mapping[str, Any]:
        return {"maxLength": _MAX_ZONE_CHARS}

    def read(self, given: types.Given) -> Any:
        value = given.value
        if not isinstance(value, str):
            raise given.invalid("must be a string")
        name = value.strip()
        if not name:
            return types.ABSENT
        try:
            if len(value) <= _MAX_ZONE_CHARS:
                return ZoneInfo(name).key
        except (KeyError, ValueError, OSError):
            pass
        raise given.invalid("must be an IANA time zone")


class RecallTime(msgspec.Struct, frozen=True, omit_defaults=True):
    """A time window; ``end`` is exclusive and defaults to 24 hours after ``start``."""

    start: str
    end: str | None = None
    facets: Annotated[
        list[TimeFacet] | None,
        Meta(description="Which times of a memory count; default: all"),
    ] = None
    mode: Annotated[
        TimeMode | None,
        Meta(description="filter: memories of that time that match the query; timeline: all that happened then"),
    ] = None


@dataclass(frozen=True, kw_only=True)
class TimeWindow(types.FieldType):
    """A ``RecallTime`` whose start and end are in storage form."""

    argument: ClassVar[types.ArgumentForm] = types.ArgumentForm.JSON

    def read(self, given: types.Given) -> Any:
        value = given.value
        if not isinstance(value, dict):
            raise given.invalid("must be an object")
        if value.get("start") is None:
            raise InvalidRequest("time.start is required when time is provided", field="time.start")
        start = _time(value["start"], "time.start")
        end = moved(start, timedelta(days=1)) if value.get("end") is None else _time(value["end"], "time.end")
        if end <= start:  # also true if 24 hours later is outside the calendar
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
        if mode is not None and (not isinstance(mode, str) or mode not in TIME_MODES):
            raise InvalidRequest(f"time.mode must be one of: {', '.join(TIME_MODES)}", field="time.mode")
        return RecallTime(start=start, end=end, facets=facets, mode=mode)


def _time(value: object, name: str) -> str:
    moment = normalize_timestamp(value) if isinstance(value, str) and len(value) <= types.MAX_NAME_CHARS else None
    if moment is None:
        raise InvalidRequest(f"{name} must be a valid ISO timestamp", field=name)
    return moment


class ClockFields(FilterFields, frozen=True, kw_only=True, omit_defaults=True):
    """Filters, and the moment and the time zone in which the date phrases of a query are read."""

    now: Annotated[
        str | None,
        types.Timestamp(),
        Meta(description="The time that words such as yesterday refer to; default: the daemon's clock"),
    ] = None
    time_zone: Annotated[
        str | None,
        TimeZone(),
        Meta(description="IANA time zone whose days the query means; default: the daemon's"),
    ] = msgspec.field(default=None, name="timeZone")


class Temporal(msgspec.Struct, frozen=True, rename="camel"):
    """The time window that was applied. ``mode`` auto: memories of that time rank higher, none is left out.

    filter: they come first, and if the request has a ``time`` they are all. timeline: what happened then.
    """

    mode: str
    source: str
    original_query: str
    content_query: str
    start: str
    end: str
    facets: list[str]
