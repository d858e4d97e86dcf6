"""What was said in earlier sessions, for the places that the memories of a recall leave free.

A turn follows all memories, and takes a place only of a memory that most likely does not answer. It is found by its
words alone, and only if these cover so much of the query that it most likely is about it.

Source: docs/decisions.md 63; docs/guides/transcripts.md "In every recall".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import islice, takewhile
from time import perf_counter
from typing import Final, NamedTuple

import msgspec
import numpy as np

from signet_actors.domain.dated_sections import SUMMARY_TYPE
from signet_actors.domain.query_words import match_terms, phrase_expression, words_of
from signet_actors.domain.ranking import relevance
from signet_actors.domain.stop_words import STOP_WORDS, stop_words_of
from signet_actors.domain.temporal.change import Subject, refuting_words, shared, speaks_of_change, subject_of
from signet_actors.domain.transcripts.excerpts import exchange
from signet_actors.domain.transcripts.unanswered import answers_question, tells_nothing
from signet_actors.domain.work_orders import orders_work, tells_subject
from signet_actors.domain.written_forms import compound_parts
from signet_actors.protocol.memories import Filters
from signet_actors.protocol.searcher import Recall, Recalled, RecalledRow, StageTiming
from signet_actors.protocol.transcripts import SearchSessions, TranscriptTurn
from signet_actors.searcher.forgotten import Forgotten
from signet_actors.searcher.reader import Reader
from signet_actors.searcher.relevance import Measure
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads import transcripts as stored
from signet_actors.store.reads.transcripts import FoundTurn

LEAST_RELEVANCE: Final = 0.5
"""Below it, a text most likely does not answer (docs/quality.md "Relevance")."""
MOST: Final = 10
MOST_TERMS: Final = 12
RARE: Final = 8
"""A word that no more turns have may tell what two of them are about."""
_NAME_CHARS: Final = 3
_COMPARED: Final = 8
FREQUENT: Final = 500
"""A term that more turns have leads to none."""
TYPE: Final = "session_turn"
SOURCE: Final = "transcript"
_CHARS: Final = 800
_BESIDE: Final = 4
_NEARLY: Final = 0.95
"""Of the share of the best turn; a later one of the session with as much says how it ended."""
_PLACES: Final = 3
_PLACES_OF_PROMPT: Final = 6
"""So many turns of a session are looked at, each with the answer to it."""
_LEAST_TERMS: Final = 2
"""For a prompt, so many terms must be in a turn or its answer."""
_LEFT_TO_DO: Final = """
    left open outstanding pending remaining todo todos undone unfinished
    ausstehend ausstehende offen offene offenen offenes übrig unerledigt
    restait reste restent pendiente pendientes queda
