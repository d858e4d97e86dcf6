"""Change one memory over HTTP: patch, delete, recover. Each needs a reason and may name the expected version.

Source: memory-api.txt "Memories"; docs/compatibility.md "Forget and modify"; docs/decisions.md 3, 26, 30-33, 35.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, UnsetType

from signet_actors.domain.memories import importance_to_store
from signet_actors.domain.permissions import Permission
from signet_actors.errors import InvalidRequest
from signet_actors.gateway.http.request_reader import RequestReader, read_scope_of
from signet_actors.gateway.http.route import HttpRequest, HttpResponse, Parameter, Route
from signet_actors.gateway.http.write_errors import outcome_response
from signet_actors.gateway.ingest import FieldRedactor, embed_texts, prepare_text
from signet_actors.gateway.redaction import Kinds, redaction_fields
from signet_actors.gateway.routes.memories import AGENT_PARAMETERS, PROBLEMS
from signet_actors.operations.memory_changes import (
    DeleteReply,
    DeleteRequest,
    PatchReply,
    PatchRequest,
    RecoverReply,
    RecoverRequest,
    Refusal,
)
from signet_actors.operations.problem import Problem
from signet_actors.protocol.writer import ForgetMemory, MemoryPatch, Modified, ModifyMemory, RecoverMemory

if TYPE_CHECKING:
    from signet_actors.gateway.state import GatewayState

CHANGE_PARAMETERS: Final = (
    Parameter("reason", description="Reason; used if the body has none"),
    Parameter("if_version", "integer", "Refuse unless this is the current version; used if the body has none"),
    *AGENT_PARAMETERS,
)


async def patch_memory(request: HttpRequest) -> HttpResponse:
    """Apply a patch durably (``updated``), or report that it changes nothing (``no_changes``)."""
    body = request.json_object()
    fields = RequestReader(body)
    frames: list[bytes] = []
    reason = fields.required("reason")
    patch, redactions = await read_patch(
        request.state, request.path["id"], reason, fields, frames, trace_id=request.trace_id
    )
    done = await request.state.bus.ask_writer(
        ModifyMemory(
            patch=patch,
            principal=FieldRedactor(request.state).principal(request.principal(body)),
            read=read_scope_of(request, body),
            idempotency=request.idempotency(body),
        ),
        trace_id=request.trace_id,
        frames=frames,
    )
    if done.status not in {"updated", "no_changes"}:
        return outcome_response(
            done.id,
            done.status,
            current_version=done.current_version,
            duplicate_memory_id=done.duplicate_memory_id,
        )
    embedded = done.embedded or done.id in await request.state.vector_waits.wait_stored(
        request, unembedded_versions([done])
    )
    redaction = redaction_fields(redactions)
    return HttpResponse(
        PatchReply(
            id=done.id,
            status="updated" if done.status == "updated" else "no_changes",
            current_version=_or_unset(done.current_version),
            new_version=_or_unset(done.new_version),
            content_changed=done.content_changed,
            embedded=embedded if done.content_changed else UNSET,
            redacted=redaction.redacted,
            redactions=redaction.redactions,
        )
    )


def unembedded_versions(outcomes: Sequence[Modified]) -> dict[str, int]:
    """Return the ids of memories whose new content has no vector yet, with the version of that content."""
    return {
        outcome.id: outcome.new_version
        for outcome in outcomes
        if outcome.status == "updated"
        and outcome.content_changed
        and not outcome.embedded
        and outcome.new_version is not None
    }


async def read_patch(
    state: GatewayState,
    id: str,  # noqa: A002  the name in the message
    reason: str,
    fields: RequestReader,
    frames: list[bytes],
    *,
    trace_id: str,
    with_who: bool = False,
) -> tuple[MemoryPatch, Kinds]:
    """Read a patch from ``fields`` and append the embedding of its new content to ``frames``.

    Returns the patch and the kinds of secrets that were redacted. Prefixes such as ``critical:`` stay in the content,
    because only an explicit remember interprets them (docs/decisions.md 39). Raises InvalidRequest.
    """
    redactor = FieldRedactor(state)
    reason = redactor.clean(reason)
    if_version = fields.if_version()
    pinned = fields.flag("pinned")
    wanted = {
        "type": redactor.type_name(fields.memory_type()),
        "tags": redactor.tags(fields.tags()) if fields.has("tags") else None,
        "importance": importance_to_store(fields.importance("importance"), pinned=pinned, otherwise=None),
        "pinned": pinned,
        "who": redactor.optional(fields.text("who")) if with_who else None,
    }
    changes: dict[str, Any] = {name: value for name, value in wanted.items() if value is not None}
    raw = fields.content()
    redactions: Kinds = ()
    if raw is not None:
        text = await prepare_text(state, raw)
        if not text.content:
            raise InvalidRequest("content must be a non-empty string", field="content")
        (vector,) = await embed_texts(state, [text.content], frames, trace_id=trace_id)
        changes |= {"content": text.content, "vector": vector}
        redactions = text.redactions
    if not changes:
        raise InvalidRequest("at least one of content, type, tags, importance, pinned is required")
    return MemoryPatch(id=id, reason=reason, if_version=if_version, **changes), redactions + redactor.redactions


async def delete_memory(request: HttpRequest) -> HttpResponse:
    """Turn the memory into a tombstone. ``reason``, ``force`` and ``if_version`` may be in the body or in the query."""
    body = request.json_object(required=False)
    fields = RequestReader(body, request.query, warnings=request.warnings)
    done = await request.state.bus.ask_writer(
        ForgetMemory(
            id=request.path["id"],
            reason=FieldRedactor(request.state).clean(fields.required("reason")),
            principal=FieldRedactor(request.state).principal(request.principal(body)),
            force=fields.flag("force") is True,
            if_version=fields.if_version(),
            read=read_scope_of(request, body),
            idempotency=request.idempotency(body),
        ),
        trace_id=request.trace_id,
    )
    if done.status != "deleted":
        return outcome_response(done.id, done.status, current_version=done.current_version)
    return HttpResponse(
        DeleteReply(
            id=done.id, current_version=_or_unset(done.current_version), new_version=_or_unset(done.new_version)
        )
    )


async def recover_memory(request: HttpRequest) -> HttpResponse:
    """Turn a tombstone back into a live memory."""
    body = request.json_object(required=False)
    fields = RequestReader(body, request.query, warnings=request.warnings)
    done = await request.state.bus.ask_writer(
        RecoverMemory(
            id=request.path["id"],
            reason=FieldRedactor(request.state).clean(fields.required("reason")),
            principal=FieldRedactor(request.state).principal(request.principal(body)),
            if_version=fields.if_version(),
            read=read_scope_of(request, body),
            idempotency=request.idempotency(body),
        ),
        trace_id=request.trace_id,
    )
    if done.status != "recovered":
        return outcome_response(
            done.id,
            done.status,
            current_version=done.current_version,
            duplicate_memory_id=done.duplicate_memory_id,
            days=done.retention_days,
        )
    return HttpResponse(
        RecoverReply(
            id=done.id,
            retention_days=done.retention_days,
            current_version=_or_unset(done.current_version),
            new_version=_or_unset(done.new_version),
        )
    )


def _or_unset(version: int | None) -> int | UnsetType:
    return UNSET if version is None else version


_CHANGE_PROBLEMS: Final[Mapping[int, Any]] = {
    404: Refusal,
    409: Refusal | Problem,
    504: Problem,
    507: Problem,
    **PROBLEMS,
}

ROUTES: tuple[Route, ...] = (
    Route(
        method="PATCH",
        path="/api/memory/{id}",
        handler=patch_memory,
        permission=Permission.MODIFY,
        summary="Change a memory",
        tag="Memories",
        body=PatchRequest,
        query=AGENT_PARAMETERS,
        replies={200: PatchReply, **_CHANGE_PROBLEMS},
        limit="modify",
        mutates=True,
    ),
    Route(
        method="DELETE",
        path="/api/memory/{id}",
        handler=delete_memory,
        permission=Permission.FORGET,
        summary="Forget a memory",
        tag="Memories",
        body=DeleteRequest,
        query=(Parameter("force", "boolean", "true: delete the memory even if it is pinned"), *CHANGE_PARAMETERS),
        replies={200: DeleteReply, 403: Refusal, **_CHANGE_PROBLEMS},
        limit="forget",
        mutates=True,
        description="Soft delete; `reason` is required in the body or in the query.",
    ),
    Route(
        method="POST",
        path="/api/memory/{id}/recover",
        handler=recover_memory,
        permission=Permission.RECOVER,
        summary="Recover a forgotten memory",
        tag="Memories",
        body=RecoverRequest,
        query=CHANGE_PARAMETERS,
        replies={200: RecoverReply, **_CHANGE_PROBLEMS},
        mutates=True,
    ),
)
