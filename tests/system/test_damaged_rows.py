"""With damaged rows or metadata the daemon serves undamaged data, or refuses to start.

Source: docs/reliability.md R9, R18 and R22; docs/operations.md "Exit codes".
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon, run_signet

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def stored() -> Iterator[Path]:
    """The directory of a database with two memories, as a daemon leaves it that was stopped."""
    with live_daemon() as daemon:
        daemon.api.remember("The kettle is descaled in May", tags="kitchen")
        daemon.api.remember("Berlin lies on the Spree")
        assert daemon.stop() == 0
        yield daemon.database.parent


@pytest.fixture
def stopped(stored: Path) -> Iterator[LiveDaemon]:
    """A daemon of its own on a copy of that database, which is not started."""
    with live_daemon(started=False) as daemon:
        shutil.copytree(stored, daemon.database.parent)
        yield daemon


def test_an_unreadable_row_ends_no_searcher_and_hides_no_other_row(stopped: LiveDaemon) -> None:
    stopped.edit("UPDATE memories SET tags = '{\"a\":{\"b\":1}}' WHERE content LIKE 'The kettle%'")
    (sound,) = stopped.read("SELECT id FROM memories WHERE content LIKE 'Berlin%'")[0]
    stopped.launch()
    eventually(lambda: stopped.health().get("status") == "degraded", within_s=60, what="degraded")
    assert "signet doctor" in stopped.health()["detail"]
    assert stopped.api.memory(sound)["content"] == "Berlin lies on the Spree"
    assert "signet doctor" in stopped.api.post("/api/memory/recall", {"query": "kettle"}).refused(503)["error"]
    assert {child["restarts"] for child in stopped.api.get("/health").ok()["actors"]} == {0}
    assert stopped.stop() == 0
    done = run_signet(stopped, "doctor", "--deep")
    assert "a memory's tags are not a list of strings" in done.stdout


def test_a_text_that_is_not_utf8_ends_no_searcher_whether_stored_before_or_after_its_start(stopped: LiveDaemon) -> None:
    stopped.edit("UPDATE memories SET project = CAST(x'ff' AS TEXT) WHERE content LIKE 'The kettle%'")
    stopped.launch()
    eventually(lambda: stopped.health().get("status") == "degraded", within_s=60, what="degraded")
    assert "signet doctor" in stopped.api.post("/api/memory/recall", {"query": "kettle"}).refused(503)["error"]
    assert stopped.stop() == 0
    stopped.edit("UPDATE memories SET project = NULL WHERE content LIKE 'The kettle%'")
    stopped.launch()
    stopped.wait_ready()
    assert stopped.api.recalled("kettle")
    with closing(sqlite3.connect(stopped.database)) as other_program, other_program:
        other_program.execute("UPDATE memories SET project = CAST(x'ff' AS TEXT) WHERE content LIKE 'Berlin%'")
    searchers = {name: pid for name, pid in stopped.children().items() if name.startswith("searcher")}
    eventually(lambda: stopped.health().get("status") == "degraded", within_s=60, what="degraded again")
    assert {name: pid for name, pid in stopped.children().items() if name in searchers} == searchers
    assert {child["restarts"] for child in stopped.api.get("/health").ok()["actors"]} == {0}
    assert stopped.stop() == 0


@pytest.mark.parametrize("table", ["memories", "memory_history"])
def test_a_missing_row_number_sequence_is_reported_at_start_and_repaired(stopped: LiveDaemon, table: str) -> None:
    stopped.edit("UPDATE sqlite_sequence SET seq = 9223372036854775807 WHERE name = ?", table)
    stopped.launch()
    eventually(lambda: stopped.health().get("status") == "degraded", within_s=60, what="degraded")
    refusal = stopped.api.post("/api/memory/remember", {"content": "One more"}).refused(503)
    assert "doctor" in refusal["error"]
    assert len(stopped.api.listed()) == 2
    assert stopped.stop() == 0
    assert run_signet(stopped, "doctor").returncode == 1
    assert run_signet(stopped, "doctor", "--repair", "--yes").returncode == 0
    stopped.start()
    stopped.api.remember("One more")
    assert len(stopped.api.listed()) == 3


def test_a_database_of_other_migrations_ends_the_start_with_78_and_is_refused_as_a_backup(stopped: LiveDaemon) -> None:
    stopped.edit("UPDATE schema_migrations SET checksum = 'x' WHERE version = 2")
    code, said = stopped.refused_start()
    assert code == 78
    assert "`signet restore latest`" in said
    for path in stopped.database.parent.glob("memories.db*"):
        shutil.copy(path, stopped.root / path.name)
    done = run_signet(stopped, "restore", str(stopped.root / "memories.db"), "--yes")
    assert done.returncode == 74
    assert "migration 2" in done.stdout + done.stderr


def test_a_repair_keeps_every_vector(stopped: LiveDaemon) -> None:
    stopped.edit("DELETE FROM vec_embeddings_1 WHERE rowid = 1")
    done = run_signet(stopped, "doctor", "--deep", "--repair", "--yes")
    assert "intact" in done.stdout
    assert "dropped" not in done.stdout
    assert stopped.read("SELECT count(*) FROM memories WHERE embedding_seq IS NOT NULL") == [(2,)]
