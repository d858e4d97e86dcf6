"""Malformed requests: every connection ends soon, with rejections or complete responses.

Source: docs/security.md A2, A12, A18; docs/decisions.md 25.
"""

from __future__ import annotations

import json
import random
import socket
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from signet_actors.errors import ErrorCode
from tests.hostile.conftest import CANARY, SEED, scale
from tests.support.hostile_requests import known_error
from tests.support.live_daemon import LiveDaemon
from tests.support.raw_http import HANG_S, NotAnAnswer, RawReply, all_replies, encoded, everything_after

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(3600)]

CONNECTIONS = scale(2_000, 50_000)
AT_ONCE = 32
HOST = (b"Host", b"127.0.0.1")
JSON = (b"Content-Type", b"application/json")
SMUGGLED = "smuggled wolframite"
REMEMBER = json.dumps({"content": SMUGGLED, "agentId": "smuggler"}).encode()
INNER = encoded(b"POST", b"/api/memory/remember", (HOST, JSON), REMEMBER)
"""A complete request inside another's body: a parser that disagrees about the length would execute it."""
HEALTH = encoded(b"GET", b"/health", (HOST,))
POST = b"POST /api/memory/recall HTTP/1.1\r\nHost: 127.0.0.1\r\n"
QUERY = b'{"query":"x"}'
CODES = frozenset(ErrorCode)

Attack = Callable[[random.Random], bytes]


def chunked(*chunks: bytes, end: bytes = b"0\r\n\r\n", extra: bytes = b"") -> bytes:
    body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    return POST + b"Transfer-Encoding: chunked\r\n" + extra + b"\r\n" + body + end


