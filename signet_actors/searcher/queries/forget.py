"""Find the memories that a batch forget would delete.

Source: memory-api.txt "forget"; docs/compatibility.md "Forget and modify" (scores); docs/decisions.md 8 (a query is
never FTS5 syntax).
"""

from __future__ import annotations

from typing import Any

from signet_actors.domain.forget_budget import CONFIRM_ABOVE, STORE_KEY, parse_deletions
from signet_actors.domain.query_words import fts_match
from signet_actors.domain.ranking.fusion import keyword_score
from signet_actors.protocol.searcher import FindForgetCandidates, ForgetCandidate, ForgetCandidatesFound
from signet_actors.store.read_policy import conjunction, matching, readable, readable_in_any_scope
from signet_actors.store.snapshot import Snapshot


def candidates(snapshot: Snapshot, query: FindForgetCandidates) -> ForgetCandidatesFound:
    """Return live memories by ids, keywords and filters; all given conditions must hold. Best or newest first.

    A memory given by its id may be in any scope, unless the request names a scope too.
    """
    by_id = query.ids and query.read.scope is None
    visible = (
        readable_in_any_scope(snapshot.connection, query.read.agent_id)
        if by_id
        else readable(snapshot.connection, query.read)
    )
    parts = [("m.is_deleted = 0", {}), visible, matching(query.filters)]
    if query.ids:
        ids = {f"id_{index}": memory_id for index, memory_id in enumerate(query.ids)}
        parts.append((f"m.id IN ({', '.join(f':{name}' for name in ids)})", ids))
    where, bindings = conjunction(*parts)
    strength, source, order = "NULL", f"memories m WHERE {where}", "m.created_at DESC, m.seq DESC"
    if query.query is not None:
        expression = fts_match(query.query)
        if expression is None:
            return ForgetCandidatesFound(candidates=[])
        bindings["match"] = expression
        strength, order = "bm25(memories_fts)", "memories_fts.rank"
        source = (
            f"memories_fts JOIN memories m ON m.seq = memories_fts.rowid WHERE memories_fts MATCH :match AND {where}"
        )
    rows = snapshot.rows(
        f"SELECT m.id, {strength}, m.pinned, m.version FROM {source} ORDER BY {order} LIMIT :limit",
        {**bindings, "limit": query.limit},
    )
    count = len(rows)
    if count == query.limit <= CONFIRM_ABOVE:  # the limit may have cut the result off
        counted = snapshot.value(
            f"SELECT count(*) FROM (SELECT 1 FROM {source} LIMIT :most)", {**bindings, "most": CONFIRM_ABOVE + 1}
        )
        count = int(counted)
    deletions = snapshot.value("SELECT value FROM store_meta WHERE key = ?", (STORE_KEY,))
    return ForgetCandidatesFound(
        candidates=[
            ForgetCandidate(memory_id, _score(strength), bool(pinned), version)
            for memory_id, strength, pinned, version in rows
        ],
        matching=count,
        deletions=parse_deletions(deletions),
    )


def _score(strength: Any) -> float:
    """Return the keyword score, 1 for a selection without keywords."""
    return 1.0 if strength is None else round(float(keyword_score(strength)), 3)
