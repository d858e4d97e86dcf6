"""The searchers' mailbox: every question that is answered from a read-only snapshot.

Query vectors travel as one raw little-endian float32 frame beside the body (frame 0). Every query applies
the caller's ``ReadScope`` in SQL before any content is read (docs/decisions.md 35).
"""

from __future__ import annotations

import msgspec

from signet_actors.domain.extraction.proposals import Candidate
from signet_actors.protocol.memories import Filters, HistoryEvent, Job, Memory, ReadScope
from signet_actors.protocol.message import Failure, Message, Request
from signet_actors.protocol.pipeline_queries import PipelineAnswer, PipelineQuery


class StageTiming(msgspec.Struct, frozen=True):
    """How long a named stage took, in milliseconds."""

    name: str
    duration_ms: float


class CommonWords(Message, frozen=True, tag="searcher.common_words"):
    """Words too common in a scope to help a dense query (docs/quality.md rule 3).

    ``version`` changes when the set does; ``words`` are lower-case; empty below 100 memories.
    """

    scope_key: str
    version: int
    words: list[str]


class GetCommonWords(Request[CommonWords], frozen=True, tag="searcher.get_common_words"):
    """Compute (or take from the cache) the common words of what ``read`` and ``project`` admit."""

    read: ReadScope
    project: str | None = None


class RecalledRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """One ranked memory. ``source``: hybrid, keyword, hint (only a question that it may answer matched) or vector.

    ``content_length``: the characters of the whole content, None where ``content`` is whole.
    """

    id: str
    content: str
    score: float
    source: str
    type: str
    tags: list[str]
    pinned: bool
    importance: float
    who: str | None
    project: str | None
    scope: str | None
    visibility: str
    agent_id: str
    created_at: str
    session_id: str | None = None
    content_length: int | None = None


class Recalled(Message, frozen=True, tag="searcher.recalled"):
    """Ranked rows. ``method``: hybrid when the vector leg ran, else keyword.

    ``common_words`` is set when the version differs from the request's, so that the caller's cache follows.
    ``stale_spaces``: models and widths, other than those of ``vector_model``'s frame, of which some memories have their
    newest vector, as far as the searcher knows.
    """

    rows: list[RecalledRow]
    method: str
    timings: list[StageTiming]
    common_words: CommonWords | None = None
    stale_spaces: tuple[tuple[str, int], ...] = ()


class Recall(Request[Recalled], frozen=True, tag="searcher.recall"):
    """Hybrid recall. With ``vector_model`` the query vector is a frame; without any model, keyword only.

    ``former_model`` is one whose vectors a change of model has left behind: they are searched, too. The frames stand in
    the order of the models that are named.
    ``fusion``: convex or rrf. ``alpha``: weight of the vector leg. ``min_score``: rows below are dropped.
    ``pool``: candidates that each leg contributes (docs/quality.md rule 7).
    ``common_words_version``: the version the caller used for the dense query, -1 = none; None: not wanted.
    ``hints``: the questions that memories may answer are searched beside their content. ``rerank_top``: so many of the
    best are put in order once more by their cosine; 0 = none. ``content_chars``: a longer content is cut; None: not.
    """

    query: str
    read: ReadScope
    filters: Filters = Filters()
    limit: int = 10
    fusion: str = "convex"
    alpha: float = 0.5
    min_score: float = 0.0
    pool: int = 200
    vector_model: str | None = None
    former_model: str | None = None
    common_words_version: int | None = -1
    hints: bool = False
    rerank_top: int = 0
    content_chars: int | None = None


class MemoryListed(Message, frozen=True, tag="searcher.memory_listed"):
    """A page, newest first, and counts over everything that ``read`` admits.

    ``total`` and ``critical`` (importance >= 0.9) count live memories; ``matching`` those the filters admit.
    """

    memories: list[Memory]
    total: int
    with_embeddings: int
    critical: int
    matching: int


