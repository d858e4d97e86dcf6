"""Times in a recall: what is sent to searchers, and ``meta.temporal`` and the times of results in the response."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from signet_actors.config.schema import Config, SearchConfig
from signet_actors.domain.temporal.intent import ALL_FACETS
from signet_actors.errors import ErrorCode, SignetError
from signet_actors.gateway import app
from signet_actors.protocol.memories import Filters
from signet_actors.protocol.searcher import ListTimeline, Recall, Recalled, RecalledRow, RowTime, TimeFilter
from signet_actors.protocol.transcripts import ListSpans, SessionSpan, SpansListed
from signet_actors.protocol.writer import TouchMemories
from tests.support.memory_api import MemoryApi

RECALL = "/api/memory/recall"
DENVER = {"timeZone": "America/Denver"}
NOW = {"now": "2026-05-14T03:00:00Z"}
ROW = RecalledRow(
    id="m1",
    content="User prefers vim keybindings",
    score=0.9,
    source="hybrid",
    type="preference",
    tags=["editor"],
    pinned=False,
    importance=0.9,
    who="claude-code",
    project=None,
    scope=None,
    visibility="global",
    agent_id="default",
    created_at="2026-05-13T10:00:00.000Z",
)


def ms(iso: str) -> int:
    return round(datetime.fromisoformat(iso).replace(tzinfo=UTC).timestamp() * 1000)


@pytest.fixture
def api(tmp_path: Path) -> MemoryApi:
    made = MemoryApi(tmp_path)
    made.bus.script[Recall] = Recalled([ROW], "hybrid", [])
    made.bus.script[ListTimeline] = Recalled([], "keyword", [])
    return made


def temporal(api: MemoryApi, query: str, **fields: Any) -> Any:
    return api.request("POST", RECALL, {"query": query, **fields}).json["meta"].get("temporal")


def test_a_date_and_a_topic_filter_as_documented(api: MemoryApi) -> None:
    assert temporal(api, "2026/05/13 editor", **DENVER) == {
        "mode": "filter",
        "source": "query",
        "originalQuery": "2026/05/13 editor",
        "contentQuery": "editor",
        "start": "2026-05-13T06:00:00.000Z",
        "end": "2026-05-14T06:00:00.000Z",
        "facets": ["session", "source", "occurred", "observed", "valid", "captured"],
    }
    sent = api.bus.only(Recall).body
    window = ms("2026-05-13T06:00"), ms("2026-05-14T06:00")
    assert sent.within == TimeFilter(*window, ALL_FACETS, fill=True)
    assert (sent.query, sent.near_ms, sent.filters) == ("editor", window, Filters())
    assert api.embedder.texts == ["editor"]


def test_a_date_alone_is_a_timeline(api: MemoryApi) -> None:
    entry = RowTime("occurred", "2026-05-13T08:00:00.000Z", None, "memory", "m9")
    api.bus.script[ListTimeline] = Recalled(
        [
            msgspec.structs.replace(
                ROW, id="temporal:memory:m9:occurred", source="temporal_occurred", time=entry, relevance=1.0
            )
        ],
        "keyword",
        [],
    )
    query = "what were we doing on May 13, 2026?"
    body = api.request("POST", RECALL, {"query": query, "project": "p", "limit": 3, **DENVER}).json
    assert (body["method"], body["query"], body["meta"]["totalReturned"]) == ("keyword", query, 1)
    assert (body["meta"]["temporal"]["mode"], body["meta"]["temporal"]["contentQuery"]) == ("timeline", "")
    (result,) = body["results"]
    assert {name: result[name] for name in ("id", "source", "temporal_facet", "temporal_start_at")} == {
        "id": "temporal:memory:m9:occurred",
        "source": "temporal_occurred",
        "temporal_facet": "occurred",
        "temporal_start_at": "2026-05-13T08:00:00.000Z",
    }
    assert (result["temporal_end_at"], result["subject_type"], result["subject_id"]) == (None, "memory", "m9")
    sent = api.bus.only(ListTimeline).body
    assert (sent.filters, sent.limit, sent.words) == (Filters(project="p"), 3, "")
    assert api.bus.told == [TouchMemories(ids=("m9",))]


def session_row(key: str, start: str) -> RecalledRow:
    time = RowTime("session", start, start, "session", key)
    return msgspec.structs.replace(ROW, id=f"temporal:session:{key}:session", score=1.0, session_id=key, time=time)


def timeline(api: MemoryApi, **fields: Any) -> list[str]:
    time = {"start": "2026-05-13", "mode": "timeline", **fields.pop("time", {})}
    rows = api.request("POST", RECALL, {"query": "ferry", "time": time, **fields}).json["results"]
    return [row["subject_id"] for row in rows]


def test_a_timeline_has_the_sessions_with_a_transcript_once(api: MemoryApi) -> None:
    api.bus.script[ListTimeline] = Recalled([session_row("of memories", "2026-05-13T10:00:00.000Z")], "keyword", [])
    api.bus.script[ListSpans] = SpansListed(
        [
            SessionSpan("default", "late", None, "2026-05-13T12:00:00.000Z", "2026-05-13T13:00:00.000Z", "User: hi"),
            SessionSpan("default", "of memories", None, "2026-05-13T10:00:00.000Z", "2026-05-13T11:00:00.000Z", "x"),
        ]
    )
    assert timeline(api) == ["late", "of memories"]
    assert timeline(api, limit=1) == ["late"]
    assert timeline(api, project="p") == ["late", "of memories"]
    for memories_alone in ({"type": "fact"}, {"minScore": 0.7}, {"scope": "s"}, {"time": {"facets": ["captured"]}}):
        assert timeline(api, **memories_alone) == ["of memories"], memories_alone


def test_a_timeline_of_another_user_of_the_machine_has_no_session(
    api: MemoryApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.bus.script[ListTimeline] = Recalled(
        [session_row("of memories", "2026-05-13T10:00:00.000Z"), ROW], "keyword", []
    )

    async def refuse(*_: Any) -> None:
        raise SignetError("not the owner", code=ErrorCode.FORBIDDEN)

    monkeypatch.setattr(app, "require_owner", refuse)
    for filters in ({}, {"type": "fact"}, {"scope": "s"}, {"minScore": 0.7}):
        reply = api.request(
            "POST", RECALL, {"query": "ferry", "time": {"start": "2026-05-13", "mode": "timeline"}, **filters}
        )
        assert [row["id"] for row in reply.json["results"]] == [ROW.id]
        assert "what was said in sessions" in reply.json["warnings"][0]
    assert not any(isinstance(sent.body, ListSpans) for sent in api.bus.asked)


def test_the_content_of_a_timeline_ends_at_900_characters(api: MemoryApi) -> None:
    time = RowTime("session", None, None, "session", "s1")
    rows = [
        msgspec.structs.replace(
            ROW,
            id=f"temporal:session:s{length}:session",
            source="temporal_session",
            content="x" * min(901, length),
            content_length=length,
            time=time,
        )
        for length in (900, 901, 5000)
    ]
    api.bus.script[ListTimeline] = Recalled(rows, "keyword", [])
    results = api.request("POST", RECALL, {"query": "2026-05-13"}).json["results"]
    assert [len(result["content"]) for result in results] == [900, 900, 900]
    assert [result["truncated"] for result in results] == [False, True, True]
    assert [result["content_length"] for result in results] == [900, 901, 5000]
    assert all(result["content"].endswith("x [truncated]") for result in results[1:])
    assert api.bus.told == [], "a session is no memory"


def test_a_time_object_filters_strictly(api: MemoryApi) -> None:
    time = {"start": "2026-05-13", "facets": ["occurred", "source", "occurred"], "mode": "filter"}
    assert temporal(api, "editor of yesterday", time=time) == {
        "mode": "filter",
        "source": "request",
        "originalQuery": "editor of yesterday",
        "contentQuery": "editor of yesterday",
        "start": "2026-05-13T00:00:00.000Z",
        "end": "2026-05-14T00:00:00.000Z",
        "facets": ["occurred", "source"],
    }
    sent = api.bus.only(Recall).body
    window = TimeFilter(ms("2026-05-13"), ms("2026-05-14"), ("occurred", "source"), fill=False)
    assert (sent.within, sent.query) == (window, "editor of yesterday")


@pytest.mark.parametrize(
    ("query", "mode", "expected", "words"),
    [
        ("editor", "timeline", "timeline", "editor"),
        ("what did we do with the Editor?", "timeline", "timeline", "Editor?"),
        ("what were we doing", "auto", "timeline", ""),
        ("what were we doing", None, "timeline", ""),
    ],
)
def test_the_mode_of_a_time_object(api: MemoryApi, query: str, mode: str | None, expected: str, words: str) -> None:
    time = {"start": "2026-05-13", **({} if mode is None else {"mode": mode})}
    assert temporal(api, query, time=time)["mode"] == expected
    assert api.bus.only(ListTimeline).body.words == words


def test_another_time_only_ranks(api: MemoryApi) -> None:
    shown = temporal(api, "the editor of yesterday", **NOW, **DENVER)
    assert (shown["mode"], shown["source"], shown["facets"]) == ("auto", "query", ["captured"])
    assert (shown["start"], shown["end"]) == ("2026-05-12T06:00:00.000Z", "2026-05-13T06:00:00.000Z")
    sent = api.bus.only(Recall).body
    assert (sent.query, sent.within) == ("the editor of yesterday", None)
    assert sent.near_ms == (ms("2026-05-12T06:00"), ms("2026-05-13T06:00"))


def test_a_day_first_date_without_a_topic_lists_its_day(api: MemoryApi) -> None:
    assert temporal(api, "what did we do on 3 June, 2023?", timeZone="UTC")["mode"] == "timeline"
    window = api.bus.only(ListTimeline).body.window
    assert (window.start_ms, window.end_ms) == (ms("2023-06-03"), ms("2023-06-04"))


def test_without_the_boost_only_documented_dates_count(tmp_path: Path) -> None:
    api = MemoryApi(tmp_path, config=Config(search=SearchConfig(date_boost=False)))
    api.bus.script[Recall] = Recalled([ROW], "hybrid", [])
    api.bus.script[ListTimeline] = Recalled([], "keyword", [])
    assert temporal(api, "editor of yesterday") is None
    assert temporal(api, "editor 2026-05-13")["mode"] == "filter"
    first, second = (sent.body for sent in api.bus.asked if isinstance(sent.body, Recall))
    assert (first.near_ms, first.within, second.near_ms) == (None, None, None)
    assert second.within is not None


@pytest.mark.parametrize("query", ["editor", "2026-02-30 editor", "may 13 editor", "2026-07-25/26th editor"])
def test_a_query_without_a_time_has_no_temporal_meta(api: MemoryApi, query: str) -> None:
    answer = api.request("POST", RECALL, {"query": query, **NOW}).json
    assert "temporal" not in answer["meta"]
    assert answer["results"][0].keys().isdisjoint({"temporal_facet", "subject_type", "subject_id"})
    sent = api.bus.only(Recall).body
    assert (sent.query, sent.near_ms, sent.within) == (query, None, None)


@pytest.mark.parametrize(
    ("now", "zone", "start"),
    [
        ("2026-05-14T03:00:00Z", "America/Denver", "2026-05-13T06:00:00.000Z"),
        ("2026-05-14T03:00:00Z", "UTC", "2026-05-14T00:00:00.000Z"),
        ("2026-05-14T03:00:00+05:00", "UTC", "2026-05-13T00:00:00.000Z"),
        ("2026-05-14T03:00:00Z", "Europe/Berlin", "2026-05-13T22:00:00.000Z"),
    ],
)
def test_now_and_the_zone_of_the_caller_decide_what_today_is(api: MemoryApi, now: str, zone: str, start: str) -> None:
    assert temporal(api, "editor today", now=now, timeZone=zone)["start"] == start
    assert temporal(api, "editor today", now=now, time_zone=zone)["start"] == start
    by_get = api.request(
        "GET", f"{RECALL.replace('recall', 'search')}?q=editor+today&now={now.replace('+', '%2B')}&timeZone={zone}"
    )
    assert by_get.json["meta"]["temporal"]["start"] == start


def test_without_now_the_daemons_clock_decides(api: MemoryApi) -> None:
    day = datetime.fromtimestamp(api.state.clock.wall_ms() / 1000, UTC).strftime("%Y-%m-%dT00:00:00.000Z")
    assert temporal(api, "editor today", timeZone="UTC")["start"] == day


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"now": "yesterday"}, "now must be a valid ISO timestamp"),
        ({"now": 5}, "now must be a valid ISO timestamp"),
        ({"timeZone": "Mars/Olympus"}, "timeZone must be an IANA time zone"),
        ({"timeZone": "../../etc/passwd"}, "timeZone must be an IANA time zone"),
        ({"timeZone": "/etc/localtime"}, "timeZone must be an IANA time zone"),
        ({"timeZone": "Europe"}, "timeZone must be an IANA time zone"),
        ({"timeZone": "x" * 1000}, "timeZone must be an IANA time zone"),
        ({"timeZone": "a\0b"}, "timeZone must be an IANA time zone"),
        ({"time_zone": "nowhere"}, "time_zone must be an IANA time zone"),
        ({"timeZone": 5}, "timeZone must be a string"),
    ],
)
def test_a_wrong_clock_is_refused_by_its_field(api: MemoryApi, fields: dict[str, Any], text: str) -> None:
    answer = api.request("POST", RECALL, {"query": "editor", **fields})
    assert (answer.status, answer.json["error"], answer.json["field"]) == (400, text, next(iter(fields)))


@pytest.mark.parametrize("zone", ["", "  ", "UTC", "Etc/GMT+5", "America/Argentina/Buenos_Aires"])
def test_a_blank_or_known_zone_is_accepted(api: MemoryApi, zone: str) -> None:
    assert api.request("POST", RECALL, {"query": "editor", "timeZone": zone}).status == 200


@pytest.mark.parametrize("now", ["0001-01-01", "9999-12-31T23:59:59Z"])
@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Denver", None])
def test_the_ends_of_the_calendar_are_no_error(api: MemoryApi, now: str, zone: str | None) -> None:
    for query in ("editor yesterday", "editor 9000 years ago", "editor this year", "last week", "2026-05-13"):
        body = {"query": query, "now": now, **({} if zone is None else {"timeZone": zone})}
        assert api.request("POST", RECALL, body).status == 200


def test_a_time_object_may_begin_with_the_calendar(api: MemoryApi) -> None:
    time = {"start": "0001-01-01", "end": "9999-12-31T23:59:59.999Z"}
    shown = temporal(api, "editor", time=time)
    assert (shown["start"], shown["end"]) == ("0001-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z")
