"""The guard, JSON errors, and the routes for health, status, configuration and documentation."""

from __future__ import annotations

import errno
import json
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from signet_actors.config.pipeline_schema import MemoryConfig, PipelineV2Config
from signet_actors.config.schema import Config, GatewayConfig
from signet_actors.domain.permissions import Permission
from signet_actors.errors import ErrorCode, InvalidRequest, NotFound, SignetError, StorageFull, Unavailable
from signet_actors.features.repairs.api import EnterRepair, RepairAdmitted
from signet_actors.gateway.auth.signing_key import KEY_BYTES, signing_key
from signet_actors.gateway.http.route import Call, HttpResponse, Route
from signet_actors.gateway.routes import ROUTES, config_files
from signet_actors.protocol.control import UP, ChildState
from signet_actors.protocol.message import Answered
from signet_actors.protocol.retention import SweepNow, Swept
from signet_actors.protocol.searcher import GetStoreStats
from tests.support.bus_harness import eventually
from tests.support.edge import (
    CLIENT_WAIT_S,
    EVERYBODY_UP,
    RunningEdge,
    ScriptedBus,
    echo,
    gateway_config,
)
from tests.support.routes import plain_route


async def broken(call: Call[Any]) -> HttpResponse:
    raise RuntimeError(f"a fault that quotes {call.raw!r}")


async def internal(call: Call[Any]) -> HttpResponse:
    raise SignetError("a detail of ours")


async def not_valid(call: Call[Any]) -> HttpResponse:
    raise InvalidRequest("importance must be a number", field="importance")


async def missing(call: Call[Any]) -> HttpResponse:
    raise NotFound("Not found")


async def full(call: Call[Any]) -> HttpResponse:
    raise StorageFull


async def disk_error(call: Call[Any]) -> HttpResponse:
    raise OSError(getattr(errno, call.path["error"]), "no such luck")


async def surrogate(call: Call[Any]) -> HttpResponse:
    return HttpResponse({"text": "a\ud800b", "list": [{"k\udfff": 1.5}]})


async def body_of(call: Call[Any]) -> HttpResponse:
    return HttpResponse(call.json_object())


TEST_ROUTES: tuple[Route, ...] = (
    plain_route("GET", "/test/echo", echo, Permission.RECALL),
    plain_route("POST", "/test/echo", echo, Permission.REMEMBER),
    plain_route("POST", "/test/write", echo, Permission.REMEMBER, mutates=True),
    plain_route("POST", "/test/json", body_of, Permission.REMEMBER),
    plain_route("POST", "/test/broken", broken, Permission.REMEMBER),
    plain_route("GET", "/test/internal", internal, Permission.RECALL),
    plain_route("GET", "/test/not-valid", not_valid, Permission.RECALL),
    plain_route("GET", "/test/missing", missing, Permission.RECALL),
    plain_route("GET", "/test/full", full, Permission.RECALL),
    plain_route("GET", "/test/disk/{error}", disk_error, Permission.RECALL),
    plain_route("GET", "/test/surrogate", surrogate, Permission.RECALL),
    plain_route("GET", "/test/items/{id}", echo, Permission.RECALL),
    plain_route("GET", "/test/items/{id}/history", echo, Permission.RECALL),
)


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEdge]:
    with RunningEdge((*ROUTES, *TEST_ROUTES), tmp_path_factory.mktemp("workspace")) as running:
        yield running


def test_the_guard_checks_every_route(edge: RunningEdge) -> None:
    for route in ROUTES:
        path = route.path.replace("{id}", "x").replace("{file}", "x")
        answer = edge.request(route.operation.method, path, headers={"Origin": "http://evil.example"})
        assert answer.status == 403, route
        assert set(answer.body) == {"error", "code"}
    assert edge.request("GET", "/no/such/path", headers={"Origin": "http://evil.example"}).status == 403


def test_requests_refused_by_the_guard_are_counted_and_logged_rarely(tmp_path: Path) -> None:
    with RunningEdge(TEST_ROUTES, tmp_path) as edge:
        for _ in range(50):
            edge.request("GET", "/test/echo", headers={"Origin": "null"})
        assert edge.state.counters.guarded == 50
        assert 1 <= len([line for line in edge.log_lines if line["event"] == "request_guarded"]) < 10


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [
        (
            "/test/not-valid",
            400,
            {"error": "importance must be a number", "code": "invalid_request", "field": "importance"},
        ),
        ("/test/missing", 404, {"error": "Not found", "code": "not_found"}),
        (
            "/test/full",
            507,
            {"error": "The disk is full; nothing was applied. Reads still work.", "code": "storage_full"},
        ),
    ],
)
def test_an_error_has_its_status_and_one_body(edge: RunningEdge, path: str, status: int, body: dict[str, str]) -> None:
    answer = edge.request("GET", path)
    assert (answer.status, answer.body) == (status, body)


