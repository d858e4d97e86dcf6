"""Checkpoints of sessions: those of a session or a project, and the one with which a session goes on.

Source: memory-pipeline.txt "Session Checkpoints"; docs/decisions.md 35.
"""

from __future__ import annotations

from typing import Final

from signet_actors.domain.checkpoints import tells_work
from signet_actors.domain.text_cut import ends_of
from signet_actors.protocol.checkpoints import (
    CheckpointsFound,
    FindRecovery,
    LastTurns,
    ListCheckpoints,
    RecoveryFound,
)
from signet_actors.protocol.memories import ReadScope
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads import checkpoints as stored
from signet_actors.store.reads.checkpoints import ActiveSession
from signet_actors.store.reads.transcripts import last_turns, readable_transcript

_SESSIONS: Final = 20
"""Of a project, those that were active last; most of them say something."""
_TURNS: Final = 10
_OWN_TURNS: Final = 30
"""Of a session that goes on, of which the agent has lost everything."""
_CHARS: Final = 2000


def list_checkpoints(snapshot: Snapshot, query: ListCheckpoints) -> CheckpointsFound:
    return CheckpointsFound(stored.readable(snapshot, query))


def recovery(snapshot: Snapshot, query: FindRecovery) -> RecoveryFound:
    """Return the checkpoint with which the session goes on, and the end of its transcript."""
    if not query.same_session:
        return RecoveryFound() if query.project is None else _of_project(snapshot, query, query.project)
    if query.session_key is None:
        return RecoveryFound()
    found = readable_transcript(snapshot, query.session_key, ReadScope(query.agent_id))
    end = None
    if found is not None and found[1].agent_id == query.agent_id:
        session = ActiveSession(query.session_key, found[1].updated_at, found[1].harness)
        end = _end_of(snapshot, session, found[0], _OWN_TURNS)
    return RecoveryFound(stored.newest(snapshot, query.agent_id, session_key=query.session_key), end)


def _of_project(snapshot: Snapshot, query: FindRecovery, project: str) -> RecoveryFound:
    """Return what is stored of the session of the project that was active last, of those that say what was done.

    If none does, a session of one prompt counts: without it the next session would know nothing.
    """
    little = RecoveryFound()
    agent_id = query.agent_id
    sessions = stored.active_sessions(snapshot, agent_id, project, query.since, _SESSIONS)
    newest = stored.newest(snapshot, agent_id, project=project)
    if newest is not None and newest.session_key not in {session.session_key for session in sessions}:
        sessions.append(ActiveSession(newest.session_key, newest.created_at))
    for session in sorted(sessions, key=lambda session: session.active_at, reverse=True):
        if session.bypassed:
            continue
        checkpoint = stored.newest(snapshot, agent_id, session_key=session.session_key)
        if session.session_key == query.session_key:
            if checkpoint is not None and not checkpoint.ended:
                return RecoveryFound(checkpoint)
            continue
        if session.summary is not None and session.ended:
            return RecoveryFound(summary=session.summary)
        end = None if session.transcript is None else _end_of(snapshot, session, session.transcript)
        found = RecoveryFound(checkpoint, end)
        if tells_work([] if end is None else end.turns, "" if checkpoint is None else checkpoint.digest):
            return found
        little = found if little == RecoveryFound() else little
    return little


def _end_of(snapshot: Snapshot, session: ActiveSession, transcript: int, count: int = _TURNS) -> LastTurns:
    said = [
        (turn.role, turn.content[-_CHARS:] if turn.role == "text" else ends_of(turn.content, _CHARS))
        for turn in last_turns(snapshot, transcript, count)
        if turn.role == "text" or not turn.continues
    ]
    return LastTurns(session.session_key, session.harness, session.active_at, said, session.ended)
