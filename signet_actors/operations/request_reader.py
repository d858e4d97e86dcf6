"""Reads a request's Struct from what a caller sent, and warns about fields and parameters without effect.

Every field is accepted under the name that the API document shows, in camel case, in snake case and under the Struct's
name; the first spelling present counts, and null counts as absent. A plain type stands for its field type: ``str`` for
``Text()``, ``bool`` for ``Flag()``, ``float`` for ``Number()``, a ``Literal`` for ``Choice``, a Struct for ``Inner``.

Source: docs/compatibility.md "Query parsing", "Remember"; memory-api.txt "Memories"; docs/decisions.md 30, 33.
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
from signet_actors.operations.operation import Operation
from signet_actors.operations.request_fields import NOT_YET, ONLY_FOR, CallerFields

RequestT = TypeVar("RequestT", bound=msgspec.Struct)

MAX_WARNINGS: Final = 20
MAX_SHOWN_CHARS: Final = 80
AND_MORE: Final = "and more"
_MAX_GUESSED_CHARS: Final = 40
_MAX_GUESSES: Final = 5
_NO: Final = frozenset({"", "0", "false"})

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
    lenient: bool = False,
) -> RequestT:
    """Return the request in ``body`` and ``query``; a field of the body takes precedence.

    Unknown fields are ignored, and invalid values too if ``lenient``, with a warning. Raises InvalidRequest.
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
            given = Given(name, source[name], field.default, source is query, now_ms, warnings)
            value = _read_leniently(field.type, given) if lenient else field.type.read(given)
            if value is not ABSENT:
                values[field.name] = value
            break
        if field.name in values:
            continue
        if field.type.null is not ABSENT and body is not None and _has_null(body, field.spellings):
            values[field.name] = field.type.null
        elif field.type.refuses_null and body is not None and _has_null(body, field.spellings):
            field.type.read(Given(field.spellings[0], None, field.default, False, now_ms, warnings))
        elif field.required:
            raise InvalidRequest(field.type.missing.format(name=field.name), field=field.spellings[0])
    return kind(**values)


def _read_leniently(field_type: FieldType, given: Given) -> Any:
    """Return the value; ABSENT, with a warning, if it is invalid."""
    try:
        return field_type.read(given)
    except InvalidRequest as error:
        given.warnings.append(f"{error.detail}; the value is ignored")
        return ABSENT


def _has_null(body: Mapping[str, Any], names: tuple[str, ...]) -> bool:
    return any(body.get(name, ABSENT) is None for name in names)


@cache
def request_fields(kind: type[msgspec.Struct]) -> tuple[RequestField, ...]:
    """Return the fields of a request in order. Raises TypeError for a type that has no reader."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        RequestField(
            name=field.name,
            spellings=_spellings(field),
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


def _spellings(field: msgspec.structs.FieldInfo) -> tuple[str, ...]:
    name = field.encode_name
    return tuple(dict.fromkeys((name, camel_case(name), snake_case(name), field.name)))


def camel_case(name: str) -> str:
    return _AFTER_UNDERSCORE.sub(lambda match: match[1].upper(), name)


def snake_case(name: str) -> str:
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


class _Pending(NamedTuple):
    """A field that has no effect yet; ``only_for`` names the values without effect, empty for all."""

    what: str
    only_for: tuple[str, ...]


class _Unknown(NamedTuple):
    """A name that is not among the ``known`` ones."""

    what: str
    name: str
    known: tuple[str, ...]


class KnownFields(NamedTuple):
    """The fields of an object: ``names`` in every spelling; ``nested`` objects, and lists of them, by name."""

    names: frozenset[str]
    shown: tuple[str, ...]
    nested: Mapping[str, KnownFields]
    pending: Mapping[str, _Pending]
    special: frozenset[str]

    def covers(self, value: Mapping[str, Any]) -> bool:
        """Return True if every field of ``value`` is known and none needs further checks."""
        return value.keys() <= self.names and self.special.isdisjoint(value)


@cache
def known_fields(*structs: type) -> KnownFields:
    """Return the fields of objects that combine the fields of ``structs``.

    ``also_named`` of a Struct: names that its own reader accepts beside those of its fields.
    """
    names = {name for struct in structs for name in getattr(struct, "also_named", ())}
    shown: list[str] = []
    nested: dict[str, KnownFields] = {}
    pending: dict[str, _Pending] = {}
    for field in (field for struct in structs for field in msgspec.structs.fields(struct)):
        spellings = _spellings(field)
        names.update(spellings)
        shown.append(field.encode_name)
        inner = next(_structs(field.type), None)
        mark = next(_pending_marks(field.type), None)
        for name in spellings:
            if inner is not None:
                nested[name] = known_fields(inner)
            if mark is not None:
                pending[name] = mark
    return KnownFields(frozenset(names), tuple(shown), nested, pending, frozenset(nested.keys() | pending.keys()))


def body_warnings(operation: Operation[Any], body: Mapping[str, Any]) -> list[str]:
    """Return a warning for each field of ``body`` that has no effect."""
    return object_warnings(_of_body(operation), body)


def object_warnings(known: KnownFields, value: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return a warning for each field of ``value`` that has no effect, starting with ``prefix``."""
    if known.covers(value):
        return []
    return _warning_texts(_fields_without_effect(known, value, ""), prefix)


