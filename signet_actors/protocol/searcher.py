"""The searchers' mailbox: every query that is answered from a read-only snapshot.

Query vectors are sent as one raw little-endian float32 frame after the body (frame 0). Every query applies the caller's
``ReadScope`` in SQL before any content is read (docs/decisions.md 35).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from signet_actors.domain.extraction.proposals import Candidate
from signet_actors.domain.ranking.explanation import ExplainedId, Explanation
from signet_actors.domain.ranking.stage_settings import Dampening, Traversal
from signet_actors.operations.forget import ForgetCandidate
from signet_actors.operations.memories import HistoryItem
from signet_actors.operations.pipeline import JobReply
from signet_actors.protocol.embeddings import ExportEmbeddings, GetEmbeddingHealth
from signet_actors.protocol.memories import Filters, Memory, ReadScope, Wording
from signet_actors.protocol.message import Message, Request, replies_to
from signet_actors.protocol.pipeline_queries import GetPipelineStatus
from signet_actors.protocol.sessions import SessionQuery
from signet_actors.protocol.transcripts import TranscriptQuery


class StageTiming(msgspec.Struct, frozen=True):
    """The duration of a named stage in milliseconds."""

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
    """Compute (or take from the cache) the common words of the memories that ``read`` and ``projects`` admit."""

    read: ReadScope
    projects: Filters = Filters()


class RowTime(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a row lies in a time window: the facet, its start and end (None if open), and its subject."""

    facet: str
    start: str | None
    end: str | None
    subject_type: str  # memory or session
    subject_id: str


class EntityFact(msgspec.Struct, frozen=True):
    """What a memory states of an entity. ``kind``: attribute or constraint; ``aspect`` may be empty.

    ``seq``, ``version``: the memory's number, and since when it has its words (``Wording``).
    """

    memory_id: str
    content: str
    kind: str
    aspect: str
    seq: int = 0
    version: int = 1


class NamedEntity(msgspec.Struct, frozen=True):
    """An entity of the agent that a query names, with active facts if the request wants them."""

    id: str
    name: str
    entity_type: str
    facts: list[EntityFact] = []


class RecalledRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """One ranked memory, or with ``time`` one entry of a timeline.

    ``source``: hybrid, keyword, vector, or hint (only a question stored as a hint for it matched); of a row that no leg
    has found, structured, ka_traversal, traversal or graph. ``supplementary``: constraint or rationale, why it is shown
    beside the results. ``content_length``:
    the length of the whole content in characters, None if ``content`` is not cut. ``relevance``: in [0, 1], comparable
    between queries (docs/quality.md "Relevance"). ``explanation``: only if the request wants it. ``own_ms``: when it
    occurred, or else was given its words, in milliseconds since 1970; 0 where it is not known. ``content_version``: the
    version since which it has these words. ``newer_id``: the memory that says what has changed of it since.
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
    source_id: str | None = None
    content_length: int | None = None
    relevance: float = 0.0
    seq: int = 0
    time: RowTime | None = None
    explanation: Explanation | None = None
    own_ms: int = 0
    content_version: int = 1
    source_type: str | None = None
    source_path: str | None = None
    newer_id: str | None = None
    content_at: str | None = None
    supplementary: str | None = None

    @property
    def said_at(self) -> str:
        """When somebody last gave it these words."""
        return self.content_at or self.created_at

    @property
    def wording(self) -> Wording:
        return self.seq, self.content_version


class MissedRow(msgspec.Struct, frozen=True, array_like=True):
    """A memory that a recall left out, by its wording. ``relevance``: None if the session has received the memory."""

    seq: int
    version: int
    relevance: float | None


class Recalled(Message, frozen=True, tag="searcher.recalled"):
    """Ranked rows. ``method``: hybrid when the vector leg ran, else keyword.

    ``common_words`` is set when its version differs from the request's, to update the caller's cache. ``stale_spaces``
    lists, as far as the searcher knows, other models and dimensions than ``vector_model``'s in which some memories have
    their newest vector, ``second_spaces`` those in which some have one beside it. ``explained`` is what became of the
    memory ``Recall.explain_id``. ``pending``: the number of memories that are not completely indexed yet, and may be
    found by their words alone. ``suppressed``: the rows of ``Recall.received`` that would be among these;
    ``received_hits`` are those of them that match words of the query.
    ``turns``: what was said in earlier sessions, in the form of rows; their ids are no ids of memories.
    ``beside``: rows beyond the limit: constraints of what the query names, and reasons of decisions among the rows.
    ``missed``: the most relevant ones of those that are less relevant than the request wants, and received ones.
    """

    rows: list[RecalledRow]
    method: str
    timings: list[StageTiming]
    common_words: CommonWords | None = None
    stale_spaces: tuple[tuple[str, int], ...] = ()
    second_spaces: tuple[tuple[str, int], ...] = ()
    explained: ExplainedId | None = None
    pending: int = 0
    suppressed: int = 0
    received_hits: tuple[int, ...] = ()
    turns: list[RecalledRow] = []
    beside: list[RecalledRow] = []
    entities: list[NamedEntity] = []
    missed: list[MissedRow] = []


class TimeFilter(msgspec.Struct, frozen=True, omit_defaults=True):
    """Rows with a time in the window, in milliseconds since 1970, the end exclusive. ``facets``: which times count.

    ``fill``: rows outside the window follow those within it, until the limit is reached.
    """

    start_ms: int
    end_ms: int
    facets: tuple[str, ...]
    fill: bool = False


class Recall(Request[Recalled], frozen=True, tag="searcher.recall"):
    """Hybrid recall. With ``vector_model`` the query vector is a frame; without any model, keyword only.

    ``former_model``: another model whose vectors are stored; they are searched, too. With ``prefers_former`` they count
    for each memory that has one, else only for those that have none of ``vector_model``. The frames have the same order
    as the models named.
    ``fusion``: convex or rrf. ``alpha``: weight of the vector leg. ``min_score`` and ``min_relevance``: rows below are
    dropped. ``pool``: candidates that each leg contributes (docs/quality.md rule 7).
    ``common_words_version``: the version the caller used for the dense query, -1 = none; None: not wanted.
    ``hints``: search the questions that memories may answer, too. ``rerank_top``: sort so many of the best rows again
    by their cosine; 0 = none. ``content_chars``: cut longer contents; None = never.
    ``context``: rows are supported by their neighbours in a conversation. ``priors``: rows are preferred by subject,
    question, time and number. ``episode_order``: rows of one episode are put in a learned order. ``near_ms``: prefer
    rows from the first instant to before the second (milliseconds since 1970), and those of the days around.
    ``within``: only or first rows of a time window. ``words``: the embedded words of the query with the token codes of
    ``vector_model``, ``former_words`` those of ``former_model``; empty = no token similarity.
    ``explain``: tell how the score of each row came about. ``explain_id``: tell why this memory is there or not.
    ``received``: rows that make room for the next best as long as they have these words.
    ``turns``: look for turns of sessions if memories leave places free, but not in the session ``session_key``, and
    only if fewer than ``enough`` memories answer, not counting those that the session has in the words of ``known``.
    ``asked``: of a plain question its kind and its only telling word; a turn that answers it need not have more.
    ``names``: exact names of the text in which the query was found, with what each tells; a memory that has enough of
    them is relevant. ``of_long_text``: the query is a statement of a long text, which tells less than a question.
    ``is_part``: it is cut from one, so not all of its words have to be answered. ``newest_first``: of results that
    answer equally well, the newest is the first. ``graph``: use the knowledge graph of the agent, within these limits.
    ``beside``: return constraints and reasons, too; ``facts``: so many of each entity that the query names.
    ``dampening``: correct the scores before the final sort.
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
    prefers_former: bool = False
    common_words_version: int | None = -1
    hints: bool = False
    rerank_top: int = 0
    content_chars: int | None = None
    context: bool = True
    priors: bool = True
    episode_order: bool = True
    near_ms: tuple[int, int] | None = None
    within: TimeFilter | None = None
    words: tuple[tuple[str, bytes], ...] = ()
    former_words: tuple[tuple[str, bytes], ...] = ()
    min_relevance: float = 0.0
    explain: bool = False
    explain_id: str | None = None
    received: tuple[Wording, ...] = ()
    turns: bool = False
    enough: int | None = None
    known: tuple[Wording, ...] = ()
    asked: tuple[str, str] | None = None
    session_key: str | None = None
    names: dict[str, float] = {}
    of_long_text: bool = False
    is_part: bool = False
    newest_first: bool = True
    graph: Traversal | None = None
    dampening: Dampening | None = None
    beside: bool = False
    facts: int = 0


