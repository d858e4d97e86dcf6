"""The declaration of an operation: everything that a caller may ask is declared once, as one of these.

Routing, decoding, permissions, the kill switch, redaction, idempotency, the API document and ``signet call`` follow
from the declaration. ``gateway/http/endpoints.py`` binds the gateway's handler to it.

Source: docs/architecture.md "How to add"; docs/decisions.md 40.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, Literal, TypeVar

import msgspec

from signet_actors.domain.permissions import Permission

RequestT = TypeVar("RequestT", bound=msgspec.Struct)

Server = Literal["gateway", "searcher", "writer", "extractor", "decider", "retention", "supervisor"]
Surface = Literal["http", "cli"]


class Effect(Enum):
    """What an operation changes.

    MEMORIES: answers 503 while ``mutationsFrozen`` is set. MAYBE_MEMORIES: only some requests change memories, and
    the handler refuses these while it is set. OTHER: something that is not a memory; served also while it is set.
    """

    NONE = "none"
    MEMORIES = "memories"
    MAYBE_MEMORIES = "maybe_memories"
    OTHER = "other"


@dataclass(frozen=True, slots=True, eq=False)
class Operation(Generic[RequestT]):
    """An operation.

    - ``name``: ``<subject>.<verb>``; a reader of logs and the command line know the operation by it.
    - ``request``: its Struct reads what the caller sent (``request_reader.py``).
    - ``replies``: a body type for each status; None for a reply without a body.
    - ``method``, ``paths``: the first path is the documented one, the others are aliases. ``{name}`` is a parameter.
    - ``permission``: None if the caller needs none (liveness only).
    - ``served_by``: the process that does the work behind the gateway.
    - ``rate``: the name of a rate bucket.
    - ``owner_only``: served only to the user that runs the daemon.
    - ``query_too``: fields that the body lacks may stand in the query of a request with a body.
    - ``body_required``: False if a request without a body is valid.
    - ``lines``: the Struct of each line of a body of JSON Lines. The handler reads them, to refuse each line alone.
    - ``media_types``: those of a response that is not JSON.
    """

    name: str
    summary: str
    tag: str
    method: str
    paths: tuple[str, ...]
    request: type[RequestT]
    replies: Mapping[int, Any]
    permission: Permission | None
    served_by: Server = "gateway"
    effect: Effect = Effect.NONE
    rate: str | None = None
    owner_only: bool = False
    query_too: bool = False
    body_required: bool = True
    lines: type[msgspec.Struct] | None = None
    surfaces: tuple[Surface, ...] = ("http", "cli")
    media_types: tuple[str, ...] = ()
    description: str = ""

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
    def has_effect(self) -> bool:
        """True if a request without a response may have changed something: its outcome is then unknown."""
        return self.effect is not Effect.NONE
