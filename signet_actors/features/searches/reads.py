"""What was asked, given and left out, with what the memories say now. Source: docs/guides/hooks.md."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any, Final

from msgspec import UNSET

from signet_actors.domain.ranking.reasons import LIKELY
from signet_actors.domain.session_keys import CHECK_PREFIX
from signet_actors.domain.timestamps import epoch_ms, iso
from signet_actors.errors import InvalidRequest
from signet_actors.features.searches import api
from signet_actors.features.searches.rules import GIVEN, WHOLE, WORDS, outcome_of
from signet_actors.operations.hooks import SearchMemory
from signet_actors.operations.sessions import KeptSession, KeptSessionsReply
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Asked
from signet_actors.store.engine import Snapshot
from signet_actors.store.read_policy import conjunction, readable_in_any_scope

_NUMBER: Final = (
    "CASE WHEN s.kind = 'prompt' AND s.session_key IS NOT NULL THEN (SELECT count(*) FROM searches p"
    " WHERE p.session_key = s.session_key AND p.agent_id = s.agent_id AND p.kind = 'prompt' AND p.seq <= s.seq) END"
)
_OF_NUMBER: Final = (
    "SELECT p.seq FROM searches p WHERE p.session_key = :session AND p.agent_id = :agent_id AND p.kind = 'prompt'"
    " ORDER BY p.seq LIMIT 1 OFFSET coalesce(:number, 1) - 1"
)
_FIELDS: Final = (
    "SELECT s.seq, s.id, s.created_at, s.kind, s.session_key, s.context_epoch, s.project, s.harness, s.prompt,"
    " s.skipped, s.given, s.characters, s.duration_ms"
)
_ROW: Final = f"{_FIELDS}, {_NUMBER} FROM searches s WHERE "
_UNCOUNTED: Final = f"{_FIELDS}, NULL FROM searches s WHERE "
NO_CHECK: Final = f"coalesce(substr(s.session_key, 1, {len(CHECK_PREFIX)}), '') <> '{CHECK_PREFIX}'"
"""Of a search ``s``: it is of no session that ``signet connect --check`` made."""
_LIST: Final = (
    f"{_ROW} s.agent_id = :agent_id"
    " AND (:session IS NULL OR s.session_key = :session) AND (:project IS NULL OR s.project = :project)"
    " AND (:kind IS NULL OR s.kind = :kind) AND (:no_hits IS NULL OR (s.given = 0) = :no_hits)"
    f" AND (:number IS NULL OR s.seq = ({_OF_NUMBER}))"
    f" AND (:checks IS NULL OR ({NO_CHECK}) <> :checks)"
    " AND (:since IS NULL OR s.created_at >= :since)"
    " AND (:below IS NULL OR s.seq < :below) AND (:earlier IS NULL OR s.created_at < :earlier)"
    " ORDER BY s.seq DESC LIMIT :limit"
)
_FIRST: Final = (
    "SELECT min(f.seq) FROM (SELECT s.seq FROM searches s WHERE s.created_at >= :since"
    " ORDER BY s.created_at LIMIT :batch) f"
)
_BEYOND: Final = (
    "SELECT s.seq FROM searches s WHERE s.agent_id = :agent_id AND s.seq >= :first"
    " ORDER BY s.seq DESC LIMIT 1 OFFSET :limit"
)
_LAST: Final = (
    "SELECT s.{} FROM searches s WHERE s.agent_id = :agent_id AND s.seq >= :first"
    f" AND {NO_CHECK} AND {{}} ORDER BY s.seq DESC LIMIT 1"
)
_LAST_PROMPT: Final = _LAST.format("seq", "s.kind = 'prompt'")
_LAST_GIVEN: Final = _LAST.format("seq", "s.kind = 'prompt' AND s.given > 0 AND s.created_at >= :since")
_LAST_HEARD: Final = _LAST.format("created_at", "s.harness = :harness")
_PLACE: Final = "SELECT s.seq FROM searches s WHERE s.id = :id AND s.agent_id = :agent_id"
_CHANGES: Final = (
    "SELECT h.memory_id, h.seq, h.old_content <> h.new_content FROM memory_history h"
    " WHERE h.memory_id IN ({}) AND h.event IN ('updated', 'deleted', 'recovered', 'merged') ORDER BY h.seq"
)
"""The events of which each made a new version of its memory, and whether it changed the words."""
_FORMER: Final = "SELECT h.seq, substr(h.old_content, 1, :chars) FROM memory_history h WHERE h.seq IN ({})"
_ROWS: Final = (
    "SELECT r.search_seq, r.memory_id, r.content_version, r.relevance, r.outcome, m.type,"
    " CASE WHEN m.is_deleted = 0 THEN substr(m.content, 1, :chars) END, m.content_version, m.is_deleted,"
    " m.version FROM search_rows r JOIN memories m ON m.id = r.memory_id WHERE {} ORDER BY r.search_seq, r.place"
)
_MEMORIES: Final = (
    "SELECT m.seq, m.id, m.type, CASE WHEN m.is_deleted = 0 THEN substr(m.content, 1, :chars) END,"
    " m.content_version, m.is_deleted FROM memories m WHERE {}"
)
_OF_SESSION: Final = "s.session_key = :session_key AND s.agent_id = :agent_id"
_FIND: Final = f"SELECT s.seq, coalesce(s.context_epoch, 0) FROM searches s WHERE {_OF_SESSION} AND s.id = :id"
_GIVEN: Final = (
    "SELECT s.seq, r.memory_id, m.seq, r.content_version, r.outcome FROM searches s"
    " JOIN search_rows r ON r.search_seq = s.seq JOIN memories m ON m.id = r.memory_id"
    f" WHERE {_OF_SESSION} AND s.context_epoch = :epoch AND r.outcome IN {(*WHOLE, 'fact')} ORDER BY s.seq, r.place"
)
_RECEIVED: Final = (
    "SELECT s.memory_id, m.seq, s.content_version FROM session_recalls s JOIN memories m ON m.id = s.memory_id"
    f" WHERE {_OF_SESSION} AND s.context_epoch = :epoch"
)
_FACTS: Final = (
    "SELECT a.memory_id, a.content FROM entity_attributes a WHERE a.memory_id IN ({}) AND a.agent_id = :agent_id"
)
_STARTED: Final = (
    f"SELECT 1 FROM searches s WHERE {_OF_SESSION} AND s.context_epoch = :epoch AND s.kind = 'start'"
    " AND s.skipped IS NULL AND s.seq < :seq"
)
_SAID: Final = "SELECT u.said_at FROM session_turns u WHERE u.transcript_seq = t.seq"
_OF_KEY: Final = "FROM searches s WHERE s.session_key = k.session_key AND s.agent_id = :agent_id"
_SESSIONS: Final = (
    "WITH RECURSIVE keys (session_key) AS ("
    "SELECT min(s.session_key) FROM searches s WHERE s.session_key IS NOT NULL"
    " UNION ALL SELECT (SELECT min(s.session_key) FROM searches s WHERE s.session_key > k.session_key) FROM keys k"
    " WHERE k.session_key IS NOT NULL),"
    f" ends (first, last) AS (SELECT (SELECT min(s.seq) {_OF_KEY}), (SELECT max(s.seq) {_OF_KEY}) FROM keys k),"
    " found (session_key, began, active, project, harness) AS ("
    "SELECT c.session_key, c.started_at, c.last_active_at, c.project, c.harness FROM session_contexts c"
    " WHERE c.agent_id = :agent_id"
    f" UNION ALL SELECT t.session_key, coalesce(({_SAID} ORDER BY u.seq LIMIT 1), t.created_at),"
    f" coalesce(({_SAID} ORDER BY u.seq DESC LIMIT 1), t.updated_at), t.project, t.harness"
    " FROM session_transcripts t WHERE t.agent_id = :agent_id"
    " UNION ALL SELECT b.session_key, a.created_at, b.created_at, b.project, b.harness"
    " FROM ends e JOIN searches a ON a.seq = e.first JOIN searches b ON b.seq = e.last)"
    " SELECT f.session_key, max(f.harness), max(f.project), min(f.began), max(f.active) AS active FROM found f"
    " WHERE substr(f.session_key, 1, length(:check)) <> :check GROUP BY f.session_key"
    " HAVING (:project IS NULL OR max(f.project) = :project)"
    " AND (:active IS NULL OR max(f.active) < :active OR max(f.active) = :active AND f.session_key < :key)"
    " ORDER BY active DESC, f.session_key DESC LIMIT :limit"
)
"""Of the searches of a session only the first and the last are read: from one key of the index to the next."""
_ANSWERED: Final = "s.kind = 'prompt' AND s.skipped IS NULL"
_COUNTS: Final = (
    f"SELECT s.session_key, coalesce(sum({_ANSWERED}), 0), coalesce(sum({_ANSWERED} AND s.given > 0), 0),"
    " coalesce(sum(s.kind IN ('start', 'prompt') AND s.skipped IS NOT NULL AND s.skipped <> 'already_started'), 0),"
    " coalesce(sum(s.kind IN ('recall', 'tool')), 0), coalesce(sum(s.given), 0),"
    " coalesce(sum(CASE WHEN s.kind IN ('start', 'prompt') THEN s.characters END), 0)"
    " FROM searches s WHERE s.agent_id = :agent_id AND s.session_key IN ({}) GROUP BY s.session_key"
)
_TRANSCRIPTS: Final = (
    "SELECT t.session_key, CASE WHEN t.forgotten_at IS NULL THEN 'kept' ELSE 'erased' END,"
    " (SELECT count(*) FROM session_turns u WHERE u.transcript_seq = t.seq) FROM session_transcripts t"
    " WHERE t.agent_id = :agent_id AND t.session_key IN ({})"
)
_SCORES: Final = (
    "SELECT s.session_key, s.score FROM session_scores s WHERE s.agent_id = :agent_id AND s.session_key IN ({})"
    " ORDER BY s.seq"
)
_SAID_FIRST: Final = (
    "SELECT t.session_key, substr(u.content, 1, :chars) FROM session_transcripts t JOIN session_turns u ON u.seq ="
    " (SELECT min(v.seq) FROM session_turns v WHERE v.transcript_seq = t.seq AND v.role = 'user')"
    " WHERE t.agent_id = :agent_id AND t.session_key IN ({}) AND t.forgotten_at IS NULL"
)
_ASKED: Final = (
    "SELECT s.session_key, substr(s.prompt, 1, :chars) FROM searches s"
    " WHERE s.seq IN (SELECT min(p.seq) FROM searches p WHERE"
    " p.agent_id = :agent_id AND p.session_key IN ({}) AND p.kind = 'prompt' AND p.prompt IS NOT NULL"
    " GROUP BY p.session_key)"
)
_BYPASSED: Final = (
    "SELECT c.session_key, max(c.bypassed) FROM session_contexts c WHERE c.session_key IN ({}) GROUP BY c.session_key"
)


def sessions(snapshot: Snapshot, asked: api.FindSessions) -> KeptSessionsReply:
    """Return a page of the agent's sessions, the last active one first, with what each asked for and was given."""
    wanted = asked.request
    active, _, key = (wanted.before or "").partition(" ")
    given: dict[str, Any] = {"active": active or None, "key": key, "check": CHECK_PREFIX}
    given |= {"agent_id": asked.agent_id, "project": wanted.project, "limit": wanted.limit}
    found = snapshot.rows(_SESSIONS, given)
    own = {"agent_id": asked.agent_id, "keys": snapshot.dialect.listed([row[0] for row in found])}
    members = snapshot.dialect.members("keys")
    counts = {session: row for session, *row in snapshot.rows(_COUNTS.format(members), own)}
    transcripts: dict[str, Any] = {session: row for session, *row in snapshot.rows(_TRANSCRIPTS.format(members), own)}
    scores = dict(snapshot.rows(_SCORES.format(members), own))
    cut = {**own, "chars": api.CONTENT_CHARS}
    prompts = {key: text for sql in (_ASKED, _SAID_FIRST) for key, text in snapshot.rows(sql.format(members), cut)}
    bypassed = dict(snapshot.rows(_BYPASSED.format(members), {"keys": own["keys"]}))
    rows = []
    for session, harness, project, began, last in found:
        answered, prompts_given, skipped, searches, memories, characters = counts.get(session, (0,) * 6)
        state, turns = transcripts.get(session, ("none", 0))
        rows.append(
            KeptSession(
                key=session,
                harness=harness,
                project=project,
                started_at=began,
                last_active_at=last,
                bypassed=bool(bypassed.get(session)),
                prompt=prompts.get(session),
                prompts=answered,
                prompts_given=prompts_given,
                skipped=skipped,
                searches=searches,
                given=memories,
                characters=characters,
                transcript=state,
                turns=turns,
                score=scores.get(session),
            )
        )
    more = f"{rows[-1].last_active_at} {rows[-1].key}" if len(rows) == wanted.limit else None
    return KeptSessionsReply(rows, len(rows), more)


