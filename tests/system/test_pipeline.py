"""The pipeline of a real daemon with a model server on loopback, from the note to the stored facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_provider import ScriptedProvider

pytestmark = pytest.mark.system

NOTE = (
    "The homelab uses Traefik for its certificates. Noor prefers four spaces for indentation."
    " The site is released from the release branch."
)
SENTENCES = [f"{sentence}." for sentence in NOTE.rstrip(".").split(". ")]


def config_for(provider: ScriptedProvider, more: str = "", extraction: str = "") -> str:
    return f"""
memory:
  pipelineV2:
    extraction:
      provider: ollama
      endpoint: {provider.url}
{extraction}
{more}
"""


@contextmanager
def pipeline(
    model: ScriptedModel | None = None, more: str = "", extraction: str = "", environ: Mapping[str, str] | None = None
) -> Iterator[Any]:
    with (
        ScriptedProvider(script=model or ScriptedModel()) as provider,
        live_daemon(config=config_for(provider, more, extraction), environ=environ, patient=True) as daemon,
    ):
        yield daemon, provider
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []


def finished(daemon: LiveDaemon, kind: str = "extract", state: str = "completed", count: int = 1) -> None:
    """Wait until that many jobs of the kind have the state."""
    sql = "SELECT count(*) FROM memory_jobs WHERE job_type = ? AND status = ?"
    eventually(lambda: daemon.read(sql, kind, state)[0][0] >= count, within_s=120, what=f"{count} {kind} jobs {state}")


def derived(daemon: LiveDaemon) -> list[str]:
    return [row[0] for row in daemon.read("SELECT content FROM memories WHERE who = 'pipeline-v2' ORDER BY seq")]


def test_a_memory_of_three_sentences_becomes_three_facts_and_its_entities_are_stored_with_the_job() -> None:
    with pipeline() as (daemon, _):
        source = daemon.api.remember(NOTE)["id"]
        finished(daemon)
        assert derived(daemon) == SENTENCES
        ((result,),) = daemon.read(
            "SELECT result FROM memory_jobs WHERE job_type = 'extract' AND memory_id = ?", source
        )
        assert '"target":"Traefik"' in result.replace(" ", "")
        events = daemon.read(
            "SELECT event, changed_by FROM memory_history WHERE memory_id IN"
            " (SELECT id FROM memories WHERE who = 'pipeline-v2')"
        )
        assert events == [("created", "pipeline-v2")] * 3
        assert daemon.read("SELECT extraction_status FROM memories WHERE id = ?", source) == [("completed",)]


def test_shadow_mode_only_writes_history() -> None:
    with pipeline(more="    shadowMode: true\n") as (daemon, _):
        daemon.api.remember(NOTE)
        finished(daemon)
        assert derived(daemon) == []
        assert daemon.read("SELECT count(*) FROM memories") == [(1,)]
        assert daemon.read("SELECT changed_by, count(*) FROM memory_history WHERE event = 'none' GROUP BY 1") == [
            ("pipeline-shadow", 3)
        ]


def test_facts_that_need_confirmation_are_stored_when_a_person_approves_them() -> None:
    with pipeline(more="    confirm: review\n") as (daemon, _):
        source = daemon.api.remember(NOTE)["id"]
        finished(daemon)
        assert derived(daemon) == []
        queue = daemon.api.get("/api/memory/review-queue").ok()["items"]
        assert [item["fact_content"] for item in queue] == SENTENCES
        assert {(item["reason"], item["review_state"], item["source_memory_id"]) for item in queue} == {
            ("confirmation", "pending", source)
        }
        accepted, rejected, _ = (item["id"] for item in queue)
        approved = daemon.api.request("POST", f"/api/memory/review-queue/{accepted}/approve", {}).ok()
        assert daemon.api.memory(approved["memoryId"])["content"] == SENTENCES[0]
        daemon.api.request("POST", f"/api/memory/review-queue/{rejected}/reject", {}).ok()
        assert derived(daemon) == SENTENCES[:1]
        assert daemon.api.get("/api/memory/review-queue").ok()["total"] == 1


def job_row(daemon: LiveDaemon, kind: str = "extract") -> tuple[Any, ...]:
    """``(status, attempts, releases, error)`` of the oldest job of the kind."""
    sql = "SELECT status, attempts, releases, error FROM memory_jobs WHERE job_type = ? ORDER BY seq LIMIT 1"
    return daemon.read(sql, kind)[0]


def given_back(daemon: LiveDaemon, times: int) -> tuple[Any, ...]:
    """Wait until the oldest extract job waits and its attempt was given back so often, and return its row."""

    def waiting() -> tuple[Any, ...] | None:
        row = job_row(daemon)
        return row if row[0] == "pending" and row[2] >= times else None

    row: tuple[Any, ...] = eventually(waiting, what=f"the attempt given back {times} times")
    return row


def unfinished(daemon: LiveDaemon, *states: str, kind: str = "extract") -> int:
    """Return how many jobs of the kind are in one of the states."""
    jobs = daemon.read("SELECT status FROM memory_jobs WHERE job_type = ?", kind)
    return sum(status in states for (status,) in jobs)


def mend(daemon: LiveDaemon, provider: ScriptedProvider, kind: str = "extract") -> None:
    """End the outage of the server, so that no job of the kind pays for it.

    The check after a call that still fails must not find a server that works again. A lease ends after that check, so
    once no job is leased, each later call finds a server that works.
    """
    provider.look, provider.stuck = "http_500", None
    eventually(lambda: unfinished(daemon, "leased", kind=kind) == 0, what="the last failed calls are reported")
    provider.look = "ok"


def runner_counters(daemon: LiveDaemon, kind: str = "extract") -> dict[str, float]:
    """What the extractor's last heartbeat says of the kind."""
    counters = daemon.every_process()["extractor"]["counters"]
    return {name.removeprefix(f"{kind}_"): value for name, value in counters.items() if name.startswith(f"{kind}_")}


