"""Input on which Python, msgspec, SQLite or FTS5 raise unexpected exceptions, and the check that prevents each.

Traps with a test elsewhere: NUL and lone surrogates in requests (test_normalization, test_memory_routes), NaN and
infinity (test_field_types, test_fusion, test_group_commit), invalid or too deep bodies on the bus (test_mailbox), FTS5
syntax with a real index (test_recall).

Source: docs/reliability.md "Runtime traps".
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any, cast

import apsw
import msgspec
import pytest

import signet_actors
from signet_actors.domain.query_words import fts_match
from signet_actors.errors import InvalidRequest
from signet_actors.gateway.http.responses import encode_json
from signet_actors.gateway.http.route import Call
from signet_actors.operations.field_types import MAX_VERSION
from signet_actors.operations.forget import ForgetRequest
from signet_actors.operations.memories import ListMemoriesRequest
from signet_actors.operations.memory_changes import PatchRequest
from signet_actors.operations.recall import RecallRequest
from signet_actors.operations.request_reader import read_request

LARGEST_STORED = 2**63 - 1


def read(raw: bytes) -> dict[str, Any]:
    """A request's body as a handler gets it."""
    unused = cast("Any", None)
    return Call(state=unused, route=unused, path={}, query={}, headers={}, raw=raw, trace_id="t").json_object()


def of_body(kind: Any, **body: Any) -> Any:
    return read_request(kind, body=body, now_ms=0, warnings=[])


@pytest.mark.parametrize("sign", [b"", b"-"])
def test_a_number_of_5000_digits_is_refused_or_clamped(sign: bytes) -> None:
    try:
        number = read(b'{"n":%s}' % (sign + b"9" * 5000))["n"]
    except InvalidRequest:
        return  # by the parser
    for field in ("if_version", "importance"):
        with pytest.raises(InvalidRequest):
            of_body(PatchRequest, reason="r", **{field: number})
    assert 1 <= of_body(ForgetRequest, limit=number).limit <= 200


@pytest.mark.parametrize("number", [2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**30])
def test_an_integer_that_sqlite_cannot_bind_never_reaches_it(number: int) -> None:
    with pytest.raises(InvalidRequest):
        of_body(PatchRequest, reason="r", if_version=number)
    with pytest.raises(InvalidRequest):
        of_body(PatchRequest, reason="r", if_version=str(number))
    assert abs(of_body(ForgetRequest, limit=number).limit) <= 200
    page = read_request(ListMemoriesRequest, query={"offset": str(number)}, now_ms=0, warnings=[])
    assert abs(page.offset) <= 10**9
    assert MAX_VERSION <= LARGEST_STORED


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
@pytest.mark.parametrize("depth", [40_000])
@pytest.mark.parametrize("field", [b"content", b"unknown"])
def test_a_deeply_nested_body_is_refused_even_in_an_unknown_field(opening: bytes, depth: int, field: bytes) -> None:
    closing = b"]" if opening == b"[" else b"1}"
    raw = b'{"content":"x","%s":%s%s}' % (field, opening * depth, closing[:-1] + closing[-1:] * depth)
    with pytest.raises(InvalidRequest, match="Invalid JSON body"):
        read(raw)


@pytest.mark.parametrize("raw", [b'"\xff"', b'{"a":"\xed\xa0\x80"}', b"\xff\xfe{\0}\0", b'{"a":"\xc0\xaf"}'])
def test_a_body_that_is_not_utf_8_is_not_valid(raw: bytes) -> None:
    with pytest.raises(InvalidRequest, match="Invalid JSON body"):
        read(raw)


def test_a_lone_surrogate_in_a_response_is_replaced() -> None:
    body = {"a\ud800": ["x\udfff", ("\udc00y",)], "plain": "\U0001f600"}
    assert msgspec.json.decode(encode_json(body)) == {"a\ufffd": ["x\ufffd", ["\ufffdy"]], "plain": "\U0001f600"}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e300, -1e300])
def test_a_number_that_would_be_bound_as_null_is_refused(value: float) -> None:
    with pytest.raises(InvalidRequest):
        of_body(ForgetRequest, importance_min=value)
    with pytest.raises(InvalidRequest):
        of_body(RecallRequest, query="x", min_score=value)


@pytest.mark.parametrize(
    "text",
    ["a-b", "*", "^a", "content:x", "NEAR(a b)", '"', "(" * 300 + ")" * 300, "a\0b", "\0", "{a}:b", "x" * 60_000,
     "AND", "NOT a", "+", "a OR", "''", "a'; DROP TABLE t; --", "\ud800", " ".join(f"w{n}" for n in range(5000))],
)  # fmt: skip
def test_no_query_becomes_fts5_syntax(text: str) -> None:
    expression = fts_match(text)
    if expression is None:
        return
    connection = apsw.Connection(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE t USING fts5(content, cjk)")
        assert connection.execute("SELECT count(*) FROM t WHERE t MATCH ?", (expression,)).get == 0
    finally:
        connection.close()


def test_a_query_has_at_most_64_terms() -> None:
    expression = fts_match(" ".join(f"word{number}" for number in range(5000)))
    assert expression is not None
    assert expression.count(" OR ") < 64


def test_no_statement_uses_like() -> None:
    """Its patterns raise beyond 50 kB, read NUL as an end, and % and _ in them would be syntax. The one GLOB, over the
    keys of chunks, has a pattern that is escaped and some 12 kB long at most."""
    package = Path(signet_actors.__file__).parent
    sources = [path for room in ("store", "writer", "searcher") for path in (package / room).rglob("*.*")]
    texts = {path: path.read_text(encoding="utf-8") for path in sources if path.suffix in {".py", ".sql"}}
    assert len(texts) > 30
    assert [path.name for path, text in texts.items() if re.search(r"\bLIKE\b", text)] == []
