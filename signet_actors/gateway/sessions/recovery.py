"""The part of a session's start with which it goes on: after a compaction, or where the last session ended.

Source: memory-pipeline.txt "Session Checkpoints"; docs/guides/hooks.md "Checkpoints".
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Final, NamedTuple

from signet_actors.domain.normalization import collapsed
from signet_actors.domain.session_inject import LAST_SESSION_HEADING
from signet_actors.domain.timestamps import iso
from signet_actors.errors import SignetError
from signet_actors.features.checkpoints import rules
from signet_actors.features.checkpoints.api import FindRecovery, LastTurns, RecoveryFound, StoredCheckpoint
from signet_actors.gateway.http.route import Call
from signet_actors.gateway.sessions.hook_runner import HookSession
from signet_actors.operations.hooks import SessionStartRequest
from signet_actors.runtime.local_zone import LOCAL_ZONE

WAIT_S: Final = 0.8
"""Longer than a checkpoint is waited for; after that the session starts without this part."""
DAY_MS: Final = 86_400_000
_HEAD_CHARS: Final = 150
"""Of the heading and the line below it."""
GOES_ON: Final = ("compact", "resume")
"""Reasons of a start at which the session is not a new one."""


class Recovery(NamedTuple):
    """What a start is told of the last session: a section, empty if nothing; else ``summary``, the id of a memory.

    ``session_key``: the session that the section names.
    """

    section: str = ""
    session_key: str | None = None
    summary: str | None = None


async def recovery_of(call: Call[SessionStartRequest], session: HookSession) -> Recovery:
    """Return what is told of the session with which this one goes on; nothing for another user."""
    if not await call.is_owner():
        return Recovery()
    request, state, context = call.request, call.state, session.context
    settings = state.config.memory.pipeline_v2.continuity
    project = rules.normalized_project(request.project or (None if context is None else context.project))
    goes_on = request.source in GOES_ON or (context is not None and context.epoch > 0)
    known = session.key if goes_on else project
    if not settings.enabled or request.source == "clear" or not known:
        return Recovery()
    since = iso(state.clock.wall_ms() - settings.retention_days * DAY_MS)
    query = FindRecovery(call.agent_id, session.key, same_session=goes_on, project=project, since=since)
    try:
        async with asyncio.timeout(WAIT_S):
            await state.checkpoints.settle(call.agent_id, key=session.key if goes_on else None, project=project)
            found = (await call.ask_searcher(query)).read(RecoveryFound)
    except (SignetError, TimeoutError):
        return Recovery()
    checkpoint, transcript = found.checkpoint, found.transcript
    told = transcript or checkpoint
    if told is None:
        return Recovery(summary=found.summary)
    digest = "" if checkpoint is None else checkpoint.digest
    most = settings.recovery_budget_chars
    if goes_on and request.source != "resume":  # the model has what was said in a conversation that is resumed
        if checkpoint is not None and checkpoint.created_at > told.created_at:
            told = checkpoint
        turns = [] if transcript is None else transcript.turns
        digest = await asyncio.to_thread(rules.work_so_far, turns, digest, most - _HEAD_CHARS)
    elif told.session_key != session.key:
        is_newer = checkpoint is not None and not told.ended and checkpoint.created_at > told.created_at
        digest = rules.last_words([] if transcript is None else transcript.turns, digest, is_newer=is_newer)
    if rules.says_nothing(digest):
        return Recovery()
    digest, _ = state.redactor.clean(digest)
    said = _said(told, session.key, request.source)
    heading = LAST_SESSION_HEADING if told.ended and told.session_key != session.key else rules.RECOVERY_HEADING
    return Recovery(rules.recovery_text(said, digest, most, heading=heading), told.session_key)


def _said(found: StoredCheckpoint | LastTurns, key: str | None, source: str | None) -> str:
    """Return the sentence that says whose checkpoint it is, or whose words."""
    moment = datetime.fromisoformat(found.created_at).astimezone(LOCAL_ZONE)
    at = f"{moment:%b} {moment.day}, {moment.year} at {moment:%H:%M}"
    if found.session_key == key:
        what = "The context of this session was compacted" if source == "compact" else "This session goes on"
        return f"{what}. Its work until {at}:"
    harness = f" ({collapsed(found.harness)[:40]})" if found.harness else ""
    if found.ended:
        return f"The last session of this project{harness} ended {at}:"
    return f"The last session of this project{harness}, active until {at}, has not reported its end:"