def test_a_server_outage_costs_no_attempt_and_work_resumes() -> None:
    with pipeline(extraction="      breaker: {cooldownMs: 1000, maxCooldownMs: 1000}\n") as (daemon, provider):
        provider.stuck = "http_503"
        daemon.api.remember(NOTE)
        _, attempts, _, reason = given_back(daemon, 2)
        assert attempts == 0
        assert "Ollama answered 503" in reason
        mend(daemon, provider)
        finished(daemon)
        assert job_row(daemon)[1] == 1
        assert derived(daemon) == SENTENCES


def test_a_hung_server_costs_no_attempt() -> None:
    slow = "      timeout: 5000\n      breaker: {failures: 1, cooldownMs: 1000, maxCooldownMs: 1000}\n"
    with pipeline(extraction=slow) as (daemon, provider):
        provider.stuck = "hang"
        daemon.api.remember(NOTE)
        assert given_back(daemon, 1)[1] == 0
        provider.stuck = None
        finished(daemon)
        assert derived(daemon) == SENTENCES


def test_unusable_answers_spend_the_attempts_and_the_dead_job_has_the_cause() -> None:
    with pipeline(ScriptedModel(fault=lambda stage, _: "garbage" if stage == "extraction" else None)) as (daemon, _):
        daemon.api.remember(NOTE)
        finished(daemon, state="dead")
        status, attempts, releases, error = job_row(daemon)
        assert (status, attempts, releases) == ("dead", 3, 0)
        assert "JSON" in error
        assert derived(daemon) == []


def test_a_job_running_at_a_stop_is_completed_after_the_next_start_without_losing_an_attempt() -> None:
    with pipeline() as (daemon, provider):
        provider.stuck = "hang"
        provider.look = "ok"
        daemon.api.remember(NOTE)
        provider.await_asked(1)
        assert daemon.stop() == 0
        assert job_row(daemon)[:2] == ("pending", 0)
        provider.stuck = None
        daemon.start()
        finished(daemon)
        assert derived(daemon) == SENTENCES


def test_without_a_provider_memories_are_stored_and_found_and_jobs_wait() -> None:
    config = "memory:\n  pipelineV2:\n    extraction:\n      provider: none\n"
    with live_daemon(config=config) as daemon:
        memory = daemon.api.remember(NOTE)["id"]
        assert daemon.api.recalled("who prefers four spaces?") == [memory]
        assert job_row(daemon)[:3] == ("pending", 0, 0)
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []


MUTATING = "    autonomous: {allowUpdateDelete: true}\n"


def about(action: str, target: int = 1) -> dict[str, Any]:
    return {"action": action, "targetId": target, "confidence": 0.9, "reason": "the newer one holds"}


def test_an_update_keeps_the_old_text_in_the_history_and_never_changes_a_pinned_memory() -> None:
    model = ScriptedModel({"staging runs on": about("update")})
    with pipeline(model, MUTATING) as (daemon, _):
        loose = daemon.api.remember("The staging host is called alpha.")["id"]
        finished(daemon)
        daemon.api.remember("Since May staging runs on the host beta. The move took a night.")
        finished(daemon, count=2)
        assert daemon.api.memory(loose)["content"] == "Since May staging runs on the host beta."
        (change,) = daemon.read(
            "SELECT old_content, changed_by FROM memory_history WHERE memory_id = ? AND event = 'updated'", loose
        )
        assert change == ("The staging host is called alpha.", "pipeline-v2")
    with pipeline(model, MUTATING) as (daemon, _):
        pinned = daemon.api.remember("The staging host is called alpha.", pinned=True)["id"]
        finished(daemon)
        daemon.api.remember("Since May staging runs on the host beta. The move took a night.")
        finished(daemon, count=2)
        assert daemon.api.memory(pinned)["content"] == "The staging host is called alpha."
        assert daemon.read("SELECT outcome, reason FROM memory_proposals WHERE action = 'update'") == [
            ("blocked", "pinned")
        ]


def test_a_note_of_twenty_facts_is_extracted_in_one_call_and_decided_completely() -> None:
    with pipeline() as (daemon, provider):
        daemon.api.remember("Unit 99 runs job 99 daily. Unit 98 runs job 98 daily.")
        finished(daemon)
        note = " ".join(f"Unit {number} runs job {number}." for number in range(20))
        second = daemon.api.remember(note)["id"]
        finished(daemon, count=2)
        assert daemon.read("SELECT attempts, releases FROM memory_jobs WHERE job_type = 'extract'") == [(1, 0), (1, 0)]
        ((decided,),) = daemon.read("SELECT count(*) FROM memory_proposals WHERE memory_id = ?", second)
        assert decided == 20
        assert [prompt.startswith("You turn a note into facts") for prompt in provider.prompts].count(True) == 2