"""
_LEFT: Final = frozenset(_LEFT_TO_DO.split())
"""Words that ask how a session ended: what it was about is said elsewhere in it."""


_CORRECTED: Final = 2
"""Of so many exchanges, the best, a correction by the user is looked for."""
_AFTER: Final = (64 * 1024, 24)
"""Within so many bytes and turns after an answer: an agent may say much before the user replies."""
_OURSELVES: Final = ("we", "wir", "nous", "on")
"""Before a verb they tell what is done: "we use …"."""

Said = tuple[str, str, bool]
"""The role and the text of a turn, and whether it continues the one before it."""
_Ranked = tuple[FoundTurn, float, float]


class _Found(NamedTuple):
    """A turn, the turns that are taken together with it, and what they have of the query."""

    turn: FoundTurn
    unit: Sequence[int]
    terms: Sequence[str]
    share: float
    relevant: float


def with_turns(reader: Reader, snapshot: Snapshot, command: Recall, found: Recalled) -> Recalled:
    """Return ``found`` with the turns that follow its memories, the best of each session, best first.

    Memories that most likely do not answer make room for them. A prompt is given no turn that says what was forgotten,
    and no such sentence of a summary.
    """
    if command.enough is not None and any(row.type == SUMMARY_TYPE for row in found.rows):
        forgotten = Forgotten(reader, snapshot, command.read, command.filters)
        left = [forgotten.left_of(row) for row in found.rows]
        found = msgspec.structs.replace(found, rows=[row for row in left if row is not None])
    rows = [row for row in found.rows if row.relevance >= LEAST_RELEVANCE and row.wording not in command.known]
    likely = [(row.id, row.relevance, row.newer_id) for row in rows]
    answering = len(likely) if command.enough is None else len(relevance.without_doubtful(likely))
    free = min(command.limit - answering, MOST)
    if command.enough is not None and answering >= command.enough:
        return found
    if not command.turns or free <= 0 or not _admits_turns(command) or not stored.is_any_kept(snapshot):
        return found
    started = perf_counter()
    counted = reader.counted_rows(snapshot, command.read, command.filters)
    measure = Measure(snapshot, reader.postings, reader.keyword.terms, counted, reader.unrelated, ())
    weights = _weights(snapshot, measure, compounds=stop_words_of(words_of(command.query)) != STOP_WORDS)
    leading = _leading(snapshot, weights)
    if leading:
        of_prompt = command.enough is not None
        query = SearchSessions(
            query=command.query,
            read=command.read,
            limit=MOST if of_prompt else 2 * MOST,
            without=command.session_key,
            project=command.filters.project,
        )
        said = cache(partial(_said, snapshot))
        turns = stored.best_turns(snapshot, query, leading, places=_PLACES_OF_PROMPT if of_prompt else _PLACES)
        if of_prompt:
            turns = [turn for turn in turns if not tells_nothing([text[:2] for text in said(turn)])]
        units = [_exchange(snapshot, turn) for turn in turns]
        ranked = _ranked(snapshot, command, measure.extent, weights, turns, units)
        corrections: dict[FoundTurn, FoundTurn] = {}
        if of_prompt and not ranked and command.asked is not None:
            ranked = _answering(snapshot, query, command.asked, said)
        if of_prompt and ranked:
            corrections = _corrections(snapshot, ranked[:_CORRECTED], said)
            ranked = _with_change(snapshot, query, ranked, turns, said, corrections, free)
        terms = match_terms(command.query)
        words = (*terms.phrases, *terms.pairs)
        given = ranked if of_prompt else ranked[:free]
        rows = [_row(*each, exchange(said(each[0]), words, _CHARS)) for each in given]
        if of_prompt and rows:
            forgotten = Forgotten(reader, snapshot, command.read, command.filters)
            rows = [kept for row in rows if (kept := forgotten.left_of_turn(row)) is not None]
            for reply, turn in corrections.items():  # answer and reply together may say what was forgotten
                both = _row(turn, 0.0, 0.0, exchange([*said(turn), *said(reply)], (), 2 * _CHARS))
                if forgotten.left_of_turn(both) != both:
                    rows = [row for row in rows if row.id != f"turn:{reply.turn}"]
            rows = rows[:free]
        memories = _with_room(found.rows, command.limit - len(rows))
        highest = min((row.score for row in memories), default=1.0)
        rows = [msgspec.structs.replace(row, score=min(highest, row.score)) for row in rows]
        found = msgspec.structs.replace(found, rows=memories, turns=rows)
    timing = StageTiming("turns", round((perf_counter() - started) * 1000, 3))
    return msgspec.structs.replace(found, timings=[*found.timings, timing])


def _with_room(rows: list[RecalledRow], most: int) -> list[RecalledRow]:
    """Return at most ``most`` rows in their order: the last ones that most likely do not answer are left out."""
    weak = [at for at, row in enumerate(rows) if row.relevance < LEAST_RELEVANCE]
    left_out = frozenset(weak[len(weak) - max(0, len(rows) - most) :] if len(rows) > most else ())
    return [row for at, row in enumerate(rows) if at not in left_out]


def _weights(snapshot: Snapshot, measure: Measure, *, compounds: bool) -> dict[str, float]:
    """Return the weights of the terms, the greatest first.

    ``compounds``: of a word that no turn has, the last part counts if turns have both of its parts.
    """
    weights: dict[str, float] = {}
    for term, weight in sorted(measure.weights, key=lambda each: -each[1]):
        last = _last_part(snapshot, term) if compounds and len(weights) < MOST_TERMS else None
        weights[term if last is None else f"{term} OR {last}"] = weight
    return weights


def _last_part(snapshot: Snapshot, term: str) -> str | None:
    """Return the expression of the last part of a compound (Zeitumstellung, Umstellung) that no turn has itself."""
    parts = compound_parts(_itself(term).strip('"'))
    if not parts or stored.is_in_more_turns(snapshot, term, 0):
        return None
    expressions = (tuple(map(phrase_expression, (first.removesuffix("s"), last))) for first, last in parts)
    return next(
        (pair[1] for pair in expressions if all(stored.is_in_more_turns(snapshot, each, 0) for each in pair)), None
    )


def _leading(snapshot: Snapshot, weights: Iterable[str]) -> str:
    """Return an expression of the query's rare terms: only turns with one of these are looked at; empty without any.

    A term that very many turns have costs much to search and tells little. It counts in what a turn covers.
    """
    rare = (term for term in islice(weights, MOST_TERMS) if not stored.is_in_more_turns(snapshot, term, FREQUENT))
    return " OR ".join(f"({term})" for term in rare)


def _admits_turns(command: Recall) -> bool:
    """Return True if nothing is asked for that only memories have: a scope, a time, tags and so on."""
    filters = msgspec.structs.replace(
        command.filters, project=None, former_project=None, or_no_project=False, importance_min=None
    )
    of_turns = filters == Filters() or filters == Filters(type=TYPE)
    return of_turns and command.read.scope is None and command.within is None


def _ranked(
    snapshot: Snapshot,
    command: Recall,
    extent: float,
    weights: Mapping[str, float],
    turns: Sequence[FoundTurn],
    units: Sequence[Sequence[int]],
) -> list[_Ranked]:
    """Return the turns that are likely about the query, each with the share of it that they cover and the relevance.

    ``units``: by turn, the turns that are taken together. Of a session, the best turn counts; for a prompt the latest
    one of those that cover as much, which says how it ended.
    """
    of_prompt = command.enough is not None
    subject = _subject(command.query, weights) if of_prompt else weights
    least = _LEAST_TERMS if subject is weights or orders_work(command.query) else min(_LEAST_TERMS, len(subject))
    covered = [[term for term in weights if _matches(snapshot, unit, term)] for unit in units]
    shares = np.array([sum(subject.get(term, 0.0) for term in each) for each in covered])
    shares /= max(sum(subject.values()), 1e-12)
    relevances = relevance.relevance(shares, np.full(len(turns), np.nan), extent)
    threshold = max(command.min_relevance, LEAST_RELEVANCE)
    found = [_Found(*each) for each in zip(turns, units, covered, shares.tolist(), relevances.tolist(), strict=True)]
    kept = [each for each in found if each.relevant >= threshold and each.share >= command.min_score]
    kept = [each for each in kept if not of_prompt or _is_about(snapshot, subject, each, least)]
    best: dict[int, _Found] = {}
    latest: dict[int, _Found] = {}
    for each in sorted(kept, key=lambda each: -each.relevant):
        first = best.setdefault(each.turn.transcript, each)
        last = latest.setdefault(each.turn.transcript, each)
        if of_prompt and each.turn.turn > last.turn.turn and each.share >= _NEARLY * first.share:
            latest[each.turn.transcript] = each
            if _asks(snapshot, each, first.terms):
                best[each.turn.transcript] = each
    firsts = sorted(sorted(best.values(), key=_when, reverse=True), key=lambda each: -each.relevant)
    if of_prompt:
        lasts = _latest_first(list(latest.values()))
        firsts = [each for last in lasts for each in _with_rest(last, best[last.turn.transcript], found, weights)]
        later = max(lasts, key=_when, default=None)
        if later is not None and _when(later) > _when(firsts[0]):  # what has changed may be said in other words
            firsts = [firsts[0], later, *(each for each in firsts[1:] if each is not later)]
    return [(each.turn, each.share, each.relevant) for each in firsts]


def _answering(
    snapshot: Snapshot, query: SearchSessions, asked: tuple[str, str], said: Callable[[FoundTurn], list[Said]]
) -> list[_Ranked]:
    """Return the latest turn that answers a plain question, if few turns that the query admits have its word."""
    expression = phrase_expression(asked[1])
    if stored.is_in_more_turns(snapshot, expression, RARE, of_query=query):
        return []
    turns = stored.best_turns(snapshot, query, expression, places=RARE)
    answers = [turn for turn in turns if answers_question(asked, [text[:2] for text in said(turn)])]
    return [(max(answers, key=_moment), 1.0, 1.0)] if answers else []


def _with_change(
    snapshot: Snapshot,
    query: SearchSessions,
    ranked: list[_Ranked],
    turns: Sequence[FoundTurn],
    said: Callable[[FoundTurn], list[Said]],
    corrections: Mapping[FoundTurn, FoundTurn],
    places: int,
) -> list[_Ranked]:
    """Return the turns with the latest one that tells that something of the first one has changed, as the second.

    It has less of the prompt: "the freeze got postponed" does not say what kind of freeze, and "we dropped Auth0" not
    what used it. One of ``corrections`` need not share a word with it. What other agents and projects say often may be
    rare here. If only one of the ``places`` is left, the change has it: a memory tells the rest.
    """

    @cache
    def is_rare(word: str) -> bool:
        expression = phrase_expression(word)
        if len(word) < _NAME_CHARS or stored.is_in_more_turns(snapshot, expression, FREQUENT):
            return False
        return not stored.is_in_more_turns(snapshot, expression, RARE, of_query=query)

    def subject(turn: FoundTurn) -> Subject:
        return subject_of(" ".join(text for _, text, _ in said(turn)))

    first = ranked[0][0]
    given = {at for turn, *_ in ranked for at in _exchange(snapshot, turn)}
    about = subject(first)
    names = [phrase_expression(word) for stem, word in about.words.items() if stem in about.names and is_rare(word)]
    if names:
        turns = [*turns, *stored.best_turns(snapshot, query, " OR ".join(names[:MOST_TERMS]))]
    turns = [*turns, *corrections]
    later = [turn for turn in turns if given.isdisjoint(_exchange(snapshot, turn)) and _moment(turn) > _moment(first)]
    for turn in sorted(later, key=_moment, reverse=True)[:_COMPARED]:
        is_correction = turn in corrections
        if not is_correction and speaks_of_change(" ".join(text for _, text, _ in said(turn))):
            both = shared(about, subject(turn), is_rare, is_rare)
            is_correction = both.has_name or both.has_topic
        if is_correction:
            change = (turn, *ranked[0][1:])
            return [ranked[0], change, *ranked[1:]] if places > 1 else [change, *ranked]
    return ranked


def _corrections(
    snapshot: Snapshot, ranked: Sequence[_Ranked], said: Callable[[FoundTurn], list[Said]]
) -> dict[FoundTurn, FoundTurn]:
    """Return what the user said right after each exchange, if it corrects the answer, with the exchange.

    It has a name of the exchange, or the agent's next answer repeats what is new in it: "thanks, Adyen then".
    """
    corrections = {}
    for turn, *_ in ranked:
        last = max(_exchange(snapshot, turn))
        after, _ = stored.turns_after(snapshot, turn.transcript, last, *_AFTER)
        at = next((at for at, each in enumerate(after) if each.role == "user"), len(after))
        for reply in after[at : at + 1]:
            words = refuting_words(reply.content)
            if not words or (orders_work(" ".join(words)) and words[0] not in _OURSELVES):
                continue
            known, new = (subject_of(text) for text in (" ".join(text for _, text, _ in said(turn)), " ".join(words)))
            answered = subject_of(" ".join(each.content for each in after[at + 1 : at + 2]))
            if new.words.keys() & (known.names | (answered.words.keys() - known.words.keys())):
                said_then = turn._replace(said_at=reply.said_at, content=reply.content, turn=reply.seq)
                corrections[said_then._replace(role=reply.role)] = turn
    return corrections


def _latest_first(found: Sequence[_Found]) -> list[_Found]:
    """Return what covers nearly as much as the best, the latest session first: it says how it is now; then the rest."""
    enough = _NEARLY * max((each.share for each in found), default=0.0)
    near = sorted((each for each in found if each.share >= enough), key=_when, reverse=True)
    return near + sorted((each for each in found if each.share < enough), key=lambda each: -each.relevant)


def _when(found: _Found) -> tuple[str, int]:
    return _moment(found.turn)


def _moment(turn: FoundTurn) -> tuple[str, int]:
    """Return when the turn was said: a session of long ago may have been stored today."""
    return turn.said_at or turn.updated_at, turn.turn


def _asks(snapshot: Snapshot, found: _Found, terms: Iterable[str]) -> bool:
    """Return whether the user's turn of the exchange has all the terms itself: the question was asked again."""
    asked = found.unit[:1] if found.turn.role == "user" else found.unit[1:]
    return all(_matches(snapshot, asked, term) for term in terms)


