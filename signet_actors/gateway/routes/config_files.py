"""Read and replace whole files that the user edits: the configuration and the identity documents.

A replacement is atomic (temporary file, fsync, rename) and saves the previous file in ``.daemon/previous``. A new
agent.yaml is accepted only if the daemon could start with it. The daemon then reads it by itself.

Source: docs/compatibility.md "Configuration files"; memory-system.txt "User Data Layout".
Departs: only the listed names, not every .md or .yaml of the workspace. Otherwise a web page or an agent with access
to this route could plant instructions in files that other programs read.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import stat
import tempfile
import threading
from collections.abc import Mapping
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from signet_actors.config.schema import Config
from signet_actors.config.workspace import CONFIG_FILE_NAME, IDENTITY_FILE_NAMES, Workspace
from signet_actors.errors import ConfigError, Conflict, ErrorCode, InvalidRequest, OutcomeUnknown, SignetError
from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.gateway.state import GatewayState
from signet_actors.operations import config_files as api
from signet_actors.operations.request_fields import NoFields
from signet_actors.runtime.file_draft import FileDraft, fsync_path
from signet_actors.runtime.messaging.requests import mark_sent

if TYPE_CHECKING:
    from signet_actors.config.load import LoadedConfig

FILES = (CONFIG_FILE_NAME, *IDENTITY_FILE_NAMES)
MAX_FILE_BYTES = 1024 * 1024
MAX_CONFIG_BYTES = 128 * 1024
"""Limit of a posted agent.yaml. It is smaller because the file is parsed before it replaces the current one."""

_replace_lock = threading.Lock()


async def list_files(call: Call[NoFields]) -> HttpResponse:
    """Return the listed files that exist; a file that is not a regular UTF-8 file is reported with the reason."""
    return HttpResponse(await asyncio.to_thread(_read_files, call.state.workspace))


async def write_file(call: Call[api.WriteConfigRequest]) -> HttpResponse:
    """Replace the file with ``content`` durably."""
    name = call.request.file
    _check_name(name)
    call.audit_detail = {"file": name}
    data = _encode_content(call.request.content, MAX_CONFIG_BYTES if name == CONFIG_FILE_NAME else MAX_FILE_BYTES)
    abandoned = threading.Event()
    mark_sent()
    try:
        warnings = await asyncio.to_thread(_write, call.state, name, data, call.request.former, abandoned)
    except asyncio.CancelledError:
        abandoned.set()  # the thread keeps running, but does not replace the file
        raise
    call.state.log.info("config_file_written", file=name, size=len(data), trace=call.trace_id)
    message = "Takes effect within two seconds" if name == CONFIG_FILE_NAME else "Written"
    return HttpResponse(api.WriteConfigReply(success=True, warnings=warnings, message=message))


async def check_config(call: Call[api.CheckConfigRequest]) -> HttpResponse:
    """Return whether ``content`` would be accepted as agent.yaml, and which keys it sets. Stores nothing."""
    data = _encode_content(call.request.content, MAX_CONFIG_BYTES)
    return HttpResponse(await asyncio.to_thread(_checked, call.state, data))


def _checked(state: GatewayState, data: bytes) -> api.CheckConfigReply:
    from signet_actors.config.keys import keys  # noqa: PLC0415 - only here
    from signet_actors.config.load import restart_values  # noqa: PLC0415 - a gateway starts without a YAML parser

    try:
        loaded = _validate(state.workspace, data, state.config)
    except SignetError as error:
        return api.CheckConfigReply(False, error.detail.split("\n"), [], needs_restart=False, keys=[])
    given = [
        api.SetKey(
            key=key.dotted,
            value=value,
            default=key.default,
            meaning=key.field.meaning,
            values=", ".join(key.field.choices) or key.field.range_text or key.field.kind,
        )
        for key in keys()
        if (value := attrgetter(".".join(key.attributes))(loaded.config)) != key.default
    ]
    needs_restart = restart_values(loaded.config) != restart_values(state.config)
    return api.CheckConfigReply(True, [], loaded.warnings, needs_restart=needs_restart, keys=given)


def _check_name(name: str) -> None:
    if "/" in name or "\\" in name or ".." in name or "\0" in name:
        raise InvalidRequest("Invalid file name", field="file")
    if not name.endswith((".md", ".yaml")):
        raise InvalidRequest("Invalid file type", field="file")
    if name not in FILES:
        raise InvalidRequest("Invalid file name", field="file")


def _encode_content(content: str, limit: int) -> bytes:
    if "\0" in content:
        raise InvalidRequest("content must be text", field="content")
    try:
        data = content.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest("content must be text", field="content") from error
    if len(data) > limit:
        raise SignetError(f"content must be at most {limit} bytes", code=ErrorCode.PAYLOAD_TOO_LARGE, field="content")
    return data


def _read_files(workspace: Path) -> api.ConfigFilesReply:
    files: list[api.ConfigFile] = []
    skipped: list[api.SkippedFile] = []
    for name in FILES:
        try:
            data = _read(workspace / name)
            files.append(api.ConfigFile(name=name, content=data.decode(), size=len(data)))
        except FileNotFoundError:
            continue
        except UnicodeDecodeError:
            skipped.append(api.SkippedFile(name=name, reason="not UTF-8 text"))
        except OSError as error:
            skipped.append(api.SkippedFile(name=name, reason=error.strerror or "not readable"))
        except Conflict as error:
            skipped.append(api.SkippedFile(name=name, reason=error.detail))
    return api.ConfigFilesReply(files=files, skipped=skipped)


def _read(path: Path) -> bytes:
    if path.is_symlink():
        raise Conflict("a symbolic link")
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise Conflict("not a regular file")
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise Conflict(f"larger than {MAX_FILE_BYTES} bytes")
    return data


def edit_config(state: GatewayState, values: Mapping[str, Any], abandoned: threading.Event) -> tuple[Config, list[str]]:
    """Set keys of agent.yaml by their dotted names; return the configuration of the file, and the loader's warnings.

    Comments and all other keys stay. Changes nothing once ``abandoned`` is set. Raises InvalidRequest, Conflict.
    """
    from signet_actors.config.yaml_edit import with_value  # noqa: PLC0415 - a gateway starts without a YAML parser
    from signet_actors.config.yaml_file import UnreadableYaml  # noqa: PLC0415 - see the previous line

    target = state.workspace / CONFIG_FILE_NAME
    with _replace_lock:
        try:
            text = _read(target).decode() if _target_exists(target) else ""
            for key, value in values.items():
                text = with_value(text, key.split("."), value)
        except UnicodeDecodeError:
            raise Conflict(f"{CONFIG_FILE_NAME} is not UTF-8 text") from None
        except UnreadableYaml as error:
            raise Conflict(f"{CONFIG_FILE_NAME}: {'; '.join(error.problems)}") from None
        data = text.encode()
        loaded = _validate(state.workspace, data, state.config)
        _replace(state.workspace, CONFIG_FILE_NAME, data, abandoned)
    return loaded.config, loaded.warnings


def _write(state: GatewayState, name: str, data: bytes, former: str | None, abandoned: threading.Event) -> list[str]:
    """Write ``data`` to the file and return the loader's warnings. Changes nothing once ``abandoned`` is set.

    Raises Conflict if the file does not have the text ``former`` any more.
    """
    target = state.workspace / name
    with _replace_lock:
        _raise_if_abandoned(abandoned)
        if former is not None and (_read(target) if _target_exists(target) else b"") != former.encode():
            raise Conflict(f"{name} has changed since it was read")
        is_config = name == CONFIG_FILE_NAME
        warnings = _validate(state.workspace, data, state.config).warnings if is_config else []
        _replace(state.workspace, name, data, abandoned)
    return warnings


def _replace(workspace: Path, name: str, data: bytes, abandoned: threading.Event) -> None:
    """Replace the file, and save the previous one in ``.daemon/previous``. The caller holds the lock."""
    target = workspace / name
    previous = _target_exists(target)
    with FileDraft(target, f".{name}.{secrets.token_hex(4)}.new") as draft:
        draft.file.write(data)
        draft.sync()
        _raise_if_abandoned(abandoned)
        if previous:
            _save_previous(target, Workspace(workspace).daemon_dir / "previous")
        draft.replace()
    try:
        fsync_path(workspace)
    except OSError as error:
        raise OutcomeUnknown("The file was replaced, but a crash may undo the change") from error


def _raise_if_abandoned(abandoned: threading.Event) -> None:
    if abandoned.is_set():
        raise OutcomeUnknown("The request was cancelled before the file was replaced")


def _validate(workspace: Path, data: bytes, running: Config) -> LoadedConfig:
    """Return the configuration, which the daemon could start with, and the loader's warnings.

    Raises InvalidRequest with every problem of an invalid configuration. Raises a 403 if the configuration sends texts
    or keys to other places than the current file does (``running`` if that is not in effect), or weakens what protects
    them. The loaded configurations are compared, so that the spelling of a key does not matter.
    """
    from signet_actors.config.load import load_config  # noqa: PLC0415 - a gateway starts without a YAML parser
    from signet_actors.config.protected_keys import protected_changes  # noqa: PLC0415 - see the previous line

    scratch_parent = Workspace(workspace).daemon_dir
    scratch_parent.mkdir(mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="config-check-", dir=scratch_parent) as scratch:
        candidate = Path(scratch) / CONFIG_FILE_NAME
        candidate.write_bytes(data)
        try:
            loaded = load_config(Path(scratch), os.environ, strict=True)
        except ConfigError as error:
            raise InvalidRequest(error.detail, field="content") from error
    try:
        on_disk = load_config(workspace, os.environ)
    except ConfigError:
        on_disk = None
    is_in_effect = on_disk is not None and not on_disk.is_empty and not on_disk.fallbacks
    current = on_disk.config if on_disk is not None and is_in_effect else running
    changed = protected_changes(current, loaded.config)
    if changed:
        raise SignetError(
            f"{', '.join(changed)}: settings that control where texts and keys are sent, or that protect them, can be "
            "changed only by editing the file, not over HTTP",
            code=ErrorCode.FORBIDDEN,
            field=changed[0],
        )
    if loaded.is_empty and on_disk is not None and not on_disk.is_empty:
        raise InvalidRequest("agent.yaml would have no values; remove the file and restart to use the defaults")
    return loaded


def _target_exists(target: Path) -> bool:
    """Return whether there is a file to replace; raise Conflict for anything but a regular file."""
    try:
        facts = os.lstat(target)
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(facts.st_mode):
        raise Conflict(f"{target.name} is not a regular file and is not replaced", field="file")
    return True


def _save_previous(target: Path, directory: Path) -> None:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = directory / f".{target.name}.{secrets.token_hex(4)}"
    os.link(target, temporary, follow_symlinks=False)
    temporary.replace(directory / target.name)
    temporary.unlink(missing_ok=True)  # rename() leaves both names if they already link to the same file


ROUTES: tuple[Route, ...] = (
    *serve(api.READ_CONFIG, list_files),
    *serve(api.WRITE_CONFIG, write_file),
    *serve(api.CHECK_CONFIG, check_config),
)
