"""A real database with the real group commit and reader, in one process, with a clock that tests set."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import structlog

from signet_actors.config.schema import Config
from signet_actors.protocol.header import Header
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Failure, Idempotency, Principal
from signet_actors.protocol.searcher import Recall, Recalled
from signet_actors.protocol.writer import NewMemory, Remember, Remembered, Vector
from signet_actors.searcher.reader import Reader
from signet_actors.searcher.recall import recall
from signet_actors.store.sqlite.checks import scrub
from signet_actors.store.sqlite.connect import open_writer
from signet_actors.store.sqlite.migrate import migrate
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


R = TypeVar("R", bound="StoreRoom")


class StoreRoom:
    """Writer and reader of one database. ``ask`` commits one command and returns its reply."""

    def __init__(self, directory: Path, *, config: Config | None = None) -> None:
        self.path = directory / "memories.db"
        self.index_dir = directory / "index"
        self.clock = SetClock()
        self.config = config or Config()
        self.connection = open_writer(self.path, busy=lambda calls: False)
        migrate(self.connection, self.path, self.clock)
        self.connection.execute("INSERT OR IGNORE INTO store_meta (key, value) VALUES ('database_id', 'test-database')")
        self.group = GroupCommit(
            self.connection, self.clock, random.Random(7), self.config, "boot", structlog.get_logger()
        )
        self.reader = self.open_reader()
        self._asked = 0

    def open_reader(self) -> Reader:
        return Reader(self.path, self.index_dir, self.clock, read_timeout_ms=10_000)

    def close(self) -> None:
        self.reader.close()
        self.connection.close()

    def asked(self, command: Any, frames: Sequence[bytes] = (), *, message_id: str | None = None) -> Asked:
        self._asked += 1
        return Asked(command, message_id or f"message-{self._asked}", frames)

    def ask(self, command: Any, frames: Sequence[bytes] = (), *, message_id: str | None = None) -> Any:
        asked = self.asked(command, frames, message_id=message_id)
        self.group.commit([asked])
        return asked.answer

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
            return recall(self.reader, view, command, frames)

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
    return Remember(memory, principal, idempotency), [] if vector is None else [raw(vector)]


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
