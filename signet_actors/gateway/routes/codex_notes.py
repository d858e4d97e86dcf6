"""Write a note as a file into the folder from which Codex reads its own memories.

The daemon chooses the file name. The folders below ``$CODEX_HOME`` are opened by descriptor without following symbolic
links, so that the note cannot be redirected. The file appears complete under its name and never replaces another file.

Source: memory-api.txt "POST /api/memory/codex-native-note"; docs/decisions.md 3, 26, 47; docs/security.md
"Where the specification is unsafe".
Departs: with an ``Idempotency-Key`` the name is derived from the key, so that a retry finds the note it wrote before.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import os
import re
import secrets
from pathlib import Path
from typing import Final

from signet_actors.domain.normalization import collapsed
from signet_actors.errors import Conflict, ErrorCode, OutcomeUnknown, SignetError, StorageFull
from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.gateway.ingest import redaction_fields
from signet_actors.gateway.state import GatewayState
from signet_actors.operations.codex_notes import WRITE_NOTE, NoteReply, NoteRequest
from signet_actors.operations.field_types import MAX_NAME_CHARS
from signet_actors.runtime.messaging.requests import mark_sent
from signet_actors.runtime.sync_points import sync_point

FOLDERS: Final = ("memories", "extensions", "ad_hoc", "notes")
DEFAULT_SLUG: Final = "note"

_CROCKFORD: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ULID_CHARS: Final = 26
_NOT_SLUG: Final = re.compile(r"[^a-z0-9]+")
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


async def write_note(call: Call[NoteRequest]) -> HttpResponse:
    """Write the note durably and return its path."""
    await call.check_machine()
    state = call.state
    title, tags = collapsed(call.request.title or ""), ", ".join(call.request.tags)
    parts = (f"# {title}" if title else "", f"Tags: {tags}" if tags else "", call.request.content)
    text = "\n\n".join(part for part in parts if part) + "\n"
    clean, kinds = state.redactor.clean(text) if state.config.redaction.memories else (text, ())
    if call.idempotency is None:
        # The slug is part of the path, which is returned and logged: make it from the redacted title.
        slug = _slug(clean.splitlines()[0][:MAX_NAME_CHARS]) if title else DEFAULT_SLUG
        name = f"{_new_ulid(state)}-{slug}.md"
    else:
        name = f"{_ulid_of_key(call.idempotency.key)}-{DEFAULT_SLUG}.md"
    home = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")
    mark_sent()
    path = await asyncio.to_thread(_write, home, name, clean.encode(), retry=call.idempotency is not None)
    return HttpResponse(NoteReply(path=path, **redaction_fields(kinds)))


def _slug(title: str) -> str:
    return _NOT_SLUG.sub("-", title.lower()).strip("-")[:40].strip("-") or DEFAULT_SLUG


def _new_ulid(state: GatewayState) -> str:
    """Return a ULID: 48 bits of time and 80 random bits, so that names sort by time and cannot be predicted."""
    return _crockford((state.clock.wall_ms() & ((1 << 48) - 1)) << 80 | secrets.randbits(80))


def _ulid_of_key(key: str) -> str:
    return _crockford(int.from_bytes(hashlib.sha256(key.encode()).digest()[:16], "big"))


def _crockford(value: int) -> str:
    return "".join(_CROCKFORD[(value >> shift) & 31] for shift in range(5 * (_ULID_CHARS - 1), -1, -5))


def _write(home: Path, name: str, content: bytes, *, retry: bool) -> str:
    """Write ``content`` durably and return the absolute path. Blocks.

    Raises SignetError. Except for ``OutcomeUnknown``, a failure leaves no file behind.
    """
    try:
        folder = _open_folder(home)
        try:
            _write_durably(folder, name, content, retry=retry)
        finally:
            os.close(folder)
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise StorageFull from error
        raise SignetError(f"The note was not written: {error.strerror}", code=ErrorCode.NOT_APPLIED) from error
    # Not resolve(): keep the user's own links in the returned path, because the user knows it by them.
    return str(Path(os.path.abspath(home), *FOLDERS, name))


def _open_folder(home: Path) -> int:
    """Return a descriptor of the notes folder. ``home`` may be a symbolic link, the folders below it may not."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = os.open(home, _DIRECTORY & ~os.O_NOFOLLOW)
    for part in FOLDERS:
        try:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o700, dir_fd=folder)
            inner = os.open(part, _DIRECTORY, dir_fd=folder)
        except OSError as error:
            if error.errno in {errno.ELOOP, errno.ENOTDIR}:
                raise Conflict(f"{part} below the Codex folder is a link or a file, not a folder") from error
            raise
        finally:
            os.close(folder)
        folder = inner
    return folder


def _write_durably(folder: int, name: str, content: bytes, *, retry: bool) -> None:
    """Write ``content`` durably under ``name``, which must not exist; on a retry it may exist with the same content."""
    temporary = f".{name}.{secrets.token_hex(4)}.tmp"
    handle = os.open(
        temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder
    )
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        sync_point("fs.note_tmp_written")
        try:
            os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            if not retry or _read_previous(folder, name, len(content) + 1) != content:
                raise SignetError(
                    "The Idempotency-Key was used for another note", code=ErrorCode.IDEMPOTENCY_CONFLICT
                ) from None
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    try:
        sync_point("fs.note_renamed")
        os.unlink(temporary, dir_fd=folder)
        os.fsync(folder)
    except OSError as error:
        raise OutcomeUnknown("The note was written, but a crash may lose it") from error


def _read_previous(folder: int, name: str, limit: int) -> bytes:
    """Return the file that an earlier attempt left under ``name``; raise OutcomeUnknown if it cannot be read."""
    try:
        return _read(folder, name, limit)
    except OSError as error:
        raise OutcomeUnknown("A note with this Idempotency-Key exists but cannot be read") from error


def _read(folder: int, name: str, limit: int) -> bytes:
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(handle, "rb") as file:
        return file.read(limit)


ROUTES: tuple[Route, ...] = serve(WRITE_NOTE, write_note)
