"""What sessions were offered, as the gateway reports it, and the ratings of these memories by agents.

Source: memory-pipeline.txt "Continuity Scoring"; docs/compatibility.md "Feedback".
"""

from __future__ import annotations

from collections.abc import Iterable

from signet_actors.domain.feedback import feedback_type, running_mean
from signet_actors.protocol.session_memories import FeedbackRecorded, OfferedMemory, RecordFeedback
from signet_actors.store.command_context import CommandContext
from signet_actors.store.writes import session_memories as offered_rows


def offer(context: CommandContext, memories: Iterable[OfferedMemory]) -> None:
    """Store which memories sessions were offered."""
    for one in memories:
        offered_rows.offer(context.tx, one, context.now)


def record_feedback(context: CommandContext, command: RecordFeedback) -> FeedbackRecorded:
    """Add each rating to the mean of its memory, if the session was offered that memory and it still exists."""
    tx, session_key, agent_id = context.tx, command.session_key, command.agent_id
    accepted = []
    for rating in command.ratings:
        if not offered_rows.was_offered(tx, session_key, agent_id, rating.memory_id):
            continue
        mean, count = offered_rows.mean_rating(tx, session_key, agent_id, rating.memory_id)
        score = running_mean(mean, count, rating.score)
        offered_rows.put_rating(
            tx,
            session_key,
            agent_id,
            rating.memory_id,
            feedback_type=feedback_type(score),
            score=score,
            rating_count=count + 1,
            actor=command.principal.changed_by,
            now=context.now,
        )
        accepted.append(rating.memory_id)
    return FeedbackRecorded(accepted)
