"""The chain of the audit log: each hash covers a row and the hash before it. Source: docs/operations.md "Audit log"."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Final, NamedTuple

import msgspec

HEAD: Final = "audit_head"
"""Key in ``store_meta`` of the last row that was recorded; tells a log whose end was cut off."""
PURGED: Final = "audit_purged"
"""Key in ``store_meta`` of the last row that retention deleted, with which the chain begins."""


class Link(NamedTuple):
    """The number and the hash of a row; 0 and empty before the first one."""

    seq: int = 0
    hash: str = ""

    @property
    def text(self) -> str:
        return f"{self.seq} {self.hash}"


class Row(msgspec.Struct, frozen=True):
    """A row as it is stored; ``detail`` is JSON."""

    seq: int
    created_at: str
    kind: str
    actor: str
    outcome: str
    detail: str
    count: int
    hash: str = ""


def read_link(text: str | None) -> Link:
    """Return the link that ``store_meta`` has, the one before the first row if it has none."""
    seq, _, hash_ = (text or "").partition(" ")
    return Link(int(seq), hash_) if seq.isdecimal() else Link()


def chained(previous: str, row: Row) -> Row:
    """Return the row with its hash: SHA-256, in hexadecimal, of a JSON array of the previous hash and its columns."""
    columns = msgspec.structs.astuple(row)[:-1]
    return msgspec.structs.replace(row, hash=sha256(msgspec.json.encode((previous, *columns))).hexdigest())


def follow(link: Link, rows: Iterable[Row]) -> tuple[Link, int | None]:
    """Return the last row that follows from ``link``, and the number of the first that is missing or was changed."""
    for row in rows:
        if row.seq != link.seq + 1 or row != chained(link.hash, row):
            return link, link.seq + 1
        link = Link(row.seq, row.hash)
    return link, None
