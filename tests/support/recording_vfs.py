"""Record everything that a connection does to its files, and reconstruct the files after a power failure.

The model is the one that SQLite is tested with: synced data is on disk. Of the writes, truncations, creations and
deletions since the last sync of a file, any subset may be on disk, and a write may be partial. Files are independent of
each other. Locks and the shared-memory index do not survive a power failure and are not recorded.

Source: docs/reliability.md R2; sqlite.org/testing.html "Crash testing".
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import apsw

_SECTORS = (512, 1024)
_names = itertools.count()


class Step(NamedTuple):
    """One recorded operation; ``kind``: create, write, truncate, delete, rename, sync, sync directory, mark.

    ``name`` is the file name without its directory. ``mark`` is the recorder's mark, or the new name of a rename.
    """

    kind: str
    name: str = ""
    offset: int = 0
    data: bytes = b""
    mark: Any = None


@dataclass
class Recording:
    """The steps, in order."""

    steps: list[Step] = field(default_factory=list)

    def mark(self, what: Any) -> None:
        """Record that ``what`` is true from here on."""
        self.steps.append(Step("mark", mark=what))


@contextmanager
def recorded_files(recording: Recording) -> Iterator[None]:
    """Also record ``os.replace`` and ``os.fsync`` of the process itself inside the block."""
    replace, fsync = os.replace, os.fsync

    def replaced(source: Any, target: Any) -> None:
        replace(source, target)
        recording.steps.append(Step("rename", Path(source).name, mark=Path(target).name))

    def synced(descriptor: int) -> None:
        fsync(descriptor)
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        recording.steps.append(Step("sync directory") if path.is_dir() else Step("sync", path.name))

    with mock.patch.object(os, "replace", replaced), mock.patch.object(os, "fsync", synced):
        yield


class RecordingVFS(apsw.VFS):
    """The default VFS, which records all operations. Readers of other VFSes may share the files."""

    def __init__(self, recording: Recording) -> None:
        self.name = f"recording-{next(_names)}"
        self.recording = recording
        super().__init__(self.name, "")

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802 - SQLite's names
        return _RecordingFile(self.recording, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        super().xDelete(filename, syncdir)
        name = Path(filename).name
        self.recording.steps.append(Step("delete", name))
        if syncdir:
            self.recording.steps.append(Step("sync directory"))


class _RecordingFile(apsw.VFSFile):
    def __init__(self, recording: Recording, name: Any, flags: list[int]) -> None:
        path = Path(name.filename() if isinstance(name, apsw.URIFilename) else name or "unnamed")
        existed = path.exists()
        super().__init__("", name, flags)
        self._recording = recording
        # Temporary files have no name and do not survive the process.
        self._name = path.name if name else None
        self._syncs_directory = not existed and path.name.endswith(("-journal", "-wal"))
        if self._name is not None and not existed:
            recording.steps.append(Step("create", self._name))

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        super().xWrite(data, offset)
        if self._name is not None:
            self._recording.steps.append(Step("write", self._name, offset, bytes(data)))

    def xTruncate(self, size: int) -> None:  # noqa: N802
        super().xTruncate(size)
        if self._name is not None:
            self._recording.steps.append(Step("truncate", self._name, size))

    def xSync(self, flags: int) -> None:  # noqa: N802
        super().xSync(flags)
        if self._name is None:
            return
        self._recording.steps.append(Step("sync", self._name))
        if self._syncs_directory:
            # Like the unix VFS: with the first sync of a journal or log that it created.
            self._syncs_directory = False
            self._recording.steps.append(Step("sync directory"))


Files = dict[str, bytes]
"""Content of each existing file by name."""


class Image(NamedTuple):
    """The files after a power failure: the step, how the subset was chosen, and the recorder's last mark."""

    step: int
    variant: str
    files: Files


