"""Where a capture of the end of a session begins in what is stored of it.

Only turns without times need this: two that are equal can be told apart by the turns around them alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence


def overlap(stored: Iterable[bytes], captured: Sequence[bytes], grew: Callable[[int], bool]) -> int | None:
    """Return the first index from which the stored turns are the captured ones, up to the end of either; else None.

    ``grew(i)``: the last stored turn is the beginning of captured turn ``i``, and counts as equal if no index is found
    otherwise. This is the search of Knuth, Morris and Pratt, so it takes linear time.
    """
    shorter = _borders(captured)
    matched = before_last = index = 0
    for index, turn in enumerate(stored, 1):
        before_last = matched
        while matched and captured[matched] != turn:
            matched = shorter[matched - 1]
        matched += captured[matched] == turn
        if matched == len(captured):
            return index - matched
    if matched:
        return index - matched
    while before_last and not grew(before_last):
        before_last = shorter[before_last - 1]
    return index - 1 - before_last if before_last else None


def _borders(turns: Sequence[bytes]) -> list[int]:
    """Return for each beginning of ``turns`` how long the longest shorter beginning is with which it also ends."""
    borders = [0] * len(turns)
    length = 0
    for index in range(1, len(turns)):
        while length and turns[length] != turns[index]:
            length = borders[length - 1]
        length += turns[length] == turns[index]
        borders[index] = length
    return borders
