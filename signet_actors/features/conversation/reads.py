"""A session as rows of turns and searches. Source: docs/guides/hooks.md "A session, prompt by prompt"."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, pairwise, takewhile
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import UNSET

from signet_actors.features.conversation import api
from signet_actors.features.conversation.rules import (
    Said,
    Sought,
    head_of,
    is_prompt,
    is_whole,
    joined,
    new_words,
    seems_used,
    told,
)
from signet_actors.features.searches.api import SearchRow
from signet_actors.features.searches.reads import numbered
from signet_actors.features.searches.rules import GIVEN
from signet_actors.operations.hooks import GivenEarlier, SearchMemory
from signet_actors.operations.transcripts import TurnBody
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Asked
from signet_actors.store.engine import Snapshot
from signet_actors.store.read_policy import conjunction, readable_in_any_scope
from signet_actors.store.reads.transcripts import COPY_OF, readable_sessions

_BEGINNING_CHARS: Final = 600
"""Of a turn, of which the beginning is made; white space counts."""
_MOST_PIECES: Final = 300
"""Of the turn of a prompt: some 9 MB."""
_OF_SESSION: Final = "s.session_key = :session_key AND s.agent_id = :agent_id"
_SEARCHES: Final = (
    "SELECT s.seq, s.id, s.created_at, s.kind, s.context_epoch, s.project, s.harness, s.prompt,"
    f" s.answered FROM searches s WHERE {_OF_SESSION} ORDER BY s.seq LIMIT {api.MOST_SEARCHES + 1}"
)
_TURNS: Final = (
    "SELECT u.seq, u.continues, u.role, u.said_at, CASE WHEN u.role = 'user' THEN substr(u.content, 1, :chars) END"
    " FROM session_turns u WHERE u.transcript_seq = :transcript"
    f" ORDER BY u.seq LIMIT {api.MOST_TURNS + 1}"
)
_WORDS: Final = f"SELECT u.seq, substr(u.content, 1, :chars), {COPY_OF} FROM session_turns u WHERE u.seq IN ({{}})"
_PIECES: Final = (
    "SELECT u.content FROM session_turns u WHERE u.transcript_seq = :transcript AND u.seq >= :turn"
    " AND u.seq < coalesce((SELECT v.seq FROM session_turns v WHERE v.transcript_seq = :transcript AND v.seq > :turn"
    f" AND v.continues = 0 ORDER BY v.seq LIMIT 1), {1 << 62}) ORDER BY u.seq LIMIT {_MOST_PIECES}"
)
_CONSIDERED: Final = (
    "SELECT count(*), coalesce(sum(m.version), 0) FROM memories m WHERE m.id IN"
    f" (SELECT r.memory_id FROM searches s JOIN search_rows r ON r.search_seq = s.seq WHERE {_OF_SESSION}) AND {{}}"
)
_GIVEN_BEFORE: Final = (
    "SELECT r.memory_id, s.seq, s.kind FROM searches s JOIN search_rows r ON r.search_seq = s.seq"
    f" WHERE {_OF_SESSION} AND s.seq < :seq AND r.outcome IN {(*sorted(GIVEN),)} AND r.memory_id IN ({{}})"
    " ORDER BY s.seq"
)
_NUMBER: Final = f"SELECT count(*) FROM searches s WHERE {_OF_SESSION} AND s.kind = 'prompt' AND s.seq <= :seq"
_FIND: Final = f"SELECT s.seq, s.created_at FROM searches s WHERE {_OF_SESSION} AND s.id = :id"
_STORED: Final = "SELECT m.created_at FROM memories m WHERE {}"


class _Search(NamedTuple):
    seq: int
    id: str
    at: str
    kind: str
    epoch: int | None
    project: str | None
    harness: str | None
    prompt: str | None
    answered: int | None


class _Turn(NamedTuple):
    """``pieces``: the first two of its rows; two are longer than what is read of them. ``beginning``: of both."""

    role: str
    at: str | None
    pieces: tuple[int, ...]
    beginning: str


class _Session(NamedTuple):
    """``rows``: positions among ``turns`` and ``searches``, as of ``rules.joined``."""

    key: str
    agent_id: str
    transcript: int | None
    turns: list[_Turn]
    searches: list[_Search]
    rows: list[tuple[int | None, int | None]]
    last: int
    is_cut: bool

    def answers(self, at: int) -> list[_Turn]:
        """Return the turns of the assistant behind the row, before the user says anything again."""
        behind = (place for place, _ in self.rows[at + 1 : at + 1 + api.MAX_ROWS] if place is not None)
        turns = takewhile(lambda turn: turn.role != "user", (self.turns[place] for place in behind))
        return [turn for turn in turns if turn.role == "assistant"]

    def compactions(self) -> set[int]:
        """Return the ``seq`` of each search with which a context epoch began, but the first."""
        known = [(search.seq, search.epoch) for search in self.searches if search.epoch is not None]
        return {seq for (_, before), (seq, epoch) in pairwise(known) if epoch > before}


def _session(snapshot: Snapshot, agent_id: str, key: str) -> _Session:
    """Return what is kept of the agent's session, without the texts of its turns."""
    searches = [_Search(*row) for row in snapshot.rows(_SEARCHES, {"session_key": key, "agent_id": agent_id})]
    transcript = readable_sessions(snapshot, [(agent_id, key)], ReadScope(agent_id)).get((agent_id, key))
    pieces = (
        [] if transcript is None else [*snapshot.rows(_TURNS, {"transcript": transcript, "chars": _BEGINNING_CHARS})]
    )
    is_cut = len(pieces) > api.MOST_TURNS or len(searches) > api.MOST_SEARCHES
    del pieces[api.MOST_TURNS :], searches[api.MOST_SEARCHES :]
    turns = _turns(pieces)
    rows = joined(
        [Said(turn.at, head_of(turn.beginning)) for turn in turns],
        [Sought(each.at, head_of(each.prompt) if each.kind == "prompt" else "") for each in searches],
    )
    return _Session(key, agent_id, transcript, turns, searches, rows, pieces[-1][0] if pieces else 0, is_cut)


