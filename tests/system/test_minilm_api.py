"""The provider ``minilm`` of a live daemon: vectors of memories and queries, and the change from another model.

Source: docs/decisions.md 5, 23 and 57.
"""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from signet_actors.config.schema import EMBEDDED_MODEL, MINILM_MODEL
from tests.support.bus_harness import REPOSITORY, eventually
from tests.support.live_daemon import LiveDaemon, live_daemon
from tests.support.minilm import HAS_RUNTIME, WHY_NOT

pytestmark = [pytest.mark.system, pytest.mark.skipif(not HAS_RUNTIME, reason=WHY_NOT)]

PIPELINE = "memory: {pipelineV2: {enabled: false, embeddingTracker: {pollMs: 1000}}}\n"
CONFIG = "embedding: {provider: minilm}\n" + PIPELINE
FACTS = {
    "How can I get to the office?": "The nearest underground station is Moritzplatz",
    "a gift for my wife": "Anna would love a pair of silver earrings",
    "the build machine is broken": "Compilation fails on the CI server since Tuesday",
}
"""Questions that share no word with their answer."""


def by_model(daemon: LiveDaemon) -> dict[str, int]:
    """Return how many memories have their newest vector in which model."""
    return dict(
        daemon.read(
            "SELECT e.model, count(*) FROM memories m JOIN embeddings e ON e.seq = m.embedding_seq GROUP BY e.model"
        )
    )


def test_memories_are_found_by_meaning_and_the_status_names_the_model() -> None:
    with live_daemon(config=CONFIG) as daemon:
        for fact in FACTS.values():
            assert daemon.api.remember(fact)["embedded"] is True
        assert by_model(daemon) == {MINILM_MODEL: len(FACTS)}
        for question, fact in FACTS.items():
            assert daemon.api.recall(question)["results"][0]["content"] == fact
        status = daemon.api.get("/api/embeddings/status").ok()
        assert (status["provider"], status["model"], status["dimensions"], status["available"]) == (
            "minilm",
            MINILM_MODEL,
            384,
            True,
        )
        shown = daemon.api.get("/api/status").ok()["embedding"]
        assert (shown["model"], "second" in shown, "second" in status) == (MINILM_MODEL, False, False)
        assert daemon.api.get("/api/embeddings/health").ok()["status"] == "healthy"
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []


def test_every_memory_of_a_burst_gets_its_vector_and_embedded_is_true_only_if_it_is_stored() -> None:
    with live_daemon(config=CONFIG) as daemon:

        def remember(number: int) -> tuple[str, bool]:
            answer = daemon.api.remember(f"Note {number} of the burst is about {'the garden ' * (number % 7)}")
            memory_id = answer["id"]
            if answer["embedded"]:
                assert daemon.read("SELECT 1 FROM memories WHERE id = ? AND embedding_seq IS NOT NULL", memory_id)
            return memory_id, answer["embedded"]

        with ThreadPoolExecutor(8) as threads:
            stored = list(threads.map(remember, range(120)))
        assert len({memory_id for memory_id, _ in stored}) == 120
        eventually(lambda: by_model(daemon) == {MINILM_MODEL: 120}, within_s=60, what="every memory has its vector")
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []


def test_a_change_of_the_model_embeds_everything_anew_while_recall_goes_on() -> None:
    with live_daemon(config=PIPELINE) as daemon:
        for fact in FACTS.values():
            daemon.api.remember(fact)
        assert by_model(daemon) == {EMBEDDED_MODEL: len(FACTS)}
        daemon.configure(CONFIG)
        assert daemon.process is not None
        daemon.process.send_signal(signal.SIGHUP)
        eventually(
            lambda: daemon.api.get("/api/embeddings/status").ok()["model"] == MINILM_MODEL,
            within_s=60,
            what="the gateway uses the new model",
        )
        assert daemon.api.recall("underground station")["results"][0]["content"].startswith("The nearest")
        eventually(
            lambda: by_model(daemon) == {MINILM_MODEL: len(FACTS)},
            within_s=120,
            what="every vector is of the new model",
        )
        for question, fact in FACTS.items():
            assert daemon.api.recall(question)["results"][0]["content"] == fact
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []


def test_without_its_runtime_the_start_is_refused_with_the_reason() -> None:
    with live_daemon(config=CONFIG, started=False) as daemon:
        hidden = daemon.root / "hidden"
        hidden.mkdir()
        (hidden / "onnxruntime.py").write_text('raise ImportError("no wheel for this platform")')
        _, said = daemon.refused_start(PYTHONPATH=f"{REPOSITORY}{os.pathsep}{hidden}")
        assert "embedding.provider minilm needs onnxruntime" in said
        assert "choose embedded" in said
