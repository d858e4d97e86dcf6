"""Statements about transcripts of sessions and their turns; triggers of the schema keep the text index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from signet_actors.store.engine import Insert, WriteTransaction


class TranscriptRow(NamedTuple):
    """A new row of ``session_transcripts``."""

    session_key: str
    agent_id: str
    harness: str | None
    project: str | None
    format: str
    created_at: str
    updated_at: str


class TurnRow(NamedTuple):
    """A new row of ``session_turns``."""

    transcript_seq: int
    turn_key: bytes
    role: str
    content: str
    cjk: str | None
    continues: int
    said_at: str | None
    created_at: str
    name: bytes | None = None
    copy_of: int | None = None


class KeyedTurn(NamedTuple):
    """A stored turn with its key."""

    seq: int
    turn_key: bytes
    role: str
    content: str
    continues: int
    said_at: str | None


class ErasedTurn(NamedTuple):
    """What a copy of a turn is known by."""

    role: str
    content: str
    said_at: str | None
    name: bytes | None


class Transcript(NamedTuple):
    """A transcript as it is stored."""

    seq: int
    forgotten_at: str | None


_TRANSCRIPTS: Final = Insert("session_transcripts", TranscriptRow._fields)
_TURNS: Final = Insert("session_turns", TurnRow._fields)
_OWN: Final = "t.agent_id = :agent_id AND t.session_key = :session_key"
_FIND: Final = f"SELECT t.seq, t.forgotten_at FROM session_transcripts t WHERE {_OWN}"
_UPDATE: Final = (
    "UPDATE session_transcripts SET updated_at = :now, format = :format, harness = coalesce(:harness, harness),"
    " project = coalesce(project, :project) WHERE seq = :seq"
)
_BY_KEY: Final = "SELECT u.seq FROM session_turns u WHERE u.transcript_seq = :transcript AND u.turn_key = :key"
_MOST_NAMESAKES: Final = 64
"""A name is that of one turn and its parts; of one that more rows have, the first are compared."""
_ORIGINAL: Final = (
    "SELECT u.seq FROM (SELECT n.seq, n.transcript_seq, n.role, n.content FROM session_turns n WHERE n.name = :name"
    f" ORDER BY n.seq LIMIT {_MOST_NAMESAKES}) u JOIN session_transcripts t ON t.seq = u.transcript_seq"
    " WHERE u.role = :role AND u.content = :content AND t.agent_id = :agent_id"
    " AND t.session_key <> :session_key AND t.forgotten_at IS NULL ORDER BY u.seq LIMIT 1"
)
_COPIED_THROUGH: Final = (
    "UPDATE session_transcripts SET summarized_through = :through WHERE seq = :transcript"
    " AND coalesce(summarized_through, 0) < :through AND NOT EXISTS (SELECT 1 FROM session_turns u"
    " WHERE u.transcript_seq = :transcript AND u.seq > coalesce(summarized_through, 0) AND u.seq < :through"
    " AND u.copy_of IS NULL)"
)
_FIRST_KEYS: Final = (
    "SELECT u.turn_key FROM session_turns u WHERE u.transcript_seq = :transcript ORDER BY u.seq LIMIT :limit"
)
_TURNS_AT_ONCE: Final = 64
_IN_ORDER: Final = (
    "SELECT u.seq, u.turn_key, u.role, u.content, u.continues, u.said_at FROM session_turns u"
    f" WHERE u.transcript_seq = :transcript AND u.seq > :after ORDER BY u.seq LIMIT {_TURNS_AT_ONCE}"
)
_BEFORE_LAST: Final = (
    "SELECT u.seq FROM session_turns u WHERE u.transcript_seq = :transcript ORDER BY u.seq DESC LIMIT 1 OFFSET :count"
)
_LAST: Final = (
    "SELECT u.seq, u.turn_key, u.role, u.content, u.continues, u.said_at FROM session_turns u"
    " WHERE u.transcript_seq = :transcript ORDER BY u.seq DESC LIMIT 1"
)
_EXTEND: Final = "UPDATE session_turns SET turn_key = :key, content = :content, cjk = :cjk WHERE seq = :seq"
_SIZES: Final = (
    "SELECT u.seq, octet_length(u.content) + coalesce(octet_length(u.cjk), 0) FROM session_turns u"
    " WHERE u.transcript_seq = :transcript ORDER BY u.seq LIMIT :limit"
)
_OWN_TURNS: Final = (
    "SELECT u.role, u.content, u.said_at, u.name FROM session_turns u WHERE u.seq IN ({})"
    " AND NOT EXISTS (SELECT 1 FROM session_turns o WHERE o.seq = u.copy_of)"
)
_DELETE: Final = "DELETE FROM session_turns WHERE seq IN ({})"
_FORGET: Final = (
    "UPDATE session_transcripts SET forgotten_at = :now, updated_at = :now, harness = NULL, project = NULL"
    " WHERE seq = :seq"
)
_EXPIRED: Final = (
    "SELECT t.seq FROM session_transcripts t WHERE t.updated_at < :cutoff ORDER BY t.updated_at LIMIT :limit"
)
_HALF_FORGOTTEN: Final = (
    "SELECT t.seq, t.agent_id FROM session_transcripts t WHERE t.forgotten_at IS NOT NULL"
    " AND EXISTS (SELECT 1 FROM session_turns u WHERE u.transcript_seq = t.seq) ORDER BY t.seq LIMIT :limit"
)
_ERASED_WITH_IT: Final = ("session_checkpoints", "session_scores")
"""The tables whose rows about the session of an agent go when the user erases its transcript."""
_ERASE: Final = tuple(
    f"DELETE FROM {table} WHERE session_key = :session_key AND agent_id = :agent_id" for table in _ERASED_WITH_IT
)
_DELETE_TRANSCRIPT: Final = "DELETE FROM session_transcripts WHERE seq = :seq"


def find(tx: WriteTransaction, agent_id: str, session_key: str) -> Transcript | None:
    """Return the agent's transcript of the session, or None."""
    row = tx.one(_FIND, {"agent_id": agent_id, "session_key": session_key})
    return None if row is None else Transcript(*row)


