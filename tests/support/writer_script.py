"""Run the real ``Writer`` on a directory, with a seeded script of real commands instead of a bus.

The script is determined by the seed and the answers. Every command's answer is entered in a ``Ledger``, which derives
from the answers alone what must be on disk.

Source: docs/reliability.md R2, R3 and "The writer's loop".
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import structlog

from signet_actors.config.schema import Config, WriterConfig
from signet_actors.config.workspace import Workspace
from signet_actors.errors import ErrorCode
from signet_actors.protocol.leases import AdvanceHighWaterMark, ReapLeases
from signet_actors.protocol.message import Failure, Idempotency, Principal
from signet_actors.protocol.writer import (
    ChunksRemembered,
    ForgetMany,
    ForgetMemory,
    ForgetTarget,
    Forgotten,
    ManyForgotten,
    ManyModified,
    MemoryPatch,
    Modified,
    ModifyMany,
    ModifyMemory,
    NewMemory,
    PurgeStep,
    Recovered,
    RecoverMemory,
    Remember,
    RememberChunks,
    Remembered,
    TouchMemories,
)
from signet_actors.runtime.clock import SystemClock
from signet_actors.runtime.processes.call_reporter import unreported
from signet_actors.runtime.processes.child_context import ChildContext
from signet_actors.runtime.processes.idle_trimmer import IdleTrimmer
from signet_actors.store.errors import StoreError
from signet_actors.store.sqlite.connect import open_writer
from signet_actors.store.sqlite.writer import SqliteWriter
from signet_actors.writer import actor, wal_checkpointer
from signet_actors.writer.actor import Writer
from tests.support.store_room import Asked, SetClock, connection_of, remembering

ME = Principal()


def _drop(*_: Any) -> Any:
    raise structlog.DropEvent


QUIET = structlog.wrap_logger(structlog.PrintLogger(), processors=[_drop])
"""Suppresses logging: thousands of faults are expected."""

_ALL_DELETED = "every deleted memory"
APPLIED, MAYBE, NOT_APPLIED = "applied", "maybe", "not applied"


class _NoBus:
    """A stand-in for the actor loop. Messages to the supervisor are passed to ``on_told``."""

    def __init__(self) -> None:
        self.on_told: Callable[[Any], None] = lambda _: None
        self.idle_trimmer = IdleTrimmer()
        self.calls = unreported(SystemClock())

    def starting(self, detail: str) -> None: ...
    def heartbeat(self) -> None: ...
    def tell_supervisor(self, body: Any) -> None:
        self.on_told(body)


@dataclass
class Known:
    """A memory as described by the answers of its commands."""

    content: str
    version: int = 1
    deleted: bool = False


class Booked(Asked):
    """A command whose answer is entered in the ledger when it is given."""

    def __init__(self, body: Any, message_id: str, frames: Sequence[bytes], ledger: Ledger) -> None:
        super().__init__(body, message_id, frames)
        self.ledger = ledger
        self.on_answer: Callable[[], None] = lambda: None

    def reply(self, body: Any, frames: Sequence[bytes] = ()) -> None:
        super().reply(body, frames)
        self.ledger.enter(self)
        self.on_answer()

    def again(self) -> Booked:
        """Return the same command for a retry, because its outcome is unknown."""
        retry = Booked(self.body, self.header.message_id, self.frames, self.ledger)
        retry.header = msgspec.structs.replace(self.header, attempt=self.header.attempt + 1)
        return retry


@dataclass
class Ledger:
    """What the answers promise: which memories exist in which version, and which commands were not applied."""

    memories: dict[str, Known] = field(default_factory=dict)
    erased: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    uncertain: set[str] = field(default_factory=set)
    answered: int = 0

    def copy(self) -> Ledger:
        return Ledger(
            {memory_id: Known(**vars(known)) for memory_id, known in self.memories.items()},
            set(self.erased),
            set(self.refused),
            set(self.uncertain),
            self.answered,
        )

    def enter(self, asked: Asked) -> str:
        """Enter the answer and return what it says about the command: applied, maybe, or not applied."""
        command, answer = asked.body, asked.answer
        if isinstance(answer, Failure):
            assert answer.code in {ErrorCode.NOT_APPLIED, ErrorCode.STORAGE_FULL, ErrorCode.OUTCOME_UNKNOWN}, answer
            certain = answer.code is not ErrorCode.OUTCOME_UNKNOWN
            if certain and isinstance(command, Remember):
                self.refused.add(command.memory.content)
            if not certain:
                self.uncertain.update(touched_by(command))
            return NOT_APPLIED if certain else MAYBE
        self.answered += 1
        match command, answer:
            case Remember(), Remembered():
                if not answer.deduped:
                    self.memories[answer.id] = Known(command.memory.content)
            case RememberChunks(), ChunksRemembered():
                self.memories.update(
                    {memory_id: Known(text) for memory_id, text in zip(answer.ids, command.chunks, strict=True)}
                )
            case ModifyMemory(), Modified():
                self._modified(command.patch, answer)
            case ModifyMany(), ManyModified():
                for patch, result in zip(command.patches, answer.results, strict=True):
                    self._modified(patch, result)
            case ForgetMemory(), Forgotten():
                self._forgotten(answer, hard=False)
            case ForgetMany(), ManyForgotten():
                for result in answer.results:
                    self._forgotten(result, hard=command.hard)
            case RecoverMemory(), Recovered():
                if answer.status == "recovered":
                    known = self.memories[answer.id]
                    known.version, known.deleted = _version(answer), False
            case PurgeStep(), _ if command.step == "tombstones":
                for memory_id in [memory_id for memory_id, known in self.memories.items() if known.deleted]:
                    self.erased.add(memory_id)
                    del self.memories[memory_id]
            case _:
                pass
        return APPLIED

    def _modified(self, patch: MemoryPatch, answer: Modified) -> None:
        if answer.status == "updated":
            known = self.memories[answer.id]
            known.version = _version(answer)
            if isinstance(patch.content, str):
                known.content = patch.content

    def _forgotten(self, answer: Forgotten, *, hard: bool) -> None:
        if answer.status != "deleted":
            return
        if hard:
            self.memories.pop(answer.id, None)
            self.erased.add(answer.id)
        else:
            known = self.memories[answer.id]
            known.version, known.deleted = _version(answer), True

    def broken_by(self, connection: Any) -> list[str]:
        """Return the promises that the database breaks.

        A command of unknown outcome may have changed its memories, so their promises are not checked.
        """
        rows = {
            row[0]: Known(row[1], row[2], bool(row[3]))
            for row in connection.execute("SELECT id, content, version, is_deleted FROM memories")
        }
        broken = []
        for memory_id, known in self.memories.items():
            found = rows.get(memory_id)
            if memory_id in self.uncertain or (found is None and known.deleted and _ALL_DELETED in self.uncertain):
                continue
            if found != known:
                broken.append(f"answered {memory_id} {known}, found {found}")
        broken += [f"erased, but there: {memory_id}" for memory_id in self.erased & rows.keys()]
        contents = {known.content for known in rows.values()}
        broken += [f"refused as not applied, but there: {content}" for content in self.refused & contents]
        return broken


def _version(answer: Any) -> int:
    assert answer.new_version is not None
    return int(answer.new_version)


def touched_by(command: Any) -> set[str]:
    """Return the memories that a command with an unknown outcome may have changed."""
    match command:
        case ModifyMemory():
            return {command.patch.id}
        case ModifyMany():
            return {patch.id for patch in command.patches}
        case ForgetMemory() | RecoverMemory():
            return {command.id}
        case ForgetMany():
            return {target.id for target in command.targets}
        case PurgeStep():
            return {_ALL_DELETED}
        case _:
            return set()


class Script:
    """A writer's work, determined by ``seed``: batches of commands, checkpoints, housekeeping."""

    def __init__(self, seed: int, *, turns: int = 24, checkpoints: bool = True) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.turns = turns
        self.checkpoints = checkpoints
        self._serial = 0

    def message_id(self) -> str:
        self._serial += 1
        return f"message-{self.seed}-{self._serial}"

    def kinds(self) -> Iterator[str]:
        """Yield the kind of each turn."""
        yield "batch"
        for _ in range(self.turns):
            weights = (12, 2, 2, 1, 1) if self.checkpoints else (12, 2, 0, 0, 0)
            yield self.rng.choices(("batch", "housekeep", "passive", "restart", "truncate"), weights)[0]

    def batch(self, ledger: Ledger) -> list[Booked]:
        """Return one to eight commands about memories in the ledger. No two commands name the same memory."""
        rng = self.rng
        live = [memory_id for memory_id, known in ledger.memories.items() if not known.deleted]
        gone = [memory_id for memory_id, known in ledger.memories.items() if known.deleted]
        rng.shuffle(live)
        rng.shuffle(gone)
        asked: list[Booked] = []
        for _ in range(rng.choice((1, 1, 2, 3, 5, 8))):
            for command, frames in self._commands(live, gone):
                asked.append(Booked(command, self.message_id(), frames, ledger))
        return asked

    def _commands(self, live: list[str], gone: list[str]) -> list[tuple[Any, Sequence[bytes]]]:
        if self.rng.random() < 0.03:
            return [(PurgeStep(step, "2030-01-01T00:00:00.000Z", 500), ()) for step in ("embeddings", "tombstones")]
        return [self._command(live, gone)]

    def _command(self, live: list[str], gone: list[str]) -> tuple[Any, Sequence[bytes]]:
        rng = self.rng
        kind = rng.choices(
            ("remember", "chunks", "modify", "modify many", "forget", "forget many", "recover", "purge", "jobs"),
            (40, 4, 12, 4, 8, 4, 6, 6, 2),
        )[0]
        key = None if rng.random() < 0.5 else Idempotency(f"key-{rng.getrandbits(40):x}", "digest")
        if kind == "chunks":
            texts = tuple(self._text() for _ in range(rng.randrange(2, 4)))
            memory = NewMemory(content=" ".join(texts), type="fact", importance=0.5)
            return RememberChunks(memory, texts, ME, idempotency=key), ()
        if kind == "modify" and live:
            return ModifyMemory(self._patch(live.pop()), ME, idempotency=key), ()
        if kind == "modify many" and len(live) > 2:
            return ModifyMany(tuple(self._patch(live.pop()) for _ in range(2)), ME, idempotency=key), ()
        if kind == "forget" and live:
            return ForgetMemory(live.pop(), "no longer true", ME, force=True, idempotency=key), ()
        if kind == "forget many" and len(live) > 2:
            targets = tuple(ForgetTarget(live.pop()) for _ in range(2))
            return ForgetMany(targets, "no longer true", ME, hard=rng.random() < 0.5, idempotency=key), ()
        if kind == "recover" and gone:
            return RecoverMemory(gone.pop(), "true after all", ME, idempotency=key), ()
        if kind == "purge":
            step = rng.choice(("graph_links", "history", "completed_jobs", "dead_jobs"))
            return PurgeStep(step, "2020-01-01T00:00:00.000Z", 500), ()
        if kind == "jobs":
            return rng.choice((ReapLeases(), AdvanceHighWaterMark("2026-01-02T00:00:00.000Z"))), ()
        vector = [rng.uniform(-1, 1) for _ in range(8)] if rng.random() < 0.5 else None
        tags = tuple(rng.sample(("red", "green", "blue"), rng.randrange(3)))
        command, frames = remembering(self._text(), vector=vector, tags=tags, idempotency=key)
        return command, frames

    def _patch(self, memory_id: str) -> MemoryPatch:
        if self.rng.random() < 0.3:
            return MemoryPatch(memory_id, "tagged", tags=("green",))
        return MemoryPatch(memory_id, "reworded", content=self._text())

    def _text(self) -> str:
        rng = self.rng
        length = 900 if rng.random() < 0.05 else rng.randrange(2, 20)
        words = " ".join(rng.choice(_WORDS) for _ in range(length))
        return f"note {rng.getrandbits(48):x} {words}"


