"""The workspace as a git repository: its state, its settings, and the exchange of commits with a remote."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Final

import msgspec

from signet_actors.config.git_schema import GitConfig
from signet_actors.config.workspace import CONFIG_FILE_NAME
from signet_actors.domain.workspace_git import GitAction
from signet_actors.errors import InvalidRequest
from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.gateway.routes.config_files import edit_config
from signet_actors.operations import git as api
from signet_actors.operations.request_fields import NoFields
from signet_actors.protocol.retention import GitDone, RunGit
from signet_actors.runtime.messaging.requests import mark_sent

ASK_MS: Final = 9_000
SWITCHED_OFF: Final = "git.enabled is false"


async def status(call: Call[NoFields]) -> HttpResponse:
    """Return the state of the repository."""
    config = call.state.config.git
    shown: dict[str, Any] = {"enabled": config.enabled, "auto_commit": config.auto_commit}
    shown["auto_sync"] = config.auto_sync
    if not config.enabled:
        return HttpResponse(api.GitStatusReply(last_sync=None, problem=SWITCHED_OFF, **shown))
    done = await _run(call, "status")
    state = {**msgspec.structs.asdict(done.state), "problem": done.problem}
    return HttpResponse(api.GitStatusReply(last_sync=done.last_exchange, **state, **shown))


async def pull(call: Call[NoFields]) -> HttpResponse:
    """Pull the branch."""
    return await _exchange(call, "pull")


async def push(call: Call[NoFields]) -> HttpResponse:
    """Push the branch."""
    return await _exchange(call, "push")


async def sync(call: Call[NoFields]) -> HttpResponse:
    """Pull, then push the branch."""
    return await _exchange(call, "sync")


async def read_settings(call: Call[NoFields]) -> HttpResponse:
    """Return the settings in effect."""
    return HttpResponse(_settings(call.state.config.git))


async def write_settings(call: Call[api.GitSettingsRequest]) -> HttpResponse:
    """Write the given settings into agent.yaml."""
    given: dict[str, Any] = {}
    for field in msgspec.structs.fields(api.GitSettingsRequest):
        value = getattr(call.request, field.name)
        if value is not None:
            whole = isinstance(value, float) and value.is_integer()
            given[f"git.{field.encode_name}"] = int(value) if whole else value
    if not given:
        raise InvalidRequest("no setting is given", field="autoCommit")
    abandoned = threading.Event()
    mark_sent()
    try:
        written, warnings = await asyncio.to_thread(edit_config, call.state, given, abandoned)
    except asyncio.CancelledError:
        abandoned.set()  # the thread keeps running, but does not replace the file
        raise
    call.state.log.info("config_file_written", file=CONFIG_FILE_NAME, keys=sorted(given), trace=call.trace_id)
    message = "Takes effect within two seconds"
    return HttpResponse(api.GitSettingsChanged(True, message, _settings(written.git), warnings))


async def _exchange(call: Call[NoFields], action: GitAction) -> HttpResponse:
    if not call.state.config.git.enabled:
        return HttpResponse(api.GitExchangeReply(success=False, message=SWITCHED_OFF))
    done = await _run(call, action)
    return HttpResponse(api.GitExchangeReply(success=done.success, message=done.message))


async def _run(call: Call[NoFields], action: GitAction) -> GitDone:
    return await call.state.bus.ask_retention(RunGit(action), trace_id=call.trace_id, timeout_ms=ASK_MS)


def _settings(config: GitConfig) -> api.GitSettings:
    return api.GitSettings(**msgspec.structs.asdict(config))


ROUTES: Final[tuple[Route, ...]] = (
    *serve(api.STATUS, status),
    *serve(api.PULL, pull),
    *serve(api.PUSH, push),
    *serve(api.SYNC, sync),
    *serve(api.READ_SETTINGS, read_settings),
    *serve(api.WRITE_SETTINGS, write_settings),
)
