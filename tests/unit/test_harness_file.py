"""A file of another program gets the identity block only if it is this user's own, and has its former content again."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from signet_actors.domain.identity_block import identity_block
from signet_actors.domain.session_inject import IDENTITY_FILES
from signet_actors.runtime import harness_file
from signet_actors.runtime.harness_file import NotOurs, found_block, put_block

BLOCK = identity_block([(IDENTITY_FILES[0], "Run the tests.")])
MINE = b"# Mine\r\n\xff not UTF-8"


def test_the_block_comes_and_goes_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "CLAUDE.md"
    path.write_bytes(MINE)
    path.chmod(0o640)
    assert put_block(path, BLOCK)
    assert not put_block(path, BLOCK), "nothing is written if nothing changes"
    assert path.read_bytes().startswith(MINE)
    assert found_block(path) == BLOCK
    backup = tmp_path / "CLAUDE.md.before-signet"
    assert (backup.read_bytes(), stat.S_IMODE(backup.stat().st_mode)) == (MINE, 0o640)
    other = BLOCK.replace(b"tests", b"linter")
    assert put_block(path, other)
    assert backup.read_bytes() == MINE, "what was there before the first change is kept"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert put_block(path, b"")
    assert not put_block(path, b"")
    assert [(entry.name, entry.read_bytes()) for entry in tmp_path.iterdir()] == [("CLAUDE.md", MINE)]


def test_a_file_that_was_made_for_the_block_goes_with_it(tmp_path: Path) -> None:
    path = tmp_path / "AGENTS.md"
    assert put_block(path, BLOCK)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert put_block(path, b"")
    assert list(tmp_path.iterdir()) == []
    path.write_bytes(b"")
    put_block(path, BLOCK)
    put_block(path, b"")
    assert path.read_bytes() == b"", "an empty file of the user stays"


def test_what_the_user_adds_to_such_a_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "AGENTS.md"
    put_block(path, BLOCK)
    path.write_bytes(b"First.\n" + path.read_bytes() + b"Last.\n")
    put_block(path, b"")
    assert path.read_bytes() == b"First.\nLast.\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["AGENTS.md"]


def test_a_quotation_of_the_marks_comes_back_whatever_the_block_becomes(tmp_path: Path) -> None:
    path = tmp_path / "CLAUDE.md"
    for quoted in (BLOCK, BLOCK.replace(b"tests", b"linter"), BLOCK.replace(b"\n", b"\r\n")):
        mine = b"So it looks:\n```markdown\n" + quoted + b"\n```"
        path.write_bytes(mine)
        for block in (BLOCK, BLOCK.replace(b"tests", b"linter"), BLOCK, BLOCK):
            put_block(path, block)
            assert path.read_bytes() == mine + b"\n" + block + b"\n"
            assert found_block(path) == block
        path.write_bytes(path.read_bytes() + b"```\nls\n```\n")
        put_block(path, b"")
        line_break = b"\r\n" if b"\r\n" in mine else b"\n"
        assert path.read_bytes() == mine + line_break + b"```\nls\n```\n"
        assert [entry.name for entry in tmp_path.iterdir()] == ["CLAUDE.md"]


def test_a_file_with_nothing_but_a_byte_order_mark_that_was_made_for_the_block_goes(tmp_path: Path) -> None:
    path = tmp_path / "AGENTS.md"
    put_block(path, BLOCK)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    put_block(path, b"")
    assert list(tmp_path.iterdir()) == []


def refused(path: Path) -> str:
    with pytest.raises(NotOurs) as error:
        put_block(path, BLOCK)
    return str(error.value)


def test_links_are_never_followed(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (real / "x.md").write_bytes(MINE)
    (tmp_path / "link.md").symlink_to(real / "x.md")
    (tmp_path / "directory").symlink_to(real)
    os.link(real / "x.md", tmp_path / "second.md")
    assert "symbolic link" in refused(tmp_path / "link.md")
    assert "symbolic link" in refused(tmp_path / "directory" / "x.md")
    assert "hard links" in refused(tmp_path / "second.md")
    (tmp_path / "dangling.md").symlink_to(tmp_path / "nothing")
    assert "symbolic link" in refused(tmp_path / "dangling.md")
    assert (real / "x.md").read_bytes() == MINE
    assert not (tmp_path / "nothing").exists()


def test_only_a_regular_file_of_this_user_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "directory.md").mkdir()
    assert "FIFO" in refused(tmp_path / "pipe.md")
    assert "directory" in refused(tmp_path / "directory.md")
    assert "missing" in refused(tmp_path / "nowhere" / "x.md")
    (tmp_path / "damaged.md").write_bytes(BLOCK + b"\n" + BLOCK)
    assert "more than once" in refused(tmp_path / "damaged.md")
    (tmp_path / "x.md").write_bytes(MINE)
    monkeypatch.setattr(harness_file.os, "geteuid", lambda: os.getuid() + 1)
    assert "another user" in refused(tmp_path / "x.md")
    assert (tmp_path / "x.md").read_bytes() == MINE


def test_a_change_by_another_program_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "CLAUDE.md"
    path.write_bytes(MINE)
    sync = harness_file.FileDraft.sync

    def slow(draft: harness_file.FileDraft) -> None:
        sync(draft)
        path.write_bytes(b"theirs")

    monkeypatch.setattr(harness_file.FileDraft, "sync", slow)
    assert "another program" in refused(path)
    assert path.read_bytes() == b"theirs"
