"""On a full disk writes are refused at once, reads and deletions work, and writes resume when there is space.

Source: docs/reliability.md R4; docs/decisions.md 44.
"""

from __future__ import annotations

import itertools
import json
import resource
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon
from tests.support.small_disk import fill, small_disk
from tests.system.test_maintenance import signet

pytestmark = pytest.mark.system

DISK_BYTES = 48 << 20
CONFIG = "searcher:\n  processes: 2\nwriter:\n  ballastBytes: 1048576\n"
TEXT = "words that need room on the disk " * 12


@pytest.fixture
def daemon() -> Iterator[LiveDaemon]:
    """A daemon whose workspace is a small disk."""
    with live_daemon(started=False) as daemon, small_disk(daemon.workspace, DISK_BYTES):
        daemon.configure(CONFIG)
        daemon.start()
        try:
            yield daemon
        finally:
            daemon.close()


class Writes:
    """Memories that one client asks to be remembered, and what it was answered."""

    def __init__(self, daemon: LiveDaemon) -> None:
        self.daemon = daemon
        self.kept: dict[str, str] = {}
        self.refused: set[str] = set()
        self.statuses: Counter[int] = Counter()
        self.slowest_refusal_s = 0.0
        self._numbers = itertools.count()

    def one(self) -> int:
        content = f"note {next(self._numbers)} {TEXT}"
        begun = time.monotonic()
        answer = self.daemon.api.post("/api/memory/remember", {"content": content})
        took = time.monotonic() - begun
        self.statuses[answer.status] += 1
        if answer.status == 200:
            self.kept[answer.json["id"]] = content.strip()
        else:
            answer.refused(507, code="storage_full")
            self.refused.add(content.strip())
            self.slowest_refusal_s = max(self.slowest_refusal_s, took)
        return answer.status

    def until(self, status: int) -> None:
        for _ in range(2000):
            if self.one() == status:
                return
        raise AssertionError(f"never answered {status}: {self.statuses}")

    def check(self) -> None:
        stored = {row["id"]: row["content"] for row in self.daemon.api.listed()}
        assert {memory_id: stored.get(memory_id) for memory_id in self.kept} == self.kept, "answered, and not there"
        assert not self.refused & set(stored.values()), "refused, and there"


def test_a_full_disk_refuses_writes_serves_reads_and_recovers_without_a_restart(daemon: LiveDaemon) -> None:
    filler = daemon.workspace / "filler"
    writes = Writes(daemon)
    for _ in range(10):
        assert writes.one() == 200
    lives = daemon.children()
    reserve = next(daemon.workspace.glob("**/*ballast*"))
    assert reserve.stat().st_size == 1 << 20

    fill(filler)
    writes.until(507)
    assert not reserve.exists(), "the reserve was not given up"

    # The reserve is for what frees space: a memory can be forgotten, softly and for good.
    first, second, *_ = writes.kept
    daemon.api.request("DELETE", f"/api/memory/{first}?reason=room").ok()
    del writes.kept[first]

    for _ in range(3):
        fill(filler)  # and now without a reserve
        writes.until(507)
        assert daemon.api.recalled("words room disk"), "recall goes on"
        assert daemon.api.get("/health/live").status == 200
        health = daemon.api.get("/health").ok()
        assert (health["status"], "disk is full" in health["detail"]) == ("degraded", True)
        daemon.api.get("/health/ready").refused(503, code="storage_full", ready=False)
        told = daemon.api.get("/api/diagnostics/findings").ok()
        assert (told["verdict"]["level"], "disk is full" in told["verdict"]["sentence"]) == ("bad", True)
        assert told["findings"][0]["text"] == "The disk is full: nothing is stored until there is room."
    assert set(writes.statuses) == {200, 507}

    filler.unlink()
    begun = time.monotonic()
    eventually(lambda: writes.one() == 200, within_s=30, what="writes again")
    healed_s = time.monotonic() - begun
    daemon.wait_ready()
    daemon.api.request("DELETE", f"/api/memory/{second}?reason=room").ok()
    del writes.kept[second]
    eventually(reserve.exists, what="the reserve is taken in again")
    assert daemon.children() == lives, "a process was restarted"
    writes.check()
    print(f"slowest refusal {writes.slowest_refusal_s * 1000:.0f} ms, writes again after {healed_s:.1f} s")
    assert daemon.stop() == 0
    assert daemon.broken_invariants() == []
    assert daemon.faults() == []


