"""Detect two texts about the same subject that contradict each other, by their words or by a model's answer.

The word check runs for every update and deletion. A model is asked only if configured. A missing or unreadable answer
counts as no contradiction.

Source: memory-pipeline.txt "Semantic Contradiction Detection", "Controlled Writes"; memory-system.txt "Contradiction
Detection"; docs/compatibility.md "Worked examples: contradiction".
Departs: "doesn't" and other contractions count as negations (the reference daemon misses them).
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from signet_actors.domain.extraction.facts import Warnings, confidence_of, short
from signet_actors.domain.extraction.llm_output import read_json

MIN_OVERLAP: Final = 2
MIN_SEMANTIC_OVERLAP: Final = 3
MIN_SEMANTIC_CONFIDENCE: Final = 0.7

_NEGATIONS: Final = """
    not no never cannot cant doesnt dont isnt wasnt wont without
    didnt arent werent hasnt havent hadnt couldnt shouldnt wouldnt mustnt neither nor none
"""
NEGATIONS: Final = frozenset(_NEGATIONS.split())
ANTONYMS: Final = (
    ("enabled", "disabled"),
    ("allow", "deny"),
    ("accept", "reject"),
    ("always", "never"),
    ("on", "off"),
    ("true", "false"),
)

_APOSTROPHE = re.compile(r"(?<=\w)['\u2019\u02bc](?=\w)")
_TOKEN = re.compile(r"[^\W_]{2,}")
_MAX_REASONING_CHARS: Final = 500


class SemanticAnswer(Struct, frozen=True):
    """A model's answer about two texts. ``contradicts`` is True only if its confidence reached the threshold."""

    contradicts: bool = False
    confidence: float = 0.0
    reasoning: str = ""
    parsed: bool = True


def contradiction_tokens(text: str) -> frozenset[str]:
    """Return the lower-case words of ``text`` with at least two characters. A contraction is one word.

    Departs: a word may contain letters of any script, so accents do not split it.
    """
    return frozenset(contradiction_words(text))


def contradiction_words(text: str) -> tuple[str, ...]:
    """Return the words of ``contradiction_tokens`` in their order."""
    return tuple(_TOKEN.findall(_APOSTROPHE.sub("", text.lower())))


def syntactic_contradiction(one: str, other: str) -> bool:
    """Return whether the texts share two words and only one of them is negated, or they use opposite words. Symmetric.

    A text that contains both words of an antonym pair is ignored for that pair.
    """
    left, right = contradiction_tokens(one), contradiction_tokens(other)
    if len(left & right) < MIN_OVERLAP:
        return False
    if left.isdisjoint(NEGATIONS) is not right.isdisjoint(NEGATIONS):
        return True
    for pair in ANTONYMS:
        sides = [[word in tokens for word in pair] for tokens in (left, right)]
        if sides in ([[True, False], [False, True]], [[False, True], [True, False]]):
            return True
    return False


def needs_semantic_check(action: str, one: str, other: str, *, enabled: bool) -> bool:
    """Return whether to ask a model: for an update with three shared words and no contradiction by the word check."""
    return (
        enabled
        and action == "update"
        and len(contradiction_tokens(one) & contradiction_tokens(other)) >= MIN_SEMANTIC_OVERLAP
        and not syntactic_contradiction(one, other)
    )


def parse_semantic(answer: str | bytes) -> SemanticAnswer:
    """Return the model's answer, or no contradiction if it cannot be read. Never raises."""
    output = read_json(answer, ("contradicts",))
    if not isinstance(output.value, dict):
        return SemanticAnswer(parsed=False)
    contradicts = output.value.get("contradicts")
    if isinstance(contradicts, str):
        contradicts = {"true": True, "false": False}.get(contradicts.strip().lower())
    if not isinstance(contradicts, bool):
        return SemanticAnswer(parsed=False)
    confidence = confidence_of(output.value.get("confidence"), Warnings())
    reasoning = output.value.get("reasoning")
    return SemanticAnswer(
        contradicts=contradicts and confidence >= MIN_SEMANTIC_CONFIDENCE,
        confidence=confidence,
        reasoning=short(reasoning, _MAX_REASONING_CHARS) if isinstance(reasoning, str) else "",
    )
