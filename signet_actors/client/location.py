"""Where the client finds its daemon, and what it shows as its credential.

An explicit URL or workspace comes first, then the rule of all programs (``config/daemon_address.py``), then
http://127.0.0.1:3850.

Source: docs/cli.md "Which daemon"; docs/guides/python.md "Where the daemon is".
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from signet_actors.client.errors import DaemonUnreachable
from signet_actors.config.daemon_address import (
    DEFAULT_HOST,
    DEFAULT_PORT,
    Address,
    address_from_url,
    address_of_url_variable,
    find_daemon,
    is_any_port,
    recorded_address,
    token_for,
)
from signet_actors.config.workspace import WORKSPACE_VARIABLE, workspace_from
from signet_actors.errors import ConfigError

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
        if url is not None:
            self._fixed = address_from_url(url, given_by="url")
        elif workspace is None:
            self._fixed = address_of_url_variable(self._environ)
            if self._fixed is None:
                self._workspace = _workspace_of(self._environ)
                find_daemon(self._environ, None)  # so that a variable that is not valid is refused now

    @property
    def secure(self) -> bool:
        """Whether the daemon is reached over TLS: only a URL can say so."""
        return self._fixed is not None and self._fixed.secure

    def address(self) -> Address:
        """Return the address of the daemon. Raises DaemonUnreachable if the workspace shows that none runs."""
        if self._fixed is not None:
            return self._fixed
        return self._look_up()  # each time: another program may listen at the port of a daemon that was killed

    def credential(self, token: str | None) -> str | None:
        """Return the token or API key of the client: the given one, else that of the environment for this daemon."""
        return token_for(self._fixed, self._environ) if token is None else token or None

    def _look_up(self) -> Address:
        """Return the address of the daemon. The address of a daemon that was killed may be another program's by now."""
        workspace = self._workspace
        found = None if self._named else find_daemon(self._environ, workspace)
        if found is not None:
            return found
        recorded = None if workspace is None else recorded_address(workspace)
        if recorded is not None and recorded.trusted:
            return recorded
        if self._named or recorded is not None or is_any_port(self._environ):
            raise DaemonUnreachable(f"no daemon runs on {workspace}; {ADVICE}")
        return Address(DEFAULT_HOST, DEFAULT_PORT)


def _workspace_of(environ: Mapping[str, str]) -> Path | None:
    """Return the workspace of the environment; None without a home directory. Raises ConfigError."""
    try:
        return workspace_from(environ)
    except ConfigError:
        if environ.get(WORKSPACE_VARIABLE):
            raise
        return None
