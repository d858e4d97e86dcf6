"""Find memories that say the same twice, and have the writer merge them pair by pair.

Source: docs/compatibility.md "Repair gate".
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from signet_actors.errors import Busy
from signet_actors.features.duplicates import api
from signet_actors.features.repairs import rules
from signet_actors.features.repairs.api import EnterRepair
from signet_actors.gateway.http.route import Call, Handler, HttpResponse
from signet_actors.gateway.routes.repairs import gated
from signet_actors.operations.operation import Operation

COMPARING: Final = 0.4
"""The part of ``gateway.requestTimeoutMs`` in which a request compares memories; the next one goes on there."""
MERGING: Final = 0.8
"""The part of it after which no further pair is merged."""
_RETRY_MS: Final = 5000


async def deduplicate(call: Call[api.DeduplicateRequest]) -> HttpResponse:
    """Merge the pairs that are found, each in a transaction of its own; with ``dryRun`` only list them.

    One request at a time, because each keeps a searcher busy. Raises Busy for another one.
    """
    if call.state.compares_duplicates:
        raise Busy("Another request compares memories", retry_after_ms=_RETRY_MS)
    call.state.compares_duplicates = True
    try:
        return await _deduplicate(call)
    finally:
        call.state.compares_duplicates = False


async def _deduplicate(call: Call[api.DeduplicateRequest]) -> HttpResponse:
    request = call.request
    if not request.dry_run:
        call.refuse_if_frozen()
        await call.ask_writer_unkeyed(EnterRepair(action=rules.DEDUPLICATE, principal=call.principal))
    pairs, compared, complete = await _find(call)
    done = list[api.FoundPair]()
    if request.dry_run:
        done = pairs
    else:
        until_ns = _until_ns(call, MERGING)
        for found in pairs:
            if call.state.clock.monotonic_ns() >= until_ns:
                compared, complete = None, False
                break
            merge = api.MergePair(found, call.agent_id, call.principal, planned=len(pairs), first=not done)
            if (await call.ask_writer_unkeyed(merge)).read(api.PairMerged).merged:
                done.append(found)
        if compared is not None:
            await call.ask_writer_unkeyed(api.NoteCompared(call.agent_id, compared))
    count = len(done)
    verb = "would be merged" if request.dry_run else "were merged"
    message = f"{count} memories {verb} into others that say the same"
    if not complete:
        message += "; there may be more: the next request goes on"
    return HttpResponse(
        api.DeduplicateReply(
            action=rules.DEDUPLICATE,
            success=True,
            affected=0 if request.dry_run else count,
            message=message,
            steps=[],
            clusters=len({found.pair.kept for found in done}),
            pairs=[found.pair for found in done],
        )
    )


def _until_ns(call: Call[api.DeduplicateRequest], part: float) -> int:
    return call.began_ns + int(part * call.state.config.gateway.request_timeout_ms) * 1_000_000


async def _find(call: Call[api.DeduplicateRequest]) -> tuple[list[api.FoundPair], int | None, bool]:
    """Return the pairs, the last vector that was compared, and whether all were compared."""
    repair = call.state.config.memory.pipeline_v2.repair
    clock, limit = call.state.clock, call.request.limit or repair.dedup_batch_size
    until_ns = _until_ns(call, COMPARING)
    exact = (await call.ask_searcher(api.FindExact(call.agent_id, limit))).read(api.FoundDuplicates)
    pairs, merged = list(exact.pairs), tuple(exact.merged)
    compared, done = (0 if call.request.again else exact.compared), False
    while not done and len(pairs) < limit and clock.monotonic_ns() < until_ns:
        step = api.CompareVectors(
            call.agent_id, compared, repair.dedup_semantic_threshold, limit - len(pairs), without=merged
        )
        found = (await call.ask_searcher(step)).read(api.FoundDuplicates)
        pairs += found.pairs
        compared, done, merged = found.compared, found.done, tuple(found.merged)
    return pairs, compared, done


HANDLERS: Final[dict[Operation[Any], Handler[Any]]] = {api.DEDUPLICATE: partial(gated, rules.DEDUPLICATE, deduplicate)}
