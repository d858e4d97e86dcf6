"""Remove from a note or transcript the text that session-start and recall injected into the conversation.

An injected block begins with one of our marks. The mark determines the rest of the block: nothing, a date, a list or a
section. The text before and after belongs to the user and is kept unchanged. Input may have line breaks or be a single
line. In a single line, a list item ends at its date, or else at the end of its sentence.

Every pattern begins with a literal and is bounded, so reading takes linear time.
Source: docs/pipeline.md "Echoes"; the marks are those of the reference daemon's inject layout.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from enum import Enum
from typing import Final, TypeAlias

from msgspec import Struct

from signet_actors.domain.lazy_patterns import compile_later
from signet_actors.domain.windowed_search import windowed_matches

Span: TypeAlias = tuple[int, int]
"""The beginning and the end of a part of a text."""

_MAX_ITEMS: Final = 100
_MAX_ITEM_CHARS: Final = 2_000
_MAX_FEEDBACK_CHARS: Final = 20_000
_END_CHARS: Final = 40

OPENINGS: Final = {
    "[signet:recall |": r'[^\[\]\n"]{0,100}+(?>(?:"[^"\n]{0,1000}+")?)[^\[\]\n]{0,200}+\]',
    "[signet:session |": r"[^\[\]\n]{0,500}+\]",
    "[signet: memory does not work": r"[^\[\]\n]{0,1000}+\]",
    "[memory active |": r"[^\[\]\n]{0,200}+\]",
    "[since last session:": r"[^\[\]\n]{0,300}+\]",
    "[END OF SIGNET": r"[^\[\]\n]{0,200}+\]",
    "<memory-feedback>": "",
    "</memory-feedback>": "",
    "## Relevant Memories (auto-loaded": r"[^()\n]{0,200}+\)",
}
"""The start of each mark that only this program writes, and a pattern for the rest of the mark."""
HEADINGS: Final = (
    "## From Memory: Preferences and Decisions",
    "## From Memory: Used Before",
    "## From Memory: Last Session",
    "## Relevant Entity Context",
    "## Signet Status",
    "## Active Constraints",
    "## Active Peer Sessions",
    "## Session Recovery Context",
    "# Current Date & Time",
)
"""Headings of our sections. One that a person may write too is a mark only behind another, or above a memory."""
_OWN_HEADINGS: Final = "## From Memory: "
_LAST_BLOCKS: Final = ("[signet:recall", "<memory-feedback>", "</memory-feedback>", "[END OF")
"""No sections follow these: what stands below the memories for a prompt is the prompt."""
_PROSE_HEADINGS: Final = ("## Agent Instructions", "## Soul", "## Identity", "## About Your User", "## Working Memory")
"""Headings above free text, in which a list does not end the section."""
_DEPENDENT_HEADINGS: Final = (*_PROSE_HEADINGS, "## Plugin Context", "## Available Secrets")
"""Headings that a user may write too. They are marks only directly after another block."""
_MARK = compile_later(
    "|".join(
        (
            *(re.escape(opening) + rest for opening, rest in OPENINGS.items()),
            rf"(?:{'|'.join(map(re.escape, (*HEADINGS, *_DEPENDENT_HEADINGS)))})(?=\s|\Z)",
        )
    )
)
"""Matches every place where a block may begin."""
_MAX_MARK_CHARS: Final = 1_500
_MARK_START = compile_later(
    rf"{'|'.join(map(re.escape, OPENINGS))}|(?:{'|'.join(map(re.escape, (*HEADINGS, *_DEPENDENT_HEADINGS)))})(?=\s|\Z)"
)
"""Matches the start of a mark, without its rest."""
_INVISIBLE: Final = "\u00ad\u200b-\u200f\u2060-\u2064\ufeff"
_TAG: Final = compile_later(
    f"<([{_INVISIBLE}]{{0,20}}[/!]?[{_INVISIBLE}\\s]{{0,20}})([A-Za-z!-][{_INVISIBLE}\\w:.-]{{0,60}}+)"
)
_TEMPLATE_MARK: Final = compile_later(
    "<(?=[|\uff5c][^\\s<>|\uff5c]{1,40}[|\uff5c]>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])"
)
"""The beginning of a mark in a model's chat template (ChatML, Llama, DeepSeek, Mistral)."""
_HARNESS_TAGS: Final = compile_later(
    r"antml:\w*|system|assistant|human|developer|guidelines|(?:user-|system-)?instructions|system-prompt|sys|bos|eos|(?:start|end)-of-\w+|(?:tool|system)-reminder"
    r"|user-(?:query|info|rules)|(?:environment|hook|session|project|extension|loaded|global)-context|state-snapshot"
    r"|(?:user-prompt-submit|session-start|pre-tool-use|post-tool-use|stop)-hook|hook-(?:prompt|output)"
    r"|command-(?:name|message|args|contents)|local-command-\w+|bash-(?:input|stdout|stderr)|(?:tool|function)-(?:use|call|result)s?"
    r"(?:-error)?|tools|invoke|think|thinking|untrusted[\w-]*|memory-feedback|signet[\w:-]*|claudemd|attached-files|additional-data"
)
"""Names of tags by which harnesses, models and this program mark who says something, with ``-`` for ``_``."""
_MAX_GAP_CHARS: Final = 200
_MAX_ROLE_CHARS: Final = 40
_RESULTS = compile_later(r"(?:results=|\| )(\d{1,3})(?: results\)|\b)")
_FEEDBACK: Final = "<memory-feedback>"
_FEEDBACK_END: Final = "</memory-feedback>"
_DATE_LINE: Final = compile_later(r"[^\n]{0,40}(?:\b\d{4}\b|\d:\d\d)[^\n]{0,80}(?=\n|\Z)")
_DATE_WORDS: Final = compile_later(
    r"(?:\w{3,9},? )?(?:[A-Z]\w{2,8} \d{1,2}, \d{4}|\d{4}-\d\d-\d\d)"
    r"(?:,? (?:at )?|T)?(?:\d{1,2}:\d\d(?::\d\d)?)?(?: ?[AP]M\b)?(?: ?\([\w/+:. -]{1,40}\))?"
)
_BULLET = compile_later(r"[-*\u2022] |\d{1,3}[.)] ")
_ITEM_END = compile_later(r"\((?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6} \d{1,2}, \d{4}\)")
_MEMORY_END = compile_later(r"\(id [0-9a-f]{8}(?:-[0-9a-f]{4}){0,2}\) \([A-Z]")
_FULL_DATE = compile_later(
    r"\s{1,3}[A-Z][a-z]{2,8}day, [A-Z][a-z]{2,8} \d{1,2}, \d{4} (?:at )?\d{1,2}:\d\d [AP]M \([^()\n]{1,40}\)"
)
"""The date as the reference daemon writes it before each prompt."""
_SENTENCE_END = compile_later(r"[.!?](?=\s|\Z)")
_NEXT_ITEM = compile_later(r" [-\u2022] ")
_OPENINGS: Final = tuple(OPENINGS)
_BANNERS: Final = ("[memory active | signet recall", "[memory active | memory_search", "[memory active | /remember")
"""The first lines of a session's start, of this release and of earlier ones."""
_BEFORE_SECTIONS: Final = compile_later(r"\][ \t]{0,9}\n\s{0,9}(?:#{1,2} |\[)")
_ROLE = compile_later(r"(?:User|Human|Assistant|System|Tool)\s?:")
_HEADING = compile_later(r"#{1,3} ")


