"""Texts that say that something was decided: what they say about an entity is a constraint.

Source: memory-pipeline.txt "Decision Auto-Protection".
"""

from __future__ import annotations

import re
from typing import Final

DECISION_IMPORTANCE: Final = 0.85
ATTRIBUTE_IMPORTANCE: Final = 0.5

_SOME: Final = r"(?:\S+\s+){1,8}?"
DECISION_PATTERNS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\bcho(?:se|sen)\s+(?:to\s+use\s+)?{_SOME}over\b",
        r"\bdecided\s+(?:to|on|against)\b",
        r"\bswitched\s+(?:from|to)\b",
        r"\bmigrated\s+(?:from|to|away)\b",
        rf"\bpicked\s+{_SOME}over\b",
        r"\bwent\s+with\b",
        r"\bsticking\s+with\b",
        r"\bcommitted\s+to\b",
        r"\bsettled\s+on\b",
        r"\bwill\s+(?:use|go\s+with|stick\s+with)\b",
        rf"\bprefers?\s+{_SOME}(?:over|instead|rather)\b",
        r"\badopted\b",
        r"\barchitecture\s+decision\b",
        r"\bdesign\s+decision\b",
    )
)
"""Fourteen forms. X in "chose X over Y" has at most eight words."""


def is_decision_content(text: str) -> bool:
    """Return whether any pattern matches."""
    return any(pattern.search(text) for pattern in DECISION_PATTERNS)
