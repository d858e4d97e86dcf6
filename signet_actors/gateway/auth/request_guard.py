"""Decision whether a request is served at all: a pure function of method, headers and peer address.

It runs before routing and before the body is read. In local mode no route requires a token, so this guard alone keeps
web pages in the user's browser away from the memories. It closes three ways in: a foreign name that resolves to this
machine (Host), a page's own request (Origin, Sec-Fetch-Site, and media types that need no preflight), and a proxy,
behind which every client has a loopback address. No CORS header is ever sent, so no page can read a response.

Source: docs/decisions.md 24, 25, 41; docs/security.md A1-A5, A8.
"""

from __future__ import annotations

import functools
import ipaddress
import pwd
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from signet_actors.errors import ErrorCode
from signet_actors.operations.headers import OWNER_TOKEN_HEADER

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
"""Headers that affect a decision. Two parsers could read a repeated one differently."""

PROXY_HEADERS = frozenset({b"forwarded", b"via", b"x-real-ip"})
PROXY_PREFIX = b"x-forwarded-"
BROWSER_PREFIX = b"sec-fetch-"
NODE_FETCH = (b"sec-fetch-mode", b"cors")
"""The one ``Sec-Fetch-*`` header that a program sends too: Node's ``fetch``, without a site and without an origin.

A browser sends ``Sec-Fetch-Site`` with every ``Sec-Fetch-Mode``, and in this mode ``Origin`` to every other site. A
page cannot suppress either, since their names are forbidden to scripts. Any other mode counts as a browser.

Source: W3C Fetch Metadata Request Headers, section 2; Fetch standard, "append a request Origin header";
docs/compatibility.md "Real clients: TypeScript SDK".
"""
READ_METHODS = frozenset({"GET", "HEAD"})
_FOLLOWED_LINK = ((b"sec-fetch-mode", b"navigate"), (b"sec-fetch-dest", b"document"))
"""Headers of a request that a browser makes to show its response in a tab."""

_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::(?P<port>[0-9]{1,5}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class GuardPolicy:
    """Served host names: lower-case ``names``, with ``port`` or none, and ``exact`` ones as configured.

    ``is_local``: only this machine is served. ``proxies``: the addresses from which requests of others may come.
    ``has_tls``: other machines may connect themselves, too.
    """

    port: int
    names: frozenset[str]
    exact: frozenset[str]
    is_local: bool = True
    proxies: frozenset[str] = frozenset()
    has_tls: bool = False


@dataclass(frozen=True, slots=True)
class GuardRejection:
    """Error code, text and status with which the guard rejects a request."""

    code: ErrorCode
    detail: str
    status: int


def guard_policy(
    port: int,
    allowed_hosts: Iterable[str],
    *,
    is_local: bool = True,
    proxies: Iterable[str] = (),
    has_tls: bool = False,
) -> GuardPolicy:
    """Return the policy for a listener on ``port``. An allowed host may include its own port (for a port-forward)."""
    names, exact = set(LOCAL_NAMES), set()
    for entry in allowed_hosts:
        host = entry.strip().lower()
        match = _HOST.fullmatch(host)
        if match and match["port"]:
            exact.add(host)
        elif match:
            names.add(host)
    return GuardPolicy(
        port=port,
        names=frozenset(names),
        exact=frozenset(exact),
        is_local=is_local,
        proxies=frozenset(proxies),
        has_tls=has_tls,
    )


def served_uids(users: Iterable[str], unknown: Callable[[str], None]) -> frozenset[int] | None:
    """Return the numbers of these users, None for all users; tell ``unknown`` a name that the system does not know."""
    found: set[int] = set()
    for user in users:
        if user == "*":
            return None
        try:
            found.add(int(user) if user.isdecimal() else pwd.getpwnam(user).pw_uid)
        except KeyError:
            unknown(user)
    return frozenset(found)


def check_request(
    policy: GuardPolicy, method: str, headers: Headers, peer: str | None, *, opens_shell: bool = False
) -> GuardRejection | None:
    """Return None if the request may be served. Header names must be lower-case. Ignores path, query and body.

    ``opens_shell``: it is for the shell of the page at ``/``, which has no data: a link on another site may lead there.
    ``peer`` None: the client has reset its connection, so it is not known whether it is on this machine.
    """
    if peer is None:
        return _forbidden("It is not known where the request comes from")
    if not is_loopback(peer) and peer not in policy.proxies and (policy.is_local or not policy.has_tls):
        return _forbidden(
            "In local mode only requests from this machine are accepted"
            if policy.is_local
            else "Requests of other machines are accepted only through a proxy that gateway.trustedProxies names"
        )
    seen: dict[bytes, bytes] = {}
    browser = False
    for name, value in headers:
        if (name in PROXY_HEADERS or name.startswith(PROXY_PREFIX)) and peer not in policy.proxies:
            return _forbidden(
                "In local mode requests through a proxy are refused"
                if policy.is_local
                else "Requests through a proxy are accepted only if gateway.trustedProxies names its address"
            )
        if name.startswith(BROWSER_PREFIX) or name == b"origin":
            browser = browser or (name, value) != NODE_FETCH
            if name in seen:
                return _forbidden("Duplicate browser header")
        elif name in SINGLE_HEADERS and name in seen:
            return GuardRejection(ErrorCode.INVALID_REQUEST, f"Duplicate header {name.decode()}", 400)
        elif name == b"host" and name in seen:
            return _misdirected("More than one Host header")
        seen[name] = value

    rejection = _check_host(policy, seen.get(b"host"))
    if rejection is not None or not browser:
        return rejection
    schemes = ("http", "https") if policy.proxies or policy.has_tls else ("http",)
    return _check_browser(method, seen, schemes, opens_shell=opens_shell)


def is_from_proxy(headers: Headers) -> bool:
    """Return whether a header says that a proxy has passed the request on."""
    return any(name in PROXY_HEADERS or name.startswith(PROXY_PREFIX) for name, _ in headers)


def client_address(policy: GuardPolicy, peer: str | None, headers: Headers) -> str:
    """Return by which address the client is counted: the one that a trusted proxy names last, else that of the peer.

    Of an IPv6 address the network, which is what one client is given. The text is at most 64 characters long.
    """
    named = [value for name, value in headers if name == b"x-forwarded-for"] if peer in policy.proxies else []
    text = named[-1].rpartition(b",")[2].decode("latin-1").strip() if named else peer or ""
    try:
        address = ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return text[:64]
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None:
        return str(ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))
    return str(address)


