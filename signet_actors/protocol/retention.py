"""The retention actor's mailbox: sweep now, and how the last sweep went.

Source: memory-pipeline.txt "Retention Worker"; architecture.txt "/api/repair/retention-sweep"; reliability.md R16.
"""

from __future__ import annotations

from signet_actors.protocol.message import Failure, Message, Request
from signet_actors.protocol.writer import Purged


class Swept(Message, frozen=True, tag="retention.swept"):
    """What a sweep removed, one entry per step in order; ``more`` means that rows remain for the next sweep.

    ``requeued`` and ``dead`` are the expired job leases that went back and the jobs that died. ``skipped_reason``
    says in words why nothing, or not everything, was purged.
    """

    steps: list[Purged]
    requeued: int
    dead: int
    skipped_reason: str | None = None


class SweepNow(Request[Swept], frozen=True, tag="retention.sweep_now"):
    """Sweep at once instead of at the next interval.

    ``confirm_clock`` vouches for the wall clock after a leap (reliability.md R16), which is otherwise believed only
    at a second sweep.
    """

    confirm_clock: bool = False


class RetentionStatus(Message, frozen=True, tag="retention.status"):
    """Times are ISO text and milliseconds; ``last_counts`` maps step to rows removed by the last finished sweep.

    ``suspended_reason`` is set while purging waits, for the clock or for the writer.
    """

    last_sweep_at: str | None
    next_sweep_in_ms: int
    last_counts: dict[str, int]
    suspended_reason: str | None


class GetRetentionStatus(Request[RetentionStatus], frozen=True, tag="retention.get_status"):
    """Ask how the last sweep went and when the next one comes."""


RetentionRequest = SweepNow | GetRetentionStatus
RetentionReply = Swept | RetentionStatus | Failure
