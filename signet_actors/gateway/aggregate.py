"""Aggregate recall: further recalls that a model plans, and one answer that it makes of what all of them found.

Only the caller waits for the model, for a bounded time, and no lock is held meanwhile. The model sees only what the
caller's recalls return, so its answer cannot contain what the caller may not read.

Source: memory-api.txt "POST /api/memory/recall" (``aggregate``); docs/guides/aggregate-recall.md; docs/decisions.md 19.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple

from signet_actors.domain.extraction.injection_detector import detect_injection
from signet_actors.domain.memories import AGGREGATE, DEFAULT_TYPE
from signet_actors.domain.permissions import Permission
from signet_actors.domain.providers import UsageStage
from signet_actors.domain.timestamps import iso
from signet_actors.errors import OutcomeUnknown, SignetError
from signet_actors.features.aggregate_recall import rules
from signet_actors.features.aggregate_recall.api import AnswerSaved, AnswerSource, SaveAnswer
from signet_actors.gateway.auth.identity import Forbidden
from signet_actors.gateway.http.route import Call
from signet_actors.gateway.ingest import embed_texts
from signet_actors.operations.recall import Aggregate, RecallFields, RecallResult, Stage, StoppedReason
from signet_actors.protocol.extractor import AggregateAnswered, AskAggregate
from signet_actors.protocol.searcher import Recalled, RecalledRow
from signet_actors.protocol.writer import NewMemory

SOURCE: Final = "constructed"
TAGS: Final = ("aggregate", "recall")
IMPORTANCE: Final = 0.5
MAX_CONCURRENT: Final = 4
"""Aggregate recalls that may wait for a model. This leaves room in the extractor's mailbox."""
PLANNING_SHARE: Final = 1 / 3
"""The part of the time that is left which the planning may take."""
RESERVE_MS: Final = 500
"""The part of the request's time limit that is reserved for saving, and for the response."""
_RATE: Final = "recallLlm"
_NOT_SAVED: Final = AnswerSaved()
_INSTRUCTS: Final = "the answer is not saved, because it looks like an instruction to an agent"
_FROZEN: Final = "the answer is not saved, because mutations are frozen"
_FOREIGN: Final = "the answer is not saved, because a memory that it was made from belongs to another agent"
_CHANGED: Final = "the answer is not saved, because a memory that it was made from was changed or forgotten meanwhile"


class Outcome(NamedTuple):
    """How the aggregate recall ended. ``cited``: the memories that its answer ``result`` was made from."""

    aggregate: Aggregate
    result: RecallResult | None
    cited: Sequence[RecalledRow]
    stages: list[Stage]


def check_caller(call: Call[Any], fields: RecallFields) -> None:
    """Raise SignetError if the caller may not save the answer that it wants saved, or its limit is reached."""
    role, permissions = call.identity.role, call.identity.permissions
    if fields.save_aggregate is not False and role is not None and Permission.REMEMBER not in permissions:
        raise Forbidden(f"role '{role}' lacks '{Permission.REMEMBER}' permission; send saveAggregate: false")
    call.state.take_rate(call.identity, _RATE)


