"""The reports about a call in which the loop's thread cannot send heartbeats.

Source: docs/reliability.md R21, R27.
"""

from __future__ import annotations

from signet_actors.protocol.control import InCall
from signet_actors.runtime.processes.call_reporter import LONGEST_STATEMENT_NS, LONGEST_SYNC_NS, CallReporter
from tests.support.store_room import SetClock


def reports(reporter: CallReporter, sent: list[InCall], clock: SetClock, *, for_ms: int) -> list[InCall]:
    """Return what is reported while ``for_ms`` pass."""
    sent.clear()
    for _ in range(0, for_ms, 500):
        clock.advance(500)
        reporter.report()
    return list(sent)


def test_a_call_is_reported_while_it_lasts_up_to_its_limit() -> None:
    clock, sent = SetClock(), list[InCall]()
    reporter = CallReporter(clock, sent.append, 500)
    assert reports(reporter, sent, clock, for_ms=5000) == []
    for call, limit_ns in ((reporter.sync, LONGEST_SYNC_NS), (reporter.statement, LONGEST_STATEMENT_NS)):
        with call:
            told = reports(reporter, sent, clock, for_ms=2 * limit_ns // 1_000_000)
        assert [report.elapsed_ms for report in told] == list(range(500, limit_ns // 1_000_000, 500))
        assert {report.call for report in told} == {call.name}
        assert call.last_ns == 2 * limit_ns
    assert reports(reporter, sent, clock, for_ms=5000) == []
    reporter.stop()
    with reporter.sync:
        assert reports(reporter, sent, clock, for_ms=5000) == []
