"""Store events, and delete old ones. Source: docs/compatibility.md "Analytics and telemetry"."""

from __future__ import annotations

from typing import Final

import msgspec

from signet_actors.features.telemetry.api import EventsStored, StoreEvents
from signet_actors.store.command_context import CommandContext
from signet_actors.store.engine import Insert

MAX_ROWS: Final = 100_000
_EVENT: Final = Insert("telemetry_events", ("created_at", "event", "properties"))
_KEEP_NEWEST: Final = "DELETE FROM telemetry_events WHERE seq <= (SELECT max(e.seq) FROM telemetry_events e) - :most"
_DELETE: Final = (
    "DELETE FROM telemetry_events WHERE seq IN"
    " (SELECT e.seq FROM telemetry_events e WHERE e.created_at < :cutoff LIMIT :limit)"
)


def stored(context: CommandContext, command: StoreEvents) -> EventsStored:
    """Add the events; of all of them the newest ``MAX_ROWS`` are kept."""
    for event in command.events:
        context.tx.insert(_EVENT, (event.timestamp, event.event, msgspec.json.encode(event.properties).decode()))
    context.tx.execute(_KEEP_NEWEST, {"most": MAX_ROWS})
    return EventsStored()


def delete_before(context: CommandContext, cutoff: str, limit: int) -> int:
    """Delete at most ``limit`` events of before the cutoff; return their number."""
    context.tx.execute(_DELETE, {"cutoff": cutoff, "limit": limit})
    return context.tx.changes()


WRITES: Final = {StoreEvents: stored}