def listed(snapshot: Snapshot, asked: Asked[api.ListSearchesRequest]) -> api.ListSearchesReply:
    """Return a page of the agent's searches, the last one first, with those memories that it may still read.

    Raises InvalidRequest for a cursor that no page has returned.
    """
    wanted = asked.request
    below, earlier = _cursor(snapshot, asked)
    found = snapshot.rows(
        _LIST,
        {
            "agent_id": asked.caller.agent_id,
            "session": wanted.session,
            "project": wanted.project,
            "kind": wanted.kind,
            "number": wanted.number,
            "no_hits": None if wanted.no_hits is None else int(wanted.no_hits),
            "checks": None if wanted.checks is None else int(wanted.checks),
            "since": wanted.since,
            "below": below,
            "earlier": earlier,
            "limit": wanted.limit,
        },
    )
    searches = _searches(snapshot, asked.caller.read, found)
    more = f"{searches[-1].at} {searches[-1].id}" if len(searches) == wanted.limit else None
    return api.ListSearchesReply(searches=searches, count=len(searches), next=more)


def _cursor(snapshot: Snapshot, asked: Asked[api.ListSearchesRequest]) -> tuple[int | None, str | None]:
    """Return the number below which, and the time before which, the page begins.

    The time if the search of the cursor was deleted meanwhile. Raises InvalidRequest for what is no cursor.
    """
    before = asked.request.before
    if before is None:
        return None, None
    at, _, id_ = before.partition(" ")
    row = snapshot.one(_PLACE, {"id": id_ or at, "agent_id": asked.caller.agent_id})
    if row is not None:
        return row[0], None
    moment = epoch_ms(at) if id_ else None
    if moment is None:
        raise InvalidRequest("before must be the `next` of a page", field="before")
    return None, iso(moment)


