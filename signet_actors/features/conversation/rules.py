"""Which turn of a transcript is which prompt, and whether an answer has used what its prompt was given.

Source: docs/guides/hooks.md "A session, prompt by prompt".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate, islice, pairwise
from math import inf
from typing import Final, NamedTuple

from signet_actors.domain.normalization import collapsed
from signet_actors.domain.timestamps import epoch_ms
from signet_actors.features.searches.rules import HEAD_CHARS
from signet_actors.operations.hooks import SearchMemory

ALIKE_CHARS: Final = 60
"""Of a prompt and of a turn that are compared, on one line."""
_BLOCK: Final = 256
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


def is_prompt(turn: str, kept: str) -> bool:
    """Return True if the turn is the prompt of which this beginning is kept, as far as that tells."""
    words = collapsed(turn)
    return words == kept if is_whole(kept) else words.startswith(kept)


def joined(said: Sequence[Said], sought: Sequence[Sought]) -> list[tuple[int | None, int | None]]:
    """Return the rows of a session in order, each the position of its turn and that of its search; one may be None.

    A turn has no number of a prompt, and of a prompt the beginning is kept: as many prompts as possible have a turn
    that begins alike, in order. Any other search stands before the first row that is later.
    """
    search_of = dict(_aligned(said, sought))
    matched = set(search_of.values())
    loose = [number for number in range(len(sought)) if number not in matched]
    loose.sort(key=lambda number: (sought[number].at, number), reverse=True)
    rows: list[tuple[int | None, int | None]] = []
    for place, turn in enumerate(said):
        search = search_of.get(place)
        at = turn.at if search is None else sought[search].at
        while loose and at is not None and at > sought[loose[-1]].at:
            rows.append((None, loose.pop()))
        rows.append((place, search))
    return rows + [(None, number) for number in reversed(loose)]


def _aligned(said: Sequence[Said], sought: Sequence[Sought]) -> list[tuple[int, int]]:
    """Return turns with their prompts: a longest common subsequence of the heads, the first one, then nearest in time.

    Source: H. Hyyrö, "Bit-parallel LCS-length computation revisited", 2004: bit n of the number of a turn is 0 if
    the subsequence of all up to it is longer with prompt n. Of ``_BLOCK`` turns one number is kept at a time.
    """
    alike = {turn.head for turn in said} & {search.head for search in sought} - {""}
    places = [place for place, turn in enumerate(said) if turn.head in alike]
    numbers = [number for number, search in enumerate(sought) if search.head in alike]
    masks = dict.fromkeys(alike, 0)
    for bit, number in enumerate(numbers):
        masks[sought[number].head] |= 1 << bit
    none = (1 << len(numbers)) - 1

    def step(row: int, place: int) -> int:
        used = row & masks[said[place].head]
        return (row + used | row - used) & none

    pairs: list[tuple[int, int]] = []
    bit = len(numbers) - 1
    begins = list(islice(accumulate(places, step, initial=none), 0, None, _BLOCK))
    for block in reversed(range(len(begins))):
        within = places[block * _BLOCK : (block + 1) * _BLOCK]
        rows = list(accumulate(within, step, initial=begins[block]))
        turn = len(within)
        while turn and bit >= 0:
            if rows[turn] >> bit & 1:
                bit -= 1
                continue
            turn -= 1
            if rows[turn] >> bit & 1:
                pairs.append((within[turn], numbers[bit]))
                bit -= 1
    return _nearest(said, sought, pairs)


def _nearest(said: Sequence[Said], sought: Sequence[Sought], pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the pairs, the last first, each with what is nearest in time of all that may take its place."""
    found = []
    place_end, number_end = len(said), len(sought)

    def apart(place: int, number: int) -> float:
        at, then = epoch_ms(said[place].at or ""), epoch_ms(sought[number].at)
        return inf if at is None or then is None else abs(at - then)

    for (place, number), (place_before, number_before) in pairwise([*pairs, (-1, -1)]):
        head = said[place].head
        alike = [each for each in range(number_before + 1, number_end) if sought[each].head == head]
        *_, number_end = min((apart(place, each), each != number, each) for each in alike)
        alike = [each for each in range(place_before + 1, place_end) if said[each].head == head]
        *_, place_end = min((apart(each, number_end), each != place, each) for each in alike)
        found.append((place_end, number_end))
    return found


def new_words(answer: str, prompt: str) -> set[str]:
    """Return the words of an answer that its prompt did not have."""
    return _rare_words(answer) - _rare_words(prompt)


def seems_used(memory: str, words: set[str]) -> bool:
    """Return True if the memory has two ``new_words`` of the answer, half of few, or one with a digit: a guess."""
    shared = words & _rare_words(memory)
    enough = len(shared) >= min(_LEAST_SHARED, max(1, len(words) // 2))
    return enough or any(map(str.isdecimal, "".join(shared)))


def _rare_words(text: str) -> set[str]:
    return {word.rstrip("./-") for word in _WORD.findall(text.lower())}


def told(memory: SearchMemory | None, *, existed: bool) -> str:
    """Return in words what became of a memory at a search; None: the search has no row of it."""
    if memory is None:
        return "it was not considered: the search of the prompt did not find it" if existed else "it did not exist"
    done = "it was given" if memory.given else "it was left out"
    return done if memory.outcome == "given" else f"{done}: {memory.why}"
