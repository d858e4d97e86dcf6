"""The gateway's route table: every endpoint, in the order of the API document.

The list of subjects is the one of ``operations/registry.py``. The module here with the subject's name has its handlers;
an operation of a feature needs none.
"""

from __future__ import annotations

import hashlib
from importlib import import_module
from types import ModuleType
from typing import Any

import msgspec

from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.gateway.sessions.hook_runner import HookSession, run_hook
from signet_actors.operations.registry import SUBJECTS
from signet_actors.protocol.message import Answered, Asked, Caller, Idempotency, message_of


async def answer(call: Call[Any]) -> HttpResponse:
    """Answer with what the writer or a searcher says about the request."""
    operation, request = call.route.operation, call.request
    asked = message_of(operation)(caller=Caller(call.agent_id), request=request)
    hook = operation.hook
    if hook is None:
        return HttpResponse(await _ask(call, asked))

    stores = operation.has_effect

    async def work(session: HookSession) -> Answered:
        if stores:
            call.refuse_if_frozen()
        name = hook.once(request, session.key)
        if name is None:
            return await _ask(call, asked)
        key = hashlib.sha256(f"{operation.name}\0{call.agent_id}\0{name}".encode()).hexdigest()
        return await _ask(call, msgspec.structs.replace(asked, idempotency=Idempotency(key, body_digest=key)))

    session_id = getattr(request, "session_id", None)
    return await run_hook(call, hook.budget_ms, work, hook.nothing, stores=stores, session_key=session_id)


async def _ask(call: Call[Any], asked: Asked[Any]) -> Answered:
    return await (call.ask_writer(asked) if call.route.operation.served_by == "writer" else call.ask_searcher(asked))


def _routes(subject: ModuleType) -> tuple[Route, ...]:
    package, _, name = subject.__name__.rpartition(".")
    if package != "signet_actors.operations":
        return tuple(route for operation in subject.OPERATIONS for route in serve(operation, answer))
    routes: tuple[Route, ...] = import_module(f"{__name__}.{name}").ROUTES
    return routes


ROUTES: tuple[Route, ...] = tuple(route for subject in SUBJECTS for route in _routes(subject))
