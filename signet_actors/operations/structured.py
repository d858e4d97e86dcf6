"""What a caller states of the knowledge graph with a memory: the field ``structured`` of remember.

Source: memory-api.txt "POST /api/memory/remember" (structured); docs/decisions.md 67.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec

from signet_actors.domain.graph.names import MAX_NAME_CHARS, MIN_NAME_CHARS, canonical_name
from signet_actors.domain.normalization import collapsed, sanitize_text
from signet_actors.errors import InvalidRequest
from signet_actors.operations.field_types import ArgumentForm, FieldType, Given, SecretRule, Text

MAX_ENTITIES: Final = 50
MAX_ASPECTS: Final = 50
MAX_ATTRIBUTES: Final = 200
"""Of all aspects together."""
MAX_HINTS: Final = 20
MAX_HINT_CHARS: Final = 500
MAX_ATTRIBUTE_CHARS: Final = 2000
MAX_KEY_CHARS: Final = 200
NOT_AN_OBJECT: Final = "structured must be an object with entities and/or aspects arrays"

Stated = Annotated[str, Text(max_chars=MAX_ATTRIBUTE_CHARS, secret=SecretRule.CUT)]
Name = Annotated[str, Text(secret=SecretRule.REFUSE)]
"""Two names, or keys, must never become equal because each had a secret."""
Kind = Literal["attribute", "constraint"]


class StatedEntity(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """An entity; with ``relationship`` and ``target``, what it is to another one. ``confidence``: of that relation."""

    also_named: ClassVar = ("source", "sourceType", "source_type")
    name: Name
    type: Name | None = None
    relationship: Name | None = None
    target: Name | None = None
    target_type: Name | None = None
    confidence: Annotated[float | None, FieldType()] = None


class StatedAttribute(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A fact or a rule about an entity. A later one with the same ``claim_key`` in its group replaces it."""

    also_named: ClassVar = ("value",)
    content: Stated
    kind: Annotated[Kind, FieldType()] = "attribute"
    group_key: Name | None = None
    claim_key: Name | None = None
    confidence: Annotated[float | None, FieldType()] = None
    importance: Annotated[float | None, FieldType()] = None


