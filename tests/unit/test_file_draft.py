"""A file that is replaced has the former content or the new one, and no draft stays behind."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

import pytest

from signet_actors.runtime.file_draft import FileDraft, replace_file


def test_a_replaced_file_is_private_and_has_the_new_content(tmp_path: Path) -> None:
    target = tmp_path / "note"
    target.write_bytes(b"old")
    (tmp_path / "note.new").write_bytes(b"left by a process that was killed")
    replace_file(target, b"new")
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["note"]


def test_a_draft_that_was_not_renamed_leaves_the_former_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "note"
    target.write_bytes(b"old")
    with contextlib.suppress(KeyboardInterrupt), FileDraft(target) as draft:
        draft.file.write(b"half of the ne")
        raise KeyboardInterrupt
    assert (target.read_bytes(), os.listdir(tmp_path)) == (b"old", ["note"])


def test_anything_but_a_regular_file_in_the_place_of_the_draft_is_refused_and_kept(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "note.new")
    with pytest.raises(FileExistsError, match="not a regular file"):
        replace_file(tmp_path / "note", b"new")
    assert os.listdir(tmp_path) == ["note.new"]
