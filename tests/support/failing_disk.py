"""Run the real writer on a disk that fails, and check its answers and the contents of the disk afterwards.

Source: docs/reliability.md R3, R4 and "The writer's loop".
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from signet_actors.config.schema import Config, WriterConfig
from signet_actors.errors import ActorExit, ErrorCode, ExitCode
from signet_actors.protocol.message import Failure
from signet_actors.store.sqlite.reader import SqliteReads
from signet_actors.writer import idempotency
from tests.support.faulty_vfs import Fault, FaultyVFS
from tests.support.power_cut import unsound
from tests.support.store_room import SetClock
from tests.support.writer_script import Booked, Ledger, Script, ScriptedWriter

_LATER_MS = 1_767_225_700_000
TURNS = ("batch", "housekeep", "passive", "batch", "restart", "batch", "truncate")
SMALL_BATCHES = Config(writer=WriterConfig(ballast_bytes=0, reply_retention_ms=60_000, batch_limit=4))
"""Splits a batch into several transactions, so that a disk failure in one leaves commands that were not started."""


@dataclass
class Outcome:
    """Result of one fault. ``fired``: how often the disk failed; ``left``: the exit code of each incarnation that
    ended.
    """

    fired: int = 0
    left: list[int] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    codes: set[str] = field(default_factory=set)


def prepare(root: Path, seed: int = 3) -> Ledger:
    """Create a database as a killed writer leaves it: with memories, and with a log that needs recovery."""
    ledger, script = Ledger(), Script(seed)
    scripted = ScriptedWriter(root, seed=seed)
    scripted.start()
    for _ in range(8):
        scripted.work("batch", script, ledger)
    killed = root.with_name(f"{root.name}-killed")
    shutil.copytree(scripted.path.parent, killed)
    scripted.abandon()
    shutil.rmtree(scripted.path.parent)
    killed.rename(scripted.path.parent)
    for path in scripted.path.parent.glob("*-shm"):
        path.unlink()
    assert scripted.path.with_name("memories.db-wal").stat().st_size > 0
    return ledger


def run_with_fault(
    fault: Fault, template: Path, before: Ledger, root: Path, vfs: FaultyVFS, *, seed: int = 11
) -> Outcome:
    """Run a writer under ``fault`` from its start, then a second one on a working disk."""
    shutil.copytree(template, root)
    outcome, ledger, script = Outcome(), before.copy(), Script(seed)
    scripted = ScriptedWriter(root, seed=seed, vfs=vfs.name, config=SMALL_BATCHES, clock=SetClock(_LATER_MS))
    vfs.arm(fault)
    try:
        scripted.start()
        for turn, kind in enumerate(TURNS):
            if turn % 3 == 0:
                scripted.connection.execute("PRAGMA shrink_memory")  # so that the next commands read from the disk
            scripted.work(kind, script, ledger)
            outcome.codes |= {answer_code(item) for item in scripted.sent}
            if scripted.writer.group is not None and scripted.writer.group.storage_full and fault.stays:
                outcome.fired += vfs.fired
                vfs.arm(None)  # free space again: the writer must notice on its own
                scripted.clock.advance(1000)
                scripted.writer.tick()
                if scripted.writer.group.storage_full:
                    outcome.wrong.append("room again, and still full")
        scripted.writer.drain()
    except ActorExit as leaving:
        outcome.left.append(leaving.exit_code)
        if leaving.exit_code != ExitCode.IO_ERROR:
            outcome.wrong.append(f"left with {leaving.exit_code}: {leaving.detail}")
        outcome.codes |= {answer_code(item) for item in scripted.sent if item.answers}
    outcome.fired += vfs.fired
    outcome.wrong += [f"{len(item.answers)} answers to {item.body}" for item in scripted.sent if len(item.answers) != 1]
    scripted.abandon()  # the disk also fails for whatever the connection does while it closes
    vfs.arm(None)
    outcome.wrong += check_afterwards(scripted, ledger)
    shutil.rmtree(root)
    return outcome


def check_afterwards(failed: ScriptedWriter, ledger: Ledger) -> list[str]:
    """Return what is wrong on the disk after ``failed`` with its answers in ``ledger``. Retries unknown outcomes."""
    scripted = ScriptedWriter(failed.workspace.root, seed=99, clock=failed.clock)
    scripted.start()
    try:
        wrong = ledger.broken_by(scripted.connection)
        unknown = [item for item in failed.sent if item.answers and unknown_outcome(item)]
        for start in range(0, len(failed.sent), SMALL_BATCHES.writer.batch_limit):
            together = [
                item for item in failed.sent[start : start + SMALL_BATCHES.writer.batch_limit] if item in unknown
            ]
            kept = sum(reply_kept(scripted, item) for item in together)
            if kept not in (0, len(together)):
                wrong.append(f"{kept} of {len(together)} commands of one transaction are applied")
        ledger.uncertain.clear()
        for item in unknown:
            scripted.writer.handle([retry := item.again()])  # type: ignore[list-item]
            if isinstance(retry.answer, Failure):
                wrong.append(f"the retry was answered {retry.answer}")
        wrong += ledger.broken_by(scripted.connection)
        wrong += unsound(scripted.connection, scripted.path)
    finally:
        scripted.abandon()
    return wrong


def unknown_outcome(item: Booked) -> bool:
    return isinstance(item.answer, Failure) and item.answer.code is ErrorCode.OUTCOME_UNKNOWN


def answer_code(item: Booked) -> str:
    """Return the code of an error, or an empty string."""
    return item.answer.code.value if isinstance(item.answer, Failure) else ""


def reply_kept(scripted: ScriptedWriter, item: Booked) -> bool:
    key, digest = idempotency.request_key(item.header, idempotency.client_key(item.body))
    return idempotency.earlier_reply(SqliteReads(scripted.connection), key, digest) is not None


def every_fault(kind: str, error: str, *, stays: bool) -> Iterator[Fault]:
    """Yield faults of the first, second, … operation of ``kind``. The caller stops at the first that never fired."""
    return (Fault(kind, nth, error, stays) for nth in itertools.count(1))
