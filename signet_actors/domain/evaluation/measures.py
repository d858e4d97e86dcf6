"""The quality of one ranking: evidence recall, nDCG, and whether the first result is right.

``found`` are the ids of the results, best first. ``evidence`` has one set of ids for each memory that answers the
question: a memory may be stored as several rows, and any of these counts as the memory.

Source: docs/quality.md "How it is measured"; Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR
techniques", ACM TOIS 2002.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Final

Evidence = Sequence[Collection[str]]

RANKS: Final = 10
"""The number of results that nDCG and the first recall look at."""


def evidence_recall(found: Sequence[str], evidence: Evidence, k: int) -> float:
    """Return the share of the evidence with a row among the first ``k``."""
    first = set(found[:k])
    return sum(not first.isdisjoint(rows) for rows in evidence) / len(evidence)


def hit_at_1(found: Sequence[str], evidence: Evidence) -> float:
    """Return 1 if the first result is a row of the evidence, else 0."""
    return float(bool(found) and any(found[0] in rows for rows in evidence))


def ndcg(found: Sequence[str], evidence: Evidence, k: int = RANKS) -> float:
    """Return the normalised discounted cumulative gain: each memory counts once, at its first row."""
    missing = list(evidence)
    gain = 0.0
    for rank, row in enumerate(found[:k]):
        held = [rows for rows in missing if row in rows]
        if held:
            missing = [rows for rows in missing if row not in rows]
            gain += 1 / math.log2(rank + 2)
    ideal = sum(1 / math.log2(rank + 2) for rank in range(min(k, len({frozenset(rows) for rows in evidence}))))
    return gain / ideal


def measure_names(limit: int) -> tuple[str, ...]:
    """Return the names of the ``scores`` of rankings with at most ``limit`` results."""
    last = () if limit <= RANKS else (f"R@{limit}",)
    return ("hit@1", f"R@{min(limit, RANKS)}", *last, f"nDCG@{min(limit, RANKS)}")


def scores(found: Sequence[str], evidence: Evidence, limit: int) -> tuple[float, ...]:
    """Return the measures of one question, each in [0, 1], in the order of ``measure_names``."""
    first = min(limit, RANKS)
    last = () if limit <= RANKS else (evidence_recall(found, evidence, limit),)
    return (
        hit_at_1(found, evidence),
        evidence_recall(found, evidence, first),
        *last,
        ndcg(found, evidence, first),
    )
