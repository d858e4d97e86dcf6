"""The summary card of a recall: its content, when there is one, and that the recall never depends on it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from signet_actors.config.pipeline_schema import MemoryConfig, PipelineV2Config, RerankerConfig
from signet_actors.config.schema import AuthConfig, Config, GatewayConfig, RateLimit, RateLimitsConfig
from signet_actors.domain.permissions import PERMISSIONS_OF, Role
from signet_actors.errors import Busy, ProviderError, ProviderErrorKind, Unavailable
from signet_actors.gateway.auth.identity import Authenticator, Identity
from signet_actors.gateway.auth.rate_limiter import RateLimiter
from signet_actors.gateway.summary_card import MAX_CONCURRENT
from signet_actors.protocol.control import TreeChanged
from signet_actors.protocol.extractor import Summarize, Summarized
from signet_actors.protocol.searcher import Recall
from signet_actors.protocol.writer import TouchMemories
from tests.actor.test_memory_routes_recall import RECALL, found, row
from tests.support.memory_api import MemoryApi

ROWS = [row(id=f"m{n}", content=f"text {n}", score=1 - n / 10, relevance=0.9) for n in range(5)]
SAID = Summarized("They prefer vim.", "qwen3:4b")


def configured(auth: AuthConfig | None = None, **reranker: Any) -> Config:
    settings = RerankerConfig(**({"use_extraction_model": True} | reranker))
    return Config(memory=MemoryConfig(pipeline_v2=PipelineV2Config(reranker=settings)), auth=auth or AuthConfig())


def api_with(directory: Path, said: Any = SAID, config: Config | None = None) -> MemoryApi:
    api = MemoryApi(directory, config=config or configured())
    api.bus.script[Recall] = lambda asked: found(*ROWS[: asked.limit])
    api.bus.script[Summarize] = said
    return api


def recalled(api: MemoryApi, **fields: Any) -> Any:
    answer = api.request("POST", RECALL, {"query": "editor", **fields})
    assert answer.status == 200
    return answer.json


def cards(api: MemoryApi) -> list[Any]:
    return [sent.body for sent in api.bus.asked if isinstance(sent.body, Summarize)]


def plain(answer: Any) -> Any:
    """An answer without what differs from call to call."""
    answer["meta"].pop("timings")
    return answer


def test_the_card_is_the_first_result_and_marked_as_a_summary(tmp_path: Path) -> None:
    answer = recalled(api_with(tmp_path), limit=10)
    card, *rows = answer["results"]
    assert card["content"] == "They prefer vim."
    assert (card["source"], card["supplementary"], card["pinned"], card["tags"]) == ("llm_summary", True, False, None)
    prefix, digits = card["id"].split(":")
    assert prefix == "summary"
    assert len(digits) == 12
    assert int(digits, 16) >= 0
    assert [one["id"] for one in rows] == ["m0", "m1", "m2", "m3", "m4"]
    assert not any(one["supplementary"] for one in rows)
    assert (answer["meta"]["hasSupplementary"], answer["meta"]["totalReturned"]) == (True, 6)
    assert recalled(api_with(tmp_path), limit=10)["results"][0]["id"] == card["id"], "the same question, the same card"


def test_the_card_counts_toward_the_limit_and_summarises_the_other_results(tmp_path: Path) -> None:
    api = api_with(tmp_path)
    answer = recalled(api, limit=2)
    assert [one["id"] for one in answer["results"]][1:] == ["m0"]
    assert cards(api) == [Summarize("editor", ("text 0",))]


def test_a_recall_with_limit_one_has_no_card(tmp_path: Path) -> None:
    api = api_with(tmp_path)
    assert [one["id"] for one in recalled(api, limit=1)["results"]] == ["m0"]
    assert cards(api) == []


def test_a_recall_without_results_has_no_card(tmp_path: Path) -> None:
    api = api_with(tmp_path)
    api.bus.script[Recall] = found()
    assert recalled(api)["meta"]["noHits"] is True
    assert cards(api) == []


def test_no_model_is_called_for_an_aggregate_recall_or_when_cards_are_off(tmp_path: Path) -> None:
    off = api_with(tmp_path, config=configured(use_extraction_model=False, enabled=True))
    assert recalled(off)["meta"]["hasSupplementary"] is False
    aggregate = api_with(tmp_path)
    recalled(aggregate, aggregate=True)
    assert cards(off) == cards(aggregate) == []


def test_a_card_counts_no_access_of_its_own(tmp_path: Path) -> None:
    api = api_with(tmp_path)
    recalled(api, limit=3)
    assert api.bus.told == [TouchMemories(ids=("m0", "m1"))]


@pytest.mark.parametrize(
    "trouble",
    [
        Summarized(None, "qwen3:4b"),
        Busy("other recalls wait"),
        Unavailable("the summary was not ready in time"),
        ProviderError(ProviderErrorKind.UNAVAILABLE, "no model"),
    ],
)
def test_after_any_error_the_recall_is_answered_without_a_card(tmp_path: Path, trouble: Any) -> None:
    without = recalled(api_with(tmp_path, config=configured(use_extraction_model=False)), limit=4)
    assert plain(recalled(api_with(tmp_path, trouble), limit=4)) == plain(without)


def test_requests_do_not_wait_for_an_extractor_that_is_down(tmp_path: Path) -> None:
    api = api_with(tmp_path)
    api.bus.tree = TreeChanged([])
    assert len(recalled(api)["results"]) == 5
    assert cards(api) == []


def test_a_hung_model_delays_only_its_recall_by_the_timeout(tmp_path: Path) -> None:
    api = api_with(tmp_path, config=configured(timeout_ms=100))
    inner = api.bus.ask_extractor
    asked = 0

    async def hang(request: Any, *, trace_id: str, timeout_ms: int) -> Any:
        nonlocal asked
        asked += 1
        await asyncio.Event().wait()

    api.bus.ask_extractor = hang  # type: ignore[method-assign]

    async def many() -> list[Any]:
        body = b'{"query": "editor"}'
        return await asyncio.gather(*(api.requested("POST", RECALL, body, {}) for _ in range(MAX_CONCURRENT + 5)))

    answers = asyncio.run(many())
    assert all(len(answer.json["results"]) == 5 for answer in answers)
    assert asked == MAX_CONCURRENT, "the others were answered without a card at once"
    assert api.state.summaries_waiting == 0
    api.bus.ask_extractor = inner  # type: ignore[method-assign]
    assert recalled(api)["meta"]["hasSupplementary"] is True


def test_the_deadline_of_the_request_limits_the_model_call(tmp_path: Path) -> None:
    config = msgspec.structs.replace(configured(timeout_ms=30_000), gateway=GatewayConfig(request_timeout_ms=3_000))
    api = api_with(tmp_path, config=config)
    recalled(api)
    assert api.bus.last_timeout_ms == 2_500


def test_beyond_its_own_limit_a_recall_has_no_card_and_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def as_ada(*_args: object, **_options: object) -> Identity:
        return Identity("token-1", "Ada", Role.AGENT, PERMISSIONS_OF[Role.AGENT])

    monkeypatch.setattr(Authenticator, "identify", as_ada)
    limits = RateLimitsConfig(recall_llm=RateLimit(window_ms=60_000, max_count=2))
    api = api_with(tmp_path, config=configured(AuthConfig(mode="team", rate_limits=limits)))
    first = [recalled(api)["meta"]["hasSupplementary"] for _ in range(3)]
    assert first == [True, True, False]
    api.clock.now_ms += 60_000
    assert recalled(api)["meta"]["hasSupplementary"] is True


def test_in_local_mode_model_recalls_are_not_rate_limited(tmp_path: Path) -> None:
    limits = RateLimitsConfig(recall_llm=RateLimit(max_count=1))
    api = api_with(tmp_path, config=configured(AuthConfig(rate_limits=limits)))
    assert all(recalled(api)["meta"]["hasSupplementary"] for _ in range(3))


def test_a_rate_window_slides_for_each_key_separately_and_returns_its_remaining_time() -> None:
    windows, limit = RateLimiter(), RateLimit(window_ms=1000, max_count=2)
    assert [windows.take("a", limit, at) for at in (0, 400, 700)] == [0, 0, 300]
    assert windows.take("b", limit, 700) == 0
    assert [windows.take("a", limit, at) for at in (1000, 1100, 1400)] == [0, 300, 0]


def test_recall_uses_hints_always_and_reranking_only_if_enabled(tmp_path: Path) -> None:
    api = api_with(tmp_path, config=Config())
    recalled(api)
    asked = api.bus.only(Recall).body
    assert (asked.hints, asked.rerank_top) == (True, 0)
    pipeline = PipelineV2Config(reranker=RerankerConfig(enabled=True, top_n=7))
    api = api_with(tmp_path, config=Config(memory=MemoryConfig(pipeline_v2=pipeline)))
    recalled(api)
    asked = api.bus.only(Recall).body
    assert (asked.hints, asked.rerank_top) == (True, 7)
