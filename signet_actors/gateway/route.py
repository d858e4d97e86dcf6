"""What a route is: one row of a literal table, and the call that its handler gets.

The table is the single source for routing, permissions, rate limits and the OpenAPI document; a handler is a
plain coroutine from ``Call`` to ``Reply`` and knows nothing of the web framework.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from signet_actors.domain.permissions import Permission
from signet_actors.domain.session_keys import agent_from_session_key
from signet_actors.errors import InvalidRequest
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Principal
from signet_actors.protocol.writer import Idempotency

if TYPE_CHECKING:
    from signet_actors.gateway.state import GatewayState

ACTOR_TYPES = ("operator", "pipeline", "harness", "sdk", "daemon", "agent")


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP answer: ``body`` is a msgspec Struct, a mapping, a list, or ready bytes with ``media_type``."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A query parameter for the API document. ``kind``: string, integer, number or boolean."""

    name: str
    kind: str = "string"
    description: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True)
class Route:
    """One endpoint. ``path`` uses ``{name}`` for parameters; ``replies`` maps status to a body type for the document.

    ``permission`` None means that the caller needs none (liveness only); ``limit`` names a rate bucket;
    ``mutates`` routes answer 503 while ``mutationsFrozen`` is set.
    """

    method: str
    path: str
    handler: Callable[[Call], Awaitable[Reply]]
    permission: Permission | None
    summary: str
    tag: str
    body: type | None = None
    query: tuple[Parameter, ...] = ()
    replies: Mapping[int, Any] = field(default_factory=dict)
    limit: str | None = None
    mutates: bool = False
    description: str = ""


@dataclass(slots=True)
class Call:
    """One HTTP request, read whole and bounded, on its way to a handler. Header names are lower-case."""

    state: GatewayState
    route: Route
    path: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    raw: bytes
    trace_id: str

    def json_object(self, *, required: bool = True) -> dict[str, Any]:
        """The body as a JSON object, whatever its Content-Type; an absent body is ``{}`` unless required."""
        if not self.raw.strip():
            if required:
                raise InvalidRequest("Invalid JSON body")
            return {}
        try:
            value = msgspec.json.decode(self.raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
            raise InvalidRequest("Invalid JSON body") from error
        if not isinstance(value, dict):
            raise InvalidRequest("Invalid JSON body")
        return value

    def principal(self, body: Mapping[str, Any] | None = None) -> Principal:
        """Who acts: x-signet-actor beats the body's ``changed_by``. Source: wire.md 1.0."""
        claimed = (body or {}).get("changed_by") or (body or {}).get("changedBy")
        actor_type = self.headers.get("x-signet-actor-type", "operator")
        return Principal(
            changed_by=self.headers.get("x-signet-actor") or (claimed if isinstance(claimed, str) else "") or "daemon",
            actor_type=actor_type if actor_type in ACTOR_TYPES else "operator",
            session_id=self.headers.get("x-signet-session-id"),
            request_id=self.headers.get("x-signet-request-id"),
        )

    def agent_id(self, body: Mapping[str, Any] | None = None) -> str:
        """The agent that speaks: body or query, then headers, then the session key, then ``default``."""
        for source in (body or {}, self.query):
            for name in ("agentId", "agent_id"):
                value = source.get(name)
                if value is not None and not isinstance(value, str):
                    raise InvalidRequest(f"{name} must be a string", field=name)
                if value:
                    return value
        named = self.headers.get("x-signet-agent-id")
        if named:
            return named
        session = (
            self.headers.get("x-signet-session-key")
            or self.query.get("sessionKey")
            or self.query.get("session_key")
            or (body or {}).get("sessionKey")
            or (body or {}).get("session_key")
        )
        if isinstance(session, str) and session:
            agent = agent_from_session_key(session)
            if agent:
                return agent
        return "default"

    def read_scope(self, body: Mapping[str, Any] | None = None) -> ReadScope:
        """What the caller may read."""
        scope = (body or {}).get("scope", self.query.get("scope"))
        if scope is not None and not isinstance(scope, str):
            raise InvalidRequest("scope must be a string", field="scope")
        return ReadScope(agent_id=self.agent_id(body), scope=scope or None)

    def idempotency(self) -> Idempotency | None:
        """The client's Idempotency-Key, unique per principal and route, with a digest of the body (decisions.md 3)."""
        key = self.headers.get("idempotency-key")
        if not key:
            return None
        if len(key) > 200:
            raise InvalidRequest("Idempotency-Key must be at most 200 characters", field="Idempotency-Key")
        owner = self.headers.get("x-signet-actor", "")
        path = self.route.path
        for name, value in self.path.items():
            path = path.replace("{" + name + "}", value)
        target = f"{self.route.method} {path}?{sorted(self.query.items())}"
        return Idempotency(
            key=hashlib.sha256(f"{owner}\0{self.route.method} {path}\0{key}".encode()).hexdigest(),
            body_digest=hashlib.sha256(target.encode() + b"\0" + self.raw).hexdigest(),
        )
