"""The metrics endpoint: its samples, and that a scrape waits for no process."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from signet_actors.domain.permissions import Permission
from signet_actors.domain.providers import CircuitState, ModelState, OutcomeCounts, ProviderReport, Selection
from signet_actors.errors import StorageFull
from signet_actors.gateway.http.route import Call, HttpResponse
from signet_actors.gateway.routes import ROUTES
from signet_actors.gateway.server.connection_limits import ConnectionLimits
from signet_actors.gateway.status.metrics import METRICS
from signet_actors.gateway.status.request_metrics import UNROUTED
from signet_actors.operations.health import METRICS_MEDIA_TYPE
from signet_actors.operations.pipeline import JobRunnerReport, UsageReport
from signet_actors.protocol.control import RESTARTING, UP, ChildState, TreeChanged
from signet_actors.protocol.decider import DeciderStatus, GetDeciderStatus
from signet_actors.protocol.extractor import ExtractorStatus, GetExtractorStatus
from signet_actors.protocol.pipeline_queries import GetPipelineStatus, KindQueue, PipelineStatus
from signet_actors.protocol.searcher import GetStoreStats, StoreStats
from tests.actor.test_gateway_edge_limits import Gate
from tests.support.bus_harness import eventually
from tests.support.edge import EVERYBODY_UP, RunningEdge, echo, read_to_end
from tests.support.routes import plain_route

PIPELINE = PipelineStatus(
    queues=[KindQueue("extract", pending=3, dead=1, oldest_pending_at="2020-01-01T00:00:00.000Z")],
    dead_causes=[],
    runs=2,
    runs_undone=0,
    last_run_at=None,
    reviews_pending=4,
    today={"facts": 6, "turned_away.question": 2, "outcome.created": 5},
    total={"facts": 60},
    usage_today=[
        UsageReport("2026-02-21", "ollama", "a", 3, 100, 10, 5, 0),
        UsageReport("2026-02-21", "ollama", "b", 1, 1, 1, 1, 0),
    ],
)
REPORT = ProviderReport(
    name="ollama",
    model="qwen3:4b",
    circuit=CircuitState.OPEN,
    waits_ms=9000,
    waits_for="is tried again in 9 s",
    recent=OutcomeCounts(5, 0, 2, 3),
    calls=9,
    in_flight=1,
    tokens_in=900,
    tokens_out=90,
    cost_microusd=2_500_000,
    errors={"timeout": 3},
    last_error="no answer",
)
MODEL = ModelState(Selection("auto", "ollama", "qwen3:4b", "it answers", True, ""), REPORT)

STATS = StoreStats(
    memories=7,
    tombstones=2,
    embeddings=7,
    agents=1,
    jobs={"pending": 3},
    oldest_pending_job=None,
    schema_version=1,
    database_bytes=1,
)

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


async def full(call: Call[Any]) -> HttpResponse:
    raise StorageFull


async def broken(call: Call[Any]) -> HttpResponse:
    raise RuntimeError("a fault")


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def edge(tmp_path: Path, gate: Gate) -> Iterator[RunningEdge]:
    routes = (
        plain_route("POST", "/wait", gate.handler, mutates=True),
        *ROUTES,
        plain_route("GET", "/test/items/{id}", echo, Permission.RECALL),
        plain_route("POST", "/test/full", full, Permission.REMEMBER, mutates=True),
        plain_route("GET", "/test/broken", broken, Permission.RECALL),
    )
    with RunningEdge(routes, tmp_path, limits=ConnectionLimits(connections=4, body_bytes=100)) as edge:
        yield edge


def scrape(edge: RunningEdge) -> Samples:
    """Every sample by name and labels."""
    answer = edge.request("GET", "/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"] == METRICS_MEDIA_TYPE
    samples: Samples = {}
    for family in text_string_to_metric_families(answer.raw.decode()):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in samples, f"{key} is told twice"
            samples[key] = sample.value
    return samples


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, frozenset(labels.items())]


def with_pipeline(edge: RunningEdge) -> None:
    """Extractor and decider are up, and every process answers."""
    workers = [
        ChildState("decider", "decider", UP, 1, 0, 21, counters={"decided_update": 3}),
        ChildState("extractor", "extractor", UP, 1, 0, 22, counters={"extract_failed": 2, "extract_running": 1}),
    ]
    edge.bus.tree = TreeChanged([*EVERYBODY_UP, *workers])
    runners = [JobRunnerReport("extract", 4, 1, "ollama is away", done=7, failed=2, returned=1, fenced=0)]
    edge.bus.answers |= {
        GetStoreStats: STATS,
        GetPipelineStatus: PIPELINE,
        GetExtractorStatus: ExtractorStatus("full", MODEL, runners, {"question": 11}),
        GetDeciderStatus: DeciderStatus(ModelState(MODEL.selection, None), {}),
    }


def scraped_twice(edge: RunningEdge) -> Samples:
    """The page with the answers that the first scrape asked for."""
    scrape(edge)
    eventually(lambda: edge.state.status_requests.latest.store is not None, what="the counts")
    eventually(lambda: edge.state.status_requests.latest.queues is not None, what="the pipeline's figures")
    return scrape(edge)


def test_pipeline_metrics_have_labels_for_kind_reason_and_provider(edge: RunningEdge) -> None:
    with_pipeline(edge)
    samples = scraped_twice(edge)
    assert value(samples, "signet_pipeline_jobs", kind="extract", state="pending") == 3
    assert value(samples, "signet_pipeline_jobs", kind="extract", state="dead") == 1
    assert value(samples, "signet_pipeline_jobs", kind="embed", state="dead") == 0
    assert value(samples, "signet_pipeline_oldest_pending_age_seconds", kind="extract") > 86_400
    assert value(samples, "signet_pipeline_oldest_pending_age_seconds", kind="embed") == 0
    assert value(samples, "signet_pipeline_facts_today") == 6
    assert value(samples, "signet_pipeline_rejected_today", reason="question") == 2
    assert value(samples, "signet_pipeline_proposals_today", outcome="created") == 5
    assert value(samples, "signet_pipeline_proposals_today", outcome="blocked") == 0
    assert value(samples, "signet_pipeline_reviews_pending") == 4
    assert value(samples, "signet_provider_calls_today", provider="ollama") == 4
    assert value(samples, "signet_provider_tokens_today", provider="ollama") == 118


def test_metrics_of_job_runners_and_calls_come_from_their_processes(edge: RunningEdge) -> None:
    with_pipeline(edge)
    samples = scraped_twice(edge)
    who = {"actor": "extractor", "provider": "ollama"}
    assert value(samples, "signet_pipeline_jobs_paused", kind="extract") == 1
    assert value(samples, "signet_pipeline_job_slots", kind="extract") == 4
    assert value(samples, "signet_pipeline_jobs_running", kind="extract") == 1
    assert value(samples, "signet_pipeline_attempts_total", kind="extract", end="failed") == 2
    assert value(samples, "signet_pipeline_decisions_total", action="update") == 3
    assert value(samples, "signet_pipeline_rejected_total", reason="question") == 11
    assert value(samples, "signet_provider_circuit", **who, state="open") == 1
    assert value(samples, "signet_provider_circuit", **who, state="closed") == 0
    assert value(samples, "signet_provider_calls_total", **who) == 9
    assert value(samples, "signet_provider_errors_total", **who, kind="timeout") == 3
    assert value(samples, "signet_provider_errors_total", **who, kind="http") == 0
    assert value(samples, "signet_provider_tokens_total", **who, direction="out") == 90
    assert value(samples, "signet_provider_cost_usd_total", **who) == 2.5
    assert not [name for name, labels in samples if ("actor", "decider") in labels and "provider" in name]


def test_metrics_of_a_process_that_is_down_are_omitted(edge: RunningEdge) -> None:
    with_pipeline(edge)
    edge.bus.answers[GetExtractorStatus] = StorageFull()
    samples = scraped_twice(edge)
    assert value(samples, "signet_pipeline_reviews_pending") == 4
    asked_for = ("signet_pipeline_job_slots", "signet_pipeline_jobs_paused", "signet_provider_circuit")
    assert not [name for name, _ in samples if name in asked_for]


def test_every_sample_belongs_to_a_described_metric_and_has_its_labels(edge: RunningEdge) -> None:
    with_pipeline(edge)
    scraped_twice(edge)
    described = {metric.name: metric for metric in METRICS}
    for name, labels in scrape(edge):
        stem = name
        for suffix in ("_bucket", "_count", "_sum"):
            if name.removesuffix(suffix) in described:
                stem = name.removesuffix(suffix)
        assert stem in described, name
        assert {label for label, _ in labels} - {"le"} == set(described[stem].labels)


def test_a_scrape_waits_for_no_process_and_shows_counts_made_in_the_background(edge: RunningEdge) -> None:
    edge.bus.answers[GetStoreStats] = STATS
    first = scrape(edge)
    assert ("signet_memories", frozenset()) not in first
    eventually(lambda: edge.state.status_requests.latest.store is not None, what="the counts")
    second = scrape(edge)
    assert value(second, "signet_memories") == 7
    assert value(second, "signet_tombstones") == 2
    assert value(second, "signet_jobs", state="pending") == 3
    assert value(second, "signet_jobs", state="dead") == 0
    assert value(second, "signet_store_figures_age_seconds") >= 0
    asked = [type(request) for request in edge.bus.asked]
    assert asked == [GetStoreStats, GetPipelineStatus], "two scrapes in a row ask once"


def test_a_scrape_is_answered_while_every_other_process_is_down(edge: RunningEdge) -> None:
    edge.bus.tree = TreeChanged([ChildState("writer", "writer", RESTARTING, 3, 2, None, counters={})])
    samples = scrape(edge)
    assert value(samples, "signet_ready") == 0
    assert value(samples, "signet_actor_up", actor="writer", role="writer") == 0
    assert value(samples, "signet_actor_restarts_total", actor="writer") == 2
    assert value(samples, "signet_actor_incarnation", actor="writer") == 3


def test_metrics_of_the_heartbeats_are_shown_for_each_process(edge: RunningEdge) -> None:
    edge.bus.tree = TreeChanged(
        [
            ChildState("writer", "writer", UP, 1, 0, 1, counters={"commits": 5, "rows": 20, "cpu_seconds": 1.5}),
            ChildState("searcher-1", "searcher", UP, 1, 0, 2, counters={"served": 9, "late": 1, "unheard_of": 1}),
        ]
    )
    samples = scrape(edge)
    assert value(samples, "signet_writer_commits_total", actor="writer") == 5
    assert value(samples, "signet_writer_rows_total", actor="writer") == 20
    assert value(samples, "signet_actor_cpu_seconds_total", actor="writer") == 1.5
    assert value(samples, "signet_searcher_served_total", actor="searcher-1") == 9
    assert value(samples, "signet_bus_late_total", actor="searcher-1") == 1


def test_requests_are_counted_by_template_method_and_kind_of_answer(edge: RunningEdge) -> None:
    for number in range(3):
        edge.request("GET", f"/test/items/{number}")
    edge.request("DELETE", "/test/items/1")
    edge.request("POST", "/test/full", {})
    edge.request("GET", "/test/broken")
    samples = scrape(edge)
    counted = "signet_http_requests_total"
    assert value(samples, counted, route="/test/items/{id}", method="GET", status="2xx") == 3
    assert value(samples, counted, route="/test/items/{id}", method="DELETE", status="4xx") == 1
    assert value(samples, counted, route="/test/full", method="POST", status="5xx") == 1
    took = "signet_http_request_duration_seconds"
    assert value(samples, f"{took}_count", route="/test/items/{id}") == 4
    assert value(samples, f"{took}_bucket", route="/test/items/{id}", le="+Inf") == 4
    assert value(samples, f"{took}_sum", route="/test/items/{id}") > 0
    assert value(samples, "signet_http_errors_total", code="storage_full") == 1
    assert value(samples, "signet_http_errors_total", code="internal") == 1
    assert value(samples, "signet_http_errors_total", code="method_not_allowed") == 1


def test_unknown_paths_add_no_series(edge: RunningEdge) -> None:
    edge.request("GET", "/no/such/path/0")
    before = scrape(edge).keys()
    for number in range(20):
        assert edge.request("GET", f"/no/such/path/{number}").status == 404
        assert edge.request("GET", "/health", headers={"Origin": f"http://evil-{number}.example"}).status == 403
    after = scrape(edge)
    assert {name for name, labels in after.keys() - before} <= {
        "signet_http_requests_total",
        "signet_http_request_duration_seconds_bucket",
        "signet_http_request_duration_seconds_count",
        "signet_http_request_duration_seconds_sum",
    }, "only the first scrape itself is new"
    assert all(dict(labels).get("route") in {"/metrics", UNROUTED} for _, labels in after.keys() - before)
    assert value(after, "signet_http_requests_total", route=UNROUTED, method="GET", status="4xx") == 41
    assert value(after, "signet_http_guarded_total") == 20


def test_requests_refused_before_the_application_are_counted(edge: RunningEdge) -> None:
    edge.raw(b"POST /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 101\r\n\r\n")
    edge.raw(b"no http at all\r\n\r\n")
    samples = scrape(edge)
    assert value(samples, "signet_http_refused_total", code="payload_too_large") == 1
    assert value(samples, "signet_http_refused_total", code="invalid_request") == 1
    status = edge.state.counter_values()
    assert status["refused"] == 2


def test_refused_connections_and_shed_requests_are_counted(edge: RunningEdge, gate: Gate) -> None:
    held = [edge.connect() for _ in range(4)]
    gate.hold(edge, *held)  # an idle one would make room
    try:
        eventually(lambda: edge.state.counter_values()["connections"] == 4, what="four connections")
        with edge.connect() as refused:
            assert b"503" in read_to_end(refused).split(b"\r\n", 1)[0]
        assert edge.state.counter_values()["connections_refused"] == 1
    finally:
        gate.open(edge)
        for connection in held:
            connection.shutdown(socket.SHUT_RDWR)
            connection.close()
    eventually(lambda: edge.state.counter_values()["connections"] == 0, what="no connection")
    assert edge.state.server_context is not None
    edge.state.server_context.admission.shed += 3
    samples = scrape(edge)
    assert value(samples, "signet_http_connections_refused_total") == 1
    assert value(samples, "signet_http_shed_total") == 3
    assert edge.request("GET", "/api/status").body["gateway"]["requests_shed"] == 3


def test_a_page_of_another_site_reads_no_metrics(edge: RunningEdge) -> None:
    assert edge.request("GET", "/metrics", headers={"Sec-Fetch-Site": "cross-site"}).status == 403
    assert edge.request("POST", "/metrics", {}).status == 405
