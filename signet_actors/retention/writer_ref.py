"""The interface to the writer that the duties need: send a request and wait for the reply.

The production implementation is ``runtime.messaging.blocking.BlockingRef``; tests script the replies.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from signet_actors.protocol.message import Failure, Request

R = TypeVar("R")

ASK_TIMEOUT_MS = 2000
"""A bounded step takes the writer some 50 ms; a step that takes longer than this is retried later."""


class WriterRef(Protocol):
    """The writer's mailbox, as the duties see it."""

    def ask(self, request: Request[R], *, timeout_ms: int, trace_id: str | None = None) -> R | Failure:
        """Return the writer's reply, or a failure if there is none."""
