"""The checks before the writer uses a database (one writer per workspace, schema, structure), and its first commit.

Source: docs/reliability.md "Supervision policy", "The writer's loop", R18.
"""

from __future__ import annotations

import fcntl
import os
import random
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from signet_actors.config.regular_file import open_regular
from signet_actors.config.schema import Config
from signet_actors.config.workspace import Workspace
from signet_actors.domain.timestamps import iso
from signet_actors.errors import ActorExit, CheckIncomplete, ConfigError, ExitCode, SignetError, StoreIOError
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.processes.actor_loop import ActorLoop
from signet_actors.store.command_context import CommandContext, RowCache
from signet_actors.store.engine import WriterEngine
from signet_actors.store.sqlite.stale_log import note_runs
from signet_actors.store.vector_epochs import STORE_META_KEY, VectorEpochs, read_stored
from signet_actors.store.writes import agents, store_meta

QUICK_CHECK_BYTES: Final = 64 << 20
"""Larger files are not read in full at start; `signet doctor` checks them on demand."""
_LOCK_WAIT_NS: Final = 10_000_000_000
_MAX_FINDINGS_NAMED: Final = 5


class Damaged(SignetError):
    """The structure of the database is damaged."""


def take_writer_lock(path: Path, loop: ActorLoop, clock: Clock) -> int:
    """Return a file descriptor that holds the lock of the one writer of the workspace.

    Waits for the writer of a killed supervisor to exit. Raises ``ActorExit``.
    """
    try:
        descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
    except ConfigError as error:
        raise ActorExit(ExitCode.CONFIG, error.detail) from error
    except OSError as error:
        raise ActorExit(ExitCode.IO_ERROR, f"{path} cannot be opened: {error.strerror}") from error
    until_ns = clock.monotonic_ns() + _LOCK_WAIT_NS
    loop.starting("opening the database")
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if clock.monotonic_ns() > until_ns:
                raise ActorExit(ExitCode.IN_USE, "another writer has locked this workspace") from error
            time.sleep(0.02)
        else:
            return descriptor


def check_objects(engine: WriterEngine) -> None:
    """Raise ``Damaged`` if an object is not part of the schema: the next write would run a foreign trigger.

    The same if a table has no further number to give out: every write would fail.
    """
    if found := engine.object_errors():
        more = f" and {len(found) - _MAX_FINDINGS_NAMED} more" if len(found) > _MAX_FINDINGS_NAMED else ""
        raise Damaged("; ".join(found[:_MAX_FINDINGS_NAMED]) + more)


def check_structure(engine: WriterEngine, path: Path, loop: ActorLoop, *, every_page: bool) -> None:
    """Raise ``Damaged`` if pages of the file are damaged.

    A large file is read only with ``every_page``, after damage was met: then each page is checked, otherwise only how
    they hang together.
    """
    if path.stat().st_size > QUICK_CHECK_BYTES and not every_page:
        return

    loop.starting("checking the database")
    try:
        error = engine.page_error(every_page=every_page, heartbeat=loop.heartbeat)
    except CheckIncomplete as incomplete:
        raise StoreIOError(f"{path} {incomplete.detail}") from incomplete
    if error is not None:
        raise Damaged(error)


class StartupCommit:
    """Proves that a commit reaches the disk: writes the roster, and once for each process a new vector epoch."""

    def __init__(
        self, engine: WriterEngine, workspace: Workspace, clock: Clock, rng: random.Random, boot_id: str
    ) -> None:
        self._engine = engine
        self._workspace = workspace
        self._clock = clock
        self._rng = rng
        self._boot_id = boot_id
        self._epoch_begun = False

    def write(self, config: Config, during_sync: AbstractContextManager[None]) -> list[str]:
        """Commit the agents of ``config``; return those that this archived. Raises what a commit raises."""
        with self._engine.begin(during_sync) as tx:
            context = CommandContext.begin(tx, self._clock, self._rng, config, self._boot_id, RowCache())
            archived = agents.sync_roster(context)
            store_meta.put_if_new(tx, "database_id", context.new_id())
            store_meta.put(tx, "writer_started_at", iso(self._clock.wall_ms()))
            if not self._epoch_begun:
                epoch = context.new_id()
                epochs = VectorEpochs(read_stored(tx))
                note_runs(self._workspace.database, (*epochs.names, epoch))
                store_meta.put(tx, STORE_META_KEY, epochs.begin(epoch, tx.last_number("embeddings")))
            tx.commit()
        self._epoch_begun = True
        return archived
