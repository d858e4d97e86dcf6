"""Export and import memories in bulk: JSON Lines, documented in docs/transfer.md.

Source: docs/performance.md "Write targets" (bulk import); docs/architecture.md "Directories".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from signet_actors.domain.memories import TIME_FACETS
from signet_actors.domain.permissions import Permission
from signet_actors.errors import InvalidRequest
from signet_actors.operations import field_types as types
from signet_actors.operations.headers import JSON_LINES, NEXT_CURSOR_HEADER
from signet_actors.operations.operation import EXAMPLE_MEMORY, MEMORY_READ, Effect, Operation
from signet_actors.operations.problem import PROBLEMS, Problem
from signet_actors.operations.remember import RowKey
from signet_actors.operations.request_fields import AgentFields, Importance, LongText
from signet_actors.operations.structured import Structured, StructuredField

FORMAT = "signet-memories"
FORMAT_VERSION = 1
MAX_LINES: Final = 1000
"""Lines per request. With their vectors they occupy the writer for less than a quarter of a second."""
MAX_TIMES: Final = 20
MAX_COUNT: Final = 2**53
MAX_CURSOR: Final = 2**62

_NUMBER: Final = types.Number()
_FACET: Final = types.Text(secret=types.SecretRule.KEEP)
_TIME: Final = types.Timestamp()


@dataclass(frozen=True, kw_only=True)
class WholeNumber(types.FieldType):
    """A whole number, 0 or more."""

    argument: ClassVar[types.ArgumentForm] = types.ArgumentForm.JSON

    @property
    def schema(self) -> Mapping[str, Any]:
        return {"minimum": 0, "maximum": MAX_COUNT}

    def read(self, given: types.Given) -> Any:
        value = _NUMBER.read(given)
        if not value.is_integer() or not 0 <= value <= MAX_COUNT:
            raise given.invalid("must be a whole number, 0 or more")
        return int(value)


@dataclass(frozen=True, kw_only=True)
class LineTimes(types.FieldType):
    """The times of a memory, as ``LineTime`` whose start and end are in storage form."""

    argument: ClassVar[types.ArgumentForm] = types.ArgumentForm.JSON_LIST

    @property
    def schema(self) -> Mapping[str, Any]:
        return {"maxItems": MAX_TIMES}

    def read(self, given: types.Given) -> Any:
        times = given.value
        if not isinstance(times, list) or len(times) > MAX_TIMES or not all(isinstance(time, dict) for time in times):
            raise given.invalid(f"must be an array of at most {MAX_TIMES} objects")
        return [_line_time(given, time) for time in times]


class ExportHeader(msgspec.Struct, frozen=True):
    """The first line of a file."""

    format: str = FORMAT
    version: int = FORMAT_VERSION


class LineTime(msgspec.Struct, frozen=True, omit_defaults=True):
    """A time of a memory. ``facet``: session, source, captured, observed, occurred or valid."""

    facet: str
    start: str | None = None
    end: str | None = None


def _line_time(given: types.Given, time: Mapping[str, Any]) -> LineTime:
    def part(name: str, kind: types.FieldType) -> Any:
        value = time.get(name)
        read = types.ABSENT if value is None else kind.read(given._replace(name=name, value=value))
        return None if read is types.ABSENT else read

    facet = part("facet", _FACET)
    if facet not in TIME_FACETS:
        raise InvalidRequest(f"times.facet must be one of: {', '.join(TIME_FACETS)}", field="times")
    return LineTime(facet, part("start", _TIME), part("end", _TIME))


class MemoryLine(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One live memory with everything that an import restores. Absent fields have their defaults.

    Times are ISO 8601; ``content_at`` is that of the last edit of the content. ``structured`` is what the memory
    contributes to the graph of its agent. ``id`` is kept if it is a UUID that is
    not in use; ``agent_id`` is the owner of the memory.
    """

    content: Annotated[str, types.Content()]
    id: Annotated[str, types.Text(secret=types.SecretRule.KEEP)] | None = None
    type: Annotated[str, types.MemoryType()] | None = None
    type_inferred: bool = False
    tags: Annotated[Sequence[str], types.Tags()] = msgspec.field(default_factory=list)
    importance: Importance | None = None
    pinned: bool = False
    who: str | None = None
    project: str | None = None
    scope: Annotated[str, types.Text(secret=types.SecretRule.REFUSE)] | None = None
    agent_id: Annotated[str | None, types.CallerField()] = None
    visibility: Literal["global", "private"] | None = None
    source_type: str | None = None
    source_id: LongText | None = None
    source_path: LongText | None = None
    runtime_path: LongText | None = None
    idempotency_key: RowKey | None = None
    session_id: str | None = None
    created_at: Annotated[str, types.Timestamp(past=True)] | None = None
    updated_at: Annotated[str, types.Timestamp(past=True)] | None = None
    content_at: Annotated[str, types.Timestamp(past=True)] | None = None
    access_count: Annotated[int, WholeNumber()] = 0
    injected_count: Annotated[int, WholeNumber()] = 0
    last_accessed: Annotated[str, types.Timestamp(past=True)] | None = None
    structured: Annotated[Structured, StructuredField()] | None = None
    times: Annotated[list[LineTime], LineTimes()] = msgspec.field(default_factory=list)


