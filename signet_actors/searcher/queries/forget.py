"""Which memories a batch forget would delete.

Source: memory-api.txt "forget"; wire.md 1.2 (scores); decisions.md 8 (a query is never FTS5 syntax).
"""

from __future__ import annotations

from signet_actors.domain.query_words import fts_match
from signet_actors.domain.ranking.fusion import keyword_score
from signet_actors.protocol.searcher import FindForgetCandidates, ForgetCandidate, ForgetCandidatesFound
from signet_actors.store.read_policy import both, matching, readable, readable_in_any_scope
from signet_actors.store.snapshot import Snapshot


def candidates(view: Snapshot, query: FindForgetCandidates) -> ForgetCandidatesFound:
    """Live memories by id, by keywords, or by filters alone; all that is set must hold, best or newest first.

    A memory that is named by its id may be of any scope, unless a scope is named too.
    """
    by_id = query.ids and query.read.scope is None
    visible = (
        readable_in_any_scope(view.connection, query.read.agent_id) if by_id else readable(view.connection, query.read)
    )
    parts = [("m.is_deleted = 0", {}), visible, matching(query.filters)]
    if query.ids:
        ids = {f"id_{index}": memory_id for index, memory_id in enumerate(query.ids)}
        parts.append((f"m.id IN ({', '.join(f':{name}' for name in ids)})", ids))
    where, bindings = both(*parts)
    bindings["limit"] = query.limit
    if query.query is None:
        rows = view.rows(
            f"SELECT m.id, 0.0, m.pinned, m.version FROM memories m WHERE {where}"
            " ORDER BY m.created_at DESC, m.seq DESC LIMIT :limit",
            bindings,
        )
        return ForgetCandidatesFound(
            candidates=[
                ForgetCandidate(memory_id, 1.0, bool(pinned), version) for memory_id, _, pinned, version in rows
            ]
        )
    expression = fts_match(query.query)
    if expression is None:
        return ForgetCandidatesFound(candidates=[])
    rows = view.rows(
        "SELECT m.id, bm25(memories_fts), m.pinned, m.version FROM memories_fts"
        f" JOIN memories m ON m.seq = memories_fts.rowid WHERE memories_fts MATCH :match AND {where}"
        " ORDER BY memories_fts.rank LIMIT :limit",
        {**bindings, "match": expression},
    )
    return ForgetCandidatesFound(
        candidates=[
            ForgetCandidate(memory_id, round(float(keyword_score(strength)), 3), bool(pinned), version)
            for memory_id, strength, pinned, version in rows
        ]
    )
