"""The simulated daemon: the real supervisor with simulated processes, and the connections between them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from signet_actors.config.schema import Config
from signet_actors.config.workspace import Workspace
from signet_actors.protocol.control import UP, Heartbeat
from signet_actors.runtime import sync_points
from signet_actors.runtime.messaging.envelope import decode_header, new_counters
from signet_actors.runtime.processes.child_context import ChildContext
from signet_actors.runtime.supervision.children import ChildSpec
from signet_actors.runtime.supervision.control_socket import ControlMessage, ControlSocket
from signet_actors.runtime.supervision.sd_notify import Notifier
from signet_actors.runtime.supervision.supervisor import Supervisor
from tests.sim.faults import Fault, Weather
from tests.sim.processes import INCARNATIONS, SILENT_LOG, Incarnation, Killed, SimProcess
from tests.sim.world import NS, Timer, World

TREE = (
    ChildSpec("writer", "writer", core=True),
    ChildSpec("retention", "retention", core=False),
    ChildSpec("gateway", "gateway", core=True),
    ChildSpec("extractor", "extractor", core=False, count=lambda _: 2, pool=True),
)
SPAWNS_A_MINUTE = 15
SERVICE_MANAGER_S = 2.0


class Network:
    """Carries frames between clients and mailboxes with delays; some are lost or delivered twice. All frames of the
    processes in ``cut`` are lost.
    """

    def __init__(self, daemon: SimDaemon) -> None:
        self._daemon = daemon
        self._world = daemon.world
        self.cut: set[str] = set()
        self.swallows: Callable[[str, list[bytes]], bool] = lambda _to, _parts: False
        """Decides which replies to which process are lost."""

    def ask(self, peer: str, asker: Incarnation, parts: list[bytes]) -> bool:
        """Send a request; return False if no process has bound the mailbox ``peer``."""
        to = self._daemon.incarnation(peer)
        if to is None or not to.reachable or not asker.alive:
            return False
        self._carry(to, asker, to.arrived, asker.name, parts)
        return True

    def answer(self, by: Incarnation, name: str, parts: list[bytes]) -> bool:
        """Send a reply; return False if the process ``name`` has exited."""
        asker = self._daemon.incarnation(name)
        if asker is None or not by.alive:
            return False
        if self.swallows(name, parts):
            return True
        self._carry(asker, by, asker.answered, by.name, parts)
        return True

    def _carry(
        self,
        to: Incarnation,
        by: Incarnation,
        deliver: Callable[[str, list[bytes]], None],
        name: str,
        parts: list[bytes],
    ) -> None:
        weather, rng = self._daemon.weather, self._world.rng
        faulty = self._daemon.faulty
        if self.cut and not self.cut.isdisjoint((to.name, by.name)):
            return
        if faulty and rng.random() < weather.lost:
            return
        to.after(rng.uniform(*weather.delay_s), deliver, name, list(parts))
        if faulty and rng.random() < weather.doubled:
            to.after(rng.uniform(*weather.delay_s), deliver, name, list(parts))


class SimControl(ControlSocket):
    """The supervisor's socket: messages arrive late but in order, unless a child exits first, as on a real one.

    A heartbeat does not wake the supervisor, which reads it at its next turn, at most one heartbeat later. Waking for
    each of them was a fifth of the cost of a seed.
    """

    def __init__(self, daemon: SimDaemon) -> None:
        self._daemon = daemon
        self._inbox: list[ControlMessage] = []
        self._last: dict[tuple[str, str], tuple[int, int]] = {}
        """By direction and child: its incarnation, and when the last message arrives."""

    def close(self) -> None:
        """Do nothing: no socket is open."""

    def reclaim_path(self) -> bool:
        """Do nothing: there is no socket path that could be taken over."""
        return False

    def heard(self, incarnation: Incarnation, body: Any) -> None:
        said = ControlMessage(incarnation.name, decode_header(incarnation.message_factory.tell(body)[0]), body)
        self._daemon.world.call_later(self._on_the_way("from", incarnation), self._arrived, said)

    def _on_the_way(self, direction: str, incarnation: Incarnation) -> float:
        """Return the seconds until the next message arrives; messages keep their order."""
        world = self._daemon.world
        of, last_ns = self._last.get((direction, incarnation.name), (0, 0))
        at_ns = world.now_ns + int(world.rng.uniform(0.0001, 0.002) * 1e9)
        if of == incarnation.boot.incarnation:
            at_ns = max(at_ns, last_ns + 1)
        self._last[direction, incarnation.name] = (incarnation.boot.incarnation, at_ns)
        return (at_ns - world.now_ns) / 1e9

    def _arrived(self, said: ControlMessage) -> None:
        self._inbox.append(said)
        if not isinstance(said.body, Heartbeat):
            self._daemon.poke()

    def poll(self, longest_ms: int) -> bool:
        return bool(self._inbox)

    def read(self, incarnations: Mapping[str, int]) -> Iterator[ControlMessage]:
        inbox, self._inbox = self._inbox, []
        boot_id = self._daemon.boot_id
        yield from (
            said
            for said in inbox
            if said.header.boot_id == boot_id and said.header.incarnation == incarnations[said.name]
        )

    def tell(self, name: str, body: msgspec.Struct) -> bool:
        incarnation = self._daemon.incarnation(name)
        if incarnation is None or not incarnation.alive:
            return False
        incarnation.after(self._on_the_way("to", incarnation), incarnation.told, body)
        return True

    def broadcast(self, names: Iterable[str], body: msgspec.Struct) -> None:
        for name in names:
            self.tell(name, body)

    def answer(self, asked: ControlMessage, body: msgspec.Struct) -> bool:
        return self.tell(asked.name, body)


class SimDaemon:
    """Starts at the beginning of the simulation; a service manager restarts it when it exits."""

    def __init__(
        self,
        world: World,
        weather: Weather,
        workspace: Path,
        template: Path | None,
        *,
        tree: Sequence[ChildSpec] = TREE,
        incarnations: Mapping[str, Callable[[SimDaemon, ChildContext], Incarnation]] = INCARNATIONS,
        config: Config | None = None,
    ) -> None:
        self.world = world
        self._tree = tree
        self._incarnations = incarnations
        self.weather = weather
        self.faulty = True
        self.running: Incarnation | None = None
        self.workspace = Workspace(workspace)
        self.workspace.ensure()
        self.workspace.database.parent.mkdir(mode=0o700, exist_ok=True)
        if template is not None:
            shutil.copyfile(template, self.workspace.database)
        self.network = Network(self)
        self.control = SimControl(self)
        config = config or Config()
        # The disk never gets full here, so the disk reserve may be one page.
        writer = msgspec.structs.replace(config.writer, ballast_bytes=4096)
        self.config = msgspec.structs.replace(config, writer=writer)
        self.processes: dict[str, SimProcess] = {}
        self.spawned: dict[str, list[int]] = {}
        self.starts = 0
        self.resent = 0
        self._armed: dict[str, list[tuple[int, str]]] = {}
        self._signals, self._signals_in = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._next_turn: Timer | None = None
        self._poked = False
        self._down = False
        self._begin()

    @property
    def boot_id(self) -> str:
        return f"boot-{self.starts}"

    def close(self) -> None:
        """Kill every process and close every file."""
        for process in self.processes.values():
            process.kill()
        os.close(self._signals)
        os.close(self._signals_in)

    def incarnation(self, name: str) -> Incarnation | None:
        process = self.processes.get(name)
        return (
            process.incarnation
            if process is not None and process.incarnation is not None and process.incarnation.alive
            else None
        )

    def not_up(self) -> list[str]:
        """Return the children that do not serve."""
        return [child.name for child in self.supervisor.states().children if child.state != UP]

    def incarnation_of(self, boot: ChildContext) -> Incarnation:
        self.spawned.setdefault(boot.name, []).append(self.world.now_ns)
        self.world.note("spawn", boot.name, boot.incarnation)
        return self._incarnations[boot.role](self, boot)

    def exited(self, incarnation: Incarnation, code: int) -> None:
        process = self.processes[incarnation.name]
        if process.incarnation is incarnation:
            process.ended(code)
            self.poke()

    def poke(self) -> None:
        """Run one turn of the supervisor."""
        if not self._poked:
            self._poked = True
            self.world.call_later(0.0001, self._turn)

    def busiest_minute(self) -> int:
        """Return the largest number of incarnations that one child started within a minute."""
        most = 0
        for times in self.spawned.values():
            for index, begun in enumerate(times):
                most = max(most, sum(1 for other in times[index:] if other < begun + 60 * NS))
        return most

    # faults

    def suffer(self, fault: Fault) -> None:
        self.world.note("fault", fault)
        if fault.kind in {"point", "eio"}:
            self._armed.setdefault(fault.target, []).append((int(fault.amount), fault.kind))
            return
        if fault.kind == "clock":
            self.world.jump(int(fault.amount))
            return
        if fault.kind == "cut":
            self.network.cut.add(fault.target)
            self.world.call_later(float(fault.amount), self.network.cut.discard, fault.target)
            return
        incarnation = self.incarnation(fault.target)
        if incarnation is None:
            return
        if fault.kind == "kill":
            incarnation.exit(-9)
        else:
            incarnation.stop()
            self.world.call_later(fault.amount, incarnation.go_on)

    def passing(self, point: str) -> None:
        """Apply a fault that is planned for this sync point in the running process."""
        waiting = self._armed.get(point)
        running = self.running
        if not waiting or not self.faulty or running is None or not running.alive:
            return
        self._armed[point] = left = [(count - 1, kind) for count, kind in waiting]
        for entry in left:
            if entry[0] <= 0:
                left.remove(entry)
                self.world.note("point", point, entry[1])
                if entry[1] == "eio":
                    raise OSError(5, f"sync point {point}")
                running.struck()
                raise Killed

    # the supervisor

    def _begin(self) -> None:
        self.starts += 1
        self._down = False
        boot = ChildContext("supervisor", "supervisor", 1, self.boot_id, 1, str(self.workspace.root), "", self.config)
        counters = new_counters()

        def make_process(_spec: ChildSpec, name: str) -> SimProcess:
            process = self.processes[name] = SimProcess(self, name)
            return process

        self.supervisor = Supervisor(
            self._tree,
            self.config,
            boot,
            control=self.control,
            counters=counters,
            clock=self.world,
            rng=self.world.rng,
            log=SILENT_LOG,
            listen_fds=(),
            load=lambda: self.config,
            notifier=Notifier({}),
            retry_failed_ms=10_000,
            make_process=make_process,
        )
        self._turn()

    def _turn(self) -> None:
        self._poked = False
        if self._next_turn is not None:
            self._next_turn.cancel()
            self._next_turn = None
        if self._down:
            return
        self.supervisor.run_once(self._signals)
        if self.supervisor.finished:
            self._down = True
            self.world.note("gave up", self.supervisor.exit_reason)
            self.world.call_later(SERVICE_MANAGER_S, self._begin)
            return
        self._next_turn = self.world.call_later(max(1, self.supervisor.wait_ms()) / 1000, self._turn)


def watched(daemon: SimDaemon | None) -> None:
    """Report sync points to ``daemon`` from now on, or to no daemon."""
    sync_points.watch(None if daemon is None else daemon.passing)
