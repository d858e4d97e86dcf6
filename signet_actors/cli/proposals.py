"""The proposals of the pipeline: those of a run as tables, and the command review for those that wait for a person.

Source: memory-pipeline.txt "Decision Engine"; docs/cli.md "Facts from memories"; docs/compatibility.md "Review queue".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from signet_actors.cli.invocation import command, group, page_options, reason_option
from signet_actors.cli.memory_ids import full_pipeline_id, named_if_unknown
from signet_actors.cli.presentation import on_terminal, one_line, print_message, print_result
from signet_actors.cli.reply import print_answer
from signet_actors.cli.tables import SHOWN_CONTENT_CHARS, Cell, Column, print_fields, print_table, print_wrapped
from signet_actors.operations.request_path import fill_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from signet_actors.cli.invocation import Invocation
    from signet_actors.cli.reply import DaemonReply


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


@group()
def review() -> None:
    """Approve or reject the pipeline's proposals."""


@command(review, "list", agent=True)
@click.option(
    "--state",
    type=click.Choice(["pending", "approved", "rejected", "all"]),
    default="pending",
    show_default=True,
    help="Proposals in this state.",
)
@page_options(500, "proposals")
def list_reviews(invocation: Invocation, state: str, limit: int, offset: int) -> None:
    """List proposals for review, oldest first.

    On a pipe: id, state, action, reason, memory, current text, proposed text; separated by tabs.
    """
    answer = invocation.client().get("/api/memory/review-queue", state=state, limit=limit, offset=offset or None)
    items = answer.records("items")
    if invocation.as_json:
        print_answer(answer)
        return
    if not on_terminal() or not items:
        print_table(
            (),
            [
                (
                    item.get("id"),
                    item.get("review_state"),
                    item.get("action"),
                    item.get("reason"),
                    item.get("memory_id"),
                    item.get("current_content"),
                    _fact(item.get("fact_content")),
                )
                for item in items
            ],
            none="There are no more proposals." if offset else f"There are no proposals{_in_state(state)}.",
        )
        return
    for item in items:
        print_fields(
            (
                ("id", item.get("id")),
                (
                    "proposal",
                    f"{item.get('action')} {item.get('memory_id') or 'a memory'} ({item.get('review_state')})",
                ),
                ("reason", item.get("reason")),
                ("model's reason", item.get("rationale")),
                (
                    "current text",
                    item.get("current_content") or ("(nothing yet)" if item.get("action") == "add" else "(deleted)"),
                ),
                ("fact", _fact(item.get("fact_content"))),
            )
        )
        click.echo()
    print_message(f"{offset + 1}-{offset + len(items)} of {answer.body.get('total', 0)} shown")
    if state in {"pending", "all"}:
        print_message("`signet review approve ID` applies one,\n`signet review reject ID` rejects it.")


@command(review, "approve", agent=True)
@click.argument("proposal_id", metavar="ID")
@reason_option()
def approve(invocation: Invocation, proposal_id: str, reason: str | None) -> None:
    """Apply a proposal, if its memory has not changed since the model saw it."""
    proposal_id, answer = _decide(invocation, proposal_id, "approve", reason)
    answer.confirm("status", "approved")
    if invocation.as_json:
        print_answer(answer)
        return
    before = "already " if answer.body.get("already") else ""
    print_result(
        f"{one_line(proposal_id)} is {before}approved;"
        f" memory {one_line(answer.body.get('memoryId'))} has version {answer.body.get('newVersion', '?')}."
    )


@command(review, "reject", agent=True)
@click.argument("proposal_id", metavar="ID")
@reason_option()
def reject(invocation: Invocation, proposal_id: str, reason: str | None) -> None:
    """Reject a proposal permanently."""
    proposal_id, answer = _decide(invocation, proposal_id, "reject", reason)
    answer.confirm("status", "rejected")
    if invocation.as_json:
        print_answer(answer)
        return
    before = "already " if answer.body.get("already") else ""
    print_result(f"{one_line(proposal_id)} is {before}rejected; nothing was changed.")


def _decide(invocation: Invocation, given: str, word: str, reason: str | None) -> tuple[str, DaemonReply]:
    """Send the decision; return the whole id of the proposal, and the reply."""
    client = invocation.client()
    proposal_id = full_pipeline_id(client, given, "proposal")
    path = fill_path(f"/api/memory/review-queue/{{id}}/{word}", {"id": proposal_id})
    with named_if_unknown(proposal_id, kind="proposal"):
        return proposal_id, client.send("POST", path, {"reason": reason})


def _in_state(state: str) -> str:
    return "" if state == "all" else " for review" if state == "pending" else f" that were {state}"


def _fact(text: Any) -> str:
    return "(erased)" if text is None else str(text)
