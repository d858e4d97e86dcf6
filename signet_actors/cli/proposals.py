"""The proposals of a run of the pipeline, as a table.

Source: memory-pipeline.txt "Decision Engine"; docs/cli.md "Facts from memories".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from signet_actors.cli.presentation import on_terminal, one_line
from signet_actors.cli.tables import SHOWN_CONTENT_CHARS, Cell, Column, print_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def print_proposals(proposals: Sequence[Mapping[str, Any]], *, numbered: bool = True) -> None:
    """Print each proposal with its outcome and the reason for it; the id of its memory stands below the fact.

    On a pipe: ``[number] action outcome reason memory fact``, tab-separated.
    """
    rows: list[tuple[Any, ...]] = []
    for one in proposals:
        why = one.get("undoNote") or one.get("reason")
        memory = one.get("resultMemoryId") or one.get("targetId")
        number = (one.get("ordinal"),) if numbered else ()
        told = (*number, one.get("action"), one.get("outcome"), why)
        if on_terminal():
            rows.append((*told, Cell(one_line(fact_text(one), SHOWN_CONTENT_CHARS), one_line(memory))))
        else:
            rows.append((*told, memory, fact_text(one)))
    number_column = (Column("#", drop=1, right=True),) if numbered else ()
    fixed = ("action", "outcome", Column("reason", wrap=True))
    print_table((*number_column, *fixed, Column("fact", wrap=True)), rows, none="It proposed nothing.")


def fact_text(proposal: Mapping[str, Any]) -> str:
    """Return the proposed fact; a forgotten one is erased."""
    text = proposal.get("factContent")
    return "(erased)" if text is None else str(text)
