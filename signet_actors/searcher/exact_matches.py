"""Rows that have an exact name of the query, or of the text in which the query was found.

Source: docs/decisions.md 8; docs/quality.md rule 6 and "Pasted text".
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Final

import numpy as np
import numpy.typing as npt

from signet_actors.domain.exact_names import ENOUGH, holds
from signet_actors.domain.query_words import phrase_expression
from signet_actors.protocol.searcher import Recall
from signet_actors.searcher.columns import Mask, Seqs
from signet_actors.searcher.legs.keyword import NO_ROWS, KeywordHits
from signet_actors.searcher.postings import MATCH, Postings
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads.contents import contents_by_seq

_MAX_IDENTIFIERS: Final = 64
"""Identifiers of one query that exact matches are looked for; further ones are ignored."""
_MAX_COMPARED: Final = 64
_RARE_ROWS: Final = 10
_RARE_SHARE: Final = 0.01
"""A name that more rows have does not tell one from the others."""

Scores = npt.NDArray[np.float64]


def rows_with_names(snapshot: Snapshot, postings: Postings, command: Recall, allowed: Mask) -> Seqs:
    """Return the allowed rows that have enough of the command's names, ascending."""
    if not command.names:
        return NO_ROWS
    rare = max(_RARE_ROWS, _RARE_SHARE * int(np.count_nonzero(allowed)))
    names_of: dict[int, dict[str, float]] = defaultdict(dict)
    for name, weight in command.names.items():
        snapshot.check_preempted()
        # The text index stores parts of words only, so its rows may have the name.
        rows = postings.lookup(snapshot, MATCH, phrase_expression(name))
        rows = rows[allowed[rows]]
        if len(rows) <= rare:
            for seq in rows.tolist():
                names_of[seq][name] = weight
    likely = {seq: total for seq, own in names_of.items() if (total := sum(own.values())) >= ENOUGH}
    compared = sorted(likely, key=lambda seq: (-likely[seq], -seq))[:_MAX_COMPARED]
    if not compared:
        return NO_ROWS
    found = [
        seq
        for seq, content in contents_by_seq(snapshot, command.read, compared).items()
        if sum(weight for name, weight in names_of[seq].items() if holds(content.lower(), name)) >= ENOUGH
    ]
    return np.array(sorted(found), np.int64)


def lift_exact_matches(
    snapshot: Snapshot, command: Recall, keyword_hits: KeywordHits, named: Seqs, seqs: Seqs, scores: Scores
) -> tuple[Scores, Mask]:
    """Return the scores, raised for exact matches, and which these are: ``named`` ones and rows with an identifier.

    A raised score lies between the best other score and 1; it equals the best other one if that is 1. All other scores
    stay as they are, so that ``min_score`` keeps its meaning.

    Source: docs/decisions.md 8; docs/quality.md rule 6.
    """
    is_exact = np.isin(seqs, named)
    identifiers = keyword_hits.identifiers[:_MAX_IDENTIFIERS]
    candidates = seqs[np.isin(seqs, keyword_hits.identifier_hits)] if identifiers else seqs[:0]
    # The text index stores parts of words only. KA-6 must not match KA-61, nor read_config match read_configs.
    whole = re.compile("|".join(rf"(?<!\w){re.escape(identifier)}(?!\w)" for identifier in identifiers))
    if len(candidates):
        contents = contents_by_seq(snapshot, command.read, candidates.tolist())
        is_exact |= np.isin(seqs, [seq for seq, content in contents.items() if whole.search(content.lower())])
    if not is_exact.any():
        return scores, is_exact
    best_other = float(scores[~is_exact].max(initial=0.0))
    lifted = scores.copy()
    lifted[is_exact] = best_other + (1.0 - best_other) * (1.0 + scores[is_exact]) / 2.0
    return lifted, is_exact