def has_body(headers: Headers) -> bool:
    """Return True if the request announces a body, of known or unknown length."""
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip() not in {b"", b"0"})
        for name, value in headers
    )


def media_type(value: bytes | None) -> str:
    """Return the media type without parameters, in lower case; empty if there is none."""
    return (value or b"").split(b";", 1)[0].strip().lower().decode("latin-1")


def _check_host(policy: GuardPolicy, raw: bytes | None) -> GuardRejection | None:
    """Return None if the Host header names this daemon, else the rejection.

    Departs: a Host without a port is accepted beside the actual port, as HTTP/1.0 clients and tools behind a
    port-forward send it; a page cannot choose that header.
    """
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
    return _misdirected("The host name in the Host header is not allowed; add it to gateway.allowedHosts")


def _check_browser(
    method: str, seen: dict[bytes, bytes], schemes: tuple[str, ...], *, opens_shell: bool
) -> GuardRejection | None:
    """Return None if a browser's request comes from our own page or the address bar, and its body, if any, is JSON.

    A link of any site may open the shell in a tab; no site can frame it, fetch it or send it a form.
    """
    origin = seen.get(b"origin")
    own = [scheme.encode() + b"://" + seen[b"host"].strip().lower() for scheme in schemes]
    if origin is not None and origin.strip().lower() not in own:
        return _forbidden("Requests from other web origins are refused")
    site = seen.get(b"sec-fetch-site")
    if site is not None:
        site = site.strip().lower()
        is_link = opens_shell and method == "GET" and all(seen.get(name) == value for name, value in _FOLLOWED_LINK)
        if site != b"same-origin" and not (site == b"none" and method in READ_METHODS) and not is_link:
            return _forbidden("Requests from other web sites are refused")
    if has_body(list(seen.items())) and media_type(seen.get(b"content-type")) != "application/json":
        return GuardRejection(
            ErrorCode.UNSUPPORTED_MEDIA_TYPE, "A browser's request body must be application/json", 415
        )
    return None


@functools.lru_cache(maxsize=64)
def is_loopback(peer: str | None) -> bool:
    """Return whether the peer has an address of this machine."""
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
