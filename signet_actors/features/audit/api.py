"""The audit log: what was changed, exported or denied, by whom and when, in a chain of hashes.

Source: docs/compatibility.md "Audit log"; docs/operations.md "Audit log".
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from signet_actors.domain.permissions import Permission
from signet_actors.operations.field_types import Clamped, Timestamp
from signet_actors.operations.operation import Operation
from signet_actors.operations.problem import PROBLEMS, Problem
from signet_actors.operations.request_fields import Offset, SelectionText
from signet_actors.operations.transcripts import OwnAgent
from signet_actors.protocol.message import Answered, KeyedRequest

MAX_EVENTS: Final = 256
"""Of one ``RecordEvents``."""
DENIED: Final = "denied"
CHANGE: Final = "change"
EXPORT: Final = "export"
CONFIGURATION: Final = "configuration"
RESTORE: Final = "restore"
MORE: Final = "more"
UNKNOWN: Final = "unknown"
"""The actor of a request that names none."""


class AuditEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What happened, ``count`` times. ``detail`` has no secret and no text of a memory.

    ``kind``: denied, change, export, configuration, restore, or more: events that were too many to be told apart.
    ``outcome``: done, refused or failed.
    """

    created_at: str
    kind: str
    actor: str
    outcome: str
    detail: dict[str, Any]
    count: int = 1


class RecordEvents(KeyedRequest[Answered], frozen=True, kw_only=True, tag="audit.record"):
    """Add at most ``MAX_EVENTS`` events to the log, in this order."""

    events: tuple[AuditEvent, ...]


class EventsRecorded(msgspec.Struct, frozen=True):
    """The events are on disk; ``seq`` is the number of the last one."""

    seq: int


class ListAuditRequest(OwnAgent, frozen=True, kw_only=True, omit_defaults=True):
    """Which rows to return."""

    kind: Annotated[SelectionText, Meta(description="Only rows of this kind")] | None = None
    since: Annotated[str, Timestamp(), Meta(description="ISO time: recorded then or later")] | None = None
    limit: Annotated[int, Clamped(low=1, high=1000), Meta(description="Rows to return")] = 100
    offset: Offset = 0


class AuditRow(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A row: an event, its number, and its hash, which covers the hash of the row before it."""

    seq: int
    created_at: str
    kind: str
    actor: str
    outcome: str
    detail: dict[str, Any]
    count: int
    hash: str


class ListAuditReply(msgspec.Struct, frozen=True):
    """A page of the log, the newest first; ``total`` counts all rows that match."""

    events: list[AuditRow]
    total: int


class VerifyAuditRequest(OwnAgent, frozen=True, kw_only=True, omit_defaults=True):
    """Where to begin."""

    after: Annotated[int, Clamped(low=0, high=2**53 - 1), Meta(description="`next` of the reply before")] = 0


class VerifyAuditReply(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Whether the ``rows`` that were checked are as they were recorded, and none is missing.

    ``broken_at``: the number of the first row that is missing or was changed, null if intact. ``next``: from where the
    check goes on, null at the end of the log.
    """

    intact: bool
    rows: int
    broken_at: int | None
    next: int | None


LIST: Final[Operation[ListAuditRequest, ListAuditReply]] = Operation(
    name="audit.list",
    summary="What was changed, exported or denied",
    tag="audit",
    paths=("/api/audit",),
    request=ListAuditRequest,
    example={"kind": "denied", "limit": 10},
    replies={200: ListAuditReply, 403: Problem, **PROBLEMS},
    permission=Permission.ADMIN,
    served_by="searcher",
    owner_only=True,
)
VERIFY: Final[Operation[VerifyAuditRequest, VerifyAuditReply]] = Operation(
    name="audit.verify",
    summary="Check that no row of the audit log was changed or removed",
    tag="audit",
    paths=("/api/audit/verify",),
    request=VerifyAuditRequest,
    example={},
    replies={200: VerifyAuditReply, 403: Problem, **PROBLEMS},
    permission=Permission.ADMIN,
    served_by="searcher",
    owner_only=True,
    description="Of a long log a part; with `after` set to `next`, a further request goes on.",
)
OPERATIONS: Final = (LIST, VERIFY)
