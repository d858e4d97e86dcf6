"""What a command handler has at hand: the open transaction, one moment in time, ids, and the request's vectors."""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

from signet_actors.config.schema import Config
from signet_actors.protocol.writer import Vector
from signet_actors.runtime.clock import Clock, iso, new_id
from signet_actors.store.transaction import WriteTransaction


@dataclass(slots=True)
class KnownRows:
    """Rows that this writer has seen committed, so that hot paths need not look them up again.

    Forgotten whenever a transaction fails: a rolled-back row must not be believed.
    """

    agents: set[str] = field(default_factory=set)
    vec_tables: dict[tuple[str, int], str] = field(default_factory=dict)

    def forget(self) -> None:
        self.agents.clear()
        self.vec_tables.clear()


@dataclass(slots=True)
class Session:
    """One command's view of its group commit. ``now`` is the same for the whole commit."""

    tx: WriteTransaction
    clock: Clock
    rng: random.Random
    config: Config
    boot_id: str
    known: KnownRows
    now_ms: int
    now: str
    frames: Sequence[bytes] = ()

    @classmethod
    def begin(
        cls, tx: WriteTransaction, clock: Clock, rng: random.Random, config: Config, boot_id: str, known: KnownRows
    ) -> Session:
        now_ms = clock.wall_ms()
        return cls(tx, clock, rng, config, boot_id, known, now_ms, iso(now_ms))

    def new_id(self) -> str:
        return new_id(self.clock, self.rng)

    def vector_bytes(self, vector: Vector) -> bytes | None:
        """The raw frame of ``vector``; None when it is missing, of another length, all zero or not finite."""
        if not 0 <= vector.frame < len(self.frames):
            return None
        raw = self.frames[vector.frame]
        if len(raw) != 4 * vector.dimensions:
            return None
        length = math.hypot(*array("f", raw))
        return raw if math.isfinite(length) and length > 0.0 else None
