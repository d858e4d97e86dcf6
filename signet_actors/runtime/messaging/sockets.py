"""Every socket of the bus is made here, with the same options, in a private directory.

Only ``ipc://`` endpoints are used: other machines and other users cannot reach the bus. With the key of the daemon's
boot (CURVE, RFC 26/ZeroMQ), only processes of that boot can connect to each other; any other process that binds or
connects to a socket path exchanges no message with them.

Source: docs/messaging.md rules 2-7, 12-15 and 19.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
import sys
from pathlib import Path

import zmq

from signet_actors.errors import ConfigError
from signet_actors.protocol.message import MAX_FRAME_BYTES

SUPERVISOR_SOCKET = "supervisor"
SEARCH_SOCKET = "gateway-search"
LOCAL_SOCKET = "http.sock"
"""On which the gateway serves HTTP to programs of this user."""

MAX_PATH_BYTES = 107 if sys.platform == "linux" else 103
"""The kernel's limit for a socket path, without the terminating zero."""

_LONGEST_NAME = "/gateway-search.sock"
_HIGH_WATER_MARK = 1024
"""A backstop only: a mailbox is bounded by the credits of its clients and the count of its owner."""
_HANDSHAKE_MS = 2000
_RECONNECT_MS = 20
"""The reconnect interval, with up to as much jitter; it never grows.

With ZeroMQ's growing intervals a restarted peer would be ready but unconnected for up to half a second. An attempt at a
socket that is not bound is one system call.
"""
_FLUSH_MS = 200


def socket_directory(workspace: Path) -> Path:
    """Return the private directory of this workspace's sockets; it need not exist yet.

    It is ``<workspace>/.daemon/run``, else ``/tmp/signet-<uid>-<8 hex>`` if that is too long for the kernel. The hex
    digits come from the real path of the workspace: the same workspace has the same directory, unless another user has
    made it, who can guess its name; then it is a new one that nobody can guess. It is not in
    ``$XDG_RUNTIME_DIR``, which is removed at logout and cannot be made again by the user.

    Source: docs/messaging.md rule 13; docs/reliability.md R22.
    """
    real = Path(os.path.realpath(workspace))
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:8]
    own = real / ".daemon" / "run"
    if len(os.fsencode(own)) + len(_LONGEST_NAME) <= MAX_PATH_BYTES:
        return own
    fallback = Path(f"/tmp/signet-{os.getuid()}-{digest}")  # noqa: S108 - checked for owner, mode and links
    with contextlib.suppress(OSError):
        found = fallback.lstat()
        if found.st_uid != os.getuid() or not stat.S_ISDIR(found.st_mode):
            return fallback.with_name(f"{fallback.name}-{secrets.token_hex(8)}")
    return fallback


def make_private_directory(path: Path) -> None:
    """Create ``path`` as a directory of mode 0700; raises ConfigError if it is a link or belongs to another user."""
    path.parent.mkdir(mode=0o700, exist_ok=True)  # never the workspace: it may have been moved away
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise ConfigError(f"{path} must be a directory, not a link or a file")
    if found.st_uid != os.getuid():
        raise ConfigError(f"{path} belongs to another user")
    if stat.S_IMODE(found.st_mode) != 0o700:
        path.chmod(0o700)


def remove_stale_sockets(directory: Path) -> None:
    """Remove all sockets, as the holder of the workspace lock. Raises ConfigError for anything else named like one."""
    for entry in directory.iterdir():
        if stat.S_ISSOCK(entry.lstat().st_mode):
            entry.unlink(missing_ok=True)
        elif entry.suffix == ".sock":
            raise ConfigError(f"{entry} must be a socket; remove it")


def remove_directory(directory: Path) -> None:
    """Remove the sockets of a daemon that has stopped, and their directory if nothing else is in it."""
    with contextlib.suppress(OSError, ConfigError):
        remove_stale_sockets(directory)
        directory.rmdir()


def new_bus_key() -> str:
    """Return the secret of a boot's bus; empty where ZeroMQ was built without CURVE."""
    return zmq.curve_keypair()[1].decode() if zmq.has("curve") else ""


