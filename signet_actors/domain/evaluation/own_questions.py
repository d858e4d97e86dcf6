"""Questions made from the memories themselves: some informative words of a memory, in another order.

The rarest word is left out where enough others remain, because alone it would find the memory. Such questions use the
words of the memory, so they say less about paraphrases than questions of people do: they are made to compare settings
on a store without labels.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Final

from signet_actors.domain.evaluation.question_set import Question, QuestionSet, StoredText, evenly_chosen
from signet_actors.domain.query_words import query_terms
from signet_actors.domain.stop_words import STOP_WORDS

MOST_WORDS: Final = 4
LEAST_WORDS: Final = 2
_SCANNED_CHARS: Final = 2000


def own_questions(memories: Sequence[StoredText], agent: str | None, count: int) -> QuestionSet:
    """Return the memories with at most ``count`` questions about them, evenly chosen; the same for the same store."""
    words = [_words(memory) for memory in memories]
    holding = Counter(word for one in words for word in one)
    asked = []
    for memory, own in zip(memories, words, strict=True):
        rare = sorted(own, key=lambda word: (holding[word], word))
        chosen = rare[1 : MOST_WORDS + 1] if len(rare) > MOST_WORDS else rare[:MOST_WORDS]
        if len(chosen) >= LEAST_WORDS:
            text = " ".join(sorted(chosen, key=lambda word: _digest(memory.key, word)))
            asked.append(Question(text, memory.line.get("type") or "", (memory.key,), agent, memory.line.get("scope")))
    return QuestionSet(memories, evenly_chosen(asked, count))


def _words(memory: StoredText) -> list[str]:
    """Return the different words and the CJK runs of the memory, without stop words, numbers and single letters."""
    terms = query_terms(str(memory.line["content"])[:_SCANNED_CHARS])
    words = (word for word in terms.words if len(word) > 1 and not word.isdecimal() and word not in STOP_WORDS)
    return list(dict.fromkeys((*words, *terms.cjk)))


def _digest(key: str, word: str) -> bytes:
    return hashlib.sha256(f"{key}\0{word}".encode()).digest()
