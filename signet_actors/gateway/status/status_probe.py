"""Requests to actors for a status page: each reply arrives within a second, or is None and a note gives the reason."""

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
    """Return the reply; if there is none in time, add a note with the reason and return None."""
    try:
        async with asyncio.timeout(PROBE_TIMEOUT_MS * 1.5 / 1000):
            return await question
    except SignetError as error:
        notes.append(f"{actor}: {error.detail}")
    except TimeoutError:
        notes.append(f"{actor}: no answer within {PROBE_TIMEOUT_MS} ms")
    return None


async def ask_extractor(request: HttpRequest, notes: list[str]) -> ExtractorStatus | None:
    """Return the extractor's report of its jobs and its model; None if there is none."""
    if not _is_up(request, "extractor", notes):
        return None
    question = request.state.bus.ask_extractor(
        GetExtractorStatus(), trace_id=request.trace_id, timeout_ms=PROBE_TIMEOUT_MS
    )
    return await probe("extractor", question, notes)


async def ask_decider(request: HttpRequest, notes: list[str]) -> DeciderStatus | None:
    """Return the decider's report; None if there is none."""
    if not _is_up(request, "decider", notes):
        return None
    question = request.state.bus.ask_decider(GetDeciderStatus(), trace_id=request.trace_id, timeout_ms=PROBE_TIMEOUT_MS)
    return await probe("decider", question, notes)


def _is_up(request: HttpRequest, role: str, notes: list[str]) -> bool:
    """Return True if a process of the role is up; add a note if it exists and is not up."""
    child = next((child for child in request.state.bus.tree.children if child.role == role), None)
    if child is not None and child.state != UP:
        notes.append(f"{role}: {child.state}")
    return child is not None and child.state == UP