def test_a_session_that_is_switched_off_on_a_full_disk_is_off_after_the_next_start(daemon: LiveDaemon) -> None:
    filler = daemon.workspace / "filler"
    api, writes = daemon.api, Writes(daemon)
    for key in ("by-prompt", "by-request", "on"):
        api.post("/api/hooks/session-start", {"harness": "x", "sessionKey": key, "project": "/p"}).ok()
    daemon.api.remember("the first one")
    fill(filler)
    off = {"harness": "x", "sessionKey": "by-prompt", "userPrompt": "[signet off] kinkajou"}
    assert api.post("/api/hooks/user-prompt-submit", off).ok()["inject"].startswith("[signet: memory")
    api.post("/api/sessions/by-request/bypass", {"enabled": True}).ok()
    writes.until(507)
    assert daemon.stop() == 0
    filler.unlink()
    daemon.start()
    for key, is_stored in (("by-prompt", False), ("by-request", False), ("on", True)):
        body = {"harness": "x", "sessionKey": key, "content": f"kinkajou of {key}"}
        answer = api.post("/api/hooks/remember", body).ok()
        assert answer.get("saved", False) is is_stored, answer
    assert [row["content"] for row in daemon.api.listed() if "kinkajou" in row["content"]] == ["kinkajou of on"]


def test_the_end_of_a_session_refused_on_a_full_disk_is_told_until_it_is_stored(daemon: LiveDaemon) -> None:
    filler = daemon.workspace / "filler"
    api, writes = daemon.api, Writes(daemon)
    ends = [
        {"harness": "x", "sessionKey": key, "transcript": f"User: Where is {key}?\nAssistant: {TEXT * 4000}"}
        for key in ("ferry", "barge")
    ]
    fill(filler)
    writes.until(507)
    for body in ends:
        answer = api.post("/api/hooks/session-end", body)
        assert (answer.status, "the disk is full" in answer.json["error"]) in {(507, True), (504, True)}, answer
    filler.unlink()
    eventually(lambda: writes.one() == 200, within_s=60, what="writes again")
    assert "the ends of 2 sessions could not be stored" in daemon.health()["detail"]
    code, shown = signet(daemon, "doctor")[:2]
    assert "`signet backfill`" in json.dumps(shown), code
    for told, body in zip(("the end of a session could not", None), ends, strict=True):
        api.post("/api/hooks/session-end", body).ok()
        eventually(lambda told=told: (told or "") in daemon.health()["detail"], within_s=60, what="told")  # type: ignore[misc]
    assert "backfill" not in daemon.health()["detail"]


def test_writes_of_other_files_on_a_full_disk_are_refused_too(daemon: LiveDaemon) -> None:
    filler = daemon.workspace / "filler"
    former = (daemon.workspace / "agent.yaml").read_text()
    fill(filler)
    api = daemon.api
    for name, content in (("USER.md", "words " * 50_000), ("agent.yaml", f"{CONFIG}# {'words ' * 10_000}\n")):
        api.post("/api/config", {"file": name, "content": content}).refused(507, code="storage_full")
    api.post("/api/repair/backup").refused(507, code="storage_full")
    assert (daemon.workspace / "agent.yaml").read_text() == former
    assert not (daemon.workspace / "USER.md").exists()
    assert not list(daemon.workspace.glob(".*.new")), "a half-written file is left"
    filler.unlink()
    api.post("/api/config", {"file": "USER.md", "content": "words"}).ok()
    assert daemon.faults() == []