def socket_identity(directory: Path | str, name: str) -> tuple[int, int] | None:
    """Return device and inode of the socket file ``name``, None where there is none."""
    try:
        found = os.lstat(f"{directory}/{name}.sock")
    except OSError:
        return None
    return found.st_dev, found.st_ino


def new_context() -> zmq.Context[zmq.Socket[bytes]]:
    """Return a context with one I/O thread; create it after exec, never share it across a fork."""
    return zmq.Context(io_threads=1)


def _options(socket: zmq.Socket[bytes]) -> None:
    socket.set(zmq.LINGER, 0)
    socket.set(zmq.SNDHWM, _HIGH_WATER_MARK)
    socket.set(zmq.RCVHWM, _HIGH_WATER_MARK)
    socket.set(zmq.MAXMSGSIZE, MAX_FRAME_BYTES)
    socket.set(zmq.HANDSHAKE_IVL, _HANDSHAKE_MS)


def _secure(socket: zmq.Socket[bytes], key: str, *, server: bool) -> None:
    if not key:
        return
    secret, public = key.encode(), zmq.curve_public(key.encode())
    socket.set(zmq.CURVE_SECRETKEY, secret)
    socket.set(zmq.CURVE_PUBLICKEY, public)
    if server:
        socket.set(zmq.CURVE_SERVER, 1)
    else:
        socket.set(zmq.CURVE_SERVERKEY, public)


def _endpoint(directory: Path | str, name: str) -> str:
    path = f"{directory}/{name}.sock"
    if len(os.fsencode(path)) > MAX_PATH_BYTES:
        raise ConfigError(f"the socket path {path} is longer than {MAX_PATH_BYTES} bytes")
    return f"ipc://{path}"


def bind_router(
    context: zmq.Context[zmq.Socket[bytes]], directory: Path | str, name: str, key: str
) -> zmq.Socket[bytes]:
    """Return a ROUTER bound to ``<directory>/<name>.sock``; its file is private, because every process has umask 077.

    Sending to an unknown peer raises instead of dropping the message. A restarted peer takes over its own name at once.
    """
    endpoint = _endpoint(directory, name)
    socket: zmq.Socket[bytes] = context.socket(zmq.ROUTER)
    _options(socket)
    _secure(socket, key, server=True)
    socket.set(zmq.ROUTER_MANDATORY, 1)
    socket.set(zmq.ROUTER_HANDOVER, 1)
    try:
        _bind(socket, endpoint)
    except zmq.ZMQError:
        socket.close()
        raise
    return socket


def rebind(socket: zmq.Socket[bytes], directory: Path | str, name: str) -> None:
    """Bind the path again after its file was replaced or removed; peers reconnect. Raises ``ZMQError``."""
    endpoint = _endpoint(directory, name)
    with contextlib.suppress(zmq.ZMQError):  # an earlier attempt unbound it and could not bind it
        socket.unbind(endpoint)
    _bind(socket, endpoint)


def _bind(socket: zmq.Socket[bytes], endpoint: str) -> None:
    before = os.umask(0o077)
    try:
        socket.bind(endpoint)
    finally:
        os.umask(before)


def connect_dealer(
    context: zmq.Context[zmq.Socket[bytes]], directory: Path | str, name: str, identity: str, key: str
) -> zmq.Socket[bytes]:
    """Return a DEALER for ``<directory>/<name>.sock`` that queues nothing for an absent peer."""
    endpoint = _endpoint(directory, name)
    socket: zmq.Socket[bytes] = context.socket(zmq.DEALER)
    _options(socket)
    _secure(socket, key, server=False)
    socket.set(zmq.IDENTITY, identity.encode())
    socket.set(zmq.IMMEDIATE, 1)
    socket.set(zmq.RECONNECT_IVL, _RECONNECT_MS)
    socket.set(zmq.RECONNECT_IVL_MAX, 0)
    socket.connect(endpoint)
    return socket


def close_all(context: zmq.Context[zmq.Socket[bytes]], *, flush: bool) -> None:
    """Close every socket of ``context``; with ``flush`` wait a bounded time until the last messages are sent.

    Departs: docs/messaging.md rule 12 asks for no linger at all. It is zero while a socket is in use. Only at exit it
    is 200 ms, so that the last replies and the exit notice to the supervisor are sent.
    """
    context.destroy(linger=_FLUSH_MS if flush else 0)
