"""What can become of a memory that a hook or a recall has considered, and why.

Source: docs/guides/hooks.md "What was asked and given".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from signet_actors.domain.normalization import collapsed
from signet_actors.domain.ranking.reasons import OUTCOMES
from signet_actors.domain.text_cut import beginning_of

WORDS: Final[dict[str, str]] = {
    "given": "given",
    "cut": "only its beginning was given, because it is long",
    "fact": "it tells something about what the prompt names",
    "pinned": "it is pinned, and every session is given what is pinned",
    "rule": "it is a rule, and every session is given the rules",
    "asked_lately": "it was asked for lately in this project",
    "last_session": "it tells what the last session was about",
    "important": "it is among the most important ones for this project",
    "received": OUTCOMES["already_recalled"],
    "below_relevance": "it fits too little",
    "doubtful": "it probably does not answer, and another memory does",
    "older_version": "a newer memory says the same or replaces it",
    "beyond_limit": "others fit better, and only so many are given",
    "no_room": "there was no room left",
    "repeated": "its words are already in what is given",
}
"""Each outcome as a person reads it."""
FATES: Final[dict[str, str]] = {
    "not_searched": "nothing was searched for, because the prompt does not say what it is about",
    "not_found": OUTCOMES["not_found"],
    "forgotten": "it was forgotten",
    "filtered:project": "it belongs to another project",
    "filtered:no_project": "it belongs to a project, and the prompt came from none",
    "filtered:importance_min": "its importance is below 0.3, the least that is given",
    "filtered:scope": "it is in another scope",
    "not_a_candidate": OUTCOMES["not_a_candidate"],
    "below_min_score": WORDS["below_relevance"],
    "below_min_relevance": "it fits too little: its relevance is below hooks.userPromptSubmit.minScore",
    "already_recalled": WORDS["received"],
    "beyond_limit": WORDS["beyond_limit"],
    "returned": "it was found, and an entity or another search took its place",
}
"""What becomes of a memory that no search of a prompt has returned."""
WHOLE: Final = ("given", "pinned", "rule", "asked_lately", "last_session", "important")
"""Outcomes of a memory that was given whole; all but the first say why a start gave it."""
SKIPPED: Final[dict[str, str]] = {
    "already_started": "the session has had its start",
    "claimed": "another program serves this session",
    "disabled": "it is switched off in the settings",
}
"""Why a hook did nothing, as a person reads it; others are their own words."""
GIVEN: Final[frozenset[str]] = frozenset({*WHOLE, "cut", "fact"})
HEAD_CHARS: Final = 300
"""Of what was asked; the rest is not kept."""
LEFT_OUT: Final = 20
"""Memories that were left out, of one search; the best are kept."""


def head(text: str) -> str | None:
    """Return the beginning of a text on one line, None of a blank one."""
    return beginning_of(collapsed(text), HEAD_CHARS) or None


def outcome_of(given: int, skipped: str | None, *, had_what_fits: bool) -> str:
    """Return what came of a hook or a search in a few words. ``had_what_fits``: its session had a memory that fits."""
    if skipped:
        return f"not asked: {SKIPPED.get(skipped, skipped.replace('_', ' '))}"
    if given:
        return "given 1 memory" if given == 1 else f"given {given:,} memories"
    return "nothing new, because the session had what fits" if had_what_fits else "no memory fits"


def first_left_out(outcomes: Sequence[str]) -> list[int]:
    """Return the positions of what is kept: all that was given, and the first ``LEFT_OUT`` others."""
    kept, left = [], 0
    for at, outcome in enumerate(outcomes):
        left += outcome not in GIVEN
        if outcome in GIVEN or left <= LEFT_OUT:
            kept.append(at)
    return kept
