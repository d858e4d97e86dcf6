"""Questions for an overview: answered within a second, or the part is None and the overview's notes say why."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final, TypeVar

from signet_actors.errors import SignetError
from signet_actors.gateway.http.route import HttpRequest
from signet_actors.protocol.control import UP
from signet_actors.protocol.decider import DeciderStatus, GetDeciderStatus
from signet_actors.protocol.extractor import ExtractorStatus, GetExtractorStatus

ASK_MS: Final = 1000
T = TypeVar("T")


async def glance(whom: str, question: Awaitable[T], notes: list[str]) -> T | None:
    """The answer; None, and a note that says why, where there is none in time."""
    try:
        async with asyncio.timeout(ASK_MS * 1.5 / 1000):
            return await question
    except SignetError as error:
        notes.append(f"{whom}: {error.detail}")
    except TimeoutError:
        notes.append(f"{whom}: no answer within {ASK_MS} ms")
    return None


async def ask_extractor(call: HttpRequest, notes: list[str]) -> ExtractorStatus | None:
    """What the extractor says of its jobs and its model; None where it says nothing, or there is none to ask."""
    if not _is_up(call, "extractor", notes):
        return None
    question = call.state.bus.ask_extractor(GetExtractorStatus(), trace_id=call.trace_id, timeout_ms=ASK_MS)
    return await glance("extractor", question, notes)


async def ask_decider(call: HttpRequest, notes: list[str]) -> DeciderStatus | None:
    """The same of the decider."""
    if not _is_up(call, "decider", notes):
        return None
    question = call.state.bus.ask_decider(GetDeciderStatus(), trace_id=call.trace_id, timeout_ms=ASK_MS)
    return await glance("decider", question, notes)


def _is_up(call: HttpRequest, role: str, notes: list[str]) -> bool:
    """Whether there is somebody to ask; who is there and does not serve is named in the notes."""
    child = next((child for child in call.state.bus.tree.children if child.role == role), None)
    if child is not None and child.state != UP:
        notes.append(f"{role}: {child.state}")
    return child is not None and child.state == UP
