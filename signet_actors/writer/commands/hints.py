"""Hints: questions that a memory may answer. The job that generates them replaces all of a memory's hints.

The schema's triggers maintain their text index, and delete them when their memory is deleted or its content changes.

Source: memory-pipeline.txt "Prospective Indexing (Hints)".
"""

from __future__ import annotations

import msgspec

from signet_actors.domain.jobs import PROSPECTIVE_INDEX
from signet_actors.domain.normalization import collapsed
from signet_actors.domain.query_words import cjk_bigrams
from signet_actors.protocol.pipeline import HintsStored, StoreHints
from signet_actors.writer.command_context import CommandContext
from signet_actors.writer.commands import leases

MAX_HINTS = 20
MAX_HINT_CHARS = 500


def store(context: CommandContext, command: StoreHints) -> HintsStored:
    """Replace the memory's hints and complete the job; store none if the content has changed meanwhile.

    Raises ``lease_lost``.
    """
    job = leases.active_lease(context, command.job_id, command.lease_id)
    leases.require_kind(job, PROSPECTIVE_INDEX)
    row = context.tx.one(
        "SELECT seq FROM memories WHERE id = ? AND is_deleted = 0 AND content_hash = ?",
        (job.memory_id, job.leased_hash),
    )
    hints = _clean(command.hints) if row is not None else []
    if row is not None:
        context.tx.execute("DELETE FROM memory_hints WHERE memory_id = ?", (job.memory_id,))
    for hint in hints:
        context.tx.execute(
            "INSERT INTO memory_hints (memory_id, memory_seq, hint, cjk, created_at) VALUES (?, ?, ?, ?, ?)",
            (job.memory_id, row[0] if row else None, hint, cjk_bigrams(hint), context.now),
        )
    leases.complete_leased(context, job, msgspec.json.encode({"hints": len(hints)}).decode())
    return HintsStored(len(hints))


def _clean(hints: tuple[str, ...]) -> list[str]:
    texts = (collapsed(hint)[:MAX_HINT_CHARS].strip() for hint in hints)
    return list(dict.fromkeys(filter(None, texts)))[:MAX_HINTS]
