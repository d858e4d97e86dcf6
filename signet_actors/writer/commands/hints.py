"""Hints: questions that a memory may answer. The job that generates them replaces all of a memory's hints.

The schema's triggers maintain their text index, and delete them when their memory is deleted or its content changes.

Source: memory-pipeline.txt "Prospective Indexing (Hints)".
"""

from __future__ import annotations

import msgspec

from signet_actors.domain.jobs import PROSPECTIVE_INDEX
from signet_actors.domain.normalization import collapsed
from signet_actors.domain.written_forms import indexed_beside
from signet_actors.protocol.pipeline import HintsStored, StoreHints
from signet_actors.store.command_context import CommandContext
from signet_actors.store.writes import hints as hint_rows
from signet_actors.store.writes import memories as memory_rows
from signet_actors.store.writes.hints import HintRow
from signet_actors.writer.commands import leases

MAX_HINTS = 20
MAX_HINT_CHARS = 500


def store(context: CommandContext, command: StoreHints) -> HintsStored:
    """Replace the hints, unless the content has changed, and complete the job. Raises ``lease_lost``."""
    job = leases.active_lease(context, command.job_id, command.lease_id)
    leases.require_kind(job, PROSPECTIVE_INDEX)
    memory_seq = memory_rows.live_seq_of_content(context.tx, job.memory_id, job.leased_hash)
    hints: list[str] = []
    if job.memory_id is not None and memory_seq is not None:
        hints = _clean(command.hints)
        rows = [HintRow(job.memory_id, memory_seq, hint, indexed_beside(hint), context.now) for hint in hints]
        hint_rows.replace(context.tx, job.memory_id, rows)
    leases.complete_leased(context, job, msgspec.json.encode({"hints": len(hints)}).decode())
    return HintsStored(len(hints))


def _clean(hints: tuple[str, ...]) -> list[str]:
    texts = (collapsed(hint)[:MAX_HINT_CHARS].strip() for hint in hints)
    return list(dict.fromkeys(filter(None, texts)))[:MAX_HINTS]
