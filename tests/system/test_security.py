"""Attacks from this machine's browser and from hostile clients are refused as documented, and memories are unchanged.

Source: docs/security.md "Attack table", "Local mode"; docs/decisions.md 24-28, 40, 41.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import socket
import stat
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.live_daemon import Answer, LiveDaemon, live_daemon

pytestmark = pytest.mark.system

TOKEN = "gh" + "p_" + "aB3dE5fG7h" * 3 + "J9kL2m"  # built here, so that no complete one is in the repository
CANARIES = {
    "plain": "The canary sings at dawn",
    "pinned": "critical: the pinned canary stays in its cage",
    "private": "The private canary is nobody's business",
}
HANG_S = 30
POST = b"POST /api/memory/remember HTTP/1.1\r\nHost: 127.0.0.1\r\n"
STATUS_LINE = re.compile(rb"HTTP/1\.1 ([0-9]{3}) ")


@pytest.fixture(scope="module")
def guarded() -> Iterator[LiveDaemon]:
    """A daemon with canaries, whose limits on slow clients are short."""
    config = "gateway:\n  headerTimeoutMs: 2000\n  bodyTimeoutMs: 2000\n  keepAliveMs: 3000\n"
    with live_daemon(config=config) as daemon:
        yield daemon
        assert daemon.faults() == []


@pytest.fixture(autouse=True)
def canaries(guarded: LiveDaemon) -> Iterator[dict[str, str]]:
    """Ids of the canaries; whatever a test did, they and nothing else are there afterwards, unchanged."""
    ids = {
        name: guarded.api.remember(text, visibility="private" if name == "private" else "global")["id"]
        for name, text in CANARIES.items()
    }
    before = guarded.api.listed()
    pids = guarded.children()
    yield ids
    assert guarded.api.listed() == before
    assert guarded.children() == pids, "a process died of an attack"


def raw_exchange(daemon: LiveDaemon, data: bytes, *, finish: bool = False) -> bytes:
    """Return everything received for ``data`` until the daemon closes the connection."""
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=HANG_S) as connection:
        try:
            connection.sendall(data)
            if finish:
                connection.shutdown(socket.SHUT_WR)
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused while it was still talking; the answer may be there all the same
        return rest_of(connection)


def rest_of(connection: socket.socket) -> bytes:
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def status_of(response: bytes) -> int:
    assert response.startswith(b"HTTP/1.1 "), response[:200]
    return int(response[9:12])


def raw_request(
    daemon: LiveDaemon, method: str, target: str, headers: list[tuple[str, str]], body: bytes = b""
) -> tuple[int, bytes]:
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers), "Connection: close"]
    if body and not any(name.lower() in {"content-length", "transfer-encoding"} for name, _ in headers):
        lines.append(f"Content-Length: {len(body)}")
    response = raw_exchange(daemon, "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)
    return status_of(response), response


def refused_quietly(answer: Answer, *statuses: int) -> None:
    """Refused with one of ``statuses``, as JSON, and no page may read it."""
    assert answer.status in statuses, (answer.status, answer.raw[:300])
    assert isinstance(answer.json["error"], str)
    assert b"canary" not in answer.raw
    assert not [name for name in answer.headers if name.startswith("access-control-")]


# A1, A2: names


@pytest.mark.parametrize("target", ["/api/memories", "/api/memory/search?q=canary", "/health", "/", "/api/docs"])
def test_a1_a_rebound_host_name_is_not_answered(guarded: LiveDaemon, target: str) -> None:
    for host in (f"evil.example:{guarded.port}", "evil.example"):
        refused_quietly(guarded.api.request("GET", target, headers={"Host": host}), 403, 421)


@pytest.mark.parametrize(
    "host",
    [
        "0.0.0.0:{port}",
        "[::]:{port}",
        "127.0.0.1.nip.io:{port}",
        "localhost.evil.example:{port}",
        "localhost:1",
        "127.0.0.1:{port}@evil.example",
        "127.0.0.1:{port}:{port}",
        "localhost.",
        "2130706433:{port}",
        "evil.example#127.0.0.1",
        "",
    ],
)
def test_a2_no_other_name_of_this_machine_is_answered(guarded: LiveDaemon, host: str) -> None:
    status, response = raw_request(guarded, "GET", "/api/memories", [("Host", host.format(port=guarded.port))])
    assert status in {400, 403, 421}
    assert b"canary" not in response


@pytest.mark.parametrize("hosts", [[], ["127.0.0.1", "evil.example"], ["evil.example", "127.0.0.1"]])
def test_a2_none_or_two_hosts_are_not_answered(guarded: LiveDaemon, hosts: list[str]) -> None:
    status, response = raw_request(guarded, "GET", "/api/memories", [("Host", host) for host in hosts])
    assert status in {400, 403, 421}
    assert b"canary" not in response


def test_the_names_of_this_machine_are_answered(guarded: LiveDaemon) -> None:
    for host in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]"):
        for port in ("", f":{guarded.port}"):
            assert guarded.api.request("GET", "/health", headers={"Host": f"{host}{port}"}).status == 200


# A3, A4, A5: pages


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://evil.example", "Content-Type": "application/json"},
        {"Origin": "https://127.0.0.1"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Content-Type": "application/json"},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Mode": "no-cors"},
    ],
)
@pytest.mark.parametrize(
    ("method", "target", "body"),
    [
        ("POST", "/api/memory/remember", {"content": "planted"}),
        ("POST", "/api/memory/forget", {"mode": "execute", "query": "canary", "reason": "evil"}),
        ("POST", "/api/config", {"file": "SOUL.md", "content": "planted"}),
        ("DELETE", "/api/memory/{plain}?reason=evil", None),
    ],
)
def test_a3_a_foreign_page_writes_nothing(
    guarded: LiveDaemon,
    canaries: dict[str, str],
    headers: Mapping[str, str],
    method: str,
    target: str,
    body: Any,
) -> None:
    raw = None if body is None else json.dumps(body).encode()
    sent = {"Content-Type": "text/plain", **headers}
    if raw is None and sent == {"Content-Type": "text/plain", "Sec-Fetch-Mode": "no-cors"}:
        sent["Sec-Fetch-Site"] = "cross-site"  # a browser always sends both
    answer = guarded.api.request(method, target.format(**canaries), raw, sent)
    refused_quietly(answer, 403, 415)
    assert not (guarded.workspace / "SOUL.md").exists()


def test_a4_a_preflight_grants_nothing(guarded: LiveDaemon) -> None:
    for origin in ("http://evil.example", f"http://127.0.0.1:{guarded.port}"):
        answer = guarded.api.request(
            "OPTIONS",
            "/api/memory/remember",
            headers={
                "Origin": origin,
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "content-type",
                "Access-Control-Request-Private-Network": "true",
            },
        )
        refused_quietly(answer, 403, 405)


def test_a5_an_image_of_a_page_reads_nothing(guarded: LiveDaemon) -> None:
    for headers in (
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Dest": "script"},
    ):
        for target in ("/api/memory/search?q=canary", "/api/memories", "/api/openapi.json", "/api/docs/start.js"):
            refused_quietly(guarded.api.request("GET", target, headers=headers), 403)


def test_our_own_page_and_the_address_bar_are_answered(guarded: LiveDaemon) -> None:
    own = {"Origin": f"http://127.0.0.1:{guarded.port}", "Sec-Fetch-Site": "same-origin"}
    assert guarded.api.request("POST", "/api/memory/recall", {"query": "canary"}, own).status == 200
    assert guarded.api.request("GET", "/api/docs", headers={"Sec-Fetch-Site": "none"}).status == 200


# A8: proxies


@pytest.mark.parametrize(
    "header",
    [
        ("X-Forwarded-For", "127.0.0.1"),
        ("X-Forwarded-Host", "127.0.0.1"),
        ("X-Forwarded-Proto", "https"),
        ("X-Real-IP", "127.0.0.1"),
        ("Forwarded", "for=127.0.0.1"),
        ("Via", "1.1 proxy"),
    ],
)
def test_a8_a_proxy_header_never_grants_trust(guarded: LiveDaemon, header: tuple[str, str]) -> None:
    refused_quietly(guarded.api.request("GET", "/api/memories", headers=dict([header])), 403)
    evil = {"Host": "evil.example", header[0]: header[1]}
    refused_quietly(guarded.api.request("GET", "/api/memories", headers=evil), 403, 421)


# A10, A11: paths and texts

STRANGE_IDS = [
    "..%2f..%2fetc%2fpasswd",
    "../../etc/passwd",
    "%2e%2e/%2e%2e/etc/passwd",
    "%00",
    "a%00b",
    "%c0%ae%c0%ae",
    "%0d%0aX-Injected:%20yes",
    "%ff",
    "%",
    "%zz",
    "x" * 7000,
    "'%20OR%201=1--",
    "{id}",
]


@pytest.mark.parametrize("name", STRANGE_IDS, ids=range(len(STRANGE_IDS)))
def test_a10_a_strange_id_is_not_found_or_not_valid(guarded: LiveDaemon, name: str) -> None:
    for method, target in (
        ("GET", f"/api/memory/{name}"),
        ("GET", f"/api/memory/{name}/history"),
        ("GET", f"/api/memory/jobs/{name}"),
        ("GET", f"/api/docs/{name}"),
        ("DELETE", f"/api/memory/{name}?reason=r"),
    ):
        status, response = raw_request(guarded, method, target, [("Host", "127.0.0.1")])
        assert status in {400, 404, 405}, (target, response[:300])
        head, _, body = response.partition(b"\r\n\r\n")
        assert isinstance(json.loads(body)["error"], str)
        assert b"x-injected" not in head.lower()
        assert b"root:" not in body


HOSTILE_TEXTS = [
    '"',
    "a-b",
    "*",
    "NEAR(",
    "(" * 300 + ")" * 300,
    "content:canary",
    "'; DROP TABLE memories; --",
    "%",
    "_",
    "\\",
    "canary\0cage",
    "\ud800",
    "a" * 20_001,
    " ".join(["canary"] * 3000),
    "😀" * 50,
    "\u202e\u0000\u2028",
    "OR AND NOT",
]


@pytest.mark.parametrize("text", HOSTILE_TEXTS, ids=range(len(HOSTILE_TEXTS)))
def test_a11_sql_and_fts_text_is_plain_text(guarded: LiveDaemon, text: str) -> None:
    api = guarded.api
    for target, body in (
        ("/api/memory/recall", {"query": text}),
        ("/api/memory/recall", {"query": "canary", "type": text}),
        ("/api/memory/recall", {"query": "canary", "tags": [text], "who": text, "project": text}),
        ("/api/memory/forget", {"mode": "preview", "query": text}),
        ("/api/memory/forget", {"mode": "preview", "tags": text, "who": text}),
        ("/api/memory/recall", {"query": "canary", "since": text, "limit": text}),
        ("/api/memory/recall", {"query": "canary", "agentId": text, "scope": text}),
    ):
        answer = api.post(target, body)
        assert answer.status in {200, 400}, (target, answer.raw[:300])
        assert isinstance(answer.json, dict)


@pytest.mark.parametrize("value", ["-1", "1e9", "99999999999999999999999", "NaN", "1;DROP", "%27", "0x10", "٣", ""])
def test_a11_numbers_of_a_query_are_clamped_or_defaulted(guarded: LiveDaemon, value: str) -> None:
    for target in (
        f"/api/memories?limit={value}&offset={value}",
        f"/memory/search?q=canary&limit={value}",
        f"/api/memory/search?q=canary&limit={value}&importance_min={value}&min_score={value}",
        f"/api/embeddings?limit={value}&offset={value}",
        f"/memory/similar?id=x&k={value}",
    ):
        status, response = raw_request(guarded, "GET", target.replace("٣", "%D9%A3"), [("Host", "127.0.0.1")])
        assert status in {200, 400, 404}, (target, response[:300])


# A12: sizes

BOMBS: list[tuple[str, bytes]] = [
    ("deep arrays", b'{"content":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    ("deep objects", b'{"a":' * 50_000 + b"1" + b"}" * 50_000),
    ("deep unknown field", b'{"content":5,"x":' + b"[" * 5000 + b"]" * 5000 + b"}"),
    ("long number", b'{"content":"x","importance":' + b"9" * 5000 + b"}"),
    ("infinity", b'{"content":"x","importance":1e999}'),
    ("not a number", b'{"content":"x","importance":NaN}'),
    ("not UTF-8", b'{"content":"\xff\xfe"}'),
    ("cut off", b'{"content":"x"'),
    ("two documents", b'{"content":5}{"content":5}'),
    ("a million lists", b'{"content":"x","query":"x","patches":[' + b"[]," * 1_000_000 + b"[]]}"),
    ("half a million names", b'{"content":"x",' + b'"k":0,' * 500_000 + b'"query":"x"}'),
    ("tags of commas", b'{"content":"x","query":"x","tags":"' + b"," * 4_000_000 + b'"}'),
    ("a version of blanks", b'{"patches":5,"query":" ","content":"","if_version":"' + b" " * 4_000_000 + b'"}'),
]


@pytest.mark.parametrize(("name", "raw"), BOMBS, ids=[name for name, _ in BOMBS])
@pytest.mark.parametrize("target", ["/api/memory/remember", "/api/memory/recall", "/api/memory/modify", "/api/config"])
def test_a12_a_bomb_in_json_is_a_400(guarded: LiveDaemon, name: str, raw: bytes, target: str) -> None:
    answer = guarded.api.request("POST", target, raw)
    answer.refused(400)


def test_a12_a_large_body_is_refused_early(guarded: LiveDaemon) -> None:
    big = b'{"content":"' + b"x" * 20_000_000 + b'"}'
    status, _ = raw_request(guarded, "POST", "/api/memory/remember", [("Host", "127.0.0.1")], big)
    assert status == 413
    head = "POST /api/memory/remember HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1073741824\r\n\r\n"
    assert status_of(raw_exchange(guarded, head.encode())) == 413
    chunk = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    chunked = b"POST /api/memory/remember HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert status_of(raw_exchange(guarded, chunked + chunk * 24)) == 413


def test_a12_a_compressed_body_is_not_unpacked(guarded: LiveDaemon) -> None:
    bomb = gzip.compress(b'{"content":"' + b"x" * (64 << 20) + b'"}', 1)
    for encoding in ("gzip", "deflate", "br", "identity, gzip"):
        answer = guarded.api.request("POST", "/api/memory/remember", bomb, {"Content-Encoding": encoding})
        answer.refused(415)


def test_a12_headers_and_targets_are_bounded(guarded: LiveDaemon) -> None:
    for head in (
        b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Big: " + b"x" * 1_000_000 + b"\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X-Many: 1\r\n" * 2000 + b"\r\n",
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    ):
        assert status_of(raw_exchange(guarded, head)) in {400, 414, 431}


# A13: mass deletion


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"reason": "evil"},
        {"reason": "evil", "ids": []},
        {"reason": "evil", "ids": "*"},
        {"reason": "evil", "ids": ["*"]},
        {"reason": "evil", "ids": ["%"]},
        {"reason": "evil", "query": "%"},
        {"reason": "evil", "query": "*"},
        {"reason": "evil", "query": " "},
        {"reason": "evil", "type": ""},
        {"reason": "evil", "tags": []},
        {"reason": "evil", "type": "%"},
        {"reason": "evil", "who": "%"},
        {"reason": "evil", "limit": 100},
        {"reason": "evil", "query": "canary", "confirm_token": "f" * 32},
        {"reason": "evil", "query": "canary", "confirm_token": "f" * 54},
        {"reason": "evil", "query": "canary", "force": True},
        {"reason": "evil", "query": "canary", "force": "true"},
        {"reason": "evil", "since": "1970-01-01", "force": 1},
        {"reason": "evil", "since": "1970-01-01", "force": True, "confirm_token": "f" * 54},
        {"query": "canary"},
    ],
)
def test_a13_an_unconfirmed_mass_deletion_deletes_nothing(guarded: LiveDaemon, body: Any) -> None:
    answer = guarded.api.post("/api/memory/forget", {"mode": "execute", **body})
    if answer.status == 200:
        assert answer.json["deleted"] == 0
    else:
        answer.refused(answer.status)
        assert 400 <= answer.status < 500


# A15: fields that are not the caller's to set


def test_a15_fields_that_are_the_daemons_are_ignored(guarded: LiveDaemon, canaries: dict[str, str]) -> None:
    forged = {
        "id": "mine",
        "version": 99,
        "is_deleted": 1,
        "isDeleted": True,
        "deleted_at": "2020-01-01",
        "actor_type": "daemon",
        "actorType": "daemon",
        "access_count": 1000,
        "extraction_status": "done",
        "content_hash": "0" * 64,
        "embedding_seq": 1,
        "seq": 1,
        "updated_at": "1999-01-01",
    }
    client = guarded.agent("mass-assigner")
    memory_id = client.remember("Assigned en masse", visibility="private", **forged)["id"]
    target = f"/api/memory/{memory_id}"
    client.request("PATCH", target, {"importance": 0.2, "reason": "r", **forged}).ok()
    memory = client.memory(memory_id)
    expected = {"version": 2, "is_deleted": 0, "deleted_at": None, "access_count": 0, "agent_id": "mass-assigner"}
    assert {name: memory[name] for name in expected} == expected
    assert memory_id != "mine"
    assert memory["extraction_status"] != "done"
    assert not memory["updated_at"].startswith("1999")
    history = client.get(f"{target}/history").ok()["history"]
    assert {event["actorType"] for event in history} == {"operator"}
    client.post("/api/memory/remember", {"content": "x", "visibility": "archived"}).refused(400, field="visibility")
    client.get(f"/api/memory/{canaries['private']}").refused(404)
    client.request("PATCH", target, {"agent_id": "default", "importance": 0.9, "reason": "r"}).refused(404)
    client.request("PATCH", target, {"visibility": "global", "importance": 0.3, "reason": "r"}).ok()
    assert client.memory(memory_id)["visibility"] == "private"


# A18: framing and slowness


@pytest.mark.parametrize(
    "data",
    [
        POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        POST + b"Content-Length: -1\r\n\r\n",
        POST + b"Content-Length: 1e3\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n",
        POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n folded: yes\r\n\r\n",
        b"GET http://evil.example/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /health HTTP/9.9\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /health\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40),
        b"\x00" * 100,
        b"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n",
    ],
    ids=range(14),
)
def test_a18_ambiguous_framing_is_refused_and_the_connection_closed(guarded: LiveDaemon, data: bytes) -> None:
    response = raw_exchange(guarded, data)
    assert status_of(response) in {400, 403, 405, 408, 421, 505}, response[:300]
    assert len(STATUS_LINE.findall(response)) == 1
    assert b"canary" not in response


def test_a18_slow_and_idle_clients_are_closed_while_others_are_served(guarded: LiveDaemon) -> None:
    starts = [
        b"",
        b"GET /hea",
        b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
        b"POST /api/memory/remember HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{",
        b"POST /api/memory/remember HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe",
    ]
    connections = []
    ended = threading.Event()

    def drip(connection: socket.socket) -> None:
        while not ended.wait(0.2):
            try:
                connection.sendall(b"a")
            except OSError:
                return

    dripping = []
    try:
        for start in starts:
            for _ in range(8):
                connection = socket.create_connection(("127.0.0.1", guarded.port), timeout=HANG_S)
                connection.sendall(start)
                connections.append(connection)
        dripping = [threading.Thread(target=drip, args=(connection,)) for connection in connections[16:24]]
        for thread in dripping:
            thread.start()
        idle = [socket.create_connection(("127.0.0.1", guarded.port), timeout=HANG_S) for _ in range(64)]
        connections += idle
        assert guarded.api.request("GET", "/health", timeout=HANG_S).status == 200
        assert guarded.api.recall("canary")["results"]
        for connection in connections:
            response = rest_of(connection)  # ends only when the daemon closes; the timeout guards against never
            assert not response or status_of(response) == 408
    finally:
        ended.set()
        for thread in dripping:
            thread.join(HANG_S)
        for connection in connections:
            connection.close()
    assert guarded.api.get("/health").ok()["status"] == "healthy"


def test_a18_pipelined_requests_are_answered_in_order(guarded: LiveDaemon) -> None:
    first = b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    last = b"GET /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    response = raw_exchange(guarded, first * 3 + last)
    statuses = [int(code) for code in STATUS_LINE.findall(response)]
    assert statuses == [200, 200, 200, 404]


def test_a18_a_smuggled_request_in_a_body_is_not_served(guarded: LiveDaemon) -> None:
    inner = b"POST /api/memory/remember HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 21\r\n\r\n"
    body = inner + b'{"content":"planted"}'
    status, response = raw_request(guarded, "POST", "/api/memory/recall", [("Host", "127.0.0.1")], body)
    assert status == 400
    assert len(STATUS_LINE.findall(response)) == 1


# what lies on the disk and what listens


def test_files_of_the_daemon_are_private(guarded: LiveDaemon) -> None:
    guarded.api.post("/api/memory/codex-native-note", {"content": "a private note"}).ok()
    guarded.api.post("/api/config", {"file": "USER.md", "content": "private"}).ok()
    modes = {
        path: os.lstat(path).st_mode
        for root in (guarded.workspace, guarded.root / "codex")
        for path in [root, *root.rglob("*")]
    }
    names = {path.name for path in modes}
    assert {"memories.db", "memories.db-wal", "memories.db-shm", "secret", "pid", "lock", "writer.sock"} <= names
    assert any(name.endswith(".log") for name in names)
    open_to_others = {
        str(path): oct(mode)
        for path, mode in modes.items()
        if stat.S_IMODE(mode) & 0o077 and not stat.S_ISLNK(mode) and path.name != "agent.yaml"
    }
    assert open_to_others == {}
    assert stat.S_IMODE(modes[guarded.workspace]) == 0o700
    executable = [str(path) for path, mode in modes.items() if stat.S_ISREG(mode) and mode & 0o111]
    assert executable == []


def test_a_workspace_that_was_open_is_closed_at_start() -> None:
    with live_daemon(started=False) as daemon:
        daemon.workspace.chmod(0o777)
        daemon.start(UMASK="000")
        assert stat.S_IMODE(daemon.workspace.stat().st_mode) == 0o700


def test_nothing_listens_but_one_port_on_loopback(guarded: LiveDaemon) -> None:
    inodes = {inode: pid for pid in guarded.processes() for inode in socket_inodes(pid)}
    found = [entry for table in ("tcp", "tcp6", "udp", "udp6", "raw", "raw6") for entry in network_entries(table)]
    ours = [(table, address, port, state) for table, address, port, state, inode in found if inode in inodes]
    listening = {entry[:3] for entry in ours if entry[3] == "0A" or not entry[0].startswith("tcp")}
    assert listening == {("tcp", "0100007F", guarded.port)}
    talking = {pid for *_, inode in found if inode in inodes for pid in [inodes[inode]]}
    allowed = {guarded.process.pid if guarded.process else 0, *gateway_pids(guarded)}
    assert talking <= allowed, "a process without business on the network holds a network socket"


def gateway_pids(daemon: LiveDaemon) -> set[int]:
    """The pid of the gateway, in a set."""
    return {pid for pid in daemon.processes() if b"signet_actors.gateway" in Path(f"/proc/{pid}/cmdline").read_bytes()}


def socket_inodes(pid: int) -> set[str]:
    found = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(descriptor)
        except OSError:
            continue
        if target.startswith("socket:["):
            found.add(target[8:-1])
    return found


def network_entries(table: str) -> Iterator[tuple[str, str, int, str, str]]:
    """(table, local address in hex, local port, state, inode) of each socket of this network namespace."""
    try:
        lines = Path(f"/proc/net/{table}").read_text(encoding="ascii").splitlines()[1:]
    except FileNotFoundError:
        return
    for line in lines:
        columns = line.split()
        address, _, port = columns[1].rpartition(":")
        yield table, address, int(port, 16), columns[3], columns[9]


def test_only_the_writer_has_the_database_open_for_writing(guarded: LiveDaemon, canaries: dict[str, str]) -> None:
    writer = guarded.children()["writer"]
    holders: dict[int, set[int]] = {}
    for pid in guarded.processes():
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            try:
                if os.readlink(descriptor) != str(guarded.database):
                    continue
                info = Path(f"/proc/{pid}/fdinfo/{descriptor.name}").read_text()
            except OSError:
                continue
            flags = next(line.split()[1] for line in info.splitlines() if line.startswith("flags:"))
            holders.setdefault(pid, set()).add(int(flags, 8) & os.O_ACCMODE)
    assert [pid for pid, modes in holders.items() if os.O_RDWR in modes or os.O_WRONLY in modes] == [writer]
    assert len(holders) > 1, "the searcher reads the same file"


def test_secrets_and_contents_stay_out_of_the_log(guarded: LiveDaemon, canaries: dict[str, str]) -> None:
    guarded.api.recall("canary sings")
    guarded.api.post("/api/memory/recall", {"query": 5})
    text = guarded.terminal() + json.dumps(guarded.log())
    assert "canary" not in text


def test_another_client_of_the_bus_cannot_be_another_user(guarded: LiveDaemon) -> None:
    run = guarded.workspace / ".daemon" / "run"
    for path in (run, *run.iterdir()):
        facts = path.lstat()
        assert facts.st_uid == os.geteuid()
        assert stat.S_IMODE(facts.st_mode) & 0o077 == 0


TRAILED = b"POST /api/memory/recall HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n"
QUESTION = json.dumps({"query": "canary"}).encode()


def trailed(trailers: bytes, headers: bytes = b"Connection: close\r\n", *, separate: bool = False) -> list[bytes]:
    """A recall with trailer fields: in one piece, or in a piece for each part of the message."""
    pieces = [TRAILED + headers + b"\r\n", b"%x\r\n%s\r\n" % (len(QUESTION), QUESTION), b"0\r\n", trailers, b"\r\n"]
    return pieces if separate else [b"".join(pieces)]


@pytest.mark.parametrize("separate", [False, True])
def test_a_trailer_field_does_not_change_the_principal(guarded: LiveDaemon, separate: bool) -> None:
    alice = guarded.agent("alice")
    hers = alice.remember("The canary of alice", visibility="private")["id"]
    try:
        assert hers in alice.recalled("canary")
        with socket.create_connection(("127.0.0.1", guarded.port), timeout=HANG_S) as connection:
            for piece in trailed(b"X-Signet-Agent-Id: alice\r\n", separate=separate):
                connection.sendall(piece)
            answer = rest_of(connection)
        assert status_of(answer) == 200
        assert b"The canary sings" in answer
        assert b"alice" not in answer
    finally:
        alice.request("DELETE", f"/api/memory/{hers}?reason=r&force=true").ok()


def test_trailer_fields_count_like_headers(guarded: LiveDaemon) -> None:
    for trailers in (b"X: y\r\n" * 1000, b"X: " + b"y" * 100_000 + b"\r\n"):
        (data,) = trailed(trailers)
        assert status_of(raw_exchange(guarded, data)) == 431


def test_the_request_after_one_with_trailer_fields_has_its_own_headers(guarded: LiveDaemon) -> None:
    (first,) = trailed(b"X-Signet-Agent-Id: alice\r\n", b"")
    (second,) = trailed(b"", b"Origin: https://evil.example\r\nConnection: close\r\n")
    answers = raw_exchange(guarded, first + second)
    assert STATUS_LINE.findall(answers) == [b"200", b"403"]


@pytest.mark.parametrize("field", ["scope", "agentId"])
def test_a_secret_in_a_scope_or_an_agents_name_is_refused_and_nowhere_in_the_store(
    guarded: LiveDaemon, field: str
) -> None:
    api = guarded.api
    api.post("/api/memory/remember", {"content": "c", field: TOKEN}).refused(400, field=field)
    api.request("POST", "/api/memory/remember", {"content": "c"}, {"x-signet-agent-id": TOKEN}).refused(400)
    line = json.dumps({"content": "c", field: TOKEN}).encode()
    told = api.request("POST", "/api/memory/import", line, {"Content-Type": "application/x-ndjson"}).ok()
    assert (told["imported"], [refused["field"] for refused in told["refused"]]) == (0, [field])
    for file in (guarded.workspace / "memory").glob("memories.db*"):
        assert TOKEN.encode() not in file.read_bytes()
