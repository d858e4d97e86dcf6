"""Readable summaries of sessions, with the memories made from them and the words of the session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import UNSET, UnsetType

from signet_actors.domain.dated_sections import DatedMemory
from signet_actors.domain.extraction.facts import short
from signet_actors.domain.memories import DERIVED
from signet_actors.domain.normalization import collapsed
from signet_actors.domain.transcripts.turns import conversation
from signet_actors.errors import NotFound
from signet_actors.features.session_summaries import api
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Asked
from signet_actors.store.engine import Snapshot
from signet_actors.store.read_policy import conjunction, in_project, readable_in_any_scope
from signet_actors.store.reads.contents import contents_that_fit
from signet_actors.store.reads.transcripts import readable_transcript, turns_after

EXCERPT_CHARS: Final = 420
CHARS_PER_TOKEN: Final = 4
_MAX_LINKED: Final = 25
_MAX_TURNS: Final = 1000
_COLUMNS: Final = {
    "id": "m.id",
    "project": "m.project",
    "content": "m.content",
    "earliest_at": "s.earliest_at",
    "latest_at": "s.latest_at",
    "session_key": "s.session_key",
    "harness": "s.harness",
    "agent_id": "m.agent_id",
    "source_ref": "s.session_key",
    "created_at": "m.created_at",
    "note": "s.note",
}
"""By the members of a summary that are not constant."""
_FROM: Final = "FROM session_summaries s CROSS JOIN memories m ON m.id = s.memory_id WHERE {}"
_LATEST: Final = "ORDER BY s.latest_at DESC, m.seq DESC LIMIT :limit"
_PAGE: Final = f"SELECT {', '.join(_COLUMNS.values())} {_FROM} {_LATEST} OFFSET :offset"
_COUNT: Final = f"SELECT count(*) {_FROM}"
_ONE: Final = f"SELECT {', '.join(_COLUMNS.values())} {_FROM} LIMIT 1"
_DATED: Final = (
    f"SELECT m.id, m.version, m.type, substr(m.content, 1, :chars), s.latest_at, m.project {_FROM} {_LATEST}"
)
_LINKED: Final = (
    f"SELECT m.seq, m.id, m.type, m.created_at FROM memories m WHERE {{}} ORDER BY m.seq DESC LIMIT {_MAX_LINKED}"
)
_LIVE: Final[tuple[str, dict[str, Any]]] = ("m.is_deleted = 0", {})


def listed(snapshot: Snapshot, asked: Asked[api.ListSummariesRequest]) -> api.SummariesReply:
    """Return a page of the summaries, the latest session first; those of a higher level do not exist."""
    page = asked.request
    if page.depth:
        return api.SummariesReply(summaries=[], total=0)
    project = ("1 = 1", {}) if page.project is None else in_project(page.project)
    where, bindings = conjunction(_LIVE, project, readable_in_any_scope(snapshot, asked.caller.read))
    rows = snapshot.rows(_PAGE.format(where), {**bindings, "limit": page.limit, "offset": page.offset})
    total = int(snapshot.value(_COUNT.format(where), bindings))
    return api.SummariesReply([api.Summary(**_members(row)) for row in rows], total)


def dated(snapshot: Snapshot, query: api.FindDated) -> api.DatedSummaries:
    where, bindings = conjunction(_LIVE, readable_in_any_scope(snapshot, ReadScope(query.agent_id)))
    rows = snapshot.rows(_DATED.format(where), {**bindings, "limit": query.limit, "chars": query.chars})
    return api.DatedSummaries([DatedMemory(*row) for row in rows])


def expand(snapshot: Snapshot, asked: Asked[api.ExpandSummaryRequest]) -> api.ExpandSummaryReply:
    """Return a summary with the memories made from it, and the beginning of its transcript."""
    memory_id, policy = asked.request.id, readable_in_any_scope(snapshot, asked.caller.read)
    where, bindings = conjunction(("s.memory_id = :id", {"id": memory_id}), _LIVE, policy)
    row = snapshot.one(_ONE.format(where), bindings)
    if row is None:
        raise NotFound("summary node not found")
    node = api.SummaryNode(**_members(row))
    made = ("m.source_id = :id AND m.source_type = :derived", {"id": memory_id, "derived": DERIVED})
    where, bindings = conjunction(made, _LIVE, policy)
    rows = snapshot.rows(_LINKED.format(where), bindings)
    texts = contents_that_fit(snapshot, [seq for seq, *_ in rows])
    linked = [api.LinkedMemoryBody(linked_id, texts.get(seq), *rest) for seq, linked_id, *rest in rows]
    transcript = _transcript(snapshot, asked, node) if asked.request.include_transcript else UNSET
    return api.ExpandSummaryReply(node=node, linked_memories=linked, transcript=transcript)


def _transcript(
    snapshot: Snapshot, asked: Asked[api.ExpandSummaryRequest], node: api.SummaryNode
) -> api.TranscriptExcerpt | UnsetType:
    """Return the beginning of the transcript, if it is that of the agent whose session was summarized."""
    chars = asked.request.transcript_char_limit
    found = readable_transcript(snapshot, node.session_key, asked.caller.read)
    if found is None or found[1].agent_id != node.agent_id:
        return UNSET
    seq, transcript = found
    turns, rest = turns_after(snapshot, seq, 0, 4 * chars, _MAX_TURNS)
    text = collapsed(conversation([(turn.role, turn.content, turn.continues) for turn in turns])[: 4 * chars])
    is_cut = len(text) > chars or rest is not None
    return api.TranscriptExcerpt(
        session_key=transcript.session_key,
        harness=transcript.harness,
        project=transcript.project,
        updated_at=transcript.updated_at,
        excerpt=short(text, EXCERPT_CHARS),
        content=f"{text[: chars - 3].rstrip()}..." if is_cut else text,
    )


def _members(row: Sequence[Any]) -> dict[str, Any]:
    values = dict(zip(_COLUMNS, row, strict=True))
    return {**values, "token_count": -(-len(values["content"]) // CHARS_PER_TOKEN)}


READS: Final = {api.LIST: listed, api.EXPAND: expand}