class ListTimeline(Request[Recalled], frozen=True, tag="searcher.list_timeline"):
    """List what has a time in a window: sessions, then explicit times, then captured memories, each the latest first.

    ``words``: if any entry contains all of them, only such entries. ``min_score`` and ``min_relevance``: entries below
    are dropped.
    """

    window: TimeFilter
    read: ReadScope
    filters: Filters = Filters()
    words: str = ""
    limit: int = 10
    min_score: float = 0.0
    min_relevance: float = 0.0


class MemoryListed(Message, frozen=True, tag="searcher.memory_listed"):
    """A page, newest first, and counts over everything that ``read`` admits.

    ``total`` and ``critical`` (importance >= 0.9) count live memories; ``matching`` those that the filters admit.
    ``complete``: false if only the last deleted memories were searched for words.
    """

    memories: list[Memory]
    total: int
    with_embeddings: int
    critical: int
    matching: int
    complete: bool = True


class ListMemories(Request[MemoryListed], frozen=True, tag="searcher.list_memories"):
    """List live memories, newest first; only the soft-deleted ones with ``deleted``, by use with ``most_used``.

    ``words``: only soft-deleted ones with each of these in their content. ``chars``: how much of each content, then
    also without very long tags; None: all.
    """

    read: ReadScope
    filters: Filters = Filters()
    limit: int = 100
    offset: int = 0
    deleted: bool = False
    words: tuple[str, ...] = ()
    most_used: bool = False
    chars: int | None = None


class MemoryFound(Message, frozen=True, tag="searcher.memory_found"):
    """The memory, None without a readable one; ``parts``: id and content, None where a reply has no room."""

    memory: Memory | None
    parts: list[tuple[str, str | None]] | None = None


class GetMemory(Request[MemoryFound], frozen=True, tag="searcher.get_memory"):
    """Read one memory by id; ``with_parts``: also the live parts of the long text that it is a part of."""

    id: str
    read: ReadScope
    include_deleted: bool = False
    with_parts: bool = False


class FoundByPrefix(Message, frozen=True, tag="searcher.found_by_prefix"):
    """Readable memories, by id."""

    memories: list[Memory]


class FindByPrefix(Request[FoundByPrefix], frozen=True, tag="searcher.find_by_prefix"):
    """Find the memories whose ids begin with ``prefix``, in any scope; None for ``deleted``: live or not."""

    prefix: str
    read: ReadScope
    limit: int = 10
    deleted: bool | None = None


class IdsResolved(Message, frozen=True, tag="searcher.ids_resolved"):
    """For each beginning of an id the readable ids that it may mean; no more than one if it is clear."""

    ids: list[list[str]]


class ResolveIds(Request[IdsResolved], frozen=True, tag="searcher.resolve_ids"):
    """Find the ids that begin with each of ``beginnings``, in any scope, at most ``limit`` for each.

    An id that is given in full means itself. Deleted memories count only if no live one fits, with ``deleted_first``
    live ones only if no deleted one fits.
    """

    beginnings: tuple[str, ...]
    read: ReadScope
    limit: int = 10
    deleted_first: bool = False


class HistoryFound(Message, frozen=True, tag="searcher.history_found"):
    """Events, oldest first; None if the memory does not exist or the caller may not read it."""

    events: list[HistoryItem] | None


class GetHistory(Request[HistoryFound], frozen=True, tag="searcher.get_history"):
    """Read the audit trail of a memory, also of a deleted one that is not purged yet."""

    memory_id: str
    read: ReadScope
    limit: int = 200


class JobFound(Message, frozen=True, tag="searcher.job_found"):
    """The job, or None."""

    job: JobReply | None


class GetJob(Request[JobFound], frozen=True, tag="searcher.get_job"):
    """Read one job by id; None for a job of a memory that the caller may not read."""

    id: str
    read: ReadScope


