"""The daemon's listening TCP socket. The supervisor owns it, so that it outlives every gateway process.

While the gateway restarts, connections wait in the backlog instead of being refused.

Source: docs/reliability.md "Supervision policy"; docs/decisions.md 45.
"""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import msgspec

from signet_actors.config.schema import Config
from signet_actors.errors import ConfigError

_LISTEN = "0A"


def open_listener(host: str, port: int, backlog: int) -> socket.socket:
    """Return a listening socket. Raises ConfigError that names the process on the port and how to choose another."""
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror or error}; set SIGNET_HOST") from error
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(backlog)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            holder = port_holder(port)
            by = f" by process {holder}" if holder is not None else ""
            raise ConfigError(
                f"port {port} on {host} is in use{by}; stop that process, or choose another port with SIGNET_PORT"
            ) from error
        raise ConfigError(
            f"cannot listen on {host}:{port}: {error.strerror}; set SIGNET_HOST or SIGNET_PORT"
        ) from error
    listener.setblocking(False)
    return listener


def with_address(config: Config, host: str, port: int) -> Config:
    """Return ``config`` with the address that the daemon really listens on."""
    gateway = msgspec.structs.replace(config.gateway, host=host, port=port)
    return msgspec.structs.replace(config, gateway=gateway)


def port_holder(port: int) -> int | None:
    """Return the pid that listens on ``port``, where /proc exists and permissions allow."""
    inodes: set[str] = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            columns = line.split()
            if columns[3] == _LISTEN and int(columns[1].rpartition(":")[2], 16) == port:
                inodes.add(f"socket:[{columns[9]}]")
    if not inodes:
        return None
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            for descriptor in (process / "fd").iterdir():
                if os.readlink(descriptor) in inodes:
                    return int(process.name)
        except OSError:
            continue
    return None
