"""``MEMORY.md`` of one agent, with its former versions and a record of what was written.

The file is replaced as a whole, and the former one is kept before. Nothing is read or written through a link. The
record names what is about to be written before the file is replaced, so after a crash in between the daemon still knows
which lines are its own.

Source: docs/guides/working-memory.md; docs/decisions.md 28.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from signet_actors.config.regular_file import read_regular
from signet_actors.config.workspace import Workspace
from signet_actors.domain.dated_sections import without_memories
from signet_actors.domain.session_keys import DEFAULT_AGENT
from signet_actors.domain.timestamps import iso
from signet_actors.domain.working_memory import for_session, joined, own_part, split
from signet_actors.errors import ConfigError, Conflict, ErrorCode, InvalidRequest, SignetError
from signet_actors.operations.synthesis import FileVersion
from signet_actors.runtime.file_draft import FileDraft, fsync_path, replace_file
from signet_actors.runtime.harness_file import BYTE_ORDER_MARK
from signet_actors.runtime.identity_files import is_directory_name, read_prose
from signet_actors.runtime.sync_points import sync_point

FILE_NAME: Final = "MEMORY.md"
RECORD_NAME: Final = "synthesis.json"
MAX_FILE_BYTES: Final = 1024 * 1024
MAX_RECORD_BYTES: Final = 8 * 1024 * 1024
MAX_VERSIONS: Final = 20
"""That are kept of each kind: written by the daemon, and changed by a person."""
_TRIES: Final = 3
_VERSION: Final = re.compile(r"MEMORY\.backup-(\d{8}T\d{9}Z)(-edited)?\.md")


class Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a model made from the memories of one project, or of none.

    ``digest`` tells which memories, ``sources`` their versions by their ids.
    """

    digest: str
    text: str
    project: str | None = None
    sources: dict[str, int] = {}


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of an agent's file. Times are ISO text.

    ``made``: the part that was written last, ``file_digest`` that of the whole file; ``pending`` and ``pending_digest``
    those of a replacement that had begun. ``by``: ``daemon``, or the harness. ``edited_at``: when a change by a person
    was found last. ``begun_at`` is set while a run goes on. ``failures`` in a row; ``last_error`` of the last run.
    ``dated``: the versions of the memories in the sections by date, by id; ``dated_at``: when these were made by the
    schedule. ``stale``: a part may say something of a memory that was forgotten or changed since.
    """

    made: str = ""
    file_digest: str = ""
    pending: str = ""
    pending_digest: str = ""
    parts: list[Part] = []
    by: str = ""
    model: str = ""
    last_run_at: str | None = None
    last_attempt_at: str | None = None
    begun_at: str | None = None
    edited_at: str | None = None
    last_error: str | None = None
    failures: int = 0
    dated: dict[str, int] = {}
    dated_at: str | None = None
    stale: bool = False


class Replaced(NamedTuple):
    """Whether the file was written; which version was kept of the former one, and whether a person had changed it."""

    written: bool
    kept: str | None = None
    edited: bool = False


class MemoryFile:
    """The file of one agent. Every method blocks, and raises SignetError."""

    def __init__(self, workspace: Path, agent_id: str) -> None:
        self._workspace = workspace
        if not is_directory_name(agent_id):
            raise InvalidRequest("an agent of this name can have no directory", field="agentId")
        root = workspace if agent_id == DEFAULT_AGENT else Workspace(workspace).agents_dir / agent_id
        self.path = root / FILE_NAME
        self._kept = Workspace(root).memory_dir
        self._record = self._kept / RECORD_NAME

    def text(self) -> str:
        """Return the present text, empty without a file."""
        return _decoded(self._bytes() or b"")

    def record(self) -> Record:
        """Return what is known of the file; an unreadable record counts as none."""
        try:
            return msgspec.json.decode(read_regular(self._record, MAX_RECORD_BYTES), type=Record)
        except (OSError, ConfigError, msgspec.DecodeError, UnicodeDecodeError):
            return Record()

    def store(self, record: Record) -> None:
        """Replace the record."""
        try:
            self._make_directories()
            replace_file(self._record, msgspec.json.encode(record))
        except OSError as error:
            raise _failure(self._record, error) from None

    def is_edited(self, record: Record, data: bytes | None = None) -> bool:
        """Return whether the file is not what was written last."""
        data = self._bytes() if data is None else data
        return data is not None and _digest(data) not in {record.file_digest, record.pending_digest}

    def replace(self, made: str, record: Record, now_ms: int, *, keep: bool = True) -> Replaced:
        """Write ``made`` below what a person wrote, and then ``record``. Keep the former file as a version.

        Without ``keep`` the former file is kept only if a person has changed it.
        """
        try:
            self._make_directories()
            for _ in range(_TRIES):
                replaced = self._try_to_replace(made, record, now_ms, keep=keep)
                if replaced is not None:
                    return replaced
        except OSError as error:
            raise _failure(self.path, error) from None
        raise Conflict(f"{FILE_NAME} is being changed by another program; nothing was written")

    def _try_to_replace(self, made: str, record: Record, now_ms: int, *, keep: bool) -> Replaced | None:
        """Return None if the file was changed meanwhile. Raises OSError."""
        present, before = self.record(), self._bytes()
        try:
            text = (before or b"").decode("utf-8-sig")
        except UnicodeDecodeError:
            raise Conflict(f"{FILE_NAME} is not UTF-8 text; nothing was written") from None
        edited = before is not None and self.is_edited(present, before)
        own = own_part(text, (present.made, present.pending))
        byte_order_mark = BYTE_ORDER_MARK if (before or b"").startswith(BYTE_ORDER_MARK) else b""
        after = byte_order_mark + joined(own, made, iso(now_ms)).encode()
        if len(after) > MAX_FILE_BYTES:
            raise SignetError(f"{FILE_NAME} would be larger than {MAX_FILE_BYTES} bytes", code=ErrorCode.CONFLICT)
        record = msgspec.structs.replace(record, made=made, pending="", pending_digest="")
        if edited:
            record = msgspec.structs.replace(record, edited_at=iso(now_ms))
        if before is not None and split(text) == (own, made.strip("\n")):
            self.store(msgspec.structs.replace(record, file_digest=_digest(before)))
            return Replaced(written=False, edited=edited)
        self.store(msgspec.structs.replace(present, pending=made, pending_digest=_digest(after)))
        with FileDraft(self.path, f".{FILE_NAME}.{secrets.token_hex(4)}.new") as draft:
            draft.file.write(after)
            draft.sync()
            kept = None if before is None or not (keep or edited) else self._keep(before, now_ms, edited=edited)
            sync_point("fs.memory_file_written")
            if self._bytes() != before:
                return None
            draft.replace()
        sync_point("fs.memory_file_replaced")
        fsync_path(self.path.parent)
        self.store(msgspec.structs.replace(record, file_digest=_digest(after)))
        self._prune()
        return Replaced(written=True, kept=kept, edited=edited)

    def versions(self) -> list[FileVersion]:
        """Return the former versions, the newest first."""
        found = []
        try:
            for entry in os.scandir(self._kept):
                name = _VERSION.fullmatch(entry.name)
                if name is not None and entry.is_file(follow_symlinks=False):
                    size = entry.stat(follow_symlinks=False).st_size
                    found.append(FileVersion(entry.name, _moment(name[1]), size, edited=name[2] is not None))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _failure(self._kept, error) from None
        return sorted(found, key=lambda version: (version.kept_at, version.name), reverse=True)

    def version(self, name: str) -> str:
        """Return the text of a former version. Raises NotFound by the name of none."""
        if _VERSION.fullmatch(name) is None:
            raise SignetError("Version not found", code=ErrorCode.NOT_FOUND, field="version")
        try:
            return _decoded(read_regular(self._kept / name, MAX_FILE_BYTES))
        except FileNotFoundError:
            raise SignetError("Version not found", code=ErrorCode.NOT_FOUND, field="version") from None
        except (OSError, ConfigError) as error:
            raise _failure(self._kept / name, error) from None

    def drop_from_versions(self, gone: Collection[str]) -> None:
        """Take the lines that show one of these memories out of the former versions."""
        for version in self.versions():
            before = self.version(version.name)
            after = without_memories(before, gone, ()).text
            if after != before:
                try:
                    replace_file(self._kept / version.name, after.encode())
                except OSError as error:
                    raise _failure(self._kept / version.name, error) from None

    def _bytes(self) -> bytes | None:
        try:
            self._refuse_links()
            return read_regular(self.path, MAX_FILE_BYTES, advice="")
        except FileNotFoundError:
            return None
        except (OSError, ConfigError) as error:
            raise _failure(self.path, error) from None

    def _keep(self, data: bytes, now_ms: int, *, edited: bool) -> str:
        """Store ``data`` as a former version and return its name. Raises OSError."""
        moment_ms = now_ms
        while True:
            moment = datetime.fromtimestamp(moment_ms / 1000, UTC)
            stamp = f"{moment:%Y%m%dT%H%M%S}{moment_ms % 1000:03d}Z"
            names = [f"MEMORY.backup-{stamp}{end}.md" for end in ("", "-edited")]
            if not any(os.path.lexists(self._kept / name) for name in names):
                replace_file(self._kept / names[edited], data)
                return names[edited]
            moment_ms += 1

    def _prune(self) -> None:
        versions = self.versions()
        for edited in (False, True):
            for old in [version for version in versions if version.edited is edited][MAX_VERSIONS:]:
                (self._kept / old.name).unlink(missing_ok=True)

    def _make_directories(self) -> None:
        self._refuse_links()
        self._kept.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._refuse_links()

    def _refuse_links(self) -> None:
        """Raise Conflict if a directory on the way to the file or its versions is a link or no directory."""
        for directory in (self.path.parent.parent, self.path.parent, self._kept):
            if directory == self._workspace or not directory.is_relative_to(self._workspace):
                continue
            try:
                if not stat.S_ISDIR(os.lstat(directory).st_mode):
                    raise Conflict(f"{directory} is not a directory of its own; nothing is read or written there")
            except FileNotFoundError:
                return


def working_memory(workspace: Path, agent_id: str, project: str | None) -> str:
    """Return what a session of the agent that works on ``project`` is given; empty if there is nothing. Blocks.

    An agent without a file of its own is given what a person wrote into that of the workspace: what stands above the
    line there, because a record of what was made below it may be missing (a clone of the workspace, an older version of
    the file). A file that cannot be read is skipped; links are followed.
    """
    if agent_id == DEFAULT_AGENT:
        return for_session(_read(workspace / FILE_NAME), project).strip()
    if is_directory_name(agent_id):
        own = for_session(_read(Workspace(workspace).agents_dir / agent_id / FILE_NAME), project).strip()
        if own:
            return own
    above, made = split(_read(workspace / FILE_NAME))
    if made:
        return above.strip()
    record = MemoryFile(workspace, DEFAULT_AGENT).record()
    return own_part(above, (record.made, record.pending)).strip()


def agents_with_file(workspace: Path) -> list[str]:
    """Return the agents whose file the daemon or a harness has made. Blocks."""
    named = sorted(each.parts[-3] for each in Workspace(workspace).agents_dir.glob(f"*/memory/{RECORD_NAME}"))
    return [DEFAULT_AGENT, *(name for name in named if is_directory_name(name))]


def _read(path: Path) -> str:
    try:
        return _decoded(read_prose(path))
    except (OSError, ConfigError):
        return ""


def _decoded(data: bytes) -> str:
    return data.decode("utf-8-sig", "replace")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _moment(stamp: str) -> str:
    return f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:8]}T{stamp[9:11]}:{stamp[11:13]}:{stamp[13:15]}.{stamp[15:18]}Z"


def _failure(path: Path, error: OSError | ConfigError) -> SignetError:
    """Return the error that a caller gets; the file is unchanged."""
    if isinstance(error, ConfigError):
        return Conflict(error.detail)
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return SignetError("No space is left on the disk; nothing was written", code=ErrorCode.STORAGE_FULL)
    return SignetError(f"{path.name} cannot be read or written: {error.strerror}", code=ErrorCode.CONFLICT)
