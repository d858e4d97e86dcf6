"""The commands remember and list.

Source: memory-api.txt "Memories"; docs/compatibility.md "Reading memories", "Real clients: command line".
"""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from signet_actors.cli.connection import DaemonReply
from signet_actors.cli.invocation import (
    Invocation,
    command,
    filter_options,
    page_options,
    print_unusual_type,
    project_option,
    query_of,
    split_tags,
)
from signet_actors.cli.memory_rows import SEPARATOR, print_memories, project_name, short_id, short_ids
from signet_actors.cli.presentation import (
    SINCE,
    UNTIL,
    counted,
    on_terminal,
    one_line,
    print_message,
    print_result,
    tags_text,
    time_text,
)
from signet_actors.cli.tables import print_fields, print_table
from signet_actors.errors import ErrorCode, RequestRefused

SHOWN_SIMILAR_CHARS = 60
SHOWN_VALUES = 8
MAX_INPUT_BYTES = 64 * 1024 * 1024
"""The largest request that a daemon can be configured to accept."""


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


@command(agent=True)
@click.argument("text", nargs=-1, required=True)
@click.option("--type", metavar="TYPE", help="fact, preference, decision, rule, … (default: inferred).")
@click.option("--tags", "-t", multiple=True, metavar="A,B", help="Tags, separated by commas; may be repeated.")
@click.option("--importance", "-i", type=click.FloatRange(0, 1), help="Importance from 0 to 1 (default 0.8).")
@click.option("--who", default="user", show_default=True, help="Author of the memory.")
@project_option("Project that the memory belongs to.")
@click.option("--scope", help="Scope: recall returns it only with this --scope, list never.")
@click.option(
    "--pinned/--no-pinned",
    default=None,
    help="Protect it from forget without --force; importance 1 unless --importance is given.",
)
@click.option("--critical", is_flag=True, help="Pinned, with importance 1.")
@click.option("--visibility", type=click.Choice(["global", "private"]), help="Visibility (default global).")
@click.option(
    "--idempotency-key", "idempotencyKey", metavar="KEY", help="Import key: the same key never stores a second memory."
)
@click.option("--source-type", "sourceType", help="Kind of source (default manual).")
@click.option("--source-id", "sourceId", help="Id at the source; the same id never stores a second memory.")
@click.option("--source-path", "sourcePath", help="Path of the original.")
@click.option("--runtime-path", "runtimePath", help="Path relative to the runtime.")
@click.option("--created-at", "createdAt", metavar="TIME", type=SINCE, help="When it was first known (default now).")
@click.option("--occurred-at", "occurredAt", metavar="TIME", type=SINCE, help="When the event happened.")
@click.option("--observed-at", "observedAt", metavar="TIME", type=SINCE, help="When it was observed.")
@click.option("--source-created-at", "sourceCreatedAt", metavar="TIME", type=SINCE, help="When the source was created.")
@click.option("--valid-from", "validFrom", metavar="TIME", type=SINCE, help="Start of validity.")
@click.option("--valid-until", "validUntil", metavar="TIME", type=UNTIL, help="End of validity; of a day, its end.")
def remember(
    invocation: Invocation,
    text: tuple[str, ...],
    tags: tuple[str, ...],
    project: str | None,
    critical: bool,
    **given: Any,
) -> None:
    """Store a memory.

    TEXT is the memory; `-` reads it from standard input. It is on disk when the command ends. Storing the same
    text again returns the memory that exists. On a pipe the output is the id alone.
    """
    content = read_text(text)
    if not content.strip():
        raise RequestRefused("There is no text to remember", code=ErrorCode.INVALID_REQUEST)
    if critical:
        given |= {
            "pinned": given["pinned"] is not False,
            "importance": 1.0 if given["importance"] is None else given["importance"],
        }
    body = {"content": content, "tags": split_tags(tags), "project": project, **given}
    answer = invocation.client().send("POST", "/api/memory/remember", body)
    stored: dict[str, Any] = answer.body
    ids = _stored_ids(answer)
    if invocation.has_printed(answer):
        return
    if stored.get("redacted"):
        kinds = one_line(", ".join(map(str, stored.get("redactions") or ())))
        print_message(f"A secret in the text was replaced by a placeholder{f' ({kinds})' if kinds else ''}.")
    if stored.get("chunked"):
        if on_terminal():
            click.echo(f"{'Already remembered' if stored.get('deduped') else 'Remembered'} as {len(ids)} parts:")
        for part_id in ids:
            click.echo(one_line(part_id))
        return
    if not on_terminal():
        click.echo(one_line(ids[0]))
        _print_similar(invocation, stored.get("similar") or [])  # on standard error: it may be an agent that asks
        return
    about = [one_line(stored.get("type")), one_line(tags_text(stored.get("tags")).replace(",", ", "))]
    about += [f"project {project_name({'project': project})}"] if project else []
    about += ["pinned"] if stored.get("pinned") else []
    head = "Already remembered as" if stored.get("deduped") else "Remembered as"
    print_result(f"{head} {short_id(ids[0])} ({SEPARATOR.join(part for part in about if part)})")
    if project and "/" not in project and not _has_sessions(invocation, project):
        print_message(
            f"No session has run in a directory named {one_line(project)} yet; only those in such a directory see it."
        )
    _print_similar(invocation, stored.get("similar") or [])
    print_unusual_type(given["type"])
    if stored.get("embedded") is False:
        print_message("Keyword search finds it at once; its vector is not stored yet.")


