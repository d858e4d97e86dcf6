"""What sessions do since their last checkpoint, and the checkpoints that are made of it.

A hook only notes what happened. A periodic checkpoint is stored ``WINDOW_MS`` later; what else happens to the session
until then becomes part of the same checkpoint. One that a response names is on disk. Secrets are cut out by a thread,
before anything is stored; until then the text is only in this process. Of a bypassed session nothing is stored.

Source: memory-pipeline.txt "Session Checkpoints"; docs/decisions.md 26; docs/guides/hooks.md "Checkpoints".
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeGuard, TypeVar

import msgspec

from signet_actors.config.pipeline_schema import ContinuityConfig
from signet_actors.domain.redaction.scan import without_known
from signet_actors.domain.text_cut import beginning_of
from signet_actors.errors import InvalidRequest, SignetError
from signet_actors.features.checkpoints import api, rules
from signet_actors.gateway.sessions.ledger import RecallLedger
from signet_actors.gateway.sessions.session_secrets import SessionSecrets
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.messaging.bus_client import BusClient

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

WINDOW_MS: Final = 2500
RETRY_MS: Final = 1000
MAX_FOCAL: Final = 10
"""Entities that a session was about, of those that were named last."""
MAX_SESSIONS: Final = 256
"""Of which this process knows what they did; of more, the one that was used longest ago is dropped."""
STORE_WAIT_S: Final = 0.5
"""The longest that a hook waits for its checkpoint, which is stored later then."""
MIN_TURN_CHARS: Final = 500
"""Of new turns, for a checkpoint of their own."""
_TEXT_CHARS: Final = 4096
"""Of a prompt or a context that are searched for secrets; less of them is kept."""
_LEAST_PART: Final = 4
"""So many characters of a secret are no word of a search."""
_MS: Final = 1_000_000

T = TypeVar("T")


class Activity:
    """What a session of one agent did. ``draft``: the checkpoint whose window is open, ``unsaved`` if it changed since.

    ``focal``: the entities that its searches named last, names by id.
    ``new_chars``: the length of the turns since the last checkpoint that was made for them. ``ending``: the session has
    reported its end (at ``ended_at`` if that is known), which is stored with the next write; ``over``: that is stored.
    """

    def __init__(self, key: str, agent_id: str, now_ms: int) -> None:
        self.key = key
        self.agent_id = agent_id
        self.began_ms = self.interval_ms = now_ms
        self.harness: str | None = None
        self.project: str | None = None
        self.prompt_count = self.all_prompts = self.new_chars = 0
        self.prompts: deque[str] = deque(maxlen=rules.RECENT_PROMPTS)
        self.queries: tuple[str, ...] = ()
        self.remembers: tuple[str, ...] = ()
        self.focal: OrderedDict[str, str] = OrderedDict()
        self.draft: rules.Draft | None = None
        self.draft_id = ""
        self.closes_ns = self.retry_ns = 0
        self.unsaved = self.ending = self.over = False
        self.ended_at: str | None = None
        self.lock = asyncio.Lock()

    @property
    def is_new(self) -> bool:
        """True if something happened that is in no checkpoint."""
        return bool(self.prompt_count or self.queries or self.remembers)


class SessionCheckpoints:
    """The sessions by key and agent, the last used one last. One event loop only."""

    def __init__(
        self,
        bus: BusClient,
        ledger: RecallLedger,
        clock: Clock,
        log: FilteringBoundLogger,
        new_id: Callable[[], str],
        settings: Callable[[], ContinuityConfig],
        without_secrets: Callable[[str, dict[str, str]], str],
        secrets: SessionSecrets,
    ) -> None:
        self._bus = bus
        self._ledger = ledger
        self._clock = clock
        self._log = log
        self._new_id = new_id
        self._settings = settings
        self._without_secrets = without_secrets
        self._secrets = secrets
        self._sessions: OrderedDict[tuple[str, str], Activity] = OrderedDict()
        self._task: asyncio.Task[None] | None = None
        self._wake: asyncio.Event | None = None

    @property
    def enabled(self) -> bool:
        """Whether checkpoints are made at all."""
        return self._settings().enabled

    def prompted(self, key: str | None, agent_id: str, *, harness: str, project: str | None, text: str) -> None:
        """Note a prompt, and make a checkpoint if it completes the number of ``continuity.promptInterval``."""
        if not self._is_noted(key):
            return
        activity = self._of(key, agent_id, harness, project)
        activity.prompts.append(beginning_of(text, _TEXT_CHARS))
        activity.prompt_count += 1
        activity.all_prompts += 1
        if activity.prompt_count >= self._settings().prompt_interval:
            self._draft(activity, "periodic")
        self._schedule()

    def has_prompts(self, key: str | None, agent_id: str) -> bool:
        """Return whether the session has told a prompt to this process."""
        activity = None if key is None else self._sessions.get((key, agent_id))
        return activity is not None and activity.all_prompts > 0

    def searched(self, key: str | None, agent_id: str, query: str) -> None:
        """Note that memories were searched for."""
        if query and self._is_noted(key):
            activity = self._of(key, agent_id)
            activity.queries = rules.latest((*activity.queries, beginning_of(query, _TEXT_CHARS)), rules.MAX_QUERIES)
            self._schedule()

    def named(self, key: str | None, agent_id: str, entities: Iterable[tuple[str, str]]) -> None:
        """Note the entities, as id and name, that a search of the session named."""
        activity = None if key is None else self._sessions.get((key, agent_id))
        if activity is None:
            return
        for entity_id, name in entities:
            activity.focal[entity_id] = name
            activity.focal.move_to_end(entity_id)
            if len(activity.focal) > MAX_FOCAL:
                activity.focal.popitem(last=False)

    def remembered(self, key: str | None, agent_id: str, ids: Iterable[str]) -> None:
        """Note that memories were stored."""
        if self._is_noted(key):
            activity = self._of(key, agent_id)
            activity.remembers = rules.latest((*activity.remembers, *ids), rules.MAX_REMEMBERS)
            self._schedule()

    async def make(
        self,
        key: str,
        agent_id: str,
        trigger: rules.CheckpointTrigger,
        *,
        harness: str | None = None,
        project: str | None = None,
        context: str | None = None,
    ) -> str | None:
        """Store a checkpoint now; return its id, None if the session is forgotten or bypassed. Raises SignetError."""
        activity = self._of(key, agent_id, harness, project)
        self._draft(activity, trigger, context)
        self._schedule()
        named = activity.draft_id
        return named if (await self._store(activity)).stored else None

    async def make_soon(
        self, key: str | None, agent_id: str, trigger: rules.CheckpointTrigger, **more: str | None
    ) -> str | None:
        """Like ``make``, for a hook: return None if it is not stored in a moment; it is stored later then."""
        if key is None or not self.enabled:
            return None
        return await _in_a_moment(self.make(key, agent_id, trigger, **more))

    async def turned(self, key: str, agent_id: str, chars: int, *, harness: str, project: str | None) -> str | None:
        """Note new turns of this length; return the id of a checkpoint if those since the last one deserve it."""
        if not self.enabled:
            return None
        activity = self._of(key, agent_id, harness, project)
        activity.new_chars += chars
        if activity.new_chars < MIN_TURN_CHARS:
            return None
        activity.new_chars = 0
        return await self.make_soon(key, agent_id, "agent")

    async def end(
        self,
        key: str,
        agent_id: str,
        *,
        harness: str,
        project: str | None,
        cleared: bool,
        ended_at: str | None = None,
    ) -> str | None:
        """Note the end of the session, with a checkpoint unless its context was ``cleared``; return its id.

        An end that is reported again has the checkpoint of the first report.
        """
        if not self.enabled:
            return None
        activity = self._of(key, agent_id, harness, project)
        activity.ending, activity.ended_at = True, ended_at
        if cleared:
            activity.draft, activity.unsaved = None, False
        else:
            self._draft(activity, "session_end")
        self._schedule()
        return await _in_a_moment(self._ended(activity))

    def forget(self, key: str, agent_id: str) -> None:
        """Drop what is noted of the session and not stored."""
        self._sessions.pop((key, agent_id), None)

    async def settle(self, agent_id: str, *, key: str | None, project: str | None) -> None:
        """Store what the session, or the agent's sessions of the project, did until now; wait for it for a moment."""
        wanted = rules.normalized_project(project)
        found = [
            activity
            for activity in self._sessions.values()
            if activity.agent_id == agent_id
            and (activity.is_new or activity.unsaved)
            and (activity.key == key if key is not None else rules.normalized_project(activity.project) == wanted)
        ]
        for activity in found:
            if activity.is_new:
                self._draft(activity, "periodic")
        if found:
            self._schedule()
            await _in_a_moment(self._all_stored(found))

    async def store_due(self) -> float | None:
        """Store what is due; return the seconds until something else is, None if nothing happened since."""
        now_ns, now_ms = self._clock.monotonic_ns(), self._clock.wall_ms()
        interval_ms = self._settings().time_interval_ms
        for at, activity in list(self._sessions.items()):
            if activity.draft is None and activity.is_new and now_ms >= activity.interval_ms + interval_ms:
                self._draft(activity, "periodic")
            if now_ns < max(activity.closes_ns, activity.retry_ns):
                continue
            try:
                await self._store(activity)
            except SignetError as error:
                self._log.info("session_checkpoint_delayed", error=error.detail)
                return RETRY_MS / 1000
            if not activity.unsaved:
                activity.draft = None
                if activity.over:
                    self._sessions.pop(at, None)
        waits = [self._wait_ms(activity, interval_ms) for activity in self._sessions.values()]
        return min((wait / 1000 for wait in waits if wait is not None), default=None)

    async def stop(self) -> None:
        """Store what is in no checkpoint yet."""
        if self._task is not None:
            self._task.cancel()
        left = list(self._sessions.values())
        for activity in left:
            if activity.is_new:
                self._draft(activity, "periodic")
        try:
            await self._all_stored(left)
        except SignetError as error:
            self._log.warning("session_checkpoints_not_stored", error=error.detail)

    def _is_noted(self, key: str | None) -> TypeGuard[str]:
        """Return whether what the session does is noted, as far as this process knows its bypass."""
        return key is not None and self.enabled and not self._ledger.is_bypassed(key)

    def _wait_ms(self, activity: Activity, interval_ms: int) -> float | None:
        now_ns = self._clock.monotonic_ns()
        if activity.draft is not None or activity.ending or activity.over:
            return max(0.0, (max(activity.closes_ns, activity.retry_ns) - now_ns) / _MS)
        if activity.is_new:
            return max(0.0, activity.interval_ms + interval_ms - self._clock.wall_ms())
        return None

    def _of(self, key: str, agent_id: str, harness: str | None = None, project: str | None = None) -> Activity:
        at = (key, agent_id)
        activity = self._sessions.get(at)
        if activity is None:
            activity = self._sessions[at] = Activity(key, agent_id, self._clock.wall_ms())
            while len(self._sessions) > MAX_SESSIONS:
                self._sessions.popitem(last=False)
        self._sessions.move_to_end(at)
        activity.ending = activity.over = False
        activity.harness = harness or activity.harness
        activity.project = project or activity.project
        return activity

    def _draft(self, activity: Activity, trigger: rules.CheckpointTrigger, context: str | None = None) -> None:
        """Make a checkpoint of what happened since the last one, or extend the one whose window is open."""
        now_ms = self._clock.wall_ms()
        draft = rules.Draft(
            trigger,
            activity.project,
            activity.prompt_count,
            activity.all_prompts,
            now_ms - activity.began_ms,
            tuple(activity.prompts),
            activity.queries,
            activity.remembers,
            beginning_of(context, _TEXT_CHARS) if context else None,
        )
        activity.prompt_count, activity.queries, activity.remembers = 0, (), ()
        activity.interval_ms = now_ms
        if activity.draft is None:
            activity.draft_id = self._new_id()
            activity.closes_ns = self._clock.monotonic_ns() + WINDOW_MS * _MS
        else:
            draft = activity.draft.merged(draft)
        activity.draft, activity.unsaved = draft, True

    async def _ended(self, activity: Activity) -> str | None:
        named = activity.draft_id if activity.draft is not None else None
        done = await self._store(activity)
        return (done.same_end or named) if done.stored else None

    async def _all_stored(self, activities: Iterable[Activity]) -> None:
        await asyncio.gather(*map(self._store, activities))

    async def _store(self, activity: Activity) -> api.CheckpointRecorded:
        """Store what is not stored of the session, unless it is forgotten or bypassed. Raises SignetError."""
        async with activity.lock:
            draft, ended = activity.draft, activity.ending
            if not (activity.unsaved or ended):
                return api.CheckpointRecorded(stored=True)
            try:
                await self._ledger.context(activity.key, activity.agent_id, trace_id="")
                if self._ledger.is_bypassed(activity.key):
                    activity.draft, activity.unsaved = None, False
                    activity.ending, activity.over = False, True
                    return api.CheckpointRecorded(stored=False)
                new = None if draft is None else await asyncio.to_thread(self._composed, activity, draft)
                command = api.RecordCheckpoint(activity.key, activity.agent_id, new, ended, activity.ended_at)
                done = (await self._bus.ask_writer(command, trace_id="")).read(api.CheckpointRecorded)
            except SignetError:
                activity.retry_ns = self._clock.monotonic_ns() + RETRY_MS * _MS
                raise
            if activity.draft is draft:
                activity.unsaved = False
                if ended and activity.ending:
                    activity.ending, activity.over = False, True
            return done

    def _composed(self, activity: Activity, draft: rules.Draft) -> api.StoredCheckpoint:
        """Return the checkpoint without secrets. Takes milliseconds if there is much to search."""
        known = self._secrets.of(activity.key)
        for text in (*draft.prompts, *draft.queries, draft.context or ""):
            self._cleaned(text, known)

        def clean(text: str) -> str:  # a secret that one of the texts names stands in others, too
            return without_known(self._cleaned(text, known), known)

        project = clean(draft.project or "") or None
        lines = (rules.prompt_line(clean(text)) for text in draft.prompts)
        values = [value.lower() for value in known]

        def whole(query: str) -> str:  # terms are words: of a secret that a later prompt told, parts may be among them
            words = clean(query).split()
            return " ".join(
                word for word in words if len(word) < _LEAST_PART or not any(word.lower() in value for value in values)
            )

        queries = tuple(line[: rules.QUERY_CHARS] for line in map(rules.prompt_line, map(whole, draft.queries)) if line)
        shown = replace(
            draft,
            project=project,
            prompts=tuple(line for line in lines if line),
            queries=queries,
            context=clean(draft.context)[: api.CONTEXT_CHARS] if draft.context else None,
        )
        return api.StoredCheckpoint(
            id=activity.draft_id,
            session_key=activity.key,
            agent_id=activity.agent_id,
            harness=clean(activity.harness or "") or None,
            project=project,
            project_normalized=rules.normalized_project(project),
            trigger=draft.trigger,
            digest=rules.digest(shown),
            prompt_count=draft.prompt_count,
            memory_queries=msgspec.json.encode(queries).decode(),
            recent_remembers=msgspec.json.encode(draft.remembers).decode(),
            created_at="",
            ended=0,
            focal_entity_ids=msgspec.json.encode(list(activity.focal)).decode() if activity.focal else None,
            focal_entity_names=msgspec.json.encode(list(activity.focal.values())).decode() if activity.focal else None,
        )

    def _cleaned(self, text: str, known: dict[str, str]) -> str:
        try:
            return self._without_secrets(text, known)
        except InvalidRequest:  # more secrets than one text may have
            return ""

    def _schedule(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._run())
        elif self._wake is not None:
            self._wake.set()

    async def _run(self) -> None:
        wake = self._wake = asyncio.Event()
        while (wait_s := await self.store_due()) is not None:
            try:
                await asyncio.wait_for(wake.wait(), wait_s)
            except TimeoutError:
                continue
            wake.clear()


async def _in_a_moment(work: Coroutine[Any, Any, T]) -> T | None:
    """Return the result of ``work`` if it succeeds in ``STORE_WAIT_S``; it goes on otherwise."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    await asyncio.wait({task}, timeout=STORE_WAIT_S)
    return task.result() if task.done() and not task.cancelled() and task.exception() is None else None
