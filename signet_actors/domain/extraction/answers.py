"""The answer formats requested from models, as JSON Schemas for servers that support structured output.

A server may ignore a schema, so the parsers accept any answer. Every field is required and no other field is allowed,
because that is the part of JSON Schema that all these servers support.

Source: memory-pipeline.txt "Extraction Stage", "Decision Stage", "Prospective Indexing (Hints)", "Semantic
Contradiction Detection"; wire format: Ollama's API reference, "Structured outputs"; OpenAI's, "Structured Outputs".
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from signet_actors.domain.extraction.facts import MAX_ENTITIES, MAX_FACTS

_MAX_HINTS: Final = 20
_MAX_JUDGED: Final = 50
_MAX_QUERIES: Final = 7
_OMITTED_KEYS: Final = frozenset({"title", "description"})

Confidence = Annotated[float, Meta(ge=0, le=1)]


class AnswerFormat(Struct, frozen=True):
    """A JSON Schema and its name, which some servers require."""

    name: str
    schema: dict[str, Any]


class _Fact(Struct, forbid_unknown_fields=True):
    content: str
    type: Literal["fact", "preference", "decision", "procedural", "semantic"]
    confidence: Confidence


class _Relation(Struct, forbid_unknown_fields=True):
    source: str
    relationship: str
    target: str
    confidence: Confidence


class _Extraction(Struct, forbid_unknown_fields=True):
    facts: Annotated[list[_Fact], Meta(max_length=MAX_FACTS)]
    entities: Annotated[list[_Relation], Meta(max_length=MAX_ENTITIES)]


class _Decision(Struct, forbid_unknown_fields=True, rename="camel"):
    action: Literal["add", "update", "delete", "none"]
    target_id: int | None
    confidence: Confidence
    reason: str


class _Contradiction(Struct, forbid_unknown_fields=True):
    contradicts: bool
    confidence: Confidence
    reasoning: str


class _Hints(Struct, forbid_unknown_fields=True):
    hints: Annotated[list[str], Meta(max_length=_MAX_HINTS)]


class _Summary(Struct, forbid_unknown_fields=True):
    summary: str


class _Queries(Struct, forbid_unknown_fields=True):
    queries: Annotated[list[str], Meta(max_length=_MAX_QUERIES)]


class _Aggregate(Struct, forbid_unknown_fields=True):
    answer: str
    sources: Annotated[list[int], Meta(max_length=_MAX_JUDGED)]


class _SessionSummary(Struct, forbid_unknown_fields=True):
    title: str
    summary: str


class _MemoryRelevance(Struct, forbid_unknown_fields=True):
    id: str
    relevance: Confidence


class _SessionScore(Struct, forbid_unknown_fields=True):
    score: Confidence
    confidence: Confidence
    memories_used: int
    novel_context_count: int
    reasoning: str
    per_memory: Annotated[list[_MemoryRelevance], Meta(max_length=_MAX_JUDGED)]


class _Aspect(Struct, forbid_unknown_fields=True):
    i: int
    aspect: str
    kind: Literal["attribute", "constraint"]
    new: bool


class _Classification(Struct, forbid_unknown_fields=True):
    type: str
    facts: list[_Aspect]


def _format(name: str, shape: type[Struct]) -> AnswerFormat:
    """Return the schema of ``shape`` with an object at the root and without references, which some servers reject."""
    schema = msgspec.json.schema(shape)
    return AnswerFormat(name, _resolved(schema, schema["$defs"]))


def _resolved(value: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [_resolved(item, definitions) for item in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        return _resolved(definitions[value["$ref"].rpartition("/")[2]], definitions)
    return {key: _resolved(item, definitions) for key, item in value.items() if key not in _OMITTED_KEYS}


EXTRACTION: Final = _format("extraction", _Extraction)
DECISION: Final = _format("decision", _Decision)
CONTRADICTION: Final = _format("contradiction", _Contradiction)
HINTS: Final = _format("hints", _Hints)
SUMMARY: Final = _format("summary", _Summary)
QUERIES: Final = _format("queries", _Queries)
AGGREGATE: Final = _format("aggregate", _Aggregate)
SESSION_SUMMARY: Final = _format("session_summary", _SessionSummary)
SESSION_SCORE: Final = _format("session_score", _SessionScore)
CLASSIFICATION: Final = _format("classification", _Classification)
