"""Words that more than a fifth of a scope's memories contain; the gateway leaves them out of the text that it embeds.

Such words blur a query vector. They are counted on an evenly spaced sample of the scope, which is exact enough: quality
is flat for thresholds between 10 and 30 %. The result is cached until the scope has grown or shrunk by a tenth, or the
reader's policy or group has changed.

Source: docs/quality.md rule 3.
"""

from __future__ import annotations

import zlib
from collections import Counter, OrderedDict
from dataclasses import dataclass

import numpy as np

from signet_actors.domain.query_words import words_of
from signet_actors.domain.stop_words import STOP_WORDS
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.searcher import CommonWords
from signet_actors.searcher.columns import Mask
from signet_actors.store.engine import Snapshot
from signet_actors.store.read_policy import Policy
from signet_actors.store.read_policy import resolve_policy as read_policy
from signet_actors.store.reads.contents import contents

SHARE = 0.2
SCOPE_AT_LEAST = 100
_SAMPLE = 500
_SCOPES = 256
_DRIFT = 0.1


@dataclass(frozen=True, slots=True)
class _CachedWords:
    policy: Policy
    rows: int
    words: CommonWords


class CommonWordsCache:
    """A bounded cache of common words by scope key; the least recently used are dropped first."""

    def __init__(self) -> None:
        self._scopes: OrderedDict[str, _CachedWords] = OrderedDict()

    def get(self, snapshot: Snapshot, scope_key: str, read: ReadScope, allowed: Mask) -> CommonWords:
        """Return the common words of the rows in the mask ``allowed`` that ``read`` may read."""
        rows = int(np.count_nonzero(allowed))
        policy = read_policy(snapshot, read)
        counted = self._scopes.get(scope_key)
        # A changed policy may admit the same number of rows but different ones. Words of hidden rows must not leak.
        if (
            counted is None
            or counted.policy != policy
            or abs(rows - counted.rows) > _DRIFT * max(counted.rows, SCOPE_AT_LEAST)
        ):
            words = self._count(snapshot, read, allowed) if rows >= SCOPE_AT_LEAST else []
            # The version is derived from the words, so that all searchers agree on it.
            version = zlib.crc32(" ".join(words).encode()) & 0x7FFFFFFF
            counted = _CachedWords(policy, rows, CommonWords(scope_key=scope_key, version=version, words=words))
            self._scopes[scope_key] = counted
            while len(self._scopes) > _SCOPES:
                self._scopes.popitem(last=False)
        self._scopes.move_to_end(scope_key)
        return counted.words

    def _count(self, snapshot: Snapshot, read: ReadScope, allowed: Mask) -> list[str]:
        seqs = np.flatnonzero(allowed)
        if len(seqs) > _SAMPLE:
            seqs = seqs[np.linspace(0, len(seqs) - 1, _SAMPLE).astype(np.int64)]
        holding: Counter[str] = Counter()
        for content in contents(snapshot, read, seqs.tolist()):
            holding.update(set(words_of(content)))
        least = SHARE * len(seqs)
        return sorted(word for word, count in holding.items() if count > least and word not in STOP_WORDS)
