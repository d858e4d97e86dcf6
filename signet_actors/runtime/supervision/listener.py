"""The daemon's listening TCP socket. The supervisor owns it, so that it outlives every gateway process.

While the gateway restarts, connections wait in the backlog instead of being refused.

Source: docs/reliability.md "Supervision policy"; docs/decisions.md 45.
"""

from __future__ import annotations

import errno
import json
import os
import shlex
import socket
from pathlib import Path
from typing import Final

import msgspec

from signet_actors.config.daemon_address import WILDCARD_ADDRESSES
from signet_actors.config.schema import Config
from signet_actors.errors import ConfigError
from signet_actors.runtime.socket_uids import listener_inodes, listener_uids

HEALTH_WAIT_S: Final = 2.0
MAX_HEALTH_BYTES: Final = 1 << 20
MAX_PORT: Final = 65_535


def open_listener(host: str, port: int, backlog: int, workspace: Path) -> socket.socket:
    """Return a listening socket of the workspace's daemon. Raises ConfigError: who has the port, and a remedy."""
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
            taken = TakenPort(host, port, workspace)
            raise ConfigError(f"port {port} on {host} is in use by {taken.holder}; {taken.remedy}") from error
        raise ConfigError(
            f"cannot listen on {host}:{port}: {error.strerror}; set SIGNET_HOST or SIGNET_PORT"
        ) from error
    listener.setblocking(False)
    return listener


def open_local_listener(path: Path, backlog: int) -> socket.socket:
    """Return a listening Unix socket in a private directory, for programs of this user. Raises ConfigError."""
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen(backlog)
    except OSError as error:
        listener.close()
        raise ConfigError(f"cannot listen on {path}: {error.strerror or error}") from error
    listener.setblocking(False)
    return listener


class TakenPort:
    """A port on which another program listens: what it is, as far as that can be told, and what to do.

    A program of another user may call itself a Signet daemon, and that of this ``workspace`` does not run.
    """

    def __init__(self, host: str, port: int, workspace: Path) -> None:
        is_foreign = bool(listener_uids(port, WILDCARD_ADDRESSES.get(host, host)) - {os.geteuid()})
        served = None if is_foreign else _served_workspace(host, port)
        if served is not None and os.path.realpath(served) == os.path.realpath(workspace):
            served = None
        pid = port_holder(port)
        process = "another program" if pid is None else f"{_program_of(pid)}process {pid}"
        process = "a program of another user" if is_foreign and pid is None else process
        self.holder = process if served is None else f"the daemon of another workspace, {served} ({process})"
        another = f"`SIGNET_PORT={port + 1 if port < MAX_PORT else port - 1} signet start`"
        for_good = f"`signet config set gateway.port {port + 1 if port < MAX_PORT else port - 1}`"
        choose = f"choose another port: {another}, for good {for_good}"
        if is_foreign:
            self.remedy = choose
        elif served is None:
            self.remedy = f"stop it, or {choose}"
        else:
            use_it = f"use that one (--workspace {shlex.quote(served)}, or SIGNET_WORKSPACE), or stop it"
            self.remedy = f"{use_it}, or {choose}"


def _program_of(pid: int) -> str:
    """Return the name of the process's program with a comma; empty where the system does not tell."""
    try:
        name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
    return f"{name}, " if name.isprintable() and name else ""


def _served_workspace(host: str, port: int) -> str | None:
    """Return the workspace of the Signet daemon on the port; None if it is another program, or does not answer."""
    import http.client  # noqa: PLC0415 - only if the port is taken

    connection = http.client.HTTPConnection(WILDCARD_ADDRESSES.get(host, host), port, timeout=HEALTH_WAIT_S)
    try:
        connection.request("GET", "/health")
        health = json.loads(connection.getresponse().read(MAX_HEALTH_BYTES))
        served = health.get("agentsDir")
    except (OSError, http.client.HTTPException, ValueError, AttributeError, RecursionError):
        return None
    finally:
        connection.close()
    return served if isinstance(served, str) and served.startswith("/") and served.isprintable() else None


def with_address(config: Config, host: str, port: int) -> Config:
    """Return ``config`` with the address that the daemon really listens on."""
    gateway = msgspec.structs.replace(config.gateway, host=host, port=port)
    return msgspec.structs.replace(config, gateway=gateway)


def port_holder(port: int) -> int | None:
    """Return the pid that listens on ``port``, where /proc exists and permissions allow."""
    inodes = {f"socket:[{inode}]" for inode in listener_inodes(port)}
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
