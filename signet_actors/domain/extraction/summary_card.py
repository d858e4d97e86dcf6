"""Parse the summary card that may precede recall results, and derive its id.

Source: memory-api.txt "Hybrid Recall" (``useExtractionModel``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from signet_actors.domain.extraction.facts import short
from signet_actors.domain.extraction.llm_output import read_json

SUMMARY_SOURCE: Final = "llm_summary"
MIN_LIMIT: Final = 2
"""There is no card for a smaller limit, so that a caller always gets a real memory to check it against."""

MAX_SUMMARY_CHARS: Final = 1_200


def summary_id(query: str, memory_ids: Sequence[str]) -> str:
    """Return ``summary:`` and twelve hex digits derived from the query and the ids of the summarized results."""
    digest = hashlib.sha1("\0".join((query, *memory_ids)).encode(errors="replace"), usedforsecurity=False)
    return f"summary:{digest.hexdigest()[:12]}"


def parse_summary(answer: str | bytes) -> str | None:
    """Return the summary, or None if the answer contains none. Never raises."""
    output = read_json(answer, ("summary",))
    summary = output.value.get("summary") if isinstance(output.value, dict) else None
    return (short(summary, MAX_SUMMARY_CHARS) or None) if isinstance(summary, str) else None
