"""What the server puts into a request's ASGI scope for the application, beside what ASGI says."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeAlias

from signet_actors.gateway.server.rejections import HeaderLines

IS_DISCONNECTED: Final = "signet.gone"
"""Under this key the scope has a function that says whether the client has gone."""
WAIT_DISCONNECTED: Final = "signet.until_gone"
"""Under this key the scope has a coroutine function that returns when the client has gone; for whoever has read the
whole body, and one at a time."""
OVERLOADED: Final = "signet.crowded"
"""This key is in the scope of an operator's question that was let in although there was no room."""
SendResponse: TypeAlias = Callable[[int, HeaderLines, bytes], Coroutine[Any, Any, None]]
SEND_RESPONSE: Final = "signet.answer"
"""Under this key the scope has a coroutine function that sends a whole answer: status, headers, body.

The same as the two ASGI messages, but in one piece: uvicorn writes head and body apart, which costs a second system
call here and wakes the client twice. Header names are lower-case, one of them is content-length, and the values are
the application's own: nothing that a client sent may be in them.
"""
