"""The map of the memories over HTTP: computing, then cached, and never with what is forgotten."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import Client, live_daemon

pytestmark = pytest.mark.system

MAP = "/api/embeddings/projection"


def made(client: Client, **fields: Any) -> dict[str, Any]:
    """Return the map once it is made."""

    def cached() -> dict[str, Any] | None:
        answer = client.get(MAP, **fields)
        assert answer.status in {200, 202}, answer.json
        if answer.status == 202:
            assert set(answer.json) == {"status", "dimensions", "count", "total"}
            assert (answer.json["status"], answer.json["count"]) == ("computing", 0)
            return None
        return dict(answer.json)

    return eventually(cached, within_s=90, what="a map")


def test_a_map_is_computed_kept_and_filtered() -> None:
    with live_daemon(patient=True) as daemon:
        client = daemon.api
        stored = [client.remember(f"the walrus number {at} sleeps on ice", tags=f"t{at % 2}")["id"] for at in range(12)]
        rule = client.remember("never wake the walrus on Sundays", type="rule", pinned=True)["id"]
        eventually(
            lambda: client.get("/api/repair/embedding-gaps").ok()["unembedded"] == 0, within_s=60, what="vectors"
        )
        assert client.get(MAP).status == 202
        found = made(client)
        assert {"nodes", "edges", "cachedAt", "hasMore", "limit", "offset"} <= set(found)
        assert (found["status"], found["dimensions"], found["count"], found["total"]) == ("cached", 2, 13, 13)
        assert {node["id"] for node in found["nodes"]} == {*stored, rule}
        node = next(node for node in found["nodes"] if node["id"] == rule)
        assert (node["type"], node["pinned"], node["tags"], "z" in node) == ("rule", True, [], False)
        assert all(len(edge) == 2 for edge in found["edges"])
        assert found["method"] in {"pca", "umap"}

        again = client.get(MAP)
        assert (again.status, again.json["cachedAt"]) == (200, found["cachedAt"])
        assert [node["id"] for node in client.get(MAP, type="rule").ok()["nodes"]] == [rule]
        assert [node["id"] for node in client.get(MAP, q="Sundays").ok()["nodes"]] == [rule]
        assert client.get(MAP, tags="t0", limit=2).ok()["hasMore"] is True
        assert client.get(MAP, tags="t0").ok()["total"] == 6

        session = {"harness": "codex", "sessionKey": "of-codex"}
        client.post("/api/hooks/session-start", session).ok()
        said = client.post("/api/hooks/remember", {**session, "content": "the walrus of codex eats clams"}).ok()
        told = said["id"]
        eventually(
            lambda: [node["id"] for node in client.get(MAP, harness="codex").ok()["nodes"]] == [told],
            within_s=60,
            what="the map is made anew",
        )
        assert client.get(MAP, harness="cursor").ok()["total"] == 0

        client.request("DELETE", f"/api/memory/{rule}?reason=outdated&force=true", None).ok()
        without = client.get(MAP)
        assert without.status == 200
        assert rule not in {node["id"] for node in without.json["nodes"]}
        assert "wake" not in without.raw.decode()

        deep = made(client, dimensions=3)
        assert (deep["dimensions"], all("z" in node for node in deep["nodes"])) == (3, True)
        other = daemon.agent("cleo")
        private = other.remember("the otter of cleo", visibility="private")["id"]
        eventually(
            lambda: client.get("/api/repair/embedding-gaps").ok()["unembedded"] == 0, within_s=60, what="vectors"
        )
        assert private in {node["id"] for node in made(other)["nodes"]}
        assert private not in {node["id"] for node in made(client)["nodes"]}

        assert daemon.stop() == 0
        daemon.start()
        assert client.get(MAP).status == 200, "a map outlives the daemon"