def _version(snapshot: Snapshot, session: _Session, read: ReadScope) -> str:
    """Return what is another text as soon as any row is another one: a turn, a search, its words, or a memory."""
    own = {"session_key": session.key, "agent_id": session.agent_id}
    where, bindings = conjunction(("1 = 1", own), readable_in_any_scope(snapshot, read))
    searches = session.searches
    kept = sum(search.prompt is not None for search in searches)
    last = searches[-1].id if searches else ""
    said = (session.transcript or 0, len(session.turns), session.last)
    considered = snapshot.one(_CONSIDERED.format(where), bindings) or ()
    return ".".join(map(str, (*said, len(searches), last, kept, *considered)))


def _turns(pieces: Iterable[Sequence[Any]]) -> list[_Turn]:
    turns: list[_Turn] = []
    for seq, continues, role, at, text in pieces:
        if not (continues and turns):
            turns.append(_Turn(role, at, (seq,), text or ""))
        elif len(turns[-1].pieces) == 1:
            first = turns[-1]
            turns[-1] = first._replace(pieces=(*first.pieces, seq), beginning=first.beginning + (text or ""))
    return turns


def conversation(snapshot: Snapshot, asked: Asked[api.ConversationRequest]) -> api.ConversationReply:
    """Return a page of the agent's session."""
    caller, after = asked.caller, asked.request.after
    assert caller.session_key is not None, "the path names it"
    session = _session(snapshot, caller.agent_id, caller.session_key)
    end = min(after + asked.request.limit, len(session.rows))
    page = [
        (None if place is None else session.turns[place], None if number is None else session.searches[number].seq, at)
        for at, (place, number) in enumerate(session.rows[after:end], after)
    ]
    found = numbered(snapshot, caller.read, [seq for _, seq, _ in page if seq is not None], is_counted=False)
    prompts = (search.seq for search in session.searches if search.kind == "prompt")
    numbers = {seq: number for number, seq in enumerate(prompts, 1)}
    answers = {seq: session.answers(at) for _, seq, at in page if seq is not None and found[seq].given}
    words = _words(snapshot, [*chain(*answers.values()), *(turn for turn, _, _ in page if turn is not None)])
    earlier = _earlier(snapshot, session, found)
    compactions = session.compactions()
    rows = []
    for turn, seq, _ in page:
        body = search = None
        if turn is not None:
            text, copy_of = words[turn.pieces]
            cut = f"{text[: api.TURN_CHARS]}…" if len(text) > api.TURN_CHARS else text
            body = TurnBody(turn.role, cut, turn.at, UNSET if copy_of is None else copy_of)
        if seq is not None:
            search = found[seq]
            answer = "\n".join(words[turn.pieces][0] for turn in answers.get(seq, ()))[: api.ANSWER_CHARS]
            new = new_words(answer, search.prompt or "")
            told_of = [_told(each, new, earlier.get((seq, each.id))) for each in search.memories]
            search = msgspec.structs.replace(search, number=numbers.get(seq, UNSET), memories=told_of)
        rows.append(api.ConversationRow(turn=body, search=search, compacted=seq in compactions))
    return api.ConversationReply(
        rows=rows,
        count=len(rows),
        next=end if end < len(session.rows) else None,
        version=_version(snapshot, session, caller.read),
        cut=session.is_cut,
    )


def _words(snapshot: Snapshot, turns: Sequence[_Turn]) -> dict[tuple[int, ...], tuple[str, str | None]]:
    """Return the beginning of each turn, and the session of which it is a copy."""
    seqs = sorted({seq for turn in turns for seq in turn.pieces})
    bound = {"seqs": snapshot.dialect.listed(seqs), "chars": api.ANSWER_CHARS}
    found = {seq: (text, of) for seq, text, of in snapshot.rows(_WORDS.format(snapshot.dialect.members("seqs")), bound)}
    return {
        turn.pieces: ("".join(found[seq][0] for seq in turn.pieces)[: api.ANSWER_CHARS], found[turn.pieces[0]][1])
        for turn in turns
    }


