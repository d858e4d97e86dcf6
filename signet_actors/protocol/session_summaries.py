"""Messages about summaries of sessions: reports of the worker and of retention to the writer.

Source: architecture.txt "summary_jobs"; docs/compatibility.md "Summaries of sessions".
"""

from __future__ import annotations

import msgspec

from signet_actors.protocol.message import Message, Request
from signet_actors.protocol.pipeline import JobMemory


class SummaryStored(Message, frozen=True, tag="writer.summary_stored"):
    """The memory that holds the summary is on disk, and the job goes on with it.

    None if the transcript was forgotten meanwhile; then the job is completed.
    """

    memory: JobMemory | None


class StoreSummary(Request[SummaryStored], frozen=True, tag="writer.store_summary"):
    """Store the summary of the session that the job is about, as a memory of its agent and project."""

    job_id: str
    lease_id: str
    content: str
    harness: str | None = None


class NoteWritten(Message, frozen=True, tag="writer.note_written"):
    """The job is completed."""


class RecordNote(Request[NoteWritten], frozen=True, tag="writer.record_note"):
    """Record the name of the file with the summary and the SHA-256 of its content, and complete the job."""

    job_id: str
    lease_id: str
    note: str
    digest: str


class ForgottenNote(msgspec.Struct, frozen=True, array_like=True):
    """The file of a forgotten summary; ``digest`` is None if an earlier release wrote it."""

    memory_id: str
    note: str
    digest: str | None


class NotesFound(Message, frozen=True, tag="writer.notes_found"):
    """Files of forgotten summaries; ``next`` is where to go on, None after the last summary."""

    notes: list[ForgottenNote]
    next: str | None


class FindForgottenNotes(Request[NotesFound], frozen=True, tag="writer.find_forgotten_notes"):
    """Look at the next ``limit`` summaries with a file: return those whose memory or transcript was forgotten."""

    after: str = ""
    limit: int = 500


class NotesDropped(Message, frozen=True, tag="writer.notes_dropped"):
    """No summary names these files any more."""


class DropNotes(Request[NotesDropped], frozen=True, tag="writer.drop_notes"):
    """Forget the names of the files of these summaries: they were deleted, or belong to the user now."""

    memory_ids: tuple[str, ...]


class IdleSession(msgspec.Struct, frozen=True, array_like=True):
    """A session that fell silent, and the job that summarizes it, None if what it said is not worth one."""

    session_key: str
    job_id: str | None


class IdleSessionsEnded(Message, frozen=True, tag="writer.idle_sessions_ended"):
    """These sessions have ended with the reason ``idle``; ``more``: others wait."""

    sessions: list[IdleSession]
    more: bool


class EndIdleSessions(Request[IdleSessionsEnded], frozen=True, tag="writer.end_idle_sessions"):
    """End sessions of which nothing was heard at or after ``since`` and that have turns which no job has seen."""

    since: str
    limit: int = 50


SummaryCommand = StoreSummary | RecordNote | FindForgottenNotes | DropNotes | EndIdleSessions
