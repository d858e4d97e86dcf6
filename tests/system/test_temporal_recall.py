"""Times in a recall of a live daemon.

Source: memory-api.txt "POST /api/memory/recall" (time, meta.temporal); docs/compatibility.md "Temporal requests",
"Worked examples: dates"; docs/decisions.md 58.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.live_daemon import Client, LiveDaemon

pytestmark = pytest.mark.system

RECALL = "/api/memory/recall"
NOW = {"now": "2026-05-15T12:00:00Z", "timeZone": "UTC"}
"""A Friday."""
FACETS = ["session", "source", "occurred", "observed", "valid", "captured"]


@pytest.fixture(scope="module")
def diary(daemon: LiveDaemon) -> dict[str, str]:
    """Ids by name of memories of an agent, in a project of their own."""
    client = daemon.agent("wide")
    in_session = client.acting(x_signet_session_id="diary-session")
    notes: dict[str, tuple[Client, str, dict[str, Any]]] = {
        "editor": (client, "We configured the editor", {"createdAt": "2026-05-13T10:00:00Z"}),
        "lunch": (client, "Lunch was on the roof", {"createdAt": "2026-05-13T12:00:00Z"}),
        "late editor": (client, "The editor crashed twice", {"createdAt": "2026-05-14T01:30:00Z"}),
        "old editor": (client, "The editor was bought", {"createdAt": "2024-01-01T00:00:00Z"}),
        "occurred": (
            client,
            "The editor was released",
            {"createdAt": "2026-06-20T00:00:00Z", "occurredAt": "2026-05-13T15:00:00Z"},
        ),
        "observed": (
            client,
            "Observed: the editor is slow",
            {"createdAt": "2026-06-21T00:00:00Z", "observedAt": "2026-05-13T16:00:00Z"},
        ),
        "source": (
            client,
            "Written elsewhere: the editor has plugins",
            {"createdAt": "2026-06-22T00:00:00Z", "sourceCreatedAt": "2026-05-13T17:00:00Z"},
        ),
        "valid": (
            client,
            "The editor has a licence",
            {"createdAt": "2026-06-23T00:00:00Z", "validFrom": "2026-05-01", "validUntil": "2026-05-20"},
        ),
        "session": (in_session, "The session about the editor began", {"createdAt": "2026-03-02T22:00:00Z"}),
        "session end": (in_session, "The session about tools ended", {"createdAt": "2026-03-03T02:00:00Z"}),
    }
    return {name: who.remember(text, project="diary", **fields)["id"] for name, (who, text, fields) in notes.items()}


@pytest.fixture
def reader(daemon: LiveDaemon, diary: dict[str, str]) -> Client:
    """A client that may read the diary."""
    return daemon.agent("wide")


def asked(client: Client, query: str, **fields: Any) -> Any:
    return client.recall(query, project="diary", limit=100, min_score=0, **{**NOW, **fields})


def names(diary: dict[str, str], answer: Any) -> list[str]:
    back = {memory_id: name for name, memory_id in diary.items()}
    return [back.get(row.get("subject_id", row["id"]), row.get("subject_id", "?")) for row in answer["results"]]


@pytest.mark.parametrize(
    "phrase", ["2026/05/13", "2026-05-13", "2026-5-13", "May 13 2026", "May 13, 2026", "may 13th 2026"]
)
def test_a_date_and_a_topic_put_memories_of_the_day_first(reader: Client, diary: dict[str, str], phrase: str) -> None:
    answer = asked(reader, f"{phrase} editor")
    assert answer["meta"]["temporal"] == {
        "mode": "filter",
        "source": "query",
        "originalQuery": f"{phrase} editor",
        "contentQuery": "editor",
        "start": "2026-05-13T00:00:00.000Z",
        "end": "2026-05-14T00:00:00.000Z",
        "facets": FACETS,
    }
    inside = [row for row in answer["results"] if "temporal_facet" in row]
    assert answer["results"][: len(inside)] == inside, "those of the day come first"
    assert {row["temporal_facet"]: row["subject_id"] for row in inside if row["id"] != diary["lunch"]} == {
        "captured": diary["editor"],
        **{facet: diary[facet] for facet in ("occurred", "observed", "source", "valid")},
    }
    others = names(diary, {"results": answer["results"][len(inside) :]})
    assert {"late editor", "old editor"} <= set(others)
    scores = [row["score"] for row in answer["results"]]
    assert scores == sorted(scores, reverse=True)
    assert "warnings" not in answer


def test_others_follow_only_if_the_limit_is_not_reached(reader: Client) -> None:
    few = reader.recall("2026-05-13 editor", project="diary", limit=3, **NOW)
    assert ["temporal_facet" in row for row in few["results"]] == [True, True, True]


def test_a_date_alone_gives_a_timeline(reader: Client, diary: dict[str, str]) -> None:
    answer = asked(reader, "what were we doing on May 13, 2026?")
    temporal = answer["meta"]["temporal"]
    assert (temporal["mode"], temporal["contentQuery"], answer["method"]) == ("timeline", "", "keyword")
    assert [(row["id"], row["source"], row["score"]) for row in answer["results"]] == [
        (f"temporal:memory:{diary[name]}:{facet}", f"temporal_{facet}", score)
        for name, facet, score in (
            ("source", "source", 1.0),
            ("observed", "observed", 1.0),
            ("occurred", "occurred", 1.0),
            ("valid", "valid", 1.0),
            ("lunch", "captured", 0.7),
            ("editor", "captured", 0.7),
        )
    ]
    released, held = answer["results"][2], answer["results"][3]
    assert released["content"] == "The editor was released"
    assert (released["temporal_start_at"], released["temporal_end_at"]) == ("2026-05-13T15:00:00.000Z",) * 2
    assert (released["subject_type"], released["subject_id"]) == ("memory", diary["occurred"])
    assert (held["temporal_start_at"], held["temporal_end_at"]) == (
        "2026-05-01T00:00:00.000Z",
        "2026-05-20T00:00:00.000Z",
    )
    assert "warnings" not in answer


def test_a_memory_in_a_timeline_has_its_lines_and_its_file(room: Client) -> None:
    text = "## Reset\n\n```sh\nmake down\nmake seed\n```"
    room.remember(text, sourcePath="/home/ada/notes/reset.md", createdAt="2026-05-13T10:00:00.000Z")
    (row,) = room.recall("2026-05-13", **NOW)["results"]
    assert (row["content"], row["source_path"]) == (text, "/home/ada/notes/reset.md")


def test_a_timeline_has_the_sessions_of_the_day(reader: Client, diary: dict[str, str]) -> None:
    answer = asked(reader, "2026-03-03")
    session, captured = answer["results"]
    assert (session["id"], session["score"]) == ("temporal:session:diary-session:session", 1.0)
    assert (session["subject_type"], session["subject_id"]) == ("session", "diary-session")
    assert (session["temporal_start_at"], session["temporal_end_at"]) == (
        "2026-03-02T22:00:00.000Z",
        "2026-03-03T02:00:00.000Z",
    )
    assert session["content"] == "The session about the editor began \u00b7 The session about tools ended"
    assert captured["subject_id"] == diary["session end"]


def test_a_session_over_midnight_is_found_by_either_day(reader: Client, diary: dict[str, str]) -> None:
    answer = asked(reader, "editor", time={"start": "2026-03-03", "facets": ["session"]})
    found = {row["id"]: row["temporal_facet"] for row in answer["results"]}
    assert found == {diary["session"]: "session", diary["session end"]: "session"}
    assert "warnings" not in answer


@pytest.mark.parametrize("facet", ["occurred", "observed", "source", "valid", "captured"])
def test_a_facet_of_a_time_object_is_searched(reader: Client, diary: dict[str, str], facet: str) -> None:
    answer = asked(reader, "editor", time={"start": "2026-05-13", "facets": [facet], "mode": "filter"})
    expected = {"editor", "lunch"} if facet == "captured" else {facet}
    assert set(names(diary, answer)) == expected
    assert answer["meta"]["temporal"]["facets"] == [facet]
    assert {row["temporal_facet"] for row in answer["results"]} == {facet}
    assert "warnings" not in answer


def test_a_time_object_leaves_out_what_lies_outside(reader: Client, diary: dict[str, str]) -> None:
    answer = asked(reader, "editor", time={"start": "2026-05-13T06:00:00.000Z", "end": "2026-05-14T06:00:00.000Z"})
    assert set(names(diary, answer)) == {*("editor", "lunch", "late editor", "occurred", "observed", "source", "valid")}
    assert answer["meta"]["temporal"]["source"] == "request"
    day = asked(reader, "editor", time={"start": "2026-05-13T06:00:00.000Z"})
    assert day["meta"]["temporal"] == answer["meta"]["temporal"], "the end is 24 hours after the start"


def test_mode_timeline_lists_what_happened(reader: Client, diary: dict[str, str]) -> None:
    time = {"start": "2026-05-13", "facets": ["captured"], "mode": "timeline"}
    assert names(diary, asked(reader, "roof", time=time)) == ["lunch"]
    assert names(diary, asked(reader, "what did we do?", time=time)) == ["lunch", "editor"]
    assert names(diary, asked(reader, "unheard of", time=time)) == ["lunch", "editor"]


def test_the_sources_of_a_timeline_are_memory_ids(reader: Client, diary: dict[str, str]) -> None:
    time = {"start": "2026-05-13", "facets": ["captured", "session"], "mode": "timeline"}
    answer = asked(reader, "what did we do?", time=time, aggregate=True)
    assert answer["aggregate"]["sourceMemoryIds"] == [diary["lunch"], diary["editor"]]


def test_the_day_is_a_day_of_the_callers_zone(reader: Client, diary: dict[str, str]) -> None:
    answer = asked(reader, "2026/05/13 crashed", timeZone="America/Denver")
    temporal = answer["meta"]["temporal"]
    assert (temporal["start"], temporal["end"]) == ("2026-05-13T06:00:00.000Z", "2026-05-14T06:00:00.000Z")
    assert names(diary, answer)[0] == "late editor"
    assert answer["results"][0]["temporal_facet"] == "captured"


@pytest.fixture(scope="module")
def meetings(daemon: LiveDaemon) -> tuple[Client, dict[str, str]]:
    """A client, and the ids of memories that differ in nothing but their day and a sign."""
    client = daemon.agent("cleo")
    days = {"2026-05-14": ",", "2026-05-06": ";", "2026-03-03": ":", "2024-01-01": "."}
    return client, {
        client.remember(f"Meeting{sign} about the editor", createdAt=f"{day}T08:00:00Z", project="meetings")["id"]: day
        for day, sign in days.items()
    }


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("what about the editor nine days ago?", "2026-05-06"),
        ("what about the editor yesterday?", "2026-05-14"),
        ("the editor in January 2024", "2024-01-01"),
        ("the editor in March", "2026-03-03"),
        ("the editor of last Thursday", "2026-05-14"),
        ("Was war mit dem editor vor neun Tagen?", "2026-05-06"),
        ("Was war gestern mit dem editor?", "2026-05-14"),
        ("the editor on 14 May, 2026", "2026-05-14"),
        ("der editor am 1. Januar 2024", "2024-01-01"),
        ("what was before 2026-05-06 with the editor?", "2026-05-06"),
    ],
)
def test_another_time_ranks_and_leaves_nothing_out(
    meetings: tuple[Client, dict[str, str]], query: str, expected: str
) -> None:
    client, days = meetings
    answer = client.recall(query, project="meetings", limit=100, min_score=0, **NOW)
    assert days[answer["results"][0]["id"]] == expected
    assert answer["meta"]["temporal"]["mode"] == "auto"
    assert {row["id"] for row in answer["results"]} == set(days)
    assert all("temporal_facet" not in row for row in answer["results"])


@pytest.mark.parametrize("query", ["what did we do yesterday?", "Was haben wir gestern gemacht?", "yesterday"])
def test_a_relative_time_alone_gives_a_timeline(reader: Client, diary: dict[str, str], query: str) -> None:
    answer = asked(reader, query)
    assert answer["meta"]["temporal"]["mode"] == "timeline"
    assert "late editor" in names(diary, answer)
    assert {row["temporal_facet"] for row in answer["results"]} == {"captured", "valid"}


@pytest.mark.parametrize("query", ["2026-02-30 editor", "2026-05-13/12 editor", "2026-05-13/14th editor"])
def test_a_date_that_does_not_exist_is_no_time(reader: Client, query: str) -> None:
    assert "temporal" not in asked(reader, query)["meta"]


def test_a_range_of_days_is_a_window(reader: Client, diary: dict[str, str]) -> None:
    temporal = asked(reader, "2026-05-13/14 editor")["meta"]["temporal"]
    assert (temporal["start"], temporal["end"]) == ("2026-05-13T00:00:00.000Z", "2026-05-15T00:00:00.000Z")


def test_the_alias_reads_the_same_times(reader: Client, diary: dict[str, str]) -> None:
    found = reader.get("/api/memory/search", q="2026-05-13 editor", project="diary", **NOW).ok()
    assert found["meta"]["temporal"]["mode"] == "filter"
    assert found["results"][0]["temporal_facet"] in FACETS
    day = reader.get("/api/memory/search", q="2026-05-13", project="diary", timeZone="Asia/Tokyo").ok()
    assert day["meta"]["temporal"]["start"] == "2026-05-12T15:00:00.000Z"


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"now": "soon"}, "now must be a valid ISO timestamp"),
        ({"timeZone": "Nowhere/At_All"}, "timeZone must be an IANA time zone"),
        ({"timeZone": "../UTC"}, "timeZone must be an IANA time zone"),
    ],
)
def test_a_wrong_clock_is_refused(room: Client, fields: dict[str, str], text: str) -> None:
    room.post(RECALL, {"query": "editor", **fields}).refused(400, error=text, field=next(iter(fields)))
    room.get("/api/memory/search", q="editor", **fields).refused(400, error=text)


def test_a_timeline_is_private_by_policy(daemon: LiveDaemon) -> None:
    lone, wide = daemon.agent("lone"), daemon.agent("wide")
    lone.acting(x_signet_session_id="lonely").remember(
        "A private persimmon", createdAt="2019-07-07T10:00:00Z", occurredAt="2019-07-07T09:00:00Z", visibility="private"
    )
    assert len(lone.recall("2019-07-07", **NOW)["results"]) == 3
    assert wide.recall("2019-07-07", **NOW)["results"] == []
    found = wide.recall("2019-07-07 persimmon", **NOW)["results"]
    assert [row for row in found if "temporal_facet" in row] == []
