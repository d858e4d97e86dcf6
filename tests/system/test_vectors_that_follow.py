"""The provider ``auto`` of a live daemon: recall finds by the first vectors at once, and by better ones that follow.

Source: docs/decisions.md 5, 23 and 57.
"""

from __future__ import annotations

from typing import Any

import pytest

from signet_actors.config.embedding_models import MINILM_MODEL
from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon
from tests.support.minilm import HAS_RUNTIME, WHY_NOT
from tests.system.pasted_prompts import CONTROLS, PASTED
from tests.system.pasted_prompts import OTHERS as OTHER_NOTES

pytestmark = [pytest.mark.system, pytest.mark.skipif(not HAS_RUNTIME, reason=WHY_NOT)]

CONFIG = "embedding: {provider: auto}\nmemory: {pipelineV2: {enabled: false}}\n"
FACTS = {
    "How can I get to the office?": "The nearest underground station is Moritzplatz",
    "a gift for my wife": "Anna would love a pair of silver earrings",
    "the build machine is broken": "Compilation fails on the CI server since Tuesday",
}
"""Questions that share no word with their answer."""
OTHERS = [
    f"Recipe {number} needs {number} grams of {food}" for number in range(10) for food in ("flour", "sugar", "rice")
]


def followed(daemon: LiveDaemon) -> int:
    checks = daemon.api.get("/api/embeddings/health").ok()["checks"]
    return int(next(check["detail"]["second"] for check in checks if check["name"] == "coverage"))


def given(daemon: LiveDaemon, prompt: str) -> str:
    """Return what a prompt is given, in a session of its own."""
    inject: str = daemon.api.post("/api/hooks/user-prompt-submit", {"harness": "t", "userPrompt": prompt}).ok()[
        "inject"
    ]
    return inject


def stages(reply: dict[str, Any]) -> set[str]:
    return {stage["name"] for stage in reply["meta"]["timings"]["stages"]}


def test_every_memory_is_found_at_once_and_better_later_though_the_process_that_embeds_is_killed() -> None:
    with live_daemon(config=CONFIG, patient=True) as daemon:
        for text in (*FACTS.values(), *OTHERS):
            assert daemon.api.remember(text)["embedded"] is True
            daemon.api.recall("underground station")
        assert daemon.api.recall("underground station")["results"][0]["content"].startswith("The nearest")
        eventually(lambda: daemon.every_process()["extractor"]["pid"], within_s=60, what="the process that embeds")
        daemon.kill("extractor")
        expected = len(FACTS) + len(OTHERS)
        eventually(lambda: followed(daemon) == expected, within_s=120, what="every memory has a second vector")
        eventually(
            lambda: "second_vector_knn" in stages(daemon.api.recall("underground station")),
            within_s=60,
            what="recalls compare the second vectors",
        )
        for question, fact in FACTS.items():
            found = daemon.api.recall(question)["results"][0]
            assert (found["content"], found["source"]) == (fact, "vector")
        status = daemon.api.get("/api/embeddings/status").ok()
        assert (status["provider"], status["dimensions"], status["available"]) == ("embedded", 256, True)
        shown = daemon.api.get("/api/status").ok()["embedding"]
        assert shown["second"] == status["second"] == MINILM_MODEL != status["model"] == shown["model"]
        assert daemon.api.get("/api/embeddings/health").ok()["status"] == "healthy"
        pasted = dict.fromkeys([*OTHER_NOTES, *(each.memory for each in PASTED)])
        for text in pasted:
            daemon.api.remember(text)
        expected += len(pasted)
        eventually(lambda: followed(daemon) == expected, within_s=120, what="the further ones have one, too")
        assert [each.prompt for each in PASTED if each.memory not in given(daemon, each.prompt)] == []
        assert [prompt for prompt in CONTROLS if given(daemon, prompt)] == []
        assert daemon.faults() == []
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []
