"""Reads a request's Struct from what a caller sent.

Every field is accepted under the name that the API document shows, in camel case, in snake case and under the Struct's
name; the first spelling present counts, and null counts as absent. A plain type stands for its field type: ``str`` for
``Text()``, ``bool`` for ``Flag()``, ``float`` for ``Number()``, a ``Literal`` for ``Choice``, a Struct for ``Inner``.

Source: docs/compatibility.md "Query parsing", "Remember"; docs/decisions.md 30, 33.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from signet_actors.errors import InvalidRequest
from signet_actors.operations.field_types import ABSENT, ArgumentForm, Choice, FieldType, Flag, Given, Number, Text

RequestT = TypeVar("RequestT", bound=msgspec.Struct)

_CAPITAL: Final = re.compile("([A-Z])")
_AFTER_UNDERSCORE: Final = re.compile("_([a-z])")
_REF: Final = "#/components/schemas/{name}"
_PLAIN: Final[Mapping[Any, FieldType]] = {str: Text(), bool: Flag(), float: Number()}


@dataclass(frozen=True, kw_only=True)
class Inner(FieldType):
    """A JSON object with the fields of ``kind``."""

    argument: ClassVar[ArgumentForm] = ArgumentForm.JSON

    kind: type[msgspec.Struct]

    def read(self, given: Given) -> Any:
        if not isinstance(given.value, dict):
            raise given.invalid("must be an object")
        return read_request(self.kind, body=given.value, now_ms=given.now_ms, warnings=given.warnings)


@dataclass(frozen=True, kw_only=True)
class Items(FieldType):
    """An array of 1 to ``max_items`` values, as a list. The handler reads each as ``kind``, to refuse it alone."""

    argument: ClassVar[ArgumentForm] = ArgumentForm.JSON_LIST

    kind: type[msgspec.Struct]
    max_items: int
    missing: str = "{name} must be a non-empty array"

    @property
    def schema(self) -> Mapping[str, Any]:
        items = {"$ref": _REF.format(name=self.kind.__name__)}
        return {"type": "array", "items": items, "minItems": 1, "maxItems": self.max_items}

    def read(self, given: Given) -> Any:
        if not isinstance(given.value, list) or not given.value:
            raise InvalidRequest(self.missing.format(name=given.name), field=given.name)
        if len(given.value) > self.max_items:
            raise given.invalid(f"must be at most {self.max_items}")
        return given.value


class RequestField(NamedTuple):
    """A field of a request. ``spellings``: the accepted names, the documented one first."""

    name: str
    spellings: tuple[str, ...]
    type: FieldType
    required: bool
    default: Any


def read_request(
    kind: type[RequestT],
    *,
    body: Mapping[str, Any] | None = None,
    query: Mapping[str, str] | None = None,
    now_ms: int,
    warnings: list[str],
) -> RequestT:
    """Return the request in ``body`` and ``query``; a field of the body takes precedence.

    Unknown fields are ignored. Raises InvalidRequest.
    """
    values: dict[str, Any] = {}
    sources = [source for source in (body, query) if source is not None]
    for field in request_fields(kind):
        for source in sources:
            for name in field.spellings:
                if source.get(name) is not None:
                    break
            else:
                continue
            value = field.type.read(Given(name, source[name], field.default, source is query, now_ms, warnings))
            if value is not ABSENT:
                values[field.name] = value
            break
        if field.name in values:
            continue
        if field.type.null is not ABSENT and body is not None and _has_null(body, field.spellings):
            values[field.name] = field.type.null
        elif field.required:
            raise InvalidRequest(field.type.missing.format(name=field.name), field=field.spellings[0])
    return kind(**values)


def _has_null(body: Mapping[str, Any], names: tuple[str, ...]) -> bool:
    return any(body.get(name, ABSENT) is None for name in names)


@cache
def request_fields(kind: type[msgspec.Struct]) -> tuple[RequestField, ...]:
    """Return the fields of a request in order. Raises TypeError for a type that has no reader."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        RequestField(
            name=field.name,
            spellings=tuple(
                dict.fromkeys(
                    (field.encode_name, camel_case(field.encode_name), snake_case(field.encode_name), field.name)
                )
            ),
            type=_field_type(hints[field.name], f"{kind.__name__}.{field.name}"),
            required=field.required,
            default=None if field.required or field.default is msgspec.NODEFAULT else field.default,
        )
        for field in msgspec.structs.fields(kind)
    )


def request_schemas(kind: type[msgspec.Struct]) -> Mapping[str, Mapping[str, Any]]:
    """Return the JSON Schema of each field's values other than null, by the field's documented name."""
    _, components = msgspec.json.schema_components((kind,), ref_template=_REF)
    properties = components[kind.__name__]["properties"]
    return {field.spellings[0]: _schema(properties[field.spellings[0]], field.type) for field in request_fields(kind)}


def nullable_schemas(kind: type[msgspec.Struct], *, optional: bool = False) -> Mapping[str, Mapping[str, Any]]:
    """Return the JSON Schema of each field of a JSON body, where null stands for an absent field.

    With ``optional``, no field is required.
    """
    required = {field.spellings[0] for field in request_fields(kind) if field.required and not optional}
    return {
        name: schema if name in required else {"anyOf": [schema, {"type": "null"}]}
        for name, schema in request_schemas(kind).items()
    }


def inner_structs(kind: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    """Yield ``kind`` and the Structs of the objects and arrays in it."""
    yield kind
    for field in request_fields(kind):
        if isinstance(field.type, Inner | Items):
            yield from inner_structs(field.type.kind)


def _schema(generated: Mapping[str, Any], field_type: FieldType) -> Mapping[str, Any]:
    """Return msgspec's schema of a field with what its type adds, and without null."""
    branches = [branch for branch in generated.get("anyOf", ()) if branch != {"type": "null"}]
    if len(branches) == 1:
        generated = {**branches[0], **{key: value for key, value in generated.items() if key != "anyOf"}}
    added = field_type.schema
    if not added.keys().isdisjoint({"type", "anyOf"}):  # the caller sends another type than the request holds
        generated = {key: value for key, value in generated.items() if key in {"description", "default"}}
    schema = {**generated, **added}
    descriptions = [part["description"] for part in (generated, added) if "description" in part]
    if descriptions:
        schema["description"] = ". ".join(descriptions)
    default = schema.pop("default", None)
    if default is not None:
        schema["default"] = list(default) if isinstance(default, tuple) else default
    return schema


def camel_case(name: str) -> str:
    """Return ``name`` with capitals instead of underscores."""
    return _AFTER_UNDERSCORE.sub(lambda match: match[1].upper(), name)


def snake_case(name: str) -> str:
    """Return ``name`` with underscores instead of capitals."""
    return _CAPITAL.sub(lambda match: f"_{match[1].lower()}", name)


def _field_type(hint: Any, where: str) -> FieldType:
    """Return the reader of a field with this type hint."""
    if get_origin(hint) is Annotated:
        named = next((mark for mark in hint.__metadata__ if isinstance(mark, FieldType)), None)
        return named if named is not None else _field_type(get_args(hint)[0], where)
    if get_origin(hint) in {Union, UnionType}:
        members = [member for member in get_args(hint) if member is not NoneType]
        if len(members) == 1:
            return _field_type(members[0], where)
    if get_origin(hint) is Literal:
        return Choice(values=get_args(hint))
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return Inner(kind=hint)
    found = _PLAIN.get(hint)
    if found is None:
        raise TypeError(f"{where} has no field type: {hint}")
    return found
