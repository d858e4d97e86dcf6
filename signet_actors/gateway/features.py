"""Have the process that serves a feature's operation answer. Source: docs/architecture.md "Features"."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from typing import Any, TypeVar

import msgspec

from signet_actors.domain.session_keys import agent_from_session_key
from signet_actors.errors import SignetError
from signet_actors.gateway.http.route import Call, HttpResponse
from signet_actors.gateway.ingest import FieldRedactor
from signet_actors.gateway.sessions.hook_runner import HookSession, run_hook
from signet_actors.operations.operation import Operation
from signet_actors.operations.transcripts import session_key
from signet_actors.protocol.message import Answered, Asked, Caller, Idempotency, Principal, message_of

RequestT = TypeVar("RequestT", bound=msgspec.Struct)


async def answer(call: Call[Any]) -> HttpResponse:
    """Answer with what the process that serves the operation says about the request."""
    operation, request = call.route.operation, call.request
    hook = operation.hook
    if hook is None:
        return HttpResponse(await ask(call, operation, request))

    stores = operation.has_effect

    async def work(session: HookSession) -> Answered:
        if stores:
            call.refuse_if_frozen()
        name = hook.once(request, session.key)
        if name is None:
            return await ask(call, operation, request)
        key = hashlib.sha256(f"{operation.name}\0{call.agent_id}\0{name}".encode()).hexdigest()
        return await ask(call, operation, request, Idempotency(key, body_digest=key))

    session_id = getattr(request, "session_id", None)
    return await run_hook(call, hook.budget_ms, work, hook.nothing, stores=stores, session_key=session_id)


async def ask(
    call: Call[Any], operation: Operation[RequestT], request: RequestT, idempotency: Idempotency | None = None
) -> Answered:
    """Return the reply to a request of ``operation`` on behalf of the call's caller. Raises SignetError."""
    if operation.needs_offers:
        with contextlib.suppress(SignetError):
            await asyncio.gather(call.state.ledger.flush(), call.state.searches.flush())
    key, agent_id = named_session(call) if "key" in call.path else (None, call.agent_id)
    principal = call.principal if operation.has_effect else Principal()
    scope = call.read.scope if "scope" in request.__struct_fields__ else None
    limits = call.identity.scope
    caller = Caller(
        *(agent_id, principal, scope, dict(call.path)), session_key=key, project=limits.project, user=limits.user
    )
    asked: Asked[RequestT] = message_of(operation)(caller=caller, request=request, idempotency=idempotency)
    return await (call.ask_writer(asked) if operation.served_by == "writer" else call.ask_searcher(asked))


def named_session(call: Call[Any]) -> tuple[str, str]:
    """Return the session that the path names, as it is stored, and the agent of the request, else that of the key."""
    named = session_key(call.path["key"])
    agent_id = call.agent_id if call.names_agent() else agent_from_session_key(named) or call.agent_id
    return FieldRedactor(call.state, for_memories=False).digest(named), agent_id
