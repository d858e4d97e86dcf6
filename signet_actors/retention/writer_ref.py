"""What the duties need of the writer: to ask it and wait.

The production implementation is ``runtime.blocking_ref.BlockingRef``; tests script the answers.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from signet_actors.protocol.message import Failure, Request

R = TypeVar("R")

ASK_TIMEOUT_MS = 2000
"""A bounded step takes the writer some 50 ms; one that takes longer than this is tried again later."""


class WriterRef(Protocol):
    """The writer's mailbox, as seen from here."""

    def ask(self, request: Request[R], *, timeout_ms: int, trace_id: str | None = None) -> R | Failure:
        """The writer's answer, or why there is none."""
        ...
