"""What is forgotten can be recovered for its whole time, whatever the clock showed when it was forgotten.

Source: docs/reliability.md R16; memory-system.txt "Soft-Delete and Recovery".
"""

from __future__ import annotations

from typing import Any

import pytest
import structlog

from signet_actors.config.schema import Config
from signet_actors.protocol.message import Principal
from signet_actors.protocol.writer import (
    ForgetMany,
    ForgetMemory,
    ForgetTarget,
    MemoryPatch,
    ModifyMemory,
    RecoverMemory,
)
from signet_actors.retention.periodic.purge import Purge
from tests.support.store_room import StoreRoom

ME = Principal()
DAY_MS = 86_400_000
SWEEP, CONFIRMED, FORGET, FORGET_MANY, RECOVER, CHANGE = (
    "sweep",
    "confirmed",
    "forget",
    "forget many",
    "recover",
    "change",
)
TWO_HOURS = 1 / 12


class Deployment:
    """One memory in a real store, with the sweeps of retention and a clock that is set wrong and right again."""

    def __init__(self, room: StoreRoom) -> None:
        self.room = room
        self.sweeps = Purge(self, room.clock, structlog.get_logger(), Config())  # type: ignore[arg-type]
        self.memory = room.remember("The spare key is at the neighbour's", vector=[1.0]).id

    def ask(self, request: Any, *, timeout_ms: int, trace_id: str | None = None) -> Any:
        return self.room.ask(request)

    def run(self, *steps: str | tuple[str, float]) -> None:
        for step in steps:
            self._run(step)

    def _run(self, step: str | tuple[str, float]) -> None:
        match step:
            case ("set", days):
                self.room.clock.wall += round(days * DAY_MS)
            case ("pass", days):
                self.room.clock.advance(round(days * DAY_MS))
            case "sweep" | "confirmed":
                self.sweeps.begin(on_demand=True, operator_confirmed=step == CONFIRMED)
                while not self.sweeps.step():
                    pass
            case "forget":
                assert self.room.ask(ForgetMemory(self.memory, "r", ME)).status == "deleted"
            case "forget many":
                (done,) = self.room.ask(ForgetMany((ForgetTarget(self.memory),), "r", ME)).results
                assert done.status == "deleted"
            case "recover":
                assert self.room.ask(RecoverMemory(self.memory, "r", ME)).status == "recovered"
            case "change":
                patch = MemoryPatch(id=self.memory, reason="r", content="The spare key is in the shed")
                assert self.room.ask(ModifyMemory(patch, ME)).status == "updated"
            case unknown:
                raise AssertionError(unknown)

    @property
    def is_kept(self) -> bool:
        return self.room.value("SELECT count(*) FROM memories WHERE id = ?", self.memory) == 1


Steps = tuple[str | tuple[str, float], ...]

KEPT: dict[str, Steps] = {
    "a right clock": (SWEEP, FORGET),
    "behind": (SWEEP, ("set", -60), FORGET, ("set", 60)),
    "behind by little more than the window": (SWEEP, ("set", -31), FORGET, ("set", 31)),
    "behind by half a year": (SWEEP, ("set", -179), FORGET, ("set", 179)),
    "in 1971": (SWEEP, ("set", -20_000), FORGET, ("set", 20_000)),
    "behind, many at once": (SWEEP, ("set", -60), FORGET_MANY, ("set", 60)),
    "behind before the first sweep of all": (("set", -60), FORGET, ("set", 60)),
    "behind at a sweep that purged nothing": (SWEEP, ("set", -60), SWEEP, FORGET, SWEEP, ("set", 60)),
    "behind twice": (SWEEP, ("set", -60), FORGET, ("set", 60), SWEEP, RECOVER, ("set", -90), FORGET, ("set", 90)),
    "behind, changed and forgotten": (SWEEP, ("set", -60), CHANGE, FORGET, ("set", 60)),
    "behind, forgotten, recovered and forgotten": (SWEEP, ("set", -60), FORGET, RECOVER, FORGET, ("set", 60)),
    "behind for hours, until a sweep confirmed it": (
        *(SWEEP, ("set", -60), SWEEP, ("pass", TWO_HOURS), SWEEP, FORGET),
        *(("set", 60), SWEEP, ("pass", TWO_HOURS)),
    ),
    "behind, and a person confirmed it": (SWEEP, ("set", -60), CONFIRMED, FORGET, ("set", 60), CONFIRMED),
    "ahead": (SWEEP, ("set", 60), FORGET, ("set", -60)),
    "ahead at a sweep that purged nothing": (SWEEP, FORGET, ("set", 60), SWEEP, ("set", -60)),
    "ahead, then behind": (SWEEP, ("set", 60), FORGET, RECOVER, ("set", -120), FORGET, ("set", 60)),
}


@pytest.mark.parametrize("steps", KEPT.values(), ids=list(KEPT))
def test_a_memory_that_was_forgotten_can_be_recovered_once_the_clock_is_right(room: StoreRoom, steps: Steps) -> None:
    deployment = Deployment(room)
    deployment.run(*steps, SWEEP)
    assert deployment.is_kept
    deployment.run(RECOVER)
    assert [row.id for row in room.recall("spare key", vector=[1.0]).rows] == [deployment.memory]


NEVER_AHEAD = {name: steps for name, steps in KEPT.items() if not name.startswith("ahead,") and name != "ahead"}


@pytest.mark.parametrize("steps", NEVER_AHEAD.values(), ids=list(NEVER_AHEAD))
def test_a_memory_that_was_forgotten_is_kept_for_its_whole_time_and_no_longer(room: StoreRoom, steps: Steps) -> None:
    deployment = Deployment(room)
    deployment.run(*steps, SWEEP)
    for _ in range(29):
        deployment.run(("pass", 1), SWEEP)
    assert deployment.is_kept
    deployment.run(("pass", 2), SWEEP)
    assert not deployment.is_kept


def test_a_memory_that_was_forgotten_while_the_clock_was_ahead_is_kept_until_that_time_and_its_window_have_passed(
    room: StoreRoom,
) -> None:
    deployment = Deployment(room)
    deployment.run(SWEEP, ("set", 60), FORGET, ("set", -60), *[("pass", 1.0), SWEEP] * 89)
    assert deployment.is_kept
    deployment.run(("pass", 2), SWEEP)
    assert not deployment.is_kept


def test_a_wrong_clock_prolongs_no_time_of_what_was_forgotten_before(room: StoreRoom) -> None:
    early, late = Deployment(room), Deployment(room)
    late.memory = room.remember("The bin is emptied on Tuesdays").id
    early.run(SWEEP, FORGET, ("pass", 1), SWEEP, ("pass", 1), SWEEP, ("set", -60))
    late.run(FORGET)
    early.run(("set", 60), *[("pass", 1.0), SWEEP] * 29)
    assert (early.is_kept, late.is_kept) == (False, True)


def test_a_clock_that_is_corrected_by_minutes_changes_no_time(room: StoreRoom) -> None:
    deployment = Deployment(room)
    minutes = 4 / 1440
    deployment.run(SWEEP, ("set", -minutes), FORGET, ("set", minutes), *[("pass", 1.0), SWEEP] * 30, ("pass", 0.1))
    deployment.run(SWEEP)
    assert not deployment.is_kept


def test_what_is_forgotten_by_a_right_clock_is_forgotten_at_its_time(room: StoreRoom) -> None:
    deployment = Deployment(room)
    deployment.run(SWEEP, ("pass", 1), FORGET)
    assert room.value("SELECT deleted_at FROM memories") == "2026-01-02T00:00:00.000Z"