def first_since(snapshot: Snapshot, since: str) -> int | None:
    """Return the number from which on all searches since ``since`` are; None if there is none.

    Numbers go up with time, but within a batch that was stored at once.
    """
    first: int | None = snapshot.value(_FIRST, {"since": since, "batch": api.MAX_SEARCHES})
    return first


def newest(snapshot: Snapshot, agent_id: str, first: int, limit: int) -> tuple[int, bool]:
    """Return the number from which on the agent's newest ``limit`` searches are, and whether these are all.

    ``first``: the number from which on they are counted. Only the index is read.
    """
    beyond = snapshot.value(_BEYOND, {"agent_id": agent_id, "first": first, "limit": limit})
    return (first, True) if beyond is None else (beyond + 1, False)


def numbered(
    snapshot: Snapshot, read: ReadScope, seqs: Collection[int], *, is_counted: bool = True
) -> dict[int, api.SearchRow]:
    """Return searches by their ``seq``. ``is_counted``: a prompt has its number, for which those before it are read."""
    found = snapshot.rows(
        f"{_ROW if is_counted else _UNCOUNTED} s.seq IN ({snapshot.dialect.members('seqs')})",
        {"seqs": snapshot.dialect.listed(sorted(seqs))},
    )
    return dict(zip((row[0] for row in found), _searches(snapshot, read, found), strict=True))


