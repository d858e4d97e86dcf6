"""What models send as arguments of the tools, and what they get of an answer.

Source: docs/compatibility.md "MCP"; docs/guides/mcp.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from signet_actors.errors import InvalidRequest
from signet_actors.features.session_memories.api import FeedbackRequest
from signet_actors.operations.memories import ListMemoriesRequest
from signet_actors.operations.memory_changes import PatchRequest
from signet_actors.operations.recall import RecallRequest
from signet_actors.operations.remember import RememberRequest
from signet_actors.operations.request_reader import read_request
from signet_actors.operations.tools import TOOLS, for_model, input_schema, tool_request, with_times
from signet_actors.protocol.searcher import ListMemories, MemoryListed, Recall
from tests.actor.test_mcp_endpoint import call, edge_of, text_of
from tests.actor.test_memory_routes_recall import found, row
from tests.support.edge import RunningEdge

TOKYO = datetime.fromisoformat("2026-11-28T05:18:00+09:00")
READ: dict[str, Any] = {
    "memory_search": RecallRequest,
    "memory_store": RememberRequest,
    "memory_list": ListMemoriesRequest,
    "memory_modify": PatchRequest,
    "memory_feedback": FeedbackRequest,
}


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEdge]:
    with edge_of(Path(tmp_path_factory.mktemp("arguments"))) as running:
        running.bus.answers[Recall] = found(row(content="tea"))
        running.bus.answers[ListMemories] = MemoryListed([], 0, 0, 0, 0)
        yield running


def meant(tool: str, **arguments: Any) -> Any:
    """Return the request that the operation reads for the call."""
    required = {"memory_search": {"query": "q"}, "memory_store": {"content": "c"}}.get(tool, {})
    made = tool_request(*TOOLS[tool], {**required, **arguments})
    return read_request(READ[tool], body=made.body, query=made.query, now_ms=0, warnings=[])


ARRAYS = {
    '["a","b"]': ("a", "b"),
    '["a", "b"]': ("a", "b"),
    ' ["a"] ': ("a",),
    '[\n  "a",\n  "b"\n]': ("a", "b"),
    '["two words", "b"]': ("two words", "b"),
    '["a,b","c"]': ("a", "b", "c"),
    '["a","a"," b "]': ("a", "b"),
    '["\\u65e5\\u672c","日本"]': ("日本",),
    '["say \\"hi\\""]': ('say "hi"',),
    "[]": (),
    '[""]': (),
    # what is no array of strings in JSON is text, with commas between tags
    "a,b": ("a", "b"),
    "a": ("a",),
    "null": ("null",),
    "[auth]": ("[auth]",),
    "[a,b]": ("[a", "b]"),
    '["a"': ('["a"',),
    "[1]": ("[1]",),
    '"a"': ('"a"',),
    '{"a":1}': ('{"a":1}',),
    "[[REDACTED:key]]": ("[[REDACTED:key]]",),
}
NUMBERS = {"0.9": 0.9, "1": 1.0, "0": 0.0, " 0.25 ": 0.25, ".5": 0.5, "1e-1": 0.1, "+0.5": 0.5, "1.": 1.0}
NO_NUMBERS = ("", "high", "null", "0,9", "90%", "0.9 or so", "nan", "1e999", "٣", "[0.9]", "true")
"""Texts that are no number, in a body."""


def test_an_array_of_tags_in_a_string_is_the_array() -> None:
    for text, tags in ARRAYS.items():
        assert meant("memory_store", tags=text).tags == tags, text
        assert meant("memory_modify", id="m1", reason="r", tags=text).tags == tags, text
        assert meant("memory_search", tags=text).tags == tags, text
        assert meant("memory_list", tags=text).tags == tags, text


def test_a_number_in_a_string_is_the_number() -> None:
    for text, number in NUMBERS.items():
        assert meant("memory_store", importance=text).importance == number, text
        assert meant("memory_modify", id="m1", reason="r", importance=text).importance == number, text
        found = meant("memory_search", min_score=text, min_relevance=text, limit="7")
        assert (found.min_score, found.min_relevance, found.limit) == (number, number, 7), text
        (score,) = meant("memory_feedback", session_key="s", ratings={"memory01": text}).ratings.values()
        assert score == number, text
    for text in NO_NUMBERS:
        for tool, argument in (("memory_store", "importance"), ("memory_search", "min_score")):
            with pytest.raises(InvalidRequest, match=f"{argument} must be"):
                meant(tool, **{argument: text})
    for text in ("2", "-0.1", "1e3"):
        with pytest.raises(InvalidRequest, match="must be a number between 0 and 1"):
            meant("memory_store", importance=text)


def test_an_object_in_a_string_is_the_object() -> None:
    for text in ('{"memory01": 1}', ' {"memory01": "1"} ', '{\n "memory01": 1.0\n}'):
        assert meant("memory_feedback", session_key="s", ratings=text).ratings == {"memory01": 1.0}, text
    for text in ("", "{", "memory01: 1", "[1]", "null", '"{}"', "1"):
        with pytest.raises(InvalidRequest, match="must be an object"):
            meant("memory_feedback", session_key="s", ratings=text)


@pytest.mark.parametrize("text", ["true", "True", "TRUE", "1"])
def test_a_boolean_in_a_string_is_the_boolean(text: str) -> None:
    assert meant("memory_store", pinned=text).pinned is True
    assert meant("memory_search", expand=text).expand is True
    assert meant("memory_list", pinned=text).pinned is True


@pytest.mark.parametrize("tool", ["memory_search", "memory_store", "memory_list", "memory_modify"])
def test_null_for_an_optional_argument_is_no_argument(tool: str) -> None:
    declared, operation = TOOLS[tool]
    needed = {"id": "m1", "reason": "r", "query": "q", "content": "c"}
    given = {name: value for name, value in needed.items() if name in declared.fields}
    if tool == "memory_modify":
        del given["content"]
    without = tool_request(declared, operation, given)
    assert tool_request(declared, operation, {**dict.fromkeys(declared.fields), **given}) == without


TIMES = {
    # text: the first moment, and the last one, of a reader in Tokyo, where it is Saturday, November 28
    "yesterday": ("2026-11-26T15:00:00.000Z", "2026-11-27T14:59:59.999Z"),
    "Yesterday": ("2026-11-26T15:00:00.000Z", "2026-11-27T14:59:59.999Z"),
    " yesterday ": ("2026-11-26T15:00:00.000Z", "2026-11-27T14:59:59.999Z"),
    "today": ("2026-11-27T15:00:00.000Z", "2026-11-28T14:59:59.999Z"),
    "gestern": ("2026-11-26T15:00:00.000Z", "2026-11-27T14:59:59.999Z"),
    "3 days ago": ("2026-11-24T15:00:00.000Z", "2026-11-25T14:59:59.999Z"),
    "last week": ("2026-11-15T15:00:00.000Z", "2026-11-22T14:59:59.999Z"),
    "last month": ("2026-09-30T15:00:00.000Z", "2026-10-31T14:59:59.999Z"),
    "in March": ("2026-02-28T15:00:00.000Z", "2026-03-31T14:59:59.999Z"),
    "May 13, 2026": ("2026-05-12T15:00:00.000Z", "2026-05-13T14:59:59.999Z"),
    "2026-11-27": ("2026-11-26T15:00:00.000Z", "2026-11-27T14:59:59.999Z"),
    "2026/11/27": ("2026-11-26T15:00:00.000Z", "2026-11-27T14:59:59.999Z"),
    # a time is a time, and other words are none
    "2026-11-27T00:00:00Z": ("2026-11-27T00:00:00.000Z",) * 2,
    "2026-11-27T09:00:00+09:00": ("2026-11-27T00:00:00.000Z",) * 2,
    "2026-11-27 14:00:00": ("2026-11-27T05:00:00.000Z",) * 2,
    "yesterday or so": None,
    "the deploy of last week": None,
    "2026-02-30": None,
    "soon": None,
    "null": None,
}


def test_the_words_and_dates_of_a_time_are_those_of_the_reader() -> None:
    for text, expected in TIMES.items():
        for tool, more in (("memory_list", {}), ("memory_search", {"query": "q"})):
            made = with_times(tool_request(*TOOLS[tool], {**more, "since": text, "until": text}), TOKYO)
            if expected is None:
                with pytest.raises(InvalidRequest, match="since must be a valid ISO timestamp"):
                    read_request(READ[tool], body=made.body, query=made.query, now_ms=0, warnings=[])
            else:
                read = read_request(READ[tool], body=made.body, query=made.query, now_ms=0, warnings=[])
                assert (read.since, read.until) == expected, text


def test_a_schema_for_models_does_not_demand_a_time_where_words_will_do(edge: RunningEdge) -> None:
    for tool in ("memory_list", "memory_search"):
        assert "format" not in json.dumps(input_schema(*TOOLS[tool]))
    call(edge, "memory_list", since="yesterday", until="2026-11-01")
    asked = edge.bus.asked[-1]
    assert isinstance(asked, ListMemories)
    assert asked.filters.until.startswith("2026-11-0")


def test_a_model_gets_the_content_of_an_answer_and_nothing_of_how_it_came_about(edge: RunningEdge) -> None:
    result = call(edge, "memory_search", query="tea")
    (told,) = result["structuredContent"]["results"]
    assert json.loads(text_of(result)) == result["structuredContent"]
    assert set(result["structuredContent"]) == {"results"}
    assert {"id", "content", "relevance", "created_at"} <= set(told) <= SEARCHED
    assert not {None, False} & {value for value in told.values() if not isinstance(value, list | float)}
    assert call(edge, "memory_list")["structuredContent"] == {"memories": []}
    assert call(edge, "memory_search", query="tea", nonsense=1)["structuredContent"]["warnings"] == [
        "unknown argument: nonsense"
    ]


SEARCHED = {"id", "content", "truncated", "relevance", "type", "tags", "pinned", "project", "created_at"}
REPLY: dict[str, Any] = {"id": "m1", "content": "tea", "type": "fact", "created_at": "2026-11-28T10:00:00.000Z"}


@pytest.mark.parametrize(
    ("tool", "reply", "told"),
    [
        ("memory_search", {"results": [], "query": "q", "method": "hybrid", "meta": {"noHits": True}}, {"results": []}),
        (
            "memory_search",
            {"results": [{**REPLY, "relevance": 0.0, "truncated": True, "score": 0.3, "scope": None}], "sources": {}},
            {"results": [{**REPLY, "relevance": 0.0, "truncated": True}]},
        ),
        (
            "memory_search",
            {"results": [], "sources": {"s-1": "User: tea?"}, "warnings": ["w"]},
            {"results": [], "sources": {"s-1": "User: tea?"}, "warnings": ["w"]},
        ),
        (
            "memory_store",
            {"id": "m1", "type": "fact", "tags": None, "pinned": False, "importance": 0.8, "content": "tea",
             "embedded": True, "deduped": False},
            {"id": "m1", "type": "fact", "content": "tea"},
        ),
        (
            "memory_store",
            {"id": "m1", "type": "fact", "tags": "a,b", "pinned": True, "deduped": True, "redacted": True,
             "redactions": ["api-key"], "content": "tea"},
            {"id": "m1", "type": "fact", "tags": "a,b", "pinned": True, "deduped": True, "redacted": True,
             "redactions": ["api-key"], "content": "tea"},
        ),
        (
            "memory_store",
            {"chunk_count": 2, "ids": ["m1", "m2"], "group_id": "g", "chunked": True},
            {"ids": ["m1", "m2"]},
        ),
        (
            "memory_list",
            {"memories": [{**REPLY, "pinned": 1, "importance": 0.0, "version": 1, "who": None}], "total": 7,
             "stats": {"total": 7}},
            {"memories": [{**REPLY, "pinned": 1, "importance": 0.0}], "total": 7},
        ),
        (
            "memory_get",
            {**REPLY, "pinned": 0, "is_deleted": 0, "tags": None, "access_count": 3, "embedding_model": "m",
             "project": "/p", "who": "codex", "updated_at": REPLY["created_at"]},
            {**REPLY, "project": "/p", "who": "codex", "updated_at": REPLY["created_at"]},
        ),
        (
            "memory_modify",
            {"id": "m1", "status": "updated", "currentVersion": 1, "newVersion": 2, "contentChanged": True,
             "embedded": True, "success": True},
            {"id": "m1", "status": "updated"},
        ),
        (
            "memory_forget",
            {"id": "m1", "status": "deleted", "currentVersion": None, "newVersion": 2, "success": True},
            {"id": "m1", "status": "deleted"},
        ),
        (
            "session_search",
            {"query": "q", "count": 1, "hits": [{"sessionKey": "s", "project": None, "updatedAt": "t", "excerpt": "e",
             "rank": 1, "agentId": "default", "harness": "codex", "role": "user", "at": None}]},
            {"hits": [{"sessionKey": "s", "updatedAt": "t", "excerpt": "e", "harness": "codex", "role": "user"}]},
        ),
        ("session_bypass", {"key": "s", "bypassed": False}, {"key": "s", "bypassed": False}),
    ],
)  # fmt: skip
def test_what_a_model_reads_of_a_reply(tool: str, reply: dict[str, Any], told: dict[str, Any]) -> None:
    assert for_model(TOOLS[tool][0], reply) == told
