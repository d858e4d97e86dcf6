"""What a token costs, and whether the time to refuse one tells about it: ``python -m bench.token_timing [COUNT]``.

Verifies tokens whose MAC shares its first 0, 16 or 31 bytes with the right one, in turn, and prints the median of each.
Their differences must be within those of two runs with equal tokens. Then the CPU time in which the gateway finds out
who sends a request and what they may do, with 1,000 valid tokens.
"""

from __future__ import annotations

import asyncio
import secrets
import statistics
import sys
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import cast

import msgspec

from signet_actors.domain.permissions import Role
from signet_actors.domain.timestamps import iso
from signet_actors.domain.tokens import Claims, TokenRefused, TokenScope, sign, verify
from signet_actors.features.auth_tokens.api import LiveTokens, StoredToken
from signet_actors.gateway.auth.identity import Authenticator
from signet_actors.gateway.auth.token_registry import TokenRegistry
from signet_actors.operations.recall import RECALL
from signet_actors.protocol.message import Answered
from signet_actors.runtime.clock import SystemClock
from signet_actors.runtime.messaging.bus_client import BusClient

DEFAULT_COUNT = 100_000
SHARED = (0, 16, 31, 0)
"""The last one repeats the first: their difference is noise."""


def forged(token: str, shared: int) -> str:
    """Return the token with a MAC of which ``shared`` bytes are right."""
    payload, _, text = token.partition(".")
    mac = urlsafe_b64decode(text + "=")
    wrong = mac[:shared] + bytes(byte ^ 0xFF for byte in mac[shared:])
    return f"{payload}.{urlsafe_b64encode(wrong).rstrip(b'=').decode()}"


class Tokens:
    """Answers like a searcher, with ``rows``."""

    def __init__(self, rows: list[StoredToken]) -> None:
        self._reply = Answered(msgspec.json.encode(LiveTokens(rows)))

    async def ask_searcher(self, _query: object, *, trace_id: str) -> tuple[Answered, list[bytes]]:  # noqa: ARG002
        return self._reply, []


async def cost_us(count: int) -> float:
    """Return the CPU time for each request that is authenticated, in microseconds."""
    clock, now = SystemClock(), int(time.time())
    issued = StoredToken(id="", kind="token", name="Ada", role=Role.AGENT, agent_id="ada")
    issued = msgspec.structs.replace(issued, expires_at=iso((now + 3600) * 1000))
    rows = [msgspec.structs.replace(issued, id=f"id-{number}") for number in range(1000)]
    authenticator = Authenticator(TokenRegistry(cast("BusClient", Tokens(rows)), clock), clock)
    authenticator.secret = secrets.token_bytes(32)
    claims = Claims("Ada", Role.AGENT, now, now + 3600, "id-7", "key", TokenScope(agent="ada"))
    token = sign(authenticator.secret, claims).encode()
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"authorization", b"Bearer " + token)]
    began = time.process_time()
    for _ in range(count):
        identity = await authenticator.identify("team", headers, owner_token=None, is_local=True, on_loopback=True)
        identity.check(RECALL)
    return (time.process_time() - began) / count * 1e6


def main() -> None:
    """Print the medians."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_COUNT
    secret, now = secrets.token_bytes(32), int(time.time())
    right = sign(secret, Claims("a token", Role.AGENT, now, now + 3600, "id", "key"))
    tokens = [forged(right, shared) for shared in SHARED]
    times: list[list[int]] = [[] for _ in SHARED]
    for _ in range(count):
        for token, taken in zip(tokens, times, strict=True):
            began = time.perf_counter_ns()
            try:
                verify(secret, token, now)
            except TokenRefused:
                taken.append(time.perf_counter_ns() - began)
    for shared, taken in zip(SHARED, times, strict=True):
        cuts = statistics.quantiles(taken, n=20)
        print(f"{shared:2} bytes right: median {statistics.median(taken):.0f} ns, p5 {cuts[0]:.0f}, p95 {cuts[-1]:.0f}")
    print(f"a valid token: {asyncio.run(cost_us(count)):.1f} µs of CPU time for each request")


if __name__ == "__main__":
    main()
