"""The one error body of the public API. Source: docs/compatibility.md "Errors"; docs/decisions.md 30."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType


class Problem(msgspec.Struct, frozen=True, rename="camel"):
    """Why a request was refused; ``field`` names the offending request field.

    ``retryAfter``: of a rate limit, the milliseconds until a request is possible again.
    """

    error: str
    code: str
    field: str | UnsetType = UNSET
    retry_after: int | UnsetType = UNSET


PROBLEMS: Final[Mapping[int, Any]] = {400: Problem, 503: Problem}
"""Errors of every operation that reads fields."""
CHANGE_PROBLEMS: Final[Mapping[int, Any]] = {409: Problem, 504: Problem, 507: Problem, **PROBLEMS}
"""Errors of an operation whose changes the writer stores."""
