"""Find the memories that a batch forget would delete.

Source: memory-api.txt "forget"; docs/compatibility.md "Forget and modify" (scores); docs/decisions.md 8 (a query is
never FTS5 syntax).
"""

from __future__ import annotations

from signet_actors.domain.forget_budget import CONFIRM_ABOVE, parse_deletions
from signet_actors.domain.query_words import fts_match
from signet_actors.domain.ranking.fusion import keyword_score
from signet_actors.operations.forget import ForgetCandidate
from signet_actors.protocol.searcher import FindForgetCandidates, ForgetCandidatesFound
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads import forget as stored
from signet_actors.store.reads.memories import other_parts


def candidates(snapshot: Snapshot, query: FindForgetCandidates) -> ForgetCandidatesFound:
    """Return live memories by ids, keywords and filters; all given conditions must hold. Best or newest first.

    A memory given by its id may be in any scope, unless the request names a scope too.
    """
    expression = None
    if query.query is not None:
        expression = fts_match(query.query)
        if expression is None:
            return ForgetCandidatesFound(candidates=[])
    found, count = stored.selected(
        snapshot,
        query.read,
        query.filters,
        ids=query.ids,
        expression=expression,
        limit=query.limit,
        count_up_to=CONFIRM_ABOVE,
    )
    return ForgetCandidatesFound(
        candidates=[ForgetCandidate(row.id, _score(row.rank), bool(row.pinned), row.version) for row in found],
        matching=count,
        deletions=parse_deletions(stored.recorded_deletions(snapshot)),
        parts=other_parts(snapshot, [row.id for row in found], query.read),
    )


def _score(rank: float | None) -> float:
    """Return the keyword score, 1 for a selection without keywords."""
    return 1.0 if rank is None else round(float(keyword_score(rank)), 3)
