"""Free memory is returned once, in the idle time after a load."""

from __future__ import annotations

from signet_actors.runtime.processes.idle_trimmer import QUIET_NS, IdleTrimmer

BEAT_NS = 500_000_000


class Process:
    """A process that beats twice a second, and what it does at rest."""

    def __init__(self) -> None:
        self.cpu_s = 0.0
        self.now_ns = 0
        self.done: list[str] = []
        self.idle_trimmer = IdleTrimmer(lambda: self.done.append("given back"), lambda: self.cpu_s)
        self.idle_trimmer.before_trim = lambda: self.done.append("let go")

    def beats(self, for_ns: int, *, busy: float) -> None:
        """Time passes in which so much of a core is spent."""
        until_ns = self.now_ns + for_ns
        while self.now_ns < until_ns:
            self.now_ns += BEAT_NS
            self.cpu_s += BEAT_NS / 1e9 * busy
            self.idle_trimmer.check(self.now_ns)


def test_memory_used_by_a_load_is_returned_once_when_idle() -> None:
    process = Process()
    process.beats(10 * QUIET_NS, busy=0.5)
    assert process.done == []
    process.beats(10 * QUIET_NS, busy=0.002)
    assert process.done == ["let go", "given back"]
    process.beats(QUIET_NS, busy=0.5)
    process.beats(2 * QUIET_NS, busy=0.002)
    assert process.done == ["let go", "given back"] * 2


def test_the_start_of_a_process_does_not_count_as_idle_time() -> None:
    process = Process()
    process.now_ns = 10**15
    process.cpu_s = 0.5
    process.beats(QUIET_NS, busy=0.002)
    assert process.done == []
    process.beats(QUIET_NS, busy=0.002)
    assert process.done == ["let go", "given back"], "what its imports have left"


def test_a_short_pause_does_not_count_as_idle() -> None:
    process = Process()
    for _ in range(20):
        process.beats(BEAT_NS, busy=0.3)
        process.beats(QUIET_NS - BEAT_NS, busy=0.002)
    assert process.done == []


def test_a_process_with_little_work_runs_no_garbage_collection() -> None:
    process = Process()
    for _ in range(3):
        process.beats(BEAT_NS, busy=0.1)
        process.beats(2 * QUIET_NS, busy=0.001)
    assert process.done == []


def test_little_work_adds_up() -> None:
    process = Process()
    for _ in range(6):
        process.beats(BEAT_NS, busy=0.1)
        process.beats(2 * QUIET_NS, busy=0.001)
    assert process.done == ["let go", "given back"]


def test_a_process_works_after_its_memory_was_returned() -> None:
    kept = [b"x" * 1000 for _ in range(1000)]
    trimmer = IdleTrimmer(cpu_seconds=iter([1.0, 1.0, 1.1]).__next__)
    trimmer.check(0)
    trimmer.check(QUIET_NS)
    assert all(one == b"x" * 1000 for one in kept)