class ListMemories(Request[MemoryListed], frozen=True, tag="searcher.list_memories"):
    """List live memories, or only the soft-deleted ones with ``deleted``."""

    read: ReadScope
    filters: Filters = Filters()
    limit: int = 100
    offset: int = 0
    deleted: bool = False


class MemoryFound(Message, frozen=True, tag="searcher.memory_found"):
    """The memory, or None when it is missing or not the reader's to see (the two look the same)."""

    memory: Memory | None


class GetMemory(Request[MemoryFound], frozen=True, tag="searcher.get_memory"):
    """Read one memory by id."""

    id: str
    read: ReadScope
    include_deleted: bool = False


class HistoryFound(Message, frozen=True, tag="searcher.history_found"):
    """Events oldest first; None when the memory is missing or not the reader's to see."""

    events: list[HistoryEvent] | None


class GetHistory(Request[HistoryFound], frozen=True, tag="searcher.get_history"):
    """Read the audit trail of a memory, also of a deleted (not yet purged) one."""

    memory_id: str
    read: ReadScope
    limit: int = 200


class JobFound(Message, frozen=True, tag="searcher.job_found"):
    """The job, or None."""

    job: Job | None


class GetJob(Request[JobFound], frozen=True, tag="searcher.get_job"):
    """Read one job by id; a job of a memory that is not the reader's to see is None."""

    id: str
    read: ReadScope


class LegacySearched(Message, frozen=True, tag="searcher.legacy_searched"):
    """Rows of the legacy keyword search with their score: (memory, score or None)."""

    rows: list[tuple[Memory, float | None]]


class LegacySearch(Request[LegacySearched], frozen=True, tag="searcher.legacy_search"):
    """FTS5 query text as the caller wrote it; a syntax error is ``Failure(INVALID_REQUEST)``. None = filters only."""

    query: str | None
    read: ReadScope
    filters: Filters = Filters()
    limit: int = 20


class AuthorsListed(Message, frozen=True, tag="searcher.authors_listed"):
    """Distinct ``who`` values, sorted."""

    values: list[str]


class ListAuthors(Request[AuthorsListed], frozen=True, tag="searcher.list_authors"):
    """Distinct authors of live memories in the scope."""

    read: ReadScope


class SimilarFound(Message, frozen=True, tag="searcher.similar_found"):
    """Neighbours with cosine similarity; None when the anchor has no vector or is not the reader's to see."""

    rows: list[tuple[Memory, float]] | None


class FindSimilar(Request[SimilarFound], frozen=True, tag="searcher.find_similar"):
    """Nearest memories to a stored one."""

    id: str
    read: ReadScope
    filters: Filters = Filters()
    k: int = 10


class EmbeddingRow(msgspec.Struct, frozen=True):
    """A memory with the index of its raw float32 frame (None when vectors were not asked for)."""

    memory: Memory
    frame: int | None


class EmbeddingsExported(Message, frozen=True, tag="searcher.embeddings_exported"):
    """A page of stored embeddings; ``total`` counts all that the scope admits."""

    rows: list[EmbeddingRow]
    total: int


class ExportEmbeddings(Request[EmbeddingsExported], frozen=True, tag="searcher.export_embeddings"):
    """Page through stored embeddings."""

    read: ReadScope
    limit: int = 600
    offset: int = 0
    vectors: bool = False


class MemoriesExported(Message, frozen=True, tag="searcher.memories_exported"):
    """A page of live memories in the order in which they were stored. Frame 0 holds it as JSON Lines.

    ``next`` is the ``after`` of the page that follows; None on the last one.
    """

    count: int
    next: int | None


class ExportMemories(Request[MemoriesExported], frozen=True, tag="searcher.export_memories"):
    """Page through what an agent may read; ``scope`` None means whatever the rows' scope.

    A page ends with the line that makes it ``max_bytes`` long.
    """

    agent_id: str
    scope: str | None = None
    after: int = 0
    limit: int = 500
    max_bytes: int = 1 << 20


