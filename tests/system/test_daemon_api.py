"""Health, status, configuration, the API document and the kill switch of a live daemon.

Source: docs/compatibility.md "Health and status", "Authentication", "Diagnostics and pipeline status", "Configuration
files"; memory-api.txt "mutationsFrozen"; docs/reliability.md R22; docs/decisions.md 40, 44.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from signet_actors.gateway.routes import ROUTES
from tests.support.bus_harness import eventually
from tests.support.live_daemon import Client, LiveDaemon, live_daemon

pytestmark = pytest.mark.system

MUTATING = [
    ("POST", "/api/memory/remember", {"content": "x"}),
    ("POST", "/api/memory/save", {"content": "x"}),
    ("POST", "/api/hook/remember", {"content": "x"}),
    ("PATCH", "/api/memory/{id}", {"importance": 0.1, "reason": "r"}),
    ("DELETE", "/api/memory/{id}?reason=r", None),
    ("POST", "/api/memory/{id}/recover", {"reason": "r"}),
    ("POST", "/api/memory/forget", {"mode": "execute", "reason": "r", "ids": ["{id}"]}),
    ("POST", "/api/memory/modify", {"reason": "r", "patches": [{"id": "{id}", "importance": 0.1}]}),
    ("POST", "/api/memory/import", {"content": "x"}),
    ("POST", "/api/memory/codex-native-note", {"content": "x"}),
    ("POST", "/api/memory/review-queue/{id}/approve", {}),
    ("POST", "/api/pipeline/runs/{run}/undo", {}),
    ("POST", "/api/repair/deduplicate", {}),
    ("POST", "/api/repair/retention-sweep", None),
    ("POST", "/api/knowledge/entities/{id}/pin", None),
    ("DELETE", "/api/knowledge/entities/{id}/pin", None),
    ("POST", "/api/knowledge/entities/{id}/suppress", {}),
    ("DELETE", "/api/knowledge/entities/{id}/suppress", None),
    ("POST", "/api/knowledge/entities/{id}/merge", {"into": "other"}),
    ("POST", "/api/knowledge/entities/{id}/unmerge", None),
]


@pytest.fixture(scope="module")
def own() -> Iterator[LiveDaemon]:
    """A daemon whose configuration files the tests may rewrite."""
    with live_daemon(config="search:\n  alpha: 0.4\n", pipeline=True) as daemon:
        yield daemon


def test_health_names_every_process(daemon: LiveDaemon) -> None:
    health = daemon.api.get("/health").ok()
    assert daemon.process is not None
    expected = {"status": "healthy", "pid": daemon.process.pid, "port": daemon.port, "db": True, "shuttingDown": False}
    assert {name: health[name] for name in expected} == expected
    assert health["agentsDir"] == str(daemon.workspace)
    assert health["uptime"] >= 0
    assert isinstance(health["version"], str)
    assert set(daemon.every_process()) == {"writer", "searcher-1", "retention", "gateway", "decider", "extractor"}
    eventually(lambda: {actor["state"] for actor in daemon.every_process().values()} == {"up"}, what="every_process up")
    assert daemon.api.get("/health/live").ok()["status"] == "live"
    assert daemon.api.get("/health/ready").ok()["ready"] is True


def test_health_shows_the_state_of_extraction_and_the_resources(own: LiveDaemon) -> None:
    eventually(lambda: own.api.get("/health").ok()["pipeline"]["extractionRunning"], what="the extractor is up")

    def stalled() -> bool:
        told: bool = own.api.get("/health").ok()["pipeline"]["extractionStalled"]
        return told

    eventually(stalled, what="no model is configured, and a heartbeat said so")
    own.api.get("/api/pipeline/status").ok()
    health = own.api.get("/health").ok()
    assert health["pipeline"]["extractionPending"] == 0
    assert health["resources"]["processes"] == len(own.every_process())
    assert health["resources"]["rssBytes"] > 1_000_000 * health["resources"]["processes"]
    assert health["resources"]["cpuSeconds"] > 0


def test_the_identity_is_read_from_the_users_files(own: LiveDaemon) -> None:
    assert own.api.get("/api/identity").ok() == {
        "name": "Agent",
        "description": None,
        "creature": None,
        "vibe": None,
        "source": [],
    }
    before = (own.workspace / "agent.yaml").read_text()
    (own.workspace / "agent.yaml").write_text(f"{before}agent:\n  name: Eve\n  description: Keeps the books\n")
    assert own.api.get("/api/identity").ok()["name"] == "Eve"
    (own.workspace / "IDENTITY.md").write_text("# Identity\n- **Name:** Ada\n- **Vibe:** calm\n")
    assert own.api.get("/api/identity").ok() == {
        "name": "Ada",
        "description": "Keeps the books",
        "creature": None,
        "vibe": "calm",
        "source": ["IDENTITY.md", "agent.yaml"],
    }
    (own.workspace / "IDENTITY.md").unlink()
    (own.workspace / "agent.yaml").write_text(before)


def test_the_identity_follows_links_and_never_blocks_on_special_files(own: LiveDaemon, tmp_path: Path) -> None:
    config, document = own.workspace / "agent.yaml", own.workspace / "IDENTITY.md"
    before = config.read_text()
    (tmp_path / "agent.yaml").write_text(f"{before}agent:\n  name: Eve\n")
    (tmp_path / "IDENTITY.md").write_text("- **Name:** Ada\n")
    try:
        config.unlink()
        config.symlink_to(tmp_path / "agent.yaml")
        assert own.api.get("/api/identity").ok()["name"] == "Eve", "the daemon starts with a linked file, too"
        document.symlink_to(tmp_path / "IDENTITY.md")
        assert own.api.get("/api/identity").ok()["name"] == "Ada"
        os.mkfifo(tmp_path / "pipe")
        for other in (tmp_path / "pipe", Path("/dev/zero"), tmp_path, tmp_path / "missing"):
            document.unlink()
            document.symlink_to(other)
            assert own.api.get("/api/identity").ok()["name"] == "Eve"
    finally:
        document.unlink(missing_ok=True)
        config.unlink()
        config.write_text(before)


def test_status_summarises_everything(daemon: LiveDaemon) -> None:
    daemon.agent("lone").remember("Counted by the status")
    eventually(lambda: {actor["state"] for actor in daemon.every_process().values()} == {"up"}, what="every_process up")
    status = daemon.api.get("/api/status").ok()
    assert daemon.process is not None
    expected = {
        "status": "running",
        "pid": daemon.process.pid,
        "port": daemon.port,
        "host": "127.0.0.1",
        "bindHost": "127.0.0.1",
        "agentsDir": str(daemon.workspace),
        "memoryDb": True,
        "mutationsFrozen": False,
        "notes": [],
        "health": {"score": 1.0, "status": "healthy"},
    }
    assert {name: status[name] for name in expected} == expected
    assert status["db"]["memories"] >= 1
    assert status["db"]["bytes"] > 0
    assert status["writer"]["commits"] >= 1
    assert status["writer"]["storageFull"] is False
    # The first sweep of a new daemon, some seconds after the start, waits for a second one.
    assert "no sweep has seen this clock" in (status["retention"]["suspendedReason"] or "no sweep has seen this clock")
    assert status["jobs"]["pending"] >= 1
    assert "waiting uses no attempts" in status["waiting"][0]
    assert status["embedding"] == {
        "provider": "embedded",
        "model": status["embedding"]["model"],
        "dimensions": 256,
        "available": True,
    }
    assert set(status["providerResolution"]) == {"extraction", "synthesis"}
    assert status["pipelineV2"]["enabled"] is True
    assert daemon.workspace.joinpath(".daemon", "logs").samefile(status["logging"]["logDir"])
    pids = {actor["pid"] for actor in status["actors"]}
    assert len(pids) == len(status["actors"])
    assert pids <= set(daemon.processes())
    assert {actor["restarts"] for actor in status["actors"]} == {0}


def test_features_and_identity_are_returned(daemon: LiveDaemon) -> None:
    features = daemon.api.get("/api/features").ok()
    assert features["memory"] is True
    assert all(isinstance(flag, bool) for flag in features.values())
    assert daemon.api.get("/api/auth/whoami").ok() == {"authenticated": False, "claims": None, "mode": "local"}


def test_a_sweep_on_demand_reports_its_steps(daemon: LiveDaemon) -> None:
    swept = daemon.api.post("/api/repair/retention-sweep").ok()
    assert (swept["action"], swept["success"], swept["affected"]) == ("retention_sweep", True, 0)
    assert [step["step"] for step in swept["steps"]][:9] == [
        "graph_links",
        "embeddings",
        "tombstones",
        "pipeline_runs",
        "history",
        "completed_jobs",
        "dead_jobs",
        "provider_usage",
        "sessions",
    ]
    daemon.api.post("/api/repair/retention-sweep", {"confirmClock": "yes"}).refused(400, field="confirmClock")


def test_every_response_has_a_trace_id_and_no_cors_header(daemon: LiveDaemon) -> None:
    traces = set()
    for method, target in (("GET", "/health"), ("GET", "/nowhere"), ("OPTIONS", "/api/memories"), ("GET", "/")):
        answer = daemon.api.request(method, target, headers={"x-signet-trace-id": "mine"})
        traces.add(answer.headers["x-signet-trace-id"])
        assert not [name for name in answer.headers if name.startswith("access-control-")]
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert len(traces - {"mine"}) == 4


@pytest.mark.parametrize("target", ["/nowhere", "/api", "/api/memory", "/api/memory/x/y/z", "/memory"])
def test_an_unknown_path_is_a_json_404(daemon: LiveDaemon, target: str) -> None:
    daemon.api.get(target).refused(404, code="not_found")


def test_a_wrong_method_is_a_json_405_with_the_allowed_ones(daemon: LiveDaemon) -> None:
    answer = daemon.api.request("PUT", "/api/memory/remember", {"content": "x"})
    answer.refused(405, code="method_not_allowed")
    assert answer.headers["allow"] == "POST"
    assert daemon.api.request("HEAD", "/api/memories").status == 200
    assert daemon.api.request("HEAD", "/api/memories").raw == b""


# configuration files


def test_configuration_files_are_listed_and_replaced(own: LiveDaemon) -> None:
    before = (own.workspace / "agent.yaml").read_text()
    assert "alpha: 0.4" in before
    files = {file["name"]: file["content"] for file in own.api.get("/api/config").ok()["files"]}
    assert files == {"agent.yaml": before}
    written = own.api.post("/api/config", {"file": "SOUL.md", "content": "Be brief.\n"}).ok()
    assert written["success"] is True
    soul = own.workspace / "SOUL.md"
    assert soul.read_text() == "Be brief.\n"
    assert soul.stat().st_mode & 0o777 == 0o600
    assert own.api.post("/api/config", {"file": "agent.yaml", "content": "search:\n  alpha: 0.6\n"}).ok()["success"]
    assert (own.workspace / "agent.yaml").read_text() == "search:\n  alpha: 0.6\n"
    assert (own.workspace / ".daemon" / "previous" / "agent.yaml").read_text() == before


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({}, "Invalid request"),
        ({"file": "SOUL.md"}, "Invalid request"),
        ({"file": 5, "content": "x"}, "Invalid request"),
        ({"file": "../SOUL.md", "content": "x"}, "Invalid file name"),
        ({"file": "memory/x.md", "content": "x"}, "Invalid file name"),
        ({"file": "notes.txt", "content": "x"}, "Invalid file type"),
        ({"file": "agent.yaml", "content": "search: ["}, None),
        ({"file": "agent.yaml", "content": "search:\n  alpha: 7\n"}, None),
        ({"file": "agent.yaml", "content": "auth:\n  mode: teams\n"}, None),
    ],
)
def test_a_configuration_file_that_cannot_start_is_refused(own: LiveDaemon, body: Any, text: str | None) -> None:
    before = (own.workspace / "agent.yaml").read_text()
    refused = own.api.post("/api/config", body).refused(400, code="invalid_request")
    if text is not None:
        assert refused["error"] == text
    assert (own.workspace / "agent.yaml").read_text() == before


# the API document


def test_the_api_document_describes_every_route(daemon: LiveDaemon) -> None:
    document = daemon.api.get("/api/openapi.json").ok()
    assert document["openapi"].startswith("3.1")
    described = {(method.upper(), path) for path, operations in document["paths"].items() for method in operations}
    assert {(route.operation.method, route.path) for route in ROUTES if route.operation.tag != "page"} <= described


def test_the_api_page_works_without_a_network(daemon: LiveDaemon) -> None:
    page = daemon.api.get("/api/docs")
    assert page.status == 200
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    text = page.raw.decode()
    assert "http://" not in text
    assert "https://" not in text
    for name in ("swagger-ui.css", "swagger-ui-bundle.js", "start.js", "favicon-32x32.png", "openapi-3.0.json"):
        assert daemon.api.get(f"/api/docs/{name}").status == 200
    daemon.api.get("/api/docs/other.js").refused(404)
    assert b"Signet" in daemon.api.get("/").raw
    browser = daemon.api.request("GET", "/", headers={"Accept": "text/html"})
    assert browser.headers["content-type"].startswith("text/html")


# the emergency brake


def test_while_mutations_are_frozen_every_write_is_refused_and_reads_work() -> None:
    with live_daemon() as daemon:
        memory_id = daemon.api.remember("Written before the freeze")["id"]
        assert daemon.stop() == 0
        daemon.configure("memory:\n  pipelineV2:\n    mutationsFrozen: true\n")
        daemon.start()
        assert {method + path for method, path, _ in MUTATING if "?" not in path} <= {
            route.operation.method + route.path for route in ROUTES if route.operation.changes_memories
        }
        assert len(MUTATING) == sum(
            route.operation.changes_memories and not route.path.startswith(("/api/hooks/", "/mcp")) for route in ROUTES
        )
        for method, path, body in MUTATING:
            raw = None if body is None else json.dumps(body).replace("{id}", memory_id).encode()
            answer = daemon.api.request(method, path.replace("{id}", memory_id), raw)
            answer.refused(503, error="Mutations are frozen (kill switch active)", code="mutations_frozen")
            assert int(answer.headers["retry-after"]) >= 1
        for hook, body in (("remember", {"content": "x"}), ("compaction-complete", {"summary": "x"})):
            skipped = daemon.api.post(f"/api/hooks/{hook}", {"harness": "h", **body}).ok()
            assert (skipped["skipped"], skipped["reason"]) == (True, "mutations_frozen")
        preview = daemon.api.post("/api/memory/forget", {"mode": "preview", "ids": [memory_id]}).ok()
        assert [candidate["id"] for candidate in preview["candidates"]] == [memory_id]
        daemon.api.post("/api/memory/forget", {"mode": "execute", "reason": "r", "ids": [memory_id]}).refused(503)
        assert_reads_go_on(daemon.api, memory_id)
        assert daemon.api.get("/api/status").ok()["mutationsFrozen"] is True


def assert_reads_go_on(client: Client, memory_id: str) -> None:
    assert client.recalled("written before") == [memory_id]
    memory = client.memory(memory_id)
    assert (memory["version"], memory["is_deleted"], memory["access_count"]) == (1, 0, 0)
    assert client.get(f"/api/memory/{memory_id}/history").ok()["count"] == 1
    assert client.get("/api/memories").ok()["stats"]["total"] == 1
