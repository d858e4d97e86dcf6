"""Store the turns of a session that are new, forget a transcript, and purge old ones.

What was said while memory was off for a session is never stored, nor a copy of it in another one, nor one of what was
said in a session that was forgotten.

A turn that is stored is known by its key, so a repeated capture adds nothing, whenever it comes. The key counts equal
turns; in a capture of the end of a session, those before it are counted in what is stored.

Source: memory-pipeline.txt "Lossless Session Transcripts"; docs/decisions.md 3, 26.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from signet_actors.domain.permissions import AUTONOMOUS_ACTOR_TYPES
from signet_actors.domain.transcripts.overlap import overlap
from signet_actors.domain.transcripts.turns import turn_basis, turn_key
from signet_actors.errors import ErrorCode, SignetError
from signet_actors.features.searches import writes as searches
from signet_actors.protocol.transcripts import (
    CapturedTurn,
    CapturePosition,
    ForgetTranscript,
    StoreTurns,
    TranscriptForgotten,
    TranscriptStored,
)
from signet_actors.store.command_context import CommandContext
from signet_actors.store.engine import WriteTransaction
from signet_actors.store.writes import memories as memory_rows
from signet_actors.store.writes import sessions as session_rows
from signet_actors.store.writes import transcripts as rows
from signet_actors.store.writes.transcripts import ErasedTurn, KeyedTurn, Transcript, TranscriptRow, TurnRow
from signet_actors.writer.byte_budget import ByteBudget
from signet_actors.writer.commands import session_summaries

_HEARTBEAT_TURNS: Final = 1000
_COMPARED_TURNS: Final = 1000
"""Stored turns that a short capture is compared with, besides twice its own number."""
_TO_MINUTES: Final = len("2026-11-29T04:31")
_TO_SECONDS: Final = len("2026-11-29T04:31:07")
_MARK_BYTES: Final = 16
_ERASED_AT_ONCE: Final = 1000
"""Turns that one commit erases; short ones, as long ones use up the budget of bytes first."""


def store(context: CommandContext, command: StoreTurns) -> TranscriptStored:
    """Append the turns that are not stored yet, in their order, and request a summary if the session ended or asks."""
    turns, is_off, has_copies = _with_memory_on(context, command)
    if is_off:
        return TranscriptStored(added=0, has_copies=has_copies)
    command = msgspec.structs.replace(command, turns=turns)
    found = rows.find(context.tx, command.agent_id, command.session_key)
    if found is not None and found.forgotten_at is not None:
        own = [turn for turn in turns if turn.name is None or _original(context.tx, command, turn.name, turn) is None]
        _leave_out_erased(context.tx, command.agent_id, own)
        return TranscriptStored(added=0, forgotten=True)
    stored = _append(context, command, found) if turns else TranscriptStored(added=0, position=command.previous)
    stored = msgspec.structs.replace(stored, has_copies=has_copies)
    if not (command.ended or command.then):
        return stored
    found = found or rows.find(context.tx, command.agent_id, command.session_key)
    if found is None:
        return stored
    return msgspec.structs.replace(stored, job_id=session_summaries.follow(context, found.seq, command))


def _with_memory_on(context: CommandContext, command: StoreTurns) -> tuple[tuple[CapturedTurn, ...], bool, bool]:
    """Return the turns that were not said while memory was off, whether it is off now, and whether others had copies.

    Those are known in other sessions, too, which begin with copies of them. What has no time was said at that of the
    turn before it; without one it is left out, and so is each summary of what was said before memory was on again, also
    in a session with copies, and the plan of a session that was ever off.
    """
    tx, key = context.tx, command.session_key
    of_plan = session_rows.pauses(tx, command.plan_of) if command.plan_of is not None else []
    stored = rows.find(tx, command.agent_id, key)
    left_out = [_is_left_out(tx, command.agent_id, turn) and not _is_stored(tx, stored, turn) for turn in command.turns]
    copied = [turn.said_at for turn, is_copy in zip(command.turns, left_out, strict=True) if is_copy]
    copied += [turn.said_at for turn in command.turns if of_plan and turn.role == "system"][:1]
    session_rows.check_clock(tx, key, context.now)
    pauses = session_rows.pauses(tx, key)
    if copied and not any(began == ended for began, ended in pauses):
        session_rows.note_copy(tx, key, min(at or context.now for at in copied))
        pauses = session_rows.pauses(tx, key)
    said_at: str | None = None
    kept, marks = [], []
    for turn, is_copy in zip(command.turns, left_out, strict=True):
        said_at = turn.said_at or said_at
        is_within = any(_is_within(said_at, began, ended, is_summary=turn.role == "system") for began, ended in pauses)
        if is_within and not _is_stored(tx, stored, turn):
            marks.append(_mark(turn))
        elif not is_copy:
            kept.append(turn)
    noted = {mark for mark in marks if mark is not None}
    session_rows.leave_out(tx, list(noted))
    is_off = command.is_off or any(ended is None for _, ended in (*pauses, *of_plan))
    return tuple(turn for turn in kept if _mark(turn) not in noted), is_off, bool(copied)


def _is_within(said_at: str | None, began_at: str, ended_at: str | None, *, is_summary: bool) -> bool:
    """Return whether something was said in a pause, or tells of it. Some programs tell the time in whole seconds."""
    if ended_at == began_at and not is_summary:
        return False  # it was another session's
    if said_at is None:
        return True
    exact = len(said_at)
    chars = _TO_MINUTES if said_at.endswith(":00.000Z") else _TO_SECONDS if said_at.endswith(".000Z") else exact
    return said_at[:chars] >= began_at[:chars] and (is_summary or ended_at is None or said_at < ended_at)


def _is_stored(tx: WriteTransaction, transcript: Transcript | None, turn: CapturedTurn) -> bool:
    return transcript is not None and rows.turn_seq(tx, transcript.seq, turn_key(turn.basis, turn.number)) is not None


def _mark(turn: CapturedTurn | ErasedTurn, agent_id: str | None = None) -> bytes | None:
    """Return by what a copy of the turn is known in other sessions, those of the agent if given; None if by nothing.

    Two forks of a session of Codex have different turns of the same name.
    """
    known = turn.name or (turn.said_at or "").encode()
    of_agent = () if agent_id is None else (agent_id.encode(),)
    said = b"\0".join((*of_agent, known, turn.role.encode(), turn.content.encode()))
    return hashlib.sha256(said).digest()[:_MARK_BYTES] if known else None


def _is_left_out(tx: WriteTransaction, agent_id: str, turn: CapturedTurn) -> bool:
    """Return whether the turn was said while memory was off, or in a session that the agent has erased."""
    return session_rows.is_left_out(tx, _mark(turn)) or session_rows.is_left_out(tx, _mark(turn, agent_id))


def _leave_out_erased(tx: WriteTransaction, agent_id: str, turns: Iterable[CapturedTurn | ErasedTurn]) -> None:
    """Have copies of erased turns known, so that no session that begins with them stores them."""
    session_rows.leave_out(tx, [mark for turn in turns if (mark := _mark(turn, agent_id)) is not None])


def _append(context: CommandContext, command: StoreTurns, found: Transcript | None) -> TranscriptStored:
    """Append the turns to the transcript, of which ``found`` is stored."""
    tx, at = context.tx, command.captured_at or context.now
    if found is None:
        transcript, begin = None, 0
    elif command.previous is None:
        transcript, begin = found.seq, _begin(context, found.seq, command.turns)
    else:
        transcript, begin = found.seq, command.previous.begin
    keys = _keys(tx, transcript, command.turns, begin)
    position = CapturePosition(begin, keys[-1])
    turns = [
        (key, turn)
        for key, turn in zip(keys, command.turns, strict=True)
        if transcript is None or rows.turn_seq(tx, transcript, key) is None
    ]
    if not turns:
        return TranscriptStored(added=0, position=position)
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
    not_last = {*keys, *(() if command.previous is None else (command.previous.last_key,))}
    key, first = turns[0]
    if last is not None and last.seq >= begin and last.turn_key not in not_last and _is_longer_form(first, last):
        # The last stored turn is not in the capture, because it grew.
        rows.extend_turn(tx, last.seq, key=key, content=first.content, cjk=first.cjk)
        del turns[0]
    copies = {
        key: original
        for key, turn in turns
        if turn.name is not None and (original := _original(tx, command, turn.name, turn)) is not None
    }
    rows.insert_turns(
        tx,
        [
            TurnRow(
                transcript,
                key,
                turn.role,
                turn.content,
                turn.cjk,
                int(turn.continues),
                turn.said_at,
                at,
                turn.name,
                copies.get(key),
            )
            for key, turn in turns
        ],
    )
    if copies:
        rows.skip_copies(tx, transcript, list(copies)[-1])
    rows.update(tx, transcript, now=context.now, form=command.format, harness=command.harness, project=command.project)
    return TranscriptStored(added=added, position=position)


def _original(tx: WriteTransaction, command: StoreTurns, name: bytes, turn: CapturedTurn) -> int | None:
    """Return the turn of another session of which this one is a copy."""
    return rows.original(tx, command.agent_id, command.session_key, name=name, role=turn.role, content=turn.content)


def _begin(context: CommandContext, transcript: int, turns: tuple[CapturedTurn, ...]) -> int:
    """Return the first stored row that a capture with these first ``turns`` may contain; 0: all of them.

    A row behind the last one: the capture begins after all that is stored.
    """
    tx = context.tx
    last = rows.last_turn(tx, transcript)
    if last is None or all(turn.said_at is not None for turn in turns):
        return 0
    keys = [turn_key(turn.basis, turn.number) for turn in turns]
    stored_keys = rows.first_keys(tx, transcript, len(keys))
    if stored_keys[-1] == last.turn_key and _is_longer_form(turns[len(stored_keys) - 1], last):
        stored_keys.pop()  # the last stored turn may have grown
    if stored_keys == keys[: len(stored_keys)]:
        return 0  # the capture has the beginning of the session
    seqs: list[int] = []
    found = overlap(
        _bases(context, transcript, seqs, 2 * len(turns) + _COMPARED_TURNS),
        [turn.basis for turn in turns],
        lambda at: _is_longer_form(turns[at], last),
    )
    if found is not None:
        return seqs[found]
    known = sum(rows.turn_seq(tx, transcript, key) is not None for key in keys)
    return 0 if 2 * known > len(keys) else last.seq + 1


def _bases(context: CommandContext, transcript: int, seqs: list[int], count: int) -> Iterator[bytes]:
    """Yield the basis of each of the last ``count`` stored turns, and append its row to ``seqs``."""
    for turn in rows.last_turns(context.tx, transcript, count):
        if not len(seqs) % _HEARTBEAT_TURNS:
            context.heartbeat()
        seqs.append(turn.seq)
        yield turn_basis(turn.role, turn.content, turn.said_at, continues=bool(turn.continues))


def _keys(tx: WriteTransaction, transcript: int | None, turns: tuple[CapturedTurn, ...], begin: int) -> list[bytes]:
    """Return the key of each turn. Equal turns without a time before the row ``begin`` count as before the capture."""
    before: dict[bytes, int] = {}
    if transcript is not None and begin:
        before = {turn.basis: 0 for turn in turns if turn.said_at is None}
        for basis in before:
            before[basis] = _count_before(tx, transcript, basis, begin)
    return [turn_key(turn.basis, turn.number + before.get(turn.basis, 0)) for turn in turns]


def _count_before(tx: WriteTransaction, transcript: int, basis: bytes, begin: int) -> int:
    """Return how many turns of this basis are stored before the row ``begin``. Their numbers have no gaps."""

    def is_after(number: int) -> bool:
        seq = rows.turn_seq(tx, transcript, turn_key(basis, number))
        return seq is None or seq >= begin

    end = 1
    while not is_after(end - 1):
        end *= 2
    return bisect_left(range(end - 1), True, key=is_after)


def _is_longer_form(turn: CapturedTurn, last: KeyedTurn) -> bool:
    """Return whether ``turn`` may be what became of the ``last`` stored turn."""
    return (last.role, last.said_at, last.continues) == (
        turn.role,
        turn.said_at,
        int(turn.continues),
    ) and turn.content.startswith(last.content)


def forget(context: CommandContext, command: ForgetTranscript) -> TranscriptForgotten:
    """Erase the rows about the session, and turns within the budget of a commit, and mark the transcript.

    A session of which there are only such rows, or a capture under way, is marked by a transcript without turns.
    Raises SignetError for an autonomous actor.

    Source: docs/decisions.md 38.
    """
    if command.principal.actor_type in AUTONOMOUS_ACTOR_TYPES:
        raise SignetError("Autonomous agents cannot erase a transcript", code=ErrorCode.FORBIDDEN)
    tx, now = context.tx, context.now
    had_rows = rows.erase_others(tx, command.agent_id, command.session_key)
    had_rows |= searches.forget_session(tx, command.session_key, command.agent_id)
    found = rows.find(tx, command.agent_id, command.session_key)
    if found is None:
        is_known = had_rows or command.is_captured
        if is_known:
            empty = TranscriptRow(command.session_key, command.agent_id, None, None, "text", now, now)
            rows.mark_forgotten(tx, rows.insert(tx, empty), now)
        left = memory_rows.summaries_of_session(tx, command.agent_id, command.session_key) if is_known else []
        return TranscriptForgotten(turns=0, more=False, found=is_known, summaries=left)
    erased, more = _erase(context, found.seq, ByteBudget(), asked_by=command.agent_id)
    if found.forgotten_at is None:
        rows.mark_forgotten(tx, found.seq, now)
    left = [] if more else memory_rows.summaries_of_session(tx, command.agent_id, command.session_key)
    return TranscriptForgotten(turns=erased, more=more, summaries=left)


def purge(context: CommandContext, cutoff: str, limit: int) -> tuple[int, bool]:
    """Delete old transcripts and what an interrupted forget left; return their number, and whether more are left."""
    budget = ByteBudget()
    for transcript, agent_id in rows.half_forgotten(context.tx, limit):
        if _erase(context, transcript, budget, asked_by=agent_id)[1]:
            return 0, True
    expired = rows.updated_before(context.tx, cutoff, limit)
    for count, transcript in enumerate(expired):
        context.heartbeat()
        if budget.used_up:
            return count, True
        _, more = _erase(context, transcript, budget)
        if more:
            return count, True
        searches.forget_transcript(context.tx, transcript)
        rows.delete(context.tx, transcript)
    return len(expired), len(expired) >= limit


def _erase(
    context: CommandContext, transcript: int, budget: ByteBudget, *, asked_by: str | None = None
) -> tuple[int, bool]:
    """Delete the transcript's turns as far as the budget goes; return their number, and whether some are left.

    ``asked_by``: the agent that forgets them, so that no other session stores copies of them later.
    """
    sizes = rows.turn_sizes(context.tx, transcript, _ERASED_AT_ONCE)
    erased = []
    for seq, size in sizes:
        if budget.used_up:
            break
        erased.append(seq)
        budget.spend_indexed(size)
    if asked_by is not None:
        _leave_out_erased(context.tx, asked_by, rows.own_turns(context.tx, erased))
    rows.delete_turns(context.tx, erased)
    return len(erased), len(erased) < len(sizes) or len(sizes) == _ERASED_AT_ONCE
