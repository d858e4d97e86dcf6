"""The bytes that one commit erases or receives are limited, and a command ends at most two writers.

Source: docs/reliability.md R14, R21, R23, R27.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from signet_actors.errors import ErrorCode
from signet_actors.protocol.message import Failure, Idempotency, Principal
from signet_actors.protocol.writer import ForgetMany, ForgetMemory, ForgetTarget, ManyForgotten, PurgeStep, Remembered
from signet_actors.writer.byte_budget import ERASED_BYTES
from tests.support.store_room import Asked, StoreRoom, remembering
from tests.support.writer_script import ScriptedWriter

REPOSITORY = Path(__file__).parents[2]
LATER = "2026-03-01T00:00:00.000Z"
EVENT_BYTES = 600_000
EVENTS = 40
LOG_BYTES = 3 * ERASED_BYTES
"""A commit may write the pages that it erases, and a few others."""


def with_long_history(room: StoreRoom, content: str) -> str:
    """Store a memory whose history holds ``EVENTS`` long texts; return its id."""
    memory = room.remember(content)
    for number in range(EVENTS):
        room.connection.execute(
            "INSERT INTO memory_history (id, memory_id, event, old_content, changed_by, created_at)"
            " VALUES (?, ?, 'none', ?, 'test', '2026-01-01T00:00:00.000Z')",
            (f"{memory.id}-{number}", memory.id, f"secret {number} " + "x" * EVENT_BYTES),
        )
    return memory.id


def left(room: StoreRoom, memory_id: str) -> int:
    """Return how many events of the memory still have content."""
    sql = "SELECT count(*) FROM memory_history WHERE memory_id = ? AND coalesce(old_content, new_content) IS NOT NULL"
    return int(room.value(sql, memory_id))


def log_of(room: StoreRoom, command: Any) -> tuple[Any, int]:
    """Return the reply, and the length of the log that its commit wrote."""
    room.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    reply = room.ask(command)
    return reply, room.path.with_name(room.path.name + "-wal").stat().st_size


def test_a_memory_with_a_long_history_is_erased_in_bounded_commits_and_reported_deleted_at_the_end(
    room: StoreRoom,
) -> None:
    memory_id = with_long_history(room, "the journal")
    command = ForgetMany((ForgetTarget(memory_id, 1),), "r", Principal(), hard=True, idempotency=Idempotency("k", "d"))
    commits = 0
    while True:
        reply, log_bytes = log_of(room, command)
        commits += 1
        assert log_bytes < LOG_BYTES
        if reply.results:
            break
        assert reply.remaining == [ForgetTarget(memory_id, 1)]
        assert left(room, memory_id) > 0
        assert room.value("SELECT count(*) FROM memories") == 1
    assert commits > EVENTS * EVENT_BYTES // (2 * ERASED_BYTES)
    assert ([result.status for result in reply.results], reply.remaining) == (["deleted"], [])
    assert left(room, memory_id) == 0
    assert room.ask(command) == reply, "the retry gets the stored reply"


def test_finished_targets_are_reported_and_the_others_remain(room: StoreRoom) -> None:
    short = room.remember("a short one").id
    long = with_long_history(room, "a long one")
    targets = (ForgetTarget(short), ForgetTarget(long))
    reply = room.ask(ForgetMany(targets, "r", Principal(), hard=True))
    assert ([result.id for result in reply.results], reply.remaining) == ([short], [ForgetTarget(long)])


def test_forgetting_many_long_memories_takes_several_commits(room: StoreRoom) -> None:
    ids = [room.remember(f"{number} " + "word " * 100_000).id for number in range(4)]
    targets: tuple[ForgetTarget, ...] = tuple(ForgetTarget(memory_id) for memory_id in ids)
    done: list[str] = []
    commits = 0
    while targets:
        reply: ManyForgotten = room.ask(ForgetMany(targets, "r", Principal()))
        done += [result.id for result in reply.results]
        targets = tuple(reply.remaining)
        commits += 1
    assert (done, commits > 1) == (ids, True)


@pytest.mark.parametrize("step", ["tombstones", "history"])
def test_a_purge_step_is_bounded_in_bytes_and_reports_more(room: StoreRoom, step: str) -> None:
    memory_id = with_long_history(room, "the journal")
    room.ask(ForgetMemory(id=memory_id, reason="r", principal=Principal()))
    rows = room.connection.execute("SELECT * FROM memory_history WHERE event <> 'none'").fetchall()
    more, steps = True, 0
    while more:
        reply, log_bytes = log_of(room, PurgeStep(step=step, cutoff=LATER, limit=500))
        assert log_bytes < LOG_BYTES
        more, steps = reply.more, steps + 1
        if more:
            assert left(room, memory_id) > 0
    assert steps > EVENTS * EVENT_BYTES // (2 * ERASED_BYTES)
    assert left(room, memory_id) == 0
    if step == "history":  # put the events back for the invariants
        marks = ", ".join("?" * len(rows[0]))
        for row in rows:
            room.connection.execute(f"INSERT INTO memory_history VALUES ({marks})", row)


def test_a_batch_with_many_bytes_is_committed_in_parts(tmp_path: Path) -> None:
    scripted = ScriptedWriter(tmp_path)
    scripted.start()
    asked = [Asked(remembering(f"note {number}")[0], f"m{number}") for number in range(6)]
    for item in asked:
        item.nbytes = 400_000
    commits = scripted.writer.group.metrics.commits  # type: ignore[union-attr]
    scripted.writer.handle(asked)  # type: ignore[arg-type]
    assert scripted.writer.group.metrics.commits - commits == 3  # type: ignore[union-attr]
    assert all(isinstance(item.answer, Remembered) for item in asked)
    scripted.abandon()


DIE = """
import sys
from pathlib import Path

import msgspec

from signet_actors.runtime import sync_points
from tests.support.store_room import Asked, remembering
from tests.support.writer_script import ScriptedWriter

scripted = ScriptedWriter(Path(sys.argv[1]))
scripted.start()
sync_points.arm("writer.mid_batch=kill@2")
batch = [Asked(remembering(text)[0], text) for text in ("innocent", "poison", "bystander")]
for item in batch:
    item.header = msgspec.structs.replace(item.header, attempt=int(sys.argv[2]))
scripted.writer.handle(batch)
"""


def test_a_command_on_which_two_writers_ended_is_refused_by_the_third_and_no_other_is(tmp_path: Path) -> None:
    for attempt in (1, 2):
        died = subprocess.run([sys.executable, "-c", DIE, str(tmp_path), str(attempt)], cwd=REPOSITORY, check=False)
        assert died.returncode == -signal.SIGKILL
    scripted = ScriptedWriter(tmp_path)
    scripted.start()
    batch = [Asked(remembering(text)[0], text) for text in ("innocent", "poison", "bystander")]
    for item in batch:
        item.header = msgspec.structs.replace(item.header, attempt=3)
    scripted.writer.handle(batch)  # type: ignore[arg-type]
    innocent, poison, bystander = (item.answer for item in batch)
    assert isinstance(innocent, Remembered)
    assert isinstance(bystander, Remembered)
    assert isinstance(poison, Failure)
    assert (poison.code, "nothing was applied" in poison.detail) == (ErrorCode.NOT_APPLIED, True)
    contents = {row[0] for row in scripted.connection.execute("SELECT content FROM memories")}
    assert contents == {"innocent", "bystander"}
    again = Asked(remembering("poison")[0], "poison")  # the client's own retry, later
    scripted.writer.handle([again])  # type: ignore[list-item]
    assert isinstance(again.answer, Remembered)
    scripted.abandon()
