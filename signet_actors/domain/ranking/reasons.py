"""The reasons of a recall as sentences, for the page, the command line and programs alike.

Source: docs/quality.md "Why is a memory there".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from signet_actors.domain.ranking.explanation import ExplainedId, Explanation

LEAST_POINTS: Final = 0.01
"""A stage that moved a score by less is no reason."""
CLOSE: Final = ((5.0, "close to"), (2.0, "related to"))
"""From which standing on a meaning is said to be so: without a word in common 6.5 make a memory likely."""
TELLING: Final = 0.9
"""From which coverage on the words that a memory lacks tell little."""
LIKELY: Final = 0.5
"""The relevance from which a memory likely answers."""
_WORD_CHARS: Final = 40
_STAGES: Final[dict[str, tuple[str, str]]] = {
    "subject": ("It is about the subject of what was asked.", ""),
    "question": ("", "It asks something itself."),
    "time": ("It tells a time, which was asked for.", ""),
    "number": ("It has a number, which was asked for.", ""),
    "date": ("Its date is near the one that was asked for.", ""),
    "neighbours": ("What was said right before or after it fits, too.", ""),
    "answer": ("It follows a question that fits.", ""),
    "episode": ("Other things that were said in the same conversation fit, too.", ""),
    "traversal": ("The knowledge graph leads to it.", ""),
    "gravity": ("", "It shares no word with what was asked."),
    "hub": ("", "It is about something that very many memories are about."),
    "resolution": ("It decides something, or names a date.", ""),
    "outside_window": ("", "It is outside the time that was asked for."),
    "rerank": ("Its meaning put it higher.", "Its meaning put it lower."),
    "newest_first": ("It is newer than what says the same.", ""),
    "exact_match": ("It has the exact name that was asked for.", ""),
}
"""What a stage says that raised a score, and that lowered it. The others only make scores comparable."""
_BESIDE: Final = frozenset({"neighbours", "answer", "episode"})
"""Stages that raise what was said beside something that fits; no reason for a memory that itself fits too little."""
OUTCOMES: Final[dict[str, str]] = {
    "returned": "it is among the results, at rank {rank}",
    "beyond_limit": "it is at rank {rank}, beyond the limit of {threshold:g}",
    "already_recalled": "the session already had it",
    "below_min_score": "its score of {value:.3f} before priors and context is below the minimum {threshold:g}",
    "below_min_relevance": "its relevance {value:.3f} is below the minimum {threshold:g}",
    "not_a_candidate": "others match better by words and by meaning",
    "filtered": "it is left out by the filter {filters}",
    "not_found": "there is no such memory, or this agent may not read it",
}
"""What became of a memory; the values are those of ``ExplainedId``."""


def with_reasons(explanation: Explanation) -> Explanation:
    """Return the explanation with its sentences, ``because``."""
    held, missing = explanation.terms, explanation.missing_terms
    said = []
    if held:
        words = len(held) + len(missing)
        asked = "word that was" if words == 1 else "words that were"
        said.append(f"It has {len(held)} of {words} {asked} asked for: {_listed(held)}.")
        if missing:
            said.append(f"It lacks {_listed(missing)}{', which tells little' * (explanation.coverage >= TELLING)}.")
    elif missing:
        said.append("It has none of the words that were asked for.")
    if explanation.similar_terms:
        said.append(f"It has words that resemble a missing one: {_listed(explanation.similar_terms)}.")
    for leg in explanation.legs:
        if leg.leg == "vector" and explanation.standing is not None:
            near = next((word for least, word in CLOSE if explanation.standing >= least), "far from")
            said.append(f"Its meaning is {near} what was asked.")
        if leg.leg == "hint" and leg.rank is not None:
            said.append("It was stored with a hint of such a question.")
    if explanation.path:
        said.append(f"What was asked names what it is about: {' > '.join(map(_cut, explanation.path))}.")
    silent = _BESIDE if explanation.relevance < LIKELY else ()
    moves = [move for move in explanation.moves if abs(move.points) >= LEAST_POINTS and move.stage not in silent]
    said += [_STAGES.get(move.stage, ("", ""))[move.points < 0] for move in moves]
    return msgspec.structs.replace(explanation, because=list(filter(None, said)))


def with_why(fate: ExplainedId) -> ExplainedId:
    """Return the fate with its reason, ``why``."""
    values = {**msgspec.structs.asdict(fate), "filters": ", ".join(fate.filters)}
    return msgspec.structs.replace(fate, why=OUTCOMES[fate.outcome].format(**values))


def _listed(words: Sequence[str]) -> str:
    return ", ".join(map(_cut, words))


def _cut(word: str) -> str:
    return word if len(word) <= _WORD_CHARS else f"{word[:_WORD_CHARS]}…"
