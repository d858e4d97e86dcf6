"""The guard admits programs and pages of this machine, and nothing else."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from signet_actors.errors import ErrorCode, SignetError
from signet_actors.gateway.auth.ownership import require_owner
from signet_actors.gateway.auth.request_guard import check_request, guard_policy

PORT = 3850
POLICY = guard_policy(PORT, ())
HOST = b"127.0.0.1:3850"


def status_of(
    *headers: tuple[bytes, bytes],
    method: str = "GET",
    host: bytes | None = HOST,
    peer: str | None = "127.0.0.1",
    opens_shell: bool = False,
) -> int:
    """200 for a request that is let in, else the status of its refusal."""
    named = [] if host is None else [(b"host", host)]
    refusal = check_request(POLICY, method, [*named, *headers], peer, opens_shell=opens_shell)
    return 200 if refusal is None else refusal.status


@pytest.mark.parametrize(
    "host",
    [b"127.0.0.1:3850", b"localhost:3850", b"[::1]:3850", b"127.0.0.1", b"localhost", b"[::1]", b"LOCALHOST:3850"],
)
def test_loopback_names_are_answered(host: bytes) -> None:
    assert status_of(host=host) == 200


@pytest.mark.parametrize(
    "host",
    [
        b"evil.example:3850",
        b"evil.example",
        b"0.0.0.0:3850",
        b"[::]:3850",
        b"[::]",
        b"127.0.0.1.nip.io:3850",
        b"localhost.evil.example:3850",
        b"localhost.:3850",
        b"127.0.0.2:3850",
        b"127.1:3850",
        b"2130706433:3850",
        b"0x7f000001:3850",
        b"[::ffff:127.0.0.1]:3850",
        b"localhost:3851",
        b"localhost:80",
        b"127.0.0.1:13850",
        b"signet",
    ],
)
def test_a_foreign_host_is_misdirected(host: bytes) -> None:
    assert status_of(host=host) == 421


@pytest.mark.parametrize(
    "host",
    [
        b"",
        b" ",
        b"localhost:3850@evil.example",
        b"evil.example@localhost:3850",
        b"localhost:3850, evil.example",
        b"localhost:3850/path",
        b"localhost:",
        b"localhost:385000",
        b"localhost:+3850",
        b"localhost:\xd9\xa3\xd9\xa8",
        b"::1",
        b"[::1",
        b"lo\xc3\xa7alhost",
        b"localhost\x00",
        b"localhost\n",
        b"[::1%25lo]:3850",
    ],
)
def test_a_malformed_host_is_not_valid(host: bytes) -> None:
    assert status_of(host=host) == 400


def test_a_missing_host_is_misdirected() -> None:
    assert status_of(host=None) == 421


@pytest.mark.parametrize("second", [b"127.0.0.1:3850", b"evil.example"])
def test_two_hosts_are_always_misdirected(second: bytes) -> None:
    assert status_of((b"host", second)) == 421


@pytest.mark.parametrize(
    "origin",
    [
        b"http://evil.example",
        b"null",
        b"",
        b"https://127.0.0.1:3850",
        b"http://localhost:3850",  # another origin than the request's own 127.0.0.1
        b"http://127.0.0.1",
        b"http://127.0.0.1:3851",
        b"http://127.0.0.1:3850.evil.example",
        b"http://127.0.0.1:3850/",
        b"file://",
        b"chrome-extension://abcdef",
        b"127.0.0.1:3850",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_a_foreign_origin_is_forbidden(origin: bytes, method: str) -> None:
    assert status_of((b"origin", origin), method=method) == 403


def test_the_daemons_own_origin_is_answered() -> None:
    headers = ((b"origin", b"http://127.0.0.1:3850"), (b"content-type", b"application/json"), (b"content-length", b"2"))
    assert status_of(*headers, method="POST") == 200


def test_a_doubled_origin_is_forbidden() -> None:
    own = (b"origin", b"http://127.0.0.1:3850")
    assert status_of(own, own) == 403


@pytest.mark.parametrize("site", [b"cross-site", b"same-site", b"", b"CROSS-SITE", b"whatever"])
def test_another_site_is_forbidden(site: bytes) -> None:
    """``<img src=http://127.0.0.1:3850/api/memory/search?q=…>`` comes without an Origin."""
    assert status_of((b"sec-fetch-site", site), (b"sec-fetch-dest", b"image")) == 403


def test_the_address_bar_and_the_daemons_pages_are_answered() -> None:
    assert status_of((b"sec-fetch-site", b"none"), (b"sec-fetch-mode", b"navigate")) == 200
    assert status_of((b"sec-fetch-site", b"same-origin")) == 200


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE", "OPTIONS"])
def test_the_address_bar_cannot_send_a_write(method: str) -> None:
    assert status_of((b"sec-fetch-site", b"none"), method=method) == 403


@pytest.mark.parametrize(
    "content_type", [b"text/plain", b"application/x-www-form-urlencoded", b"multipart/form-data", b"", None]
)
@pytest.mark.parametrize("framing", [(b"content-length", b"20"), (b"transfer-encoding", b"chunked")])
def test_a_browser_may_send_only_json(content_type: bytes | None, framing: tuple[bytes, bytes]) -> None:
    headers = [(b"sec-fetch-site", b"same-origin"), framing]
    if content_type is not None:
        headers.append((b"content-type", content_type))
    assert status_of(*headers, method="POST") == 415
    assert status_of(*headers[1:], method="POST") == 200, "a program may send JSON under any name"


NODE = (b"sec-fetch-mode", b"cors")
TEXT = ((b"content-type", b"text/plain;charset=UTF-8"), (b"content-length", b"20"))


