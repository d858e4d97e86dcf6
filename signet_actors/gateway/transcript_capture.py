"""Store a transcript: parse it, remove secrets, cut it into parts, and send these to the writer.

Threads of their own do all but the last (``transcript_readers``), and pause for searches. The words for the index of
a part are made while the writer stores the one before. Secrets are always removed, because the user did not ask to
store what a transcript contains.

Source: docs/decisions.md 26, 37; docs/reliability.md R13.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, Literal, NamedTuple

import msgspec

from signet_actors.domain.extraction.injected_text import without_injected
from signet_actors.domain.normalization import MAYBE_CJK
from signet_actors.domain.program_text import planned_in
from signet_actors.domain.prompt_terms import switches_off
from signet_actors.domain.redaction.labelled_values import answered_secret
from signet_actors.domain.redaction.scan import Redactor, without_known
from signet_actors.domain.transcripts.marked import MAY_BE_MARK
from signet_actors.domain.transcripts.parse import parse_transcript
from signet_actors.domain.transcripts.turns import Transcript, TranscriptTooLong, stored_turns
from signet_actors.domain.written_forms import MAX_TURN_WORDS, indexed_beside
from signet_actors.errors import InvalidRequest, OutcomeUnknown, SignetError
from signet_actors.gateway.http.route import Call
from signet_actors.gateway.limits import SearchesFirst
from signet_actors.gateway.state import GatewayState
from signet_actors.gateway.transcript_files import TranscriptRefused, read_transcript_file, roots
from signet_actors.protocol.transcripts import CapturedTurn, CapturePosition, StoreTurns

PART_CHARS: Final = 256 * 1024
PART_TURNS: Final = 500
"""Of one message to the writer, with the words for its index; other writes wait for at most one."""
_CJK_GROWTH: Final = 4
"""A text of CJK characters is so much longer with its pairs."""
_SEGMENT_CHARS: Final = 256 * 1024
_SHORT_SEGMENT_CHARS: Final = 32 * 1024
"""So short a segment cannot contain more secrets than a text may."""
_AROUND_CUT_CHARS: Final = 8 * 1024
"""Before and after a cut; longer than any secret but a key's block, which ``segments`` does not cut."""
_KEY_BLOCK: Final = "-----BEGIN"
_PLANNED: Final = b"read the full transcript at: "
"""In the file of a session that was begun with the plan of another one, in lower case."""
_SEARCHED_BYTES: Final = 1 << 20
_MAX_PLANS: Final = 64
_MOST_PLANS: Final = 8
"""Sessions in a row, each begun with the plan of the one before, in which a mark is looked for."""


@dataclass(slots=True)
class Capture:
    """A parsed transcript without secrets, in parts for the writer; ``kinds`` are those of the secrets.

    ``known``: those that other texts may repeat, with their kinds. ``plan_of``: the session whose plan it was begun
    with. ``is_off``: a prompt of it, or of that one, switched memory off; ``off_in``: of which other session.
    """

    transcript: Transcript
    parts: list[tuple[CapturedTurn, ...]] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    known: dict[str, str] = field(default_factory=dict)
    plan_of: str | None = None
    is_off: bool = False
    off_in: str | None = None


def capture(raw: bytes, redactor: Redactor, make_way: Callable[[], None]) -> Capture:
    """Return the transcript as it is stored. Blocks. Raises TranscriptTooLong."""
    transcript = parse_transcript(raw, make_way)
    found = Capture(transcript)
    known = found.known

    def clean(text: str) -> str:
        make_way()
        cleaned, kinds = without_secrets(redactor, without_injected(text)[0], known)
        found.kinds += kinds
        return cleaned

    for (_, asked, _), (_, answer, _) in pairwise(transcript.turns):
        make_way()
        if secret := answered_secret(asked, answer):
            known[secret] = "credential"
            found.kinds.append("credential")
    part: list[CapturedTurn] = []
    size = 0
    for row in stored_turns(transcript.turns, clean, transcript.ids):
        turn = CapturedTurn(row.basis, row.number, row.role, row.text, None, row.said_at, row.continues, row.name)
        chars = len(turn.content) * (_CJK_GROWTH if MAYBE_CJK.search(turn.content) else 1)
        if part and (size + chars > PART_CHARS or len(part) >= PART_TURNS):
            found.parts.append(tuple(part))
            part, size = [], 0
        part.append(turn)
        size += chars
    if part:
        found.parts.append(tuple(part))
    replace_known(found, known, make_way)  # what the user said is repeated by the agent
    return found