def last_prompts(snapshot: Snapshot, asked: api.FindLastPrompts) -> api.LastPrompts:
    """Return the last prompt, the last one of the period that was given something, and when programs were heard."""
    agent_id, since = asked.read.agent_id, asked.since
    own = {"agent_id": agent_id, "first": newest(snapshot, agent_id, 0, api.MAX_READ)[0]}
    seqs = [snapshot.value(_LAST_PROMPT, own), snapshot.value(_LAST_GIVEN, own | {"since": since})]
    rows = numbered(snapshot, asked.read, {seq for seq in seqs if seq is not None})
    last, last_given = map(rows.get, seqs)
    heard = {name: snapshot.value(_LAST_HEARD, own | {"harness": name}) for name in asked.harnesses}
    return api.LastPrompts(last=last, last_given=last_given, heard={k: at for k, at in heard.items() if at is not None})


def _searches(snapshot: Snapshot, read: ReadScope, found: Sequence[tuple[Any, ...]]) -> list[api.SearchRow]:
    memories = _memories(snapshot, read, [row[0] for row in found])
    return [_search(row, memories[row[0]]) for row in found]


def _memories(snapshot: Snapshot, read: ReadScope, seqs: list[int]) -> dict[int, list[SearchMemory]]:
    members = snapshot.dialect.members("seqs")
    bound = {"seqs": snapshot.dialect.listed(seqs), "chars": api.CONTENT_CHARS}
    where, bindings = conjunction((f"r.search_seq IN ({members})", bound), readable_in_any_scope(snapshot, read))
    found = snapshot.rows(_ROWS.format(where), bindings)
    former = _former(snapshot, {(row[1], row[2], row[9]) for row in found if row[2] != row[7] and not row[8]})
    by_search: dict[int, list[SearchMemory]] = defaultdict(list)
    for row in found:
        by_search[row[0]].append(_described(former.get((row[1], row[2])), *row[1:9]))
    return by_search


