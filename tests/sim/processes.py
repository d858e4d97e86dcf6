"""Simulated processes: the real supervisor launches and kills them, and real actors run in them.

A killed process sends and receives nothing and has lost its memory; messages on their way to it are lost. What the
writer had committed is in its database file, which is a real one.
"""

from __future__ import annotations

import errno
import os
import random
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import structlog
import zmq

from signet_actors.errors import ActorExit
from signet_actors.protocol.control import Drain, Heartbeat, Ready, Starting, TreeChanged
from signet_actors.protocol.leases import ReapLeases
from signet_actors.protocol.message import Request
from signet_actors.protocol.writer import WriterReply
from signet_actors.runtime.messaging.async_client import RequestTracker
from signet_actors.runtime.messaging.envelope import MessageFactory, decode_header, encode_frame, new_counters
from signet_actors.runtime.messaging.mailbox import Mailbox
from signet_actors.runtime.processes.actor_loop import ActorLoop
from signet_actors.runtime.processes.call_reporter import unreported
from signet_actors.runtime.processes.child_context import ChildContext
from signet_actors.runtime.processes.idle_trimmer import IdleTrimmer
from signet_actors.runtime.supervision.child_process import ChildProcess
from signet_actors.writer.actor import Writer
from signet_actors.writer.dispatch import MAILBOX
from tests.sim.world import NS, Promise, Timer

if TYPE_CHECKING:
    from tests.sim.daemon import SimDaemon

SILENT_LOG = structlog.wrap_logger(None, processors=[lambda *_: (_ for _ in ()).throw(structlog.DropEvent())])
WRITER_CREDITS = 64
ASK_TIMEOUT_MS = 5_000


class Killed(BaseException):
    """Raised in a process that is killed at this instruction."""


class Incarnation:
    """One incarnation of a child; ``alive`` until it is killed or exits, ``stopped`` while SIGSTOP holds it."""

    def __init__(self, daemon: SimDaemon, boot: ChildContext) -> None:
        self.daemon = daemon
        self.world = daemon.world
        self.boot = boot
        self.name = boot.name
        self.alive = True
        self.stopped = False
        self.message_factory = MessageFactory(boot)
        self.counters = new_counters()
        self._deferred: list[tuple[Callable[..., None], tuple[Any, ...]]] = []

    def begin(self) -> None:
        self.say(Starting(""))
        self.after(self.world.rng.uniform(0.05, 0.4), self.ready)

    def ready(self) -> None:
        self.say(Ready())
        self.heartbeat()

    def heartbeat(self) -> None:
        self.say(Heartbeat({}))
        self.after(self.boot.config.supervision.heartbeat_ms / 1000, self.heartbeat)

    def say(self, body: Any) -> None:
        """Send a message to the supervisor."""
        self.daemon.control.heard(self, body)

    def told(self, body: Any) -> None:
        """Receive a message from the supervisor."""
        if isinstance(body, Drain):
            self.exit(0)

    @property
    def reachable(self) -> bool:
        """Return True if this process has a mailbox and it is bound."""
        return False

    def arrived(self, identity: str, parts: list[bytes]) -> None:
        """Receive a message in the mailbox."""
        raise NotImplementedError

    def answered(self, by: str, parts: list[bytes]) -> None:
        """Receive the reply of ``by`` to a request of this process."""
        raise NotImplementedError

    def after(self, delay_s: float, call: Callable[..., None], *arguments: Any) -> Timer:
        return self.world.call_later(delay_s, self.run, call, *arguments)

    def run(self, call: Callable[..., None], *arguments: Any) -> None:
        """Run ``call`` in this process: never after it was killed, and delayed while it is stopped."""
        if not self.alive:
            return
        if self.stopped:
            self._deferred.append((call, arguments))
            return
        self.daemon.running = self
        try:
            call(*arguments)
        except Killed:
            self.exit(-9)
        except ActorExit as leaving:
            self.exit(leaving.exit_code)
        finally:
            self.daemon.running = None

    def stop(self) -> None:
        self.stopped = True

    def go_on(self) -> None:
        self.stopped = False
        deferred, self._deferred = self._deferred, []
        for call, arguments in deferred:
            self.run(call, *arguments)

    def exit(self, code: int) -> None:
        """End the process; the supervisor is notified as by the kernel."""
        if not self.alive:
            return
        self.alive = False
        self.forget()
        self.world.note("exit", self.name, self.boot.incarnation, code)
        self.daemon.exited(self, code)

    def struck(self) -> None:
        """Mark the process as killed before ``Killed`` is raised, because code of the actor might catch it."""

    def forget(self) -> None:
        """Drop the state that only this process has."""


class ClientIncarnation(Incarnation):
    """A process that sends requests to the writer, with the gateway's real request tracking."""

    def __init__(self, daemon: SimDaemon, boot: ChildContext) -> None:
        super().__init__(daemon, boot)
        self._decode = msgspec.msgpack.Decoder(WriterReply).decode
        self.asks = RequestTracker(
            self.world,  # type: ignore[arg-type]
            self.world,
            self.message_factory,
            self._send,
            self.counters,
            peer="writer",
            max_items=WRITER_CREDITS,
            max_bytes=1 << 20,
            resend=True,
        )

    def ask(self, request: Request[Any], timeout_ms: int = ASK_TIMEOUT_MS) -> Promise:
        """Send the request. Raises Busy like the real one."""
        promise: Promise = self.asks.submit("trace", timeout_ms, encode_frame(request), [])  # type: ignore[assignment]
        return promise

    def told(self, body: Any) -> None:
        if isinstance(body, TreeChanged):
            for child in body.children:
                if child.name == "writer":
                    self.asks.on_peer_state(child.state, child.incarnation)
        super().told(body)

    def answered(self, by: str, parts: list[bytes]) -> None:
        assert by == "writer"
        header = decode_header(parts[0])
        self.asks.on_reply(header.message_id, self._decode(parts[1]), header.attempt)

    def forget(self) -> None:
        self.daemon.resent += self.counters["resent"]
        self.asks.close()

    def _send(self, parts: list[bytes]) -> bool:
        return self.daemon.network.ask("writer", self, parts)


