"""The commands export and import: write all memories to a file of JSON lines, and read them back. Both can be repeated.

An export is written to a temporary file, which is renamed when it is complete. An import saves its progress next to its
file. The Idempotency-Key of a batch is derived from the import, the batch and its place, so that an interrupted import
can be repeated safely. A new import of the same file has new keys: it stores again what was forgotten since.

Source: docs/transfer.md; docs/decisions.md 3.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import re
import sys
import tempfile
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from signet_actors.cli.exit_codes import REFUSED
from signet_actors.cli.import_file import refuse_other_name, refuse_without_line
from signet_actors.cli.import_progress import CONNECTIONS, Batch, ImportProgress, ImportState, cache_directory
from signet_actors.cli.invocation import agent_option, shared_options
from signet_actors.cli.output_file import is_standard_output, is_stream, new_output, refuse_target
from signet_actors.cli.presentation import (
    counted,
    one_line,
    print_bytes,
    print_json,
    print_message,
    print_result,
    progress_bar,
)
from signet_actors.errors import ErrorCode, InvalidRequest, OutcomeUnknown, RequestRefused, SignetError
from signet_actors.runtime.fsync import fsync_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from signet_actors.cli.connection import DaemonClient
    from signet_actors.cli.invocation import Invocation

FORMAT, FORMAT_VERSION = "signet-memories", 1
BATCH_LINES = 500
BATCH_BYTES = 512 * 1024
MAX_LINE_BYTES = 3 * 1024 * 1024
"""A longer line cannot be a memory, and would not fit into a request."""
MAX_SKIPPED_BYTES = 64 * 1024 * 1024
"""Bytes to skip after a line that is too long. If it is longer still, the file is not JSON lines."""
CLIENT_WAIT_S = 120.0
ATTEMPTS = 4
SHOWN_REFUSALS = 50
PAGE_LINES = 500


@click.command()
@click.argument("file", metavar="FILE|-")
@click.option("--scope", metavar="NAME", help="Only memories of this scope (default: all scopes).")
@agent_option
@shared_options
@click.pass_obj
def export(invocation: Invocation, file: str, scope: str | None, agent: str | None) -> None:
    """Write memories to a file of JSON lines.

    The export contains all memories that the agent may read. Deleted memories and the history are left out; a backup
    contains those.
    """
    client = invocation.client()
    path = Path(file)
    if file == "-" or is_standard_output(path):
        export_lines(client, print_bytes, scope, agent, lambda _: None)
        sys.stdout.flush()
        return
    if is_stream(path):
        count = _export_to_stream(client, path, scope, agent)
    else:
        refuse_target(path, invocation.workspace)
        count = _export_to_file(client, path, scope, agent)
    if invocation.as_json:
        print_json({"exported": count, "file": str(path)})
    else:
        print_result(f"Exported {counted(count, 'memory', 'memories')} to {path}.")


IMPORTERS: dict[str, str] = {
    "markdown": "markdown",
    "text": "plain_text",
    "basic-memory": "basic_memory",
    "mem0": "mem0",
    "claude-mem": "claude_mem",
    "reference": "reference",
}
"""The other formats, and the module in ``importers/`` that reads each."""


@click.command("import")
@click.argument("file", metavar="FILE|DIRECTORY|-")
@click.option("--from", "format_", type=click.Choice(tuple(IMPORTERS)), help="The format, if not that of an export.")
@click.option("--skip-unreadable", is_flag=True, help="Leave out files that cannot be read, and list them.")
@agent_option
@shared_options
@click.pass_obj
def import_(invocation: Invocation, file: str, format_: str | None, skip_unreadable: bool, agent: str | None) -> None:
    """Store the memories of a file of JSON lines, or of another format.

    FILE `-` is standard input. Memories that exist already are not stored twice. After an interruption,
    the same command continues where it stopped. Exit code 1 if a line was refused.
    """
    if format_ is not None:
        _import_other(invocation, Path(file), format_, agent, skip_unreadable=skip_unreadable)
        return
    if skip_unreadable:
        raise click.UsageError("`--skip-unreadable` is for files of another format; name it with `--from`")
    if file == "-":
        if sys.stdin.isatty():
            raise click.UsageError("standard input is a terminal; give a FILE, or redirect one with `< FILE`")
        progress = _import(invocation, sys.stdin.buffer, agent, ImportProgress(), lambda _: None, lambda _: None)
    else:
        path = Path(file)
        try:
            refuse_other_name(path)
            if path.exists() and not path.is_file():
                raise click.UsageError(f"{file} is not a regular file; pipe it to `signet import -`")
            refuse_without_line(path, MAX_LINE_BYTES)
            source = path.open("rb")
            address = invocation.client().address
            state = ImportState(path, agent, str(address.workspace or address))
        except OSError as error:
            raise click.UsageError(f"cannot read {file}: {error.strerror}") from error
        with source:
            progress = _import_resumably(invocation, source, agent, state)
    _report(invocation, progress)
    if progress.refused:
        click.get_current_context().exit(REFUSED)


def _import_other(
    invocation: Invocation, path: Path, format_: str, agent: str | None, *, skip_unreadable: bool
) -> None:
    """Convert the file or directory into lines, completely and before anything is stored, and import these."""
    importer = importlib.import_module(f"signet_actors.cli.importers.{IMPORTERS[format_]}")
    if str(path) == "-" or not path.exists():
        raise click.UsageError(f"{path} does not exist; `--from {format_}` needs a file or a directory")
    from signet_actors.cli.importers.findings import Findings  # noqa: PLC0415 - only for another format

    findings = Findings()
    with tempfile.TemporaryFile() as lines:
        for memory in importer.memories(path, findings):
            lines.write(json.dumps(memory, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n")
        if not skip_unreadable or not lines.tell():
            findings.refuse_unreadable()
        lines.seek(0)
        for warning in findings.warnings:
            print_message(f"warning: {one_line(warning)}")
        address = invocation.client().address
        state = ImportState(path, agent, str(address.workspace or address), lines, cache_directory(invocation.environ))
        progress = _import_resumably(invocation, lines, agent, state)
        _name_sources(lines, progress.refusals)
    for sentence in findings.unreadable:
        print_message(f"left out: {one_line(sentence)}")
    if findings.without_text:
        print_message(f"{counted(findings.without_text, 'file')} had no text.")
    _report(invocation, progress, leftOut=findings.unreadable, filesWithoutText=findings.without_text)
    if progress.refused:
        click.get_current_context().exit(REFUSED)


def _name_sources(lines: BinaryIO, refusals: list[dict[str, Any]]) -> None:
    """Replace the number of each refused line by the place in the source that the line was made from."""
    refused = {refusal["line"] for refusal in refusals}
    lines.seek(0)
    made = {number: json.loads(text) for number, text in enumerate(lines, 1) if number in refused}
    for refusal in refusals:
        memory = made[refusal.pop("line")]
        refusal["source"] = memory.get("id") or memory.get("sourceId") or memory["content"]


def _import_resumably(
    invocation: Invocation, source: BinaryIO, agent: str | None, state: ImportState
) -> ImportProgress:
    """Import the lines, from where an interrupted run stopped; return the progress at the end."""
    with progress_bar("imported", state.size) as advance:
        progress = state.read()
        state.write(progress)  # before the first batch: a continued import must send it with the same key
        if progress.offset:
            progress = _continued(invocation, source, agent, progress)
        progress = _import(invocation, source, agent, progress, state.write, advance)
    state.forget()
    return progress


def _continued(invocation: Invocation, source: BinaryIO, agent: str | None, progress: ImportProgress) -> ImportProgress:
    """Return ``progress``, or the beginning of the import if the store does not hold everything before it any more.

    The last batches are sent again under their keys. A store that holds them answers with the receipts of then; one
    that was restored or replaced, or has deleted its replies since, stores them and makes new receipts.
    """
    client = invocation.client()
    client.retry_window_s = CLIENT_WAIT_S
    held = len(progress.last) > 0
    for sent in progress.last:
        source.seek(sent["offset"])
        batch = next(batches(source, sent["offset"], sent["line"], progress.run), None)
        held = held and batch is not None and send_batch(client, batch, agent)[0]["receipts"] == sent["receipts"]
        if not held:
            break
    if held:
        print_message(f"Continuing at line {progress.line}.")
        return progress
    print_message("The store does not hold what was imported before. Beginning at line 1 again.")
    source.seek(0)
    return progress.restarted()


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


def _import(
    invocation: Invocation,
    source: BinaryIO,
    agent: str | None,
    progress: ImportProgress,
    save: Callable[[ImportProgress], None],
    advance: Callable[[int], None],
) -> ImportProgress:
    """Send all lines in batches; call ``save`` with the progress after each batch."""
    if progress.offset:
        source.seek(progress.offset)
    clients: queue.SimpleQueue[DaemonClient] = queue.SimpleQueue()
    for _ in range(CONNECTIONS):
        client = invocation.client()
        client.retry_window_s = CLIENT_WAIT_S
        clients.put(client)

    def send(batch: Batch) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        client = clients.get()
        try:
            return send_batch(client, batch, agent)
        finally:
            clients.put(client)

    in_flight: deque[tuple[Batch, Future[tuple[dict[str, Any], list[dict[str, Any]]]]]] = deque()

    def finish_first() -> None:
        batch, future = in_flight[0]
        counts, refused = future.result()
        in_flight.popleft()
        progress.add(batch, counts, refused)
        save(progress)
        advance(progress.offset)

    with ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="import") as senders:
        try:
            for batch in batches(source, progress.offset, progress.line, progress.run):
                in_flight.append((batch, senders.submit(send, batch)))
                if len(in_flight) >= CONNECTIONS:
                    finish_first()
            while in_flight:
                finish_first()
        except KeyboardInterrupt:
            done = counted(progress.line - 1, "line")
            print_message(f"\nInterrupted after {done}; run the same command again to continue.")
            raise
        except SignetError:
            if progress.offset:
                print_message(
                    f"Everything before line {progress.line} is done; run the same command again to continue."
                )
            raise
        finally:
            for _, future in in_flight:
                future.cancel()
    return progress


def batches(source: BinaryIO, offset: int, line: int, run: str = "") -> Iterator[Batch]:
    """Yield the lines of ``source``, which is at ``offset``, in batches; raise InvalidRequest for an unknown format."""
    batch_start, first_line = offset, line
    lines: list[bytes] = []
    refused: list[dict[str, Any]] = []
    size = 0
    while text := source.readline(MAX_LINE_BYTES + 1):
        offset += len(text)
        if len(text) > MAX_LINE_BYTES and not text.endswith(b"\n"):
            offset += _skip_line(source, line)
            refused.append(
                {
                    "line": line,
                    "error": f"the line is longer than {MAX_LINE_BYTES} bytes",
                    "code": ErrorCode.PAYLOAD_TOO_LARGE.value,
                }
            )
            text = b""
        elif line == 1:
            check_header(text)
        lines.append(text.rstrip(b"\r\n"))
        line += 1
        size += len(text)
        if len(lines) >= BATCH_LINES or size >= BATCH_BYTES:
            yield Batch(batch_start, offset, first_line, tuple(lines), tuple(refused), run)
            batch_start, first_line, size = offset, line, 0
            lines, refused = [], []
    if lines:
        yield Batch(batch_start, offset, first_line, tuple(lines), tuple(refused), run)


def check_header(text: bytes) -> None:
    """Raise InvalidRequest if the first line is the header of a format that this release does not read."""
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        return  # not a header: the daemon reports what is wrong with the line
    if not isinstance(header, dict) or "format" not in header or "content" in header:
        return
    if header["format"] != FORMAT or header.get("version") != FORMAT_VERSION:
        described = f"{header['format']} {header.get('version')}"
        raise InvalidRequest(
            f"the file has the format {one_line(described, 80)}; this release reads {FORMAT} {FORMAT_VERSION}"
        )


def _skip_line(source: BinaryIO, line: int) -> int:
    """Skip the rest of a line and return its length; raise InvalidRequest if it does not end, as in ``/dev/zero``."""
    skipped = 0
    while text := source.readline(1 << 20):
        skipped += len(text)
        if text.endswith(b"\n"):
            break
        if skipped > MAX_SKIPPED_BYTES:
            raise InvalidRequest(
                f"line {line} is longer than {MAX_SKIPPED_BYTES} bytes; this is not a file of JSON lines"
            )
    return skipped


_LINE = re.compile(r"^line ([0-9]{1,6}):")
"""The line number at the start of a warning, counted within one request."""


def send_batch(client: DaemonClient, batch: Batch, agent: str | None) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Send the batch; return the daemon's counts, and the refused lines with their line numbers in the input."""
    counts: dict[str, Any] = {"imported": 0, "deduped": 0, "redacted": 0, "receipts": []}
    if not batch.payload.strip():
        return counts, list(batch.refused)
    try:
        answer = _post_batch(client, batch, agent)
    except RequestRefused as error:
        if error.code is not ErrorCode.PAYLOAD_TOO_LARGE:
            raise
        if len(batch.lines) == 1:
            return counts, [{"line": batch.first_line, "error": error.detail, "code": error.code.value}]
        return _send_in_halves(client, batch, agent)
    receipt = answer.body.get("receipt")  # none if no line was stored, or from an older daemon
    counts = {**answer.body, "receipts": [receipt] if isinstance(receipt, str) else []}
    for warning in answer.warnings:
        print_message(f"warning: {_LINE.sub(lambda match: f'line {batch.first_line + int(match[1]) - 1}:', warning)}")
    refused = [{**line, "line": batch.first_line + int(line["line"]) - 1} for line in answer.records("refused")]
    return counts, sorted([*batch.refused, *refused], key=lambda line: int(line["line"]))


