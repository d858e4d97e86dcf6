"""The extractor: one runner per kind of durable job, a shared model, and a mailbox.

The mailbox serves status requests, summaries of recalls, and requests that wait for vectors. The quarantine is the same
process without a mailbox; it works on jobs that may have crashed an extractor.

Source: memory-pipeline.txt "Worker Model"; docs/decisions.md 11-18 and 23; docs/architecture.md
"The path of a remember".
"""

from __future__ import annotations

import asyncio
from typing import Final, assert_never

import msgspec

from signet_actors.config.schema import Config
from signet_actors.domain.extraction.answers import AGGREGATE, QUERIES, SUMMARY, AnswerFormat
from signet_actors.domain.extraction.summary_card import parse_summary
from signet_actors.domain.jobs import PoisonJobs
from signet_actors.domain.providers import UsageStage
from signet_actors.errors import Busy, ProviderError, Unavailable
from signet_actors.extractor.job_runner import JobRunner
from signet_actors.extractor.jobs import JOB_KINDS
from signet_actors.extractor.jobs.embed import Embed
from signet_actors.extractor.prompts import recall_answer_prompt, recall_plan_prompt, summary_prompt
from signet_actors.extractor.resources import Resources, extraction_config
from signet_actors.extractor.second_vectors import SecondVectors
from signet_actors.extractor.synthesis import SynthesisModel
from signet_actors.features.aggregate_recall.rules import parse_answer, parse_plan
from signet_actors.protocol import extractor as messages
from signet_actors.protocol.decider import DeciderReply
from signet_actors.protocol.header import Header
from signet_actors.protocol.writer import WriterReply
from signet_actors.providers.llm.provider import Generated
from signet_actors.providers.llm.provider_manager import ProviderManager
from signet_actors.runtime.messaging.mailbox import Incoming
from signet_actors.runtime.processes.async_actor import AsyncActor

_MAX_UNANSWERED = 32
_WRITER_ASKS = 256
QUARANTINE = "quarantine"
"""The role of the process that works only on poison jobs."""
_DRAIN_S = 1.0
"""A job that does not finish within this time gives its attempt back. The gateway stops after the extractor, and the
requests that it has in flight matter more."""
_DECIDER_ASKS = 200


class Extractor:
    def __init__(self, actor: AsyncActor) -> None:
        self._actor = actor
        self._runners: list[JobRunner] = []

    async def start(self) -> None:
        """Start the runners and open the mailbox. A model need not be available: jobs wait."""
        actor = self._actor
        replies: msgspec.msgpack.Decoder[WriterReply] = msgspec.msgpack.Decoder(WriterReply)
        decisions: msgspec.msgpack.Decoder[DeciderReply] = msgspec.msgpack.Decoder(DeciderReply)
        writer = actor.connect("writer", replies, max_items=_WRITER_ASKS, resend=True)
        decider = actor.connect("decider", decisions, max_items=_DECIDER_ASKS, resend=True)
        model = ProviderManager(extraction_config(actor.config), actor.clock, actor.log, writer, changed=self._wake)
        self._resources = Resources(actor, writer, decider, model)
        self._summaries = Summaries(self._resources)
        self._synthesis = SynthesisModel(self._resources, actor, writer, self._wake)
        self._second_vectors = SecondVectors(actor, writer)
        kinds = [kind(self._resources) for kind in JOB_KINDS]
        (self._embed,) = [kind for kind in kinds if isinstance(kind, Embed)]
        self._runners = [JobRunner(kind, actor, writer, self._poison_jobs) for kind in kinds]
        actor.on_tree = lambda _tree: self._wake()
        actor.spawn(model.run())
        for runner in self._runners:
            runner.start()
        if actor.boot.role == QUARANTINE:
            return
        self._synthesis.start()
        self._second_vectors.start()
        requests: msgspec.msgpack.Decoder[messages.ExtractorRequest] = msgspec.msgpack.Decoder(
            messages.ExtractorRequest
        )
        actor.open_mailbox("extractor", requests, self._answer, max_unanswered=_MAX_UNANSWERED)

    def counters(self) -> dict[str, float]:
        figures: dict[str, float] = {}
        for runner in self._runners:
            state = runner.state()
            for name in ("running", "done", "failed", "returned", "fenced"):
                figures[f"{state.kind}_{name}"] = getattr(state, name)
            if pause := runner.pause():
                figures[f"{state.kind}_pause_seconds"] = (pause.for_ms or 0) / 1000
        figures["embedding_away"] = float(self._embed.is_away)
        figures["second_vectors_stored"] = self._second_vectors.stored
        for name in ("made", "empty", "late"):
            figures[f"summaries_{name}"] = getattr(self._summaries, name)
        return figures

    async def reload(self, config: Config) -> None:
        self._resources.reconfigure(config)
        self._synthesis.reconfigure(config)
        self._embed.reconfigured()
        self._second_vectors.reconfigure()
        self._wake()

    async def drain(self, grace_s: float) -> None:
        """Let jobs finish within the grace period; give back the attempts of the others."""
        self._embed.stop_waits()
        within_s = min(grace_s, _DRAIN_S)
        await asyncio.gather(*(runner.drain(within_s) for runner in self._runners))
        await self._second_vectors.close()
        await self._synthesis.close()
        await self._resources.close()

    def _poison_jobs(self) -> PoisonJobs:
        """Return whether to lease poison jobs; while a quarantine process runs, only it leases them."""
        if self._actor.boot.role == QUARANTINE:
            return PoisonJobs.ONLY
        quarantined = any(child.role == QUARANTINE for child in self._actor.tree.children)
        return PoisonJobs.EXCLUDED if quarantined else PoisonJobs.INCLUDED

    def _wake(self) -> None:
        for runner in self._runners:
            runner.wake()

    async def _answer(self, incoming: Incoming[messages.ExtractorRequest]) -> messages.ExtractorReply:
        match incoming.body:
            case messages.AwaitVectors(versions=versions, wait_ms=wait_ms):
                return await self._embed.stored(versions, wait_ms)
            case messages.Summarize() as asked:
                return await self._summaries.of(asked, incoming.header)
            case messages.AskAggregate() as asked:
                return await self._summaries.aggregate(asked, incoming.header)
            case messages.Synthesize() as asked:
                return await self._synthesis.of(asked, incoming.header)
            case messages.GetExtractorStatus():
                return messages.ExtractorStatus(
                    mode=self._resources.mode,
                    model=self._resources.model.state(),
                    runners=[runner.state() for runner in self._runners],
                    rejected=dict(self._resources.rejected),
                    tracker=self._embed.tracker(),
                    synthesis=self._synthesis.state(),
                )
            case _:
                assert_never(incoming.body)