def replace_known(found: Capture, known: Mapping[str, str], make_way: Callable[[], None]) -> None:
    """Replace secrets that were recognised in other texts of the session."""
    if known:
        found.parts = [_without_known(each, known, make_way) for each in found.parts]


def _without_known(
    part: tuple[CapturedTurn, ...], known: Mapping[str, str], make_way: Callable[[], None]
) -> tuple[CapturedTurn, ...]:
    cleaned = []
    for turn in part:
        make_way()
        cleaned.append(msgspec.structs.replace(turn, content=without_known(turn.content, known)))
    return tuple(cleaned)


def with_terms(part: tuple[CapturedTurn, ...], make_way: Callable[[], None]) -> tuple[CapturedTurn, ...]:
    """Return the turns with the words for their index. Blocks."""
    indexed = []
    for turn in part:
        make_way()
        indexed.append(msgspec.structs.replace(turn, cjk=indexed_beside(turn.content, most=MAX_TURN_WORDS)))
    return tuple(indexed)


def capture_for(call: Call[Any], raw: bytes, check: Callable[[], None]) -> Capture:
    """Return the transcript of the caller as it is stored, with pauses for the searches of other requests.

    Blocks; ``check`` ends it. Raises TranscriptTooLong.
    """
    state = call.state
    searches = SearchesFirst(lambda: state.bus.unanswered_searches > 0)

    def make_way() -> None:
        check()
        searches.make_way()

    found = capture(raw, state.redactor, make_way)
    found.is_off = _is_off(found, call, make_way)
    return found


def _is_off(found: Capture, call: Call[Any], make_way: Callable[[], None]) -> bool:
    """Return whether a prompt of the transcript switched memory off, even if no daemon received it.

    The daemon may have been away, and the prompt may be one of the session that this one was forked from, or whose plan
    it was begun with. Raises SignetError.
    """
    is_off, plan = _mark_or_plan(found.transcript)
    found.plan_of = None if plan is None else call.told_session(plan[1])
    for _ in range(_MOST_PLANS):
        if is_off or plan is None:
            return is_off
        found.off_in = call.told_session(plan[1])
        is_off, plan = _of_file(plan[0], call.state, make_way) if call.reads_files else (False, None)
    return False


def _mark_or_plan(transcript: Transcript) -> tuple[bool, tuple[str, str] | None]:
    """Return whether a prompt switched memory off, and the file and name of the session whose plan it begins with."""
    if any(turn.role == "user" and switches_off(turn.text) for turn in transcript.turns):
        return True, None
    plans = (planned_in(turn.text) for turn in transcript.turns if turn.role == "system")
    return False, next(filter(None, plans), None)


def _of_file(path: str, state: GatewayState, make_way: Callable[[], None]) -> tuple[bool, tuple[str, str] | None]:
    """Return the same of a file, which is read again only if it has changed: each report of a session asks for it."""
    most, allowed = state.config.transcripts.max_file_bytes, roots(state.workspace, os.environ)
    try:
        about = os.stat(path)
        key = path, about.st_size, about.st_mtime_ns
        if key in state.plans:
            return state.plans[key]
        raw = read_transcript_file(path, allowed, most, workspace=state.workspace)
        told = _mark_or_plan(parse_transcript(raw, make_way)) if _may_be_off(raw, make_way) else (False, None)
    except (OSError, ValueError, TranscriptRefused, TranscriptTooLong):
        return False, None
    if len(state.plans) >= _MAX_PLANS:
        state.plans.clear()
    state.plans[key] = told
    return told


def _may_be_off(raw: bytes, make_way: Callable[[], None]) -> bool:
    for at in range(0, len(raw), _SEARCHED_BYTES):
        make_way()
        piece = raw[at : at + _SEARCHED_BYTES + 128].lower()
        if _PLANNED in piece or MAY_BE_MARK.search(piece):
            return True
    return False


def without_content(found: Capture) -> str | None:
    """Return why nothing of the transcript can be stored, None if something can."""
    transcript = found.transcript
    if found.is_off:
        return "memory is switched off in this session"
    if found.parts:
        return None
    if transcript.turns:
        return "the transcript has nothing but what memory had injected"
    lines = f", {transcript.skipped} lines that cannot be read" if transcript.skipped else ""
    unfinished = ", an end that is being written" if transcript.unfinished else ""
    return f"no words of a user or an agent are found in the transcript (format {transcript.format}{lines}{unfinished})"