class _Disk:
    """One file: the contents that are certainly on disk, and the operations since."""

    def __init__(self, synced: bytes | None = None) -> None:
        self.synced = synced
        self.pending: list[Step] = []

    def sync(self) -> None:
        self.synced = self.after(self.pending)
        self.pending = []

    def sync_entry(self) -> None:
        """The directory was synced: the last rename or deletion is durable, and earlier operations no longer matter."""
        named = [index for index, step in enumerate(self.pending) if step.kind in {"delete", "rename"}]
        if named:
            self.synced = self.after([self.pending[named[-1]]])
            self.pending = self.pending[named[-1] + 1 :]

    def after(self, steps: list[Step]) -> bytes | None:
        if not steps:
            return self.synced
        content = None if self.synced is None else bytearray(self.synced)
        for step in steps:
            if step.kind == "delete":
                content = None
            elif step.kind == "rename":
                content = bytearray(step.data)
            elif content is None and step.kind == "create":
                content = bytearray()
            elif step.kind in {"write", "truncate"}:
                if content is None:
                    content = bytearray()  # the data of a file whose name did reach the disk
                end = step.offset + len(step.data)
                if step.kind == "truncate" and len(content) > step.offset:
                    del content[step.offset :]
                    continue
                if len(content) < end:
                    content.extend(bytes(end - len(content)))
                content[step.offset : end] = step.data
        return None if content is None else bytes(content)


def images(
    recording: Recording, before: Mapping[str, bytes], rng: random.Random, *, subsets: int = 3
) -> Iterator[Image]:
    """Yield the images of a power failure after each step; the files were ``before`` the first one.

    For every step: everything applied; only what was synced; ``subsets`` random subsets of the unsynced operations; and
    its write torn after a multiple of 512 bytes, of 1024 bytes, and anywhere. A write that extends the file may also
    leave only the new length without the data. Choices that give the same files yield one image.
    """
    disks = {name: _Disk(content) for name, content in before.items()}
    for number, step in enumerate(recording.steps):
        if step.kind == "sync directory":
            for disk in disks.values():
                disk.sync_entry()
        elif step.kind == "sync":
            disks.setdefault(step.name, _Disk()).sync()
        elif step.kind == "rename":
            source, target = disks.setdefault(step.name, _Disk()), disks.setdefault(step.mark, _Disk())
            # The new name refers to what was synced under the old one: a rename does not make data durable.
            target.pending.append(step._replace(name=step.mark, data=source.synced or b""))
            source.pending.append(Step("delete", step.name))
        elif step.kind != "mark":
            disks.setdefault(step.name, _Disk()).pending.append(step)
        seen: set[Any] = set()
        held: list[Any] = []  # objects compared by identity must exist as long as the comparison
        for variant, chosen in _choices(disks, step, rng, subsets):
            choice = tuple((name, *((id(part), len(part.data)) for part in parts)) for name, parts in chosen.items())
            if choice in seen:
                continue
            seen.add(choice)
            held.append(chosen)
            files = {name: disks[name].after(parts) for name, parts in chosen.items()}
            yield Image(number, variant, {name: data for name, data in files.items() if data is not None})


def _choices(
    disks: Mapping[str, _Disk], step: Step, rng: random.Random, subsets: int
) -> Iterator[tuple[str, dict[str, list[Step]]]]:
    everything = {name: list(disk.pending) for name, disk in disks.items()}
    yield "all", everything
    if not any(everything.values()):
        return
    yield "synced only", {name: [] for name in disks}
    for index in range(subsets):
        share = rng.choice((0.2, 0.5, 0.8))
        yield f"subset {index}", _subset(everything, share, rng)
    if step.kind == "write" and everything[step.name]:
        blank = step._replace(data=bytes(len(step.data)))
        if step.offset >= len(disks[step.name].synced or b""):
            yield "grown, but blank", {**everything, step.name: [*everything[step.name][:-1], blank]}
        for sector in _SECTORS:
            if len(step.data) > sector:
                cut = sector * rng.randrange(1, -(-len(step.data) // sector))
                yield f"torn at {sector}", {**everything, step.name: [*everything[step.name][:-1], _torn(step, cut)]}
        if len(step.data) > 1:
            cut = rng.randrange(1, len(step.data))
            others = _subset(everything, rng.choice((0.5, 1.0)), rng)
            kept = [part for part in others[step.name] if part is not step]
            yield "torn anywhere", {**others, step.name: [*kept, _torn(step, cut)]}


def _subset(everything: Mapping[str, list[Step]], share: float, rng: random.Random) -> dict[str, list[Step]]:
    return {name: [step for step in steps if rng.random() < share] for name, steps in everything.items()}


def _torn(step: Step, length: int) -> Step:
    return step._replace(data=step.data[:length])
