"""A real database with the real group commit and reader, in one process, with a clock that tests set."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import apsw
import numpy as np
import structlog
from msgspec import structs

from signet_actors.config.schema import AgentsConfig, Config, RosterEntry
from signet_actors.features.checkpoints.api import RecordCheckpoint, StoredCheckpoint
from signet_actors.features.checkpoints.rules import normalized_project
from signet_actors.protocol.header import Header
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Failure, Idempotency, Principal
from signet_actors.protocol.searcher import Recall, Recalled
from signet_actors.protocol.writer import NewMemory, Remember, Remembered, Vector
from signet_actors.searcher.reader import Reader
from signet_actors.searcher.within import recall_within
from signet_actors.store.command_context import CommandContext, RowCache
from signet_actors.store.engine import Engine, ReaderEngine, WriterEngine
from signet_actors.store.sqlite.checks import scrub
from signet_actors.store.sqlite.reader import SqliteEngine, read_engine
from signet_actors.store.sqlite.writer import write_engine
from signet_actors.store.writes import agents, store_meta
from signet_actors.writer.group_commit import GroupCommit

MODEL = "test-model"
DIMENSIONS = 8


class SetClock:
    """A wall clock and a monotonic clock that move only on request."""

    def __init__(self, wall_ms: int = 1_767_225_600_000) -> None:  # 2026-01-01T00:00:00Z
        self.wall = wall_ms
        self.mono_ns = 1_000_000_000

    def wall_ms(self) -> int:
        return self.wall

    def monotonic_ns(self) -> int:
        return self.mono_ns

    def advance(self, ms: int) -> None:
        self.wall += ms
        self.mono_ns += ms * 1_000_000


class Asked:
    """A pending command that stores its reply."""

    def __init__(self, body: Any, message_id: str, frames: Sequence[bytes] = ()) -> None:
        self.body = body
        self.frames = list(frames)
        self.nbytes = sum(map(len, self.frames))
        self.header = Header(message_id, "trace", "test", 1, 0, 1, "boot")
        self.answers: list[Any] = []

    def reply(self, body: Any, frames: Sequence[bytes] = ()) -> None:
        self.answers.append(body)

    def expired(self, now_ns: int) -> bool:
        return 0 < self.header.deadline_ns <= now_ns

    @property
    def answered(self) -> bool:
        return bool(self.answers)

    @property
    def answer(self) -> Any:
        (only,) = self.answers
        return only


class OpenEngine(NamedTuple):
    """How a test opens a database of one engine."""

    for_writing: Callable[[Path], WriterEngine]
    for_reading: Callable[[Path], ReaderEngine]


ENGINES = {"sqlite": OpenEngine(lambda path: write_engine(path, busy=lambda calls: False), read_engine)}
DEFAULT_ENGINE = "sqlite"


def connection_of(engine: Engine) -> Any:
    """Return the connection of a SQLite engine, for statements of a test."""
    assert isinstance(engine, SqliteEngine)
    return engine._connection


class _AnyName(dict[str, str]):
    """The same value for each name that a statement has."""

    def __missing__(self, key: str) -> str:
        return "[]"


def plan_of(connection: Any, sql: str) -> list[str]:
    """Return the steps of SQLite's plan for the statement, whatever is bound."""
    bindings: Any = ("",) * sql.count("?") if "?" in sql else _AnyName()
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", bindings)]