MAX_CONCURRENT: Final = 12
_MAX_TOKENS: Final = 400
_MAX_ANSWER_TOKENS: Final = 800
_REPLY_S: Final = 0.1
"""The part of the caller's time that is left for the reply, which tells that a call was made."""


class Summaries:
    """Makes summaries of recall results, and answers from them, while the caller waits, and stores nothing.

    They are counted in this process: ``made``, ``empty`` (the model gave none), ``late``.

    Source: memory-api.txt "POST /api/memory/recall" (``useExtractionModel``); docs/reliability.md R11.
    """

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._waiting = 0
        self.made = 0
        self.empty = 0
        self.late = 0

    async def of(self, asked: messages.Summarize, header: Header) -> messages.Summarized:
        """Return the model's summary, None in the reply if it gave none.

        Raises Busy, Unavailable after the caller's deadline, and ProviderError if no model is available. A call that is
        cancelled at the caller's deadline is not a failure of the provider, so slow summaries never open the circuit
        that extraction depends on.
        """
        prompt = summary_prompt(asked.query, asked.texts, self._resources.rng)
        try:
            answer = await self._generate(prompt, SUMMARY, _MAX_TOKENS, self._left_s(header))
        except TimeoutError as error:
            self.late += 1
            raise Unavailable("the summary was not ready in time") from error
        summary = parse_summary(answer.text)
        self.made += summary is not None
        self.empty += summary is None
        return messages.Summarized(summary, self._resources.model.model)

    async def aggregate(self, asked: messages.AskAggregate, header: Header) -> messages.AggregateAnswered:
        """Return what the model says, and what the call used. Raises Busy."""
        resources, plans = self._resources, asked.stage == "planning"
        usage = UsageStage(asked.stage, f"{resources.model.name}/{resources.model.model}")
        began_ns = resources.actor.clock.monotonic_ns()
        if plans:
            prompt = recall_plan_prompt(asked.query, asked.texts, asked.most, resources.rng)
        else:
            prompt = recall_answer_prompt(asked.query, asked.texts, resources.rng)
        wanted, max_tokens = (QUERIES, _MAX_TOKENS) if plans else (AGGREGATE, _MAX_ANSWER_TOKENS)
        try:
            answer = await self._generate(prompt, wanted, max_tokens, self._left_s(header) - _REPLY_S)
        except TimeoutError:
            return messages.AggregateAnswered(usage)
        except ProviderError as error:
            return messages.AggregateAnswered(usage if error.costs_attempt else None)
        used = answer.reported
        usage = msgspec.structs.replace(
            usage,
            input_tokens=used.tokens_in,
            output_tokens=used.tokens_out,
            cache_read_tokens=used.cache_read_tokens,
            total_cost=None if used.cost_microusd is None else used.cost_microusd / 1e6,
            total_duration_ms=(resources.actor.clock.monotonic_ns() - began_ns) // 1_000_000,
        )
        if plans:
            return messages.AggregateAnswered(usage, queries=parse_plan(answer.text, asked.query, asked.most))
        text, cited = parse_answer(answer.text, len(asked.texts))
        return messages.AggregateAnswered(usage, answer=text, cited=cited)

    async def _generate(self, prompt: str, wanted: AnswerFormat, max_tokens: int, left_s: float) -> Generated:
        """Return the model's answer. Raises Busy, ProviderError, and TimeoutError if it is not there in time."""
        if self._waiting >= MAX_CONCURRENT:
            raise Busy("too many recalls are already waiting for the model")
        self._waiting += 1
        try:
            async with asyncio.timeout(max(0.0, left_s)):
                return await self._resources.model.generate(
                    prompt,
                    timeout_ms=self._resources.pipeline.extraction.timeout_ms,
                    max_tokens=max_tokens,
                    answer=wanted,
                )
        finally:
            self._waiting -= 1

    def _left_s(self, header: Header) -> float:
        return (header.deadline_ns - self._resources.actor.clock.monotonic_ns()) / 1e9