def test_an_internal_error_contains_only_its_trace_id(edge: RunningEdge) -> None:
    answer = edge.request("POST", "/test/broken", b'{"content": "private words"}')
    assert (answer.status, answer.body["code"]) == (500, "internal")
    assert answer.headers["x-signet-trace-id"] in answer.body["error"]
    assert b"private" not in answer.raw
    logged = [line for line in edge.log_lines if line.get("trace") == answer.headers["x-signet-trace-id"]]
    assert [line["event"] for line in logged] == ["request_failed", "request"]
    assert "a detail" not in edge.request("GET", "/test/internal").body["error"]


@pytest.mark.parametrize(("error", "status"), [("ENOSPC", 507), ("EDQUOT", 507), ("EIO", 500)])
def test_a_full_disk_is_distinguished_from_a_failing_one(edge: RunningEdge, error: str, status: int) -> None:
    answer = edge.request("GET", f"/test/disk/{error}")
    assert answer.status == status
    assert answer.body["code"] == ("storage_full" if status == 507 else "internal")
    assert "no such luck" not in answer.body["error"]


def raising(*_: object, **__: object) -> None:
    raise RuntimeError("this part fails")


@pytest.mark.parametrize("broken_part", ["log", "metrics", "both"])
def test_a_response_is_sent_even_if_log_or_metrics_fail(tmp_path: Path, broken_part: str) -> None:
    class BrokenLog:
        debug = info = warning = error = exception = critical = staticmethod(raising)

    class BrokenMetrics:
        observe = staticmethod(raising)

    with RunningEdge(TEST_ROUTES, tmp_path) as edge:
        if broken_part in {"log", "both"}:
            edge.state.log = BrokenLog()  # type: ignore[assignment]
        if broken_part in {"metrics", "both"}:
            edge.state.request_metrics = BrokenMetrics()  # type: ignore[assignment]
        cases: tuple[tuple[str, str, dict[str, str], int], ...] = (
            ("POST", "/test/echo", {}, 200),
            ("GET", "/test/missing", {}, 404),
            ("GET", "/nowhere", {}, 404),
            ("POST", "/test/broken", {}, 500),
            ("GET", "/test/internal", {}, 500),
            ("GET", "/test/disk/ENOSPC", {}, 507),
            ("GET", "/test/echo", {"Host": "evil.example"}, 421),
        )
        for method, path, headers, status in 2 * cases:
            body = b"{}" if method == "POST" else None
            assert edge.request(method, path, body, headers).status == status, path
        eventually(lambda: edge.state.counters.in_flight == 0, what="the requests are counted as ended")


def test_a_response_with_a_lone_surrogate_is_encoded(edge: RunningEdge) -> None:
    assert edge.request("GET", "/test/surrogate").body == {"text": "a\ufffdb", "list": [{"k\ufffd": 1.5}]}


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/test/items/..%2f..%2fetc%2fpasswd", {400, 404}),
        ("/test/items/../../etc/passwd", {404}),
        ("/test/items/%00", {400}),
        ("/test/items/%c0%ae", {400}),
        ("/test/items/%0d%0aX-Injected:%201", {400}),
        ("/test/items/" + "a" * 9000, {400}),
        ("/test/echo?q=%ff", {400}),
        ("/test/echo?q=%00", {400}),
        ("/test/echo?" + "&".join(f"a{n}=1" for n in range(500)), {400}),
        ("/test/echo?q=" + "a" * 9000, {400}),
        ("/test/items/%F0%9F%98%80", {200}),
        ("/test/echo?q=%E2%82%AC&q=second&empty=", {200}),
    ],
)
def test_a_hostile_target_is_refused_in_json(edge: RunningEdge, target: str, status: set[int]) -> None:
    answer = edge.request("GET", target)
    assert answer.status in status
    assert isinstance(answer.body, dict)
    assert "x-injected" not in answer.headers


def test_query_and_path_reach_the_handler_unescaped(edge: RunningEdge) -> None:
    answer = edge.request("GET", "/test/items/a%20b/history?q=%E2%82%AC&q=second&empty=&plus=a+b")
    assert answer.body["path"] == {"id": "a b"}
    assert answer.body["query"] == {"q": "€", "empty": "", "plus": "a b"}


