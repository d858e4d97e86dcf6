"""Tell whether a prompt of a transcript switches memory off, from the lines that may have the mark alone.

The modules that parse are imported only for such lines, because that takes longer than a hook.

Source: docs/guides/hooks.md "Switch it off".
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MAY_BE_MARK = re.compile(rb"gnet[^\]\n]{0,42}off[^\]\n]{0,42}\]")
"""The end of the mark in lower case, in each of its spellings, with blanks that may be escaped (``\u00a0``)."""
_ASKS = b"request_user_input"
"""In the line of a question of Codex, without which the answer to it is not known as one."""
_AT_ONCE = 1 << 20


def has_mark(raw: bytes, check_time: Callable[[], None] = lambda: None) -> bool:
    """Return whether a prompt of the transcript has the mark; one that is too long to be read counts as such.

    ``check_time`` is called often, and may raise.
    """
    found = _lines_with_mark(raw, check_time)
    if not found:
        return False
    from signet_actors.domain.prompt_terms import switches_off  # noqa: PLC0415
    from signet_actors.domain.transcripts import parse  # noqa: PLC0415
    from signet_actors.domain.transcripts.turns import TranscriptTooLong  # noqa: PLC0415

    first = raw[: raw.find(b"\n") + 1]  # it describes the session
    has_records = all(line.strip()[:1] + line.strip()[-1:] == b"{}" for line in (first, *found))
    try:
        turns = parse.parse_transcript(b"\n".join((first, *found)) if has_records else raw, check_time).turns
    except TranscriptTooLong:
        return True
    return any(turn.role == "user" and switches_off(turn.text) for turn in turns)


def _lines_with_mark(raw: bytes, check_time: Callable[[], None]) -> list[bytes]:
    """Return the lines that may have the mark, with the questions of Codex; an empty list if none may have it."""
    found: list[bytes] = []
    is_anywhere = False
    at = 0
    while at < len(raw):
        check_time()
        end = raw.find(b"\n", at + _AT_ONCE) + 1 or len(raw)
        piece = raw[at:end]
        at = end
        is_here = MAY_BE_MARK.search(piece.lower()) is not None
        is_anywhere = is_anywhere or is_here
        if is_here or _ASKS in piece:
            found += (line for line in piece.splitlines() if _ASKS in line or MAY_BE_MARK.search(line.lower()))
    return found if is_anywhere else []
