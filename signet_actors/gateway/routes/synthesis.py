"""``MEMORY.md``: the prompt for it, what a harness made of that, its status and what changed.

Source: docs/compatibility.md "MEMORY.md"; docs/guides/working-memory.md; docs/decisions.md 34, 35.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from msgspec import UNSET

from signet_actors.config.pipeline_schema import PipelineV2Config
from signet_actors.domain.providers import NO_PROVIDER
from signet_actors.domain.timestamps import iso
from signet_actors.domain.working_memory import difference
from signet_actors.errors import ErrorCode, InvalidRequest, SignetError, Unavailable
from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.gateway.ingest import redaction_fields
from signet_actors.gateway.sessions.hook_runner import NO_HOOKS_HEADER
from signet_actors.gateway.synthesis.memory_file import FILE_NAME, MemoryFile, Record
from signet_actors.gateway.synthesis.synthesis import DAEMON, last_error
from signet_actors.operations import synthesis as api
from signet_actors.operations.field_types import parse_flag
from signet_actors.operations.hooks import StartMemory
from signet_actors.runtime.messaging.requests import mark_sent


async def settings(call: Call[api.SynthesisAgent]) -> HttpResponse:
    """Return the settings in effect."""
    return HttpResponse(_settings(call))


async def request(call: Call[api.RequestSynthesisRequest]) -> HttpResponse:
    """Return the prompt and the memories that it shows."""
    shown = _settings(call)
    reason = _switched_off(call)
    if reason is not None:
        return HttpResponse(api.SynthesisPrompt(harness=shown.harness, model=shown.model, skipped=True, reason=reason))
    groups = await call.state.synthesis.groups(call.agent_id, call.trace_id)
    return HttpResponse(
        api.SynthesisPrompt(
            harness=shown.harness,
            model=shown.model,
            prompt=call.state.synthesis.prompt(groups, shown.max_tokens),
            memories=[
                StartMemory(source.id, source.content, source.type, source.importance, source.created_at)
                for each in groups
                for source in each.sources
            ],
            file_count=len(groups),
        )
    )


async def complete(call: Call[api.CompleteSynthesisRequest]) -> HttpResponse:
    """Write the file."""
    content = call.request.content
    if not content.strip():
        raise InvalidRequest("content is required", field="content")
    if len(content) > api.MAX_CONTENT_CHARS:
        raise SignetError(
            f"content must be at most {api.MAX_CONTENT_CHARS} characters",
            code=ErrorCode.PAYLOAD_TOO_LARGE,
            field="content",
        )
    reason = _switched_off(call)
    if reason is not None:
        return HttpResponse(api.SynthesisCompleted(success=False, skipped=True, reason=reason))
    by = call.request.harness or "harness"
    mark_sent()
    replaced, kinds = await call.state.synthesis.complete(call.agent_id, content, by)
    return HttpResponse(
        api.SynthesisCompleted(
            success=True,
            written=replaced.written,
            edited=replaced.edited,
            version=UNSET if replaced.kept is None else replaced.kept,
            **redaction_fields(kinds),
        )
    )


async def status(call: Call[api.SynthesisAgent]) -> HttpResponse:
    """Return when the file was made, by whom, and its versions."""
    synthesis = call.state.synthesis
    file = synthesis.file(call.agent_id)
    text, record, edited, versions = await asyncio.to_thread(_read, file)
    running = synthesis.running == call.agent_id
    waiting = await synthesis.model_waits()
    due_ms = synthesis.due_ms(record) if call.state.config.memory.synthesis.harness == DAEMON else None
    if waiting is not None and due_ms is not None and due_ms <= call.state.clock.wall_ms():
        due_ms = None  # it waits for the model, not for a time
    report = synthesis.reports.get(call.agent_id)
    failure = None if running else last_error(record) or (report and report.last_error)
    return HttpResponse(
        api.SynthesisStatus(
            running=running,
            last_run_at=record.last_run_at,
            config=_settings(call),
            agent_id=call.agent_id,
            path=str(file.path),
            chars=len(text),
            made_by=record.by or None,
            model=record.model or None,
            edited=edited,
            edited_at=record.edited_at,
            last_attempt_at=record.last_attempt_at,
            last_error=failure,
            failures=record.failures,
            next_run_at=None if due_ms is None else iso(due_ms),
            waiting=waiting,
            versions=versions,
        )
    )


async def trigger(call: Call[api.TriggerRequest]) -> HttpResponse:
    """Begin to make the file."""
    synthesis = call.state.synthesis
    reason = None if synthesis.needs_no_model else await synthesis.model_waits()
    if reason is not None:
        raise Unavailable(f"Synthesis worker not running: {reason}")
    synthesis.start(call.agent_id, again=call.request.again)
    return HttpResponse(api.TriggerReply(success=True, running=True, agent_id=call.agent_id))


def _read(file: MemoryFile) -> tuple[str, Record, bool, list[api.FileVersion]]:
    record = file.record()
    return file.text(), record, bool(record.file_digest) and file.is_edited(record), file.versions()


async def diff(call: Call[api.VersionRequest]) -> HttpResponse:
    """Return the difference between a former version and the present file."""
    file = call.state.synthesis.file(call.agent_id)
    return HttpResponse(await asyncio.to_thread(_diff, file, call.request.version))


def _diff(file: MemoryFile, name: str | None) -> api.SynthesisDiff:
    if name is None:
        versions = file.versions()
        if not versions:
            return api.SynthesisDiff(version=None, diff=None)
        name = versions[0].name
    return api.SynthesisDiff(version=name, diff=difference(file.version(name), file.text(), (name, FILE_NAME)))


def _settings(call: Call[Any]) -> api.SynthesisSettings:
    config = call.state.config
    chosen = config.memory.synthesis
    return api.SynthesisSettings(
        enabled=config.hooks.synthesis.enabled,
        harness=chosen.harness,
        model=chosen.model,
        schedule=chosen.schedule,
        max_tokens=chosen.max_tokens,
        provider=_provider(config.memory.pipeline_v2),
    )


def _provider(pipeline: PipelineV2Config) -> str:
    """Return the configured provider with which the daemon makes the file."""
    own = pipeline.synthesis
    if not (pipeline.enabled and own.enabled):
        return NO_PROVIDER
    return pipeline.extraction.provider if own.provider == "extraction" else own.provider


def _switched_off(call: Call[Any]) -> str | None:
    """Return why the hook does nothing, None if it works."""
    if parse_flag(call.headers.get(NO_HOOKS_HEADER, "")):
        return "no_hooks"
    return None if call.state.config.hooks.synthesis.enabled else "disabled"


ROUTES: Final[tuple[Route, ...]] = (
    *serve(api.CONFIG, settings),
    *serve(api.REQUEST, request),
    *serve(api.COMPLETE, complete),
    *serve(api.STATUS, status),
    *serve(api.TRIGGER, trigger),
    *serve(api.DIFF, diff),
)
