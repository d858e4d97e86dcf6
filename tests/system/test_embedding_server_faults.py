"""Embedding servers that hang, are slow, load a model or lack their key: queries are answered, and health says how.

Source: docs/reliability.md R11 and R22; docs/operations.md "Processes"; docs/configuration.md "Keys of providers".
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon, run_signet
from tests.support.scripted_provider import Asked, Fault, ScriptedProvider

pytestmark = pytest.mark.system

WAIT_S = 60
HERE = "/home/ada/shop"
FACT = "The staging database listens on port 5433"
QUESTION = "Which port does the staging database listen on?"
KEYWORDS = "answered by keywords alone, because"
WITHOUT_KEY = """
embedding: {provider: openai, model: text-embedding-3-small, dimensions: 1536, apiKeyEnv: SIGNET_UNSET_KEY}
memory: {pipelineV2: {enabled: false}}
"""
NO_PACKAGE = "embedding: {provider: fastembed}\nmemory: {pipelineV2: {enabled: false}}\n"
NOT_INSTALLED = "embedding.provider fastembed needs the optional dependency fastembed, which is not installed"
NO_KEY = "the environment variable SIGNET_UNSET_KEY is not set"
SESSIONS = itertools.count()


def config_of(server: ScriptedProvider) -> str:
    return f"""
