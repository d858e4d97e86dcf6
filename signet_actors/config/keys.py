"""Every configuration key as a row, derived from the structs of ``schema.py``.

The reader, the generated reference and the tests use these rows, so no list of keys is written twice.
"""

from __future__ import annotations

import functools
import re
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any, Final, Literal, get_args, get_origin

import msgspec

from signet_actors.config.schema import Config

UNITS: Final = {"_ms": "ms", "_bytes": "bytes", "_chars": "characters", "_days": "days", "_seconds": "s"}
"""The unit of a key, by the suffix of its attribute."""

_KINDS: Final[dict[type, str]] = {bool: "true or false", int: "whole number", float: "number", str: "text"}


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a section: its name, its permitted values, and its default.

    ``plain`` is the type without annotations. ``section`` is the nested struct, if any. For a list, ``element`` is the
    struct of its elements, or ``item`` describes its texts. ``choices`` are the literal values. Bounds are inclusive.
    ``form`` describes ``pattern`` in words.
    """

    attribute: str
    name: str
    plain: Any
    section: type[msgspec.Struct] | None
    element: type[msgspec.Struct] | None
    item: Field | None
    required: bool
    choices: tuple[str, ...]
    low: float | None
    high: float | None
    pattern: str | None
    form: str
    max_length: int | None
    min_length: int
    meaning: str

    @property
    def kind(self) -> str:
        """The type in words."""
        if self.choices:
            return "choice"
        if self.plain in _KINDS:
            return _KINDS[self.plain]
        return "list of mappings" if self.element is not None else "list of text"

    @property
    def unit(self) -> str:
        return next((unit for ending, unit in UNITS.items() if self.attribute.endswith(ending)), "")

    @property
    def range_text(self) -> str:
        """``100 to 60000``, or empty if the field has no range."""
        return "" if self.low is None else f"{self._number(self.low)} to {self._number(self.high)}"

    def _number(self, bound: float | None) -> str:
        assert bound is not None, "a field has both bounds or none"
        return f"{float(bound)}" if self.plain is float else f"{int(bound)}"


@dataclass(frozen=True, slots=True)
class Key:
    """A field with its path in the whole configuration and its default there."""

    path: tuple[str, ...]
    attributes: tuple[str, ...]
    field: Field
    default: object

    @property
    def dotted(self) -> str:
        """The path as shown in messages and in the reference."""
        return ".".join(self.path)


@functools.cache
def fields_of(section: type[msgspec.Struct]) -> dict[str, Field]:
    """Return the fields of a section by attribute name, in declaration order."""
    hints = typing.get_type_hints(section, include_extras=True)
    return {
        info.name: _field(info.name, info.encode_name, hints[info.name], required=info.required)
        for info in msgspec.structs.fields(section)
    }


def camel(name: str) -> str:
    """Convert ``min_score`` to ``minScore``. A name without underscores is unchanged."""
    return re.sub(r"(?<=[a-z0-9])_([a-z0-9])", lambda found: found.group(1).upper(), name)


def snake(name: str) -> str:
    """Convert ``minScore`` to ``min_score``, and ``pipelineV2`` to ``pipeline_v2``."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda found: "_" + found.group(1).lower(), name)


def keys() -> Iterator[Key]:
    """Yield every key that has a value, section by section in schema order."""
    yield from _keys((), (), Config())


def changed_keys(former: Config, new: Config) -> list[str]:
    """Return the dotted names of the keys whose values differ."""
    values = [(key, attrgetter(".".join(key.attributes))) for key in keys()]
    return [key.dotted for key, value in values if value(former) != value(new)]


def _keys(path: tuple[str, ...], attributes: tuple[str, ...], value: msgspec.Struct) -> Iterator[Key]:
    for part in fields_of(type(value)).values():
        here = (*path, part.name)
        there = (*attributes, part.attribute)
        inner = getattr(value, part.attribute)
        if part.section is not None:
            yield from _keys(here, there, inner)
        else:
            yield Key(here, there, part, inner)


def _field(attribute: str, name: str, hint: Any, *, required: bool) -> Field:
    meta = msgspec.Meta()
    if get_origin(hint) is Annotated:
        hint, meta = get_args(hint)
    section = hint if isinstance(hint, type) and issubclass(hint, msgspec.Struct) else None
    element, item = None, None
    if get_origin(hint) is tuple:
        inner = get_args(hint)[0]
        if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            element = inner
        else:
            item = _field(attribute, name, inner, required=True)
    return Field(
        attribute=attribute,
        name=name,
        plain=hint,
        section=section,
        element=element,
        item=item,
        required=required,
        choices=get_args(hint) if get_origin(hint) is Literal else (),
        low=meta.ge,
        high=meta.le,
        pattern=meta.pattern,
        form=meta.title or "text",
        max_length=meta.max_length,
        min_length=meta.min_length or 0,
        meaning=meta.description or "",
    )
