"""Bases of all messages: a typed request, a failure, who acts, and the key of a retry.

Tags are written out in every subclass and never derived from the class name, so that a rename in
code cannot change the wire.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from signet_actors.errors import ErrorCode

R_co = TypeVar("R_co", covariant=True)


class Message(msgspec.Struct, frozen=True, tag_field="t", omit_defaults=True):
    """Anything said between processes."""


class Request(msgspec.Struct, Generic[R_co], frozen=True, tag_field="t", omit_defaults=True):
    """A message that is answered with ``R_co`` or with ``Failure``."""


class Failure(Message, frozen=True, tag="failure"):
    """The answer of a handler that could not do its work; nothing was applied unless ``code`` says so.

    ``field`` names the offending request field; ``retry_after_ms`` is set where a retry makes sense.
    """

    code: ErrorCode
    detail: str
    field: str | None = None
    retry_after_ms: int | None = None


class Principal(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who did it, as history records it.

    ``changed_by`` the name shown; ``actor_type`` one of operator, pipeline, harness, sdk, daemon, agent.
    Source: docs/compatibility.md "Actors and agents".
    """

    changed_by: str = "daemon"
    actor_type: str = "operator"
    session_id: str | None = None
    request_id: str | None = None


class Idempotency(msgspec.Struct, frozen=True):
    """The client's ``Idempotency-Key`` made unique by principal and route, and a digest of its body.

    The same ``key`` with another ``body_digest`` is answered ``Failure(IDEMPOTENCY_CONFLICT)``.
    """

    key: str
    body_digest: str
