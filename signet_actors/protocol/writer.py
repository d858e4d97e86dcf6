"""The writer's mailbox: every command that changes the store, and the replies.

Each command runs in its own savepoint of a group commit. Its reply is sent only after COMMIT, so a reply is a promise
of durability. A business outcome (``version_conflict``, ``not_found``) is part of the reply; ``Failure`` is for
commands that could not run at all. Vectors are sent as raw little-endian float32 frames after the body;
``Vector.frame`` is the index of the frame.

Source: memory-api.txt; docs/reliability.md "The writer's loop"; docs/decisions.md 3-5, 23, 32, 38, 42.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, UnsetType

from signet_actors.errors import ErrorCode
from signet_actors.operations.status import WriterReport
from signet_actors.operations.structured import Structured
from signet_actors.protocol import pipeline
from signet_actors.protocol.backups import AdvanceBackup
from signet_actors.protocol.leases import AdvanceHighWaterMark, CompleteJob, FailJob, LeaseJobs, ReapLeases, RenewLease
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import KeyedRequest, Message, Principal, Request, replies_to
from signet_actors.protocol.session_summaries import SummaryCommand
from signet_actors.protocol.sessions import RecordSessions, SetBypass
from signet_actors.protocol.transcripts import TranscriptCommand


class Vector(msgspec.Struct, frozen=True):
    """The embedding of a text: model name, dimensions, and the index of its raw frame.

    ``token_codes``: what the model's encoder says of each token; None if it makes no codes.
    """

    model: str
    dimensions: int
    frame: int
    token_codes: bytes | None = None


class TemporalEdge(msgspec.Struct, frozen=True):
    """An explicit time of a memory. ``facet``: occurred, observed, source or valid; ``end`` may be open (None)."""

    facet: str
    start: str | None
    end: str | None


class NewMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """A memory ready to store: content in storage form, prefixes parsed, secrets redacted.

    ``type_named``: a person, a client, an import or a model chose the type; else it was inferred from the text.

    ``created_at`` None means the writer's clock. ``session_bound`` is true when ``source_id`` is a session key (a
    transcript came with it), which is never used to deduplicate (docs/decisions.md 4).
    """

    content: str
    type: str
    importance: float
    tags: tuple[str, ...] = ()
    pinned: bool = False
    who: str | None = None
    project: str | None = None
    scope: str | None = None
    agent_id: str = "default"
    visibility: str = "global"
    source_type: str = "manual"
    source_id: str | None = None
    source_path: str | None = None
    runtime_path: str | None = None
    idempotency_key: str | None = None
    session_bound: bool = False
    type_named: bool = True
    created_at: str | None = None
    temporal: tuple[TemporalEdge, ...] = ()
    vector: Vector | None = None
    structured: Structured | None = None


class Remembered(Message, frozen=True, tag="writer.remembered"):
    """The memory is on disk. ``embedded``: its vector was committed with it, or was stored already."""

    id: str
    type: str
    tags: list[str]
    pinned: bool
    importance: float
    content: str
    embedded: bool
    deduped: bool
    version: int


class ChunksRemembered(Message, frozen=True, tag="writer.chunks_remembered"):
    """All chunks are on disk, in the order of the text. ``deduped`` is true for a repeated import."""

    ids: list[str]
    group_id: str
    deduped: bool


class Remember(KeyedRequest[Remembered | ChunksRemembered], frozen=True, tag="writer.remember"):
    """Store one memory, or return the one it duplicates (source id, idempotency key, content hash).

    The duplicate may be a long text stored as chunks, if it has the same source.
    """

    memory: NewMemory
    principal: Principal


class RememberChunks(KeyedRequest[ChunksRemembered | Remembered], frozen=True, tag="writer.remember_chunks"):
    """Store an oversized content as chunks, all or none, or return what it duplicates.

    ``memory.content`` is the whole text (its hash identifies a replay); ``chunks`` are the parts; ``vectors`` has one
    per chunk or is empty. The duplicate may be a single memory. A conflict is ``Failure(CONFLICT)``; with
    ``may_repeat`` it is none that chunks are stored already, or the whole text under another key.
    """

    memory: NewMemory
    chunks: tuple[str, ...]
    principal: Principal
    vectors: tuple[Vector, ...] = ()
    may_repeat: bool = False


class ImportLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A memory from an export. If ``id`` is None or in use, the writer creates a new one.

    ``chunks`` is set when the content is oversized, with one of ``vectors`` for each chunk or none at all.
    ``supersedes``: memories of the same path whose source id begins like this have a former text of this one.
    """

    line: int
    memory: NewMemory
    id: str | None = None
    session_id: str | None = None
    updated_at: str | None = None
    content_at: str | None = None
    access_count: int = 0
    injected_count: int = 0
    last_accessed: str | None = None
    chunks: tuple[str, ...] = ()
    vectors: tuple[Vector, ...] = ()
    supersedes: str | None = None


