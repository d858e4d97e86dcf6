"""How many bytes one transaction may erase, which bounds its log, too. Source: docs/reliability.md R14, R21, R23."""

from __future__ import annotations

from typing import Final

ERASED_BYTES: Final = 4 << 20
"""Overwriting erased pages takes some 10 ms for each MB on a fast disk."""
_INDEXED_FACTOR: Final = 128
"""Removing a text from its index overwrites an entry for each of its words: 100 ms for 32 kB of distinct words."""


class ByteBudget:
    """The bytes that are left. The first item is always permitted, whatever its size."""

    def __init__(self) -> None:
        self.left = ERASED_BYTES

    @property
    def used_up(self) -> bool:
        """Return True if nothing more may be begun."""
        return self.left <= 0

    def spend(self, size: int) -> None:
        """Take ``size`` stored bytes from the budget."""
        self.left -= size

    def spend_indexed(self, size: int) -> None:
        """Take ``size`` bytes of a text that is removed from the text index from the budget."""
        self.left -= _INDEXED_FACTOR * size
