"""The time of a recall: read from its ``time`` or its query, and described in the reply.

Source: memory-api.txt "POST /api/memory/recall" (time, meta.temporal); docs/compatibility.md "Temporal requests".
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from msgspec import UNSET, UnsetType

from signet_actors.domain.temporal.intent import Intent, intent_of_query, intent_of_request
from signet_actors.domain.temporal.phrases import Window
from signet_actors.domain.timestamps import epoch_ms, iso
from signet_actors.gateway.http.route import Call
from signet_actors.operations.temporal import ClockFields, RecallTime, Temporal
from signet_actors.protocol.searcher import TimeFilter
from signet_actors.runtime.local_zone import LOCAL_ZONE

_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - a zone is put on it


def requested_intent(query: str, time: RecallTime) -> Intent:
    """Return what the recall does with the time that the caller sent."""
    start_ms, end_ms = epoch_ms(time.start), epoch_ms(time.end or "")
    assert start_ms is not None
    assert end_ms is not None
    return intent_of_request(query, Window(start_ms, end_ms), time.facets, time.mode)


def query_intent(call: Call[Any], query: str, fields: ClockFields) -> Intent | None:
    """Return what a recall does with the time that the query names; None if it names none. Found once for a call."""
    key = query, fields.now, fields.time_zone
    if key not in call.intents:
        call.intents[key] = intent_of_query(query, _local(fields, call.state.clock.wall_ms()))
    return call.intents[key]


def time_filter(intent: Intent) -> TimeFilter:
    """Return the window as searchers read it."""
    return TimeFilter(*intent.window, intent.facets, fill=not intent.is_requested)


def temporal_meta(intent: Intent | None, query: str) -> Temporal | UnsetType:
    """Return ``meta.temporal`` of the reply."""
    if intent is None:
        return UNSET
    return Temporal(
        mode=intent.mode,
        source="request" if intent.is_requested else "query",
        original_query=query,
        content_query=intent.content_query,
        start=iso(intent.window.start_ms),
        end=iso(intent.window.end_ms),
        facets=list(intent.facets),
    )


def _local(fields: ClockFields, now_ms: int) -> datetime:
    """Return the moment of the query in the caller's time zone."""
    given = None if fields.now is None else epoch_ms(fields.now)
    zone = LOCAL_ZONE if fields.time_zone is None else ZoneInfo(fields.time_zone)
    moment = _EPOCH + timedelta(milliseconds=now_ms if given is None else given)
    try:
        return zone.fromutc(moment.replace(tzinfo=zone))
    except OverflowError:  # a moment at the end of the calendar
        return moment.replace(tzinfo=zone)
