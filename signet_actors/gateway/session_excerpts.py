"""The transcripts behind the results of a recall with ``expand``.

A memory belongs to the session in which it was stored (``session_id``) or that it names as its source (``source_id``).
Its transcript is searched under the memory's own agent, and is read only if the caller's agent may read it.

Source: memory-pipeline.txt "Lossless Session Transcripts"; docs/guides/transcripts.md "With a recall".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from signet_actors.domain.session_keys import canonical_session_key
from signet_actors.errors import ErrorCode, SignetError
from signet_actors.gateway.http.route import Call
from signet_actors.protocol.searcher import RecalledRow
from signet_actors.protocol.transcripts import ExpandSessions

EXCERPT_CHARS: Final = 2000
"""Of each session. A recall has 100 results at most, so all excerpts together stay small."""


async def session_excerpts(
    call: Call[Any], query: str, rows: Sequence[RecalledRow]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the excerpts by session key, and the session key of each row that has one by the row's id."""
    wanted = dict.fromkeys(session for row in rows for session in _sessions(row))
    if not wanted:
        return {}, {}
    try:
        await require_owner(call)
        found = await call.ask_searcher(ExpandSessions(tuple(wanted), call.read, query, EXCERPT_CHARS))
    except SignetError as error:
        call.warnings.append(f"expand: no transcript is added ({error.detail})")
        return {}, {}
    excerpts = {(each.agent_id, each.session_key): each.text for each in found.excerpts}
    keys = {row.id: session[1] for row in rows for session in _sessions(row) if session in excerpts}
    return {key: excerpts[agent_id, key] for agent_id, key in excerpts}, keys


async def require_owner(call: Call[Any]) -> None:
    """Raise a SignetError if the caller may not read transcripts."""
    if call.require_owner is None:
        raise SignetError("transcripts are not served here", code=ErrorCode.FORBIDDEN)
    await call.require_owner()


def _sessions(row: RecalledRow) -> Iterator[tuple[str, str]]:
    """Yield the sessions to which the row may belong: agent and key, the more likely one last."""
    for key in (row.source_id, row.session_id):
        canonical = canonical_session_key(key)
        if canonical:
            yield row.agent_id, canonical
