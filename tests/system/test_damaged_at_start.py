"""A database damaged while the daemon was down is refused at once, or its undamaged data is served.

Source: docs/reliability.md R18 and R22.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from signet_actors.errors import ExitCode
from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon

pytestmark = pytest.mark.system

MEMORIES = 150
GARBAGE_BYTES = 40_000
PAGE = 4096


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, list[str]]:
    """The file of a daemon that was stopped in order, and the ids of its memories."""
    rng = random.Random(3)
    with live_daemon() as daemon:
        ids = []
        for number in range(MEMORIES):
            words = " ".join(f"word{rng.randrange(5000)}" for _ in range(60))
            ids.append(daemon.api.remember(f"note {number} about harbours {words}")["id"])
        assert daemon.stop() == 0
        return daemon.database.read_bytes(), ids


@pytest.fixture
def daemon() -> Iterator[LiveDaemon]:
    with live_daemon(started=False) as daemon:
        daemon.command = [sys.executable, "-P", "-m", "signet_actors.cli", "up"]
        yield daemon


def garbage_at(offset: int) -> Callable[[bytes], bytes]:
    def damaged(whole: bytes) -> bytes:
        begin = offset if offset >= 0 else len(whole) + offset
        noise = random.Random(offset).randbytes(GARBAGE_BYTES)
        return (whole[:begin] + noise + whole[begin + len(noise) :])[: len(whole)]

    return damaged


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "garbage behind the first page": garbage_at(PAGE),
    "garbage a little further": garbage_at(10 * PAGE),
    "garbage in the middle": garbage_at(100 * PAGE),
    "garbage at the end": garbage_at(-GARBAGE_BYTES),
    "garbage off the page borders": garbage_at(150 * PAGE + 777),
    "zeros behind the first page": lambda whole: whole[:PAGE] + bytes(GARBAGE_BYTES) + whole[PAGE + GARBAGE_BYTES :],
    "a first page of garbage behind its header": lambda whole: (
        whole[:100] + random.Random(1).randbytes(PAGE - 100) + whole[PAGE:]
    ),
    "a first page of zeros behind its header": lambda whole: whole[:100] + bytes(PAGE - 100) + whole[PAGE:],
    "garbage in the header": lambda whole: whole[:16] + random.Random(2).randbytes(52) + whole[68:],
    "half of the file": lambda whole: whole[: len(whole) // 2],
    "the first page alone": lambda whole: whole[:PAGE],
    "everything but the first page": lambda whole: whole[:PAGE] + random.Random(4).randbytes(len(whole) - PAGE),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_database_ends_the_start_or_is_served_as_degraded_with_the_remedy(
    daemon: LiveDaemon, sound: tuple[bytes, list[str]], damage: str
) -> None:
    whole, ids = sound
    daemon.database.parent.mkdir(mode=0o700)
    daemon.database.write_bytes(DAMAGE[damage](whole))
    daemon.database.chmod(0o600)
    process = daemon.launch()
    eventually(
        lambda: process.poll() is not None or status(daemon) == "degraded", within_s=60, what="an exit or health"
    )
    if process.poll() is not None:
        assert process.returncode == ExitCode.CONFIG
        assert "signet restore" in daemon.terminal()
        daemon.gone()
        return
    health = daemon.api.get("/health").ok()
    assert "signet restore" in health["detail"]
    for memory_id in ids[:20]:
        answer = daemon.api.request("GET", f"/api/memory/{memory_id}", timeout=10)
        assert answer.status in {200, 503}
    for target, body in (
        ("/api/memory/recall", {"query": "harbours"}),
        ("/api/memory/remember", {"content": "not now"}),
    ):
        answer = daemon.api.request("POST", target, body, timeout=10)
        if answer.status != 200:
            assert "signet restore" in answer.refused(503)["error"]
    assert daemon.api.get("/health/ready").status == 503
    started = subprocess.run(
        [sys.executable, "-m", "signet_actors.cli", "start"],
        env=daemon.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,  # it waits for two minutes for a daemon that is still starting
    )
    assert started.returncode != 0
    assert "the database is damaged" in started.stderr
    assert "signet restore latest" in started.stderr
    assert {child["restarts"] for child in daemon.api.get("/health").ok()["actors"]} == {0}
    assert daemon.stop() == 0
    assert "child_exited" not in daemon.terminal()


@pytest.mark.parametrize("known", [True, False], ids=["known workspace", "workspace without notes"])
def test_a_database_of_zero_bytes_is_refused_with_the_remedy(daemon: LiveDaemon, known: bool) -> None:
    daemon.database.parent.mkdir(mode=0o700)
    daemon.database.touch(0o600)
    log = daemon.database.with_name("memories.db-wal")
    log.write_bytes(b"what the log held")
    note = daemon.workspace / ".daemon" / "database"
    if known:
        note.parent.mkdir(mode=0o700)
        note.touch(0o600)
    code, said = daemon.refused_start()
    assert code == ExitCode.CONFIG
    assert f"{daemon.database} is empty" in said
    assert "`signet restore latest`" in said
    assert f"remove {daemon.database}" in said
    assert (str(note) in said) is known
    assert (daemon.database.read_bytes(), log.read_bytes()) == (b"", b"what the log held")

    checked = subprocess.run(
        [*daemon.command[:-1], "doctor"], env=daemon.environment(), capture_output=True, text=True, check=False
    )
    assert checked.returncode == 1, checked
    assert f"{daemon.database} is empty" in checked.stdout
    assert daemon.database.read_bytes() == b"", "a check made a database"

    daemon.database.unlink()
    note.unlink(missing_ok=True)
    code, said = daemon.refused_start()
    assert (code, str(log) in said) == (ExitCode.CONFIG, True)
    assert log.read_bytes() == b"what the log held"
    log.unlink()
    daemon.start()
    assert daemon.api.listed() == []


def status(daemon: LiveDaemon) -> str:
    return str(daemon.health().get("status"))


def test_undamaged_rows_of_a_damaged_database_are_read(daemon: LiveDaemon, sound: tuple[bytes, list[str]]) -> None:
    whole, ids = sound
    daemon.database.parent.mkdir(mode=0o700)
    rotten = whole.index(f"note {MEMORIES // 2} about".encode()) // PAGE * PAGE
    daemon.database.write_bytes(whole[:rotten] + random.Random(5).randbytes(PAGE) + whole[rotten + PAGE :])
    daemon.database.chmod(0o600)
    shutil.rmtree(daemon.workspace / ".daemon", ignore_errors=True)
    daemon.launch()
    eventually(lambda: status(daemon) == "degraded", within_s=60, what="degraded")
    answers = [daemon.api.get(f"/api/memory/{memory_id}").status for memory_id in ids]
    assert set(answers) == {200, 503}
    assert answers.count(503) <= 20, "one page holds fewer memories than that"
    assert daemon.stop() == 0
