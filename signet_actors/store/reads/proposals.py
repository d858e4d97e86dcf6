"""The pipeline's proposals, without texts that repeat a forgotten memory.

Texts of a proposal are hidden while a memory that they quote is forgotten. A fact repeats the memory that it was
extracted from and the memory that it created. A reason may quote any memory that the model was shown.

Source: docs/decisions.md 16, 35.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.pipeline_queries import ProposalRow
from signet_actors.store.engine import Snapshot
from signet_actors.store.read_policy import conjunction, readable

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
_PROPOSAL = ", ".join(_REDACTED.get(name, f"p.{name}") for name in ProposalRow.__struct_fields__)
_FLAGS = ("syntactic_contradiction", "semantic_contradiction")

_REVIEWED = "FROM memory_proposals p JOIN memories m ON m.id = p.memory_id WHERE {}"
_REVIEW_PAGE = f"SELECT {_PROPOSAL} {_REVIEWED} ORDER BY p.seq LIMIT :limit OFFSET :offset"
_REVIEW_COUNT = f"SELECT count(*) {_REVIEWED}"
_OF_RUN = f"SELECT {_PROPOSAL} FROM memory_proposals p WHERE p.run_id = :run_id ORDER BY p.ordinal"
_TARGETS = "SELECT m.id, m.content, m.version FROM ({}) i CROSS JOIN memories m WHERE m.id = i.value AND {}"
_PENDING_COUNT = "SELECT count(*) FROM memory_proposals WHERE review_state = 'pending'"
# The literal state lets the planner use the partial index of that state.
_IN_STATE = {
    "pending": "p.review_state = 'pending'",
    "approved": "p.review_state = 'approved'",
    "rejected": "p.review_state = 'rejected'",
    "all": "p.review_state IS NOT NULL",
}
REVIEW_STATES: Final = tuple(_IN_STATE)
"""The states that ``review_page`` accepts; ``all`` means every proposal that needed a review."""


def review_page(
    snapshot: Snapshot, read: ReadScope, state: str, *, limit: int, offset: int
) -> tuple[list[ProposalRow], int]:
    """Return a page of the proposals over readable memories in the state of review, oldest first, and their number."""
    where, bindings = conjunction((_IN_STATE[state], {}), readable(snapshot, read))
    rows = snapshot.rows(_REVIEW_PAGE.format(where), {**bindings, "limit": limit, "offset": offset})
    return [_proposal(row) for row in rows], int(snapshot.value(_REVIEW_COUNT.format(where), bindings))


def pending_count(snapshot: Snapshot) -> int:
    """Return the number of proposals of the whole store that wait for a review."""
    return int(snapshot.value(_PENDING_COUNT))


def of_run(snapshot: Snapshot, run_id: str) -> list[ProposalRow]:
    """Return the proposals of a run in their order."""
    return [_proposal(row) for row in snapshot.rows(_OF_RUN, {"run_id": run_id})]


def contents_and_versions(snapshot: Snapshot, read: ReadScope, ids: Sequence[str]) -> dict[str, tuple[str, int]]:
    """Return content and version of the live, readable ones of the memories by id."""
    dialect = snapshot.dialect
    where, bindings = conjunction(("m.is_deleted = 0", {"ids": dialect.listed(ids)}), readable(snapshot, read))
    rows = snapshot.rows(_TARGETS.format(dialect.members("ids"), where), bindings)
    return {memory_id: (content, version) for memory_id, content, version in rows}


def _proposal(row: Sequence[Any]) -> ProposalRow:
    values = dict(zip(ProposalRow.__struct_fields__, row, strict=True))
    values |= {flag: None if values[flag] is None else bool(values[flag]) for flag in _FLAGS}
    return ProposalRow(**values)
