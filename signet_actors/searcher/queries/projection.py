"""Answer with an agent's map, without what is gone or the caller may not read.

Source: docs/compatibility.md "Embeddings".
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from signet_actors.domain.timestamps import iso
from signet_actors.features.projection import api
from signet_actors.features.projection.reads import StoredMap, sessions_of, shown, stored_map
from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.protocol.message import Answered
from signet_actors.searcher.columns import Mask
from signet_actors.searcher.postings import MATCH
from signet_actors.searcher.reader import Reader
from signet_actors.store.engine import Snapshot
from signet_actors.store.rows import decode_tags


def find(reader: Reader, snapshot: Snapshot, query: api.FindProjection) -> Answered:
    """Return a page of the map, and whether a new one is to be made: there is none, or memories came or changed since.

    Without memories the map is empty, and none is made.
    """
    reader.sync(snapshot)
    agent = ReadScope(query.read.agent_id)
    with_vector = reader.columns.embedding_seq[: reader.columns.size]
    everything = reader.rows_in_any_scope(snapshot, agent, Filters(), deleted=False) & (with_vector > 0)
    made = stored_map(snapshot, agent.agent_id, query.dimensions)
    count, newest = int(everything.sum()), int(with_vector[everything].max(initial=0))
    if made is None and count:
        total = int((reader.allowed_rows(snapshot, query.read, Filters()) & (with_vector > 0)).sum())
        found = api.FoundProjection(None, min(total, api.MAX_POINTS), is_current=False)
    else:
        made = made or StoredMap(api.Points("pca", [], [], []), 0, 0, iso(reader.clock.wall_ms()))
        reply = _page(reader, snapshot, query, made)
        found = api.FoundProjection(reply, reply.total, is_current=count <= made.embedded and newest <= made.newest)
    return Answered(msgspec.json.encode(found))


def _page(reader: Reader, snapshot: Snapshot, query: api.FindProjection, made: StoredMap) -> api.ProjectionReply:
    points = made.points
    rows = np.array(points.rows, np.int64)
    places = np.flatnonzero(_admitted(reader, snapshot, query)[rows]) if len(rows) else rows
    wanted = places[query.offset : query.offset + query.limit]
    texts = shown(snapshot, query.read, rows[wanted].tolist())
    kept = [place for place in wanted.tolist() if points.rows[place] in texts]
    total = len(places)
    number = {place: at for at, place in enumerate(kept)}
    return api.ProjectionReply(
        status="cached",
        dimensions=query.dimensions,
        count=len(kept),
        total=total,
        nodes=[_node(points.coordinates[place], texts[points.rows[place]]) for place in kept],
        edges=[(number[a], number[b]) for a, b in points.edges if a in number and b in number],
        method=points.method if points.rows else None,
        cached_at=made.cached_at,
        limit=query.limit,
        offset=query.offset,
        has_more=query.offset + len(wanted) < total,
    )


def _admitted(reader: Reader, snapshot: Snapshot, query: api.FindProjection) -> Mask:
    columns, size = reader.columns, reader.columns.size
    mask = reader.allowed_rows(snapshot, query.read, query.filters).copy()
    if query.types:
        mask &= columns.with_texts("type", query.types, size)
    if query.source_types:
        mask &= columns.with_texts("source_type", query.source_types, size) | columns.with_texts(
            "origin", query.source_types, size
        )
    for word in (query.q or "").split():
        phrase = word.replace('"', '""')
        holding = np.zeros(size, np.bool_)
        holding[reader.postings.lookup(snapshot, MATCH, f'"{phrase}"')] = True
        mask &= holding
    if query.importance_max is not None:
        mask &= columns.importance[:size] <= query.importance_max
    if query.harness is not None:
        agent_id = query.read.agent_id
        mask &= columns.with_texts("agent_id", (agent_id,), size)
        mask &= columns.with_texts("session_id", sessions_of(snapshot, agent_id, query.harness), size)
    return mask


def _node(at: list[float], row: tuple[Any, ...]) -> api.Node:
    memory_id, content, who, importance, kind, tags, pinned, *origin = row
    told = (content, who, importance, kind, decode_tags(tags), bool(pinned), *origin)
    return api.Node(memory_id, at[0], at[1], *told, *at[2:])
