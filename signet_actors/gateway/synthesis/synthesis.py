"""Make ``MEMORY.md`` of an agent from the memories that the agent may read, one file at a time.

The extractor calls the model, for each part of the file whose memories have changed; the sections by date need none. A
run that fails, or that ends with this process, leaves the present file.

Source: docs/guides/working-memory.md; docs/decisions.md 14, 35.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from signet_actors.config.schema import Config
from signet_actors.domain import synthesis as rules
from signet_actors.domain.dated_sections import Dated, assembled, without_memories
from signet_actors.domain.extraction.prompts import mark
from signet_actors.domain.providers import NO_PROVIDER
from signet_actors.domain.redaction.scan import Kinds, Redactor
from signet_actors.domain.session_keys import DEFAULT_AGENT
from signet_actors.domain.timestamps import epoch_ms, iso
from signet_actors.domain.working_memory import below, readable_answer
from signet_actors.errors import Conflict, InvalidRequest, OutcomeUnknown, SignetError, Unavailable
from signet_actors.gateway.synthesis.memory_file import MemoryFile, Part, Record, Replaced, agents_with_file
from signet_actors.gateway.synthesis.sources import MemorySources
from signet_actors.protocol.extractor import GetExtractorStatus, Synthesize, Synthesized
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.messaging.bus_client import BusClient

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

MAX_CONTENT_CHARS: Final = 200_000
DAEMON: Final = "daemon"
"""``memory.synthesis.harness`` if the daemon makes the file."""
PROJECT_SHARE: Final = 4
"""The part about a project is at most one of so many parts as long as the one about no project."""
FIRST_CHECK_S: Final = 600.0
CHECK_S: Final = 600.0
SETTLE_S: Final = 2.0
"""The wait for more changes, after one."""
STATUS_MS: Final = 2_000
WATCH_S: Final = 1.0
ANSWER_MS: Final = 5_000
"""How much longer than the model the extractor may take."""
TRACE: Final = "synthesis"


class Report(NamedTuple):
    """What is known of an agent's file without reading it: the end of the last run, and why it failed if it did."""

    last_run_at: str | None
    last_error: str | None


