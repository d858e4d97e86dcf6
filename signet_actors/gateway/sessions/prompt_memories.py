"""What a prompt is given: the memories that answer it, and that its session has not received.

Source: docs/guides/hooks.md "Each prompt"; docs/decisions.md 49.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

import msgspec

from signet_actors.domain.extraction.injection_detector import detect_injection
from signet_actors.domain.normalization import collapsed
from signet_actors.domain.program_text import said_by_user
from signet_actors.domain.prompt_terms import PromptTerms
from signet_actors.domain.query_words import words_of
from signet_actors.domain.ranking.explanation import ExplainedId
from signet_actors.domain.ranking.relevance import OF_NAMED, without_doubtful
from signet_actors.domain.session_inject import (
    TURN_CHARS,
    Line,
    harmless,
    memory_lines,
    prompt_memories,
    session_line,
    turn_item,
)
from signet_actors.domain.stop_words import STOP_WORDS
from signet_actors.domain.temporal.change import speaks_of_change, stem
from signet_actors.domain.temporal.questions import MAX_CHARS, topic_of_time
from signet_actors.domain.timestamps import iso
from signet_actors.domain.transcripts.excerpts import shortened_conversation
from signet_actors.domain.versions import Dated, are_alike, newest_versions, telling_words
from signet_actors.features.searches.api import ConsideredMemory, Outcome
from signet_actors.gateway.http.route import Call
from signet_actors.gateway.memory_search import asks_how_it_was, search_memories
from signet_actors.gateway.routes.recall import WORD_MATCHES, offer_found
from signet_actors.gateway.session_spans import told_of
from signet_actors.gateway.sessions.hook_runner import HookSession
from signet_actors.gateway.temporal import query_intent
from signet_actors.operations.hooks import UserPromptReply, UserPromptRequest
from signet_actors.operations.recall import RecallFields
from signet_actors.protocol.memories import Filters, Wording
from signet_actors.protocol.searcher import EntityFact, MissedRow, Recalled, RecalledRow
from signet_actors.protocol.transcripts import ListSpans

MIN_IMPORTANCE: Final = 0.3
"""Memories of less importance are not offered to a prompt."""
ENOUGH: Final = 2
"""With so many memories, no turn of an earlier session is looked for."""
TURN_RELEVANCE: Final = 0.8
"""Turns are found by their words alone, so they must answer more surely."""
FACTS: Final = 3
"""Of each entity that a prompt names."""
MAX_ENTITY_CHARS: Final = 800
ENTITY_HEADING: Final = "## Relevant Entity Context"
MAX_SPANS: Final = 3
NEARLY: Final = 0.8
"""Memories with so much of the relevance of the best one are given with it."""
MAX_TOLD: Final = 200
"""Turns of which a session remembers what it was told; the one that was told last is the last."""
_BEGIN_CHARS: Final = 200
_OF_SUBJECT: Final = 2
"""The first telling words of a fact name what it is about."""
VERSIONS: Final = 3
MAX_FOUND: Final = 200
"""So many times the memories that are offered are looked at, and the received ones, because versions take one place."""


async def sessions_of_day(call: Call[UserPromptRequest], prompt: str, terms: PromptTerms) -> UserPromptReply | None:
    """Return the reply to a prompt that asks what was done at a time: the sessions of the project then.

    Those come first that speak of the topic of the question. None if none does, if there is no session, or if the
    prompt asks for anything else.
    """
    project, state = call.request.project, call.state
    prompt = said_by_user(prompt[: 2 * MAX_CHARS])
    if project is None or len(prompt) > MAX_CHARS:
        return None
    intent = query_intent(call, prompt, RecallFields())
    topic = topic_of_time(prompt, intent)
    if intent is None or topic is None or not await call.is_owner():
        return None
    start, end = iso(intent.window.start_ms), iso(intent.window.end_ms)
    query = ListSpans(start, end, call.read, MAX_SPANS, topic, project=project, with_ends=True, unasked=True)
    spans = (await call.ask_searcher(query)).spans
    if topic and spans:
        others = (await call.ask_searcher(msgspec.structs.replace(query, words=""))).spans
        told = {span.session_key for span in spans}
        spans = [*spans, *(span for span in others if span.session_key not in told)][:MAX_SPANS]
    spans = [span for span in spans if span.session_key != call.session_key]
    settings = state.config.hooks.user_prompt_submit
    chars = min(settings.max_inject_chars, call.request.max_inject_chars or settings.max_inject_chars)
    items = []
    for span in spans:
        item = turn_item(told_of(span), span.end if span.start[:10] != span.end[:10] else span.start, chars)
        if item is not None:
            items.append(item)
            chars -= len(item) + 1
    if not items:
        return None
    inject = prompt_memories(items)
    return UserPromptReply(inject=inject, dynamic_context=inject, query_terms=list(terms.terms), engine="hybrid")


class Offered(NamedTuple):
    """The reply to a prompt; ``considered`` returns what became of each memory that was found for it, best first.

    ``fates``: what each search says of the memory ``explain_id``.
    """

    reply: UserPromptReply
    considered: Callable[[], list[ConsideredMemory]] = list
    fates: Sequence[ExplainedId] = ()


async def offered_memories(
    call: Call[UserPromptRequest], terms: PromptTerms, session: HookSession, given: tuple[Wording, ...]
) -> Offered:
    """Return the reply with the memories that fit, which the session has received when it is sent.

    ``given``: rows that stand before them in the same reply.
    """
    state, project, context = call.state, call.request.project, session.context
    settings = state.config.hooks.user_prompt_submit
    received = frozenset(given + (() if context is None else context.left_out(call.request_key)))
    filters = Filters(
        project=project,
        former_project=call.former_project,
        or_no_project=project is not None,
        no_project=project is None,
        importance_min=MIN_IMPORTANCE,
    )
    most = min(VERSIONS * settings.recall_limit + len(received), MAX_FOUND)
    fields = RecallFields(limit=most, min_relevance=settings.min_score, explain_id=call.request.explain_id)
    found, fates = await _searched(call, terms, fields, filters, received)
    # An older version of a memory is left out also where the session has received the newest one; not one of which
    # a newer memory says that something has changed: it may say something else.
    searched, rows_found = found, _without_doubtful(found.rows)
    sure = rows_found
    if not any(asks_how_it_was(call, search.text, fields) for search in terms.searches):
        versions = [Dated(row.content, row.own_ms, row.project) for row in rows_found]
        asked = [word for search in terms.searches for word in words_of(search.text)]
        rows_found = [rows_found[at] for at in newest_versions(versions, asked)]
    again = tuple(row.seq for row in rows_found if row.wording in received and row.source in WORD_MATCHES)
    fresh = [row for row in rows_found if row.wording not in received][: settings.recall_limit]
    found = msgspec.structs.replace(found, rows=fresh, received_hits=again)
    limit = min(settings.max_inject_chars, call.request.max_inject_chars or settings.max_inject_chars)
    shown = memory_lines(map(_line, found.rows), limit, most=limit, cut=True, words=terms.terms)
    items = list(shown.items)
    if len(items) < ENOUGH:
        items += _turns(found, terms, {} if context is None else context.told_turns, limit - len(shown.text))
    rows = [(row.id, row.wording) for row in found.rows if row.id in shown.whole]
    if context is not None:
        offer_found(call, context, "prompt", found, found.rows, injected=shown.whole)
        call.when_sent(lambda: state.ledger.record(context, rows, call.request_key))
    if shown.ids and not call.observes and not state.config.memory.pipeline_v2.mutations_frozen:
        state.access_counts.add(shown.ids, "injected", trace_id=call.trace_id)
    tools = ""
    if items and context is not None and not context.told_tools:
        tools = session_line(session.key, limit) if await state.has_tools(call.request.harness) else ""
        context.told_tools = bool(tools)
    inject = prompt_memories(items, tools) if items else ""
    known = {row.id for row in found.rows}.union(() if context is None else context.received)
    about, facts = _entity_context(found, known, {} if context is None else context.told_turns, limit - len(inject))
    inject = "\n\n".join(filter(None, (inject, about)))
    reply = UserPromptReply(
        inject=inject,
        dynamic_context=inject,
        memory_count=len(shown.ids),
        query_terms=list(terms.terms),
        engine="entity-context" if about and not items else found.method,
    )

    def considered() -> list[ConsideredMemory]:
        stages: list[tuple[Outcome, Collection[str]]] = [
            ("doubtful", {row.id for row in sure}),
            ("older_version", {row.id for row in rows_found}),
            ("received", {row.id for row in rows_found if row.wording not in received}),
            ("beyond_limit", {row.id for row in fresh}),
            ("no_room", shown.ids),
            ("cut", shown.whole),
        ]

        def outcome(row: RecalledRow) -> Outcome:
            return next((why for why, kept in stages if row.id not in kept), "given")

        told = [ConsideredMemory(*row.wording, row.relevance, outcome(row)) for row in searched.rows]
        told += [ConsideredMemory(fact.seq, fact.version, None, "fact") for fact in facts]
        seen = {each.seq for each in told}
        return told + [
            ConsideredMemory(row.seq, row.version, row.relevance, "below_relevance")
            for row in searched.missed
            if row.seq not in seen
        ]

    return Offered(reply, considered, fates)


def _entity_context(
    found: Recalled, known: Collection[str], told: dict[str, list[str]], chars: int
) -> tuple[str, list[EntityFact]]:
    """Return a section about the entities that the prompt names, with what fits of their facts; empty without any.

    Facts of ``known`` memories are left out, and what the session was ``told`` of a memory before.
    """
    lines, facts = [ENTITY_HEADING], []
    left = min(chars, MAX_ENTITY_CHARS) - len(ENTITY_HEADING) - 2
    for entity in found.entities:
        for fact in entity.facts:
            mark = " (constraint)" if fact.kind == "constraint" else ""
            line = f"- {harmless(collapsed(entity.name))}{mark}: {harmless(collapsed(fact.content))}"
            is_told = fact.memory_id in known or fact.content in told.get(fact.memory_id, ())
            if not is_told and len(line) < left:
                lines.append(line)
                facts.append(fact)
                told[fact.memory_id] = [*told.get(fact.memory_id, ()), fact.content]
                left -= len(line) + 1
    return "\n".join(lines) if len(lines) > 1 else "", facts


async def _searched(
    call: Call[UserPromptRequest],
    terms: PromptTerms,
    fields: RecallFields,
    filters: Filters,
    received: Collection[Wording],
) -> tuple[Recalled, list[ExplainedId]]:
    """Return what the searches of a prompt find: of several, the best of each in turn, and what each missed.

    Also what each of them says of the memory ``fields.explain_id``.
    """
    # Turns of the agent's sessions in the project, where too little is known otherwise.
    turns = filters.project is not None and call.state.config.search.transcripts and await call.is_owner()
    least = [
        max(fields.min_relevance or 0.0, OF_NAMED if search.is_names else search.least) for search in terms.searches
    ]
    replies = [
        search_memories(
            call,
            search.text,
            msgspec.structs.replace(fields, min_relevance=NEARLY * least[at]),
            None,
            filters,
            turns=turns and not at,
            enough=ENOUGH,
            known=() if at else received,
            asked=None if at else terms.asked,
            names={} if at else terms.names,
            of_long_text=search.is_of_long,
            is_part=search.is_part,
            facts=0 if at else FACTS,
        )
        for at, search in enumerate(terms.searches)
    ]
    answers = [found for found, _ in await asyncio.gather(*replies)]
    ranks = zip_longest(*(_likely(found.rows, limit) for found, limit in zip(answers, least, strict=True)))
    rows = {row.id: row for rank in ranks for row in rank if row is not None}
    below = [MissedRow(*row.wording, row.relevance) for found in answers for row in found.rows if row.id not in rows]
    below += [missed for found in answers for missed in found.missed]
    numbers = {row.seq for row in rows.values()}
    missed = {each.seq: each for each in reversed(below) if each.seq not in numbers and each.relevance is not None}
    nearest = sorted(missed.values(), key=lambda each: each.relevance or 0.0, reverse=True)
    found = msgspec.structs.replace(answers[0], rows=list(rows.values()), missed=nearest)
    return found, [answer.explained for answer in answers if answer.explained is not None]


def _without_doubtful(rows: Sequence[RecalledRow]) -> list[RecalledRow]:
    """Return the rows without doubtful ones if another one surely answers.

    A later one stays that tells of a change of the same thing: "Logs now go to Loki" beside "Logs are shipped to …".
    """
    kept = set(without_doubtful([(row.id, row.relevance, row.newer_id) for row in rows]))
    sure = [(row.own_ms, _subject(row.content)) for at, row in enumerate(rows) if at in kept]

    def tells_change(row: RecalledRow) -> bool:
        about = _subject(row.content)
        return speaks_of_change(row.content) and any(row.own_ms > ms and about & each for ms, each in sure)

    return [row for at, row in enumerate(rows) if at in kept or tells_change(row)]


def _subject(text: str) -> set[str]:
    """Return the first telling words of a text, by their beginnings."""
    words = words_of(text[:_BEGIN_CHARS])
    return {stem(word) for word in [each for each in words if each not in STOP_WORDS][:_OF_SUBJECT]}


def _likely(rows: Sequence[RecalledRow], least: float) -> list[RecalledRow]:
    """Return the rows of at least this relevance, and what is nearly as relevant as the best of them."""
    best = max((row.relevance for row in rows), default=0.0)
    return [row for row in rows if best >= least and row.relevance >= min(least, NEARLY * best)]


def _turns(found: Recalled, terms: PromptTerms, told: dict[str, list[str]], chars: int) -> list[str]:
    """Return what was said in earlier sessions and answers, as items that fit.

    ``told`` has by the id of a turn what the session was told of it; it is not told the same again.
    """
    items: list[str] = []
    for turn in found.turns:
        text = shortened_conversation(turn.content, terms.terms, TURN_CHARS)
        said = "" if turn.who != "user" else text
        words = telling_words(text)
        is_told = any(are_alike(words, telling_words(each), much=True) for each in told.get(turn.id, ()))
        if is_told or turn.relevance < TURN_RELEVANCE:
            continue
        if detect_injection(f"Noted: {text}", said) is not None:
            continue
        item = turn_item(text, turn.created_at, chars, turn.newer_id)
        if item is None or len(items) == ENOUGH:
            break
        items.append(item)
        told[turn.id] = [*told.pop(turn.id, ()), text]
        if len(told) > MAX_TOLD:
            del told[next(iter(told))]
        chars -= len(item) + 1
    return items


def _line(row: RecalledRow) -> Line:
    return Line(row.id, row.content, row.tags, iso(row.own_ms) if row.own_ms else row.said_at, row.newer_id)
