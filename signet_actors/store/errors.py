"""The names by which the errors of an engine are caught. Each is an exception class or a tuple of them.

They are what the engine raises, not copies: nothing is wrapped on the way, and a message names the engine's own error.
"""

from __future__ import annotations

from signet_actors.store.sqlite import errors

BROKEN_DISK = errors.BROKEN_DISK
DAMAGED = errors.DAMAGED
UNCHECKABLE = errors.UNCHECKABLE
ConstraintViolated = errors.ConstraintViolated
DiskFull = errors.DiskFull
LockTimeout = errors.LockTimeout
QueryRefused = errors.QueryRefused
StoreError = errors.StoreError
is_index_damage = errors.is_index_damage

REMEDY = (
    "see `signet doctor --deep`; with the daemon stopped, `signet doctor --repair` mends an index without loss, and"
    " `signet restore latest` puts the newest backup in its place"
)
"""Advice for a damaged database."""
