"""Routes and their index, and the requests and responses of their handlers.

The routes are those of the declared operations (``endpoints.py``). The JSON of a request is decoded here, and the
number of its values is bounded before any of them is created.

Source: docs/architecture.md "Messages"; docs/decisions.md 40; docs/security.md A12; docs/reliability.md R13.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import msgspec
from starlette.routing import compile_path

from signet_actors.config.schema import AGENT_NAME_PATTERN, MAX_AGENT_NAME_CHARS
from signet_actors.domain.normalization import sanitize_text
from signet_actors.domain.session_keys import agent_from_session_key
from signet_actors.errors import InvalidRequest, MutationsFrozen
from signet_actors.gateway.http.request_warnings import body_warnings
from signet_actors.gateway.state import GatewayState
from signet_actors.operations.operation import Operation
from signet_actors.protocol.message import Idempotency, Principal

ACTOR_TYPES = ("operator", "pipeline", "harness", "sdk", "daemon", "agent")
MAX_PRINCIPAL_CHARS: Final = 200
MAX_VALUES: Final = 50_000
"""Values of one JSON text: decoding so many takes five milliseconds. The fullest valid request has some 25,000.

A body at its size limit can hold over a million empty lists, which block the event loop for a third of a second.
"""

_SLASHES: Final = re.compile("//+")
_NO_PARAMETERS: Final[Mapping[str, str]] = {}
_AGENT_FIELDS: Final = ("agentId", "agent_id")
_SESSION_FIELDS: Final = ("sessionKey", "session_key")
_AGENT_NAME: Final = re.compile(AGENT_NAME_PATTERN)
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A handler's response. ``body`` is a msgspec Struct, a mapping, a list, or bytes of the type ``media_type``."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = "application/json"


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """An operation at one of its paths, and the coroutine that answers it."""

    operation: Operation[Any]
    path: str
    handler: Callable[[HttpRequest], Awaitable[HttpResponse]]


@dataclass(slots=True)
class HttpRequest:
    """A complete HTTP request for a handler. Header names are lower-case.

    ``began_ns`` is the monotonic time at which the handler's time limit began. ``wait_disconnected`` returns when the
    client has disconnected; None if the server cannot tell. ``warnings`` are sent with the response.
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
        """Return the body as a JSON object, whatever its Content-Type; ``{}`` for an absent body unless ``required``.

        Fields without effect are added to ``warnings``. Raises InvalidRequest.
        """
        if not self.raw.strip():
            if required:
                raise InvalidRequest("Invalid JSON body")
            return {}
        value = decode_json(self.raw)
        if not isinstance(value, dict):
            raise InvalidRequest("Invalid JSON body")
        self.warnings += body_warnings(self.route.operation, value)
        return value

    def principal(self, body: Mapping[str, Any] | None = None) -> Principal:
        """Return the principal; x-signet-actor takes precedence over the body's ``changed_by``.

        For the audit trail, each value must be a line of at most ``MAX_PRINCIPAL_CHARS``. Raises InvalidRequest.

        Source: docs/compatibility.md "Actors and agents".
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
        """Return the agent: from body or query, then headers, then the session key, else ``default``.

        The name must follow the rule of the configuration's ``agents.roster``. Raises InvalidRequest.
        """
        where, named = self._named_agent(body)
        agent = named.strip()
        if len(agent) > MAX_AGENT_NAME_CHARS or not _is_agent_name(
            agent
        ):  # checked first: a long name must not enter the cache
            raise InvalidRequest(
                f"{where} must be an agent's name: 1 to {MAX_AGENT_NAME_CHARS} characters,"
                " no slash, backslash, colon or control character",
                field=where,
            )
        return agent

    def _named_agent(self, body: Mapping[str, Any] | None) -> tuple[str, str]:
        """Return the field or header that names the agent, and the name."""
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
        """Return the client's Idempotency-Key, hashed with principal, agent and route, and a digest of the body.

        Two agents that choose the same key never see each other's responses. Source: docs/decisions.md 3.
        """
        key = self.headers.get("idempotency-key")
        if not key:
            return None
        if len(key) > 200:
            raise InvalidRequest("Idempotency-Key must be at most 200 characters", field="Idempotency-Key")
        owner = f"{self.principal(body).changed_by}\0{self.agent_id(body)}"  # neither contains a NUL
        path = self.route.path
        for name, value in self.path.items():
            path = path.replace("{" + name + "}", value)
        target = f"{self.route.operation.method} {path}?{sorted(self.query.items())}"
        return Idempotency(
            key=hashlib.sha256(f"{owner}\0{self.route.operation.method} {path}\0{key}".encode()).hexdigest(),
            body_digest=hashlib.sha256(target.encode() + b"\0" + self.raw).hexdigest(),
        )


class Endpoint:
    """All routes of one path. ``allow`` is the value of an Allow header; ``writes``: the methods with an effect."""

    __slots__ = ("_routes", "allow", "path", "writes")

    def __init__(self, path: str, routes: Sequence[Route]) -> None:
        self.path = path
        self._routes = {route.operation.method: route for route in routes}
        self.writes = frozenset(method for method, route in self._routes.items() if route.operation.has_effect)
        self.allow = ", ".join(sorted({*self._routes, *(("HEAD",) if "GET" in self._routes else ())}))

    def route(self, method: str) -> Route | None:
        """Return the route for ``method``, where HEAD counts as GET; None if the path has no such method."""
        return self._routes.get("GET" if method == "HEAD" else method)


class RouteTable:
    """An index of ``routes``, built once.

    Paths without parameters are looked up. The others are matched in table order, with patterns that Starlette
    compiles. Starlette's own router tries every pattern of the table, which would cost more than most handlers.
    """

    def __init__(self, routes: Sequence[Route]) -> None:
        by_path: dict[str, list[Route]] = {}
        for route in routes:
            by_path.setdefault(route.path, []).append(route)
        self._plain: dict[str, Endpoint] = {}
        self._patterns: list[tuple[re.Pattern[str], Endpoint]] = []
        for path, served in by_path.items():
            endpoint = Endpoint(path, served)
            if "{" in path:
                self._patterns.append((compile_path(path)[0], endpoint))
            else:
                self._plain[path] = endpoint

    def find(self, path: str) -> tuple[Endpoint, Mapping[str, str]] | None:
        """Return the endpoint at the unescaped ``path`` and its path parameters, or None.

        Trailing and repeated slashes are ignored. A path without parameters takes precedence over a pattern.
        """
        endpoint = self._plain.get(path)
        if endpoint is None:
            path = _SLASHES.sub("/", path).rstrip("/") or "/"
            endpoint = self._plain.get(path)
        if endpoint is not None:
            return endpoint, _NO_PARAMETERS
        for pattern, patterned in self._patterns:
            match = pattern.match(path)
            if match is not None:
                return patterned, match.groupdict()
        return None


class TooManyValues(InvalidRequest):
    """The JSON holds too many values."""


def decode_json(raw: bytes) -> Any:
    """Return the decoded ``raw``. Raises InvalidRequest; TooManyValues for more than ``MAX_VALUES`` values."""
    if len(raw) > MAX_VALUES and _has_too_many_values(raw):
        raise TooManyValues(f"The JSON must hold at most {MAX_VALUES} values")
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise InvalidRequest("Invalid JSON body") from error


def _has_too_many_values(raw: bytes) -> bool:
    """Return True if ``raw`` has more than ``MAX_VALUES`` values; takes at most some 20 ms for the longest body."""
    if _separators(raw) <= MAX_VALUES:
        return False
    # A long text may contain that many commas and brackets: count those outside strings only.
    unescaped = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    parts = unescaped.split(b'"', 2 * MAX_VALUES)
    return len(parts) > 2 * MAX_VALUES or _separators(b"".join(parts[::2])) > MAX_VALUES


def _separators(raw: bytes) -> int:
    return len(raw) - len(raw.translate(None, b",[{"))


@lru_cache(maxsize=1024)
def _is_agent_name(name: str) -> bool:
    return _AGENT_NAME.match(name) is not None


def _first_text(names: tuple[str, ...], *sources: Mapping[str, Any] | None) -> tuple[str, str] | None:
    """Return the first of ``names`` that a source contains, and its text; a blank text counts as absent."""
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
    """Return ``value`` as one line of limited length that the store can hold; None if it is blank."""
    if len(value) > MAX_PRINCIPAL_CHARS or _CONTROL.search(value):
        raise InvalidRequest(
            f"{field} must be at most {MAX_PRINCIPAL_CHARS} characters without control characters", field=field
        )
    return sanitize_text(value).strip() or None
