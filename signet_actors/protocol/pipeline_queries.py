"""The query about the state of the pipeline. Counts cover the whole store, regardless of scope.

Source: docs/compatibility.md "Diagnostics and pipeline status".
"""

from __future__ import annotations

import msgspec

from signet_actors.operations.pipeline import DeadReport, UsageReport
from signet_actors.protocol.message import Message, Request


class KindQueue(msgspec.Struct, frozen=True):
    """The jobs of one kind by state.

    ``delayed`` of the pending ones are not due yet, the first at ``next_due_at``; ``oldest_pending_at`` is when the
    oldest of them was created. ``completed``: those that are kept.
    """

    kind: str
    pending: int = 0
    delayed: int = 0
    leased: int = 0
    completed: int = 0
    dead: int = 0
    oldest_pending_at: str | None = None
    next_due_at: str | None = None
    oldest_lease_at: str | None = None


class PipelineStatus(Message, frozen=True, tag="searcher.pipeline_status"):
    """The queue, the ten most frequent causes of dead jobs, the runs, and counters of today and of all days kept.

    Counters are named ``outcome.…``, ``reason.…``, ``turned_away.…``, ``review.…``, ``facts``, ``runs``, ``fenced`` …;
    the junk rate is the share of what was turned away in that plus ``facts``.
    """

    queues: list[KindQueue]
    dead_causes: list[DeadReport]
    runs: int
    runs_undone: int
    last_run_at: str | None
    reviews_pending: int
    today: dict[str, int]
    total: dict[str, int]
    usage_today: list[UsageReport]


class GetPipelineStatus(Request[PipelineStatus], frozen=True, tag="searcher.get_pipeline_status"):
    """Ask for the status; ``now`` is the caller's wall clock (ISO), which defines today and what is due."""

    now: str
