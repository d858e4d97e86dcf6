"""Store how well memory served a session, as a model judged.

Source: memory-pipeline.txt "Continuity Scoring"; docs/reliability.md R23.
"""

from __future__ import annotations

import msgspec

from signet_actors.domain.jobs import SCORE_SESSION
from signet_actors.domain.session_summaries import SummaryPart
from signet_actors.protocol.session_scores import ScoreStored, StoreScore
from signet_actors.store.command_context import CommandContext
from signet_actors.store.writes import leases as lease_rows
from signet_actors.store.writes import memories as memory_rows
from signet_actors.store.writes import session_scores as rows
from signet_actors.store.writes import session_summaries as summary_rows
from signet_actors.store.writes.session_scores import ScoreRow
from signet_actors.writer.commands import leases


def store(context: CommandContext, command: StoreScore) -> ScoreStored:
    """Store the score and the relevance of each memory, and complete the job. Raises ``lease_lost``.

    The reasoning is not stored if one of the judged memories, which it may quote, was erased meanwhile.
    """
    job = leases.active_lease(context, command.job_id, command.lease_id)
    leases.require_kind(job, SCORE_SESSION)
    tx, score = context.tx, command.score
    part = msgspec.json.decode(lease_rows.payload_of(tx, job.seq), type=SummaryPart)
    transcript = summary_rows.transcript_of(tx, part.agent_id, part.session_key)
    if transcript is not None:
        judged = set(command.judged)
        are_kept = memory_rows.seqs_of(tx, judged).keys() == judged
        rows.add(
            tx,
            ScoreRow(
                id=context.new_id(),
                session_key=part.session_key,
                agent_id=part.agent_id,
                project=transcript.project,
                harness=part.harness or transcript.harness,
                score=score.score,
                confidence=score.confidence,
                memories_recalled=command.recalled,
                memories_used=score.memories_used,
                novel_context_count=score.novel_context_count,
                reasoning=score.reasoning if are_kept else None,
                created_at=context.now,
            ),
        )
        for memory_id, relevance in score.relevance.items():
            rows.set_relevance(tx, part.session_key, part.agent_id, memory_id, relevance)
    leases.complete_leased(context, job, None)
    return ScoreStored(stored=transcript is not None)