class InjectedParts(Struct, frozen=True):
    """The injected parts of a chunk with this hash; the payload of its jobs, since the marks may be in other chunks."""

    content_hash: str
    spans: list[Span]


class _BlockStart(Enum):
    """Where a run of adjacent blocks starts: at the start of a line, within one, or (NONE) with an ambiguous mark."""

    NONE = 0
    LINE = 1
    WITHIN_LINE = 2


def without_injected(text: str) -> tuple[str, int]:
    """Return ``text`` without the injected blocks, and their count. The text is unchanged if there are none."""
    return _without(text, injected_spans(text))


def own_text(content: str, content_hash: str, injected: InjectedParts | None) -> tuple[str, int]:
    """Return ``content`` without injected text, and the count of blocks; ``injected`` if it is a chunk of a text."""
    if injected is None or injected.content_hash != content_hash:  # the memory was edited since
        return without_injected(content)
    return _without(content, injected.spans)


def injected_parts(text: str, chunks: Sequence[str]) -> list[list[Span]]:
    """Return for each chunk which parts of it are injected: in most chunks of a block stands no mark.

    ``chunks`` are parts of ``text``, in its order, that leave out nothing but white space.
    """
    blocks = injected_spans(text)
    parts: list[list[Span]] = []
    end = first = 0
    for chunk in chunks:
        begin = text.index(chunk, end)
        end = begin + len(chunk)
        while first < len(blocks) and blocks[first][1] <= begin:
            first += 1
        after = first
        while after < len(blocks) and blocks[after][0] < end:
            after += 1
        parts.append([(max(a, begin) - begin, min(b, end) - begin) for a, b in blocks[first:after]])
    return parts


def _without(text: str, spans: Sequence[Span]) -> tuple[str, int]:
    if not spans:
        return text, 0
    own = zip([0, *(end for _, end in spans)], [*(begin for begin, _ in spans), len(text)], strict=True)
    return _joined([text[begin:end] for begin, end in own]), len(spans)


