"""Statements about ended sessions and ``session_summaries``. Source: architecture.txt "summary_jobs"."""

from __future__ import annotations

from typing import Final, NamedTuple

from signet_actors.store.engine import WriteTransaction


class SummaryRow(NamedTuple):
    """A new row of ``session_summaries``, without the name of its note."""

    memory_id: str
    session_key: str
    agent_id: str
    harness: str | None
    earliest_at: str
    latest_at: str
    created_at: str


class SummarizedTranscript(NamedTuple):
    """What of a transcript a summary takes over."""

    seq: int
    harness: str | None
    project: str | None
    visibility: str


class TurnLength(NamedTuple):
    """A stored row of a turn without its text."""

    seq: int
    role: str
    chars: int


class SilentSession(NamedTuple):
    """A session of which nothing was heard lately; ``has_unseen``: turns that no job has seen (0 or 1)."""

    seq: int
    session_key: str
    agent_id: str
    harness: str | None
    open_at: str
    has_unseen: int


class NoteRow(NamedTuple):
    """A summary with a file; ``forgotten`` if its memory or its transcript was."""

    memory_id: str
    note: str
    digest: str | None
    forgotten: int


_ROWS_AT_ONCE: Final = 500
_BEGINNING_ROWS: Final = 40
_THROUGH: Final = "SELECT t.summarized_through FROM session_transcripts t WHERE t.seq = :seq"
_OPEN: Final = (
    "UPDATE session_transcripts SET open_at = :at WHERE seq = :seq"
    " AND (ended_at IS NULL OR ended_at < :at) AND (open_at IS NULL OR open_at < :at)"
)
_END: Final = (
    "UPDATE session_transcripts SET ended_at = coalesce(:ended_at, ended_at), end_reason = :reason,"
    " open_at = CASE WHEN open_at > :through THEN open_at END WHERE seq = :seq"
)
_GOES_ON: Final = (
    "SELECT 1 FROM session_transcripts t WHERE t.seq = :seq AND (t.ended_at IS NULL OR t.open_at IS NOT NULL)"
)
_SILENT: Final = (
    "SELECT t.seq, t.session_key, t.agent_id, t.harness, t.open_at, CASE WHEN EXISTS (SELECT 1 FROM session_turns u"
    " WHERE u.transcript_seq = t.seq AND u.seq > coalesce(t.summarized_through, 0)) THEN 1 ELSE 0 END"
    " FROM session_transcripts t WHERE t.open_at < :since AND t.forgotten_at IS NULL AND NOT EXISTS"
    " (SELECT 1 FROM session_contexts c WHERE c.session_key = t.session_key AND c.agent_id = t.agent_id"
    " AND c.last_active_at >= :since) ORDER BY t.open_at LIMIT :limit"
)
_REQUESTED: Final = "UPDATE session_transcripts SET summarized_through = :through WHERE seq = :seq"
_LENGTHS: Final = (
    "SELECT u.seq, u.role, length(u.content) FROM session_turns u"
    f" WHERE u.transcript_seq = :transcript AND u.seq > :after ORDER BY u.seq LIMIT {_ROWS_AT_ONCE}"
)
_BEGINNING: Final = (
    "SELECT substr(u.content, 1, :chars) FROM session_turns u"
    f" WHERE u.transcript_seq = :transcript AND u.seq > :after ORDER BY u.seq LIMIT {_BEGINNING_ROWS}"
)
_ENDED: Final = (
    "SELECT t.seq FROM session_transcripts t WHERE t.agent_id = :agent_id AND t.ended_at IS NOT NULL"
    " AND t.seq <> :transcript AND t.forgotten_at IS NULL ORDER BY t.ended_at DESC LIMIT :limit"
)
_TRANSCRIPT: Final = (
    "SELECT t.seq, t.harness, t.project, t.visibility FROM session_transcripts t"
    " WHERE t.agent_id = :agent_id AND t.session_key = :session_key AND t.forgotten_at IS NULL"
)
_SPAN: Final = (
    "SELECT min(coalesce(u.said_at, u.created_at)), max(coalesce(u.said_at, u.created_at)) FROM session_turns u"
    " WHERE u.transcript_seq = :transcript AND u.seq > :after AND u.seq <= :through"
)
_ADD: Final = (
    f"INSERT INTO session_summaries ({', '.join(SummaryRow._fields)})"
    f" VALUES ({', '.join(f':{name}' for name in SummaryRow._fields)}) ON CONFLICT (memory_id) DO NOTHING"
)
_SET_NOTE: Final = "UPDATE session_summaries SET note = :note, note_digest = :digest WHERE memory_id = :memory_id"
_FORGET: Final = "DELETE FROM session_summaries WHERE memory_id = :memory_id AND note IS NULL"
_NOTES: Final = (
    "SELECT s.memory_id, s.note, s.note_digest, CASE WHEN m.is_deleted = 0 AND NOT EXISTS"
    " (SELECT 1 FROM session_transcripts t WHERE t.agent_id = s.agent_id AND t.session_key = s.session_key"
    " AND t.forgotten_at IS NOT NULL) THEN 0 ELSE 1 END"
    " FROM session_summaries s LEFT JOIN memories m ON m.id = s.memory_id"
    " WHERE s.memory_id > :after AND s.note IS NOT NULL ORDER BY s.memory_id LIMIT :limit"
)
_DROP_NOTE: Final = "UPDATE session_summaries SET note = NULL, note_digest = NULL WHERE memory_id = :memory_id"
_FORGET_ERASED: Final = (
    "DELETE FROM session_summaries WHERE memory_id = :memory_id"
    " AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.id = :memory_id)"
)


