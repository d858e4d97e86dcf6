"""What a model said about a memory becomes at most twenty facts and fifty triples, each within its bounds.

Nothing is raised: what does not fit is dropped or made to fit, and a warning says so.

Source: memory-pipeline.txt "Extraction Stage"; memory-system.txt "Extraction"; docs/compatibility.md
"Worked examples: extraction parsing".
Departs: from the reference daemon, which has facts of at least 20 characters and at most 15 triples; the specification
says 10 and 50.
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
"""Of an answer that states none: below the default threshold for writing, so that it is recorded and not stored."""

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
    """One thing worth keeping. ``content`` is in storage form, ``type`` one of ``FACT_TYPES``, ``confidence`` in
    [0, 1].
    """

    content: str
    type: str
    confidence: float


class EntityTriple(Struct, frozen=True):
    """``source`` stands in ``relationship`` to ``target``; no part is empty, types may be unknown."""

    source: str
    relationship: str
    target: str
    confidence: float
    source_type: str | None = None
    target_type: str | None = None


class ExtractionResult(Struct, frozen=True):
    """What one answer held. ``parsed`` is False where it held no JSON at all: the job is worth another attempt.

    ``repaired`` counts repairs of the JSON, ``dropped`` the items that were turned away: cut off, malformed, too
    short, over a cap, or said twice.
    """

    facts: tuple[Fact, ...] = ()
    entities: tuple[EntityTriple, ...] = ()
    warnings: tuple[str, ...] = ()
    repaired: int = 0
    dropped: int = 0
    parsed: bool = True


class Warnings:
    """Warnings in order, each short, and not more than a job's result can hold; how many more there were is said."""

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
    """``text`` on one line, cut to ``max_chars``."""
    text = collapsed(text[: 4 * max_chars])
    return text if len(text) <= max_chars else text[: max_chars - 1] + "\u2026"


def worth_extracting(content: str) -> bool:
    """Whether a model is asked at all; what is shorter is a fact already or none.

    Source: docs/compatibility.md "Worked examples: extraction parsing".
    """
    return len(content.strip()) >= MIN_INPUT_CHARS


def prompt_input(content: str) -> str:
    """``content`` as the prompt shows it: at most ``MAX_INPUT_CHARS`` characters, and a marker where more was cut."""
    return content if len(content) <= MAX_INPUT_CHARS else content[:MAX_INPUT_CHARS] + TRUNCATED


def parse_extraction(answer: str | bytes) -> ExtractionResult:
    """The facts and triples of a model's ``answer``. Never raises."""
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
    """``result`` with further warnings at its end."""
    return structs.replace(result, warnings=(*result.warnings, *more))


def _parts(value: object) -> tuple[object, object]:
    """The raw facts and the raw triples of a document; a bare array or one bare item is read as what it looks like."""
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
    """An array's items, what reading it repaired, and what that dropped; an array inside a string is taken out."""
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
    """A value for a warning; containers, which may be deep, only by their kind."""
    if raw is None:
        return "(none)"
    if isinstance(raw, str):
        return f'"{short(raw, 40)}"'
    return str(raw)[:40] if isinstance(raw, bool | float) else type(raw).__name__


def confidence_of(raw: object, warnings: Warnings, *, quoted: bool = True) -> float:
    """A confidence in [0, 1]: a number clamped, a number in a string read (``0.9``, ``90%``), else the default.

    True is no number here, and neither is NaN. Unless ``quoted`` the warning tells only the kind of what was there.
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
