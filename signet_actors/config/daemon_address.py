"""Where the daemon of a workspace listens, as a client finds it.

Source: docs/security.md "Local mode".
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from signet_actors.config.regular_file import read_regular
from signet_actors.config.workspace import Workspace
from signet_actors.config.workspace_holder import is_held_by, lock_held
from signet_actors.errors import ConfigError, InvalidRequest

MAX_SMALL_FILE_BYTES: Final = 4096
WILDCARD_ADDRESSES: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - how to reach a daemon on all interfaces


@dataclass(frozen=True)
class Address:
    """Where the daemon listens.

    ``trusted`` is true if the workspace of the daemon needs no check: the user gave the URL, or the process that
    holds the workspace wrote the address down.
    """

    host: str
    port: int
    secure: bool = False
    prefix: str = ""
    trusted: bool = True
    workspace: Path | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}{self.prefix}"


def address_from_url(url: str, *, given_by: str = "--url") -> Address:
    """Return the address of a URL or a bare ``host:port``; raise InvalidRequest if it is neither."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port = parts.port
    except ValueError as error:
        raise InvalidRequest(f"{given_by} {url!r} is not an address ({error})") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidRequest(f"{given_by} {url!r} is not an address; it should look like http://127.0.0.1:3850")
    secure = parts.scheme == "https"
    return Address(parts.hostname, port or (443 if secure else 80), secure, parts.path.rstrip("/"))


def recorded_address(workspace: Path) -> Address | None:
    """Return the address that a daemon of this workspace wrote to its address file; None without a usable file.

    It is ``trusted`` only if the process that wrote it holds the workspace. After a daemon was killed, the daemon of
    another workspace may listen on the recorded port.
    """
    try:
        note = json.loads(read_regular(Workspace(workspace).address_file, MAX_SMALL_FILE_BYTES))
        host, port, pid = str(note["host"]), int(note["port"]), note.get("pid")
    except (ConfigError, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return Address(WILDCARD_ADDRESSES.get(host, host), port, trusted=is_held_by(workspace, pid), workspace=workspace)


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
