"""By which address wrong tokens are counted, and how much is kept of addresses. Source: docs/compatibility.md."""

from __future__ import annotations

import pytest

from signet_actors.config.schema import RateLimit
from signet_actors.gateway.auth.rate_limiter import RateLimiter
from signet_actors.gateway.auth.request_guard import client_address, guard_policy

PROXY = "10.0.0.2"
POLICY = guard_policy(3850, (), is_local=False, proxies=(PROXY,))


@pytest.mark.parametrize(
    ("peer", "forwarded", "counted"),
    [
        ("203.0.113.9", [], "203.0.113.9"),
        ("203.0.113.9", [b"127.0.0.1"], "203.0.113.9"),
        (PROXY, [], PROXY),
        (PROXY, [b"198.51.100.1"], "198.51.100.1"),
        (PROXY, [b"127.0.0.1, 198.51.100.1"], "198.51.100.1"),
        (PROXY, [b"127.0.0.1", b"10.0.0.9,198.51.100.1 "], "198.51.100.1"),
        (PROXY, [b"2001:db8:1:2:3:4:5:6"], "2001:db8:1:2::/64"),
        (PROXY, [b"[2001:db8:1:2::1]"], "2001:db8:1:2::/64"),
        (PROXY, [b"::ffff:198.51.100.1"], "::ffff:c633:6401"),
        (PROXY, [b"unknown"], "unknown"),
        (PROXY, [b"x" * 9000], "x" * 64),
        (None, [], ""),
    ],
)
def test_the_last_address_that_a_trusted_proxy_names_is_that_of_the_client(
    peer: str | None, forwarded: list[bytes], counted: str
) -> None:
    headers = [(b"x-forwarded-for", value) for value in forwarded]
    assert client_address(POLICY, peer, headers) == counted


def test_millions_of_addresses_take_little_memory_and_one_address_stays_limited() -> None:
    limiter, limit = RateLimiter(), RateLimit(max_count=2)
    for number in range(100_000):
        limiter.take(str(number), limit, 0)
    assert len(limiter._times) <= 4096
    assert [limiter.take("one", limit, now) for now in (0, 1, 2, 59_999, 60_001)] == [0, 0, 59_998, 1, 0]