def injected_spans(text: str) -> list[Span]:
    """Return the beginning and end of each injected block, in order of the text."""
    spans: list[Span] = []
    at = 0
    block_start = _BlockStart.NONE
    for mark in windowed_matches(_MARK, text, _MAX_MARK_CHARS):
        if mark.start() < at:
            continue
        follows = bool(spans) and _follows_block(text, at, mark.start(), block_start)
        if mark.group().startswith(_LAST_BLOCKS):
            block_start = _BlockStart.NONE
        elif mark.group().startswith(_OPENINGS):
            block_start = block_start if follows else _start_of(text, mark.start())
        elif not follows:
            if not (_is_heading_line(text, mark) and _is_of_memories(text, mark)):
                continue
            block_start = _BlockStart.LINE
        at = _end(text, mark)
        spans.append((mark.start(), at))
    return spans


def without_marks(line: str) -> str:
    """Return a line of a memory in which nothing looks like one of our marks: a blank is added to it, or taken out."""
    return _MARK_START.sub(lambda mark: _broken(mark.group()), line)


def without_tags(text: str) -> str:
    """Return a text in which no tag ends or begins a block of a harness or of ours: a blank stands after its ``<``.

    That is a tag with one of their names, one that closes what the text has not opened, a comment, and a name with
    invisible characters in it. Other tags stay: ``<env>``, ``<div>x</div>``. Likewise for what separates the messages
    in the prompts of models: ``<|im_end|>``, ``[INST]``.
    """
    opened: Counter[str] = Counter()

    def checked(tag: re.Match[str]) -> str:
        sign, name = tag.groups()
        plain = name.replace("_", "-").lower().rstrip("-.:")
        if sign.isspace():  # "a < b"
            return tag.group()
        if sign in {"", "/"} and name.isascii() and not _HARNESS_TAGS.fullmatch(plain):
            opened[plain] += 1 if not sign else -1
            if opened[plain] >= 0:
                return tag.group()
            opened[plain] = 0
        return f"< {tag.group()[1:]}"

    return _TEMPLATE_MARK.sub(r"\g<0> ", _TAG.sub(checked, text))


def _broken(mark: str) -> str:
    return mark.replace(" ", "", 1) if mark.startswith("#") else f"{mark[0]} {mark[1:]}"


def as_prose(text: str) -> str:
    """Return the text of a file in which no line ends the section that it stands in: a blank stands before such a line.

    Markdown reads an indented heading as a heading.
    """
    return "\n".join(f" {line}" if _ends_prose(line, 0) else line for line in text.splitlines())


def _start_of(text: str, start: int) -> _BlockStart:
    """Return where the mark at ``start`` is.

    After a role such as ``User:`` it counts as the start of a line, too, and so does the banner of a session's start
    above another mark.
    """
    before = text[max(0, start - _MAX_ROLE_CHARS) : start]
    line = before.rpartition("\n")[2].strip()
    begins_start = text.startswith(_BANNERS, start) and _BEFORE_SECTIONS.match(text, text.find("]", start)) is not None
    whole = "\n" in before or start <= _MAX_ROLE_CHARS
    return (
        _BlockStart.LINE if not line or begins_start or (whole and _ROLE.fullmatch(line)) else _BlockStart.WITHIN_LINE
    )


def _follows_block(text: str, at: int, start: int, block_start: _BlockStart) -> bool:
    """Return whether only white space separates the heading at ``start`` from the run of blocks that ends at ``at``.

    A mark within a sentence starts no run of sections: a text about these marks may have such sections of its own.
    """
    if block_start is _BlockStart.NONE or start - at > _MAX_GAP_CHARS:
        return False
    gap = text[at:start]
    return not gap.strip() and (block_start is _BlockStart.LINE or "\n" not in gap)


def _is_heading_line(text: str, mark: re.Match[str]) -> bool:
    """Return whether a heading that a user could also have written is one of our marks: it must fill its line."""
    starts = mark.start() == 0 or text[mark.start() - 1] == "\n"
    rest = text[mark.end() : mark.end() + 200].partition("\n")[0]
    return mark.group() in HEADINGS and starts and not rest.strip()


def _is_of_memories(text: str, mark: re.Match[str]) -> bool:
    """Return whether the heading is one of ours by its words, or by a memory with its id, or a date, below it."""
    if mark.group().startswith("# "):
        return _FULL_DATE.match(text, mark.end()) is not None
    first = text[mark.end() : _lines_end(text, mark.end(), 1)]
    return mark.group().startswith(_OWN_HEADINGS) or _MEMORY_END.search(first) is not None


