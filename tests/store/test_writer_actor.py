"""The writer actor between its mailbox and its database: refusals, housekeeping and missing files."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from signet_actors.config.schema import AgentsConfig, Config, RosterEntry, WriterConfig
from signet_actors.errors import ActorExit, ErrorCode, ExitCode
from signet_actors.protocol.backups import AdvanceBackup
from signet_actors.protocol.control import WalPressure
from signet_actors.protocol.leases import ReapLeases
from signet_actors.protocol.message import Idempotency, Principal
from signet_actors.protocol.writer import (
    ForgetMemory,
    Forgotten,
    GetWriterStatus,
    Remember,
    Remembered,
    ReportDamage,
    TouchMemories,
    WriterStatus,
    WritesDisabled,
)
from signet_actors.store.sqlite import connect
from signet_actors.store.sqlite.connect import open_writer
from signet_actors.writer import disk_failure, wal_checkpointer
from tests.support.store_room import Asked, remembering
from tests.support.writer_script import ScriptedWriter


def sent(command: Any, message_id: str = "m", *, attempt: int = 1) -> Asked:
    asked = Asked(command, message_id)
    asked.header = msgspec.structs.replace(asked.header, attempt=attempt)
    return asked


def handle(scripted: ScriptedWriter, *batch: Asked) -> None:
    scripted.writer.handle(list(batch))  # type: ignore[arg-type]


def note(text: str, **fields: Any) -> Remember:
    return remembering(text, **fields)[0]


@pytest.fixture
def scripted(tmp_path: Path) -> Any:
    scripted = ScriptedWriter(tmp_path)
    scripted.start()
    yield scripted
    scripted.abandon()


def test_damage_reported_in_a_batch_refuses_the_batch_and_keeps_the_writer_running(scripted: ScriptedWriter) -> None:
    before, reported, after = sent(note("before"), "1"), sent(ReportDamage("page 7 is torn"), "2"), sent(note("x"), "3")
    asked = sent(GetWriterStatus(), "4")
    handle(scripted, before, reported, after, asked)
    assert isinstance(reported.answer, WritesDisabled)
    assert isinstance(asked.answer, WriterStatus)
    assert "page 7 is torn" in asked.answer.damage
    assert [refused.answer.code for refused in (before, after)] == [ErrorCode.NOT_APPLIED] * 2
    assert scripted.writer.tick() is None


def test_on_a_damaged_store_a_retry_has_an_unknown_outcome(scripted: ScriptedWriter) -> None:
    keyed = note("keyed", idempotency=Idempotency("key", "digest"))
    first, held = sent(note("kept"), "1"), sent(keyed, "2")
    handle(scripted, first, held)
    assert isinstance(first.answer, Remembered)
    handle(scripted, sent(ReportDamage("page 7 is torn"), "3"))
    retry, by_key, new = sent(note("kept"), "1", attempt=2), sent(keyed, "4"), sent(note("new"), "5")
    handle(scripted, retry, by_key, new)
    assert retry.answer.code is ErrorCode.OUTCOME_UNKNOWN
    assert by_key.answer.code is ErrorCode.OUTCOME_UNKNOWN
    assert "restore" in by_key.answer.detail
    assert new.answer.code is ErrorCode.NOT_APPLIED


def test_a_writer_started_on_a_full_disk_can_forget_and_recovers_when_there_is_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config(writer=WriterConfig(ballast_bytes=1 << 20))
    earlier = ScriptedWriter(tmp_path, config=config)
    earlier.start()
    kept = sent(note("kept"))
    handle(earlier, kept)
    earlier.abandon()
    assert earlier.workspace.disk_reserve_file.exists()

    def open_full(path: Path, **options: Any) -> apsw.Connection:
        connection = open_writer(path, **options)
        connection.pragma("max_page_count", connection.pragma("page_count"))
        return connection

    roster = tuple(RosterEntry(f"agent-{number}-{'x' * 40}", "isolated") for number in range(200))
    scripted = ScriptedWriter(tmp_path, config=Config(writer=config.writer, agents=AgentsConfig(roster)))
    monkeypatch.setattr("tests.support.writer_script.open_writer", open_full)
    scripted.start()
    try:
        refused = sent(note("another"), "2")
        handle(scripted, refused)
        assert refused.answer.code is ErrorCode.STORAGE_FULL
        assert not scripted.workspace.disk_reserve_file.exists(), "the reserve is for what frees space"

        scripted.connection.pragma("max_page_count", 1 << 20)
        forgotten = sent(ForgetMemory(id=kept.answer.id, reason="room", principal=Principal()), "3")
        handle(scripted, forgotten)
        assert isinstance(forgotten.answer, Forgotten)
        scripted.clock.advance(2000)
        scripted.writer.tick()
        scripted.writer.tick()
        policies = scripted.connection.execute("SELECT count(*) FROM agents WHERE read_policy = 'isolated'").get
        assert policies == len(roster), "who may read what holds as soon as it can be written"
        copying = sent(AdvanceBackup("memories-20260101T000000000Z-schema-1.db"), "4")
        handle(scripted, copying)
        assert copying.answer.state == "copying", copying.answer.detail
    finally:
        scripted.writer.drain()
        scripted.release()


def test_a_batch_is_completed_when_the_supervisor_has_exited(
    scripted: ScriptedWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def orphaned() -> None:
        raise ActorExit(ExitCode.GIVE_UP, "the supervisor is gone")

    monkeypatch.setattr(scripted.writer.loop, "heartbeat", orphaned, raising=False)
    monkeypatch.setattr(connect, "_HEARTBEAT_STEPS", 1)
    connect.report_progress(scripted.connection, scripted.writer._send_row_heartbeat)
    batch = [sent(note(f"note {number}"), f"{number}") for number in range(3)]
    handle(scripted, *batch)
    assert [type(asked.answer) for asked in batch] == [Remembered] * 3
    assert scripted.connection.execute("SELECT count(*) FROM memories").get == 3


def test_damage_reported_of_a_truncated_database_counts_as_truncation(scripted: ScriptedWriter) -> None:
    handle(scripted, sent(note("stored"), "1"))
    os.truncate(scripted.path, 0)
    handle(scripted, sent(ReportDamage("database disk image is malformed"), "2"))
    assert scripted.writer.damage is None
    assert "truncated" in str(scripted.writer.displacement)
    refused = sent(note("afterwards"), "3")
    handle(scripted, refused)
    assert refused.answer.code is ErrorCode.NOT_APPLIED


@pytest.mark.parametrize("failure", [errno.EIO, errno.EROFS])
def test_damage_reported_while_the_disk_fails_is_a_failure_of_the_disk(
    scripted: ScriptedWriter, monkeypatch: pytest.MonkeyPatch, failure: int
) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(failure, os.strerror(failure))

    monkeypatch.setattr(disk_failure.os, "fsync", fail)
    before, reported = sent(note("before"), "1"), sent(ReportDamage("database disk image is malformed"), "2")
    with pytest.raises(ActorExit, match=os.strerror(failure)) as stopped:
        handle(scripted, before, reported)
    assert stopped.value.exit_code is ExitCode.IO_ERROR
    assert not reported.answered
    assert scripted.writer.damage is None


def test_a_slow_commit_sends_heartbeats_until_one_row_takes_too_long(
    scripted: ScriptedWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    beats: list[int] = []

    def a_second_passes() -> None:
        beats.append(scripted.clock.monotonic_ns())
        scripted.clock.advance(1000)

    monkeypatch.setattr(scripted.writer.loop, "heartbeat", a_second_passes, raising=False)
    handle(scripted, *(sent(note(f"note {number}"), f"{number}") for number in range(30)))
    assert len(beats) >= 30, "each row is progress"

    beats.clear()
    scripted.writer._row_began_ns = scripted.clock.monotonic_ns()
    for _ in range(30):
        scripted.writer._send_row_heartbeat()  # as within one statement
    assert len(beats) == 10


def test_readers_are_asked_once_to_end_snapshots_and_not_after_the_checkpoint(
    scripted: ScriptedWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[WalPressure] = []
    monkeypatch.setattr(scripted.writer.loop, "tell_supervisor", told.append, raising=False)
    monkeypatch.setattr(wal_checkpointer, "RESTART_BYTES", 4096)
    monkeypatch.setattr(wal_checkpointer, "END_SNAPSHOTS_BYTES", 4096)
    monkeypatch.setattr(wal_checkpointer, "KILL_READERS_BYTES", 4096)
    handle(scripted, sent(note("a commit of some pages")))
    for _ in range(3):
        scripted.writer.tick()
    assert [pressure.severe for pressure in told] == [True, False], "asked, and those that began anew asked once more"


def test_erased_text_left_in_the_log_is_removed_after_the_start(tmp_path: Path) -> None:
    earlier = ScriptedWriter(tmp_path)
    earlier.start()
    handle(earlier, sent(note("a text that will be erased")))
    log = earlier.path.with_name(f"{earlier.path.name}-wal")
    earlier.abandon()
    assert b"a text that will be erased" in log.read_bytes()
    scripted = ScriptedWriter(tmp_path)
    scripted.start()
    try:
        scripted.writer.tick()
        assert not log.stat().st_size
    finally:
        scripted.abandon()


def test_a_short_deadline_of_a_periodic_command_does_not_shorten_the_wait_of_other_writes(tmp_path: Path) -> None:
    scripted = ScriptedWriter(tmp_path)
    scripted.start()
    limits = scripted.config.writer
    now_ns = scripted.clock.monotonic_ns()
    waited_ms = 0.0

    def sleep(seconds: float) -> None:
        nonlocal waited_ms
        waited_ms += seconds * 1000
        scripted.clock.advance(max(1, round(seconds * 1000)))
        if waited_ms >= limits.busy_timeout_ms / 2 and foreign.in_transaction:
            foreign.execute("ROLLBACK")

    write, duty = sent(note("patient"), "1"), sent(ReapLeases(), "2")
    for asked, timeout_ms in ((write, limits.request_timeout_ms), (duty, 2000)):
        asked.header = msgspec.structs.replace(asked.header, deadline_ns=now_ns + timeout_ms * 1_000_000)
    foreign = apsw.Connection(str(scripted.path))
    try:
        foreign.execute("BEGIN IMMEDIATE")
        scripted.writer.busy_handler._sleep = sleep
        handle(scripted, write, duty)
        assert isinstance(write.answer, Remembered), write.answer
    finally:
        foreign.close()
        scripted.abandon()


def test_damage_found_by_housekeeping_causes_a_full_check_at_the_next_start(
    scripted: ScriptedWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def torn(*_: Any) -> None:
        raise apsw.CorruptError("database disk image is malformed")

    handle(scripted, sent(TouchMemories(("a memory",))))
    assert scripted.writer.group is not None
    monkeypatch.setattr(type(scripted.writer.group.touches), "flush", torn)
    scripted.clock.advance(61_000)
    with pytest.raises(ActorExit):
        scripted.writer.tick()
    assert scripted.workspace.integrity_check_file.exists()


def test_the_writer_refuses_everything_while_its_database_is_missing_and_exits_when_it_is_back(
    scripted: ScriptedWriter,
) -> None:
    away = scripted.path.with_name("away.db")
    assert scripted.writer.counters()["displaced"] == 0
    scripted.path.rename(away)
    handle(scripted, refused := sent(note("while it is away")))
    assert refused.answer.code is ErrorCode.NOT_APPLIED
    assert scripted.writer.counters()["displaced"] == 1
    next_s = scripted.writer.tick()
    assert next_s is not None
    assert next_s <= 1
    away.rename(scripted.path)
    with pytest.raises(ActorExit) as leaving:
        scripted.writer.tick()
    assert leaving.value.exit_code == ExitCode.IO_ERROR


@pytest.mark.parametrize("name", ["memories.db", "memories.db-wal"])
def test_nothing_is_applied_after_a_file_was_truncated_even_if_it_grows_again(
    scripted: ScriptedWriter, name: str
) -> None:
    handle(scripted, sent(note("before"), "1"))
    path = scripted.path.with_name(name)
    whole = path.read_bytes()
    os.truncate(path, 1000)
    handle(scripted, refused := sent(note("into the rest"), "2"))
    assert refused.answer.code is ErrorCode.NOT_APPLIED
    assert str(path) in refused.answer.detail
    assert path.stat().st_size == 1000, "the rest is evidence"
    counters = scripted.writer.counters()
    assert (counters["displaced"], counters["truncated"]) == (1, 1)
    path.write_bytes(whole)
    assert scripted.writer.tick() is not None
    handle(scripted, refused := sent(note("into the copy"), "3"))
    assert refused.answer.code is ErrorCode.NOT_APPLIED


@pytest.mark.parametrize("statement", ["PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA wal_checkpoint(RESTART)", "VACUUM"])
def test_a_file_truncated_by_sqlite_is_in_order(scripted: ScriptedWriter, statement: str) -> None:
    for number in range(40):
        handle(scripted, sent(note(f"{number} " + "long text " * 2000), f"a{number}"))
    scripted.connection.execute("DELETE FROM memories WHERE content NOT LIKE '0 %'")
    before = scripted.path.stat().st_size
    other = apsw.Connection(str(scripted.path))
    other.execute(statement)
    other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    other.close()
    assert statement != "VACUUM" or scripted.path.stat().st_size != before
    for number in range(3):
        handle(scripted, stored := sent(note(f"afterwards {number}"), f"b{number}"))
        assert isinstance(stored.answer, Remembered)
        scripted.writer.tick()
    assert scripted.writer.counters()["displaced"] == 0


def test_a_database_that_the_writer_vacuumed_and_checkpointed_is_in_order(scripted: ScriptedWriter) -> None:
    for number in range(40):
        handle(scripted, sent(note(f"{number} " + "long text " * 2000), f"a{number}"))
    assert scripted.writer.wal is not None
    scripted.writer.wal.truncate()
    handle(scripted, sent(note("a look at the size"), "b"))
    before = scripted.path.stat().st_size
    scripted.connection.execute("DELETE FROM memories WHERE content LIKE '% long text%'")
    scripted.connection.execute("PRAGMA incremental_vacuum").fetchall()
    scripted.writer.wal.truncate()
    assert scripted.path.stat().st_size < before
    for number in range(3):
        handle(scripted, stored := sent(note(f"afterwards {number}"), f"c{number}"))
        assert isinstance(stored.answer, Remembered)