class LineRefused(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why the writer did not store a line."""

    line: int
    code: ErrorCode
    detail: str
    field: str | None = None


class MemoriesImported(Message, frozen=True, tag="writer.memories_imported"):
    """Every line except the ``refused`` ones is on disk.

    ``imported`` and ``deduped`` count lines, ``memories`` the new rows, ``superseded`` the rows that they replaced.
    ``differing`` has line and id of each memory with another text that stays. ``forgotten`` counts lines that were left
    out, because their memory was deleted here. ``receipt`` identifies the commit; a repeated reply has the same. A
    reply that an earlier release stored has no receipt and no ``memories``.
    """

    imported: int
    deduped: int
    refused: list[LineRefused]
    receipt: str = ""
    memories: int | None = None
    differing: list[tuple[int, str]] = []
    forgotten: int = 0
    superseded: int = 0


class ImportMemories(KeyedRequest[MemoriesImported], frozen=True, tag="writer.import_memories"):
    """Store many memories in one commit, each like a remember; refused lines do not affect the others.

    Frame 0 holds all vectors in sequence, each of ``dimensions`` float32; ``Vector.frame`` is the position of a vector
    in it. ``restore``: also store memories that were deleted here, or leave them out.
    """

    lines: tuple[ImportLine, ...]
    principal: Principal
    dimensions: int = 0
    restore: bool = True


class Modified(Message, frozen=True, tag="writer.modified", omit_defaults=True):
    """Outcome of a patch.

    ``status``: updated, no_changes, not_found, deleted, version_conflict, duplicate_content_hash,
    duplicate_in_project, autonomous_unpin_denied. ``parts``: of a part of a long text whose content or project
    changed, its other live parts. ``moved_with``: the facts that moved to the project because they were made of it.
    """

    id: str
    status: str
    current_version: int | None = None
    new_version: int | None = None
    content_changed: bool = False
    embedded: bool = False
    duplicate_memory_id: str | None = None
    parts: list[str] = []
    moved_with: list[str] = []


class MemoryPatch(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fields to change, in storage form; UNSET keeps a field, ``tags=()`` clears the tags.

    ``project`` None: the memory belongs to none.
    """

    id: str
    reason: str
    content: str | UnsetType = UNSET
    type: str | UnsetType = UNSET
    tags: tuple[str, ...] | UnsetType = UNSET
    importance: float | UnsetType = UNSET
    pinned: bool | UnsetType = UNSET
    who: str | UnsetType = UNSET
    project: str | UnsetType | None = UNSET
    if_version: int | None = None
    vector: Vector | None = None


class ModifyMemory(KeyedRequest[Modified], frozen=True, tag="writer.modify_memory"):
    """Change one memory. For a row outside ``read`` the status is ``not_found``."""

    patch: MemoryPatch
    principal: Principal
    read: ReadScope = ReadScope()


class ManyModified(Message, frozen=True, tag="writer.many_modified"):
    """One outcome per patch, in order."""

    results: list[Modified]


class ModifyMany(KeyedRequest[ManyModified], frozen=True, tag="writer.modify_many"):
    """Change up to 200 memories, each patch in its own savepoint, all in one commit."""

    patches: tuple[MemoryPatch, ...]
    principal: Principal
    read: ReadScope = ReadScope()


class Forgotten(Message, frozen=True, tag="writer.forgotten", omit_defaults=True):
    """Outcome of a deletion.

    ``status``: deleted, not_found, already_deleted, version_conflict, pinned_requires_force, autonomous_force_denied. A
    hard delete replies ``deleted`` with ``new_version`` None. ``facts``: what was deleted with it, because the pipeline
    had made it of this memory, or as a part of the same long text. ``parts``: the live parts of the text that stay.
    """

    id: str
    status: str
    current_version: int | None = None
    new_version: int | None = None
    facts: list[str] = []
    parts: list[str] = []


class ForgetMemory(KeyedRequest[Forgotten], frozen=True, tag="writer.forget_memory"):
    """Soft-delete one memory, with ``force`` also a pinned one; ``whole``: all parts of its long text."""

    id: str
    reason: str
    principal: Principal
    force: bool = False
    if_version: int | None = None
    read: ReadScope = ReadScope()
    whole: bool = False


class ForgetTarget(msgspec.Struct, frozen=True):
    """A candidate of a batch; ``version`` is the one that the preview showed, None = any."""

    id: str
    version: int | None = None


class ManyForgotten(Message, frozen=True, tag="writer.many_forgotten"):
    """One outcome per completed target, in order.

    ``remaining`` are the targets that did not fit into the transaction; the caller sends them in another command. The
    history of the first may have lost contents already.
    """

    results: list[Forgotten]
    remaining: list[ForgetTarget] = []


class ForgetMany(KeyedRequest[ManyForgotten], frozen=True, tag="writer.forget_many"):
    """Delete a set of memories, each in its own savepoint. ``hard`` removes the rows at once (docs/decisions.md 38).

    Without ``confirmed`` it is refused in two cases: if more memories match than may be deleted without a confirm token
    (``matching``, at least the targets), or if such commands have deleted too many in the last minutes. See
    ``domain.forget_budget``.
    """

    targets: tuple[ForgetTarget, ...]
    reason: str
    principal: Principal
    hard: bool = False
    read: ReadScope = ReadScope()
    confirmed: bool = True
    matching: int = 0


class Recovered(Message, frozen=True, tag="writer.recovered", omit_defaults=True):
    """Outcome of a recovery.

    ``status``: recovered, not_found, not_deleted, retention_expired, version_conflict, duplicate_content_hash (a live
    memory has the same content). ``facts``: what was recovered with it, because it had been forgotten with it.
    """

    id: str
    status: str
    retention_days: int
    current_version: int | None = None
    new_version: int | None = None
    duplicate_memory_id: str | None = None
    facts: list[str] = []


class RecoverMemory(KeyedRequest[Recovered], frozen=True, tag="writer.recover_memory"):
    """Undo a soft deletion within the retention window; ``whole``: also of the other parts of its long text."""

    id: str
    reason: str
    principal: Principal
    if_version: int | None = None
    read: ReadScope = ReadScope()
    whole: bool = False


class TouchMemories(Message, frozen=True, tag="writer.touch_memories"):
    """Record that these memories were ``recalled`` or ``injected``. No reply; the housekeeping commit writes it."""

    ids: tuple[str, ...]
    kind: str = "recalled"


class Purged(Message, frozen=True, tag="writer.purged"):
    """``count`` rows were removed; ``more``: the batch was full, in rows or in bytes."""

    step: str
    count: int
    more: bool


class PurgeStep(Request[Purged], frozen=True, tag="writer.purge_step"):
    """One bounded step of the ordered purge, in its own short transaction.

    ``step``: graph_links, embeddings, tombstones, pipeline_runs, history, completed_jobs, dead_jobs, provider_usage,
    sessions.
    ``cutoff``: ISO time; older rows are removed. ``limit``: maximum number of rows.
    """

    step: str
    cutoff: str
    limit: int


class WriterStatus(WriterReport, Message, frozen=True, tag="writer.status"):
    """``damage`` says why every write is refused until the database is restored; None while it is intact."""


class GetWriterStatus(Request[WriterStatus], frozen=True, tag="writer.get_status"):
    """Ask for the counters; also serves as a liveness probe."""


class WritesDisabled(Message, frozen=True, tag="writer.damage_noted"):
    """All writes are refused from now on."""


class ReportDamage(Request[WritesDisabled], frozen=True, tag="writer.report_damage"):
    """The database's structure is damaged: refuse every write, so that the damage does not spread.

    This ends with a restore, or with a start at which the database is found intact.
    """

    detail: str


TransactionCommand = (
    Remember
    | RememberChunks
    | ImportMemories
    | ModifyMemory
    | ModifyMany
    | ForgetMemory
    | ForgetMany
    | RecoverMemory
    | PurgeStep
    | LeaseJobs
    | RenewLease
    | CompleteJob
    | FailJob
    | pipeline.ReleaseJobs
    | ReapLeases
    | pipeline.RequeueJobs
    | pipeline.ReconcileJobs
    | pipeline.SettleAttributes
    | pipeline.ApplyProposals
    | pipeline.StoreHints
    | pipeline.StoreVector
    | pipeline.SecondVectorCommand
    | pipeline.ApproveProposal
    | pipeline.RejectProposal
    | pipeline.ReserveCalls
    | pipeline.RecordUsage
    | AdvanceHighWaterMark
    | RecordSessions
    | SetBypass
    | TranscriptCommand
    | SummaryCommand
)
"""The commands that run in a transaction."""
WriterCommand = TransactionCommand | TouchMemories | pipeline.WatchJobs | GetWriterStatus | AdvanceBackup | ReportDamage
if TYPE_CHECKING:
    WriterReply = Message
else:
    WriterReply = replies_to(WriterCommand)