def test_fetch_of_node_counts_as_a_program() -> None:
    """fetch sends the mode by itself, and text/plain without a given type."""
    assert status_of(NODE, *TEXT, method="POST") == 200
    assert status_of(NODE, method="DELETE") == 200


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize(
    ("beside", "status"),
    [
        ((b"sec-fetch-site", b"cross-site"), 403),
        ((b"sec-fetch-site", b"same-site"), 403),
        ((b"sec-fetch-site", b"none"), 403),
        ((b"sec-fetch-site", b""), 403),
        ((b"sec-fetch-site", b"same-origin"), 415),
        ((b"sec-fetch-dest", b"empty"), 415),
        ((b"sec-fetch-user", b"?1"), 415),
        ((b"origin", b"http://evil.example"), 403),
        ((b"origin", b"null"), 403),
        ((b"origin", b"http://127.0.0.1:3850"), 415),
        (NODE, 403),
    ],
)
def test_the_fetch_mode_with_another_browser_header_counts_as_a_browser(
    beside: tuple[bytes, bytes], status: int, place: int
) -> None:
    headers = [NODE, *TEXT]
    headers.insert(place * len(headers), beside)
    assert status_of(*headers, method="POST") == status


@pytest.mark.parametrize(
    "mode", [b"no-cors", b"navigate", b"same-origin", b"websocket", b"CORS", b"", b"cors, no-cors"]
)
def test_any_other_fetch_mode_counts_as_a_browser(mode: bytes) -> None:
    assert status_of((b"sec-fetch-mode", mode), *TEXT, method="POST") == 415


def test_json_with_a_charset_is_json() -> None:
    headers = (
        (b"sec-fetch-site", b"same-origin"),
        (b"content-length", b"2"),
        (b"content-type", b"Application/JSON; charset=utf-8"),
    )
    assert status_of(*headers, method="POST") == 200


@pytest.mark.parametrize(
    "header",
    [
        (b"forwarded", b"for=127.0.0.1"),
        (b"x-forwarded-for", b"127.0.0.1"),
        (b"x-forwarded-host", b"localhost:3850"),
        (b"x-forwarded-proto", b"https"),
        (b"via", b"1.1 proxy"),
        (b"x-real-ip", b"127.0.0.1"),
    ],
)
def test_a_request_through_a_proxy_is_not_trusted(header: tuple[bytes, bytes]) -> None:
    assert status_of(header) == 403


@pytest.mark.parametrize("peer", [None, "", "10.0.0.5", "192.168.1.2", "::", "::ffff:10.0.0.1", "fe80::1%eth0", "x"])
def test_another_machine_is_forbidden(peer: str | None) -> None:
    assert status_of(peer=peer) == 403


def test_a_client_that_has_reset_its_connection_may_be_of_another_machine_and_is_not_the_owner() -> None:
    with_tls = guard_policy(PORT, (), is_local=False, has_tls=True)
    assert check_request(with_tls, "GET", [(b"host", HOST)], "203.0.113.9") is None
    refusal = check_request(with_tls, "GET", [(b"host", HOST)], None)
    assert refusal is not None
    assert refusal.status == 403
    with pytest.raises(SignetError) as raised:
        asyncio.run(require_owner(cast("Any", None), None, None, (), []))
    assert raised.value.code is ErrorCode.FORBIDDEN


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
def test_loopback_peers_are_answered(peer: str) -> None:
    assert status_of(peer=peer) == 200


@pytest.mark.parametrize("name", [b"x-signet-agent-id", b"content-type", b"idempotency-key", b"authorization"])
def test_a_repeated_security_header_is_not_valid(name: bytes) -> None:
    assert status_of((name, b"a"), (name, b"b")) == 400


def test_allowed_hosts_are_answered_on_the_daemons_or_the_given_port() -> None:
    policy = guard_policy(PORT, ("Memory.Home", "box:8080"))
    answered = {
        host: check_request(policy, "GET", [(b"host", host)], "127.0.0.1") is None
        for host in (b"memory.home", b"memory.home:3850", b"memory.home:1", b"box:8080", b"box", b"box:3850")
    }
    assert answered == {
        b"memory.home": True,
        b"memory.home:3850": True,
        b"memory.home:1": False,
        b"box:8080": True,
        b"box": False,
        b"box:3850": False,
    }


LINK = {"site": b"cross-site", "mode": b"navigate", "dest": b"document", "user": b"?1"}


def link(**others: bytes | None) -> list[tuple[bytes, bytes]]:
    """The headers of a request that a browser makes for a link of another site; None leaves one out."""
    return [(f"sec-fetch-{name}".encode(), value) for name, value in {**LINK, **others}.items() if value is not None]


@pytest.mark.parametrize("site", [b"cross-site", b"same-site"])
def test_a_link_of_another_site_opens_the_shell_in_a_tab_and_nothing_else(site: bytes) -> None:
    assert status_of(*link(site=site), opens_shell=True) == 200
    assert status_of(*link(site=site, user=None), opens_shell=True) == 200
    assert status_of(*link(site=site), opens_shell=False) == 403


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("HEAD", link()),
        ("POST", link()),
        ("GET", link(dest=b"iframe")),
        ("GET", link(dest=b"embed")),
        ("GET", link(dest=None)),
        ("GET", link(mode=b"no-cors", dest=b"script")),
        ("GET", link(mode=b"cors", dest=b"empty")),
        ("GET", link(mode=b"websocket")),
        ("GET", link(mode=None)),
        ("GET", [*link(), (b"origin", b"http://evil.example")]),
        ("GET", [*link(), (b"origin", b"null")]),
    ],
)
def test_what_is_no_followed_link_does_not_reach_the_shell(method: str, headers: list[tuple[bytes, bytes]]) -> None:
    assert status_of(*headers, method=method, opens_shell=True) == 403
