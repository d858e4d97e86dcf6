"""The tools of MCP follow from the declared operations.

Source: docs/compatibility.md "MCP".
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from signet_actors.errors import InvalidRequest
from signet_actors.operations.tools import TOOLS, ToolRequest, input_schema, tool_request, with_origin

SCHEMAS = {name: input_schema(*declared) for name, declared in TOOLS.items()}


def request(name: str, /, **arguments: Any) -> ToolRequest:
    return tool_request(*TOOLS[name], arguments)


def test_the_tools_for_memories_sessions_and_knowledge_are_offered() -> None:
    verbs = {"search", "store", "get", "list", "modify", "forget", "feedback"}
    views = {f"knowledge_{view}" for view in ("entities", "tree", "expand")}
    assert set(TOOLS) == {*(f"memory_{verb}" for verb in verbs), "session_search", "session_bypass", *views}


def test_the_required_arguments_are_those_of_the_operation() -> None:
    assert {name: schema["required"] for name, schema in SCHEMAS.items()} == {
        "memory_search": ["query"],
        "memory_store": ["content"],
        "memory_get": ["id"],
        "memory_list": [],
        "memory_modify": ["id", "reason"],
        "memory_forget": ["id", "reason"],
        "session_search": ["query"],
        "session_bypass": ["session_key", "enabled"],
        "memory_feedback": ["session_key", "ratings"],
        "knowledge_entities": [],
        "knowledge_tree": ["entity"],
        "knowledge_expand": ["entity_name"],
    }


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("memory_search", {"query", "limit", "type", "min_score", "session_key"}),
        ("memory_store", {"content", "type", "importance", "tags"}),
        ("memory_list", {"limit", "offset", "type"}),
        ("knowledge_expand", {"entity_name", "aspect_filter", "question", "max_tokens"}),
        ("memory_modify", {"id", "content", "type", "importance", "tags", "pinned", "reason"}),
    ],
)
def test_a_tool_offers_the_arguments_of_the_reference(name: str, arguments: set[str]) -> None:
    assert arguments <= set(SCHEMAS[name]["properties"])


@pytest.mark.parametrize("name", TOOLS)
def test_every_argument_has_one_type_and_a_description_or_a_range(name: str) -> None:
    for argument, schema in SCHEMAS[name]["properties"].items():
        assert isinstance(schema["type"], str), argument
        assert "$ref" not in str(schema), argument
        assert "description" in schema or "minimum" in schema, argument


@pytest.mark.parametrize("name", TOOLS)
def test_every_offered_argument_exists_and_no_tool_changes_what_only_the_owner_may(name: str) -> None:
    tool, operation = TOOLS[name]
    assert set(SCHEMAS[name]["properties"]) == set(tool.fields)
    assert not (operation.owner_only and operation.has_effect) or name == "session_bypass"


def test_no_tool_lets_a_model_choose_the_agent_or_force_a_deletion() -> None:
    for schema in SCHEMAS.values():
        assert not {"agent_id", "agentId", "force", "changed_by"} & set(schema["properties"])


def test_arguments_of_a_change_are_its_body() -> None:
    made = request("memory_modify", id="m 1?x", reason="wrong", tags=None, pinned=True)
    assert made.operation.name == "memories.patch"
    assert made.path == {"id": "m 1?x"}
    assert (made.query, made.body) == ({}, {"reason": "wrong", "pinned": True})


def test_a_parameter_of_the_path_has_the_name_of_the_reference() -> None:
    """The reference's tool is session_bypass with session_key and enabled."""
    made = request("session_bypass", session_key="agent:a b", enabled=True, key="other")
    assert (made.path, made.body) == ({"key": "agent:a b"}, {"enabled": True})
    assert made.warnings == ["unknown argument: key"]
    with pytest.raises(InvalidRequest, match="session_key is required"):
        request("session_bypass", enabled=True)


def test_arguments_of_a_read_are_its_query() -> None:
    made = request("memory_list", limit=5, tags=["a", "b"], pinned=True, type=None)
    assert (made.query, made.body) == ({"limit": "5", "tags": "a,b", "pinned": "true"}, None)