def test_a_reload_changes_the_allowed_hosts(tmp_path: Path) -> None:
    with RunningEdge(TEST_ROUTES, tmp_path) as edge:
        assert edge.request("GET", "/test/echo", headers={"Host": "box:9"}).status == 421
        edge.state.reconfigure(Config(gateway=GatewayConfig(allowed_hosts=("box:9",))))
        assert edge.request("GET", "/test/echo", headers={"Host": "box:9"}).status == 200


def test_requests_are_logged_by_template_without_query_or_body(edge: RunningEdge) -> None:
    answer = edge.request("GET", "/test/items/some-id?q=private")
    (line,) = [line for line in edge.log_lines if line.get("trace") == answer.headers["x-signet-trace-id"]]
    assert (line["level"], line["route"], line["status"]) == ("debug", "/test/items/{id}", 200)
    assert "private" not in str(line)
    assert "some-id" not in str(line)


# Health


def child(name: str, state: str, detail: str = "") -> ChildState:
    return ChildState(name, name.split("-", 1)[0], state, 2, 1, 99, detail)


@pytest.mark.parametrize(
    ("children", "status", "ready", "not_up"),
    [
        (EVERYBODY_UP, "healthy", 200, []),
        ((child("writer", "restarting", "died"), *EVERYBODY_UP[1:]), "unhealthy", 503, ["writer"]),
        ((EVERYBODY_UP[0], child("searcher-1", "restarting"), *EVERYBODY_UP[2:]), "unhealthy", 503, ["searcher-1"]),
        ((*EVERYBODY_UP, child("searcher-2", "failed")), "degraded", 200, ["searcher-2"]),
        ((*EVERYBODY_UP[:2], child("retention", "failed"), EVERYBODY_UP[3]), "degraded", 200, ["retention"]),
        ((), "unhealthy", 503, ["writer", "searcher"]),
    ],
)
def test_health_follows_the_tree(
    tmp_path: Path, children: tuple[ChildState, ...], status: str, ready: int, not_up: list[str]
) -> None:
    with RunningEdge(ROUTES, tmp_path, bus=ScriptedBus(children)) as edge:
        health = edge.request("GET", "/health")
        assert (health.status, health.body["status"]) == (200, status)
        assert all(name in health.body["detail"] for name in not_up)
        answer = edge.request("GET", "/health/ready")
        assert (answer.status, answer.body["notUp"]) == (ready, not_up)
        if ready == 503:
            assert answer.headers["retry-after"] == "1"
            assert answer.body["code"] == "unavailable"
        assert edge.request("GET", "/health/live").status == 200
        assert not edge.bus.asked, "health asks nobody"


def extractor(state: str = "up", **counters: float) -> ChildState:
    return ChildState("extractor", "extractor", state, 1, 0, 15, core=False, counters=counters)


@pytest.mark.parametrize(
    ("enabled", "child", "pipeline"),
    [
        (True, extractor(), (True, False, 0)),
        (True, extractor(extract_pause_seconds=30.0), (True, True, 30_000)),
        (True, extractor("restarting", extract_pause_seconds=30.0), (False, True, 0)),
        (True, None, (False, True, 0)),
        (False, extractor(extract_pause_seconds=0.0), (False, False, 0)),
    ],
)
def test_health_shows_whether_facts_are_extracted(
    tmp_path: Path, enabled: bool, child: ChildState | None, pipeline: tuple[bool, bool, int]
) -> None:
    config = Config(memory=MemoryConfig(pipeline_v2=PipelineV2Config(enabled=enabled)))
    children = EVERYBODY_UP if child is None else (*EVERYBODY_UP, child)
    with RunningEdge(ROUTES, tmp_path, bus=ScriptedBus(children), config=config) as edge:
        told = edge.request("GET", "/health").body["pipeline"]
        assert told == {
            "extractionRunning": pipeline[0],
            "extractionStalled": pipeline[1],
            "extractionPending": None,
            "extractionBackoffMs": pipeline[2],
        }
        assert not edge.bus.asked, "health asks nobody"


def test_health_sums_up_the_resources_of_the_processes(tmp_path: Path) -> None:
    children = [
        ChildState("writer", "writer", UP, 1, 0, 11, counters={"cpu_seconds": 1.25, "rss_bytes": 1000.0}),
        ChildState("searcher-1", "searcher", UP, 1, 0, 12, counters={"cpu_seconds": 0.5, "rss_bytes": 500.0}),
        ChildState("gateway", "gateway", UP, 1, 0, None, counters={"rss_peak_bytes": 700.0}),
    ]
    with RunningEdge(ROUTES, tmp_path, bus=ScriptedBus(children)) as edge:
        assert edge.request("GET", "/health").body["resources"] == {
            "processes": 2,
            "cpuSeconds": 1.75,
            "rssBytes": 1500,
            "rssPeakBytes": 700,
        }