def query_warnings(operation: Operation[Any], query: Mapping[str, str]) -> list[str]:
    """Return a warning for each query parameter that has no effect."""
    known = _of_query(operation)
    return [] if known.covers(query) else _warning_texts(_parameters_without_effect(known, query), "")


@cache
def _of_body(operation: Operation[Any]) -> KnownFields:
    body = operation.body
    return known_fields(CallerFields) if body is None else known_fields(body, CallerFields)


@cache
def _of_query(operation: Operation[Any]) -> KnownFields:
    """Return the known query parameters. An object, such as a time window, is accepted only in a body."""
    request: type[msgspec.Struct] = operation.request
    known = known_fields(request, CallerFields) if operation.in_query else known_fields(CallerFields)
    return known._replace(
        names=known.names - known.nested.keys(),
        shown=tuple(name for name in known.shown if name not in known.nested),
    )


def _parameters_without_effect(known: KnownFields, query: Mapping[str, str]) -> Iterator[_Unknown | str]:
    """Yield each query parameter that has no effect."""
    for name, value in query.items():
        pending = known.pending.get(name)
        if name not in known.names:
            yield _Unknown("query parameter", name, known.shown)
        elif pending is not None and value.strip().lower() not in _NO:
            yield f"{name} {pending.what}"


def _fields_without_effect(known: KnownFields, value: Mapping[str, Any], path: str) -> Iterator[_Unknown | str]:
    """Yield each field of the object at ``path`` that has no effect."""
    for name, given in value.items():
        if name not in known.names:
            yield _Unknown("field", path + name, known.shown)
            continue
        pending = known.pending.get(name)
        if pending is not None and _is_requested(given, pending.only_for):
            yield f"{path}{name} {pending.what}"
        inner = known.nested.get(name)
        if inner is None:
            continue
        for index, item in enumerate(given if isinstance(given, list) else [given]):
            if isinstance(item, dict) and not inner.covers(item):
                yield from _fields_without_effect(
                    inner, item, f"{path}{name}[{index}]." if given is not item else f"{path}{name}."
                )


def _warning_texts(found: Iterator[_Unknown | str], prefix: str) -> list[str]:
    """Return the first warnings as text, a few of them with the name that was probably meant."""
    lines: list[str] = []
    guesses = _MAX_GUESSES
    for one in found:
        if len(lines) == MAX_WARNINGS:
            lines.append(AND_MORE)
            break
        if isinstance(one, str):
            lines.append(prefix + one)
            continue
        guess = None
        if guesses and len(one.name) <= _MAX_GUESSED_CHARS:
            guesses -= 1
            guess = _closest(one.name.rpartition(".")[2], one.known)
        lines.append(
            f"{prefix}unknown {one.what}: {shortened(one.name)}" + (f" (did you mean {guess}?)" if guess else "")
        )
    return lines


def _closest(name: str, known: tuple[str, ...]) -> str | None:
    from signet_actors.config.suggest import closest  # noqa: PLC0415 - difflib, only for a request with a mistake in it

    return closest(name, known)


def shortened(name: str) -> str:
    """Return ``name`` as a warning shows it."""
    return name if len(name) <= MAX_SHOWN_CHARS else f"{name[:MAX_SHOWN_CHARS]}…"


def _is_requested(value: object, only_for: tuple[str, ...]) -> bool:
    """Return True if ``value`` requests something that is not available yet; null and false never do."""
    if value is None or value is False:
        return False
    if not only_for:
        return True
    return any(item in only_for for item in (value if isinstance(value, list) else [value]))


def _structs(kind: Any) -> Iterator[type]:
    """Yield the Structs in a type such as ``list[Struct] | None``, and those of an array that the handler reads."""
    if isinstance(kind, Items):
        yield kind.kind
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield kind
    for part in get_args(kind):
        yield from _structs(part)


def _pending_marks(kind: Any) -> Iterator[_Pending]:
    if get_origin(kind) is Annotated:
        for meta in kind.__metadata__:
            extra = meta.extra if isinstance(meta, msgspec.Meta) else None
            if extra and NOT_YET in extra:
                yield _Pending(extra[NOT_YET], extra[ONLY_FOR])
