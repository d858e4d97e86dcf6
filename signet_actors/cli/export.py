"""The command export: write all memories to a file of JSON lines, or to a directory of Markdown.

A file or directory is written under another name, and renamed when it is complete.

Source: docs/transfer.md.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from signet_actors.cli.invocation import agent_option, shared_options
from signet_actors.cli.output_file import (
    is_standard_output,
    is_stream,
    new_output,
    refuse_inside_workspace,
    refuse_target,
)
from signet_actors.cli.presentation import counted, print_bytes, print_json, print_result, progress_bar
from signet_actors.errors import SignetError
from signet_actors.runtime.fsync import fsync_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from signet_actors.cli.connection import DaemonClient
    from signet_actors.cli.invocation import Invocation

PAGE_LINES = 500


@click.command()
@click.argument("file", metavar="FILE|-")
@click.option("--markdown", is_flag=True, help="Write a directory of Markdown, one file a memory, to read and edit.")
@click.option("--scope", metavar="NAME", help="Only memories of this scope (default: all scopes).")
@agent_option
@shared_options
@click.pass_obj
def export(invocation: Invocation, file: str, markdown: bool, scope: str | None, agent: str | None) -> None:
    """Write memories to a file of JSON lines, or as Markdown.

    The export contains all memories that the agent may read. Deleted memories and the history are left out; a backup
    contains those.
    """
    client = invocation.client()
    path = Path(file)
    if markdown:
        _export_markdown(invocation, client, path, scope, agent)
        return
    if file == "-" or is_standard_output(path):
        export_lines(client, print_bytes, scope, agent, lambda _: None)
        sys.stdout.flush()
        return
    if is_stream(path):
        count = _export_to_stream(client, path, scope, agent)
    else:
        refuse_target(path, invocation.workspace)
        count = _export_to_file(client, path, scope, agent)
    _report_export(invocation, count, path)


def _export_markdown(
    invocation: Invocation, client: DaemonClient, path: Path, scope: str | None, agent: str | None
) -> None:
    from signet_actors.cli.markdown_files import MarkdownDirectory  # noqa: PLC0415 - only for Markdown

    refuse_inside_workspace(path, invocation.workspace)
    with MarkdownDirectory(path) as directory, progress_bar("exported", None) as advance:

        def write(page: bytes) -> None:
            for text in page.splitlines():
                memory = json.loads(text)
                if "content" in memory:
                    directory.add(memory)

        count = export_lines(client, write, scope, agent, advance)
        directory.finish()
    _report_export(invocation, count, path)


def _report_export(invocation: Invocation, count: int, path: Path) -> None:
    if invocation.as_json:
        print_json({"exported": count, "file": str(path)})
    else:
        print_result(f"Exported {counted(count, 'memory', 'memories')} to {path}.")


def _export_to_stream(client: DaemonClient, path: Path, scope: str | None, agent: str | None) -> int:
    """Write the export to a FIFO or a character device; raise SignetError if the write fails."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC), "wb") as out:
            return export_lines(client, out.write, scope, agent, lambda _: None)
    except OSError as error:
        raise SignetError(f"{path} cannot be written: {error.strerror}") from error


def _export_to_file(client: DaemonClient, path: Path, scope: str | None, agent: str | None) -> int:
    """Write the export to a temporary file and rename it to ``path``; raise SignetError if the write fails."""
    with new_output(path) as draft, progress_bar("exported", None) as advance:
        try:
            count = export_lines(client, draft.file.write, scope, agent, advance)
            draft.sync()
            draft.replace()
            fsync_path(path.parent)
        except OSError as error:
            raise SignetError(f"{path} cannot be written: {error.strerror}") from error
    return count


def export_lines(
    client: DaemonClient,
    write: Callable[[bytes], object],
    scope: str | None,
    agent: str | None,
    advance: Callable[[int], None],
) -> int:
    """Write the header and every memory, page by page; return how many memories there are."""
    count = -1  # do not count the header line
    cursor: str | None = "0"
    while cursor is not None:
        page = client.page("/api/memory/export", after=cursor, limit=PAGE_LINES, scope=scope, agentId=agent)
        write(page.raw)
        count += page.raw.count(b"\n")
        advance(count)
        if page.next_cursor is not None and not _is_later(page.next_cursor, cursor):
            raise page.malformed("the next page is not a later one")
        cursor = page.next_cursor
    return count


def _is_later(cursor: str, than: str) -> bool:
    return cursor.isdecimal() and int(cursor) > int(than)
