"""The stages of a recall that use the knowledge graph: walk, boost, sources.

A caller has the graph of its own agent alone, whatever its read policy. A token that is limited to a project or a user
has none: an entity is made of memories that it may not read. Every memory is one of the ``allowed`` rows.

Source: architecture.txt "Traversal-primary search"; docs/decisions.md 9, 63.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from signet_actors.domain.ranking import fusion, traversal
from signet_actors.domain.ranking.traversal import Traversal
from signet_actors.features.checkpoints.rules import normalized_project
from signet_actors.protocol.searcher import Recall
from signet_actors.searcher.columns import Mask, Seqs
from signet_actors.searcher.graph.focus import Focal, focal_entities
from signet_actors.searcher.graph.walk import FOUND, Found, Walked, boosted, walk
from signet_actors.searcher.reader import IN_QUERY, Reader
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads import graph_index as stored

Floats = npt.NDArray[np.float64]
_NO_ROWS: Final[Seqs] = np.zeros(0, np.int64)
_NOTHING: Final = Walked(np.zeros(0, FOUND), np.zeros(0, FOUND), 0, timed_out=False, active_aspects=[])
_MS: Final = 1_000_000


class GraphFound(NamedTuple):
    """What the graph knows of a query. ``boosted``: rows that are linked to what it names; only without a walk."""

    focal: list[Focal] = []
    walked: Walked = _NOTHING
    boosted: Seqs = _NO_ROWS

    @property
    def seqs(self) -> Seqs:
        """The rows that are candidates because of the graph."""
        return np.concatenate((self.walked.found["seq"], self.boosted))


def search_graph(reader: Reader, snapshot: Snapshot, command: Recall, allowed: Mask) -> GraphFound:
    """Return what the graph leads to from the query; nothing while the index is incomplete."""
    limits, read = command.graph, command.read
    if limits is None:
        return GraphFound()
    index = reader.graph
    index.sync(snapshot, max_rows=IN_QUERY.graph)
    agent = index.agent(read.agent_id)
    if not index.complete or agent < 0 or read.project is not None or read.user is not None:
        return GraphFound()
    focal = focal_entities(
        index,
        agent,
        reader.readable_rows(snapshot, read, ()),
        query=command.query,
        project=command.filters.project,
        checkpoint=lambda: stored.focal_entities(
            snapshot, read.agent_id, command.session_key, normalized_project(command.filters.project)
        ),
        session_key=command.session_key,
    )
    if not focal:
        return GraphFound()
    walked = _NOTHING
    if limits.is_primary:
        walked = walk(index, agent, focal, allowed, limits, _deadline(reader, limits.timeout_ms))
    if len(walked.found) or not limits.boost:
        return GraphFound(focal, walked)
    named = [each for each in focal if each.source == "query"]
    return GraphFound(focal, walked, boosted(index, agent, named, allowed, _deadline(reader, limits.boost_timeout_ms)))


def with_structure(found: GraphFound, limits: Traversal | None, seqs: Seqs, scores: Floats, cosine: Floats) -> Floats:
    """Return the scores of the candidates ``seqs`` with what the graph adds to them; the arrays have shape (n,)."""
    if limits is None:
        return scores
    raised = scores.copy()
    at, rows = _places(seqs, found.walked.found)
    pool = traversal.pool_scores(fusion.relative_cosine(cosine)[at], rows["score"])
    raised[at] = np.maximum(raised[at], pool)
    raised[np.isin(seqs, found.boosted)] += limits.boost
    return raised


def _places(seqs: Seqs, rows: Found) -> tuple[Seqs, Found]:
    """Return where ``rows`` are among the ascending ``seqs``, and those that are there."""
    at = np.searchsorted(seqs, rows["seq"])
    is_there = at < len(seqs)
    is_there[is_there] = seqs[at[is_there]] == rows["seq"][is_there]
    return at[is_there], rows[is_there]


def _deadline(reader: Reader, timeout_ms: int) -> Callable[[], bool]:
    until_ns = reader.clock.monotonic_ns() + timeout_ms * _MS
    return lambda: reader.clock.monotonic_ns() >= until_ns
