"""The command import: store the memories of a file of JSON lines, or of another format. It can be repeated.

An import saves its progress next to its file. The Idempotency-Key of a batch is derived from the import, the batch and
its place, so that an interrupted import can be repeated safely. A new import of the same file has new keys.

Source: docs/transfer.md; docs/decisions.md 3.
"""

from __future__ import annotations

import functools
import importlib
import io
import json
import queue
import re
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from signet_actors.cli.connection import DaemonClient, until_known
from signet_actors.cli.exit_codes import REFUSED
from signet_actors.cli.export import export_lines
from signet_actors.cli.import_progress import (
    CONNECTIONS,
    COUNTS,
    Batch,
    ImportProgress,
    ImportState,
    ask_about_other_projects,
    cache_directory,
    format_of,
    refuse_other_name,
    refuse_without_line,
    totals,
)
from signet_actors.cli.invocation import Invocation, command, project_option
from signet_actors.cli.presentation import (
    counted,
    on_terminal,
    one_line,
    print_json,
    print_message,
    print_result,
    progress_bar,
)
from signet_actors.errors import ErrorCode, InvalidRequest, RequestRefused, SignetError

if TYPE_CHECKING:
    from signet_actors.cli.importers.signet_markdown import MarkdownEdits

FORMAT, FORMAT_VERSION = "signet-memories", 1
BATCH_LINES = 500
BATCH_BYTES = 512 * 1024
MAX_LINE_BYTES = 3 * 1024 * 1024
"""A longer line cannot be a memory, and would not fit into a request."""
MAX_SKIPPED_BYTES = 64 * 1024 * 1024
"""Bytes to skip after a line that is too long. If it is longer still, the file is not JSON lines."""
CLIENT_WAIT_S = 120.0
SHOWN_REFUSALS = 50

IMPORTERS: dict[str, str] = {
    "signet-markdown": "signet_markdown",
    "markdown": "markdown",
    "text": "markdown",
    "basic-memory": "basic_memory",
    "mem0": "mem0",
    "claude-mem": "claude_mem",
    "reference": "reference",
    "claude-memory": "claude_memory",
    "codex-memory": "codex_memory",
    "openclaw": "openclaw",
}
"""The other formats, and the module in ``importers/`` that reads each."""
OF_THIS_MACHINE = frozenset(("claude-memory", "codex-memory", "openclaw"))
"""Formats of programs that keep their memories at a known place."""


@command(name="import", agent=True)
@click.argument("file", metavar="[FILE|DIRECTORY|-]", required=False)
@click.option(
    "--from", "format_", metavar="FORMAT", type=click.Choice(tuple(IMPORTERS)), help="One of the formats above."
)
@project_option("Project of the memories that name none (default: all).")
@click.option("--restore", is_flag=True, help="Also store memories that were forgotten here since.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask whether to store again what exists in another project.")
@click.option("--skip-unreadable", is_flag=True, help="Leave out files that cannot be read, and list them.")
def import_(
    invocation: Invocation,
    file: str | None,
    format_: str | None,
    project: str | None,
    restore: bool,
    yes: bool,
    skip_unreadable: bool,
) -> None:
    """Store notes (Markdown), or the memories of a file.

    Without --from, FILE is an export of `signet export` (JSON lines), or Markdown: a file or a directory; `-` is
    standard input. Memories that exist already are not stored twice, and those that were forgotten here are left out.
    After an interruption, the same command continues where it stopped. Exit code 1 if a line was refused.

    \b
    Formats:
      markdown         a directory of notes, or one: a memory for each section
      text             a file or a directory of texts: a memory for each paragraph
      basic-memory     a directory: its observations, relations and sections
      mem0             the reply of mem0's get_all, saved as JSON
      claude-mem       its database, or the JSON of its script export-memories
      reference        the database of Signet's original daemon
      signet-markdown  a directory of `signet export --markdown`, perhaps edited
      claude-memory    what Claude Code has noted of projects (default: all)
      codex-memory     what Codex has noted (default: ~/.codex/memories)
      openclaw         MEMORY.md of an agent (default: ~/.openclaw/workspace)
    """
    if file is None and format_ not in OF_THIS_MACHINE:
        raise click.UsageError("Missing argument 'FILE|DIRECTORY|-'.")
    if format_ is None and file is not None:
        format_ = format_of(Path(file))
    if project and format_ in {None, "signet-markdown"}:
        raise click.UsageError("an export of Signet has the project of each memory; leave `--project` out")
    if format_ is not None:
        _import_other(invocation, file, format_, project, restore=restore, yes=yes, skip_unreadable=skip_unreadable)
        return
    assert file is not None
    asked = {"restore": "true" if restore else None}
    if skip_unreadable:
        raise click.UsageError("`--skip-unreadable` is for files of another format; name it with `--from`")
    if file == "-":
        if sys.stdin.isatty():
            raise click.UsageError("standard input is a terminal; give a FILE, or redirect one with `< FILE`")
        with progress_bar("imported bytes", None) as advance:
            progress = _import(invocation, sys.stdin.buffer, asked, ImportProgress(), lambda _: None, advance)
    else:
        path = Path(file)
        try:
            refuse_other_name(path)
            if path.exists() and not path.is_file():
                raise click.UsageError(f"{file} is not a regular file; pipe it to `signet import -`")
            refuse_without_line(path, MAX_LINE_BYTES)
            source = path.open("rb")
            address = invocation.client().address
            state = ImportState(path, invocation.agent, str(address.workspace or address))
        except OSError as error:
            raise click.UsageError(f"cannot read {file}: {error.strerror}") from error
        with source:
            progress = _import_resumably(invocation, source, asked, state)
    _report(invocation, progress)
    if progress.refused:
        click.get_current_context().exit(REFUSED)


