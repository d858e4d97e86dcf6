"""Read the transcript of a session, and search the turns of all sessions.

Source: docs/compatibility.md "Hooks and sessions"; docs/decisions.md 8, 35.
"""

from __future__ import annotations

from signet_actors.domain.query_words import fts_expression, match_terms
from signet_actors.domain.transcripts.excerpts import excerpt
from signet_actors.protocol.transcripts import (
    FoundSession,
    GetTranscript,
    SearchSessions,
    SessionsFound,
    TranscriptFound,
)
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads import transcripts as stored


def get(snapshot: Snapshot, query: GetTranscript) -> TranscriptFound:
    """Return a page of the session's turns; no transcript if it is missing, forgotten, or not readable."""
    found = stored.readable_transcript(snapshot, query.session_key, query.read)
    if found is None:
        return TranscriptFound(transcript=None)
    seq, transcript = found
    turns, rest = stored.turns_after(snapshot, seq, query.after, query.max_bytes, query.max_rows)
    return TranscriptFound(transcript=transcript, turns=turns, next=rest)


def search(snapshot: Snapshot, query: SearchSessions) -> SessionsFound:
    """Return the sessions whose turns match any word of the query, best first, each with its best turn."""
    terms = match_terms(query.query)
    expression = fts_expression(terms)
    if expression is None:
        return SessionsFound(sessions=[])
    words = (*terms.phrases, *terms.pairs)
    return SessionsFound(
        sessions=[
            FoundSession(
                turn.session_key,
                turn.agent_id,
                turn.harness,
                turn.project,
                turn.updated_at,
                turn.role,
                turn.said_at,
                excerpt(turn.content, words),
            )
            for turn in stored.best_turns(snapshot, query, expression)
        ]
    )
