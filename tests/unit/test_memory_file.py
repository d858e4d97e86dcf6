"""MEMORY.md on disk: replaced as a whole, former versions kept, nothing of a person's lost, and nothing through links.

Source: docs/guides/working-memory.md; docs/decisions.md 28.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import msgspec
import pytest

from signet_actors.errors import ErrorCode, SignetError
from signet_actors.gateway.synthesis import memory_file
from signet_actors.gateway.synthesis.memory_file import MAX_VERSIONS, MemoryFile, Record, working_memory

NOW_MS = 1_795_478_400_000
MADE = "## Global Head\n- The editor is vim."


def written(file: MemoryFile, made: str = MADE, at: int = 0) -> memory_file.Replaced:
    return file.replace(made, file.record(), NOW_MS + at)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_first_text_is_written_for_its_owner_only(tmp_path: Path) -> None:
    file = MemoryFile(tmp_path, "default")
    assert written(file) == (True, None, False)
    assert file.path == tmp_path / "MEMORY.md"
    assert file.text().endswith(f"{MADE}\n")
    assert mode(file.path) == mode(tmp_path / "memory" / "synthesis.json") == 0o600


def test_the_former_text_is_kept_as_a_version(tmp_path: Path) -> None:
    file = MemoryFile(tmp_path, "default")
    written(file)
    former = file.text()
    replaced = written(file, "## Global Head\n- The editor is emacs.", 1000)
    (version,) = file.versions()
    assert (replaced.kept, replaced.edited) == (version.name, False)
    assert file.version(version.name) == former
    assert mode(tmp_path / "memory" / version.name) == 0o600


def test_the_same_text_is_not_written_again(tmp_path: Path) -> None:
    file = MemoryFile(tmp_path, "default")
    written(file)
    before = file.path.stat().st_mtime_ns
    assert written(file, at=1000).written is False
    assert file.path.stat().st_mtime_ns == before
    assert file.versions() == []


MARK = b"<!-- signet: made from memories at 2026-11-01T00:00:00.000Z; what you write above this line stays as it is -->"
OWN: tuple[bytes, ...] = (
    *(b"# Mine", b"# Mine\n", b"# Mine\n\n- one\n- two", b"One\r\nTwo\r\nThree", b"\xef\xbb\xbf# Mine\n\nText"),
    *(b"\xef\xbb\xbfOne\r\nTwo", b"\xef\xbb\xbf", b"Tab\there  \nand two blanks  \nend", b"\xc3\xa4 \xf0\x9f\xa6\x8a"),
    *(b"So it ends:\n\n```markdown\n" + MARK + b"\n## Made\n```\n\nMore of mine.", b"~~~\n" + MARK + b"\n~~~"),
    *(b"````\n```\n" + MARK + b"\n```\n````\nEnd", b"```\n" + MARK + b"\n" + MARK + b"\n```"),
    *(
        b"```\nls\n```\n\n```\n" + MARK + b"\n```",
        b"\xef\xbb\xbf```\n" + MARK + b"\n```\nEnd",
        b"  ```\n" + MARK + b"\n  ```",
    ),
    *(b"A quotation: > " + MARK, b"    " + MARK + b"\nis indented", b"`" + MARK + b"`", b"```\nnever closed"),
    *(b"```markdown\n```sh\nls\n```\n```\nText", b"<!-- signet: -- >\nnone", b"<!-- mine -->\n## Global Head\n- mine"),
)


def test_what_a_person_wrote_stays_byte_for_byte_however_often_the_rest_is_made(tmp_path: Path) -> None:
    for number, own in enumerate(OWN):
        directory = tmp_path / str(number)
        directory.mkdir()
        file = MemoryFile(directory, "default")
        file.path.write_bytes(own)
        for at, made in enumerate((MADE, f"{MADE}\n```sh\nmake\n```", MADE)):
            written(file, made, 1000 * at)
            content = file.path.read_bytes()
            assert content.startswith(own.rstrip(b"\n")), (own, content)
            below = content.removeprefix(own.rstrip(b"\n"))
            assert (below.count(b"<!-- signet:"), below.count(b"The editor is vim.")) == (1, 1), (own, content)
            assert below.decode().lstrip("\n").startswith("<!-- signet: made from memories at 20"), (own, content)
            assert content.endswith(f"{made}\n".encode())


def test_a_quotation_that_is_added_later_stays(tmp_path: Path) -> None:
    file = MemoryFile(tmp_path, "default")
    written(file)
    quotation = b"```\n" + MARK + b"\n```\n\n"
    file.path.write_bytes(quotation + file.path.read_bytes())
    for at in (1000, 2000):
        written(file, f"{MADE}\n- {at}", at)
        assert file.path.read_bytes().startswith(quotation)
        assert file.path.read_bytes().count(b"<!-- signet:") == 2


def test_the_number_of_versions_is_bounded_and_those_of_a_person_are_counted_apart(tmp_path: Path) -> None:
    file = MemoryFile(tmp_path, "default")
    file.path.write_text("# By hand\n")
    for number in range(MAX_VERSIONS + 5):
        written(file, f"- text {number}", number)
    versions = file.versions()
    assert len(versions) == MAX_VERSIONS + 1
    assert [version.edited for version in versions].count(True) == 1
    assert file.version(versions[-1].name) == "# By hand\n"


def test_what_a_person_wrote_stays_and_what_they_changed_is_kept(tmp_path: Path) -> None:
    file = MemoryFile(tmp_path, "default")
    file.path.write_text("# By hand\n- call me Ada\n")
    assert written(file).edited
    with file.path.open("a") as text:
        text.write("- never on Fridays\n")
    record = file.record()
    assert file.is_edited(record)
    changed = file.text()
    replaced = written(file, "- anew", 1000)
    assert replaced.edited
    assert file.version(replaced.kept or "") == changed
    own, made = file.text().split("<!-- signet:")
    assert own == "# By hand\n- call me Ada\n\n- never on Fridays\n\n"
    assert made.endswith("- anew\n")
    assert file.record().edited_at is not None
    assert not file.is_edited(file.record())


def test_the_line_ends_of_a_person_stay(tmp_path: Path) -> None:
    file = MemoryFile(tmp_path, "default")
    file.path.write_bytes(b"# By hand\r\n- call me Ada\r\n")
    for number in range(3):
        written(file, f"- text {number}", number)
    assert file.path.read_bytes().startswith(b"# By hand\r\n- call me Ada\r")
    assert file.path.read_bytes().count(b"Ada") == 1


def test_a_text_that_cannot_be_read_is_not_replaced(tmp_path: Path) -> None:
    file = MemoryFile(tmp_path, "default")
    file.path.write_bytes(b"caf\xe9")
    with pytest.raises(SignetError, match="not UTF-8"):
        written(file)
    assert file.path.read_bytes() == b"caf\xe9"


@pytest.mark.parametrize("place", ["MEMORY.md", "memory", "agents", "agents/reviewer"])
def test_nothing_is_written_through_a_link(tmp_path: Path, place: str) -> None:
    workspace, outside = tmp_path / "w", tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("theirs")
    target = outside / "file" if place == "MEMORY.md" else outside
    (workspace / place).parent.mkdir(parents=True)
    (workspace / place).symlink_to(target)
    file = MemoryFile(workspace, "reviewer" if place.startswith("agents") else "default")
    with pytest.raises(SignetError) as caught:
        written(file)
    assert caught.value.code is ErrorCode.CONFLICT
    assert sorted(outside.iterdir()) == [outside / "file"]
    assert (outside / "file").read_text() == "theirs"


@pytest.mark.parametrize("agent", ["..", ".", ".hidden"])
def test_an_agent_whose_name_is_no_directory_has_no_file(tmp_path: Path, agent: str) -> None:
    with pytest.raises(SignetError) as caught:
        MemoryFile(tmp_path, agent)
    assert caught.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "name", ["../MEMORY.md", "memories.db", "MEMORY.backup-x.md", "MEMORY.backup-20261124T000000000Z.md"]
)
def test_only_a_version_can_be_read_as_one(tmp_path: Path, name: str) -> None:
    (tmp_path / "MEMORY.md").write_text("x")
    with pytest.raises(SignetError) as caught:
        MemoryFile(tmp_path, "default").version(name)
    assert caught.value.code is ErrorCode.NOT_FOUND


@pytest.mark.parametrize("step", range(1, 5))
def test_a_full_disk_leaves_the_present_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    file = MemoryFile(tmp_path, "default")
    written(file)
    with file.path.open("a") as text:
        text.write("- never on Fridays\n")
    before = file.text()
    syncs = 0
    fsync = os.fsync

    def full(descriptor: int) -> None:
        nonlocal syncs
        syncs += 1
        if syncs == step:
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SignetError) as caught:
        written(file, "- anew", 1000)
    assert caught.value.code is ErrorCode.STORAGE_FULL
    assert file.text() == before
    monkeypatch.undo()
    assert written(file, "- anew", 2000).written
    assert "- never on Fridays" in file.text().split("<!-- signet:")[0]
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".new")] == []


def test_after_a_crash_between_the_file_and_its_record_no_line_of_the_daemon_counts_as_a_persons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = MemoryFile(tmp_path, "default")
    written(file)

    def crash(name: str) -> None:
        if name == "fs.memory_file_replaced":
            raise KeyboardInterrupt

    monkeypatch.setattr(memory_file, "sync_point", crash)
    with pytest.raises(KeyboardInterrupt):
        written(file, "- anew", 1000)
    monkeypatch.undo()
    assert "- anew" in file.text()
    assert not file.is_edited(file.record())
    written(file, "- once more", 2000)
    assert file.text().startswith("<!-- signet:")
    assert "- anew" not in file.text()


def test_a_change_during_the_replacement_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = MemoryFile(tmp_path, "default")
    written(file)
    keep = MemoryFile._keep
    changes = iter(["- first\n", "- second\n"])

    def changed_meanwhile(self: MemoryFile, data: bytes, now_ms: int, *, edited: bool) -> str:
        name = keep(self, data, now_ms, edited=edited)
        with file.path.open("a") as text:
            text.write(next(changes, ""))
        return name

    monkeypatch.setattr(MemoryFile, "_keep", changed_meanwhile)
    assert written(file, "- anew", 1000).written
    own = file.text().split("<!-- signet:")[0]
    assert "- first\n- second" in own


def test_an_unreadable_record_loses_nothing(tmp_path: Path) -> None:
    file = MemoryFile(tmp_path, "default")
    written(file)
    (tmp_path / "memory" / "synthesis.json").write_text('{"made": 1')
    assert file.record() == Record()
    assert written(file, "- anew", 1000).edited
    assert "- The editor is vim." in file.version(file.versions()[0].name)


def test_each_agent_has_a_file_of_its_own_and_is_given_nothing_that_was_made_for_another(tmp_path: Path) -> None:
    root, own = MemoryFile(tmp_path, "default"), MemoryFile(tmp_path, "reviewer")
    root.path.write_text("# For all\n")
    written(root, "- private of default")
    assert own.path == tmp_path / "agents" / "reviewer" / "MEMORY.md"
    assert working_memory(tmp_path, "reviewer", None) == "# For all"
    written(own, "- of the reviewer")
    assert working_memory(tmp_path, "reviewer", None) == "- of the reviewer"
    assert working_memory(tmp_path, "default", None) == "# For all\n\n- private of default"
    root.path.write_text(root.text().replace("<!-- signet:", "<!-- "))
    assert "private" not in working_memory(tmp_path, "writer", None)


@pytest.mark.parametrize(
    "event", ["a clone without a record", "an older version of the file", "a line that a tool added"]
)
def test_another_agent_is_given_nothing_from_below_the_line(tmp_path: Path, event: str) -> None:
    root = MemoryFile(tmp_path, "default")
    root.path.write_text("# For all\n")
    written(root, "- private of default")
    before = root.text()
    if event == "a clone without a record":
        (tmp_path / "memory" / "synthesis.json").unlink()
    elif event == "an older version of the file":
        written(root, "- made later")
        root.path.write_text(before)
    else:
        root.path.write_text(f"{before}- private, too\n")
    assert working_memory(tmp_path, "reviewer", None) == "# For all"


def test_the_record_can_be_read_by_another_release(tmp_path: Path) -> None:
    file = MemoryFile(tmp_path, "default")
    file.store(Record(made="x"))
    path = tmp_path / "memory" / "synthesis.json"
    path.write_bytes(msgspec.json.encode({**msgspec.json.decode(path.read_bytes()), "later": 1}))
    assert file.record().made == "x"
