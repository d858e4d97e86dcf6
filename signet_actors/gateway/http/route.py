"""Routes: ``serve`` binds a handler, a coroutine from ``Call`` to ``HttpResponse``, to a declared operation.

A handler sees no field that was not checked, and no secret in a field that is stored; principal, agent, scope and
idempotency key come from the call. The number of values in a request's JSON is bounded before any of them is created.

Source: docs/architecture.md "How to add"; docs/decisions.md 3, 26, 40; docs/security.md A12; docs/reliability.md R13.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any, Final, Generic, TypeVar, cast

import msgspec

from signet_actors.config.schema import MAX_AGENT_NAME_CHARS
from signet_actors.domain.normalization import sanitize_text
from signet_actors.domain.redaction.scan import Kinds
from signet_actors.domain.session_keys import DEFAULT_AGENT, agent_from_session_key, canonical_session_key
from signet_actors.domain.temporal.intent import Intent
from signet_actors.errors import ErrorCode, InvalidRequest, MutationsFrozen, SignetError
from signet_actors.features.runs.api import UNDO_RUN
from signet_actors.gateway.auth.identity import LOCAL, OWNER, Forbidden, Identity
from signet_actors.gateway.auth.token_limits import own_sessions, reads_scope, told_session, within_limits
from signet_actors.gateway.http.after_response import AfterResponse
from signet_actors.gateway.http.memory_ids import FullIds, full_ids
from signet_actors.gateway.http.request_texts import (
    MAX_PRINCIPAL_CHARS,
    as_line,
    decode_json,
    first_text,
    is_agent_name,
    text_in,
)
from signet_actors.gateway.ingest import FieldRedactor, redacted
from signet_actors.gateway.state import GatewayState
from signet_actors.operations.field_types import MAX_NAME_CHARS
from signet_actors.operations.operation import Operation
from signet_actors.operations.request_fields import FilterFields
from signet_actors.operations.request_reader import body_warnings, read_request
from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.protocol.message import Idempotency, KeyedRequest, Principal, Request, message_of
from signet_actors.protocol.pipeline import ApproveProposal
from signet_actors.protocol.transcripts import ForgetTranscript
from signet_actors.protocol.writer import ForgetMany, ForgetMemory, ModifyMany, ModifyMemory, RecoverMemory

RequestT = TypeVar("RequestT", bound=msgspec.Struct)
OtherT = TypeVar("OtherT", bound=msgspec.Struct)
R = TypeVar("R")

ACTOR_TYPES = ("operator", "pipeline", "harness", "sdk", "daemon", "agent")
MEMORY_IS_OFF: Final = (
    "Memory is switched off for this session (bypassed): nothing was read or stored. If the user wants it on again, use"
    " session_bypass."
)
_CHANGES: Final = (
    *(ModifyMemory, ModifyMany, ForgetMemory, ForgetMany, RecoverMemory),
    *(message_of(UNDO_RUN), ApproveProposal, ForgetTranscript),
)
"""Commands after which ``MEMORY.md`` may show a memory that is forgotten, or was changed."""
_AGENT_FIELDS: Final = ("agentId", "agent_id")
_SESSION_FIELDS: Final = ("sessionKey", "session_key")
_CALLER_FIELDS: Final = (*_AGENT_FIELDS, *_SESSION_FIELDS, "x-signet-agent-id", "x-signet-session-key")
_CALLER_PROPERTIES: Final = ("session_key", "session_id", "agent_id", "read", "principal", "idempotency")
_DIRECTORY_FIELDS: Final = ("project", "cwd")


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
    handler: Callable[[Call[Any]], Awaitable[HttpResponse]]


@dataclass(frozen=True, slots=True)
class InnerRequest:
    """A request of ``operation`` that a handler makes for its caller. ``path``: the parameters of the path."""

    operation: Operation[Any]
    path: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


PerformInner = Callable[[InnerRequest], Awaitable[tuple[int, bytes]]]
"""Serves a request within another one, and returns status and body."""


@dataclass(eq=False, repr=False)
class Call(Generic[RequestT]):
    """One request of an operation. Header names are lower-case.

    ``request`` is what the caller asks for, and ``redactions`` are the kinds of the secrets that were cut out of it;
    ``serve`` sets both. ``raw`` is the body, and ``path`` has the parameters of the path. ``began_ns`` is the monotonic
    time at which the handler's time limit began. ``wait_disconnected`` returns when the client has disconnected; None
    if the server cannot tell. ``warnings`` are sent with the response. ``perform`` serves a request within this one.
    ``after_response`` is called after the response, that of the outer request if this one is within another and was
    answered with success.
    ``require_owner`` raises a SignetError if the caller is not the user that runs the daemon; None if it is not known.
    ``until_ns``: the monotonic time until which a hook waits for its answer.
    ``is_chosen``: whether hooks work in the directory that the request names, None if it names none.
    ``directory``: the first directory that the request names, as it is spelled there.
    ``former_project``: the directory as the caller spells it, if that is not its project: older memories have it.
    ``audit_detail``: what the audit log says beside the request's operation; None if the request is not to be recorded.
    ``intents``: what was found of the times that queries name; see ``query_intent``. ``identity``: who calls.
    ``reads_files``: whether it may name files of this machine, which are read for it. ``observes``: a person looks, and
    nothing changes.
    """

    state: GatewayState
    route: Route
    _: KW_ONLY
    path: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    raw: bytes
    trace_id: str
    began_ns: int = 0
    wait_disconnected: Callable[[], Coroutine[Any, Any, None]] | None = None
    warnings: list[str] = field(default_factory=list)
    perform: PerformInner | None = None
    after_response: list[AfterResponse] = field(default_factory=list)
    require_owner: Callable[[], Coroutine[Any, Any, None]] | None = None
    request: RequestT = field(init=False)
    body: Mapping[str, Any] = field(default_factory=dict, init=False)
    redactions: Kinds = field(default=(), init=False)
    until_ns: int | None = field(default=None, init=False)
    is_chosen: bool | None = field(default=None, init=False)
    directory: str | None = field(default=None, init=False)
    former_project: str | None = field(default=None, init=False)
    intents: dict[tuple[str | None, ...], Intent | None] = field(default_factory=dict, init=False)
    audit_detail: dict[str, str | int] | None = field(default_factory=dict, init=False)
    identity: Identity = LOCAL
    observes: bool = False
    reads_files: bool = field(default=True, init=False)
    _is_owner: bool | None = field(default=None, init=False)

    @cached_property
    def principal(self) -> Principal:
        """The author of a change, as history records it, without secrets. Raises InvalidRequest."""
        return FieldRedactor(self.state).principal(self.named_principal(self.body))

    @cached_property
    def agent_id(self) -> str:
        """The agent on whose behalf the caller acts. Raises InvalidRequest, also for a name that holds a secret."""
        return FieldRedactor(self.state).identifier(self.named_agent(self.body), "agentId")

    @cached_property
    def read(self) -> ReadScope:
        """What the caller may read. Raises InvalidRequest."""
        scope = self.body.get("scope", self.query.get("scope")) if reads_scope(self.route.operation) else None
        if scope is not None and not isinstance(scope, str):
            raise InvalidRequest("scope must be a string", field="scope")
        if scope and (len(scope) > MAX_NAME_CHARS or "\0" in scope):
            raise InvalidRequest(f"scope must be at most {MAX_NAME_CHARS} characters without NUL", field="scope")
        limits = self.identity.scope
        return ReadScope(agent_id=self.agent_id, scope=scope or None, project=limits.project, user=limits.user)

    @cached_property
    def idempotency(self) -> Idempotency | None:
        """The client's Idempotency-Key, hashed with principal, agent and route, and a digest of the body; None if none.

        Two agents that choose the same key never see each other's responses. Raises InvalidRequest.
        """
        key = self.headers.get("idempotency-key")
        if not key:
            return None
        if len(key) > 200:
            raise InvalidRequest("Idempotency-Key must be at most 200 characters", field="Idempotency-Key")
        names = self.identity.id, self.named_principal(self.body).changed_by, self.named_agent(self.body)
        owner = "\0".join(filter(None, names))  # none contains a NUL
        path = self.route.path
        for name, value in self.path.items():
            path = path.replace("{" + name + "}", value)
        target = f"{self.route.operation.method} {path}?{sorted(self.query.items())}"
        return Idempotency(
            key=hashlib.sha256(f"{owner}\0{self.route.operation.method} {path}\0{key}".encode()).hexdigest(),
            body_digest=hashlib.sha256(target.encode() + b"\0" + self.raw).hexdigest(),
        )

    @cached_property
    def session_key(self) -> str | None:
        """The caller's session in canonical form, None if it names or has none. Raises InvalidRequest."""
        return (
            None
            if not self.identity.has_sessions
            else self._session_of(
                first_text(("x-signet-session-key",), self.headers)
                or first_text(_SESSION_FIELDS, self.query, self.body)
            )
        )

    @cached_property
    def session_id(self) -> str | None:
        """The session that x-signet-session-id names for the history, in canonical form. Raises InvalidRequest."""
        return self._session_of(first_text(("x-signet-session-id",), self.headers))

    def told_session(self, key: str) -> str:
        """Return the session that a text of the caller means by ``key``: one of its own if its token has an agent."""
        agent = self.identity.scope.agent
        return key if agent is None else told_session(key, agent)

    def _session_of(self, key: tuple[str, str] | None) -> str | None:
        canonical = None if key is None else canonical_session_key(sanitize_text(key[1]))
        if key is None or canonical is None:
            return None
        if len(canonical) > MAX_NAME_CHARS:
            raise InvalidRequest(f"{key[0]} must be at most {MAX_NAME_CHARS} characters", field=key[0])
        return FieldRedactor(self.state, for_memories=False).digest(canonical)

    @cached_property
    def request_key(self) -> str | None:
        """What a retry of this request has in common with it, None if the caller did not mark it.

        It is the same only for the same agent, route and body.
        """
        mark = self.headers.get("idempotency-key") or self.headers.get("x-signet-request-id")
        if not mark:
            return None
        target = f"{self.agent_id}\0{self.route.path}?{sorted(self.query.items())}\0{mark}"
        return hashlib.sha256(target.encode() + b"\0" + self.raw).hexdigest()

    def check_names(self) -> None:
        """Raise InvalidRequest if what names caller or session is not valid, also if the handler does not need it."""
        for name in _CALLER_PROPERTIES:
            getattr(self, name)

    def ignore_invalid_names(self) -> None:
        """Leave out what names caller or session and is not valid, with a warning for each, instead of raising it."""
        while True:
            try:
                self.check_names()
            except InvalidRequest as error:
                self._leave_out(error)
            else:
                return

    def _leave_out(self, error: InvalidRequest) -> None:
        """Leave out the field, parameter or header of the error. Raises it if there is none."""
        named = error.field or ""
        given = {*self.body, *self.query, *self.headers}
        names = {named, named.lower()} & given or given.intersection(_CALLER_FIELDS)
        if not names:
            raise error
        self.warnings.append(f"{error.detail}; the value is ignored")
        self.body = {name: value for name, value in self.body.items() if name not in names}
        self.query = {name: value for name, value in self.query.items() if name not in names}
        self.headers = {name: value for name, value in self.headers.items() if name not in names}
        for name in _CALLER_PROPERTIES:
            self.__dict__.pop(name, None)

    def with_request(self, request: OtherT, *, session_id: str | None = None) -> Call[OtherT]:
        """Return the same call with another request, and with ``session_id`` for a principal that names none."""
        other = cast("Call[OtherT]", copy.copy(self))
        other.request = request
        principal = self.principal
        if session_id is not None and principal.session_id is None:
            principal = msgspec.structs.replace(principal, session_id=session_id[:MAX_PRINCIPAL_CHARS])
        other.__dict__["principal"] = principal
        return other

    async def hold(self, lock: asyncio.Lock) -> None:
        """Acquire the lock, and release it when the response was written or cannot be. Once for each lock."""
        await lock.acquire()
        self.after_response.append(lambda _: lock.release())

    def when_sent(self, action: Callable[[], None]) -> None:
        """Do ``action`` when the response was written; not for an error, a lost client, or one that only looks."""
        if not self.observes:
            self.after_response.append(lambda sent: action() if sent else None)

    async def is_owner(self) -> bool:
        """Return whether the caller may have everything; a warning tells others what is left out.

        That is the user that runs the daemon, and the bearer of a token that is not limited to a project or a user.
        """
        operation = self.route.operation
        if self._is_owner is None:
            self._is_owner = operation.owner_only or self.identity.role is not None or self.require_owner is not None
            try:
                if self._is_owner:
                    await self.check_owner()
            except SignetError as error:
                self._is_owner = False
                if operation.owner_parts:
                    self.warnings.append(f"Left out: {operation.owner_parts}. {error.detail}")
        return self._is_owner

    async def check_owner(self) -> None:
        """Raise a SignetError if the caller may not have everything; see ``is_owner``."""
        if self.identity.role is not None:
            if self.identity.is_limited_to_memories:
                raise Forbidden("The token is limited to a project or a user")
        elif not self.route.operation.owner_only:  # else it was checked before the request was read
            if self.require_owner is None:
                raise SignetError("It is not known who asks", code=ErrorCode.FORBIDDEN)
            await self.require_owner()

    async def check_machine(self) -> None:
        """Raise a SignetError if the caller has no right to the files of this machine, beside those of its agent.

        The user that runs the daemon has it. A token gives none: its bearer may be elsewhere, or be another agent.
        """
        if self.identity.role is not None and self.identity.id != OWNER.id and self.require_owner is not None:
            await self.require_owner()

    async def _settle_file(self) -> None:
        """Leave out the file that the request names if the caller has no right to it.

        A hook of another user of this machine has no session, so that nothing is read for it.
        """
        try:
            await self.check_machine()
        except SignetError as error:
            self.reads_files = False
            if getattr(self.request, "transcript_path", None) is not None:
                self.request = msgspec.structs.replace(self.request, transcript_path=None)
                self.warnings.append(f"transcriptPath is ignored. {error.detail}")

    async def refuse_if_off(self, session_key: str | None) -> None:
        """Raise SignetError if memory is off for one of the sessions, or before a write, if that is not known."""
        ledger = self.state.ledger
        for key in filter(None, dict.fromkeys((session_key, self.session_id))):
            try:
                await ledger.context(key, self.agent_id, trace_id=self.trace_id)
            except SignetError:
                if self.route.operation.has_effect:
                    raise
            if ledger.is_bypassed(key):
                raise SignetError(MEMORY_IS_OFF, code=ErrorCode.FORBIDDEN)

    async def ask_searcher(self, query: Request[R], *, frames: Sequence[bytes] = ()) -> R:
        """Return a searcher's reply. Raises SignetError."""
        reply, _ = await self.state.bus.ask_searcher(query, trace_id=self.trace_id, frames=frames)
        return reply

    async def ask_writer(self, command: KeyedRequest[R], *, part: int = 0, frames: Sequence[bytes] = ()) -> R:
        """Return the writer's reply; what it reports is on disk. Raises SignetError.

        The caller's key is added to the command if the operation is declared to be ``keyed``. ``part`` numbers the
        commands of one request, so that a retry gets the first reply to each.
        """
        key = self.idempotency if self.route.operation.keyed else None
        if key is not None:
            if part:
                key = msgspec.structs.replace(key, key=f"{key.key}#{part}")
            command = msgspec.structs.replace(command, idempotency=key)
        reply = await self.state.bus.ask_writer(command, trace_id=self.trace_id, frames=frames)
        if isinstance(command, _CHANGES):
            self.state.synthesis.check_soon()
        return reply

    async def ask_writer_unkeyed(self, command: Request[R]) -> R:
        """Like ``ask_writer``, for a command that is safe to repeat: only its effect is the same then, not its reply.

        An operation that replies with nothing else is declared with ``keyed=False``.
        """
        return await self.state.bus.ask_writer(command, trace_id=self.trace_id)

    async def full_ids(self, given: Iterable[str]) -> FullIds:
        """Return what the beginnings among the ``given`` ids of memories mean for the caller. Raises SignetError."""
        return await full_ids(self.ask_searcher, self.read, given, deleted_first=self.route.operation.deleted_first)

    def refuse_if_frozen(self) -> None:
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

    def named_principal(self, body: Mapping[str, Any]) -> Principal:
        """Return the principal: the bearer of a token, else x-signet-actor, else the ``changed_by`` of ``body``.

        For the audit trail, each value must be a line of at most ``MAX_PRINCIPAL_CHARS``. Raises InvalidRequest.

        Source: docs/compatibility.md "Actors and agents".
        """
        snake, camel = text_in(body, "changed_by"), text_in(body, "changedBy")
        claimed = as_line(snake, "changed_by") if snake else as_line(camel, "changedBy") if camel else None
        actor_type = self.headers.get("x-signet-actor-type", "operator").strip().lower()
        return Principal(
            changed_by=self.identity.name or self._line("x-signet-actor") or claimed or "daemon",
            actor_type=self.identity.actor_type(actor_type if actor_type in ACTOR_TYPES else "operator"),
            session_id=self._line("x-signet-session-id"),
            request_id=self._line("x-signet-request-id"),
        )

    def _line(self, header: str) -> str | None:
        value = self.headers.get(header)
        return None if value is None else as_line(value, header)

    def named_agent(self, body: Mapping[str, Any]) -> str:
        """Return the agent: from ``body`` or query, then headers, then the session key, else ``default``.

        The name must follow the rule of the configuration's ``agents.roster``. Raises InvalidRequest.
        """
        where, named = self._find_agent(body)
        agent = named.strip()
        if len(agent) > MAX_AGENT_NAME_CHARS or not is_agent_name(
            agent
        ):  # checked first: a long name must not enter the cache
            raise InvalidRequest(
                f"{where} must be an agent's name: 1 to {MAX_AGENT_NAME_CHARS} characters,"
                " no slash, backslash, colon or control character",
                field=where,
            )
        return agent

    def names_agent(self) -> bool:
        """Return whether a field or a header names the agent, rather than a session key or nothing."""
        return self._named_agent(self.body) is not None

    def _named_agent(self, body: Mapping[str, Any]) -> tuple[str, str] | None:
        in_fields = first_text(_AGENT_FIELDS, body, self.query)
        in_header = first_text(("x-signet-agent-id",), self.headers)
        only = self.identity.scope.agent
        if only is None:
            return in_fields or in_header
        named = {agent.strip() for _, agent in filter(None, (in_fields, in_header))}
        if named - {
            only,
            DEFAULT_AGENT if in_fields is None else only,
        }:  # programs send the header without being told to
            raise Forbidden(f"scope restricted to agent '{only}'")
        return "agentId", only

    def _find_agent(self, body: Mapping[str, Any]) -> tuple[str, str]:
        """Return the field or header that names the agent, and the name. Every field is checked, also an unused one."""
        named = self._named_agent(body)
        session = first_text(_SESSION_FIELDS, self.query, body)
        if named is not None:
            return named
        key = first_text(("x-signet-session-key",), self.headers) or session
        agent = None if key is None else agent_from_session_key(key[1])
        return ("agentId", DEFAULT_AGENT) if key is None or agent is None else (key[0], agent)


