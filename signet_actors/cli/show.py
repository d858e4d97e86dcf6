"""The commands show and history: one memory in full, and what happened to it.

Source: memory-api.txt "Memories"; docs/compatibility.md "Reading memories"; docs/operations.md "Long texts".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from signet_actors.cli.connection import memory_path
from signet_actors.cli.invocation import command, page_options
from signet_actors.cli.memory_ids import UnusableId, full_id, named_if_unknown
from signet_actors.cli.presentation import (
    counted,
    on_terminal,
    one_line,
    print_bytes,
    print_message,
    printable,
    tags_text,
)
from signet_actors.cli.reply import print_answer, print_relations
from signet_actors.cli.sessions import find_session, print_session
from signet_actors.cli.tables import Column, print_fields, print_table, print_wrapped
from signet_actors.cli.times import full_time_text, time_text
from signet_actors.errors import ErrorCode, RequestRefused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from signet_actors.cli.connection import DaemonClient
    from signet_actors.cli.invocation import Invocation
    from signet_actors.cli.reply import DaemonReply

CHUNK = "chunk"
"""The kind of source of a memory that is a part of a longer text."""
RUNS_SHOWN = 20
FIELDS = (
    ("id", "id"),
    ("type", "type"),
    ("tags", "tags"),
    ("importance", "importance"),
    ("pinned", "pinned"),
    ("who", "who"),
    ("project", "project"),
    ("scope", "scope"),
    ("agent", "agent_id"),
    ("visibility", "visibility"),
    ("source type", "source_type"),
    ("source id", "source_id"),
    ("source path", "source_path"),
    ("runtime path", "runtime_path"),
    ("idempotency key", "idempotency_key"),
    ("session", "session_id"),
    ("confidence", "confidence"),
    ("recalled", "access_count"),
    ("last recalled", "last_accessed"),
    ("extraction", "extraction_status"),
    ("embedding", "embedding_model"),
    ("version", "version"),
    ("created", "created_at"),
    ("updated", "updated_at"),
    ("updated by", "updated_by"),
    ("deleted", "deleted_at"),
)
READERS = {"global": "every agent but isolated ones", "private": "its agent alone", "archived": "nobody (archived)"}
"""Who may read a memory, by its visibility."""
TIMES = ("last_accessed", "created_at", "updated_at", "deleted_at")


@command(agent=True)
@click.argument("memory_id", metavar="ID")
@click.option(
    "--history", "with_history", is_flag=True, help="Also its history and what the pipeline extracted from it."
)
@click.option("--whole", is_flag=True, help="Of a part of a long text: print the text of all its parts, and no fields.")
@click.option("--deleted", is_flag=True, help="Show it even if it is deleted.")
def show(invocation: Invocation, memory_id: str, with_history: bool, whole: bool, deleted: bool) -> None:
    """Show one memory in full, or what was said in a session.

    ID is that of a memory or the key of a session (`signet sessions`), or the first characters of either.
    """
    if whole and with_history:
        raise click.UsageError("give --whole or --history, not both")
    client = invocation.client()
    given = memory_id
    try:
        memory_id = full_id(client, given, deleted=deleted)
    except UnusableId:
        if (session := find_session(client, given)) is None:
            raise
        print_session(invocation, client, session)
        return
    try:
        with named_if_unknown(memory_id):
            answer = client.get(memory_path(memory_id), includeDeleted=deleted or None, withParts=whole or None)
    except RequestRefused as refused:
        if refused.code is not ErrorCode.NOT_FOUND or (session := find_session(client, given)) is None:
            raise
        print_session(invocation, client, session)
        return
    answer.text("id")
    answer.text("content")
    if invocation.as_json and not with_history:
        print_answer(answer)
        return
    if invocation.as_json:
        events = client.get(memory_path(memory_id, "/history"))
        events.records("history")
        print_bytes(b'{"memory":' + answer.raw.strip() + b',"history":' + events.raw.strip() + b"}\n")
        return
    memory: dict[str, Any] = answer.body
    if whole:
        _print_whole(answer)
        return
    print_fields(
        ("read by" if name == "visibility" and on_terminal() else label, _field_text(name, memory.get(name)))
        for label, name in FIELDS
        if not (name == "deleted_at" and not memory.get("is_deleted"))
    )
    click.echo()
    click.echo(printable(str(memory.get("content") or "")))
    if memory.get("source_type") == CHUNK:
        whole_text = invocation.advice(f"`signet show {memory_id} --whole`")
        print_message(f"This is a part of a longer text; {whole_text} prints all of it.")
    if with_history:
        click.echo()
        _print_history(client, memory_id, limit=200)
        _print_runs(client, memory_id)


def _print_whole(answer: DaemonReply) -> None:
    """Print the parts of a long text as one text, or the memory if it is no part of one."""
    if answer.body.get("source_type") != CHUNK or "parts" not in answer.body:
        click.echo(printable(answer.text("content")))
        return
    parts = answer.records("parts")
    for part in parts:
        click.echo(printable(str(part.get("content") or "")))
    if on_terminal():
        print_message(f"{counted(len(parts), 'part')}; the white space between them may differ from the original.")


@command(agent=True)
@click.argument("memory_id", metavar="ID")
@page_options(1000, "events", default=200, offset=False)
def history(invocation: Invocation, memory_id: str, limit: int) -> None:
    """Show what happened to a memory, oldest first.

    Also for a deleted memory, until its history is purged.
    """
    client = invocation.client()
    memory_id = full_id(client, memory_id)
    if invocation.as_json:
        with named_if_unknown(memory_id):
            answer = client.get(memory_path(memory_id, "/history"), limit=limit)
        answer.records("history")
        print_answer(answer)
        return
    _print_history(client, memory_id, limit=limit)


def _field_text(name: str, value: Any) -> Any:
    if name == "tags":
        return tags_text(value).replace(",", ", ") if on_terminal() else tags_text(value)
    if name == "pinned":
        return "yes" if value else "no"
    if name == "visibility" and on_terminal():
        return READERS.get(str(value), value)
    return full_time_text(value) if name in TIMES else value


def _print_history(client: DaemonClient, memory_id: str, *, limit: int) -> None:
    with named_if_unknown(memory_id):
        events = client.get(memory_path(memory_id, "/history"), limit=limit).records("history")
    print_table(
        ("when", "event", Column("by", 1), Column("reason", 2, wrap=True), Column("change", wrap=True)),
        [
            (
                time_text(event.get("createdAt")),
                event.get("event"),
                event.get("changedBy"),
                event.get("reason"),
                _change(event),
            )
            for event in events
        ],
        none="There is no history.",
    )


def _change(event: dict[str, Any]) -> str:
    """Return what the event changed: the text, or the other values that an update changed."""
    old, new = event.get("oldContent"), event.get("newContent")
    changes = [*_changed_values(event.get("metadata"))]
    if old and new and old != new:
        changes.insert(0, f"{one_line(old, 200)} → {one_line(new, 200)}")
    return "; ".join(changes) or one_line(new or old or _proposed_fact(event.get("metadata")), 200)


def _changed_values(metadata: Any) -> Iterator[str]:
    """Yield each changed value but the text as ``name: before → after``; nothing for events that are no update."""
    before, after = (metadata.get(when) if isinstance(metadata, dict) else None for when in ("before", "after"))
    if not isinstance(before, dict) or not isinstance(after, dict):
        return
    for name, value in after.items():
        yield f"{one_line(name)}: {_value_text(name, before)} → {_value_text(name, {name: value})}"


def _value_text(name: str, values: Mapping[str, Any]) -> str:
    value = values.get(name)
    if name == "pinned":
        return "yes" if value else "no"
    return one_line(", ".join(map(str, value)) if isinstance(value, list) else value, 200) or "none"


def _proposed_fact(metadata: Any) -> str:
    """Return the change that the pipeline proposed but did not apply; empty for other events."""
    if not isinstance(metadata, dict) or not metadata.get("factContent"):
        return ""
    return f"proposed {metadata.get('proposedAction')}: {metadata['factContent']}"


def _print_runs(client: DaemonClient, memory_id: str) -> None:
    """Print what the pipeline extracted from the memory, newest run first; nothing if it has no runs."""
    from signet_actors.cli.proposals import print_proposals, print_rejected  # noqa: PLC0415 - not needed to remember or recall

    runs = client.get("/api/pipeline/runs", memory_id=memory_id, limit=RUNS_SHOWN).records("runs")
    for run in runs:
        answer = client.get(f"/api/pipeline/runs/{quote(str(run.get('id')), safe='')}")
        click.echo()
        undone = ", undone" if run.get("undoneAt") else ""
        print_wrapped(f"run {run.get('id')} ({run.get('mode')}, {time_text(run.get('createdAt'))}{undone})", indent=2)
        print_proposals(answer.records("proposals"), numbered=False)
        print_rejected(answer.body)
        print_relations(answer)
