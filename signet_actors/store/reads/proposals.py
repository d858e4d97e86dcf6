"""The pipeline's proposals, without texts that repeat a forgotten memory.

Texts of a proposal are hidden while a memory that they quote is forgotten. A fact repeats the memory that it was
extracted from and the memory that it created. A reason may quote any memory that the model was shown.

Source: docs/decisions.md 16, 35.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

import msgspec

from signet_actors.store.engine import Snapshot

ReportT = TypeVar("ReportT", bound=msgspec.Struct)
_FORGOTTEN = "EXISTS (SELECT 1 FROM memories f WHERE f.is_deleted = 1 AND f.id IN ({}))"
_SOURCES = "p.memory_id, CASE p.action WHEN 'delete' THEN NULL ELSE p.result_memory_id END"
FACT_FORGOTTEN: Final = _FORGOTTEN.format(_SOURCES)
"""SQL condition: the fact of proposal ``p`` repeats a forgotten memory."""
REASON_FORGOTTEN: Final = (
    f"({_FORGOTTEN.format('p.memory_id, p.target_id, p.result_memory_id')} OR"
    " EXISTS (SELECT 1 FROM shown_memories s JOIN memories f ON f.seq = s.memory_seq"
    " WHERE s.proposal_seq = p.seq AND f.is_deleted = 1))"
)
"""SQL condition: the reason of proposal ``p`` may quote a forgotten memory."""
_REDACTED = {
    "fact_content": f"CASE WHEN {FACT_FORGOTTEN} THEN NULL ELSE p.fact_content END",
    "rationale": f"CASE WHEN {REASON_FORGOTTEN} THEN NULL ELSE p.rationale END",
}
_FLAGS = ("syntactic_contradiction", "semantic_contradiction")
_PENDING_COUNT = "SELECT count(*) FROM memory_proposals WHERE review_state = 'pending'"


def proposal_columns(of: type[msgspec.Struct], **others: str) -> str:
    """Return the columns of proposal ``p`` for the fields of the Struct; ``others``: by the name of a field."""
    known = _REDACTED | others
    return ", ".join(known.get(name, f"p.{name}") for name in of.__struct_fields__)


def filled(report: type[ReportT], row: Sequence[Any]) -> ReportT:
    """Return the Struct that the row of its ``proposal_columns`` fills."""
    values = dict(zip(report.__struct_fields__, row, strict=True))
    return report(**values | {flag: None if values[flag] is None else bool(values[flag]) for flag in _FLAGS})


def pending_count(snapshot: Snapshot) -> int:
    """Return the number of proposals of the whole store that wait for a review."""
    return int(snapshot.value(_PENDING_COUNT))