def insert(tx: WriteTransaction, row: TranscriptRow) -> int:
    """Insert a transcript without turns; return its ``seq``."""
    tx.insert(_TRANSCRIPTS, row)
    found = find(tx, row.agent_id, row.session_key)
    assert found is not None, "the row was inserted in this transaction"
    return found.seq


def update(tx: WriteTransaction, seq: int, *, now: str, form: str, harness: str | None, project: str | None) -> None:
    """Note that turns were added; what the capture does not name stays, and so does the project of the session."""
    tx.execute(_UPDATE, {"seq": seq, "now": now, "format": form, "harness": harness, "project": project})


def turn_seq(tx: WriteTransaction, transcript: int, key: bytes) -> int | None:
    """Return the ``seq`` of the turn, or None if it is not stored."""
    row = tx.one(_BY_KEY, {"transcript": transcript, "key": key})
    return None if row is None else row[0]


def original(
    tx: WriteTransaction, agent_id: str, session_key: str, *, name: bytes, role: str, content: str
) -> int | None:
    """Return the ``seq`` of the same turn in another session of the agent, None if there is none."""
    about = {"agent_id": agent_id, "session_key": session_key, "name": name, "role": role, "content": content}
    row = tx.one(_ORIGINAL, about)
    return None if row is None else row[0]


def skip_copies(tx: WriteTransaction, transcript: int, last: bytes) -> None:
    """Note that the turns up to this one need no summary, if they are copies of those of another session."""
    through = turn_seq(tx, transcript, last)
    if through is not None:
        tx.execute(_COPIED_THROUGH, {"transcript": transcript, "through": through})


