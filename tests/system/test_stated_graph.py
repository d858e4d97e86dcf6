"""What callers state of the knowledge graph, through the daemon: secrets, restarts, long texts, exports.

Source: memory-api.txt "POST /api/memory/remember" (structured); docs/decisions.md 67; docs/transfer.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.support.graph_state import Graph, graph_of_contributions, orphans, stored_graph
from tests.support.live_daemon import Client, LiveDaemon

pytestmark = pytest.mark.system

STATED = {
    "entities": [
        {"source": "Signet", "relationship": "depends on", "target": "ZeroMQ", "confidence": 0.75},
        {"name": "Ada Lovelace", "type": "person"},
    ],
    "aspects": [
        {"entity": "Signet", "aspect": "network", "attributes": [
            {"content": "listens on 3850", "groupKey": "ports", "claimKey": "http", "importance": 0.9},
            {"content": "never on 0.0.0.0", "kind": "constraint"}, "speaks HTTP"]},
    ],
    "hints": ["which port does the mnemonic daemon use?"],
}  # fmt: skip


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveDaemon]:
    running = LiveDaemon(tmp_path_factory.mktemp("stated")).start()
    try:
        yield running
    finally:
        running.close()


def graph(daemon: LiveDaemon, agent: str) -> Graph:
    """The stored graph of one agent, which must be what its contributions imply."""
    connection = apsw.Connection(str(daemon.database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        found = stored_graph(connection, agent)
        assert found == graph_of_contributions(connection, agent)
        assert orphans(connection) == []
        return found
    finally:
        connection.close()


def without_agent(found: Graph) -> Any:
    entities = {name: mentions for (_, name), mentions in found.entities.items()}
    return entities, found.relations, found.dependencies, [row[:3] for row in found.attributes]


def test_a_hint_is_found_without_a_model(daemon: LiveDaemon) -> None:
    room = daemon.agent("hinted")
    stored = room.remember("It is three thousand eight hundred and fifty", structured=STATED)
    found = room.recall("which port does the mnemonic daemon use?")["results"]
    assert (found[0]["id"], found[0]["source"] in {"hint", "hybrid"}) == (stored["id"], True)


def test_nothing_is_stored_if_a_part_is_wrong(daemon: LiveDaemon) -> None:
    room = daemon.agent("strict")
    wrong = {**STATED, "aspects": [{"entity": "Signet", "aspect": "x", "attributes": [{"kind": "constraint"}]}]}
    refused = room.post("/api/memory/remember", {"content": "Half of it", "structured": wrong}).refused(400)
    assert refused["field"] == "structured.aspects[0].attributes[0].content"
    assert room.listed() == []
    assert without_agent(graph(daemon, "strict")) == ({}, {}, {}, [])


def test_secrets_are_cut_out_of_what_is_stated_and_refused_in_names(daemon: LiveDaemon) -> None:
    room, secret = daemon.agent("careful"), "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3hJ5"
    said = {"aspects": [{"entity": "GitHub", "aspect": "access", "attributes": [f"token {secret}"]}]}
    answer = room.remember("The robot has a token", structured=said)
    assert answer["redacted"] is True
    named = {"entities": [{"name": f"token {secret}"}]}
    room.post("/api/memory/remember", {"content": "Another", "structured": named}).refused(400)
    assert secret.encode() not in daemon.database.read_bytes()


def test_a_long_text_states_it_with_its_first_part(daemon: LiveDaemon) -> None:
    room = daemon.agent("long")
    text = " ".join(f"Sentence number {n} about nothing in particular." for n in range(60))
    answer = room.remember(text, structured=STATED)
    assert answer["chunked"] is True
    entities, _, _, attributes = without_agent(graph(daemon, "long"))
    assert entities["signet"] == 1
    assert len(attributes) == 3


def lines_of(client: Client) -> list[dict[str, Any]]:
    raw = client.get("/api/memory/export").raw
    return [json.loads(line) for line in raw.splitlines()]


def test_an_import_of_an_export_makes_the_same_graph(daemon: LiveDaemon) -> None:
    room = daemon.agent("exporter")
    room.remember("Signet listens on 3850", structured=STATED, createdAt="2026-01-02T00:00:00Z")
    later = {"content": "listens on 3900", "groupKey": "ports", "claimKey": "http"}
    newer = {"aspects": [{"entity": "Signet", "aspect": "network", "attributes": [later]}]}
    room.remember("Signet listens on 3900 now", structured=newer, createdAt="2026-02-02T00:00:00Z")
    room.remember("Ada Lovelace maintains it with care")
    before = without_agent(graph(daemon, "exporter"))
    assert before[0] == {"signet": 2, "zeromq": 1, "ada lovelace": 2}
    header, *lines = lines_of(room)
    copies = [{**line, "agentId": "importer", "id": None} for line in lines if line["agentId"] == "exporter"]
    raw = b"\n".join(json.dumps(line).encode() for line in (header, *copies))
    importer = daemon.agent("importer")
    for _ in range(2):
        importer.request("POST", "/api/memory/import", raw).ok()
        assert without_agent(graph(daemon, "importer")) == before


def test_an_export_states_nothing_of_the_graph_of_another_agent(daemon: LiveDaemon) -> None:
    owner, other = daemon.agent("owner"), daemon.agent("other")
    owner.remember("The meeting is on Monday", structured={"entities": [{"name": "Project Nightfall"}]})
    other.remember("An agent that has stored something reads what others share")
    lines = lines_of(other)
    assert any(line.get("content") == "The meeting is on Monday" for line in lines)
    assert "Nightfall" not in json.dumps(lines)


def test_it_survives_a_kill_of_every_process(tmp_path: Path) -> None:
    running = LiveDaemon(tmp_path).start()
    try:
        room = running.agent("survivor")
        room.remember("Signet listens on 3850", structured=STATED)
        before = graph(running, "survivor")
        assert running.process is not None
        running.process.kill()
        running.process.wait(20)
        running.start()
        assert graph(running, "survivor") == before
        again = room.remember("Signet is small")
        room.post(f"/api/memory/{again['id']}/recover", {})
        assert graph(running, "survivor").entities["survivor", "signet"] == 2
    finally:
        running.close()