def _import_other(
    invocation: Invocation,
    file: str | None,
    format_: str,
    project: str | None,
    *,
    restore: bool,
    yes: bool,
    skip_unreadable: bool,
) -> None:
    """Convert the file or directory into lines, completely and before anything is stored, and import these."""
    importer = importlib.import_module(f"signet_actors.cli.importers.{IMPORTERS[format_]}")
    path = importer.default_path(invocation.environ) if file is None else Path(file)
    if file == "-" or not path.exists():
        raise click.UsageError(f"{path} does not exist; `--from {format_}` needs a file or a directory")
    from signet_actors.cli.importers.source import Findings, with_one_former  # noqa: PLC0415 - only for another format

    read = functools.partial(importer.memories, plain=True) if format_ == "text" else importer.memories
    findings = Findings()
    edits = _edits(invocation) if format_ == "signet-markdown" else None
    with tempfile.TemporaryFile() as lines:
        with progress_bar("read", None) as advance:
            for number, memory in enumerate(with_one_former(read(path, findings)), 1):
                memory.update({"project": memory.get("project") or project} if project else {})
                if edits is None or not edits.take(memory):
                    lines.write(json.dumps(memory, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n")
                advance(number)
        if not skip_unreadable or not (lines.tell() or edits):
            findings.refuse_unreadable()
        lines.seek(0)
        if edits is not None:
            edits.apply()
            findings.warnings += edits.warnings
        for warning in findings.warnings:
            print_message(f"warning: {one_line(warning)}")
        if not yes and edits is None:
            ask_about_other_projects(invocation.client(), lines)
        address = invocation.client().address
        state = ImportState(
            path, invocation.agent, str(address.workspace or address), lines, cache_directory(invocation.environ)
        )
        progress = _import_resumably(invocation, lines, {"restore": "true" if restore else None}, state)
        _name_sources(lines, progress.refusals + progress.differences)
    found: dict[str, Any] = {"leftOut": findings.unreadable, "filesWithoutText": findings.without_text}
    if format_ in OF_THIS_MACHINE:
        found |= {"ofSignet": findings.of_signet}
    if edits is not None:
        progress.refused += len(edits.refusals)
        progress.refusals += edits.refusals
        found |= {"changed": edits.changed, "unchanged": edits.unchanged}
    for sentence in findings.unreadable:
        print_message(f"left out: {one_line(sentence)}")
    if findings.without_text:
        print_message(f"{counted(findings.without_text, 'file')} had no text.")
    if findings.of_signet:
        print_message(f"Left out: {counted(findings.of_signet, 'part')} that Signet itself had written.")
    _report(invocation, progress, **found)
    if on_terminal() and format_ == "markdown" and progress.memories and not project:
        print_message("They are for all projects; with `--project DIR` notes belong to one.")
    if progress.refused:
        click.get_current_context().exit(REFUSED)


def _edits(invocation: Invocation) -> MarkdownEdits:
    """Return the edits of exported Markdown; the daemon is asked for its memories once a file of it was read."""
    from signet_actors.cli.importers.signet_markdown import MarkdownEdits  # noqa: PLC0415 - only for Markdown

    client = invocation.client()

    def exported() -> bytes:
        lines = io.BytesIO()
        export_lines(client, lines.write, None, lambda _: None)
        return lines.getvalue()

    return MarkdownEdits(client, exported)


def _name_sources(lines: BinaryIO, reported: list[dict[str, Any]]) -> None:
    """Replace the number of each reported line by the place in the source that the line was made from."""
    numbers = {line["line"] for line in reported}
    lines.seek(0)
    made = {number: json.loads(text) for number, text in enumerate(lines, 1) if number in numbers}
    for line in reported:
        memory = made[line.pop("line")]
        line["source"] = memory.get("id") or memory.get("sourceId") or memory["content"]


def _import_resumably(
    invocation: Invocation, source: BinaryIO, asked: Mapping[str, Any], state: ImportState
) -> ImportProgress:
    """Import the lines, from where an interrupted run stopped; return the progress at the end."""
    with progress_bar("imported", state.size) as advance:
        progress = state.read()
        state.write(progress)  # before the first batch: a continued import must send it with the same key
        if progress.offset:
            progress = _continued(invocation, source, asked, progress)
        progress = _import(invocation, source, asked, progress, state.write, advance)
    state.forget()
    return progress


def _continued(
    invocation: Invocation, source: BinaryIO, asked: Mapping[str, Any], progress: ImportProgress
) -> ImportProgress:
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
        held = held and batch is not None and send_batch(client, batch, asked)[0]["receipts"] == sent["receipts"]
        if not held:
            break
    if held:
        print_message(f"Continuing at line {progress.line}.")
        return progress
    print_message("The store does not hold what was imported before. Beginning at line 1 again.")
    source.seek(0)
    return progress.restarted()


def _import(
    invocation: Invocation,
    source: BinaryIO,
    asked: Mapping[str, Any],
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
            return send_batch(client, batch, asked)
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


def send_batch(
    client: DaemonClient, batch: Batch, asked: Mapping[str, Any]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Send the batch; return the daemon's counts, and the refused lines with their line numbers in the input."""
    counts: dict[str, Any] = {**dict.fromkeys(COUNTS, 0), "differences": [], "receipts": []}
    if not batch.payload.strip():
        return counts, list(batch.refused)
    try:
        answer = until_known(lambda: client.send_lines("/api/memory/import", batch.payload, key=batch.key, **asked))
    except RequestRefused as error:
        if error.code is not ErrorCode.PAYLOAD_TOO_LARGE:
            raise
        if len(batch.lines) == 1:
            return counts, [{"line": batch.first_line, "error": error.detail, "code": error.code.value}]
        return _send_in_halves(client, batch, asked)
    receipt = answer.body.get("receipt")  # none if no line was stored, or from an older daemon
    differences = _numbered(batch, answer.records("differing") if "differing" in answer.body else [])
    counts |= {name: answer.body[name] for name in ("imported", "deduped", "redacted")}
    counts |= {
        "memories": answer.body.get("memories", answer.body["imported"]),  # an older daemon counts lines only
        "forgotten": answer.body.get("forgotten", 0),
        "superseded": answer.body.get("superseded", 0),
        "differing": len(differences),
        "differences": differences,
        "receipts": [receipt] if isinstance(receipt, str) else [],
    }
    for warning in answer.warnings:
        print_message(f"warning: {_LINE.sub(lambda match: f'line {batch.first_line + int(match[1]) - 1}:', warning)}")
    refused = _numbered(batch, answer.records("refused"))
    return counts, sorted([*batch.refused, *refused], key=lambda line: int(line["line"]))


def _numbered(batch: Batch, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**line, "line": batch.first_line + int(line["line"]) - 1} for line in lines]


def _send_in_halves(
    client: DaemonClient, batch: Batch, asked: Mapping[str, Any]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    middle = len(batch.lines) // 2
    totals: dict[str, Any] = {**dict.fromkeys(COUNTS, 0), "differences": [], "receipts": []}
    refused = list(batch.refused)
    for begin, end in ((0, middle), (middle, len(batch.lines))):
        half = Batch(batch.offset, batch.end, batch.first_line + begin, batch.lines[begin:end], (), batch.run)
        counts, more = send_batch(client, half, asked)
        totals = {name: total + counts[name] for name, total in totals.items()}
        refused += more
    return totals, sorted(refused, key=lambda line: int(line["line"]))


def _report(invocation: Invocation, progress: ImportProgress, **found: Any) -> None:
    if invocation.as_json:
        counts = {name: getattr(progress, name) for name in COUNTS if name != "differing"}
        lines = {"refused": progress.refusals, "differing": progress.differences}
        print_json({**counts, "refusedCount": progress.refused, "differingCount": progress.differing, **lines, **found})
        return
    for refusal in progress.refusals[:SHOWN_REFUSALS]:
        about = f" ({refusal['field']})" if refusal.get("field") else ""
        print_message(one_line(f"{_place(refusal)}: {refusal.get('error')}{about}", 300))
    if progress.refused > SHOWN_REFUSALS:
        print_message(f"… and {progress.refused - SHOWN_REFUSALS} more")
    for line in progress.differences[:SHOWN_REFUSALS]:
        print_message(f"{_place(line)}: its text has changed; the memory {one_line(line.get('id'))} was left as it is")
    if progress.differing > SHOWN_REFUSALS:
        print_message(f"… and {progress.differing - SHOWN_REFUSALS} more")
    print_result(", ".join(totals(progress, found)) + ".")


def _place(line: dict[str, Any]) -> str:
    return one_line(line["source"], 160) if "source" in line else f"line {line.get('line')}"
