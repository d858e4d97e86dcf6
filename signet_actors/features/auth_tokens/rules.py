"""The columns of ``auth_tokens``. Source: docs/compatibility.md "Authentication"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from signet_actors.domain.permissions import Role
from signet_actors.features.auth_tokens.api import StoredToken

COLUMNS: Final = ", ".join(StoredToken.__struct_fields__)


def stored(row: Sequence[Any]) -> StoredToken:
    """Return the row of ``COLUMNS``."""
    values = dict(zip(StoredToken.__struct_fields__, row, strict=True))
    return StoredToken(**{**values, "role": Role(values["role"])})
