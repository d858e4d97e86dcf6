"""How many typing errors lie between two words."""

from __future__ import annotations


def within_distance(word: str, other: str, most: int) -> bool:
    """Return whether at most ``most`` errors turn ``word`` into ``other``.

    An error is a letter too many, too few or wrong, or two neighbours exchanged (optimal string alignment). Takes time
    proportional to the product of the lengths, which are those of words.

    Source: Damerau, "A technique for computer detection and correction of spelling errors" (1964).
    """
    if abs(len(word) - len(other)) > most:
        return False
    before: list[int] = []
    above = list(range(len(other) + 1))
    for row, letter in enumerate(word, 1):
        line = [row]
        for column, other_letter in enumerate(other, 1):
            cost = min(above[column] + 1, line[-1] + 1, above[column - 1] + (letter != other_letter))
            if row > 1 and column > 1 and letter == other[column - 2] and word[row - 2] == other_letter:
                cost = min(cost, before[column - 2] + 1)
            line.append(cost)
        if min(line) > most:
            return False
        before, above = above, line
    return above[-1] <= most