def _subject(prompt: str, weights: Mapping[str, float]) -> Mapping[str, float]:
    """Return the terms that tell what a session was about.

    If a prompt asks what was left to do, or orders work, without such words.
    """
    if orders_work(prompt):
        return {term: weight for term, weight in weights.items() if tells_subject(_itself(term).strip('"'))}
    others = {term: weight for term, weight in weights.items() if _itself(term).strip('"') not in _LEFT}
    named = {term: weight for term, weight in others.items() if _is_name(term)}
    return weights if len(others) == len(weights) else named or others


def _is_name(term: str) -> bool:
    return not _itself(term).strip('"').isalnum()


def _is_about(snapshot: Snapshot, terms: Mapping[str, float], found: _Found, least: int) -> bool:
    """Return whether the turns have so many words of a prompt, and a name such as ``socket.io`` if it has any.

    A word that is two of the prompt ("rollback") is one.
    """
    told = [term for term in found.terms if term in terms]
    apart = sum(_matches(snapshot, found.unit, _itself(term)) for term in told)
    names = set(filter(_is_name, terms))
    return apart + (apart < len(told)) >= max(1, least) and (not names or not names.isdisjoint(found.terms))


def _itself(term: str) -> str:
    """Return the part of the expression that is the word itself, not what it makes with its neighbours."""
    return term.partition(" OR ")[0]


