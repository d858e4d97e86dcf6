"""Keys that the server adds to the ASGI scope of a request for the application."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeAlias

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from signet_actors.gateway.server.framing import HeaderLines

IS_DISCONNECTED: Final = "signet.is_disconnected"
"""Key of a function that returns True if the client has disconnected."""
WAIT_DISCONNECTED: Final = "signet.wait_disconnected"
"""Key of a coroutine function that returns when the client has disconnected. It may be called only after the whole body
was read, and by one task at a time.
"""
OVERLOADED: Final = "signet.overloaded"
"""Key that is present if the request is a status probe that was admitted outside the limits."""
BECOME_WRITE: Final = "signet.become_write"
"""Key of a function by which an admitted read counts as a write from now on. It returns False if no more writes are
admitted.
"""
KNOWN_PEER: Final = "signet.known_peer"
"""Key of a list that lasts as long as the connection: the uid of its other end, once the system was asked."""
RELEASE_TICKET: Final = "signet.release_ticket"
"""Key of a function that returns what the request holds of the limits of admission, for a response without an end."""
SendResponse: TypeAlias = Callable[[int, HeaderLines, bytes], Coroutine[Any, Any, None]]
SEND_RESPONSE: Final = "signet.send_response"
"""Key of a coroutine function that sends a whole response: status, headers, body.

It does the same as the two ASGI messages, but in one write: uvicorn writes head and body separately, which costs a
second system call and wakes the client twice. Header names are lower-case, one of them is content-length, and the
values are the application's own: they must not contain anything that a client sent.
"""


async def wait_disconnected(cycle: RequestResponseCycle) -> None:
    """Return when the client has disconnected or its response is complete.

    The body must have been read before: the cycle has one event for everything.
    """
    while not cycle.disconnected and not cycle.response_complete:
        cycle.message_event.clear()
        await cycle.message_event.wait()
