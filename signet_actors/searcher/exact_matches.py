"""Rows that have an exact name of the query, or of the text in which the query was found.

Source: docs/decisions.md 8; docs/quality.md rule 6 and "Pasted text".
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from signet_actors.domain.exact_names import ENOUGH, names_held
from signet_actors.domain.query_words import phrase_expression
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.searcher import Recall
from signet_actors.searcher.columns import Mask, Seqs
from signet_actors.searcher.legs.keyword import NO_ROWS, KeywordHits
from signet_actors.searcher.postings import MATCH
from signet_actors.searcher.reader import Reader
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads.contents import contents_by_seq

_MAX_IDENTIFIERS: Final = 64
"""Identifiers of one query that exact matches are looked for; further ones are ignored."""
_MAX_COMPARED: Final = 64
_MAX_COMPARED_CHARS: Final = 2_000_000
"""Of all rows of a query together: their comparison takes a tenth of a second at most."""
_LOOKUPS_NS: Final = 150_000_000
_RARE_ROWS: Final = 10
_RARE_SHARE: Final = 0.01
"""A name that more rows have does not tell one from the others."""

Scores = npt.NDArray[np.float64]


def rows_with_names(reader: Reader, snapshot: Snapshot, command: Recall, allowed: Mask) -> Seqs:
    """Return the allowed rows that have enough of the command's names, ascending.

    The most telling names come first; those that are left after ``_LOOKUPS_NS`` are not looked up.
    """
    if not command.names:
        return NO_ROWS
    rare = max(_RARE_ROWS, _RARE_SHARE * int(np.count_nonzero(allowed)))
    names_of: dict[int, dict[str, float]] = defaultdict(dict)
    until_ns = reader.clock.monotonic_ns() + _LOOKUPS_NS
    for name, weight in command.names.items():
        snapshot.check_preempted()
        if reader.clock.monotonic_ns() > until_ns:
            break
        # The text index stores parts of words only, so its rows may have the name.
        rows = reader.postings.lookup(snapshot, MATCH, phrase_expression(name))
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
        for seq, text in _texts(snapshot, command.read, compared)
        if sum(names_of[seq][name] for name in names_held(text, names_of[seq])) >= ENOUGH
    ]
    return np.array(sorted(found), np.int64)


def _texts(snapshot: Snapshot, read: ReadScope, seqs: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Yield the readable rows with their texts in lower case, as far as those may be compared."""
    contents = contents_by_seq(snapshot, read, seqs)
    left = _MAX_COMPARED_CHARS
    for seq in seqs:
        snapshot.check_preempted()
        text = contents.get(seq, "")[:left]
        left -= len(text)
        if text:
            yield seq, text.lower()


def lift_exact_matches(
    snapshot: Snapshot, command: Recall, keyword_hits: KeywordHits, named: Seqs, seqs: Seqs, scores: Scores
) -> tuple[Scores, Mask]:
    """Return the scores, raised for exact matches, and which these are: ``named`` ones and rows with an identifier.

    A raised score lies between the best other score and 1; it equals the best other one if that is 1. All other scores
    stay as they are, so that ``min_score`` keeps its meaning.
    """
    is_exact = np.isin(seqs, named)
    identifiers = keyword_hits.identifiers[:_MAX_IDENTIFIERS]
    candidates = seqs[np.isin(seqs, keyword_hits.identifier_hits)] if identifiers else seqs[:0]
    if len(candidates):
        # The text index stores parts of words only. KA-6 must not match KA-61, nor read_config match read_configs.
        whole = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, identifiers))})(?!\w)")
        texts = _texts(snapshot, command.read, candidates.tolist())
        is_exact |= np.isin(seqs, [seq for seq, text in texts if whole.search(text)])
    if not is_exact.any():
        return scores, is_exact
    best_other = float(scores[~is_exact].max(initial=0.0))
    lifted = scores.copy()
    lifted[is_exact] = best_other + (1.0 - best_other) * (1.0 + scores[is_exact]) / 2.0
    return lifted, is_exact
