"""What is stored of a session, and what a new session should know.

Source: memory-api.txt "POST /api/memory/recall" (context ledger); memory-system.txt "Importance Decay".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from signet_actors.domain.dated_sections import SUMMARY_TYPE
from signet_actors.domain.memories import PREFERRED_TYPES, decayed_importance, start_score
from signet_actors.domain.session_keys import DEFAULT_AGENT
from signet_actors.domain.timestamps import epoch_ms
from signet_actors.features.checkpoints import reads as checkpoints
from signet_actors.features.checkpoints.api import FindRecovery
from signet_actors.features.session_summaries import reads as summaries
from signet_actors.features.session_summaries.api import DatedSummaries, FindDated
from signet_actors.protocol.memories import Filters, Memory, ReadScope
from signet_actors.protocol.message import Answered
from signet_actors.protocol.sessions import (
    MAX_RECEIVED,
    FindSessionStart,
    FindWordings,
    GetSession,
    ReturnedRow,
    SessionFound,
    SessionStartFound,
    WordingsFound,
)
from signet_actors.searcher.columns import DAY_MS, Mask, Seqs
from signet_actors.searcher.corrections import Corrections
from signet_actors.searcher.forgotten import Forgotten
from signet_actors.searcher.graph.stage import graph_constraints
from signet_actors.searcher.reader import Reader
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads import sessions as stored
from signet_actors.store.reads.contents import memories_by_seq

LAST_SESSIONS: Final = 20
"""Of a project, in which what was asked for counts."""
MOST_INFERRED: Final = 5
"""Of the rules and constraints whose type a word in a sentence told."""
MOST_CORRECTED: Final = 25
"""Of each list of a start, so many are looked up: it shows no more."""
RECALLED_LATELY: Final = 2000
"""Of so many rows of all agents and projects that were recalled last; reading their numbers takes a millisecond."""


def recovery(reader: Reader, snapshot: Snapshot, query: FindRecovery) -> Answered:
    """Return that with which the session goes on, without what was forgotten."""
    filters = Filters(project=query.project, or_no_project=True)
    forgotten = Forgotten(reader, snapshot, ReadScope(query.agent_id), filters)
    return Answered(msgspec.json.encode(checkpoints.recovery(snapshot, query, forgotten.marked)))


def dated_summaries(reader: Reader, snapshot: Snapshot, query: FindDated) -> Answered:
    """Return the summaries of the latest sessions, without what was forgotten."""
    found = summaries.dated(snapshot, query).summaries
    by_project = {
        project: Forgotten(reader, snapshot, ReadScope(query.agent_id), Filters(project=project, or_no_project=True))
        for project in {each.project for each in found}
    }
    left = [each._replace(content=by_project[each.project].without(each.content)) for each in found]
    return Answered(msgspec.json.encode(DatedSummaries([each for each in left if each.content])))


def get_session(snapshot: Snapshot, query: GetSession) -> SessionFound:
    """Return the stored state of the session, and what it received in its present epoch."""
    bypassed = stored.is_bypassed(snapshot, query.session_key)
    paused = stored.was_bypassed(snapshot, query.session_key)
    agent_known = query.agent_id == DEFAULT_AGENT or stored.has_agent(snapshot, query.agent_id)
    found = stored.context(snapshot, query.session_key, query.agent_id)
    project = stored.project(snapshot, query.session_key, query.agent_id)
    if found is None:
        of_agent = stored.last_agent(snapshot, query.session_key)
        return SessionFound(
            bypassed=bypassed, paused=paused, agent_known=agent_known, project=project, of_agent=of_agent
        )
    returned = stored.returned(snapshot, query.session_key, query.agent_id, found.context_epoch, MAX_RECEIVED)
    return SessionFound(
        context=found,
        returned=[ReturnedRow(*row) for row in returned],
        bypassed=bypassed,
        paused=paused,
        of_agent=query.agent_id,
        agent_known=agent_known,
        project=project,
    )


def wordings(snapshot: Snapshot, query: FindWordings) -> WordingsFound:
    """Return the words of a memory, or of the chunks of a long text."""
    return WordingsFound(stored.wordings(snapshot, query.id, query.agent_id))


def session_start(reader: Reader, snapshot: Snapshot, query: FindSessionStart) -> SessionStartFound:
    """Return what a new session should know, without what belongs to other projects.

    Constraints are pinned memories, then those that were named so, then orders in form whose type was inferred. Notes
    that were imported count only if they were asked for. Of the knowledge graph, the constraints of the entities that
    the project's last session was about, or of the project itself, count beside them.
    """
    reader.sync(snapshot)
    project, columns = query.project, reader.columns
    filters = Filters(no_project=True)
    if project is not None:
        filters = Filters(project=project, former_project=query.former_project, or_no_project=True)
    allowed = reader.allowed_rows(snapshot, query.read, filters)
    size = len(allowed)
    ranks = np.maximum(columns.constraint_ranks(size), graph_constraints(reader, snapshot, query, allowed))
    binding = allowed & (ranks > 0)
    others = allowed & ~binding
    if query.of_all_types:
        best = _highest(reader, others, query, query.candidates)
    else:
        others &= ~columns.imported(size)
        of_types = [others & columns.with_texts("type", types, size) for types in PREFERRED_TYPES]
        most = (query.candidates, query.candidates, MOST_INFERRED)
        best = np.concatenate([_highest(reader, rows, query, n) for rows, n in zip(of_types, most, strict=True)])
        others = np.logical_or.reduce(of_types)
    asked: Seqs = np.zeros(0, np.int64)
    last_summary: int | None = None
    if not query.of_all_types:
        asked = _asked_for(
            snapshot,
            query,
            allowed & ~binding & ~others,
            columns.in_project(filters.spellings or ("",), slice(0, size)),
        )
        last_summary = None if project is None else stored.last_summary(snapshot, query.read.agent_id, project)
    seqs = {*best.tolist(), *asked.tolist(), *([] if last_summary is None else [last_summary])}
    memories = memories_by_seq(snapshot, query.read, filters, sorted(seqs), chars=query.chars)
    first = np.concatenate(
        [_highest(reader, binding & (ranks == rank), query, query.max_constraints) for rank in (3, 2, 1)]
    )
    first = first[: query.max_constraints]
    constraints = memories_by_seq(snapshot, query.read, filters, first.tolist(), chars=query.chars)
    shown = _by_score(query, {seq: memories[seq] for seq in best.tolist() if seq in memories})
    used = [seq for seq in asked.tolist() if seq in memories and memories[seq].id not in query.without]
    newer: dict[int, int] = {}
    if not query.of_all_types:
        newer = _corrected(query, Corrections(reader, snapshot, query.read, filters), memories, shown, used)
        memories |= memories_by_seq(
            snapshot, query.read, filters, sorted({*newer.values()} - {*memories, *constraints}), chars=query.chars
        )
        # Both are given: the newer one may say something else of the same subject.
        shown, used = ([each for seq in seqs for each in (newer.get(seq, seq), seq)] for seqs in (shown, used))
    if any(memory.type == SUMMARY_TYPE for memory in memories.values()):
        forgotten = Forgotten(reader, snapshot, query.read, filters)
        left = {seq: forgotten.left_of(memory) for seq, memory in memories.items()}
        memories = {seq: memory for seq, memory in left.items() if memory is not None}
    found = constraints | memories
    ids = {seq: memory.id for seq, memory in found.items()}
    wordings = columns.wordings(np.array(list(found), np.int64))
    agent_id, session_key = query.read.agent_id, query.session_key or ""
    last_active_at = stored.last_active_at(snapshot, agent_id, session_key)
    since_ms = None if last_active_at is None else epoch_ms(last_active_at)
    created = columns.created_ms[:size]
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
        memories=[memories[seq] for seq in dict.fromkeys(shown) if seq in memories],
        used=[memories[seq] for seq in dict.fromkeys(used) if seq in memories and seq not in shown],
        summary=None if last_summary is None else memories.get(last_summary),
        wordings={memory.id: wording for memory, wording in zip(found.values(), wordings, strict=True)},
        last_active_at=last_active_at,
        new_memories=0 if since_ms is None else int((allowed & (created > since_ms)).sum()),
        all_constraints=int(binding.sum()),
        newer={ids[older]: ids[seq] for older, seq in newer.items() if older in ids and seq in ids},
    )


def _corrected(
    query: FindSessionStart,
    corrections: Corrections,
    memories: Mapping[int, Memory],
    shown: Sequence[int],
    used: Sequence[int],
) -> dict[int, int]:
    """Return for each of the first rows of both lists that a newer memory corrects that newer one."""
    newer = {}
    for seq in (*shown[:MOST_CORRECTED], *used[:MOST_CORRECTED]):
        row = corrections.newest(seq, memories[seq].content)
        if row is not None and row.id not in query.without:
            newer[seq] = row.seq
    return newer


def _asked_for(snapshot: Snapshot, query: FindSessionStart, allowed: Mask, own: Mask) -> Seqs:
    """Return what was asked for in the project, the last first: its own memories, and what answered in its sessions."""
    recalled = np.array(stored.last_accessed(snapshot, RECALLED_LATELY), np.int64)
    recalled = recalled[recalled < len(allowed)]
    recalled = recalled[own[recalled]]
    there: Seqs = np.zeros(0, np.int64)
    if query.project is not None:
        answered = stored.asked_for(snapshot, query.read.agent_id, query.project, LAST_SESSIONS, query.limit)
        there = np.array(answered, np.int64)
    both = np.concatenate([there[there < len(allowed)], recalled])
    order = np.sort(np.unique(both, return_index=True)[1])
    asked: Seqs = both[order]
    asked = asked[allowed[asked]]
    return asked[: query.limit]


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


def _by_score(query: FindSessionStart, memories: Mapping[int, Memory]) -> list[int]:
    """Return the rows in the order of their types, of each the project's first, then those of the highest score.

    Of all types, those count whose score is still high enough.
    """
    weighed = [(seq, memory, _score(query, memory)) for seq, memory in memories.items()]
    if query.of_all_types:
        weighed = [each for each in weighed if each[2] > query.min_score]
    places = {} if query.of_all_types else {name: at for at, types in enumerate(PREFERRED_TYPES) for name in types}
    weighed.sort(key=lambda each: (places.get(each[1].type, 0), each[1].project != query.project, -each[2], each[1].id))
    return [seq for seq, _, _ in weighed[: query.limit]]


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