_WORDS = (
    "writer",
    "disk",
    "power",
    "page",
    "frame",
    "commit",
    "answer",
    "memory",
    "queue",
    "journal",
    "snapshot",
    "reader",
)


class ScriptedWriter:
    """A started writer; ``work`` runs one turn of a script."""

    def __init__(
        self,
        root: Path,
        *,
        seed: int = 7,
        vfs: str | None = None,
        config: Config | None = None,
        clock: SetClock | None = None,
    ) -> None:
        self.workspace = Workspace(root)
        self.workspace.ensure()
        self.clock = clock or SetClock()
        self.config = config or Config(writer=WriterConfig(ballast_bytes=0, reply_retention_ms=60_000))
        boot = ChildContext("writer", "writer", 1, "boot", 0, str(root), str(root), self.config)
        self.bus = _NoBus()
        self.writer = Writer(boot, self.bus, self.clock, random.Random(seed), QUIET)  # type: ignore[arg-type]
        self._vfs = vfs
        self.sent: list[Booked] = []
        self.on_answer: Callable[[], None] = lambda: None

    @property
    def path(self) -> Path:
        return self.workspace.database

    @property
    def connection(self) -> Any:
        """The writer's own connection, None while the database is closed."""
        return None if self.writer.engine is None else connection_of(self.writer.engine)

    def start(self) -> None:
        with mock.patch.object(actor, "write_engine", self._opened):
            self.writer.start()

    def _opened(self, path: Path, **options: Any) -> SqliteWriter:
        return SqliteWriter(open_writer(path, vfs=self._vfs, **options))

    def work(self, kind: str, script: Script, ledger: Ledger) -> None:
        """Run one turn and enter its answers in the ledger. Raises ``ActorExit`` like the writer, after the answers."""
        self.sent = []
        self.clock.advance(100)
        if kind == "batch":
            asked = script.batch(ledger)
            for item in asked:
                item.on_answer = self.on_answer
            self.sent = asked
            self.writer.handle(asked)  # type: ignore[arg-type]
            return
        if kind == "housekeep":
            ids = tuple(list(ledger.memories)[:5])
            self.writer.handle([Asked(TouchMemories(ids), script.message_id())])  # type: ignore[list-item]
            self.clock.advance(61_000)
            self.writer.tick()
            return
        plan = wal_checkpointer.Plan(kind, 0)
        with mock.patch.object(wal_checkpointer, "plan_checkpoint", return_value=plan):
            self.writer.tick()

    def abandon(self) -> None:
        """Simulate the exit of the process: nothing is flushed or answered, and the lock is free."""
        if self.writer.engine is not None:
            with contextlib.suppress(StoreError):  # a process that exits reports no error either
                self.writer.engine.close()
            self.writer.engine = None
        self.release()

    def release(self) -> None:
        """Allow another writer to open the workspace."""
        if self.writer._lock_fd is not None:
            os.close(self.writer._lock_fd)
            self.writer._lock_fd = None