class EmbeddingHealth(Message, frozen=True, tag="searcher.embedding_health"):
    """Counts behind ``GET /api/embeddings/health``, over live memories but for ``null_vectors`` and ``orphaned``.

    ``by_model`` maps model name to live memories; ``wrong_dimensions``, ``stale`` (content changed since), ``orphaned``
    (memory gone), ``vec_missing`` (stored but not in the vec0 table).
    """

    memories: int
    embedded: int
    by_model: dict[str, int]
    wrong_dimensions: int
    null_vectors: int
    stale: int
    orphaned: int
    vec_missing: int


class GetEmbeddingHealth(Request[EmbeddingHealth], frozen=True, tag="searcher.get_embedding_health"):
    """Measure embedding coverage for ``model``."""

    model: str
    dimensions: int


class StoreStats(Message, frozen=True, tag="searcher.store_stats"):
    """Row counts for ``/api/status``; ``jobs`` maps status to count; bytes are of the database file."""

    memories: int
    tombstones: int
    embeddings: int
    agents: int
    jobs: dict[str, int]
    oldest_pending_job: str | None
    schema_version: int
    database_bytes: int


class GetStoreStats(Request[StoreStats], frozen=True, tag="searcher.get_store_stats"):
    """Count rows."""


class ForgetCandidate(msgspec.Struct, frozen=True):
    """A memory that a batch forget would delete; ``score`` in [0, 1], 1.0 where nothing was ranked."""

    id: str
    score: float
    pinned: bool
    version: int


class ForgetCandidatesFound(Message, frozen=True, tag="searcher.forget_candidates_found"):
    """The candidates, best first; ids that are unknown or not the reader's to see are not among them.

    ``matching``: how many there are before the limit, counted up to ``forget_budget.CONFIRM_ABOVE`` + 1 where the
    limit is less; ``deletions``: what batch forgets deleted lately, see ``domain.forget_budget``.
    """

    candidates: list[ForgetCandidate]
    matching: int = 0
    deletions: list[tuple[int, int]] = []


class FindForgetCandidates(Request[ForgetCandidatesFound], frozen=True, tag="searcher.find_forget_candidates"):
    """Select candidates by ids, by keyword query, or by filters alone; at most ``limit``."""

    read: ReadScope
    ids: tuple[str, ...] = ()
    query: str | None = None
    filters: Filters = Filters()
    limit: int = 20


class CandidatesFound(Message, frozen=True, tag="searcher.candidates_found"):
    """Best first."""

    candidates: list[Candidate]


class FindCandidates(Request[CandidatesFound], frozen=True, tag="searcher.find_candidates"):
    """Rank what the fact ``text`` may be about, among the memories of the same owner in the same place.

    ``without`` are ids that are never candidates. With ``vector_model`` the fact's vector is frame 0. The other fields
    are as in ``Recall``.
    """

    text: str
    agent_id: str
    visibility: str
    project: str | None = None
    scope: str | None = None
    without: tuple[str, ...] = ()
    limit: int = 5
    fusion: str = "convex"
    alpha: float = 0.5
    min_score: float = 0.0
    pool: int = 200
    vector_model: str | None = None


SearcherQuery = (
    Recall
    | FindCandidates
    | GetCommonWords
    | ListMemories
    | GetMemory
    | GetHistory
    | GetJob
    | LegacySearch
    | ListAuthors
    | FindSimilar
    | ExportEmbeddings
    | ExportMemories
    | GetEmbeddingHealth
    | GetStoreStats
    | FindForgetCandidates
    | PipelineQuery
)
SearcherReply = (
    Recalled
    | CandidatesFound
    | CommonWords
    | MemoryListed
    | MemoryFound
    | HistoryFound
    | JobFound
    | LegacySearched
    | AuthorsListed
    | SimilarFound
    | EmbeddingsExported
    | MemoriesExported
    | EmbeddingHealth
    | StoreStats
    | ForgetCandidatesFound
    | PipelineAnswer
    | Failure
)
