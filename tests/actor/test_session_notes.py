"""Files of forgotten summaries are deleted, unless a person has changed them; an interrupted round is done again.

Source: docs/guides/transcripts.md "Summaries".
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, cast

import pytest
import structlog
from structlog.testing import LogCapture

from signet_actors.errors import ErrorCode
from signet_actors.protocol.message import Failure
from signet_actors.protocol.session_summaries import (
    DropNotes,
    FindForgottenNotes,
    ForgottenNote,
    NotesDropped,
    NotesFound,
)
from signet_actors.retention.periodic.session_notes import SessionNotes
from signet_actors.runtime.clock import SystemClock

TEXT = b"---\n---\n\n# 2026-11-24 The login form\n"
DIGEST = hashlib.sha256(TEXT).hexdigest()


class ScriptedWriter:
    """Knows files of forgotten summaries; ``refuse`` makes it answer the next request of this type with a failure."""

    def __init__(self, *notes: ForgottenNote) -> None:
        self.notes = list(notes)
        self.refuse: type | None = None

    def ask(self, request: Any, *, timeout_ms: int, trace_id: str | None = None) -> Any:
        if self.refuse is type(request):
            self.refuse = None
            return Failure(ErrorCode.BUSY, "busy")
        match request:
            case FindForgottenNotes():
                page = [note for note in self.notes if note.memory_id > request.after][:2]
                return NotesFound(page, page[-1].memory_id if len(page) == 2 else None)
            case DropNotes():
                self.notes = [note for note in self.notes if note.memory_id not in request.memory_ids]
                return NotesDropped()
        raise AssertionError(request)


class Room:
    """The duty, its writer, its directory and its log."""

    def __init__(self, directory: Path, *notes: ForgottenNote) -> None:
        self.writer = ScriptedWriter(*notes)
        self.logged = LogCapture()
        log = cast("Any", structlog.wrap_logger(structlog.ReturnLogger(), processors=[self.logged]))
        self.duty = SessionNotes(self.writer, SystemClock(), log, directory)

    def rounds(self, steps: int = 6) -> list[ForgottenNote]:
        for _ in range(steps):
            self.duty.step()
        return self.writer.notes

    def events(self) -> list[tuple[str, str]]:
        return [(entry["event"], entry["file"]) for entry in self.logged.entries]


def test_the_files_of_forgotten_summaries_are_deleted_and_no_other_one(tmp_path: Path) -> None:
    notes = [ForgottenNote(str(number), f"{number}.md", DIGEST) for number in range(5)]
    for name in ("0.md", "1.md", "3.md", "4.md", "mine.md"):
        (tmp_path / name).write_bytes(TEXT)
    assert Room(tmp_path, *notes).rounds() == [], "one that is missing is done, too"
    assert [path.name for path in tmp_path.iterdir()] == ["mine.md"]


@pytest.mark.parametrize("change", ["edited", "link", "directory", "unknown"])
def test_a_file_that_is_not_what_was_written_stays_and_is_named_in_the_log(tmp_path: Path, change: str) -> None:
    path, elsewhere = tmp_path / "memory" / "a.md", tmp_path / "elsewhere.md"
    path.parent.mkdir()
    elsewhere.write_bytes(TEXT)
    match change:
        case "edited":
            path.write_bytes(TEXT + b"And what I think of it.\n")
        case "link":
            path.symlink_to(elsewhere)
        case "directory":
            path.mkdir()
        case _:
            path.write_bytes(TEXT)
    room = Room(path.parent, ForgottenNote("1", "a.md", None if change == "unknown" else DIGEST))
    assert room.rounds() == [], "from now on it belongs to the user"
    assert room.events() == [("note_kept", "a.md")]
    assert path.exists()
    assert elsewhere.read_bytes() == TEXT


@pytest.mark.parametrize(
    "name", ["../elsewhere.md", "{absolute}", "sub/../../elsewhere.md", "../memory/../elsewhere.md"]
)
def test_a_name_outside_of_the_directory_deletes_nothing(tmp_path: Path, name: str) -> None:
    directory, elsewhere = tmp_path / "memory", tmp_path / "elsewhere.md"
    (directory / "sub").mkdir(parents=True)
    elsewhere.write_bytes(TEXT)
    shown = name.format(absolute=elsewhere)
    room = Room(directory, ForgottenNote("1", shown, DIGEST))
    assert room.rounds() == []
    assert room.events() == [("note_kept", shown)]
    assert elsewhere.read_bytes() == TEXT


@pytest.mark.parametrize("refused", [FindForgottenNotes, DropNotes])
def test_a_round_that_the_writer_refuses_is_done_again(tmp_path: Path, refused: type) -> None:
    (tmp_path / "a.md").write_bytes(TEXT)
    room = Room(tmp_path, ForgottenNote("1", "a.md", DIGEST))
    room.writer.refuse = refused
    assert room.rounds() == []
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_read_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.md").write_bytes(TEXT)
    room = Room(tmp_path, ForgottenNote("1", "a.md", DIGEST))
    with monkeypatch.context() as broken:
        broken.setattr("os.lstat", _fail)
        assert len(room.rounds()) == 1
    assert set(room.events()) == {("note_not_deleted", "a.md")}
    assert room.rounds() == []
    assert list(tmp_path.iterdir()) == []


def _fail(path: Path) -> None:
    raise PermissionError(13, "Permission denied")
