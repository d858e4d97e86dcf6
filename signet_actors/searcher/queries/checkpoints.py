"""Checkpoints of sessions: those of a session or a project, and the one with which a session goes on.

Source: memory-pipeline.txt "Session Checkpoints"; docs/decisions.md 35.
"""

from __future__ import annotations

from typing import Final

import msgspec

from signet_actors.domain.checkpoints import tells_work
from signet_actors.domain.text_cut import ends_of
from signet_actors.protocol.checkpoints import (
    CheckpointsFound,
    FindRecovery,
    LastTurns,
    ListCheckpoints,
    RecoveryFound,
    StoredCheckpoint,
)
from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.searcher.forgotten import Forgotten
from signet_actors.searcher.reader import Reader
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


def recovery(reader: Reader, snapshot: Snapshot, query: FindRecovery) -> RecoveryFound:
    """Return the checkpoint of the session that goes on and the end of its transcript, without what was forgotten."""
    filters = Filters(project=query.project, or_no_project=True)
    forgotten = Forgotten(reader, snapshot, ReadScope(query.agent_id), filters)
    if not query.same_session:
        return RecoveryFound() if query.project is None else _of_project(snapshot, query, query.project, forgotten)
    if query.session_key is None:
        return RecoveryFound()
    found = readable_transcript(snapshot, query.session_key, ReadScope(query.agent_id))
    end = None
    if found is not None and found[1].agent_id == query.agent_id:
        session = ActiveSession(query.session_key, found[1].updated_at, found[1].harness)
        end = _end_of(snapshot, session, found[0], forgotten, _OWN_TURNS)
    newest = stored.newest(snapshot, query.agent_id, session_key=query.session_key)
    return RecoveryFound(_without(newest, forgotten), end)


def _of_project(snapshot: Snapshot, query: FindRecovery, project: str, forgotten: Forgotten) -> RecoveryFound:
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
        checkpoint = _without(stored.newest(snapshot, agent_id, session_key=session.session_key), forgotten)
        if session.session_key == query.session_key:
            if checkpoint is not None and not checkpoint.ended:
                return RecoveryFound(checkpoint)
            continue
        if session.summary is not None and session.ended:
            return RecoveryFound(summary=session.summary)
        end = None if session.transcript is None else _end_of(snapshot, session, session.transcript, forgotten)
        found = RecoveryFound(checkpoint, end)
        if tells_work([] if end is None else end.turns, "" if checkpoint is None else checkpoint.digest):
            return found
        little = found if little == RecoveryFound() else little
    return little


def _without(checkpoint: StoredCheckpoint | None, forgotten: Forgotten) -> StoredCheckpoint | None:
    """Return the checkpoint without the sentences that say what was forgotten."""
    if checkpoint is None:
        return None
    lines = [forgotten.without(line) for line in checkpoint.digest.splitlines()]
    return msgspec.structs.replace(checkpoint, digest="\n".join(filter(None, lines)))


def _end_of(
    snapshot: Snapshot, session: ActiveSession, transcript: int, forgotten: Forgotten, count: int = _TURNS
) -> LastTurns:
    said: list[tuple[str, str]] = []
    before = ""
    for turn in last_turns(snapshot, transcript, count):
        if turn.role == "text" or not turn.continues:
            text = turn.content[-_CHARS:] if turn.role == "text" else ends_of(turn.content, _CHARS)
            left = forgotten.without(text, before if turn.role == "assistant" else "")
            before = text if turn.role == "user" else before
            said += [(turn.role, left)] if left else []
    return LastTurns(session.session_key, session.harness, session.active_at, said, session.ended)
