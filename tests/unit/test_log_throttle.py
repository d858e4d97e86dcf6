"""Repeated warnings: one line per second, with the number of suppressed ones."""

from __future__ import annotations

from typing import Any, cast

from signet_actors.runtime.logging.throttle import LogThrottle


class Lines:
    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []

    def warning(self, event: str, **values: Any) -> None:
        self.told.append({"event": event, **values})


class Clock:
    now_ns = 5_000_000_000

    def monotonic_ns(self) -> int:
        return self.now_ns

    def wall_ms(self) -> int:
        return 0


def test_one_warning_a_second_is_logged_with_the_number_of_suppressed_ones() -> None:
    lines, clock = Lines(), Clock()
    warnings = LogThrottle(cast("Any", lines), clock)
    for _ in range(1000):
        warnings.warning("junk", sender="x")
        clock.now_ns += 10_000_000  # a hundred a second, for ten seconds
    assert len(lines.told) == 10
    assert [line["not_logged"] for line in lines.told] == [0] + [99] * 9
    assert lines.told[0] == {"event": "junk", "sender": "x", "not_logged": 0}
