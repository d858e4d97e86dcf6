"""Where the daemon listens, and which token it gets: of the environment, else the one that `signet login` stored.

``signet-hook`` imports none of this, but ``signet_actors/hook/daemon.py`` follows the same rules.

Source: docs/cli.md "Which daemon"; docs/security.md "Local mode".
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from signet_actors.config.regular_file import read_regular
from signet_actors.config.workspace import Workspace
from signet_actors.config.workspace_holder import is_held_by, lock_held
from signet_actors.errors import ConfigError, InvalidRequest

URL_VARIABLE: Final = "SIGNET_DAEMON_URL"
HOST_VARIABLE: Final = "SIGNET_HOST"
PORT_VARIABLE: Final = "SIGNET_PORT"
TOKEN_VARIABLES: Final = ("SIGNET_TOKEN", "SIGNET_API_KEY")
DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 3850
MAX_PORT: Final = 65_535
MAX_SMALL_FILE_BYTES: Final = 4096
MAX_LOGINS_BYTES: Final = 65_536
WILDCARD_ADDRESSES: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - how to reach a daemon on all interfaces


@dataclass(frozen=True)
class Address:
    """Where the daemon listens.

    ``trusted`` is true if the workspace of the daemon needs no check: the user gave the URL, or the process that
    holds the workspace wrote the address down. ``secure``: its port speaks TLS. ``socket``: the Unix socket at which
    programs of its user reach it, in plain HTTP; empty if there is none.
    """

    host: str
    port: int
    secure: bool = False
    prefix: str = ""
    trusted: bool = True
    workspace: Path | None = None
    socket: str = ""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}{self.prefix}"

    @property
    def spoken(self) -> str:
        """The URL as requests name it: plain HTTP at the socket."""
        return str(self).replace("https", "http", 1) if self.socket else str(self)


def address_from_url(url: str, *, given_by: str = "--url") -> Address:
    """Return the address of a URL or a bare ``host:port``; raise InvalidRequest if it is neither."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port = parts.port
    except ValueError as error:
        raise InvalidRequest(f"{given_by} {url!r} is not an address ({error})") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidRequest(f"{given_by} {url!r} is not an address; it should look like http://127.0.0.1:3850")
    if parts.username is not None or parts.query or parts.fragment:
        raise InvalidRequest(f"{given_by} is more than an address; it should look like http://127.0.0.1:3850")
    secure = parts.scheme == "https"
    return Address(parts.hostname, port or (443 if secure else 80), secure, parts.path.rstrip("/"))


def find_daemon(environ: Mapping[str, str], workspace: Path) -> Address | None:
    """Return the address of the workspace's daemon, as a command looks for it; None if nothing names one.

    The first of: the daemon that runs on the workspace; SIGNET_HOST and SIGNET_PORT, by which a daemon is told where to
    listen, so that the address is not ``trusted``. They name no daemon if they name the port of one that was killed:
    another program may listen there. Raises InvalidRequest.
    """
    recorded = recorded_address(workspace)
    if recorded is not None and recorded.trusted:
        return recorded
    found = _address_of_host_and_port(environ, workspace)
    return None if found is not None and recorded is not None and found.port == recorded.port else found


def address_of_url_variable(environ: Mapping[str, str]) -> Address | None:
    """Return the address that SIGNET_DAEMON_URL names, None if it is not set. Raises InvalidRequest."""
    url = environ.get(URL_VARIABLE)
    return address_from_url(url, given_by=URL_VARIABLE) if url else None


def _address_of_host_and_port(environ: Mapping[str, str], workspace: Path) -> Address | None:
    """Return the address that SIGNET_HOST and SIGNET_PORT name; None without them, or for any free port."""
    host, port = environ.get(HOST_VARIABLE) or "", (environ.get(PORT_VARIABLE) or "").strip()
    if port and not (port.isascii() and port.isdigit() and int(port) <= MAX_PORT):
        raise InvalidRequest(f"{PORT_VARIABLE} {port!r} is not a port")
    if not (host or port) or is_any_port(environ):
        return None
    return Address(
        WILDCARD_ADDRESSES.get(host, host) or DEFAULT_HOST,
        int(port or DEFAULT_PORT),
        trusted=False,
        workspace=workspace,
    )


def is_any_port(environ: Mapping[str, str]) -> bool:
    """Return whether the daemon was told to listen on any free port, so that only its address file names it."""
    return (environ.get(PORT_VARIABLE) or "").strip() == "0"


def token_for(address: Address | None, environ: Mapping[str, str]) -> str | None:
    """Return the token or API key of the environment that the daemon at the address gets; None if there is none.

    A token beside SIGNET_DAEMON_URL is for that daemon and no other.
    """
    if environ.get(URL_VARIABLE):
        try:
            if address != address_of_url_variable(environ):
                return None
        except InvalidRequest:
            return None
    return next((environ[name] for name in TOKEN_VARIABLES if environ.get(name)), None)


def logins_file(environ: Mapping[str, str]) -> Path:
    """Return the file of this user with a token for each daemon that `signet login` was used for."""
    configured = environ.get("XDG_CONFIG_HOME", "")
    home = Path(environ.get("HOME", "") or os.path.expanduser("~"))
    return (Path(configured) if configured.startswith("/") else home / ".config") / "signet" / "logins.json"


def read_logins(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the stored tokens by the addresses of their daemons; none if there is no usable file."""
    try:
        found = json.loads(read_regular(logins_file(environ), MAX_LOGINS_BYTES))
    except (ConfigError, OSError, ValueError, RecursionError):
        return {}
    pairs = found.items() if isinstance(found, dict) else ()
    return {url: token for url, token in pairs if isinstance(token, str) and token.isascii() and token.isprintable()}


def recorded_address(workspace: Path) -> Address | None:
    """Return the address that a daemon of this workspace wrote to its address file; None without a usable file.

    It is ``trusted`` only if the process that wrote it holds the workspace. After a daemon was killed, the daemon of
    another workspace may listen on the recorded port.
    """
    try:
        note = json.loads(read_regular(Workspace(workspace).address_file, MAX_SMALL_FILE_BYTES))
        host, port, pid = str(note["host"]), int(note["port"]), note.get("pid")
        local, secure = str(note.get("socket") or ""), note.get("tls") is True
    except (ConfigError, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    trusted, host = is_held_by(workspace, pid), WILDCARD_ADDRESSES.get(host, host)
    local = local if trusted and _is_own_socket(local) else ""
    return Address(host, port, secure, trusted=trusted, workspace=workspace, socket=local)


def _is_own_socket(path: str) -> bool:
    """Return whether the path is a socket of this user: in /tmp another user could make a new one of the same name."""
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return False
    return stat.S_ISSOCK(found.st_mode) and found.st_uid == os.geteuid()


def owner_token(address: Address) -> str | None:
    """Return the token that proves to our workspace's daemon that we run as its owner; None if there is none.

    Only the recorded address of a running daemon gets it. Other ports may belong to other programs.
    """
    workspace = address.workspace
    if workspace is None:
        return None
    try:
        token = read_regular(Workspace(workspace).owner_token_file, MAX_SMALL_FILE_BYTES).decode("ascii")
    except (ConfigError, OSError, UnicodeDecodeError):
        return None
    if not token.isalnum() or recorded_address(workspace) != address or not lock_held(workspace):
        return None
    return token
