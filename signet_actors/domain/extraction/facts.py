"""What one extraction found in a memory: facts, entity triples, and what was wrong with the rest.

Source: memory-pipeline.txt "Extraction Stage".
"""

from __future__ import annotations

import msgspec

FACT_TYPES = ("fact", "preference", "decision", "procedural", "semantic")
"""The types that a model may give a fact; anything else is a ``fact``."""


class Fact(msgspec.Struct, frozen=True):
    """One reusable statement; ``confidence`` lies in [0, 1]."""

    content: str
    type: str
    confidence: float


class EntityTriple(msgspec.Struct, frozen=True, omit_defaults=True):
    """Two named things and how the first relates to the second."""

    source: str
    relationship: str
    target: str
    confidence: float
    source_type: str | None = None
    target_type: str | None = None


class ExtractionResult(msgspec.Struct, frozen=True):
    """``repaired`` and ``dropped`` count what the model wrote otherwise than it was asked to."""

    facts: tuple[Fact, ...]
    entities: tuple[EntityTriple, ...]
    warnings: tuple[str, ...]
    repaired: int
    dropped: int
