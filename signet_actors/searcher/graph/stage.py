"""The stages of a recall that use the knowledge graph: walk, boost, sources.

A caller has the graph of its own agent alone, whatever its read policy. A token that is limited to a project or a user
has none: an entity is made of memories that it may not read. Every memory is one of the ``allowed`` rows.

Source: architecture.txt "Traversal-primary search"; docs/decisions.md 9, 63.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from signet_actors.domain.ranking import fusion, traversal
from signet_actors.features.checkpoints.rules import normalized_project
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.searcher import Recall
from signet_actors.protocol.sessions import FindSessionStart
from signet_actors.searcher.columns import Mask, Seqs
from signet_actors.searcher.graph.focus import Focal, focal_entities
from signet_actors.searcher.graph.graph_index import GraphIndex
from signet_actors.searcher.graph.walk import FOUND, Walked, boosted, walk
from signet_actors.searcher.reader import IN_QUERY, Reader
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads import graph_index as stored

Floats = npt.NDArray[np.float64]
_NO_ROWS: Final[Seqs] = np.zeros(0, np.int64)
_NOTHING: Final = Walked(np.zeros(0, FOUND), np.zeros(0, FOUND), 0, timed_out=False)
_MS: Final = 1_000_000
PATH_CHARS: Final = 200
"""Of what a memory states, in the explanation of its path."""


class GraphFound(NamedTuple):
    """What the graph knows of a query. ``boosted``: rows that mention what it names; only without a walk."""

    focal: list[Focal] = []
    walked: Walked = _NOTHING
    boosted: Seqs = _NO_ROWS

    def sources(self, seqs: Seqs) -> dict[int, str]:
        """Return how each of the rows was found, of those that the graph has found."""
        if not len(seqs):
            return {}
        found = dict.fromkeys(seqs[np.isin(seqs, self.boosted)].tolist(), "graph")
        for row in self.walked.found[np.isin(self.walked.found["seq"], seqs)]:
            own = "structured" if row["structured"] else "ka_traversal"
            found[int(row["seq"])] = own if row["near"] < 0 else "traversal"
        return found

    @property
    def seqs(self) -> Seqs:
        """The rows that are candidates because of the graph."""
        return np.concatenate((self.walked.found["seq"], self.boosted))


def search_graph(reader: Reader, snapshot: Snapshot, command: Recall, allowed: Mask) -> GraphFound:
    """Return what the graph leads to from the query; nothing while the index is incomplete. An error is counted."""
    try:
        return _search(reader, snapshot, command, allowed)
    except (ArithmeticError, LookupError, ValueError):  # architecture.txt: the graph never degrades the search
        reader.graph_failures += 1
        return GraphFound()


def _search(reader: Reader, snapshot: Snapshot, command: Recall, allowed: Mask) -> GraphFound:
    limits, index = command.graph, reader.graph
    if limits is None:
        return GraphFound()
    key, project = command.session_key, command.filters.project
    focal = _focal(reader, snapshot, command.read, command.query, project, key, label=key)
    agent = index.agent(command.read.agent_id)
    if not focal:
        return GraphFound()
    if limits.is_primary:
        return GraphFound(focal, walk(index, agent, focal, allowed, limits, _deadline(reader, limits.timeout_ms)))
    named = [each for each in focal if each.source == "query"]
    linked = boosted(index, agent, named, allowed, _deadline(reader, limits.boost_timeout_ms))
    return GraphFound(focal, boosted=linked)


def graph_constraints(
    reader: Reader, snapshot: Snapshot, query: FindSessionStart, allowed: Mask
) -> npt.NDArray[np.int8]:
    """Return 2 for memories that state a constraint of what the project is about, named so by a client, 1 if inferred.

    Shape (size,); 0 for all others. The entities are those of the last session of the project, else its own.
    """
    ranks = np.zeros(len(allowed), np.int8)
    if query.graph is None:
        return ranks
    focal = _focal(reader, snapshot, query.read, "", query.project, query.session_key)
    limits, agent = msgspec.structs.replace(query.graph, max_neighbours=0), reader.graph.agent(query.read.agent_id)
    found = walk(reader.graph, agent, focal, allowed, limits, _deadline(reader, limits.timeout_ms)).constraints
    np.maximum.at(ranks, found["seq"], 1 + found["structured"].astype(np.int8))
    return ranks


def _focal(
    reader: Reader,
    snapshot: Snapshot,
    read: ReadScope,
    query: str,
    project: str | None,
    session_key: str | None,
    *,
    label: str | None = None,
) -> list[Focal]:
    """Return the focal entities of the agent; none for a token that is limited, or while the index is incomplete."""
    index = reader.graph
    index.sync(snapshot, max_rows=IN_QUERY.graph)
    agent = index.agent(read.agent_id)
    if not index.complete or agent < 0 or read.project is not None or read.user is not None:
        return []
    return focal_entities(
        index,
        agent,
        reader.readable_rows(snapshot, read, ()),
        query=query,
        project=project,
        checkpoint=lambda: stored.focal_entities(snapshot, read.agent_id, session_key, normalized_project(project)),
        session_key=label,
    )


def with_structure(
    found: GraphFound, command: Recall, seqs: Seqs, scores: Floats, strong: Floats, cosine: Floats, by_leg: Mask
) -> tuple[Floats, Floats]:
    """Return ``scores`` and ``strong`` of the candidates ``seqs`` with what the graph adds to them.

    ``by_leg``: the candidates that are there without the graph. They keep their order, and the first of the results are
    always some of them. The arrays have shape (n,).

    Departs: what a leg has found as well gets no share of structure; measured, that ranks evidence lower
    (docs/quality.md "The knowledge graph").
    """
    if command.graph is None or not len(found.seqs):
        return scores, strong
    raised, strong = scores.copy(), strong.copy()
    at = np.searchsorted(seqs, found.walked.found["seq"])
    pool = found.walked.found["score"]
    if not np.isnan(cosine).all():
        pool = traversal.pool_scores(fusion.relative_cosine(cosine)[at], pool)
    only = ~by_leg[at]
    most = traversal.best_of_pool(scores[by_leg], command.limit)
    raised[at[only]], strong[at[only]] = np.minimum(pool[only], most), pool[only]
    for each in (raised, strong):
        each[np.searchsorted(seqs, found.boosted)] += command.graph.boost
    return raised, strong


def path_to(snapshot: Snapshot, index: GraphIndex, found: GraphFound, seq: int) -> list[str]:
    """Return how the walk came to the row, which the caller may read: entities, aspect, what it states; [] if not."""
    at = np.flatnonzero(found.walked.found["seq"] == seq)
    if not len(at):
        return []
    row = found.walked.found[at[0]]
    members = [index.ids[each] for each in index.with_members(int(row["entity"]))]
    stated_there = stored.stated(snapshot, seq, members)
    if stated_there is None:
        return []
    entity, aspect, content = stated_there
    path = [entity, *([aspect] if aspect else []), content[:PATH_CHARS]]
    if row["near"] >= 0:
        near = int(row["near"])
        starts = [index.ids[each] for each in index.with_members(near)]
        name = stored.described(snapshot, [index.ids[near]])[index.ids[near]][0]
        path = [name, stored.dependency_type(snapshot, starts, members) or "", *path]
    return path


def _deadline(reader: Reader, timeout_ms: int) -> Callable[[], bool]:
    until_ns = reader.clock.monotonic_ns() + timeout_ms * _MS
    return lambda: reader.clock.monotonic_ns() >= until_ns
