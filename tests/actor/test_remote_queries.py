"""Recall and remember in a gateway whose vectors come from a server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from signet_actors.config.schema import EmbeddingConfig
from signet_actors.gateway.ingest import embed_texts
from signet_actors.gateway.query_embedding import QueryVector, query_vector
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.searcher import CommonWords
from signet_actors.providers.remote_embedder import RemoteEmbedder
from signet_actors.providers.select import make_embedder
from tests.support.memory_api import MemoryApi
from tests.support.scripted_provider import ScriptedProvider, vector_of

DIMENSIONS = 8
HANG_GUARD_S = 30.0
READ = ReadScope()


@pytest.fixture
def server() -> Iterator[ScriptedProvider]:
    with ScriptedProvider(dimensions=DIMENSIONS) as running:
        yield running
        running.await_quiet()


def queried(api: MemoryApi, server: ScriptedProvider, *queries: str) -> list[QueryVector]:
    """The dense halves of ``queries``, one after the other on one loop."""

    async def scenario() -> list[QueryVector]:
        config = EmbeddingConfig(provider="ollama", model="m", dimensions=DIMENSIONS, endpoint=server.url)
        embedder = make_embedder(config)
        assert isinstance(embedder, RemoteEmbedder)
        api.state.embedder = embedder
        try:
            async with asyncio.timeout(HANG_GUARD_S):
                return [await query_vector(api.state, query, READ, None, trace_id="t") for query in queries]
        finally:
            await embedder.close()

    return asyncio.run(scenario())


@pytest.fixture
def api(tmp_path: Path) -> MemoryApi:
    return MemoryApi(tmp_path)


def test_a_query_is_embedded_by_the_server_in_the_gateways_event_loop(api: MemoryApi, server: ScriptedProvider) -> None:
    (found,) = queried(api, server, "editor")
    assert found.model == "m"
    assert found.frame is not None
    wanted = np.asarray(vector_of("editor", DIMENSIONS))
    assert np.allclose(np.frombuffer(found.frame, dtype="<f4"), wanted / np.linalg.norm(wanted), atol=1e-6)


def test_while_the_server_fails_queries_use_keywords_and_skip_it(api: MemoryApi, server: ScriptedProvider) -> None:
    server.stuck = "http_500"
    found = queried(api, server, *(f"query {number}" for number in range(8)))
    assert [vector.frame for vector in found] == [None] * 8
    assert sum("query" in asked.texts[0] for asked in server.asked) == 1


def test_storing_a_memory_does_not_wait_for_the_embedding_server(api: MemoryApi, server: ScriptedProvider) -> None:
    """Its vector follows the commit."""
    api.state.embedder = make_embedder(
        EmbeddingConfig(provider="ollama", model="m", dimensions=DIMENSIONS, endpoint=server.url)
    )
    frames: list[bytes] = []
    assert asyncio.run(embed_texts(api.state, ["a memory"], frames, trace_id="t")) == [None]
    assert frames == []
    assert server.asked == []


def test_a_password_is_not_sent_although_the_word_before_it_is_common_and_left_out(
    api: MemoryApi, server: ScriptedProvider
) -> None:
    common = ("password", "passwort", "is", "ist", "token", "das", "the", "senha", "é", "contraseña")
    api.state.common_words.learn(READ, None, CommonWords("", 1, [*common]))
    secrets = ("hunter2hunter", "Tr0ub4dor&3x", "xK9#mQ2$vL7p", "s3cr3t-pa55w0rd")
    forms = ("deploy password: {}", "das Passwort ist {}", "a senha é {}", "la contraseña es {}", "password={}")
    queries = [form.format(secret) for form in forms for secret in secrets]
    assert all(found.frame is not None for found in queried(api, server, *queries, "editor password settings"))
    sent = [text for asked in server.asked for text in asked.texts]
    assert len(sent) == len(queries) + 1
    assert [text for text in sent if any(secret in text for secret in secrets)] == []
    assert sent[-1] == "editor settings"
