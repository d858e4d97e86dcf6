"""Store the turns of a session that are new, forget a transcript, and purge old ones.

A turn that is stored is known by its key, so a repeated capture adds nothing, whenever it comes.

Source: memory-pipeline.txt "Lossless Session Transcripts"; docs/decisions.md 3, 26.
"""

from __future__ import annotations

from typing import Final

from signet_actors.domain.permissions import AUTONOMOUS_ACTOR_TYPES
from signet_actors.errors import ErrorCode, SignetError
from signet_actors.protocol.transcripts import (
    CapturedTurn,
    ForgetTranscript,
    StoreTurns,
    TranscriptForgotten,
    TranscriptStored,
)
from signet_actors.store.writes import transcripts as rows
from signet_actors.store.writes.transcripts import LastTurn, TranscriptRow, TurnRow
from signet_actors.writer.byte_budget import ByteBudget
from signet_actors.writer.command_context import CommandContext

_ERASED_AT_ONCE: Final = 1000
"""Turns that one commit erases; short ones, as long ones use up the budget of bytes first."""


def store(context: CommandContext, command: StoreTurns) -> TranscriptStored:
    """Append the turns that are not stored yet, in their order."""
    tx, at = context.tx, command.captured_at or context.now
    found = rows.find(tx, command.agent_id, command.session_key)
    if found is not None and found.forgotten_at is not None:
        return TranscriptStored(added=0, forgotten=True)
    transcript = None if found is None else found.seq
    turns = [turn for turn in command.turns if transcript is None or not rows.has_turn(tx, transcript, turn.key)]
    if not turns:
        return TranscriptStored(added=0)
    if transcript is None:
        transcript = rows.insert(
            tx,
            TranscriptRow(
                command.session_key,
                command.agent_id,
                command.harness,
                command.project,
                command.format,
                at,
                at,
            ),
        )
    added = len(turns)
    last = rows.last_turn(tx, transcript)
    if last is not None and _is_longer_form(turns[0], last, command):
        rows.extend_turn(tx, last.seq, key=turns[0].key, content=turns[0].content, cjk=turns[0].cjk)
        del turns[0]
    rows.insert_turns(
        tx,
        [
            TurnRow(
                transcript,
                turn.key,
                turn.role,
                turn.content,
                turn.cjk,
                int(turn.continues),
                turn.said_at,
                at,
            )
            for turn in turns
        ],
    )
    rows.update(tx, transcript, now=context.now, form=command.format, harness=command.harness, project=command.project)
    return TranscriptStored(added=added)


def _is_longer_form(turn: CapturedTurn, last: LastTurn, command: StoreTurns) -> bool:
    """Return whether ``turn`` is what became of the ``last`` stored turn, which the capture does not contain."""
    return (
        (last.role, last.said_at, last.continues) == (turn.role, turn.said_at, int(turn.continues))
        and turn.content.startswith(last.content)
        and last.turn_key != command.previous
        and all(each.key != last.turn_key for each in command.turns)
    )


def forget(context: CommandContext, command: ForgetTranscript) -> TranscriptForgotten:
    """Erase turns within the budget of a commit, and mark the transcript. Raises SignetError for an autonomous actor.

    Source: docs/decisions.md 38.
    """
    if command.principal.actor_type in AUTONOMOUS_ACTOR_TYPES:
        raise SignetError("Autonomous agents cannot erase a transcript", code=ErrorCode.FORBIDDEN)
    found = rows.find(context.tx, command.agent_id, command.session_key)
    if found is None:
        return TranscriptForgotten(turns=0, more=False, found=False)
    erased, more = _erase(context, found.seq, ByteBudget())
    if found.forgotten_at is None:
        rows.mark_forgotten(context.tx, found.seq, context.now)
    return TranscriptForgotten(turns=erased, more=more)


def purge(context: CommandContext, cutoff: str, limit: int) -> tuple[int, bool]:
    """Delete transcripts to which nothing was added since the cutoff, and what an interrupted forget left.

    Return the number of transcripts, and whether more are left.
    """
    budget = ByteBudget()
    for transcript in rows.half_forgotten(context.tx, limit):
        if _erase(context, transcript, budget)[1]:
            return 0, True
    expired = rows.updated_before(context.tx, cutoff, limit)
    for count, transcript in enumerate(expired):
        context.heartbeat()
        if budget.used_up:
            return count, True
        _, more = _erase(context, transcript, budget)
        if more:
            return count, True
        rows.delete(context.tx, transcript)
    return len(expired), len(expired) >= limit


def _erase(context: CommandContext, transcript: int, budget: ByteBudget) -> tuple[int, bool]:
    """Delete the transcript's turns as far as the budget goes; return their number, and whether some are left."""
    sizes = rows.turn_sizes(context.tx, transcript, _ERASED_AT_ONCE)
    erased = []
    for seq, size in sizes:
        if budget.used_up:
            break
        erased.append(seq)
        budget.spend_indexed(size)
    rows.delete_turns(context.tx, erased)
    return len(erased), len(erased) < len(sizes) or len(sizes) == _ERASED_AT_ONCE
