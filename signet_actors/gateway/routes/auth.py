"""Tokens and the identity of the caller. Source: docs/compatibility.md "Authentication"."""

from __future__ import annotations

import secrets
from typing import Any, Final

import msgspec

from signet_actors.domain.permissions import Role
from signet_actors.domain.timestamps import epoch_ms, iso
from signet_actors.domain.tokens import ApiKey, Claims, api_key_text, key_id, secret_digest, sign
from signet_actors.errors import ErrorCode, InvalidRequest, NotFound, SignetError
from signet_actors.features.auth_tokens import api
from signet_actors.gateway.auth.page_codes import LIFE_S
from signet_actors.gateway.http.route import Call, Handler, HttpResponse, Route, serve
from signet_actors.operations.auth import (
    PAGE_CODE,
    PAGE_TOKEN,
    WHO_AM_I,
    PageCodeReply,
    PageTokenReply,
    PageTokenRequest,
    WhoAmIReply,
)
from signet_actors.operations.operation import Operation
from signet_actors.operations.request_fields import NoFields

_ID_BYTES: Final = 9
_SECRET_BYTES: Final = 32


async def who_am_i(call: Call[NoFields]) -> HttpResponse:
    """Report who the caller is."""
    identity = call.identity
    return HttpResponse(WhoAmIReply(identity.role is not None, identity.claims, call.state.config.auth.mode))


async def page_code(call: Call[NoFields]) -> HttpResponse:
    """Issue a code for the page, if that needs a token."""
    state = call.state
    code = None if state.owner_token is None else state.page_codes.issue(state.clock.monotonic_ns())
    return HttpResponse(PageCodeReply(code=code, expires_in_seconds=LIFE_S))


async def page_token(call: Call[PageTokenRequest]) -> HttpResponse:
    """Return the owner's token for a code of the owner's. Raises SignetError for any other code."""
    state = call.state
    if not state.page_codes.take(call.request.code, state.clock.monotonic_ns()) or state.owner_token is None:
        raise SignetError("The code is not valid any more: run `signet dashboard` again", code=ErrorCode.UNAUTHORIZED)
    return HttpResponse(PageTokenReply(token=state.owner_token))


async def create(call: Call[api.CreateTokenRequest]) -> HttpResponse:
    """Issue a token, once it is on disk."""
    _refuse_unread(call)
    request, token_id = call.request, _new_id()
    config = call.state.config.auth
    usual_s = config.session_token_ttl_seconds if request.session else config.default_token_ttl_seconds
    ttl_s = request.ttl_seconds or usual_s
    row = _row(call, "token", token_id, request.name or f"token:{token_id}", Role(request.role), ttl_s=ttl_s)
    await _check_project(call, request.scope.project)
    limits = {"project": request.scope.project, "agent_id": request.scope.agent, "user_name": request.scope.user}
    return await _issue(call, msgspec.structs.replace(row, **limits))


async def rotate(call: Call[NoFields]) -> HttpResponse:
    """Issue a token like the one in the path for as long again, and revoke that one with it."""
    replaced = await call.state.authenticator.tokens.find(call.path["id"], "token")
    if replaced is None:
        raise NotFound("Token not found")
    ttl_s = ((epoch_ms(replaced.expires_at or "") or 0) - (epoch_ms(replaced.created_at) or 0)) // 1000
    row = _row(call, "token", _new_id(), replaced.name, replaced.role, ttl_s=ttl_s)
    limits = {name: getattr(replaced, name) for name in ("project", "agent_id", "user_name")}
    return await _issue(call, msgspec.structs.replace(row, **limits), replaces=replaced.id)


