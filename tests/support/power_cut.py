"""Interrupt the real writer's work by power failures at every point, and check what is left.

``record`` runs a scripted writer over the recording VFS. ``survive`` opens one crash image with the production code and
returns what is wrong with it. Mutants of the production code run through the same two functions.

Every image is checked: it opens; the database is byte for byte the result of a complete transaction, at least as new as
the last answer; the memory of every answered command is there as answered. The integrity check, the foreign keys, the
full-text index and the invariants depend only on those bytes, and are computed once for each distinct content.

Source: docs/reliability.md R2, R17 and "Invariants".
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import apsw

from signet_actors.errors import SignetError
from signet_actors.store.sqlite.connect import open_writer
from signet_actors.store.sqlite.migrate import load_migrations, migrate
from tests.support.recording_vfs import Files, Recording, RecordingVFS, images, recorded_files
from tests.support.store_room import SetClock, broken_invariants
from tests.support.writer_script import Ledger, Script, ScriptedWriter

DATABASE = "memories.db"
JOBS_OF_MEMORIES = (
    "SELECT m.id FROM memories m WHERE m.extraction_status = 'pending'"
    " AND (SELECT count(*) FROM memory_jobs j WHERE j.memory_id = m.id AND j.job_type = 'extract') <> 1"
)


@contextmanager
def fast_directory() -> Iterator[Path]:
    """Return a directory in memory if the system has one: simulating a disk needs no real one."""
    shared = Path("/dev/shm")
    parent = shared if shared.is_dir() and os.access(shared, os.W_OK) else None
    directory = Path(tempfile.mkdtemp(prefix="signet-crash-", dir=parent))
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


def content_of(connection: apsw.Connection) -> bytes:
    """Return a digest of the whole database as this connection sees it, including pages in the log."""
    return hashlib.blake2b(connection.serialize("main"), digest_size=16).digest()


class Mark(NamedTuple):
    """What is known at a point of the recording: the current turn, and whether it was answered."""

    turn: int
    answered: bool


@dataclass
class Recorded:
    """A recording, with the database content and the answers after each turn. Turn 0 is the start."""

    seed: int
    recording: Recording = field(default_factory=Recording)
    contents: list[bytes] = field(default_factory=list)
    ledgers: list[Ledger] = field(default_factory=list)
    before: Files = field(default_factory=dict)


def record(seed: int, root: Path, *, turns: int = 12, base: Path | None = None) -> Recorded:
    """Run a writer twice below ``root`` with the script of ``seed``; each run ends with an orderly drain.

    The first starts without a database, or on the database ``base``.
    """
    recorded = Recorded(seed)
    vfs = RecordingVFS(recorded.recording)
    ledger, script = Ledger(), Script(seed, turns=turns)
    scripted = ScriptedWriter(root, seed=seed, vfs=vfs.name)
    if base is not None:
        shutil.copyfile(base, scripted.path)
        recorded.before[DATABASE] = base.read_bytes()
        recorded.contents.append(_content_at(scripted.path))
        recorded.ledgers.append(ledger.copy())

    def mark(*, answered: bool) -> None:
        recorded.recording.mark(Mark(len(recorded.contents), answered))

    def turn(work: Callable[[], None]) -> None:
        mark(answered=False)
        with recorded_files(recorded.recording):
            work()
        if scripted.connection is not None:
            recorded.contents.append(content_of(scripted.connection))
        else:
            recorded.contents.append(recorded.contents[-1])
        recorded.ledgers.append(ledger.copy())

    def end() -> None:
        scripted.writer.drain()
        scripted.release()

    try:
        kinds = list(script.kinds())
        for lifetime, part in enumerate((kinds[: turns // 2], kinds[turns // 2 :])):
            if lifetime:
                scripted = ScriptedWriter(root, seed=seed + lifetime, vfs=vfs.name, clock=scripted.clock)
            scripted.on_answer = lambda: mark(answered=True)
            turn(scripted.start)
            for kind in part:
                turn(partial(scripted.work, kind, script, ledger))
            turn(end)
    finally:
        scripted.abandon()
        vfs.unregister()
    return recorded


def _content_at(path: Path) -> bytes:
    connection = open_writer(path, busy=lambda calls: False)
    try:
        return content_of(connection)
    finally:
        connection.close()


@dataclass
class Survivors:
    """Opens crash images in one directory and counts them."""

    directory: Path
    count: int = 0
    _sound: set[bytes] = field(default_factory=set)

    def survive(self, files: Files, recorded: Recorded, mark: Mark) -> list[str]:
        """Return what is wrong with the image, cut off after ``mark``."""
        self.count += 1
        for path in self.directory.iterdir():
            path.unlink()
        for name, data in files.items():
            (self.directory / name).write_bytes(data)
        try:
            connection = open_writer(self.directory / DATABASE, busy=lambda calls: False)
        except (apsw.Error, SignetError) as error:
            return [f"does not open: {error!r}"]
        try:
            return self._judge(connection, recorded, mark)
        except (apsw.Error, SignetError) as error:
            return [f"cannot be used: {error!r}"]
        finally:
            connection.close()

    def _judge(self, connection: apsw.Connection, recorded: Recorded, mark: Mark) -> list[str]:
        wrong = []
        content = content_of(connection)
        if mark.turn:
            turn = mark.turn
            if not mark.answered and content != recorded.contents[turn]:
                turn -= 1
            if content != recorded.contents[turn]:
                older = content in recorded.contents[:turn]
                wrong.append("an earlier state than was answered" if older else "the state of no whole transaction")
            wrong += recorded.ledgers[turn].broken_by(connection)
        if content not in self._sound:
            wrong += unsound(connection, self.directory / DATABASE)
            if not wrong:
                self._sound.add(content)
        return wrong


def unsound(connection: apsw.Connection, path: Path) -> list[str]:
    """Return what is wrong with a database on which the writer would start, after migrating its schema."""
    migrate(connection, path, SetClock())
    wrong = broken_invariants(connection)
    wrong += [f"a memory without its job: {row}" for row in connection.execute(JOBS_OF_MEMORIES)]
    for memory_id, content, checksum in connection.execute(
        "SELECT id, CAST(content AS BLOB), content_sha256 FROM memories"
    ):
        if hashlib.sha256(content).digest() != checksum:
            wrong.append(f"the content of {memory_id} is not what its checksum says")
    if len(load_migrations()) != connection.pragma("user_version"):
        wrong.append("the schema is not the newest")
    return wrong


class Violation(NamedTuple):
    """An image that violates a rule; ``replay`` reproduces it."""

    seed: int
    step: int
    variant: str
    wrong: list[str]

    def __str__(self) -> str:
        return f"seed {self.seed}, cut after step {self.step}, {self.variant}: {'; '.join(self.wrong[:4])}"


def violations(seed: int, survivors: Survivors, *, turns: int = 12, base: Path | None = None) -> Iterator[Violation]:
    """Yield every violation among the images of one seed."""
    root = survivors.directory.with_name(f"seed-{seed}")
    recorded = record(seed, root, turns=turns, base=base)
    shutil.rmtree(root)
    marks: list[Mark] = []
    for step in recorded.recording.steps:
        marks.append(step.mark if step.kind == "mark" else marks[-1])
    for image in images(recorded.recording, recorded.before, random.Random(seed)):
        wrong = survivors.survive(image.files, recorded, marks[image.step])
        if wrong:
            yield Violation(seed, image.step, image.variant, wrong)
