"""The declaration of an operation: everything that a caller may ask is declared once, as one of these.

Routing, decoding, the kill switch, redaction, idempotency, the API document, ``signet call``, the tools of MCP and the
Python client follow from the declaration, and who may call: permission, limits of a token's scope, rate limit.
``gateway/http/route.py`` binds the gateway's handler to it.

Source: docs/architecture.md "How to add"; docs/decisions.md 40.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

import msgspec

from signet_actors.domain.permissions import Permission
from signet_actors.operations.request_fields import NoFields

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    ReplyT = TypeVarWithDefault("ReplyT", default=Any)
else:
    ReplyT = TypeVar("ReplyT")

RequestT = TypeVar("RequestT", bound=msgspec.Struct)

Limit = Literal["project", "agent", "user"]
BY_AGENT: Final[tuple[Limit, ...]] = ("agent",)
BY_ALL: Final[tuple[Limit, ...]] = ("project", "agent", "user")
Server = Literal["gateway", "searcher", "writer", "extractor", "decider", "retention", "supervisor"]
Surface = Literal["http", "cli"]

EXAMPLE_MEMORY: Final = "6f1c3b52-6c52-4d10-9d6e-4a7e7a2f0b11"
"""The memory of the examples; that of an import stores it."""
EXAMPLE_SESSION: Final = "0b7d8a52-3f0e-4f43-9a2f-2a1d1c9f7e10"
"""The session of the examples; that of a session's end stores its transcript."""
OWNERS_SESSION: Final = "`sessionKey`, as if none were sent"
"""``owner_parts`` of what takes a session: another user's request could claim, empty or read a session of the owner."""


_OF_MEMORY: Final = frozenset(
    {Permission.REMEMBER, Permission.RECALL, Permission.MODIFY, Permission.FORGET, Permission.RECOVER}
)


class Effect(Enum):
    """What an operation changes.

    MEMORIES: answers 503 while ``mutationsFrozen`` is set. MAYBE_MEMORIES: only some requests change memories, and
    the handler refuses these while it is set. OTHER: something that is not a memory; served also while it is set.
    """

    NONE = "none"
    MEMORIES = "memories"
    MAYBE_MEMORIES = "maybe_memories"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Tool:
    """An operation as a tool for models (MCP).

    - ``name``, ``title``, ``description``: what a model or its user reads.
    - ``fields``: the parameters of the path and the fields of the request that it offers, by their names in the Struct,
      each with its description; empty: that of the request.
    - ``required``: arguments that a call must have although the declared request can do without them.
    - ``renamed``: parameters of the path that are arguments by another name.
    - ``most``: the largest value of a number, where the operation allows more than a model should read.
    - ``sends``: fields of the request that every call has.
    - ``shown``: the members of the reply that a model reads, each with the members of its rows, if it has rows. Values
      that say nothing (null, false, none) are left out. Empty: the whole reply.
    - ``destructive``: a call may overwrite or delete something. ``idempotent``: a repeated call changes nothing more.
    """

    name: str
    title: str
    description: str
    fields: Mapping[str, str]
    required: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    most: Mapping[str, int] = field(default_factory=dict)
    sends: Mapping[str, Any] = field(default_factory=dict)
    shown: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    destructive: bool = False
    idempotent: bool = True


@dataclass(frozen=True, slots=True)
class Hook:
    """How the gateway answers a hook that has no handler of its own (``gateway/sessions/hook_runner.py``).

    - ``budget_ms``: it is answered within this time. ``nothing``: its reply, with the reason, if its work fails.
    - ``once``: returns for request and session what names the event, which takes effect once; None if nothing does.
    """

    budget_ms: int
    nothing: Any
    once: Callable[[Any, str | None], str | None] = lambda _request, _session: None