def first_keys(tx: WriteTransaction, transcript: int, limit: int) -> list[bytes]:
    """Return the keys of the transcript's first turns."""
    return [key for (key,) in tx.rows(_FIRST_KEYS, {"transcript": transcript, "limit": limit})]


def last_turns(tx: WriteTransaction, transcript: int, count: int) -> Iterator[KeyedTurn]:
    """Yield the last ``count`` turns of the transcript, in their order."""
    before = tx.one(_BEFORE_LAST, {"transcript": transcript, "count": count})
    after = 0 if before is None else before[0]
    while rows := tx.rows(_IN_ORDER, {"transcript": transcript, "after": after}):
        yield from map(KeyedTurn._make, rows)
        after = rows[-1][0]


def last_turn(tx: WriteTransaction, transcript: int) -> KeyedTurn | None:
    """Return the transcript's last turn, or None if it has none."""
    row = tx.one(_LAST, {"transcript": transcript})
    return None if row is None else KeyedTurn(*row)


def insert_turns(tx: WriteTransaction, rows: Sequence[TurnRow]) -> None:
    tx.insert(_TURNS, [value for row in rows for value in row])


def extend_turn(tx: WriteTransaction, seq: int, *, key: bytes, content: str, cjk: str | None) -> None:
    """Replace the text of a turn by a longer one."""
    tx.execute_long(_EXTEND, {"seq": seq, "key": key, "content": content, "cjk": cjk})


def turn_sizes(tx: WriteTransaction, transcript: int, limit: int) -> list[tuple[int, int]]:
    """Return ``(seq, bytes)`` of the transcript's first turns."""
    return [(seq, size) for seq, size in tx.rows(_SIZES, {"transcript": transcript, "limit": limit})]


def own_turns(tx: WriteTransaction, seqs: Iterable[int]) -> list[ErasedTurn]:
    """Return those of the turns that are no copies of stored ones."""
    bindings: dict[str, Any] = {"seqs": tx.dialect.listed(list(seqs))}
    return list(map(ErasedTurn._make, tx.rows(_OWN_TURNS.format(tx.dialect.members("seqs")), bindings)))


def delete_turns(tx: WriteTransaction, seqs: Iterable[int]) -> None:
    """Delete the turns; their text is overwritten."""
    dialect = tx.dialect
    bindings: dict[str, Any] = {"seqs": dialect.listed(list(seqs))}
    tx.execute_long(_DELETE.format(dialect.members("seqs")), bindings)


def mark_forgotten(tx: WriteTransaction, seq: int, now: str) -> None:
    """Keep only the key of a forgotten transcript, so that a later capture stores nothing."""
    tx.execute(_FORGET, {"seq": seq, "now": now})


def erase_others(tx: WriteTransaction, agent_id: str, session_key: str) -> bool:
    """Delete the rows of other tables that go with an erased transcript; return whether there were any."""
    found = 0
    for sql in _ERASE:
        tx.execute(sql, {"agent_id": agent_id, "session_key": session_key})
        found += tx.changes()
    return found > 0


def updated_before(tx: WriteTransaction, cutoff: str, limit: int) -> list[int]:
    """Return the transcripts to which nothing was added since the cutoff, longest unchanged first."""
    return [seq for (seq,) in tx.rows(_EXPIRED, {"cutoff": cutoff, "limit": limit})]


def half_forgotten(tx: WriteTransaction, limit: int) -> list[tuple[int, str]]:
    """Return the forgotten transcripts, with their agents, that still have turns: the forget was interrupted."""
    return [(seq, agent_id) for seq, agent_id in tx.rows(_HALF_FORGOTTEN, {"limit": limit})]


def delete(tx: WriteTransaction, seq: int) -> None:
    """Delete a transcript that has no turns."""
    tx.execute(_DELETE_TRANSCRIPT, {"seq": seq})
