"""Find the memories that a new fact may repeat, refine or contradict; the decider chooses among them.

Source: memory-pipeline.txt "Decision Stage"; docs/decisions.md 4, 16, 19; docs/reliability.md R12.
"""

from __future__ import annotations

from signet_actors.domain.extraction.proposals import Candidate
from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.protocol.searcher import CandidatesFound, FindCandidates, Recall
from signet_actors.searcher.legs.vector import IndexIncomplete
from signet_actors.searcher.reader import Reader
from signet_actors.searcher.recall import recall
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads.memories import versions_and_recalls


def find(reader: Reader, snapshot: Snapshot, query: FindCandidates, frames: list[bytes]) -> CandidatesFound:
    """Return the best memories that share the fact's owner, visibility, project and scope, best first.

    ``recall`` ranks them by the legs alone: a fact is compared with facts, not with a conversation. Version and content
    come from the same snapshot; the writer rejects an update that was decided on an older version.
    Departs: the specification asks for candidates of the whole store. Here a fact may only change memories of its own
    owner in the same scope and project (docs/decisions.md 4), and never the memory that it was extracted from. Scores
    and ``min_score`` are therefore relative to the best match among those.
    Raises ``IndexIncomplete`` while a large import is being indexed: a fact that repeats a memory must find it.
    """
    place = Filters(
        project=query.project,
        no_project=query.project is None,
        owner=query.agent_id,
        visibility=query.visibility,
        without_answers=True,
    )
    ranked = recall(
        reader,
        snapshot,
        Recall(
            query=query.text,
            read=ReadScope(query.agent_id, query.scope),
            filters=place,
            limit=query.limit + len(query.without),
            fusion=query.fusion,
            alpha=query.alpha,
            min_score=query.min_score,
            pool=query.pool,
            vector_model=query.vector_model,
            common_words_version=None,
            context=False,
            priors=False,
        ),
        frames,
    ).rows
    if query.vector_model is not None and frames:
        leg = reader.vector_leg(snapshot, query.vector_model, len(frames[0]) // 4)
        among = reader.allowed_rows(snapshot, ReadScope(query.agent_id, query.scope), place)
        if leg is not None and not leg.searches_all(reader.columns, among):
            raise IndexIncomplete
    own = [row for row in ranked if row.id not in query.without][: query.limit]
    stored = versions_and_recalls(snapshot, [row.id for row in own])
    candidates = []
    for row in own:
        version, recalled_at = stored[row.id]
        candidates.append(Candidate(row.id, version, row.type, row.content, row.pinned, recalled_at))
    return CandidatesFound(candidates)
