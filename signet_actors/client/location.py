"""Where the client finds its daemon, and what it shows as its credential.

An explicit URL or workspace comes first, then SIGNET_DAEMON_URL, then the daemon that runs on the workspace. No other
port counts: the daemon of another workspace may listen there. ``signet-hook`` follows the same rule.

Source: docs/cli.md "Which daemon"; docs/guides/python.md "Where the daemon is".
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from signet_actors.client.errors import DaemonUnreachable
from signet_actors.config import daemon_address as addresses
from signet_actors.config.workspace import workspace_from

ADVICE: Final = "start it with `signet start`"


class Location:
    """The place of one daemon. It is looked up again after a daemon was not there: it may be back at another port."""

    def __init__(
        self, url: str | None = None, workspace: str | Path | None = None, environ: Mapping[str, str] | None = None
    ) -> None:
        """Raise InvalidRequest or ConfigError if the place is not valid."""
        self._environ = os.environ if environ is None else environ
        self._workspace = None if workspace is None else Path(workspace).expanduser().absolute()
        self._fixed: addresses.Address | None = None
        if url is not None:
            self._fixed = addresses.address_from_url(url, given_by="url")
        elif workspace is None:
            self._fixed = addresses.address_of_url_variable(self._environ)
            if self._fixed is None:
                self._workspace = workspace_from(self._environ)

    @property
    def secure(self) -> bool:
        """Whether the daemon is reached over TLS."""
        found = self._fixed or (None if self._workspace is None else addresses.recorded_address(self._workspace))
        return found is not None and found.secure and not found.socket

    @property
    def socket(self) -> str | None:
        """The Unix socket of the workspace's daemon, if it runs now and its port speaks TLS."""
        found = None if self._workspace is None else addresses.recorded_address(self._workspace)
        return found.socket or None if found is not None and found.secure else None

    def address(self) -> addresses.Address:
        """Return the address of the daemon. Raises DaemonUnreachable if the workspace shows that none runs."""
        if self._fixed is not None:
            return self._fixed
        # Each time, because another program may listen at the port of a daemon that was killed.
        found = None if self._workspace is None else addresses.recorded_address(self._workspace)
        if found is None or not found.trusted:
            raise DaemonUnreachable(f"no daemon runs on {self._workspace}; {ADVICE}")
        return found

    def credential(self, token: str | None) -> str | None:
        """Return the token or API key of the client: the given one, else that of the environment for this daemon."""
        return addresses.token_for(self._fixed, self._environ) if token is None else token or None

    def login(self, address: addresses.Address) -> str | None:
        """Return the token that `signet login` stored for the daemon at this address."""
        return addresses.read_logins(self._environ).get(str(address))