class AggregateRecall:
    """One aggregate recall. ``again`` recalls another query for the same caller with the same conditions."""

    def __init__(
        self, call: Call[Any], query: str, fields: RecallFields, again: Callable[[str], Awaitable[Recalled]]
    ) -> None:
        self._call = call
        self._state = call.state
        self._query = query
        self._fields = fields
        self._again = again
        self._queries = [query]
        self._usage: list[UsageStage] = []
        self._stages: list[Stage] = []

    async def answer(self, first: Recalled) -> Outcome:
        """Return the answer to the query whose own recall has found ``first``, or why there is none."""
        evidence = _evidence([first])
        state = self._state
        if not evidence:
            return self._ended("no_evidence", _ids(evidence))
        if not state.is_up("extractor") or state.aggregates_waiting >= MAX_CONCURRENT:
            return self._ended("router_unavailable", _ids(evidence))
        state.aggregates_waiting += 1
        try:
            evidence = await self._with_further(first)
            answered = await self._timed("aggregate_synthesis", self._ask("synthesis", evidence))
        finally:
            state.aggregates_waiting -= 1
        if answered.usage is None and self._left_ms() > 0:
            return self._ended("router_unavailable", _ids(evidence))
        text = "" if answered.answer is None else state.redactor.clean_for_storage(answered.answer)[0]
        if not text:
            return self._ended("synthesis_failed", _ids(evidence))
        cited = [evidence[number - 1] for number in answered.cited] or evidence
        saved = await self._save(text, evidence, cited, answered.usage.target_ref or "")
        return self._complete(text, evidence, cited, saved)

    async def _with_further(self, first: Recalled) -> list[RecalledRow]:
        """Return the evidence of the first recall and of those that the model plans, which may fail."""
        most = rules.BUDGETS[self._fields.aggregate_budget] - 1
        planned = await self._timed("aggregate_planning", self._ask("planning", _evidence([first]), most))
        further = await self._timed("aggregate_followup_recalls", self._recall_more(planned.queries[:most]))
        return _evidence([first, *further])

    async def _recall_more(self, queries: Sequence[str]) -> list[Recalled]:
        found = []
        for planned in queries:
            query = self._state.redactor.clean_for_storage(planned)[0]
            if query and self._left_ms() > 0:
                try:
                    found.append(await self._again(query))
                    self._queries.append(query)
                except SignetError as error:
                    self._log("aggregate_recall_failed", error)
        return found

    async def _ask(self, stage: Any, evidence: Sequence[RecalledRow], most: int = 0) -> AggregateAnswered:
        """Return what the model says; nothing if the call fails, and no usage if it certainly was not made."""
        left_ms = int(self._left_ms() * (PLANNING_SHARE if stage == "planning" else 1))
        if left_ms <= 0:
            return AggregateAnswered()
        texts = tuple(f"[{row.said_at[:10]}] {row.content}" for row in evidence)
        asked = AskAggregate(stage, self._query, texts, most)
        try:
            # The bus has its own timeout; this one also covers the wait before the request is sent.
            async with asyncio.timeout(left_ms / 1000):
                answered = await self._state.bus.ask_extractor(asked, trace_id=self._call.trace_id, timeout_ms=left_ms)
        except (OutcomeUnknown, TimeoutError) as error:
            self._log("aggregate_not_answered", error)
            answered = AggregateAnswered(UsageStage(stage))
        except SignetError as error:
            self._log("aggregate_not_answered", error)
            answered = AggregateAnswered()
        self._usage += [] if answered.usage is None else [answered.usage]
        return answered

    async def _save(
        self, text: str, evidence: Sequence[RecalledRow], cited: Sequence[RecalledRow], model: str
    ) -> AnswerSaved:
        """Store the answer if that is wanted and possible; a warning says why it is not."""
        call, fields = self._call, self._fields
        if fields.save_aggregate is False:
            return _NOT_SAVED
        frozen = call.state.config.memory.pipeline_v2.mutations_frozen
        if frozen or detect_injection(text, "\n".join(row.content for row in evidence)) is not None:
            call.warnings.append(_FROZEN if frozen else _INSTRUCTS)
            return _NOT_SAVED
        frames: list[bytes] = []
        (vector,) = await embed_texts(call.state, [text], frames, trace_id=call.trace_id)
        ids = _ids(evidence)
        is_cited = set(_ids(cited))
        versions = zip(ids, (row.content_version for row in evidence), strict=True)
        key = rules.idempotency_key(call.agent_id, self._query, fields.project, fields.aggregate_budget, ids)
        command = SaveAnswer(
            memory=NewMemory(
                content=text,
                type=DEFAULT_TYPE,
                type_named=False,
                importance=IMPORTANCE,
                tags=TAGS,
                agent_id=call.agent_id,
                idempotency_key=key,
                vector=vector,
            ),
            sources=tuple(AnswerSource(id_, version, id_ in is_cited) for id_, version in versions),
            read=call.read,
            principal=call.principal,
            made_by={"budget": fields.aggregate_budget, "model": model},
        )
        try:
            saved = (await call.ask_writer(command, frames=frames)).read(AnswerSaved)
        except SignetError as error:
            call.warnings.append(f"the answer may not be saved: {error.detail}")
            return _NOT_SAVED
        if saved.id is None:
            call.warnings.append(_FOREIGN if saved.foreign else _CHANGED)
        return saved

    def _complete(
        self, text: str, evidence: Sequence[RecalledRow], cited: Sequence[RecalledRow], saved: AnswerSaved
    ) -> Outcome:
        call, content = self._call, text if saved.id is None else saved.content
        digest = hashlib.sha1("\0".join((self._query, *_ids(evidence))).encode(errors="replace"), usedforsecurity=False)
        result = RecallResult(
            id=saved.id or f"aggregate:{digest.hexdigest()[:12]}",
            content=content,
            content_length=len(content),
            truncated=False,
            score=round(max(row.score for row in evidence), 4),
            relevance=max(row.relevance for row in cited),
            source=SOURCE,
            type=DEFAULT_TYPE,
            tags=",".join(TAGS),
            pinned=False,
            importance=IMPORTANCE,
            who=AGGREGATE,
            project=rules.shared_project([row.project for row in evidence]),
            scope=call.read.scope,
            visibility=rules.visibility_of(row.visibility for row in evidence),
            created_at=iso(self._state.clock.wall_ms()),
            source_type=AGGREGATE,
        )
        ended = self._ended("complete", saved.source_ids or _ids(cited), saved)
        return ended._replace(result=result, cited=cited)

    def _ended(self, reason: StoppedReason, source_ids: list[str], saved: AnswerSaved = _NOT_SAVED) -> Outcome:
        aggregate = Aggregate(
            saved_memory_id=saved.id,
            saved=saved.id is not None,
            deduped=saved.deduped,
            budget=self._fields.aggregate_budget,
            queries=self._queries,
            source_memory_ids=source_ids,
            stopped_reason=reason,
            usage=rules.usage_of(self._usage),
        )
        return Outcome(aggregate, None, (), self._stages)

    async def _timed(self, name: str, work: Awaitable[Any]) -> Any:
        began_ns = self._state.clock.monotonic_ns()
        try:
            return await work
        finally:
            took_ms = round((self._state.clock.monotonic_ns() - began_ns) / 1e6, 2)
            self._stages.append(Stage(name, took_ms))

    def _left_ms(self) -> float:
        """Return how long the model may take."""
        call, state = self._call, self._state
        until_ns = call.until_ns or call.began_ns + state.config.gateway.request_timeout_ms * 1_000_000
        return (until_ns - state.clock.monotonic_ns()) / 1e6 - RESERVE_MS

    def _log(self, event: str, error: Exception) -> None:
        self._state.log.info(event, reason=error.__class__.__name__, trace=self._call.trace_id)


def _evidence(found: Sequence[Recalled]) -> list[RecalledRow]:
    """Return the memories of the recalls, each once. A session in a timeline is none."""
    rows = [[row for row in each.rows if row.time is None or row.time.subject_type == "memory"] for each in found]
    return rules.merged(rows, [_ids(each) for each in rows])


def _ids(rows: Sequence[RecalledRow]) -> list[str]:
    """Return the ids of the memories; an entry of a timeline has another one."""
    return [row.id if row.time is None or not row.id.startswith("temporal:") else row.time.subject_id for row in rows]
