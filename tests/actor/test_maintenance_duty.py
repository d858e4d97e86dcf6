"""The maintenance with a scripted writer: what it repairs, and when it stops doing so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec
import pytest
import structlog
from structlog.testing import capture_logs

from signet_actors.config.pipeline_schema import AutonomousConfig
from signet_actors.config.schema import Config
from signet_actors.errors import ErrorCode
from signet_actors.features.diagnostics.api import ChangeFigures, HealthFigures
from signet_actors.features.repairs.api import (
    CHECK_TEXT,
    RELEASE,
    EnterRepair,
    MeasureStore,
    RecordRepair,
    RepairAdmitted,
    StoreFigures,
)
from signet_actors.operations.repair import RepairReply
from signet_actors.protocol.message import Answered, Asked, Failure, message_of
from signet_actors.protocol.pipeline import JobsRequeued, RequeueJobs
from signet_actors.protocol.writer import Purged
from signet_actors.retention.periodic.maintenance import Maintenance
from signet_actors.retention.periodic.purge import Purge
from tests.support.store_room import SetClock

INTERVAL_MS = 1_800_000
HEALTHY = HealthFigures(0, 100, 0, 0.0, 0, 70, 30, 70, 70)
REPAIRS = {
    message_of(RELEASE): "releaseStaleLeases",
    message_of(CHECK_TEXT): "checkFtsConsistency",
    RequeueJobs: "requeueDeadJobs",
    EnterRepair: "retention_sweep",
}


class ScriptedPurge:
    """A sweep that runs until the test ends it."""

    def __init__(self) -> None:
        self.running = False
        self.steps: list[Purged] = []

    def begin(self) -> None:
        self.running = True


class Room:
    """The duty, and a writer whose store has the figures ``health``; ``mend`` is called for each repair."""

    def __init__(self, **switches: Any) -> None:
        self.clock = SetClock()
        self.purge = ScriptedPurge()
        self.health = HEALTHY
        self.repaired: list[str] = []
        self.recorded: list[RecordRepair] = []
        self.refusal: Failure | None = None
        self.mend: Callable[[], None] = lambda: None
        log = structlog.get_logger()
        purge = cast("Purge", self.purge)
        self.duty = Maintenance(self, self.clock, log, switched(**switches), purge)

    def ask(self, request: Any, *, timeout_ms: int, trace_id: str | None = None) -> Any:
        assert 0 < timeout_ms <= 5000
        if isinstance(request, MeasureStore):
            return answered(StoreFigures("2026-01-01T00:00:00.000Z", self.health, ChangeFigures(0, 0, 0, 0, 70)))
        if isinstance(request, RecordRepair):
            self.recorded.append(request)
            return answered(RepairAdmitted(request.action))
        action = REPAIRS[type(request)]
        principal = request.caller.principal if isinstance(request, Asked) else request.principal
        assert principal.actor_type == "daemon"
        if self.refusal is not None:
            return self.refusal
        self.repaired.append(action)
        self.mend()
        if isinstance(request, RequeueJobs):
            return JobsRequeued(["job"], [], more=False)
        return answered(RepairReply(action=action, success=True, affected=1, message="", steps=[]))

    def cycle(self) -> list[str]:
        """Let the interval pass; return what was repaired."""
        self.repaired = []
        self.clock.advance(INTERVAL_MS)
        while self.duty.due_ns <= self.clock.monotonic_ns():
            self.duty.step()
        return self.repaired


def answered(reply: Any) -> Answered:
    return Answered(msgspec.json.encode(reply))


def switched(**switches: Any) -> Config:
    config = Config()
    pipeline = msgspec.structs.replace(config.memory.pipeline_v2, autonomous=AutonomousConfig(**switches))
    return msgspec.structs.replace(config, memory=msgspec.structs.replace(config.memory, pipeline_v2=pipeline))


def test_a_cycle_comes_an_interval_after_the_start_and_repairs_nothing_that_is_well() -> None:
    room = Room()
    assert room.duty.due_ns == room.clock.monotonic_ns() + INTERVAL_MS * 1_000_000
    assert room.cycle() == []
    assert room.duty.cycles == 1


def test_each_part_that_is_not_well_is_repaired_and_the_gain_is_logged() -> None:
    room = Room()
    room.health = msgspec.structs.replace(HEALTHY, stale_leases=1, dead=9, text_rows=7)
    room.mend = lambda: setattr(room, "health", HEALTHY)
    with capture_logs() as logs:
        assert room.cycle() == ["releaseStaleLeases", "requeueDeadJobs", "checkFtsConsistency"]
    (done,) = [entry for entry in logs if entry["event"] == "maintenance_done"]
    # 0.5 of the weight 0.28 of the queue and of 0.19 of the index, of 0.76 that is measured without models
    assert (done["score"], done["delta"]) == (1.0, 0.309)
    assert room.cycle() == []


def test_observing_only_logs_the_repairs() -> None:
    room = Room(maintenance_mode="observe")
    room.health = msgspec.structs.replace(HEALTHY, stale_leases=3)
    with capture_logs() as logs:
        assert room.cycle() == []
    assert [(entry["event"], entry["action"]) for entry in logs] == [("repair_recommended", "releaseStaleLeases")]


@pytest.mark.parametrize("switches", [{"enabled": False}, {"frozen": True}])
def test_no_cycle_comes_by_itself_while_it_is_off_or_frozen(switches: dict[str, bool]) -> None:
    room = Room(**switches)
    room.health = msgspec.structs.replace(HEALTHY, stale_leases=3)
    assert room.cycle() == []
    assert room.duty.cycles == 0
    room.duty.reload(switched())
    assert room.cycle() == ["releaseStaleLeases"]


def test_a_repair_that_does_not_help_is_halted_after_three_runs_until_all_is_well() -> None:
    room = Room()
    ill = room.health = msgspec.structs.replace(HEALTHY, dead=9)
    assert [room.cycle() for _ in range(4)] == [["requeueDeadJobs"]] * 3 + [[]]
    assert room.duty.halted == {"requeueDeadJobs"}
    room.health = msgspec.structs.replace(ill, stale_leases=1)
    assert room.cycle() == ["releaseStaleLeases"], "another repair still runs"
    room.health = HEALTHY
    assert room.cycle() == []
    room.health = ill
    assert room.cycle() == ["requeueDeadJobs"]


def test_a_repair_that_the_gate_refuses_is_not_counted_as_a_run() -> None:
    room = Room()
    room.health = msgspec.structs.replace(HEALTHY, dead=9)
    room.refusal = Failure(ErrorCode.RATE_LIMITED, "too soon")
    for _ in range(5):
        assert room.cycle() == []
    assert room.duty.halted == set()


def test_the_health_is_compared_when_the_sweep_has_ended_and_the_sweep_is_recorded() -> None:
    room = Room()
    room.health = msgspec.structs.replace(HEALTHY, tombstones=70)
    assert room.cycle() == ["retention_sweep"]
    assert room.purge.running
    with capture_logs() as logs:
        room.clock.advance(1_000)
        room.duty.step()
        assert logs == []
        room.purge.running, room.purge.steps = False, [Purged("tombstones", 40, more=False)]
        room.health = HEALTHY
        room.clock.advance(1_000)
        room.duty.step()
    assert [(one.action, one.affected) for one in room.recorded] == [("retention_sweep", 40)]
    assert [entry["event"] for entry in logs] == ["maintenance_done"]
    assert logs[0]["delta"] > 0
