"""Events of the local telemetry. Source: docs/compatibility.md "Analytics and telemetry"."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from signet_actors.features.telemetry.api import FindEvents, StoredEvents, TelemetryEvent
from signet_actors.store.engine import Snapshot

_LIST: Final = (
    "SELECT e.created_at, e.event, e.properties FROM telemetry_events e"
    " WHERE (:event IS NULL OR e.event = :event) AND (:since IS NULL OR e.created_at >= :since)"
    " AND (:until IS NULL OR e.created_at <= :until) ORDER BY e.seq DESC LIMIT :limit"
)
_TOTAL: Final = "SELECT count(*) FROM telemetry_events"


def found(snapshot: Snapshot, asked: FindEvents) -> StoredEvents:
    """Return the newest events that match, the number of all, and the durations of the events that are returned."""
    rows = snapshot.rows(_LIST, msgspec.structs.asdict(asked))
    events = [TelemetryEvent(at, name, msgspec.json.decode(properties)) for at, name, properties in rows]
    durations: dict[str, list[float]] = {}
    for one in events:
        took: Any = one.properties.get("ms")
        if isinstance(took, int | float):
            durations.setdefault(one.event, []).append(took)
    return StoredEvents(events, snapshot.value(_TOTAL), durations)


READS: Final = {FindEvents: found}
