"""Rows of the audit log, and the check of their chain. Source: docs/operations.md "Audit log"."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from signet_actors.features.audit import api
from signet_actors.features.audit.rules import HEAD, PURGED, Link, Row, follow, read_link
from signet_actors.protocol.message import Asked
from signet_actors.store.engine import Reads, Snapshot

MAX_VERIFIED: Final = 200_000
"""Rows of one request; they take about half a second."""
_PAGE: Final = 1000
_COLUMNS: Final = ", ".join(f"a.{name}" for name in Row.__struct_fields__)
_MATCHES: Final = "(:kind IS NULL OR a.kind = :kind) AND (:since IS NULL OR a.created_at >= :since)"
_LIST: Final = f"SELECT {_COLUMNS} FROM audit_log a WHERE {_MATCHES} ORDER BY a.seq DESC LIMIT :limit OFFSET :offset"
_TOTAL: Final = f"SELECT count(*) FROM audit_log a WHERE {_MATCHES}"
_AFTER: Final = f"SELECT {_COLUMNS} FROM audit_log a WHERE a.seq > :seq ORDER BY a.seq LIMIT :limit"
_HASH: Final = "SELECT a.hash FROM audit_log a WHERE a.seq = :seq"
_LINK: Final = "SELECT s.value FROM store_meta s WHERE s.key = :key"


def kept_link(reads: Reads, key: str) -> Link:
    """Return the row that ``store_meta`` keeps under the key."""
    return read_link(reads.value(_LINK, {"key": key}))


def listed(snapshot: Snapshot, asked: Asked[api.ListAuditRequest]) -> api.ListAuditReply:
    """Return a page of the log, the newest row first."""
    wanted = msgspec.structs.asdict(asked.request)
    rows = (dict(zip(Row.__struct_fields__, row, strict=True)) for row in snapshot.rows(_LIST, wanted))
    events = [api.AuditRow(**{**row, "detail": _detail(row["detail"])}) for row in rows]
    return api.ListAuditReply(events, snapshot.value(_TOTAL, {"kind": wanted["kind"], "since": wanted["since"]}))


def verified(snapshot: Snapshot, asked: Asked[api.VerifyAuditRequest]) -> api.VerifyAuditReply:
    """Follow the chain from the last purged row, or from the row ``after``, to the last row that was recorded."""
    link, head = kept_link(snapshot, PURGED), kept_link(snapshot, HEAD)
    if asked.request.after > link.seq:
        link = Link(asked.request.after, snapshot.value(_HASH, {"seq": asked.request.after}) or "")
    first, broken = link.seq, None
    while broken is None and link.seq - first < MAX_VERIFIED:
        found = snapshot.rows(_AFTER, {"seq": link.seq, "limit": _PAGE})
        link, broken = follow(link, (Row(*row) for row in found))
        if len(found) < _PAGE:
            if broken is None and link != head:
                broken = min(link.seq, head.seq) + (link.seq != head.seq)
            return api.VerifyAuditReply(intact=broken is None, rows=link.seq - first, broken_at=broken, next=None)
    going_on = link.seq if broken is None else None
    return api.VerifyAuditReply(intact=broken is None, rows=link.seq - first, broken_at=broken, next=going_on)


def _detail(text: str) -> dict[str, Any]:
    """Return the object; a row that was tampered with may have another text."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError):
        return {"text": text}


READS: Final = {api.LIST: listed, api.VERIFY: verified}
