"""A file of vectors that is ahead of the database, or has parted from it, is never answered from.

Source: docs/reliability.md R18; docs/operations.md "When a database file is missing".
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.live_daemon import LiveDaemon, live_daemon

pytestmark = pytest.mark.system

QUERIES = ("classical music orchestra", "marine animals anatomy", "repairing a bike", "office equipment problem")


def doctor(daemon: LiveDaemon, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "signet_actors.cli", "doctor", *options],
        env=daemon.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def put_back(daemon: LiveDaemon, copy: Path) -> None:
    for path in daemon.database.parent.glob("memories.db*"):
        path.unlink()
    shutil.copy(copy, daemon.database)


def answers(daemon: LiveDaemon) -> dict[str, list[str]]:
    return {query: [row["content"] for row in daemon.api.recall(query)["results"]] for query in QUERIES}


@pytest.fixture
def parted() -> Iterator[LiveDaemon]:
    """A stopped daemon with an earlier copy of its database; the vectors of what came after the copy are on disk."""
    with live_daemon() as daemon:
        for text in ("The kettle is descaled in May", "Berlin lies on the Spree", "The spare key hangs in the shed"):
            daemon.api.remember(text)
        assert daemon.stop() == 0
        copy = daemon.root / "copy.db"
        shutil.copy(daemon.database, copy)
        daemon.start()
        daemon.api.remember("My sister plays the violin concerto by Brahms")
        daemon.api.remember("Sharks have no bones, only cartilage")
        assert daemon.api.recall(QUERIES[0])["results"]
        assert daemon.stop() == 0
        put_back(daemon, copy)
        yield daemon


def test_recall_follows_a_database_that_was_put_back_by_hand(parted: LiveDaemon) -> None:
    parted.start()
    parted.api.remember("My bicycle has a flat tyre")
    parted.api.remember("The printer on the second floor is out of toner")
    given = answers(parted)
    assert parted.stop() == 0
    shutil.rmtree(parted.workspace / ".daemon" / "index")
    parted.start()
    assert given == answers(parted)
    assert given["repairing a bike"][:1] == ["My bicycle has a flat tyre"]


def test_a_database_that_was_put_back_and_changed_before_any_search_is_followed(parted: LiveDaemon) -> None:
    held = parted.workspace / ".daemon" / "index"
    aside = parted.root / "index"
    held.rename(aside)
    parted.start()
    for text in ("My bicycle has a flat tyre", "Sharks have no bones, only cartilage"):  # the last number: same text
        parted.api.remember(text)
    assert parted.stop() == 0
    shutil.rmtree(held, ignore_errors=True)
    aside.rename(held)
    parted.start()
    assert answers(parted)["repairing a bike"][:1] == ["My bicycle has a flat tyre"]


def test_an_ordinary_restart_keeps_the_file_of_vectors() -> None:
    with live_daemon() as daemon:
        daemon.api.remember("My bicycle has a flat tyre")
        assert daemon.api.recall("repairing a bike")["results"]
        assert daemon.stop() == 0
        (path,) = (daemon.workspace / ".daemon" / "index").glob("*.vectors")
        inode = path.stat().st_ino
        for _ in range(2):  # the first writes nothing, the second finds the epoch of the one before the last
            daemon.start()
            assert daemon.api.recall("repairing a bike")["results"]
            assert daemon.stop() == 0
        assert path.stat().st_ino == inode
        assert not list(path.parent.glob("*.damaged"))


def test_doctor_compares_the_file_of_vectors_and_repairs_it() -> None:
    with live_daemon() as daemon:
        daemon.api.remember("My bicycle has a flat tyre")
        assert daemon.api.recall("repairing a bike")["results"]
        assert daemon.stop() == 0
        assert "intact" in doctor(daemon, "--deep").stdout
        seq = daemon.read("SELECT seq, vector FROM embeddings")[0]
        daemon.edit("UPDATE embeddings SET vector = ? WHERE seq = ?", bytes(seq[1][4:] + seq[1][:4]), seq[0])
        daemon.edit("UPDATE vec_embeddings_1 SET embedding = ? WHERE rowid = ?", bytes(seq[1][4:] + seq[1][:4]), seq[0])
        done = doctor(daemon, "--deep")
        assert done.returncode == 1
        assert f"vector {seq[0]} differs from the stored one" in done.stdout
        assert "intact" in doctor(daemon, "--deep", "--repair", "--yes").stdout
        assert not os.listdir(daemon.workspace / ".daemon" / "index")
