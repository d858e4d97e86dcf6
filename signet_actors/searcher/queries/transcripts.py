"""Read the transcript of a session or parts of several, and search the turns of all sessions.

Source: docs/compatibility.md "Hooks and sessions"; docs/decisions.md 8, 35.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from signet_actors.domain.normalization import collapsed
from signet_actors.domain.query_words import fts_expression, fts_match, match_terms
from signet_actors.domain.said_again import MOST_CHARS, Passage, may_say, says, statements_of
from signet_actors.domain.transcripts.excerpts import conversation_around, excerpt
from signet_actors.domain.transcripts.turns import conversation
from signet_actors.protocol import transcripts as messages
from signet_actors.protocol.memories import Filters
from signet_actors.searcher.forgotten import Forgotten
from signet_actors.searcher.reader import Reader
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads import transcripts as stored
from signet_actors.store.reads.contents import memories_by_seq
from signet_actors.store.reads.forget import made_of
from signet_actors.store.reads.memories import readable_by_id
from signet_actors.store.reads.transcripts import Span

_SPAN_CHARS: Final = 800
_ENDING_CHARS: Final = {"user": 120, "assistant": 400}
"""Of the beginning of a session that a timeline shows."""
_SAYING: Final = 10
"""Of the sessions with words of a memory, the best are compared with it; ``_TURNS_OF_EACH`` turns of each."""
_TURNS_OF_EACH: Final = 3
_MEMORY_CHARS: Final = 20_000
_TERMS: Final = 16
_KNOWN: Final = 2
"""Turns that are known to the reader of the next one."""
_BESIDE: Final = 4
"""Turns before and after the one that matches, of which an excerpt may have a part."""


def get(snapshot: Snapshot, query: messages.GetTranscript) -> messages.TranscriptFound:
    """Return a page of the session's turns; no transcript if it is missing, forgotten, or not readable."""
    found = stored.readable_transcript(snapshot, query.session_key, query.read)
    if found is None:
        return messages.TranscriptFound(transcript=None)
    seq, transcript = found
    turns, rest = stored.turns_after(snapshot, seq, query.after, query.max_bytes, query.max_rows)
    return messages.TranscriptFound(transcript=transcript, turns=turns, next=rest)


def search(snapshot: Snapshot, query: messages.SearchSessions) -> messages.SessionsFound:
    """Return the sessions whose turns match any word of the query, best first, each with its best turn."""
    terms = match_terms(query.query)
    expression = fts_expression(terms)
    if expression is None:
        return messages.SessionsFound(sessions=[])
    words = (*terms.phrases, *terms.pairs)
    return messages.SessionsFound(
        sessions=[
            messages.FoundSession(
                turn.session_key,
                turn.agent_id,
                turn.harness,
                turn.project,
                turn.updated_at,
                turn.role,
                turn.said_at,
                excerpt(turn.content, words),
                turn.copy_of,
            )
            for turn in stored.best_turns(snapshot, query, expression)
        ]
    )


def expand(snapshot: Snapshot, query: messages.ExpandSessions) -> messages.SessionsExpanded:
    """Return for each session with a transcript the turns around the one that matches the query best."""
    found = stored.readable_sessions(snapshot, query.sessions, query.read)
    terms = match_terms(query.query)
    expression = fts_expression(terms)
    best = {} if expression is None or not found else stored.best_turn_of_each(snapshot, [*found.values()], expression)
    words = (*terms.phrases, *terms.pairs)
    excerpts = []
    for (agent_id, key), transcript in found.items():
        snapshot.check_preempted()
        turns, at = stored.turns_beside(snapshot, transcript, best.get(transcript, 0), _BESIDE)
        if turns:
            texts = [(turn.role, turn.content, turn.continues) for turn in turns]
            excerpts.append(
                messages.SessionExcerpt(agent_id, key, conversation_around(texts, at, words, query.max_chars))
            )
    return messages.SessionsExpanded(excerpts)


def _ending(turns: Sequence[tuple[str, str, bool]]) -> str:
    """Return the beginnings of the last of the prompts and of the last answer."""
    last = {role: (role, excerpt(text, (), _ENDING_CHARS.get(role, _SPAN_CHARS)), False) for role, text, _ in turns}
    return collapsed(
        conversation([each for role in ("user", "assistant", "text") if (each := last.get(role)) and each[1]])
    )


