"""The metrics of a real daemon: every process reports its counters, and they increase with requests.

Source: docs/messaging.md rule 20; docs/decisions.md 40.
"""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from signet_actors.gateway.status.metrics import HEARTBEAT, LABELLED, METRICS
from tests.support.bus_harness import eventually
from tests.support.live_daemon import Client, LiveDaemon

pytestmark = pytest.mark.system

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]

OWN_FIGURES = {
    "streams",
    "client_errors",
    "connections",
    "connections_most",
    "connections_refused",
    "guarded",
    "in_flight",
    "refused",
    "requests",
    "requests_shed",
    "search_backlog",
    "searchers_known",
    "server_errors",
    "transcripts_skipped",
    "unanswered",
    "unanswered_bytes",
    "writer_backlog",
}
"""What the gateway's heartbeat tells that the gateway itself has fresher for its metrics."""


def scrape(daemon: LiveDaemon) -> Samples:
    answer = daemon.api.get("/metrics")
    assert answer.status == 200
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.raw.decode())
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples.get((name, frozenset(labels.items())), 0.0)


def test_counters_increase_with_requests(daemon: LiveDaemon, room: Client) -> None:
    before = scrape(daemon)
    for number in range(5):
        room.remember(f"Metric number {number} is written down")
    room.post("/api/memory/recall", {"query": "metric number"}).ok()
    route = {"route": "/api/memory/remember", "method": "POST", "status": "2xx"}

    def moved(name: str, **labels: str) -> float:
        return value(scrape(daemon), name, **labels) - value(before, name, **labels)

    assert moved("signet_http_requests_total", **route) == 5
    assert moved("signet_http_request_duration_seconds_count", route="/api/memory/recall") == 1
    assert moved("signet_ask_duration_seconds_count", peer="writer") >= 5
    assert moved("signet_ask_duration_seconds_count", peer="searcher") >= 1
    # These come with the next heartbeats.
    eventually(lambda: moved("signet_writer_rows_total", actor="writer") >= 5, what="the writer's heartbeat")
    assert moved("signet_writer_commits_total", actor="writer") >= 1
    eventually(lambda: moved("signet_searcher_served_total", actor="searcher-1") >= 1, what="the searcher's heartbeat")
    assert moved("signet_bus_sent_total", actor="gateway") >= 6


def test_every_process_reports_its_state_and_resources(daemon: LiveDaemon) -> None:
    eventually(lambda: all(child["counters"] for child in actors(daemon)), what="the first heartbeats")
    samples = scrape(daemon)
    for actor, role in (("writer", "writer"), ("searcher-1", "searcher"), ("retention",) * 2, ("gateway",) * 2):
        assert value(samples, "signet_actor_up", actor=actor, role=role) == 1
        assert value(samples, "signet_actor_incarnation", actor=actor) >= 1
        assert value(samples, "signet_actor_cpu_seconds_total", actor=actor) > 0
        assert value(samples, "signet_actor_resident_peak_bytes", actor=actor) > 1_000_000
    assert value(samples, "signet_ready") == 1
    assert value(samples, "signet_database_bytes") > 0
    assert value(samples, "signet_disk_free_bytes") > 0
    assert {name for name, _ in samples if name.startswith("signet_writer_")} == {
        metric.name for metric in METRICS if metric.name.startswith("signet_writer_")
    }


def test_every_counter_of_a_heartbeat_has_a_metric(daemon: LiveDaemon) -> None:
    eventually(lambda: all(child["counters"] for child in actors(daemon)), what="the first heartbeats")
    for actor in actors(daemon):
        own = OWN_FIGURES if actor["name"] == "gateway" else set()
        assert set(actor["counters"]) <= set(HEARTBEAT) | set(LABELLED) | own, (
            f"{actor['name']} tells a figure that no metric shows"
        )


def test_rows_are_counted_in_the_background(daemon: LiveDaemon, room: Client) -> None:
    room.remember("One live memory at least")
    eventually(lambda: value(scrape(daemon), "signet_memories") >= 1, within_s=30, what="a searcher's count")


def actors(daemon: LiveDaemon) -> list[dict[str, dict[str, float]]]:
    reported: list[dict[str, dict[str, float]]] = daemon.api.get("/api/status").ok()["actors"]
    return reported