def requested_through(tx: WriteTransaction, transcript: int) -> int:
    """Return the last row of turns for which a summary was requested, 0 if none was."""
    return tx.value(_THROUGH, {"seq": transcript}) or 0


def mark_open(tx: WriteTransaction, transcript: int, at: str) -> None:
    """Note that the session goes on, unless something later is known of it."""
    tx.execute(_OPEN, {"seq": transcript, "at": at})


def mark_ended(
    tx: WriteTransaction, transcript: int, ended_at: str | None, through: str, *, reason: str | None = None
) -> None:
    """Note the end of the session; one that was heard of after ``through`` stays open. ``ended_at`` None: no end."""
    tx.execute(_END, {"seq": transcript, "ended_at": ended_at, "through": through, "reason": reason})


def goes_on(tx: WriteTransaction, transcript: int) -> bool:
    """Return whether the session has not ended yet, or goes on after an end."""
    return tx.one(_GOES_ON, {"seq": transcript}) is not None


def silent_since(tx: WriteTransaction, since: str, limit: int) -> list[SilentSession]:
    """Return the open sessions of which nothing was heard at ``since`` or later, the longest silent ones first."""
    return [SilentSession(*row) for row in tx.rows(_SILENT, {"since": since, "limit": limit})]


def mark_requested(tx: WriteTransaction, transcript: int, through: int) -> None:
    """Note that a summary of the turns up to ``through`` was requested."""
    tx.execute(_REQUESTED, {"seq": transcript, "through": through})


def turn_lengths(tx: WriteTransaction, transcript: int, after: int) -> list[TurnLength]:
    """Return the next rows of turns after ``after``, in order; empty after the last one."""
    return [TurnLength(*row) for row in tx.rows(_LENGTHS, {"transcript": transcript, "after": after})]


def beginning(tx: WriteTransaction, transcript: int, after: int, chars: int) -> str:
    """Return at most ``chars`` characters of the turns after ``after``, of the first few rows."""
    rows = tx.rows(_BEGINNING, {"transcript": transcript, "after": after, "chars": chars})
    return "\n".join(content for (content,) in rows)[:chars]


def other_ended(tx: WriteTransaction, agent_id: str, transcript: int, limit: int) -> list[int]:
    """Return the transcripts of the agent's other sessions that ended last."""
    rows = tx.rows(_ENDED, {"agent_id": agent_id, "transcript": transcript, "limit": limit})
    return [seq for (seq,) in rows]


def transcript_of(tx: WriteTransaction, agent_id: str, session_key: str) -> SummarizedTranscript | None:
    """Return the transcript of the agent's session, None if there is none or it was forgotten."""
    row = tx.one(_TRANSCRIPT, {"agent_id": agent_id, "session_key": session_key})
    return None if row is None else SummarizedTranscript(*row)


def span(tx: WriteTransaction, transcript: int, after: int, through: int) -> tuple[str, str] | None:
    """Return when the conversation between these rows began and ended, None if there is none."""
    row = tx.one(_SPAN, {"transcript": transcript, "after": after, "through": through})
    return None if row is None or row[0] is None else (row[0], row[1])


def add(tx: WriteTransaction, row: SummaryRow) -> None:
    """Note that the memory is a summary; one that is noted already stays as it is."""
    tx.execute(_ADD, row._asdict())


def set_note(tx: WriteTransaction, memory_id: str, note: str, digest: str) -> None:
    """Note the name of the file with the summary, and the digest of its content."""
    tx.execute(_SET_NOTE, {"memory_id": memory_id, "note": note, "digest": digest})


def notes(tx: WriteTransaction, after: str, limit: int) -> list[NoteRow]:
    """Return the next summaries that have a file, in the order of their ids."""
    return [NoteRow(*row) for row in tx.rows(_NOTES, {"after": after, "limit": limit})]


def drop_note(tx: WriteTransaction, memory_id: str) -> None:
    """Forget the name of the file, and all about the summary if its memory was erased."""
    tx.execute(_DROP_NOTE, {"memory_id": memory_id})
    tx.execute(_FORGET_ERASED, {"memory_id": memory_id})


def forget(tx: WriteTransaction, memory_id: str) -> None:
    """Delete what is noted about the memory as a summary; that of one with a file stays until ``drop_note``."""
    tx.execute(_FORGET, {"memory_id": memory_id})
