"""The writer between its mailbox and its database: what it answers when it must refuse, and what it does unasked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from signet_actors.config.schema import Config, WriterConfig
from signet_actors.errors import ActorExit, ErrorCode, ExitCode
from signet_actors.protocol.message import Failure
from signet_actors.protocol.writer import (
    DamageNoted,
    GetWriterStatus,
    Idempotency,
    Remember,
    Remembered,
    ReportDamage,
    WriterStatus,
)
from signet_actors.store.connect import open_reader
from tests.support.store_room import Asked, remembering
from tests.support.writer_life import Life


def sent(command: Any, message_id: str = "m", *, attempt: int = 1) -> Asked:
    asked = Asked(command, message_id)
    asked.header = msgspec.structs.replace(asked.header, attempt=attempt)
    return asked


def handle(life: Life, *batch: Asked) -> None:
    life.writer.handle(list(batch))  # type: ignore[arg-type]


def note(text: str, **fields: Any) -> Remember:
    return remembering(text, **fields)[0]


@pytest.fixture
def life(tmp_path: Path) -> Any:
    life = Life(tmp_path)
    life.start()
    yield life
    life.abandon()


def test_damage_that_is_reported_among_other_commands_refuses_them_and_ends_nothing(life: Life) -> None:
    before, reported, after = sent(note("before"), "1"), sent(ReportDamage("page 7 is torn"), "2"), sent(note("x"), "3")
    asked = sent(GetWriterStatus(), "4")
    handle(life, before, reported, after, asked)
    assert isinstance(reported.answer, DamageNoted)
    assert isinstance(asked.answer, WriterStatus)
    assert "page 7 is torn" in asked.answer.damage
    assert [refused.answer.code for refused in (before, after)] == [ErrorCode.NOT_APPLIED] * 2
    assert life.writer.tick() is None


def test_a_damaged_store_never_says_of_a_retry_that_nothing_was_applied(life: Life) -> None:
    keyed = note("keyed", idempotency=Idempotency("key", "digest"))
    first, held = sent(note("kept"), "1"), sent(keyed, "2")
    handle(life, first, held)
    assert isinstance(first.answer, Remembered)
    handle(life, sent(ReportDamage("page 7 is torn"), "3"))
    retry, by_key, new = sent(note("kept"), "1", attempt=2), sent(keyed, "4"), sent(note("new"), "5")
    handle(life, retry, by_key, new)
    assert retry.answer.code is ErrorCode.OUTCOME_UNKNOWN
    assert by_key.answer.code is ErrorCode.OUTCOME_UNKNOWN
    assert "restore" in by_key.answer.detail
    assert new.answer.code is ErrorCode.NOT_APPLIED
