"""The commands retention and synthesis: have the daemon clean up now, or make ``MEMORY.md``, and show what changed.

Source: architecture.txt "Retention", "POST /api/repair/retention-sweep"; docs/guides/working-memory.md.
"""

from __future__ import annotations

import time
from typing import Any, Final

import click

from signet_actors.cli import presentation as output
from signet_actors.cli.connection import DaemonReply, print_answer
from signet_actors.cli.exit_codes import REFUSED
from signet_actors.cli.invocation import Invocation, command, group
from signet_actors.cli.tables import Column, print_fields, print_records
from signet_actors.errors import ErrorCode, RequestRefused

STATUS: Final = "/api/synthesis/status"
POLL_S: Final = 0.5
LONGEST_S: Final = 1_800.0
_COLOURS: Final = {"+": "green", "-": "red", "@": "cyan"}


def _changed(is_edited: Any) -> str:
    return ("by you" if output.on_terminal() else "changed by you") if is_edited else ""


VERSIONS: Final = (
    Column("former version", "name"),
    Column("kept", "keptAt", output.time_text, drop=1),
    Column("size", "bytes", output.size_text, right=True),
    Column("changed", "edited", _changed),
)
STEPS: Final = (
    "step",
    Column("purged", "count", right=True),
    Column("", "more", lambda more: "more left" if more else ""),
)


@group()
def synthesis() -> None:
    """Show when MEMORY.md was made and what changed; make it now."""


@command(synthesis, "status", agent=True)
def show_status(invocation: Invocation) -> None:
    """Show when MEMORY.md was made, by whom, and its former versions."""
    answer = invocation.client().get(STATUS)
    versions = answer.records("versions")
    if invocation.has_printed(answer):
        return
    body = answer.body
    print_fields(
        (
            ("file", body.get("path")),
            ("made", _made(body)),
            ("changed by you", "yes; the next run keeps what you wrote" if body.get("edited") else None),
            ("running", "yes" if body.get("running") else None),
            ("last error", body.get("lastError")),
            ("next run", output.full_time_text(body.get("nextRunAt")) or None),
            ("waiting", body.get("waiting")),
        )
    )
    if versions:
        click.echo()
        print_records(VERSIONS, versions)


@command(synthesis, agent=True)
@click.option("--again", is_flag=True, help="Make also the parts whose memories are the same as last time.")
def run(invocation: Invocation, again: bool) -> None:
    """Have the daemon make MEMORY.md now, and wait until that ends."""
    client = invocation.client()
    try:
        begun = client.send("POST", "/api/synthesis/trigger", {"again": again})
    except RequestRefused as refused:
        if "no model" not in refused.detail:
            raise
        detail = "MEMORY.md needs a language model; none is available. `signet providers` tells how to get one"
        raise RequestRefused(detail, code=ErrorCode.CONFLICT, answer=refused.answer) from refused
    begun.confirm("success", True)
    until = time.monotonic() + LONGEST_S
    while True:
        answer = client.get(STATUS)
        answer.confirm("running", True, False)
        if not answer.body["running"] or time.monotonic() > until:
            break
        time.sleep(POLL_S)
    _report(invocation, answer)


def _report(invocation: Invocation, answer: DaemonReply) -> None:
    body = answer.body
    if invocation.as_json:
        print_answer(answer)
    elif body["running"]:
        output.print_message("MEMORY.md is still being made. `signet synthesis status` shows when that ends.")
    elif body.get("lastError"):
        reason = output.printable(str(body["lastError"])).rstrip(".")
        output.print_message(f"MEMORY.md was not made: {reason}. The present file is unchanged.")
    else:
        output.print_result(f"{output.printable(answer.text('path'))} is up to date, {body.get('chars')} characters.")
        output.print_message("`signet synthesis diff` shows what changed.")
    if body["running"] or body.get("lastError"):
        click.get_current_context().exit(REFUSED)


@command(synthesis, agent=True)
@click.argument("version", required=False)
def diff(invocation: Invocation, version: str | None) -> None:
    """Show what changed in MEMORY.md since VERSION, or since the newest former version."""
    answer = invocation.client().get("/api/synthesis/diff", version=version)
    if "diff" not in answer.body:
        raise answer.malformed("no diff")
    if invocation.has_printed(answer):
        return
    text = answer.body.get("diff")
    if text is None:
        output.print_message("There is no former version of MEMORY.md.")
    elif not text:
        output.print_message("Nothing has changed since that version.")
    else:
        for line in answer.text("diff").splitlines():
            shown = output.printable(line)
            click.echo(output.emphasised(shown, fg=_COLOURS.get(shown[:1])) if output.on_terminal() else shown)


def _made(body: Any) -> str:
    if body.get("lastRunAt") is None:
        return "never"
    return f"{output.full_time_text(body['lastRunAt'])} by {body.get('model') or body.get('madeBy') or 'a harness'}"


@group()
def retention() -> None:
    """Run the periodic clean-up now."""


@command(retention)
@click.option("--confirm-clock", is_flag=True, help="The clock of this machine is right: purge although it jumped.")
def sweep(invocation: Invocation, confirm_clock: bool) -> None:
    """Purge data past its retention: deleted memories, history, finished jobs.

    After the clock has jumped, nothing is purged until the jump is confirmed with --confirm-clock.
    """
    body = {"confirmClock": True} if confirm_clock else {}
    answer = invocation.client(timeout_s=120).send("POST", "/api/repair/retention-sweep", body)
    answer.confirm("success", True, False)
    steps = answer.records("steps")
    if invocation.has_printed(answer):
        return
    print_records(STEPS, steps)
    if answer.body.get("message") and (output.on_terminal() or not answer.body["success"]):
        output.print_message(output.one_line(answer.body["message"]))
    if not answer.body["success"]:
        click.get_current_context().exit(REFUSED)