FIXED: dict[str, bytes] = {
    # two lengths, or two spellings of one
    "CL and TE": POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + INNER,
    "TE and CL": POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + INNER,
    "two lengths": POST + b"Content-Length: 0\r\nContent-Length: %d\r\n\r\n" % len(INNER) + INNER,
    "a list of lengths": POST + b"Content-Length: 0, %d\r\n\r\n" % len(INNER) + INNER,
    "a signed length": POST + b"Content-Length: +13\r\n\r\n" + QUERY,
    "a negative length": POST + b"Content-Length: -1\r\n\r\n" + INNER,
    "a hexadecimal length": POST + b"Content-Length: 0xd\r\n\r\n" + QUERY,
    "a length beyond 64 bits": POST + b"Content-Length: 18446744073709551617\r\n\r\n" + QUERY,
    "5,000 digits of length": POST + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n" + QUERY,
    "no length": POST + b"\r\n" + QUERY,
    "5,000 zeros before a length": POST + b"Content-Length: " + b"0" * 5000 + b"13\r\n\r\n" + QUERY,
    "a body that ends early": POST + b"Content-Length: 100\r\n\r\n" + QUERY,
    "TE identity": POST + b"Transfer-Encoding: identity\r\nContent-Length: 13\r\n\r\n" + QUERY,
    "TE gzip, chunked": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + INNER,
    "TE twice": POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + INNER,
    "TE xchunked": POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + INNER,
    "TE with a tab": POST + b"Transfer-Encoding:\tchunked\r\n\r\nd\r\n" + QUERY + b"\r\n0\r\n\r\n",
    "TE with a space before the colon": POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + INNER,
    "TE behind a bare line feed": POST + b"X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + INNER,
    "TE behind a bare carriage return": POST + b"X: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + INNER,
    "TE folded": POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" + INNER,
    "TE in HTTP/1.0": chunked(QUERY).replace(b"HTTP/1.1", b"HTTP/1.0", 1),
    # chunks
    "a chunk size that is no number": POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nx\r\n0\r\n\r\n",
    "a chunk size beyond 64 bits": POST + b"Transfer-Encoding: chunked\r\n\r\n1" + b"0" * 17 + b"\r\nx\r\n0\r\n\r\n",
    "a negative chunk": POST + b"Transfer-Encoding: chunked\r\n\r\n-1\r\nx\r\n0\r\n\r\n",
    "a chunk longer than it says": POST + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n0\r\n\r\n",
    "a chunk shorter than it says": POST + b"Transfer-Encoding: chunked\r\n\r\nff\r\nabc\r\n0\r\n\r\n",
    "chunks without an end": chunked(QUERY, end=b""),
    "a chunk per byte": chunked(*[bytes([byte]) for byte in QUERY]),
    "a chunk extension of 100 kB": POST
    + b"Transfer-Encoding: chunked\r\n\r\n1;"
    + b"x" * 100_000
    + b"\r\n{\r\n0\r\n\r\n",
    "trailers": chunked(QUERY, end=b"0\r\nX-Trailer: yes\r\nContent-Length: 5\r\n\r\n"),
    "a trailer that never ends": chunked(QUERY, end=b"0\r\n" + b"X: y\r\n" * 20_000),
    # request lines and versions
    "nothing": b"",
    "empty lines": b"\r\n" * 100,
    "noise": bytes(range(256)) * 4,
    "HTTP/0.9": b"GET /health\r\n",
    "HTTP/1.0": b"GET /health HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n",
    "HTTP/1.2": HEALTH.replace(b"HTTP/1.1", b"HTTP/1.2"),
    "HTTP/9.9": HEALTH.replace(b"HTTP/1.1", b"HTTP/9.9"),
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
    "TLS": b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + b"\0" * 500,
    "SSH": b"SSH-2.0-OpenSSH_9.6\r\n",
    "a proxy's line": b"PROXY TCP4 1.2.3.4 127.0.0.1 1 2\r\n" + HEALTH,
    "CONNECT": b"CONNECT evil.example:443 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" + INNER,
    "an absolute target": HEALTH.replace(b"/health", b"http://127.0.0.1/health"),
    "a foreign absolute target": HEALTH.replace(b"/health", b"http://evil.example/health"),
    "an asterisk": b"OPTIONS * HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "a target without a slash": HEALTH.replace(b"/health", b"health"),
    "a fragment": HEALTH.replace(b"/health", b"/health#x"),
    "two spaces": HEALTH.replace(b"GET ", b"GET  "),
    "a tab": HEALTH.replace(b" HTTP", b"\tHTTP"),
    "a NUL in the target": HEALTH.replace(b"/health", b"/hea\0lth"),
    "a target of 100 kB": HEALTH.replace(b"/health", b"/" + b"x" * 100_000),
    "an unknown method": HEALTH.replace(b"GET", b"FETCH"),
    "a method of 10 kB": b"X" * 10_000 + HEALTH,
    "bare line feeds": HEALTH.replace(b"\r\n", b"\n"),
    "bare carriage returns": HEALTH.replace(b"\r\n", b"\r"),
    # headers
    "no Host": b"GET /health HTTP/1.1\r\n\r\n",
    "two Hosts": b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n",
    "a Host folded": b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n evil.example\r\n\r\n",
    "a header without a colon": HEALTH.replace(b"\r\n\r\n", b"\r\nno colon here\r\n\r\n"),
    "a header without a name": HEALTH.replace(b"\r\n\r\n", b"\r\n: x\r\n\r\n"),
    "a NUL in a header": HEALTH.replace(b"\r\n\r\n", b"\r\nX: a\0b\r\n\r\n"),
    "10,000 headers": HEALTH.replace(b"\r\n\r\n", b"\r\n" + b"X: y\r\n" * 10_000 + b"\r\n"),
    "a header of 1 MB": HEALTH.replace(b"\r\n\r\n", b"\r\nX: " + b"x" * 1_000_000 + b"\r\n\r\n"),
    "a header name of 1 MB": HEALTH.replace(b"\r\n\r\n", b"\r\n" + b"x" * 1_000_000 + b": y\r\n\r\n"),
    "an upgrade": HEALTH.replace(b"\r\n\r\n", b"\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n") + INNER,
    "a websocket": HEALTH.replace(b"\r\n\r\n", b"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x05hello"),
    "an unknown expectation": POST + b"Expect: 200-ok\r\nContent-Length: 13\r\n\r\n" + QUERY,
    "an expectation of 100": POST + b"Expect: 100-continue\r\nContent-Length: 13\r\n\r\n" + QUERY,
    # pipelines
    "three in a row": HEALTH * 3,
    "a hundred in a row": HEALTH * 100,
    "a good one and a bad one": HEALTH + b"\0\0\0\0",
    "a good one and half a one": HEALTH + HEALTH[:20],
    "a body behind a GET": HEALTH.replace(b"\r\n\r\n", b"\r\nContent-Length: %d\r\n\r\n" % len(INNER)) + INNER,
}


def cut(chance: random.Random) -> bytes:
    data = chance.choice(ALL)
    return data[: chance.randrange(len(data) + 1)]


