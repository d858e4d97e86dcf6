"""The commands on single memories: remember, list, show, history, edit, recover.

Source: memory-api.txt "Memories"; docs/compatibility.md "Reading memories", "Real clients: command line".
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from signet_actors.cli.connection import memory_path
from signet_actors.cli.invocation import agent_option, shared_options
from signet_actors.cli.presentation import (
    format_minute,
    on_terminal,
    one_line,
    print_bytes,
    print_fields,
    print_memories,
    print_message,
    print_table,
    printable,
    tags_text,
)
from signet_actors.cli.reply import print_answer, print_relations

if TYPE_CHECKING:
    from signet_actors.cli.connection import DaemonClient
    from signet_actors.cli.invocation import Invocation
    from signet_actors.cli.reply import DaemonReply

RUNS_SHOWN = 20
MAX_INPUT_BYTES = 64 * 1024 * 1024
"""The largest request that a daemon can be configured to accept."""
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


def read_text(words: tuple[str, ...]) -> str:
    """Return the words as one text, or standard input if the only word is ``-``."""
    if words != ("-",):
        return " ".join(words)
    try:
        data = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
        if len(data) > MAX_INPUT_BYTES:
            raise click.UsageError(f"standard input is longer than {MAX_INPUT_BYTES} bytes")
        return data.decode().rstrip("\n")
    except UnicodeDecodeError as error:
        raise click.UsageError(f"standard input is not UTF-8 text ({error.reason} at byte {error.start})") from error


def split_tags(tags: tuple[str, ...]) -> list[str] | None:
    """Return the tags of repeated and comma-separated options; None if no option was given."""
    if not tags:
        return None
    return [tag.strip() for option in tags for tag in option.split(",") if tag.strip()]


@click.command()
@click.argument("text", nargs=-1, required=True)
@click.option("--type", "type_", metavar="TYPE", help="fact, preference, decision, rule, … (default: inferred).")
@click.option("--tags", "-t", multiple=True, metavar="A,B", help="Tags, separated by commas; may be repeated.")
@click.option("--importance", "-i", type=click.FloatRange(0, 1), help="Importance from 0 to 1 (default 0.8).")
@click.option("--who", default="user", show_default=True, help="Author of the memory.")
@click.option("--project", help="Project that the memory belongs to.")
@click.option("--scope", help="Scope: recall returns it only with this --scope, list never.")
@click.option(
    "--pinned/--no-pinned",
    default=None,
    help="Protect it from decay and from forget without --force; importance 1 unless --importance is given.",
)
@click.option("--critical", is_flag=True, help="Pinned, with importance 1.")
@click.option("--visibility", type=click.Choice(["global", "private"]), help="Visibility (default global).")
@click.option("--idempotency-key", metavar="KEY", help="Import key: the same key never stores a second memory.")
@click.option("--source-type", help="Kind of source (default manual).")
@click.option("--source-id", help="Id at the source; the same id never stores a second memory.")
@click.option("--source-path", help="Path of the original.")
@click.option("--runtime-path", help="Path relative to the runtime.")
@click.option("--created-at", metavar="TIME", help="When it was first known (ISO; default now).")
@click.option("--occurred-at", metavar="TIME", help="When the event happened.")
@click.option("--observed-at", metavar="TIME", help="When it was observed.")
@click.option("--source-created-at", metavar="TIME", help="When the source was created.")
@click.option("--valid-from", metavar="TIME", help="Start of validity.")
@click.option("--valid-until", metavar="TIME", help="End of validity.")
@agent_option
@shared_options
@click.pass_obj
def remember(
    invocation: Invocation,
    text: tuple[str, ...],
    type_: str | None,
    tags: tuple[str, ...],
    importance: float | None,
    who: str,
    project: str | None,
    scope: str | None,
    pinned: bool | None,
    critical: bool,
    visibility: str | None,
    idempotency_key: str | None,
    source_type: str | None,
    source_id: str | None,
    source_path: str | None,
    runtime_path: str | None,
    created_at: str | None,
    occurred_at: str | None,
    observed_at: str | None,
    source_created_at: str | None,
    valid_from: str | None,
    valid_until: str | None,
    agent: str | None,
) -> None:
    """Store a memory.

    TEXT is the memory; `-` reads it from standard input. It is on disk when the command ends. Storing the same
    text again returns the memory that exists. On a pipe the output is the id alone.
    """
    content = read_text(text)
    if critical:
        pinned = True if pinned is None else pinned
        importance = 1.0 if importance is None else importance
    answer = invocation.client().send(
        "POST",
        "/api/memory/remember",
        {
            "content": content,
            "type": type_,
            "tags": split_tags(tags),
            "importance": importance,
            "who": who,
            "project": project,
            "scope": scope,
            "pinned": pinned,
            "visibility": visibility,
            "idempotencyKey": idempotency_key,
            "sourceType": source_type,
            "sourceId": source_id,
            "sourcePath": source_path,
            "runtimePath": runtime_path,
            "createdAt": created_at,
            "occurredAt": occurred_at,
            "observedAt": observed_at,
            "sourceCreatedAt": source_created_at,
            "validFrom": valid_from,
            "validUntil": valid_until,
            "agentId": agent,
        },
    )
    stored: dict[str, Any] = answer.body
    ids = _stored_ids(answer)
    if invocation.as_json:
        print_answer(answer)
        return
    if stored.get("redacted"):
        kinds = one_line(", ".join(map(str, stored.get("redactions") or ())))
        print_message(f"A secret in the text was replaced by a placeholder{f' ({kinds})' if kinds else ''}.")
    if stored.get("chunked"):
        if on_terminal():
            click.echo(f"Remembered as {len(ids)} parts:")
        for part_id in ids:
            click.echo(one_line(part_id))
        return
    if not on_terminal():
        click.echo(one_line(ids[0]))
        return
    about = [one_line(stored.get("type")), one_line(tags_text(stored.get("tags")))]
    about += ["pinned"] if stored.get("pinned") else []
    head = "Already remembered as" if stored.get("deduped") else "Remembered as"
    click.echo(f"{head} {one_line(ids[0])} ({', '.join(part for part in about if part)})")
    if stored.get("embedded") is False:
        print_message("Keyword search finds it at once; its vector is not stored yet.")


@click.command(name="list")
@click.option("--type", "type_", metavar="TYPE", help="Only memories of this type.")
@click.option(
    "--limit", "-n", type=click.IntRange(1, 1000), default=20, show_default=True, help="Maximum number of memories."
)
@click.option("--offset", type=click.IntRange(0), default=0, show_default=True, help="Skip this many.")
@click.option("--deleted", is_flag=True, help="List the deleted memories that can be recovered.")
@agent_option
@shared_options
@click.pass_obj
def list_memories(
    invocation: Invocation, type_: str | None, limit: int, offset: int, deleted: bool, agent: str | None
) -> None:
    """List memories, newest first.

    On a pipe: id, type, created, tags and content, separated by tabs.
    """
    answer = invocation.client().get(
        "/api/memories", limit=limit, offset=offset, type=type_, deleted=deleted or None, agentId=agent
    )
    memories = answer.records("memories")
    if invocation.as_json:
        print_answer(answer)
        return
    if memories:
        print_memories(memories)
    if on_terminal():
        stats: dict[str, Any] = answer.body.get("stats") or {}
        shown = f"{offset + 1}-{offset + len(memories)}" if memories else "none"
        print_message(
            f"{shown} shown; {stats.get('total', 0)} live memories, {stats.get('withEmbeddings', 0)} with a vector,"
            f" {stats.get('critical', 0)} critical"
        )


@click.command()
@click.argument("memory_id", metavar="ID")
@click.option(
    "--history", "with_history", is_flag=True, help="Also its history and what the pipeline extracted from it."
)
@click.option("--deleted", is_flag=True, help="Show it even if it is deleted.")
@agent_option
@shared_options
@click.pass_obj
def show(invocation: Invocation, memory_id: str, with_history: bool, deleted: bool, agent: str | None) -> None:
    """Show one memory in full."""
    client = invocation.client()
    answer = client.get(memory_path(memory_id), agentId=agent, includeDeleted=deleted or None)
    answer.text("id")
    answer.text("content")
    if invocation.as_json and not with_history:
        print_answer(answer)
        return
    if invocation.as_json:
        events = client.get(memory_path(memory_id, "/history"), agentId=agent)
        events.records("history")
        print_bytes(b'{"memory":' + answer.raw.strip() + b',"history":' + events.raw.strip() + b"}\n")
        return
    memory: dict[str, Any] = answer.body
    print_fields(
        (label, _field_text(name, memory.get(name)))
        for label, name in FIELDS
        if not (name == "deleted_at" and not memory.get("is_deleted"))
    )
    click.echo()
    click.echo(printable(str(memory.get("content") or "")))
    if with_history:
        click.echo()
        _print_history(client, memory_id, limit=200, agent=agent)
        _print_runs(client, memory_id, agent=agent)


@click.command()
@click.argument("memory_id", metavar="ID")
@click.option(
    "--limit", "-n", type=click.IntRange(1, 1000), default=200, show_default=True, help="Maximum number of events."
)
@agent_option
@shared_options
@click.pass_obj
def history(invocation: Invocation, memory_id: str, limit: int, agent: str | None) -> None:
    """Show what happened to a memory, oldest first.

    Also for a deleted memory, until its history is purged.
    """
    client = invocation.client()
    if invocation.as_json:
        answer = client.get(memory_path(memory_id, "/history"), limit=limit, agentId=agent)
        answer.records("history")
        print_answer(answer)
        return
    _print_history(client, memory_id, limit=limit, agent=agent)


@click.command()
@click.argument("memory_id", metavar="ID")
@click.option("--content", "-c", metavar="TEXT", help="New text; `-` reads it from standard input.")
@click.option("--type", "type_", metavar="TYPE", help="New type.")
@click.option(
    "--tags", "-t", multiple=True, metavar="A,B", help="New tags, replacing the old ones; an empty text removes all."
)
@click.option("--importance", "-i", type=click.FloatRange(0, 1), help="New importance from 0 to 1.")
@click.option("--pin/--unpin", "pinned", default=None, help="Pin or unpin it.")
@click.option(
    "--reason", "-r", default="edited on the command line", show_default=True, help="Recorded in the history."
)
@click.option("--if-version", type=click.IntRange(1), metavar="N", help="Only if the memory still has this version.")
@agent_option
@shared_options
@click.pass_obj
def edit(
    invocation: Invocation,
    memory_id: str,
    content: str | None,
    type_: str | None,
    tags: tuple[str, ...],
    importance: float | None,
    pinned: bool | None,
    reason: str,
    if_version: int | None,
    agent: str | None,
) -> None:
    """Change a memory.

    Without an option that changes something, $EDITOR opens with the text. The edited text is stored only if the memory
    has not changed in the meantime.
    """
    client = invocation.client()
    patch: dict[str, Any] = {}
    if content is not None:
        patch["content"] = read_text((content,))
    if type_ is not None:
        patch["type"] = type_
    if tags:
        patch["tags"] = split_tags(tags) or []
    if importance is not None:
        patch["importance"] = importance
    if pinned is not None:
        patch["pinned"] = pinned
    if not patch:
        found = client.get(memory_path(memory_id), agentId=agent)
        edited = _edit_in_editor(found.text("content"))
        if edited is None:
            print_message("Nothing changed.")
            return
        patch["content"] = edited
        if_version = if_version or found.body.get("version")
    body = {**patch, "reason": reason, "if_version": if_version, "agentId": agent}
    answer = client.send("PATCH", memory_path(memory_id), body)
    answer.confirm("status", "updated", "no_changes")
    if invocation.as_json:
        print_answer(answer)
    elif answer.body.get("status") == "no_changes":
        click.echo(f"{memory_id} has these values already.")
    else:
        click.echo(f"Updated {memory_id} (version {answer.body.get('newVersion')}).")


@click.command()
@click.argument("memory_id", metavar="ID")
@click.option(
    "--reason", "-r", default="recovered on the command line", show_default=True, help="Recorded in the history."
)
@click.option("--if-version", type=click.IntRange(1), metavar="N", help="Only if the memory still has this version.")
@agent_option
@shared_options
@click.pass_obj
def recover(invocation: Invocation, memory_id: str, reason: str, if_version: int | None, agent: str | None) -> None:
    """Recover a deleted memory.

    Possible for 30 days after the deletion; `signet list --deleted` shows the candidates.
    """
    body = {"reason": reason, "if_version": if_version, "agentId": agent}
    answer = invocation.client().send("POST", memory_path(memory_id, "/recover"), body)
    answer.confirm("status", "recovered")
    if invocation.as_json:
        print_answer(answer)
    else:
        click.echo(f"Recovered {memory_id} (version {answer.body.get('newVersion')}).")


def _stored_ids(answer: DaemonReply) -> list[str]:
    """Return the ids of the stored memory or of its parts; raise RequestRefused if the reply has none."""
    if not answer.body.get("chunked"):
        return [answer.text("id")]
    ids = answer.body.get("ids")
    if not isinstance(ids, list) or not ids or not all(isinstance(part_id, str) and part_id for part_id in ids):
        raise answer.malformed("no ids")
    return ids


def _field_text(name: str, value: Any) -> Any:
    if name == "tags":
        return tags_text(value)
    if name == "pinned":
        return "yes" if value else "no"
    return value


def _edit_in_editor(content: str) -> str | None:
    """Open the text in the user's editor and return the new text; None if it is unchanged."""
    if not sys.stdin.isatty() and not (os.environ.get("VISUAL") or os.environ.get("EDITOR")):
        raise click.UsageError("nothing to change: give --content, --type, --tags, --importance or --pin/--unpin")
    edited = click.edit(content, extension=".md")
    if edited is None or edited.rstrip("\n") == content.rstrip("\n"):
        return None
    if not edited.strip():
        raise click.UsageError("the text is empty; `signet forget` deletes a memory")
    return edited.rstrip("\n")


