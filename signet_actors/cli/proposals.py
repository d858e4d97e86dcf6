"""The proposals of a run of the pipeline, and the facts that it rejected, as tables.

Source: memory-pipeline.txt "Decision Engine"; docs/cli.md "Facts from memories".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from signet_actors.cli.presentation import on_terminal, one_line
from signet_actors.cli.tables import SHOWN_CONTENT_CHARS, Cell, Column, print_table, print_wrapped

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


def print_rejected(run: Mapping[str, Any]) -> None:
    """Print the facts of a run that never became a proposal, each with the reason, and warnings about the answers.

    On a pipe: ``rejected reason fact``, tab-separated. If the memory itself was rejected, the reason alone.
    """
    rows = [(one.get("reason"), one.get("content")) for one in run.get("rejected") or []]
    reasons: Mapping[str, int] = run.get("rejectedCounts") or {}
    if not rows and reasons:
        print_wrapped(f"rejected: {', '.join(f'{count} {reason}' for reason, count in reasons.items())}", indent=2)
    elif rows and on_terminal():
        click.echo()
        print_table((Column("rejected because"), Column("fact", wrap=True)), rows)
    else:
        print_table((), [("rejected", *row) for row in rows])
    for warning in run.get("warnings") or []:
        print_wrapped(f"warning: {warning}", indent=2)


def fact_text(proposal: Mapping[str, Any]) -> str:
    """Return the proposed fact; a forgotten one is erased."""
    text = proposal.get("factContent")
    return "(erased)" if text is None else str(text)
