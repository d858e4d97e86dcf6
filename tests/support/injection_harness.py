"""A store with a model that obeys everything it reads.

The extract job, the decisions, the writer and the reader are real and run in one process. Only the model and the
message passing are simulated. The model gives the answer that an attack intends, and all its prompts are kept.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import structlog

from signet_actors.config.schema import Config, EmbeddingConfig
from signet_actors.decider.fact_decider import FactDecider
from signet_actors.domain.extraction.answers import AnswerFormat
from signet_actors.errors import SignetError
from signet_actors.extractor.job_runner import JobRun
from signet_actors.extractor.jobs.extract import Extract
from signet_actors.extractor.resources import Resources
from signet_actors.protocol.header import Header
from signet_actors.protocol.leases import FailJob
from signet_actors.protocol.message import Failure
from signet_actors.providers.llm.provider import Generated
from signet_actors.searcher.queries import candidates
from tests.support.pipeline_harness import PipelineHarness, configured
from tests.support.scripted_model import ScriptedModel, stage_of
from tests.support.scripted_provider import Act, Asked

_HEADER = Header("message", "trace", "extractor", 1, 0, 1, "boot")
_PAST_ANY_PAUSE_MS = 120_000


class ObedientModel:
    """A model whose answers an attack dictates.

    ``facts`` and ``decides`` are its answers to the prompts for facts and decisions: a text is sent unchanged, any
    other value as JSON. None is the answer of a model that did not understand the attack. ``meanwhile`` is called
    during generation.
    """

    name = "scripted"
    model = "obedient"
    trying = False

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self.facts: Any = None
        self.decides: Any = None
        self.meanwhile: Callable[[], object] = lambda: None
        self._mind = ScriptedModel()

    async def generate(
        self, prompt: str, *, timeout_ms: int, max_tokens: int | None = None, answer: AnswerFormat | None = None
    ) -> Generated:
        """Return the answer that the attack intends."""
        self.prompts.append(prompt)
        stage = stage_of(prompt)
        said = {"extraction": self.facts, "decision": self.decides}.get(stage)
        if stage == "decision":
            self.meanwhile()
        if said is None:
            act = self._mind(Asked("POST", "/api/generate", {}, None, prompt, (), 0))
            assert isinstance(act, Act)
            said = act.text or ""
        elif stage == "extraction" and isinstance(said, Sequence) and not isinstance(said, str):
            facts = [fact if isinstance(fact, dict) else {"content": fact} for fact in said]
            said = {"facts": [{"type": "fact", "confidence": 0.95, **fact} for fact in facts], "entities": []}
        return Generated(said if isinstance(said, str) else json.dumps(said), 10, 10)

    def healthy_since(self, _moment_ns: int) -> bool:
        """Always healthy."""
        return True

    @property
    def decisions(self) -> list[str]:
        """Return the prompts in which a fact was compared with memories."""
        return [prompt for prompt in self.prompts if stage_of(prompt) == "decision"]


class InjectionHarness(PipelineHarness):
    """``work`` runs every waiting extract job with ``model``. ``untouched`` are rows that must not change."""

    def __init__(self, directory: Path, *, config: Config | None = None) -> None:
        without_vectors = msgspec.structs.replace(config or configured(), embedding=EmbeddingConfig(provider="none"))
        super().__init__(directory, config=without_vectors)
        self.model = ObedientModel()
        self.untouched: dict[str, tuple[Any, ...]] = {}
        self._runner = asyncio.Runner()
        actor = cast("Any", _Actor(self))
        model = cast("Any", self.model)
        self._deciding = FactDecider(actor, model)
        decider, self._writer = cast("Any", SimpleNamespace(ask=self._decide)), SimpleNamespace(ask=self._write)
        self._extract = Extract(Resources(actor, cast("Any", self._writer), decider, model))

    def work(self) -> None:
        """Run extract jobs until none waits: each was completed, or failed as often as it may."""
        while self.value("SELECT count(*) FROM memory_jobs WHERE job_type = 'extract' AND status = 'pending'"):
            self.clock.advance(_PAST_ANY_PAUSE_MS)
            for job in self.take_all():
                run = JobRun(job, cast("Any", self._writer), self.clock, job.id)
                try:
                    self._runner.run(self._extract.work(run))
                except SignetError as error:
                    self.ask(FailJob(job.id, job.lease_id, error.detail))

    def close(self) -> None:
        self._runner.close()
        super().close()

    async def _decide(self, asked: Any, *, frames: Sequence[bytes] = (), **_: Any) -> Any:
        return await self._deciding.decide(asked, frames, _HEADER)

    async def _write(self, request: Any, *, frames: Sequence[bytes] = (), **_: Any) -> Any:
        answer = self.ask(request, frames)
        if isinstance(answer, Failure):
            raise SignetError(answer.code, answer.detail)
        return answer


class _Actor:
    """The part of an actor that jobs and decisions use."""

    def __init__(self, room: InjectionHarness) -> None:
        self._room = room
        self.clock = room.clock
        self.rng = random.Random(11)
        self.log = structlog.get_logger()

    @property
    def config(self) -> Config:
        return self._room.config

    async def ask_searcher(self, query: Any, *, frames: Sequence[bytes] = (), **_: Any) -> Any:
        with self._room.reader.open_snapshot() as view:
            return candidates.find(self._room.reader, view, query, list(frames))