def _send_in_halves(
    client: DaemonClient, batch: Batch, agent: str | None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Send a batch that is too large for the daemon as two halves."""
    middle = len(batch.lines) // 2
    totals: dict[str, Any] = {"imported": 0, "deduped": 0, "redacted": 0, "receipts": []}
    refused = list(batch.refused)
    for begin, end in ((0, middle), (middle, len(batch.lines))):
        half = Batch(batch.offset, batch.end, batch.first_line + begin, batch.lines[begin:end], (), batch.run)
        counts, more = send_batch(client, half, agent)
        totals |= {name: totals[name] + int(counts[name]) for name in ("imported", "deduped", "redacted")}
        totals["receipts"] += counts["receipts"]
        refused += more
    return totals, sorted(refused, key=lambda line: int(line["line"]))


def _post_batch(client: DaemonClient, batch: Batch, agent: str | None) -> Any:
    """Post the batch and return the reply; repeat with the same key while the outcome is unknown."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return client.send_lines("/api/memory/import", batch.payload, key=batch.key, agentId=agent)
        except (OutcomeUnknown, RequestRefused) as error:
            if error.code is not ErrorCode.OUTCOME_UNKNOWN or attempt == ATTEMPTS:
                raise
    raise AssertionError("unreachable")


def _report(invocation: Invocation, progress: ImportProgress, **found: Any) -> None:
    if invocation.as_json:
        counts = {name: getattr(progress, name) for name in ("imported", "deduped", "redacted")}
        print_json({**counts, "refusedCount": progress.refused, "refused": progress.refusals, **found})
        return
    for refusal in progress.refusals[:SHOWN_REFUSALS]:
        about = f" ({refusal['field']})" if refusal.get("field") else ""
        place = one_line(refusal["source"], 160) if "source" in refusal else f"line {refusal.get('line')}"
        print_message(one_line(f"{place}: {refusal.get('error')}{about}", 300))
    if progress.refused > SHOWN_REFUSALS:
        print_message(f"… and {progress.refused - SHOWN_REFUSALS} more")
    parts = [
        f"Imported {counted(progress.imported, 'memory', 'memories')}",
        f"{progress.deduped} existed already",
        f"{progress.refused} refused",
    ]
    if progress.redacted:
        parts.append(f"secrets redacted in {progress.redacted}")
    print_result(", ".join(parts) + ".")
