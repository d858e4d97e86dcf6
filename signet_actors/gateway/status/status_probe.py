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

PROBE_TIMEOUT_MS: Final = 1000
T = TypeVar("T")


async def probe(actor: str, question: Awaitable[T], notes: list[str]) -> T | None:
    """The answer; None, and a note that says why, where there is none in time."""
    try:
        async with asyncio.timeout(PROBE_TIMEOUT_MS * 1.5 / 1000):
            return await question
    except SignetError as error:
        notes.append(f"{actor}: {error.detail}")
    except TimeoutError:
        notes.append(f"{actor}: no answer within {PROBE_TIMEOUT_MS} ms")
    return None


async def ask_extractor(request: HttpRequest, notes: list[str]) -> ExtractorStatus | None:
    """What the extractor says of its jobs and its model; None where it says nothing, or there is none to ask."""
    if not _is_up(request, "extractor", notes):
        return None
    question = request.state.bus.ask_extractor(
        GetExtractorStatus(), trace_id=request.trace_id, timeout_ms=PROBE_TIMEOUT_MS
    )
    return await probe("extractor", question, notes)


async def ask_decider(request: HttpRequest, notes: list[str]) -> DeciderStatus | None:
    """The same of the decider."""
    if not _is_up(request, "decider", notes):
        return None
    question = request.state.bus.ask_decider(GetDeciderStatus(), trace_id=request.trace_id, timeout_ms=PROBE_TIMEOUT_MS)
    return await probe("decider", question, notes)


def _is_up(request: HttpRequest, role: str, notes: list[str]) -> bool:
    """Whether there is somebody to ask; who is there and does not serve is named in the notes."""
    child = next((child for child in request.state.bus.tree.children if child.role == role), None)
    if child is not None and child.state != UP:
        notes.append(f"{role}: {child.state}")
    return child is not None and child.state == UP
