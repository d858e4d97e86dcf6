"""Document frequencies of terms of the text index, cached while the store grows little.

Source: docs/quality.md rule 5.
"""

from __future__ import annotations

from collections.abc import Sequence

from signet_actors.store.engine import Snapshot

_MAX_TERMS = 20_000
_GROWTH_FACTOR = 1.05


class TermFrequencies:
    """Document frequencies by stemmed token. The cache is cleared when the store has grown by a twentieth."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._rows = 0

    def resize(self, rows: int) -> None:
        """Note that the store now holds ``rows`` rows; clear the cache if it is outdated or full."""
        if rows > self._rows * _GROWTH_FACTOR or len(self._known) > _MAX_TERMS:
            self._known.clear()
            self._rows = rows

    def prune(self, snapshot: Snapshot, phrases: Sequence[str], budget: int) -> tuple[str, ...]:
        """Return the rarest phrases whose rows together do not exceed ``budget``, in their original order.

        The rarest phrase is always kept. The frequency of a phrase of several tokens is that of its rarest token.
        """
        if self._rows <= budget:
            return tuple(phrases)
        counted = sorted((self._rows_of(snapshot, phrase), at) for at, phrase in enumerate(phrases))
        kept: list[int] = []
        scanned = 0
        for rows, at in counted:
            scanned += rows
            if kept and scanned > budget:
                break
            kept.append(at)
        return tuple(phrases[at] for at in sorted(kept))

    def _rows_of(self, snapshot: Snapshot, phrase: str) -> int:
        terms = snapshot.stem(phrase)
        return min((self._document_frequency(snapshot, term) for term in terms), default=0)

    def _document_frequency(self, snapshot: Snapshot, token: str) -> int:
        known = self._known.get(token)
        if known is None:
            known = snapshot.document_frequency(token)
            self._known[token] = known
        return known