class LegacySearched(Message, frozen=True, tag="searcher.legacy_searched"):
    """Rows of the legacy keyword search with their score: (memory, score or None)."""

    rows: list[tuple[Memory, float | None]]


class LegacySearch(Request[LegacySearched], frozen=True, tag="searcher.legacy_search"):
    """Search with FTS5 text as given (None: filters only). An invalid one is ``Failure(INVALID_REQUEST)``."""

    query: str | None
    read: ReadScope
    filters: Filters = Filters()
    limit: int = 20


class AuthorsListed(Message, frozen=True, tag="searcher.authors_listed"):
    """Distinct ``who`` values, sorted."""

    values: list[str]


class ListAuthors(Request[AuthorsListed], frozen=True, tag="searcher.list_authors"):
    """List the distinct authors of live memories in the scope."""

    read: ReadScope


class SimilarFound(Message, frozen=True, tag="searcher.similar_found"):
    """Neighbours with cosine similarity; None if the anchor has no vector or the caller may not read it."""

    rows: list[tuple[Memory, float]] | None


class FindSimilar(Request[SimilarFound], frozen=True, tag="searcher.find_similar"):
    """Find the nearest memories to a stored one."""

    id: str
    read: ReadScope
    filters: Filters = Filters()
    k: int = 10


class MemoriesExported(Message, frozen=True, tag="searcher.memories_exported"):
    """A page of live memories in the order in which they were stored; frame 0 holds it as JSON Lines.

    ``next`` is the ``after`` of the following page; None on the last one.
    """

    count: int
    next: int | None


class ExportMemories(Request[MemoriesExported], frozen=True, tag="searcher.export_memories"):
    """Page through what a caller may read, in any scope if it names none. A page ends at ``max_bytes``."""

    read: ReadScope
    after: int = 0
    limit: int = 500
    max_bytes: int = 1 << 20


class StoreStats(Message, frozen=True, tag="searcher.store_stats"):
    """Row counts for ``/api/status``; ``jobs`` maps status to count; ``database_bytes`` is the size of the file."""

    memories: int
    tombstones: int
    embeddings: int
    agents: int
    jobs: dict[str, int]
    oldest_pending_job: str | None
    schema_version: int
    database_bytes: int
    sessions: int = 0
    entities: int = 0


class GetStoreStats(Request[StoreStats], frozen=True, tag="searcher.get_store_stats"):
    """Count rows."""


class ForgetCandidatesFound(Message, frozen=True, tag="searcher.forget_candidates_found"):
    """The candidates, best first, without ids that do not exist or that the caller may not read.

    ``matching`` counts the matches before the limit, up to ``forget_budget.CONFIRM_ABOVE`` + 1 if the limit is lower.
    ``deletions`` lists what batch forgets deleted lately, see ``domain.forget_budget``. ``parts``: of the long texts
    that candidates are parts of, the other live parts.
    """

    candidates: list[ForgetCandidate]
    matching: int = 0
    deletions: list[tuple[int, int]] = []
    parts: list[str] = []


class FindForgetCandidates(Request[ForgetCandidatesFound], frozen=True, tag="searcher.find_forget_candidates"):
    """Select candidates by ids, by keyword query, or by filters alone; at most ``limit``."""

    read: ReadScope
    ids: tuple[str, ...] = ()
    query: str | None = None
    filters: Filters = Filters()
    limit: int = 20


class CandidatesFound(Message, frozen=True, tag="searcher.candidates_found"):
    """The candidates, best first."""

    candidates: list[Candidate]


class FindCandidates(Request[CandidatesFound], frozen=True, tag="searcher.find_candidates"):
    """Rank the memories that the fact ``text`` may concern.

    Only memories with the same owner, visibility, project and scope are considered (docs/decisions.md 4). ``without``
    lists ids that are never candidates. With ``vector_model`` the fact's vector is frame 0. The other fields are as in
    ``Recall``.
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
    | ListTimeline
    | FindCandidates
    | GetCommonWords
    | ListMemories
    | FindByPrefix
    | ResolveIds
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
    | SessionQuery
    | GetPipelineStatus
    | TranscriptQuery
)
if TYPE_CHECKING:
    SearcherReply = Message
else:
    SearcherReply = replies_to(SearcherQuery)
