"""Test environment for the bus: a private socket directory, a supervisor socket, and real child processes on demand."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import zmq

from signet_actors.config.schema import Config
from signet_actors.protocol.control import ChildMessage, ChildState, Drain, Exiting, Heartbeat, Ready, TreeChanged
from signet_actors.runtime.messaging.envelope import MessageFactory, decode_header
from signet_actors.runtime.messaging.sockets import SUPERVISOR_SOCKET, bind_router, new_context
from signet_actors.runtime.processes.child_context import ChildContext, encode_context

REPOSITORY = Path(__file__).resolve().parents[2]
BOOT_ID = "00112233aabbccdd"
HANGS_S = 60.0
"""A limit against hanging, far above what a busy machine needs. It measures nothing."""


def eventually(check: Callable[[], Any], *, within_s: float = HANGS_S, what: str = "") -> Any:
    """Return the first true value of ``check``; fail if there is none in time.

    The longer it has waited, the more seldom it checks, up to twenty times a second: many a check is a request.
    """
    began = time.monotonic()
    while True:
        value = check()
        if value:
            return value
        waited = time.monotonic() - began
        assert waited < within_s, f"did not happen within {within_s} s: {what or check}"
        time.sleep(min(0.05, max(0.005, waited / 10)))


def log_lines(workspace: Path) -> list[dict[str, Any]]:
    """Return the lines of the log, without one that is being written."""
    paths = sorted((workspace / ".daemon" / "logs").glob("*.log"))
    return [json.loads(line) for path in paths for line in path.read_bytes().split(b"\n")[:-1]]


def child_environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(REPOSITORY), **more}


class BusHarness:
    """A stand-in for the supervisor: receives the children's messages, publishes the tree, starts and kills echo
    actors.
    """

    def __init__(self, directory: Path, config: Config) -> None:
        self.workspace = directory
        self.config = config
        self.socket_dir = directory / "s"
        self.socket_dir.mkdir(mode=0o700)
        self.context = new_context()
        self.router = bind_router(self.context, self.socket_dir, SUPERVISOR_SOCKET, "")
        self.message_factory = MessageFactory(self.boot("supervisor", "supervisor"))
        self.decode = msgspec.msgpack.Decoder(ChildMessage).decode
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.states: dict[str, ChildState] = {}
        self.said: dict[str, list[Any]] = {}

    def boot(
        self, name: str, role: str, incarnation: int = 1, *, boot_id: str = BOOT_ID, parent: int | None = None
    ) -> ChildContext:
        return ChildContext(
            name=name,
            role=role,
            incarnation=incarnation,
            boot_id=boot_id,
            supervisor_pid=os.getpid() if parent is None else parent,
            workspace=str(self.workspace),
            socket_dir=str(self.socket_dir),
            config=self.config,
        )

    def gateway_boot(self) -> ChildContext:
        """Return the context of a bus client in the test process, whose parent is the process that runs the tests."""
        return self.boot("gateway", "gateway", parent=os.getppid())

    def start(self, name: str, role: str, *, order: str = "") -> subprocess.Popen[bytes]:
        """Start a child process without waiting for it to be ready. Its incarnation is one more than its last."""
        incarnation = self.states[name].incarnation + 1 if name in self.states else 1
        with tempfile.TemporaryFile() as stdin:
            stdin.write(encode_context(self.boot(name, role, incarnation)))
            stdin.seek(0)
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.echo_actor"],
                stdin=stdin,
                env=child_environment(SIGNET_TEST_ECHO=f"{name}={order}"),
            )
        self.processes[name] = process
        self.states[name] = ChildState(name, role, "starting", incarnation, incarnation - 1, process.pid)
        self.said[name] = []
        return process

    def start_ready(self, name: str, role: str, *, order: str = "") -> subprocess.Popen[bytes]:
        process = self.start(name, role, order=order)
        eventually(lambda: self.heard(name, Ready), what=f"{name} ready")
        self.set_state(name, "up")
        return process

    def listen(self) -> None:
        while self.router.poll(0):
            identity, header, body = self.router.recv_multipart()
            assert not self.message_factory.is_foreign(decode_header(header))
            self.said.setdefault(identity.decode(), []).append(self.decode(body))

    def has_spoken(self, name: str) -> bool:
        self.listen()
        return bool(self.said.get(name))

    def heard(self, name: str, kind: type) -> Any:
        self.listen()
        return next((said for said in reversed(self.said.get(name, [])) if isinstance(said, kind)), None)

    def counters(self, name: str) -> dict[str, float]:
        beat = self.heard(name, Heartbeat)
        return beat.counters if beat else {}

    def exit_notice(self, name: str) -> Exiting | None:
        return self.heard(name, Exiting)  # type: ignore[no-any-return]

    def set_state(self, name: str, state: str) -> None:
        self.states[name] = msgspec.structs.replace(self.states[name], state=state)

    def announce_tree(self) -> None:
        self.listen()
        body = TreeChanged(list(self.states.values()))
        for name in self.said:
            self.send(name, body)

    def send(self, name: str, body: msgspec.Struct) -> None:
        with suppress(zmq.ZMQError):
            self.router.send_multipart([name.encode(), *self.message_factory.tell(body)], zmq.NOBLOCK)

    def died(self, name: str) -> None:
        """Report in the tree that the child has exited."""
        self.processes[name].wait(HANGS_S)
        self.set_state(name, "restarting")
        self.announce_tree()

    def kill(self, name: str) -> None:
        self.processes[name].kill()
        self.died(name)

    def drain(self, name: str) -> int:
        eventually(lambda: self.has_spoken(name))
        self.send(name, Drain(1000))
        return self.processes[name].wait(HANGS_S)

    def close(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
            process.wait(HANGS_S)
        self.context.destroy(linger=0)


@contextmanager
def bus_harness(config: Config | None = None) -> Iterator[BusHarness]:
    directory = Path(tempfile.mkdtemp(prefix="sgt-", dir="/tmp"))
    room = BusHarness(directory, config or Config())
    try:
        yield room
    finally:
        room.close()
        shutil.rmtree(directory, ignore_errors=True)
