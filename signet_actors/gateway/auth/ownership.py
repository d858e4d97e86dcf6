"""Check that a request comes from the user that runs the daemon, for routes marked ``owner``.

Where the system reports the uid at the other end of a connection, it must be the daemon's own or root's. Elsewhere a
loopback request is trusted, unless ``gateway.requireOwner`` requires the token in ``.daemon/owner-token``, which only
the owner can read.

Source: docs/operations.md "Other users of the machine".
"""

from __future__ import annotations

import asyncio
import hmac
import os
from collections.abc import Iterable
from typing import Final

from signet_actors.errors import ErrorCode, SignetError
from signet_actors.gateway.state import GatewayState
from signet_actors.operations.headers import OWNER_TOKEN_HEADER
from signet_actors.runtime.socket_uids import SOCKET_CLOSED, End, netlink_uid, peer_uid

_HEADER: Final = OWNER_TOKEN_HEADER.encode()


async def require_owner(
    state: GatewayState,
    client: End | None,
    server: End | None,
    headers: Iterable[tuple[bytes, bytes]],
    known: set[int | None],
) -> None:
    """Return if the request is the owner's. Raises a ``SignetError`` with the code FORBIDDEN if it is not.

    ``known`` is kept with the connection, whose uid does not change, so that the system is asked once.
    """
    if state.config.gateway.require_owner and not _has_token(state, headers):
        raise _forbidden(
            f"This request needs the header {OWNER_TOKEN_HEADER} with the content of .daemon/owner-token "
            "(gateway.requireOwner is on)"
        )
    if client is None or server is None or known:
        return
    uid = netlink_uid(client, server)
    if uid is None:
        uid = await asyncio.to_thread(peer_uid, client, server)
    if uid not in {None, 0, os.geteuid()}:
        whose = "that has closed its connection" if uid == SOCKET_CLOSED else f"of another user (uid {uid})"
        raise _forbidden(f"Only the user that runs the daemon may make this request, not a program {whose}")
    known.add(uid)


def _has_token(state: GatewayState, headers: Iterable[tuple[bytes, bytes]]) -> bool:
    if state.owner_token is None:
        return False
    given = next((value for name, value in headers if name == _HEADER), b"")
    return hmac.compare_digest(given.strip(), state.owner_token.encode())


def _forbidden(detail: str) -> SignetError:
    return SignetError(detail, code=ErrorCode.FORBIDDEN)
