"""The commands edit and recover, which change stored memories; forget has its own file.

Source: memory-api.txt "Memories"; docs/compatibility.md "Forget and modify".
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from signet_actors.cli.connection import memory_path
from signet_actors.cli.exit_codes import REFUSED, explanation
from signet_actors.cli.invocation import agent_option, shared_options
from signet_actors.cli.memories import read_text
from signet_actors.cli.memory_ids import full_id, named_if_unknown
from signet_actors.cli.memory_rows import short_id
from signet_actors.cli.presentation import print_json, print_message, print_result
from signet_actors.cli.reply import print_answer
from signet_actors.cli.tag_options import print_unusual_type, split_tags
from signet_actors.errors import ErrorCode, RequestRefused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from signet_actors.cli.connection import DaemonClient
    from signet_actors.cli.invocation import Invocation
    from signet_actors.cli.reply import DaemonReply


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
    given, memory_id = memory_id, full_id(client, memory_id, agent=agent)
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
        print_result(f"{short_id(memory_id, given)} has these values already.")
    else:
        print_result(f"Updated {short_id(memory_id, given)} (version {answer.body.get('newVersion')}).")
    if not invocation.as_json:
        print_unusual_type(type_)


@click.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.option(
    "--reason", "-r", default="recovered on the command line", show_default=True, help="Recorded in the history."
)
@click.option("--if-version", type=click.IntRange(1), metavar="N", help="Only if the memory still has this version.")
@agent_option
@shared_options
@click.pass_obj
def recover(
    invocation: Invocation, ids: tuple[str, ...], reason: str, if_version: int | None, agent: str | None
) -> None:
    """Recover deleted memories.

    Possible for 30 days after the deletion; `signet list --deleted` shows the candidates. Of several, one that cannot
    be recovered does not stop the others; the exit code is 1 then.
    """
    if if_version is not None and len(ids) > 1:
        raise click.UsageError("--if-version goes with exactly one ID")
    client = invocation.client()
    found = [full_id(client, given, agent=agent, deleted=True) for given in ids]
    body = {"reason": reason, "if_version": if_version, "agentId": agent}
    if len(found) == 1:
        answer = _recovered(client, found[0], body)
        if invocation.as_json:
            print_answer(answer)
        else:
            print_result(f"Recovered {short_id(found[0], ids[0])} (version {answer.body.get('newVersion')}).")
        return
    recovered: list[dict[str, Any]] = []
    refused: list[dict[str, Any]] = []
    for memory_id in dict.fromkeys(found):
        try:
            answer = _recovered(client, memory_id, body)
        except RequestRefused as error:
            if error.code not in {ErrorCode.NOT_FOUND, ErrorCode.CONFLICT}:
                raise
            refused.append({"id": memory_id, "error": error.detail, "code": error.code.value})
            if not invocation.as_json:
                about = "" if error.code is ErrorCode.NOT_FOUND else f"{memory_id} was not recovered: "
                print_message(f"{about}{explanation(error).rstrip('.')}.")
            continue
        recovered.append(answer.body)
        if not invocation.as_json:
            print_result(f"Recovered {memory_id} (version {answer.body.get('newVersion')}).")
    if invocation.as_json:
        print_json({"recovered": recovered, "refused": refused})
    if refused:
        click.get_current_context().exit(REFUSED)


def _recovered(client: DaemonClient, memory_id: str, body: dict[str, Any]) -> DaemonReply:
    """Recover the memory and return the daemon's reply."""
    with named_if_unknown(memory_id):
        answer = client.send("POST", memory_path(memory_id, "/recover"), body)
    answer.confirm("status", "recovered")
    return answer


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