def _print_history(client: DaemonClient, memory_id: str, *, limit: int, agent: str | None) -> None:
    events = client.get(memory_path(memory_id, "/history"), limit=limit, agentId=agent).records("history")
    print_table(
        ("when", "event", "by", "reason", "text"),
        [
            (
                event.get("createdAt") if not on_terminal() else format_minute(event.get("createdAt")),
                event.get("event"),
                event.get("changedBy"),
                event.get("reason"),
                _change(event),
            )
            for event in events
        ],
        fold="text",
    )


def _change(event: dict[str, Any]) -> str:
    old, new = event.get("oldContent"), event.get("newContent")
    if old and new and old != new:
        return f"{one_line(old, 200)} → {one_line(new, 200)}"
    return one_line(new or old or _proposed_fact(event.get("metadata")), 200)


def _proposed_fact(metadata: Any) -> str:
    """Return the change that the pipeline proposed but did not apply; empty for other events."""
    if not isinstance(metadata, dict) or not metadata.get("factContent"):
        return ""
    return f"proposed {metadata.get('proposedAction')}: {metadata['factContent']}"


def _print_runs(client: DaemonClient, memory_id: str, *, agent: str | None) -> None:
    """Print what the pipeline extracted from the memory, newest run first; nothing if it has no runs."""
    runs = client.get("/api/pipeline/runs", memory_id=memory_id, limit=RUNS_SHOWN, agentId=agent).records("runs")
    for run in runs:
        answer = client.get(f"/api/pipeline/runs/{quote(str(run.get('id')), safe='')}", agentId=agent)
        click.echo()
        undone = ", undone" if run.get("undoneAt") else ""
        click.echo(one_line(f"run {run.get('id')} ({run.get('mode')}, {format_minute(run.get('createdAt'))}{undone})"))
        print_table(
            ("action", "outcome", "why", "memory", "fact"),
            [
                (
                    one.get("action"),
                    one.get("outcome"),
                    one.get("undoNote") or one.get("reason"),
                    one.get("resultMemoryId") or one.get("targetId"),
                    one_line(one.get("factContent") or "(erased)", 200),
                )
                for one in answer.records("proposals")
            ],
            fold="fact",
        )
        print_relations(answer)