def _with_rest(first: _Found, best: _Found, found: Sequence[_Found], weights: Mapping[str, float]) -> list[_Found]:
    """Return the exchange, and the one of its session that has most of what it lacks if one has any; the later first.

    If another exchange is the ``best`` one of the session, that is the second. What was asked of the subject of a
    session ("what is left?") need not name it.
    """
    if not set(best.unit) & set(first.unit):
        return [first, best]

    def adds(other: _Found) -> float:
        return sum(weights[term] for term in other.terms if term not in first.terms)

    others = [each for each in found if each.turn.transcript == first.turn.transcript]
    others = [each for each in others if each.terms and not set(each.unit) & set(first.unit)]
    others = [each for each in others if adds(each)] or [each for each in others if each.turn.turn > first.turn.turn]
    other = max(others, key=lambda each: (adds(each), each.share, each.turn.turn), default=None)
    if other is None:
        return [first]
    both = [first, other._replace(share=first.share, relevant=first.relevant)]
    return sorted(both, key=lambda each: -each.turn.turn) if adds(other) else both


def _matches(snapshot: Snapshot, unit: Sequence[int], term: str) -> bool:
    return any(stored.turn_matches(snapshot, turn, term) for turn in unit)


def _exchange(snapshot: Snapshot, turn: FoundTurn) -> tuple[int, ...]:
    """Return the turn with the answer to it, or with what it answers."""
    return _unit(turn, *stored.turns_beside(snapshot, turn.transcript, turn.turn, 1))


