"""What can become of a memory that a hook or a recall has considered, and why.

Source: docs/guides/hooks.md "What was asked and given".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from signet_actors.domain.normalization import collapsed
from signet_actors.domain.text_cut import beginning_of

WORDS: Final[dict[str, str]] = {
    "given": "given",
    "cut": "given in part: it is longer than a line may be",
    "fact": "given as a fact about what the prompt names",
    "received": "this session has received it since its last compaction",
    "below_relevance": "less relevant than what is given",
    "doubtful": "it probably does not answer, and another memory surely does",
    "older_version": "a newer memory says the same or replaces it",
    "beyond_limit": "more relevant ones took all places",
    "no_room": "no room was left in the text",
    "repeated": "its words stand in a file or another memory that is given",
}
"""Each outcome as a person reads it."""
FATES: Final[dict[str, str]] = {
    "not_searched": "nothing was searched for: the prompt has no words that tell what it is about",
    "not_found": "there is no such memory, or this agent may not read it",
    "forgotten": "it was forgotten",
    "filtered:project": "it belongs to another project",
    "filtered:no_project": "it belongs to a project, and the prompt came from none",
    "filtered:importance_min": "its importance is below 0.3",
    "filtered:scope": "it is in another scope",
    "not_a_candidate": "it shares no word with the prompt and is not near to it by meaning",
    "below_min_score": "it matches the prompt too weakly",
    "below_min_relevance": "less relevant than hooks.userPromptSubmit.minScore",
    "already_recalled": WORDS["received"],
    "beyond_limit": WORDS["beyond_limit"],
    "returned": "it was found, and an entity or another search took its place",
}
"""What becomes of a memory that no search of a prompt has returned."""
GIVEN: Final[frozenset[str]] = frozenset({"given", "cut", "fact"})
HEAD_CHARS: Final = 300
"""Of what was asked; the rest is not kept."""
LEFT_OUT: Final = 20
"""Memories that were left out, of one search; the best are kept."""


def head(text: str) -> str | None:
    """Return the beginning of a text on one line, None of a blank one."""
    return beginning_of(collapsed(text), HEAD_CHARS) or None


def first_left_out(outcomes: Sequence[str]) -> list[int]:
    """Return the positions of what is kept: all that was given, and the first ``LEFT_OUT`` others."""
    kept, left = [], 0
    for at, outcome in enumerate(outcomes):
        left += outcome not in GIVEN
        if outcome in GIVEN or left <= LEFT_OUT:
            kept.append(at)
    return kept
