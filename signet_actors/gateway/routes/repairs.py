"""Have the writer repair; a refusal has the members of a result, too.

Source: docs/compatibility.md "Repair gate".
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from msgspec import UNSET

from signet_actors.errors import HTTP_STATUS, ErrorCode, SignetError
from signet_actors.features.duplicates.api import STATS, DedupStatsReply
from signet_actors.features.repairs import api, rules
from signet_actors.gateway.features import answer, ask
from signet_actors.gateway.http.route import Call, Handler, HttpResponse
from signet_actors.gateway.routes.diagnostics import measured
from signet_actors.operations.operation import Operation
from signet_actors.operations.repair import RepairRefused
from signet_actors.operations.request_fields import NoFields
from signet_actors.operations.transcripts import OwnAgent


async def gated(action: str, repair: Callable[[Call[Any]], Awaitable[HttpResponse]], call: Call[Any]) -> HttpResponse:
    """Return the reply of the repair, or why the gate refused it. Raises SignetError for any other failure."""
    try:
        return await repair(call)
    except SignetError as error:
        if error.code not in {ErrorCode.RATE_LIMITED, ErrorCode.FORBIDDEN}:
            raise
        wait_ms = error.retry_after_ms
        headers = {} if wait_ms is None else {"retry-after": str(max(1, math.ceil(wait_ms / 1000)))}
        body = RepairRefused(
            error=error.detail,
            code=error.code.value,
            retry_after=UNSET if wait_ms is None else wait_ms,
            action=action,
            message=error.detail,
        )
        return HttpResponse(body, HTTP_STATUS[error.code], headers)


async def plan(call: Call[NoFields]) -> HttpResponse:
    """Return the repairs that have something to do."""
    wanted = rules.recommendations(await measured(call, []))
    found = [api.PlannedRepair(_NAMES[action], action, reason, True) for action, reason in wanted.items()]
    work = (await call.ask_searcher(api.FindWork())).read(api.Work)
    if work.unembedded:
        reason = f"{work.unembedded} memories have no vector"
        found.append(api.PlannedRepair("re-embed", rules.REEMBED, reason, False))
    if work.orphans:
        reason = f"{work.orphans} memories are gone but have vectors"
        found.append(api.PlannedRepair("clean-orphans", rules.CLEAN, reason, False))
    twice = (await ask(call, STATS, OwnAgent())).read(DedupStatsReply)
    if twice.exact_excess:
        reason = f"{twice.exact_excess} memories have the text of another one"
        found.append(api.PlannedRepair("deduplicate", rules.DEDUPLICATE, reason, False))
    return HttpResponse(api.PlanReply(found))


_NAMES: Final = {
    rules.RELEASE: "release-leases",
    rules.REQUEUE: "requeue-dead",
    rules.CHECK_TEXT: "check-fts",
    rules.SWEEP: "retention-sweep",
}
HANDLERS: Final[dict[Operation[Any], Handler[Any]]] = {
    api.PLAN: plan,
    api.RELEASE: partial(gated, rules.RELEASE, answer),
    api.CHECK_TEXT: partial(gated, rules.CHECK_TEXT, answer),
    api.REEMBED: partial(gated, rules.REEMBED, answer),
    api.CLEAN: partial(gated, rules.CLEAN, answer),
}