class Reaper(ClientIncarnation):
    """The lease reaper of retention."""

    def ready(self) -> None:
        super().ready()
        self.after(5.0, self._reap)

    def _reap(self) -> None:
        try:
            self.ask(ReapLeases())
        finally:
            self.after(5.0, self._reap)


class WriterIncarnation(Incarnation):
    """The real writer with its real mailbox and a real database."""

    def __init__(self, daemon: SimDaemon, boot: ChildContext) -> None:
        super().__init__(daemon, boot)
        self._inbox: deque[list[bytes]] = deque()
        self._busy_until_ns = 0
        self._waking: Timer | None = None
        self._open = False
        self.actor = Writer(boot, _Loop(self), self.world, random.Random(boot.incarnation), SILENT_LOG)
        limits = boot.config.writer
        self._box: Mailbox[Any] = Mailbox(
            self,  # type: ignore[arg-type]
            msgspec.msgpack.Decoder(MAILBOX),
            self.message_factory,
            self.world,
            SILENT_LOG,
            self.counters,
            max_items=limits.queue_limit,
            max_bytes=limits.queue_bytes,
        )

    def ready(self) -> None:
        self.actor.start()
        self._open = True
        super().ready()
        self._work()

    @property
    def reachable(self) -> bool:
        return self.alive and self._open

    def arrived(self, identity: str, parts: list[bytes]) -> None:
        self._inbox.append([identity.encode(), *parts])
        self._wake(0)

    # the socket's side that the mailbox uses

    def recv_multipart(self, _flags: int) -> list[bytes]:
        if not self._inbox:
            raise zmq.Again
        return self._inbox.popleft()

    def send_multipart(self, parts: list[bytes], _flags: int) -> None:
        if not self.daemon.network.answer(self, parts[0].decode(), parts[1:]):
            raise zmq.ZMQError(errno.EHOSTUNREACH)

    def _wake(self, delay_s: float) -> None:
        due_ns = max(self.world.now_ns + int(delay_s * NS), self._busy_until_ns)
        if self._waking is not None:
            if self._waking.due_ns <= due_ns:
                return
            self._waking.cancel()
        self._waking = self.after((due_ns - self.world.now_ns) / NS, self._work)

    def _work(self) -> None:
        self._waking = None
        batch = self._box.take()
        assert len(batch) <= self.boot.config.writer.queue_limit, "the mailbox is beyond its bound"
        if batch:
            self._busy_until_ns = self.world.now_ns + int(self.world.rng.uniform(*self.daemon.weather.work_s) * NS)
            self.actor.handle(batch)
        wish = self.actor.tick()
        if self._inbox:
            self._wake(0)
        elif wish is not None:
            self._wake(wish)

    def forget(self) -> None:
        self._inbox.clear()
        if self.actor.engine is not None:
            self.actor.engine.close()
        if self.actor._lock_fd is not None:
            os.close(self.actor._lock_fd)


class _Loop(ActorLoop):
    """The part of ``ActorLoop`` that the writer uses."""

    def __init__(self, incarnation: WriterIncarnation) -> None:
        self.incarnation = incarnation
        self.idle_trimmer = IdleTrimmer()
        self.calls = unreported(incarnation.world)

    def starting(self, detail: str) -> None:
        self.incarnation.say(Starting(detail))

    def heartbeat(self) -> None:
        """Do nothing: the incarnation sends heartbeats by itself."""

    def tell_supervisor(self, body: msgspec.Struct) -> None:
        self.incarnation.say(body)


class SimProcess(ChildProcess):
    """The supervisor's handle of a simulated process."""

    def __init__(self, daemon: SimDaemon, name: str) -> None:
        self.inherited = ()
        self._daemon = daemon
        self._name = name
        self.incarnation: Incarnation | None = None
        self._code: int | None = None

    @property
    def exists(self) -> bool:
        return self.incarnation is not None

    @property
    def pid(self) -> int | None:
        return 1000 + self.incarnation.boot.incarnation if self.incarnation is not None else None

    def launch(self, document: bytes) -> None:
        boot = msgspec.json.decode(document, type=ChildContext)
        self._code = None
        self.incarnation = self._daemon.incarnation_of(boot)
        self.incarnation.after(self._daemon.world.rng.uniform(0.01, 0.1), self.incarnation.begin)

    def kill(self) -> None:
        if self.incarnation is not None:
            self.incarnation.exit(-9)

    def ended(self, code: int) -> None:
        self._code = code

    def reap(self) -> int | None:
        return self._code

    def clear(self) -> None:
        self.incarnation = None
        self._code = None

    def terminate(self) -> None:
        self.kill()


INCARNATIONS: dict[str, type[Incarnation]] = {
    "writer": WriterIncarnation,
    "retention": Reaper,
    "gateway": ClientIncarnation,
    "extractor": ClientIncarnation,
}