# Status


def test_status_is_answered_when_every_other_process_is_down(tmp_path: Path) -> None:
    bus = ScriptedBus([child("writer", "restarting")])
    bus.answers[GetStoreStats] = Unavailable("no searcher is up")
    with RunningEdge(ROUTES, tmp_path, bus=bus) as edge:
        answer = edge.request("GET", "/api/status")
    assert answer.status == 200
    assert (answer.body["db"], answer.body["writer"], answer.body["jobs"]) == (None, None, None)
    assert sorted(note.split(":")[0] for note in answer.body["notes"]) == ["retention", "searcher", "writer"]


# Repair


def test_a_skipped_sweep_reports_why(tmp_path: Path) -> None:
    bus = ScriptedBus()
    bus.answers[EnterRepair] = Answered(msgspec.json.encode(RepairAdmitted("retention_sweep")))
    bus.answers[SweepNow] = Swept([], 0, 0, "the clock jumped")
    with RunningEdge(ROUTES, tmp_path, bus=bus) as edge:
        body = edge.request("POST", "/api/repair/retention-sweep").body
        waited_ms, limit_ms = bus.retention_timeout_ms, edge.state.config.gateway.request_timeout_ms
        bus.answers.clear()
        assert edge.request("POST", "/api/repair/retention-sweep").status == 503
    assert (body["success"], body["message"]) == (False, "the clock jumped")
    assert waited_ms is not None
    assert waited_ms < limit_ms, "a long sweep answers with what it has done before the request ends"


# Configuration files


