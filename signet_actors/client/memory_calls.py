"""Exchanges about memories. Their parameters are fields of the declared requests; see ``operations/`` for each of them.

A time is ISO text or a ``datetime``; one without a time zone is in the local one. Tags are a sequence, or one text with
commas.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, TypedDict, Unpack

import msgspec
from msgspec import UNSET

from signet_actors.client.encoding import Reply
from signet_actors.client.errors import InvalidReply
from signet_actors.client.exchange import Caller, Exchange
from signet_actors.features.facets.api import FACETS, FacetsReply, FacetsRequest
from signet_actors.features.timeline.api import GET_TIMELINE, TimelineReply, TimelineRequest
from signet_actors.operations.batch_modify import MODIFY_MEMORIES, ModifyPatch, ModifyReply, ModifyRequest
from signet_actors.operations.forget import FORGET_MEMORIES, ForgetPreviewReply, ForgetReply, ForgetRequest
from signet_actors.operations.headers import NEXT_CURSOR_HEADER
from signet_actors.operations.import_export import (
    EXPORT_MEMORIES,
    FORMAT,
    IMPORT_MEMORIES,
    DifferingLine,
    ExportHeader,
    ExportRequest,
    ImportReply,
    MemoryLine,
    RefusedLine,
)
from signet_actors.operations.memories import (
    GET_HISTORY,
    GET_MEMORY,
    LIST_MEMORIES,
    MOST_USED,
    GetHistoryRequest,
    GetMemoryRequest,
    HistoryReply,
    ListMemoriesRequest,
    MemoryListReply,
    MemoryReply,
    MostUsedReply,
    MostUsedRequest,
)
from signet_actors.operations.memory_changes import (
    DELETE_MEMORY,
    PATCH_MEMORY,
    RECOVER_MEMORY,
    DeleteReply,
    DeleteRequest,
    PatchReply,
    PatchRequest,
    RecoverReply,
    RecoverRequest,
)
from signet_actors.operations.recall import (
    LEGACY_SEARCH,
    RECALL,
    SIMILAR,
    LegacySearchReply,
    LegacySearchRequest,
    RecallReply,
    RecallRequest,
    SimilarReply,
    SimilarRequest,
)
from signet_actors.operations.remember import REMEMBER, RememberChunksReply, RememberReply, RememberRequest
from signet_actors.operations.temporal import RecallTime

Time = str | datetime
TagList = Sequence[str] | str

IMPORT_LINES: Final = 500
IMPORT_BYTES: Final = 512 * 1024
"""Lines and bytes of one request of an import, unless one line is longer: other writes wait for one request at most."""


class Filters(TypedDict, total=False):
    """Conditions on memories; all that are given must match."""

    type: str
    tags: TagList
    who: str
    pinned: bool
    importance_min: float
    since: Time
    until: Time
    project: str
    source_type: str
    scope: str


@dataclass(frozen=True, slots=True)
class ExportPage:
    """A page of an export, oldest memories first. ``next`` is the ``after`` of the next page; None on the last one."""

    memories: list[MemoryLine]
    next: int | None


def remember(
    caller: Caller,
    content: str,
    *,
    type: str | None = None,  # noqa: A002 - the name of the field
    tags: TagList | None = None,
    importance: float | None = None,
    pinned: bool | None = None,
    who: str | None = None,
    project: str | None = None,
    scope: str | None = None,
    visibility: Literal["global", "private"] = "global",
    source_type: str | None = None,
    source_id: str | None = None,
    idempotency_key: str | None = None,
    created_at: Time | None = None,
    occurred_at: Time | None = None,
) -> Exchange[RememberReply | RememberChunksReply]:
    """Store a memory. The reply says that it is on disk.

    ``idempotency_key`` is a name of your own, under which one memory is stored however often your program runs. A
    content that is too long for one memory becomes several, and ``RememberChunksReply`` has their ids.
    """
    request = RememberRequest(
        content=content,
        type=type,
        tags=None if tags is None else _tags(tags),
        importance=importance,
        pinned=pinned,
        who=who,
        project=project,
        scope=scope,
        visibility=visibility,
        source_type=source_type,
        source_id=source_id,
        idempotency_key=idempotency_key,
        created_at=_time(created_at),
        occurred_at=_time(occurred_at),
    )
    return (yield from caller.call(REMEMBER, request))


def recall(
    caller: Caller,
    query: str,
    *,
    limit: int = 10,
    min_relevance: float | None = None,
    min_score: float | None = None,
    time: RecallTime | None = None,
    now: Time | None = None,
    time_zone: str | None = None,
    explain: bool = False,
    **filters: Unpack[Filters],
) -> Exchange[RecallReply]:
    """Return the memories that answer ``query`` best, by their words and by their meaning.

    With ``min_relevance`` 0.5, only those that most likely answer it, and often none.
    """
    request = RecallRequest(
        query=query,
        limit=limit,
        min_relevance=min_relevance,
        min_score=min_score,
        time=time,
        now=_time(now),
        time_zone=time_zone,
        explain=explain,
        **_conditions(filters),
    )
    return (yield from caller.call(RECALL, request))


def search(
    caller: Caller, words: str, *, limit: int = 20, expression: bool = False, **filters: Unpack[Filters]
) -> Exchange[LegacySearchReply]:
    """Return the memories that contain all the words, best first; with ``expression``, those that an FTS5 one finds."""
    quoted = words if expression else " ".join(f'"{word}"' for word in words.replace('"', " ").split())
    reply = yield from caller.call(
        LEGACY_SEARCH, LegacySearchRequest(query=quoted, limit=limit, **_conditions(filters))
    )
    if not isinstance(reply, LegacySearchReply):
        raise InvalidReply("the answer to a search is a list of authors")
    return reply


def similar(caller: Caller, id: str, *, k: int = 10, type: str | None = None) -> Exchange[SimilarReply]:  # noqa: A002
    """Return the ``k`` memories whose meaning is closest to that of a stored one."""
    return (yield from caller.call(SIMILAR, SimilarRequest(id=id, k=k, type=type)))


def get(caller: Caller, id: str, *, include_deleted: bool = False) -> Exchange[MemoryReply]:  # noqa: A002
    """Return one memory. Raises DoesNotExist."""
    return (yield from caller.call(GET_MEMORY, GetMemoryRequest(include_deleted=include_deleted), id=id))


def list_memories(
    caller: Caller,
    *,
    limit: int = 100,
    offset: int = 0,
    deleted: bool = False,
    words: str | None = None,
    **filters: Unpack[Filters],
) -> Exchange[MemoryListReply]:
    """Return a page of memories, newest first; with ``deleted``, of the forgotten ones, with these ``words``."""
    request = ListMemoriesRequest(limit=limit, offset=offset, deleted=deleted, words=words, **_conditions(filters))
    return (yield from caller.call(LIST_MEMORIES, request))


def most_used(caller: Caller, *, limit: int = 10, **filters: Unpack[Filters]) -> Exchange[MostUsedReply]:
    """Return the memories that recalls return most often."""
    return (yield from caller.call(MOST_USED, MostUsedRequest(limit=limit, **_conditions(filters))))


def facets(
    caller: Caller, *, top: int = 50, deleted: bool = False, alternatives: bool = False, **filters: Unpack[Filters]
) -> Exchange[FacetsReply]:
    """Return how many memories have each type, project, author, tag and so on; ``top``: values of each.

    With ``alternatives`` types, tags, authors and pinned ones are counted each without the filter on itself.
    """
    request = FacetsRequest(top=top, deleted=deleted, alternatives=alternatives, **_conditions(filters))
    return (yield from caller.call(FACETS, request))


def timeline(
    caller: Caller,
    id: str,  # noqa: A002
    *,
    order: Literal["asc", "desc"] = "asc",
    limit: int = 200,
    offset: int = 0,
) -> Exchange[TimelineReply]:
    """Return what happened to a memory, or to an entity (its id or name), in the order of time. Raises DoesNotExist."""
    return (yield from caller.call(GET_TIMELINE, TimelineRequest(order=order, limit=limit, offset=offset), id=id))


def history(caller: Caller, id: str, *, limit: int = 200) -> Exchange[HistoryReply]:  # noqa: A002
    """Return what happened to a memory, oldest first. Raises DoesNotExist."""
    return (yield from caller.call(GET_HISTORY, GetHistoryRequest(limit=limit), id=id))


def update(
    caller: Caller,
    id: str,  # noqa: A002
    *,
    reason: str,
    content: str | None = None,
    type: str | None = None,  # noqa: A002
    tags: TagList | None = None,
    importance: float | None = None,
    pinned: bool | None = None,
    project: str | None = None,
    if_version: int | None = None,
) -> Exchange[PatchReply]:
    """Change what is given of a memory; empty ``tags`` remove them, an empty ``project`` moves it out of its project.

    Raises DoesNotExist, and Conflicting for another version than ``if_version`` or a text that the project has already.
    """
    request = PatchRequest(
        reason=reason,
        content=content,
        type=type,
        tags=None if tags is None else _tags(tags),
        importance=importance,
        pinned=pinned,
        to_project=project,
        if_version=if_version,
    )
    return (yield from caller.call(PATCH_MEMORY, request, id=id))


def update_many(caller: Caller, patches: Iterable[ModifyPatch], *, reason: str | None = None) -> Exchange[ModifyReply]:
    """Change up to 200 memories. The reply has a result for each patch, in order."""
    return (yield from caller.call(MODIFY_MEMORIES, ModifyRequest(patches=list(patches), reason=reason)))


def forget(
    caller: Caller,
    id: str,  # noqa: A002
    *,
    reason: str,
    force: bool = False,
    whole: bool = False,
    if_version: int | None = None,
) -> Exchange[DeleteReply]:
    """Forget one memory; ``recover`` brings it back for 30 days. A pinned one needs ``force``. Raises DoesNotExist.

    ``whole``: if it is a part of a long text, also the other parts.
    """
    request = DeleteRequest(reason=reason, force=force, whole=whole, if_version=if_version)
    return (yield from caller.call(DELETE_MEMORY, request, id=id))


def preview_forget(
    caller: Caller,
    *,
    query: str | None = None,
    ids: Sequence[str] = (),
    limit: int | None = None,
    force: bool = False,
    **filters: Unpack[Filters],
) -> Exchange[ForgetPreviewReply]:
    """Return what ``forget_many`` with the same conditions would forget, and the token that confirms exactly that."""
    request = ForgetRequest(query=query, ids=tuple(ids), limit=limit, force=force, **_conditions(filters))
    reply = yield from caller.call(FORGET_MEMORIES, request)
    if not isinstance(reply, ForgetPreviewReply):
        raise InvalidReply("the answer to a preview is not a preview")
    return reply


def forget_many(
    caller: Caller,
    *,
    reason: str,
    confirm_token: str | None = None,
    query: str | None = None,
    ids: Sequence[str] = (),
    limit: int | None = None,
    force: bool = False,
    **filters: Unpack[Filters],
) -> Exchange[ForgetReply]:
    """Forget the memories that match; with ``force`` for ever.

    More than 25 memories, and ``force``, need the ``confirm_token`` of a ``preview_forget`` with the same conditions.
    Raises Conflicting if other memories match by now.
    """
    request = ForgetRequest(
        mode="execute",
        reason=reason,
        confirm_token=confirm_token,
        query=query,
        ids=tuple(ids),
        limit=limit,
        force=force,
        **_conditions(filters),
    )
    reply = yield from caller.call(FORGET_MEMORIES, request)
    if not isinstance(reply, ForgetReply):
        raise InvalidReply("the answer to a forget is a preview; nothing was forgotten")
    return reply


def recover(
    caller: Caller,
    id: str,  # noqa: A002
    *,
    reason: str,
    whole: bool = False,
    if_version: int | None = None,
) -> Exchange[RecoverReply]:
    """Bring a forgotten memory back. Raises DoesNotExist, and Conflicting if it is not forgotten.

    ``whole``: if it is a part of a long text, also the other parts.
    """
    request = RecoverRequest(reason=reason, whole=whole, if_version=if_version)
    return (yield from caller.call(RECOVER_MEMORY, request, id=id))


def import_memories(caller: Caller, memories: Iterable[MemoryLine]) -> Exchange[ImportReply]:
    """Store many memories, a few hundred in each request. The reply adds them up; its ``line`` counts all memories.

    If a request fails, the memories before it are stored. A repetition of the whole import stores none of them twice.
    """
    imported = deduped = redacted = stored = sent = 0
    refused: list[RefusedLine] = []
    differing: list[DifferingLine] = []
    kinds: dict[str, None] = {}
    for lines, count in _batches(memories):
        reply = yield from caller.exchange(IMPORT_MEMORIES, lines=lines)
        done = reply.value
        imported += done.imported
        deduped += done.deduped
        redacted += done.redacted
        refused += [msgspec.structs.replace(line, line=line.line + sent) for line in done.refused]
        stored += done.imported if done.memories is UNSET else done.memories
        differing += [msgspec.structs.replace(line, line=line.line + sent) for line in done.differing or ()]
        kinds.update(dict.fromkeys(done.redactions or ()))
        sent += count
    return ImportReply(
        imported=imported,
        deduped=deduped,
        redacted=redacted,
        refused=refused,
        memories=stored,
        differing=differing or UNSET,
        redactions=list(kinds) or UNSET,
    )


def _batches(memories: Iterable[MemoryLine]) -> Iterable[tuple[bytes, int]]:
    """Yield the lines of each request and their number."""
    lines: list[bytes] = []
    size = 0
    for memory in memories:
        line = msgspec.json.encode(memory)
        if lines and (len(lines) == IMPORT_LINES or size + len(line) > IMPORT_BYTES):
            yield b"\n".join(lines), len(lines)
            lines, size = [], 0
        lines.append(line)
        size += len(line)
    if lines:
        yield b"\n".join(lines), len(lines)


def export_page(caller: Caller, *, after: int = 0, limit: int = 500, scope: str | None = None) -> Exchange[ExportPage]:
    """Return a page of all memories that the caller may read; ``export_memories`` of a client reads every page."""
    reply: Reply[bytes] = yield from caller.exchange(
        EXPORT_MEMORIES, ExportRequest(after=after, limit=limit, scope=scope)
    )
    lines = reply.value.splitlines()
    try:
        if not after and lines and _HEADER.decode(lines[0]).format == FORMAT:
            lines = lines[1:]
        memories = [_LINE.decode(line) for line in lines]
        cursor = reply.headers.get(NEXT_CURSOR_HEADER)
        return ExportPage(memories, None if cursor is None else int(cursor))
    except (msgspec.DecodeError, ValueError) as error:
        raise InvalidReply(f"the answer is not an export of this version ({error})") from error


class _AnyHeader(ExportHeader, frozen=True):
    format: str = ""


_HEADER: Final = msgspec.json.Decoder(_AnyHeader)
_LINE: Final = msgspec.json.Decoder(MemoryLine)


def _conditions(filters: Filters) -> Mapping[str, Any]:
    """Return the filters as fields of a request."""
    fields: dict[str, Any] = dict(filters)
    if "tags" in filters:
        fields["tags"] = _tags(filters["tags"])
    for name in ("since", "until"):
        if name in fields:
            fields[name] = _time(fields[name])
    return fields


def _tags(tags: TagList) -> tuple[str, ...]:
    return (tags,) if isinstance(tags, str) else tuple(tags)


def _time(time: Time | None) -> str | None:
    return time.astimezone().isoformat() if isinstance(time, datetime) else time
