"""The health of the daemon, from the replies of the other processes. Source: features/diagnostics/rules.py."""

from __future__ import annotations

from typing import Final

from signet_actors.domain.timestamps import iso
from signet_actors.features.diagnostics.rules import report
from signet_actors.gateway.status.replies import Part
from signet_actors.gateway.status.snapshot import DaemonSnapshot
from signet_actors.operations.diagnostics import DiagnosticsReport

MEASURED: Final[tuple[Part, ...]] = ("store", "health", "changes", "extractor", "decider")
"""The parts from which it is measured."""


def diagnostics_of(snapshot: DaemonSnapshot) -> DiagnosticsReport:
    """Return the health of every domain."""
    replies = snapshot.replies
    models = [one.model for one in (replies.extractor, replies.decider) if one is not None]
    database_bytes = None if replies.store is None else replies.store.database_bytes
    return report(replies.health, replies.changes, database_bytes, models, iso(snapshot.now_ms))
