"""Parse a model's judgement of how well memory served a session.

Source: memory-pipeline.txt "Continuity Scoring"; docs/compatibility.md "Continuity scoring".
Departs: a model knows a memory by the last eight characters of its id, because ours begin with a time, and memories of
the same minute would share the first eight.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from signet_actors.domain.extraction.facts import short
from signet_actors.domain.extraction.injected_text import without_injected
from signet_actors.domain.extraction.llm_output import read_json
from signet_actors.domain.normalization import sanitize_text
from signet_actors.features.session_scores.api import SessionScore

SHORT_ID_CHARS: Final = 8
MAX_REASONING_CHARS: Final = 1_000
_MAX_COUNT: Final = 1_000
_MAX_ITEMS_READ: Final = 200
_KEYS: Final = ("score", "per_memory")


def short_ids(memory_ids: Iterable[str]) -> dict[str, str]:
    """Return the memory of each short id; one that two memories share is left out."""
    ids = list(memory_ids)
    shared = Counter(memory_id[-SHORT_ID_CHARS:].lower() for memory_id in ids)
    return {short_id: each for each in ids if shared[short_id := each[-SHORT_ID_CHARS:].lower()] == 1}


def parse_session_score(answer: str | bytes, memories: Mapping[str, str], shown: int) -> SessionScore | None:
    """Return the judgement, None if the answer has no number as its score. Never raises.

    ``memories``: see ``short_ids``; other ids are ignored. ``shown``: the number of memories that can have been used.
    """
    output = read_json(answer, _KEYS)
    if not output.found or not isinstance(output.value, dict):
        return None
    said = output.value
    score = _share(said.get("score"))
    if score is None:
        return None
    reasoning = said.get("reasoning")
    text = without_injected(sanitize_text(reasoning))[0] if isinstance(reasoning, str) else ""
    return SessionScore(
        score=score,
        confidence=_share(said.get("confidence")) or 0.0,
        memories_used=min(_count(said.get("memories_used")), shown),
        novel_context_count=_count(said.get("novel_context_count")),
        reasoning=short(text, MAX_REASONING_CHARS),
        relevance=_relevance(said.get("per_memory"), memories),
    )


def _relevance(raw: object, memories: Mapping[str, str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for item in raw[:_MAX_ITEMS_READ] if isinstance(raw, list) else ():
        if not isinstance(item, dict) or not isinstance(named := item.get("id"), str):
            continue
        memory_id = memories.get(named.strip().strip("[]").lower()[-SHORT_ID_CHARS:])
        relevance = _share(item.get("relevance"))
        if memory_id is not None and relevance is not None:
            found.setdefault(memory_id, relevance)
    return found


def _share(value: object) -> float | None:
    """Return the number clamped to [0, 1], None if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return min(1.0, max(0.0, float(value)))


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0
    return min(_MAX_COUNT, max(0, int(value)))
