"""Export and import memories in bulk as JSON Lines: one page per export request, one batch per import request.

A thread of the text executor parses, redacts and embeds a batch, so that other requests do not wait. The batch becomes
few messages to the writer, each with the vectors of its lines in one frame.

Source: docs/performance.md "Write targets" (bulk import); docs/decisions.md 3, 4, 26, 30, 35, 39; docs/transfer.md.
Departs: an imported line with an ``id`` is not deduplicated by its source id: two memories of one session share it,
and an export must lose neither. An export covers all scopes unless one is named, so that nothing is left out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from msgspec import UNSET

from signet_actors.domain.memories import DEFAULT_IMPORTANCE, importance_to_store, infer_type
from signet_actors.domain.normalization import collapsed, storage_content
from signet_actors.domain.redaction.scan import Kinds
from signet_actors.errors import ErrorCode, InvalidRequest, OutcomeUnknown, SignetError
from signet_actors.gateway.http.request_texts import TooManyValues, decode_json
from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.gateway.ingest import FieldRedactor, chunks_of, redacted
from signet_actors.gateway.limits import TEXT_EXECUTOR, SearchesFirst
from signet_actors.gateway.state import GatewayState
from signet_actors.operations import import_export as api
from signet_actors.operations.headers import JSON_LINES, NEXT_CURSOR_HEADER
from signet_actors.operations.request_fields import CallerFields
from signet_actors.operations.request_reader import MAX_WARNINGS, known_fields, object_warnings, read_request
from signet_actors.protocol.message import Principal
from signet_actors.protocol.searcher import ExportMemories
from signet_actors.protocol.writer import (
    ImportLine,
    ImportMemories,
    LineRefused,
    MemoriesImported,
    NewMemory,
    TemporalEdge,
    Vector,
)
from signet_actors.providers.embedding import Vectors, encode

LINES_AT_ONCE: Final = 16
"""Lines between two pauses for searches; about four milliseconds of work."""
MAX_ROWS: Final = 1500
"""Rows per request, counting each chunk of an oversized content, for the same reason. A single line may have more."""
MAX_BYTES: Final = 3_670_016
"""Bytes per request. They fit into one message to the writer, even with each oversized content next to its chunks."""
PART_BYTES: Final = 512 * 1024
"""Content per message to the writer, unless a single line is longer: other writes wait for one message at most."""
STATED_BYTES: Final = 1024
"""What an entity or an attribute of ``structured`` counts as: it takes the writer as long as so much content."""
STATED_PER_ROW: Final = 4
"""As many of them count as a row of the request."""

_LINE: Final = known_fields(api.ImportedLine, CallerFields)
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class _Batch(NamedTuple):
    """The lines of a request, ready for the writer, with their vectors and the lines that were refused."""

    lines: list[ImportLine]
    vectors: bytes
    dimensions: int
    redacted: int
    refused: list[api.RefusedLine]
    redactions: Kinds = ()


async def import_memories(call: Call[api.ImportRequest]) -> HttpResponse:
    """Store every line that is not refused, durably before replying."""
    state = call.state
    principal = call.principal
    batch = await TEXT_EXECUTOR.run_bounded(lambda: _read_batch(call))
    if not batch.lines:
        return HttpResponse(api.ImportReply(imported=0, deduped=0, redacted=0, refused=batch.refused, memories=0))
    batch = batch._replace(lines=await _in_projects(state, batch.lines))
    async with state.chunk_writes.slot(sum(len(line.chunks) or 1 for line in batch.lines)):
        done = await _send(call, batch, principal)
    refused = [
        api.RefusedLine(line=line.line, error=line.detail, code=line.code.value, field=line.field or UNSET)
        for line in done.refused
    ]
    return HttpResponse(
        api.ImportReply(
            imported=done.imported,
            deduped=done.deduped,
            redacted=batch.redacted,
            redactions=list(dict.fromkeys(batch.redactions)) or UNSET,
            refused=sorted(batch.refused + refused, key=lambda line: line.line),
            memories=UNSET if done.memories is None else done.memories,
            superseded=done.superseded or UNSET,
            differing=[api.DifferingLine(*line) for line in done.differing] or UNSET,
            receipt=done.receipt or UNSET,
            forgotten=done.forgotten or UNSET,
        )
    )


async def _in_projects(state: GatewayState, lines: list[ImportLine]) -> list[ImportLine]:
    """Return the lines with the projects of the directories that they name, by the rule of a remember."""
    named = {line.memory.project for line in lines}
    projects = {name: await state.projects.project_of(name) for name in named if name}
    if all(name == project for name, project in projects.items()):
        return lines
    replace = msgspec.structs.replace
    return [
        replace(line, memory=replace(line.memory, project=projects[name])) if (name := line.memory.project) else line
        for line in lines
    ]


async def _send(call: Call[api.ImportRequest], batch: _Batch, principal: Principal) -> MemoriesImported:
    """Send the lines to the writer in parts; return the sum of the replies, with a receipt of all commits.

    Each part is durable, and has a key of its own, so that a retry repeats the replies of those that were stored.
    Raises ``OutcomeUnknown`` if a part but not all was stored.
    """
    imported = deduped = forgotten = superseded = 0
    memories: int | None = 0
    refused: list[LineRefused] = []
    differing: list[tuple[int, str]] = []
    receipts: list[str] = []
    for number, (lines, vectors) in enumerate(_parts(batch)):
        try:
            done = await call.ask_writer(
                ImportMemories(
                    lines=lines, principal=principal, dimensions=batch.dimensions, restore=call.request.restore
                ),
                part=number,
                frames=[vectors] if vectors else [],
            )
        except SignetError as error:
            if not number:
                raise
            raise OutcomeUnknown(
                f"the lines before line {lines[0].line} are stored, the others are not known to be ({error.detail});"
                " retry with the same Idempotency-Key"
            ) from error
        imported += done.imported
        deduped += done.deduped
        forgotten += done.forgotten
        superseded += done.superseded
        memories = None if memories is None or done.memories is None else memories + done.memories
        refused += done.refused
        differing += done.differing
        receipts.append(done.receipt)
    receipt = receipts[0] if len(receipts) == 1 else hashlib.sha256(" ".join(receipts).encode()).hexdigest()
    return MemoriesImported(
        imported=imported,
        deduped=deduped,
        refused=refused,
        receipt=receipt,
        memories=memories,
        differing=differing,
        forgotten=forgotten,
        superseded=superseded,
    )


def _parts(batch: _Batch) -> Iterator[tuple[tuple[ImportLine, ...], bytes]]:
    """Yield the lines in parts of at most ``PART_BYTES`` of content and what counts as it, each with its vectors."""
    lines: list[ImportLine] = []
    size = first_row = rows = 0
    for line in batch.lines:
        length = len(line.memory.content.encode()) + _stated(line) * STATED_BYTES
        if lines and size + length > PART_BYTES:
            yield _part(batch, lines, first_row, rows)
            first_row += rows
            lines, size, rows = [], 0, 0
        lines.append(line)
        size += length
        rows += len(line.chunks) or 1
    yield _part(batch, lines, first_row, rows)


def _stated(line: ImportLine) -> int:
    """Return how many entities and attributes the line states."""
    structured = line.memory.structured
    if structured is None:
        return 0
    return len(structured.entities) + sum(len(aspect.attributes) for aspect in structured.aspects)


def _part(batch: _Batch, lines: list[ImportLine], first_row: int, rows: int) -> tuple[tuple[ImportLine, ...], bytes]:
    """Return the lines with their vectors counted from ``first_row``, and the bytes of these vectors."""
    width = 4 * batch.dimensions
    if not first_row:
        return tuple(lines), batch.vectors[: rows * width]
    moved = []
    for line in lines:
        vectors = tuple(msgspec.structs.replace(vector, frame=vector.frame - first_row) for vector in line.vectors)
        memory = line.memory
        if memory.vector is not None:
            vector = msgspec.structs.replace(memory.vector, frame=memory.vector.frame - first_row)
            memory = msgspec.structs.replace(memory, vector=vector)
        moved.append(msgspec.structs.replace(line, memory=memory, vectors=vectors))
    return tuple(moved), batch.vectors[first_row * width : (first_row + rows) * width]


async def export_memories(call: Call[api.ExportRequest]) -> HttpResponse:
    """Return a page of the readable memories, oldest first; the first one starts with the header line."""
    after = call.request.after
    page, frames = await call.state.bus.ask_searcher(
        ExportMemories(call.read, after=after, limit=call.request.limit),
        trace_id=call.trace_id,
    )
    head = b"" if after else msgspec.json.encode(api.ExportHeader()) + b"\n"
    headers = {} if page.next is None else {NEXT_CURSOR_HEADER: str(page.next)}
    return HttpResponse(head + frames[0], headers=headers, media_type=JSON_LINES)


def _read_batch(call: Call[Any]) -> _Batch:
    """Read, check, redact and embed the lines of the request."""
    if len(call.raw) > MAX_BYTES:
        raise InvalidRequest(f"a request must be at most {MAX_BYTES} bytes", code=ErrorCode.PAYLOAD_TOO_LARGE)
    state = call.state
    searches = SearchesFirst(lambda: state.bus.unanswered_searches > 0)
    redactor = _BatchRedactor(state)
    lines: list[ImportLine] = []
    refused: list[api.RefusedLine] = []
    redacted = rows = 0
    redactions: dict[str, None] = {}
    for number, body in _parse_lines(call.raw, refused):
        if number % LINES_AT_ONCE == 0:
            searches.make_way()
        redactor.redactions = ()
        try:
            line = _line(call, number, body, redactor)
            if len(call.warnings) < MAX_WARNINGS:
                call.warnings += object_warnings(_LINE, body, f"line {number}: ")
        except SignetError as error:
            refused.append(api.RefusedLine(number, error.detail, error.code.value, error.field or UNSET))
            continue
        redacted += bool(redactor.redactions)
        redactions |= dict.fromkeys(redactor.redactions)
        rows += (len(line.chunks) or 1) + _stated(line) // STATED_PER_ROW
        if rows > MAX_ROWS and lines:
            raise InvalidRequest(
                f"the lines of a request must not produce more than {MAX_ROWS} rows; send fewer lines per request",
                code=ErrorCode.PAYLOAD_TOO_LARGE,
            )
        lines.append(line)
    unembedded = _Batch(lines, b"", 0, redacted, refused, tuple(redactions))
    return _embed(state, unembedded, searches, call.trace_id)


def _parse_lines(raw: bytes, refused: list[api.RefusedLine]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each line's number and object; add malformed lines to ``refused``; skip blank lines and the header."""
    lines = raw.split(b"\n")
    if len(lines) > api.MAX_LINES + 2:  # plus the header, and the empty string after the last newline
        raise InvalidRequest(f"a request must have at most {api.MAX_LINES} lines", code=ErrorCode.PAYLOAD_TOO_LARGE)
    first = True
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        why = "the line is not a JSON object"
        try:
            body = decode_json(text)
        except TooManyValues as error:
            body, why = None, error.detail
        except InvalidRequest:
            body = None
        if not isinstance(body, dict):
            refused.append(api.RefusedLine(number, why, ErrorCode.INVALID_REQUEST.value))
        elif first and "format" in body and "content" not in body:
            _check_header(body)
        else:
            yield number, body
        first = False
    if first:
        raise InvalidRequest("each line of the body must be a JSON object")


