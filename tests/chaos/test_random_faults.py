"""A bounded share of ``make chaos``: random kills and stops of every process under traffic.

Source: docs/reliability.md R1, R10, R15, R25.
"""

from __future__ import annotations

import pytest

from tests.chaos.random_faults import Fault, run, unexplained
from tests.chaos.seeds import SEED
from tests.chaos.traffic import BROKEN, Exchange

SECONDS = 30


@pytest.mark.system
@pytest.mark.slow
def test_random_kills_and_stops_lose_duplicate_and_change_no_write() -> None:
    findings = run(SECONDS, SEED)
    assert findings.wrong == [], f"repeat with SIGNET_CHAOS_SEED={SEED}"
    assert findings.kills >= 7
    assert findings.book.acknowledged >= 200
    assert findings.merged > 0


def test_a_failed_request_is_expected_only_after_a_fault_of_the_same_time_and_kind() -> None:
    writer = Fault("kill one", ("writer",), 1, begun=10.0, ended=12.0)
    gateway = Fault("kill one", ("gateway",), 1, begun=20.0, ended=22.0)
    cases = {
        (503, 11.0): True,
        (504, 11.0): True,
        (503, 15.0): False,
        (BROKEN, 11.0): False,
        (BROKEN, 21.0): True,
        (500, 11.0): False,
        (507, 21.0): False,
    }
    for (status, at), explained in cases.items():
        found = unexplained([Exchange("remember", at, at + 0.1, status)], [writer, gateway])
        assert (found == []) is explained, (status, at)
