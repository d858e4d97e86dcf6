"""Tell the supervisor, from a thread, that the loop's thread is inside a call during which it sends no heartbeat.

A sync of the disk or one SQLite statement may take longer than the supervisor allows a process to be silent. The thread
speaks only while such a call lasts, and no longer than its limit: a stopped process, one that hangs elsewhere, and one
whose call does not return are all found by their silence.

Source: docs/reliability.md R21 and "Supervision policy".
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from signet_actors.protocol.control import InCall
from signet_actors.runtime.clock import Clock

LONGEST_SYNC_NS: Final = 30_000_000_000
"""A disk that syncs for longer counts as hung."""
LONGEST_STATEMENT_NS: Final = 10_000_000_000
_NS: Final = 1_000_000_000
_SLOW_SYNC_NS: Final = _NS
_REPORTED_NS: Final = 60 * _NS
"""How long a slow sync is reported when none follows it."""


class ReportedCall:
    """A context manager around one kind of call. Calls are not nested, and only the loop's thread enters them."""

    __slots__ = ("_reporter", "last_ns", "limit_ns", "name")

    def __init__(self, reporter: CallReporter, name: str, limit_ns: int) -> None:
        self._reporter = reporter
        self.name = name
        self.limit_ns = limit_ns
        self.last_ns = 0
        """How long the last call took."""

    def __enter__(self) -> None:
        self._reporter.enter(self)

    def __exit__(self, *_: object) -> None:
        self.last_ns = self._reporter.leave()


class CallReporter:
    """The thread and the calls that it reports. Without ``start`` calls are only timed.

    ``lock`` protects what both threads use to send; the loop's thread must hold it as well when it sends.
    """

    def __init__(self, clock: Clock, send: Callable[[InCall], None], interval_ms: int) -> None:
        self.lock = threading.RLock()
        self.sync = ReportedCall(self, "sync", LONGEST_SYNC_NS)
        self.statement = ReportedCall(self, "statement", LONGEST_STATEMENT_NS)
        self._clock = clock
        self._send = send
        self._interval_ns = interval_ms * 1_000_000
        self._call: ReportedCall | None = None
        self._since_ns = 0
        self._ended = threading.Event()

    def start(self) -> None:
        """Start the thread. It ends with ``stop``, or with the process."""
        threading.Thread(target=self._run, name="call reporter", daemon=True).start()

    def stop(self) -> None:
        with self.lock:
            self._ended.set()

    def enter(self, call: ReportedCall) -> None:
        """Note that ``call`` begins."""
        self._since_ns = self._clock.monotonic_ns()
        self._call = call

    def leave(self) -> int:
        """Note that the call has ended, after a report that is being sent; return how long it took."""
        with self.lock:
            self._call = None
        return self._clock.monotonic_ns() - self._since_ns

    def report(self) -> None:
        """Send a report if a call has lasted for an interval and not yet for its limit."""
        with self.lock:
            call = self._call
            if call is None or self._ended.is_set():
                return
            elapsed_ns = self._clock.monotonic_ns() - self._since_ns
            if self._interval_ns <= elapsed_ns < call.limit_ns:
                self._send(InCall(call.name, elapsed_ns // 1_000_000))

    def _run(self) -> None:
        while not self._ended.wait(self._interval_ns / 1e9):
            self.report()


class SlowSyncs:
    """How long the last sync of a commit took, if that was long."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._took_ns = 0
        self._at_ns = 0

    def note(self, sync: ReportedCall) -> None:
        """Record how long the sync of a commit took; nothing if the commands were refused without one."""
        took_ns, sync.last_ns = sync.last_ns, 0
        if not took_ns:
            return
        self._took_ns = took_ns if took_ns >= _SLOW_SYNC_NS else 0
        self._at_ns = self._clock.monotonic_ns()

    def reported_s(self) -> float:
        """Return the duration of the last sync in seconds; 0 if it was short or long ago."""
        return 0.0 if self._clock.monotonic_ns() - self._at_ns > _REPORTED_NS else self._took_ns / _NS


def unreported(clock: Clock) -> CallReporter:
    """Return a reporter that sends nothing, for a process without a supervisor."""
    return CallReporter(clock, lambda _: None, 1000)
