"""No part of a request is ignored silently: a wrong type is refused, a field without effect causes a warning.

Against a live daemon.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from signet_actors.cli.main import cli
from tests.support.live_daemon import Client, LiveDaemon

pytestmark = pytest.mark.system

MISSING = "00000000-0000-7000-8000-000000000000"


# fields and parameters that have no effect


def test_a_response_to_a_correct_request_has_no_warnings(room: Client) -> None:
    answer = room.remember("Nothing is wrong here", tags=["a"], agent_id=room.headers["x-signet-agent-id"])
    assert "warnings" not in answer
    assert "warnings" not in room.recall("nothing wrong", limit="5", min_score=0)
    assert "warnings" not in room.get("/api/memories", limit=5, agentId=room.headers["x-signet-agent-id"]).ok()


def test_an_unknown_field_is_accepted_and_named(room: Client) -> None:
    answer = room.remember("The tag is misspelt", tagz="x", metadata={"source_path": "/a", "colour": "red"})
    assert sorted(answer["warnings"]) == ["unknown field: metadata.colour", "unknown field: tagz (did you mean tags?)"]
    assert room.memory(answer["id"])["content"] == "The tag is misspelt"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/memory/recall", {"query": "anything", "nonesuch": 1}),
        ("PATCH", "/api/memory/{id}", {"importance": 0.5, "reason": "r", "nonesuch": 1}),
        ("POST", "/api/memory/modify", {"reason": "r", "nonesuch": 1, "patches": [{"id": "{id}", "importance": 0.4}]}),
        ("POST", "/api/memory/forget", {"ids": ["{id}"], "nonesuch": 1}),
        ("DELETE", "/api/memory/{id}", {"reason": "r", "nonesuch": 1}),
        ("POST", "/api/memory/{id}/recover", {"reason": "r", "nonesuch": 1}),
        ("POST", "/api/pipeline/requeue", {"nonesuch": 1}),
        ("POST", "/api/repair/retention-sweep", {"nonesuch": 1}),
    ],
)
def test_every_route_with_a_body_names_an_unknown_field(room: Client, method: str, path: str, body: Any) -> None:
    memory_id = room.remember(f"Some memory for {method} {path}")["id"]
    if path.endswith("/recover"):
        room.request("DELETE", f"/api/memory/{memory_id}?reason=r").ok()
    raw = json.dumps(body).replace("{id}", memory_id).encode()
    answer = room.request(method, path.replace("{id}", memory_id), raw)
    if answer.status == 429:
        pytest.fail("held apart by another test's repair")
    assert "unknown field: nonesuch" in answer.ok()["warnings"]


def test_a_refusal_names_the_unknown_field_that_may_have_caused_it(room: Client) -> None:
    body = room.post("/api/memory/forget", {"tagz": "x"}).refused(400)
    assert body["warnings"] == ["unknown field: tagz (did you mean tags?)"]


def test_an_unknown_query_parameter_is_named(room: Client) -> None:
    assert room.get("/api/memories", limitt=5).ok()["warnings"] == [
        "unknown query parameter: limitt (did you mean limit?)"
    ]
    answer = room.get("/api/memory/search?q=x&pined=1&tags=a&tags=b").ok()
    assert answer["warnings"] == [
        "the query parameter tags is given more than once; the first value is used",
        "unknown query parameter: pined (did you mean pinned?)",
    ]
    assert "warnings" not in room.get("/health?t=1").ok(), "a probe may add what it likes"


def test_an_answer_that_is_no_json_object_has_its_warnings_in_a_header(room: Client) -> None:
    answer = room.get("/api/memory/export", limit="abc", colour="ré\nd", scöpe=1)
    assert answer.status == 200
    assert json.loads(answer.headers["x-signet-warnings"]) == [
        "unknown query parameter: colour",
        "unknown query parameter: scöpe (did you mean scope?)",
        "limit is not an integer; the default 500 was used",
    ]
    assert "x-signet-warnings" not in room.get("/api/memory/export").headers
    assert room.get("/api/features", colour=1).ok()["memory"] is True


def test_the_header_with_warnings_is_bounded(room: Client) -> None:
    name = "colour" * 6
    repeated = "&".join(f"{name}={number}" for number in range(60))
    answer = room.get(f"/api/memory/export?{repeated}")
    assert answer.status == 200
    assert len(answer.headers["x-signet-warnings"]) <= 4096
    told = json.loads(answer.headers["x-signet-warnings"])
    assert told[0] == f"the query parameter {name} is given more than once; the first value is used"
    assert (len(told) > 10, told[-1]) == (True, "and more")


def test_an_object_as_a_query_parameter_is_unknown_and_not_suggested(room: Client) -> None:
    (warning,) = room.get("/api/memory/search?q=x&time=2026-05-13").ok()["warnings"]
    assert warning.startswith("unknown query parameter: time")
    assert "did you mean time?" not in warning


@pytest.mark.parametrize("field", ["aggregate", "saveAggregate", "includeRecalled"])
def test_a_flag_that_is_false_causes_no_warning(room: Client, field: str) -> None:
    assert "warnings" not in room.post("/api/memory/recall", {"query": "editor", field: False}).ok()
    assert "warnings" not in room.get("/api/memory/search", q="editor", **{field: "false"}).ok()


@pytest.mark.parametrize(
    "body",
    [
        {"time": {"start": "2026-05-13", "mode": "timeline"}},
        {"time": {"start": "2026-05-13", "facets": ["occurred", "captured"]}},
        {"query": "what did we do on May 13, 2026"},
        {"query": "2026/05/13 editor"},
        {"query": "editor of yesterday", "now": "2026-05-13", "timeZone": "Europe/Berlin"},
    ],
)
def test_a_time_causes_no_warning(room: Client, body: dict[str, Any]) -> None:
    assert "warnings" not in room.post("/api/memory/recall", {"query": "editor", **body}).ok()


def test_a_remember_warns_of_fields_that_are_not_stored(room: Client) -> None:
    triple = {"source": "vault", "relationship": "part_of", "target": "bank", "sourceType": "system", "colour": "red"}
    said = {"entity": "vault", "aspect": "place", "attributes": [{"value": "is in the cellar", "claimKey": "place"}]}
    named = room.remember("The vault has a name", structured={"entities": [triple], "aspects": [said]})
    assert named["warnings"] == ["unknown field: structured.entities[0].colour"]
    answer = room.remember("The vault moved", structured={"entities": []}, transcript="User: hello")
    assert answer["warnings"] == ["transcript is not stored, because sourceId names no session"]


def test_an_import_names_the_line_of_an_unknown_field(room: Client) -> None:
    agent = room.headers["x-signet-agent-id"]
    lines = [{"content": "First line", "agentId": agent}, {"content": "Second line", "colour": 1, "agentId": agent}]
    raw = b"\n".join(json.dumps(line).encode() for line in lines)
    answer = room.request("POST", "/api/memory/import", raw).ok()
    assert (answer["imported"], answer["warnings"]) == (2, ["line 2: unknown field: colour"])


def test_the_command_line_prints_warnings_to_stderr(daemon: LiveDaemon) -> None:
    lines = b'{"content": "One of many lines"}\n' * 3 + b'{"content": "The odd one", "colour": 1}\n'
    result = CliRunner().invoke(cli, ["--url", f"http://127.0.0.1:{daemon.port}", "import", "-"], input=lines)
    assert "warning: line 4: unknown field: colour" in result.stderr
    assert "warning" not in result.stdout


# wrong types


@pytest.mark.parametrize(
    ("target", "error", "field"),
    [
        ("/api/memories?pinned=yes", "pinned must be a boolean", "pinned"),
        ("/api/memories?importance_min=x", "importance_min must be a number", "importance_min"),
        ("/api/memories?importanceMin=0.5x", "importanceMin must be a number", "importanceMin"),
        ("/api/memories?deleted=maybe", "deleted must be a boolean", "deleted"),
        ("/api/memory/search?q=x&pinned=yes", "pinned must be a boolean", "pinned"),
        ("/api/memory/search?q=x&min_score=high", "min_score must be a number", "min_score"),
        ("/api/memory/search?q=x&includeRecalled=perhaps", "includeRecalled must be a boolean", "includeRecalled"),
        ("/api/memory/search?q=x&aggregate=perhaps", "aggregate must be a boolean", "aggregate"),
        ("/memory/search?pinned=yes", "pinned must be a boolean", "pinned"),
        ("/memory/search?distinct=whom", "distinct must be who", "distinct"),
        (f"/api/memory/{MISSING}?include_deleted=yes", "include_deleted must be a boolean", "include_deleted"),
        ("/api/embeddings?vectors=yes", "vectors must be a boolean", "vectors"),
        ("/api/memory/export?after=abc", "after must be an integer", "after"),
        (
            "/api/memories?agentId=a/b",
            "agentId must be an agent's name: 1 to 200 characters, no slash, backslash, colon or control character",
            "agentId",
        ),
    ],
)
def test_a_query_parameter_of_a_wrong_type_is_refused(room: Client, target: str, error: str, field: str) -> None:
    room.get(target).refused(400, error=error, code="invalid_request", field=field)


@pytest.mark.parametrize(
    ("target", "default"),
    [
        ("/api/memories?limit=abc", 100),
        ("/api/memories?offset=abc", 0),
        ("/api/memory/search?q=x&limit=abc", 10),
        ("/api/memory/review-queue?limit=abc", 50),
        ("/api/pipeline/runs?offset=abc", 0),
        ("/api/embeddings?limit=abc", 600),
    ],
)
def test_a_non_integer_in_a_query_gives_the_default_and_a_warning(room: Client, target: str, default: int) -> None:
    name = "offset" if "offset" in target else "limit"
    assert room.get(target).ok()["warnings"] == [f"{name} is not an integer; the default {default} was used"]


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/api/memory/recall", {"query": "x", "limit": "abc"}, "limit"),
        ("/api/memory/recall", {"query": "x", "limit": []}, "limit"),
        ("/api/memory/recall", {"query": "x", "pinned": "yes"}, "pinned"),
        ("/api/memory/recall", {"query": "x", "importance_min": "half"}, "importance_min"),
        ("/api/memory/recall", {"query": "x", "importance_min": 2}, "importance_min"),
        ("/api/memory/recall", {"query": "x", "tags": {"a": 1}}, "tags"),
        ("/api/memory/recall", {"query": "x", "sessionKey": 5}, "sessionKey"),
        ("/api/memory/recall", {"query": "x", "expand": "maybe"}, "expand"),
        ("/api/memory/recall", {"query": "x", "time": "today"}, "time"),
        ("/api/memory/recall", {"query": 5}, "query"),
        ("/api/memory/forget", {"query": "x", "limit": "abc"}, "limit"),
        ("/api/memory/forget", {"query": "x", "force": "maybe"}, "force"),
        ("/api/memory/forget", {"ids": "not-a-list"}, "ids"),
        ("/api/memory/remember", {"content": "x", "structured": []}, "structured"),
        ("/api/memory/remember", {"content": "x", "changed_by": 5}, "changed_by"),
        ("/api/memory/remember", {"content": "x", "agent_id": "a:b"}, "agent_id"),
        ("/api/memory/modify", {"reason": 5, "patches": [{}]}, "reason"),
        ("/api/repair/retention-sweep", {"confirmClock": "true"}, "confirmClock"),
    ],
)
def test_a_field_of_a_wrong_type_is_refused(room: Client, path: str, body: dict[str, Any], field: str) -> None:
    room.post(path, body).refused(400, code="invalid_request", field=field)


@pytest.mark.parametrize("name", ["a/b", "a\\b", "agent:a", "tab\tbed", "x" * 201])
def test_an_agent_name_in_a_header_follows_the_rule_of_the_configuration(daemon: LiveDaemon, name: str) -> None:
    answer = daemon.api.request("GET", "/api/memories", headers={"x-signet-agent-id": name})
    assert answer.refused(400)["field"] == "x-signet-agent-id"
