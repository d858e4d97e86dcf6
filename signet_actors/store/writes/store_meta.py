"""Statements about ``store_meta``: values of the whole store, by key."""

from __future__ import annotations

import os
from typing import Final

from signet_actors.store.engine import WriteTransaction

HIGH_WATER_MARK: Final = "retention_high_water_mark"
"""Key of the time of the last sweep that trusted its clock."""

_VALUE: Final = "SELECT s.value FROM store_meta s WHERE s.key = :key"
_PUT_NEW: Final = "INSERT INTO store_meta (key, value) VALUES (:key, :value) ON CONFLICT (key) DO NOTHING"
_PUT: Final = (
    "INSERT INTO store_meta (key, value) VALUES (:key, :value) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)
_DELETE: Final = "DELETE FROM store_meta WHERE key = :key"
_PROBE_BYTES: Final = 8192


def value(tx: WriteTransaction, key: str) -> str | None:
    """Return the value of the key, or None if there is none."""
    found: str | None = tx.value(_VALUE, {"key": key})
    return found


def put(tx: WriteTransaction, key: str, value: str) -> None:
    tx.execute(_PUT, {"key": key, "value": value})


def put_if_new(tx: WriteTransaction, key: str, value: str) -> None:
    """Set the value of the key unless it has one."""
    tx.execute(_PUT_NEW, {"key": key, "value": value})


def delete(tx: WriteTransaction, key: str) -> None:
    tx.execute(_DELETE, {"key": key})


def write_probe(tx: WriteTransaction) -> None:
    """Write some pages, to find out whether the disk has room."""
    put(tx, "storage_probe", os.urandom(_PROBE_BYTES).hex())
