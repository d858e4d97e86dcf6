"""The audit log is a chain: a changed, removed, moved or cut row is found, a purged one is not missed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from signet_actors.domain.timestamps import iso
from signet_actors.features.audit import reads
from signet_actors.features.audit.api import (
    LIST,
    MAX_EVENTS,
    VERIFY,
    AuditEvent,
    EventsRecorded,
    ListAuditReply,
    ListAuditRequest,
    RecordEvents,
    VerifyAuditReply,
    VerifyAuditRequest,
)
from signet_actors.features.audit.rules import Row, chained
from signet_actors.protocol.message import Answered, Idempotency, message_of
from signet_actors.protocol.writer import PurgeStep
from tests.support.store_room import StoreRoom

FAR = "2099-01-01T00:00:00.000Z"


def event(room: StoreRoom, kind: str = "denied", **fields: Any) -> AuditEvent:
    known = {"actor": "mallory", "outcome": "refused", "detail": {"operation": "memories.export"}, **fields}
    return AuditEvent(created_at=iso(room.clock.wall_ms()), kind=kind, **known)


def record(room: StoreRoom, *kinds: str, key: str | None = None) -> int:
    room.clock.advance(1000)
    idempotency = None if key is None else Idempotency(key, key)
    reply = room.ask(RecordEvents(events=tuple(event(room, kind) for kind in kinds), idempotency=idempotency))
    assert isinstance(reply, Answered)
    return reply.read(EventsRecorded).seq


def listed(room: StoreRoom, **fields: Any) -> ListAuditReply:
    with room.reader.open_snapshot() as snapshot:
        return reads.listed(snapshot, message_of(LIST)(request=ListAuditRequest(**fields)))


def verified(room: StoreRoom, after: int = 0) -> VerifyAuditReply:
    with room.reader.open_snapshot() as snapshot:
        return reads.verified(snapshot, message_of(VERIFY)(request=VerifyAuditRequest(after=after)))


def purge(room: StoreRoom, cutoff: str, limit: int = 500) -> int:
    return int(room.ask(PurgeStep(step="audit_log", cutoff=cutoff, limit=limit)).count)


def broken_at(room: StoreRoom, *statements: str) -> int | None:
    for statement in statements:
        room.connection.execute(statement)
    found = verified(room)
    assert found.intact is (found.broken_at is None)
    return found.broken_at


def test_events_are_listed_newest_first_by_kind_time_and_pages(room: StoreRoom) -> None:
    assert verified(room) == VerifyAuditReply(intact=True, rows=0, broken_at=None, next=None)
    assert record(room, "denied", "change") == 2
    later = iso(room.clock.wall_ms() + 1)
    assert record(room, "export") == 3
    page = listed(room)
    assert ([row.kind for row in page.events], page.total) == (["export", "change", "denied"], 3)
    first = page.events[-1]
    assert (first.seq, first.actor, first.outcome, first.detail, first.count) == (
        *(1, "mallory", "refused"),
        *({"operation": "memories.export"}, 1),
    )
    assert [row.seq for row in listed(room, kind="change").events] == [2]
    assert [row.seq for row in listed(room, since=later).events] == [3]
    assert ([row.seq for row in listed(room, limit=1, offset=1).events], listed(room, limit=1).total) == ([2], 3)
    assert verified(room) == VerifyAuditReply(intact=True, rows=3, broken_at=None, next=None)


def test_events_that_are_sent_again_are_recorded_once(room: StoreRoom) -> None:
    assert [record(room, "change", key="k"), record(room, "change", key="k"), record(room, "change")] == [1, 1, 2]


def test_one_message_adds_a_bounded_number_of_rows(room: StoreRoom) -> None:
    assert record(room, *["denied"] * (MAX_EVENTS + 1)) == MAX_EVENTS


@pytest.mark.parametrize(
    ("statement", "at"),
    [
        ("UPDATE audit_log SET actor = 'alice' WHERE seq = 3", 3),
        ("UPDATE audit_log SET detail = 'no object' WHERE seq = 3", 3),
        ("UPDATE audit_log SET count = 2 WHERE seq = 5", 5),
        ("UPDATE audit_log SET hash = '' WHERE seq = 2", 2),
        ("DELETE FROM audit_log WHERE seq = 3", 3),
        ("DELETE FROM audit_log WHERE seq <= 2", 1),
        ("DELETE FROM audit_log WHERE seq >= 4", 4),
        ("DELETE FROM audit_log", 1),
        ("DELETE FROM store_meta WHERE key = 'audit_head'", 1),
        ("UPDATE store_meta SET value = 'four' WHERE key = 'audit_head'", 1),
        ("UPDATE store_meta SET value = '5 0000' WHERE key = 'audit_head'", 5),
    ],
)
def test_what_was_tampered_with_is_found_at_the_first_row_that_does_not_fit(
    room: StoreRoom, statement: str, at: int
) -> None:
    record(room, "denied", "change", "export", "denied", "change")
    assert broken_at(room, statement) == at
    assert len(listed(room).events) == room.value("SELECT count(*) FROM audit_log")
    record(room, "denied")
    assert broken_at(room) == (6 if "store_meta" in statement else at), "what is recorded later does not hide it"


def test_rows_that_changed_places_are_found(room: StoreRoom) -> None:
    record(room, "denied", "change", "export", "denied")
    swap = [f"UPDATE audit_log SET seq = {new} WHERE seq = {old}" for old, new in ((2, 99), (3, 2), (99, 3))]
    assert broken_at(room, *swap) == 2


def test_a_changed_row_with_a_hash_of_its_own_is_found_by_the_next_one(room: StoreRoom) -> None:
    record(room, "denied", "change", "export")
    with room.engine.begin() as tx:
        first = tx.one("SELECT hash FROM audit_log WHERE seq = 1")
        columns = ", ".join(Row.__struct_fields__)
        row = Row(*tx.rows(f"SELECT {columns} FROM audit_log WHERE seq = 2")[0])
        assert first is not None
        forged = chained(first[0], replace(row, actor="alice"))
        tx.execute(
            "UPDATE audit_log SET actor = :actor, hash = :hash WHERE seq = 2",
            {"actor": forged.actor, "hash": forged.hash},
        )
        tx.commit()
    assert broken_at(room) == 3


def test_a_purge_deletes_the_oldest_rows_and_the_rest_is_still_a_chain(room: StoreRoom) -> None:
    record(room, "denied", "change")
    cutoff = iso(room.clock.wall_ms() + 1)
    record(room, "export", "denied", "change")
    assert [purge(room, cutoff, limit=1), purge(room, cutoff), purge(room, cutoff)] == [1, 1, 0]
    assert verified(room) == VerifyAuditReply(intact=True, rows=3, broken_at=None, next=None)
    assert purge(room, FAR) == 3
    assert verified(room) == VerifyAuditReply(intact=True, rows=0, broken_at=None, next=None)
    assert record(room, "denied") == 6, "a number is never given out twice"
    assert verified(room).intact
    assert broken_at(room, "UPDATE audit_log SET kind = 'change' WHERE seq = 6") == 6


def test_a_row_of_a_clock_that_went_back_waits_for_the_ones_before_it(room: StoreRoom) -> None:
    record(room, "denied")
    before = iso(room.clock.wall_ms() - 500)
    room.clock.wall -= 3_600_000
    record(room, "change")
    assert (purge(room, before), verified(room).rows) == (0, 2)


def test_a_long_log_is_verified_in_parts(room: StoreRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "MAX_VERIFIED", 4)
    monkeypatch.setattr(reads, "_PAGE", 2)
    record(room, *["denied"] * 9)
    parts = [verified(room)]
    while parts[-1].next is not None:
        parts.append(verified(room, parts[-1].next))
    assert ([part.rows for part in parts], all(part.intact for part in parts)) == ([4, 4, 1], True)
    room.connection.execute("DELETE FROM audit_log WHERE seq = 6")
    assert (verified(room).intact, verified(room, 4).broken_at) == (True, 6)
    assert verified(room, 6).broken_at == 7, "a part that begins at a removed row is not intact"
    assert verified(room, 99).broken_at == 10


ACTIONS = st.lists(st.one_of(st.integers(1, 3), st.just("purge"), st.just("purge one")), max_size=12)
NO_TEARDOWN = [HealthCheck.function_scoped_fixture]


@settings(max_examples=60, deadline=None, suppress_health_check=NO_TEARDOWN)
@given(ACTIONS, st.data())
def test_every_log_that_grew_and_was_purged_is_intact_and_any_change_of_it_is_found(
    tmp_path_factory: pytest.TempPathFactory, actions: list[int | str], data: st.DataObject
) -> None:
    room = StoreRoom(Path(tmp_path_factory.mktemp("audit")))
    try:
        for action in actions:
            if isinstance(action, int):
                record(room, *["denied"] * action)
            else:
                purge(room, iso(room.clock.wall_ms()), limit=1 if action == "purge one" else 500)
        rows = room.value("SELECT count(*) FROM audit_log")
        assert verified(room) == VerifyAuditReply(intact=True, rows=rows, broken_at=None, next=None)
        if rows:
            seqs = [seq for (seq,) in room.connection.execute("SELECT seq FROM audit_log").fetchall()]
            seq = data.draw(st.sampled_from(seqs))
            harm = data.draw(
                st.sampled_from(["DELETE FROM audit_log", "UPDATE audit_log SET outcome = outcome || '!'"])
            )
            assert broken_at(room, f"{harm} WHERE seq = {seq}") == seq
    finally:
        room.close()
