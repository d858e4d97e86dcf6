"""Dates at the ends of the calendar, in every field of a request and of an import that takes one.

Source: memory-api.txt "POST /api/memory/remember" (createdAt and the temporal fields).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.live_daemon import LiveDaemon, live_daemon

pytestmark = pytest.mark.system

NO_DATES = [
    "9999-12-31T23:59:59-12:00",
    "0001-01-01T00:00:00+14:00",
    "0000-01-01T00:00:00Z",
    "10000-01-01T00:00:00Z",
    "2026-01-01T00:00:00+24:00",
    "2026-01-01T00:00:00+99:99",
    "2026-02-30",
    "2026-01-01T24:00:00Z",
]
ENDS = ["0001-01-01T00:00:00Z", "9999-12-31", "9999-12-31T23:59:59.999Z"]
HAPPENED = ["createdAt"]
FREE = ["occurredAt", "observedAt", "sourceCreatedAt", "validFrom", "validUntil"]
IMPORTED = ["createdAt", "created_at", "updatedAt", "lastAccessed"]


@pytest.fixture(scope="module")
def daemon() -> Iterator[LiveDaemon]:
    with live_daemon() as daemon:
        yield daemon
        assert daemon.faults() == []


@pytest.mark.parametrize("date", NO_DATES)
def test_an_impossible_date_is_refused_in_every_field(daemon: LiveDaemon, date: str) -> None:
    for name in (*HAPPENED, *FREE):
        daemon.api.post("/api/memory/remember", {"content": f"x {date} {name}", name: date}).refused(400, field=name)
    for target in ("/api/memory/recall", "/api/memory/forget"):
        for name in ("since", "until"):
            daemon.api.post(target, {"query": "x", name: date}).refused(400, field=name)
    for name in ("start", "end"):
        time = {"start": "2026-01-01", name: date}
        daemon.api.post("/api/memory/recall", {"query": "x", "time": time}).refused(400, field=f"time.{name}")


@pytest.mark.parametrize("date", ENDS[1:])
def test_a_creation_time_more_than_a_day_ahead_is_refused(daemon: LiveDaemon, date: str) -> None:
    refused = daemon.api.post("/api/memory/remember", {"content": "x", "createdAt": date}).refused(400)
    assert (refused["error"], refused["field"]) == ("createdAt must not be in the future", "createdAt")
    tomorrow = datetime.now(UTC) + timedelta(hours=23)
    daemon.api.remember("Of a clock that goes ahead", createdAt=tomorrow.isoformat())


@pytest.mark.parametrize("date", ENDS)
def test_the_first_and_last_dates_cause_no_error(daemon: LiveDaemon, date: str) -> None:
    for name in FREE:
        memory_id = daemon.api.remember(f"calendar {date} {name}", **{name: date})["id"]
        assert daemon.api.memory(memory_id)["id"] == memory_id
    for name in ("since", "until"):
        assert daemon.api.recall("calendar", **{name: date})["query"] == "calendar"
    for time in ({"start": date}, {"start": "2026-01-01", "end": date}, {"start": "0001-01-01", "end": "9999-12-31"}):
        assert daemon.api.post("/api/memory/recall", {"query": "calendar", "time": time}).status in {200, 400}
    assert daemon.api.get("/api/memory/export").status == 200
    assert daemon.api.get("/api/status").status == 200


@pytest.mark.parametrize("date", [*NO_DATES, *ENDS[1:]])
@pytest.mark.parametrize("name", IMPORTED)
def test_an_imported_line_with_an_impossible_date_is_refused(daemon: LiveDaemon, name: str, date: str) -> None:
    lines = [{"content": f"sound {name} {date}"}, {"content": f"odd {name} {date}", name: date}]
    body = "\n".join(json.dumps(line) for line in lines).encode()
    answer = daemon.api.request("POST", "/api/memory/import", body, {"Content-Type": "application/x-ndjson"}).ok()
    assert answer["imported"] == 1
    (refused,) = answer["refused"]
    assert (refused["line"], refused["field"], refused["code"]) == (2, name, "invalid_request")
