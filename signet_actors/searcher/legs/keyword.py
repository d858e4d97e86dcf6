"""The keyword leg: BM25 over FTS5, admitted rows only, at most a pool of candidates.

FTS5 has no top-k pruning: an OR of common words scans whole posting lists. Terms are therefore added rarest first until
the rows that would be scanned exceed a share of the store; what the frequent rest adds is small (targets.md).

Source: decisions.md 6, 8; quality.md rules 4 and 7; targets.md (document-frequency pruning).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from signet_actors.domain.query_words import fts_expression, match_terms
from signet_actors.searcher.columns import Mask
from signet_actors.searcher.term_frequency import TermFrequencies
from signet_actors.store.snapshot import Snapshot

SCAN_SHARE = 0.03
SCAN_AT_LEAST = 20_000
"""Rows that may always be scanned: below this store size nothing is ever pruned."""
_WIDEST = 8192


class KeywordHits(NamedTuple):
    """``seqs`` and ``strengths`` (|bm25|, >= 0), best first; same length."""

    seqs: npt.NDArray[np.int64]
    strengths: npt.NDArray[np.float64]


NO_HITS = KeywordHits(np.zeros(0, np.int64), np.zeros(0, np.float64))


def search(view: Snapshot, frequencies: TermFrequencies, query: str, allowed: Mask, *, pool: int) -> KeywordHits:
    """The best ``pool`` admitted rows that match any term of ``query``."""
    terms = match_terms(query)
    budget = max(SCAN_AT_LEAST, int(SCAN_SHARE * len(allowed)))
    expression = fts_expression(terms._replace(phrases=frequencies.prune(view, terms.phrases, budget)))
    admitted = int(allowed.sum())
    if expression is None or not admitted:
        return NO_HITS
    # The index ranks without knowing the filter: ask for so many more as the filter is expected to take away.
    limit = min(_WIDEST, int(pool * max(1.0, 1.2 * len(allowed) / admitted)))
    while True:
        rows = view.rows(
            "SELECT rowid, -bm25(memories_fts) FROM memories_fts WHERE memories_fts MATCH ? ORDER BY rank LIMIT ?",
            (expression, limit),
        )
        hits = np.array(rows, dtype=np.float64).reshape(len(rows), 2)
        seqs = hits[:, 0].astype(np.int64)
        kept = np.flatnonzero((seqs < len(allowed)) & allowed[np.minimum(seqs, len(allowed) - 1)])[:pool]
        exhausted = limit < 0 or len(rows) < limit
        if len(kept) >= min(pool, admitted) or exhausted:
            return KeywordHits(seqs[kept], np.maximum(hits[kept, 1], 0.0))
        limit = limit * 8 if limit < _WIDEST else -1
