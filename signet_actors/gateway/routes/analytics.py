"""Report what the daemon did. Source: docs/compatibility.md "Analytics and telemetry"."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from signet_actors.domain.timestamps import iso
from signet_actors.errors import NotFound, SignetError
from signet_actors.features.analytics import api
from signet_actors.features.analytics.rules import MUTATION, latency_of
from signet_actors.features.searches import api as searches
from signet_actors.features.telemetry import api as telemetry
from signet_actors.gateway.features import ask
from signet_actors.gateway.http.route import Call, Handler, HttpResponse
from signet_actors.gateway.routes.diagnostics import measured
from signet_actors.operations.headers import JSON_LINES, NEXT_CURSOR_HEADER
from signet_actors.operations.operation import Operation
from signet_actors.operations.request_fields import NoFields
from signet_actors.protocol.message import Answered

RECENT: Final = 50
DAYS: Final = 7
"""Days of which the usage of models is returned."""


async def usage(call: Call[NoFields]) -> HttpResponse:
    """Return the counts. Raises SignetError."""
    since = iso(call.state.clock.wall_ms() - (DAYS - 1) * 86_400_000)
    return HttpResponse(await call.state.usage.usage(await _stored(call, "providers", "days", since=since)))


async def errors(call: Call[api.ListErrorsRequest]) -> HttpResponse:
    """Return the newest errors. Raises SignetError."""
    asked = call.request
    found = [
        error
        for error in await _errors(call)
        if (asked.stage is None or error.stage == asked.stage)
        and (asked.code is None or error.code == asked.code)
        and (asked.since is None or error.timestamp >= asked.since)
    ]
    return HttpResponse(api.ListErrorsReply(found[: asked.limit], _summary(found)))


async def latency(call: Call[api.LatencyRequest]) -> HttpResponse:
    """Return the latencies. Raises SignetError."""
    minutes, now_ms = call.request.minutes, call.state.clock.wall_ms()
    since = iso(now_ms - minutes * 60_000)
    stored = await _stored(call, "jobs", *(("minutes",) if minutes else ()), since=since)
    latencies, last = await call.state.usage.latencies(), call.state.usage.minute()
    shown = [*stored.minutes, last] if minutes and last.requests else stored.minutes
    return HttpResponse(api.LatencyReply(**latencies, jobs=latency_of(stored.jobs_ms), minutes=shown))


async def prompts(call: Call[api.PromptsRequest]) -> HttpResponse:
    """Return what came of the agent's prompts. Raises SignetError."""
    asked = call.request

    async def count() -> Answered:
        with contextlib.suppress(SignetError):
            await call.state.searches.flush()
        now = iso(call.state.clock.wall_ms())
        return await call.ask_searcher(api.CountPrompts(agent_id=call.agent_id, request=asked, now=now))

    return HttpResponse(await call.state.prompt_counts.get((call.agent_id, asked.project, asked.hours), count))


async def memory_safety(call: Call[NoFields]) -> HttpResponse:
    """Return the health of changes, and refused ones. Raises SignetError."""
    found = [error for error in await _errors(call) if error.stage == MUTATION]
    mutation = (await measured(call, [])).mutation
    return HttpResponse(api.MemorySafetyReply(mutation, found[:RECENT], _summary(found)))


async def telemetry_events(call: Call[telemetry.ListEventsRequest]) -> HttpResponse:
    """Return events of the telemetry. Raises SignetError."""
    if not call.state.telemetry.enabled:
        return HttpResponse(telemetry.ListEventsReply([], enabled=False))
    return HttpResponse(telemetry.ListEventsReply((await _events(call)).events, enabled=True))


async def telemetry_stats(call: Call[NoFields]) -> HttpResponse:
    """Return sums over the events. Raises SignetError."""
    if not call.state.telemetry.enabled:
        return HttpResponse(telemetry.TelemetryStatsReply(enabled=False))
    await call.state.telemetry.flush()
    found = (await call.ask_searcher(telemetry.FindEvents(telemetry.MAX_EXPORTED))).read(telemetry.StoredEvents)
    providers = (await _stored(call, "providers")).providers.values()
    calls = sum(one.calls for one in providers)
    return HttpResponse(
        telemetry.TelemetryStatsReply(
            enabled=True,
            total_events=found.total,
            events={name: latency_of(took) for name, took in sorted(found.durations.items())},
            llm=telemetry.ModelFigures(
                calls,
                sum(one.failures for one in providers),
                round(sum(one.total_latency_ms for one in providers) / calls, 2) if calls else 0.0,
            ),
            pipeline_errors=sum(error.stage != MUTATION for error in await _errors(call)),
        )
    )


async def telemetry_export(call: Call[telemetry.ExportEventsRequest]) -> HttpResponse:
    """Return events as lines of JSON. Raises NotFound, SignetError."""
    if not call.state.telemetry.enabled:
        raise NotFound("Telemetry is off (memory.pipelineV2.telemetryEnabled)")
    lines = b"".join(msgspec.json.encode(event) + b"\n" for event in (await _events(call)).events)
    return HttpResponse(lines, media_type=JSON_LINES)


async def searches_export(call: Call[searches.ExportSearchesRequest]) -> HttpResponse:
    """Return searches as lines of JSON. Raises SignetError."""
    wanted = msgspec.convert(call.request, searches.ListSearchesRequest, from_attributes=True)
    found = (await ask(call, searches.LIST, wanted)).read(searches.ListSearchesReply)
    lines = b"".join(msgspec.json.encode(each) + b"\n" for each in found.searches)
    headers = {} if found.next is None else {NEXT_CURSOR_HEADER: found.next}
    return HttpResponse(lines, headers=headers, media_type=JSON_LINES)


async def _events(call: Call[Any]) -> telemetry.StoredEvents:
    await call.state.telemetry.flush()
    asked = call.request
    query = telemetry.FindEvents(asked.limit, asked.event, asked.since, asked.until)
    return (await call.ask_searcher(query)).read(telemetry.StoredEvents)


async def _stored(call: Call[Any], *parts: str, since: str = "") -> api.StoredFigures:
    return (await call.ask_searcher(api.FindFigures(parts, since))).read(api.StoredFigures)


async def _errors(call: Call[Any]) -> list[api.ErrorEvent]:
    return call.state.usage.errors((await _stored(call, "errors")).errors)


def _summary(errors: Iterable[api.ErrorEvent]) -> dict[str, int]:
    return dict(sorted(Counter(error.code for error in errors).items()))


HANDLERS: Final[dict[Operation[Any], Handler[Any]]] = {
    api.USAGE: usage,
    api.ERRORS: errors,
    api.LATENCY: latency,
    api.PROMPTS: prompts,
    api.MEMORY_SAFETY: memory_safety,
    telemetry.EVENTS: telemetry_events,
    telemetry.STATS: telemetry_stats,
    telemetry.EXPORT: telemetry_export,
    searches.EXPORT: searches_export,
}
