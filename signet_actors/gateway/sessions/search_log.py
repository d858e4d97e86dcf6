"""Collect what was asked, given and left out, and have the writer store it a second later.

No answer waits for it. Texts are redacted in a thread before they are sent. What the writer does not take is kept and
sent again, up to ``MOST_WAITING`` searches; then the oldest are dropped.

Source: docs/guides/hooks.md "What was asked and given".
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from signet_actors.domain.program_text import said_by_user
from signet_actors.domain.redaction.scan import Redactor, without_known
from signet_actors.domain.text_cut import beginning_of
from signet_actors.domain.timestamps import iso
from signet_actors.errors import SignetError
from signet_actors.features.searches.api import MAX_SEARCHES, ConsideredMemory, Kind, RecordSearches, Search
from signet_actors.features.searches.rules import GIVEN, first_left_out, head
from signet_actors.gateway.limits import TEXT_EXECUTOR
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.messaging.bus_client import BusClient

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

INTERVAL_S: Final = 1.0
MOST_WAITING: Final = 2_000
READ_CHARS: Final = 4_000
"""Of a text, to find what of its beginning a person wrote, without secrets."""


class _Waiting:
    """A search that is not stored. ``text`` is what was asked, ``known`` the secrets that were recognised before."""

    __slots__ = ("known", "search", "text")

    def __init__(self, search: Search, text: str | None, known: Mapping[str, str]) -> None:
        self.search, self.text, self.known = search, text, known


class SearchLog:
    """The searches of this process that are not stored yet. One event loop only."""

    def __init__(
        self,
        bus: BusClient,
        clock: Clock,
        log: FilteringBoundLogger,
        new_id: Callable[[], str],
        redactor: Callable[[], Redactor],
    ) -> None:
        self._bus = bus
        self._clock = clock
        self._log = log
        self._new_id = new_id
        self._redactor = redactor
        self._waiting: list[_Waiting] = []
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        self.dropped = 0

    @property
    def pending(self) -> int:
        """The number of searches that are not stored yet."""
        return len(self._waiting)

    def add(
        self,
        kind: Kind,
        agent_id: str,
        memories: Iterable[ConsideredMemory] = (),
        *,
        text: str | None = None,
        known: Mapping[str, str] | None = None,
        session_key: str | None = None,
        context_epoch: int | None = None,
        project: str | None = None,
        harness: str | None = None,
        skipped: str | None = None,
        characters: int = 0,
        answered: bool | None = None,
        began_ns: int = 0,
        id_: str | None = None,
    ) -> None:
        """Have a search stored soon. Does not wait.

        ``began_ns``: the monotonic time at which it began. ``id_``: one of this id is stored once.
        """
        rows = tuple(memories)
        if len(rows) > 1:
            rows = tuple(rows[at] for at in first_left_out([row.outcome for row in rows]))
        took_ms = (self._clock.monotonic_ns() - began_ns) / 1e6 if began_ns else 0.0
        search = Search(
            id=id_ or self._new_id(),
            created_at=iso(self._clock.wall_ms()),
            kind=kind,
            agent_id=agent_id,
            session_key=session_key,
            context_epoch=context_epoch,
            project=project,
            harness=harness,
            skipped=skipped,
            given=sum(row.outcome in GIVEN for row in rows),
            characters=characters,
            duration_ms=round(took_ms, 2),
            answered=answered,
            memories=rows,
        )
        if len(self._waiting) >= MOST_WAITING:
            del self._waiting[0]
            self.dropped += 1
        self._waiting.append(_Waiting(search, None if text is None else beginning_of(text, READ_CHARS), known or {}))
        self._set_timer()

    async def flush(self) -> None:
        """Have everything stored that waits. Raises SignetError; what was not stored is kept."""
        async with self._lock:
            while self._waiting:
                batch = self._waiting[:MAX_SEARCHES]
                await TEXT_EXECUTOR.run_unbounded(partial(_redact, self._redactor(), batch))
                await self._bus.ask_writer(RecordSearches(searches=tuple(each.search for each in batch)), trace_id="-")
                stored = set(map(id, batch))
                self._waiting = [each for each in self._waiting if id(each) not in stored]

    async def stop(self) -> None:
        """Store what waits, without waiting for its time."""
        if self._timer is not None:
            self._timer.cancel()
        try:
            await self.flush()
        except SignetError as error:
            self._log.warning("searches_not_stored", error=error.detail, searches=len(self._waiting))

    def _set_timer(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(INTERVAL_S, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._task = asyncio.get_running_loop().create_task(self._flush_and_go_on())

    async def _flush_and_go_on(self) -> None:
        try:
            await self.flush()
        except SignetError as error:
            self._log.debug("searches_wait", error=error.detail)
        if self._waiting:
            self._set_timer()


def _redact(redactor: Redactor, batch: Iterable[_Waiting]) -> None:
    """Take the secrets out of what was asked, of which the beginning that a person wrote is kept, and of the names.

    Blocks.
    """

    def clean(text: str | None, known: dict[str, str]) -> str | None:
        return None if text is None else head(without_known(redactor.clean(text, known)[0], known))

    for each in batch:
        known, search, said = dict(each.known), each.search, each.text
        each.text = None
        each.search = msgspec.structs.replace(
            search,
            prompt=search.prompt if said is None else clean(said_by_user(said) or said, known),
            project=clean(search.project, known),
            harness=clean(search.harness, known),
        )
