"""Memories of other programs, imported into a live daemon."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from signet_actors.cli.main import cli
from tests.support.foreign_memories import COFFEE, MEM0, NOTE, OBSERVATION, REFERENCE_ROW, SUMMARY, database, written
from tests.support.live_daemon import LiveDaemon, live_daemon

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def daemon() -> Iterator[LiveDaemon]:
    with live_daemon() as daemon:
        yield daemon


def source(name: str, tmp_path: Path) -> Path:
    """A sample of the format."""
    if name == "text":
        return written(tmp_path / "notes.txt", "The first paragraph.\n\nThe second paragraph.\n")
    if name == "markdown":
        return written(tmp_path / "deploy.md", NOTE)
    if name == "basic-memory":
        return written(tmp_path / "coffee.md", COFFEE)
    if name == "mem0":
        return written(tmp_path / "all.json", MEM0)
    if name == "claude-mem":
        return database(tmp_path / "claude-mem.db", observations=[OBSERVATION], session_summaries=[SUMMARY])
    return database(tmp_path / "memories.db", memories=[REFERENCE_ROW])


@pytest.mark.parametrize(
    ("name", "count", "query", "expected"),
    [
        ("text", 2, "second paragraph", {"content": "The second paragraph.", "source_type": "markdown"}),
        (
            "markdown",
            5,
            "never on fridays",
            {"content": "# When\n\nNever on Fridays.", "tags": "ops,C++,deployments,when"},
        ),
        ("basic-memory", 6, "water 93 degrees", {"type": "decision", "tags": "coffee,brewing,decision"}),
        ("mem0", 1, "pizza", {"who": "alice", "source_type": "mem0", "created_at": "2026-01-02T18:00:00.123Z"}),
        ("claude-mem", 2, "backoff", {"project": "orderdesk", "type": "decision", "session_id": "session-1"}),
        ("reference", 1, "vim", {"id": REFERENCE_ROW["id"], "pinned": 1, "importance": 0.9, "access_count": 4}),
    ],
)
def test_a_sample_is_imported_found_and_not_stored_twice(
    daemon: LiveDaemon, tmp_path: Path, name: str, count: int, query: str, expected: dict[str, Any]
) -> None:
    path = source(name, tmp_path)

    def imported() -> dict[str, Any]:
        arguments = ["--url", f"http://127.0.0.1:{daemon.port}", "import", str(path), "--from", name, "--json"]
        result = CliRunner(env={"XDG_CACHE_HOME": str(tmp_path / "cache")}).invoke(
            cli, [*arguments, "--agent", f"of-{name}"]
        )
        assert result.exit_code == 0, (result.stdout, result.stderr)
        told: dict[str, Any] = json.loads(result.stdout)
        return told

    agent = daemon.agent(f"of-{name}")
    first = imported()
    assert (first["imported"], first["deduped"], first["refused"]) == (count, 0, [])
    again = imported()
    assert (again["imported"], again["deduped"]) == (0, count)
    stored = {row["id"]: agent.memory(row["id"]) for row in agent.listed()}  # before a recall counts as an access
    found = stored[agent.recalled(query)[0]]
    assert {member: found[member] for member in expected} == expected


def test_a_memory_that_changed_in_its_source_is_named_and_left_as_it_is(daemon: LiveDaemon, tmp_path: Path) -> None:
    agent = daemon.agent("of-changes")
    long_text = " ".join(f"Sentence {number} of the long one is here." for number in range(40))
    file = tmp_path / "all.json"
    before = len(daemon.agent("default").listed())  # an agent that has stored nothing reads its own memories only

    def imported(*texts: str) -> Any:
        file.write_text(json.dumps([{"id": str(number), "memory": text} for number, text in enumerate(texts)]))
        arguments = ["--url", f"http://127.0.0.1:{daemon.port}", "import", str(file), "--from", "mem0", "--json"]
        cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
        return json.loads(CliRunner(env=cache).invoke(cli, [*arguments, "--agent", "of-changes"]).stdout)

    first = imported("Likes tea", "Lives in Bremen", long_text)
    assert (first["imported"], first["memories"], first["differing"]) == (3, len(agent.listed()) - before, [])
    assert first["memories"] > 3
    again = imported("Likes coffee", "lives in  Bremen.", long_text + " One more.")
    assert (again["imported"], again["memories"], again["deduped"]) == (0, 0, 3)
    assert [line["source"] for line in again["differing"]] == ["mem0:0", "mem0:2"]
    assert agent.memory(again["differing"][0]["id"])["content"] == "Likes tea"
    assert len(agent.listed()) - before == first["memories"]
