"""The command why: what the prompts of a session were given, what was left out, and why.

Source: docs/guides/hooks.md "What was asked and given", "Why, and why not".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import click

from signet_actors.cli.connection import DaemonClient, print_answer
from signet_actors.cli.invocation import Invocation, command
from signet_actors.cli.memory_rows import full_id
from signet_actors.cli.presentation import counted, full_time_text, one_line, print_message, time_text
from signet_actors.cli.show import find_session
from signet_actors.cli.tables import Column, print_fields, print_records
from signet_actors.errors import NotFound

SEARCHES: Final = "/api/telemetry/memory-search"
PROMPT: Final = "/api/hooks/user-prompt-submit"
PAGE: Final = 200


def _outcome(row: Mapping[str, Any]) -> str:
    """Return what came of a prompt, in a few words, and how many memories were left out."""
    left = sum(not memory.get("given") for memory in row.get("memories", ()))
    return one_line(row.get("outcome")) + (f"; {left} left out" if left else "")


def _relevance(value: Any) -> str:
    return "" if value is None else f"{value:.2f}"


PROMPTS: Final = (
    Column("n", "number", lambda number: "" if number is None else str(number)),
    Column("when", "at", time_text),
    "kind",
    "outcome",
    Column("prompt", "prompt", lambda text: one_line(text, 160), wrap=True),
)
MEMORIES: Final = (
    Column("relevance", "relevance", _relevance),
    Column("outcome", "outcome"),
    Column("id", "id", lambda text: one_line(text)[:18]),
    Column("memory", "content", lambda text: "(forgotten)" if text is None else one_line(text, 200), wrap=True),
)


@command(agent=True)
@click.argument("session", metavar="SESSION")
@click.argument("number", metavar="[N]", type=click.IntRange(1), required=False)
@click.option("--memory", "memory_id", metavar="ID", help="Say what becomes of this memory at the prompt.")
def why(invocation: Invocation, session: str, number: int | None, memory_id: str | None) -> None:
    """Show what the prompts of a session were given, and why.

    SESSION is the key of a session (`signet sessions`), or the first characters of it. N is a prompt of it: then its
    memories are listed, also those that were left out, each with the reason. With --memory the prompt is run again as
    it was, the last one without N, and nothing changes: the reason is told also if the memory was not found.
    On a pipe: number, time, kind, what came of it, prompt; of one prompt relevance, outcome, id, memory; by tabs.
    """
    client = invocation.client()
    key = find_session(client, session) or session
    if number is None and memory_id is None:
        if invocation.as_json:
            print_answer(client.get(SEARCHES, session=key, limit=PAGE))
            return
        rows = _all(client, key)
        if not rows:
            raise NotFound(f"nothing is kept of a session {one_line(session)}")
        print_records(PROMPTS, [{**row, "outcome": _outcome(row)} for row in rows], none="There are no prompts.")
        print_message(invocation.advice(f"`signet why {one_line(session)} N` shows one prompt"))
        return
    answer = client.get(SEARCHES, session=key, kind="prompt", number=number, limit=1)
    row = next(iter(answer.records("searches")), None)
    if row is None:
        wanted = "a prompt" if number is None else f"prompt {number}"
        raise NotFound(f"nothing is kept of {wanted} of a session {one_line(session)}")
    if memory_id is not None:
        _print_fate(invocation, client, key, row, full_id(client, memory_id, deleted=True))
        return
    if invocation.as_json:
        print_answer(answer)
        return
    print_fields(
        (
            ("prompt", row.get("prompt") or "(erased)"),
            ("asked", full_time_text(row.get("at"))),
            ("project", row.get("project")),
            ("harness", row.get("harness")),
            ("outcome", f"{_outcome(row)}; {counted(row.get('characters'), 'character')} in {row.get('ms')} ms"),
        )
    )
    click.echo()
    print_records(MEMORIES, row.get("memories", []), none="No memory was found.")
    for outcome, reason in {each["outcome"]: each["why"] for each in row.get("memories", ())}.items():
        if outcome != reason:
            print_message(f"{outcome}: {reason}")


def _all(client: DaemonClient, key: str) -> list[dict[str, Any]]:
    """Return all that is kept of the session, the first search first."""
    rows: list[dict[str, Any]] = []
    before = None
    while True:
        answer = client.get(SEARCHES, session=key, limit=PAGE, before=before)
        rows += answer.records("searches")
        before = answer.body.get("next")
        if before is None:
            return rows[::-1]


def _print_fate(invocation: Invocation, client: DaemonClient, key: str, row: Mapping[str, Any], memory_id: str) -> None:
    body = {"sessionKey": key, "dryRun": True, "asOf": row.get("id"), "explainId": memory_id}
    answer = client.send("POST", PROMPT, body)
    if invocation.has_printed(answer):
        return
    fate = answer.body.get("explained")
    if not isinstance(fate, dict):
        raise NotFound(f"the prompt was not run: {one_line(answer.body.get('reason'))}")
    relevance, threshold = fate.get("relevance"), fate.get("threshold")
    print_fields(
        (
            ("prompt", one_line(row.get("prompt"), 300)),
            ("memory", fate.get("id")),
            ("then", fate.get("then")),
            ("given", "yes" if fate.get("given") else "no"),
            ("why", fate.get("why")),
            ("relevance", None if relevance is None else _relevance(relevance)),
            ("threshold", None if threshold is None else _relevance(threshold)),
        )
    )
