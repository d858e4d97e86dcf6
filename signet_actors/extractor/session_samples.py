"""Read a sample of a session's transcript. Source: docs/compatibility.md "Summaries of sessions"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from signet_actors.domain.session_summaries import ConversationSample, SummaryPart
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.transcripts import GetTranscript

if TYPE_CHECKING:
    from signet_actors.runtime.processes.async_actor import AsyncActor

_READ_MS: Final = 10_000
_PAGE_BYTES: Final = 256 * 1024


async def read_sample(actor: AsyncActor, part: SummaryPart, trace_id: str) -> ConversationSample:
    """Return what a model is shown of this part of the session; nothing if the transcript is gone."""
    sample = ConversationSample()
    after: int | None = part.after
    while after is not None:
        page = await actor.ask_searcher(
            GetTranscript(part.session_key, ReadScope(part.agent_id), after, _PAGE_BYTES),
            trace_id=trace_id,
            timeout_ms=_READ_MS,
        )
        if page.transcript is None or page.transcript.agent_id != part.agent_id:
            return ConversationSample()
        for turn in page.turns:
            if turn.seq > part.through:
                return sample
            sample.add(turn.role, turn.content, continues=turn.continues)
        after = page.next
    return sample