def test_a_config_file_is_replaced_atomically_and_the_previous_one_kept(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_text("logging:\n  level: info\n")
    new = "logging:\n  level: warning\nunknownKey: 1\n"
    with RunningEdge(ROUTES, tmp_path) as edge:
        answer = edge.request("POST", "/api/config", {"file": "agent.yaml", "content": new})
        assert (answer.status, answer.body["success"]) == (200, True)
        assert "unknownKey" in answer.body["warnings"][0]
        (listed,) = edge.request("GET", "/api/config").body["files"]
    assert listed == {"name": "agent.yaml", "content": new, "size": len(new)}
    assert (tmp_path / "agent.yaml").read_text() == new
    assert stat.S_IMODE((tmp_path / "agent.yaml").stat().st_mode) == 0o600
    assert (tmp_path / ".daemon" / "previous" / "agent.yaml").read_text() == "logging:\n  level: info\n"
    assert sorted(os.listdir(tmp_path)) == [".daemon", "agent.yaml"]
    assert os.listdir(tmp_path / ".daemon") == ["previous"]


def test_a_configuration_that_cannot_start_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_text("logging:\n  level: info\n")
    with RunningEdge(ROUTES, tmp_path) as edge:
        for content in ("gateway:\n  port: 99999\n", "a: [", "auth:\n  mode: teams\n", "gateway: {host: 0.0.0.0}"):
            answer = edge.request("POST", "/api/config", {"file": "agent.yaml", "content": content})
            assert (answer.status, answer.body["code"], answer.body["field"]) == (400, "invalid_request", "content")
            assert str(tmp_path) not in answer.body["error"]
    assert (tmp_path / "agent.yaml").read_text() == "logging:\n  level: info\n"
    assert sorted(os.listdir(tmp_path)) == [".daemon", "agent.yaml"]


OWNERS_FILE = """
embedding: {provider: openai, model: m, dimensions: 8, endpoint: "http://127.0.0.1:9/v1", apiKeyEnv: OPENAI_API_KEY}
memory: {pipelineV2: {extraction: {provider: ollama, endpoint: "http://127.0.0.1:8"}}}
"""
KEPT = OWNERS_FILE.strip()
EMBEDDING, PIPELINE = KEPT.splitlines()
ELSEWHERE = "http://127.0.0.1:6666"
PIPELINE_WITH_SYNTHESIS = KEPT.replace("pipelineV2: {", "pipelineV2: {synthesis: {HERE}, ")


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ("", "embedding.endpoint"),
        (KEPT.replace("http://127.0.0.1:9/v1", ELSEWHERE), "embedding.endpoint"),
        (KEPT.replace('endpoint: "http://127.0.0.1:9/v1"', f"baseUrl: '{ELSEWHERE}'"), "embedding.endpoint"),
        (KEPT.replace('endpoint: "http://127.0.0.1:9/v1"', f"base_url: '{ELSEWHERE}'"), "embedding.endpoint"),
        (KEPT.replace("OPENAI_API_KEY", "SIGNET_OTHER"), "embedding.apiKeyEnv"),
        (KEPT.replace("apiKeyEnv: OPENAI_API_KEY", "api_key_env: GROQ_API_KEY"), "embedding.apiKeyEnv"),
        (KEPT.replace("http://127.0.0.1:8", ELSEWHERE), "memory.pipelineV2.extraction.endpoint"),
        (KEPT.replace("ollama", "openai"), "memory.pipelineV2.extraction.provider"),
        (
            PIPELINE_WITH_SYNTHESIS.replace("HERE", f"endpoint: '{ELSEWHERE}'"),
            "memory.pipelineV2.synthesis.endpoint",
        ),
        (PIPELINE_WITH_SYNTHESIS.replace("HERE", "provider: openai"), "memory.pipelineV2.synthesis.provider"),
        (KEPT.replace("ollama", "claude-code"), "memory.pipelineV2.extraction.provider"),
        (
            f"{EMBEDDING}\nmemory: {{pipelineV2: {{extractionProvider: ollama, extractionEndpoint: '{ELSEWHERE}'}}}}",
            "memory.pipelineV2.extraction.endpoint",
        ),
        (
            (
                f"{EMBEDDING}\nmemory: {{pipeline_v2: {{extraction_provider: openai, extraction: {{baseUrl: "
                '"http://127.0.0.1:8"}}}'
            ),
            "memory.pipelineV2.extraction.provider",
        ),
        (
            (
                f"{PIPELINE}\nname: &there '{ELSEWHERE}'\nembedding: {{provider: openai, model: m, dimensions: 8, "
                "endpoint: *there, apiKeyEnv: OPENAI_API_KEY}"
            ),
            "embedding.endpoint",
        ),
        (KEPT.replace("http://127.0.0.1:9/v1", "http://127.0.0.1:9/v\\x32"), "embedding.endpoint"),
        (f"{KEPT}\nauth: {{mode: team}}", "auth.mode"),
        (f"{KEPT}\nauth: {{rateLimits: {{admin: {{max: 1000}}}}}}", "auth.rateLimits"),
        (f"{KEPT}\ngateway: {{trustedProxies: ['10.0.0.2']}}", "gateway.trustedProxies"),
    ],
)
def test_destinations_and_who_is_served_cannot_be_changed_over_http(tmp_path: Path, content: str, field: str) -> None:
    (tmp_path / "agent.yaml").write_text(OWNERS_FILE)
    with RunningEdge(ROUTES, tmp_path) as edge:
        answer = edge.request("POST", "/api/config", {"file": "agent.yaml", "content": content})
    assert (answer.status, answer.body["code"], answer.body["field"]) == (403, "forbidden", field)
    assert "not over HTTP" in answer.body["error"]
    assert (tmp_path / "agent.yaml").read_text() == OWNERS_FILE


@pytest.mark.parametrize(
    "content",
    [
        f"embedding: {{<<: {{endpoint: '{ELSEWHERE}'}}}}",
        f"{KEPT}\nembedding: {{endpoint: '{ELSEWHERE}'}}",
        KEPT.replace("endpoint: ", f"baseUrl: '{ELSEWHERE}', endpoint: "),
        "embedding: {provider: openai, model: m, apiKeyEnv: AWS_SECRET_ACCESS_KEY}",
    ],
)
def test_an_ambiguous_endpoint_and_another_secret_of_the_environment_are_configuration_errors(
    tmp_path: Path, content: str
) -> None:
    (tmp_path / "agent.yaml").write_text(OWNERS_FILE)
    with RunningEdge(ROUTES, tmp_path) as edge:
        answer = edge.request("POST", "/api/config", {"file": "agent.yaml", "content": content})
    assert (answer.status, answer.body["code"]) == (400, "invalid_request")
    assert (tmp_path / "agent.yaml").read_text() == OWNERS_FILE


