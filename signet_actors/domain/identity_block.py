"""The part of a harness's file that has the identity files: between two marks, and nothing else is ours.

Put into a text and taken out again, it leaves every other byte as it was: the line break before it belongs to it,
unless it has to part what stands above from what was added below.

``former`` is the text before the block was put in, as far as it is known: a block that stands in it is a quotation by
the user. If it is not known, one in a fence of code is.

Source: architecture.txt "How It Works" (config sync); docs/guides/identity.md "In the files of harnesses".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from signet_actors.domain.code_fences import is_in_fence
from signet_actors.domain.session_inject import IdentityFile, file_section

BEGIN: Final = b"<!-- signet:identity:begin"
END: Final = b"<!-- signet:identity:end -->"
_MARK: Final = "<!-- signet:identity:"
_MARKS: Final = re.compile(rb"^(?:\A\xef\xbb\xbf)?(%s|%s)" % (re.escape(BEGIN), re.escape(END)), re.MULTILINE)
_MAX_PAIRS: Final = 50
_BREAKS: Final = (b"\n", b"\r")
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


def block_in(content: bytes, former: bytes | None = None) -> bytes:
    """Return the block in a file, with line feeds; empty if there is none. Raises DamagedMarks."""
    place = _place(content, former)
    return b"" if place is None else content[place.begin : place.end].replace(b"\r\n", b"\n")


def with_block(content: bytes, block: bytes, former: bytes | None = None) -> bytes:
    """Return the content with this block, at its former place or else at the end. Raises DamagedMarks."""
    place = _place(content, former)
    if place is None:
        return content + b"\n" + block + b"\n"
    return content[: place.begin] + block + content[place.end :]


def without_block(content: bytes, former: bytes | None = None) -> bytes:
    """Return the content without the block. Raises DamagedMarks."""
    place = _place(content, former)
    if place is None:
        return content
    above, below = content[: place.start], content[place.stop :]
    is_joined = above and below and not above.endswith(_BREAKS) and not below.startswith(_BREAKS)
    between = b"" if not is_joined else b"\r\n" if b"\r\n" in content[: place.begin] + below else b"\n"
    return above + between + below


def _place(content: bytes, former: bytes | None) -> _Place | None:
    marks = [(found.start(1), found[1]) for found in _MARKS.finditer(content)]
    pairs = [
        (begin, end + len(END)) for (begin, first), (end, last) in pairwise(marks) if (first, last) == (BEGIN, END)
    ]
    if len(pairs) > _MAX_PAIRS:
        raise DamagedMarks("the part that is kept by Signet is there many times")
    text = content.decode("latin-1")  # a character for each byte
    bare = [(begin, end) for begin, end in pairs if not is_in_fence(text, begin, end)]
    ours = bare if former is None else [pair for pair in pairs if _is_new(content[slice(*pair)], content, former)]
    if len(ours) > 1:
        ours = [pair for pair in ours if pair in bare] or ours
    if len(ours) > 1:
        raise DamagedMarks("the part that is kept by Signet is there more than once")
    if len(marks) != 2 * len(pairs):
        raise DamagedMarks("the marks around the part that is kept by Signet are damaged")
    if not ours:
        return None
    ((begin, end),) = ours
    has_returns = content[begin:end].partition(b"\n")[0].endswith(b"\r")  # an editor has changed all line breaks
    line_break = b"\r\n" if has_returns and content[:begin].endswith(b"\r\n") else b"\n"
    start = len(content[:begin].removesuffix(line_break))
    after = b"\r\n" if content.startswith(b"\r\n", end) else b"\n"
    return _Place(begin, end, start, end + len(after) if content.startswith(after, end) else end)


def _is_new(text: bytes, content: bytes, former: bytes) -> bool:
    return content.count(text) > former.count(text)
