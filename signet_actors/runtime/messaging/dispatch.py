"""Whether a request has been sent to an actor that may apply it.

A request that times out before that was certainly not applied (503); afterwards its outcome is unknown (504).
"""

from __future__ import annotations

from contextvars import ContextVar


class Dispatch:
    """The progress of one request; ``sent`` is True once it may have taken effect."""

    __slots__ = ("sent",)

    def __init__(self) -> None:
        self.sent = False


_current: ContextVar[Dispatch | None] = ContextVar("dispatch", default=None)


def track_dispatch() -> Dispatch:
    """Start a record for the request of this task and of the tasks that it starts; return it."""
    dispatch = Dispatch()
    _current.set(dispatch)
    return dispatch


def current_dispatch() -> Dispatch | None:
    """Return the record of the request that this task serves."""
    return _current.get()


def mark_sent() -> None:
    """Note that the request may take effect from here on."""
    dispatch = _current.get()
    if dispatch is not None:
        dispatch.sent = True
