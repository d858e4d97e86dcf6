"""Store searches, and erase what they know of a memory or a session. Source: docs/guides/hooks.md."""

from __future__ import annotations

from typing import Any, Final

from signet_actors.features.searches.api import MAX_SEARCHES, RecordSearches, SearchesRecorded
from signet_actors.store.command_context import CommandContext
from signet_actors.store.engine import Insert, WriteTransaction

_COLUMNS: Final = (
    *("id", "created_at", "kind", "agent_id", "session_key", "context_epoch", "project", "harness", "prompt"),
    *("skipped", "given", "characters", "duration_ms", "answered"),
)
_SEARCHES: Final = Insert("searches", _COLUMNS, "ON CONFLICT (id) DO NOTHING")
_ROWS: Final = Insert("search_rows", ("search_seq", "place", "memory_id", "content_version", "relevance", "outcome"))
_STORED: Final = "SELECT s.id FROM searches s WHERE s.id IN ({})"
_SEQS: Final = "SELECT s.id, s.seq FROM searches s WHERE s.id IN ({})"
_IDS: Final = "SELECT m.seq, m.id FROM memories m WHERE m.seq IN ({})"
_IS_ERASED: Final = (
    "SELECT 1 FROM session_transcripts t WHERE t.agent_id = :agent_id AND t.session_key = :session_key"
    " AND t.forgotten_at IS NOT NULL"
)
_FORGET_WORDS: Final = (
    "UPDATE searches SET prompt = NULL WHERE prompt IS NOT NULL"
    " AND seq IN (SELECT r.search_seq FROM search_rows r WHERE r.memory_id = :memory_id)"
)
_FORGET_ROWS: Final = "DELETE FROM search_rows WHERE memory_id = :memory_id"
_FORGET_SESSION: Final = (
    "UPDATE searches SET prompt = NULL WHERE session_key = :session_key AND agent_id = :agent_id AND prompt IS NOT NULL"
)
_OF_TRANSCRIPT: Final = "SELECT t.session_key, t.agent_id FROM session_transcripts t WHERE t.seq = :seq"
_WITH_SIZE: Final = "SELECT s.seq, 1 + (SELECT count(*) FROM search_rows r WHERE r.search_seq = s.seq) FROM searches s"
_OLD: Final = f"{_WITH_SIZE} WHERE s.created_at < :cutoff ORDER BY s.created_at LIMIT :limit"
_OLDEST: Final = f"{_WITH_SIZE} ORDER BY s.seq LIMIT :limit"
_FIRST: Final = "SELECT min(s.seq) FROM searches s"
_LAST: Final = "SELECT max(s.seq) FROM searches s"
_COUNT: Final = "SELECT count(*) FROM searches"
_DELETE: Final = "DELETE FROM searches WHERE seq IN ({})"


def record(context: CommandContext, command: RecordSearches) -> SearchesRecorded:
    """Store each search that is not stored yet.

    A memory that was erased meanwhile is left out, and so are the words of a search that considered it, or of a session
    whose transcript was erased.
    """
    tx = context.tx
    wanted = {search.id: search for search in command.searches[:MAX_SEARCHES]}
    for (known,) in _selected(tx, _STORED, list(wanted)):
        del wanted[known]
    if not wanted:
        return SearchesRecorded()
    numbers = {each.seq for search in wanted.values() for each in search.memories}
    ids = dict(_selected(tx, _IDS, list(numbers))) if numbers else {}
    erased: dict[tuple[str, str], bool] = {}
    values: list[Any] = []
    for search in wanted.values():
        prompt = search.prompt if all(each.seq in ids for each in search.memories) else None
        if prompt is not None and search.session_key is not None:
            at = search.session_key, search.agent_id
            if at not in erased:
                erased[at] = tx.one(_IS_ERASED, {"session_key": at[0], "agent_id": at[1]}) is not None
            prompt = None if erased[at] else prompt
        values += (search.id, search.created_at, search.kind, search.agent_id, search.session_key)
        values += (search.context_epoch, search.project, search.harness, prompt, search.skipped)
        values += (search.given, search.characters, search.duration_ms, search.answered)
    tx.insert(_SEARCHES, values)
    seqs = dict(_selected(tx, _SEQS, list(wanted)))
    rows = [
        value
        for search in wanted.values()
        for place, each in enumerate((one for one in search.memories if one.seq in ids), 1)
        for value in (seqs[search.id], place, ids[each.seq], each.version, each.relevance, each.outcome)
    ]
    tx.insert(_ROWS, rows)
    return SearchesRecorded()


def _selected(tx: WriteTransaction, sql: str, values: list[str] | list[int]) -> list[tuple[Any, ...]]:
    return tx.rows(sql.format(tx.dialect.members("values")), {"values": tx.dialect.listed(values)})


def forget(tx: WriteTransaction, memory_id: str) -> None:
    """Delete the rows about the memory, and the words of the searches that considered it: they may be its words."""
    tx.execute(_FORGET_WORDS, {"memory_id": memory_id})
    tx.execute(_FORGET_ROWS, {"memory_id": memory_id})


def forget_session(tx: WriteTransaction, session_key: str, agent_id: str) -> bool:
    """Delete the words of what the session asked; return whether there were any."""
    tx.execute(_FORGET_SESSION, {"session_key": session_key, "agent_id": agent_id})
    return tx.changes() > 0


def forget_transcript(tx: WriteTransaction, seq: int) -> None:
    """Delete the words of what the session of the transcript asked."""
    for session_key, agent_id in tx.rows(_OF_TRANSCRIPT, {"seq": seq}):
        forget_session(tx, session_key, agent_id)


def purge(tx: WriteTransaction, cutoff: str, most: int, limit: int) -> tuple[int, bool]:
    """Delete searches from before the cutoff; where there is none, the oldest beyond ``most``.

    Return their number and whether some may be left. At most ``limit`` rows are deleted, of which a search has one and
    one for each of its memories; but one search, however many it has.
    """
    old = tx.rows(_OLD, {"cutoff": cutoff, "limit": limit})
    found = old
    if not old and limit and (beyond := _beyond(tx, most)):
        found = tx.rows(_OLDEST, {"limit": min(limit, beyond)})
    seqs: list[int] = []
    rows = 0
    for seq, size in found:
        rows += size
        if seqs and rows > limit:
            break
        seqs.append(seq)
    if seqs:
        tx.execute(_DELETE.format(tx.dialect.members("seqs")), {"seqs": tx.dialect.listed(seqs)})
    return len(seqs), bool(old) or len(seqs) < len(found)


def _beyond(tx: WriteTransaction, most: int) -> int:
    """Return how many there are beyond ``most``; they are counted only if their numbers span more."""
    span = (tx.value(_LAST) or 0) - (tx.value(_FIRST) or 0) + 1
    return max(0, tx.value(_COUNT) - most) if span > most else 0


WRITES: Final = {RecordSearches: record}
