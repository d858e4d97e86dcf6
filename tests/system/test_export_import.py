"""Export from one live daemon and import into another, with every kind of interruption."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from signet_actors.cli.main import cli
from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon

pytestmark = pytest.mark.system

AWS_KEY = "AK" + "IA" + "QYLPMN5HFIQR7B2X"  # built here, so that no complete one is in the repository


@pytest.fixture(scope="module")
def origin() -> Iterator[LiveDaemon]:
    with live_daemon() as daemon:
        yield daemon


@pytest.fixture
def target() -> Iterator[LiveDaemon]:
    """An empty daemon, sound when the test is over."""
    with live_daemon() as daemon:
        yield daemon
        assert daemon.faults() == []
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []


def signet(daemon: LiveDaemon, *arguments: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(cli, ["--url", f"http://127.0.0.1:{daemon.port}", *arguments], input=stdin)


def lines(count: int, word: str = "memory") -> bytes:
    return b"".join(json.dumps({"content": f"{word} number {number}"}).encode() + b"\n" for number in range(count))


def counts(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, (result.stdout, result.stderr)
    told: dict[str, Any] = json.loads(result.stdout)
    return told


def test_an_imported_export_is_exported_equally(origin: LiveDaemon, target: LiveDaemon, tmp_path: Path) -> None:
    alice = origin.agent("alice")
    alice.remember("critical: [Ops,Ünïcode]: the pager is on line two 🚒", project="p", who="alice")
    alice.remember("私は東京に住んでいます", type="fact", importance=0.25, occurredAt="2024-02-29")
    alice.remember("only hers", visibility="private", sourceType="note", sourceId="n1", idempotencyKey="k1")
    alice.remember("in a room", scope="room-1", tags=["a", "b"], validFrom="2020-01-01", validUntil="2021-01-01")
    alice.remember("in the room", scope="room-2", createdAt="1999-12-31T23:59:59Z")
    alice.remember(" ".join(f"Sentence {number} of a long text." for number in range(60)))
    patched = alice.remember("short")["id"]
    alice.request("PATCH", f"/api/memory/{patched}", {"reason": "r", "content": "long again " * 80}).ok()
    forgotten = alice.remember("forgotten")["id"]
    alice.request("DELETE", f"/api/memory/{forgotten}?reason=r").ok()
    origin.agent("bob").remember("not hers to read", visibility="private")
    origin.agent("bob").remember("for everybody")

    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    assert signet(origin, "export", str(first), "--agent", "alice").exit_code == 0
    text = first.read_text()
    assert "not hers to read" not in text
    assert "forgotten" not in text
    assert "for everybody" in text

    told = counts(signet(target, "--json", "import", str(first), "--agent", "alice"))
    assert (told["imported"], told["deduped"], told["refusedCount"]) == (text.count("\n") - 1, 0, 0)
    assert signet(target, "export", str(second), "--agent", "alice").exit_code == 0
    assert second.read_text() == text

    there = target.agent("alice")
    assert there.recall("which pager?")["results"][0]["content"].startswith("the pager is on line two")
    assert there.recalled("東京") != []
    assert there.get(f"/api/memory/{patched}/history").ok()["count"] == 1
    again = counts(signet(target, "--json", "import", str(first), "--agent", "alice"))
    assert (again["imported"], again["deduped"]) == (0, told["imported"])
    there.request("DELETE", f"/api/memory/{patched}?reason=r").ok()
    again = counts(signet(target, "--json", "import", str(first), "--agent", "alice"))
    assert (again["imported"], again["deduped"], again["forgotten"]) == (0, told["imported"] - 1, 1)
    again = counts(signet(target, "--json", "import", str(first), "--agent", "alice", "--restore"))
    assert (again["imported"], again["deduped"]) == (1, told["imported"] - 1)
    assert signet(target, "export", "-", "--agent", "alice").stdout.count("\n") == text.count("\n")


def test_invalid_lines_are_reported_secrets_redacted_and_the_rest_stored(target: LiveDaemon) -> None:
    given = b"\n".join(
        [
            b'{"format":"signet-memories","version":1}',
            b'{"content":"good"}',
            b"{oops",
            json.dumps({"content": f"the key {AWS_KEY} is in here"}).encode(),
            b'{"content":"' + b"x" * 4_000_000 + b'"}',
            b'{"content":"bad","importance":7}',
            b'{"content":"good"}',
        ]
    )
    result = signet(target, "--json", "import", "-", stdin=given)
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert (told["imported"], told["deduped"], told["redacted"]) == (2, 1, 1)
    assert [(line["line"], line["code"]) for line in told["refused"]] == [
        (3, "invalid_request"),
        (5, "payload_too_large"),
        (6, "invalid_request"),
    ]
    assert AWS_KEY not in str(target.read("SELECT content, normalized_content FROM memories"))


def test_a_writer_killed_between_commit_and_reply_duplicates_and_loses_nothing() -> None:
    # An import is sent in parts, and each writer is killed at its fourth commit: more often than the default budget.
    config = "supervision:\n  budgets:\n    writer: {restarts: 100, windowMs: 60000}\n"
    with live_daemon(started=False, config=config) as daemon:
        daemon.start(SIGNET_SYNC_POINTS="writer.after_commit=kill@4")
        told = counts(signet(daemon, "--json", "import", "-", stdin=lines(3000)))
        assert (told["imported"], told["deduped"], told["refusedCount"]) == (3000, 0, 0)
        assert daemon.read("SELECT count(*), count(DISTINCT content) FROM memories") == [(3000, 3000)]
        assert daemon.read("SELECT count(*) FROM embeddings") == [(3000,)]
        assert daemon.actors()["writer"]["restarts"] >= 1
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []


def test_a_killed_import_continues_and_stores_each_line_once(target: LiveDaemon, tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    file.write_bytes(lines(8000))
    state = tmp_path / "in.jsonl.import-state"
    url = f"http://127.0.0.1:{target.port}"
    process = subprocess.Popen(
        [sys.executable, "-m", "signet_actors.cli", "--url", url, "import", str(file)],
        env=target.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    eventually(lambda: state.exists() or process.poll() is not None, within_s=30, what="a first batch")
    process.kill()
    process.wait(30)
    told = counts(signet(target, "--json", "import", str(file)))
    assert told["imported"] + told["deduped"] == 8000
    assert target.read("SELECT count(*), count(DISTINCT content) FROM memories") == [(8000, 8000)]
    assert not state.exists()


@pytest.mark.parametrize("back_to", ["a backup from before", "a fresh workspace"])
def test_an_import_continued_on_a_restored_store_stores_every_line(tmp_path: Path, back_to: str) -> None:
    file = tmp_path / "in.jsonl"
    file.write_bytes(lines(8000))
    with live_daemon(started=False) as daemon:
        daemon.start()
        daemon.api.remember("from before")
        backup = run_signet(daemon, "--json", "backup")
        process = subprocess.Popen(
            [sys.executable, "-m", "signet_actors.cli", "import", str(file)],
            env=daemon.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        state = tmp_path / "in.jsonl.import-state"
        eventually(
            lambda: (
                process.poll() is not None or json.loads(state.read_bytes())["done"]["offset"] > 0
                if state.exists()
                else False
            ),
            within_s=30,
            what="a first batch",
        )
        process.kill()
        process.wait(30)
        if not state.exists():
            pytest.fail("the import was over before it could be interrupted")
        assert daemon.stop() == 0
        if back_to == "a fresh workspace":
            shutil.rmtree(daemon.workspace / "memory")
            shutil.rmtree(daemon.workspace / ".daemon")
        else:
            run_signet(daemon, "restore", "--yes", json.loads(backup)["path"])
        daemon.start()
        run_signet(daemon, "import", str(file))
        assert daemon.read("SELECT count(DISTINCT content) FROM memories WHERE content LIKE 'memory%'") == [(8000,)]
        assert daemon.stop() == 0


def run_signet(daemon: LiveDaemon, *arguments: str) -> str:
    """Run the command line beside the daemon, on its workspace, and return what it printed."""
    command = [sys.executable, "-m", "signet_actors.cli", *arguments]
    done = subprocess.run(command, env=daemon.environment(), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


def test_an_export_contains_only_what_its_agent_may_read(origin: LiveDaemon) -> None:
    origin.agent("carol").remember("carol's own diary", visibility="private")
    for reader in ("dave", "default"):
        assert "carol's own diary" not in signet(origin, "export", "-", "--agent", reader).stdout
    assert "carol's own diary" in signet(origin, "export", "-", "--agent", "carol").stdout


def test_an_import_of_long_lines_is_stored_in_parts_with_the_vector_of_each_line(target: LiveDaemon) -> None:
    texts = [f"{word} " + f"chapter of {word} " * 12_000 for word in ("harbour", "engine", "garden", "ledger", "orbit")]
    body = [
        json.dumps({"id": f"0000000{number}-0000-4000-8000-000000000000", "content": text, "agentId": "whole"})
        for number, text in enumerate(texts)
    ]
    raw = "\n".join(body).encode()

    def imported() -> Any:
        return target.api.request("POST", "/api/memory/import", raw, {"Idempotency-Key": "books"}).ok()

    answer = imported()
    assert (answer["imported"], answer["deduped"], answer["refused"]) == (5, 0, [])
    assert imported() == answer, "the retry gets the same answer, with the same receipt"
    assert target.read("SELECT 1 FROM request_replies WHERE request_id LIKE 'key:%#%'"), "it was one transaction"
    for line in body:  # each alone, for another agent
        alone = line.replace("whole", "single").replace('"0000000', '"1000000').encode()
        target.api.request("POST", "/api/memory/import", alone).ok()
    vectors = (
        "SELECT m.content, e.vector FROM memories m JOIN embeddings e ON e.seq = m.embedding_seq"
        " WHERE m.agent_id = ? ORDER BY m.content"
    )
    assert len(target.read(vectors, "whole")) == 5
    assert target.read(vectors, "whole") == target.read(vectors, "single")
