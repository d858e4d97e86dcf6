"""Find what a prompt is about: its terms, and the text with which memories are searched.

Metadata that a harness puts into a prompt is not part of what the user said. Each scanner takes linear time.

Source: docs/compatibility.md "Worked examples: prompt terms".
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from signet_actors.domain.normalization import MAYBE_CJK
from signet_actors.domain.query_words import MAX_QUERY_CHARS, words_of
from signet_actors.domain.stop_words import stop_words_of

MAX_TERMS: Final = 12
LEAST_TERMS: Final = 2
"""So many terms of the assistant's last message count beside fewer terms of the user's."""
MIN_CHARS: Final = 3

_FILLERS: Final = frozenset({"hello", "hey", "let", "lets", "okay", "please", "thank", "thanks", "use", "yes"})
"""Words of a request that say nothing about its subject."""
_MENTION: Final = re.compile(r"<@[!&]?\d{1,30}>")
_METADATA: Final = re.compile(r"untrusted[ -]metadata", re.IGNORECASE)
_FENCE: Final = "```"
_MAX_GAP_CHARS: Final = 100
"""Between the words that mark metadata and its block."""
_PUNCTUATION: Final = "!\"#$%&'()*,./:;<=>?@[\\]^_`{|}~-"


class PromptTerms(NamedTuple):
    """``terms``: of the prompt, and of the assistant's last message if it has few. ``search_text``: what to look for,
    empty if there is nothing."""

    terms: tuple[str, ...]
    search_text: str


def prompt_terms(prompt: str, last_assistant_message: str = "") -> PromptTerms:
    """Return what the prompt is about. A short prompt is searched for as it is, a long one by its first terms."""
    said = without_metadata(prompt[:MAX_QUERY_CHARS])
    own = _terms(said)
    others = [term for term in _terms(last_assistant_message[:MAX_QUERY_CHARS]) if term not in own]
    terms = tuple([*own, *others[: max(LEAST_TERMS, len(own))]][:MAX_TERMS])
    if len(own) >= LEAST_TERMS:
        text = " ".join(said.split()) if len(own) <= MAX_TERMS else " ".join(own[:MAX_TERMS])
    else:
        text = " ".join(terms)
    return PromptTerms(terms, text)


def without_metadata(prompt: str) -> str:
    """Return the prompt without mentions and without blocks of JSON that are marked as untrusted metadata."""
    kept: list[str] = []
    at = 0
    for mark in _METADATA.finditer(prompt):
        opening = prompt.find(_FENCE, mark.end(), mark.end() + _MAX_GAP_CHARS)
        closing = -1 if opening < 0 or mark.start() < at else prompt.find(_FENCE, opening + len(_FENCE))
        if closing < 0:
            continue
        kept.append(prompt[at : max(at, prompt.rfind("\n", at, mark.start()) + 1)])
        at = closing + len(_FENCE)
    kept.append(prompt[at:])
    return _MENTION.sub(" ", "".join(kept)).strip()


def _terms(text: str) -> list[str]:
    """Return hyphenated names and then words, in lower case and text order, each once."""
    lower = text.lower()
    hyphenated = (token.strip(_PUNCTUATION) for token in lower.split() if "-" in token)
    names = [token for token in hyphenated if "-" in token and all(part.isalnum() for part in token.split("-"))]
    words = words_of(lower)
    left_out = stop_words_of(words) | _FILLERS
    telling = (
        word
        for word in words
        if word not in left_out and not word.isdecimal() and (len(word) >= MIN_CHARS or MAYBE_CJK.search(word))
    )
    return list(dict.fromkeys([*names, *telling]))
