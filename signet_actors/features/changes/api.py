"""Changes of memories as they are stored. Source: docs/compatibility.md "Logs and streams"."""

from __future__ import annotations

from typing import Final

import msgspec

from signet_actors.features.logs.api import MAX_STREAM_S, StreamSeconds
from signet_actors.operations.headers import EVENT_STREAM
from signet_actors.operations.operation import MEMORY_READ, Operation
from signet_actors.operations.problem import PROBLEMS, Problem
from signet_actors.operations.request_fields import AgentFields
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Answered, Request

MAX_CHANGES: Final = 64
"""More changes at once are one event ``resync``: the client reads its view again."""


class ChangesRequest(AgentFields, frozen=True, kw_only=True, omit_defaults=True):
    """How long to send changes."""

    seconds: StreamSeconds = MAX_STREAM_S


class FindChanges(Request[Answered], frozen=True, tag="changes.find"):
    """Find events of history after the one with the number ``after``, about memories that ``read`` may see.

    None: find only the number of the newest one.
    """

    read: ReadScope
    after: int | None


class Change(msgspec.Struct, frozen=True):
    """An event of the memory ``id``."""

    id: str
    event: str


class Changes(msgspec.Struct, frozen=True):
    """The changes up to the event with the number ``seq``, at most ``MAX_CHANGES`` + 1.

    ``more``: there may be more behind it.
    """

    seq: int
    more: bool
    changes: list[Change]


FOLLOW: Final[Operation[ChangesRequest, str]] = Operation(
    name="changes.stream",
    summary="Changes of memories as they are stored",
    tag="memory",
    paths=("/api/changes",),
    request=ChangesRequest,
    example={"seconds": 0},
    replies={200: str, 503: Problem, **PROBLEMS},
    media_types=(EVENT_STREAM,),
    **MEMORY_READ,
    description=(
        'Server-sent events: first `{"type": "connected"}`, then `{"type": "change", "id", "event", "kind"}` for each'
        " change of a memory that the agent may read: `event` as in its history, `kind` is `memory`. More than 64 at"
        ' once are one `{"type": "resync"}`. No event has a text. At most 16 streams are open; one more gets a 503.'
    ),
)
OPERATIONS: Final = (FOLLOW,)
