"""Who may be answered at all: a pure decision over method, headers and peer, taken before routing and before the body.

In local mode no route asks for a token, so this is the wall between the memories and every web page that the user
has open. Three ways in are closed: a foreign name that resolves to this machine (Host), a page's own request
(Origin, Sec-Fetch-Site, and media types that need no preflight), and a proxy that makes everybody loopback.
No CORS header is ever sent, so that no page may read an answer either.

Source: docs/decisions.md 24, 25, 41; docs/security.md A1-A5, A8.
Departs: a Host without a port is accepted beside the actual port, as HTTP/1.0 clients and tools behind a
port-forward send it; a page cannot choose that header.
"""

from __future__ import annotations

import functools
import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from signet_actors.errors import ErrorCode
from signet_actors.protocol.http.headers import OWNER_TOKEN_HEADER

Headers = Sequence[tuple[bytes, bytes]]

LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")
SINGLE_HEADERS = frozenset(
    {
        b"content-type",
        b"content-encoding",
        b"authorization",
        b"idempotency-key",
        OWNER_TOKEN_HEADER.encode(),
        b"x-signet-actor",
        b"x-signet-actor-type",
        b"x-signet-agent-id",
        b"x-signet-session-id",
        b"x-signet-session-key",
        b"x-signet-request-id",
        b"x-signet-runtime-path",
    }
)
"""Headers that decide something; two of them would let two readers disagree."""

PROXY_HEADERS = frozenset({b"forwarded", b"via", b"x-real-ip"})
PROXY_PREFIX = b"x-forwarded-"
BROWSER_PREFIX = b"sec-fetch-"
NODE_FETCH = (b"sec-fetch-mode", b"cors")
"""The one such header that a program sends too: Node's ``fetch``, beside neither a site nor an origin. A browser sends
``Sec-Fetch-Site`` wherever it sends this one, and with this mode an ``Origin`` to every other site; a page can keep
neither of them back, as their names are forbidden to it. Other modes alone stay a browser's.
Source: W3C Fetch Metadata Request Headers, section 2; Fetch standard, "append a request Origin header";
docs/compatibility.md "Real clients: TypeScript SDK".
"""
READ_METHODS = frozenset({"GET", "HEAD"})

_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::(?P<port>[0-9]{1,5}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class GuardPolicy:
    """``names``: lower-case host names served on ``port`` or without a port; ``exact``: ``name:port`` as configured."""

    port: int
    names: frozenset[str]
    exact: frozenset[str]


@dataclass(frozen=True, slots=True)
class GuardRejection:
    """The request is not answered; what the client is told instead."""

    code: ErrorCode
    detail: str
    status: int


def guard_policy(port: int, allowed_hosts: Iterable[str]) -> GuardPolicy:
    """The policy for a listener on ``port``; an allowed host may carry a port of its own (a port-forward)."""
    names, exact = set(LOCAL_NAMES), set()
    for entry in allowed_hosts:
        host = entry.strip().lower()
        match = _HOST.fullmatch(host)
        if match and match["port"]:
            exact.add(host)
        elif match:
            names.add(host)
    return GuardPolicy(port=port, names=frozenset(names), exact=frozenset(exact))


def check_request(policy: GuardPolicy, method: str, headers: Headers, peer: str | None) -> GuardRejection | None:
    """None when the request may be answered. Header names are lower-case. Never looks at path, query or body."""
    if not _is_loopback(peer):
        return _forbidden("Only this machine is answered in local mode")
    seen: dict[bytes, bytes] = {}
    browser = False
    for name, value in headers:
        if name in PROXY_HEADERS or name.startswith(PROXY_PREFIX):
            return _forbidden("Requests through a proxy are not answered in local mode")
        if name.startswith(BROWSER_PREFIX) or name == b"origin":
            browser = browser or (name, value) != NODE_FETCH
            if name in seen:
                return _forbidden("Doubled browser header")
        elif name in SINGLE_HEADERS and name in seen:
            return GuardRejection(ErrorCode.INVALID_REQUEST, f"Doubled header {name.decode()}", 400)
        elif name == b"host" and name in seen:
            return _misdirected("More than one Host header")
        seen[name] = value

    refusal = _check_host(policy, seen.get(b"host"))
    if refusal is not None or not browser:
        return refusal
    return _check_browser(method, seen)


def has_body(headers: Headers) -> bool:
    """Whether the request announces a body (also of unknown length)."""
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip() not in {b"", b"0"})
        for name, value in headers
    )


def media_type(value: bytes | None) -> str:
    """The media type without parameters, lower-case; empty when there is none."""
    return (value or b"").split(b";", 1)[0].strip().lower().decode("latin-1")


def _check_host(policy: GuardPolicy, raw: bytes | None) -> GuardRejection | None:
    if raw is None:
        return _misdirected("The Host header is missing")
    match = _HOST.fullmatch(raw.decode("latin-1").strip(" \t"))
    if match is None:
        return GuardRejection(ErrorCode.INVALID_REQUEST, "The Host header is not valid", 400)
    name, port = match["name"].lower(), match["port"]
    if f"{name}:{port}" in policy.exact:
        return None
    if name in policy.names and (port is None or int(port) == policy.port):
        return None
    return _misdirected("This host name is not served here; see gateway.allowedHosts")


def _check_browser(method: str, seen: dict[bytes, bytes]) -> GuardRejection | None:
    """A browser speaks: only our own page, or the user's address bar, and bodies only as JSON."""
    origin = seen.get(b"origin")
    if origin is not None and origin.strip().lower() != b"http://" + seen[b"host"].strip().lower():
        return _forbidden("Requests from other web origins are not answered")
    site = seen.get(b"sec-fetch-site")
    if site is not None:
        site = site.strip().lower()
        if site != b"same-origin" and not (site == b"none" and method in READ_METHODS):
            return _forbidden("Requests from other web sites are not answered")
    if has_body(list(seen.items())) and media_type(seen.get(b"content-type")) != "application/json":
        return GuardRejection(
            ErrorCode.UNSUPPORTED_MEDIA_TYPE, "A browser's request body must be application/json", 415
        )
    return None


@functools.lru_cache(maxsize=64)
def _is_loopback(peer: str | None) -> bool:
    if peer is None:
        return False
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback


def _forbidden(detail: str) -> GuardRejection:
    return GuardRejection(ErrorCode.FORBIDDEN, detail, 403)


def _misdirected(detail: str) -> GuardRejection:
    return GuardRejection(ErrorCode.MISDIRECTED_REQUEST, detail, 421)