class StatedAspect(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A side of an entity, and what is said about it."""

    also_named: ClassVar = ("entityName", "entity_name", "aspect")
    entity: Name
    name: Name
    entity_type: Name | None = None
    attributes: Annotated[tuple[StatedAttribute, ...], FieldType()] = ()


class Structured(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Everything that a caller states. ``hints`` are questions that the memory answers."""

    entities: Annotated[tuple[StatedEntity, ...], FieldType()] = ()
    aspects: Annotated[tuple[StatedAspect, ...], FieldType()] = ()
    hints: Annotated[tuple[str, ...], FieldType(secret=SecretRule.CUT)] = ()


@dataclass(frozen=True, kw_only=True)
class StructuredField(FieldType):
    """An object with ``entities``, ``aspects`` and ``hints``. All of it is read, or the request is refused."""

    argument: ClassVar[ArgumentForm] = ArgumentForm.JSON
    refuses_null: bool = True

    @property
    def schema(self) -> Mapping[str, Any]:
        text = {"type": "string"}
        attribute = {
            "type": "object",
            "required": ["content"],
            "properties": {
                "content": text,
                "kind": {"enum": ["attribute", "constraint"]},
                "groupKey": text,
                "claimKey": text,
                "confidence": {"type": "number"},
                "importance": {"type": "number"},
            },
        }
        return {
            "type": "object",
            "properties": {
                "entities": {"type": "array", "maxItems": MAX_ENTITIES, "items": {"type": "object", "properties": {
                    "source": text, "relationship": text, "target": text, "sourceType": text, "targetType": text,
                    "name": text, "type": text, "confidence": {"type": "number"}}}},
                "aspects": {"type": "array", "maxItems": MAX_ASPECTS, "items": {
                    "type": "object", "required": ["entity", "aspect", "attributes"], "properties": {
                        "entity": text, "entityType": text, "aspect": text,
                        "attributes": {"type": "array", "items": {"anyOf": [text, attribute]}}}}},
                "hints": {"type": "array", "maxItems": MAX_HINTS, "items": text},
            },
        }  # fmt: skip

    def read(self, given: Given) -> Structured:
        if not isinstance(given.value, dict) or given.value.keys().isdisjoint({"entities", "aspects", "hints"}):
            raise InvalidRequest(NOT_AN_OBJECT, field="structured")
        return read_structured(given.value)


def read_structured(value: Mapping[str, Any]) -> Structured:
    """Return what the object states. Raises InvalidRequest, which names the path of what is wrong."""
    aspects = tuple(_Object(item, at).aspect() for at, item in _items(value, "aspects", MAX_ASPECTS))
    if sum(len(aspect.attributes) for aspect in aspects) > MAX_ATTRIBUTES:
        raise InvalidRequest(f"structured.aspects must have at most {MAX_ATTRIBUTES} attributes", field="structured")
    hints = (_text(item, at, MAX_HINT_CHARS) for at, item in _items(value, "hints", MAX_HINTS))
    return Structured(
        entities=tuple(_Object(item, at).entity() for at, item in _items(value, "entities", MAX_ENTITIES)),
        aspects=aspects,
        hints=tuple(dict.fromkeys(hints)),
    )


def _items(value: Mapping[str, Any], name: str, most: int, of: str = "structured") -> list[tuple[str, Any]]:
    """Return the items of an array, each with its path."""
    items = value.get(name, [])
    path = f"{of}.{name}"
    if not isinstance(items, list):
        raise InvalidRequest(f"{path} must be an array", field=path)
    if len(items) > most:
        raise InvalidRequest(f"{path} must have at most {most} items", field=path)
    return [(f"{path}[{at}]", item) for at, item in enumerate(items)]


def _text(value: object, path: str, most: int) -> str:
    text = collapsed(sanitize_text(value)) if isinstance(value, str) else ""
    if not text:
        raise InvalidRequest(f"{path} must be a text", field=path)
    if len(text) > most:
        raise InvalidRequest(f"{path} must have at most {most} characters", field=path)
    return text


class _Object:
    """An object of the request, and its path."""

    def __init__(self, value: object, path: str) -> None:
        if not isinstance(value, dict):
            raise InvalidRequest(f"{path} must be an object", field=path)
        self._value: dict[str, Any] = value
        self._path = path

    def entity(self) -> StatedEntity:
        is_triple = any(self._value.get(name) is not None for name in ("source", "relationship", "target"))
        return StatedEntity(
            name=self._name("source", "name") if is_triple else self._name("name"),
            type=self._optional(*(("sourceType", "source_type") if is_triple else ()), "type"),
            relationship=self._required("relationship", most=MAX_NAME_CHARS) if is_triple else None,
            target=self._name("target") if is_triple else None,
            target_type=self._optional("targetType", "target_type") if is_triple else None,
            confidence=self._share("confidence"),
        )

    def aspect(self) -> StatedAspect:
        attributes = _items(self._value, "attributes", MAX_ATTRIBUTES, self._path)
        return StatedAspect(
            entity=self._name("entity", "entityName", "entity_name"),
            entity_type=self._optional("entityType", "entity_type"),
            name=self._required("aspect", "name", most=MAX_NAME_CHARS),
            attributes=tuple(
                StatedAttribute(content=_text(item, at, MAX_ATTRIBUTE_CHARS))
                if isinstance(item, str)
                else _Object(item, at).attribute()
                for at, item in attributes
            ),
        )

    def attribute(self) -> StatedAttribute:
        kind = self._value.get("kind", "attribute")
        if kind not in ("attribute", "constraint"):
            raise InvalidRequest(f"{self._path}.kind must be attribute or constraint", field=f"{self._path}.kind")
        return StatedAttribute(
            content=self._required("content", "value", most=MAX_ATTRIBUTE_CHARS),
            kind=kind,
            group_key=self._optional("groupKey", "group_key"),
            claim_key=self._optional("claimKey", "claim_key"),
            confidence=self._share("confidence"),
            importance=self._share("importance"),
        )

    def _found(self, names: tuple[str, ...]) -> tuple[str, object]:
        """Return the first spelling that is present, and its value; the documented one and None if none is."""
        name = next((name for name in names if name in self._value), names[0])
        return f"{self._path}.{name}", self._value.get(name)

    def _required(self, *names: str, most: int) -> str:
        path, value = self._found(names)
        if value is None:
            raise InvalidRequest(f"{path} is required", field=path)
        return _text(value, path, most)

    def _name(self, *names: str) -> str:
        name = self._required(*names, most=MAX_NAME_CHARS)
        if len(canonical_name(name)) < MIN_NAME_CHARS:
            path, _ = self._found(names)
            raise InvalidRequest(f"{path} must have at least {MIN_NAME_CHARS} characters", field=path)
        return name

    def _optional(self, *names: str) -> str | None:
        path, value = self._found(names)
        return None if value is None else _text(value, path, MAX_KEY_CHARS)

    def _share(self, name: str) -> float | None:
        path, value = self._found((name,))
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise InvalidRequest(f"{path} must be a number from 0 to 1", field=path)
        return float(value)
