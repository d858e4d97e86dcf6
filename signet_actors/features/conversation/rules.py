"""Which turn of a transcript is which prompt, and whether an answer has used what its prompt was given.

Source: docs/guides/hooks.md "A session, prompt by prompt".
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

from signet_actors.domain.normalization import collapsed
from signet_actors.features.searches.rules import HEAD_CHARS
from signet_actors.operations.hooks import SearchMemory

ALIKE_CHARS: Final = 60
"""Of a prompt and of a turn that are compared, on one line."""
_LEAST_SHARED: Final = 2
_WORD: Final = re.compile(r"[\w./-]{4,}")


class Said(NamedTuple):
    """A turn. ``head``: of a user's, by what it is known (``head_of``); else empty."""

    at: str | None
    head: str


class Sought(NamedTuple):
    """A search. ``head``: of a prompt whose words are kept, by what it is known (``head_of``); else empty."""

    at: str
    head: str


def head_of(text: str | None) -> str:
    """Return by what a prompt and its turn are known. Mostly its first characters suffice, which takes less time."""
    found = collapsed((text or "")[: 2 * ALIKE_CHARS])[:ALIKE_CHARS]
    return found if len(found) == ALIKE_CHARS else collapsed(text or "")[:ALIKE_CHARS]


def is_whole(kept: str) -> bool:
    """Return True if the kept beginning of a prompt is surely all of it: a cut one is longer than half of the most."""
    return len(kept) < HEAD_CHARS // 2


def joined(said: Sequence[Said], sought: Sequence[Sought]) -> list[tuple[int | None, int | None]]:
    """Return the rows of a session in order, each the position of its turn and that of its search; one may be None.

    A turn has no number of a prompt, and of a prompt the beginning is kept: it belongs to the first user's turn that
    begins with it, after the turn of the prompt before. Any other search stands before the first row that is later.
    """
    places: dict[str, list[int]] = {head: [] for _, head in sought if head}
    lengths = sorted({len(head) for head in places})
    for place, (_, head) in enumerate(said):
        for length in lengths[: bisect_right(lengths, len(head))]:
            places.get(head[:length], []).append(place)
    search_of: dict[int, int] = {}
    loose: list[int] = []
    after = 0
    for number, (_, head) in enumerate(sought):
        alike = places.get(head, [])
        found = bisect_left(alike, after)
        if found == len(alike):
            loose.append(number)
        else:
            search_of[alike[found]] = number
            after = alike[found] + 1
    loose.sort(key=lambda number: sought[number].at, reverse=True)
    rows: list[tuple[int | None, int | None]] = []
    for place, turn in enumerate(said):
        search = search_of.get(place)
        at = turn.at if search is None else sought[search].at
        while loose and at is not None and at > sought[loose[-1]].at:
            rows.append((None, loose.pop()))
        rows.append((place, search))
    return rows + [(None, number) for number in reversed(loose)]


def new_words(answer: str, prompt: str) -> set[str]:
    """Return the words of an answer that its prompt did not have."""
    return _rare_words(answer) - _rare_words(prompt)


def seems_used(memory: str, words: set[str]) -> bool:
    """Return True if two of the ``new_words`` of the answer, or one with a digit, are in the memory: a guess."""
    shared = words & _rare_words(memory)
    return len(shared) >= _LEAST_SHARED or any(map(str.isdecimal, "".join(shared)))


def _rare_words(text: str) -> set[str]:
    return {word.rstrip("./-") for word in _WORD.findall(text.lower())}


def told(memory: SearchMemory | None, *, existed: bool) -> str:
    """Return in words what became of a memory at a search; None: the search has no row of it."""
    if memory is None:
        return "it was not considered: the search of the prompt did not find it" if existed else "it did not exist"
    done = "it was given" if memory.given else "it was left out"
    return done if memory.outcome == "given" else f"{done}: {memory.why}"