@pytest.mark.parametrize(
    ("given", "sent"),
    [(5, "5"), (100, "100"), (101, "100"), ("1000", "100"), (10**30, "100"), ("101x", "100"), ("x", "x")],
)
def test_a_list_for_a_model_has_at_most_a_hundred_rows(given: Any, sent: str) -> None:
    assert request("memory_list", limit=given).query == {"limit": sent}


def test_a_stored_memory_has_the_origin_that_its_model_does_not_name() -> None:
    stored = with_origin(request("memory_store", content="x", project=None), harness="codex", project="/p")
    assert stored.body == {"content": "x", "who": "codex", "project": "/p", "prefixes": False}
    named = with_origin(request("memory_store", content="x", project="mine"), harness=None, project="/p")
    assert named.body == {"content": "x", "project": "mine", "prefixes": False}
    everywhere = with_origin(request("memory_store", content="x", project=""), harness=None, project="/p")
    assert everywhere.body == {"content": "x", "project": "", "prefixes": False}
    search = request("memory_search", query="x")
    assert with_origin(search, harness="codex", project="/p") == search


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("shop", "/home/you/shop"),
        ("shop/", "/home/you/shop"),
        (".", "/home/you/shop/."),
        ("./src", "/home/you/shop/./src"),
        ("..", "/home/you/shop/.."),
        ("../till", "/home/you/shop/../till"),
        ("other", "other"),
        (".shop", ".shop"),
        ("org/shop", "org/shop"),
        ("/a/shop", "/a/shop"),
    ],
)
def test_the_name_of_the_directory_in_which_a_model_works_means_that_directory(given: str, meant: str) -> None:
    for tool, arguments in (("memory_store", {"content": "x"}), ("memory_search", {"query": "x"}), ("memory_list", {})):
        made = with_origin(request(tool, **arguments, project=given), harness=None, project="/home/you/shop")
        assert (made.query if made.body is None else made.body)["project"] == meant
        same = request(tool, **arguments, project=given)
        unnamed = with_origin(same, harness=None, project=None)
        assert (unnamed.query if unnamed.body is None else unnamed.body)["project"] == given


@pytest.mark.parametrize("directory", ["/", "."])
def test_all_projects_are_not_the_directory_that_has_no_name(directory: str) -> None:
    for tool, arguments in (("memory_store", {"content": "x"}), ("memory_search", {"query": "x"}), ("memory_list", {})):
        made = with_origin(request(tool, **arguments, project=""), harness=None, project=directory)
        assert (made.query if made.body is None else made.body)["project"] == ""


def test_what_a_tool_does_not_offer_is_not_passed_on() -> None:
    made = request("memory_search", query="x", agent_id="bob", agentId="bob", scope="s", sessionKey="k", nonsense=1)
    assert made.body == {"query": "x", "sessionKey": "k", "answering": True, "saveAggregate": False}
    assert made.warnings == [f"unknown argument: {name}" for name in ("agent_id", "agentId", "scope", "nonsense")]


def test_many_unknown_arguments_are_named_in_part() -> None:
    made = request("memory_search", query="x", **{f"n{number}": 1 for number in range(500)})
    assert len(made.warnings) == 21
    assert made.warnings[-1] == "and more"


OTHER_PATHS = ["jobs/1", "review-queue", "search", "export", "..", ".", "m1/history"]


@pytest.mark.parametrize("value", [None, "", 7, "a\nb", "a\0b", "x" * 501, ["a"], *OTHER_PATHS])
def test_an_id_that_no_path_can_hold_is_refused(value: Any) -> None:
    with pytest.raises(InvalidRequest) as refused:
        request("memory_get", id=value)
    assert refused.value.field == "id"


@pytest.mark.parametrize("value", [{"a": 1}, [1], [["a"]]])
def test_a_value_that_no_query_can_hold_is_refused(value: Any) -> None:
    with pytest.raises(InvalidRequest) as refused:
        request("memory_list", tags=value)
    assert refused.value.field == "tags"


@pytest.mark.parametrize("module", ["signet_actors.gateway.routes", "signet_actors.cli.main", "signet_actors.cli.mcp"])
def test_the_sdk_is_not_imported_by_those_who_do_not_use_it(module: str) -> None:
    script = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "signet_actors" in said.stdout.split()
    assert not {"mcp", "mcp_types", "pydantic"} & set(said.stdout.split())
