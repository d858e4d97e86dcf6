"""Features that the pipeline adds to recall: summary cards, hints, and vectors of a new model."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon
from tests.support.scripted_model import data_of, stage_of
from tests.support.scripted_provider import Asked, ScriptedProvider
from tests.system.test_pipeline import finished, pipeline

pytestmark = pytest.mark.system

CARDS = "    reranker: {useExtractionModel: true, timeoutMs: 2000}\n"
HANG_GUARD_S = 60


def summaries(provider: ScriptedProvider) -> list[Asked]:
    return [asked for asked in provider.asked if stage_of(asked.prompt) == "summary"]


def test_a_card_summarises_only_results_of_its_caller_and_is_not_stored() -> None:
    with pipeline(more=CARDS + "    enabled: false\n") as (daemon, provider):
        daemon.api.remember("The staging port is 5433", visibility="global")
        mine = daemon.agent("alice").remember("The secret staging port is 9999", visibility="private")["id"]
        answer: Any = {}

        def card() -> bool:
            answer.update(daemon.api.recall("staging port", limit=5))
            return bool(answer["meta"]["hasSupplementary"])

        eventually(card, within_s=HANG_GUARD_S, what="a card")
        first, *rows = answer["results"]
        assert (first["source"], first["supplementary"]) == ("llm_summary", True)
        assert first["content"] == "1 found for staging port"
        assert [row["content"] for row in rows] == ["The staging port is 5433"]
        assert data_of(summaries(provider)[-1].prompt) == ["staging port", "The staging port is 5433"]
        assert mine not in {row["id"] for row in rows}
        assert daemon.read("SELECT count(*) FROM memories") == [(2,)]
        assert daemon.api.recall("staging port", limit=1)["meta"]["hasSupplementary"] is False


def test_a_hung_model_delays_only_its_own_recall_by_the_timeout() -> None:
    with pipeline(more=CARDS.replace("2000", "8000") + "    enabled: false\n") as (daemon, provider):
        memory = daemon.api.remember("The staging port is 5433")["id"]
        recalled = lambda limit: daemon.api.recall("staging port", limit=limit)  # noqa: E731
        eventually(lambda: recalled(2)["meta"]["hasSupplementary"], within_s=HANG_GUARD_S, what="a card")
        before = len(provider.asked)
        provider.stuck = "hang"
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(recalled, 2)
            provider.await_asked(before + 1)
            assert daemon.api.get("/health").status == 200
            assert [row["id"] for row in recalled(1)["results"]] == [memory]
            assert not waiting.done(), "others were answered while it waited"
            answer = waiting.result(timeout=HANG_GUARD_S)
        assert [row["id"] for row in answer["results"]] == [memory]
        assert answer["meta"]["hasSupplementary"] is False
        provider.stuck = None
        eventually(lambda: recalled(2)["meta"]["hasSupplementary"], within_s=HANG_GUARD_S, what="a card again")


def test_a_memory_is_found_by_a_generated_question() -> None:
    with pipeline(more="    hints: {enabled: true}\n") as (daemon, _):
        daemon.api.remember("Traefik terminates TLS")
        finished(daemon, "prospective_index")
        ((hint, memory),) = daemon.read("SELECT hint, memory_id FROM memory_hints ORDER BY seq LIMIT 1")
        assert "said" in hint, "a word that the memory itself does not hold"
        found = daemon.api.recall("what was said?", limit=50)["results"]
        assert memory in {row["id"] for row in found}


def embedded_by(provider: ScriptedProvider, model: str) -> str:
    return f"""
embedding: {{provider: ollama, model: {model}, dimensions: 8, endpoint: "{provider.url}"}}
memory:
  pipelineV2:
    enabled: false
    embeddingTracker: {{pollMs: 1000, batchSize: 5}}
"""


def reload(daemon: LiveDaemon) -> None:
    assert daemon.process is not None
    daemon.process.send_signal(signal.SIGHUP)


def embedding_status(daemon: LiveDaemon) -> Any:
    return daemon.api.get("/api/embeddings/status").ok()


def models(daemon: LiveDaemon) -> dict[str, int]:
    return dict(daemon.read("SELECT embedding_model, count(*) FROM memories GROUP BY 1"))


def test_a_changed_model_embeds_everything_again_in_batches_while_old_vectors_are_searched() -> None:
    count = 23
    with (
        ScriptedProvider(models=("first", "second")) as provider,
        live_daemon(config="memory: {pipelineV2: {enabled: false}}\n") as daemon,
    ):
        car = daemon.api.remember("An automobile was bought")["id"]
        for number in range(count - 1):
            daemon.api.remember(f"Row {number} of the ledger")
        eventually(lambda: len(models(daemon)) == 1 and None not in models(daemon), what="the first vectors")
        (embedded,) = models(daemon)
        provider.stuck = "http_503"
        daemon.configure(embedded_by(provider, "first"))
        reload(daemon)
        eventually(lambda: embedding_status(daemon)["model"] == "first", within_s=HANG_GUARD_S, what="the new model")
        eventually(
            lambda: embedding_status(daemon)["tracker"]["queueDepth"] == count,
            within_s=HANG_GUARD_S,
            what="all memories wait for a vector",
        )
        assert daemon.api.recalled("purchasing a vehicle", limit=1) == [car]
        eventually(
            lambda: embedding_status(daemon)["tracker"]["skippedCycles"] >= 1,
            within_s=HANG_GUARD_S,
            what="the tracker steps back",
        )
        assert models(daemon) == {embedded: count}
        assert daemon.read("SELECT max(attempts) FROM memory_jobs WHERE job_type = 'embed'")[0][0] <= 1
        assert daemon.stop() == 0
        daemon.start()
        eventually(
            lambda: daemon.api.recalled("purchasing a vehicle", limit=1) == [car],
            within_s=HANG_GUARD_S,
            what="the old vectors are found after a restart, too",
        )
        asked = len(provider.asked)
        provider.stuck = None
        eventually(lambda: models(daemon) == {"first": count}, within_s=HANG_GUARD_S, what="all embedded anew")
        calls = [len(call.texts) for call in provider.asked[asked:]]
        assert max(calls) <= 5
        assert sum(size > 1 for size in calls) >= 2
        eventually(
            lambda: embedding_status(daemon)["tracker"]["queueDepth"] == 0, within_s=HANG_GUARD_S, what="an empty queue"
        )
        tracker = embedding_status(daemon)["tracker"]
        assert (tracker["running"], tracker["processed"], tracker["failed"]) == (True, count, tracker["failed"])
        assert tracker["lastCycleAt"] is not None
        assert daemon.read("SELECT count(*) FROM memory_jobs WHERE status <> 'completed'") == [(0,)]
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []


def test_a_text_that_the_server_refuses_does_not_affect_the_others() -> None:
    def refuse(asked: Asked) -> Any:
        return "http_400" if any("poison" in text for text in asked.texts) else "ok"

    with (
        ScriptedProvider(script=refuse, models=("first",)) as provider,
        live_daemon(config=embedded_by(provider, "first")) as daemon,
    ):
        poison = daemon.api.remember("a poison for the model")["id"]
        for number in range(12):
            daemon.api.remember(f"Row {number} of the ledger")
        sql = "SELECT count(*) FROM memories WHERE embedding_seq IS NOT NULL"
        eventually(lambda: daemon.read(sql) == [(12,)], within_s=HANG_GUARD_S, what="all others embedded")
        assert daemon.read("SELECT embedding_seq FROM memories WHERE id = ?", poison) == [(None,)]
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []
