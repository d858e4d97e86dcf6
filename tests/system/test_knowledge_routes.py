"""What an agent reads and changes of its knowledge graph over HTTP: each shape, and nothing of another agent's graph.

Source: docs/compatibility.md "Knowledge graph".
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from signet_actors.features.entities.api import OPERATIONS as ENTITY_OPERATIONS
from signet_actors.features.knowledge.api import OPERATIONS as VIEW_OPERATIONS
from signet_actors.operations.operation import Operation
from tests.support.bus_harness import eventually
from tests.support.live_daemon import Client, LiveDaemon, live_daemon
from tests.support.scoped_requests import fields_of, sent, told

pytestmark = pytest.mark.system

OPERATIONS: tuple[Operation[Any], ...] = (*ENTITY_OPERATIONS, *VIEW_OPERATIONS)
ENTITIES = "/api/knowledge/entities"
EMPTY_EXPANSION = {"constraints": [], "aspects": [], "dependencies": [], "memoryCount": 0, "memories": []}
_names = (f"agent-{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def daemon() -> Iterator[LiveDaemon]:
    with live_daemon() as running:
        yield running


@pytest.fixture
def client(daemon: LiveDaemon) -> Client:
    """A new agent without memories."""
    return daemon.agent(next(_names))


def said(entity: str, *attributes: Any, aspect: str = "database", **more: Any) -> dict[str, Any]:
    return {"aspects": [{"entity": entity, "aspect": aspect, "attributes": [*attributes], **more}]}


def port(number: int) -> dict[str, str]:
    return {"content": f"listens on port {number}", "groupKey": "staging", "claimKey": "port"}


def linked(source: str, how: str, target: str, **types: str) -> dict[str, Any]:
    return {"entities": [{"source": source, "relationship": how, "target": target, **types}]}


def fill(client: Client, shop: str = "Shop", store: str = "PostgreSQL", till: str = "Till") -> dict[str, str]:
    """Remember what makes a small graph; return the ids of its entities by their names."""
    of_types = {"sourceType": "project", "targetType": "tool"}
    uses = linked(shop, "uses", store, **of_types)
    client.remember(f"{shop} keeps orders in {store} on port 5433", structured={**uses, **said(shop, port(5433))})
    client.remember(f"{shop} has moved its port", structured=said(shop, port(5434), "keeps orders"))
    rule = {"content": f"never deploy {shop} on Fridays", "kind": "constraint"}
    client.remember(f"Deployments of {shop}", structured=said(shop, rule, aspect="Deployment"))
    client.remember(f"{till} needs {shop}", structured=linked(till, "depends_on", shop))
    return ids(client)


def ids(client: Client) -> dict[str, str]:
    return {item["entity"]["name"]: item["entity"]["id"] for item in listed(client)}


def listed(client: Client, **parameters: Any) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = client.get(ENTITIES, **parameters).ok()["items"]
    return items


def names(client: Client, **parameters: Any) -> list[str]:
    return [item["entity"]["name"] for item in listed(client, **parameters)]


def test_entities_are_listed_with_what_is_known_pinned_ones_first(client: Client) -> None:
    entity = fill(client)
    page = client.get(ENTITIES).ok()
    assert (page["limit"], page["offset"]) == (50, 0)
    first = page["items"][0]
    assert (first["entity"]["name"], first["entity"]["mentions"]) == ("Shop", 4)
    assert first["entity"]["canonicalName"] == "shop"
    assert first["entity"]["entityType"] == "project"
    counts = {name: value for name, value in first.items() if name != "entity"}
    assert counts == {"aspectCount": 2, "attributeCount": 2, "constraintCount": 1, "dependencyCount": 2}
    client.post(f"{ENTITIES}/{entity['Till']}/pin").ok()
    assert names(client) == ["Till", "Shop", "PostgreSQL"]
    assert names(client, limit=1, offset=1) == ["Shop"]
    assert names(client, type="tool") == names(client, type="TOOL") == ["PostgreSQL"]
    assert names(client, q="GRES") == ["PostgreSQL"]
    assert names(client, q="%") == names(client, q="_") == []
    assert client.get("/api/knowledge/navigation/entities", type="tool").ok()["items"] == listed(client, type="tool")


def test_one_entity_tells_its_dependencies_both_ways(client: Client) -> None:
    shop = fill(client)["Shop"]
    found = client.get(f"{ENTITIES}/{shop}").ok()
    assert found["entity"]["id"] == shop
    assert (found["incomingDependencyCount"], found["outgoingDependencyCount"]) == (1, 1)
    assert found["structuralDensity"] == {
        "aspectCount": 2,
        "attributeCount": 2,
        "constraintCount": 1,
        "dependencyCount": 2,
    }
    assert client.get("/api/knowledge/navigation/entity", name="  SHOP ").ok() == found
    client.get(f"{ENTITIES}/unknown").refused(404, error="Entity not found")
    client.get("/api/knowledge/navigation/entity", name="unknown").refused(404, error="Entity not found")
    client.get("/api/knowledge/navigation/entity").refused(400, error="entity name is required")


def test_aspects_and_attributes_have_the_stored_names_and_the_documented_ones(client: Client) -> None:
    shop = fill(client)["Shop"]
    items = client.get(f"{ENTITIES}/{shop}/aspects").ok()["items"]
    assert [(each["aspect"]["name"], each["attributeCount"], each["constraintCount"]) for each in items] == [
        ("database", 2, 0),
        ("Deployment", 0, 1),
    ]
    assert items[1]["aspect"]["aspect_name"] == "Deployment"
    assert items[0]["aspect"]["weight"] == 0.5
    target = f"{ENTITIES}/{shop}/aspects/{items[0]['aspect']['id']}/attributes"
    page = client.get(target).ok()
    assert (page["limit"], page["offset"]) == (50, 0)
    assert {each["content"] for each in page["items"]} == {"listens on port 5434", "keeps orders"}
    assert client.get(f"{ENTITIES}/{shop}/aspects/Database/attributes").ok() == page
    (former,) = client.get(target, status="superseded").ok()["items"]
    assert former["content"] == former["attribute_value"] == "listens on port 5433"
    assert former["memoryId"] == former["source_memory_id"]
    now = next(each for each in page["items"] if each["claimKey"] == "port")
    assert (former["supersededBy"], former["supersededHow"], former["groupKey"]) == (now["id"], "claim", "staging")
    assert len(client.get(target, status="all").ok()["items"]) == 3
    assert client.get(target, status="all", kind="constraint").ok()["items"] == []
    client.get(target, status="any").refused(400, field="status")


def test_dependencies_are_those_of_the_wanted_direction(client: Client) -> None:
    shop = fill(client)["Shop"]

    def ends(**direction: str) -> list[tuple[str, str, str]]:
        items = client.get(f"{ENTITIES}/{shop}/dependencies", **direction).ok()["items"]
        return [(each["sourceEntityName"], each["dependencyType"], each["targetEntityName"]) for each in items]

    assert ends(direction="outgoing") == [("Shop", "uses", "PostgreSQL")]
    assert ends(direction="incoming") == [("Till", "depends_on", "Shop")]
    assert (
        sorted(ends()) == sorted(ends(direction="both")) == [*ends(direction="outgoing"), *ends(direction="incoming")]
    )


def test_lists_about_what_is_not_there_are_empty(client: Client) -> None:
    for path in ("aspects", "aspects/x/attributes", "dependencies", "neighbours"):
        assert client.get(f"{ENTITIES}/unknown/{path}").ok()["items"] == []
    for path in ("aspects", "groups", "claims", "attributes"):
        assert client.get(f"/api/knowledge/navigation/{path}", entity="x", aspect="y").ok()["items"] == []
    assert client.get(f"{ENTITIES}/pinned").ok() == client.get(f"{ENTITIES}/health").ok() == []
    assert client.get("/api/knowledge/communities").ok() == {"items": [], "count": 0}
    assert client.get("/api/knowledge/constellation").ok() == {"entities": [], "dependencies": []}
    assert client.get("/api/knowledge/traversal/status").ok() == {"status": None}
    assert client.get("/api/knowledge/stats").ok()["coveragePercent"] == 0


def test_a_warning_about_a_bare_array_is_in_a_header(client: Client) -> None:
    answer = client.get(f"{ENTITIES}/pinned", nonsense="1")
    assert answer.ok() == []
    assert "nonsense" in answer.headers["x-signet-warnings"]


def test_a_pin_keeps_its_time_and_is_taken_back(client: Client) -> None:
    shop = fill(client)["Shop"]
    pinned = client.post(f"{ENTITIES}/{shop}/pin").ok()
    assert pinned["pinned"] is True
    assert client.post(f"{ENTITIES}/{shop}/pin").ok() == pinned
    (found,) = client.get(f"{ENTITIES}/pinned").ok()
    assert (found["id"], found["name"], found["pinnedAt"]) == (shop, "Shop", pinned["pinnedAt"])
    for target in (shop, shop, "unknown"):
        assert client.request("DELETE", f"{ENTITIES}/{target}/pin").ok() == {"pinned": False}
    client.post(f"{ENTITIES}/unknown/pin").refused(404, error="Entity not found")
    assert client.get(f"{ENTITIES}/pinned").ok() == []


def test_an_entity_without_memories_is_gone_unless_it_is_pinned(client: Client) -> None:
    memory = client.remember("The crane", structured=said("Crane", "is red"))["id"]
    (crane,) = ids(client).values()
    client.post(f"{ENTITIES}/{crane}/pin").ok()
    client.request("DELETE", f"/api/memory/{memory}", {"reason": "r", "force": True}).ok()
    assert names(client) == ["Crane"]
    assert client.get(f"{ENTITIES}/{crane}/aspects").ok()["items"] == []
    client.request("DELETE", f"{ENTITIES}/{crane}/pin").ok()
    assert names(client) == []
    client.get(f"{ENTITIES}/{crane}").refused(404)
    client.post(f"/api/memory/{memory}/recover", {"reason": "r"}).ok()
    assert names(client) == ["Crane"]
    assert client.get(f"{ENTITIES}/{crane}/aspects").ok()["items"][0]["attributeCount"] == 1


def test_a_suppressed_entity_says_so(client: Client) -> None:
    shop = fill(client)["Shop"]
    done = client.post(f"{ENTITIES}/{shop}/suppress", {"reason": "too general", "weightOverride": 0.2}).ok()
    assert done == {"suppressed": True, "reason": "too general", "weightOverride": 0.2}
    entity = client.get(f"{ENTITIES}/{shop}").ok()["entity"]
    assert (entity["suppressed"], entity["weightOverride"]) == (True, 0.2)
    (lead,) = client.get("/api/knowledge/hygiene").ok()["suppressed"]
    assert (lead["name"], lead["reason"]) == ("Shop", "too general")
    client.post(f"{ENTITIES}/{shop}/suppress", {"weightOverride": 2}).refused(400, field="weightOverride")
    client.post(f"{ENTITIES}/unknown/suppress").refused(404)
    for target in (shop, "unknown"):
        assert client.request("DELETE", f"{ENTITIES}/{target}/suppress").ok() == {"suppressed": False}
    assert client.get(f"{ENTITIES}/{shop}").ok()["entity"]["suppressed"] is False


def test_a_merged_entity_is_another_name_until_that_is_undone(client: Client) -> None:
    fill(client)
    client.remember("Postgres of the farm", structured=said("Postgres", "runs on the farm", aspect="Place"))
    entity, before = ids(client), listed(client)
    merge = f"{ENTITIES}/{entity['Postgres']}/merge"
    done = {"merged": True, "id": entity["Postgres"], "into": entity["PostgreSQL"], "name": "PostgreSQL"}
    for _ in range(2):
        assert client.post(merge, {"into": entity["PostgreSQL"]}).ok() == done
    assert sorted(names(client)) == ["PostgreSQL", "Shop", "Till"]
    for named in (entity["Postgres"], entity["PostgreSQL"]):
        found = client.get(f"{ENTITIES}/{named}").ok()
        assert (found["entity"]["id"], found["entity"]["mentions"]) == (entity["PostgreSQL"], 2)
        assert found["aspectCount"] == 1
    assert client.get("/api/knowledge/navigation/tree", entity="postgres").ok()["entity"]["name"] == "PostgreSQL"
    (merged,) = client.get("/api/knowledge/hygiene").ok()["merged"]
    assert (merged["id"], merged["into"]) == (entity["Postgres"], "PostgreSQL")
    client.post(merge, {"into": entity["Shop"]}).refused(409)
    client.post(f"{ENTITIES}/{entity['PostgreSQL']}/merge", {"into": entity["Postgres"]}).refused(400, field="into")
    client.post(merge, {"into": "unknown"}).refused(404)
    client.post(merge, {}).refused(400, field="into")
    unmerge = f"{ENTITIES}/{entity['Postgres']}/unmerge"
    for _ in range(2):
        assert client.post(unmerge).ok() == {"merged": False, "id": entity["Postgres"]}
    assert listed(client) == before


def test_what_both_names_claim_is_one_claim_while_they_are_merged(client: Client) -> None:
    client.remember("Old port of Postgres", structured=said("Postgres", port(5433)), createdAt="2026-01-01T00:00:00Z")
    client.remember("New port of PostgreSQL", structured=said("PostgreSQL", port(5434)))
    entity = ids(client)
    client.post(f"{ENTITIES}/{entity['Postgres']}/merge", {"into": entity["PostgreSQL"]}).ok()
    view = {"entity": "PostgreSQL", "aspect": "database"}
    (claim,) = client.get("/api/knowledge/navigation/claims", **view).ok()["items"]
    assert (claim["preview"], claim["supersededCount"]) == ("listens on port 5434", 1)
    client.post(f"{ENTITIES}/{entity['Postgres']}/unmerge").ok()
    (claim,) = client.get("/api/knowledge/navigation/claims", **{**view, "entity": "Postgres"}).ok()["items"]
    assert (claim["preview"], claim["supersededCount"]) == ("listens on port 5433", 0)


def test_stats_count_the_agents_graph_and_its_coverage(client: Client) -> None:
    fill(client)
    client.remember("Nothing has a name here")
    found = client.get("/api/knowledge/stats").ok()
    assert (found["entityCount"], found["aspectCount"], found["attributeCount"]) == (3, 2, 2)
    assert (found["constraintCount"], found["dependencyCount"]) == (1, 2)
    assert (found["unassignedMemoryCount"], found["coveragePercent"]) == (1, 80.0)
    assert found["averageAspectWeight"] == 0.5


def test_an_expansion_has_rules_facts_dependencies_and_memories_within_its_length(client: Client) -> None:
    fill(client)
    found = client.post("/api/knowledge/expand", {"entity": "shop", "question": "which port?"}).ok()
    assert found["entity"]["name"] == "Shop"
    assert [each["content"] for each in found["constraints"]] == ["never deploy Shop on Fridays"]
    facts = {each["name"]: [fact["content"] for fact in each["attributes"]] for each in found["aspects"]}
    assert facts == {"database": ["listens on port 5434", "keeps orders"], "Deployment": []}
    assert {(each["target"], each["direction"]) for each in found["dependencies"]} == {
        ("PostgreSQL", "outgoing"),
        ("Till", "incoming"),
    }
    assert found["memoryCount"] == len(found["memories"]) == 4
    assert "port" in found["memories"][0]["content"]
    short = client.post("/api/knowledge/expand", {"entity": "Shop", "maxTokens": 8}).ok()
    texts = [
        *short["constraints"],
        *short["memories"],
        *(fact for each in short["aspects"] for fact in each["attributes"]),
    ]
    assert sum(len(each["content"]) for each in texts) <= 32
    assert short["memoryCount"] == 4


def test_long_texts_are_cut_to_what_a_reply_has_room_for(client: Client) -> None:
    client.remember("word " * 80, structured=said("Shop", "x" * 2000))
    found = client.post("/api/knowledge/expand", {"entity": "Shop", "maxTokens": 550}).ok()
    assert [len(each["content"]) for each in found["aspects"][0]["attributes"]] == [2000]
    assert [len(each["content"]) for each in found["memories"]] == [200]
    (shop,) = client.get("/api/knowledge/constellation").ok()["entities"]
    assert len(shop["aspects"][0]["attributes"][0]["content"]) == 120


def test_an_aspect_of_an_expansion_is_taken_literally(client: Client) -> None:
    client.remember("Shares", structured=said("Shop", "is 12", aspect="percent %"))
    client.remember("Orders", structured=said("Shop", "keeps orders"))
    for wanted, aspects in (("%", ["percent %"]), ("PERCENT", ["percent %"]), ("_", []), ("data", ["database"])):
        found = client.post("/api/knowledge/expand", {"entity": "Shop", "aspect": wanted}).ok()
        assert [each["name"] for each in found["aspects"]] == aspects


def test_an_expansion_of_nothing_is_empty_and_not_found(client: Client) -> None:
    client.post("/api/knowledge/expand", {}).refused(400, error="entity name is required")
    answer = client.post("/api/knowledge/expand", {"entity": "%"})
    body = answer.refused(404, error="Entity not found")
    assert {name: body[name] for name in EMPTY_EXPANSION} == EMPTY_EXPANSION
    assert body["entity"] is None
    found = client.post("/api/knowledge/expand/session", {"entityName": "%"}).ok()
    assert found == {"entityName": "%", "summaries": [], "total": 0}


def test_an_outline_goes_as_deep_as_it_is_asked_to(client: Client) -> None:
    fill(client)
    tree = client.get("/api/knowledge/navigation/tree", entity="Shop").ok()
    first = tree["items"][0]
    assert first["aspect"]["name"] == "database"
    groups = {each["groupKey"]: each for each in first["groups"]}
    assert set(groups) == {"staging", "general"}
    (claim,) = groups["staging"]["claims"]
    assert (claim["claimKey"], claim["preview"]) == ("port", "listens on port 5434")
    assert (claim["attributeCount"], claim["supersededCount"]) == (1, 1)
    assert groups["general"]["claims"][0]["preview"] == "keeps orders"
    shallow = client.get("/api/knowledge/navigation/tree", entity="Shop", depth=2).ok()["items"][0]
    assert all("claims" not in each for each in shallow["groups"])
    assert "groups" not in client.get("/api/knowledge/navigation/tree", entity="Shop", depth=1).ok()["items"][0]
    assert len(client.get("/api/knowledge/navigation/tree", entity="Shop", max_aspects=1).ok()["items"]) == 1
    view = {"entity": "Shop", "aspect": "database"}
    listed_groups = client.get("/api/knowledge/navigation/groups", **view).ok()["items"]
    assert {each["groupKey"]: each["claimCount"] for each in listed_groups} == {"staging": 1, "general": 0}
    slot = client.get("/api/knowledge/navigation/attributes", **view, group="staging", claim="port", status="all").ok()
    assert {each["status"] for each in slot["items"]} == {"active", "superseded"}
    (aspect, *_) = client.get("/api/knowledge/navigation/aspects", entity="Shop").ok()["items"]
    assert aspect["aspect"]["name"] == "database"


def test_hygiene_names_what_is_alike_and_what_says_nothing(client: Client) -> None:
    fill(client)
    client.remember("Tills", structured={"entities": [{"name": "Tills"}]})
    found = client.get("/api/knowledge/hygiene").ok()
    assert [sorted(each["name"] for each in alike) for alike in found["duplicates"]] == [["Till", "Tills"]]
    assert {each["name"] for each in found["withoutAttributes"]} == {"Till", "Tills", "PostgreSQL"}
    assert found["unclassifiedAttributes"] == 0


def test_a_walk_follows_dependencies_to_its_depth(client: Client) -> None:
    entity = fill(client)

    def reached(start: str, **more: Any) -> list[tuple[str, int]]:
        found = client.post("/api/graph/impact", {"entityId": entity[start], **more}).ok()
        assert found["count"] == len(found["items"])
        assert found["truncated"] is False
        return [(each["name"], each["depth"]) for each in found["items"]]

    assert reached("PostgreSQL") == [("Shop", 1), ("Till", 2)]
    assert reached("PostgreSQL", maxDepth=1) == [("Shop", 1)]
    assert reached("Till", direction="upstream") == [("Shop", 1), ("PostgreSQL", 2)]
    assert reached("Till") == []
    assert reached("Till", direction="both") == reached("Till", direction="outgoing")
    client.post("/api/graph/impact", {"entityId": "unknown"}).refused(404)
    client.post("/api/graph/impact", {}).refused(400)


def test_a_path_is_the_shortest_one_in_either_direction(client: Client) -> None:
    entity = fill(client)
    found = client.post("/api/graph/path", {"source": "PostgreSQL", "target": entity["Till"]}).ok()
    assert [(each["name"], each["type"], each["direction"]) for each in found["steps"]] == [
        ("Shop", "uses", "incoming"),
        ("Till", "depends_on", "incoming"),
    ]
    assert found["found"] is True
    assert client.post("/api/graph/path", {"source": "Till", "target": "till"}).ok()["steps"] == []
    near = client.post("/api/graph/path", {"source": "PostgreSQL", "target": "Till", "maxDepth": 1}).ok()
    assert (near["found"], near["steps"]) == (False, [])
    client.post("/api/graph/path", {"source": "Till", "target": "unknown"}).refused(404)
    client.remember("Till and PostgreSQL", structured=linked("Till", "was bought with", "PostgreSQL"))
    items = client.get(f"{ENTITIES}/{entity['Till']}/neighbours").ok()["items"]
    assert {(each["target"], each["type"], each["kind"], each["direction"]) for each in items} == {
        ("Shop", "depends_on", "relation", "outgoing"),
        ("PostgreSQL", "was_bought_with", "relation", "outgoing"),
    }


def test_the_constellation_has_entities_with_their_facts_and_the_dependencies_between_them(client: Client) -> None:
    fill(client)
    found = client.get("/api/knowledge/constellation").ok()
    shop = next(each for each in found["entities"] if each["name"] == "Shop")
    assert {each["name"]: len(each["attributes"]) for each in shop["aspects"]} == {"database": 2, "Deployment": 1}
    assert len(found["dependencies"]) == 2
    alone = client.get("/api/knowledge/constellation", limit=1).ok()
    assert ([each["name"] for each in alone["entities"]], alone["dependencies"]) == (["Shop"], [])


def test_entities_of_the_constellation_have_places_if_they_are_asked_for(client: Client) -> None:
    fill(client)
    plain, placed = (client.get("/api/knowledge/constellation", places=asked).ok() for asked in ("false", "true"))
    places = {each["name"]: (each.pop("x"), each.pop("y")) for each in placed["entities"]}
    assert placed == plain
    assert len(set(places.values())) == len(places) > 1
    assert all(-210 <= value <= 210 for place in places.values() for value in place)


def test_in_a_project_the_constellation_has_what_its_memories_say(client: Client) -> None:
    fill(client)
    client.remember("The pier", project="/srv/pier", structured=linked("Crane", "uses", "Shop"))
    client.remember("The crane of the pier", project="/srv/pier", structured=said("Crane", "lifts 40 tons"))
    client.remember("Another crane", project="/srv/canal", structured=said("Crane", "lifts 3 tons"))
    found = client.get("/api/knowledge/constellation", project="/srv/pier").ok()
    known = {
        each["name"]: [fact["content"] for side in each["aspects"] for fact in side["attributes"]]
        for each in found["entities"]
    }
    assert known == {"Crane": ["lifts 40 tons"], "Shop": []}
    assert [each["dependencyType"] for each in found["dependencies"]] == ["uses"]
    assert client.get("/api/knowledge/constellation", project="/srv/moon").ok() == {"entities": [], "dependencies": []}
    told = client.post("/api/knowledge/expand", {"entity": "Crane", "project": "/srv/pier"}).ok()
    assert sorted(row["content"] for row in told["memories"]) == ["The crane of the pier", "The pier"]
    assert [fact["content"] for side in told["aspects"] for fact in side["attributes"]] == ["lifts 40 tons"]


def test_what_a_forgotten_or_a_hidden_memory_says_is_shown_nowhere(client: Client) -> None:
    kept = client.remember("The harbour", structured=said("Harbour", "has a gate"))["id"]
    doomed = client.remember("A secret", structured=said("Harbour", "wordone is hidden", aspect="wordtwo"))["id"]
    client.remember(
        "Elsewhere", structured=said("Harbour", "wordthree is hidden", aspect="wordfour"), scope="elsewhere"
    )
    client.request("DELETE", f"/api/memory/{doomed}", {"reason": "r"}).ok()
    harbour = ids(client)["Harbour"]
    for operation in OPERATIONS:
        for request in told(operation, operation.paths[0]):
            named = sent(
                operation, operation.paths[0], **dict.fromkeys(("id", "entity", "name", "entityName"), harbour)
            )
            for each in (request, named):
                if operation.has_effect:
                    continue
                answer = client.request(each.method, each.target, each.body)
                assert not [
                    word for word in ("wordone", "wordtwo", "wordthree", "wordfour") if word in answer.raw.decode()
                ]
    assert client.get(f"{ENTITIES}/{harbour}").ok()["attributeCount"] == 1
    (fact,) = client.get("/api/knowledge/navigation/attributes", entity="Harbour", status="all").ok()["items"]
    assert fact["memoryId"] == kept
    scoped = client.get("/api/knowledge/navigation/attributes", entity="Harbour", scope="elsewhere").ok()["items"]
    assert [each["content"] for each in scoped] == ["wordthree is hidden"]


def test_no_route_tells_an_agent_of_the_graph_of_another(daemon: LiveDaemon, client: Client) -> None:
    """The same requests are made by two agents without a graph: one by the names and ids of a third one's entities."""
    owner, twin = daemon.agent(next(_names)), daemon.agent(next(_names))
    entity = fill(owner, "Alpharoot", "Betastore", "Gammatill")
    before = listed(owner)
    aspect = owner.get(f"{ENTITIES}/{entity['Alpharoot']}/aspects").ok()["items"][0]["aspect"]["id"]
    foreign = {"id": entity["Alpharoot"], "name": "Alpharoot", "aspect": aspect, "target": entity["Gammatill"]}
    unknown = {
        name: "".join(chr(ord(char) ^ 1) if char.isalpha() else char for char in text) for name, text in foreign.items()
    }
    tells_owner = set()
    for operation, path in ((each, path) for each in OPERATIONS for path in each.paths):
        answers = []
        for caller, given in ((client, foreign), (twin, unknown)):
            for named in ("id", "name"):
                parts = dict.fromkeys(("id", "entity", "name", "entityName", "entityId", "source"), given[named])
                parts |= {
                    "aspect": given["aspect"],
                    "into": given["target"],
                    "target": given["target"],
                    "q": given["name"],
                }
                fields = {each for each in parts if f"{{{each}}}" in path or takes(operation, each)}
                request = sent(operation, path, **{name: parts[name] for name in fields})
                answer = caller.request(request.method, request.target, request.body)
                text = answer.raw.decode()
                for value in given.values():
                    text = text.replace(value, "<given>")
                assert answer.status in {200, 404}, (request, text)
                assert "listens on" not in text
                answers.append((answer.status, text))
                if not operation.has_effect and caller is client:
                    own = owner.request(request.method, request.target, request.body).raw.decode()
                    tells_owner |= {operation.name} if any(name in own for name in entity) else set()
        assert answers[:2] == answers[2:], operation.name
    assert len(tells_owner) > 10, "the same requests tell the owner something"
    assert listed(owner) == before