def _unit(turn: FoundTurn, beside: Sequence[TranscriptTurn], at: int) -> tuple[int, ...]:
    other = beside[at + 1 : at + 2] if turn.role == "user" else beside[max(0, at - 1) : at]
    return (turn.turn, *(each.seq for each in other if each.role != turn.role))


def _said(snapshot: Snapshot, turn: FoundTurn) -> list[Said]:
    """Return the turn with its answer, or with what it answers, and what the agent said next if there is room."""
    beside, at = stored.turns_beside(snapshot, turn.transcript, turn.turn, _BESIDE)
    unit = _unit(turn, beside, at)
    texts = [(each.role, each.content, each.continues) for each in beside if each.seq in unit]
    for each in takewhile(lambda each: each.role == "assistant", (each for each in beside if each.seq > max(unit))):
        if sum(len(text) for _, text, _ in texts) + len(each.content) <= _CHARS:
            texts.append((each.role, each.content, each.continues))
    return texts


def _row(turn: FoundTurn, score: float, relevant: float, content: str) -> RecalledRow:
    return RecalledRow(
        id=f"turn:{turn.turn}",
        content=content,
        score=round(score, 6),
        source=SOURCE,
        type=TYPE,
        tags=[],
        pinned=False,
        importance=0.0,
        who=turn.role,
        project=turn.project,
        scope=None,
        visibility="private",
        agent_id=turn.agent_id,
        created_at=turn.said_at or turn.updated_at,
        session_id=turn.session_key,
        relevance=relevant,
    )
