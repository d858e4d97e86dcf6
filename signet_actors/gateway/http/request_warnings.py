"""Warnings about fields and parameters without effect, for the ``warnings`` of a response.

The known names are the fields of an operation's request, each in snake case and camel case. A warning never changes
what a request does.

Source: memory-api.txt "Memories" (the documented fields).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Final, NamedTuple, get_args, get_origin

import msgspec

from signet_actors.operations.operation import Operation
from signet_actors.operations.request_fields import NOT_YET, ONLY_FOR, CallerFields
from signet_actors.operations.request_reader import Items, camel_case, snake_case

MAX_WARNINGS: Final = 20
MAX_SHOWN_CHARS: Final = 80
AND_MORE: Final = "and more"
_MAX_GUESSED_CHARS: Final = 40
_MAX_GUESSES: Final = 5
_NO: Final = frozenset({"", "0", "false"})


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
    """Return the fields of objects that combine the fields of ``structs``."""
    names: set[str] = set()
    shown: list[str] = []
    nested: dict[str, KnownFields] = {}
    pending: dict[str, _Pending] = {}
    for field in (field for struct in structs for field in msgspec.structs.fields(struct)):
        spellings = {field.name, field.encode_name, camel_case(field.encode_name), snake_case(field.encode_name)}
        names |= spellings
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
    return _bounded(_fields_without_effect(known, value, ""), prefix)


def query_warnings(operation: Operation[Any], query: Mapping[str, str]) -> list[str]:
    """Return a warning for each query parameter that has no effect."""
    known = _of_query(operation)
    return [] if known.covers(query) else _bounded(_parameters_without_effect(known, query), "")


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


def _bounded(found: Iterator[_Unknown | str], prefix: str) -> list[str]:
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
