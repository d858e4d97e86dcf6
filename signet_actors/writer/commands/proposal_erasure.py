"""Erase the text of a memory from proposals when the memory is erased. Source: docs/reliability.md R23."""

from __future__ import annotations

from signet_actors.writer.command_context import CommandContext

_ABOUT = ("memory_id", "target_id", "result_memory_id")


def erase(context: CommandContext, memory_id: str, memory_seq: int) -> None:
    """Clear content and reason of proposals from, for or about the memory, and the reasons of those shown it.

    Must run after ``history.erase_content``, which finds the events by the same rows.
    """
    for column in _ABOUT:
        context.tx.execute(
            f"UPDATE memory_proposals SET fact_content = NULL, rationale = NULL WHERE {column} = ?", (memory_id,)
        )
    context.tx.execute(
        "UPDATE memory_proposals SET rationale = NULL"
        " WHERE seq IN (SELECT proposal_seq FROM shown_memories WHERE memory_seq = ?)",
        (memory_seq,),
    )
    context.tx.execute("DELETE FROM shown_memories WHERE memory_seq = ?", (memory_seq,))
