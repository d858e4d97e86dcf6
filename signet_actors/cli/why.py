"""The command why: what the prompts of a session were given, what was left out, and why.

Source: docs/guides/hooks.md "What was asked and given", "Why, and why not".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import click

from signet_actors.cli.connection import DaemonClient, print_answer
from signet_actors.cli.invocation import Invocation, command
from signet_actors.cli.memory_rows import full_id
from signet_actors.cli.presentation import counted, full_time_text, one_line, print_message, time_text
from signet_actors.cli.show import find_session
from signet_actors.cli.tables import Column, print_fields, print_records
from signet_actors.domain.normalization import collapsed
from signet_actors.errors import NotFound, RequestRefused

SEARCHES: Final = "/api/telemetry/memory-search"
PROMPT: Final = "/api/hooks/user-prompt-submit"
PAGE: Final = 200
HEAD_CHARS: Final = 250
"""So much of a prompt is compared with what the transcript says."""


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
    rows = _all(client, key)
    if not rows:
        raise NotFound(f"nothing is kept of a session {one_line(session)}")
    prompts = [row for row in rows if row.get("kind") == "prompt"]
    if number is None and memory_id is None:
        if invocation.as_json:
            print_answer(client.get(SEARCHES, session=key, limit=PAGE))
            return
        print_records(PROMPTS, [{**row, "outcome": _outcome(row)} for row in rows], none="There are no prompts.")
        print_message(invocation.advice(f"`signet why {one_line(session)} N` shows one prompt"))
        return
    chosen = prompts[-1:] if number is None else [row for row in prompts if row.get("number") == number]
    if not chosen:
        raise NotFound(f"the session has {counted(len(prompts), 'prompt')}, and none of that number")
    (row,) = chosen
    if memory_id is not None:
        _print_fate(invocation, client, key, row, full_id(client, memory_id, deleted=True))
        return
    if invocation.as_json:
        one = client.get(SEARCHES, session=key, kind="prompt", before=_after(prompts, row), limit=1)
        print_answer(one)
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


def _after(prompts: list[dict[str, Any]], row: dict[str, Any]) -> str | None:
    """Return the id of the prompt after ``row``, None for the last one."""
    at = prompts.index(row) + 1
    return str(prompts[at]["id"]) if at < len(prompts) else None


def _print_fate(invocation: Invocation, client: DaemonClient, key: str, row: Mapping[str, Any], memory_id: str) -> None:
    prompt, last = _said(client, key, str(row.get("prompt") or ""))
    if not prompt:
        raise NotFound("the words of this prompt were erased")
    body = {
        "harness": row.get("harness") or "signet",
        "project": row.get("project"),
        "sessionKey": key,
        "userMessage": prompt,
        "lastAssistantMessage": last,
        "dryRun": True,
        "asOf": row.get("id"),
        "explainId": memory_id,
    }
    answer = client.send("POST", PROMPT, body)
    if invocation.has_printed(answer):
        return
    fate = answer.body.get("explained")
    if not isinstance(fate, dict):
        raise NotFound(f"the prompt was not run: {one_line(answer.body.get('reason'))}")
    relevance, threshold = fate.get("relevance"), fate.get("threshold")
    print_fields(
        (
            ("prompt", one_line(prompt, 300)),
            ("memory", fate.get("id")),
            ("given", "yes" if fate.get("given") else "no"),
            ("why", fate.get("why")),
            ("relevance", None if relevance is None else _relevance(relevance)),
            ("threshold", None if threshold is None else _relevance(threshold)),
        )
    )


def _said(client: DaemonClient, key: str, head: str) -> tuple[str, str | None]:
    """Return the whole prompt that begins with ``head``, and what was said before it, as far as they are kept."""
    path = f"/api/sessions/{quote(key, safe='')}/transcript"
    before: str | None = None
    after: int | None = None
    try:
        while head:
            answer = client.get(path, view="turns", after=after)
            for turn in answer.records("turns"):
                content = str(turn.get("content") or "")
                if turn.get("role") == "user" and collapsed(content).startswith(head[:HEAD_CHARS]):
                    return content, before
                if turn.get("role") == "assistant":
                    before = content
            after = answer.body.get("nextCursor")
            if after is None:
                break
    except RequestRefused:  # no transcript is kept
        pass
    return head, None
