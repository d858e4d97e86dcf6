"""Add events to the audit log, and delete its oldest. Source: docs/operations.md "Audit log"."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from typing import Final

import msgspec

from signet_actors.features.audit.api import MAX_EVENTS, AuditEvent, EventsRecorded, RecordEvents
from signet_actors.features.audit.rules import HEAD, PURGED, Link, Row, chained, read_link
from signet_actors.store.command_context import CommandContext
from signet_actors.store.engine import Insert, WriteTransaction
from signet_actors.store.writes import store_meta

_ROWS: Final = Insert("audit_log", Row.__struct_fields__)
_LAST: Final = "SELECT max(a.seq) FROM audit_log a"
_OLDEST: Final = "SELECT a.created_at, a.seq, a.hash FROM audit_log a ORDER BY a.seq LIMIT :limit"
_DELETE: Final = "DELETE FROM audit_log WHERE seq <= :seq"


def append(tx: WriteTransaction, events: Iterable[AuditEvent]) -> int:
    """Add the events; return the number of the last row."""
    link = read_link(store_meta.value(tx, HEAD))
    link = link._replace(seq=max(link.seq, tx.value(_LAST) or 0))  # differs only if the log was tampered with
    for event in events:
        detail = msgspec.json.encode(event.detail, order="sorted").decode()
        made = (event.created_at, event.kind, event.actor, event.outcome, detail, event.count)
        row = chained(link.hash, Row(link.seq + 1, *made))
        tx.insert(_ROWS, msgspec.structs.astuple(row))
        link = Link(row.seq, row.hash)
    store_meta.put(tx, HEAD, link.text)
    return link.seq


def record(context: CommandContext, command: RecordEvents) -> EventsRecorded:
    """Add the events of the command."""
    return EventsRecorded(append(context.tx, command.events[:MAX_EVENTS]))


def delete_before(context: CommandContext, cutoff: str, limit: int) -> int:
    """Delete at most ``limit`` of the oldest rows, up to the first one that is not before the cutoff."""
    old = list(takewhile(lambda row: row[0] < cutoff, context.tx.rows(_OLDEST, {"limit": limit})))
    if old:
        _, seq, hash_ = old[-1]
        context.tx.execute(_DELETE, {"seq": seq})
        store_meta.put(context.tx, PURGED, Link(seq, hash_).text)
    return len(old)


WRITES: Final = {RecordEvents: record}
