"""The command graph: how an entity is named, what a pipe gets, and how a merge is undone. Source: docs/cli.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.testing import Result

    from tests.support.scripted_daemon import ScriptedDaemon

ENTITIES = "/api/knowledge/entities"
ENTITY = "/api/knowledge/navigation/entity"
HYGIENE = "/api/knowledge/hygiene"
MISSING = {"error": "Entity not found", "code": "not_found"}


def entity(name: str, **more: Any) -> dict[str, Any]:
    about = {"id": name.lower(), "name": name, "entityType": "tool", "mentions": 2, "pinned": False}
    counts = {"aspectCount": 1, "attributeCount": 3, "constraintCount": 1, "dependencyCount": 4}
    return {"entity": {**about, **more}, **counts}


def test_entities_are_printed_one_a_line(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    daemon.on("GET", ENTITIES, {"items": [entity("Shop", pinned=True, suppressed=True), entity("Till")]})
    said = signet("graph", "list", "sh", "--type", "tool", "-n", "7", "--agent", "ada")
    assert said.stdout.splitlines() == ["Shop\ttool\t2\t3\t1\t4\tpinned, suppressed", "Till\ttool\t2\t3\t1\t4\t"]
    assert daemon.asked[-1].query == {"agentId": "ada", "limit": "7", "type": "tool", "q": "sh"}
    assert signet("graph", "--agent", "ada").stdout == said.stdout
    assert daemon.asked[-1].query == {"agentId": "ada", "limit": "20"}


def test_a_pipe_gets_each_claim_of_an_entity_with_its_place(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    claims = [{"claimKey": "port", "kind": "attribute", "preview": "5433"}]
    rules = [{"claimKey": None, "kind": "constraint", "preview": "never on Fridays"}]
    groups = [{"groupKey": "staging", "claims": claims}, {"groupKey": "general", "claims": rules}]
    daemon.on("GET", ENTITY, entity("Shop"))
    daemon.on("GET", "/api/knowledge/navigation/tree", {"items": [{"aspect": {"name": "database"}, "groups": groups}]})
    link = {"target": "Till", "entityType": "tool", "type": "uses", "kind": "relation", "direction": "incoming"}
    daemon.on("GET", f"{ENTITIES}/shop/neighbours", {"items": [{**link, "strength": 1.0}]})
    said = signet("graph", "Shop")
    assert said.stdout.splitlines() == [
        "attribute\tdatabase\tstaging\tport\t5433",
        "constraint\tdatabase\t\t\tnever on Fridays",
        "relation\t\t\t\t<- uses Till",
    ]
    assert signet("graph", "show", "Shop").stdout == said.stdout
    assert signet("graph", "neighbours", "Shop").stdout == "Till\ttool\t<- uses\t1.00\n"


@pytest.mark.parametrize(
    ("containing", "all_", "told"),
    [
        (["PostgreSQL"], [], "the nearest: `PostgreSQL`"),
        ([], ["Postgres", "Shop"], "the nearest: `Postgres`"),
        ([], ["Shop"], "no entity is called 'postgrs'"),
    ],
)
def test_a_name_that_is_not_known_is_answered_with_those_like_it(
    daemon: ScriptedDaemon, signet: Callable[..., Result], containing: list[str], all_: list[str], told: str
) -> None:
    daemon.on("GET", ENTITY, MISSING, status=404)
    daemon.script(
        "GET", ENTITIES, {"items": [entity(name) for name in containing]}, {"items": [entity(name) for name in all_]}
    )
    said = signet("graph", "pin", "postgrs")
    assert (said.exit_code, said.stdout) == (2, "")
    assert told in said.stderr


def test_two_entities_that_are_not_connected_end_with_code_one(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    daemon.on("GET", ENTITY, entity("Shop"))
    daemon.on("POST", "/api/graph/path", {"found": False, "source": {"name": "Shop"}, "steps": []})
    said = signet("graph", "path", "Shop", "Till")
    assert (said.exit_code, said.stdout) == (1, "Shop and Till are not connected.\n")
    steps = [{"name": "Till", "type": "uses", "direction": "incoming"}]
    daemon.script("POST", "/api/graph/path", {"found": True, "source": {"name": "Shop"}, "steps": steps})
    assert signet("graph", "path", "Shop", "Till").stdout == "Shop <- uses Till\n"


def test_changes_name_the_entity_and_send_what_was_given(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    daemon.on("GET", ENTITY, entity("Shop"))
    for method, path in (("POST", "pin"), ("DELETE", "pin"), ("POST", "suppress"), ("DELETE", "suppress")):
        daemon.on(method, f"{ENTITIES}/shop/{path}", {"done": True})
    assert signet("graph", "pin", "shop").stdout == "Pinned Shop.\n"
    assert signet("graph", "unpin", "shop").stdout == "Shop is not pinned.\n"
    said = signet("graph", "suppress", "shop", "--reason", "too general", "--weight", "0.2")
    assert said.stdout == "Suppressed Shop.\n"
    assert daemon.asked[-1].body == {"reason": "too general", "weightOverride": 0.2}
    assert signet("graph", "unsuppress", "shop").stdout == "Shop is not suppressed.\n"


def test_a_merge_is_made_once_and_undone_by_its_name(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    daemon.on("GET", HYGIENE, {"merged": []})
    daemon.on("GET", ENTITY, entity("Postgres"))
    daemon.on("POST", f"{ENTITIES}/postgres/merge", {"merged": True})
    assert signet("graph", "merge", "postgres", "PostgreSQL").exit_code == 0
    assert signet("graph", "unmerge", "postgres").exit_code == 2
    daemon.script("GET", HYGIENE, {"merged": [{"id": "p1", "name": "Postgres", "into": "PostgreSQL"}]})
    daemon.on("POST", f"{ENTITIES}/p1/unmerge", {"merged": False})
    again = signet("graph", "merge", "Postgres", "Shop")
    assert (again.exit_code, again.stderr) == (2, "signet: Postgres is another name of PostgreSQL already\n")
    assert signet("graph", "unmerge", "POSTGRES").stdout == "POSTGRES is an entity of its own again.\n"