def _left(turns: Sequence[messages.TranscriptTurn], forgotten: Forgotten | None) -> list[tuple[str, str, bool]]:
    """Return role and text of the turns, and whether each continues the one before it; what was forgotten is left out.

    Sentences count alone, and as what goes on from the turns before them or answers the last prompt.
    """
    if forgotten is None:
        return [(turn.role, turn.content, turn.continues) for turn in turns]
    said: list[tuple[str, str, bool]] = []
    asked = ""
    for turn in turns:
        text = turn.content[: 2 * _SPAN_CHARS]
        before = [left for _, left, _ in said[-_KNOWN:]]
        left = forgotten.without(text, "\n".join((*before, asked) if turn.role == "assistant" else before))
        asked = text if turn.role == "user" else asked
        said.append((turn.role, left, turn.continues and bool(said) and bool(said[-1][1])))
    return said


def saying(reader: Reader, snapshot: Snapshot, query: messages.FindSaying) -> messages.SayingFound:
    """Return the agent's sessions in which what the memories say was said, by one side or by question and answer.

    Return the other memories that say it, and the sessions that may say it in much fewer or other words, too.
    """
    reader.sync(snapshot)
    allowed = reader.allowed_rows(snapshot, query.read, Filters())
    sessions: dict[str, None] = {}
    perhaps: dict[str, None] = {}
    memories: dict[str, None] = {}
    for memory_id in query.ids:
        snapshot.check_preempted()
        memory = readable_by_id(snapshot, memory_id, query.read, include_deleted=True)
        text = "" if memory is None else memory.content[:MOST_CHARS]
        expression = fts_match(text, max_terms=_TERMS)
        if expression is None:
            continue
        statements = statements_of(text)
        memories.update(dict.fromkeys(made_of(snapshot, memory_id, query.read.agent_id)))
        hits = reader.keyword.search(snapshot, text, allowed, pool=_SAYING)
        rows = memories_by_seq(snapshot, query.read, Filters(), hits.seqs[:_SAYING].tolist(), chars=_MEMORY_CHARS)
        for row in rows.values():
            passage = Passage(row.content)
            if row.agent_id == query.read.agent_id and any(says(passage, each) for each in statements):
                memories[row.id] = None
        search_ = messages.SearchSessions(text, query.read, _SAYING)
        for turn in stored.best_turns(snapshot, search_, expression, places=_TURNS_OF_EACH):
            if turn.agent_id == query.read.agent_id and turn.session_key not in sessions:
                beside, _ = stored.turns_beside(snapshot, turn.transcript, turn.turn, 1)
                passage = Passage("\n".join(each.content for each in beside))
                if any(says(passage, each) for each in statements):
                    sessions[turn.session_key] = None
                elif may_say(passage, statements[0]):
                    perhaps[turn.session_key] = None
    return messages.SayingFound(
        [*sessions],
        [each for each in perhaps if each not in sessions],
        [each for each in memories if each not in query.ids],
    )


def past(snapshot: Snapshot, query: messages.ListPastSessions) -> messages.PastSessionsListed:
    return messages.PastSessionsListed(*stored.past(snapshot, query))


def spans(reader: Reader, snapshot: Snapshot, query: messages.ListSpans) -> messages.SpansListed:
    """Return the sessions of the window, the latest first, each with the beginning of what was said then."""
    found = stored.spans(snapshot, query.start, query.end, query.read, query.project)
    expression = fts_expression(match_terms(query.words))
    if found and expression is not None:
        worded = stored.best_turn_of_each(snapshot, [span.transcript for span in found], expression)
        found = [span for span in found if _is_in(snapshot, span, worded.get(span.transcript), expression)]
    listed = []
    for span in found[: query.limit]:
        turns, _ = stored.turns_beside(snapshot, span.transcript, span.first, 2 * _BESIDE)
        turns = [turn for turn in turns if span.first <= turn.seq <= span.last][: _BESIDE + 1]
        forgotten = None
        if query.unasked:
            forgotten = Forgotten(reader, snapshot, query.read, Filters(project=span.project, or_no_project=True))
        texts = [each for each in _left(turns, forgotten) if each[1]]
        text = collapsed(conversation_around(texts, 0, (), _SPAN_CHARS)) if texts else ""
        ending = ""
        if query.with_ends:
            last = stored.last_turns(snapshot, span.transcript, 1 + _BESIDE, first=span.first, last=span.last)
            ending = _ending(_left(last, forgotten))
        if query.unasked and not text and not ending:
            continue
        listed.append(
            messages.SessionSpan(span.agent_id, span.session_key, span.project, span.start, span.end, text, ending)
        )
    return messages.SpansListed(listed)


def _is_in(snapshot: Snapshot, span: Span, best: int | None, expression: str) -> bool:
    """Return whether a turn of the span matches; ``best``: the turn of its session that matches best."""
    if best is None or span.first <= best <= span.last:
        return best is not None
    return stored.is_in_span(snapshot, span, expression)