def _told(memory: SearchMemory, new: set[str], earlier: GivenEarlier | None) -> SearchMemory:
    if memory.given:
        return msgspec.structs.replace(memory, seems_used=seems_used(memory.content_then or memory.content or "", new))
    return memory if earlier is None else msgspec.structs.replace(memory, earlier=earlier)


def _earlier(
    snapshot: Snapshot, session: _Session, found: Mapping[int, SearchRow]
) -> dict[tuple[int, str], GivenEarlier]:
    """Return where the session was given what it already had at a search, by the search and the memory."""
    had = [(seq, each.id) for seq, row in found.items() for each in row.memories if each.outcome == "received"]
    if not had:
        return {}
    prompts = [search.seq for search in session.searches if search.kind == "prompt"]
    given: dict[str, list[tuple[int, str]]] = defaultdict(list)
    last = max(seq for seq, _ in had)
    for memory_id, seq, kind in _given_before(snapshot, session.key, session.agent_id, last, {each for _, each in had}):
        given[memory_id].append((seq, kind))
    earlier = {}
    for at, memory_id in had:
        before = bisect_left(given[memory_id], (at, ""))
        if before:
            seq, kind = given[memory_id][before - 1]
            earlier[at, memory_id] = GivenEarlier(
                kind=kind, number=bisect_right(prompts, seq) if kind == "prompt" else UNSET
            )
    return earlier


def _given_before(
    snapshot: Snapshot, key: str, agent_id: str, seq: int, memory_ids: set[str]
) -> list[tuple[str, int, str]]:
    """Return each time that the session was given one of the memories before the search: memory, search, kind."""
    bound = {"session_key": key, "agent_id": agent_id, "seq": seq, "ids": snapshot.dialect.listed(sorted(memory_ids))}
    return [(*row,) for row in snapshot.rows(_GIVEN_BEFORE.format(snapshot.dialect.members("ids")), bound)]


def prompt(snapshot: Snapshot, asked: api.FindPrompt) -> api.FoundPrompt:
    """Return the words of a prompt of the session."""
    session = _session(snapshot, asked.agent_id, asked.session_key)
    at = next((at for at, row in enumerate(session.rows) if _is_prompt(session, row[1], asked.id)), None)
    if at is None:
        return api.FoundPrompt(found=False)
    place, number = session.rows[at]
    assert number is not None, "it is the row of a search"
    search = session.searches[number]
    text, before = search.prompt, ""
    whole = text is not None and is_whole(text)
    if place is not None and text is not None:
        said = next((turn for turn in reversed(session.turns[:place]) if turn.role == "assistant"), None)
        before = _words(snapshot, [said])[said.pieces][0] if said and search.answered else ""
        bound = {"transcript": session.transcript, "turn": session.turns[place].pieces[0]}
        words = "".join(piece for (piece,) in snapshot.rows(_PIECES, bound))
        if is_prompt(words, text):
            text, whole = words, True
    is_answer_known = 0 < len(before) < api.ANSWER_CHARS if search.answered else search.answered == 0
    return api.FoundPrompt(
        found=True,
        harness=search.harness,
        project=search.project,
        text=text,
        whole=whole and is_answer_known,
        before=before,
    )


def _is_prompt(session: _Session, number: int | None, search_id: str) -> bool:
    return number is not None and session.searches[number].id == search_id and session.searches[number].kind == "prompt"


def fate(snapshot: Snapshot, asked: api.FindFate) -> api.FoundFate:
    """Return what became of the memory at the search of the session."""
    own = {"session_key": asked.session_key, "agent_id": asked.read.agent_id}
    search = snapshot.one(_FIND, {**own, "id": asked.id})
    named = ("m.id = :memory_id", {"memory_id": asked.memory_id})
    where, bindings = conjunction(named, readable_in_any_scope(snapshot, asked.read))
    stored = snapshot.one(_STORED.format(where), bindings)
    if search is None or stored is None:
        return api.FoundFate()
    memories = numbered(snapshot, asked.read, [search[0]], is_counted=False)[search[0]].memories
    memory = next((each for each in memories if each.id == asked.memory_id), None)
    given = _given_before(snapshot, asked.session_key, asked.read.agent_id, search[0], {asked.memory_id})
    earlier = None
    if given and not (memory is not None and memory.given):
        _, seq, kind = given[-1]
        number = snapshot.value(_NUMBER, {**own, "seq": seq}) if kind == "prompt" else UNSET
        earlier = GivenEarlier(kind=kind, number=number)
    return api.FoundFate(then=told(memory, existed=stored[0] <= search[1]), memory=memory, earlier=earlier)


READS: Final = {api.CONVERSATION: conversation, api.FindPrompt: prompt, api.FindFate: fate}