Handler = Callable[[Call[RequestT]], Awaitable[HttpResponse]]


def serve(operation: Operation[RequestT], handler: Handler[RequestT]) -> tuple[Route, ...]:
    """Return the routes of ``operation``, one for each path. ``handler`` answers all of them."""
    in_json = operation.in_body and operation.lines is None
    in_query, has_effect, lenient = operation.in_query, operation.has_effect, operation.lenient
    redacts, changes_memories = operation.redacts, operation.changes_memories
    names_file = "transcript_path" in operation.request.__struct_fields__
    directories = [name for name in _DIRECTORY_FIELDS if name in operation.request.__struct_fields__]

    async def endpoint(call: Call[RequestT]) -> HttpResponse:
        if in_json:
            call.body = call.json_object(required=operation.body_required)
        if (agent := call.identity.scope.agent) is not None:
            call.headers, call.path = own_sessions(call.headers, agent), own_sessions(call.path, agent)
            call.query, call.body = own_sessions(call.query, agent), own_sessions(call.body, agent)
        if lenient:
            call.ignore_invalid_names()
        elif has_effect:
            call.check_names()
        if operation.needs_memory_on:
            await call.refuse_if_off(call.session_key)
        call.request = read_request(
            operation.request,
            body=call.body if in_json else None,
            query=call.query if in_query else None,
            now_ms=call.state.clock.wall_ms(),
            warnings=call.warnings,
            lenient=lenient,
        )
        if redacts:
            redactor = FieldRedactor(call.state, for_memories=changes_memories)
            call.request = redacted(redactor, call.request, ignored=call.warnings if lenient else None)
            call.redactions = redactor.redactions
        if names_file:
            await call._settle_file()
        if directories:
            await _replace_directories(call, directories)
        if call.identity.is_limited_to_memories:
            call.request = within_limits(call.request, call.identity.scope)
        if operation.memory_ids:
            await _name_in_full(call, operation)
        return await handler(call)

    return tuple(Route(operation, path, endpoint) for path in operation.paths)


