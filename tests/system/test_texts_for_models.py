"""What is sent to a model on a server: no text of any request keeps its secrets, and it still has its effect.

Source: docs/security.md "What a model is sent".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from signet_actors.operations.registry import OPERATIONS
from tests.support.bus_harness import eventually
from tests.support.live_daemon import Client, live_daemon
from tests.support.scripted_model import ScriptedModel, stage_of
from tests.support.scripted_provider import ScriptedProvider
from tests.system.test_waiting_for_vectors import HANG_GUARD_S, vectors, wait_for_extractor

pytestmark = pytest.mark.system

NUMBERS = count(10)
SECRETS: tuple[Callable[[], tuple[str, str]], ...] = (
    lambda: (f"the token ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY00{next(NUMBERS)}", "ghp_"),
    lambda: (f"the password Tr0ub4dor&3x{next(NUMBERS)}", "Tr0ub4dor"),
    lambda: (f"contraseña: xK9#mQ2$vL7p{next(NUMBERS)}", "xK9#mQ2"),
    lambda: (f"postgres://bob:hunter2hunter{next(NUMBERS)}@db/app", "hunter2"),
)
SIGNS = [sign for _, sign in (secret() for secret in SECRETS)]


def told(api: Client, operation: str, query: str) -> Any:
    """The answer of ``operation`` to ``query``."""
    session = {"harness": "codex", "sessionKey": f"s-{next(NUMBERS)}", "project": "/tmp/widgets"}
    match operation:
        case "memories.recall":
            return api.recall(query)
        case "memories.search":
            return api.get("/api/memory/search", q=query).ok()
        case "hooks.recall":
            return api.post("/api/hooks/recall", {"harness": "codex", "query": query}).ok()
        case "hooks.user_prompt_submit":
            api.post("/api/hooks/session-start", session).ok()
            body = {**session, "userPrompt": query, "lastAssistantMessage": query}
            return api.post("/api/hooks/user-prompt-submit", body).ok()
        case "sessions.search":
            return api.post("/api/sessions/search", {"query": query}).ok()
        case "memories.legacy_search":
            return api.get("/memory/search", q="widget").ok()
        case "memories.forget":
            return api.post("/api/memory/forget", {"query": query, "mode": "preview"}).ok()
        case tool:
            params = {"name": tool, "arguments": {"query": query}}
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            return api.post("/mcp", call, accept="application/json, text/event-stream").ok()


FINDS = ("memories.recall", "memories.search", "hooks.recall", "hooks.user_prompt_submit", "memory_search")
WITHOUT_MODEL = ("memories.legacy_search", "memories.forget", "sessions.search", "session_search")


def asking() -> Iterator[str]:
    """The operations and tools that take a query or a prompt of a person."""
    for operation in OPERATIONS:
        if {"query", "user_prompt"} & set(operation.request.__struct_fields__):
            yield operation.name
            if operation.tool is not None:
                yield operation.tool.name


def test_no_secret_of_a_request_reaches_a_model_on_a_server_and_the_request_is_answered_as_ever() -> None:
    """Also where memories keep their secrets, which the user wants: they stay on this machine."""
    assert set(asking()) == {*FINDS, *WITHOUT_MODEL}
    alike = lambda rows: [[1.0] * len(row) for row in rows]  # noqa: E731
    with ScriptedProvider(script=ScriptedModel(), models=("vectors",), spoil_vectors=alike) as provider:
        config = f"""
embedding: {{provider: ollama, model: vectors, dimensions: 8, endpoint: "{provider.url}"}}
redaction: {{memories: false}}
memory:
  pipelineV2:
    enabled: true
    extraction: {{provider: ollama, model: vectors, endpoint: "{provider.url}"}}
    reranker: {{useExtractionModel: true, timeoutMs: 20000}}
    hints: {{enabled: true}}
"""
        with live_daemon(config=config, pipeline=True, patient=True) as daemon:
            wait_for_extractor(daemon)
            api = daemon.api
            texts = [f"The zweiback widget service number {number} uses" for number in range(4)]
            for text, secret in zip(texts, SECRETS, strict=True):
                api.remember(f"{text} {secret()[0]} for its nightly deployment")
            eventually(lambda: vectors(daemon) >= len(texts), within_s=HANG_GUARD_S, what="vectors")
            assert any("Tr0ub4dor" in row["content"] for row in api.listed()), "memories keep their secrets here"
            for operation in (*FINDS, *WITHOUT_MODEL):
                queries = [f"which zweiback widget service uses {secret()[0]} nightly?" for secret in SECRETS]
                answers = [json.dumps(told(api, operation, query)) for query in queries]
                assert operation in WITHOUT_MODEL or any("zweiback widget service" in answer for answer in answers)
            similar = api.get("/memory/similar", id=api.listed()[0]["id"]).ok()
            assert similar["results"]
            card = lambda: api.recall(f"widget {SECRETS[0]()[0]}", limit=5)["meta"]["hasSupplementary"]  # noqa: E731
            eventually(card, within_s=HANG_GUARD_S, what="a card")
            done = "SELECT count(*) FROM memory_jobs WHERE status = 'completed'"
            eventually(lambda: daemon.read(done)[0][0] >= len(texts), within_s=120, what="completed jobs")
            sent = [json.dumps(asked.body, ensure_ascii=False) for asked in provider.asked]
            stages = {stage_of(asked.prompt) for asked in provider.asked if asked.prompt}
            assert {"extraction", "summary"} <= stages
            assert sum("which zweiback widget service" in body for body in sent) >= len(FINDS) - 1
            assert [body for body in sent if any(sign in body for sign in SIGNS)] == []
            assert daemon.stop() == 0
