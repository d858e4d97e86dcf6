"""What a handler wants to do once its response was written. Source: docs/architecture.md "The path of a remember"."""

from __future__ import annotations

from collections.abc import Callable

AfterResponse = Callable[[bool], None]
"""Called once, when the response was written (True), or with False: the client has disconnected, or it is an error."""


def mark_unsent(actions: list[AfterResponse]) -> None:
    """Have the actions called with False, because what they are about will not be in the response."""

    def unsent(action: AfterResponse) -> AfterResponse:
        return lambda _: action(False)

    actions[:] = map(unsent, actions)
