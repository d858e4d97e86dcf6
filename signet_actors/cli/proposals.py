"""The proposals of the pipeline: those of a run as tables, and the command review for those that wait for a person.

Source: memory-pipeline.txt "Decision Engine"; docs/cli.md "Facts from memories"; docs/compatibility.md "Review queue".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from signet_actors.cli.connection import DaemonReply
from signet_actors.cli.invocation import Invocation, command, group, page_options, reason_option
from signet_actors.cli.memory_rows import full_pipeline_id, named_if_unknown
from signet_actors.cli.presentation import on_terminal, one_line, print_message
from signet_actors.cli.tables import (
    SHOWN_CONTENT_CHARS,
    Cell,
    Column,
    print_fields,
    print_records,
    print_table,
    print_wrapped,
)
from signet_actors.operations.request_path import fill_path


def print_proposals(proposals: Sequence[Mapping[str, Any]], *, numbered: bool = True) -> None:
    """Print each proposal with its outcome and the reason for it; the id of its memory stands below the fact.

    On a pipe: ``[number] action outcome reason memory fact``, tab-separated.
    """
    print_records(PROPOSALS[not numbered :], proposals, none="It proposed nothing.")


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


def fact_text(text: Any) -> str:
    """Return the proposed fact; a forgotten one is erased."""
    return "(erased)" if text is None else str(text)


def _memory(proposal: Mapping[str, Any]) -> Any:
    return proposal.get("resultMemoryId") or proposal.get("targetId")


def _fact_cell(proposal: Mapping[str, Any]) -> str | Cell:
    """Return the fact, on a terminal shortened and with the id of its memory below it."""
    text = fact_text(proposal.get("factContent"))
    return Cell(one_line(text, SHOWN_CONTENT_CHARS), one_line(_memory(proposal))) if on_terminal() else text


PROPOSALS: Final = (
    Column("#", "ordinal", drop=1, right=True),
    "action",
    "outcome",
    Column("reason", form=lambda proposal: proposal.get("undoNote") or proposal.get("reason"), wrap=True),
    Column("memory", form=_memory, piped=True),
    Column("fact", form=_fact_cell, wrap=True),
)
REVIEWS: Final = (
    *("id", "review_state", "action", "reason", "memory_id", "current_content"),
    Column("fact", "fact_content", fact_text),
)
"""The columns of a list for review on a pipe."""


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
    if invocation.has_printed(answer):
        return
    if not on_terminal() or not items:
        print_records(
            REVIEWS,
            items,
            none=f"There are no {'more ' if offset else ''}proposals{'' if offset else _in_state(state)}.",
        )
        _print_hint(answer)
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
                ("fact", fact_text(item.get("fact_content"))),
            )
        )
        click.echo()
    print_message(f"{offset + 1}-{offset + len(items)} of {answer.body.get('total', 0)} shown")
    if state in {"pending", "all"}:
        print_message("`signet review approve ID` applies one,\n`signet review reject ID` rejects it.")
    _print_hint(answer)


def _print_hint(answer: DaemonReply) -> None:
    """Print the setting that the last decisions speak for, to a person."""
    if on_terminal() and (hint := answer.body.get("hint")):
        print_wrapped(f"{hint['text']} `signet config set {hint['key']} {hint['value']}`", chop=False)


@command(review, "approve", agent=True)
@click.argument("proposal_id", metavar="ID")
@reason_option()
def approve(invocation: Invocation, proposal_id: str, reason: str | None) -> None:
    """Apply a proposal, if its memory has not changed since the model saw it."""
    _decide(invocation, proposal_id, reason, "approve", "approved")


@command(review, "reject", agent=True)
@click.argument("proposal_id", metavar="ID")
@reason_option()
def reject(invocation: Invocation, proposal_id: str, reason: str | None) -> None:
    """Reject a proposal permanently."""
    _decide(invocation, proposal_id, reason, "reject", "rejected")


def _decide(invocation: Invocation, given: str, reason: str | None, word: str, done: str) -> None:
    client = invocation.client()
    proposal_id = full_pipeline_id(client, given, "proposal")
    path = fill_path(f"/api/memory/review-queue/{{id}}/{word}", {"id": proposal_id})
    with named_if_unknown(proposal_id, kind="proposal"):
        answer = client.send("POST", path, {"reason": reason})
    answer.confirm("status", done)
    effect = "nothing was changed"
    if done == "approved":
        version = answer.body.get("newVersion", "?")
        effect = f"memory {one_line(answer.body.get('memoryId'))} has version {version}"
    before = "already " if answer.body.get("already") else ""
    invocation.print_done(answer, f"{one_line(proposal_id)} is {before}{done}; {effect}.")


def _in_state(state: str) -> str:
    return "" if state == "all" else " for review" if state == "pending" else f" that were {state}"
