"""The extractor's mailbox: what it works on, what it waits for, and why; a question to its model; a wait for vectors.

Source: memory-pipeline.txt "Worker Model"; docs/decisions.md 14 and 23.
"""

from __future__ import annotations

import msgspec

from signet_actors.domain.providers import ModelState
from signet_actors.protocol.message import Failure, Message, Request


class LaneState(msgspec.Struct, frozen=True, omit_defaults=True):
    """One kind of job. ``running`` of ``slots`` are at work; ``paused_because`` is empty while jobs are taken.

    ``paused_ms`` is how long the pause lasts at least; 0 where that is not known, and without a pause.

    The counters are of this life: ``done``, ``failed`` (an attempt was spent), ``returned`` (the attempt was given
    back), ``fenced`` (the lease had gone to somebody else).
    """

    kind: str
    slots: int
    running: int
    paused_because: str = ""
    paused_ms: int = 0
    done: int = 0
    failed: int = 0
    returned: int = 0
    fenced: int = 0


class TrackerState(msgspec.Struct, frozen=True, omit_defaults=True):
    """The making of missing and stale vectors, since this life began.

    ``processed`` and ``failed`` count memories, ``skipped_cycles`` pauses because the provider was away.
    """

    running: bool = False
    processed: int = 0
    failed: int = 0
    skipped_cycles: int = 0
    last_cycle_at: str | None = None


class ExtractorStatus(Message, frozen=True, tag="extractor.status"):
    """``mode`` of the pipeline: off, shadow, frozen, controlled_write or full."""

    mode: str
    model: ModelState
    lanes: list[LaneState]
    turned_away: dict[str, int]
    tracker: TrackerState = TrackerState()


class GetExtractorStatus(Request[ExtractorStatus], frozen=True, tag="extractor.get_status"):
    """Ask for the figures."""


class Summarized(Message, frozen=True, tag="extractor.summarized"):
    """A few sentences of ``model``; None where it had nothing to say, or nothing that could be read."""

    summary: str | None
    model: str


class Summarize(Request[Summarized], frozen=True, tag="extractor.summarize"):
    """Sum up ``texts``, best first, in answer to ``query``: what a recall found, and its caller may therefore read.

    Nothing is stored. The answer comes before the message's deadline or is a ``Failure``.
    """

    query: str
    texts: tuple[str, ...]


class VectorsAwaited(Message, frozen=True, tag="extractor.vectors_awaited"):
    """The memories whose vectors are committed. Of the others none is to be expected soon, or the time was over
    (``late``)."""

    stored: list[str]
    late: bool = False


class AwaitVectors(Request[VectorsAwaited], frozen=True, tag="extractor.await_vectors"):
    """Wait at most ``wait_ms`` until memories have the vectors of these ``versions`` of them, or of later ones.

    Nothing is done for it: their ``embed`` jobs are there already. Answered at once while no such job is taken.
    """

    versions: dict[str, int]
    wait_ms: int


ExtractorRequest = GetExtractorStatus | Summarize | AwaitVectors
ExtractorReply = ExtractorStatus | Summarized | VectorsAwaited | Failure
