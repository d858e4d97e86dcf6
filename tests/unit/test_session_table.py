"""Who has claimed a session: the first path that names it, until it ends or nothing is heard of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from signet_actors.domain.session_keys import canonical_session_key
from signet_actors.gateway.sessions.table import CLAIM_MS, Ending, SessionTable, Stored
from tests.support.store_room import SetClock


def written(stored: Stored | None) -> None:
    assert stored is None or stored.result(60)


def test_the_first_path_claims_and_the_other_conflicts() -> None:
    table = SessionTable(SetClock())
    assert table.enter("s", "plugin").claimed_by is None
    assert table.enter("s", "legacy").claimed_by == "plugin"
    assert table.enter("s", "plugin").claimed_by is None
    assert table.enter("other", "legacy").claimed_by is None


def test_a_caller_without_a_path_neither_claims_nor_conflicts() -> None:
    table = SessionTable(SetClock())
    assert table.enter("s", None) == (table.find("s"), False, None, None)
    assert table.enter("s", "legacy").claimed_by is None
    entered = table.enter("s", None)
    assert (entered.known, entered.claimed_by, entered.session.path) == (True, None, "legacy")


def test_a_claim_ends_four_hours_after_the_owners_last_hook() -> None:
    clock = SetClock()
    table = SessionTable(clock)
    table.enter("s", "plugin")
    clock.advance(CLAIM_MS - 1)
    assert table.enter("s", "legacy").claimed_by == "plugin"
    clock.advance(1)
    assert table.find("s") is None
    assert table.enter("s", "legacy").claimed_by is None


def test_a_renewed_claim_lasts_as_long_as_a_new_one() -> None:
    clock = SetClock()
    table = SessionTable(clock)
    session = table.enter("s", "plugin").session
    clock.advance(CLAIM_MS - 1)
    table.renew(session)
    clock.advance(CLAIM_MS - 1)
    assert table.enter("s", "legacy").claimed_by == "plugin"


def test_only_the_owner_or_a_caller_without_a_path_ends_a_session() -> None:
    table = SessionTable(SetClock())
    table.enter("s", "plugin")
    assert table.end("s", "legacy") == Ending(accepted=False, claimed_by="plugin")
    assert table.enter("s", "legacy").claimed_by == "plugin"
    assert table.end("s", "plugin") == Ending(accepted=True)
    assert table.end("s", "legacy") == Ending(accepted=False, ended_by="plugin")
    assert table.end("s", None) == Ending(accepted=True)
    assert table.end("unknown", "plugin") == Ending(accepted=True)


def test_an_ended_session_is_not_listed_and_its_claim_is_free() -> None:
    table = SessionTable(SetClock())
    table.enter("s", "plugin")
    table.enter("t", None)
    table.end("s", "plugin")
    assert [session.key for session in table.active()] == ["t"]
    entered = table.enter("s", "legacy")
    assert (entered.known, entered.claimed_by) == (True, None)
    assert [session.key for session in table.active()] == ["s", "t"]


def test_the_table_forgets_the_session_that_was_used_longest_ago() -> None:
    table = SessionTable(SetClock(), max_sessions=2)
    for key in ("a", "b", "a", "c"):
        table.enter(key, None)
    assert [session.key for session in table.active()] == ["c", "a"]


def test_a_session_key_has_one_canonical_form() -> None:
    assert canonical_session_key(" session:abc ") == canonical_session_key("abc") == "abc"
    assert canonical_session_key("agent:alice:main") == "agent:alice:main"
    assert canonical_session_key("session: ") is canonical_session_key("") is canonical_session_key(None) is None


@pytest.mark.parametrize(
    ("minutes", "path"),
    [(0, "plugin"), (1, "plugin"), (60, "plugin"), (238, "plugin"), (240, None), (300, None)],
)
def test_a_claim_in_the_file_lasts_as_long_as_it_would_have(tmp_path: Path, minutes: int, path: str | None) -> None:
    clock, file = SetClock(), tmp_path / "claims.json"
    written(SessionTable(clock, file=file).enter("s", "plugin").stored)
    clock.advance(minutes * 60_000)
    found = SessionTable(clock, file=file).find("s")
    assert (None if found is None else found.path) == path


def test_a_bypass_is_in_the_file_until_memory_is_on_again(tmp_path: Path) -> None:
    clock, file = SetClock(), tmp_path / "claims.json"
    table = SessionTable(clock, file=file)
    session = table.enter("s", None).session
    table.enter("other", "plugin")
    written(table.bypass(session, bypassed=True))
    clock.advance(2 * CLAIM_MS)
    assert [each.key for each in SessionTable(clock, file=file).bypassed()] == ["s"]
    assert SessionTable(clock, file=file).find("s") is None
    clock = SetClock()
    table = SessionTable(clock, file=file)
    known = table.enter("s", None)
    assert (known.known, known.session.bypassed) == (True, True)
    written(table.bypass(known.session, bypassed=False))
    assert SessionTable(clock, file=file).bypassed() == []


def test_a_file_that_cannot_be_written_is_tried_again_with_the_next_change(tmp_path: Path) -> None:
    clock, file = SetClock(), tmp_path / "none" / "claims.json"
    table = SessionTable(clock, file=file)
    entry = table.enter("s", None)
    lost = table.bypass(entry.session, bypassed=True)
    assert lost is not None
    assert lost.result(60) is False
    assert entry.session.bypassed, "it holds as long as this process"
    file.parent.mkdir()
    written(table.bypass(entry.session, bypassed=True))
    assert SessionTable(clock, file=file).bypassed() != []


def test_each_minute_of_a_claimed_session_is_stored(tmp_path: Path) -> None:
    clock, file = SetClock(), tmp_path / "claims.json"
    table = SessionTable(clock, file=file)
    for _ in range(20):
        entry = table.enter("s", "plugin")
        active = entry.session.active_ms
        written(entry.stored)
        found = SessionTable(clock, file=file).find("s")
        assert found is not None
        assert active - found.active_ms < 60_000
        clock.advance(25_000)


@pytest.mark.parametrize("content", ["", "[]", "{", "null", '[["s"]]', '[["s", 1, 2, "a", 3, null]]', "\0"])
def test_a_file_of_claims_in_another_form_counts_as_none(tmp_path: Path, content: str) -> None:
    file = tmp_path / "claims.json"
    file.write_text(content)
    table = SessionTable(SetClock(), file=file)
    assert len(table) == 0
    written(table.enter("s", "plugin").stored)
    assert len(SessionTable(SetClock(), file=file)) == 1


@pytest.mark.parametrize(
    "kind", ["fifo", "directory", "link to a device", "garbage", "not UTF-8", "nested", "other JSON"]
)
def test_a_file_of_claims_that_cannot_be_read_is_a_table_without_claims(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "claims.json"
    if kind == "fifo":
        os.mkfifo(file)
    elif kind == "directory":
        file.mkdir()
    elif kind == "link to a device":
        file.symlink_to("/dev/zero")
    else:
        texts = {"garbage": b"x", "not UTF-8": b'[{"key": "\xff"}]', "nested": b"[" * 100_000, "other JSON": b"[1, 2]"}
        file.write_bytes(texts[kind])
    assert len(SessionTable(SetClock(), file=file)) == 0
