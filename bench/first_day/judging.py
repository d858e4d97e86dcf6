"""What an injected text gives: which items of the data set, and how much of it is theirs.

An item is recognised by its words, in any form that the text has: four words in a row count. So a text may be cut, have
its lines joined, or name a turn in a sentence of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from difflib import SequenceMatcher
from typing import Any, Final

import msgspec

from bench.first_day.data import Item, Prompt

RUN: Final = 4
"""So many words in a row are compared."""
WHOLE: Final = 0.6
"""The share of an item's words from which it is given."""
SHOWN: Final = 0.25
SHOWN_RUNS: Final = 5
"""The share, and the number of runs, from which a part of it is."""
MIN_BLOCK_CHARS: Final = 12
_WORD: Final = re.compile(r"\w+")
_LINE: Final = "- "
_COMMAND: Final = re.compile(r"(?<![\w/.~:])/[a-z][a-z-]+(?![\w/.-])")
_SIGNET: Final = re.compile(r"[`(]signet ([a-z][a-z-]*)")
_TOOL: Final = re.compile(r"\b(?:memory|session|agent|secret)_[a-z_]+\b")
_FIELDS: Final = frozenset({"session_key", "memory_feedback"})


class Given(msgspec.Struct, frozen=True):
    """``whole`` are the items that answer, ``shown`` those and the ones of which a part is there.

    ``unknown`` are list lines without a word of any item.
    """

    whole: frozenset[str]
    shown: frozenset[str]
    unknown: tuple[str, ...]

    def outdated_alone(self, items: Mapping[str, Item]) -> list[str]:
        """Return the outdated items without the newer one beside them."""
        return sorted(
            label for label in self.shown if (newer := items[label].replaced_by) is not None and newer not in self.whole
        )


class Judged(msgspec.Struct, frozen=True):
    """What became of a prompt.

    ``foreign`` are lines that have nothing to do with it; ``recalled`` is the place and the relevance of an answer in a
    recall with the same words, if it was not given.
    """

    prompt: Prompt
    asked: str
    text: str
    given: Given
    answered: bool
    outdated: list[str]
    foreign: list[str]
    skipped: str = ""
    recalled: str = ""

    @property
    def failed(self) -> bool:
        """True if anything about it is not as it should be."""
        return not self.answered or bool(self.outdated or self.foreign)


class Start(msgspec.Struct, frozen=True):
    """What a start is like. ``share`` is that of the words of memories and turns in its characters."""

    text: str
    given: Given
    share: float
    outdated: list[str]
    unwanted: list[str]
    commands: list[str]
    headings: list[str]


def given_by(text: str, items: Mapping[str, Item]) -> Given:
    """Return what an injected text gives."""
    known = {label: _runs(_words(item.text)) for label, item in items.items()}
    entries = _entries(text)
    joined = " ".join(_words(text))
    whole, shown, found = set(), set(), set()
    for label, runs in known.items():
        if not (there := {run for run in runs if f" {run} " in f" {joined} "}):
            continue
        share, mark = len(there) / len(runs), items[label].mark
        if share < WHOLE and (share < SHOWN or len(there) < SHOWN_RUNS):
            continue
        shown.add(label)
        found |= there
        if (share >= WHOLE or mark is not None) and (mark is None or _plain(mark) in _plain(text)):
            whole.add(label)
    unknown = [one for one in entries if not any(f" {run} " in f" {' '.join(_words(one))} " for run in found)]
    return Given(frozenset(whole), frozenset(shown), tuple(unknown))


def judged(
    prompt: Prompt, asked: tuple[str, datetime | None], text: str, items: Mapping[str, Item], skipped: str
) -> Judged:
    """Return what to think of the text that was given with a prompt."""
    given = given_by(text, items)
    words, day = asked
    topics = set(prompt.topics).union(*(items[label].topics for labels in prompt.expect for label in labels))

    def has_to_do_with_it(item: Item) -> bool:
        return bool(item.topics & topics) or (day is not None and item.made.date() == day.date())

    foreign = [label for label in sorted(given.shown) if not has_to_do_with_it(items[label])] + list(given.unknown)
    expected = any(given.whole.issuperset(labels) for labels in prompt.expect)
    answered = expected if prompt.expect else not text.strip()
    return Judged(prompt, words, text, given, answered, given.outdated_alone(items), foreign, skipped)


def found_at(results: Sequence[Mapping[str, Any]], expect: Sequence[Sequence[str]], items: Mapping[str, Item]) -> str:
    """Return place and relevance of the first result that is expected, among memories and turns."""
    wanted = {label for labels in expect for label in labels}
    for place, result in enumerate(results, start=1):
        if found := given_by(str(result["content"]), items).whole & wanted:
            return f"{min(found)}: place {place}, relevance {result['relevance']:.2f}"
    return f"not among the first {len(results)}"


def judged_start(
    text: str, items: Mapping[str, Item], *, commands: Iterable[str], tools: Iterable[str], foreign: Iterable[str]
) -> Start:
    """Return what to think of the text of a start. ``foreign``: topics that no start should have."""
    given = given_by(text, items)
    own = _own_chars(text, [items[label].text for label in given.shown])
    without = "".join(char for char, is_own in zip(text, own, strict=True) if not is_own)
    known = set(commands)
    named = _COMMAND.findall(without)
    named += [f"signet {name}" for name in _SIGNET.findall(text) if name not in known]
    named += sorted(set(_TOOL.findall(without)) - set(tools) - _FIELDS)
    unwanted = [label for label in sorted(given.shown) if items[label].topics & set(foreign)]
    headings = [line for line in text.splitlines() if line.startswith("# ")]
    share = sum(own) / len(text) if text else 0.0
    return Start(text, given, share, given.outdated_alone(items), unwanted, named, headings)


def _own_chars(text: str, texts: Iterable[str]) -> list[bool]:
    """Return for each character whether it is part of a long piece of one of the texts."""
    own = [False] * len(text)
    for one in texts:
        for block in SequenceMatcher(None, text, one, autojunk=False).get_matching_blocks():
            if block.size >= min(MIN_BLOCK_CHARS, len(one)):
                own[block.a : block.a + block.size] = [True] * block.size
    return own


def _entries(text: str) -> list[str]:
    """Return the list lines of the text, each with the lines that belong to it."""
    found: list[str] = []
    for line in text.splitlines():
        if line.startswith(_LINE):
            found.append(line)
        elif found and line[:1] not in "#[<" and line.strip():
            found[-1] += f"\n{line}"
    return found


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _runs(words: list[str]) -> list[str]:
    size = min(RUN, len(words))
    return [" ".join(words[at : at + size]) for at in range(len(words) - size + 1)] if words else []


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