@command(name="list", agent=True)
@filter_options
@page_options(1000, "memories")
@click.option("--deleted", is_flag=True, help="List the deleted memories that can be recovered, last deleted first.")
@click.option("--words", metavar="TEXT", help="With --deleted: only texts with each of these words.")
@click.option("--facets", is_flag=True, help="Count them by type, project, author, tag and so on instead.")
def list_memories(
    invocation: Invocation,
    only: dict[str, Any],
    limit: int,
    offset: int,
    deleted: bool,
    words: str | None,
    facets: bool,
) -> None:
    """List memories, newest first.

    On a pipe: id, type, created, tags and content, separated by tabs; with --facets: what is counted, value and number.
    """
    asked = query_of(only)
    if facets:
        _print_facets(invocation, invocation.client().get("/api/memories/facets", deleted=deleted or None, **asked))
        return
    asked["words"] = words
    answer = invocation.client().get("/api/memories", limit=limit, offset=offset, deleted=deleted or None, **asked)
    memories = answer.records("memories")
    if invocation.has_printed(answer):
        return
    if answer.body.get("complete") is False:
        print_message("Only those that were deleted last were searched, 20,000 at most.")
    if not memories:
        type_ = asked.pop("type")
        kind = f" of the type {one_line(type_)}" if type_ else ""
        matching = " that match" if any(value is not None for value in asked.values()) else ""
        print_message(f"There are no {'more ' * bool(offset)}{'deleted ' * deleted}memories{kind}{matching}.")
        return
    print_memories(memories, lead="deleted_at" if deleted else "created_at")
    if not on_terminal():
        return
    if deleted:
        advice = invocation.advice("`signet recover ID…` brings memories back")
        print_message(f"{offset + 1}-{offset + len(memories)} shown; {advice}")
        return
    total = answer.body.get("total", offset + len(memories))
    page = f"{offset + 1}-{offset + len(memories)} of " if total != len(memories) else ""
    after = offset + len(memories)
    rest = f"; more with `--offset {after}`, or `-n {min(total, 1000)}`" if after < total else ""
    print_message(f"{page}{counted(total, 'memory')}{rest}")


def _print_facets(invocation: Invocation, answer: DaemonReply) -> None:
    """Print how many of the memories have each value; on a terminal, the most frequent ones of each kind."""
    facets = {name: facet for name, facet in answer.body.items() if isinstance(facet, dict) and "values" in facet}
    if not facets:
        raise answer.malformed("no facets")
    if invocation.has_printed(answer):
        return
    if not on_terminal():
        rows = [(name, one["value"] or "", one["count"]) for name, facet in facets.items() for one in facet["values"]]
        print_table((), rows)
        return
    for name, facet in facets.items():
        shown = [f"{one_line(one['value'] or 'none')} {one['count']}" for one in facet["values"][:SHOWN_VALUES]]
        more = facet["distinct"] - len(shown)
        print_fields([(name, SEPARATOR.join([*shown, f"{more} more"] if more else shown) or "none")])


def _print_similar(invocation: Invocation, similar: list[dict[str, Any]]) -> None:
    """Print the memories that say nearly the same as the new one, and the command that changes one.

    The reply does not tell which of them were imported together, so each id is as long as that of an imported one.
    """
    ids = short_ids([{**one, "source_type": "unknown"} for one in similar])
    for one, id_ in zip(similar, ids, strict=True):
        told = f'Similar: "{one_line(one.get("content"), SHOWN_SIMILAR_CHARS)}" ({time_text(one.get("createdAt"))}).'
        edit = invocation.advice(f'If that is no longer true: `signet edit {id_} --content "…"`')
        print_message(f"{told} {edit if len(similar) == 1 else id_}")
    if len(similar) > 1:
        print_message(invocation.advice('If one of them is no longer true: `signet edit ID --content "…"`'))


def _has_sessions(invocation: Invocation, project: str) -> bool:
    """Return whether a session ran in a directory of this name, or the current directory has it."""
    if os.path.basename(os.environ.get("PWD", "")) == project:
        return True
    try:
        answer = invocation.client().get("/api/sessions/past", project=project, limit=1)
        return bool(answer.records("sessions"))
    except RequestRefused:  # an older daemon, or the caller may not list sessions
        return True


def _stored_ids(answer: DaemonReply) -> list[str]:
    """Return the ids of the stored memory or of its parts; raise RequestRefused if the reply has none."""
    if not answer.body.get("chunked"):
        return [answer.text("id")]
    ids = answer.body.get("ids")
    if not isinstance(ids, list) or not ids or not all(isinstance(part_id, str) and part_id for part_id in ids):
        raise answer.malformed("no ids")
    return ids