async def _name_in_full(call: Call[Any], operation: Operation[Any]) -> None:
    """Replace the beginnings of ids in the call's path and request by these ids. Raises SignetError."""
    for name in operation.memory_ids:
        value = call.path[name] if name in call.path else getattr(call.request, name)
        found = await call.full_ids((value,) if isinstance(value, str) else value or ())
        if found.meant and name in call.path:
            call.path = {**call.path, name: found.of(value, name)}
        elif found.meant:
            call.request = msgspec.structs.replace(call.request, **{name: found.within(value, name)})


async def _replace_directories(call: Call[Any], fields: Sequence[str]) -> None:
    """Replace each directory that one of ``fields`` names by its project; the first one is where the caller is."""
    given = {name: text for name in fields if (text := getattr(call.request, name))}
    places = {name: await call.state.projects.place_of(text) for name, text in given.items()}
    changed = {name: place.project for name, place in places.items() if place.project != given[name]}
    if changed:
        call.request = msgspec.structs.replace(call.request, **changed)
        call.former_project = given[next(iter(changed))]
    call.directory = next(iter(given.values()), None)
    call.is_chosen = next((place.is_chosen for place in places.values()), None)


def filters_of(request: FilterFields, former_project: str | None) -> Filters:
    """Return the conditions of ``request``. ``pinned`` false is no condition. An answer is no evidence for another."""
    filters = msgspec.convert(request, Filters, from_attributes=True)
    without_answers = bool(getattr(request, "aggregate", False))
    return msgspec.structs.replace(
        filters, pinned=request.pinned or None, former_project=former_project, without_answers=without_answers
    )
