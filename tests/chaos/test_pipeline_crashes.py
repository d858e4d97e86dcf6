"""Crashes of the pipeline's processes during jobs: the queue drains with each effect exactly once.

``SIGNET_CHAOS_FULL=1`` also kills 200 of them at random moments.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.chaos.pipeline_crashes import broken_promises, drained, kill_asker, note, pipeline, remember, run
from tests.chaos.seeds import FULL, SEED
from tests.support.bus_harness import eventually

pytestmark = pytest.mark.system

CRASHES = {
    "extractor.leased": "extractor 1 4",
    "extractor.prompt_sent": "extractor 2 3",
    "extractor.parsed": "extractor 3 2",
    "extractor.embed_done": "extractor 4 2",
    "extractor.apply_sent": "extractor 5 2",
    "extractor.classified": "extractor 6 2",
    "decider.prompt_sent": "decider 1 3",
    "writer.mid_batch": "writer 1 30",
    "writer.after_commit": "writer 2 12",
    "writer.after_first_reply": "writer 3 12",
}
"""For each point the process, its incarnation, and the hit on which it is killed."""
NOTES = 40


def armed() -> str:
    plan = {point: said.split() for point, said in CRASHES.items()}
    return ";".join(f"{point}=kill@{hit}/{incarnation}" for point, (_, incarnation, hit) in plan.items())


@pytest.mark.slow
def test_a_kill_at_any_point_of_a_job_has_the_same_effects_once() -> None:
    with pipeline(armed()) as (daemon, _):
        remember(daemon, range(NOTES))
        drained(daemon, NOTES)
        daemon.wait_ready()
        restarts = {name: actor["restarts"] for name, actor in daemon.every_process().items()}
        for child in ("extractor", "decider", "writer"):
            assert restarts[child] == sum(said.split()[0] == child for said in CRASHES.values())
        assert daemon.stop() == 0
        assert broken_promises(daemon, NOTES) == []


@pytest.mark.skipif(not FULL, reason="SIGNET_CHAOS_FULL=1 runs it")
@pytest.mark.timeout(3600)
def test_two_hundred_random_kills_during_jobs_duplicate_and_lose_nothing() -> None:
    assert run(200, SEED) == [], f"repeat with SIGNET_CHAOS_SEED={SEED}"


@pytest.mark.skipif(not FULL, reason="SIGNET_CHAOS_FULL=1 runs it; the simulation does always")
def test_a_poison_job_is_dead_after_three_attempts_and_affects_no_other_job() -> None:
    killed: list[int] = []
    with pipeline() as (daemon, provider):
        daemon.stop()
        daemon.configure((daemon.workspace / "agent.yaml").read_text().replace("maxRetries: 10", "maxRetries: 3"))
        daemon.start()
        model = provider.script
        assert model is not None

        def deadly(asked: Any) -> Any:
            if "nightshade" in asked.prompt and asked.prompt.startswith("You turn a note"):
                pid = kill_asker(daemon, asked)
                if pid is not None:
                    killed.append(pid)
                return "hang"
            return model(asked)

        provider.script = deadly
        poison = daemon.api.remember("The service nightshade kills whoever reads of it. It was grown for that.")["id"]
        remember(daemon, range(12))
        drained(daemon, 13)
        ends = dict(daemon.read("SELECT memory_id, status FROM memory_jobs WHERE job_type = 'extract'"))
        assert ends.pop(poison) == "dead"
        assert set(ends.values()) == {"completed"}
        assert len(set(killed)) == 3
        eventually(
            lambda: daemon.every_process()["extractor"]["state"] == "up", within_s=30, what="the extractor is up"
        )
        daemon.api.remember(note(12))
        drained(daemon, 14)
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []
