"""What the Python client sends is what the gateway reads, for every declared operation; its methods and types follow
the declarations.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Final, get_args, get_origin
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec
import pytest

from signet_actors.client import AsyncClient, Client, daemon_calls, memory_calls
from signet_actors.client.encoding import HttpReply, encode_body, encode_target, read_reply
from signet_actors.client.errors import InvalidReply
from signet_actors.client.exchange import Caller, Exchange, Send
from signet_actors.client.location import Location
from signet_actors.client.methods import Methods
from signet_actors.operations.batch_modify import ModifyPatch
from signet_actors.operations.forget import (
    FORGET_MEMORIES,
    ForgetPreviewReply,
    ForgetReply,
    ForgetRequest,
)
from signet_actors.operations.mcp import MCP
from signet_actors.operations.memories import GET_MEMORY, LIST_MEMORIES, GetMemoryRequest, ListMemoriesRequest
from signet_actors.operations.memory_changes import PatchRequest
from signet_actors.operations.operation import Operation
from signet_actors.operations.recall import RECALL, LegacySearchRequest, RecallRequest
from signet_actors.operations.registry import OPERATIONS, SUBJECTS
from signet_actors.operations.remember import REMEMBER, RememberChunksReply, RememberReply, RememberRequest
from signet_actors.operations.request_fields import FilterFields
from signet_actors.operations.request_reader import read_request, request_fields
from signet_actors.operations.temporal import RecallTime

AT: Final = 1_800_000_000_000
ID: Final = "6f1c3b52-6c52-4d10-9d6e-4a7e7a2f0b11"


def request_of(operation: Operation, fields: dict[str, Any]) -> msgspec.Struct:
    query = None if operation.in_body else {name: str(value) for name, value in fields.items()}
    body = fields if operation.in_body else None
    found: msgspec.Struct = read_request(operation.request, body=body, query=query, now_ms=AT, warnings=[])
    return found


def read_back(operation: Operation, target: str, body: bytes | None) -> msgspec.Struct:
    """The request that the gateway reads from what was sent."""
    return request_as(operation, dict(parse_qsl(urlsplit(target).query)), json.loads(body) if body else {})


def request_as(operation: Operation, query: dict[str, str], body: dict[str, Any]) -> msgspec.Struct:
    warnings: list[str] = []
    found: msgspec.Struct = read_request(
        operation.request,
        body=body if operation.in_body else None,
        query=query if operation.in_query else None,
        now_ms=AT,
        warnings=warnings,
    )
    assert warnings == []
    return found


@pytest.mark.parametrize(
    "operation",
    [one for one in OPERATIONS if one.lines is None and one is not MCP],  # the SDK of MCP reads its own messages
    ids=lambda operation: operation.name,
)
def test_the_gateway_reads_the_request_that_was_given_for_every_operation(operation: Operation) -> None:
    names = {name for name in operation.example if "{" + name + "}" in operation.paths[0]}
    request = request_of(operation, {name: value for name, value in operation.example.items() if name not in names})
    path = {name: str(operation.example[name]) for name in names}
    target, body = encode_target(operation, path, request), encode_body(operation, request)
    assert urlsplit(target).path == operation.paths[0].format(**path)
    assert read_back(operation, target, body) == request


def test_flags_lists_and_texts_of_a_query_are_read_as_they_were() -> None:
    request = ListMemoriesRequest(tags=("a b", "ü&="), pinned=True, who="x y+z", deleted=True, importance_min=0.5)
    target = encode_target(LIST_MEMORIES, {}, request)
    assert read_back(LIST_MEMORIES, target, None) == request


def test_an_object_cannot_stand_in_a_query() -> None:
    class Request(msgspec.Struct):
        time: RecallTime

    with pytest.raises(TypeError, match="time"):
        encode_target(LIST_MEMORIES, {}, Request(RecallTime("2026-01-01")))


@pytest.mark.parametrize("value", ["x?y", "x#y", "%2e", "%2F", "ü", "a b", "..%2f", "search-1"])
def test_a_parameter_of_the_path_cannot_leave_its_place(value: str) -> None:
    target = encode_target(GET_MEMORY, {"id": value}, GetMemoryRequest())
    path = urlsplit(target).path
    assert path.startswith("/api/memory/")
    assert path.count("/") == 3
    assert unquote(path.rpartition("/")[2]) == value


@pytest.mark.parametrize("value", ["", ".", "..", "a/b", "../jobs/1", "jobs/1", "review-queue", "search"])
def test_a_parameter_that_changes_the_path_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match=r"^id "):
        encode_target(GET_MEMORY, {"id": value}, GetMemoryRequest())


@pytest.mark.parametrize("path", [{}, {"id": "x", "run": "y"}, {"run": "y"}])
def test_the_parameters_of_the_path_must_be_those_that_are_declared(path: dict[str, str]) -> None:
    with pytest.raises(TypeError, match=r"/api/memory/\{id\}"):
        encode_target(GET_MEMORY, path, GetMemoryRequest())


PREVIEW: Final = {"count": 0, "requiresConfirm": False, "confirmToken": "t", "candidates": [], "mode": "preview"}
FORGOTTEN: Final = {"requested": 1, "deleted": 1, "results": [], "mode": "execute"}
CHUNKS: Final = {"chunked": True, "chunk_count": 2, "ids": ["a", "b"], "group_id": "g"}


@pytest.mark.parametrize(
    ("operation", "body", "kind"),
    [
        (FORGET_MEMORIES, PREVIEW, ForgetPreviewReply),
        (FORGET_MEMORIES, FORGOTTEN, ForgetReply),
        (REMEMBER, CHUNKS, RememberChunksReply),
    ],
)
def test_a_reply_is_the_declared_one_that_it_fits(operation: Operation, body: dict[str, Any], kind: type) -> None:
    got = read_reply(operation, HttpReply(200, {}, json.dumps(body).encode()), request_id="r")
    assert type(got.value) is kind


def test_a_reply_that_fits_none_of_the_declared_ones_is_an_error() -> None:
    with pytest.raises(InvalidReply, match=r"memories\.forget"):
        read_reply(FORGET_MEMORIES, HttpReply(200, {}, b'{"mode": "other"}'), request_id="r")


def test_a_field_that_a_newer_daemon_adds_is_ignored() -> None:
    got = read_reply(FORGET_MEMORIES, HttpReply(200, {}, json.dumps({**FORGOTTEN, "new": 1}).encode()), request_id="r")
    assert got.value == ForgetReply(1, 1, [])


# The methods


def sent_by(exchange: Exchange[Any]) -> Send:
    """The first request of an exchange."""
    step = next(exchange)
    assert isinstance(step, Send)
    return step


CALLER: Final = Caller(Location("http://127.0.0.1:3850"))


def request_sent(operation: Operation, exchange: Exchange[Any]) -> Any:
    sent = sent_by(exchange)
    assert sent.method == operation.method
    return read_back(operation, sent.url, sent.body)


def test_a_remember_sends_what_it_was_given() -> None:
    noon = datetime(2026, 2, 3, 12, tzinfo=UTC)
    exchange = memory_calls.remember(
        CALLER, "x", type="fact", tags=["a", "b"], importance=0.5, pinned=False, created_at=noon, idempotency_key="k"
    )
    assert request_sent(REMEMBER, exchange) == RememberRequest(
        content="x",
        type="fact",
        tags=("a", "b"),
        importance=0.5,
        pinned=False,
        created_at="2026-02-03T12:00:00.000Z",
        idempotency_key="k",
    )


def test_a_recall_sends_its_filters_and_times() -> None:
    day = RecallTime("2026-02-03T00:00:00.000Z", mode="filter")
    exchange = memory_calls.recall(CALLER, "q", limit=3, min_relevance=0.5, tags="a,b", since="2026-01-01", time=day)
    got = request_sent(RECALL, exchange)
    assert (got.query, got.limit, got.min_relevance, got.tags) == ("q", 3, 0.5, ("a", "b"))
    assert (got.since, got.time.start, got.time.mode) == ("2026-01-01T00:00:00.000Z", day.start, "filter")


def test_a_time_without_a_zone_is_a_local_one() -> None:
    local = datetime(2026, 2, 3, 12)  # noqa: DTZ001 - that is the case
    sent = json.loads(sent_by(memory_calls.recall(CALLER, "q", since=local)).body or b"")
    assert datetime.fromisoformat(sent["since"]) == local.astimezone()


@pytest.mark.parametrize(
    ("words", "expression", "query"),
    [('deploy "on" friday', False, '"deploy" "on" "friday"'), ("deploy* NOT friday", True, "deploy* NOT friday")],
)
def test_a_search_is_for_words_unless_it_is_an_expression(words: str, expression: bool, query: str) -> None:
    sent = sent_by(memory_calls.search(CALLER, words, expression=expression))
    assert dict(parse_qsl(urlsplit(sent.url).query))["q"] == query


def test_empty_tags_of_an_update_are_sent_and_absent_ones_are_not() -> None:
    assert json.loads(sent_by(memory_calls.update(CALLER, ID, reason="r", tags=[])).body or b"")["tags"] == []
    assert "tags" not in json.loads(sent_by(memory_calls.update(CALLER, ID, reason="r", pinned=True)).body or b"")


def test_patches_are_sent_as_they_are() -> None:
    sent = sent_by(memory_calls.update_many(CALLER, [ModifyPatch(id=ID, tags=())], reason="r"))
    assert json.loads(sent.body or b"") == {"patches": [{"id": ID, "tags": []}], "reason": "r"}


def test_a_forget_of_many_sends_the_conditions_of_its_preview() -> None:
    conditions: Any = {"query": "x", "tags": ["a"], "limit": 3, "force": True}
    preview = request_sent(FORGET_MEMORIES, memory_calls.preview_forget(CALLER, **conditions))
    execute = memory_calls.forget_many(CALLER, reason="r", confirm_token="t", **conditions)
    assert preview == ForgetRequest(query="x", tags=("a",), limit=3, force=True)
    assert request_sent(FORGET_MEMORIES, execute) == msgspec.structs.replace(
        preview, mode="execute", reason="r", confirm_token="t"
    )


def test_the_filters_of_the_methods_are_those_of_the_requests() -> None:
    """The agent is an argument of the client."""
    declared = {field.name for field in request_fields(FilterFields)} - {"agent_id"}
    assert set(memory_calls.Filters.__annotations__) == declared


@pytest.mark.parametrize(
    ("function", "request_type", "more", "left_out"),
    [
        (memory_calls.remember, RememberRequest, set(), {"structured", "transcript", "metadata"}),
        (memory_calls.update, PatchRequest, {"id"}, set()),
        (memory_calls.recall, RecallRequest, set(), {"explain_id"}),
        (memory_calls.list_memories, ListMemoriesRequest, set(), set()),
        (memory_calls.search, LegacySearchRequest, {"words", "expression"}, {"query", "distinct"}),
        (memory_calls.forget_many, ForgetRequest, set(), {"mode", "if_version"}),
    ],
)
def test_the_parameters_of_a_method_are_fields_of_its_request(
    function: Callable[..., Any], request_type: type[msgspec.Struct], more: set[str], left_out: set[str]
) -> None:
    named = set(inspect.signature(function).parameters) - {"caller", "filters"} - more
    fields = {name for field in request_fields(request_type) for name in (field.name, *field.spellings[:1])}
    assert named <= fields
    assert left_out <= fields
    defaults = {field.name: field.default for field in request_fields(request_type)}
    for name, parameter in inspect.signature(function).parameters.items():
        if name in named and parameter.default not in {inspect.Parameter.empty, None}:
            assert parameter.default == defaults[name] or defaults[name] is None, name


def test_both_clients_have_every_method_with_a_description() -> None:
    names = {name for name in vars(Methods) if not name.startswith("_")}
    assert {"remember", "recall", "search", "get", "list", "update", "forget", "forget_many", "recover"} <= names
    assert {"history", "job", "wait_for_job", "export_page", "import_memories", "status", "health"} <= names
    for client in (Client, AsyncClient):
        for name in names | {"call", "export_memories", "close"}:
            assert inspect.getdoc(getattr(client, name)), name


def declared_types() -> Iterator[tuple[str, Any, Operation]]:
    for subject in SUBJECTS:
        for name, hint in subject.__annotations__.items():
            value = getattr(subject, name)
            if isinstance(value, Operation):
                yield name, eval(hint, vars(subject)), value


def test_the_type_of_an_operation_names_its_request_and_its_reply() -> None:
    found = list(declared_types())
    assert {operation.name for _, _, operation in found} == {operation.name for operation in OPERATIONS}
    for name, hint, operation in found:
        assert get_args(hint), f"{name} is not declared as Final[Operation[its request, its reply]]"
        (declared,) = get_args(hint)
        request, reply = get_args(declared)
        expected = operation.success
        assert (request, get_origin(reply) if expected is dict else reply) == (operation.request, expected), name


def test_a_job_is_asked_for_by_its_id() -> None:
    assert sent_by(daemon_calls.job(CALLER, "j1")).url.endswith("/api/memory/jobs/j1")


def test_the_reply_of_a_remember_is_typed() -> None:
    body = {"id": "m", "type": "fact", "tags": None, "pinned": False, "importance": 0.8, "content": "x"}
    raw = json.dumps({**body, "embedded": True, "deduped": False}).encode()
    assert isinstance(read_reply(REMEMBER, HttpReply(200, {}, raw), request_id="r").value, RememberReply)
