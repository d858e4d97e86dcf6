"""The one error body of the public API.

Source: wire.md 1.0; decisions.md 30.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType


class Problem(msgspec.Struct, frozen=True):
    """Why a request was refused; ``field`` names the offending request field."""

    error: str
    code: str
    field: str | UnsetType = UNSET
