"""Statements about ``store_meta``: values of the whole store, by key."""

from __future__ import annotations

from typing import Final

from signet_actors.store.sqlite.transaction import WriteTransaction

_VALUE: Final = "SELECT value FROM store_meta WHERE key = ?"
_PUT: Final = "INSERT INTO store_meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
_PUT_NEW: Final = "INSERT INTO store_meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING"
_DELETE: Final = "DELETE FROM store_meta WHERE key = ?"
_PROBE: Final = (
    "INSERT INTO store_meta (key, value) VALUES ('storage_probe', hex(randomblob(8192)))"
    " ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)


def value(tx: WriteTransaction, key: str) -> str | None:
    """Return the value of the key, or None if there is none."""
    row = tx.one(_VALUE, (key,))
    return None if row is None else row[0]


def put(tx: WriteTransaction, key: str, value: str) -> None:
    """Set the value of the key."""
    tx.execute(_PUT, (key, value))


def put_if_new(tx: WriteTransaction, key: str, value: str) -> None:
    """Set the value of the key unless it has one."""
    tx.execute(_PUT_NEW, (key, value))


def delete(tx: WriteTransaction, key: str) -> None:
    """Delete the key."""
    tx.execute(_DELETE, (key,))


def write_probe(tx: WriteTransaction) -> None:
    """Write some pages, to find out whether the disk has room."""
    tx.execute(_PROBE)
