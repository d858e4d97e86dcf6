"""Does the time to refuse a token tell how much of its MAC is right? ``python -m bench.token_timing [COUNT]``.

Verifies tokens whose MAC shares its first 0, 16 or 31 bytes with the right one, in turn, and prints the median of each.
Their differences must be within those of two runs with equal tokens.
"""

from __future__ import annotations

import secrets
import statistics
import sys
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode

from signet_actors.domain.permissions import Role
from signet_actors.domain.tokens import Claims, TokenRefused, sign, verify

DEFAULT_COUNT = 100_000
SHARED = (0, 16, 31, 0)
"""The last one repeats the first: their difference is noise."""


def forged(token: str, shared: int) -> str:
    """Return the token with a MAC of which ``shared`` bytes are right."""
    payload, _, text = token.partition(".")
    mac = urlsafe_b64decode(text + "=")
    wrong = mac[:shared] + bytes(byte ^ 0xFF for byte in mac[shared:])
    return f"{payload}.{urlsafe_b64encode(wrong).rstrip(b'=').decode()}"


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


if __name__ == "__main__":
    main()
