"""How the process of a child starts: forked by the fork server, or as a fresh interpreter."""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest
import structlog

from signet_actors.runtime.supervision.child_process import ChildProcess
from signet_actors.runtime.supervision.fork_server import ForkServer, reap_orphans
from tests.support.bus_harness import REPOSITORY, eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forking needs Linux")

ROLE = '''
"""Writes down its parent, its environment and what it is given; then exits with 3, or waits for a signal."""
import os, signal, socket, sys

def main():
    given = sys.stdin.readline().split()
    with open({path!r}, "a", buffering=1) as told:
        told.write(f"{{os.getppid()}} {{os.environ.get('PLANTED')}} {{given[0]}}\\n")
        if len(given) > 2:
            told.write(str(socket.socket(fileno=int(given[2])).getsockname()[1]) + "\\n")
    if given[1] == "wait":
        signal.pause()
    if given[1] == "raise":
        raise ValueError("told to")
    return 3

if __name__ == "__main__":
    sys.exit(main())
'''


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "told"
    (tmp_path / "scripted_role.py").write_text(ROLE.format(path=str(path)), encoding="utf-8")
    (tmp_path / "broken_role.py").write_text("import nothing_of_this_name\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(REPOSITORY)]))
    return path


@contextmanager
def fork_server() -> Iterator[ForkServer]:
    made = ForkServer(["scripted_role", "broken_role"], structlog.get_logger())
    made.start()
    eventually(lambda: not made.is_starting, within_s=60, what="everything is imported")
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture
def server(told: Path) -> Iterator[ForkServer]:
    with fork_server() as made:
        yield made


Child = Callable[..., ChildProcess]


@pytest.fixture
def child() -> Iterator[Child]:
    made: list[ChildProcess] = []

    def new(server: ForkServer | None, module: str = "scripted_role", inherited: tuple[int, ...] = ()) -> ChildProcess:
        made.append(
            ChildProcess("child", module, inherited, structlog.get_logger(), {"PLANTED": "beside ours"}, server)
        )
        return made[-1]

    yield new
    for process in made:
        process.terminate()


def lines(told: Path) -> list[str]:
    return told.read_text(encoding="utf-8").splitlines() if told.exists() else []


def code(child: ChildProcess) -> int:
    eventually(lambda: child.reap() is not None, within_s=60, what="it has exited")
    found = child.reap()
    assert found is not None
    return found


@pytest.mark.parametrize("forked", [True, False])
def test_a_child_belongs_to_this_process_reads_its_context_and_returns_its_exit_code(
    server: ForkServer, child: Child, told: Path, forked: bool
) -> None:
    started = child(server if forked else None)
    started.launch(b"context end\n")
    assert started.exists
    assert code(started) == 3
    assert lines(told) == [f"{os.getpid()} beside ours context"]
    assert "PLANTED" not in os.environ


def test_a_forked_child_has_the_name_of_its_module_and_a_signal_that_kills_it_is_reported(
    server: ForkServer, child: Child, told: Path
) -> None:
    started = child(server)
    started.launch(b"context wait\n")
    eventually(lambda: len(lines(told)) == 1, within_s=60)
    assert b"-m scripted_role" in Path(f"/proc/{started.pid}/cmdline").read_bytes()
    started.kill()
    assert code(started) == -signal.SIGKILL


def test_an_exception_ends_a_forked_child_like_an_interpreter(
    told: Path, child: Child, capfd: pytest.CaptureFixture[str]
) -> None:
    with fork_server() as server:
        started = child(server)
        started.launch(b"context raise\n")
        assert code(started) == 1
    assert "ValueError: told to" in capfd.readouterr().err


def test_a_child_inherits_the_listening_socket_under_the_number_that_its_context_names(
    server: ForkServer, child: Child, told: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        started = child(server, inherited=(listener.fileno(),))
        started.launch(f"context end {listener.fileno()}\n".encode())
        assert code(started) == 3
        assert lines(told)[1] == str(listener.getsockname()[1])


def test_a_context_of_a_megabyte_is_read_whole(server: ForkServer, child: Child, told: Path) -> None:
    started = child(server)
    started.launch(b"c" * 1_000_000 + b" end\n")
    assert code(started) == 3
    assert lines(told)[0].endswith("c" * 1_000_000)


def test_what_cannot_be_imported_is_started_as_an_interpreter_which_says_why(
    capfd: pytest.CaptureFixture[str], server: ForkServer, child: Child
) -> None:
    started = child(server, "broken_role")
    started.launch(b"context end\n")
    assert code(started) == 1
    assert "nothing_of_this_name" in capfd.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_children_are_started_and_go_on_when_the_fork_server_is_killed_or_stopped(
    server: ForkServer, child: Child, told: Path, number: signal.Signals
) -> None:
    before = child(server)
    before.launch(b"before wait\n")
    eventually(lambda: len(lines(told)) == 1, within_s=60)
    assert server.pid is not None
    os.kill(server.pid, number)
    after = child(server)
    after.launch(b"after end\n")
    assert code(after) == 3
    assert lines(told)[1] == f"{os.getpid()} beside ours after"
    assert before.reap() is None
    assert server.pid is None


def test_the_descendants_of_a_killed_child_leave_no_remains(server: ForkServer, child: Child) -> None:
    kept = child(server)
    kept.launch(b"context end\n")
    eventually(lambda: os.waitid(os.P_PID, kept.pid or 0, os.WEXITED | os.WNOHANG | os.WNOWAIT), within_s=60)
    reap_orphans({server.pid, kept.pid})
    assert code(kept) == 3
    orphan = os.fork()
    if orphan == 0:
        os._exit(0)
    eventually(lambda: os.waitid(os.P_PID, orphan, os.WEXITED | os.WNOHANG | os.WNOWAIT), within_s=60)
    reap_orphans({server.pid})
    with pytest.raises(ChildProcessError):
        os.waitpid(orphan, os.WNOHANG)


def test_without_a_descriptor_for_it_children_are_fresh_interpreters(
    child: Child, told: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(*_: object) -> NoReturn:
        raise OSError(errno.EMFILE, "Too many open files")

    server = ForkServer(["scripted_role"], structlog.get_logger())
    monkeypatch.setattr(socket, "socketpair", exhausted)
    server.start()
    assert not server.is_starting
    started = child(server)
    started.launch(b"context end\n")
    assert code(started) == 3
