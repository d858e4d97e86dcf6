"""What was asked, given and left out, with what the memories say now. Source: docs/guides/hooks.md."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

from msgspec import UNSET

from signet_actors.features.searches import api
from signet_actors.features.searches.rules import GIVEN, WORDS
from signet_actors.protocol.message import Asked
from signet_actors.store.engine import Snapshot
from signet_actors.store.read_policy import conjunction, readable_in_any_scope

_NUMBER: Final = (
    "CASE WHEN s.kind = 'prompt' AND s.session_key IS NOT NULL THEN (SELECT count(*) FROM searches p"
    " WHERE p.session_key = s.session_key AND p.agent_id = s.agent_id AND p.kind = 'prompt' AND p.seq <= s.seq) END"
)
_LIST: Final = (
    "SELECT s.seq, s.id, s.created_at, s.kind, s.session_key, s.context_epoch, s.project, s.harness, s.prompt,"
    f" s.skipped, s.given, s.characters, s.duration_ms, {_NUMBER} FROM searches s WHERE s.agent_id = :agent_id"
    " AND (:session IS NULL OR s.session_key = :session) AND (:project IS NULL OR s.project = :project)"
    " AND (:kind IS NULL OR s.kind = :kind) AND (:no_hits IS NULL OR (s.given = 0) = :no_hits)"
    " AND (:since IS NULL OR s.created_at >= :since)"
    " AND (:before IS NULL OR s.seq < (SELECT b.seq FROM searches b WHERE b.id = :before))"
    " ORDER BY s.seq DESC LIMIT :limit"
)
_ROWS: Final = (
    "SELECT r.search_seq, r.memory_id, r.content_version, r.relevance, r.outcome, m.type,"
    " CASE WHEN m.is_deleted = 0 THEN substr(m.content, 1, :chars) END, m.content_version, m.is_deleted"
    " FROM search_rows r JOIN memories m ON m.id = r.memory_id WHERE {} ORDER BY r.search_seq, r.place"
)


def listed(snapshot: Snapshot, asked: Asked[api.ListSearchesRequest]) -> api.ListSearchesReply:
    """Return a page of the agent's searches, the last one first, with those memories that it may still read."""
    wanted = asked.request
    found = snapshot.rows(
        _LIST,
        {
            "agent_id": asked.caller.agent_id,
            "session": wanted.session,
            "project": wanted.project,
            "kind": wanted.kind,
            "no_hits": None if wanted.no_hits is None else int(wanted.no_hits),
            "since": wanted.since,
            "before": wanted.before,
            "limit": wanted.limit,
        },
    )
    memories = _memories(snapshot, asked, [row[0] for row in found])
    searches = [_search(row, memories[row[0]]) for row in found]
    more = searches[-1].id if len(searches) == wanted.limit else None
    return api.ListSearchesReply(searches=searches, count=len(searches), next=more)


def _memories(
    snapshot: Snapshot, asked: Asked[api.ListSearchesRequest], seqs: list[int]
) -> dict[int, list[api.SearchMemory]]:
    members = snapshot.dialect.members("seqs")
    bound = {"seqs": snapshot.dialect.listed(seqs), "chars": api.CONTENT_CHARS}
    where, bindings = conjunction(
        (f"r.search_seq IN ({members})", bound), readable_in_any_scope(snapshot, asked.caller.read)
    )
    by_search: dict[int, list[api.SearchMemory]] = defaultdict(list)
    for seq, memory_id, version, relevance, outcome, type_, content, now, is_deleted in snapshot.rows(
        _ROWS.format(where), bindings
    ):
        memory = api.SearchMemory(
            id=memory_id,
            version=version,
            relevance=relevance,
            given=outcome in GIVEN,
            outcome=outcome,
            why=WORDS.get(outcome, outcome),
            type=type_,
            content=content,
            changed=now != version,
            forgotten=bool(is_deleted),
        )
        by_search[seq].append(memory)
    return by_search


def _search(row: tuple[Any, ...], memories: list[api.SearchMemory]) -> api.SearchRow:
    _, id_, at, kind, session, epoch, project, harness, prompt, skipped, given, characters, ms, number = row
    return api.SearchRow(
        id=id_,
        at=at,
        kind=kind,
        session_key=session,
        number=UNSET if number is None else number,
        context_epoch=epoch,
        project=project,
        harness=harness,
        prompt=prompt,
        skipped=skipped,
        given=given,
        characters=characters,
        ms=ms,
        memories=memories,
    )


READS: Final = {api.LIST: listed}
