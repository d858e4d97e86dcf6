"""The health of a daemon whose store was broken on purpose, and its repairs over HTTP and on the command line."""

from __future__ import annotations

import contextlib
import http.client
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
        names = ("release-leases", "check-fts", "clean-orphans", "re-embed", "requeue-dead", "retention-sweep")
        for name in (*names, "deduplicate"):
            daemon.api.post(f"/api/repair/{name}", {}).refused(403, success=False, affected=0)
        ran = run_signet(daemon, "repair", "check-fts")
        assert (ran.returncode != 0, "autonomous.frozen" in ran.stderr) == (True, True), ran.stderr


PAIRS = 8
LONG = "gateway: {requestTimeoutMs: 120000}\n"
"""A request compares memories for a part of this time only, in which a busy machine must compare all of them."""


def say_twice(daemon: LiveDaemon) -> list[tuple[str, str]]:
    """Store some facts twice, in nearly the same words, with their vectors."""
    told = [
        (
            daemon.api.remember(f"The staging database of the shop number {at} listens on port {5400 + at}")["id"],
            daemon.api.remember(f"The staging database of shop number {at} listens on port {5400 + at}", tags="twice")[
                "id"
            ],
        )
        for at in range(PAIRS)
    ]
    eventually(
        lambda: daemon.api.get("/api/repair/embedding-gaps").ok()["unembedded"] == 0, within_s=60, what="vectors"
    )
    return told


def test_duplicates_are_listed_first_and_then_merged() -> None:
    with live_daemon(config=LONG) as daemon:
        told = say_twice(daemon)
        assert daemon.api.get("/api/repair/dedup-stats").ok() == {
            "exactClusters": 0, "exactExcess": 0, "totalActive": 2 * PAIRS, "uncompared": 2 * PAIRS
        }  # fmt: skip
        planned = daemon.api.post("/api/repair/deduplicate", {"dryRun": True}).ok()
        assert (planned["affected"], planned["clusters"]) == (0, PAIRS)
        assert sorted((pair["kept"], pair["merged"]) for pair in planned["pairs"]) == sorted(told)
        asked = run_signet(daemon, "repair", "deduplicate")
        assert (asked.returncode != 0, asked.stdout.count("listens on port")) == (True, 2 * PAIRS), asked.stderr
        assert len(daemon.api.listed()) == 2 * PAIRS, "nothing is merged without a yes"

        ran = run_signet(daemon, "repair", "deduplicate", "--yes")
        assert (ran.returncode, f"{PAIRS} memories were merged" in ran.stderr) == (0, True), ran.stderr
        assert {memory["id"]: memory["tags"] for memory in daemon.api.listed()} == {kept: "twice" for kept, _ in told}
        assert daemon.api.post("/api/repair/deduplicate").refused(429)["retryAfter"] > 500_000
        assert daemon.api.get("/api/repair/dedup-stats").ok()["uncompared"] == 0
        kept, merged = told[0]
        assert daemon.api.get(f"/api/memory/{kept}/history").ok()["history"][-1]["event"] == "merged"
        daemon.api.post(f"/api/memory/{merged}/recover", {"reason": "both are needed"}).ok()
        assert daemon.api.post("/api/repair/deduplicate", {"dryRun": True}).ok()["pairs"] == []


@pytest.mark.parametrize("point", ["writer.before_commit=kill@4/1", "gateway.sent_to_writer=kill@5/1"])
def test_a_crash_between_two_merges_leaves_each_pair_whole(point: str) -> None:
    with live_daemon(config=LONG) as daemon:
        told = say_twice(daemon)
        assert daemon.stop() == 0
        fired = daemon.root / "fired"
        daemon.start(SIGNET_SYNC_POINTS=point, SIGNET_SYNC_POINTS_FIRED=str(fired))
        with contextlib.suppress(OSError, http.client.HTTPException):
            daemon.api.post("/api/repair/deduplicate", {})
        eventually(fired.exists, what="the process is killed")
        eventually(lambda: daemon.api.get("/health").status == 200, within_s=60, what="the daemon serves")
        tags = {memory["id"]: memory["tags"] for memory in daemon.api.listed()}
        done = {kept: merged for kept, merged in told if tags.get(kept)}
        assert 0 < len(done) <= PAIRS
        for kept, merged in told:
            events = [event["event"] for event in daemon.api.get(f"/api/memory/{kept}/history").ok()["history"]]
            assert (merged in tags, tags[kept], events) == (
                (False, "twice", ["created", "merged"]) if kept in done else (True, None, ["created"])
            )
        left = daemon.api.post("/api/repair/deduplicate", {"dryRun": True, "again": True}).ok()["pairs"]
        assert len(left) == PAIRS - len(done)
        daemon.api.post("/api/repair/deduplicate").refused(429)
