"""How long the supervisor sleeps while a killed process has not exited, as on a hung disk."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, cast

import pytest
import structlog

from signet_actors.config.schema import Config
from signet_actors.runtime.clock import SystemClock
from signet_actors.runtime.processes.child_context import ChildContext
from signet_actors.runtime.supervision.child_process import ChildProcess
from signet_actors.runtime.supervision.children import ChildSpec
from signet_actors.runtime.supervision.control_socket import ControlSocket
from signet_actors.runtime.supervision.drain import drain_unneeded
from signet_actors.runtime.supervision.sd_notify import Notifier
from signet_actors.runtime.supervision.supervisor import Supervisor

LATE_NS = 10_000_000_000


def stop_unneeded(supervisor: Supervisor, clock: LateClock) -> None:
    control = cast("ControlSocket", Deaf())
    drain_unneeded(supervisor._children, clock.monotonic_ns(), supervisor.config, control, structlog.get_logger())


class Unkillable:
    """A process in a system call that never returns."""

    exists = True
    pid = 1

    def kill(self) -> None:
        pass


class Deaf:
    """A control socket without any child."""

    def tell(self, *_: object) -> bool:
        return False

    def reclaim_path(self) -> bool:
        return False


class LateClock(SystemClock):
    late_ns = 0

    def monotonic_ns(self) -> int:
        return super().monotonic_ns() + self.late_ns


@pytest.fixture
def clock() -> LateClock:
    return LateClock()


@pytest.fixture
def supervisor(clock: LateClock, tmp_path: Path) -> Supervisor:
    config = Config()
    tree = (ChildSpec("writer", "m", core=True), ChildSpec("extractor", "m", core=False))
    made = Supervisor(
        tree,
        config,
        ChildContext("supervisor", "supervisor", 1, "00", 1, str(tmp_path), str(tmp_path), config),
        control=cast("Any", Deaf()),
        counters={},
        clock=clock,
        rng=random.Random(0),
        log=structlog.get_logger(),
        listen_fds=(),
        load=lambda: config,
        notifier=Notifier({}),
        make_process=lambda _spec, _name: cast("ChildProcess", Unkillable()),
    )
    made._upkeep.run(config)
    return made


def test_waiting_for_an_overdue_child_does_not_busy_loop(supervisor: Supervisor, clock: LateClock) -> None:
    child = supervisor._children["extractor"]
    child.wanted = False
    stop_unneeded(supervisor, clock)
    assert child.kill_reason
    clock.late_ns = LATE_NS
    supervisor._upkeep.run(supervisor.config)
    stop_unneeded(supervisor, clock)
    assert supervisor.wait_ms() > 100


def test_waiting_after_the_drain_deadline_does_not_busy_loop(supervisor: Supervisor, clock: LateClock) -> None:
    supervisor._stop(0, "")
    clock.late_ns = LATE_NS
    supervisor._upkeep.run(supervisor.config)
    assert supervisor._drain is not None
    assert not supervisor._drain.step()
    assert 10 < supervisor.wait_ms() <= 50
