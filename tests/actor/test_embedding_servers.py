"""Embedding servers over real HTTP: correct vectors and every kind of server error."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import pytest

from signet_actors.config.schema import EmbeddingConfig, EmbeddingProvider
from signet_actors.errors import ConfigError, ProviderError, ProviderErrorKind
from signet_actors.providers.embedded import EmbeddedEmbedder
from signet_actors.providers.remote_embedder import (
    BATCH_TEXTS,
    LEAST_WAIT_MS,
    MAX_TEXT_CHARS,
    PROBE_TEXT,
    RemoteEmbedder,
)
from signet_actors.providers.select import for_event_loop, make_embedder
from signet_actors.providers.threaded_embedder import ThreadedEmbedder
from tests.support.bus_client_harness import soon
from tests.support.scripted_provider import Act, Asked, Fault, ScriptedProvider, vector_of

KEY = "sk-test-0123456789abcdef"
DIMENSIONS = 8
HANG_GUARD_S = 30.0
T = TypeVar("T")
PROVIDERS: tuple[EmbeddingProvider, ...] = ("ollama", "openai")


@pytest.fixture
def server() -> Iterator[ScriptedProvider]:
    with ScriptedProvider(dimensions=DIMENSIONS, models=("house-model:latest", "house-model")) as running:
        yield running
        running.await_quiet()


@pytest.fixture(params=PROVIDERS)
def provider(request: pytest.FixtureRequest) -> EmbeddingProvider:
    name: EmbeddingProvider = request.param
    return name


def made(server: ScriptedProvider, provider: EmbeddingProvider, **given: Any) -> RemoteEmbedder:
    settings = {"model": "house-model", "dimensions": DIMENSIONS, "api_key_env": "THE_KEY", **given}
    if provider == "ollama":
        settings["api_key_env"] = ""
    config = EmbeddingConfig(provider=provider, endpoint=server.url, **settings)
    embedder = make_embedder(config, {"THE_KEY": KEY})
    assert isinstance(embedder, RemoteEmbedder)
    return embedder


def using(embedder: RemoteEmbedder, work: Callable[[RemoteEmbedder], Awaitable[T]]) -> T:
    async def life() -> T:
        try:
            async with asyncio.timeout(HANG_GUARD_S):
                return await work(embedder)
        finally:
            await embedder.close()

    return asyncio.run(life())


def failure(embedder: RemoteEmbedder, timeout_ms: int = 5000) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        using(embedder, lambda it: it.embed_async(["one", "two"], timeout_ms=timeout_ms))
    assert KEY not in caught.value.detail
    return caught.value


def unit(text: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    vector = np.asarray(vector_of(text, DIMENSIONS))
    return vector / np.linalg.norm(vector)


def test_each_text_has_its_own_unit_vector(server: ScriptedProvider, provider: EmbeddingProvider) -> None:
    texts = ["tabs", "数据库", "🙂"]
    embedder = made(server, provider)
    vectors = using(embedder, lambda it: it.embed_async(texts))
    assert vectors.dtype == np.float32
    assert np.allclose(vectors, [unit(text) for text in texts], atol=1e-6)
    assert (embedder.provider, embedder.model, embedder.dimensions, embedder.local) == (
        provider,
        "house-model",
        DIMENSIONS,
        False,
    )
    assert embedder.endpoint.startswith(server.url)


def test_many_texts_are_sent_in_batches_and_keep_their_order(
    server: ScriptedProvider, provider: EmbeddingProvider
) -> None:
    texts = [f"text {number}" for number in range(2 * BATCH_TEXTS + 3)]
    vectors = using(made(server, provider), lambda it: it.embed_async(texts))
    assert [len(asked.texts) for asked in server.asked] == [BATCH_TEXTS, BATCH_TEXTS, 3]
    assert np.allclose(vectors, [unit(text) for text in texts], atol=1e-6)


def test_long_texts_fill_a_batch_sooner_and_are_truncated(
    server: ScriptedProvider, provider: EmbeddingProvider
) -> None:
    using(made(server, provider), lambda it: it.embed_async(["x" * 100_000] * 9))
    assert [len(asked.texts) for asked in server.asked] == [8, 1]
    assert all(text == "x" * MAX_TEXT_CHARS for asked in server.asked for text in asked.texts)


def test_a_blank_text_gets_a_zero_vector_without_a_call(server: ScriptedProvider, provider: EmbeddingProvider) -> None:
    vectors = using(made(server, provider), lambda it: it.embed_async(["", "a", " \n"]))
    assert [asked.texts for asked in server.asked] == [("a",)]
    assert vectors.any(axis=1).tolist() == [False, True, False]
    assert using(made(server, provider), lambda it: it.embed_async([])).shape == (0, DIMENSIONS)
    assert len(server.asked) == 1


def test_a_model_with_query_and_document_prefixes_gets_them(
    server: ScriptedProvider, provider: EmbeddingProvider
) -> None:
    server.dimensions = 768

    async def work(embedder: RemoteEmbedder) -> None:
        await embedder.embed_async(["a passage"])
        assert (await embedder.embed_query_async("a question")).shape == (768,)

    using(made(server, provider, model="nomic-embed-text", dimensions=768), work)
    assert [asked.texts for asked in server.asked] == [("search_document: a passage",), ("search_query: a question",)]


def test_a_thread_gets_the_same_vectors_as_an_event_loop(server: ScriptedProvider, provider: EmbeddingProvider) -> None:
    embedder = made(server, provider)
    assert np.allclose(embedder.embed(["a", "b"]), [unit("a"), unit("b")], atol=1e-6)
    assert np.allclose(embedder.embed_query("q"), unit("q"), atol=1e-6)
    asyncio.run(embedder.close())


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("http_500", ProviderErrorKind.HTTP),
        ("http_401", ProviderErrorKind.REFUSED),
        ("http_429", ProviderErrorKind.RATE_LIMITED),
        ("http_503", ProviderErrorKind.UNAVAILABLE),
        ("redirect", ProviderErrorKind.HTTP),
        ("rst", ProviderErrorKind.HTTP),
        ("cut_off", ProviderErrorKind.HTTP),
        ("huge", ProviderErrorKind.MALFORMED),
        ("bomb", ProviderErrorKind.MALFORMED),
        ("broken_json", ProviderErrorKind.MALFORMED),
        ("wrong_shape", ProviderErrorKind.MALFORMED),
        ("wrong_content_type", ProviderErrorKind.MALFORMED),
    ],
)
def test_a_server_error_is_raised_with_its_kind(
    server: ScriptedProvider, provider: EmbeddingProvider, fault: Fault, kind: ProviderErrorKind
) -> None:
    server.then(fault)
    assert failure(made(server, provider)).kind is kind


@pytest.mark.parametrize("fault", ["hang", "slow_drip"])
def test_one_deadline_covers_all_batches(server: ScriptedProvider, provider: EmbeddingProvider, fault: Fault) -> None:
    server.then(fault)
    assert failure(made(server, provider), timeout_ms=300).kind is ProviderErrorKind.TIMEOUT


Rows = list[list[float]]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda rows: rows[:-1],
        lambda rows: [*rows, rows[0]],
        lambda rows: [],
        lambda rows: [rows[0], rows[1][:-1]],
        lambda rows: [rows[0], [math.nan] * DIMENSIONS],
        lambda rows: [rows[0], [1e300] * DIMENSIONS],
        lambda rows: [rows[0], None],
        lambda rows: [rows[0], "vector"],
        lambda rows: "vectors",
    ],
    ids=["one missing", "one too many", "none", "ragged", "not a number", "infinite", "null", "text", "no list"],
)
def test_invalid_vectors_are_refused(
    server: ScriptedProvider, provider: EmbeddingProvider, spoil: Callable[[Rows], Any]
) -> None:
    server.spoil_vectors = spoil
    assert failure(made(server, provider)).kind is ProviderErrorKind.MALFORMED


def test_a_vector_of_zeros_for_a_text_is_refused(server: ScriptedProvider, provider: EmbeddingProvider) -> None:
    # Stored, it would mean that the text has no vector for good.
    server.spoil_vectors = lambda rows: [rows[0], *([0.0] * DIMENSIONS for _ in rows[1:])]
    error = failure(made(server, provider))
    assert (error.kind, "zeros" in error.detail) == (ProviderErrorKind.MALFORMED, True)


def test_an_oversized_answer_is_refused_unread(server: ScriptedProvider, provider: EmbeddingProvider) -> None:
    server.spoil_vectors = lambda rows: [[0.25] * 400_000 for _ in rows]
    error = failure(made(server, provider))
    assert (error.kind, "more than" in error.detail) == (ProviderErrorKind.MALFORMED, True)


def test_vectors_of_another_width_are_refused_with_the_correct_setting(
    server: ScriptedProvider, provider: EmbeddingProvider
) -> None:
    server.dimensions = 12
    error = failure(made(server, provider))
    assert (error.kind, error.costs_attempt) == (ProviderErrorKind.REFUSED, False)
    assert "12 dimensions, but embedding.dimensions is 8: set it to 12" in error.detail


def test_a_hung_server_delays_one_query_and_is_then_skipped(
    server: ScriptedProvider, provider: EmbeddingProvider
) -> None:
    server.stuck = "hang"

    async def work(embedder: RemoteEmbedder) -> None:
        kinds = []
        for _ in range(6):
            with pytest.raises(ProviderError) as caught:
                await embedder.embed_query_async("q", timeout_ms=500)
            kinds.append(caught.value.kind)
        assert kinds == [ProviderErrorKind.TIMEOUT] + [ProviderErrorKind.UNAVAILABLE] * 5
        assert embedder.problem.endswith(" did not respond within 500 ms")

    using(made(server, provider), work)
    assert [asked.texts for asked in server.asked if PROBE_TEXT not in asked.texts[0]] == [("q",)]


def test_a_query_that_could_hardly_wait_says_nothing_about_the_server(
    server: ScriptedProvider, provider: EmbeddingProvider
) -> None:
    async def work(embedder: RemoteEmbedder) -> None:
        for timeout_ms in (0, LEAST_WAIT_MS - 1):
            server.stuck = "hang"
            with pytest.raises(ProviderError):
                await embedder.embed_query_async("q", timeout_ms=timeout_ms)
            server.stuck = None
            assert embedder.problem == ""
            assert (await embedder.embed_query_async("q")).any()

    using(made(server, provider), work)
    assert [asked for asked in server.asked if PROBE_TEXT in asked.texts[0]] == []


def test_a_slow_server_gets_the_queries_that_wait_long_enough_and_a_quick_one_all(
    server: ScriptedProvider, provider: EmbeddingProvider
) -> None:
    now_ms = 0
    embedder = made(server, provider)
    embedder.now_ms = lambda: now_ms
    probes = 0
    takes_ms = 8000

    def took(asked: Asked) -> Fault:
        nonlocal now_ms, probes
        if PROBE_TEXT in asked.texts[0]:
            probes += 1
            now_ms += takes_ms
        return "ok"

    async def work(it: RemoteEmbedder) -> None:
        nonlocal takes_ms
        server.then("http_500")
        server.script = took
        with pytest.raises(ProviderError):
            await it.embed_query_async("q", timeout_ms=5000)
        await soon(lambda: it.problem.endswith(f"{provider} takes 8000 ms") and probes >= 2)
        with pytest.raises(ProviderError, match="wait no longer than 5000 ms"):
            await it.embed_query_async("q", timeout_ms=7999)
        assert (await it.embed_query_async("q", timeout_ms=8000)).any()
        takes_ms = 5000
        await soon(lambda: not it.problem)
        assert (await it.embed_query_async("q", timeout_ms=5000)).any()

    using(embedder, work)


def test_a_server_that_names_a_pause_is_not_asked_in_it(server: ScriptedProvider, provider: EmbeddingProvider) -> None:
    server.then(Act("http_429", retry_after="3600"))

    async def work(it: RemoteEmbedder) -> None:
        for _ in range(2):
            with pytest.raises(ProviderError, match="answered 429"):
                await it.embed_query_async("q")
        assert re.search(r"answered 429.*; the server asks to wait, and is asked again at \d\d:\d\d$", it.problem)

    using(made(server, provider), work)
    assert len(server.asked) == 1


def test_batches_are_refused_after_failures_in_a_row_and_again_accepted_after_the_pause(
    server: ScriptedProvider, provider: EmbeddingProvider
) -> None:
    now_ms = 0
    embedder = made(server, provider)
    embedder.now_ms = lambda: now_ms
    server.stuck = "http_500"

    async def work(it: RemoteEmbedder) -> None:
        nonlocal now_ms
        for _ in range(4):
            with pytest.raises(ProviderError):
                await it.embed_async(["a"])
        assert len(server.asked) == 3
        server.stuck = None
        with pytest.raises(ProviderError):
            await it.embed_async(["a"])
        now_ms += 2000
        assert (await it.embed_async(["a"])).any()

    using(embedder, work)


def test_queries_reach_a_recovered_server_without_being_asked_for_it(
    server: ScriptedProvider, provider: EmbeddingProvider
) -> None:
    server.stuck = "http_500"

    async def work(it: RemoteEmbedder) -> None:
        with pytest.raises(ProviderError):
            await it.embed_query_async("q")
        server.stuck = None
        await soon(lambda: not it.problem)
        assert (await it.embed_query_async("q")).any()

    using(made(server, provider), work)


def test_a_cancelled_query_closes_its_connection(server: ScriptedProvider, provider: EmbeddingProvider) -> None:
    server.then("hang")

    async def work(embedder: RemoteEmbedder) -> None:
        task = asyncio.ensure_future(embedder.embed_query_async("q", timeout_ms=60_000))
        await asyncio.to_thread(server.await_asked, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await embedder.embed_query_async("q")).any()

    using(made(server, provider), work)


def test_an_openai_compatible_server_gets_the_key_and_the_dimensions(server: ScriptedProvider) -> None:
    using(made(server, "openai", model="text-embedding-3-small"), lambda it: it.embed_async(["a"]))
    (asked,) = server.asked
    assert asked.path == "/v1/embeddings"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {
        "model": "text-embedding-3-small",
        "input": ["a"],
        "encoding_format": "float",
        "dimensions": DIMENSIONS,
    }


def test_a_server_that_has_the_model_is_available(server: ScriptedProvider, provider: EmbeddingProvider) -> None:
    assert using(made(server, provider), lambda it: it.available()).ok
    found = using(made(server, provider, model="other-model"), lambda it: it.available())
    assert not found.ok
    assert "other-model" in found.detail


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (EmbeddingConfig(provider="ollama", dimensions=256), "nomic-embed-text has 768 dimensions; set it to 768"),
        (EmbeddingConfig(provider="openai"), "embedding.model: the provider openai needs a model"),
        (EmbeddingConfig(provider="openai", model="text-embedding-3-small", dimensions=4096), "has 1536"),
        (EmbeddingConfig(provider="ollama", model="mxbai-embed-large:335m", dimensions=768), "has 1024"),
        (EmbeddingConfig(provider="openai", model="m", api_key_env="NO_SUCH_KEY"), "NO_SUCH_KEY is not set"),
    ],
)
def test_an_inconsistent_configuration_is_refused_with_an_explanation(config: EmbeddingConfig, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        make_embedder(config, {})


def test_the_embedded_model_serves_an_event_loop_too() -> None:
    local = EmbeddedEmbedder()
    embedder = for_event_loop(local)
    assert isinstance(embedder, ThreadedEmbedder)

    async def work() -> None:
        texts = ["short", "long " * 1000]
        assert np.array_equal(await embedder.embed_async(texts), local.embed(texts))
        assert np.array_equal(await embedder.embed_query_async(texts[1]), local.embed_query(texts[1]))
        await embedder.close()

    asyncio.run(work())
    assert (embedder.provider, embedder.model, embedder.dimensions, embedder.endpoint) == (
        "embedded",
        local.model,
        local.dimensions,
        None,
    )


def test_a_remote_embedder_needs_no_adapter_for_an_event_loop(server: ScriptedProvider) -> None:
    remote = made(server, "ollama")
    assert for_event_loop(remote) is remote
    asyncio.run(remote.close())


def test_no_text_leaves_with_its_secrets_and_one_at_the_end_of_what_is_sent_is_not_cut_in_half(
    server: ScriptedProvider, provider: EmbeddingProvider
) -> None:
    token = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
    padding = "x " * (MAX_TEXT_CHARS // 2)
    clean = [f"a note about widget {number} and its password rules" for number in range(20)]
    texts = [f"note {number}: token {token} and password=hunter2hunter" for number in range(20)]
    texts += [padding[:-cut] + token + " and more" for cut in (4, 8, 16, 38)]
    using(made(server, provider), lambda it: it.embed_async([*texts, *clean]))
    using(made(server, provider), lambda it: it.embed_query_async(texts[0]))
    sent = [text for asked in server.asked for text in asked.texts]
    assert len(sent) == len(texts) + len(clean) + 1
    assert [text for text in sent if "ghp_" in text or "hunter2" in text] == []
    assert all(text in sent for text in clean)
    assert sent[0] == sent[-1] == "note 0: token [REDACTED:github-token] and password=[REDACTED:password]"
