"""The writer's first commit: it proves that a commit reaches the disk, and records who writes from now on.

Source: docs/reliability.md "The writer's loop", R18.
"""

from __future__ import annotations

import random
from contextlib import AbstractContextManager

from signet_actors.config.schema import Config
from signet_actors.config.workspace import Workspace
from signet_actors.domain.timestamps import iso
from signet_actors.runtime.clock import Clock
from signet_actors.store.command_context import CommandContext, RowCache
from signet_actors.store.engine import WriterEngine
from signet_actors.store.sqlite.stale_log import note_runs
from signet_actors.store.vector_epochs import STORE_META_KEY, VectorEpochs, read_stored
from signet_actors.store.writes import agents, store_meta


class StartupCommit:
    """Writes the roster of agents and, once for each process, a new vector epoch."""

    def __init__(
        self, engine: WriterEngine, workspace: Workspace, clock: Clock, rng: random.Random, boot_id: str
    ) -> None:
        self._engine = engine
        self._workspace = workspace
        self._clock = clock
        self._rng = rng
        self._boot_id = boot_id
        self._epoch_begun = False

    def write(self, config: Config, during_sync: AbstractContextManager[None]) -> None:
        """Commit the agents of ``config``. Raises what a commit raises."""
        with self._engine.begin(during_sync) as tx:
            context = CommandContext.begin(tx, self._clock, self._rng, config, self._boot_id, RowCache())
            agents.sync_roster(context)
            store_meta.put_if_new(tx, "database_id", context.new_id())
            store_meta.put(tx, "writer_started_at", iso(self._clock.wall_ms()))
            if not self._epoch_begun:
                epoch = context.new_id()
                epochs = VectorEpochs(read_stored(tx))
                note_runs(self._workspace.database, (*epochs.names, epoch))
                store_meta.put(tx, STORE_META_KEY, epochs.begin(epoch, tx.last_number("embeddings")))
            tx.commit()
        self._epoch_begun = True
