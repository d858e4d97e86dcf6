"""Send what waits in the spool: after a hook that the daemon has answered, and for the daemon itself every minute.

Source: docs/guides/claude-code.md "While the daemon is away".
"""

from __future__ import annotations

import time

from signet_actors.hook.daemon import Address, NoAnswer, headers_of, post, recorded_address, status_of_report
from signet_actors.hook.spool import Spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DRAIN_MOST = 64
DRAIN_LIMIT_S = 30.0
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")
REQUEST_LIMIT_S = 10.0
"""One request that the daemon does not answer leaves time for others."""


def drain(spool: Spool, targets: dict[str, tuple[Address, dict[str, str]]]) -> None:
    """Send what is due, by its destination to a daemon and with the token of an environment.

    Raises OSError if the disk fails.
    """
    deadline = time.monotonic() + DRAIN_LIMIT_S

    def send(path: str, body: dict[str, Any], harness: str, destination: str) -> int:
        address, environ = targets[destination]
        limit = min(deadline, time.monotonic() + REQUEST_LIMIT_S)
        try:
            answer = post(address, path, body, headers_of(body, harness, environ, address, late=True), limit)
        except NoAnswer as no_answer:
            return no_answer.status
        return status_of_report(path, body, answer)

    spool.drain(send, most=DRAIN_MOST, destinations=targets)


def drain_for_daemon(workspace: str, environ: dict[str, str]) -> None:
    """Send what is due to the daemon that runs on the workspace. Does nothing if none does, or nothing is kept.

    Reports for the URL at which this daemon listens are sent, too: the environment of the hook named it. They are sent
    as their hook would, with the login for that URL, because its token may permit less than the owner's.
    """
    spool = Spool(workspace)
    try:
        address = recorded_address(workspace)
        if address is not None and (spool.due() or spool.rejected()):
            given = {} if address.owner_token else environ  # a token there may be for another daemon
            targets = {"": (address, given)}
            for host in {address.host, *(LOOPBACK_NAMES if address.socket else ())}:
                named = Address(host, address.port, secure=address.secure, named=True, socket=address.socket)
                targets[str(named)] = named, environ
            drain(spool, targets)
    except (NoAnswer, OSError):
        return  # it is tried again a minute later