def _end(text: str, mark: re.Match[str]) -> int:
    """Return the end of the block that starts with ``mark``."""
    name, at = mark.group(), mark.end()
    if name == _FEEDBACK:
        end = text.find(_FEEDBACK_END, at, at + _MAX_FEEDBACK_CHARS)
        return end + len(_FEEDBACK_END) if end >= 0 else _line_end(text, at)
    if name.startswith(("</", "[signet: ", "[signet:session", "[memory", "[since", "[END")):
        return at
    begin = at + len(text[at : at + 20]) - len(text[at : at + 20].lstrip())
    by_lines = "\n" in text[at:begin]
    if name.startswith("# "):
        date = (_DATE_LINE if by_lines else _DATE_WORDS).match(text, begin)
        return date.end() if date is not None and not _starts_with_role(text, begin) else at
    if name in _PROSE_HEADINGS:
        return _prose_end(text, at) if by_lines else at
    count = _RESULTS.search(name)
    most = int(count[1]) if count is not None else None
    return _lines_end(text, at, most) if by_lines else _items_end(text, at, begin, most)


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _starts_with_role(text: str, at: int) -> bool:
    return _ROLE.match(text, at) is not None


def _lines_end(text: str, at: int, most: int | None) -> int:
    """Return the end of the list that follows: up to ``most`` items with their indented lines and blank lines.

    A bullet that stands further right than that of the first item is a part of one. None: the mark tells no number.
    Then a person's list may follow: an item is never numbered, and behind a blank line it ends like a memory.
    """
    items, end, indent = 0, at, 0
    after_blank = False
    at = _line_end(text, at)
    while at < len(text):
        begin, stop = at + 1, _line_end(text, at + 1)
        line = text[begin : min(begin + 8, stop)]
        blanks = len(line) - len(line.lstrip())
        bullet = _BULLET.match(line.lstrip())
        if bullet is not None and (not items or blanks < indent + 2):
            items += 1
            indent = blanks if items == 1 else indent
            ends_as_memory = items == 1 or _ITEM_END.search(text, max(begin, stop - _END_CHARS), stop)
            is_own = bullet[0][0].isdigit() or (after_blank and not ends_as_memory)
            if items > (_MAX_ITEMS if most is None else most) or (most is None and is_own):
                break
            end = stop
        elif items and not after_blank and line.startswith("  ") and line.strip():
            end = stop
        elif text[begin:stop].strip():
            break
        after_blank = begin == stop or not text[begin:stop].strip()
        at = stop
    return end


def _prose_end(text: str, at: int) -> int:
    """Return the end of the section: the next heading, mark, or turn of the conversation (``as_prose`` has none)."""
    at = _line_end(text, at)
    while at < len(text):
        begin = at + 1
        if _ends_prose(text, begin):
            return at
        at = _line_end(text, begin)
    return at


def _ends_prose(text: str, at: int) -> bool:
    return _HEADING.match(text, at) is not None or _starts_with_role(text, at) or text.startswith("[", at)


def _items_end(text: str, at: int, begin: int, most: int | None) -> int:
    """Return the end of a list in a single line.

    An item ends at its date, else at the next item, else at the end of its sentence.
    """
    end = at
    is_counted, most = most is not None, _MAX_ITEMS if most is None else most
    for number in range(1, most + 1):
        bullet = _BULLET.match(text, begin)
        if bullet is None or (bullet[0][0].isdigit() and not is_counted):
            break
        stop = min(_line_end(text, begin), bullet.end() + _MAX_ITEM_CHARS)
        others = _MARK.search(text, bullet.end(), stop)
        stop = others.start() if others is not None else stop
        following = _NEXT_ITEM.search(text, bullet.end(), stop) if number < most else None
        dated = _ITEM_END.search(text, bullet.end(), stop)
        if dated is not None:
            end = dated.end()
        elif following is not None:
            end = following.start()
        else:
            sentence = _SENTENCE_END.search(text, bullet.end(), stop)
            return stop if sentence is None else sentence.end()
        begin = end + 1
    return end


def _joined(parts: list[str]) -> str:
    """Join the parts with a newline if either side of the cut had one, else a space. Keep the layout of each part."""
    joined: list[str] = []
    parted = False
    for part in parts:
        content = part.strip()
        if content:
            before = part[: part.index(content[0])]
            if joined:
                joined.append("\n" if parted or "\n" in before else " ")
            indent = before.rpartition("\n")[2] if parted or "\n" in before else ""
            joined.append(f"{indent}{content}")
            parted = "\n" in part[len(before) + len(content) :]
        else:
            parted = parted or "\n" in part
    return "".join(joined).strip()
