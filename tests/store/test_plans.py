"""Look-ups by id use the index of the id, however many rows the agent has.

SQLite has no statistics of this database. For a query by scope and id it might use the index of contents, which begins
with the scope, and read the whole scope.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from signet_actors.errors import NotFound
from signet_actors.features.reviews.api import LIST_REVIEWS, ListReviewsRequest
from signet_actors.features.reviews.reads import listed as reviews_listed
from signet_actors.features.session_summaries import reads as session_summaries
from signet_actors.features.session_summaries.api import (
    EXPAND,
    LIST,
    ExpandSummaryRequest,
    FindDated,
    ListSummariesRequest,
)
from signet_actors.protocol.leases import LeaseJobs, ReapLeases
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Caller, Principal, message_of
from signet_actors.protocol.searcher import ExportMemories, FindSimilar
from signet_actors.protocol.transcripts import ListPastSessions
from signet_actors.protocol.writer import ImportLine, ImportMemories, NewMemory, RememberChunks
from signet_actors.searcher.queries import embeddings, import_export
from signet_actors.store.reads import temporal_edges, transcripts
from tests.support.pipeline_harness import PipelineHarness, change, configured
from tests.support.store_room import DIMENSIONS, connection_of, plan_of

ALONE = ReadScope(agent_id="alone")
"""Isolated here: what it reads is ``m.agent_id = ?``."""


@pytest.fixture
def room(tmp_path: Path) -> Iterator[PipelineHarness]:
    room = PipelineHarness(tmp_path, config=configured(allow_update_delete=True))
    yield room
    room.close()


class Asked:
    """The questions that a connection was asked, and what of a whole scope was read for them."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self.questions: list[str] = []
        connection.exec_trace = self._note

    def _note(self, _cursor: Any, sql: str, _bindings: Any) -> bool:
        if sql.startswith("SELECT"):
            self.questions.append(sql)
        return True

    def read_by_scope(self) -> list[str]:
        self._connection.exec_trace = None
        found = []
        for sql in self.questions:
            plan = plan_of(self._connection, sql)
            found += [sql for step in plan if "idx_memories_content_hash" in step and "content_hash=?" not in step]
        return found


def test_a_repeated_source_is_looked_up_by_index(room: PipelineHarness) -> None:
    first = room.remember("The build uses Make", source_type="manual", source_id="page-1")
    asked = Asked(room.connection)
    again = room.remember("The build uses Ninja", source_type="manual", source_id="page-1")
    assert (again.id, again.deduped) == (first.id, True)
    assert asked.read_by_scope() == []
    assert any("m.source_id = :source_id" in sql for sql in asked.questions)


def test_queries_of_one_agent_find_rows_by_row_number(room: PipelineHarness) -> None:
    target = room.remember("The build KA-6 uses Make", vector=[1.0], agent_id="alone").id
    room.remember("The build KA-6 does not use Make", vector=[1.0, 0.1], agent_id="alone")
    room.report(room.take())
    room.report(room.take(), change("update", "The build uses Ninja", (target, 1), contradiction=True))
    room.connection.execute("UPDATE agents SET read_policy = 'isolated' WHERE id = 'alone'")
    asked = Asked(connection_of(room.reader.engine))
    with room.reader.open_snapshot() as view:
        asked_for = message_of(LIST_REVIEWS)(caller=Caller(ALONE.agent_id), request=ListReviewsRequest())
        assert [item.current_version for item in reviews_listed(view, asked_for).items] == [1]
        assert import_export.export(view, ExportMemories(ReadScope("alone")))[0].count == 2
        similar = embeddings.find_similar(room.reader, view, FindSimilar(target, ALONE))
        transcripts.past(view, ListPastSessions(ALONE, limit=10, chars=100))
        caller = Caller(ALONE.agent_id)
        session_summaries.listed(view, message_of(LIST)(caller=caller, request=ListSummariesRequest()))
        session_summaries.dated(view, FindDated(ALONE.agent_id, 10, 10))
        with pytest.raises(NotFound):
            session_summaries.expand(view, message_of(EXPAND)(caller=caller, request=ExpandSummaryRequest(id=target)))
    assert similar.rows is not None
    assert len(similar.rows) == 1
    assert len(room.recall("What does KA-6 use?", vector=[1.0], read=ALONE).rows) == 2
    assert len(asked.questions) > 10
    assert asked.read_by_scope() == []


