"""Checkpoints of the write-ahead log: when to run one, and the truncation of a log with erased text.

Only the writer checkpoints, after a batch: PASSIVE (never waits) above ``PASSIVE_FRAMES`` new pages, RESTART above
``RESTART_BYTES``, which waits at most ``RESTART_BUSY_MS`` for readers. Above ``END_SNAPSHOTS_BYTES`` readers must end
their snapshots, above ``KILL_READERS_BYTES`` readers that did not are killed. This bounds the log.

Source: docs/reliability.md R14 and "The writer's loop".
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final, NamedTuple

from signet_actors.config.workspace import Workspace
from signet_actors.protocol.control import WalPressure
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.processes.actor_loop import ActorLoop
from signet_actors.store.engine import WriterEngine
from signet_actors.store.errors import BROKEN_DISK, DiskFull
from signet_actors.store.sqlite.checkpoint import PAGE_BYTES
from signet_actors.writer.busy_handler import BusyHandler
from signet_actors.writer.disk_failure import disk_failed
from signet_actors.writer.open_files import FileSizes

_WARN_EVERY_NS: Final = 60_000_000_000


PASSIVE_FRAMES = 1000
RESTART_BYTES = 8 << 20
RESTART_BUSY_MS = 250
RESTART_PAUSE_MS = 1000
END_SNAPSHOTS_BYTES = 32 << 20
KILL_READERS_BYTES = 48 << 20
URGENT_PAUSE_MS = 250


class Pressure(IntEnum):
    """What the readers must do before the checkpoint; a higher level is stricter."""

    NONE = 0
    END_SNAPSHOTS = 1
    KILL_READERS = 2


class Plan(NamedTuple):
    """A checkpoint to run: ``mode`` is passive or restart, ``busy_ms`` is how long to wait for readers.

    If readers still block it, do not try again at this pressure for ``pause_ms``.
    """

    mode: str
    busy_ms: int
    pause_ms: int = 0
    pressure: Pressure = Pressure.NONE


def plan_checkpoint(frames: int, *, tried: int, resting: Pressure | None) -> Plan | None:
    """Return the checkpoint to run on a log of ``frames`` pages that had ``tried`` pages at the last attempt.

    ``resting``: None, or the pressure of an attempt that readers blocked a moment ago. During the pause that follows,
    only a higher pressure makes another attempt.
    """
    size = frames * PAGE_BYTES
    pressure = Pressure((size > END_SNAPSHOTS_BYTES) + (size > KILL_READERS_BYTES))
    if size > RESTART_BYTES and (resting is None or pressure > resting):
        pause_ms = RESTART_PAUSE_MS if pressure is Pressure.NONE else URGENT_PAUSE_MS
        return Plan("restart", RESTART_BUSY_MS, pause_ms, pressure)
    return Plan("passive", 0) if frames - tried > PASSIVE_FRAMES else None


class WalCheckpointer:
    """The write-ahead log of one database. ``frames`` is its length after the last commit."""

    def __init__(
        self,
        engine: WriterEngine,
        workspace: Workspace,
        busy_handler: BusyHandler,
        loop: ActorLoop,
        clock: Clock,
        log: Any,
        sizes: FileSizes,
    ) -> None:
        self._sizes = sizes
        self.frames = 0
        self.may_hold_erased_text = True
        """True at start, because an earlier process may have been killed before it truncated the log."""
        self._engine = engine
        self._workspace = workspace
        self._busy_handler = busy_handler
        self._loop = loop
        self._clock = clock
        self._log = log
        self._tried_frames = 0
        self._restart_not_before_ns = 0
        self._restart_pressure = Pressure.NONE
        self._warn_not_before_ns = 0
        self.is_blocked = False
        """True while the log is long and a reader that is not ours keeps it from being shortened."""
        engine.watch_log(self._on_commit)

    def _on_commit(self, frames: int) -> None:
        if frames < self.frames:
            self._tried_frames = 0  # the log restarted from its beginning
        self.frames = self._sizes.log_frames = frames

    def counters(self) -> dict[str, float]:
        return {"wal_frames": self.frames, "wal_blocked": float(self.is_blocked)}

    def run_due(self) -> None:
        """Run the checkpoint that the size of the log calls for, if any. Raises ``ActorExit`` if the disk fails."""
        now_ns = self._clock.monotonic_ns()
        resting = self._restart_pressure if now_ns < self._restart_not_before_ns else None
        plan = plan_checkpoint(self.frames, tried=self._tried_frames, resting=resting)
        if plan is None:
            return
        try:
            frames, _ = self._run(plan)
        except DiskFull:
            return
        except BROKEN_DISK as error:
            raise disk_failed(self._workspace, error, f"the disk failed in a checkpoint: {error}") from error
        if frames < 0:
            self._restart_pressure = plan.pressure
            self._restart_not_before_ns = self._clock.monotonic_ns() + plan.pause_ms * 1_000_000
            self.is_blocked = plan.pressure is Pressure.KILL_READERS
            if self.is_blocked:
                self._warn_not_truncated()
        elif plan.mode == "passive":
            self._tried_frames = frames
        else:
            # No reader uses the log any more and the next commit restarts it: no further pressure on readers.
            self.frames = self._tried_frames = 0
            self.is_blocked = False

    def truncate_erased(self) -> float | None:
        """Truncate a log that may hold erased text; return the seconds until the next try if a reader blocks that.

        Raises ``ActorExit`` if the disk fails.
        """
        try:
            with self._busy_handler.at_most(0):
                frames, _ = self.truncate()
        except DiskFull:
            return 1.0
        except BROKEN_DISK as error:
            raise disk_failed(self._workspace, error, f"the disk failed in a checkpoint: {error}") from error
        self.may_hold_erased_text = frames < 0
        if frames == 0:
            self.frames = self._tried_frames = 0
            self.is_blocked = False
        return 0.05

    def truncate(self) -> tuple[int, int]:
        """Copy the log into the database and cut it to nothing; return (-1, -1) if readers block that."""
        return self._checkpoint("truncate")

    def _run(self, plan: Plan) -> tuple[int, int]:
        """Run the checkpoint of ``plan``, and ask readers to end their snapshots first where the plan says so."""
        if plan.pressure is Pressure.NONE:
            with self._busy_handler.at_most(plan.busy_ms):
                return self._checkpoint(plan.mode)
        log_bytes = self.frames * PAGE_BYTES
        with self._busy_handler.at_most(plan.busy_ms // 2):
            self._loop.tell_supervisor(WalPressure(log_bytes, severe=plan.pressure is Pressure.KILL_READERS))
            result = self._checkpoint("full")
            if result[0] < 0:
                return result
            self._loop.tell_supervisor(WalPressure(log_bytes, severe=False))
            return self._checkpoint(plan.mode)

    def _checkpoint(self, mode: str) -> tuple[int, int]:
        """Run a checkpoint, whose syncs are reported while they last."""
        with self._loop.calls.sync:
            done = self._engine.checkpoint(mode)
        self._sizes.note_checkpoint(log_in_use=mode not in {"restart", "truncate"} or done[0] < 0)
        return done

    def _warn_not_truncated(self) -> None:
        """Warn at most once a minute that the log keeps growing although none of our readers can be in the way."""
        now_ns = self._clock.monotonic_ns()
        if now_ns >= self._warn_not_before_ns:
            self._warn_not_before_ns = now_ns + _WARN_EVERY_NS
            self._log.warning(
                "wal_not_checkpointed",
                log_bytes=self.frames * PAGE_BYTES,
                remedy="another program has an open read transaction on the database: stop that program",
            )
