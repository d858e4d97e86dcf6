"""The record of what each session has received in its present context epoch, by session key and agent.

A recall never waits for the writer: the set is here, and what is new is stored soon after (``FLUSH_MS``). Rows are
recorded when the response was written, so a row that was not returned is never left out; after a crash one may be
returned once more. A retry that names the same request (``Call.request_key``) gets the same rows.

Source: memory-api.txt "POST /api/memory/recall" (context ledger); docs/decisions.md 60.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from signet_actors.domain.timestamps import iso
from signet_actors.errors import Busy, ErrorCode, SignetError
from signet_actors.protocol.memories import Wording
from signet_actors.protocol.sessions import (
    MAX_RECEIVED,
    GetSession,
    OfferedBy,
    OfferedMemory,
    RecordSessions,
    ReturnedMemory,
    SessionContext,
    SessionFound,
    SetBypass,
)
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.messaging.bus_client import BusClient

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

FLUSH_MS: Final = 50
RETRY_MS: Final = 1000
KNOWN_WAIT_S: Final = 0.5
MAX_CONTEXTS: Final = 256
"""Contexts that are kept for the next request."""
MAX_UNSTORED: Final = 1024
"""Contexts with changes that wait to be stored. Beyond, no further session is read until the writer answers."""
MAX_PENDING: Final = 20_000
"""Received rows that wait to be stored; the oldest are dropped, and may be returned once more after a crash."""
MAX_ROWS: Final = 2000
"""Rows of one command to the writer, and sessions of one."""
MAX_REQUESTS: Final = 64
"""Requests of one epoch whose retries get the same rows; the latest count."""

ContextKey = tuple[str, str]


class Context:
    """What a session of one agent has received. ``received``: in which words, by id.

    Hold ``lock`` to change it, until the response is written (``Call.hold``). ``started``: the session has received the
    text of its start in this epoch, for the request ``start_key``. ``stored``: an earlier process knew it.
    ``began_in``: the directory in which the session began, by its ``project`` if hooks work in both or in none of them.
    ``is_beginning_read``: its transcript has been asked for that. ``searched``: the file of its transcript, and its
    bytes in which the mark that switches memory off was looked for.
    ``constraints``: the words of those that its start knew, also if it told them in part or not.
    ``source``: the reason of a start whose text comes with the next prompt. ``told_tools``: it was told its key, for
    the tools. ``told_turns``: what was told of turns of earlier sessions, by id. ``awaits_summary``: the start after a
    compaction began the epoch, and no prompt has followed yet.
    ``losses``: how often the model had lost a part of the
    conversation when its transcript was last read; ``expects_loss``: the epoch has begun for one that is in no
    transcript yet. ``summary``: the received memories with which the epoch began, that of the compaction.
    """

    __slots__ = (
        "__weakref__",
        "active_ms",
        "agent_id",
        "awaits_summary",
        "began_in",
        "constraints",
        "epoch",
        "expects_loss",
        "first_ms",
        "harness",
        "is_agent_known",
        "is_beginning_read",
        "is_copy",
        "key",
        "lock",
        "losses",
        "project",
        "received",
        "requests",
        "searched",
        "source",
        "start_key",
        "started",
        "stored",
        "summary",
        "told_tools",
        "told_turns",
    )

    def __init__(self, key: str, agent_id: str, now_ms: int) -> None:
        self.key = key
        self.agent_id = agent_id
        self.first_ms = self.active_ms = now_ms
        self.epoch = 0
        self.harness: str | None = None
        self.began_in: str | None = None
        self.project: str | None = None
        self.started = False
        self.start_key: str | None = None
        self.source: str | None = None
        self.is_agent_known = True
        self.is_beginning_read = False
        self.searched = ("", 0)
        self.is_copy = False
        self.stored = self.told_tools = self.awaits_summary = self.expects_loss = False
        self.losses = 0
        self.told_turns: dict[str, list[str]] = {}
        self.summary: frozenset[str] = frozenset()
        self.constraints: frozenset[Wording] = frozenset()
        self.received: dict[str, Wording] = {}
        self.requests: dict[str, set[str]] = {}
        self.lock = asyncio.Lock()

    def copy(self) -> Context:
        """Return a context that may be changed without an effect on this one."""
        other = copy.copy(self)
        other.is_copy = True
        other.lock = asyncio.Lock()
        other.received, other.told_turns = dict(self.received), dict(self.told_turns)
        other.requests = {key: set(ids) for key, ids in self.requests.items()}
        return other

    def left_out(self, request_key: str | None) -> tuple[Wording, ...]:
        """Return the rows that a recall leaves out: all received ones, but those of the request that is repeated."""
        again = self.requests.get(request_key, ()) if request_key is not None else ()
        if not again:
            return tuple(self.received.values())
        return tuple(wording for memory_id, wording in self.received.items() if memory_id not in again)

    def has_received(self, memory_id: str, wording: Wording, request_key: str | None) -> bool:
        """Return True if an earlier response contained the memory in these words."""
        again = self.requests.get(request_key, ()) if request_key is not None else ()
        return self.received.get(memory_id) == wording and memory_id not in again

    def is_answered(self, request_key: str | None) -> bool:
        """Return True if the request is a retry of one that was answered in this epoch."""
        return request_key is not None and (request_key in self.requests or request_key == self.start_key)


class RecallLedger:
    """The contexts in use, and what of them is not stored yet. One event loop only."""

    def __init__(
        self, bus: BusClient, clock: Clock, log: FilteringBoundLogger, *, max_contexts: int = MAX_CONTEXTS
    ) -> None:
        self._bus = bus
        self._clock = clock
        self._log = log
        self._max_contexts = max_contexts
        self._contexts: OrderedDict[ContextKey, Context] = OrderedDict()  # the last used one last
        self._known: WeakValueDictionary[ContextKey, Context] = WeakValueDictionary()  # also those only in use
        self._loading: dict[ContextKey, asyncio.Task[Context]] = {}
        self._bypassed: dict[str, bool] = {}
        self._switched_off: dict[str, SetBypass] = {}
        self._changed: dict[ContextKey, Context] = {}
        self._returned: list[tuple[Context, ReturnedMemory]] = []
        self._offered: list[OfferedMemory] = []
        self._flusher: asyncio.Task[None] | None = None
        self._flushing = asyncio.Lock()

    @property
    def pending(self) -> int:
        """The number of received rows that are not stored yet."""
        return len(self._returned)

    async def context(self, key: str, agent_id: str, *, trace_id: str) -> Context:
        """Return the context, read from the store when it is first needed. Raises SignetError."""
        at = (key, agent_id)
        found = self._known.get(at)
        if found is not None:
            self._keep(found)
            return found
        task = self._loading.get(at)
        if task is None:
            if len(self._changed) >= MAX_UNSTORED:
                raise Busy("what sessions received cannot be stored at present")
            task = self._loading[at] = asyncio.ensure_future(self._load(at, trace_id))
            task.add_done_callback(lambda done: self._on_loaded(at, done))
        return await asyncio.shield(task)

    async def copy_of(self, key: str, agent_id: str, *, trace_id: str) -> Context:
        """Return a copy of the context, of which nothing is recorded. Raises SignetError."""
        known = self._known.get((key, agent_id))
        return (await self._read((key, agent_id), trace_id) if known is None else known).copy()

    def loaded(self, key: str, agent_id: str) -> Context | None:
        """Return the context if it is in use."""
        return self._known.get((key, agent_id))

    def is_bypassed(self, key: str) -> bool:
        """Return True if the session receives nothing, as far as this process has read."""
        return self._bypassed.get(key, False)

    def was_bypassed(self, key: str) -> bool:
        """Return True if memory is or was switched off for the session, as far as this process has read."""
        return key in self._bypassed

    def note_was_off(self, key: str) -> None:
        """Note that the session has what was said while memory was off; the store knows it."""
        self._bypassed.setdefault(key, False)

    async def store_bypass(self, command: SetBypass, *, trace_id: str) -> None:
        """Switch memory off or on for the session of all agents, in the store too. Raises SignetError."""
        async with self._flushing:  # an earlier switch that waits to be stored must not follow this one
            earlier = self._switched_off.get(command.session_key)
            if earlier is not None and not command.bypassed:  # it was off, if only for a moment
                await self._switch(earlier, trace_id)
            await self._switch(command, trace_id)
            if command.bypassed or self.was_bypassed(command.session_key):
                self._bypassed[command.session_key] = command.bypassed
            self._switched_off.pop(command.session_key, None)

    async def _switch(self, command: SetBypass, trace_id: str) -> None:
        """Have the store know the switch. Raises SignetError."""
        try:
            await self._bus.ask_writer(command, trace_id=trace_id)
        except SignetError as error:
            if error.code is not ErrorCode.STORAGE_FULL:
                raise
            await self._bus.ask_writer(command, trace_id=trace_id)  # the first refusal gave up the disk reserve

    def switch_off(self, key: str, agent_id: str, first_ms: int) -> None:
        """Switch memory off for the session of all agents; the store has it soon, however long its writer is away."""
        self._bypassed[key] = True
        self._switched_off[key] = SetBypass(key, agent_id, iso(first_ms), bypassed=True)
        self._schedule()

    def switch_off_unless_known(self, key: str, agent_id: str, first_ms: int) -> None:
        """Switch memory off for a session whose transcript says so, unless it was switched since."""
        if key not in self._bypassed:
            self.switch_off(key, agent_id, first_ms)

    def begin_in(self, context: Context, directory: str) -> None:
        """Note where the session began; it is stored soon."""
        context.began_in = directory
        self.touch(context)

    def touch(self, context: Context) -> None:
        """Store the state of the session soon, as active now. That of a copy is never stored."""
        if context.is_copy:
            return
        context.active_ms = self._clock.wall_ms()
        self._changed[context.key, context.agent_id] = context
        self._schedule()

    def record(self, context: Context, rows: Iterable[tuple[str, Wording]], request_key: str | None) -> None:
        """Note that the session received these memories in these words; they are stored soon."""
        for memory_id, wording in rows:
            if request_key is not None:
                context.requests.setdefault(request_key, set()).add(memory_id)
            if context.received.get(memory_id) == wording:
                continue
            context.received.pop(memory_id, None)  # the order is that of the last time
            context.received[memory_id] = wording
            row = ReturnedMemory(context.key, context.agent_id, context.epoch, memory_id, request_key, wording[1])
            self._returned.append((context, row))
        for recorded, most in ((context.received, MAX_RECEIVED), (context.requests, MAX_REQUESTS)):
            while len(recorded) > most:
                del recorded[next(iter(recorded))]
        del self._returned[: max(0, len(self._returned) - MAX_PENDING)]
        self.touch(context)

    def record_summary(self, context: Context, wordings: Mapping[str, Wording]) -> None:
        """Note that the session's new epoch began with the summary of its compaction, which these memories hold."""
        context.summary = frozenset(wordings)
        self.record(context, wordings.items(), None)

    def record_start(self, context: Context, rows: Iterable[tuple[str, Wording]], request_key: str | None) -> None:
        """Note that the session received the text of its start, with these memories."""
        context.started, context.start_key = True, request_key
        self.record(context, rows, request_key)

    def offer(
        self,
        context: Context,
        source: OfferedBy,
        ids: Iterable[str],
        request_key: str | None,
        *,
        injected: Collection[str] = (),
        hits: Collection[str] = (),
    ) -> None:
        """Note which memories were considered for the session, best first; they are stored soon.

        ``injected`` were shown to it by a hook, ``hits`` match words of its search. A retry changes nothing. Call it
        before ``record``.
        """
        if context.is_answered(request_key):
            return
        self._offered += [
            OfferedMemory(
                session_key=context.key,
                agent_id=context.agent_id,
                memory_id=memory_id,
                source=source,
                rank=rank,
                was_injected=memory_id in injected,
                hits=int(memory_id in hits),
            )
            for rank, memory_id in enumerate(ids, 1)
        ]
        del self._offered[: max(0, len(self._offered) - MAX_PENDING)]
        self._schedule()

    def begin_epoch(self, context: Context) -> None:
        """Forget what the session received: its model no longer has it."""
        context.epoch += 1
        context.started, context.start_key = False, None
        context.received, context.requests = {}, {}
        context.told_tools, context.told_turns = False, {}
        context.awaits_summary, context.summary = False, frozenset()
        self.touch(context)

    def complete_compaction(self, context: Context, request_key: str | None) -> None:
        """Begin the epoch after a compaction, unless the session's start after it or the same request has done so."""
        if context.is_answered(request_key):
            return
        if not context.awaits_summary:
            self.begin_epoch(context)
        context.awaits_summary = False
        if request_key is not None:
            context.requests[request_key] = set()

    def expect_loss(self, context: Context) -> None:
        """Begin the epoch before a compaction of which no end will be reported.

        What stays in the context may be received twice, which harms less than to withhold what is lost.
        """
        self.begin_epoch(context)
        context.expects_loss = True

    def note_losses(self, context: Context, losses: int) -> None:
        """Begin an epoch if the transcript shows that the model lost something for which none has begun.

        After a restart of this process, one begins for each session that ever lost something.
        """
        begun = context.losses + context.expects_loss
        context.losses, context.expects_loss = losses, False
        if losses > begun:
            self.begin_epoch(context)

    async def make_known(self, context: Context, harness: str) -> None:
        """Have the agent of a harness's session get its read policy, as the first memory of an agent does."""
        context.harness = harness
        self.touch(context)
        with contextlib.suppress(SignetError, TimeoutError):
            async with asyncio.timeout(KNOWN_WAIT_S):
                await self.flush()
                context.is_agent_known = True

    async def flush(self) -> None:
        """Store what is pending now, and wait for what is being stored. Raises SignetError."""
        async with self._flushing:
            for key, command in list(self._switched_off.items()):
                await self._switch(command, "")
                if self._switched_off.get(key) is command:
                    del self._switched_off[key]
            while self._changed or self._returned or self._offered:
                await self._flush_some()

    async def _flush_some(self) -> None:
        contexts = dict(islice(self._changed.items(), MAX_ROWS))
        for at in contexts:
            del self._changed[at]
        returned, self._returned = self._returned[:MAX_ROWS], self._returned[MAX_ROWS:]
        offered, self._offered = self._offered[:MAX_ROWS], self._offered[MAX_ROWS:]
        try:
            await self._bus.ask_writer(
                RecordSessions(
                    contexts=tuple(map(_state_of, contexts.values())),
                    returned=tuple(row for _, row in returned),
                    offered=tuple(offered),
                ),
                trace_id="",
            )
        except BaseException:  # a cancelled request may not have been sent either; it is safe to repeat
            self._changed = {**contexts, **self._changed}
            self._returned[:0] = returned
            self._offered[:0] = offered
            raise

    def stop(self) -> asyncio.Task[None]:
        """Store what is pending without waiting for its time; return the task that does it."""
        if self._flusher is not None:
            self._flusher.cancel()
        self._flusher = asyncio.ensure_future(self._last_flush())
        return self._flusher

    async def _load(self, at: ContextKey, trace_id: str) -> Context:
        context = self._known[at] = await self._read(at, trace_id)
        self._keep(context)
        return context

    async def _read(self, at: ContextKey, trace_id: str) -> Context:
        key, agent_id = at
        found: SessionFound
        found, _ = await self._bus.ask_searcher(GetSession(key, agent_id), trace_id=trace_id)
        if found.bypassed or found.paused:  # a switch by this process is newer than what was read
            self._bypassed.setdefault(key, found.bypassed)
        context = Context(key, agent_id, self._clock.wall_ms())
        context.is_agent_known = found.agent_known
        context.project = found.project
        stored = found.context
        if stored is not None:
            context.stored = True
            context.epoch, context.harness, context.began_in = stored.context_epoch, stored.harness, stored.project
            context.project = stored.project or found.project
            context.is_beginning_read = stored.project is not None and found.project is not None
            context.started = stored.started_epoch == stored.context_epoch
            context.start_key = stored.start_key if context.started else None
        for row in found.returned:
            context.received[row.memory_id] = row.seq, row.content_version
            if row.request_key is not None:
                context.requests.setdefault(row.request_key, set()).add(row.memory_id)
        return context

    def _keep(self, context: Context) -> None:
        """Keep the context for the next request, instead of the one that was used longest ago."""
        at = (context.key, context.agent_id)
        self._contexts[at] = context
        self._contexts.move_to_end(at)
        while len(self._contexts) > self._max_contexts:
            self._contexts.popitem(last=False)

    def _on_loaded(self, at: ContextKey, task: asyncio.Task[Context]) -> None:
        self._loading.pop(at, None)
        if not task.cancelled():
            task.exception()  # marks it as retrieved if no request waits any more

    def _schedule(self) -> None:
        if self._flusher is None or self._flusher.done():
            self._flusher = asyncio.ensure_future(self._write_behind())

    async def _write_behind(self) -> None:
        wait_ms = FLUSH_MS
        while self._switched_off or self._changed or self._returned or self._offered:
            await asyncio.sleep(wait_ms / 1000)
            try:
                await self.flush()
            except SignetError as error:
                if wait_ms == FLUSH_MS:
                    self._log.warning("sessions_not_stored", error=error.detail, rows=len(self._returned))
                wait_ms = RETRY_MS
            else:
                wait_ms = FLUSH_MS

    async def _last_flush(self) -> None:
        try:
            await self.flush()
        except SignetError as error:
            self._log.warning("sessions_not_stored", error=error.detail, rows=len(self._returned))


def _state_of(context: Context) -> SessionContext:
    return SessionContext(
        session_key=context.key,
        agent_id=context.agent_id,
        started_at=iso(context.first_ms),
        last_active_at=iso(context.active_ms),
        context_epoch=context.epoch,
        harness=context.harness,
        project=context.began_in,
        started_epoch=context.epoch if context.started else None,
        start_key=context.start_key,
    )
