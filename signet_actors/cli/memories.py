"""The commands on single memories: remember, list, show, history, edit, recover.

Source: memory-api.txt "Memories"; docs/compatibility.md "Reading memories", "Real clients: command line".
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from signet_actors.cli.connection import memory_path
from signet_actors.cli.invocation import agent_option, shared_options
from signet_actors.cli.memory_ids import full_id, named_if_unknown
from signet_actors.cli.presentation import (
    counted,
    on_terminal,
    one_line,
    print_bytes,
    print_json,
    print_message,
    print_result,
    printable,
    tags_text,
)
from signet_actors.cli.reply import print_answer, print_relations
from signet_actors.cli.tables import SEPARATOR, Column, print_fields, print_memories, print_table, print_wrapped
from signet_actors.cli.tag_options import split_tags
from signet_actors.cli.times import full_time_text, time_text

if TYPE_CHECKING:
    from collections.abc import Iterator

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
TIMES = ("last_accessed", "created_at", "updated_at", "deleted_at")


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
    help="Protect it from forget without --force; importance 1 unless --importance is given.",
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
    about = [one_line(stored.get("type")), one_line(tags_text(stored.get("tags")).replace(",", ", "))]
    about += ["pinned"] if stored.get("pinned") else []
    head = "Already remembered as" if stored.get("deduped") else "Remembered as"
    print_result(f"{head} {one_line(ids[0])} ({SEPARATOR.join(part for part in about if part)})")
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
    if not memories:
        kind = f" of the type {one_line(type_)}" if type_ else ""
        print_message(f"There are no {'more ' * bool(offset)}{'deleted ' * deleted}memories{kind}.")
        return
    print_memories(memories)
    if on_terminal():
        stats: dict[str, Any] = answer.body.get("stats") or {}
        live = counted(stats.get("total", 0), "live memory", "live memories")
        print_message(
            f"{offset + 1}-{offset + len(memories)} shown; {live}, {stats.get('withEmbeddings', 0)} with a vector,"
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
    memory_id = full_id(client, memory_id, agent=agent, deleted=deleted)
    with named_if_unknown(memory_id):
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
    memory_id = full_id(client, memory_id, agent=agent)
    if invocation.as_json:
        with named_if_unknown(memory_id):
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
    memory_id = full_id(client, memory_id, agent=agent)
    body = {"reason": reason, "if_version": if_version, "agentId": agent}
    if patch:
        answer = _changed(client, memory_id, {**patch, **body})
    else:
        with named_if_unknown(memory_id):
            found = client.get(memory_path(memory_id), agentId=agent)
        body["if_version"] = if_version or found.body.get("version")
        with _edited(found.text("content")) as text:
            if text is None:
                if invocation.as_json:
                    print_json({"id": memory_id, "status": "no_changes"})
                else:
                    print_message("Nothing changed.")
                return
            answer = _changed(client, memory_id, {"content": text, **body})
    if invocation.as_json:
        print_answer(answer)
    elif answer.body.get("status") == "no_changes":
        print_result(f"{memory_id} has these values already.")
    else:
        print_result(f"Updated {memory_id} (version {answer.body.get('newVersion')}).")


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
    client = invocation.client()
    memory_id = full_id(client, memory_id, agent=agent, deleted=True)
    body = {"reason": reason, "if_version": if_version, "agentId": agent}
    with named_if_unknown(memory_id):
        answer = client.send("POST", memory_path(memory_id, "/recover"), body)
    answer.confirm("status", "recovered")
    if invocation.as_json:
        print_answer(answer)
    else:
        print_result(f"Recovered {memory_id} (version {answer.body.get('newVersion')}).")


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
        return tags_text(value).replace(",", ", ") if on_terminal() else tags_text(value)
    if name == "pinned":
        return "yes" if value else "no"
    return full_time_text(value) if name in TIMES else value


def _changed(client: DaemonClient, memory_id: str, body: dict[str, Any]) -> DaemonReply:
    """Change the memory and return the daemon's reply."""
    with named_if_unknown(memory_id):
        answer = client.send("PATCH", memory_path(memory_id), body)
    answer.confirm("status", "updated", "no_changes")
    return answer


@contextmanager
def _edited(content: str) -> Iterator[str | None]:
    """Open the text in the user's editor and yield the new text; None if it is unchanged."""
    from signet_actors.cli.edited_text import edited_text  # noqa: PLC0415 - slow; not needed to remember or recall

    options = "--content, --type, --tags, --importance or --pin/--unpin"
    with edited_text(content + "\n", ".md", instead=f"nothing to change: give {options}") as text:
        edited = text.rstrip("\n")
        if not edited.strip():
            raise click.UsageError("the text is empty; `signet forget` deletes a memory")
        yield None if edited == content.rstrip("\n") else edited


def _print_history(client: DaemonClient, memory_id: str, *, limit: int, agent: str | None) -> None:
    with named_if_unknown(memory_id):
        events = client.get(memory_path(memory_id, "/history"), limit=limit, agentId=agent).records("history")
    print_table(
        ("when", "event", Column("by", 1), Column("reason", 2, wrap=True), Column("text", wrap=True)),
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
    from signet_actors.cli.proposals import print_proposals  # noqa: PLC0415 - not needed to remember or recall

    runs = client.get("/api/pipeline/runs", memory_id=memory_id, limit=RUNS_SHOWN, agentId=agent).records("runs")
    for run in runs:
        answer = client.get(f"/api/pipeline/runs/{quote(str(run.get('id')), safe='')}", agentId=agent)
        click.echo()
        undone = ", undone" if run.get("undoneAt") else ""
        print_wrapped(f"run {run.get('id')} ({run.get('mode')}, {time_text(run.get('createdAt'))}{undone})", indent=2)
        print_proposals(answer.records("proposals"), numbered=False)
        print_relations(answer)
