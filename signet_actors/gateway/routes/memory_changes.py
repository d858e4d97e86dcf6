"""Change one memory over HTTP: patch, delete, recover (docs/decisions.md 3, 26, 30-33, 35)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET

from signet_actors.domain.memories import importance_to_store
from signet_actors.domain.redaction.scan import Kinds
from signet_actors.errors import InvalidRequest
from signet_actors.gateway.auth.token_limits import check_new_values
from signet_actors.gateway.http.responses import fill
from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.gateway.http.write_errors import outcome_response
from signet_actors.gateway.ingest import embed_texts, prepare_text, redaction_fields
from signet_actors.gateway.routes.forget import find_saying
from signet_actors.gateway.vector_waits import wait_stored
from signet_actors.operations import memory_changes as api
from signet_actors.operations.batch_modify import ModifyPatch
from signet_actors.protocol.writer import ForgetMemory, MemoryPatch, Modified, ModifyMemory, RecoverMemory


async def patch_memory(call: Call[api.PatchRequest]) -> HttpResponse:
    """Apply a patch durably (``updated``), or report that it changes nothing (``no_changes``)."""
    frames: list[bytes] = []
    patch, redactions = await memory_patch(call, call.path["id"], call.request.reason, call.request, frames)
    done = await call.ask_writer(
        ModifyMemory(patch=patch, principal=call.principal, read=call.read),
        frames=frames,
    )
    if done.status not in {"updated", "no_changes"}:
        return outcome_response(done)
    embedded = done.embedded or done.id in await wait_stored(call, unembedded_versions([done]))
    return HttpResponse(
        fill(
            api.PatchReply,
            done,
            embedded=embedded if done.content_changed else UNSET,
            other_parts=done.parts or UNSET,
            moved_with=done.moved_with or UNSET,
            **redaction_fields(redactions + call.redactions),
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


async def memory_patch(
    call: Call[Any],
    id: str,  # noqa: A002  the name in the message
    reason: str,
    fields: api.PatchRequest | ModifyPatch,
    frames: list[bytes],
) -> tuple[MemoryPatch, Kinds]:
    """Return the patch, and append the embedding of its new content to ``frames``.

    Returns the kinds of secrets in the content too. Prefixes such as ``critical:`` stay in the content,
    because only an explicit remember interprets them (docs/decisions.md 39). Raises InvalidRequest, and Forbidden for
    a project or an author outside of the limits of the caller's token.
    """
    state, project = call.state, fields.to_project
    who = fields.who if isinstance(fields, ModifyPatch) else None
    if project:
        project = await state.projects.project_of(project)
    check_new_values(call.identity.scope, project=project, who=who)
    wanted = {
        "type": fields.type,
        "tags": fields.tags,
        "importance": importance_to_store(fields.importance, pinned=fields.pinned, otherwise=None),
        "pinned": fields.pinned,
        "who": who,
    }
    changes: dict[str, Any] = {name: value for name, value in wanted.items() if value is not None}
    if project is not None:
        changes["project"] = project or None
    redactions: Kinds = ()
    if fields.content is not None:
        text = await prepare_text(state, fields.content)
        if not text.content:
            raise InvalidRequest("content must be a non-empty string", field="content")
        (vector,) = await embed_texts(state, [text.content], frames, trace_id=call.trace_id)
        changes |= {"content": text.content, "vector": vector}
        redactions = text.redactions
    if not changes:
        raise InvalidRequest("at least one of content, type, tags, importance, pinned is required")
    return MemoryPatch(id=id, reason=reason, if_version=fields.if_version, **changes), redactions


async def delete_memory(call: Call[api.DeleteRequest]) -> HttpResponse:
    """Turn the memory into a tombstone."""
    done = await call.ask_writer(
        ForgetMemory(
            id=call.path["id"],
            reason=call.request.reason,
            principal=call.principal,
            force=call.request.force,
            if_version=call.request.if_version,
            read=call.read,
            whole=call.request.whole,
        )
    )
    if done.status != "deleted":
        return outcome_response(done)
    parts = {*done.facts, *done.parts}
    saying = await find_saying(call, (done.id, *(done.facts if call.request.whole else ())))
    return HttpResponse(
        fill(
            api.DeleteReply,
            done,
            forgotten_with=done.facts or UNSET,
            other_parts=done.parts or UNSET,
            said_by=[each for each in saying.memories if each not in parts] or UNSET,
            said_in=saying.sessions or UNSET,
            may_be_said_in=saying.perhaps or UNSET,
        )
    )


async def recover_memory(call: Call[api.RecoverRequest]) -> HttpResponse:
    """Turn a tombstone back into a live memory."""
    done = await call.ask_writer(
        RecoverMemory(
            id=call.path["id"],
            reason=call.request.reason,
            principal=call.principal,
            if_version=call.request.if_version,
            read=call.read,
            whole=call.request.whole,
        )
    )
    if done.status != "recovered":
        return outcome_response(done, days=done.retention_days)
    return HttpResponse(fill(api.RecoverReply, done, recovered_with=done.facts or UNSET))


ROUTES: tuple[Route, ...] = (
    *serve(api.PATCH_MEMORY, patch_memory),
    *serve(api.DELETE_MEMORY, delete_memory),
    *serve(api.RECOVER_MEMORY, recover_memory),
)
