"""Apply up to 200 patches in one commit and report a result for each of them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from typing import Any, Final

from msgspec import UNSET

from signet_actors.domain.redaction.scan import Kinds
from signet_actors.errors import InvalidRequest
from signet_actors.gateway.http.memory_ids import FullIds
from signet_actors.gateway.http.responses import fill
from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.gateway.http.write_errors import outcome_text
from signet_actors.gateway.ingest import FieldRedactor, redacted, redaction_fields
from signet_actors.gateway.routes.memory_changes import memory_patch, unembedded_versions
from signet_actors.gateway.vector_waits import wait_stored
from signet_actors.operations.batch_modify import MODIFY_MEMORIES, ModifyPatch, ModifyReply, ModifyRequest, ModifyResult
from signet_actors.operations.request_reader import read_request
from signet_actors.protocol.writer import MemoryPatch, Modified, ModifyMany

MAX_BATCH_BYTES: Final = 2_000_000
"""Limit of the new content in one batch, in UTF-8 bytes. With its vectors it fits easily into the writer's mailbox."""


async def modify(call: Call[ModifyRequest]) -> HttpResponse:
    """Apply the patches; a patch that is not valid gets an error result and does not stop the others."""
    frames: list[bytes] = []
    patches: list[MemoryPatch] = []
    size = 0
    entries: list[ModifyResult | Kinds] = []  # a refusal, or the kinds of secrets redacted from a valid patch
    found = await call.full_ids(filter(None, map(_given_id, call.request.patches)))
    for item in call.request.patches:
        try:
            patch, redactions = await _read_item(call, item, found, frames)
        except InvalidRequest as error:
            entries.append(_invalid_result(item, error))
        else:
            size += len(patch.content.encode()) if isinstance(patch.content, str) else 0
            if size > MAX_BATCH_BYTES:
                raise InvalidRequest(
                    f"the contents of a batch must be at most {MAX_BATCH_BYTES} bytes", field="patches"
                )
            patches.append(patch)
            entries.append(redactions)
        await asyncio.sleep(0)  # 200 redactions take 25 ms: let other requests run in between

    done: Iterator[Modified] = iter(())
    stored: Collection[str] = ()
    if patches:
        answer = await call.ask_writer(
            ModifyMany(patches=tuple(patches), principal=call.principal, read=call.read),
            frames=frames,
        )
        done = iter(answer.results)
        stored = await wait_stored(call, unembedded_versions(answer.results))
    results = [
        entry if isinstance(entry, ModifyResult) else _result(next(done), stored, redactions=entry) for entry in entries
    ]
    updated = sum(result.status == "updated" for result in results)
    return HttpResponse(ModifyReply(total=len(results), updated=updated, results=results))


def _given_id(item: object) -> str | None:
    named: Any = item.get("id") if isinstance(item, dict) else None
    return named.strip() if isinstance(named, str) else None


async def _read_item(
    call: Call[ModifyRequest], item: object, found: FullIds, frames: list[bytes]
) -> tuple[MemoryPatch, Kinds]:
    """Return the patch and the kinds of secrets that were cut out of it. Raises InvalidRequest."""
    if not isinstance(item, dict):
        raise InvalidRequest("each patch must be an object", field="patches")
    fields = read_request(ModifyPatch, body=item, now_ms=call.state.clock.wall_ms(), warnings=call.warnings)
    reason = fields.reason or call.request.reason
    if reason is None:
        raise InvalidRequest("reason is required", field="reason")
    redactor = FieldRedactor(call.state)
    clean = redacted(redactor, fields)
    patch, redactions = await memory_patch(call, found.of(clean.id, "id"), clean.reason or reason, clean, frames)
    common = call.redactions if fields.reason is None else ()
    return patch, redactions + common + redactor.redactions


def _invalid_result(item: object, error: InvalidRequest) -> ModifyResult:
    named: Any = item.get("id") if isinstance(item, dict) else None
    return ModifyResult(
        id=named if isinstance(named, str) else None,
        status="invalid_request",
        error=error.detail,
        field=UNSET if error.field is None else error.field,
    )


def _result(outcome: Modified, stored: Collection[str], *, redactions: Kinds) -> ModifyResult:
    applied = outcome.status in {"updated", "no_changes"}
    return fill(
        ModifyResult,
        outcome,
        content_changed=outcome.content_changed if applied else UNSET,
        embedded=(outcome.embedded or outcome.id in stored) if applied and outcome.content_changed else UNSET,
        moved_with=outcome.moved_with or UNSET,
        **redaction_fields(redactions if applied else ()),
        error=UNSET if applied else outcome_text(outcome.status),
    )


ROUTES: tuple[Route, ...] = serve(MODIFY_MEMORIES, modify)
