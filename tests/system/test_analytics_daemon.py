"""What the daemon says about its use: requests, errors and durations, which survive a restart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon, run_signet
from tests.support.scripted_provider import Act, Asked, ScriptedProvider
from tests.system.test_pipeline import NOTE, config_for

pytestmark = pytest.mark.system


@pytest.fixture
def daemon() -> Iterator[LiveDaemon]:
    with live_daemon() as daemon:
        yield daemon


def usage(daemon: LiveDaemon) -> Any:
    return daemon.api.get("/api/analytics/usage").ok()


def test_requests_are_counted_by_route_and_actor_and_survive_a_restart(daemon: LiveDaemon) -> None:
    ada = daemon.api.acting(x_signet_actor="ada")
    ids = [ada.remember(f"the lynx number {number} hides")["id"] for number in range(3)]
    for memory_id in ids:
        ada.get(f"/api/memory/{memory_id}").ok()
    ada.recall("lynx")
    ada.request("PATCH", f"/api/memory/{ids[0]}", {"importance": 0.4, "reason": "r"}).ok()
    ada.request("PATCH", f"/api/memory/{ids[0]}", {"importance": 0.4, "reason": "r", "if_version": 7}).refused(409)
    before = usage(daemon)
    assert before["endpoints"]["GET /api/memory/{id}"]["count"] == 3
    remembered = before["endpoints"]["POST /api/memory/remember"]
    assert (remembered["count"], remembered["errors"]) == (3, 0)
    assert remembered["totalLatencyMs"] > 0
    assert before["endpoints"]["PATCH /api/memory/{id}"]["errors"] == 1
    assert before["actors"]["ada"] == {"remember": 3, "recall": 1, "mutate": 2, "other": 3}
    assert not [name for name in before["endpoints"] if ids[0] in name]
    latency = daemon.api.get("/api/analytics/latency").ok()
    assert latency["remember"]["count"] == 3
    assert daemon.api.get("/api/analytics/latency", minutes=1).ok()["minutes"][-1]["remember"]["count"] == 3
    assert 0 < latency["remember"]["p50"] <= latency["remember"]["p95"] <= latency["remember"]["p99"]

    assert daemon.stop() == 0
    daemon.start()
    after = usage(daemon)
    assert after["actors"]["ada"] == before["actors"]["ada"]
    assert after["endpoints"]["POST /api/memory/remember"] == remembered
    assert after["since"] == before["since"]
    restarted = daemon.api.get("/api/analytics/latency", minutes=5).ok()
    assert restarted["remember"] == latency["remember"]
    assert sum(row["requests"] for row in restarted["minutes"]) > 9
    assert sum(row["mutate"]["count"] for row in restarted["minutes"]) == 2

    ada.remember("the lynx is counted once more")
    assert usage(daemon)["actors"]["ada"]["remember"] == 4
    found = daemon.api.get("/api/analytics/errors").ok()
    assert [(error["code"], error["stage"], error["actor"]) for error in found["errors"]] == [
        ("MUTATION_CONFLICT", "mutation", "ada")
    ]
    assert found["summary"] == {"MUTATION_CONFLICT": 1}
    safety = daemon.api.get("/api/analytics/memory-safety").ok()
    assert safety["errorSummary"] == found["summary"]
    assert safety["mutation"]["status"] == "healthy"
    assert safety["recentErrors"] == found["errors"]

    tables = [run_signet(daemon, "analytics", what) for what in ("usage", "errors", "latency")]
    assert all(table.returncode == 0 for table in tables), tables
    assert "POST /api/memory/remember" in tables[0].stdout
    assert "MUTATION_CONFLICT" in tables[1].stdout
    assert "remember" in tables[2].stdout


def test_a_request_of_someone_who_only_looks_changes_no_figure(daemon: LiveDaemon) -> None:
    daemon.api.get("/api/memories").ok()
    before = usage(daemon)
    looking = daemon.api.acting(x_signet_observe="1")
    for path in ("/api/memories", "/api/status", "/api/analytics/usage", "/api/memory/nonesuch"):
        looking.get(path)
    after = looking.get("/api/analytics/usage").ok()
    assert after["endpoints"]["GET /api/memories"] == before["endpoints"]["GET /api/memories"]
    assert "GET /api/status" not in after["endpoints"]
    assert sum(counts["count"] for counts in after["endpoints"].values()) == 1 + sum(
        counts["count"] for counts in before["endpoints"].values()
    ), "only the request that read the figures before"


def test_names_of_actors_are_bounded_and_hold_no_secret(daemon: LiveDaemon) -> None:
    token = "ghp_" + "a1B2" * 9
    daemon.api.acting(x_signet_actor=token).get("/api/memories").ok()
    for number in range(80):
        daemon.api.acting(x_signet_actor=f"actor {number}").get("/api/memories").ok()
    actors = usage(daemon)["actors"]
    assert len(actors) <= 66
    assert actors["other"]["other"] >= 15
    assert token not in str(actors)
    eventually(lambda: daemon.stop() == 0, what="the end")
    assert token.encode() not in daemon.database.read_bytes()


TELEMETRY = (
    "memory:\n  pipelineV2:\n    telemetryEnabled: true\n    telemetry: {flushIntervalMs: 5000, flushBatchSize: 2}\n"
)


def test_telemetry_is_off_and_empty_unless_the_configuration_asks_for_it(daemon: LiveDaemon) -> None:
    daemon.api.remember("the ibis is not counted")
    assert daemon.api.get("/api/telemetry/events").ok() == {"events": [], "enabled": False}
    assert daemon.api.get("/api/telemetry/stats").ok() == {"enabled": False}
    daemon.api.get("/api/telemetry/export").refused(404)
    assert daemon.stop() == 0
    assert daemon.read("SELECT count(*) FROM telemetry_events") == [(0,)]


def test_telemetry_has_operations_and_no_words_and_is_written_by_itself() -> None:
    with live_daemon(config=TELEMETRY) as daemon:
        memory_id = daemon.api.acting(x_signet_actor="ada").remember("the ibis wades")["id"]
        daemon.api.recall("ibis")
        eventually(lambda: daemon.read("SELECT count(*) FROM telemetry_events") == [(2,)], within_s=60, what="two rows")
        daemon.api.request("PATCH", f"/api/memory/{memory_id}", {"importance": 0.1, "reason": "r", "if_version": 9})
        events = daemon.api.get("/api/telemetry/events").ok()
        assert events["enabled"]
        assert sorted(event["event"] for event in events["events"]) == [
            *("error", "memories.patch", "memories.recall", "memories.remember")
        ]
        assert not [word for word in ("ibis", memory_id, "ada") if word in str(events)]
        assert daemon.api.get("/api/telemetry/events", event="error").ok()["events"][0]["properties"] == {
            "stage": "mutation",
            "code": "MUTATION_CONFLICT",
        }
        stats = daemon.api.get("/api/telemetry/stats").ok()
        assert (stats["totalEvents"], stats["llm"]["calls"], stats["pipelineErrors"]) == (4, 0, 0)
        assert stats["events"]["memories.recall"]["count"] == 1
        exported = daemon.api.get("/api/telemetry/export")
        assert exported.headers["content-type"] == "application/x-ndjson"
        assert len(exported.raw.splitlines()) == 4


def test_answers_of_a_model_that_cannot_be_used_are_errors_and_its_calls_are_counted() -> None:
    def garbage(_: Asked) -> Act:
        return Act("ok", "There is nothing that I could say about this in JSON.")

    with ScriptedProvider(script=garbage) as provider, live_daemon(config=config_for(provider), patient=True) as daemon:
        memory_id = daemon.api.remember(NOTE)["id"]
        eventually(
            lambda: daemon.api.get("/api/analytics/errors", stage="extraction").ok()["errors"],
            within_s=60,
            what="an error of the extraction",
        )
        errors = daemon.api.get("/api/analytics/errors", code="EXTRACTION_PARSE_FAIL").ok()["errors"]
        assert errors[0]["memoryId"] == memory_id
        assert "JSON" not in errors[0]["message"]
        eventually(lambda: usage(daemon)["providers"], within_s=60, what="calls of the model")
        (calls,) = usage(daemon)["providers"].values()
        assert calls["calls"] >= 1
        assert calls["totalLatencyMs"] >= 0
        (day,) = {each["day"] for each in usage(daemon)["days"]}
        assert daemon.read("SELECT date('now', '-1 hour') <= ?1 AND ?1 <= date('now')", day) == [(1,)]


def test_calls_and_cost_of_models_are_listed_for_seven_days(daemon: LiveDaemon) -> None:
    used = "INSERT INTO provider_usage (day, provider, model, calls, tokens_in, cost_microusd) VALUES"
    assert daemon.stop() == 0
    for age, calls, cost in ((0, 3, 1500), (6, 4, 20_000), (7, 5, 0)):
        daemon.edit(f"{used} (date('now', ?), 'openai', 'small', ?, 10, ?)", f"-{age} days", calls, cost)
    daemon.start()
    assert [(day["calls"], day["costMicrousd"]) for day in usage(daemon)["days"]] == [(3, 1500), (4, 20_000)]