embedding: {{provider: ollama, model: vectors, dimensions: 8, endpoint: "{server.url}"}}
memory: {{pipelineV2: {{enabled: false}}}}
"""


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedProvider]:
    with ScriptedProvider(models=("vectors",)) as running:
        yield running


@pytest.fixture(scope="module")
def started(server: ScriptedProvider) -> Iterator[LiveDaemon]:
    with live_daemon(config=config_of(server)) as daemon:
        daemon.api.remember(FACT, project=HERE)
        eventually(lambda: daemon.read("SELECT count(*) FROM memories WHERE embedding_seq IS NOT NULL")[0][0])
        yield daemon


@pytest.fixture
def daemon(started: LiveDaemon, server: ScriptedProvider) -> Iterator[LiveDaemon]:
    """A daemon whose queries have vectors, at the beginning and at the end."""
    await_hybrid(started)
    yield started
    mend(server)
    await_hybrid(started)


def mend(server: ScriptedProvider) -> None:
    """Start the server anew, without faults."""
    server.stuck, server.script, server.thinks_s = None, None, 0.0
    server.die()
    server.revive()


def await_hybrid(daemon: LiveDaemon) -> None:
    def is_hybrid() -> bool:
        return daemon.api.recall(QUESTION)["method"] == "hybrid" and bool(daemon.health()["status"] == "healthy")

    eventually(is_hybrid, within_s=WAIT_S, what="queries have vectors again")


def hook(daemon: LiveDaemon, name: str, **fields: Any) -> Any:
    """The reply to a hook of a new session; asked again if the machine was too slow for this one."""
    for _ in range(5):
        body = {"harness": "codex", "project": HERE, "sessionKey": f"s{next(SESSIONS)}", **fields}
        reply = daemon.api.post(f"/api/hooks/{name}", body).ok()
        if reply.get("reason") != "timeout":
            break
    return reply


def prompt(daemon: LiveDaemon) -> str:
    return str(hook(daemon, "user-prompt-submit", userMessage=QUESTION))


def by_mcp(daemon: LiveDaemon) -> str:
    arguments = {"name": "memory_search", "arguments": {"query": QUESTION}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": arguments}
    return daemon.api.post("/mcp", call, Accept="application/json, text/event-stream").raw.decode()


SEARCHES: dict[str, Callable[[LiveDaemon], str]] = {
    "prompt": prompt,
    "start with a prompt": lambda it: str(hook(it, "user-prompt-submit", userMessage=QUESTION, withStart=True)),
    "session start": lambda it: str(hook(it, "session-start")),
    "hook recall": lambda it: str(hook(it, "recall", query=QUESTION)),
    "recall": lambda it: str(it.api.recall(QUESTION)),
    "search": lambda it: str(it.api.get("/api/memory/search", q=QUESTION).ok()),
    "MCP": by_mcp,
}


def cli(daemon: LiveDaemon, command: str) -> str:
    return " ".join(run_signet(daemon, command).stdout.split())


def degraded(daemon: LiveDaemon, why: str) -> bool:
    health = daemon.health()
    return health.get("status") == "degraded" and why in health["detail"]


@pytest.mark.parametrize("route", SEARCHES)
def test_every_search_finds_memories_by_their_words_while_the_embedding_server_hangs(
    daemon: LiveDaemon, server: ScriptedProvider, route: str
) -> None:
    server.stuck = "hang"
    assert "5433" in SEARCHES[route](daemon)


@pytest.mark.parametrize("fault", ["hang", "rst", "http_500", "slow_drip", "cut_off", "broken_json", "die"])
def test_health_says_that_queries_have_no_vectors_until_the_server_answers_again(
    daemon: LiveDaemon, server: ScriptedProvider, fault: Fault
) -> None:
    server.stuck, server.drip_s = fault, 1.0
    assert "5433" in prompt(daemon)
    assert degraded(daemon, f"queries are {KEYWORDS} Ollama")
    assert daemon.api.get("/health/ready").status == 200
    told = daemon.api.get("/api/embeddings/status").ok()
    assert (told["available"], KEYWORDS in told["error"]) == (False, True)
    asked = len([one for one in server.asked if QUESTION.casefold()[-5:] in str(one.texts)])
    assert ["5433" in prompt(daemon) for _ in range(3)] == [True] * 3
    assert len([one for one in server.asked if QUESTION.casefold()[-5:] in str(one.texts)]) == asked, "not asked again"


def test_doctor_and_status_name_what_is_wrong_with_the_embedding_server(
    daemon: LiveDaemon, server: ScriptedProvider
) -> None:
    server.stuck = "http_500"
    assert "5433" in prompt(daemon)
    assert KEYWORDS in cli(daemon, "status")
    assert f"embedding: ollama vectors, 8 dimensions: queries are {KEYWORDS} Ollama answered 500" in cli(
        daemon, "doctor"
    )


@pytest.mark.parametrize("seconds", [0.8, 1.2])
def test_a_server_that_is_too_slow_for_prompts_is_used_by_recalls_and_health_says_so(
    daemon: LiveDaemon, server: ScriptedProvider, seconds: float
) -> None:
    server.thinks_s = seconds
    assert "5433" in prompt(daemon)
    slow = f"as those of prompts, are {KEYWORDS} ollama takes "
    eventually(lambda: degraded(daemon, slow), within_s=WAIT_S, what="the server's time is known")
    assert "5433" in prompt(daemon)
    eventually(lambda: daemon.api.recall(QUESTION)["method"] == "hybrid", within_s=WAIT_S)
    assert degraded(daemon, slow)


def test_a_server_that_loads_its_model_only_while_it_is_asked_becomes_warm(
    daemon: LiveDaemon, server: ScriptedProvider
) -> None:
    loaded: list[Asked] = []

    def cold(asked: Asked) -> Fault:
        """Answer nothing until one request has waited for three seconds; a client that gives up ends the loading."""
        server.thinks_s = 0.0 if loaded else 3.0
        if "available" in str(asked.texts):
            loaded.append(asked)
        return "ok"

    server.script = cold
    assert "5433" in prompt(daemon)
    await_hybrid(daemon)
    assert "5433" in prompt(daemon)


def test_after_a_change_of_the_model_the_former_server_is_not_waited_for() -> None:
    with ScriptedProvider(models=("vectors",)) as server, live_daemon(config=config_of(server)) as daemon:
        daemon.api.remember(FACT, project=HERE)
        eventually(lambda: daemon.read("SELECT count(*) FROM memories WHERE embedding_seq IS NOT NULL")[0][0])
        await_hybrid(daemon)
        server.stuck = "hang"
        daemon.configure("embedding: {provider: embedded}\nmemory: {pipelineV2: {enabled: false}}\n")
        changed = lambda: daemon.api.get("/api/embeddings/status").ok()["provider"] == "embedded"  # noqa: E731
        eventually(changed, within_s=WAIT_S, what="the model is changed")
        assert ["5433" in prompt(daemon) for _ in range(3)] == [True] * 3
        server.stuck = None


def test_a_daemon_without_the_key_of_its_embedding_server_serves_and_says_what_is_missing() -> None:
    with live_daemon(config=WITHOUT_KEY, started=False) as daemon:
        daemon.launch()
        eventually(lambda: degraded(daemon, NO_KEY), within_s=WAIT_S, what="the daemon serves")
        assert daemon.api.get("/health/ready").status == 200
        assert daemon.api.remember(FACT, project=HERE)["embedded"] is False
        for name, search in SEARCHES.items():  # a start has what was asked for lately, once that is stored
            eventually(lambda search=search: "5433" in search(daemon), within_s=WAIT_S, what=f"an answer: {name}")
        assert f"{NO_KEY}; until that is mended" in cli(daemon, "doctor")


@pytest.mark.skipif(find_spec("fastembed") is not None, reason="the optional package is installed")
@pytest.mark.parametrize(("saved", "why"), [(WITHOUT_KEY, NO_KEY), (NO_PACKAGE, NOT_INSTALLED)], ids=["key", "package"])
def test_settings_that_cannot_take_effect_end_no_daemon_that_runs(saved: str, why: str) -> None:
    with live_daemon() as daemon:
        daemon.api.remember(FACT, project=HERE)
        daemon.configure(saved)
        eventually(lambda: degraded(daemon, why), within_s=WAIT_S, what="the refused settings are named")
        assert daemon.api.recall(QUESTION)["method"] == "hybrid", "by the former model"
        assert why in cli(daemon, "doctor")
        former = daemon.kill("gateway")
        eventually(
            lambda: degraded(daemon, why) and daemon.children().get("gateway") not in (None, former),
            within_s=WAIT_S,
            what="the gateway serves again",
        )
        eventually(
            lambda: daemon.api.recall(QUESTION)["method"] == "hybrid", within_s=WAIT_S, what="by the former model again"
        )
        assert "5433" in prompt(daemon)


@pytest.mark.skipif(find_spec("fastembed") is not None, reason="the optional package is installed")
def test_settings_that_can_never_work_are_refused_at_the_start_and_hooks_say_so() -> None:
    with live_daemon(config=NO_PACKAGE, started=False) as daemon:
        code, said = daemon.refused_start()
        assert (code, NOT_INSTALLED in said) == (69, True), said
        assert NOT_INSTALLED in (daemon.workspace / ".daemon" / "refusal").read_text()
