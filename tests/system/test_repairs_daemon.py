"""The health of a daemon whose store was broken on purpose, and its repairs over HTTP and on the command line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from signet_actors.store.sqlite.connect import open_writer
from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon, run_signet

pytestmark = pytest.mark.system

BREAK = """
    INSERT INTO memories_fts (memories_fts, rowid, content, cjk)
        SELECT 'delete', seq, content, cjk FROM memories ORDER BY seq LIMIT 3;
    UPDATE memories SET is_deleted = 1, deleted_at = strftime('%Y-%m-%dT%H:%M:%fZ') WHERE seq > 5;
    UPDATE embeddings SET source_id = 'gone' WHERE seq = (SELECT max(seq) FROM embeddings);
    INSERT INTO memory_jobs (id, job_type, status, memory_id, attempts, failed_at, created_at, updated_at)
        SELECT 'dead-' || seq, 'extract', 'dead', id, 3, '2026-01-01T00:00:00.000Z', created_at, created_at
        FROM memories WHERE seq <= 2;
"""


@pytest.fixture
def daemon() -> Iterator[LiveDaemon]:
    """A daemon whose text index lacks rows, with too many deleted memories, dead jobs, and a vector of no memory."""
    with live_daemon() as daemon:
        for number in range(10):
            daemon.api.remember(f"the walrus number {number} sleeps")
        eventually(
            lambda: daemon.api.get("/api/repair/embedding-gaps").ok()["unembedded"] == 0, within_s=60, what="vectors"
        )
        assert daemon.stop() == 0
        connection = open_writer(daemon.database, busy=lambda calls: False)
        try:
            connection.execute(BREAK)
        finally:
            connection.close()
        daemon.start()
        yield daemon


def test_what_is_broken_is_reported_listed_and_repaired(daemon: LiveDaemon) -> None:
    report = daemon.api.get("/api/diagnostics").ok()
    assert (report["index"]["ftsMismatch"], report["index"]["ftsRowCount"]) == (True, 2)
    assert (report["storage"]["deletedTombstones"], report["storage"]["score"]) == (5, 0.7)
    assert report["queue"]["deadRate"] > 0.01
    assert report["composite"]["score"] < 0.8
    for domain in ("queue", "storage", "index", "mutation", "connector", "duplicate", "update"):
        assert daemon.api.get(f"/api/diagnostics/{domain}").ok() == report[domain]
    assert daemon.api.get("/api/diagnostics/weather").refused(400)["error"] == "Unknown domain: weather"
    assert daemon.api.get("/api/pipeline/status").ok()["diagnostics"]["index"] == report["index"]

    planned = {one["name"]: one["recommended"] for one in daemon.api.get("/api/repair").ok()["repairs"]}
    assert planned == {"requeue-dead": True, "check-fts": True, "retention-sweep": True, "clean-orphans": False} | (
        {"re-embed": False} if "re-embed" in planned else {}
    )
    listed = run_signet(daemon, "repair")
    assert (listed.returncode, {line.split("\t")[0] for line in listed.stdout.splitlines()}) == (0, set(planned))
    assert daemon.api.get("/api/diagnostics/index").ok()["ftsMismatch"], "listing repairs nothing"

    compared = daemon.api.post("/api/repair/check-fts").ok()
    assert (compared["action"], compared["success"], compared["affected"]) == ("checkFtsConsistency", False, 0)
    ran = run_signet(daemon, "repair", "check-fts")
    assert (ran.returncode, "rebuilt" in ran.stderr) == (0, True), ran.stderr
    assert daemon.api.get("/api/diagnostics/index").ok()["ftsMismatch"] is False
    assert len(daemon.api.recalled("walrus", limit=20, minScore=0)) == 5

    assert daemon.api.post("/api/repair/clean-orphans").ok()["affected"] == 1
    refused = daemon.api.post("/api/repair/clean-orphans").refused(429, action="cleanOrphanedEmbeddings", success=False)
    assert refused["message"] == refused["error"]
    assert refused["retryAfter"] > 0
    assert daemon.api.post("/api/repair/release-leases").ok()["affected"] == 0
    assert daemon.api.post("/api/repair/requeue-dead").ok()["affected"] == 2


def test_no_repair_runs_while_repairs_are_frozen() -> None:
    with live_daemon() as daemon:
        daemon.configure("memory:\n  pipelineV2:\n    autonomous:\n      frozen: true\n")
        daemon.stop()
        daemon.start()
        for name in ("release-leases", "check-fts", "clean-orphans", "re-embed", "requeue-dead", "retention-sweep"):
            daemon.api.post(f"/api/repair/{name}", {}).refused(403, success=False, affected=0)
        ran = run_signet(daemon, "repair", "check-fts")
        assert (ran.returncode != 0, "autonomous.frozen" in ran.stderr) == (True, True), ran.stderr
