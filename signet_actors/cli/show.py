"""The commands show and history, one memory in full and what happened to it, and sessions, what was said in the past.

Source: memory-api.txt "Memories"; docs/compatibility.md "Reading memories"; docs/operations.md "Long texts";
docs/guides/transcripts.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

import click

from signet_actors.cli.connection import DaemonClient, DaemonReply, memory_path, print_answer, print_relations
from signet_actors.cli.invocation import Invocation, command, page_options, project_option
from signet_actors.cli.memory_rows import CHUNK, UnusableId, full_id, named_if_unknown, project_name, short_ids
from signet_actors.cli.presentation import (
    cell_count,
    counted,
    emphasised,
    full_time_text,
    on_terminal,
    one_line,
    print_bytes,
    print_message,
    printable,
    tags_text,
    terminal_width,
    time_text,
    wrap,
    wrap_parts,
)
from signet_actors.cli.tables import Column, print_fields, print_records, print_wrapped
from signet_actors.errors import ErrorCode, RequestRefused

RUNS_SHOWN = 20
FIELDS = (
    *("id", "type", "tags", "importance", "pinned", "who", "project", "scope", "agent_id", "visibility", "source_type"),
    *("source_id", "source_path", "runtime_path", "idempotency_key", "session_id", "confidence", "access_count"),
    *("last_accessed", "extraction_status", "embedding_model", "version", "created_at", "updated_at", "updated_by"),
    "deleted_at",
)
LABELS = {
    "agent_id": "agent",
    "session_id": "session",
    "access_count": "recalled",
    "last_accessed": "last recalled",
    "extraction_status": "extraction",
    "embedding_model": "embedding",
}
"""The label of each field that is not shown by its name."""
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
        with named_if_unknown(memory_id):
            answer = client.get(memory_path(memory_id), includeDeleted=deleted or None, withParts=whole or None)
    except (UnusableId, RequestRefused) as error:
        is_refused = isinstance(error, RequestRefused) and error.code is not ErrorCode.NOT_FOUND
        if is_refused or (session := find_session(client, given)) is None:
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
    labels = {**LABELS, "visibility": "read by" if on_terminal() else "visibility"}
    print_fields(
        (labels.get(name, name.removesuffix("_at").replace("_", " ")), _field_text(name, memory.get(name)))
        for name in FIELDS
        if name != "deleted_at" or memory.get("is_deleted")
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
    print_records(EVENTS, events, none="There is no history.")


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


EVENTS = (
    Column("when", "createdAt", time_text),
    "event",
    Column("by", "changedBy", drop=1),
    Column("reason", drop=2, wrap=True),
    Column("change", form=_change, wrap=True),
)


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


PAST: Final = "/api/sessions/past"
SHOWN_PROMPT_CHARS: Final = 160
SHOWN_CANDIDATES: Final = 10


@command(agent=True)
@project_option("Only sessions of this project.")
@page_options(200, "sessions")
@click.option("--all", "every", is_flag=True, help="Also active ones and those without a transcript, with counts.")
def sessions(invocation: Invocation, project: str | None, limit: int, offset: int, every: bool) -> None:
    """List past sessions, the latest first.

    `signet show SESSION` prints what was said, `signet why SESSION` what its prompts were given. On a pipe: session,
    time, harness, project, turns, first prompt and summary, separated by tabs; with --all session, time, harness,
    project, prompts, how many of them were given memories, skipped hooks, transcript.
    """
    if every:
        _print_every_session(invocation, project, limit, offset)
        return
    answer = invocation.client().get(PAST, project=project, limit=limit, offset=offset or None)
    found = answer.records("sessions")
    if invocation.has_printed(answer):
        return
    if not found:
        print_message(f"There are no {'more ' * bool(offset)}sessions{' of this project' * bool(project)}.")
        return
    if not on_terminal():
        names = ("sessionKey", "updatedAt", "harness", "project", "turns", "prompt", "summary")
        for row in found:
            click.echo("\t".join(one_line(row.get(name)) for name in names))
        return
    times = [time_text(row.get("updatedAt")) for row in found]
    for row, when, key in zip(found, times, short_ids([{"id": row.get("sessionKey")} for row in found]), strict=True):
        lead = when.ljust(max(map(len, times)) + 2)
        prompt = one_line(row.get("prompt"), SHOWN_PROMPT_CHARS) or "(no prompt)"
        print_wrapped(prompt, lead=lead, indent=len(lead))
        if row.get("summary"):
            print_wrapped(
                f"→ {one_line(row['summary'], SHOWN_PROMPT_CHARS)}", lead=" " * len(lead), indent=len(lead) + 2
            )
        about = (key, one_line(row.get("harness")), project_name(row), counted(row.get("turns"), "turn"))
        for line in wrap_parts(map(one_line, about), terminal_width() - len(lead)):
            click.echo(" " * len(lead) + line)
    total = answer.body.get("total", offset + len(found))
    page = f"{offset + 1}-{offset + len(found)} of " if total != len(found) else ""
    after = offset + len(found)
    rest = f"more with `--offset {after}`; " if after < total else ""
    print_message(f"{page}{counted(total, 'session')}; {rest}" + invocation.advice("`signet show SESSION` prints one"))


EVERY: Final = (
    Column("session", "key"),
    Column("active", "lastActiveAt", time_text),
    "harness",
    Column("project", form=project_name),
    "prompts",
    Column("given", "promptsGiven"),
    "skipped",
    "transcript",
)


def _print_every_session(invocation: Invocation, project: str | None, limit: int, offset: int) -> None:
    if offset:
        raise click.UsageError("give --all or --offset, not both")
    answer = invocation.client().get("/api/sessions", state="all", project=project, limit=limit)
    found = answer.records("sessions")
    if not invocation.has_printed(answer):
        print_records(EVERY, found, none="There are no sessions.")


def find_session(client: DaemonClient, given: str) -> str | None:
    """Return the key of the session that begins with ``given``, or None. Raises UnusableId if several do."""
    try:
        found = client.get(PAST, prefix=given, limit=SHOWN_CANDIDATES + 1).records("sessions")
    except RequestRefused:  # the caller may not list them, or the daemon is older
        return None
    keys = [str(row.get("sessionKey")) for row in found]
    if given in keys:
        return given
    if len(keys) > 1:
        listed = [f"  {one_line(row.get('sessionKey'))}  {one_line(row.get('prompt'), 60)}" for row in found]
        raise UnusableId("\n".join([f"several sessions begin with {one_line(given)}:", *listed[:SHOWN_CANDIDATES]]))
    return keys[0] if keys else None


def print_session(invocation: Invocation, client: DaemonClient, key: str) -> None:
    """Print what was said in the session."""
    path = f"/api/sessions/{quote(key, safe='')}/transcript"
    answer = client.get(path, view="turns")
    if invocation.has_printed(answer):
        return
    body: dict[str, Any] = answer.body
    print_fields(
        (
            ("session", body.get("sessionKey")),
            ("harness", body.get("harness")),
            ("project", body.get("project")),
            ("last change", full_time_text(body.get("updatedAt"))),
            ("turns", body.get("turnCount")),
        )
    )
    while True:
        for turn in answer.records("turns"):
            at = time_text(turn.get("at")) if turn.get("at") else ""
            click.echo(f"\n{emphasised(str(turn.get('role') or '').capitalize())}{f' ({at})' if at else ''}")
            click.echo(_wrapped(printable(str(turn.get("content") or ""))))
        after = answer.body.get("nextCursor")
        if after is None:
            return
        answer = client.get(path, view="turns", after=after)


def _wrapped(text: str) -> str:
    """Return the text with its lines that do not fit on the terminal broken between words."""
    if not on_terminal():
        return text
    width = terminal_width()
    lines = (wrap(line, width) if cell_count(line) > width else [line] for line in text.split("\n"))
    return "\n".join(part for parts in lines for part in parts)