def turned(chance: random.Random) -> bytes:
    data = bytearray(chance.choice(ALL)[:4000] or b"x")
    for _ in range(chance.randrange(1, 4)):
        data[chance.randrange(len(data))] = chance.choice((0, 9, 10, 13, 32, 58, 127, 255, chance.randrange(256)))
    return bytes(data)


def joined(chance: random.Random) -> bytes:
    return b"".join(chance.choice(ALL)[:3000] for _ in range(chance.randrange(2, 5)))


def spliced(chance: random.Random) -> bytes:
    first, second = chance.choice(ALL)[:3000], chance.choice(ALL)[:3000]
    return first[: chance.randrange(len(first) + 1)] + second[chance.randrange(len(second) + 1) :]


ALL = [data for data in FIXED.values() if data and INNER not in data]
"""Exclude those that contain the inner request: by chance it could be at the top level, where it is a valid request."""
ATTACKS: tuple[Attack, ...] = (cut, turned, joined, spliced)


def complaint(replies: list[RawReply]) -> str | None:
    for reply in replies:
        if reply.status >= 500 and (reply.status, reply.headers.get(b"retry-after")) != (503, b"1"):
            return f"a fault, {reply.status}"
        if CANARY.encode() in reply.body:
            return "somebody else's content"
        if reply.status >= 400 and known_error(reply.body, CODES) is not None:
            return f"not the documented error body: {reply.body[:200]!r}"
        if reply.status >= 400 and reply.headers.get(b"content-type") != b"application/json":
            return "a refusal that is not JSON"
    return None


def outcome(daemon: LiveDaemon, data: bytes) -> tuple[list[RawReply], str | None]:
    """Return the responses, and what is wrong with them."""
    try:
        raw = everything_after(daemon.port, data)
    except TimeoutError:
        return [], "no end"
    if data[:5].upper() == b"HEAD ":
        return [], None
    try:
        replies = all_replies(raw)
    except NotAnAnswer as error:
        return [], str(error)
    return replies, complaint(replies)


def made(number: int) -> tuple[str, bytes]:
    """Return the name and the bytes of connection ``number`` of the seed."""
    if number < len(FIXED):
        return list(FIXED.items())[number]
    chance = random.Random(f"{SEED}:{number}")
    attack = chance.choice(ATTACKS)
    return f"seed {SEED}, number {number}, {attack.__name__}", attack(chance)


def test_malformed_requests_are_refused_or_answered_completely(short_timeouts_daemon: LiveDaemon) -> None:
    def attacked(number: int) -> tuple[str, list[RawReply], str | None]:
        name, data = made(number)
        replies, problem = outcome(short_timeouts_daemon, data)
        return name, replies, None if problem is None else f"{name}: {problem}\n  sent {data[:600]!r}"

    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(attacked, range(len(FIXED) + CONNECTIONS)))
    statuses = Counter(reply.status for _, replies, _ in results for reply in replies)
    print(f"seed {SEED}: {len(results)} connections, {statuses.total()} answers {dict(sorted(statuses.items()))}")
    problems = [problem for *_, problem in results if problem is not None]
    assert problems == [], "\n".join(problems[:10])
    assert statuses[200] > 0 < statuses[400], "some must be answered, or refusing proves nothing"
    assert short_timeouts_daemon.agent("smuggler").listed() == [], "a request that stood inside another was run"


def test_slow_clients_are_disconnected_while_others_are_served(short_timeouts_daemon: LiveDaemon) -> None:
    """Each client stops at another position of its request and sends no more."""
    request = encoded(b"POST", b"/api/memory/recall", (HOST, JSON), QUERY)
    stops = [1, 10, len(request) // 2, request.index(b"\r\n\r\n") + 4, len(request) - 1]
    slow = [
        socket.create_connection(("127.0.0.1", short_timeouts_daemon.port), timeout=HANG_S)
        for _ in range(4 * len(stops))
    ]
    try:
        for number, connection in enumerate(slow):
            connection.sendall(request[: stops[number % len(stops)]])
        for number in range(50):
            short_timeouts_daemon.api.remember(f"Served beside slow ones, number {number}")
        for connection in slow:
            parts = b""
            while part := connection.recv(65536):
                parts += part
            assert [reply.status for reply in all_replies(parts)] == [408]
    finally:
        for connection in slow:
            connection.close()
