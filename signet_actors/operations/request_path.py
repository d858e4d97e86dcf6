"""The path of a request: a declared path with values for its parameters.

A value is one segment and must not make the path that of another operation: with the id ``jobs/1`` or
``review-queue``, ``/api/memory/{id}`` would read a job or the reviews.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Final
from urllib.parse import quote

from signet_actors.errors import InvalidRequest

PARAMETER: Final = re.compile(r"\{(\w+)\}")
_SHOWN_CHARS: Final = 80


class InvalidPathValue(InvalidRequest, ValueError):
    """A value that a parameter of the path cannot have."""


def fill_path(template: str, values: Mapping[str, str]) -> str:
    """Return the path with quoted values. Raises InvalidPathValue, and KeyError for a parameter without a value."""

    def segment(parameter: re.Match[str]) -> str:
        name, value = parameter[1], values[parameter[1]]
        if not value:
            raise InvalidPathValue(f"{name} is required", field=name)
        quoted = quote(value, safe="", errors="surrogateescape")
        # Only a word can be the end of another path, and the paths of all operations take 20 ms to import.
        is_word = value.replace("-", "").isalpha()
        if "/" in value or value in {".", ".."} or (is_word and template.replace(parameter[0], quoted) in _fixed()):
            shown = value if len(value) <= _SHOWN_CHARS else f"{value[:_SHOWN_CHARS]}…"
            raise InvalidPathValue(f"{name} cannot be {shown!r}", field=name)
        return quoted

    return PARAMETER.sub(segment, template)


@cache
def _fixed() -> frozenset[str]:
    """Return the paths without parameters, which take precedence over those with."""
    from signet_actors.operations.registry import OPERATIONS  # noqa: PLC0415 - slow, and rarely needed

    return frozenset(path for operation in OPERATIONS for path in operation.paths if "{" not in path)
