"""The part of a harness's file that has the identity files: between two marks, and nothing else is ours.

Put into a text and taken out again, it leaves every other byte as it was: the line break before it belongs to it.

Source: architecture.txt "How It Works" (config sync); docs/guides/identity.md "In the files of harnesses".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from signet_actors.domain.session_inject import IdentityFile, file_section

BEGIN: Final = b"<!-- signet:identity:begin"
END: Final = b"<!-- signet:identity:end -->"
_MARK: Final = "<!-- signet:identity:"
_NOTE: Final = f"{BEGIN.decode()} | kept by Signet: edit the files of its workspace, not this part -->"


class DamagedMarks(ValueError):
    """A mark is missing, or there is more than one."""


class _Place(NamedTuple):
    """The block with its marks, and what of the text is ours."""

    begin: int
    end: int
    start: int
    stop: int


def identity_block(files: Sequence[tuple[IdentityFile, str]]) -> bytes:
    """Return the block with the texts of the files, empty if there are none."""
    if not files:
        return b""
    sections = "\n\n".join("\n".join(file_section(file, text)) for file, text in files)
    harmless = sections.replace(_MARK, _MARK.replace(":", " ", 1)).replace("\0", "")
    return f"{_NOTE}\n{harmless}\n{END.decode()}".encode()


def block_in(content: bytes) -> bytes:
    """Return the block in a file, with line feeds; empty if there is none. Raises DamagedMarks."""
    place = _place(content)
    return b"" if place is None else content[place.begin : place.end].replace(b"\r\n", b"\n")


def with_block(content: bytes, block: bytes) -> bytes:
    """Return the content with this block, at its former place or else at the end. Raises DamagedMarks."""
    place = _place(content)
    if place is None:
        return content + b"\n" + block + b"\n"
    return content[: place.begin] + block + content[place.end :]


def without_block(content: bytes) -> bytes:
    """Return the content without the block. Raises DamagedMarks."""
    place = _place(content)
    return content if place is None else content[: place.start] + content[place.stop :]


def _place(content: bytes) -> _Place | None:
    begin, end = _only_line(content, BEGIN), _only_line(content, END)
    if begin is None and end is None:
        return None
    if begin is None or end is None or end < begin:
        raise DamagedMarks("the marks around the part that is kept by Signet are damaged")
    end += len(END)
    has_returns = content.startswith(b"\r\n", end)  # an editor has changed every line break of the file
    before = 2 if has_returns and content[:begin].endswith(b"\r\n") else min(1, begin)
    after = 2 if has_returns else 1 if content.startswith(b"\n", end) else 0
    return _Place(begin, end, begin - before, end + after)


def _only_line(content: bytes, mark: bytes) -> int | None:
    """Return where the line with the mark begins, None if there is none. Raises DamagedMarks."""
    found = 0 if content.startswith(mark) else content.find(b"\n" + mark) + 1
    if found == 0 and not content.startswith(mark):
        return None
    if content.find(b"\n" + mark, found) >= 0:
        raise DamagedMarks("the part that is kept by Signet is there more than once")
    return found
