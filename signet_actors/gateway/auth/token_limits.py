"""Keep what a request names within the scope of its token. What it names is compared, never looked up.

So a refusal is the same whether or not what is named exists. What the request reads is limited by ``ReadScope``.

Source: architecture.txt "Auth Middleware" (requireScope); docs/compatibility.md "Authentication".
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, TypeVar

import msgspec

from signet_actors.domain.session_keys import agent_from_session_key, canonical_session_key
from signet_actors.domain.tokens import TokenScope
from signet_actors.gateway.auth.identity import Forbidden
from signet_actors.operations.field_types import MAX_NAME_CHARS, CallerField
from signet_actors.operations.operation import Operation
from signet_actors.operations.request_reader import request_fields

T = TypeVar("T", bound=msgspec.Struct)
_NAMES: Final = (
    *("key", "x-signet-session-key", "x-signet-session-id"),
    *("sessionKey", "session_key", "sessionId", "session_id"),
    *("currentSessionKey", "current_session_key", "parentSessionKey", "parent_session_key"),
)
"""What names a session in a path, in headers, in a query or a body."""
_SOURCES: Final = ("sourceId", "source_id")
"""They name the session of a transcript that is sent with a memory."""


def own_sessions(given: Mapping[str, Any], agent: str) -> Mapping[str, Any]:
    """Return the fields or headers with each session that they name replaced by one of ``agent``. Raises Forbidden."""
    names = (*_NAMES, *_SOURCES) if "transcript" in given else _NAMES
    own = {name: own_session(text, agent) for name in names if isinstance(text := given.get(name), str)}
    return {**given, **own} if own else given


def own_session(named: str, agent: str) -> str:
    """Return the session of ``agent`` that ``named`` means. Raises Forbidden if it names one of another agent."""
    key = canonical_session_key(named)
    if key is None:
        return named
    of_agent = agent_from_session_key(key)
    if of_agent is None:
        return f"agent:{agent}:{key}"
    if of_agent != agent:
        raise Forbidden(f"scope restricted to agent '{agent}'")
    return key


def told_session(key: str, agent: str) -> str:
    """Return the session of ``agent`` that a text means by ``key``: a text, unlike a request, names no other agent."""
    return key if agent_from_session_key(key) == agent else f"agent:{agent}:{key}"[:MAX_NAME_CHARS]


def within_limits(request: T, scope: TokenScope) -> T:
    """Return the request with the project and the user of the scope where it names none. Raises Forbidden.

    Nothing is stated of the graph, which belongs to the agent: it could replace what memories outside the limit say.
    """
    changed: dict[str, Any] = {}
    for name, limit, what in (("project", scope.project, "project"), ("who", scope.user, "user")):
        if limit is None or name not in request.__struct_fields__:
            continue
        structured = getattr(request, "structured", None)
        if structured is not None and (structured.entities or structured.aspects):
            raise Forbidden(f"scope restricted to {what} '{limit}', and the graph (structured) belongs to the agent")
        given = getattr(request, name)
        if given not in {None, "", limit}:
            raise Forbidden(f"scope restricted to {what} '{limit}'")
        changed[name] = limit
    return msgspec.structs.replace(request, **changed) if changed else request


def check_new_values(scope: TokenScope, *, project: str | None, who: str | None) -> None:
    """Raise Forbidden if a memory would get a project or an author outside of the scope; None: it keeps its own."""
    for given, limit, what in ((project, scope.project, "project"), (who, scope.user, "user")):
        if limit is not None and given not in {None, limit}:
            raise Forbidden(f"scope restricted to {what} '{limit}'")


@cache
def reads_scope(operation: Operation[Any]) -> bool:
    """Return whether ``scope`` is that of memories, not of a token."""
    request: type[msgspec.Struct] = operation.request
    return all(isinstance(each.type, CallerField) for each in request_fields(request) if each.name == "scope")
