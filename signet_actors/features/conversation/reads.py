"""A session as rows of turns and searches. Source: docs/guides/hooks.md "A session, prompt by prompt"."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import islice, pairwise
from typing import Final, NamedTuple

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
from signet_actors.store.reads.transcripts import readable_sessions

_BEGINNING_CHARS: Final = 600
"""Of a turn, of which the beginning is made; white space counts."""
_OF_SESSION: Final = "s.session_key = :session_key AND s.agent_id = :agent_id"
_SEARCHES: Final = (
    "SELECT s.seq, s.id, s.created_at, s.kind, s.context_epoch, s.project, s.harness, s.prompt,"
    f" s.answered FROM searches s WHERE {_OF_SESSION} ORDER BY s.seq LIMIT {api.MOST_SEARCHES}"
)
_TURNS: Final = (
    "SELECT u.seq, u.continues, u.role, u.said_at, CASE WHEN u.role = 'user' THEN substr(u.content, 1, :chars) END"
    " FROM session_turns u WHERE u.transcript_seq = :transcript"
    f" ORDER BY u.seq LIMIT {api.MOST_TURNS}"
)
_WORDS: Final = (
    "SELECT u.seq, substr(u.content, 1, :chars), (SELECT t.session_key FROM session_turns o"
    " JOIN session_transcripts t ON t.seq = o.transcript_seq WHERE o.seq = u.copy_of AND t.forgotten_at IS NULL)"
    " FROM session_turns u WHERE u.seq IN ({})"
)
_PIECES: Final = (
    "SELECT u.content FROM session_turns u WHERE u.transcript_seq = :transcript AND u.seq >= :turn"
    " AND (:next IS NULL OR u.seq < :next) ORDER BY u.seq"
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

    def answer(self, at: int) -> _Turn | None:
        """Return the first turn of the assistant behind the row, before the user says anything again."""
        for place, _ in islice(self.rows, at + 1, None):
            if place is not None and self.turns[place].role in {"user", "assistant"}:
                turn = self.turns[place]
                return turn if turn.role == "assistant" else None
        return None

    def compactions(self) -> set[int]:
        """Return the ``seq`` of each search with which a context epoch began, but the first."""
        known = [(search.seq, search.epoch) for search in self.searches if search.epoch is not None]
        return {seq for (_, before), (seq, epoch) in pairwise(known) if epoch > before}


def _session(snapshot: Snapshot, agent_id: str, key: str) -> _Session:
    """Return what is kept of the agent's session, without the texts of its turns."""
    searches = [_Search(*row) for row in snapshot.rows(_SEARCHES, {"session_key": key, "agent_id": agent_id})]
    transcript = readable_sessions(snapshot, [(agent_id, key)], ReadScope(agent_id)).get((agent_id, key))
    turns = [] if transcript is None else _turns(snapshot, transcript)
    rows = joined(
        [Said(turn.at, head_of(turn.beginning)) for turn in turns],
        [Sought(each.at, head_of(each.prompt) if each.kind == "prompt" else "") for each in searches],
    )
    return _Session(key, agent_id, transcript, turns, searches, rows)


def _turns(snapshot: Snapshot, transcript: int) -> list[_Turn]:
    turns: list[_Turn] = []
    bound = {"transcript": transcript, "chars": _BEGINNING_CHARS}
    for seq, continues, role, at, text in snapshot.rows(_TURNS, bound):
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
    found = numbered(snapshot, caller.read, [seq for _, seq, _ in page if seq is not None])
    answers = {seq: session.answer(at) for _, seq, at in page if seq is not None and found[seq].given}
    words = _words(snapshot, [turn for turn in (*answers.values(), *(turn for turn, _, _ in page)) if turn is not None])
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
            search, answer = found[seq], answers.get(seq)
            new = set() if answer is None else new_words(words[answer.pieces][0], search.prompt or "")
            told_of = [_told(each, new, earlier.get((seq, each.id))) for each in search.memories]
            search = msgspec.structs.replace(search, memories=told_of)
        rows.append(api.ConversationRow(turn=body, search=search, compacted=seq in compactions))
    return api.ConversationReply(rows=rows, count=len(rows), next=end if end < len(session.rows) else None)


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
        behind = session.turns[place + 1].pieces[0] if place + 1 < len(session.turns) else None
        bound = {"transcript": session.transcript, "turn": session.turns[place].pieces[0], "next": behind}
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
    memories = numbered(snapshot, asked.read, [search[0]])[search[0]].memories
    memory = next((each for each in memories if each.id == asked.memory_id), None)
    given = _given_before(snapshot, asked.session_key, asked.read.agent_id, search[0], {asked.memory_id})
    earlier = None
    if given and not (memory is not None and memory.given):
        _, seq, kind = given[-1]
        number = snapshot.value(_NUMBER, {**own, "seq": seq}) if kind == "prompt" else UNSET
        earlier = GivenEarlier(kind=kind, number=number)
    return api.FoundFate(then=told(memory, existed=stored[0] <= search[1]), memory=memory, earlier=earlier)


READS: Final = {api.CONVERSATION: conversation, api.FindPrompt: prompt, api.FindFate: fate}
