"""What a retention sweep removes, in which order and up to when, and whether it may trust its clock.

Source: memory-system.txt "Retention Worker"; memory-pipeline.txt "Retention Worker"; docs/reliability.md R16.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
MAX_FORWARD_JUMP_MS = 48 * HOUR_MS
"""A clock that is ahead of the high-water mark by more than this, plus the elapsed time, has jumped."""
MAX_BACKWARD_JUMP_MS = 5 * 60_000
"""A clock that is behind the high-water mark by at most this was only corrected."""
CONFIRM_AFTER_MS = HOUR_MS
"""The sweep that confirms a jump comes at least this much later; two sweeps in quick succession prove nothing."""


CHECKPOINT_WINDOW = "continuity.retentionDays"
TELEMETRY_WINDOW = "telemetry.retentionDays"


class Step(NamedTuple):
    """One step of the sweep.

    ``window`` names its age limit (``retention/periodic/purge.py`` reads it from the configuration). ``after`` lists
    the steps that must have nothing left to do before this one may run.
    """

    name: str
    window: str
    after: tuple[str, ...] = ()


STEPS = (
    Step("graph_links", "tombstone_retention_ms"),
    Step("embeddings", "tombstone_retention_ms"),
    Step("tombstones", "tombstone_retention_ms", after=("graph_links", "embeddings")),
    Step("pipeline_runs", "history_retention_ms"),
    Step("history", "history_retention_ms", after=("pipeline_runs",)),
    Step("completed_jobs", "completed_job_retention_ms"),
    Step("dead_jobs", "dead_job_retention_ms"),
    Step("provider_usage", "history_retention_ms"),
    Step("sessions", "session_retention_ms"),
    Step("session_memories", "session_memory_retention_ms"),
    Step("transcripts", "transcript_retention_ms"),
    Step("session_checkpoints", CHECKPOINT_WINDOW),
    Step("audit_log", "audit_retention_ms"),
    Step("telemetry_events", TELEMETRY_WINDOW),
)
"""The mandatory order. References to a tombstone go before the tombstone, and runs before the history that explains
them.
"""


def cutoff_ms(now_ms: int, window_ms: int) -> int:
    """Return the time (milliseconds since the epoch) before which rows are removed; never before the epoch."""
    return max(0, now_ms - max(0, window_ms))


FIRST_CLOCK: Final = "no sweep has seen this clock yet"
"""Why nothing is purged in the first hour of a workspace, as it should be."""


class ClockVerdict(StrEnum):
    """Whether a sweep may purge by this clock.

    Only STEADY and CONFIRMED may. FIRST, JUMPED_FORWARD and JUMPED_BACK are new suspicions; UNCONFIRMED is an earlier
    one that still waits for confirmation.
    """

    STEADY = "steady"
    CONFIRMED = "confirmed"
    FIRST = "first"
    JUMPED_FORWARD = "jumped_forward"
    JUMPED_BACK = "jumped_back"
    UNCONFIRMED = "unconfirmed"


class ClockDecision(NamedTuple):
    """``reason`` explains why nothing may be purged ("" if purging is permitted).

    ``suspected_since_ms``, the wall time of the sweep that first saw the jump, must be stored with the high-water mark.
    ``recheck_in_ms`` is the time after which another sweep may confirm it (0 = not needed).
    """

    verdict: ClockVerdict
    reason: str = ""
    suspected_since_ms: int | None = None
    recheck_in_ms: int = 0

    @property
    def may_purge(self) -> bool:
        """True if the sweep may continue and move the high-water mark to now."""
        return self.verdict in (ClockVerdict.STEADY, ClockVerdict.CONFIRMED)


def check_clock(
    now_ms: int,
    mark_ms: int | None,
    *,
    suspected_since_ms: int | None = None,
    elapsed_ms: int = 0,
    operator_confirmed: bool = False,
    on_demand: bool = False,
) -> ClockDecision:
    """Decide whether rows may be considered old by a wall clock that shows ``now_ms``.

    A clock that jumped ahead makes every tombstone look expired. A clock that went back has proved unreliable, and one
    that no sweep has seen yet may show anything. Such a clock is trusted only if a later sweep, at least an hour on,
    sees no further jump. A clock that returns to the mark is trusted at once. ``mark_ms`` is the time of the last
    trusted sweep, None before the first. ``elapsed_ms`` is the
    monotonic time that this process measured since the mark (or the suspicion) was stored; 0 if unknown, for example
    after a restart. ``operator_confirmed`` means that an operator confirmed the clock, which is final.
    ``on_demand``: a person asked for this sweep, who vouches for a clock that no sweep has seen yet.
    """
    if operator_confirmed or (on_demand and mark_ms is None):
        return ClockDecision(ClockVerdict.CONFIRMED)
    if mark_ms is None:
        verdict, problem = ClockVerdict.FIRST, FIRST_CLOCK
    else:
        ahead = now_ms - mark_ms
        if -MAX_BACKWARD_JUMP_MS <= ahead <= MAX_FORWARD_JUMP_MS + elapsed_ms:
            return ClockDecision(ClockVerdict.STEADY)
        verdict = ClockVerdict.JUMPED_FORWARD if ahead > 0 else ClockVerdict.JUMPED_BACK
        position = f"is {_span(ahead)} ahead of" if ahead > 0 else f"went back to {_span(-ahead)} before"
        problem = f"the clock {position} the last sweep"
    if suspected_since_ms is not None:
        since = now_ms - suspected_since_ms
        if -MAX_BACKWARD_JUMP_MS <= since <= MAX_FORWARD_JUMP_MS + elapsed_ms:
            if since >= CONFIRM_AFTER_MS:
                return ClockDecision(ClockVerdict.CONFIRMED)
            wait = CONFIRM_AFTER_MS - max(0, since)
            reason = f"{problem}; nothing is purged until a sweep in {_span(wait)} confirms it"
            return ClockDecision(ClockVerdict.UNCONFIRMED, reason, suspected_since_ms, wait)
    reason = f"{problem}; nothing is purged until a sweep in {_span(CONFIRM_AFTER_MS)} confirms it"
    return ClockDecision(verdict, reason, now_ms, CONFIRM_AFTER_MS)


def _span(ms: int) -> str:
    if ms >= 48 * HOUR_MS:
        return f"{ms // (24 * HOUR_MS)} days"
    if ms >= 2 * HOUR_MS:
        return f"{ms // HOUR_MS} hours"
    return f"{-(-ms // 60_000)} minutes"
