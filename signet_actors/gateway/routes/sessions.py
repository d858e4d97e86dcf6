"""The sessions that hooks have named, and switching memory off for one of them."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import msgspec

from signet_actors.domain.session_keys import DEFAULT_AGENT, canonical_session_key
from signet_actors.domain.timestamps import iso
from signet_actors.errors import InvalidRequest, NotFound, SignetError
from signet_actors.features.searches.api import FindSessions
from signet_actors.gateway.http.responses import fill
from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.gateway.ingest import FieldRedactor
from signet_actors.gateway.sessions.table import Session as KnownSession
from signet_actors.gateway.sessions.table import on_disk
from signet_actors.operations import sessions as api
from signet_actors.operations.request_fields import AgentField
from signet_actors.protocol.sessions import GetSession, SetBypass


async def list_sessions(call: Call[api.ListSessionsRequest]) -> HttpResponse:
    """Return the active sessions that the caller may see, or all of its agent."""
    if call.request.state == "all":
        return HttpResponse(await _kept(call))
    sessions = [_shown(session) for session in call.state.sessions.active() if _is_visible(call, session)]
    return HttpResponse(api.SessionsReply(sessions=sessions, count=len(sessions)))


async def _kept(call: Call[api.ListSessionsRequest]) -> api.KeptSessionsReply:
    with contextlib.suppress(SignetError):
        await asyncio.gather(call.state.ledger.flush(), call.state.searches.flush())
    query = FindSessions(agent_id=call.agent_id, request=call.request)
    found = (await call.ask_searcher(query)).read(api.KeptSessionsReply)
    sessions = [
        msgspec.structs.replace(session, active=call.state.sessions.find(session.key) is not None)
        for session in found.sessions
    ]
    return msgspec.structs.replace(found, sessions=sessions)


async def get_session(call: Call[AgentField]) -> HttpResponse:
    """Return one session."""
    return HttpResponse(_shown(_session(call)))


async def bypass(call: Call[api.BypassRequest]) -> HttpResponse:
    """Switch memory off or on for the session, durably. An unknown session is reported before an invalid body."""
    session = await _session_to_switch(call)
    enabled = call.request.enabled
    if enabled is None:
        raise InvalidRequest("enabled (boolean) is required", field="enabled")
    if not enabled:
        await call.state.ledger.context(session.key, call.agent_id, trace_id=call.trace_id)
    command = SetBypass(session.key, call.agent_id, iso(session.first_ms), bypassed=enabled)
    await call.state.ledger.store_bypass(command, trace_id=call.trace_id)
    await on_disk(call.state.sessions.bypass(session, bypassed=enabled), wait_s=None)
    return HttpResponse(api.BypassReply(key=session.key, bypassed=enabled))


async def renew(call: Call[AgentField]) -> HttpResponse:
    """Keep the claim of the session for as long as that of a new one."""
    session = _session(call)
    await on_disk(call.state.sessions.renew(session))
    return HttpResponse(fill(api.RenewedSession, _shown(session)))


def _session(call: Call[Any]) -> KnownSession:
    """Return the session that the path names, if the caller may see it. Raises NotFound."""
    key = _key(call)
    session = None if key is None else call.state.sessions.find(key)
    if session is None or not _is_visible(call, session):
        raise NotFound("Session not found")
    return session


async def _session_to_switch(call: Call[Any]) -> KnownSession:
    """Return the session that the path names, also one of which this process has heard no hook yet. Raises NotFound."""
    key = _key(call)
    if key is not None and call.state.sessions.find(key, ended=True) is None:
        found, _ = await call.state.bus.ask_searcher(GetSession(key, call.agent_id), trace_id=call.trace_id)
        if found.of_agent is not None and (found.of_agent == call.agent_id or not _names_agent(call)):
            call.state.sessions.enter(key, None, found.of_agent)
    return _session(call)


def _key(call: Call[Any]) -> str | None:
    key = canonical_session_key(call.path["key"])
    return None if key is None else FieldRedactor(call.state, for_memories=False).digest(key)


def _names_agent(call: Call[Any]) -> bool:
    return call.agent_id != DEFAULT_AGENT or call.names_agent()


def _is_visible(call: Call[Any], session: KnownSession) -> bool:
    """Return whether the caller may see the session: an agent its own ones, a person who names no agent all."""
    return session.agent_id == call.agent_id or not _names_agent(call)


def _shown(session: KnownSession) -> api.Session:
    return api.Session(
        key=session.key,
        runtime_path=session.path,
        claimed_at=iso(session.first_ms),
        bypassed=session.bypassed,
        expires_at=iso(session.expires_ms),
    )


ROUTES: tuple[Route, ...] = (
    *serve(api.LIST, list_sessions),
    *serve(api.GET, get_session),
    *serve(api.BYPASS, bypass),
    *serve(api.RENEW, renew),
)
