"""Parse the questions that a model suggests for a memory: few, short and distinct.

Source: memory-pipeline.txt "Prospective Indexing (Hints)".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from signet_actors.domain.extraction.facts import UNPARSEABLE, Warnings, short
from signet_actors.domain.extraction.llm_output import read_json
from signet_actors.domain.normalization import collapsed, content_hash

MIN_HINT_CHARS: Final = 5
MAX_HINT_CHARS: Final = 300
_KEYS: Final = ("hints", "questions", "queries")
_TEXT_KEYS: Final = ("hint", "question", "query", "text")
_MAX_ITEMS_READ: Final = 200


class Hints(Struct, frozen=True):
    """The hints of one answer, each on one line. ``parsed`` is False if the answer contained no JSON."""

    hints: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    repaired: int = 0
    dropped: int = 0
    parsed: bool = True


def parse_hints(answer: str | bytes, content: str, max_count: int) -> Hints:
    """Return at most ``max_count`` hints for the memory ``content``, except those that only repeat it. Never raises."""
    output = read_json(answer, _KEYS)
    if not output.found:
        return Hints(warnings=(UNPARSEABLE,), parsed=False)
    raw = output.value
    if isinstance(raw, dict):
        raw = next((raw[key] for key in _KEYS if key in raw), None)
    if not isinstance(raw, list):
        return Hints(warnings=("Not an array: hints",), repaired=output.repaired, dropped=output.dropped)
    warnings = Warnings()
    hints = _valid(raw, content, max_count, warnings)
    return Hints(hints, warnings.all(), output.repaired, output.dropped + len(raw) - len(hints))


def _valid(raw: Sequence[object], content: str, max_count: int, warnings: Warnings) -> tuple[str, ...]:
    hints: dict[str, str] = {}
    itself = content_hash(content.rstrip(" ?"))
    for index, item in enumerate(raw):
        if len(hints) >= max_count or index >= _MAX_ITEMS_READ:
            warnings.add(f"Too many hints: kept {len(hints)} of {len(raw)}")
            break
        text = next((item[key] for key in _TEXT_KEYS if key in item), None) if isinstance(item, dict) else item
        if not isinstance(text, str):
            warnings.add("Hint is not a string")
            continue
        hint = collapsed(text)
        if not MIN_HINT_CHARS <= len(hint) <= MAX_HINT_CHARS:
            warnings.add(f"Hint of {len(hint)} chars: {short(hint, 60)}")
            continue
        key = content_hash(hint.rstrip(" ?"))
        if key != itself:
            hints.setdefault(key, hint)
    return tuple(hints.values())
