"""What is stored of a session, and what a new session should know.

Source: memory-api.txt "POST /api/memory/recall" (context ledger); memory-system.txt "Importance Decay".
"""

from __future__ import annotations

from typing import Final

import numpy as np

from signet_actors.domain.memories import decayed_importance, start_score
from signet_actors.domain.session_keys import DEFAULT_AGENT
from signet_actors.domain.timestamps import epoch_ms
from signet_actors.protocol.memories import Filters, Memory
from signet_actors.protocol.sessions import (
    MAX_RECEIVED,
    FindSessionStart,
    GetSession,
    ReturnedRow,
    SessionContext,
    SessionFound,
    SessionStartFound,
)
from signet_actors.searcher.columns import DAY_MS, Mask, Seqs
from signet_actors.searcher.reader import Reader
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads import sessions as stored
from signet_actors.store.reads.contents import memories_by_seq

RECALLED_LATELY: Final = 2000
"""Of so many rows of all agents and projects that were recalled last; reading their numbers takes a millisecond."""


def get_session(snapshot: Snapshot, query: GetSession) -> SessionFound:
    """Return the stored state of the session, and what it received in its present epoch."""
    bypassed = stored.is_bypassed(snapshot, query.session_key)
    agent_known = query.agent_id == DEFAULT_AGENT or stored.has_agent(snapshot, query.agent_id)
    found = stored.context(snapshot, query.session_key, query.agent_id)
    if found is None:
        return SessionFound(bypassed=bypassed, agent_known=agent_known)
    returned = stored.returned(snapshot, query.session_key, query.agent_id, found.context_epoch, MAX_RECEIVED)
    return SessionFound(
        context=SessionContext(
            session_key=query.session_key,
            agent_id=query.agent_id,
            context_epoch=found.context_epoch,
            harness=found.harness,
            project=found.project,
            started_at=found.started_at,
            last_active_at=found.last_active_at,
            started_epoch=found.started_epoch,
            start_key=found.start_key,
        ),
        returned=[ReturnedRow(*row) for row in returned],
        bypassed=bypassed,
        agent_known=agent_known,
    )


def session_start(reader: Reader, snapshot: Snapshot, query: FindSessionStart) -> SessionStartFound:
    """Return constraints and memories for a new session, without those of other projects.

    Constraints are pinned memories, then those that were named so, then orders in form whose type was inferred.
    """
    reader.sync(snapshot)
    project = query.project
    filters = Filters(no_project=True)
    if project is not None:
        filters = Filters(project=project, former_project=query.former_project, or_no_project=True)
    allowed = reader.allowed_rows(snapshot, query.read, filters)
    ranks = reader.columns.constraint_ranks(len(allowed))
    binding = allowed & (ranks > 0)
    best = _highest(reader, allowed & ~binding, query, query.candidates)
    recalled = np.array(stored.last_accessed(snapshot, RECALLED_LATELY), np.int64)
    recalled = recalled[recalled < len(allowed)]
    recalled = recalled[allowed[recalled] & ~binding[recalled]]
    ordinary = np.union1d(best, recalled[: query.candidates]).tolist()
    memories = memories_by_seq(snapshot, query.read, filters, ordinary, chars=query.chars)
    first = np.concatenate(
        [_highest(reader, binding & (ranks == rank), query, query.max_constraints) for rank in (3, 2, 1)]
    )
    first = first[: query.max_constraints]
    constraints = memories_by_seq(snapshot, query.read, filters, first.tolist(), chars=query.chars)
    found = constraints | memories
    wordings = reader.columns.wordings(np.array(list(found), np.int64))
    agent_id, session_key = query.read.agent_id, query.session_key or ""
    last_active_at = stored.last_active_at(snapshot, agent_id, session_key)
    since_ms = None if last_active_at is None else epoch_ms(last_active_at)
    created = reader.columns.created_ms[: len(allowed)]
    return SessionStartFound(
        constraints=[
            constraints[seq]
            for seq in sorted(
                constraints,
                key=lambda seq: (
                    -ranks[seq],
                    constraints[seq].project not in filters.spellings,
                    -constraints[seq].importance,
                ),
            )
        ],
        memories=_by_score(query, list(memories.values())),
        wordings={memory.id: wording for memory, wording in zip(found.values(), wordings, strict=True)},
        last_active_at=last_active_at,
        new_memories=0 if since_ms is None else int((allowed & (created > since_ms)).sum()),
        captured_sessions=0
        if last_active_at is None
        else stored.captured_since(snapshot, agent_id, session_key, last_active_at),
        all_constraints=int(binding.sum()),
    )


def _highest(reader: Reader, among: Mask, query: FindSessionStart, count: int) -> Seqs:
    """Return at most ``count`` rows with the highest score, with the importance decayed since their creation."""
    seqs: Seqs = np.flatnonzero(among)
    if len(seqs) <= count:
        return seqs
    columns = reader.columns
    days = np.maximum(query.now_ms - columns.created_ms[seqs], 0) / DAY_MS
    weight = columns.importance[seqs] * np.where(columns.pinned[seqs], 1.0, query.decay_rate**days)
    weight = weight * (1 - query.recency_bias) + query.recency_bias / (1 + days)
    return seqs[np.argpartition(-weight, count)[:count]]


def _by_score(query: FindSessionStart, memories: list[Memory]) -> list[Memory]:
    """Return the memories whose score is still high enough: the project's first, then those of the highest score."""
    weighed = [(memory, _score(query, memory)) for memory in memories]
    passing = [(memory, weight) for memory, weight in weighed if weight > query.min_score]
    passing.sort(key=lambda pair: (pair[0].project != query.project, -pair[1], pair[0].id))
    return [memory for memory, _ in passing[: query.limit]]


def _score(query: FindSessionStart, memory: Memory) -> float:
    unused_days = _days_since(query, memory.last_accessed or memory.created_at)
    importance = decayed_importance(
        memory.importance, pinned=bool(memory.pinned), days=unused_days, rate=query.decay_rate
    )
    age_days = _days_since(query, memory.created_at)
    return start_score(importance, age_days=age_days, recency_bias=query.recency_bias)


def _days_since(query: FindSessionStart, time: str) -> float:
    since_ms = epoch_ms(time)
    return 0.0 if since_ms is None else max(0.0, (query.now_ms - since_ms) / DAY_MS)
