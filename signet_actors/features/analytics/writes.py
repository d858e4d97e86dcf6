"""Store figures and errors. Source: docs/compatibility.md "Analytics and telemetry"."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET

from signet_actors.domain.timestamps import epoch_ms, iso
from signet_actors.features.analytics.api import TOTALS, ErrorEvent, FiguresStored, StoreFigures
from signet_actors.features.analytics.rules import MAX_ERRORS, MESSAGES
from signet_actors.store.command_context import CommandContext
from signet_actors.store.engine import Insert, WriteTransaction

KEPT_MS: Final = 86_400_000
_ERROR: Final = Insert("error_events", ("created_at", "stage", "code", "message", "memory_id", "actor"))
_KEEP_NEWEST: Final = "DELETE FROM error_events WHERE seq <= (SELECT max(e.seq) FROM error_events e) - :most"
_FORGET: Final = "UPDATE error_events SET memory_id = NULL WHERE memory_id = :id"
_PUT_TOTALS: Final = (
    "INSERT INTO analytics_totals (name, figures, updated_at) VALUES (:name, :figures, :now)"
    " ON CONFLICT (name) DO UPDATE SET figures = excluded.figures, updated_at = excluded.updated_at"
)
_PUT_MINUTE: Final = (
    "INSERT INTO analytics_minutes (minute, figures) VALUES (:minute, :figures)"
    " ON CONFLICT (minute) DO UPDATE SET figures = excluded.figures"
)
_DELETE_MINUTES: Final = "DELETE FROM analytics_minutes WHERE minute < :oldest"


def note_job_error(context: CommandContext, code: str | None, memory_id: str | None) -> None:
    """Record the error of an attempt; an unknown code, or none, is not recorded."""
    if code is not None and code in MESSAGES:
        stage, message = MESSAGES[code]
        context.insert_buffer.add(_ERROR, (context.now, stage, code, message, memory_id, None))
        context.tx.execute(_KEEP_NEWEST, {"most": MAX_ERRORS})


def forget(tx: WriteTransaction, memory_id: str) -> None:
    """Have errors not name a memory that is erased."""
    tx.execute(_FORGET, {"id": memory_id})


def stored(context: CommandContext, command: StoreFigures) -> FiguresStored:
    """Store the figures of a minute, and delete what is too old."""
    tx = context.tx
    tx.execute(_PUT_TOTALS, {"name": TOTALS, "figures": _json(command.totals), "now": context.now})
    tx.execute(_PUT_MINUTE, {"minute": command.minute.minute, "figures": _json(command.minute)})
    tx.execute(_DELETE_MINUTES, {"oldest": iso((epoch_ms(command.minute.minute) or 0) - KEPT_MS)})
    for error in command.errors[-MAX_ERRORS:]:
        tx.insert(_ERROR, _row(error))
    if command.errors:
        tx.execute(_KEEP_NEWEST, {"most": MAX_ERRORS})
    return FiguresStored()


def _row(error: ErrorEvent) -> tuple[str | None, ...]:
    optional = (None if value is UNSET else value for value in (error.memory_id, error.actor))
    return error.timestamp, error.stage, error.code, error.message, *optional


def _json(figures: msgspec.Struct) -> str:
    return msgspec.json.encode(figures).decode()


WRITES: Final = {StoreFigures: stored}
