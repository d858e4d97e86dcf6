"""Summaries of sessions: a page of them, and one with what was made from it.

Source: docs/compatibility.md "Summaries of sessions".
"""

from __future__ import annotations

from signet_actors.protocol.session_summaries import ExpandSummary, ListSummaries, SummariesListed, SummaryExpanded
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads import session_summaries as stored


def listed(snapshot: Snapshot, query: ListSummaries) -> SummariesListed:
    return SummariesListed(*stored.page(snapshot, query))


def expand(snapshot: Snapshot, query: ExpandSummary) -> SummaryExpanded:
    """Return the summary with the memories made from it."""
    found = stored.by_id(snapshot, query.id, query.read)
    if found is None:
        return SummaryExpanded(None)
    return SummaryExpanded(found, stored.derived(snapshot, query.id, query.read))