def test_leased_jobs_are_found_among_those_that_are_leased(room: PipelineHarness) -> None:
    room.remember("The build uses Make")
    job = room.take()
    asked = Asked(room.connection)
    room.ask(ReapLeases())
    again = room.ask(LeaseJobs(kinds=("extract",), limit=1, lease_ms=1000, holding=()))
    assert [held.lease_id for held in again.jobs] == [job.lease_id]
    connection_of(room.engine).exec_trace = None
    questions = [sql for sql in asked.questions if "j.status = 'leased'" in sql and "j.lease_boot" in sql]
    assert len(questions) == 3
    for sql in questions:
        assert "idx_memory_jobs_leased" in plan_of(room.connection, sql)[0], sql


def test_the_times_in_a_window_are_read_from_an_index(room: PipelineHarness) -> None:
    asked = Asked(connection_of(room.reader.engine))
    with room.reader.open_snapshot() as view:
        for facet in ("occurred", "valid"):
            temporal_edges.overlapping(view, facet, "2026-05-13", "2026-05-14", 10, lambda seq: True)
    connection_of(room.reader.engine).exec_trace = None
    questions = [sql for sql in asked.questions if "temporal_edges" in sql]
    assert len(questions) == 5
    for sql in questions:
        plan = plan_of(room.connection, sql)
        assert any("idx_temporal_edges_start" in step for step in plan), plan
        assert not any(step.startswith(("SCAN t", "SCAN m")) for step in plan), plan


def test_sources_and_deleted_contents_are_looked_up_by_all_that_the_look_up_names(room: PipelineHarness) -> None:
    text = "\n".join(f"The build uses Make in step {number}." for number in range(40))
    about: Any = {"type": "fact", "importance": 0.5, "source_type": "manual", "source_id": "page-1"}
    parts = (text[:700], text[700:])
    asked = Asked(room.connection)
    room.ask(RememberChunks(NewMemory(text, **about), parts, Principal()))
    lines = (
        ImportLine(1, NewMemory("The build uses Ninja", **about)),
        ImportLine(2, NewMemory(text, **about), chunks=parts),
        ImportLine(3, NewMemory("The build has no source", type="fact", importance=0.5)),
        ImportLine(4, NewMemory("The page is another", **{**about, "source_id": "page-2"})),
    )
    room.ask(ImportMemories(lines, Principal(), DIMENSIONS))
    room.connection.exec_trace = None
    sought = [sql for sql in asked.questions if ":source_id" in sql or ":group_id" in sql or ":hash" in sql]
    assert len(sought) > 6
    whole = "agent_id=? AND visibility=? AND <expr>=? AND <expr>=?"
    for sql in sought:
        assert all(whole in step or "USE TEMP" in step for step in plan_of(room.connection, sql)), sql


def test_former_texts_are_looked_up_by_the_beginning_of_their_source(room: PipelineHarness) -> None:
    about: Any = {"type": "fact", "importance": 0.5, "source_type": "markdown", "source_path": "/a.md"}
    asked = Asked(room.connection)
    memory = NewMemory("# A\n\nchanged", **about, source_id="a.md#a@2")
    room.ask(ImportMemories((ImportLine(1, memory, supersedes="a.md#a@"),), Principal(), DIMENSIONS))
    room.connection.exec_trace = None
    (sought,) = [sql for sql in asked.questions if ":first" in sql]
    steps = [step for step in plan_of(room.connection, sought) if step.startswith("SEARCH")]
    assert ["source_id>? AND source_id<?" in step for step in steps] == [True, False, True, False], steps
    assert "rowid=?" in steps[1]
    assert "source_id=?" in steps[3]
