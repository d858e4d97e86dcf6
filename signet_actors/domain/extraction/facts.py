"""Parse a model's answer about a memory into at most 20 facts and 50 entity triples, each within its bounds.

Never raises: an invalid item is dropped or corrected, with a warning.

Source: memory-pipeline.txt "Extraction Stage"; memory-system.txt "Extraction"; docs/compatibility.md "Worked examples:
extraction parsing".
Departs: from the reference daemon, which requires facts of at least 20 characters and keeps at most 15 triples; the
specification says 10 and 50.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct, structs

from signet_actors.domain.extraction.llm_output import read_json
from signet_actors.domain.normalization import collapsed, content_hash

FACT_TYPES: Final = ("fact", "preference", "decision", "procedural", "semantic")
DEFAULT_FACT_TYPE: Final = "fact"
DEFAULT_CONFIDENCE: Final = 0.5
"""Used if the answer states no confidence. It is below the default threshold for writing, so the fact is recorded but
not stored.
"""

MAX_FACTS: Final = 20
MAX_ENTITIES: Final = 50
MIN_FACT_CHARS: Final = 10
MAX_FACT_CHARS: Final = 2_000
MIN_INPUT_CHARS: Final = 20
MAX_INPUT_CHARS: Final = 12_000
MAX_NAME_CHARS: Final = 200
TRUNCATED: Final = " [truncated]"

UNPARSEABLE: Final = "Failed to parse LLM output as JSON"

_MAX_WARNINGS: Final = 40
_MAX_WARNING_CHARS: Final = 160
_MAX_ITEMS_READ: Final = 1_000
_FACT_KEYS: Final = ("facts", "entities")


class Fact(Struct, frozen=True):
    """One fact to keep. ``content`` is in storage form, ``type`` one of ``FACT_TYPES``, ``confidence`` in [0, 1]."""

    content: str
    type: str
    confidence: float


class RejectedFact(Struct, frozen=True):
    """A fact that never became a proposal, and why."""

    fact: Fact
    reason: str


class EntityTriple(Struct, frozen=True):
    """``source`` stands in ``relationship`` to ``target``. No name is empty; the types may be unknown."""

    source: str
    relationship: str
    target: str
    confidence: float = 0.0
    source_type: str | None = None
    target_type: str | None = None


class ExtractionResult(Struct, frozen=True):
    """The parsed content of one answer. ``parsed`` is False if it contained no JSON; the job is then worth a retry.

    ``repaired`` counts repairs of the JSON. ``dropped`` counts dropped items: cut off, malformed, too short, over a
    limit, or duplicates.
    """

    facts: tuple[Fact, ...] = ()
    entities: tuple[EntityTriple, ...] = ()
    warnings: tuple[str, ...] = ()
    repaired: int = 0
    dropped: int = 0
    parsed: bool = True


class Warnings:
    """Collects warnings in order, each shortened, up to the number that a job result can hold. Counts the rest."""

    def __init__(self) -> None:
        self._kept: list[str] = []
        self._more = 0

    def add(self, text: str) -> None:
        if len(self._kept) < _MAX_WARNINGS:
            self._kept.append(short(text, _MAX_WARNING_CHARS))
        else:
            self._more += 1

    def all(self) -> tuple[str, ...]:
        return (*self._kept, f"and {self._more} more warnings") if self._more else tuple(self._kept)


def short(text: str, max_chars: int) -> str:
    """Return ``text`` on one line, cut to ``max_chars``."""
    text = collapsed(text[: 4 * max_chars])
    return text if len(text) <= max_chars else text[: max_chars - 1] + "\u2026"


def worth_extracting(content: str) -> bool:
    """Return whether ``content`` is long enough to ask a model. A shorter text is already a fact, or contains none."""
    return len(content.strip()) >= MIN_INPUT_CHARS


def prompt_input(content: str) -> str:
    """Return ``content`` for the prompt: at most ``MAX_INPUT_CHARS`` characters, with a marker if it was cut."""
    return content if len(content) <= MAX_INPUT_CHARS else content[:MAX_INPUT_CHARS] + TRUNCATED


def parse_extraction(answer: str | bytes) -> ExtractionResult:
    """Return the facts and triples in a model's ``answer``. Never raises."""
    output = read_json(answer, _FACT_KEYS)
    if not output.found:
        return ExtractionResult(warnings=(UNPARSEABLE,), parsed=False)
    warnings = Warnings()
    if output.repaired or output.dropped:
        warnings.add(f"Repaired LLM output: {', '.join(output.repairs)}")
    repaired, dropped = output.repaired, output.dropped
    raw_facts, raw_entities = _parts(output.value)
    lists: list[list[object]] = []
    for name, raw in (("facts", raw_facts), ("entities", raw_entities)):
        items, more_repaired, more_dropped = _items(name, raw, warnings)
        lists.append(items)
        repaired += more_repaired
        dropped += more_dropped
    facts, lost_facts = _facts(lists[0], warnings)
    entities, lost_entities = _entities(lists[1], warnings)
    return ExtractionResult(
        facts=facts,
        entities=entities,
        warnings=warnings.all(),
        repaired=repaired,
        dropped=dropped + lost_facts + lost_entities,
    )


def with_warnings(result: ExtractionResult, more: Iterable[str]) -> ExtractionResult:
    """Return ``result`` with further warnings appended."""
    return structs.replace(result, warnings=(*result.warnings, *more))


def _parts(value: object) -> tuple[object, object]:
    """Return the raw facts and raw triples of a document. A bare array or a bare item is classified by its shape."""
    if isinstance(value, dict):
        if any(key in value for key in _FACT_KEYS):
            return value.get("facts"), value.get("entities")
        value = [value] if value else []
    if not isinstance(value, list):
        return None, None
    triples = [item for item in value if isinstance(item, dict) and "source" in item and "target" in item]
    facts = [item for item in value if not (isinstance(item, dict) and "source" in item and "target" in item)]
    return facts, triples


