"""Hostile requests: valid requests of every route, randomly changed into requests that no client should send.

A request is determined by a seed and a number, so any of them can be sent again on its own. The valid requests come
from the declared operations, so a new one is covered at once.

Source: docs/reliability.md R24 and "Runtime traps"; docs/security.md A1-A5, A8, A10-A13, A15, A17.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import quote, quote_from_bytes

import msgspec
from msgspec import inspect

from signet_actors.gateway.http.route import Route
from signet_actors.operations.field_types import Flag
from signet_actors.operations.mcp import MCP
from signet_actors.operations.request_reader import request_fields, request_schemas
from signet_actors.operations.tools import TOOLS, input_schema
from tests.support.raw_http import encoded

WORDS: Final = (
    "amber",
    "birch",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "heath",
    "inlet",
    "jetty",
    "knoll",
    "marsh",
)

TEXTS: Final[tuple[str, ...]] = (
    # empty, white space, invisible characters, changes of direction
    "", " ", "\t\r\n", "\u00a0", "\ufeff", "\u200b", "\u202e\u2066x", "\u2028", "\x7f", "\x1b[31mred",
    # characters that SQLite, FTS5 and UTF-8 cannot represent
    "\0", "a\0b", "\ud800", "x\udfff\ud800y", "\U0010ffff\ufffe\uffff",
    # characters that look alike, fold, grow or decompose
    "p\u0430yp\u0430l", "\ufb01ne", "A\u030a", "\u212b", "\u0130stanbul", "Stra\u00dfe", "e" + "\u0301" * 300,
    "\u0660\u0661\u0662", "\U0001f468\u200d\U0001f469\u200d\U0001f467" * 20, "\u6f22\u5b57\u4eee\u540d" * 50,
    # SQL, LIKE, FTS5
    "'", '"', "`", "\\", "%", "_", "%_\\%", "'; DROP TABLE memories;--", "' OR 1=1 --", "x' UNION SELECT 1,2,3--",
    "a-b", "*", "a*", "^a", "-a", "a + b", "NEAR(a b, 5)", "NEAR(", "content:x", "memories_fts:x", "{content}: x",
    "AND", "OR OR", "NOT x", '"unclosed', "a AND (b", "(" * 300 + ")" * 300, '"' * 999, " OR ".join(["a"] * 500),
    # paths, links, commands, templates, headers, markup
    "../../../../etc/passwd", "..\\..\\x", "/etc/passwd", "file:///etc/passwd", "\\\\host\\share", "CON", ".", "..",
    "http://127.0.0.1:1/", "$(id)", "`id`", "; id", "| id", "${jndi:ldap://127.0.0.1/x}", "{{7*7}}", "%s%n%x%d",
    "x\r\nX-Injected: yes", "<script>alert(1)</script>", "<!--", "]]>", "]]><x/>",
    # numbers and booleans as text
    "0", "-1", "-0", "1.5", "12abc", "0x10", "1e5", "1e999", "NaN", "Infinity", "null", "undefined", "true", "yes",
    str(2**31), str(2**53 + 1), str(2**63 - 1), str(2**63), str(2**64), str(-(2**63) - 1), "9" * 5000, "+1", " 3 ",
    # times of every shape
    "2026-02-30", "2026-13-01", "0000-00-00", "0001-01-01", "9999-12-31", "2026-01-01", "2026-1-1", "20260101",
    "2026-W10-1", "2026-366", "9999-12-31T23:59:60Z", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59",
    "2026-01-01T24:00:00Z", "2026-01-01T00:00:00.999999999999Z", "2026-01-01T00:00:00+99:99", "+275760-09-13T00:00Z",
    "-000001-01-01T00:00:00Z", "1700000000", "1700000000000", "yesterday", "2026-01-01T00:00:00Z[UTC]", "T", "Z",
    # our own syntax
    "critical:", "critical: critical: x", "[a,b]: text", "[]: x", "[" * 5000, "agent:x:y", "agent::", "session:",
    "default", "preview", "execute", "global", "private", "archived", "constraint", "document_chunk", ",", ",,a,,",
    # secrets, which must not break the redaction
    "AKIA" + "IOSFODNN7EXAMPLE", "ghp_" + "a1B2" * 9, "-----BEGIN RSA " + "PRIVATE KEY-----\nMII",
    "password=" + "x" * 40,
    # lengths near the limits
    "a" * 64, "a" * 65, "a" * 128, "a" * 129, "a" * 200, "a" * 201, "a" * 500, "a" * 501, "a" * 4097, "x y " * 2000,
)  # fmt: skip

NUMBERS: Final[tuple[int | float, ...]] = (
    0, 1, -1, 2, 100, 101, 0.5, -0.0, 1.5, 1e-320, 1e300, -1e300, 2**31, 2**32, 2**53, 2**53 + 1, 2**63 - 1, 2**63,
    2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**40,
)  # fmt: skip

TOKENS: Final[tuple[bytes, ...]] = (
    b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e999", b"9" * 5000, b"-" + b"9" * 5000,
    b"1." + b"0" * 5000 + b"1",
    b"1e" + b"9" * 400, b"01", b"+1", b".5", b"1.", b"0x10", b"'x'", b"tru", b"True", b"None", b"undefined", b"",
    b"/*c*/1", b'"\\ud800"', b'"\\udc00\\ud800"', b'"\\u0000"', b'"\\x41"', b'"\\u12"', b'"\n"', b'"\x00"', b'"\xff"',
    b'"\xc0\xaf"', b'"\xed\xa0\x80"', b'"\xf4\x90\x80\x80"', b'"\xe2\x82"', b'"', b"[" * 2000 + b"]" * 2000,
    b"[" * 2000, b'{"a":' * 2000 + b"1" + b"}" * 2000, b"[" * 200 + b"]" * 200, b'{"a":1,"a":2}', b'{"":{"":0}}',
    b"[1,]", b"{,}", b'{"a"}', b"[" + b"0," * 3000 + b"0]",
)  # fmt: skip

IDS: Final[tuple[bytes, ...]] = (
    b"..%2f..%2f..%2fetc%2fpasswd", b"../../etc/passwd", b"..", b".", b"%2e%2e", b"%2e%2e%2f", b"..;/", b"..%5c..%5c",
    b"%00", b"a%00b", b"%c0%ae%c0%ae", b"%0d%0aX-Injected:%20yes", b"%ff%fe", b"%", b"%zz", b"%2", b"%25252e", b"%2F",
    b"x" * 7000, b"'%20OR%201=1--", b"%25", b"*", b"_", b"{id}", b"%7Bid%7D", b"0", b"-1", b"null", b"~", b"a;b=c",
    b"a,b", b"%F0%9F%98%80", b"%ED%A0%80", b"%E2%80%AE", b"a%20b", b"+", b"%09", b"history", b"recover", b"search",
    b"\xff", b"\xc3\xa9",
)  # fmt: skip

HEADERS: Final[tuple[tuple[bytes, bytes], ...]] = (
    (b"Host", b"evil.example"), (b"Host", b""), (b"Host", b"0.0.0.0"), (b"Host", b"localhost.evil.example"),
    (b"Origin", b"http://evil.example"), (b"Origin", b"null"), (b"Origin", b""),
    (b"Sec-Fetch-Site", b"cross-site"), (b"Sec-Fetch-Site", b"none"), (b"Sec-Fetch-Site", b"same-origin"),
    (b"Sec-Fetch-Mode", b"cors"), (b"Sec-Fetch-Mode", b"no-cors"), (b"Sec-Fetch-Dest", b"image"),
    (b"X-Forwarded-For", b"127.0.0.1"), (b"Forwarded", b"for=127.0.0.1"), (b"X-Real-IP", b"127.0.0.1"),
    (b"Via", b"1.1 x"),
    (b"Content-Encoding", b"gzip"), (b"Content-Encoding", b"deflate, br"), (b"Content-Encoding", b"identity"),
    (b"Content-Type", b"text/plain"), (b"Content-Type", b"application/x-www-form-urlencoded"), (b"Content-Type", b""),
    (b"Content-Type", b"multipart/form-data; boundary=x"), (b"Content-Type", b"application/json; charset=utf-16"),
    (b"Content-Type", b"\xff\xfe"), (b"Accept", b"text/html"), (b"Accept", b"application/xml;q=9"),
    (b"Accept", b"\x80"),
    (b"Accept-Encoding", b"gzip;q=1, *;q=0"), (b"Range", b"bytes=0-1"), (b"If-None-Match", b"*"),
    (b"Cookie", b"a=b; " * 200),
    (b"Authorization", b"Bearer "), (b"Authorization", b"Bearer " + b"A" * 8000), (b"Authorization", b"Basic Og=="),
    (b"Idempotency-Key", b""), (b"Idempotency-Key", b"k"), (b"Idempotency-Key", b"k" * 201),
    (b"Idempotency-Key", b"\xff"),
    (b"X-Signet-Actor", b"\xe9\x80"), (b"X-Signet-Actor", b"a" * 201), (b"X-Signet-Actor", b"x\ty"),
    (b"X-Signet-Actor-Type", b"pipeline"), (b"X-Signet-Actor-Type", b"root"), (b"X-Signet-Session-Id", b"s" * 300),
    (b"X-Signet-Agent-Id", b""), (b"X-Signet-Agent-Id", b"a" * 129), (b"X-Signet-Agent-Id", b"\xff\xfe"),
    (b"X-Signet-Agent-Id", b"%00"), (b"X-Signet-Session-Key", b"agent:mallory:1"), (b"X-Signet-Request-Id", b"\x01"),
    (b"X-HTTP-Method-Override", b"DELETE"), (b"Connection", b"close"), (b"Connection", b"upgrade"),
    (b"Upgrade", b"websocket"),
    (b"Expect", b"200-ok"), (b"TE", b"trailers"), (b"Max-Forwards", b"0"), (b"X-Long", b"x" * 20_000),
    (b"X-Long", b"x" * 70_000),
    (b"X-Empty", b""), (b"X-Control", b"a\x01b"), (b"X-Nul", b"a\0b"), (b"", b"x"), (b"Bad Name", b"x"),
    (b"X\xff", b"x"),
)  # fmt: skip

METHODS: Final = (b"HEAD", b"OPTIONS", b"PUT", b"TRACE", b"PATCH", b"DELETE", b"GET", b"POST", b"PROPFIND", b"get")

LARGE_EVERY: Final = 400
"""One request in this many has a body of a megabyte or more, which costs as much as hundreds of others."""


@dataclass(frozen=True)
class HostileRequest:
    """One request. ``what`` names its route and its changes. ``mild`` means that it is unchanged."""

    what: str
    method: bytes
    target: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes | None
    mild: bool = False

    def encoded(self) -> bytes:
        return encoded(self.method, self.target, self.headers, self.body)


class Attacker:
    """Creates request number ``n`` of a seed. ``ids``: existing memories that the request may name and hit."""

    def __init__(self, routes: Sequence[Route], ids: Sequence[str], seed: str) -> None:
        self._routes = routes
        self._ids = ids
        self._seed = seed

    def request(self, number: int) -> HostileRequest:
        """Return the request; the same for the same seed, number, ids and routes. Cycles through the routes."""
        chance = random.Random(f"{self._seed}:{number}")
        route = self._routes[number % len(self._routes)]
        request = self._valid(route, chance)
        if chance.random() < 0.1:
            return replace(request, mild=True)
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            change = chance.choice(self._changes(request))
            request = change(request, chance)
        if request.body is not None and len(request.body) > 200_000 and number % LARGE_EVERY >= len(self._routes):
            request = replace(request, body=request.body[:50_000])
        return request

    # valid requests

    def _valid(self, route: Route, chance: random.Random) -> HostileRequest:
        path = re.sub(r"\{\w+\}", lambda _: chance.choice(self._ids), route.path)
        operation = route.operation
        schemas = request_schemas(operation.request)
        query = [
            (name, self._parameter(name, "boolean" if flag else schemas[name].get("type", "string"), chance))
            for name, flag, required in (
                (field.spellings[0], isinstance(field.type, Flag), field.required)
                for field in request_fields(operation.request)
            )
            if operation.in_query and (required or chance.random() < 0.25)
        ]
        target = path + ("?" + "&".join(f"{name}={quote(value)}" for name, value in query) if query else "")
        body = None
        if operation.body is not None:
            body = json.dumps(self._value(inspect.type_info(operation.body), "", chance)).encode()
        headers = [(b"Host", b"127.0.0.1")]
        if operation is MCP:
            body = json.dumps(self._tool_call(chance)).encode()
            headers.append((b"Accept", b"application/json, text/event-stream"))
        if body is not None:
            headers.append((b"Content-Type", b"application/json"))
        if chance.random() < 0.5:
            headers.append((b"X-Signet-Agent-Id", f"mallory-{chance.randrange(5)}".encode()))
        return HostileRequest(
            f"{operation.method} {route.path}", operation.method.encode(), target.encode(), tuple(headers), body
        )

    def _tool_call(self, chance: random.Random) -> dict[str, Any]:
        """Return the message that calls a tool with some of its arguments."""
        name, declared = chance.choice(list(TOOLS.items()))
        schema = input_schema(*declared)
        arguments = {
            each: ["a"] if kind["type"] == "array" else self._parameter(each, kind["type"], chance)
            for each, kind in schema["properties"].items()
            if each in schema["required"] or chance.random() < 0.25
        }
        return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}

    def _parameter(self, name: str, kind: str, chance: random.Random) -> str:
        if kind == "boolean":
            return chance.choice(("true", "false", "1", "0"))
        if kind == "integer":
            return str(chance.randrange(1, 50))
        if kind == "number":
            return str(round(chance.random(), 2))
        return str(self._text(name, chance))

    def _text(self, name: str, chance: random.Random) -> str:
        if name in {"id", "ids"}:
            return chance.choice(self._ids)
        if name.endswith(("_at", "At")) or name in {"since", "until", "start", "end", "validFrom", "validUntil"}:
            return f"20{chance.randrange(20, 30)}-0{chance.randrange(1, 9)}-1{chance.randrange(9)}T00:00:00Z"
        if name == "file":
            return chance.choice(("SOUL.md", "USER.md", "agent.yaml"))
        if name in {"agentId", "agent_id"}:
            return f"mallory-{chance.randrange(5)}"
        if name == "type":
            return chance.choice(("fact", "rule", "preference"))
        if name in {"scope", "project", "who", "sourceType", "source_type"}:
            return chance.choice(WORDS)
        if name == "confirm_token":
            return "0" * 64
        return " ".join(chance.choices(WORDS, k=chance.randrange(1, 8)))

    def _value(self, kind: inspect.Type, name: str, chance: random.Random) -> Any:
        match kind:
            case inspect.StructType(fields=fields):
                return {
                    field.encode_name: self._value(field.type, field.encode_name, chance)
                    for field in fields
                    if field.required or chance.random() < 0.3
                }
            case inspect.UnionType(types=types):
                return self._value(chance.choice(types), name, chance)
            case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
                return [self._value(item, name, chance) for _ in range(chance.randrange(1, 4))]
            case inspect.LiteralType(values=values):
                return chance.choice(values)
            case inspect.BoolType():
                return chance.random() < 0.5
            case inspect.IntType():
                return chance.randrange(1, 50)
            case inspect.FloatType():
                return round(chance.random(), 2)
            case inspect.NoneType():
                return None
            case _:
                return self._text(name, chance)

    # changes

    def _changes(self, request: HostileRequest) -> list[Callable[[HostileRequest, random.Random], HostileRequest]]:
        changes: list[Callable[[HostileRequest, random.Random], HostileRequest]] = [
            _other_query, _other_query, _other_path, _other_headers, _other_method,
        ]  # fmt: skip
        if request.body is None:
            return [*changes, _unexpected_body]
        return [*changes, *[_other_field] * 6, *[_other_token] * 3, *[_other_bytes] * 3, _other_body]


def _told(request: HostileRequest, done: str, **changes: Any) -> HostileRequest:
    return replace(request, what=f"{request.what}, {done}", **changes)


def _document(request: HostileRequest) -> dict[str, Any] | None:
    try:
        document = json.loads(request.body or b"")
    except (ValueError, RecursionError):
        return None  # an earlier change made it invalid
    return document if isinstance(document, dict) else None


def _spelt(document: Any) -> bytes:
    return json.dumps(document).encode()  # ASCII: lone surrogates are escapes


def _other_field(request: HostileRequest, chance: random.Random) -> HostileRequest:
    """Put an invalid value into one field, known or unknown, in either spelling."""
    document = _document(request)
    if document is None:
        return _other_bytes(request, chance)
    holder = document
    for value in document.values():  # also inside metadata, time and patches
        inner = value[0] if isinstance(value, list) and value else value
        if isinstance(inner, dict) and chance.random() < 0.5:
            holder = inner
    names = [*holder, *holder, *EVERY_FIELD]
    name = chance.choice(names)
    if chance.random() < 0.2:
        name = re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()
    what = chance.randrange(8)
    if what == 0 and name in holder:
        del holder[name]
        return _told(request, f"without {name}", body=_spelt(document))
    value: Any
    if what <= 3:
        value = chance.choice(TEXTS)
    elif what == 4:
        value = chance.choice(NUMBERS)
    elif what == 5:
        value = chance.choice((None, True, False, [], {}, [[]], [None], {"a": 1}, [1, "a"], [""], [{}], ["x"] * 300))
    elif what == 6:
        value = [chance.choice(TEXTS) for _ in range(chance.randrange(1, 5))]
    else:
        value = {chance.choice(TEXTS): chance.choice(TEXTS)}
    holder[name] = value
    return _told(request, f"{name}={str(value)[:40]!a}", body=_spelt(document))


EVERY_FIELD: Final = (
    "content", "query", "type", "tags", "who", "project", "scope", "importance", "pinned", "sourceId", "sourceType",
    "idempotencyKey", "createdAt", "validFrom", "validUntil", "agentId", "agent_id", "visibility", "transcript",
    "metadata", "limit", "min_score", "importance_min", "since", "until", "time", "aggregate", "aggregateBudget",
    "sessionKey", "mode", "ids", "reason", "force", "confirm_token", "if_version", "patches", "changed_by", "file",
    "title", "confirmClock",
    # mass assignment: fields that only the daemon may set
    "id", "version", "is_deleted", "deleted_at", "seq", "content_hash", "embedding_seq", "actor_type", "actorType",
    "updated_by", "updatedBy", "access_count", "__proto__", "constructor", "",
)  # fmt: skip


def _other_token(request: HostileRequest, chance: random.Random) -> HostileRequest:
    """Put text that no JSON encoder writes into one field, or repeat its name."""
    document = _document(request)
    if document is None:
        return _other_bytes(request, chance)
    name = chance.choice([*document, *EVERY_FIELD[:20]])
    token = chance.choice(TOKENS)
    rest = _spelt({key: value for key, value in document.items() if key != name or chance.random() < 0.3})
    added = json.dumps(name).encode() + b":" + token
    if chance.random() < 0.5:
        body = b"{" + added + (b"," if rest != b"{}" else b"") + rest[1:]
    else:
        body = rest[:-1] + (b"," if rest != b"{}" else b"") + added + b"}"
    return _told(request, f"{name}:{token[:30]!r}", body=body)


def _other_bytes(request: HostileRequest, chance: random.Random) -> HostileRequest:
    """Cut, duplicate, reverse or re-encode bytes of the body."""
    body = request.body or b"{}"
    at = chance.randrange(len(body)) if body else 0
    what = chance.randrange(12)
    match what:
        case 0:
            body, done = body[:at], "cut"
        case 1:
            body, done = body[:at] + bytes([chance.randrange(256)]) + body[at + 1 :], "a byte turned"
        case 2:
            body, done = body[:at] + chance.randbytes(chance.randrange(1, 9)) + body[at:], "bytes inserted"
        case 3:
            body, done = body + body, "doubled"
        case 4:
            body, done = b"\xef\xbb\xbf" + body, "with a byte order mark"
        case 5:
            codec = chance.choice(("utf-16", "utf-16-le", "utf-32", "utf-7"))
            body, done = body.decode("latin-1").encode(codec), codec
        case 6:
            body, done = gzip.compress(body, mtime=0), "gzip without saying so"
        case 7:
            body, done = body + chance.choice((b"\0", b"garbage", b"}", b"]", b",", b"\x1a", b" " * 1000)), "a tail"
        case 8:
            body, done = (
                chance.choice((b")]}'\n", b"\0", b"data=", b"<?xml version='1.0'?>", b" " * 5000)) + body,
                "a head",
            )
        case 9:
            body, done = body.replace(b'"', b"'"), "other quotes"
        case 10:
            body, done = chance.randbytes(chance.randrange(1, 300)), "noise"
        case _:
            body, done = body[::-1], "backwards"
    return _told(request, done, body=body)


def _other_body(request: HostileRequest, chance: random.Random) -> HostileRequest:
    """Replace the body by another document, sometimes a large one."""
    document = _document(request) or {}
    text = next((name for name, value in document.items() if isinstance(value, str)), "content")
    bodies: tuple[Callable[[], bytes], ...] = (
        lambda: b"", lambda: b" ", lambda: b"null", lambda: b"[]", lambda: b"{}", lambda: b'"x"', lambda: b"0",
        lambda: b"true", lambda: _spelt([document]), lambda: b"a=1&b=2", lambda: b'--x\r\nContent-Disposition: x\r\n',
        lambda: b'{"content":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        lambda: b'{"x":' * 50_000 + b"1" + b"}" * 50_000,
        lambda: _spelt({**document, "x": [[[[0] * 10] * 10] * 10] * 5}),
        lambda: _spelt({**document, **{f"field{number}": number for number in range(5000)}}),
        lambda: _spelt({**document, text: "word " * 4000}),
        lambda: _spelt({**document, text: "x" * 1_100_000}),
        lambda: _spelt({**document, text: "x" * 12_000_000}),
    )  # fmt: skip
    body = chance.choice(bodies)()
    return _told(request, f"body of {len(body)}: {body[:30]!r}", body=body)


def _unexpected_body(request: HostileRequest, chance: random.Random) -> HostileRequest:
    body = chance.choice((b"{}", b"x", b"\0" * 100, b"[" * 3000, b'{"limit":1}', b"x" * 100_000))
    return _told(request, f"a body {body[:20]!r}", body=body)


def _other_query(request: HostileRequest, chance: random.Random) -> HostileRequest:
    """Put an invalid value into a query parameter, known or unknown, once or repeatedly, in any encoding."""
    path, mark, query = request.target.partition(b"?")
    names = [part.partition(b"=")[0] for part in query.split(b"&") if part]
    name = chance.choice([*names, *(quote(field).encode() for field in (*EVERY_FIELD, "q", "k", "offset", "distinct"))])
    what = chance.randrange(7)
    match what:
        case 0 | 1 | 2:
            value = quote_from_bytes(chance.choice(TEXTS).encode("utf-8", "surrogatepass")).encode()[:6000]
        case 3:
            value = str(chance.choice(NUMBERS)).encode()
        case 4:
            value = chance.choice(IDS)[:3000]
        case 5:
            value = chance.choice((b"%", b"%z", b"%u0041", b"\xff\xfe", b"a=b=c", b"+", b"a;b", b"#x", b"%00", b"'\""))
        case _:
            value = b"1&" + b"&".join(b"%s=%d" % (name, number) for number in range(chance.choice((1, 2, 70))))
    more = name + b"=" + value
    target = path + b"?" + (query + b"&" + more if mark and chance.random() < 0.7 else more)
    return _told(request, f"?{more[:50]!r}", target=target)


def _other_path(request: HostileRequest, chance: random.Random) -> HostileRequest:
    """Replace one part of the path, or spell the whole path as no client does."""
    path, mark, query = request.target.partition(b"?")
    parts = path.split(b"/")
    at = chance.randrange(1, len(parts))
    what = chance.randrange(6)
    match what:
        case 0 | 1 | 2:
            at = max((number for number, part in enumerate(parts) if len(part) > 20), default=at)
            parts[at] = chance.choice(IDS)
        case 3:
            parts.insert(at, chance.choice((b"", b".", b"..", b"%2e%2e", b"x")))
        case 4:
            parts[at] = chance.choice((parts[at].upper(), parts[at] + b"/", parts[at] + b";x=y", parts[at] + b"%20"))
        case _:
            parts.append(chance.choice((b"", b"history", b"recover", b"x" * 300, b"%2f")))
    target = b"/".join(parts)
    return _told(request, f"path {target[:60]!r}", target=target + mark + query)


def _other_headers(request: HostileRequest, chance: random.Random) -> HostileRequest:
    """Replace a header, repeat it, or send very many."""
    headers = list(request.headers)
    what = chance.randrange(8)
    if what == 0:
        headers += [(b"X-Filler-%d" % number, b"x") for number in range(chance.choice((30, 90, 300)))]
        return _told(request, "many headers", headers=tuple(headers))
    if what == 1:
        doubled = chance.choice(headers)
        return _told(request, f"{doubled[0]!r} twice", headers=(*headers, doubled))
    name, value = chance.choice(HEADERS)
    if what <= 5:
        headers = [pair for pair in headers if pair[0].lower() != name.lower()]
    headers.insert(chance.randrange(len(headers) + 1), (name, value))
    return _told(request, f"{name!r}: {value[:30]!r}", headers=tuple(headers))


def _other_method(request: HostileRequest, chance: random.Random) -> HostileRequest:
    method = chance.choice(METHODS)
    return _told(request, f"as {method.decode()}", method=method)


def known_error(body: bytes, codes: frozenset[str]) -> str | None:
    """Return why ``body`` is not the documented error body, or an error of JSON-RPC, or None."""
    try:
        problem = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        return f"not JSON ({error})"
    if not isinstance(problem, dict):
        return "not an object"
    if problem.get("jsonrpc") == "2.0":
        error = problem.get("error", {})
        return None if isinstance(error.get("code"), int) and error.get("message") else "no error of JSON-RPC"
    if not isinstance(problem.get("error"), str) or not problem["error"]:
        return "no error text"
    if problem.get("code") not in codes:
        return f"code {problem.get('code')!r}"
    if "field" in problem and not isinstance(problem["field"], str):
        return "field is not a name"
    return None