@pytest.mark.parametrize(
    "content",
    [
        KEPT + "\nlogging: {level: warning}\n",
        f"embedding: {{provider: auto, endpoint: 'http://127.0.0.1:9/v1', apiKeyEnv: OPENAI_API_KEY}}\n{PIPELINE}",
        KEPT.replace("ollama", "none"),
        (
            f"{EMBEDDING}\nmemory: {{pipelineV2: {{extraction: {{provider: ollama}}, extractionEndpoint: "
            '"http://127.0.0.1:8"}}'
        ),
    ],
)
def test_everything_else_of_the_configuration_can_be_changed_over_http(tmp_path: Path, content: str) -> None:
    (tmp_path / "agent.yaml").write_text(OWNERS_FILE)
    with RunningEdge(ROUTES, tmp_path) as edge:
        answer = edge.request("POST", "/api/config", {"file": "agent.yaml", "content": content})
    assert answer.status == 200, answer.raw
    assert (tmp_path / "agent.yaml").read_text() == content


def opencode(model: str) -> str:
    return f"memory: {{pipelineV2: {{extraction: {{provider: opencode, model: '{model}'}}}}}}\n"


@pytest.mark.parametrize(
    ("former", "new"),
    [
        ("local/qwen3", "elsewhere/large"),
        ("local/qwen3", ""),
        ("", "elsewhere/large"),
    ],
)
def test_the_opencode_model_cannot_be_changed_over_http(tmp_path: Path, former: str, new: str) -> None:
    (tmp_path / "agent.yaml").write_text(opencode(former))
    with RunningEdge(ROUTES, tmp_path) as edge:
        answer = edge.request("POST", "/api/config", {"file": "agent.yaml", "content": opencode(new)})
        kept = edge.request("POST", "/api/config", {"file": "agent.yaml", "content": opencode(former) + "# kept\n"})
    assert (answer.status, answer.body["field"]) == (403, "memory.pipelineV2.extraction.model")
    assert kept.status == 200


@pytest.mark.parametrize(
    ("former", "new", "field"),
    [
        (
            "{extraction: {provider: ollama, model: a}}",
            "{extraction: {provider: ollama, model: b-cloud}}",
            "extraction.model",
        ),
        ("{extraction: {provider: none}}", "{extraction: {provider: auto}}", "extraction.provider"),
        ("{extraction: {provider: none}}", "{extraction: {provider: claude-code}}", "extraction.provider"),
        ("{enabled: false}", "{enabled: true}", "enabled"),
        ("{}", "{autonomous: {allowUpdateDelete: true}}", "autonomous.allowUpdateDelete"),
        ("{enabled: false}", "{enabled: false, reranker: {useExtractionModel: true}}", "reranker.useExtractionModel"),
        ("{autonomous: {frozen: true}}", "{}", "autonomous.frozen"),
        ("{mutationsFrozen: true}", "{mutationsFrozen: false}", "mutationsFrozen"),
        ("{shadowMode: true}", "{}", "shadowMode"),
        (
            "{semanticContradictionEnabled: true}",
            "{semanticContradictionEnabled: false}",
            "semanticContradictionEnabled",
        ),
        ("{extraction: {minConfidence: 0.8}}", "{extraction: {minConfidence: 0}}", "extraction.minConfidence"),
        ("{extraction: {dailyCallLimit: 10}}", "{extraction: {dailyCallLimit: 11}}", "extraction.dailyCallLimit"),
        ("{extraction: {dailyTokenLimit: 10}}", "{extraction: {dailyTokenLimit: 0}}", "extraction.dailyTokenLimit"),
        ("{}", "{extraction: {dailyCallLimit: 1000000}}", "extraction.dailyCallLimit"),
    ],
)  # fmt: skip
def test_the_permissions_of_a_model_cannot_be_extended_over_http(
    tmp_path: Path, former: str, new: str, field: str
) -> None:
    (tmp_path / "agent.yaml").write_text(f"memory: {{pipelineV2: {former}}}\n")
    with RunningEdge(ROUTES, tmp_path) as edge:
        body = {"file": "agent.yaml", "content": f"memory: {{pipelineV2: {new}}}\n"}
        answer = edge.request("POST", "/api/config", body)
    assert (answer.status, answer.body["field"]) == (403, f"memory.pipelineV2.{field}")