def _items(name: str, raw: object, warnings: Warnings) -> tuple[list[object], int, int]:
    """Return the items of an array, the repairs and the dropped count. An array encoded in a string is decoded."""
    repaired = dropped = 0
    if isinstance(raw, str):
        inner = read_json(raw)
        raw, repaired, dropped = inner.value, inner.repaired + inner.found, inner.dropped
    if raw is None:
        return [], repaired, dropped
    if isinstance(raw, dict):
        raw, repaired = [raw], repaired + 1
    if not isinstance(raw, list):
        warnings.add(f"Not an array: {name}")
        return [], repaired, dropped + 1
    return raw, repaired, dropped


def _facts(items: Sequence[object], warnings: Warnings) -> tuple[tuple[Fact, ...], int]:
    facts: dict[str, Fact] = {}
    for index, item in enumerate(items):
        if len(facts) >= MAX_FACTS or index >= _MAX_ITEMS_READ:
            warnings.add(f"Too many facts: kept {len(facts)} of {len(items)}")
            break
        fact = _fact(item, warnings)
        if fact is None:
            continue
        key = content_hash(fact.content)
        if key in facts:
            warnings.add(f"Duplicate fact: {short(fact.content, 80)}")
        else:
            facts[key] = fact
    return tuple(facts.values()), len(items) - len(facts)


def _fact(item: object, warnings: Warnings) -> Fact | None:
    if isinstance(item, str):
        item = {"content": item}
    if not isinstance(item, dict):
        warnings.add("Fact is not an object")
        return None
    content = item.get("content")
    if not isinstance(content, str):
        warnings.add("Fact without content")
        return None
    content = collapsed(content)
    if len(content) < MIN_FACT_CHARS:
        warnings.add(f"Fact too short ({len(content)} chars): {content}")
        return None
    if len(content) > MAX_FACT_CHARS:
        warnings.add(f"Fact truncated from {len(content)} to {MAX_FACT_CHARS} chars: {short(content, 60)}")
        content = content[:MAX_FACT_CHARS].rstrip()
    return Fact(content, _fact_type(item.get("type"), warnings), confidence_of(item.get("confidence"), warnings))


def _fact_type(raw: object, warnings: Warnings) -> str:
    name = raw.strip().lower() if isinstance(raw, str) and len(raw) < 200 else None
    if name in FACT_TYPES:
        return name
    warnings.add(f"Invalid fact type {_shown(raw)}, using {DEFAULT_FACT_TYPE}")
    return DEFAULT_FACT_TYPE


def _shown(raw: object) -> str:
    """Return a value for a warning. A container, which may be deeply nested, is shown only by its type."""
    if raw is None:
        return "(none)"
    if isinstance(raw, str):
        return f'"{short(raw, 40)}"'
    return str(raw)[:40] if isinstance(raw, bool | float) else type(raw).__name__


def confidence_of(raw: object, warnings: Warnings, *, quoted: bool = True) -> float:
    """Return a confidence in [0, 1]: a clamped number, a parsed string (``0.9``, ``90%``), or the default.

    True and NaN do not count as numbers. Unless ``quoted``, the warning names only the type of the invalid value.
    """
    number: float | None = None
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        try:
            number = float(raw)
        except OverflowError:
            number = 1.0 if raw > 0 else 0.0
    elif isinstance(raw, str) and len(raw) <= 40:
        percent = raw.strip().endswith("%")
        try:
            number = float(raw.strip().rstrip("% ").replace("_", "x")) / (100 if percent else 1)
        except ValueError:
            number = None
    if number is None or math.isnan(number):
        shown = _shown(raw) if quoted else type(raw).__name__
        warnings.add(f"Invalid confidence {shown}, using {DEFAULT_CONFIDENCE}")
        return DEFAULT_CONFIDENCE
    return min(max(number, 0.0), 1.0)


def _entities(items: Sequence[object], warnings: Warnings) -> tuple[tuple[EntityTriple, ...], int]:
    triples: dict[tuple[str, str, str], EntityTriple] = {}
    for index, item in enumerate(items):
        if len(triples) >= MAX_ENTITIES or index >= _MAX_ITEMS_READ:
            warnings.add(f"Too many entities: kept {len(triples)} of {len(items)}")
            break
        triple = _entity(item, warnings)
        if triple is not None:
            triples.setdefault((triple.source.lower(), triple.relationship.lower(), triple.target.lower()), triple)
    return tuple(triples.values()), len(items) - len(triples)


def _entity(item: object, warnings: Warnings) -> EntityTriple | None:
    if not isinstance(item, dict):
        warnings.add("Entity is not an object")
        return None
    names: list[str] = []
    for part in ("source", "relationship", "target"):
        raw = item.get(part)
        name = collapsed(raw) if isinstance(raw, str) else ""
        if not name:
            warnings.add(f"Entity without {part}")
            return None
        if len(name) > MAX_NAME_CHARS:
            warnings.add(f"Entity {part} too long ({len(name)} chars)")
            return None
        names.append(name)
    source, relationship, target = names
    return EntityTriple(
        source=source,
        relationship=relationship,
        target=target,
        confidence=confidence_of(item.get("confidence"), warnings),
        source_type=_entity_type(item, "source_type", "sourceType"),
        target_type=_entity_type(item, "target_type", "targetType"),
    )


def _entity_type(item: dict[object, object], *spellings: str) -> str | None:
    for spelling in spellings:
        raw = item.get(spelling)
        if isinstance(raw, str) and 0 < len(raw) <= MAX_NAME_CHARS:
            return collapsed(raw).lower() or None
    return None