@cache
def new_database(engine: str) -> bytes:
    """Return the file of a database without memories: applying every migration takes longer than most tests."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "memories.db"
        made = ENGINES[engine].for_writing(path)
        made.migrate(path, SetClock(), progress=lambda _: None, heartbeat=lambda: None, keep=7)
        with made.begin() as tx:
            store_meta.put_if_new(tx, "database_id", "test-database")
            tx.commit()
        connection_of(made).wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        made.close()
        return path.read_bytes()


R = TypeVar("R", bound="StoreRoom")


class StoreRoom:
    """Writer and reader of one database. ``ask`` commits one command and returns its reply."""

    def __init__(self, directory: Path, *, config: Config | None = None, engine: str = DEFAULT_ENGINE) -> None:
        self.path = directory / "memories.db"
        self._open = ENGINES[engine]
        self.index_dir = directory / "index"
        self.clock = SetClock()
        self.config = config or Config()
        if not self.path.exists():
            self.path.write_bytes(new_database(engine))
            self.path.chmod(0o600)
        self.engine = self._open.for_writing(self.path)
        self.group = GroupCommit(self.engine, self.clock, random.Random(7), self.config, "boot", structlog.get_logger())
        self.reader = self.open_reader()
        self._asked = 0

    def open_reader(self) -> Reader:
        return Reader(self._open.for_reading(self.path), self.index_dir, self.clock, read_timeout_ms=10_000)

    def close(self) -> None:
        self.reader.close()
        self.engine.close()

    @property
    def connection(self) -> Any:
        """The writer's own connection, for statements of a test."""
        return connection_of(self.engine)

    def asked(self, command: Any, frames: Sequence[bytes] = (), *, message_id: str | None = None) -> Asked:
        self._asked += 1
        return Asked(command, message_id or f"message-{self._asked}", frames)

    def ask(self, command: Any, frames: Sequence[bytes] = (), *, message_id: str | None = None) -> Any:
        asked = self.asked(command, frames, message_id=message_id)
        self.group.commit([asked])
        return asked.answer

    def sync_roster(self, *roster: RosterEntry) -> list[str]:
        """Apply a roster as the writer does at a reload; return the agents that were archived."""
        self.config = self.group.config = structs.replace(self.config, agents=AgentsConfig(roster=roster))
        with self.engine.begin() as tx:
            context = CommandContext.begin(tx, self.clock, self.group.rng, self.config, "boot", RowCache())
            archived = agents.sync_roster(context)
            tx.commit()
        self.group.row_cache.clear()
        return archived

    def remember(
        self,
        content: str,
        *,
        vector: Sequence[float] | None = None,
        idempotency: Idempotency | None = None,
        **fields: Any,
    ) -> Remembered:
        command, frames = remembering(content, vector=vector, idempotency=idempotency, **fields)
        answer = self.ask(command, frames)
        assert not isinstance(answer, Failure), answer
        return answer  # type: ignore[no-any-return]

    def recall(self, query: str, *, vector: Sequence[float] | None = None, **fields: Any) -> Recalled:
        frames = [] if vector is None else [raw(vector)]
        fields.setdefault("read", ReadScope())
        command = Recall(query=query, vector_model=None if vector is None else MODEL, **fields)
        with self.reader.open_snapshot() as view:
            return recall_within(self.reader, view, command, frames)

    def value(self, sql: str, *bindings: Any) -> Any:
        row = self.connection.execute(sql, bindings).fetchone()
        return None if row is None else row[0]


def unit(vector: Sequence[float]) -> np.ndarray[Any, np.dtype[np.float32]]:
    padded = np.zeros(DIMENSIONS, np.float32)
    padded[: len(vector)] = vector
    return padded / max(float(np.linalg.norm(padded)), 1e-12)


def raw(vector: Sequence[float]) -> bytes:
    return unit(vector).astype("<f4").tobytes()


def remembering(
    content: str, *, vector: Sequence[float] | None = None, idempotency: Idempotency | None = None, **fields: Any
) -> tuple[Remember, list[bytes]]:
    fields.setdefault("type", "fact")
    fields.setdefault("importance", 0.8)
    principal = fields.pop("principal", Principal())
    memory = NewMemory(content=content, vector=None if vector is None else Vector(MODEL, DIMENSIONS, 0), **fields)
    return Remember(memory, principal, idempotency=idempotency), [] if vector is None else [raw(vector)]


def recording(
    session: str,
    checkpoint_id: str,
    trigger: str,
    digest: str,
    prompt_count: int = 0,
    *,
    agent: str = "default",
    queries: Sequence[str] = (),
    remembers: Sequence[str] = (),
    harness: str | None = None,
    project: str | None = None,
    **end: Any,
) -> RecordCheckpoint:
    """Return the command that stores a checkpoint; ``end``: ``ended`` and ``ended_at``."""
    row = StoredCheckpoint(
        checkpoint_id,
        session,
        agent,
        harness,
        project,
        normalized_project(project),
        trigger,
        digest,
        prompt_count,
        json.dumps(queries),
        json.dumps(remembers),
        created_at="",
        ended=0,
    )
    return RecordCheckpoint(session, agent, row, **end)


@contextmanager
def kept_sound(room: R) -> Iterator[R]:
    """Yield ``room`` for one test, check afterwards that its invariants hold, and close it."""
    try:
        yield room
        assert broken_invariants(room.connection) == []
    finally:
        room.close()


def broken_invariants(connection: Any) -> list[str]:
    """Return the violated invariants of the store in words.

    Source: docs/reliability.md "Invariants".
    """
    return [finding.text for finding in scrub(connection)]
