"""Make ``MEMORY.md`` of an agent from the memories that the agent may read, one file at a time.

Source: docs/guides/working-memory.md; docs/decisions.md 35.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from signet_actors.config.schema import Config
from signet_actors.domain.extraction.prompts import mark
from signet_actors.domain.redaction.scan import Kinds, Redactor
from signet_actors.domain.synthesis import MAX_MEMORIES, Group, Source, active_projects, group, prompt
from signet_actors.domain.timestamps import iso
from signet_actors.domain.working_memory import readable_answer
from signet_actors.errors import Conflict, InvalidRequest
from signet_actors.gateway.synthesis.memory_file import MemoryFile, Replaced
from signet_actors.protocol.memories import Memory, ReadScope
from signet_actors.protocol.searcher import ListMemories
from signet_actors.protocol.sessions import FindSessionStart
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.messaging.bus_client import BusClient

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

NEWEST: Final = 500
"""Memories that tell which projects are active."""
MAX_CONTENT_CHARS: Final = 200_000


class Synthesis:
    """The files of all agents. ``running``: the agent whose file is being made."""

    def __init__(
        self,
        workspace: Path,
        bus: BusClient,
        clock: Clock,
        rng: random.Random,
        log: FilteringBoundLogger,
        config: Callable[[], Config],
        redactor: Callable[[], Redactor],
    ) -> None:
        self._workspace = workspace
        self._bus = bus
        self._clock = clock
        self._rng = rng
        self._log = log
        self._config = config
        self._redactor = redactor
        self.running: str | None = None

    def file(self, agent_id: str) -> MemoryFile:
        """Return the agent's file. Raises InvalidRequest."""
        return MemoryFile(self._workspace, agent_id)

    async def groups(self, agent_id: str, trace_id: str) -> list[Group]:
        """Return the memories that the agent's file is made from, those of no project first. Raises SignetError."""
        read = ReadScope(agent_id)
        newest, _ = await self._bus.ask_searcher(ListMemories(read, limit=NEWEST), trace_id=trace_id)
        projects = active_projects(memory.project for memory in newest.memories)
        found = [await self._group(read, project, trace_id) for project in (None, *projects)]
        return [each for each in found if each.sources]

    async def _group(self, read: ReadScope, project: str | None, trace_id: str) -> Group:
        query = FindSessionStart(
            read=read,
            now_ms=self._clock.wall_ms(),
            project=project,
            limit=MAX_MEMORIES,
            max_constraints=MAX_MEMORIES,
            decay_rate=self._config().memory.decay_rate,
            min_importance=0.0,
            candidates=2 * MAX_MEMORIES,
        )
        found, _ = await self._bus.ask_searcher(query, trace_id=trace_id)
        memories = (*found.constraints, *found.memories)
        return group(project, (_source(memory) for memory in memories if memory.project == project))

    def prompt(self, groups: list[Group], max_tokens: int) -> str:
        """Return the prompt for a model."""
        return prompt(groups or [Group(None, ())], max_tokens, mark(self._rng.getrandbits(128)))

    async def complete(self, agent_id: str, content: str, by: str) -> tuple[Replaced, Kinds]:
        """Write what a harness made, and return what was cut out of it. Raises SignetError."""
        if self.running is not None:
            raise Conflict("Synthesis already in progress")
        self.running = agent_id
        try:
            return await asyncio.to_thread(self._complete, self.file(agent_id), content, by)
        finally:
            self.running = None

    def _complete(self, file: MemoryFile, content: str, by: str) -> tuple[Replaced, Kinds]:
        text, kinds = self._redactor().clean(readable_answer(content, MAX_CONTENT_CHARS))
        if not text.strip():
            raise InvalidRequest("content is required", field="content")
        now_ms = self._clock.wall_ms()
        record = msgspec.structs.replace(
            file.record(),
            parts=[],
            by=by,
            model="",
            last_run_at=iso(now_ms),
            last_attempt_at=iso(now_ms),
            last_error=None,
            failures=0,
        )
        replaced = file.replace(text, record, now_ms)
        self._log.info("memory_file_written", by=by, chars=len(text), edited=replaced.edited)
        return replaced, kinds


def _source(memory: Memory) -> Source:
    return Source(memory.id, memory.version, memory.type, memory.content, memory.importance, memory.created_at)
