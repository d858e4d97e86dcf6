"""The knowledge graph: entities, what is known about them, how they hang together, pins, suppression and merges."""

from __future__ import annotations

from typing import Any

from tests.corpus.exchange import Scenario, Step, delete, get, post

_USES = {"source": "Shop", "relationship": "uses", "target": "PostgreSQL", "sourceType": "project"}
_SHOP: dict[str, Any] = {
    "entities": [_USES],
    "aspects": [
        {
            "entity": "Shop",
            "aspect": "Database",
            "attributes": [
                {"content": "listens on port 5433", "groupKey": "staging", "claimKey": "port"},
                {"content": "is never stopped", "kind": "constraint"},
            ],
        }
    ],
}
_ENTITY = "/api/knowledge/entities/shop"
_VIEW = "/api/knowledge/navigation"


def stated(name: str, content: str, structured: dict[str, Any]) -> Step:
    return post(name, "/api/memory/remember", {"content": content, "structured": structured})


STEPS: tuple[Step, ...] = (
    stated("state an entity", "The shop keeps orders", _SHOP),
    stated("state a relation", "The till needs the shop", {"entities": [_USES | {"source": "Till"}]}),
    stated("state another name", "Postgres is stopped at night", {"entities": [{"name": "Postgres", "type": "tool"}]}),
    get("entities", "/api/knowledge/entities?limit=2"),
    get("entities by a part of the name", f"{_VIEW}/entities?q=GRES"),
    get("one entity", _ENTITY),
    get("one entity by its name", f"{_VIEW}/entity?name=PostgreSQL"),
    get("an unknown entity", "/api/knowledge/entities/unknown"),
    get("an entity without a name", f"{_VIEW}/entity"),
    get("aspects", f"{_ENTITY}/aspects"),
    get("attributes", f"{_ENTITY}/aspects/database/attributes"),
    get("attributes of an unknown status", f"{_ENTITY}/aspects/database/attributes?status=x"),
    get("dependencies", f"{_ENTITY}/dependencies?direction=outgoing"),
    get("dependencies of an unknown entity", "/api/knowledge/entities/unknown/dependencies"),
    get("neighbours", f"{_ENTITY}/neighbours"),
    post("pin", f"{_ENTITY}/pin"),
    get("pinned", "/api/knowledge/entities/pinned"),
    get("pinned, with an unknown parameter", "/api/knowledge/entities/pinned?nonsense=1"),
    delete("unpin", f"{_ENTITY}/pin"),
    post("pin an unknown entity", "/api/knowledge/entities/unknown/pin"),
    get("health of entities", "/api/knowledge/entities/health"),
    post("suppress", f"{_ENTITY}/suppress", {"reason": "too general", "weightOverride": 0.2}),
    delete("suppress no longer", f"{_ENTITY}/suppress"),
    post("merge", "/api/knowledge/entities/postgres/merge", {"into": "PostgreSQL"}),
    post("merge into itself", f"{_ENTITY}/merge", {"into": "shop"}),
    post("merge what is merged", "/api/knowledge/entities/postgres/merge", {"into": "shop"}),
    get("an entity with two names", "/api/knowledge/entities/postgres"),
    get("hygiene", "/api/knowledge/hygiene"),
    post("undo the merge", "/api/knowledge/entities/postgres/unmerge"),
    get("stats", "/api/knowledge/stats"),
    get("status of the traversal", "/api/knowledge/traversal/status"),
    post("expand", "/api/knowledge/expand", {"entity": "shop", "question": "port", "maxTokens": 100}),
    post("expand an unknown entity", "/api/knowledge/expand", {"entity": "unknown"}),
    post("expand nothing", "/api/knowledge/expand", {}),
    post("expand sessions", "/api/knowledge/expand/session", {"entityName": "shop"}),
    get("aspects by name", f"{_VIEW}/aspects?entity=shop"),
    get("groups", f"{_VIEW}/groups?entity=shop&aspect=database"),
    get("claims", f"{_VIEW}/claims?entity=shop&aspect=database&group=staging"),
    get("attributes by names", f"{_VIEW}/attributes?entity=shop&kind=constraint"),
    get("outline", f"{_VIEW}/tree?entity=shop"),
    get("communities", "/api/knowledge/communities"),
    post("impact", "/api/graph/impact", {"entityId": "PostgreSQL", "maxDepth": 2}),
    post("path", "/api/graph/path", {"source": "Till", "target": "Shop"}),
    get("constellation", "/api/knowledge/constellation?limit=2"),
)

SCENARIOS = (Scenario("graph", STEPS),)
