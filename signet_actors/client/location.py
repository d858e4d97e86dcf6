"""Where the client finds its daemon, and what it shows as its credential.

An explicit URL or workspace comes first, then SIGNET_DAEMON_URL, then the address that a running daemon wrote down in
the workspace, then SIGNET_HOST and SIGNET_PORT, then http://127.0.0.1:3850.

Source: docs/guides/python.md "Where the daemon is".
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from signet_actors.client.errors import DaemonUnreachable
from signet_actors.config.daemon_address import WILDCARD_ADDRESSES, Address, address_from_url, recorded_address
from signet_actors.config.workspace import WORKSPACE_VARIABLE, workspace_from
from signet_actors.errors import ConfigError, InvalidRequest

URL_VARIABLE: Final = "SIGNET_DAEMON_URL"
HOST_VARIABLE: Final = "SIGNET_HOST"
PORT_VARIABLE: Final = "SIGNET_PORT"
TOKEN_VARIABLES: Final = ("SIGNET_TOKEN", "SIGNET_API_KEY")
DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 3850
ADVICE: Final = "start it with `signet start`"


class Location:
    """The place of one daemon. It is looked up again after a daemon was not there: it may be back at another port."""

    def __init__(
        self, url: str | None = None, workspace: str | Path | None = None, environ: Mapping[str, str] | None = None
    ) -> None:
        """Raise InvalidRequest or ConfigError if the place is not valid."""
        self._environ = os.environ if environ is None else environ
        self._named = workspace is not None
        self._workspace = None if workspace is None else Path(workspace).expanduser().absolute()
        self._fixed: Address | None = None
        variable = self._environ.get(URL_VARIABLE, "")
        if url is not None:
            self._fixed = address_from_url(url, given_by="url")
        elif workspace is None and variable:
            self._fixed = address_from_url(variable, given_by=URL_VARIABLE)
        elif workspace is None:
            self._workspace = _workspace_of(self._environ)
            self._default()

    @property
    def secure(self) -> bool:
        """Whether the daemon is reached over TLS: only a URL can say so."""
        return self._fixed is not None and self._fixed.secure

    def address(self) -> Address:
        """Return the address of the daemon. Raises DaemonUnreachable if the workspace shows that none runs."""
        if self._fixed is not None:
            return self._fixed
        return self._look_up()  # each time: another program may listen at the port of a daemon that was killed

    def _look_up(self) -> Address:
        workspace = self._workspace
        recorded = None if workspace is None else recorded_address(workspace)
        if recorded is None and not self._named:
            return self._default()
        if recorded is None or not recorded.trusted:  # another program may listen at the address of a killed daemon
            raise DaemonUnreachable(f"no daemon runs on {workspace}; {ADVICE}")
        return recorded

    def _default(self) -> Address:
        """Return the address that the variables name, else the usual one. Raises InvalidRequest."""
        host, port = self._environ.get(HOST_VARIABLE) or DEFAULT_HOST, self._environ.get(PORT_VARIABLE) or ""
        if port and not (port.isascii() and port.isdigit() and int(port) < 65536):
            raise InvalidRequest(f"{PORT_VARIABLE} {port!r} is not a port")
        return Address(WILDCARD_ADDRESSES.get(host, host), int(port or 0) or DEFAULT_PORT)


def _workspace_of(environ: Mapping[str, str]) -> Path | None:
    """Return the workspace of the environment; None without a home directory. Raises ConfigError."""
    try:
        return workspace_from(environ)
    except ConfigError:
        if environ.get(WORKSPACE_VARIABLE):
            raise
        return None


def credential(token: str | None, environ: Mapping[str, str] | None = None) -> str | None:
    """Return the token or API key of the client: the given one, else that of the environment; None if there is none."""
    if token is not None:
        return token or None
    variables = os.environ if environ is None else environ
    return next((variables[name] for name in TOKEN_VARIABLES if variables.get(name)), None)
