"""A code of the page is valid once, for half a minute, and few are valid at one time."""

from __future__ import annotations

from signet_actors.gateway.auth.page_codes import LIFE_S, MOST, PageCodes

SECOND_NS = 1_000_000_000


def test_a_code_is_valid_once() -> None:
    codes = PageCodes()
    code = codes.issue(5)
    assert [codes.take(code, 6), codes.take(code, 6), codes.take("", 6)] == [True, False, False]


def test_a_code_is_valid_for_half_a_minute() -> None:
    codes = PageCodes()
    early, late = codes.issue(0), codes.issue(0)
    assert codes.take(early, LIFE_S * SECOND_NS - 1)
    assert not codes.take(late, LIFE_S * SECOND_NS)


def test_the_oldest_code_goes_for_a_new_one() -> None:
    codes = PageCodes()
    issued = [codes.issue(0) for _ in range(MOST + 1)]
    assert len(set(issued)) == MOST + 1
    assert [codes.take(code, 1) for code in issued] == [False, *[True] * MOST]