async def _issue(call: Call[Any], row: api.StoredToken, replaces: str | None = None) -> HttpResponse:
    state = call.state
    if state.config.auth.mode == "local":
        raise InvalidRequest(api.NOT_LOCAL)
    if replaces is not None:
        state.authenticator.tokens.drop(replaces)
    call.audit_detail = {"issued": row.id, "role": row.role.value, **({"replaced": replaces} if replaces else {})}
    await call.ask_writer(api.StoreToken(row=row, replaces=replaces))
    if replaces is not None:
        state.authenticator.tokens.drop(replaces)  # a reading that began before the change may have brought it back
    state.authenticator.tokens.add(row)
    issued_s, expires_s = ((epoch_ms(moment or "") or 0) // 1000 for moment in (row.created_at, row.expires_at))
    secret = state.authenticator.secret
    claims = Claims(row.name, row.role, issued_s, expires_s, row.id, key_id(secret), row.scope)
    return HttpResponse(api.TokenIssued(token=sign(secret, claims), expires_at=row.expires_at or "", id=row.id))


async def revoke(call: Call[NoFields]) -> HttpResponse:
    """Revoke a token. From the answer on it is not accepted, whatever happens to this process."""
    return await _revoke(call, "token")


async def revoke_key(call: Call[NoFields]) -> HttpResponse:
    """Revoke an API key, like a token."""
    return await _revoke(call, "api_key")


async def _revoke(call: Call[NoFields], kind: api.Kind) -> HttpResponse:
    token_id = call.path["id"]
    call.state.authenticator.tokens.drop(token_id)
    answered = await call.ask_writer(api.RevokeToken(id=token_id, kind=kind))
    call.state.authenticator.tokens.drop(token_id)  # a reading that began before the change may have brought it back
    row = answered.read(api.StoredToken)
    call.audit_detail = {"revoked": row.id}
    return HttpResponse(api.TokenRevoked(id=row.id, revoked_at=row.revoked_at or ""))


async def create_key(call: Call[api.CreateApiKeyRequest]) -> HttpResponse:
    """Issue an API key, once it is on disk."""
    if call.state.config.auth.mode == "local":
        raise InvalidRequest(api.NOT_LOCAL)
    _refuse_unread(call)
    request = call.request
    key = ApiKey(_new_id(), secrets.token_hex(_SECRET_BYTES))
    row = msgspec.structs.replace(
        _row(call, "api_key", key.id, request.name, Role.AGENT, ttl_s=None),
        agent_id=request.agent_id,
        connector=request.connector,
        secret_hash=secret_digest(key.secret),
    )
    call.audit_detail = {"issued": key.id, "role": row.role.value}
    await call.ask_writer(api.StoreToken(row=row))
    call.state.authenticator.tokens.add(row)
    return HttpResponse(api.ApiKeyIssued(api_key=api.issued_key(row, api_key_text(key))), status=201)


def _refuse_unread(call: Call[Any]) -> None:
    """Raise InvalidRequest if a part of the request has no effect: it may be a limit, misspelled."""
    if call.warnings:
        raise InvalidRequest(call.warnings[0])


async def _check_project(call: Call[Any], name: str | None) -> None:
    """Raise InvalidRequest for a name that no memory's project has: requests name a directory, or its repository."""
    project = None if name is None else await call.state.projects.project_of(name)
    if project != name:
        raise InvalidRequest(f"scope.project must be {project}, the project of {name}", field="scope.project")


def _new_id() -> str:
    return secrets.token_hex(_ID_BYTES)


def _row(
    call: Call[Any], kind: api.Kind, token_id: str, name: str, role: Role, *, ttl_s: int | None
) -> api.StoredToken:
    now_ms = call.state.clock.wall_ms() // 1000 * 1000
    return api.StoredToken(
        id=token_id,
        kind=kind,
        name=name,
        role=role,
        created_at=iso(now_ms),
        created_by=call.principal.changed_by,
        expires_at=None if ttl_s is None else iso(now_ms + ttl_s * 1000),
    )


HANDLERS: Final[dict[Operation[Any], Handler[Any]]] = {
    api.CREATE: create,
    api.ROTATE: rotate,
    api.REVOKE: revoke,
    api.CREATE_KEY: create_key,
    api.REVOKE_KEY: revoke_key,
}
ROUTES: tuple[Route, ...] = (
    *serve(WHO_AM_I, who_am_i),
    *serve(PAGE_CODE, page_code),
    *serve(PAGE_TOKEN, page_token),
)
