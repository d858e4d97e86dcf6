"""Statements about ``pipeline_runs`` and ``memory_proposals``: what a run proposed, and what people decided about it.

``shown_memories`` records which memories the reason of a proposal may quote.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from signet_actors.domain.extraction.proposals import Action
from signet_actors.protocol.pipeline import AppliedProposal
from signet_actors.store.engine import Insert, WriteTransaction


class NewRun(NamedTuple):
    """A new run; its counts follow when its proposals have their outcomes."""

    id: str
    job_id: str
    memory_id: str
    agent_id: str
    mode: str
    provider: str
    model: str
    proposals: int
    created_at: str


class StoredRun(NamedTuple):
    """The columns of a run that an undo depends on."""

    job_id: str
    memory_id: str
    agent_id: str
    undone_at: str | None


class ProposalRow(NamedTuple):
    """A row of ``memory_proposals``, without who reviewed it."""

    seq: int
    id: str
    run_id: str
    job_id: str
    ordinal: int
    memory_id: str
    action: Action
    outcome: str
    reason: str | None
    rationale: str | None
    fact_content: str | None
    fact_type: str
    fact_confidence: float
    confidence: float
    target_id: str | None
    target_version: int | None
    result_memory_id: str | None
    result_version: int | None
    history_id: str
    syntactic_contradiction: int
    semantic_contradiction: int | None
    review_state: str | None
    created_at: str
    undo_note: str | None = None


PROPOSALS: Final = Insert("memory_proposals", ProposalRow._fields)
SHOWN: Final = Insert("shown_memories", ("proposal_seq", "memory_seq"))

_RUNS: Final = Insert("pipeline_runs", (*NewRun._fields, "counts"))
_SET_COUNTS: Final = "UPDATE pipeline_runs SET counts = :counts WHERE id = :id"
_RUN: Final = "SELECT r.job_id, r.memory_id, r.agent_id, r.undone_at FROM pipeline_runs r WHERE r.id = :id"
_MODE: Final = "SELECT r.mode FROM pipeline_runs r WHERE r.id = :id AND r.job_id = :job_id"
_MODEL: Final = "SELECT r.model FROM pipeline_runs r WHERE r.id = :id"
_MARK_RUN_UNDONE: Final = "UPDATE pipeline_runs SET undone_at = :undone_at, undone_by = :undone_by WHERE id = :id"
_DELETE_RUNS: Final = (
    "DELETE FROM pipeline_runs"
    " WHERE seq IN (SELECT r.seq FROM pipeline_runs r WHERE r.created_at < :moment LIMIT :limit)"
)
_COLUMNS: Final = ", ".join(f"p.{name}" for name in ProposalRow._fields)
_BY_ID: Final = f"SELECT {_COLUMNS} FROM memory_proposals p WHERE p.id = :id"
_OF_RUN: Final = f"SELECT {_COLUMNS} FROM memory_proposals p WHERE p.run_id = :run_id ORDER BY p.ordinal DESC"
_OUTCOMES: Final = (
    "SELECT p.ordinal, p.outcome, p.reason, p.result_memory_id, p.result_version FROM memory_proposals p"
    " WHERE p.run_id = :run_id ORDER BY p.ordinal"
)
_APPROVE: Final = (
    "UPDATE memory_proposals SET outcome = :outcome, review_state = 'approved', reviewed_by = :reviewed_by,"
    " reviewed_at = :now, result_memory_id = :memory_id, result_version = :version WHERE id = :id"
)
_REJECT: Final = (
    "UPDATE memory_proposals SET outcome = :outcome, review_state = 'rejected', reviewed_by = :reviewed_by,"
    " reviewed_at = :now, undo_note = :undo_note WHERE id = :id"
)
_SET_OUTCOME: Final = "UPDATE memory_proposals SET outcome = :outcome WHERE id = :id"
_SET_UNDO_NOTE: Final = "UPDATE memory_proposals SET undo_note = :note WHERE id = :id"
_ERASE_ABOUT: Final = tuple(
    f"UPDATE memory_proposals SET fact_content = NULL, rationale = NULL WHERE {column} = :id"
    for column in ("memory_id", "target_id", "result_memory_id")
)
_ERASE_REASONS_OF_SHOWN: Final = (
    "UPDATE memory_proposals SET rationale = NULL"
    " WHERE seq IN (SELECT s.proposal_seq FROM shown_memories s WHERE s.memory_seq = :seq)"
)
_DELETE_SHOWN: Final = "DELETE FROM shown_memories WHERE memory_seq = :seq"


def insert_run(tx: WriteTransaction, run: NewRun) -> None:
    tx.insert(_RUNS, (*run, "{}"))


def set_counts(tx: WriteTransaction, run_id: str, counts: str) -> None:
    """Store how many of the run's proposals had which outcome (JSON)."""
    tx.execute(_SET_COUNTS, {"counts": counts, "id": run_id})


