"""Messages about the continuity scoring: the report of a worker to the writer, and a query.

Source: memory-pipeline.txt "Continuity Scoring"; docs/compatibility.md "Continuity scoring".
"""

from __future__ import annotations

from signet_actors.domain.extraction.session_score import SessionScore
from signet_actors.operations.analytics import ContinuityScore
from signet_actors.protocol.message import Message, Request


class ScoreStored(Message, frozen=True, tag="writer.score_stored"):
    """The score is on disk, unless the transcript was forgotten meanwhile; the job is completed."""

    stored: bool


class StoreScore(Request[ScoreStored], frozen=True, tag="writer.store_score"):
    """Store how well memory served the session that the job is about, and complete the job.

    ``recalled``: memories that the session was shown. ``judged``: those that the model saw.
    """

    job_id: str
    lease_id: str
    score: SessionScore
    recalled: int
    judged: tuple[str, ...] = ()


class ScoresListed(Message, frozen=True, tag="searcher.scores_listed"):
    """Scores, the newest first."""

    scores: list[ContinuityScore]


class ListScores(Request[ScoresListed], frozen=True, tag="searcher.list_scores"):
    """List the scores of the agent's own sessions; ``latest``: only the newest of each project."""

    agent_id: str
    limit: int
    project: str | None = None
    latest: bool = False


ScoreCommand = StoreScore
ScoreCommandReply = ScoreStored
ScoreQuery = ListScores
ScoreQueryReply = ScoresListed
