"""Another program at the bus sockets gets no message, no write has an unknown outcome, and the daemon recovers.

Source: docs/reliability.md R22; signet_actors/runtime/DESIGN.md.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq

from signet_actors.runtime.messaging.sockets import socket_directory
from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon, private_root, remove_tree

pytestmark = pytest.mark.system


@pytest.fixture
def daemon() -> Iterator[LiveDaemon]:
    with live_daemon() as daemon:
        yield daemon


@contextlib.contextmanager
def zmq_router(path: Path) -> Iterator[zmq.Socket[bytes]]:
    """A ZeroMQ peer that answers nothing."""
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        router.set(zmq.LINGER, 0)
        router.bind(f"ipc://{path}")
        yield router


@contextlib.contextmanager
def mute_listener(path: Path) -> Iterator[None]:
    """A listener that accepts and says nothing."""
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(16)
        yield


def outcomes_until_healed(daemon: LiveDaemon, healed: Callable[[], bool]) -> set[int]:
    """The statuses of writes that were asked one after the other until all is well."""
    statuses: set[int] = set()

    def write() -> bool:
        answer = daemon.api.post("/api/memory/remember", {"content": f"note {len(statuses)} of a long day"})
        statuses.add(answer.status)
        return answer.status == 200 and healed() and daemon.is_ready()

    eventually(write, within_s=60, what="writes answered again")
    return statuses


def recalled(daemon: LiveDaemon) -> bool:
    """Whether a recall finds memories; it may be refused while the gateway has not yet heard of a death."""
    answer = daemon.api.post("/api/memory/recall", {"query": "long day"})
    return answer.status == 200 and bool(answer.json["results"])


@pytest.mark.parametrize("mailbox", ["writer", "gateway-search", "retention", "supervisor"])
def test_another_program_at_a_socket_gets_no_message_and_the_path_is_restored(daemon: LiveDaemon, mailbox: str) -> None:
    path = daemon.workspace / ".daemon" / "run" / f"{mailbox}.sock"
    with zmq_router(path) as stranger:
        taken = path.stat().st_ino
        statuses = outcomes_until_healed(daemon, lambda: path.exists() and path.stat().st_ino != taken)
        assert statuses <= {200, 503}, "a write whose outcome nobody knows"
        assert not stranger.poll(0), "the stranger was given work"
    eventually(lambda: recalled(daemon), within_s=60, what="recalls answered again")
    # And everything new finds its way: the searcher and the writer of the next life.
    for name in ("writer", "searcher-1"):
        daemon.kill(name)
        daemon.wait_ready()
    eventually(lambda: recalled(daemon), within_s=60, what="the memories are found again")
    assert daemon.stop() == 0


def test_a_silent_listener_at_the_writer_s_path_during_a_restart_loses_no_write(
    daemon: LiveDaemon,
) -> None:
    path = daemon.workspace / ".daemon" / "run" / "writer.sock"
    with mute_listener(path):
        taken = path.stat().st_ino
        with contextlib.suppress(ProcessLookupError):
            daemon.kill("writer")
        statuses = outcomes_until_healed(daemon, lambda: path.exists() and path.stat().st_ino != taken)
    assert statuses <= {200, 503}


def test_removed_sockets_are_created_again(daemon: LiveDaemon) -> None:
    run = daemon.workspace / ".daemon" / "run"
    remove_tree(run)
    names = {"writer.sock", "gateway-search.sock", "retention.sock", "supervisor.sock", "searcher-1.sock"}
    statuses = outcomes_until_healed(daemon, lambda: run.is_dir() and names <= {path.name for path in run.iterdir()})
    assert statuses <= {200, 503}
    eventually(lambda: recalled(daemon), within_s=60, what="recalls answered again")
    assert daemon.stop() == 0


def test_a_daemon_with_a_long_path_survives_a_logout() -> None:
    """logind removes the runtime directory then, in a place where the user may not create one."""
    root = private_root()
    runtime = root / "run" / "user" / "1000"
    runtime.mkdir(mode=0o700, parents=True)
    daemon = LiveDaemon(root, name="w" * 100, environ={"XDG_RUNTIME_DIR": str(runtime)})
    try:
        daemon.start()
        run = socket_directory(daemon.workspace)
        assert run.is_dir()
        remove_tree(root / "run")
        for _ in range(2):
            statuses = outcomes_until_healed(daemon, (run / "writer.sock").exists)
            assert statuses <= {200, 503}
            for name in ("writer", "searcher-1"):
                daemon.kill(name)
                daemon.wait_ready()
            eventually(lambda: recalled(daemon), within_s=60, what="the memories are found again")
            remove_tree(run)
        outcomes_until_healed(daemon, (run / "writer.sock").exists)
        assert daemon.stop() == 0
    finally:
        daemon.close()
        shutil.rmtree(root, ignore_errors=True)
        shutil.rmtree(socket_directory(daemon.workspace), ignore_errors=True)


def test_health_stays_good_without_writes_after_a_recall(daemon: LiveDaemon) -> None:
    """A recall sends the writer which memories were returned, which has no answer."""
    daemon.api.remember("The staging database listens on port 5433")
    daemon.api.recall("staging database port")
    time.sleep(8)  # the thing measured, not a synchronisation: longer than a writer may be silent
    eventually(lambda: daemon.api.get("/health").ok()["status"] == "healthy", within_s=60, what="healthy")
