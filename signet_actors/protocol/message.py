"""Base classes of all messages: a typed request, a failure, the principal, and the key of a retry.

Each subclass writes its tag out instead of deriving it from the class name, so that a rename in code cannot change the
wire format.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, Generic, TypeVar, Union, cast, get_args

import msgspec

from signet_actors.errors import ErrorCode
from signet_actors.operations.operation import Operation
from signet_actors.protocol.memories import ReadScope

R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T", bound=msgspec.Struct)
ReplyT = TypeVar("ReplyT", bound=msgspec.Struct)

MAX_FRAME_BYTES: Final = 8 * 1024 * 1024
"""ZeroMQ closes a connection on which a longer frame arrives, and notifies neither side."""
REPLY_TOO_LONG: Final = (
    f"the response would be longer than {MAX_FRAME_BYTES} bytes: request fewer items with a smaller limit"
)


class Message(msgspec.Struct, frozen=True, tag_field="t", omit_defaults=True):
    """A message between processes."""


class Request(msgspec.Struct, Generic[R_co], frozen=True, tag_field="t", omit_defaults=True):
    """A message that is answered with ``R_co`` or with ``Failure``."""


class Idempotency(msgspec.Struct, frozen=True):
    """The client's ``Idempotency-Key`` made unique by principal and route, and a digest of its body.

    The same ``key`` with another ``body_digest`` is answered with ``Failure(IDEMPOTENCY_CONFLICT)``.
    """

    key: str
    body_digest: str


class KeyedRequest(Request[R_co], Generic[R_co], frozen=True, kw_only=True, tag_field="t", omit_defaults=True):
    """A request to the writer whose reply is stored, so that a caller that repeats it gets the first reply.

    ``Call.ask_writer`` sets the key from the caller's ``Idempotency-Key``; handlers set only one that they derive.
    """

    idempotency: Idempotency | None = None


class Principal(msgspec.Struct, frozen=True, omit_defaults=True):
    """The author of a change, as history records it.

    ``changed_by`` is the displayed name; ``actor_type`` one of operator, pipeline, harness, sdk, daemon, agent.
    Source: docs/compatibility.md "Actors and agents".
    """

    changed_by: str = "daemon"
    actor_type: str = "operator"
    session_id: str | None = None
    request_id: str | None = None


class Caller(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the gateway has settled about the caller of a request.

    ``principal``: of a request with an effect. ``scope``: of a request that has one. ``path``: its parameters.
    ``session_key``: the session that the path names, as it is stored. ``project``, ``user``: as of ``ReadScope``.
    """

    agent_id: str = "default"
    principal: Principal = Principal()
    scope: str | None = None
    path: dict[str, str] = {}
    session_key: str | None = None
    project: str | None = None
    user: str | None = None

    @property
    def read(self) -> ReadScope:
        """What the caller may read."""
        return ReadScope(self.agent_id, self.scope, self.project, self.user)


class Answered(Message, frozen=True, tag="answered"):
    """The JSON of a feature's reply. The gateway passes that of an operation on as it is."""

    body: bytes

    def read(self, reply: type[ReplyT]) -> ReplyT:
        return msgspec.json.decode(self.body, type=reply)


class Asked(KeyedRequest[Answered], Generic[T], frozen=True, kw_only=True):
    """The request of an operation, as the gateway read and redacted it; see ``message_of``."""

    caller: Caller = Caller()
    request: T


@cache
def message_of(operation: Operation[T, Any]) -> type[Asked[T]]:
    """Return the message that carries requests of ``operation``. Its name and its tag are those of the operation."""
    name, fields = operation.name, [("request", operation.request)]
    message: Any = msgspec.defstruct(name, fields, bases=(Asked,), tag=name, frozen=True, kw_only=True)
    return cast("type[Asked[T]]", message)


class Failure(Message, frozen=True, tag="failure"):
    """The reply of a handler that failed; nothing was applied unless ``code`` says so.

    ``field`` names the offending request field; ``retry_after_ms`` is set if a retry makes sense. ``is_lasting``: every
    request of this kind is refused from now on.
    """

    code: ErrorCode
    detail: str
    field: str | None = None
    retry_after_ms: int | None = None
    is_lasting: bool = False


def replies_to(requests: Any) -> Any:
    """Return the type of the replies to a union of requests, each of which names its own; any of them may fail."""
    declared = [base for request in get_args(requests) for base in getattr(request, "__orig_bases__", ())]
    return Union[*(reply for base in declared for reply in get_args(base)), Answered, Failure]
