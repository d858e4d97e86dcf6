"""Recall within a time window, and timelines.

Source: docs/compatibility.md "Temporal requests"; docs/decisions.md 58.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from signet_actors.domain.temporal.intent import ALL_FACETS
from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.protocol.message import Principal
from signet_actors.protocol.searcher import ListTimeline, Recalled, RowTime, TimeFilter
from signet_actors.protocol.writer import TemporalEdge
from signet_actors.searcher import times
from signet_actors.searcher.queries import timeline
from signet_actors.store.reads import temporal_edges
from tests.support.store_room import StoreRoom, kept_sound

DAY = datetime(2026, 5, 13, tzinfo=UTC)


@pytest.fixture
def room(tmp_path: Path) -> Iterator[StoreRoom]:
    with kept_sound(StoreRoom(tmp_path)) as room:
        yield room


def at(hours: float) -> str:
    """The time so many hours after the beginning of the day."""
    return (DAY + timedelta(hours=hours)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def window(
    hours: float = 24, *, start: float = 0, facets: tuple[str, ...] = ALL_FACETS, fill: bool = False
) -> TimeFilter:
    ms = round(DAY.timestamp() * 1000)
    return TimeFilter(ms + round(start * 3_600_000), ms + round((start + hours) * 3_600_000), facets, fill)


def edge(facet: str, start: float | None, end: float | None) -> TemporalEdge:
    return TemporalEdge(facet, None if start is None else at(start), None if end is None else at(end))


def remember(room: StoreRoom, text: str, hours: float = 1000, session: str | None = None, **fields: Any) -> str:
    principal = Principal(session_id=session)
    return room.remember(text, created_at=at(hours), principal=principal, **fields).id


def listed(room: StoreRoom, among: TimeFilter, **fields: Any) -> Recalled:
    fields.setdefault("read", ReadScope())
    with room.reader.open_snapshot() as view:
        return timeline.timeline(room.reader, view, ListTimeline(window=among, **fields))


class TestFilter:
    def test_only_memories_of_the_window_are_found(self, room: StoreRoom) -> None:
        inside = [remember(room, f"the editor was opened, {hours}", hours) for hours in (0, 12, 23.9999)]
        for hours in (-0.0001, 24, 48):
            remember(room, f"the editor was opened, {hours}", hours)
        rows = room.recall("editor", within=window()).rows
        assert sorted(row.id for row in rows) == sorted(inside)
        assert {row.time for row in rows} == {
            RowTime("captured", at(hours), at(hours), "memory", id_)
            for hours, id_ in zip((0, 12, 23.9999), inside, strict=True)
        }

    @pytest.mark.parametrize("facet", ["occurred", "observed", "source", "valid", "session", "captured"])
    def test_an_explicit_time_counts_by_its_facet(self, room: StoreRoom, facet: str) -> None:
        dated = remember(room, "the editor crashed", temporal=(edge(facet, 3, 3),))
        remember(room, "the editor crashed again", temporal=(edge(facet, 30, 30),))
        (row,) = room.recall("editor", within=window(facets=(facet,))).rows
        assert (row.id, row.time) == (dated, RowTime(facet, at(3), at(3), "memory", dated))
        others = tuple(other for other in ALL_FACETS if other != facet)
        assert room.recall("editor", within=window(facets=others)).rows == []

    @pytest.mark.parametrize(
        ("start", "end", "counts"),
        [
            (-10, 5, True),
            (-10, 100, True),
            (23, 100, True),
            (-10, 0, False),
            (24, 30, False),
            (-10, None, True),
            (5, None, True),
            (25, None, False),
            (None, 5, True),
            (None, 0, False),
            (0, 1, True),
        ],
    )
    def test_a_validity_counts_while_it_holds(
        self, room: StoreRoom, start: float | None, end: float | None, counts: bool
    ) -> None:
        remember(room, "the editor has a licence", temporal=(edge("valid", start, end),))
        assert len(room.recall("editor", within=window(facets=("valid",))).rows) == counts

    def test_a_moment_without_an_end_is_not_open(self, room: StoreRoom) -> None:
        remember(room, "the editor crashed", temporal=(edge("occurred", -10, None),))
        assert room.recall("editor", within=window(facets=("occurred",))).rows == []

    def test_the_most_telling_time_is_shown(self, room: StoreRoom) -> None:
        remember(room, "the editor crashed", 5, temporal=(edge("source", 4, 4), edge("occurred", 3, 3)))
        (row,) = room.recall("editor", within=window()).rows
        assert row.time is not None
        assert (row.time.facet, row.time.start) == ("occurred", at(3))

    def test_a_session_over_midnight_belongs_to_both_days(self, room: StoreRoom) -> None:
        before = remember(room, "the editor was opened", -1, "night")
        after = remember(room, "the editor was closed", 1, "night")
        other = remember(room, "the editor was sold", -1, "other")
        found = {row.id: row.time for row in room.recall("editor", within=window()).rows}
        assert found.keys() == {before, after}
        assert found[before] == RowTime("session", at(-1), at(1), "memory", before)
        assert found[after] == RowTime("captured", at(1), at(1), "memory", after)
        assert other not in found

    @pytest.mark.parametrize("far", [-24.0001, 25.0001, -100, 100])
    def test_a_session_of_more_than_a_day_says_nothing_of_the_day(self, room: StoreRoom, far: float) -> None:
        remember(room, "the editor was opened long ago", far, "weeks")
        remember(room, "the editor was opened", -0.5, "weeks")
        here = remember(room, "the editor was closed", 0.5, "weeks")
        assert [row.id for row in room.recall("editor", within=window()).rows] == [here]

    def test_sessions_of_different_agents_are_different(self, room: StoreRoom) -> None:
        remember(room, "the editor was opened", -1, "same", agent_id="other")
        here = remember(room, "the editor was closed", 1, "same")
        assert [row.id for row in room.recall("editor", within=window()).rows] == [here]

    def test_others_follow_if_the_limit_is_not_reached(self, room: StoreRoom) -> None:
        inside = remember(room, "a note about some other thing of the editor", 5)
        outside = [remember(room, f"editor editor {number}", 1000 + number) for number in range(3)]
        rows = room.recall("editor", within=window(fill=True), limit=3).rows
        assert rows[0].id == inside
        assert {row.id for row in rows[1:]} < set(outside)
        assert len(rows) == 3
        assert rows[0].time is not None
        assert [row.time for row in rows[1:]] == [None, None]
        scores = [row.score for row in rows]
        assert scores == sorted(scores, reverse=True)
        assert [row.id for row in room.recall("editor", within=window(fill=True), limit=1).rows] == [inside]
        assert len(room.recall("editor", within=window(), limit=3).rows) == 1

    def test_filters_and_policies_hold_within_a_window(self, room: StoreRoom) -> None:
        shown = remember(room, "the editor was opened", 1, project="p")
        remember(room, "the editor was closed", 2)
        remember(room, "the editor of someone else", 3, project="p", agent_id="other", visibility="private")
        remember(room, "the editor of a session", 3, "s", project="p", agent_id="other", visibility="private")
        remember(
            room, "the editor, secretly", temporal=(edge("occurred", 3, 3),), agent_id="other", visibility="private"
        )
        rows = room.recall("editor", within=window(fill=True), filters=Filters(project="p")).rows
        assert [row.id for row in rows] == [shown]

    def test_a_changed_or_forgotten_memory_leaves_the_window(self, room: StoreRoom) -> None:
        gone = remember(room, "the editor was opened", temporal=(edge("occurred", 3, 3),))
        assert len(room.recall("editor", within=window()).rows) == 1
        room.connection.execute(
            "UPDATE memories SET is_deleted = 1, deleted_at = :now WHERE id = :id", {"now": at(9), "id": gone}
        )
        assert room.recall("editor", within=window()).rows == []

    def test_the_explicit_times_of_one_query_are_bounded(
        self, room: StoreRoom, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ids = [remember(room, f"the editor, {n}", temporal=(edge("occurred", n, n),)) for n in range(6)]
        monkeypatch.setattr(times, "MOST_EDGES", 2)
        found = {row.id for row in room.recall("editor", within=window()).rows}
        assert found == set(ids[-2:]), "those that begin last"


class TestTimeline:
    def test_sessions_then_explicit_times_then_captured_memories(self, room: StoreRoom) -> None:
        captured = [remember(room, f"note {hours}", hours) for hours in (3, 9)]
        occurred = remember(room, "the  release\nwent out", temporal=(edge("occurred", 5, 5),))
        first = remember(room, "we began", 1, "s1")
        second = remember(room, "we ended", 2, "s1")
        remember(room, "another day", 30)
        rows = listed(room, window(), limit=100).rows
        by_id = {row.id: row for row in rows}
        assert list(by_id) == [
            f"temporal:memory:{occurred}:occurred",
            "temporal:session:s1:session",
            f"temporal:memory:{captured[1]}:captured",
            f"temporal:memory:{captured[0]}:captured",
            f"temporal:memory:{second}:captured",
            f"temporal:memory:{first}:captured",
        ]
        assert [row.score for row in rows] == [1.0, 1.0, 0.7, 0.7, 0.7, 0.7]
        session = by_id["temporal:session:s1:session"]
        assert session.time == RowTime("session", at(1), at(2), "session", "s1")
        assert (session.content, session.type, session.source) == ("we began · we ended", "session", "temporal_session")
        release = by_id[f"temporal:memory:{occurred}:occurred"]
        assert release.time == RowTime("occurred", at(5), at(5), "memory", occurred)
        assert (release.content, release.source) == ("the  release\nwent out", "temporal_occurred")

    def test_the_latest_entries_of_each_kind_are_kept(self, room: StoreRoom) -> None:
        ids = [remember(room, f"note {number}", number / 10) for number in range(30)]
        rows = listed(room, window(), limit=5).rows
        assert [row.time and row.time.subject_id for row in rows] == ids[:-6:-1]

    def test_the_confidence_of_an_explicit_time_is_its_score(self, room: StoreRoom) -> None:
        for confidence in (0.0, 0.4, 5.0):
            id_ = remember(room, f"note {confidence}", temporal=(edge("observed", confidence, confidence),))
            room.connection.execute(
                "UPDATE temporal_edges SET confidence = :c WHERE subject_id = :id", {"c": confidence, "id": id_}
            )
        assert [row.score for row in listed(room, window(facets=("observed",))).rows] == [1.0, 0.4, 0.1]

    def test_words_narrow_a_timeline_if_an_entry_has_them_all(self, room: StoreRoom) -> None:
        both = remember(room, "Deploying the shop", 3, "s1")
        remember(room, "deploy the site", 4, "s2")
        found = [row.time and row.time.subject_id for row in listed(room, window(), words="shop deploys").rows]
        assert found == ["s1", both]
        other = listed(room, window(), words="shop unheard").rows
        assert [row.relevance for row in other] == [0.0] * 4
        assert listed(room, window(), words="shop unheard", min_relevance=0.1).rows == []
        assert [row.relevance for row in listed(room, window(), words="shop", min_relevance=0.1).rows] == [1.0, 1.0]

    def test_weak_entries_and_other_facets_are_left_out(self, room: StoreRoom) -> None:
        remember(room, "note", 3, "s1")
        assert [row.source for row in listed(room, window(), min_score=0.8).rows] == ["temporal_session"]
        assert [row.source for row in listed(room, window(facets=("captured",))).rows] == ["temporal_captured"]
        assert listed(room, window(facets=("valid",))).rows == []

    def test_a_long_session_is_shown_by_its_part_in_the_window(self, room: StoreRoom) -> None:
        for hours in (-100, 2, 5, 100):
            remember(room, f"note {hours}", hours, "weeks")
        session = listed(room, window()).rows[0]
        assert session.time == RowTime("session", at(2), at(5), "session", "weeks")
        assert session.content == "note 2 · note 5"

    def test_what_the_caller_may_not_read_is_in_no_entry(self, room: StoreRoom) -> None:
        remember(room, "mine", 2, "s1")
        remember(room, "secret", 1, "s1", visibility="archived")
        remember(room, "private", 3, "s2", agent_id="other", visibility="private")
        remember(room, "dated", temporal=(edge("occurred", 3, 3),), agent_id="other", visibility="private")
        rows = listed(room, window()).rows
        assert {row.content for row in rows} == {"mine"}
        assert rows[0].time == RowTime("session", at(2), at(2), "session", "s1")

    def test_a_long_text_keeps_its_lines_and_is_cut(self, room: StoreRoom) -> None:
        remember(room, "word\n " * 400, 3)
        (row,) = listed(room, window()).rows
        assert row.content.startswith("word\n word\n word")
        assert (len(row.content), row.content_length) == (901, 2400)
        remember(room, "x" * 500_000, 4)
        assert [row.content_length for row in listed(room, window()).rows] == [500_000, 2400]

    def test_an_empty_window_has_no_entries(self, room: StoreRoom) -> None:
        assert listed(room, window()).rows == []
        remember(room, "note", 30, "s1")
        assert listed(room, window()).rows == []


def test_times_that_last_are_found_from_their_middle(room: StoreRoom) -> None:
    lasting = remember(room, "the editor was repaired", temporal=(edge("occurred", -30, 30),))
    ended = remember(room, "the editor was moved", temporal=(edge("occurred", -30, 0),))
    found = {row.id: row.time for row in room.recall("editor", within=window(facets=("occurred",))).rows}
    assert found == {lasting: RowTime("occurred", at(-30), at(30), "memory", lasting)}
    assert ended not in found


def test_times_that_the_caller_may_not_read_displace_no_others(
    room: StoreRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(times, "MOST_EDGES", 2)
    monkeypatch.setattr(temporal_edges, "_PAGE_ROWS", 3)
    for facet in ("occurred", "valid"):
        mine = remember(room, f"the editor, {facet}", temporal=(edge(facet, 1, 23),))
        for hours in range(2, 12):
            dated = (edge(facet, hours, hours),)
            remember(room, f"theirs {facet} {hours}", temporal=dated, agent_id="other", visibility="private")
        for among in (window(facets=(facet,)), window(2, start=20, facets=(facet,))):
            assert [row.id for row in room.recall("editor", within=among).rows] == [mine]


def test_received_rows_are_named_inside_and_outside_the_window(room: StoreRoom) -> None:
    for hours in (5, 1000):
        remember(room, f"the editor is vim {hours}", hours)
    rows = room.recall("editor").rows
    found = room.recall("editor", within=window(fill=True), received=tuple(row.wording for row in rows))
    assert sorted(found.received_hits) == sorted(row.seq for row in rows)