@pytest.mark.parametrize(
    ("former", "weaker", "field"),
    [
        ("gateway: {allowedHosts: [a.it]}", "gateway: {allowedHosts: [a.it, evil.it]}", "gateway.allowedHosts"),
        ("projects: {only: [/a]}", "projects: {only: [/a, /b]}", "projects.only"),
        ("projects: {only: [/a]}", "projects: {only: []}", "projects.only"),
        ("gateway: {requireOwner: true}", "gateway: {requireOwner: false}", "gateway.requireOwner"),
        ("redaction: {memories: true}", "redaction: {memories: false}", "redaction.memories"),
    ],
)  # fmt: skip
def test_a_protection_can_be_strengthened_over_http_and_not_weakened(
    tmp_path: Path, former: str, weaker: str, field: str
) -> None:
    (tmp_path / "agent.yaml").write_text(former)
    with RunningEdge(ROUTES, tmp_path) as edge:
        refused = edge.request("POST", "/api/config", {"file": "agent.yaml", "content": weaker})
        (tmp_path / "agent.yaml").write_text(weaker)
        restored = edge.request("POST", "/api/config", {"file": "agent.yaml", "content": former})
    assert (refused.status, refused.body["field"], restored.status) == (403, field, 200)


@pytest.mark.parametrize("new", ["[{name: alice, read_policy: shared}]", "[]"])
def test_read_policies_of_the_roster_cannot_be_changed_over_http(tmp_path: Path, new: str) -> None:
    (tmp_path / "agent.yaml").write_text("agents: {roster: [{name: alice, read_policy: isolated}]}")
    more = "agents: {roster: [{name: alice, read_policy: isolated}, {name: bob}]}"
    with RunningEdge(ROUTES, tmp_path) as edge:
        body = {"file": "agent.yaml", "content": f"agents: {{roster: {new}}}"}
        refused = edge.request("POST", "/api/config", body)
        added = edge.request("POST", "/api/config", {"file": "agent.yaml", "content": more})
    assert (refused.status, refused.body["field"], added.status) == (403, "agents.roster", 200)


@pytest.mark.parametrize("model", ["--attach=http://evil.example:4096", "-x", "a b", "a\nb"])
def test_a_model_name_that_looks_like_an_option_is_refused(tmp_path: Path, model: str) -> None:
    content = json.dumps({"memory": {"pipelineV2": {"extraction": {"provider": "opencode", "model": model}}}})
    with RunningEdge(ROUTES, tmp_path) as edge:
        answer = edge.request("POST", "/api/config", {"file": "agent.yaml", "content": content})
    assert (answer.status, answer.body["field"]) == (400, "content")


def test_an_unreadable_configuration_is_replaced_over_http_only_with_the_endpoints_in_effect(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_text("embedding: [")
    with RunningEdge(ROUTES, tmp_path) as edge:
        refused = edge.request("POST", "/api/config", {"file": "agent.yaml", "content": OWNERS_FILE})
        mended = edge.request("POST", "/api/config", {"file": "agent.yaml", "content": "search: {alpha: 0.4}"})
    assert (refused.status, mended.status) == (403, 200)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"file": "AGENTS.md"}, "Invalid request"),
        ({"file": 1, "content": "x"}, "Invalid request"),
        ({"content": "x"}, "Invalid request"),
        ({"file": "../agent.yaml", "content": "x"}, "Invalid file name"),
        ({"file": "memory/memories.md", "content": "x"}, "Invalid file name"),
        ({"file": "..", "content": "x"}, "Invalid file name"),
        ({"file": "CLAUDE.md", "content": "x"}, "Invalid file name"),
        ({"file": "agent.yaml\0.md", "content": "x"}, "Invalid file name"),
        ({"file": "run.sh", "content": "x"}, "Invalid file type"),
        ({"file": "", "content": "x"}, "Invalid file type"),
        ({"file": "SOUL.md", "content": "a\0b"}, "content must be text"),
    ],
)
def test_only_listed_files_are_written(edge: RunningEdge, body: dict[str, object], error: str) -> None:
    answer = edge.request("POST", "/api/config", body)
    assert (answer.status, answer.body["error"]) == (400, error)


def test_a_configuration_above_its_size_limit_is_refused(edge: RunningEdge) -> None:
    wish = {"file": "agent.yaml", "content": "#" * (128 * 1024 + 1)}
    assert edge.request("POST", "/api/config", wish).status == 413
    wish["content"] = "#" * (128 * 1024)
    assert edge.request("POST", "/api/config", wish).status == 200


