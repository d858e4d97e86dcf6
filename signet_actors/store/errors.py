"""The names by which the errors of an engine are caught. Each is an exception class or a tuple of them.

They are what the engine raises, not copies: nothing is wrapped on the way, and a message names the engine's own error.
"""

from __future__ import annotations

from signet_actors.store.sqlite.errors import (
    BROKEN_DISK,
    DAMAGED,
    UNCHECKABLE,
    ConstraintViolated,
    DiskFull,
    LockTimeout,
    QueryRefused,
    StoreError,
    is_index_damage,
)

__all__ = [
    "BROKEN_DISK",
    "DAMAGED",
    "REMEDY",
    "UNCHECKABLE",
    "ConstraintViolated",
    "DiskFull",
    "LockTimeout",
    "QueryRefused",
    "StoreError",
    "is_index_damage",
]

REMEDY = (
    "see `signet doctor --deep`; `signet restore latest` puts the newest backup in its place, the daemon being stopped"
)
"""Advice for a damaged database."""