def takes(operation: Operation[Any], name: str) -> bool:
    return any(name in field.spellings for field in fields_of(operation))


def test_an_agent_of_the_shared_policy_reads_its_own_graph_only(daemon: LiveDaemon) -> None:
    fill(daemon.agent(next(_names)), "Deltaroot")
    assert not [name for name in names(daemon.api, limit=200) if name == "Deltaroot"]
    daemon.api.get("/api/knowledge/navigation/entity", name="Deltaroot").refused(404)


def test_a_change_is_made_once_for_each_key(client: Client) -> None:
    shop = fill(client)["Shop"]
    first = client.post(f"{ENTITIES}/{shop}/pin", {}, **{"Idempotency-Key": "k"}).ok()
    client.request("DELETE", f"{ENTITIES}/{shop}/pin").ok()
    assert client.post(f"{ENTITIES}/{shop}/pin", {}, **{"Idempotency-Key": "k"}).ok() == first
    assert client.get(f"{ENTITIES}/pinned").ok() == []


def test_the_status_counts_entities_that_memories_mention(daemon: LiveDaemon, client: Client) -> None:
    before = daemon.owner.get("/api/status").ok()["db"]["entities"]
    fill(client)
    assert daemon.owner.get("/api/status").ok()["db"]["entities"] == before + 3


def test_nothing_changes_while_mutations_are_frozen_and_merges_are_in_the_audit_log() -> None:
    with live_daemon() as daemon:
        client = daemon.api
        entity = fill(client)
        client.post(f"{ENTITIES}/{entity['Till']}/merge", {"into": entity["Shop"]}).ok()
        events = daemon.owner.get("/api/audit", kind="change").ok()["events"]
        assert [each["detail"]["operation"] for each in events] == ["entities.merge"]
        assert "Till" not in json.dumps(events)
        daemon.configure("memory: {pipelineV2: {mutationsFrozen: true}}\n")
        pin = f"{ENTITIES}/{entity['Shop']}/pin"
        eventually(lambda: client.post(pin).status == 503, within_s=60, what="the configuration was read again")
        for method, path in (("POST", "pin"), ("DELETE", "pin"), ("POST", "suppress"), ("POST", "unmerge")):
            client.request(method, f"{ENTITIES}/{entity['Shop']}/{path}", {}).refused(503, code="mutations_frozen")
        assert names(client)