class Synthesis:
    """The files of all agents. ``running``: the agent whose file is being made. ``reports``: of the last runs."""

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
        self.log = log
        self._config = config
        self._redactor = redactor
        self._sources = MemorySources(bus, clock, config)
        self._tasks: set[asyncio.Task[None]] = set()
        self._check_wanted = False
        self._check: asyncio.Task[None] | None = None
        self.running: str | None = None
        self.reports: dict[str, Report] = {}

    def file(self, agent_id: str) -> MemoryFile:
        """Return the agent's file. Raises InvalidRequest."""
        return MemoryFile(self._workspace, agent_id)

    async def groups(self, agent_id: str, trace_id: str) -> list[rules.Group]:
        """Return the memories that the agent's file is made from, those of no project first. Raises SignetError."""
        return await self._sources.groups(agent_id, trace_id)

    async def _sections(self, agent_id: str) -> list[Dated]:
        """Return the sections by date, without secrets. Raises SignetError."""
        found = await self._sources.sections(agent_id, TRACE)
        texts = await asyncio.to_thread(lambda: [self._readable(each.text, MAX_CONTENT_CHARS)[0] for each in found])
        return [each._replace(text=text) for each, text in zip(found, texts, strict=True)]

    def prompt(self, groups: list[rules.Group], max_tokens: int) -> str:
        """Return the prompt for a model."""
        return rules.prompt(groups or [rules.Group(None, ())], max_tokens, mark(self._rng.getrandbits(128)))

    async def complete(self, agent_id: str, content: str, by: str) -> tuple[Replaced, Kinds]:
        """Write what a harness made, and return what was cut out of it. Raises SignetError."""
        file = self.file(agent_id)
        self._take_turn(agent_id)
        try:
            text, kinds = await asyncio.to_thread(self._readable, content, MAX_CONTENT_CHARS)
            if not text:
                raise InvalidRequest("content is required", field="content")
            record = msgspec.structs.replace(await asyncio.to_thread(file.record), dated={}, stale=False)
            parts = [Part("", text, sources=await self._sources.cited(agent_id, text, TRACE))]
            return await asyncio.to_thread(self._write, agent_id, file, text, record, by=by, parts=parts), kinds
        finally:
            self.running = None

    def start(self, agent_id: str, *, again: bool) -> None:
        """Begin to make the agent's file, with ``again`` also the parts that have not changed. Raises Conflict."""
        self.file(agent_id)
        self._take_turn(agent_id)
        self._spawn(self._make(agent_id, again=again))

    def begin(self) -> None:
        """Make files when they are due, until ``stop``."""
        self._spawn(self._keep_up())
        self.check_soon()

    def check_soon(self) -> None:
        """Take what was forgotten or changed out of all files in a moment."""
        self._check_wanted = True
        if self._check is None or self._check.done():
            self._check = self._spawn(self._check_all())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def stop(self) -> None:
        """Abandon what is being made; the present file stays."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def make_if_due(self, agent_id: str) -> str | None:
        """Make the agent's file if it is due by the schedule; return why not. Raises SignetError."""
        config = self._config()
        file = self.file(agent_id)
        record = await asyncio.to_thread(file.record)
        self.reports[agent_id] = _report(record)
        if config.memory.synthesis.harness != DAEMON:
            return f"{config.memory.synthesis.harness} makes it"
        if config.memory.pipeline_v2.autonomous.frozen:
            return "memory.pipelineV2.autonomous.frozen is set"
        due_ms = self.due_ms(record)
        if due_ms is None or due_ms > self._clock.wall_ms():
            return "it is not due"
        if self.running is not None:
            return "another file is being made"
        reason = await self.model_waits()
        if reason is not None:
            await self._date_if_due(agent_id, record)
            return reason
        groups = await self.groups(agent_id, TRACE)
        if _digests(groups) == {(part.project, part.digest) for part in record.parts}:
            return "no memory has changed"
        self._take_turn(agent_id)
        await self._make(agent_id, again=False)
        return None

    def due_ms(self, record: Record) -> int | None:
        """Return when the file is to be made next, in milliseconds since 1970; None if only on request."""
        last, attempt = None if record.stale else record.last_run_at, record.last_attempt_at
        return rules.next_due_ms(
            self._config().memory.synthesis.schedule,
            last_run_ms=None if last is None else epoch_ms(last),
            last_attempt_ms=None if attempt is None else epoch_ms(attempt),
            failures=record.failures,
            now_ms=self._clock.wall_ms(),
        )

    @property
    def needs_no_model(self) -> bool:
        """Return whether the daemon is configured to make the file without a model."""
        return self._config().memory.pipeline_v2.synthesis.provider == NO_PROVIDER

    async def model_waits(self) -> str | None:
        """Return why the daemon's model cannot be asked now, None if it can."""
        if self.needs_no_model:
            return "no model: memory.pipelineV2.synthesis.provider is none"
        try:
            status = await self._bus.ask_extractor(GetExtractorStatus(), trace_id=TRACE, timeout_ms=STATUS_MS)
        except OutcomeUnknown:  # it was only asked how it is, so nothing is uncertain
            return "the extractor has not answered yet; it may be starting, try again in some seconds"
        except SignetError as error:
            return f"the extractor does not answer: {error.detail}"
        model = status.synthesis
        if model is None:
            return "memory.pipelineV2.synthesis is switched off"
        if model.report is None:
            return f"no model: {model.selection.reason}"
        return (model.report.waits_for or "the model is being checked") if model.report.waits_ms else None

    async def _keep_up(self) -> None:
        pause_s = FIRST_CHECK_S
        while True:
            await asyncio.sleep(pause_s)
            pause_s = CHECK_S
            self.check_soon()
            for agent_id in (DEFAULT_AGENT, *(agent.name for agent in self._config().agents.roster)):
                try:
                    await self.make_if_due(agent_id)
                except SignetError as error:
                    self.log.warning("memory_file_postponed", reason=error.detail)
                except Exception:
                    self.log.exception("memory_file_postponed")

    async def _make(self, agent_id: str, *, again: bool) -> None:
        """Make the file, record how that ended, and give the turn back. Raises no SignetError."""
        file = self.file(agent_id)
        record = Record()
        try:
            record = await asyncio.to_thread(self._begun, file)
            parts, model = (
                (record.parts, "") if self.needs_no_model else await self._parts(agent_id, record, again=again)
            )
            sections = await self._sections(agent_id)
            if not (parts or sections or record.made):
                raise SignetError("there is no memory yet")
            made = _assembled(parts, sections)
            record = msgspec.structs.replace(record, dated=_sources(sections), stale=False)
            model = model or record.model
            await asyncio.to_thread(self._write, agent_id, file, made, record, by=DAEMON, parts=parts, model=model)
        except SignetError as error:
            await asyncio.to_thread(self._failed, agent_id, file, record, error.detail)
        except Exception as error:
            self.log.exception("memory_file_failed")
            await asyncio.to_thread(self._failed, agent_id, file, record, f"internal: {type(error).__name__}")
        finally:
            self.running = None

    async def _date_if_due(self, agent_id: str, record: Record) -> None:
        """Renew the sections by date, once in a day, while no model can be asked. Raises SignetError."""
        now_ms = self._clock.wall_ms()
        dated_ms = None if record.dated_at is None else epoch_ms(record.dated_at)
        if dated_ms is not None and 0 <= now_ms - dated_ms < rules.DAY_MS:
            return
        self._take_turn(agent_id)
        try:
            file = self.file(agent_id)
            sections = await self._sections(agent_id)
            record = msgspec.structs.replace(await asyncio.to_thread(file.record), dated_at=iso(now_ms))
            if sections:
                record = msgspec.structs.replace(record, dated=_sources(sections))
                await self._rewrite(agent_id, record, _assembled(record.parts, sections), keep=True)
            else:
                await asyncio.to_thread(file.store, record)
        finally:
            self.running = None

    async def _check_all(self) -> None:
        """Check all files, and again if that was wanted meanwhile. Raises nothing."""
        while self._check_wanted:
            self._check_wanted = False
            await asyncio.sleep(SETTLE_S)
            if self.running is not None:
                self._check_wanted = True
                continue
            for agent_id in await asyncio.to_thread(agents_with_file, self._workspace):
                try:
                    await self.drop_forgotten(agent_id)
                except SignetError as error:
                    self.log.warning("memory_file_postponed", reason=error.detail)
                except Exception:
                    self.log.exception("memory_file_postponed")

    async def drop_forgotten(self, agent_id: str) -> None:
        """Take the lines of memories that were forgotten or changed out of the agent's file. Raises SignetError.

        A file that was written anew meanwhile is left to the next check. If the sections by date cannot be made anew,
        their other lines stay until they are due again.
        """
        file = self.file(agent_id)
        record = await asyncio.to_thread(file.record)
        shown = {memory_id: version for part in record.parts for memory_id, version in part.sources.items()}
        shown |= record.dated
        live = await self._sources.live(agent_id, list(shown), TRACE)
        changed = {memory_id for memory_id, version in shown.items() if live.get(memory_id) != version}
        if not changed:
            return
        self._take_turn(agent_id)
        try:
            present = await asyncio.to_thread(file.record)
            if (present.parts, present.dated) != (record.parts, record.dated):
                self.check_soon()
                return
            parts: list[Part] = []
            stale = present.stale
            for former in present.parts:
                part, missing = former, changed & former.sources.keys()
                left = without_memories(part.text, missing, part.sources.keys())
                stale = stale or left.unclear or any(each in live for each in missing)
                if missing:
                    sources = {each: version for each, version in part.sources.items() if each not in missing}
                    part = Part("", left.text, part.project, sources)
                parts.append(part)
            record = msgspec.structs.replace(present, parts=parts, stale=stale)
            try:
                sections = await self._sections(agent_id) if present.dated else []
                made, dated = _assembled(parts, sections), _sources(sections)
            except SignetError as error:
                self.log.warning("memory_file_sections_kept", reason=error.detail)
                made = without_memories(present.made, changed, ()).text
                dated = {each: version for each, version in present.dated.items() if each not in changed}
                record = msgspec.structs.replace(record, stale=True, dated_at=None)
            record = msgspec.structs.replace(record, dated=dated)
            await self._rewrite(agent_id, record, made, keep=False)
            await asyncio.to_thread(file.drop_from_versions, changed - live.keys())
        finally:
            self.running = None

    async def _rewrite(self, agent_id: str, record: Record, made: str, *, keep: bool) -> None:
        """Write the file without a model. It counts as no run. Raises SignetError."""
        record = msgspec.structs.replace(record, by=record.by or DAEMON)
        file, now_ms = self.file(agent_id), self._clock.wall_ms()
        replaced = await asyncio.to_thread(file.replace, made, record, now_ms, keep=keep)
        self.log.info("memory_file_renewed", chars=len(made), edited=replaced.edited)

    async def _parts(self, agent_id: str, record: Record, *, again: bool) -> tuple[list[Part], str]:
        """Return the parts of the file, and the model that made the new ones. Raises SignetError."""
        former = {} if again else {part.project: part for part in record.parts}
        config = self._config()
        timeout_ms = config.memory.pipeline_v2.synthesis.timeout_ms + ANSWER_MS
        parts, model = [], ""
        for each in await self.groups(agent_id, TRACE):
            part = former.get(each.project)
            if part is None or part.digest != each.digest:
                tokens = config.memory.synthesis.max_tokens // (1 if each.project is None else PROJECT_SHARE)
                asked = Synthesize(self.prompt([each], tokens), tokens)
                answer = await self._ask_model(asked, timeout_ms)
                text, _ = await asyncio.to_thread(self._readable, answer.text, rules.CHARS_A_TOKEN * tokens)
                if not text:
                    raise SignetError("the model returned no text")
                model = answer.model
                level = 2 if each.project is None else 3
                part = Part(each.digest, below(text, level), each.project, each.versions)
            parts.append(part)
        return parts, model

    async def _ask_model(self, asked: Synthesize, timeout_ms: int) -> Synthesized:
        """Return the model's answer. Raises Unavailable if the extractor ends meanwhile, SignetError."""
        asking = asyncio.ensure_future(self._bus.ask_extractor(asked, trace_id=TRACE, timeout_ms=timeout_ms))
        before = self._extractors()
        try:
            while not (await asyncio.wait({asking}, timeout=WATCH_S))[0]:
                if self._extractors() != before:
                    raise Unavailable("the extractor ended while the model was asked")
            return asking.result()
        finally:
            asking.cancel()

    def _extractors(self) -> list[tuple[str, int]]:
        children = self._bus.tree.children
        return [(child.name, child.incarnation) for child in children if child.role == "extractor"]

    def _readable(self, answer: str, max_chars: int) -> tuple[str, Kinds]:
        """Return the Markdown in an answer without secrets, empty if there is none. Blocks."""
        text, kinds = self._redactor().clean(readable_answer(answer, max_chars))
        return text.strip("\n"), kinds

    def _begun(self, file: MemoryFile) -> Record:
        """Record that a run began. It counts as failed until it ends. Blocks."""
        record = file.record()
        now = iso(self._clock.wall_ms())
        record = msgspec.structs.replace(record, begun_at=now, last_attempt_at=now, failures=record.failures + 1)
        file.store(record)
        return record

    def _write(
        self,
        agent_id: str,
        file: MemoryFile,
        text: str,
        record: Record,
        *,
        by: str,
        parts: Sequence[Part] = (),
        model: str = "",
    ) -> Replaced:
        """Write ``text`` into the file, and record that the run succeeded. Blocks."""
        now_ms = self._clock.wall_ms()
        record = msgspec.structs.replace(
            record,
            parts=list(parts),
            by=by,
            model=model,
            last_run_at=iso(now_ms),
            last_attempt_at=iso(now_ms),
            begun_at=None,
            last_error=None,
            failures=0,
        )
        replaced = file.replace(text, record, now_ms)
        self.reports[agent_id] = _report(record)
        self.log.info("memory_file_written", by=by, chars=len(text), edited=replaced.edited)
        return replaced

    def _failed(self, agent_id: str, file: MemoryFile, record: Record, reason: str) -> None:
        """Record why a run failed; on a full disk this process remembers it. Blocks."""
        self.log.warning("memory_file_not_made", reason=reason)
        self.reports[agent_id] = Report(record.last_run_at, reason)
        with contextlib.suppress(SignetError):
            present = file.record()
            failures = max(record.failures, 1)
            file.store(msgspec.structs.replace(present, begun_at=None, last_error=reason, failures=failures))

    def _take_turn(self, agent_id: str) -> None:
        """Make no other file until ``running`` is None again. Raises Conflict."""
        if self.running is not None:
            raise Conflict("Synthesis already in progress")
        self.running = agent_id


def _assembled(parts: Sequence[Part], sections: Sequence[Dated]) -> str:
    return assembled([(part.project, part.text) for part in parts], sections)


def _sources(sections: Sequence[Dated]) -> dict[str, int]:
    return {memory_id: version for each in sections for memory_id, version in each.sources.items()}


def last_error(record: Record) -> str | None:
    """Return why the last run failed, None if it did not; only while none is running."""
    if record.begun_at is not None:
        return f"the run that began at {record.begun_at} was interrupted"
    return record.last_error


def _report(record: Record) -> Report:
    return Report(record.last_run_at, last_error(record))


def _digests(groups: list[rules.Group]) -> set[tuple[str | None, str]]:
    return {(each.project, each.digest) for each in groups}
