"""Store how well memory served a session, as a model judged, and the relevance of its memories."""

from __future__ import annotations

from typing import Final

import msgspec

from signet_actors.domain.session_summaries import SummaryPart
from signet_actors.features.session_scores.api import ContinuityScore, StoreScore
from signet_actors.store.command_context import CommandContext
from signet_actors.store.engine import WriteTransaction
from signet_actors.store.writes import leases as lease_rows
from signet_actors.store.writes import memories as memory_rows
from signet_actors.store.writes import session_summaries as summary_rows

_COLUMNS: Final = ContinuityScore.__struct_fields__
_ADD: Final = (
    f"INSERT INTO session_scores ({', '.join(_COLUMNS)}) VALUES ({', '.join(f':{name}' for name in _COLUMNS)})"
)
_SET_RELEVANCE: Final = (
    "UPDATE session_memories SET relevance_score = :relevance"
    " WHERE session_key = :session_key AND agent_id = :agent_id AND memory_id = :memory_id"
)
_FORGET_QUOTES: Final = (
    "UPDATE session_scores SET reasoning = NULL WHERE seq IN (SELECT s.seq FROM session_memories o"
    " JOIN session_scores s ON s.session_key = o.session_key AND s.agent_id = o.agent_id"
    " WHERE o.memory_id = :memory_id)"
)
_DELETE_OLD: Final = (
    "DELETE FROM session_scores WHERE seq IN (SELECT s.seq FROM session_scores s"
    " WHERE s.created_at < :cutoff ORDER BY s.created_at LIMIT :limit)"
)


def store(context: CommandContext, report: StoreScore, job: lease_rows.ActiveLease) -> None:
    """Store the score and the relevance of each memory, unless the transcript was forgotten meanwhile.

    The reasoning is not stored if one of the judged memories, which it may quote, was erased meanwhile.
    """
    tx, score = context.tx, report.score
    part = msgspec.json.decode(lease_rows.payload_of(tx, job.seq), type=SummaryPart)
    transcript = summary_rows.transcript_of(tx, part.agent_id, part.session_key)
    if transcript is None:
        return
    judged = set(report.judged)
    are_kept = memory_rows.seqs_of(tx, judged).keys() == judged
    row = ContinuityScore(
        id=context.new_id(),
        session_key=part.session_key,
        agent_id=part.agent_id,
        project=transcript.project,
        harness=part.harness or transcript.harness,
        score=score.score,
        confidence=score.confidence,
        memories_recalled=report.recalled,
        memories_used=score.memories_used,
        novel_context_count=score.novel_context_count,
        reasoning=score.reasoning if are_kept else None,
        created_at=context.now,
    )
    tx.execute(_ADD, msgspec.structs.asdict(row))
    session = {"session_key": part.session_key, "agent_id": part.agent_id}
    for memory_id, relevance in score.relevance.items():
        tx.execute(_SET_RELEVANCE, {**session, "memory_id": memory_id, "relevance": relevance})


def forget_quotes(tx: WriteTransaction, memory_id: str) -> None:
    """Delete the reasoning about sessions that were offered the memory; call it while that is still stored."""
    tx.execute(_FORGET_QUOTES, {"memory_id": memory_id})


def delete_before(tx: WriteTransaction, cutoff: str, limit: int) -> int:
    """Delete at most ``limit`` scores from before the cutoff; return their number."""
    tx.execute(_DELETE_OLD, {"cutoff": cutoff, "limit": limit})
    return tx.changes()


WRITES: Final = {StoreScore: store}
