"""The directories of sockets and locks, their permissions, and the network guard."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from signet_actors.config.workspace import Workspace
from signet_actors.errors import ConfigError, WorkspaceLocked
from signet_actors.runtime.messaging.sockets import (
    MAX_PATH_BYTES,
    bind_router,
    make_private_directory,
    new_context,
    remove_directory,
    remove_stale_sockets,
    socket_directory,
)
from signet_actors.runtime.supervision.workspace_lock import WorkspaceLock
from tests.support.bus_harness import REPOSITORY, child_environment


@pytest.fixture
def short() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sgt-", dir="/tmp") as directory:
        yield Path(directory)


def test_sockets_are_in_the_workspace_if_its_path_is_short(short: Path) -> None:
    assert socket_directory(short) == short.resolve() / ".daemon" / "run"


def test_sockets_of_a_long_workspace_path_are_in_tmp(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short))
    long = short / ("deep" * 30)
    fallback = socket_directory(long)
    assert str(fallback).startswith(f"/tmp/signet-{os.getuid()}-")
    assert len(str(fallback)) + len("/gateway-search.sock") <= MAX_PATH_BYTES
    assert socket_directory(long) == fallback
    assert socket_directory(long / "other") != fallback


def test_a_file_at_the_guessable_name_in_tmp_does_not_keep_the_daemon_from_its_sockets(short: Path) -> None:
    long = short / ("deep" * 30)
    fallback = socket_directory(long)
    fallback.symlink_to(short)
    try:
        own = socket_directory(long)
        assert own != socket_directory(long), "nobody can make this one, too"
        assert own.name.startswith(f"{fallback.name}-")
        assert len(str(own)) + len("/gateway-search.sock") <= MAX_PATH_BYTES
    finally:
        fallback.unlink()
    assert socket_directory(long) == fallback


def test_the_sockets_of_a_daemon_that_has_stopped_are_removed_with_their_directory(short: Path) -> None:
    fallback = socket_directory(short / ("deep" * 30))
    for others in (False, True):
        make_private_directory(fallback)
        for name in ("supervisor.sock", "writer.sock"):
            with socket.socket(socket.AF_UNIX) as bound:
                bound.bind(str(fallback / name))
        if others:
            (fallback / "note").touch()
        remove_directory(fallback)
        assert fallback.exists() is others
    assert [path.name for path in fallback.iterdir()] == ["note"]
    shutil.rmtree(fallback)
    remove_directory(fallback)


def test_a_socket_directory_is_made_private(short: Path) -> None:
    run = short / "run"
    run.mkdir(mode=0o755)
    make_private_directory(run)
    assert stat.S_IMODE(run.stat().st_mode) == 0o700


def test_a_link_or_a_file_in_its_place_is_refused(short: Path) -> None:
    (short / "real").mkdir()
    (short / "link").symlink_to(short / "real")
    (short / "file").write_bytes(b"")
    for name in ("link", "file"):
        with pytest.raises(ConfigError, match="must be a directory"):
            make_private_directory(short / name)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_another_user_is_refused(short: Path) -> None:
    (short / "theirs").mkdir()
    os.chown(short / "theirs", 12345, 12345)
    with pytest.raises(ConfigError, match="another user"):
        make_private_directory(short / "theirs")


def test_a_socket_file_is_private_whatever_the_umask(short: Path) -> None:
    context = new_context()
    before = os.umask(0o022)
    try:
        bound = bind_router(context, short, "writer", "")
        assert stat.S_IMODE((short / "writer.sock").stat().st_mode) & 0o077 == 0
        bound.close()
    finally:
        os.umask(before)
        context.destroy(linger=0)


def test_only_stale_sockets_are_removed(short: Path) -> None:
    (short / "notes").write_bytes(b"")
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(short / "writer.sock"))
    remove_stale_sockets(short)
    assert [path.name for path in short.iterdir()] == ["notes"]


def test_a_socket_path_beyond_the_kernels_limit_is_a_clear_error(short: Path) -> None:
    context = new_context()
    try:
        with pytest.raises(ConfigError, match="longer than"):
            bind_router(context, short / ("x" * 120), "writer", "")
    finally:
        context.destroy(linger=0)


def test_the_lock_is_exclusive_and_reports_its_holder_until_released(short: Path) -> None:
    workspace = Workspace(short)
    workspace.ensure()
    first, second = WorkspaceLock(workspace), WorkspaceLock(workspace)
    first.acquire()
    with pytest.raises(WorkspaceLocked, match=f"pid {os.getpid()}"):
        second.acquire()
    first.release()
    second.acquire()
    second.release()


ATTEMPTS = """
import socket, sys, urllib.request
from signet_actors.runtime.processes.network_guard import block_network_sockets
early = socket.socket()
block_network_sockets()
a, b = socket.socketpair(socket.AF_UNIX)
a.sendall(b'x'); assert b.recv(1) == b'x'
attempts = {
    'tcp': lambda: socket.socket(socket.AF_INET),
    'tcp6': lambda: socket.socket(socket.AF_INET6),
    'udp': lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
    'lookup': lambda: socket.getaddrinfo('localhost', 80),
    'old lookup': lambda: socket.gethostbyname('localhost'),
    'early bind': lambda: early.bind(('127.0.0.1', 0)),
    'early connect': lambda: early.connect(('127.0.0.1', 9)),
    'convenience': lambda: socket.create_connection(('127.0.0.1', 9)),
    'http': lambda: urllib.request.urlopen('http://127.0.0.1:9/'),
}
for name, attempt in attempts.items():
    try:
        attempt()
    except PermissionError:
        continue
    except Exception as error:
        if 'this process must not' in str(error):
            continue
        sys.exit(f'{name}: {error!r}')
    sys.exit(f'{name} was allowed')
"""


def test_a_process_with_the_network_guard_cannot_open_a_network_socket() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ATTEMPTS],
        env=child_environment(),
        cwd=REPOSITORY,
        stderr=subprocess.PIPE,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_bus_works_in_a_process_with_the_network_guard(short: Path) -> None:
    script = (
        "import sys; from signet_actors.runtime.processes.network_guard import block_network_sockets\n"
        "block_network_sockets()\n"
        "from signet_actors.runtime.messaging.sockets import bind_router, connect_dealer, new_context\n"
        "context = new_context(); a = bind_router(context, sys.argv[1], 'writer', '')\n"
        "b = connect_dealer(context, sys.argv[1], 'writer', 'x', ''); assert b.poll(5000, 2); b.send(b'hello')\n"
        "assert a.poll(5000); assert a.recv_multipart() == [b'x', b'hello']; context.destroy(linger=0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(short)],
        env=child_environment(),
        cwd=REPOSITORY,
        stderr=subprocess.PIPE,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