def _former(snapshot: Snapshot, wanted: set[tuple[str, int, int]]) -> dict[tuple[str, int], str]:
    """Return the words of memories by id and former version, as far as the history has them.

    ``wanted``: id, former version, present version. The oldest events are purged first, so that the last events are
    those of the last versions; the first of them that changed the words replaced those of the former version.
    """
    if not wanted:
        return {}
    ids = snapshot.dialect.listed(sorted({memory_id for memory_id, _, _ in wanted}))
    events: dict[str, list[tuple[int, int | None]]] = defaultdict(list)
    for memory_id, seq, changed in snapshot.rows(_CHANGES.format(snapshot.dialect.members("ids")), {"ids": ids}):
        events[memory_id].append((seq, changed))
    edits = {}
    for memory_id, version, present in wanted:
        if 0 < present - version <= len(events[memory_id]):
            later = events[memory_id][version - present :]
            edits[memory_id, version] = next((seq for seq, changed in later if changed), None)
    bound = {"seqs": snapshot.dialect.listed(sorted({seq for seq in edits.values() if seq is not None}))}
    sql = _FORMER.format(snapshot.dialect.members("seqs"))
    texts = dict(snapshot.rows(sql, {**bound, "chars": api.CONTENT_CHARS}))
    return {each: texts[seq] for each, seq in edits.items() if seq is not None}


def _described(
    former: str | None,
    memory_id: str,
    version: int,
    relevance: float | None,
    outcome: str,
    type_: str,
    content: str | None,
    now: int,
    is_deleted: int,
) -> SearchMemory:
    return SearchMemory(
        id=memory_id,
        version=version,
        relevance=relevance,
        given=outcome in GIVEN,
        outcome=outcome,
        why=WORDS.get(outcome, outcome),
        type=type_,
        content=content,
        content_then=former,
        changed=now != version,
        forgotten=bool(is_deleted),
    )


def described(snapshot: Snapshot, asked: api.DescribeMemories) -> api.DescribedMemories:
    """Return the readable ones of the memories."""
    bound = {"seqs": snapshot.dialect.listed([each.seq for each in asked.memories]), "chars": api.CONTENT_CHARS}
    members = snapshot.dialect.members("seqs")
    where, bindings = conjunction((f"m.seq IN ({members})", bound), readable_in_any_scope(snapshot, asked.read))
    rows = {seq: (memory_id, row) for seq, memory_id, *row in snapshot.rows(_MEMORIES.format(where), bindings)}
    return api.DescribedMemories(
        [
            _described(None, rows[each.seq][0], each.version, each.relevance, each.outcome, *rows[each.seq][1])
            for each in asked.memories
            if each.seq in rows
        ]
    )


def received_before(snapshot: Snapshot, asked: api.FindReceived) -> api.ReceivedBefore:
    """Return what the session had received before a search of its own, in the epoch of that search.

    What it received otherwise, such as the summary of a compaction, it had from the beginning of the epoch on.
    """
    own = {"session_key": asked.session_key, "agent_id": asked.agent_id}
    row = snapshot.one(_FIND, {**own, "id": asked.id})
    if row is None:
        return api.ReceivedBefore(found=False)
    epoch = {**own, "epoch": row[1]}
    received, facts, later = {}, set(), set()
    for search, memory_id, seq, version, outcome in snapshot.rows(_GIVEN, epoch):
        if search >= row[0]:
            later.add(memory_id)
        elif outcome == "fact":
            facts.add(memory_id)
        else:
            received[memory_id] = (seq, version)
    for memory_id, seq, version in snapshot.rows(_RECEIVED, epoch):
        if memory_id not in later:
            received.setdefault(memory_id, (seq, version))
    told: dict[str, list[str]] = defaultdict(list)
    bound = {"ids": snapshot.dialect.listed(sorted(facts)), "agent_id": asked.agent_id}
    for memory_id, content in snapshot.rows(_FACTS.format(snapshot.dialect.members("ids")), bound):
        told[memory_id].append(content)
    has_started = snapshot.one(_STARTED, {**epoch, "seq": row[0]}) is not None
    return api.ReceivedBefore(found=True, epoch=row[1], received=received, facts=told, has_started=has_started)


def _search(row: tuple[Any, ...], memories: list[SearchMemory]) -> api.SearchRow:
    _, id_, at, kind, session, epoch, project, harness, prompt, skipped, given, characters, ms, number = row
    had_what_fits = any(one.outcome == "received" and (one.relevance or 0) >= LIKELY for one in memories)
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
        outcome=outcome_of(given, skipped, had_what_fits=had_what_fits),
        given=given,
        characters=characters,
        ms=ms,
        memories=memories,
    )


READS: Final = {
    api.LIST: listed,
    api.DescribeMemories: described,
    api.FindReceived: received_before,
    api.FindSessions: sessions,
    api.FindLastPrompts: last_prompts,
}
