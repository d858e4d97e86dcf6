"""Summaries of recall results, made by the model while the caller waits; not durable jobs, and nothing is stored.

Source: memory-api.txt "POST /api/memory/recall" (``useExtractionModel``); docs/reliability.md R11.
"""

from __future__ import annotations

import asyncio
from typing import Final

from signet_actors.domain.extraction.answers import SUMMARY
from signet_actors.domain.extraction.summary_card import parse_summary
from signet_actors.errors import Busy, Unavailable
from signet_actors.extractor.prompts import summary_prompt
from signet_actors.extractor.resources import Resources
from signet_actors.protocol.extractor import Summarize, Summarized
from signet_actors.protocol.header import Header

MAX_CONCURRENT: Final = 8
_MAX_TOKENS: Final = 400


class Summaries:
    """Makes summaries and counts them in this process: ``made``, ``empty`` (the model gave none), ``late``."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._waiting = 0
        self.made = 0
        self.empty = 0
        self.late = 0

    async def of(self, asked: Summarize, header: Header) -> Summarized:
        """Return the model's summary, None in the reply if it gave none.

        Raises Busy, Unavailable after the caller's deadline, and ProviderError if no model is available. A call that is
        cancelled at the caller's deadline is not a failure of the provider, so slow summaries never open the circuit
        that extraction depends on.
        """
        if self._waiting >= MAX_CONCURRENT:
            raise Busy("too many recalls are already waiting for a summary")
        resources = self._resources
        prompt = summary_prompt(asked.query, asked.texts, resources.rng)
        left_s = (header.deadline_ns - resources.actor.clock.monotonic_ns()) / 1e9
        self._waiting += 1
        try:
            async with asyncio.timeout(max(0.0, left_s)):
                answer = await resources.model.generate(
                    prompt,
                    timeout_ms=resources.pipeline.extraction.timeout_ms,
                    max_tokens=_MAX_TOKENS,
                    answer=SUMMARY,
                )
        except TimeoutError as error:
            self.late += 1
            raise Unavailable("the summary was not ready in time") from error
        finally:
            self._waiting -= 1
        summary = parse_summary(answer.text)
        self.made += summary is not None
        self.empty += summary is None
        return Summarized(summary, resources.model.model)
