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
from signet_actors.gateway.auth.request_guard import Headers, is_from_proxy, is_loopback
from signet_actors.gateway.state import GatewayState
from signet_actors.operations.headers import OWNER_TOKEN_HEADER
from signet_actors.runtime.socket_uids import SOCKET_CLOSED, End, netlink_uid, peer_uid

_HEADER: Final = OWNER_TOKEN_HEADER.encode()


async def require_owner(
    state: GatewayState,
    client: End | None,
    server: End | None,
    headers: Headers,
    known: list[int | None],
) -> None:
    """Return if the request is the owner's. Raises a ``SignetError`` with the code FORBIDDEN if it is not.

    One through a proxy is not, nor one of a client that is not known: it may be on another machine.
    ``known`` is kept with the connection, whose uid does not change, so that the system is asked once.
    """
    if client is None or not is_of_this_machine(state, client, headers):
        raise _forbidden("Only the user that runs the daemon, on its machine, may make this request")
    if state.config.gateway.require_owner and not _has_token(state, headers):
        raise _forbidden(
            f"This request needs the header {OWNER_TOKEN_HEADER} with the content of .daemon/owner-token "
            "(gateway.requireOwner is on)"
        )
    uid = await _uid_of(client, server, known)
    if uid not in {None, 0, os.geteuid()}:
        raise _forbidden(f"Only the user that runs the daemon may make this request, not a program {_whose(uid)}")


def is_of_this_machine(state: GatewayState, client: End, headers: Headers) -> bool:
    """Return whether the request comes from a program of this machine, and not through a proxy."""
    return is_loopback(client[0]) and not state.guard.proxies and not is_from_proxy(headers)


async def require_user(
    state: GatewayState,
    client: End | None,
    server: End | None,
    _headers: Iterable[tuple[bytes, bytes]],
    known: list[int | None],
) -> None:
    """Return if the request is of the owner or of a user in ``gateway.users``. Raises like ``require_owner``."""
    if state.users is None:
        return
    uid = await _uid_of(client, server, known)
    if uid not in {None, 0, os.geteuid()} | state.users:
        raise _forbidden(
            f"Only the user that runs the daemon and those in gateway.users are served, not a program {_whose(uid)}"
        )


async def _uid_of(client: End | None, server: End | None, known: list[int | None]) -> int | None:
    """Return the uid at the other end; None if the system does not tell, ``SOCKET_CLOSED`` if it is closed."""
    if client is None or server is None:
        return None
    if not known:
        uid = netlink_uid(client, server)
        if uid is None:
            uid = await asyncio.to_thread(peer_uid, client, server)
        if uid == SOCKET_CLOSED:
            return uid
        known.append(uid)
    return known[0]


def _whose(uid: int | None) -> str:
    return "that has closed its connection" if uid == SOCKET_CLOSED else f"of another user (uid {uid})"


def _has_token(state: GatewayState, headers: Iterable[tuple[bytes, bytes]]) -> bool:
    if state.owner_token is None:
        return False
    given = next((value for name, value in headers if name == _HEADER), b"")
    return hmac.compare_digest(given.strip(), state.owner_token.encode())


def _forbidden(detail: str) -> SignetError:
    return SignetError(detail, code=ErrorCode.FORBIDDEN)
