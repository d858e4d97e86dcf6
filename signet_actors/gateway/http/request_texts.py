"""Texts that name a caller, and the JSON of a body: checked before anything is made of them.

Source: docs/compatibility.md "Actors and agents"; docs/security.md A12.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from signet_actors.config.schema import AGENT_NAME_PATTERN
from signet_actors.domain.json_bounds import MAX_VALUES, has_too_many_values
from signet_actors.domain.normalization import sanitize_text
from signet_actors.errors import InvalidRequest

_AGENT_NAME: Final = re.compile(AGENT_NAME_PATTERN)
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
MAX_PRINCIPAL_CHARS: Final = 200


class TooManyValues(InvalidRequest):
    """The JSON holds too many values."""


def decode_json(raw: bytes) -> Any:
    """Return the decoded ``raw``. Raises InvalidRequest; TooManyValues for more than ``MAX_VALUES`` values."""
    if has_too_many_values(raw):
        raise TooManyValues(f"The JSON must hold at most {MAX_VALUES} values")
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise InvalidRequest("Invalid JSON body") from error


@lru_cache(maxsize=1024)
def is_agent_name(name: str) -> bool:
    return _AGENT_NAME.match(name) is not None


def first_text(names: tuple[str, ...], *sources: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the first of ``names`` with a text that is not blank. Raises InvalidRequest if one is no text."""
    texts = [(name, text_in(source, name)) for source in sources for name in names]
    return next(((name, text) for name, text in texts if text and text.strip()), None)


def text_in(source: Mapping[str, Any], name: str) -> str | None:
    value = source.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidRequest(f"{name} must be a string", field=name)
    return value


def as_line(value: str, field: str) -> str | None:
    """Return ``value`` as one line of limited length that the store can hold; None if it is blank."""
    if len(value) > MAX_PRINCIPAL_CHARS or _CONTROL.search(value):
        raise InvalidRequest(
            f"{field} must be at most {MAX_PRINCIPAL_CHARS} characters without control characters", field=field
        )
    return sanitize_text(value).strip() or None
