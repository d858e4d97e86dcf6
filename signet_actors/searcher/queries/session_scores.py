"""Scores of an agent's own sessions.

Source: memory-pipeline.txt "Continuity Scoring".
"""

from __future__ import annotations

from signet_actors.protocol.session_scores import ListScores, ScoresListed
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads import session_scores as stored


def listed(snapshot: Snapshot, query: ListScores) -> ScoresListed:
    """Return the scores, the newest first."""
    return ScoresListed(stored.listed(snapshot, query))