class StoredCapture(NamedTuple):
    """How many rows a capture added, and the job that summarizes what none has seen."""

    added: int
    job_id: str | None = None


async def store_capture(
    call: Call[Any],
    found: Capture,
    session_key: str,
    *,
    harness: str | None,
    project: str | None,
    captured_at: str | None,
    ended: bool = False,
    then: Literal["goes_on", "extract", "dropped"] | None = None,
    is_off: bool = False,
) -> StoredCapture | None:
    """Store all parts for the caller's agent; return what was added, None if the session was forgotten.

    What could not be read becomes a warning. Raises SignetError; a retry stores the rest.
    """
    transcript = found.transcript
    if transcript.format == "text":
        call.warnings.append("the format of the transcript is not known; it is stored as text")
    if transcript.skipped:
        call.warnings.append(f"{transcript.skipped} lines of the transcript could not be read")
    if not found.parts:
        return StoredCapture(0)
    added = 0
    job_id: str | None = None
    previous: CapturePosition | None = None
    searches = SearchesFirst(lambda: call.state.bus.unanswered_searches > 0)
    count = len(found.parts)
    indexing = asyncio.ensure_future(asyncio.to_thread(with_terms, found.parts[0], searches.make_way))
    try:
        for number in range(1, count + 1):
            part = await indexing
            if number < count:
                indexing = asyncio.ensure_future(asyncio.to_thread(with_terms, found.parts[number], searches.make_way))
            command = StoreTurns(
                session_key=session_key,
                agent_id=call.agent_id,
                format=transcript.format,
                turns=part,
                previous=previous,
                harness=harness,
                project=project,
                captured_at=captured_at,
                ended=ended and number == count,
                then=then if number == count else None,
                is_off=is_off,
                plan_of=found.plan_of,
            )
            try:
                done = await call.ask_writer_unkeyed(command)
            except SignetError as error:
                if number == 1:
                    raise
                raise OutcomeUnknown(
                    f"a part of the transcript is stored ({error.detail}); retry to store all"
                ) from error
            if done.forgotten:
                return None
            if done.has_copies:
                call.state.ledger.note_was_off(session_key)
            added += done.added
            previous, job_id = done.position, done.job_id
    finally:
        indexing.cancel()
    return StoredCapture(added, job_id)


def without_secrets(redactor: Redactor, text: str, known: dict[str, str]) -> tuple[str, list[str]]:
    """Return ``text`` without secrets, and their kinds. ``known`` receives those that may be repeated.

    A long text is searched segment by segment. What stands around a cut is searched again, for a secret across it.
    """
    cleaned = [""]
    found: list[str] = []
    for part, kinds in _cleaned_segments(redactor, text, known):
        tail, head = cleaned[-1][-_AROUND_CUT_CHARS:], part[:_AROUND_CUT_CHARS]
        around, more = redactor.clean(tail + head, known) if tail else (head, ())
        cleaned[-1] = cleaned[-1][: len(cleaned[-1]) - len(tail)]
        cleaned.append(around + part[len(head) :])
        found += (*kinds, *more)
    return "".join(cleaned), found


def _cleaned_segments(redactor: Redactor, text: str, known: dict[str, str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield each segment of ``text`` without its secrets, and their kinds."""
    for segment in segments(text, _SEGMENT_CHARS):
        try:
            yield redactor.clean(segment, known)
        except InvalidRequest:  # more secrets than one text may have
            yield from (redactor.clean(short, known) for short in segments(segment, _SHORT_SEGMENT_CHARS))


def segments(text: str, chars: int) -> Iterator[str]:
    """Yield ``text`` in segments of at most ``chars``, cut at a line end and outside the block of a key if possible."""
    at = 0
    while len(text) - at > chars:
        end = text.rfind("\n", at, at + chars) + 1
        block = text.rfind(_KEY_BLOCK, at, at + chars)
        if block > at and text.find("-----END", block, at + chars) < 0:
            end = text.rfind("\n", at, block) + 1
        end = end if end > at else at + chars
        yield text[at:end]
        at = end
    yield text[at:]


async def is_erased(call: Call[Any], key: str) -> bool:
    """Return whether the user has had the transcript of the session erased. Raises SignetError."""
    nothing = StoreTurns(session_key=key, agent_id=call.agent_id, format="text", turns=())
    return (await call.ask_writer_unkeyed(nothing)).forgotten