def test_an_abandoned_config_write_has_an_unknown_outcome_and_replaces_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "agent.yaml").write_text("logging: {level: info}")
    go_on = threading.Event()

    def slow(workspace: Path, data: bytes, running: Config) -> list[str]:
        assert go_on.wait(CLIENT_WAIT_S)
        return []

    monkeypatch.setattr(config_files, "_validate", slow)
    with RunningEdge(ROUTES, tmp_path, config=gateway_config(request_timeout_ms=100)) as edge:
        answer = edge.request("POST", "/api/config", {"file": "agent.yaml", "content": "logging: {level: debug}"})
        assert (answer.status, answer.body["code"]) == (504, "outcome_unknown")
        go_on.set()
        with config_files._replace_lock:  # the thread has ended
            assert (tmp_path / "agent.yaml").read_text() == "logging: {level: info}"
        assert not (tmp_path / ".daemon" / "previous").exists()
        assert sorted(path.name for path in tmp_path.iterdir() if path.name != ".daemon") == ["agent.yaml"]


def test_a_file_above_the_size_limit_is_refused(edge: RunningEdge) -> None:
    answer = edge.request("POST", "/api/config", {"file": "SOUL.md", "content": "x" * 1_048_577})
    assert answer.status == 413


def test_a_symbolic_link_is_neither_read_nor_replaced(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("private")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "SOUL.md").symlink_to(outside)
    os.mkfifo(workspace / "USER.md")
    with RunningEdge(ROUTES, workspace) as edge:
        listed = edge.request("GET", "/api/config").body
        assert edge.request("POST", "/api/config", {"file": "SOUL.md", "content": "x"}).status == 409
        assert edge.request("POST", "/api/config", {"file": "USER.md", "content": "x"}).status == 409
    assert listed["files"] == []
    assert [entry["name"] for entry in listed["skipped"]] == ["SOUL.md", "USER.md"]
    assert outside.read_text() == "private"


# The API page


def test_the_index_page_is_plain_text_for_programs(edge: RunningEdge) -> None:
    answer = edge.request("GET", "/")
    assert answer.headers["content-type"].startswith("text/plain")
    assert f"http://127.0.0.1:{edge.port}/api/docs" in answer.raw.decode()


# The confirm key


def test_the_signing_key_is_created_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / ".daemon" / "secret"
    key = signing_key(path)
    assert len(key) == KEY_BYTES
    assert signing_key(path) == key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == ["secret"]


@pytest.mark.parametrize("how", ["readable by others", "of an exFAT stick", "empty", "too long", "link", "fifo"])
def test_a_signing_key_that_others_could_have_read_or_made_is_replaced(tmp_path: Path, how: str) -> None:
    path = tmp_path / "secret"
    former = signing_key(path)
    match how:
        case "readable by others":
            path.chmod(0o640)
        case "of an exFAT stick":
            path.chmod(0o777)
        case "empty":
            path.write_bytes(b"")
        case "too long":
            path.write_bytes(former + b"x")
        case "link":
            path.rename(tmp_path / "other")
            path.symlink_to(tmp_path / "other")
        case "fifo":
            path.unlink()
            os.mkfifo(path, 0o600)
    key = signing_key(path)
    assert (len(key), key == former) == (KEY_BYTES, False)
    assert (stat.S_IMODE(path.lstat().st_mode), path.lstat().st_size) == (0o600, KEY_BYTES)
    assert signing_key(path) == key
    if how == "link":
        assert (tmp_path / "other").read_bytes() == former, "what it names is left alone"


def test_every_error_code_has_a_status() -> None:
    from signet_actors.errors import HTTP_STATUS

    assert set(HTTP_STATUS) == set(ErrorCode)
    assert msgspec.json.encode(ErrorCode.BUSY) == b'"busy"'


@pytest.mark.parametrize(
    ("content", "valid", "told", "keys", "restart"),
    [
        ("search:\n  alpha: 0.55\n", True, "", ["search.alpha"], False),
        ("gateway: {port: 4000}\n", True, "", ["gateway.port"], True),
        ("search:\n  alpha: 7\n", False, "search.alpha", [], False),
        ("search: [\n", False, "agent.yaml", [], False),
        ("memory: {pipelineV2: {extraction: {endpoint: 'http://192.0.2.1'}}}\n", False, "not over HTTP", [], False),
    ],
)
def test_a_configuration_is_checked_without_being_stored(
    tmp_path: Path, content: str, valid: bool, told: str, keys: list[str], restart: bool
) -> None:
    with RunningEdge(ROUTES, tmp_path) as edge:
        answer = edge.request("POST", "/api/config/check", {"content": content})
    assert answer.status == 200, answer.raw
    body = answer.body
    assert (body["valid"], body["needsRestart"]) == (valid, restart)
    assert told in "\n".join(body["problems"])
    assert bool(body["problems"]) is not valid
    assert [key["key"] for key in body["keys"]] == keys
    assert not (tmp_path / "agent.yaml").exists()