def _check_header(header: Mapping[str, Any]) -> None:
    if header.get("format") != api.FORMAT:
        raise InvalidRequest(f"the format must be {api.FORMAT}", field="format")
    version = header.get("version")
    if isinstance(version, bool) or version != api.FORMAT_VERSION:
        raise InvalidRequest(f"this release reads version {api.FORMAT_VERSION} of the format", field="version")


def _line(call: Call[Any], number: int, body: Mapping[str, Any], redactor: _BatchRedactor) -> ImportLine:
    """Return the line without its vectors; raise SignetError for a line that cannot be stored."""
    state = call.state
    fields = read_request(api.ImportedLine, body=body, now_ms=state.clock.wall_ms(), warnings=call.warnings)
    content = redactor.content(fields.content)
    if not content:
        raise InvalidRequest("content is required", field="content")
    if fields.supersedes is not None and not _begins_source(fields):
        raise InvalidRequest("must be sourceId up to an @, and needs sourcePath", field="supersedes")
    fields = redacted(redactor, fields)
    memory = NewMemory(
        content=content,
        type=fields.type or infer_type(content),
        type_named=fields.type is not None and not fields.type_inferred,
        importance=importance_to_store(fields.importance, pinned=fields.pinned, otherwise=DEFAULT_IMPORTANCE),
        tags=tuple(fields.tags),
        pinned=fields.pinned,
        who=fields.who or "daemon",
        project=fields.project,
        scope=fields.scope,
        agent_id=redactor.identifier(call.named_agent(body), "agentId"),
        visibility=fields.visibility or "global",
        source_type=fields.source_type or "import",
        source_id=fields.source_id,
        source_path=fields.source_path,
        runtime_path=fields.runtime_path,
        idempotency_key=fields.idempotency_key,
        session_bound=fields.id is not None,
        created_at=fields.created_at,
        temporal=tuple(TemporalEdge(facet=time.facet, start=time.start, end=time.end) for time in fields.times),
        structured=fields.structured,
    )
    # A line with an id was one row in the store that exported it: keep it as one row.
    chunks = chunks_of(content, state.config.memory.pipeline_v2.guardrails) if fields.id is None else ()
    return ImportLine(
        line=number,
        memory=memory,
        id=fields.id.lower() if fields.id is not None and _UUID.fullmatch(fields.id.lower()) else None,
        session_id=fields.session_id,
        updated_at=fields.updated_at,
        content_at=fields.content_at,
        access_count=fields.access_count,
        injected_count=fields.injected_count,
        last_accessed=fields.last_accessed,
        chunks=chunks,
        supersedes=fields.supersedes if _begins_source(fields) else None,
    )


