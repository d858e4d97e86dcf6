"""Count the skills that agents use, as harnesses report them, and list them.

Source: docs/guides/hooks.md "Skills"; docs/decisions.md 34.
"""

from __future__ import annotations

import hashlib
from typing import Final

from signet_actors.errors import InvalidRequest
from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.gateway.sessions.hook_runner import HookSession, run_hook
from signet_actors.operations.skills import (
    LIST,
    MISSING,
    RECORD,
    ListSkillsReply,
    ListSkillsRequest,
    SkillInvocationReply,
    SkillInvocationRequest,
)
from signet_actors.protocol.message import Idempotency
from signet_actors.protocol.skills import ListSkills, RecordSkillUse

BUDGET_MS: Final = 700


async def record(call: Call[SkillInvocationRequest]) -> HttpResponse:
    """Count the use, once for each key or id of it."""
    request = call.request
    skill = request.skill or request.skill_name or request.name
    if skill is None:
        raise InvalidRequest(MISSING, field="skill")

    async def work(session: HookSession) -> SkillInvocationReply:
        call.refuse_if_frozen()
        await call.ask_writer(
            RecordSkillUse(
                agent_id=call.agent_id,
                skill=skill,
                failed=not request.success,
                duration_ms=request.latency_ms if request.duration_ms is None else request.duration_ms,
                idempotency=_named_use(call, session.key),
            )
        )
        return SkillInvocationReply(recorded=True)

    nothing = SkillInvocationReply(recorded=False)
    return await run_hook(call, BUDGET_MS, work, nothing, stores=True, session_key=request.session_id)


def _named_use(call: Call[SkillInvocationRequest], session_key: str | None) -> Idempotency | None:
    """Return the key under which the use is counted once if the caller sent none; None if the body names none."""
    request = call.request
    if request.idempotency_key is not None:
        named = f"key\0{request.idempotency_key}"
    elif request.tool_use_id is not None:
        named = f"use\0{request.harness}\0{session_key or ''}\0{request.tool_use_id}"
    else:
        return None
    key = hashlib.sha256(f"{RECORD.name}\0{call.agent_id}\0{named}".encode()).hexdigest()
    return Idempotency(key=key, body_digest=key)


async def list_skills(call: Call[ListSkillsRequest]) -> HttpResponse:
    """Return a page of the skills that the agent used."""
    found = await call.ask_searcher(ListSkills(call.agent_id, call.request.limit, call.request.offset))
    return HttpResponse(ListSkillsReply(found.skills, found.total))


ROUTES: Final[tuple[Route, ...]] = (*serve(RECORD, record), *serve(LIST, list_skills))
