"""What a route is: one row of a literal table, and the call that its handler gets.

The table is the single source for routing, permissions, rate limits and the OpenAPI document; a handler is a
plain coroutine from ``HttpRequest`` to ``HttpResponse`` and knows nothing of the web framework.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from signet_actors.config.schema import AGENT_NAME_PATTERN, MAX_AGENT_NAME_CHARS
from signet_actors.domain.normalization import sanitize_text
from signet_actors.domain.permissions import Permission
from signet_actors.domain.session_keys import agent_from_session_key
from signet_actors.errors import InvalidRequest, MutationsFrozen
from signet_actors.gateway.http.request_warnings import body_warnings
from signet_actors.protocol.message import Idempotency, Principal

if TYPE_CHECKING:
    from signet_actors.gateway.state import GatewayState

ACTOR_TYPES = ("operator", "pipeline", "harness", "sdk", "daemon", "agent")
MAX_PRINCIPAL_CHARS: Final = 200

_AGENT_FIELDS: Final = ("agentId", "agent_id")
_SESSION_FIELDS: Final = ("sessionKey", "session_key")
_AGENT_NAME: Final = re.compile(AGENT_NAME_PATTERN)
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class HttpResponse:
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


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """One endpoint. ``path`` uses ``{name}`` for parameters; ``replies`` maps status to a body type for the document.

    ``permission`` None means that the caller needs none (liveness only); ``limit`` names a rate bucket;
    ``owner`` routes are answered only to the user that runs the daemon, see ``ownership``;
    ``mutates`` routes answer 503 while ``mutationsFrozen`` is set; ``writes`` routes change something that is no
    memory, and are served all the same; ``mutates_conditionally`` routes mutate for some requests only, and refuse
    those themselves (``HttpRequest.refuse_if_frozen``); ``media_types`` are those of an answer that is not JSON;
    ``query_struct`` is the body whose fields may stand in the query as parameters.
    """

    method: str
    path: str
    handler: Callable[[HttpRequest], Awaitable[HttpResponse]]
    permission: Permission | None
    summary: str
    tag: str
    body: type | None = None
    query: tuple[Parameter, ...] = ()
    replies: Mapping[int, Any] = field(default_factory=dict)
    limit: str | None = None
    owner: bool = False
    mutates: bool = False
    writes: bool = False
    mutates_conditionally: bool = False
    description: str = ""
    media_types: tuple[str, ...] = ()
    query_struct: type | None = None

    @property
    def has_effect(self) -> bool:
        """Whether a request without an answer may have changed something: its outcome is unknown then."""
        return self.mutates or self.writes


@dataclass(slots=True)
class HttpRequest:
    """One HTTP request, read whole and bounded, on its way to a handler. Header names are lower-case.

    ``began_ns`` (monotonic) is when the handler's time began; ``wait_disconnected`` returns when its client has gone,
    None where that cannot be known. ``warnings`` go out with the answer.
    """

    state: GatewayState
    route: Route
    path: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    raw: bytes
    trace_id: str
    began_ns: int = 0
    wait_disconnected: Callable[[], Coroutine[Any, Any, None]] | None = None
    warnings: list[str] = field(default_factory=list)

    def refuse_if_frozen(self) -> None:
        """Raise MutationsFrozen while the kill switch is active."""
        if self.state.config.memory.pipeline_v2.mutations_frozen:
            raise MutationsFrozen

    def json_object(self, *, required: bool = True) -> dict[str, Any]:
        """The body as a JSON object, whatever its Content-Type; an absent body is ``{}`` unless required.

        Fields without effect are named in ``warnings``.
        """
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
        self.warnings += body_warnings(self.route, value)
        return value

    def principal(self, body: Mapping[str, Any] | None = None) -> Principal:
        """Who acts: x-signet-actor beats the body's ``changed_by``. Source: docs/compatibility.md "Actors and agents".

        What ends up in the audit trail is a line of at most ``MAX_PRINCIPAL_CHARS`` that the store can hold.
        """
        given = body or {}
        snake, camel = _text(given, "changed_by"), _text(given, "changedBy")
        claimed = _line(snake, "changed_by") if snake else _line(camel, "changedBy") if camel else None
        actor_type = self.headers.get("x-signet-actor-type", "operator").strip().lower()
        return Principal(
            changed_by=self._line("x-signet-actor") or claimed or "daemon",
            actor_type=actor_type if actor_type in ACTOR_TYPES else "operator",
            session_id=self._line("x-signet-session-id"),
            request_id=self._line("x-signet-request-id"),
        )

    def _line(self, header: str) -> str | None:
        value = self.headers.get(header)
        return None if value is None else _line(value, header)

    def agent_id(self, body: Mapping[str, Any] | None = None) -> str:
        """The agent that speaks: body or query, then headers, then the session key, then ``default``.

        It is a name by the rule of the configuration's ``agents.roster``.
        """
        where, named = self._named_agent(body)
        agent = named.strip()
        if len(agent) > MAX_AGENT_NAME_CHARS or not _is_agent_name(agent):  # no longer name is worth remembering
            raise InvalidRequest(
                f"{where} must be an agent's name: 1 to {MAX_AGENT_NAME_CHARS} characters,"
                " no slash, backslash, colon or control character",
                field=where,
            )
        return agent

    def _named_agent(self, body: Mapping[str, Any] | None) -> tuple[str, str]:
        """The name, and the field or header that it stands in."""
        named = _first_text(_AGENT_FIELDS, body, self.query)
        if named is not None:
            return named
        named = _first_text(("x-signet-agent-id",), self.headers)
        if named is not None:
            return named
        key = _first_text(("x-signet-session-key",), self.headers) or _first_text(_SESSION_FIELDS, self.query, body)
        agent = None if key is None else agent_from_session_key(key[1])
        return ("agentId", "default") if key is None or agent is None else (key[0], agent)

    def idempotency(self, body: Mapping[str, Any] | None = None) -> Idempotency | None:
        """The client's Idempotency-Key, unique per principal, agent and route, with a digest of the body.

        Two agents that choose the same key never see each other's answers. Source: docs/decisions.md 3.
        """
        key = self.headers.get("idempotency-key")
        if not key:
            return None
        if len(key) > 200:
            raise InvalidRequest("Idempotency-Key must be at most 200 characters", field="Idempotency-Key")
        owner = f"{self.principal(body).changed_by}\0{self.agent_id(body)}"  # neither holds a NUL
        path = self.route.path
        for name, value in self.path.items():
            path = path.replace("{" + name + "}", value)
        target = f"{self.route.method} {path}?{sorted(self.query.items())}"
        return Idempotency(
            key=hashlib.sha256(f"{owner}\0{self.route.method} {path}\0{key}".encode()).hexdigest(),
            body_digest=hashlib.sha256(target.encode() + b"\0" + self.raw).hexdigest(),
        )


@lru_cache(maxsize=1024)
def _is_agent_name(name: str) -> bool:
    return _AGENT_NAME.match(name) is not None


def _first_text(names: tuple[str, ...], *sources: Mapping[str, Any] | None) -> tuple[str, str] | None:
    """The first of ``names`` that a source gives, and its text; a blank one counts as not given."""
    for source in sources:
        if source:
            for name in names:
                value = _text(source, name)
                if value and value.strip():
                    return name, value
    return None


def _text(source: Mapping[str, Any], name: str) -> str | None:
    value = source.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidRequest(f"{name} must be a string", field=name)
    return value


def _line(value: str, field: str) -> str | None:
    """``value`` as one bounded line that the store can hold; None when blank."""
    if len(value) > MAX_PRINCIPAL_CHARS or _CONTROL.search(value):
        raise InvalidRequest(
            f"{field} must be at most {MAX_PRINCIPAL_CHARS} characters without control characters", field=field
        )
    return sanitize_text(value).strip() or None
