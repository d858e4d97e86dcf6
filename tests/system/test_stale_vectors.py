"""A vector file that is ahead of the database, or differs from it, is never used.

Source: docs/reliability.md R18; docs/operations.md "When a database file is missing".
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import threading
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from signet_actors.store.vector_file import HEADER_BYTES, read_header, record_bytes
from tests.support.live_daemon import LiveDaemon, live_daemon, run_signet

pytestmark = pytest.mark.system

QUERIES = ("classical music orchestra", "marine animals anatomy", "repairing a bike", "office equipment problem")


def doctor(daemon: LiveDaemon, *options: str) -> subprocess.CompletedProcess[str]:
    return run_signet(daemon, "doctor", *options)


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


def test_recall_is_correct_after_a_database_was_copied_back(parted: LiveDaemon) -> None:
    parted.start()
    parted.api.remember("My bicycle has a flat tyre")
    parted.api.remember("The printer on the second floor is out of toner")
    given = answers(parted)
    assert parted.stop() == 0
    shutil.rmtree(parted.workspace / ".daemon" / "index")
    parted.start()
    assert given == answers(parted)
    assert given["repairing a bike"][:1] == ["My bicycle has a flat tyre"]


def test_recall_is_correct_after_a_copied_back_database_was_changed(parted: LiveDaemon) -> None:
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


def overwrite(path: Path, content: bytes) -> None:
    """Write into the file that the searchers have open."""
    with path.open("r+b") as file:
        file.write(content)


def doctored(daemon: LiveDaemon, path: Path, content: bytes) -> subprocess.CompletedProcess[str]:
    """Return what the doctor says of the file with this content; again if a searcher wrote the file meanwhile."""
    for _ in range(20):
        overwrite(path, content)
        done = doctor(daemon, "--deep")
        if path.read_bytes().startswith(content):
            return done
    raise AssertionError("a searcher writes the file all the time")


def test_doctor_compares_the_file_of_vectors_beside_a_running_daemon() -> None:
    with live_daemon() as daemon:
        for text in ("My bicycle has a flat tyre", "Berlin lies on the Spree"):
            daemon.api.remember(text)
        assert daemon.api.recall("repairing a bike")["results"]
        (path,) = (daemon.workspace / ".daemon" / "index").glob("*.vectors")
        assert "intact; 2 memories" in doctor(daemon, "--deep").stdout
        whole = path.read_bytes()

        dimensions = daemon.read("SELECT dimensions FROM embedding_models")[0][0]
        database_id = daemon.read("SELECT value FROM store_meta WHERE key = 'database_id'")[0][0]
        size = record_bytes(dimensions)
        with path.open("rb") as file:
            header = read_header(file.fileno(), database_id, dimensions)
        assert header is not None
        first, second = (bytearray(whole[HEADER_BYTES + at * size :][:size]) for at in (0, 1))
        first[16:], second[16:] = second[16:], first[16:]
        swapped = bytes(first + second)
        as_if_valid = header._replace(checksum=zlib.crc32(swapped)).encode()
        done = doctored(daemon, path, as_if_valid.ljust(HEADER_BYTES, b"\0") + swapped)
        assert (done.returncode, "vector 1 differs from the stored one" in done.stdout) == (1, True), done.stdout
        assert "intact" not in done.stdout

        done = doctored(daemon, path, whole[:HEADER_BYTES] + swapped)
        assert (done.returncode, "its checksum is wrong" in done.stdout) == (1, True), done.stdout

        done = doctored(daemon, path, header._replace(database_id="of another database").encode())
        assert (done.returncode, "belongs to another database" in done.stdout) == (1, True), done.stdout

        done = doctored(daemon, path, header._replace(epoch="of another run").encode())
        assert (done.returncode, "belongs to another state" in done.stdout) == (1, True), done.stdout

        overwrite(path, whole)
        assert "intact; 2 memories" in doctor(daemon, "--deep").stdout
        assert daemon.api.recall("repairing a bike")["results"][0]["content"] == "My bicycle has a flat tyre"
        assert daemon.stop() == 0


def test_vectors_changed_during_the_comparison_of_doctor_are_not_findings() -> None:
    with live_daemon() as daemon:
        over = threading.Event()

        def write() -> None:
            while not over.is_set():
                kept = daemon.api.remember(f"Note {secrets.token_hex(8)} about the harbour")["id"]
                daemon.api.request("DELETE", f"/api/memory/{kept}?reason=r").ok()
                daemon.api.remember(f"Note {secrets.token_hex(8)} about the station")
                daemon.api.recall("harbour station")

        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(write)
            try:
                for _ in range(3):
                    done = doctor(daemon, "--deep")
                    assert "intact" in done.stdout, done.stdout
            finally:
                over.set()
            writing.result()
        assert daemon.stop() == 0
