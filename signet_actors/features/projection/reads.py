"""Read the vectors of which a map is made, a stored map, and the memories on it, as far as the caller may read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from signet_actors.features.projection.api import MAX_POINTS, SHOWN_CHARS, Points
from signet_actors.protocol.memories import ReadScope
from signet_actors.store.engine import Snapshot
from signet_actors.store.read_policy import readable, readable_in_any_scope

_WITH_VECTOR: Final = "m.is_deleted = 0 AND m.embedding_seq IS NOT NULL"
_COUNT: Final = f"SELECT count(*), coalesce(max(m.embedding_seq), 0) FROM memories m WHERE {_WITH_VECTOR} AND {{}}"
_SPACE: Final = (
    "SELECT e.model, e.dimensions FROM memories m JOIN embeddings e ON e.seq = m.embedding_seq"
    f" WHERE {_WITH_VECTOR} AND {{}} GROUP BY e.model, e.dimensions ORDER BY count(*) DESC, e.model LIMIT 1"
)
_VECTORS: Final = (
    "SELECT m.seq, e.vector FROM memories m JOIN embeddings e ON e.seq = m.embedding_seq"
    f" WHERE {_WITH_VECTOR} AND e.model = :model AND e.dimensions = :dimensions AND {{}}"
    f" ORDER BY m.embedding_seq DESC LIMIT {MAX_POINTS}"
)
_STORED: Final = (
    "SELECT u.result_json, u.embedding_count, u.newest_embedding, u.cached_at FROM umap_cache u"
    " WHERE u.agent_id = :agent_id AND u.dimensions = :dimensions"
)
_SHOWN: Final = (
    f"SELECT m.seq, m.id, substr(m.content, 1, {SHOWN_CHARS}), m.who, m.importance, m.type, m.tags, m.pinned,"
    " m.source_type, m.source_id, m.created_at, m.project FROM memories m"
    " WHERE m.is_deleted = 0 AND m.seq IN ({}) AND {}"
)
_SESSIONS: Final = (
    "SELECT c.session_key FROM session_contexts c WHERE c.agent_id = :agent_id AND c.harness = :harness"
    " UNION SELECT t.session_key FROM session_transcripts t WHERE t.agent_id = :agent_id AND t.harness = :harness"
)
_points: Final = msgspec.json.Decoder(Points)


class StoredMap(NamedTuple):
    """A map, of how many memories it was made, the newest vector among these, and when."""

    points: Points
    embedded: int
    newest: int
    cached_at: str


class Readable(NamedTuple):
    """The vectors of memories that an agent may read in any scope, by ``memories.seq``, and how many have one."""

    rows: list[tuple[int, bytes]]
    dimensions: int
    embedded: int
    newest: int


def vectors(snapshot: Snapshot, agent_id: str) -> Readable:
    """Return the newest vectors of the model from which most of them are."""
    predicate, bindings = readable_in_any_scope(snapshot, ReadScope(agent_id))
    count, newest = snapshot.rows(_COUNT.format(predicate), bindings)[0]
    space = snapshot.one(_SPACE.format(predicate), bindings)
    if space is None:
        return Readable([], 0, count, newest)
    model, dimensions = space
    rows = snapshot.rows(_VECTORS.format(predicate), {**bindings, "model": model, "dimensions": dimensions})
    return Readable([(seq, vector) for seq, vector in rows], dimensions, count, newest)


def stored_map(snapshot: Snapshot, agent_id: str, dimensions: int) -> StoredMap | None:
    """Return the agent's map, however old it is; None if there is none."""
    row = snapshot.one(_STORED, {"agent_id": agent_id, "dimensions": dimensions})
    return None if row is None else StoredMap(_points.decode(row[0]), *row[1:])


def sessions_of(snapshot: Snapshot, agent_id: str, harness: str) -> list[str]:
    """Return the keys of the agent's sessions in a harness, as far as they or their transcripts are kept.

    Each is in both of the spellings in which a memory may name it.
    """
    found = snapshot.rows(_SESSIONS, {"agent_id": agent_id, "harness": harness})
    return [spelling for (key,) in found for spelling in (key, f"session:{key}")]


def shown(snapshot: Snapshot, read: ReadScope, seqs: Sequence[int]) -> dict[int, tuple[Any, ...]]:
    """Return what a node shows of each live, readable one of the rows in the caller's scope."""
    predicate, bindings = readable(snapshot, read)
    sql = _SHOWN.format(snapshot.dialect.members("seqs"), predicate)
    return {row[0]: row[1:] for row in snapshot.rows(sql, {**bindings, "seqs": snapshot.dialect.listed(seqs)})}


READS: Final[dict[type, object]] = {}
"""``searcher.queries.projection`` answers, with the arrays of the process."""
