"""The checks of this directory detect deliberately broken stores and pass the unmodified code.

Source: docs/reliability.md "Mutation tests".
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

from signet_actors.errors import StoreIOError
from signet_actors.protocol.writer import MemoryPatch, ModifyMemory
from signet_actors.runtime.clock import Clock, SystemClock
from signet_actors.store.sqlite import connect, online_backup
from signet_actors.writer import idempotency
from signet_actors.writer.group_commit import GroupCommit
from tests.support.power_cut import DATABASE, Survivors, fast_directory, record, violations
from tests.support.store_room import Asked, StoreRoom, broken_invariants
from tests.support.writer_script import ME, Ledger, Script, ScriptedWriter

SEEDS = (1, 2)
"""A mutant must be detected within this many seeds."""
Mutate = Callable[[pytest.MonkeyPatch], None]


@pytest.fixture(scope="module")
def directory() -> Iterator[Path]:
    with fast_directory() as directory:
        yield directory


@pytest.fixture(scope="module")
def base(directory: Path) -> Path:
    record(0, directory / "base", turns=2)
    return directory / "base" / "memory" / DATABASE


def caught(found: Callable[[int], list[str]]) -> int | None:
    """Return the first seed that detects the mutant, None if none does."""
    return next((seed for seed in SEEDS if found(seed)), None)


# power cuts


def power_cuts(directory: Path, base: Path, name: str) -> Callable[[int], list[str]]:
    def found(seed: int) -> list[str]:
        images = directory / f"images-{name}-{seed}"
        images.mkdir()
        return [str(first) for first in itertools.islice(violations(seed, Survivors(images), turns=2, base=base), 1)]

    return found


def answer_before_commit(patch: pytest.MonkeyPatch) -> None:
    """Reply to every command of a batch before the batch is on disk."""
    run = GroupCommit._run

    def hasty(group: GroupCommit, session: Any, waiting: Any, **how: Any) -> Any:
        answer = run(group, session, waiting, **how)
        waiting.reply(answer)
        waiting.reply = lambda *_: None
        return answer

    patch.setattr(GroupCommit, "_run", hasty)


def synchronous_normal(patch: pytest.MonkeyPatch) -> None:
    """Do not sync the log at COMMIT."""
    opened = connect.open_writer

    def lax(path: Path, **options: Any) -> apsw.Connection:
        connection = opened(path, **options)
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection

    patch.setattr("tests.support.writer_script.open_writer", lax)


def test_the_unmodified_code_survives_the_power_cuts_of_the_mutants(directory: Path, base: Path) -> None:
    assert caught(power_cuts(directory, base, "true")) is None


@pytest.mark.parametrize("mutate", [answer_before_commit, synchronous_normal])
def test_acknowledged_writes_that_are_not_on_disk_are_detected(
    directory: Path, base: Path, monkeypatch: pytest.MonkeyPatch, mutate: Mutate
) -> None:
    mutate(monkeypatch)
    assert caught(power_cuts(directory, base, mutate.__name__)) is not None


# retries


def doubled_by_retries(directory: Path, seed: int) -> list[str]:
    """Return the differences after every command of a script is sent again to a restarted writer."""
    root = directory / f"retries-{seed}"
    ledger, script = Ledger(), Script(seed, checkpoints=False)
    scripted = ScriptedWriter(root, seed=seed)
    wrong: list[str] = []
    try:
        scripted.start()
        for _ in range(4):
            scripted.work("batch", script, ledger)
            sent = scripted.sent
            scripted.abandon()
            scripted = ScriptedWriter(root, seed=seed + 100, clock=scripted.clock)
            scripted.start()
            for item in sent:
                retry = Asked(item.body, item.header.message_id, item.frames)
                scripted.writer.handle([retry])  # type: ignore[list-item]
                if retry.answer != item.answer:
                    wrong.append(f"answered {item.answer}, then {retry.answer}")
            wrong += ledger.broken_by(scripted.connection)
        return wrong + broken_invariants(scripted.connection)
    finally:
        scripted.abandon()
        shutil.rmtree(root)


def no_reply_cache(patch: pytest.MonkeyPatch) -> None:
    """Store no reply for a retry."""
    patch.setattr(idempotency, "keep_reply", lambda *_: None)


def test_retries_on_the_unmodified_code_get_the_first_reply(directory: Path) -> None:
    assert caught(lambda seed: doubled_by_retries(directory, seed)) is None


def test_retries_with_a_second_effect_are_detected(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_reply_cache(monkeypatch)
    assert caught(lambda seed: doubled_by_retries(directory, seed)) is not None


# what the schema guards


def with_a_schema(directory: Path, spoil: str) -> list[str]:
    """Return what goes wrong with a few commands on a store whose schema was changed by ``spoil``."""
    root = directory / "schema"
    root.mkdir()
    try:
        with closing(StoreRoom(root)) as room:
            if spoil:
                room.connection.execute(spoil)
            memory = room.remember("the first text", idempotency_key="twin")
            # A second writer would not see the first one's row before its own insert: only the index detects the
            # duplicate.
            twin = "INSERT INTO memories SELECT * FROM twin"
            room.connection.execute(
                "CREATE TEMP TABLE twin AS SELECT * FROM memories; UPDATE twin SET seq = 99, id = 'twin',"
                " content_hash = 'other'"
            )
            history = (
                "INSERT INTO memory_history (id, memory_id, event, changed_by, created_at)"
                " VALUES ('h', 'twin', 'created', 'test', '')"
            )
            try:
                room.connection.execute(twin)
                room.connection.execute(history)
            except apsw.ConstraintError:
                room.connection.execute("DROP TABLE twin")
            try:
                room.ask(ModifyMemory(MemoryPatch(memory.id, "reworded", content="the second text"), ME))
                return broken_invariants(room.connection)
            except (apsw.CorruptError, StoreIOError) as error:
                return [str(error)]
    finally:
        shutil.rmtree(root)


def test_the_unmodified_schema_keeps_the_invariants(directory: Path) -> None:
    assert with_a_schema(directory, "") == []


@pytest.mark.parametrize(
    "spoil",
    ["DROP TRIGGER memories_ai", "DROP TRIGGER memories_au", "DROP INDEX idx_memories_idempotency_key_unique"],
)
def test_a_missing_trigger_or_unique_index_is_detected(directory: Path, spoil: str) -> None:
    assert with_a_schema(directory, spoil)


# backups


def lost_by_backup(directory: Path) -> list[str]:
    """Return the acknowledged writes that a later backup lacks."""
    root = directory / "backup"
    ledger, script = Ledger(), Script(5, checkpoints=False)
    scripted = ScriptedWriter(root, seed=5)
    try:
        scripted.start()
        for kind in ("batch", "batch", "passive", "batch", "batch"):
            scripted.work(kind, script, ledger)
        online_backup.backup(scripted.connection, root / "copy.db", SystemClock())
        with closing(connect.open_writer(root / "copy.db", busy=lambda calls: False)) as copy:
            return ledger.broken_by(copy) + broken_invariants(copy)
    finally:
        scripted.abandon()
        shutil.rmtree(root)


def test_the_unmodified_backup_contains_everything(directory: Path) -> None:
    assert lost_by_backup(directory) == []


def test_a_backup_by_copying_the_file_is_detected(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def copied(connection: apsw.Connection, target: Path, _clock: Clock) -> None:
        shutil.copyfile(connection.filename, target)

    monkeypatch.setattr(online_backup, "backup", copied)
    assert lost_by_backup(directory)


# readers


def changed_by_reader(directory: Path) -> list[str]:
    """Return the changes that a reader's connection makes to the files: it must not checkpoint, neither on request nor
    at close.
    """
    root = directory / "reader"
    root.mkdir()
    try:
        room = StoreRoom(root)
        room.reader.close()
        for number in range(20):
            room.remember(f"memory {number}")
        room.connection.close()
        before = room.path.read_bytes()
        with closing(connect.open_reader(room.path)) as reader:
            assert reader.execute("SELECT count(*) FROM memories").get == 20
            with suppress(apsw.Error):
                reader.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        return [] if room.path.read_bytes() == before else ["a reader wrote the database"]
    finally:
        shutil.rmtree(root)


def test_the_unmodified_reader_does_not_change_the_files(directory: Path) -> None:
    assert changed_by_reader(directory) == []


def test_a_query_only_reader_is_detected(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def query_only(path: Path, *, cache_kib: int = 0) -> apsw.Connection:
        connection = apsw.Connection(str(path))
        connection.execute("PRAGMA query_only = ON")
        return connection

    monkeypatch.setattr(connect, "open_reader", query_only)
    assert changed_by_reader(directory)