def _begins_source(line: api.ImportedLine) -> bool:
    """Return whether ``supersedes`` is how the source id of the line begins."""
    former = line.supersedes or ""
    return former.endswith("@") and bool(line.source_path) and (line.source_id or "").startswith(former)


class _BatchRedactor(FieldRedactor):
    """A redactor that caches results, because most lines of a batch share a few authors, projects and tags."""

    def __init__(self, state: GatewayState) -> None:
        super().__init__(state)
        self._seen: dict[str, tuple[str, Kinds]] = {}

    def clean(self, text: str) -> str:
        """Return ``text`` with secrets redacted."""
        known = self._seen.get(text)
        if known is None:
            former = len(self.redactions)
            clean = super().clean(text)
            self._seen[text] = clean, self.redactions[former:]
            return clean
        self.redactions += known[1]
        return known[0]

    def content(self, raw: str) -> str:
        """Return the content in storage form with secrets redacted."""
        if self._redactor is None:
            return storage_content(raw)
        content, kinds = self._redactor.clean_for_storage(raw)
        self.redactions += kinds
        return content


def _embed(state: GatewayState, unembedded: _Batch, searches: SearchesFirst, trace_id: str) -> _Batch:
    """Embed the lines with a local embedder; each vector is a row of the batch's one frame."""
    embedder = state.embedder
    lines = unembedded.lines
    if embedder is None or not embedder.local or not lines:
        return unembedded
    texts = [collapsed(text) for line in lines for text in (line.chunks or (line.memory.content,))]
    vectors_of_parts: list[Vectors] = []
    token_codes: list[bytes | None] = []
    try:
        for start in range(0, len(texts), LINES_AT_ONCE):
            searches.make_way()
            encoded = encode(embedder, texts[start : start + LINES_AT_ONCE])
            vectors_of_parts.append(encoded.vectors)
            token_codes += encoded.token_codes
    except (SignetError, OSError, ValueError, RuntimeError) as error:
        # Log only the type: a tokenizer's message may quote the text.
        state.log.warning("embedding_failed", model=embedder.model, error=type(error).__name__, trace=trace_id)
        return unembedded
    rows = np.ascontiguousarray(np.concatenate(vectors_of_parts), dtype="<f4")
    usable = [bool(row.any()) for row in rows]
    placed: list[ImportLine] = []
    at = 0
    for line in lines:
        count = len(line.chunks) or 1
        vectors = tuple(
            Vector(embedder.model, embedder.dimensions, place, token_codes[place])
            for place in range(at, at + count)
            if usable[place]
        )
        at += count
        if line.chunks:
            # A vector for each chunk or for none, as in remember.
            placed.append(msgspec.structs.replace(line, vectors=vectors if len(vectors) == count else ()))
        elif vectors:
            placed.append(msgspec.structs.replace(line, memory=msgspec.structs.replace(line.memory, vector=vectors[0])))
        else:
            placed.append(line)
    return unembedded._replace(lines=placed, vectors=rows.tobytes(), dimensions=embedder.dimensions)


ROUTES: tuple[Route, ...] = (*serve(api.IMPORT_MEMORIES, import_memories), *serve(api.EXPORT_MEMORIES, export_memories))
