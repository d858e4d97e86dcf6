"""A searcher: answers one query at a time from a read-only snapshot and updates its caches between queries.

Source: docs/architecture.md "The path of a recall"; docs/reliability.md "Supervision policy".
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Union

import msgspec

from signet_actors.config.schema import Config
from signet_actors.config.workspace import Workspace
from signet_actors.errors import ActorExit, ErrorCode, ExitCode, SignetError
from signet_actors.features.checkpoints.api import FindRecovery
from signet_actors.features.duplicates.api import CompareVectors
from signet_actors.features.facets.api import CountFacets
from signet_actors.features.handlers import handlers
from signet_actors.features.projection.api import FindProjection
from signet_actors.features.session_summaries.api import FindDated
from signet_actors.protocol import searcher as messages
from signet_actors.protocol import transcripts as transcript_messages
from signet_actors.protocol.embeddings import ExportEmbeddings, GetEmbeddingHealth
from signet_actors.protocol.message import Failure
from signet_actors.protocol.pipeline_queries import GetPipelineStatus
from signet_actors.protocol.sessions import FindSessionStart, FindWordings, GetSession
from signet_actors.protocol.writer import ReportDamage, WriterReply
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.messaging.blocking import BlockingRef
from signet_actors.runtime.messaging.mailbox import Incoming
from signet_actors.runtime.processes.actor_loop import ActorLoop
from signet_actors.runtime.processes.child_context import ChildContext
from signet_actors.runtime.sync_points import sync_point
from signet_actors.searcher.corrections import with_corrections, with_newer_than_turns
from signet_actors.searcher.queries import (
    candidates,
    duplicates,
    embeddings,
    facets,
    forget,
    import_export,
    memories,
    pipeline,
    projection,
    sessions,
    stats,
    timeline,
    transcripts,
)
from signet_actors.searcher.reader import BETWEEN_QUERIES, Reader
from signet_actors.searcher.recall import common_words, probe
from signet_actors.searcher.turns import with_turns
from signet_actors.searcher.within import recall_within
from signet_actors.store import errors as store_errors
from signet_actors.store.engine import Preempted, Snapshot, SnapshotEnded
from signet_actors.store.rows import StoredValueInvalid
from signet_actors.store.sqlite.reader import read_engine

_START_BUDGET_NS = 1_500_000_000
"""Time that a start may spend on building vector files; the rest is built between queries."""

_FOLLOW_S = 0.1
_FOLLOW_IDLE_S = 1.0
_ACTIVE_NS = 5_000_000_000
"""Commits are followed every ``_FOLLOW_S`` until none has been seen for this long, and then every second."""
_QUIET_NS = 10_000_000
_LONGEST_DELAY_NS = 250_000_000
"""A step between queries begins ``_QUIET_NS`` after the last query, or ``_LONGEST_DELAY_NS`` after the last step."""
_DAMAGE_PAUSE_S = 5.0
"""After a step failed on a damaged row or index, the next one is tried this much later."""

_REPORT_MS = 1000
_REPORT_AGAIN_S = 5.0
_DAMAGED = Failure(
    ErrorCode.UNAVAILABLE,
    f"the part of the database that this request reads is damaged; {store_errors.REMEDY}",
    None,
    60_000,
)
_INDEX_DAMAGED = Failure(
    ErrorCode.UNAVAILABLE, "an index of the database is damaged; `signet doctor --repair` rebuilds it", None, 60_000
)

_UNREADABLE_ROW = (UnicodeDecodeError, StoredValueInvalid)

HANDLERS: Final[dict[type, Any]] = {
    **handlers("reads"),
    messages.FindByPrefix: memories.find_by_prefix,
    messages.ResolveIds: memories.resolve_ids,
    messages.GetMemory: memories.get_memory,
    messages.GetHistory: memories.get_history,
    messages.GetJob: memories.get_job,
    messages.LegacySearch: memories.legacy_search,
    messages.ListAuthors: memories.list_authors,
    GetEmbeddingHealth: embeddings.health,
    messages.FindForgetCandidates: forget.candidates,
    GetSession: sessions.get_session,
    FindWordings: sessions.wordings,
    GetPipelineStatus: pipeline.status,
    transcript_messages.GetTranscript: transcripts.get,
    transcript_messages.SearchSessions: transcripts.search,
    transcript_messages.ExpandSessions: transcripts.expand,
    transcript_messages.ListPastSessions: transcripts.past,
}
WITH_READER: Final[dict[type, Any]] = {
    FindDated: sessions.dated_summaries,
    transcript_messages.FindSaying: transcripts.saying,
    messages.ListTimeline: timeline.timeline,
    messages.GetCommonWords: common_words,
    messages.ListMemories: memories.list_memories,
    CompareVectors: duplicates.compare,
    CountFacets: facets.facets,
    FindProjection: projection.find,
    messages.FindSimilar: embeddings.find_similar,
    FindRecovery: sessions.recovery,
    FindSessionStart: sessions.session_start,
    transcript_messages.ListSpans: transcripts.spans,
}
"""The functions that use the caches of the process."""
MAILBOX: Final[Any] = Union[messages.SearcherQuery, *HANDLERS, *WITH_READER]
"""What a searcher is sent."""

ReplyWithFrames = tuple[messages.SearcherReply, list[bytes]]


class Searcher:
    """The searcher process: handles queries from the work socket and from its own mailbox."""

    def __init__(self, boot: ChildContext, loop: ActorLoop, clock: Clock, log: Any) -> None:
        self.loop = loop
        self.clock = clock
        self.log = log
        self.config: Config = boot.config
        self.workspace = Workspace(Path(boot.workspace))
        self.reader: Reader | None = None
        self._writer: BlockingRef | None = None
        self._caught_up = False
        self._last_query_ns = self._last_change_ns = self._last_step_ns = 0
        self._index_error: str | None = None
        self._damage: str | None = None
        self._reported = False
        self._index_damaged = False
        self._row_damaged = False
        self._served = 0
        self._failed = 0
        self._snapshots_ended = 0
        self._preempted = 0

    def start(self) -> None:
        """Open the store, check that every leg works, and load the caches as far as the start budget allows.

        A damaged database is still served if its schema can be read; queries that hit the damage fail with the remedy.
        Raises ActorExit if the schema cannot be read either; a restart would not help.
        """
        try:
            try:
                self._open()
            except store_errors.DAMAGED:
                if self.reader is not None:
                    self.reader.drop_cached_pages()  # read the file again, not pages that a failing disk may have left
                self._open()
        except store_errors.DAMAGED as error:
            self._serve_damaged(error)
        except (store_errors.StoreError, OSError) as error:
            raise ActorExit(ExitCode.IO_ERROR, f"cannot read {self.workspace.database}: {error}") from error

    def _open(self) -> None:
        reader = self.reader
        if reader is None:
            reader = self.reader = Reader(
                read_engine(self.workspace.database),
                self.workspace.index_dir,
                self.clock,
                read_timeout_ms=self.config.supervision.start_timeout_ms,
                heartbeat=self.loop.heartbeat,
                is_revoked=self.loop.snapshot_revoked,
            )
        self.loop.idle_trimmer.before_trim = reader.drop_cached_pages
        until_ns = self.clock.monotonic_ns() + _START_BUDGET_NS
        while not self._caught_up and self.clock.monotonic_ns() < until_ns:
            try:
                self._caught_up = reader.catch_up()
            except SnapshotEnded:
                self.loop.snapshot_ended()
            except _UNREADABLE_ROW:
                self._note_damaged_row()
                break
            self.loop.heartbeat()
            if any(leg.error for leg in reader.vector_legs()):
                break
        self._probe(reader)
        reader.read_timeout_ms = self.config.searcher.read_timeout_ms

    def _probe(self, reader: Reader) -> None:
        """Let both legs answer. A row that cannot be read is a defect of that row: what is sound is served.

        Beside a large import the writer may end the snapshot many times; the rows that were read before are kept.
        """
        while True:
            try:
                with reader.open_snapshot() as snapshot:
                    reader.sync(snapshot)
                    probe(reader, snapshot)
            except SnapshotEnded:
                self.loop.snapshot_ended()
                self.loop.heartbeat()
                continue
            except (ActorExit, store_errors.StoreError, SignetError, OSError):
                raise
            except Exception:
                self.log.exception("self_check_failed", remedy="signet doctor --deep")
                self._row_damaged = True
            return

    def _serve_damaged(self, error: Exception) -> None:
        """Serve a damaged database as far as it can be read. Raises ``ActorExit`` if its schema cannot be read."""
        try:
            if self.reader is None:
                raise error
            self.reader.check_schema()
        except store_errors.StoreError as unreadable:
            path = self.workspace.database
            raise ActorExit(
                ExitCode.CONFIG, f"{path} is damaged and cannot be read ({unreadable}); {store_errors.REMEDY}"
            ) from unreadable
        self.reader.read_timeout_ms = self.config.searcher.read_timeout_ms
        self._note_damage(error)

    def _note_damage(self, error: Exception) -> None:
        """Note the damage for the heartbeat; the next tick reports it to the writer, which then stops writing."""
        if store_errors.is_index_damage(error):
            if not self._index_damaged:
                self.log.error("index_damaged", found=str(error), remedy="signet doctor --repair")
            self._index_damaged = True
        elif self._damage is None:
            self._damage = str(error)
            self.log.error("database_damaged", found=self._damage, remedy=store_errors.REMEDY)

    def _note_damaged_row(self) -> None:
        """Note a row that cannot be read; call this while the exception is handled."""
        if not self._row_damaged:
            self.log.exception("stored_text_damaged", remedy="signet doctor --deep")
        self._row_damaged = True

    def _report_damage(self, damage: str) -> None:
        if not self._reported:
            self._writer = self._writer or self.loop.connect_ref("writer", msgspec.msgpack.Decoder(WriterReply))
            answer = self._writer.ask(ReportDamage(damage), timeout_ms=_REPORT_MS)
            self._reported = not isinstance(answer, Failure)

    def handle(self, batch: list[Incoming[messages.SearcherQuery]]) -> None:
        """Reply to each query with its result or a failure. Raises ActorExit if the disk cannot be read."""
        try:
            for incoming in batch:
                self.loop.snapshot_ended()  # acknowledge a revocation of the previous query's snapshot
                reply, frames = self._run_preemptible(incoming)
                sync_point("searcher.before_reply")
                incoming.reply(reply, frames)
                self._last_query_ns = self.clock.monotonic_ns()
        except Exception:
            for unanswered in batch:
                if not unanswered.answered:  # a read changes nothing, so it is safe to retry
                    unanswered.reply(Failure(ErrorCode.UNAVAILABLE, "the searcher had to stop", None, 1000))
            raise

    def tick(self) -> float | None:
        """Follow the commits by one bounded step, so that a query finds little to do, and report damage to the writer.

        Return the seconds until the next step.
        """
        if self._damage is not None:
            self._report_damage(self._damage)
            return None if self._reported else _REPORT_AGAIN_S
        now = self.clock.monotonic_ns()
        if now < min(self._last_query_ns + _QUIET_NS, self._last_step_ns + _LONGEST_DELAY_NS):
            return _QUIET_NS / 1e9
        self._last_step_ns = now
        reader, version = self._reader, self._reader.columns.version
        try:
            self._caught_up = reader.catch_up(BETWEEN_QUERIES)
        except SnapshotEnded:
            self.loop.snapshot_ended()
            return 0.0
        except ActorExit:
            raise
        except (SignetError, store_errors.LockTimeout) as error:
            self.log.warning("index_build_delayed", error=str(error))
            return 1.0
        except store_errors.DAMAGED as error:
            self._note_damage(error)
            return 0.0 if self._damage is not None else _DAMAGE_PAUSE_S
        except store_errors.BROKEN_DISK as error:
            raise ActorExit(ExitCode.IO_ERROR, f"the store could not be read: {error}") from error
        except _UNREADABLE_ROW:
            self._note_damaged_row()
            return _DAMAGE_PAUSE_S
        if reader.columns.version != version:
            self._last_change_ns = now
        index_error = next((leg.error for leg in reader.vector_legs() if leg.error), None)
        if index_error != self._index_error and index_error is not None:
            self.log.warning("vector_file_unusable", error=index_error, answered_from="the stored vectors")
        self._index_error = index_error
        if index_error is not None:
            return 5.0
        if not self._caught_up:
            return 0.0
        return _FOLLOW_S if now < self._last_change_ns + _ACTIVE_NS else _FOLLOW_IDLE_S

    def counters(self) -> dict[str, float]:
        return {
            "index_pending": 0 if self.reader is None else self.reader.pending,
            "graph_failures": 0 if self.reader is None else self.reader.graph_failures,
            "served": self._served,
            "failed": self._failed,
            "snapshots_ended": self._snapshots_ended,
            "preempted": self._preempted,
            **({"damaged": 1.0} if self._damage is not None else {}),
            **({"scrub_findings": 1.0} if self._index_damaged or self._row_damaged else {}),
        }

    def drain(self) -> None:
        if self.reader is not None:
            self.reader.close()

    def reload(self, config: Config) -> None:
        """Apply the new read timeout from the next query on."""
        self.config = config
        self._reader.read_timeout_ms = config.searcher.read_timeout_ms

    @property
    def _reader(self) -> Reader:
        assert self.reader is not None, "the searcher was not started"
        return self.reader

    def _run_preemptible(self, incoming: Incoming[messages.SearcherQuery]) -> ReplyWithFrames:
        """Run a query; let waiting queries preempt a query of the pipeline.

        A preempted query starts over. It can be preempted only once, so that it always finishes.
        """
        if isinstance(incoming.body, messages.FindCandidates):
            try:
                return self._run_query(incoming, self.loop.has_pending_query)
            except Preempted:
                self._preempted += 1
            self.loop.serve_pending(self)
            if incoming.expired(self.clock.monotonic_ns()):
                return Failure(
                    ErrorCode.UNAVAILABLE, "the deadline passed while the query waited for others", None, 1000
                ), []
        return self._run_query(incoming)

    def _run_query(
        self, incoming: Incoming[messages.SearcherQuery], is_preempted: Callable[[], bool] | None = None
    ) -> ReplyWithFrames:
        """Return the result or a failure. Raises ActorExit if the process must end, Preempted if ``is_preempted``."""
        try:
            try:
                answer = self._in_snapshot(incoming, is_preempted)
            except SnapshotEnded:  # the checkpoint is done by now; try again within the remaining time
                self._snapshots_ended += 1
                self.loop.snapshot_ended()
                answer = self._in_snapshot(incoming)
            except store_errors.DAMAGED:
                self._reader.drop_cached_pages()
                answer = self._in_snapshot(incoming)
        except (ActorExit, Preempted):
            raise
        except SignetError as error:
            failure = Failure(error.code, error.detail, error.field, error.retry_after_ms)
        except store_errors.LockTimeout:
            failure = Failure(ErrorCode.UNAVAILABLE, "the database is locked by another program", None, 1000)
        except _UNREADABLE_ROW:
            self.log.exception("stored_text_damaged", remedy="signet doctor --deep", trace=incoming.header.trace_id)
            self._row_damaged = True
            detail = "a stored text is damaged; run `signet doctor --deep` to find it"
            failure = Failure(ErrorCode.UNAVAILABLE, detail, None, 60_000)
        except store_errors.DAMAGED as error:
            self._note_damage(error)
            failure = _INDEX_DAMAGED if store_errors.is_index_damage(error) else _DAMAGED
        except store_errors.BROKEN_DISK as error:
            raise ActorExit(ExitCode.IO_ERROR, f"the store could not be read: {error}") from error
        except Exception:
            # A bug in one query must not end the process.
            self.log.exception("query_failed", query=type(incoming.body).__name__, trace=incoming.header.trace_id)
            failure = Failure(ErrorCode.INTERNAL, "the query failed") if self._damage is None else _DAMAGED
        else:
            self._served += 1
            return answer
        self._failed += 1
        return failure, []

    def _in_snapshot(
        self, incoming: Incoming[messages.SearcherQuery], is_preempted: Callable[[], bool] | None = None
    ) -> ReplyWithFrames:
        with self._reader.open_snapshot(deadline_ns=incoming.header.deadline_ns, is_preempted=is_preempted) as snapshot:
            return self._dispatch(snapshot, incoming)

    def _dispatch(self, snapshot: Snapshot, incoming: Incoming[messages.SearcherQuery]) -> ReplyWithFrames:
        reader = self._reader
        query = incoming.body
        if isinstance(query, messages.Recall):
            found = recall_within(reader, snapshot, query, incoming.frames)
            found = with_corrections(reader, snapshot, query, found)
            found = with_turns(reader, snapshot, query, found)
            return with_newer_than_turns(reader, snapshot, query, found), []
        if isinstance(query, messages.FindCandidates):
            return candidates.find(reader, snapshot, query, incoming.frames), []
        if isinstance(query, messages.GetStoreStats):
            return stats.store_stats(reader, snapshot), []
        if isinstance(query, ExportEmbeddings):
            return embeddings.export(snapshot, query)
        if isinstance(query, messages.ExportMemories):
            return import_export.export(snapshot, query)
        with_reader = WITH_READER.get(type(query))
        if with_reader is not None:
            return with_reader(reader, snapshot, query), []
        return HANDLERS[type(query)](snapshot, query), []