def run(tx: WriteTransaction, run_id: str) -> StoredRun | None:
    """Return the run, or None."""
    row = tx.one(_RUN, {"id": run_id})
    return None if row is None else StoredRun(*row)


def mode_of_run(tx: WriteTransaction, run_id: str, job_id: str) -> str | None:
    """Return the mode in which the run was applied for this job, or None if it was not."""
    mode: str | None = tx.value(_MODE, {"id": run_id, "job_id": job_id})
    return mode


def model_of_run(tx: WriteTransaction, run_id: str) -> str | None:
    """Return the model that the run asked, or None if there is no such run."""
    model: str | None = tx.value(_MODEL, {"id": run_id})
    return model


def mark_run_undone(tx: WriteTransaction, run_id: str, *, undone_at: str, undone_by: str) -> None:
    """Record who has undone the run."""
    tx.execute(_MARK_RUN_UNDONE, {"undone_at": undone_at, "undone_by": undone_by, "id": run_id})


def delete_runs_before(tx: WriteTransaction, moment: str, limit: int) -> int:
    """Delete runs of before ``moment`` with their proposals; return the number of runs."""
    tx.execute(_DELETE_RUNS, {"moment": moment, "limit": limit})
    return tx.changes()


def by_id(tx: WriteTransaction, proposal_id: str) -> ProposalRow | None:
    """Return the proposal, or None."""
    row = tx.one(_BY_ID, {"id": proposal_id})
    return None if row is None else ProposalRow(*row)


def of_run(tx: WriteTransaction, run_id: str) -> list[ProposalRow]:
    """Return the run's proposals, the last first."""
    return [ProposalRow(*row) for row in tx.rows(_OF_RUN, {"run_id": run_id})]


def outcomes(tx: WriteTransaction, run_id: str) -> list[AppliedProposal]:
    """Return what became of the run's proposals, in order."""
    return [AppliedProposal(*row) for row in tx.rows(_OUTCOMES, {"run_id": run_id})]


def mark_approved(
    tx: WriteTransaction,
    proposal_id: str,
    *,
    outcome: str,
    reviewed_by: str,
    now: str,
    memory_id: str | None,
    version: int | None,
) -> None:
    """Close the proposal as approved, and record the memory that came of it."""
    tx.execute(
        _APPROVE,
        {
            "outcome": outcome,
            "reviewed_by": reviewed_by,
            "now": now,
            "memory_id": memory_id,
            "version": version,
            "id": proposal_id,
        },
    )


def mark_rejected(
    tx: WriteTransaction, proposal_id: str, *, outcome: str, reviewed_by: str, now: str, undo_note: str | None
) -> None:
    tx.execute(
        _REJECT,
        {"outcome": outcome, "reviewed_by": reviewed_by, "now": now, "undo_note": undo_note, "id": proposal_id},
    )


def set_outcome(tx: WriteTransaction, proposal_id: str, outcome: str) -> None:
    tx.execute(_SET_OUTCOME, {"outcome": outcome, "id": proposal_id})


def set_undo_note(tx: WriteTransaction, proposal_id: str, note: str) -> None:
    """Record why an undo kept the proposal's change."""
    tx.execute(_SET_UNDO_NOTE, {"note": note, "id": proposal_id})


def erase_texts(tx: WriteTransaction, memory_id: str, memory_seq: int) -> None:
    """Clear content and reason of proposals from, for or about the memory, and the reasons of those shown it.

    Must run after ``history.erase_content``, which finds the events by the same rows.
    """
    for sql in _ERASE_ABOUT:
        tx.execute(sql, {"id": memory_id})
    tx.execute(_ERASE_REASONS_OF_SHOWN, {"seq": memory_seq})
    tx.execute(_DELETE_SHOWN, {"seq": memory_seq})
