"""What ``MEMORY.md`` of an agent is made from: memories and summaries that the agent may read.

Source: docs/guides/working-memory.md; docs/decisions.md 35.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from signet_actors.config.schema import Config
from signet_actors.domain.dated_sections import READ_CHARS, Dated, DatedMemory, dated, short_id, shown_ids
from signet_actors.domain.memories import is_imported
from signet_actors.domain.synthesis import MAX_MEMORIES, MAX_MEMORY_CHARS, Group, Source, active_projects, group
from signet_actors.features.session_summaries.api import DatedSummaries, FindDated
from signet_actors.protocol.memories import Memory, ReadScope
from signet_actors.protocol.searcher import FindForgetCandidates, ListMemories
from signet_actors.protocol.sessions import FindSessionStart
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.messaging.bus_client import BusClient

NEWEST: Final = 500
"""Memories that tell which projects are active."""
MAX_SUMMARIES: Final = 200
"""The latest ones, of all projects, from which the ledger is made."""
IDS_A_QUERY: Final = 500


class MemorySources:
    """Queries of the searchers. Every method raises SignetError."""

    def __init__(self, bus: BusClient, clock: Clock, config: Callable[[], Config]) -> None:
        self._bus = bus
        self._clock = clock
        self._config = config

    async def groups(self, agent_id: str, trace_id: str) -> list[Group]:
        """Return the memories that a model is shown, those of no project first."""
        newest = await self._newest(agent_id, trace_id)
        projects = active_projects(memory.project for memory in newest)
        found = [await self._group(ReadScope(agent_id), project, trace_id) for project in (None, *projects)]
        return [each for each in found if each.sources]

    async def sections(self, agent_id: str, trace_id: str) -> list[Dated]:
        """Return the sections by date, of no project and of those that the groups are about."""
        newest = await self._newest(agent_id, trace_id)
        answered, _ = await self._bus.ask_searcher(FindDated(agent_id, MAX_SUMMARIES, READ_CHARS), trace_id=trace_id)
        summaries = answered.read(DatedSummaries).summaries
        memories = [_dated(each) for each in newest if not is_imported(each.source_type, each.source_path)]
        projects = (None, *active_projects(memory.project for memory in newest))
        now_ms = self._clock.wall_ms()
        made = (dated(project, summaries, memories, now_ms) for project in projects)
        return [section for section in made if section is not None]

    async def live(self, agent_id: str, ids: Sequence[str], trace_id: str) -> dict[str, int]:
        """Return the present versions of those memories that the agent may read."""
        found: dict[str, int] = {}
        for start in range(0, len(ids), IDS_A_QUERY):
            asked = tuple(ids[start : start + IDS_A_QUERY])
            query = FindForgetCandidates(ReadScope(agent_id), ids=asked, limit=len(asked))
            answer, _ = await self._bus.ask_searcher(query, trace_id=trace_id)
            found |= {each.id: each.version for each in answer.candidates}
        return found

    async def cited(self, agent_id: str, text: str, trace_id: str) -> dict[str, int]:
        """Return the versions of the memories whose ids the lines of ``text`` show, by id."""
        shown = {each for line in text.split("\n") for each in shown_ids(line)}
        groups = await self.groups(agent_id, trace_id) if shown else []
        versions = ((memory_id, version) for each in groups for memory_id, version in each.versions.items())
        return {memory_id: version for memory_id, version in versions if short_id(memory_id) in shown}

    async def _newest(self, agent_id: str, trace_id: str) -> list[Memory]:
        query = ListMemories(ReadScope(agent_id), limit=NEWEST, chars=READ_CHARS)
        newest, _ = await self._bus.ask_searcher(query, trace_id=trace_id)
        return newest.memories

    async def _group(self, read: ReadScope, project: str | None, trace_id: str) -> Group:
        query = FindSessionStart(
            read=read,
            now_ms=self._clock.wall_ms(),
            project=project,
            limit=MAX_MEMORIES,
            max_constraints=MAX_MEMORIES,
            decay_rate=self._config().memory.decay_rate,
            min_score=0.0,
            candidates=2 * MAX_MEMORIES,
            chars=2 * MAX_MEMORY_CHARS,
            of_all_types=True,
        )
        found, _ = await self._bus.ask_searcher(query, trace_id=trace_id)
        memories = (*found.constraints, *found.memories)
        return group(project, (_source(memory) for memory in memories if memory.project == project))


def _dated(memory: Memory) -> DatedMemory:
    return DatedMemory(memory.id, memory.version, memory.type, memory.content, memory.created_at, memory.project)


def _source(memory: Memory) -> Source:
    return Source(memory.id, memory.version, memory.type, memory.content, memory.importance, memory.created_at)