def test_a_daemon_started_on_a_full_disk_serves_reads_and_accepts_writes_when_there_is_space(
    daemon: LiveDaemon,
) -> None:
    filler = daemon.workspace / "filler"
    writes = Writes(daemon)
    for _ in range(5):
        assert writes.one() == 200
    fill(filler)
    writes.until(507)
    fill(filler)
    daemon.kill("writer")

    def up() -> bool:
        return daemon.actors()["writer"]["incarnation"] == 2 and daemon.actors()["writer"]["state"] == "up"

    eventually(up, within_s=60, what="a new writer")
    assert daemon.api.recalled("words room disk")
    fill(filler)
    writes.until(507)
    filler.unlink()
    eventually(lambda: writes.one() == 200, within_s=30, what="writes again")
    writes.check()
    assert daemon.stop() == 0
    assert daemon.broken_invariants() == []


def test_a_daemon_starts_on_a_full_disk_because_of_its_reserve(daemon: LiveDaemon) -> None:
    daemon.api.remember("stored while there was room")
    reserve = next(daemon.workspace.glob("**/*ballast*"))
    assert daemon.stop() == 0
    filler = daemon.workspace / "filler"
    fill(filler)
    with pytest.raises(OSError, match="No space left"):
        (daemon.workspace / ".daemon" / "probe").write_bytes(bytes(5000))
    (daemon.workspace / ".daemon" / "probe").unlink()
    fill(filler)
    assert reserve.stat().st_size == 1 << 20
    daemon.launch()
    eventually(lambda: daemon.health().get("status") in {"healthy", "degraded"}, within_s=60, what="served")
    assert daemon.api.recalled("stored room")
    assert not [path for path in (daemon.workspace / ".daemon").iterdir() if path.name.startswith(".")]
    filler.unlink()
    daemon.wait_ready()
    daemon.api.remember("stored again")
    assert daemon.stop() == 0
    assert daemon.broken_invariants() == []


def test_a_start_without_any_disk_space_leaves_no_partial_files(daemon: LiveDaemon) -> None:
    assert daemon.stop() == 0
    next(daemon.workspace.glob("**/*ballast*")).unlink()
    fill(daemon.workspace / "filler")
    code, said = daemon.refused_start()
    assert (code, "No space left" in said) == (74, True)
    assert not [path for path in (daemon.workspace / ".daemon").iterdir() if path.name.startswith(".")]


def test_an_exhausted_quota_is_a_full_disk_and_writes_resume_when_it_is_raised() -> None:
    with live_daemon(config="writer:\n  ballastBytes: 0\n") as daemon:
        writes = Writes(daemon)
        for _ in range(5):
            assert writes.one() == 200
        lives = daemon.children()
        # The kernel refuses to make a file longer, as it does for a user whose quota is used up.
        resource.prlimit(lives["writer"], resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
        writes.until(507)
        health = daemon.api.get("/health").ok()
        assert (health["status"], "disk is full" in health["detail"]) == ("degraded", True)
        daemon.api.get("/health/ready").refused(503, code="storage_full", ready=False)
        assert daemon.api.recalled("words room disk"), "recall goes on"
        resource.prlimit(lives["writer"], resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        eventually(lambda: writes.one() == 200, within_s=30, what="writes again")
        daemon.wait_ready()
        assert daemon.children() == lives, "a process was restarted"
        assert set(writes.statuses) == {200, 507}
        writes.check()
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []
        assert daemon.faults() == []


def test_a_full_disk_leaves_memory_md_and_it_is_made_when_there_is_space(daemon: LiveDaemon) -> None:
    target, file = "/api/hooks/synthesis/complete", daemon.workspace / "MEMORY.md"
    daemon.api.post(target, {"content": "- the first text"}).ok()
    before = file.read_text()
    fill(daemon.workspace / "filler")
    daemon.api.post(target, {"content": f"- {TEXT * 100}"}).refused(507, code="storage_full")
    assert file.read_text() == before
    assert [path.name for path in daemon.workspace.iterdir() if path.name.endswith(".new")] == []
    (daemon.workspace / "filler").unlink()
    daemon.api.post(target, {"content": "- the second text"}).ok()
    assert "- the second text" in file.read_text()