@dataclass(frozen=True, slots=True, eq=False)
class Operation(Generic[RequestT, ReplyT]):
    """An operation. ``ReplyT`` is the body of its reply of status 200, for type checkers; a test compares them.

    - ``name``: ``<subject>.<verb>``; a reader of logs and the command line know the operation by it.
    - ``request``: its Struct reads what the caller sent (``request_reader.py``).
    - ``example``: parameters of the path and fields of a request, as a caller names them. A test sends every example.
    - ``replies``: a body type for each status; None for a reply without a body.
    - ``method``, ``paths``: the first path is the documented one, the others are aliases. ``{name}`` is a parameter.
    - ``permission``: what the caller's role must have; None if every caller may have it.
    - ``public``: served without a token in every mode (liveness, the page, which has no data).
    - ``scoped_by``: the limits of a token (project, agent, user) that it honours: what it reads and changes is within
      them. A token with another limit is refused.
    - ``served_by``: the process that does the work behind the gateway.
    - ``rate``: the limit of ``auth.rateLimits`` that applies to the bearer of a token.
    - ``keyed``: a second request with an effect under one ``Idempotency-Key`` gets the first reply. ``Call.ask_writer``
      passes the key on.
    - ``keeps_names``: it is a read, but the session keeps the harness and the project of the request, without secrets.
    - ``owner_only``: served only to the user that runs the daemon.
    - ``owner_parts``: what of it only that user gets; any other caller gets the rest, and a warning that says this
      (``Call.is_owner``). A test has every operation declare one of the two, or names why others may have all of it.
    - ``query_too``: fields that the body lacks may stand in the query of a request with a body.
    - ``body_required``: False if a request without a body is valid.
    - ``lenient``: an invalid value counts as absent, with a warning; only a missing required field is refused.
    - ``lines``: the Struct of each line of a body of JSON Lines. The handler reads them, to refuse each line alone.
    - ``media_types``: those of a response that is not JSON.
    - ``reply_headers``: the headers of a response of status 200 that others do not have, each with its description.
    - ``memory_ids``: parameters of the path and fields of the request that hold ids of memories, where the beginning of
      an id counts as the id. Live memories count before deleted ones; with ``deleted_first`` after them.
    - ``performs``: its requests are requests of other operations, each of which is a read or a write of its own.
    - ``while_off``: a session for which memory is switched off may ask for it, or the handler answers such a session.
    - ``tool``: None if models are not offered the operation.
    - ``needs_offers``: what sessions were offered until now is stored first, if the writer takes it.
    - ``hook``: set for a hook without a handler of its own.
    - ``audited``: each request is a row of the audit log; that of one with an effect is on disk before its answer.
    """

    name: str
    summary: str
    tag: str
    paths: tuple[str, ...]
    replies: Mapping[int, Any]
    permission: Permission | None
    request: type[RequestT] = NoFields  # type: ignore[assignment] # what the annotation of such an operation says
    method: str = "GET"
    public: bool = False
    scoped_by: tuple[Limit, ...] = ()
    served_by: Server = "gateway"
    effect: Effect = Effect.NONE
    rate: str | None = None
    keyed: bool = True
    keeps_names: bool = False
    owner_only: bool = False
    owner_parts: str = ""
    query_too: bool = False
    body_required: bool = True
    lenient: bool = False
    lines: type[msgspec.Struct] | None = None
    surfaces: tuple[Surface, ...] = ("http", "cli")
    media_types: tuple[str, ...] = ()
    reply_headers: Mapping[str, str] = field(default_factory=dict)
    description: str = ""
    example: Mapping[str, Any] = field(default_factory=dict)
    memory_ids: tuple[str, ...] = ()
    deleted_first: bool = False
    performs: bool = False
    while_off: bool = False
    needs_offers: bool = False
    tool: Tool | None = None
    hook: Hook | None = None
    audited: bool = False

    @property
    def success(self) -> Any:
        """The body type of its reply of status 200, or of 201 if it makes something that has an address."""
        return self.replies.get(200) or self.replies[201]

    @property
    def in_body(self) -> bool:
        """True if the request's fields are in a JSON body."""
        return self.method != "GET"

    @property
    def in_query(self) -> bool:
        """True if the request's fields may be in the query."""
        return self.query_too or not self.in_body

    @property
    def body(self) -> type[msgspec.Struct] | None:
        """The Struct of the JSON body, or of each of its lines; None if the request has no body."""
        body = self.lines or self.request
        return body if self.in_body and msgspec.structs.fields(body) else None

    @property
    def changes_memories(self) -> bool:
        """True if a request may change memories."""
        return self.effect in {Effect.MEMORIES, Effect.MAYBE_MEMORIES}

    @property
    def needs_memory_on(self) -> bool:
        """True if it is refused to a session for which memory is switched off; a hook answers such a session itself."""
        return self.permission in _OF_MEMORY and not (self.while_off or self.lenient)

    @property
    def has_effect(self) -> bool:
        """True if a request without a response may have changed something: its outcome is then unknown."""
        return self.effect is not Effect.NONE

    @property
    def redacts(self) -> bool:
        """True if secrets are cut out of the request, because something of it is stored."""
        return self.has_effect or self.keeps_names

    @property
    def takes_key(self) -> bool:
        """True if an ``Idempotency-Key`` matters: a request has an effect, and a second one gets the first reply."""
        return self.keyed and self.has_effect

    @property
    def repeatable(self) -> bool:
        """True if a client may repeat a request whose outcome it does not know, with the same ``Idempotency-Key``."""
        return self.keyed or not self.has_effect


MEMORY_READ: Final[Mapping[str, Any]] = {"permission": Permission.RECALL, "scoped_by": BY_ALL, "served_by": "searcher"}
"""Fields of an operation that returns memories."""
SESSION_READ: Final[Mapping[str, Any]] = {**MEMORY_READ, "scoped_by": BY_AGENT, "owner_only": True}
"""Of one that returns what was said in sessions."""
SESSION_WRITE: Final[Mapping[str, Any]] = {
    "permission": Permission.REMEMBER,
    "scoped_by": BY_AGENT,
    "owner_only": True,
    "effect": Effect.OTHER,
    "keyed": False,
}
"""Of one that changes what is kept of a session."""
ADMIN_CHANGE: Final[Mapping[str, Any]] = {
    "permission": Permission.ADMIN,
    "owner_only": True,
    "effect": Effect.OTHER,
    "rate": "admin",
    "audited": True,
}
"""Of one that changes the daemon or who may use it."""
