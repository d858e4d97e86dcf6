"""Request the summary of a session, store what the worker reports, and find files of forgotten ones.

A session may end several times, fall silent, or ask for a summary while it goes on. Each requests a summary of the
turns since the last one, once: the transcript notes up to which turn a summary was requested, in the transaction that
stores the turns.

Source: docs/compatibility.md "Summaries of sessions"; architecture.txt "summary_jobs"; docs/decisions.md 3, 35.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import msgspec

from signet_actors.config.schema import Config
from signet_actors.domain import session_summaries as rules
from signet_actors.domain.extraction.gates import PIPELINE_ACTOR, PipelineMode, flags_of, pipeline_mode
from signet_actors.domain.graph.names import MAX_SCANNED_CHARS
from signet_actors.domain.jobs import SCORE_SESSION, SUMMARIZE
from signet_actors.domain.timestamps import epoch_ms, iso
from signet_actors.errors import MutationsFrozen
from signet_actors.features.session_memories import writes as session_memories
from signet_actors.protocol import session_summaries as messages
from signet_actors.protocol.message import Principal
from signet_actors.protocol.transcripts import StoreTurns
from signet_actors.protocol.writer import NewMemory
from signet_actors.store.command_context import CommandContext
from signet_actors.store.writes import jobs as job_rows
from signet_actors.store.writes import leases as lease_rows
from signet_actors.store.writes import session_summaries as rows
from signet_actors.store.writes import transcripts as transcript_rows
from signet_actors.store.writes.session_summaries import SummaryRow
from signet_actors.writer.commands import graph, jobs, leases, memories

SUMMARY_TYPE = "session_summary"
SUMMARY_SOURCE = "session"
SUMMARY_IMPORTANCE = 0.8
SUMMARY_WHO = "system"
MAX_MEASURED = 2_000
"""Rows of turns that are measured. More would take long, and are a significant session anyway."""
IDLE = "idle"
"""The reason of an end that no hook has reported."""
TRANSCRIPT_GONE = '{"skipped":"transcript_gone"}'


def are_wanted(config: Config) -> bool:
    """Return whether ended sessions are summarized: with a model, and where the pipeline may store memories."""
    pipeline = config.memory.pipeline_v2
    return (
        pipeline.summary.enabled
        and pipeline.confirm == "auto"
        and pipeline.extraction.provider != "none"
        and pipeline_mode(flags_of(pipeline)) not in {PipelineMode.OFF, PipelineMode.SHADOW}
    )


def follow(context: CommandContext, transcript: int, captured: StoreTurns) -> str | None:
    """Note that the session goes on or ended; return the id of a new job if it has enough for one."""
    at = captured.captured_at or context.now
    if captured.then in ("goes_on", "extract"):
        rows.mark_open(context.tx, transcript, at)
    else:
        if captured.ended and rows.goes_on(context.tx, transcript):
            session_memories.end_session(context, captured.session_key, captured.agent_id)
        # Programs tell the time of an end in whole seconds, and the session may have been heard of in the same one.
        rows.mark_ended(context.tx, transcript, at if captured.ended else None, iso((epoch_ms(at) or 0) + 999))
    if not (captured.ended or captured.then == "extract"):
        return None
    part = rules.SummaryPart(captured.session_key, captured.agent_id, 0, 0, at, captured.harness)
    return _request(context, transcript, part, is_over=captured.ended)


def end_idle(context: CommandContext, command: messages.EndIdleSessions) -> messages.IdleSessionsEnded:
    """End the sessions that fell silent and have turns that no job has seen; what they say later is another part."""
    found = rows.silent_since(context.tx, command.since, command.limit)
    ended: list[messages.IdleSession] = []
    for each in found:
        if each.has_unseen:
            session_memories.end_session(context, each.session_key, each.agent_id)
        rows.mark_ended(context.tx, each.seq, each.open_at if each.has_unseen else None, each.open_at, reason=IDLE)
        if each.has_unseen:
            part = rules.SummaryPart(each.session_key, each.agent_id, 0, 0, each.open_at, each.harness)
            ended.append(messages.IdleSession(each.session_key, _request(context, each.seq, part, is_over=True)))
    return messages.IdleSessionsEnded(ended, more=len(found) == command.limit)


def _request(context: CommandContext, transcript: int, part: rules.SummaryPart, *, is_over: bool) -> str | None:
    """Return the id of a new job for the turns that none has seen, None if they are not worth it.

    The end of a session is judged by its significance; one that goes on and asks for a summary is not.
    """
    tx = context.tx
    last, after = transcript_rows.last_turn(tx, transcript), rows.requested_through(tx, transcript)
    if last is None or last.seq <= after or not are_wanted(context.config):
        return None
    if not _deserves_summary(context, transcript, after, part.agent_id, is_over=is_over):
        return None
    rows.mark_requested(tx, transcript, last.seq)
    part = msgspec.structs.replace(part, after=after, through=last.seq)
    return jobs.enqueue_new(context, SUMMARIZE, payload=msgspec.json.encode(part).decode())


def _deserves_summary(context: CommandContext, transcript: int, after: int, agent_id: str, *, is_over: bool) -> bool:
    tx, bounds = context.tx, context.config.memory.pipeline_v2.significance
    lengths = list(islice(_lengths(context, transcript, after), MAX_MEASURED))
    if sum(length.chars for length in lengths) < rules.MIN_CHARS:
        return False
    if not is_over:
        return True
    earlier = [
        rows.beginning(tx, other, 0, rules.NOVELTY_CHARS)
        for other in rows.other_ended(tx, agent_id, transcript, rules.COMPARED_SESSIONS)
    ]
    turns = rules.substantive_turns(lengths)
    novelty = rules.novelty(rows.beginning(tx, transcript, after, rules.NOVELTY_CHARS), earlier)
    if rules.is_significant(bounds, turns=turns, entities=0, new_words=novelty):
        return True
    text = rows.beginning(tx, transcript, after, MAX_SCANNED_CHARS)
    entities = graph.known_entities(context, agent_id, text, rules.KNOWN_MENTIONS)
    return rules.is_significant(bounds, turns=turns, entities=entities, new_words=novelty)


def _lengths(context: CommandContext, transcript: int, after: int) -> Iterator[rules.SpokenLength]:
    """Yield the lengths of all rows of turns after ``after``."""
    while page := rows.turn_lengths(context.tx, transcript, after):
        context.heartbeat()
        yield from (rules.SpokenLength(row.role, row.chars) for row in page)
        after = page[-1].seq


def store(context: CommandContext, command: messages.StoreSummary) -> messages.SummaryStored:
    """Store the memory, and make it the subject of the job, which then goes on with the note.

    Raises ``lease_lost``, and ``mutations_frozen`` while no memory may be changed.
    """
    job = leases.active_lease(context, command.job_id, command.lease_id)
    leases.require_kind(job, SUMMARIZE)
    if context.config.memory.pipeline_v2.mutations_frozen:
        raise MutationsFrozen
    tx = context.tx
    part = msgspec.json.decode(lease_rows.payload_of(tx, job.seq), type=rules.SummaryPart)
    transcript = rows.transcript_of(tx, part.agent_id, part.session_key)
    span = None if transcript is None else rows.span(tx, transcript.seq, part.after, part.through)
    if transcript is None or span is None:
        leases.complete_leased(context, job, TRANSCRIPT_GONE)
        return messages.SummaryStored(None)
    harness = part.harness or transcript.harness
    memory = NewMemory(
        content=command.content,
        type=SUMMARY_TYPE,
        importance=SUMMARY_IMPORTANCE,
        tags=("session", "summary", *(() if harness is None else (harness,))),
        who=SUMMARY_WHO,
        project=transcript.project,
        agent_id=part.agent_id,
        visibility=transcript.visibility,
        source_type=SUMMARY_SOURCE,
        source_id=part.session_key,
        idempotency_key=f"summary:{part.through}:{part.session_key}",
        session_bound=True,
        created_at=part.ended_at,
    )
    by = Principal(changed_by=PIPELINE_ACTOR, actor_type="pipeline", session_id=part.session_key)
    stored = memories.remember(context, memory, by)
    rows.add(
        context.tx,
        SummaryRow(stored.id, part.session_key, part.agent_id, harness, span[0], span[1], context.now),
    )
    if job.memory_id is None:
        jobs.enqueue_new(context, SCORE_SESSION, stored.id, msgspec.json.encode(part).decode())
    lease_rows.set_memory(context.tx, job.seq, stored.id)
    return messages.SummaryStored(job_rows.job_memories(context.tx, [stored.id])[stored.id])


def record_note(context: CommandContext, command: messages.RecordNote) -> messages.NoteWritten:
    """Record the file with the summary, and complete the job. Raises ``lease_lost``."""
    job = leases.active_lease(context, command.job_id, command.lease_id)
    leases.require_kind(job, SUMMARIZE)
    if job.memory_id is not None:
        rows.set_note(context.tx, job.memory_id, command.note, command.digest)
    leases.complete_leased(context, job, None)
    return messages.NoteWritten()


def find_forgotten_notes(context: CommandContext, command: messages.FindForgottenNotes) -> messages.NotesFound:
    """Return the files among those of the next summaries that are to be deleted."""
    found = rows.notes(context.tx, command.after, command.limit)
    forgotten = [messages.ForgottenNote(row.memory_id, row.note, row.digest) for row in found if row.forgotten]
    return messages.NotesFound(forgotten, found[-1].memory_id if len(found) == command.limit else None)


def drop_notes(context: CommandContext, command: messages.DropNotes) -> messages.NotesDropped:
    """Forget the names of these files."""
    for memory_id in command.memory_ids:
        rows.drop_note(context.tx, memory_id)
    return messages.NotesDropped()
