"""Health of the daemon, as a whole and by domain. Source: docs/compatibility.md "Diagnostics and pipeline status"."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from signet_actors.domain.permissions import Permission
from signet_actors.operations.diagnostics import DiagnosticsReport
from signet_actors.operations.operation import Operation
from signet_actors.operations.problem import PROBLEMS, Problem
from signet_actors.operations.request_fields import NoFields
from signet_actors.operations.transcripts import OwnAgent
from signet_actors.protocol.message import Answered, Request


class HealthFigures(msgspec.Struct, frozen=True):
    """Counts over the whole store.

    ``depth``, ``completed`` and ``dead`` are of the jobs of memories, ``oldest_s`` and ``stale_leases`` of all jobs.
    ``ledger_rows``: hooks and recalls that are kept.
    """

    depth: int
    completed: int
    dead: int
    oldest_s: float
    stale_leases: int
    memories: int
    tombstones: int
    embeddings: int
    text_rows: int
    ledger_rows: int = 0


class MeasureHealth(Request[Answered], frozen=True, tag="diagnostics.measure"):
    """Ask for ``HealthFigures`` at ``now``, the caller's wall clock (ISO). Cheap enough for every second."""

    now: str


class ChangeFigures(msgspec.Struct, frozen=True):
    """Memories that were recovered and deleted within seven days, and those with the same content as another."""

    recovers: int
    deletes: int
    clusters: int
    duplicates: int
    memories: int


class CountChanges(Request[Answered], frozen=True, tag="diagnostics.count_changes"):
    """Ask for ``ChangeFigures`` at ``now``. It reads the hash of every memory: the gateway keeps the reply a while."""

    now: str


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether memory works, in a word and a sentence.

    ``level``: ok, a prompt came within a week; warn, none did, or memory was not asked for the last one; bad, something
    is down; none, no prompt has come yet, or the caller may not know of it.
    """

    level: Literal["ok", "warn", "bad", "none"]
    word: str
    sentence: str


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is wrong, in a sentence. ``command``: what to do about it in a terminal; null if nothing helps."""

    severity: Literal["bad", "warn"]
    text: str
    command: str | None


class FindingsReply(msgspec.Struct, frozen=True, kw_only=True):
    """Whether memory works, and what is wrong, the worst first."""

    verdict: Verdict
    findings: list[Finding]


REPORT: Final[Operation[NoFields, DiagnosticsReport]] = Operation(
    name="diagnostics.get",
    summary="Health of the daemon: queue, storage, index, model calls, changes",
    tag="Pipeline",
    paths=("/api/diagnostics",),
    replies={200: DiagnosticsReport},
    permission=Permission.DIAGNOSTICS,
    served_by="searcher",
    description="A part that could not be measured within a second is null and does not count.",
)
FINDINGS: Final[Operation[OwnAgent, FindingsReply]] = Operation(
    name="diagnostics.findings",
    summary="Whether memory works, and what is wrong, in sentences",
    tag="Pipeline",
    paths=("/api/diagnostics/findings",),
    request=OwnAgent,
    replies={200: FindingsReply, **PROBLEMS},
    permission=Permission.DIAGNOSTICS,
    served_by="searcher",
    owner_parts="when the last prompt came, and what came of it",
    description="A process that does not answer within a second is a finding.",
)
DOMAIN: Final[Operation[NoFields, dict[str, Any]]] = Operation(
    name="diagnostics.domain",
    summary="Health of one domain",
    tag="Pipeline",
    paths=("/api/diagnostics/{domain}",),
    example={"domain": "queue"},
    replies={200: dict[str, Any], 503: Problem, **PROBLEMS},
    permission=Permission.DIAGNOSTICS,
    served_by="searcher",
    description="The domain's member of `GET /api/diagnostics`; 503 if it could not be measured.",
)
OPERATIONS: Final = (REPORT, FINDINGS, DOMAIN)
