"""Memories of an agent that say the same twice: count them, and merge each pair into one memory.

Source: architecture.txt "Repair Actions"; docs/compatibility.md "Repair gate".
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from signet_actors.domain.permissions import Permission
from signet_actors.operations.field_types import Clamped
from signet_actors.operations.operation import Effect, Operation
from signet_actors.operations.problem import PROBLEMS, Problem
from signet_actors.operations.repair import REPAIR_REFUSALS, Confirmation, RepairReply
from signet_actors.operations.transcripts import OwnAgent
from signet_actors.protocol.message import Answered, Principal, Request

MAX_MERGED: Final = 1000


class DeduplicateRequest(OwnAgent, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What to merge."""

    limit: (
        Annotated[
            int,
            Clamped(low=1, high=MAX_MERGED),
            Meta(description="Memories to merge at most; default: `memory.pipelineV2.repair.dedupBatchSize`"),
        ]
        | None
    ) = None
    dry_run: Annotated[bool, Confirmation(), Meta(description="Only list what would be merged; no limit counts")] = (
        False
    )
    again: Annotated[
        bool, Confirmation(), Meta(description="Compare all memories, not only those since the last comparison")
    ] = False


class DuplicatePair(msgspec.Struct, frozen=True, rename="camel"):
    """A memory that stays, and one that says the same and is merged into it; ``similarity``: 1.0 for equal texts."""

    kept: str
    merged: str
    similarity: float
    kept_content: str
    merged_content: str


class DeduplicateReply(RepairReply, frozen=True, kw_only=True):
    """``clusters`` counts the memories into which others were merged, or would be; ``pairs`` lists which."""

    clusters: int
    pairs: list[DuplicatePair]


class DedupStatsReply(msgspec.Struct, frozen=True, rename="camel"):
    """Equal texts of the agent in one project, scope and visibility: how many groups, and rows beyond the first.

    Groups beyond the first thousand are not counted. ``uncompared``: memories that have not been compared with those
    before them yet.
    """

    exact_clusters: int
    exact_excess: int
    total_active: int
    uncompared: int


class FoundPair(msgspec.Struct, frozen=True):
    """A pair, with the hash of either content, which must still be the same when they are merged."""

    pair: DuplicatePair
    kept_hash: str
    merged_hash: str


class FoundDuplicates(msgspec.Struct, frozen=True):
    """Pairs, and the last vector (``embeddings.seq``) that was compared; ``done``: it is the newest one.

    ``merged``: the rows (``memories.seq``) that are merged in the pairs found until now.
    """

    pairs: list[FoundPair]
    compared: int
    done: bool
    merged: list[int] = []


class FindExact(Request[Answered], frozen=True, tag="duplicates.find_exact"):
    """Ask for the pairs of equal texts, as ``FoundDuplicates``; ``compared``: where the next comparison begins."""

    agent_id: str
    limit: int


class CompareVectors(Request[Answered], frozen=True, tag="duplicates.compare"):
    """Ask for ``FoundDuplicates`` among the vectors after ``after``, as far as one short step goes.

    ``without``: rows that are merged already.
    """

    agent_id: str
    after: int
    threshold: float
    limit: int
    without: tuple[int, ...] = ()


class MergePair(Request[Answered], frozen=True, tag="duplicates.merge"):
    """Merge a pair: ``PairMerged``. The first one that is merged records the repair of ``planned`` memories."""

    found: FoundPair
    agent_id: str
    principal: Principal
    planned: int
    first: bool


class PairMerged(msgspec.Struct, frozen=True):
    """False: one of the two has changed since it was found, and nothing was done."""

    merged: bool


class NoteCompared(Request[Answered], frozen=True, tag="duplicates.note_compared"):
    """Store up to which vector the memories of the agent were compared."""

    agent_id: str
    compared: int


STATS: Final[Operation[OwnAgent, DedupStatsReply]] = Operation(
    name="repair.dedup_stats",
    summary="Count memories that say the same twice",
    tag="repair",
    paths=("/api/repair/dedup-stats",),
    request=OwnAgent,
    replies={200: DedupStatsReply, 403: Problem, **PROBLEMS},
    permission=Permission.DIAGNOSTICS,
    served_by="searcher",
    owner_only=True,
)
DEDUPLICATE: Final[Operation[DeduplicateRequest, DeduplicateReply]] = Operation(
    name="repair.deduplicate",
    summary="Merge memories that say the same twice",
    tag="repair",
    method="POST",
    paths=("/api/repair/deduplicate",),
    request=DeduplicateRequest,
    example={"dryRun": True},
    replies={200: DeduplicateReply, **REPAIR_REFUSALS},
    permission=Permission.ADMIN,
    served_by="writer",
    audited=True,
    effect=Effect.MAYBE_MEMORIES,
    rate="admin",
    keyed=False,
    owner_only=True,
    body_required=False,
    description=(
        "Equal texts, and texts whose vectors are nearer than `memory.pipelineV2.repair.dedupSemanticThreshold` if both"
        " have the same words and signs in the same order. Both must be of one agent, project, scope, visibility,"
        " author and type, not pinned, and not recovered from a merge before."
        " The one that is merged can be recovered like any that is forgotten."
    ),
)
OPERATIONS: Final = (STATS, DEDUPLICATE)
