"""A request that merges duplicates ends before its time limit, whatever the size of the store, one at a time."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec

from signet_actors.config.schema import Config
from signet_actors.errors import Busy
from signet_actors.features.duplicates.api import (
    DeduplicateReply,
    DeduplicateRequest,
    DuplicatePair,
    FoundDuplicates,
    FoundPair,
    MergePair,
    NoteCompared,
    PairMerged,
)
from signet_actors.gateway.routes.duplicates import deduplicate
from signet_actors.protocol.message import Answered, Principal


class SlowStore:
    """A store in which nothing ever ends: each question takes ``step_ms``, and finds a pair if ``finds``."""

    def __init__(self, step_ms: int, *, finds: bool = False) -> None:
        self.step_ms, self.finds = step_ms, finds
        self.now_ns = 0
        self.told: list[Any] = []
        self.state = SimpleNamespace(config=Config(), clock=self, compares_duplicates=False)

    def monotonic_ns(self) -> int:
        return self.now_ns

    async def ask(self, message: Any) -> Answered:
        self.now_ns += self.step_ms * 1_000_000 * (3 if isinstance(message, MergePair) else 1)
        self.told.append(message)
        await asyncio.sleep(0)
        if isinstance(message, MergePair):
            return Answered(msgspec.json.encode(PairMerged(merged=True)))
        at = len(self.told)
        pair = FoundPair(DuplicatePair(f"kept-{at}", f"merged-{at}", 0.99, "a", "a"), "h", "h")
        return Answered(msgspec.json.encode(FoundDuplicates([pair] if self.finds else [], at, done=False)))

    def call(self, **fields: Any) -> Any:
        return SimpleNamespace(
            began_ns=self.now_ns,
            agent_id="default",
            principal=Principal("tester"),
            request=DeduplicateRequest(**fields),
            state=self.state,
            ask_searcher=self.ask,
            ask_writer_unkeyed=self.ask,
            refuse_if_frozen=lambda: None,
        )

    @property
    def seconds(self) -> float:
        return self.now_ns / 1e9

    @property
    def limit_s(self) -> float:
        limit: int = Config().gateway.request_timeout_ms
        return limit / 1000


def reply(store: SlowStore, **fields: Any) -> DeduplicateReply:
    body = asyncio.run(deduplicate(store.call(**fields))).body
    assert isinstance(body, DeduplicateReply)
    return body


def test_a_store_that_is_too_large_for_one_request_is_compared_in_parts() -> None:
    store = SlowStore(30)
    told = reply(store)
    assert "the next request goes on" in told.message
    assert store.seconds < store.limit_s / 2
    assert store.told[-1] == NoteCompared("default", len(store.told) - 1)


def test_what_there_is_no_time_to_merge_is_left_to_the_next_request() -> None:
    store = SlowStore(900, finds=True)
    told = reply(store)
    assert (told.affected, sum(isinstance(each, MergePair) for each in store.told)) == (2, 2)
    assert "the next request goes on" in told.message
    assert store.seconds < store.limit_s
    assert not any(isinstance(each, NoteCompared) for each in store.told), "the next one compares these again"


def test_only_one_request_compares_at_a_time() -> None:
    store = SlowStore(30)

    async def two() -> list[Any]:
        return await asyncio.gather(*(deduplicate(store.call(dry_run=True)) for _ in range(2)), return_exceptions=True)

    first, second = asyncio.run(two())
    assert isinstance(first.body, DeduplicateReply)
    assert isinstance(second, Busy)
    assert reply(store, dry_run=True).success
