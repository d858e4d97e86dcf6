"""The state that every query of a searcher uses: the database, the in-memory columns, and the search legs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from signet_actors.config.schema import EMBEDDED_MODEL
from signet_actors.domain.ranking.text_flags import subject_codes
from signet_actors.domain.said_again import Statement
from signet_actors.domain.temporal.change import Subject
from signet_actors.features.facets.api import CountFacets
from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.protocol.message import Answered
from signet_actors.runtime.clock import Clock
from signet_actors.searcher.access_masks import AccessMasks
from signet_actors.searcher.coherence import EMBEDDED, OTHER, Coherence
from signet_actors.searcher.columns import Mask, MemoryColumns
from signet_actors.searcher.common_words import CommonWordsCache
from signet_actors.searcher.episodes import Episodes
from signet_actors.searcher.graph.graph_index import GraphIndex
from signet_actors.searcher.legs.hints import HintsLeg
from signet_actors.searcher.legs.keyword import KeywordLeg
from signet_actors.searcher.legs.vector import VectorLeg
from signet_actors.searcher.postings import TAG, Postings
from signet_actors.searcher.relevance import Counted, UnrelatedCosines
from signet_actors.searcher.row_flags import RowFlags
from signet_actors.searcher.subjects import Subjects
from signet_actors.searcher.tags import MemoryTags
from signet_actors.searcher.token_similarity import TokenSimilarity
from signet_actors.store.engine import ReaderEngine, Snapshot
from signet_actors.store.read_policy import Policy, resolve_policy
from signet_actors.store.reads import text_index, vectors

_MAX_TAG_LOOKUPS = 16


class Step(NamedTuple):
    """The most rows that one step brings up to date in each cache, so that a query that arrives waits little."""

    vectors: int  # 3 us each
    codes: int  # 0.6 us
    flags: int  # 13 us
    places: int  # 3 us at the end of a session, 30 us between others in a session of 300,000
    coherence: int  # 9 us
    graph: int  # 10 us
    tags: int  # 2 us


IN_QUERY: Final = Step(vectors=1_000, codes=4_096, flags=100, places=300, coherence=512, graph=200, tags=500)
BETWEEN_QUERIES: Final = Step(
    vectors=2_000, codes=16_384, flags=500, places=1_000, coherence=1_024, graph=1_000, tags=5_000
)
AT_START: Final = Step(
    vectors=4_000, codes=1 << 30, flags=2_000, places=2_000, coherence=8_192, graph=2_000, tags=10_000
)


class Reader:
    """A database open for reading and the caches that are kept in step with commits."""

    def __init__(
        self,
        engine: ReaderEngine,
        index_dir: Path,
        clock: Clock,
        *,
        read_timeout_ms: int,
        heartbeat: Callable[[], None] = lambda: None,
        is_revoked: Callable[[], bool] = lambda: False,
    ) -> None:
        self.engine = engine
        self.clock = clock
        self.read_timeout_ms = read_timeout_ms
        self._heartbeat = heartbeat
        self._is_revoked = is_revoked
        self.columns = MemoryColumns()
        self.postings = Postings(self.columns)
        self.keyword = KeywordLeg(self.columns, self.postings)
        self.hints = HintsLeg(self.columns)
        self.common_words = CommonWordsCache()
        self.flags = RowFlags(index_dir, self.columns)
        self.episodes = Episodes(self.columns)
        self.tokens = TokenSimilarity()
        self.graph = GraphIndex()
        self.tags = MemoryTags(self.columns)
        self.facets: tuple[int | None, dict[CountFacets, Answered]] = (None, {})
        """The counts of the version of the columns, as they were answered."""
        self.unrelated = UnrelatedCosines()
        self.graph_failures = 0
        """Recalls that went without the graph because its index raised an error."""
        self.change_subjects: dict[tuple[int, int, int], Subject] = {}
        self.statements: dict[tuple[int, ...], tuple[Statement, ...]] = {}
        """What forgotten memories say, by generation, row and version of the words."""
        self._subjects = Subjects(self.columns, self.flags)
        self._coherence: dict[VectorLeg, Coherence] = {}
        self._access_masks = AccessMasks(self.columns)
        self._policies: tuple[Snapshot | None, dict[tuple[str, str | None, str | None], Policy]] = (None, {})
        self._index_dir = index_dir
        self._legs: dict[tuple[str, int], VectorLeg] = {}

    @contextmanager
    def open_snapshot(
        self, *, deadline_ns: int = 0, is_preempted: Callable[[], bool] | None = None
    ) -> Iterator[Snapshot]:
        """Open a snapshot that ends at the caller's deadline or after ``read_timeout_ms``, whichever is sooner.

        ``deadline_ns`` is monotonic, 0 for none. ``is_preempted`` makes ``check_preempted`` raise ``Preempted``.
        """
        latest = self.clock.monotonic_ns() + self.read_timeout_ms * 1_000_000
        with self.engine.snapshot(
            self.clock,
            deadline_ns=min(latest, deadline_ns) if deadline_ns else latest,
            heartbeat=self._heartbeat,
            is_revoked=self._is_revoked,
            is_preempted=is_preempted,
        ) as snapshot:
            yield snapshot

    def sync(self, snapshot: Snapshot) -> None:
        """Bring the columns and the vector legs up to date with ``snapshot``; call this before using them."""
        self.columns.sync(snapshot)
        self._sync_legs(snapshot, IN_QUERY)

    def _sync_legs(self, snapshot: Snapshot, step: Step) -> None:
        """Bring the vector legs nearer to ``snapshot``, with a heartbeat before each, because growth may take long."""
        for leg in self._legs.values():
            self._heartbeat()
            leg.sync(snapshot, self.columns, max_rows=step.vectors, max_codes=step.codes)

    def vector_leg(self, snapshot: Snapshot, model: str, dimensions: int) -> VectorLeg | None:
        """Return the vector leg of ``model`` at ``dimensions``; None if nothing was ever embedded that way."""
        leg = self._legs.get((model, dimensions))
        if leg is None:
            database_id = vectors.database_id(snapshot)
            if database_id is None or not snapshot.has_vector_index(model, dimensions):
                return None
            leg = self._legs[model, dimensions] = VectorLeg(self._index_dir, model, dimensions, database_id)
            leg.sync(snapshot, self.columns, max_rows=IN_QUERY.vectors, max_codes=IN_QUERY.codes)
            gate = EMBEDDED if model == EMBEDDED_MODEL else OTHER
            self._coherence[leg] = Coherence(self.columns, self.episodes, leg, gate)
        return leg

    def sync_context(self, snapshot: Snapshot, step: Step = IN_QUERY) -> None:
        """Bring flags, episodes and their coherence nearer to ``snapshot`` by one bounded step; the legs must be there.

        A large import takes several steps; until then its rows have less context.
        """
        self._heartbeat()
        self.flags.sync(snapshot, max_rows=step.flags)
        self._heartbeat()
        moved = self.episodes.sync(max_rows=step.places)
        for coherence in self._coherence.values():
            self._heartbeat()
            coherence.sync(moved, max_rows=step.coherence)

    @property
    def context_complete(self) -> bool:
        """True if flags, episodes and coherence include all rows of the last snapshot."""
        return (
            self.flags.complete
            and self.episodes.complete
            and all(coherence.complete for coherence in self._coherence.values())
        )

    @property
    def pending(self) -> int:
        """How many memories of the last snapshot some cache lacks; recall may find them by their words alone."""
        return max(
            self.flags.pending,
            self.episodes.pending,
            *(leg.pending for leg in self._legs.values()),
            *(coherence.pending for coherence in self._coherence.values()),
        )

    def open_episodes(self, numbers: npt.NDArray[np.int32]) -> Mask:
        """Return which of the episodes are coherent in a vector space of the store."""
        open_ = np.zeros(len(numbers), np.bool_)
        for coherence in self._coherence.values():
            open_ |= coherence.is_open(numbers)
        return open_

    def known_subject(self, snapshot: Snapshot, read: ReadScope, project: tuple[str, ...], query: str) -> int:
        """Return the code of the only word of ``query`` that is a subject of what the caller may read, else 0."""
        codes = subject_codes(query)
        if not codes:
            return 0
        policy = self._policy(snapshot, read)
        return self._subjects.find((policy, read.scope, project), self.readable_rows(snapshot, read, project), codes)

    def _policy(self, snapshot: Snapshot, read: ReadScope) -> Policy:
        if self._policies[0] is not snapshot:
            self._policies = (snapshot, {})
        known = self._policies[1]
        caller = read.agent_id, read.project, read.user
        known[caller] = known.get(caller) or resolve_policy(snapshot, read)
        return known[caller]

    def readable_rows(self, snapshot: Snapshot, read: ReadScope, project: tuple[str, ...]) -> Mask:
        """Return a read-only mask, shape (size,): the rows that the caller may read, of one project if it is named."""
        return self._access_masks.mask(self._policy(snapshot, read), read.scope, project)

    def counted_rows(self, snapshot: Snapshot, read: ReadScope, filters: Filters) -> Counted:
        """Return the rows that the caller may read in the projects of the request; other filters do not count."""
        policy = self._policy(snapshot, read)
        readable = self._access_masks.mask(policy, read.scope, filters.only_project)
        return Counted((policy, read.scope, filters.projects), self.columns.narrow(readable, filters.projects))

    def vector_legs(self) -> Iterable[VectorLeg]:
        return self._legs.values()

    def catch_up(self, step: Step = AT_START) -> bool:
        """Bring all caches nearer to the newest commit by one bounded step; return True when they are complete.

        Columns and hints are brought up to date at once.
        """
        with self.open_snapshot() as snapshot:
            self.columns.sync(snapshot)
            self.hints.sync(snapshot)
            for model, dimensions in vectors.models(snapshot):
                self.vector_leg(snapshot, model, dimensions)
            self._sync_legs(snapshot, step)
            self.sync_context(snapshot, step)
            self.graph.sync(snapshot, max_rows=step.graph)
            self.tags.sync(snapshot, max_rows=step.tags)
            return self.is_settled

    @property
    def is_settled(self) -> bool:
        """True if every cache includes all rows of the last snapshot."""
        arrays = self.context_complete and self.graph.complete and self.tags.complete
        return arrays and all(leg.settled for leg in self._legs.values())

    def allowed_rows(self, snapshot: Snapshot, read: ReadScope, filters: Filters) -> Mask:
        """Return a mask of the rows that the caller may read and that pass the filters.

        Shape (columns.size,). The array may be read-only.
        """
        mask = self.columns.narrow(self.readable_rows(snapshot, read, filters.only_project), filters)
        if not filters.tags:
            return mask
        tagged = np.zeros(len(mask), np.bool_)
        if len(filters.tags) <= _MAX_TAG_LOOKUPS:
            for tag in filters.tags:
                tagged[self.postings.lookup(snapshot, TAG, tag)] = True
        else:
            tagged[text_index.rows_tagged_with_any(snapshot, filters.tags)] = True
        return tagged & mask

    def rows_in_any_scope(self, snapshot: Snapshot, read: ReadScope, filters: Filters, *, deleted: bool) -> Mask:
        """Return a mask, shape (columns.size,), of the rows that the caller may read and that pass the filters.

        Not only those of the caller's scope; live ones, or those that are deleted.
        """
        columns, rows = self.columns, slice(0, self.columns.size)
        state = columns.deleted if deleted else columns.live
        mask = columns.readable_in_any_scope(self._policy(snapshot, read), state, rows)
        if filters.only_project:
            mask &= columns.in_project(filters.only_project, rows)
        if filters.tags:
            mask &= self.tags.with_any(snapshot, filters.tags)
        return columns.narrow(mask, filters)

    def check_schema(self) -> None:
        self.engine.check_schema()

    def drop_cached_pages(self) -> None:
        """Free the engine's cache and mapped pages while the process is idle."""
        self.engine.drop_cached_pages()
        self.tokens.release_memory()

    def close(self) -> None:
        """Close the vector files and the database."""
        for leg in self._legs.values():
            leg.matrix.close()
        self.flags.close()
        self.engine.close()