class ImportedLine(MemoryLine, frozen=True, omit_defaults=True, rename="camel"):
    """A memory to import.

    ``supersedes``: how the source id begins, up to the ``@`` before its version; a memory of the same ``source_path``
    whose source id begins so, and that was not changed here, is replaced.
    """

    supersedes: LongText | None = None


class ImportRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What to do with memories that were deleted here."""

    restore: Annotated[bool, Meta(description="Also store memories that were forgotten here")] = False


class ExportRequest(AgentFields, frozen=True, kw_only=True, omit_defaults=True):
    """Which page of the memories to read."""

    scope: Annotated[
        str | None, types.CallerField(), Meta(description="Only memories of this scope; default: all scopes")
    ] = None
    after: Annotated[
        int, types.Cursor(high=MAX_CURSOR), Meta(description=f"{NEXT_CURSOR_HEADER} of the previous page")
    ] = 0
    limit: Annotated[int, types.Clamped(low=1, high=MAX_LINES), Meta(description="Lines per page")] = 500


class RefusedLine(msgspec.Struct, frozen=True):
    """A line that was not stored; ``line`` counts from 1 in the request's body."""

    line: int
    error: str
    code: str
    field: str | UnsetType = UNSET


class DifferingLine(msgspec.Struct, frozen=True):
    """A line with another text than the memory ``id``, which is kept: that of its source or key, or that it supersedes.

    A memory that the line supersedes is kept if it was changed or pinned here.
    """

    line: int
    id: str


class ImportReply(msgspec.Struct, frozen=True):
    """Every line except the ``refused`` ones is on disk.

    Each is new (``imported``), or repeats what was stored before (``deduped``). ``memories`` counts the new memories: a
    long text becomes several. ``superseded`` counts those of a former text that were replaced, and are forgotten but
    recoverable, if any. ``differing`` are the lines beside which another text is kept, if any. ``redacted`` counts
    lines from which a secret was removed; ``redactions`` are the kinds of these secrets, if any. ``forgotten`` counts
    the lines that were left out because their memory was deleted here, if any. ``receipt`` identifies
    the commit: the same request, repeated under its ``Idempotency-Key``, gets the same receipt from a store that still
    holds the commit.
    """

    imported: int
    deduped: int
    redacted: int
    refused: list[RefusedLine]
    memories: int | UnsetType = UNSET
    superseded: int | UnsetType = UNSET
    differing: list[DifferingLine] | UnsetType = UNSET
    redactions: list[str] | UnsetType = UNSET
    receipt: str | UnsetType = UNSET
    forgotten: int | UnsetType = UNSET


IMPORT_MEMORIES: Final[Operation[ImportRequest, ImportReply]] = Operation(
    name="memories.import",
    summary="Store many memories",
    tag="Transfer",
    method="POST",
    paths=("/api/memory/import",),
    request=ImportRequest,
    query_too=True,
    example={"id": EXAMPLE_MEMORY, "content": "Deployments are blocked on Fridays after 14:00", "tags": ["release"]},
    lines=ImportedLine,
    replies={200: ImportReply, 413: Problem, 504: Problem, 507: Problem, **PROBLEMS},
    permission=Permission.ADMIN,
    served_by="writer",
    effect=Effect.MEMORIES,
    owner_only=True,
    description=(
        f"JSON Lines: one memory per line, at most {MAX_LINES} lines; the header line of an export may come first."
        " A refused line does not affect the others."
    ),
)
EXPORT_MEMORIES: Final[Operation[ExportRequest, bytes]] = Operation(
    name="memories.export",
    summary="Read memories in bulk",
    tag="Transfer",
    paths=("/api/memory/export",),
    request=ExportRequest,
    example={"limit": 100},
    replies={200: bytes, **PROBLEMS},
    **MEMORY_READ,
    audited=True,
    owner_only=True,
    media_types=(JSON_LINES,),
    reply_headers={NEXT_CURSOR_HEADER: "`after` of the next page; absent on the last one"},
    description=f"JSON Lines, oldest first; {NEXT_CURSOR_HEADER} is set on every page but the last.",
)
OPERATIONS: Final = (IMPORT_MEMORIES, EXPORT_MEMORIES)
