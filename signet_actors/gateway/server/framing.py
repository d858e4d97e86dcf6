"""Checks of a request head before any byte of the body is kept, and rejections as the bytes of a JSON error.

A head that two parsers could read differently is rejected, however our parser reads it.

Source: docs/security.md "HTTP framing", A12, A18; docs/compatibility.md "Errors"; RFC 9112 sections 2 to 6.
Departs: RFC 9112 6.1 allows several transfer codings, and 6.3 a repeated equal Content-Length; no client of ours sends
either, and request smuggling relies on them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

import httptools
import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from signet_actors.errors import HTTP_STATUS, ErrorCode
from signet_actors.gateway.server.connection_limits import ConnectionLimits
from signet_actors.operations.headers import TRACE_HEADER

HeaderLines: TypeAlias = Iterable[tuple[bytes, bytes]]
"""Header lines with lower-case names. The values must not contain anything that a client sent."""

_TRACE: Final = TRACE_HEADER.encode()
MAX_HEADERS: Final = 128
_MAX_LENGTH_DIGITS: Final = 20
_VERSIONS: Final = frozenset({"1.0", "1.1"})
MAX_PLAIN_BYTES: Final = 16 * 1024
"""Longer data is never treated as a short request."""

_LENGTH: Final = b"\r\ncontent-length:"
_HEAD: Final = re.compile(
    rb"(GET|POST|PUT|PATCH|DELETE) (/[!-~]*) HTTP/1\.1\r\n"
    rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t -~\x80-\xff]*\r\n){1,128}\r\n"
)
_UNUSUAL: Final = re.compile(rb"\r\n(?:transfer-encoding|expect|upgrade|connection:(?!\s*keep-alive\s*\r))")


@dataclass(frozen=True, slots=True)
class HttpRejection:
    """Status, error code and text with which a request is rejected."""

    status: int
    code: ErrorCode
    detail: str
    retry_after_ms: int | None = None


BUSY: Final = HttpRejection(
    503, ErrorCode.BUSY, "Too many requests are waiting; this request was not applied", retry_after_ms=1000
)
TOO_MANY_CONNECTIONS: Final = HttpRejection(503, ErrorCode.BUSY, "Too many connections", retry_after_ms=1000)
TOO_MANY_PIPELINED: Final = HttpRejection(503, ErrorCode.BUSY, "Too many pipelined requests", retry_after_ms=1000)
HEADERS_TIMEOUT: Final = HttpRejection(408, ErrorCode.REQUEST_TIMEOUT, "The request headers took too long to arrive")
BODY_TIMEOUT: Final = HttpRejection(408, ErrorCode.REQUEST_TIMEOUT, "The request body took too long to arrive")
NOT_HTTP: Final = HttpRejection(400, ErrorCode.INVALID_REQUEST, "The request is not valid HTTP/1.1")
SERVER_FAULT: Final = HttpRejection(500, ErrorCode.INTERNAL, "Internal error before the request was read")


class RequestRejected(Exception):
    """Raised by parser callbacks to stop the parser and reject the request."""

    def __init__(self, rejection: HttpRejection) -> None:
        self.rejection = rejection
        super().__init__(rejection.detail)


@dataclass(slots=True)
class RejectionCounts:
    """Requests that were rejected before the application ran.

    ``total`` includes ``connections`` and all of ``by_code``. Connections that were closed without a response have no
    code.
    """

    total: int = 0
    connections: int = 0
    by_code: Counter[ErrorCode] = field(default_factory=Counter)

    def count(self, code: ErrorCode) -> None:
        """Count one rejection that was sent with ``code``."""
        self.total += 1
        self.by_code[code] += 1


def rejection_response(rejection: HttpRejection, trace_id: str) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Return the headers and the body for ``rejection``."""
    body = msgspec.json.encode({"error": rejection.detail, "code": rejection.code})
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        (_TRACE, trace_id.encode()),
    ]
    if rejection.retry_after_ms is not None:
        headers.append((b"retry-after", str(math.ceil(rejection.retry_after_ms / 1000)).encode()))
    return headers, body


def response_bytes(
    status: int, default: HeaderLines, headers: HeaderLines, body: bytes, *, keep_alive: bool, head_only: bool
) -> bytes:
    """Return the whole response as bytes.

    ``keep_alive`` False adds ``connection: close``; ``head_only`` leaves out the body.
    """
    parts = [STATUS_LINE[status]]
    for name, value in default:
        parts += (name, b": ", value, b"\r\n")
    for name, value in headers:
        parts += (name, b": ", value, b"\r\n")
    parts.append(b"\r\n" if keep_alive else b"connection: close\r\n\r\n")
    if not head_only:
        parts.append(body)
    return b"".join(parts)


class PrebuiltBusyResponse:
    """The response to a shed request on a connection that stays open.

    Everything but the trace id is encoded once per list of default headers, which uvicorn replaces every second.
    """

    def __init__(self) -> None:
        self._default: list[tuple[bytes, bytes]] | None = None
        self._before = self._after = b""

    def render(self, default: list[tuple[bytes, bytes]], trace_id: str) -> bytes:
        """Return the whole response."""
        if default is not self._default:
            headers, body = rejection_response(BUSY, "")
            headers.remove((_TRACE, b""))
            encoded = response_bytes(BUSY.status, default, headers, b"", keep_alive=True, head_only=True)
            self._default = default
            self._before, self._after = encoded.removesuffix(b"\r\n") + _TRACE + b": ", b"\r\n\r\n" + body
        return self._before + trace_id.encode() + self._after


class Framing(NamedTuple):
    """The body that a head announces: ``declared`` bytes, or ``streamed`` with unknown length."""

    declared: int
    streamed: bool


def check_head(
    version: str, target: bytes, headers: Iterable[tuple[bytes, bytes]], limits: ConnectionLimits
) -> Framing:
    """Return the framing of a valid head. Header names must be lower-case. Raises RequestRejected."""
    if version not in _VERSIONS:
        raise _invalid("Only HTTP/1.0 and HTTP/1.1 are served")
    if not target.startswith(b"/"):
        raise _invalid("The request target must be a path")
    length: bytes | None = None
    lengths = codings = 0
    coding = b""
    unknown = False
    for name, value in headers:
        if name == b"content-length":
            length, lengths = value, lengths + 1
        elif name == b"transfer-encoding":
            coding, codings = value.strip().lower(), codings + 1
        elif name == b"expect":
            unknown = unknown or value.strip().lower() != b"100-continue"
    if codings and (lengths or codings > 1 or coding != b"chunked"):
        raise _invalid("Ambiguous request framing")
    if lengths > 1 or (length is not None and not (length.isdigit() and len(length) <= _MAX_LENGTH_DIGITS)):
        raise _invalid("Invalid Content-Length")
    declared = 0 if length is None else int(length)
    if declared > limits.body_bytes:
        raise RequestRejected(body_too_large(limits))
    if unknown:
        raise RequestRejected(HttpRejection(417, ErrorCode.INVALID_REQUEST, "Unknown expectation"))
    return Framing(declared, bool(codings))


class HeadTracker:
    """Track how much of a request head has arrived.

    ``fed`` counts the bytes given to the parser while the head is incomplete, which bounds a header that never ends.
    The sum of the complete lines is the exact size.
    """

    __slots__ = ("_lines", "_number", "expected", "fed", "started")

    def __init__(self) -> None:
        self.expected = True  # true also while it arrives
        self.started = False
        self.fed = 0
        self._lines = 0
        self._number = 0

    @property
    def is_empty(self) -> bool:
        """True if nothing of the next head has arrived, not even an empty line."""
        return self.expected and not self.started and not self.fed

    def begin(self) -> None:
        """Start a head: its first line arrives."""
        self.started = True
        self._lines = self._number = 0

    def count(self, size: int, limits: ConnectionLimits) -> None:
        """Add ``size`` bytes, separators included. Raises RequestRejected."""
        self._lines += size
        if self._lines > limits.header_bytes:
            raise RequestRejected(headers_too_large(limits))

    def count_header(self, name: bytes, value: bytes, limits: ConnectionLimits) -> None:
        """Add one header. Raises RequestRejected."""
        self._number += 1
        if self._number > MAX_HEADERS:
            raise RequestRejected(headers_too_large(limits))
        self._lines += len(name) + len(value) + 4
        if self._lines > limits.header_bytes:
            raise RequestRejected(headers_too_large(limits))

    def finish(self) -> None:
        self.expected = self.started = False

    def await_next(self) -> None:
        """Record that the body is complete and the next head is expected."""
        self.expected = True
        self.fed = 0

    def is_too_large(self, limits: ConnectionLimits) -> bool:
        return self.expected and self.fed > limits.header_bytes


def plain_request(data: bytes) -> tuple[bytes, bytes] | None:
    """Return method and target if ``data`` is exactly one request, head and body, that leaves its connection open.

    This is enough to shed it unparsed, if any strict parser would agree: the head must follow a strict subset of the
    grammar of HTTP/1.1, and have at most one Content-Length, a decimal number that equals the length of the body. A
    transfer coding, an expectation, an upgrade, or ``Connection: close`` gives None.
    """
    if len(data) > MAX_PLAIN_BYTES:
        return None
    match = _HEAD.match(data)
    if match is None:
        return None
    end = match.end()
    head = data[:end].lower()
    if _UNUSUAL.search(head):
        return None
    _, found, rest = head.partition(_LENGTH)
    length = 0
    if found:
        value, _, after = rest.partition(b"\r")
        value = value.strip(b" \t")
        if not value.isdigit() or len(value) > 5 or _LENGTH in b"\r" + after:
            return None
        length = int(value)
    return (match[1], match[2]) if len(data) == end + length else None


def parser_rejection(error: httptools.HttpParserError) -> HttpRejection:
    """Return the rejection for a parser error: invalid HTTP, a rejection by one of our callbacks, or a fault of one."""
    if isinstance(error, httptools.HttpParserCallbackError):
        cause = error.__context__
        if isinstance(cause, RequestRejected):
            return cause.rejection
        if not isinstance(cause, httptools.HttpParserError):
            return SERVER_FAULT
    return NOT_HTTP


def headers_too_large(limits: ConnectionLimits) -> HttpRejection:
    """Return the rejection of a head with too many bytes or too many headers."""
    return HttpRejection(
        431,
        ErrorCode.PAYLOAD_TOO_LARGE,
        f"Request line and headers must be at most {limits.header_bytes} bytes and {MAX_HEADERS} headers",
    )


def body_too_large(limits: ConnectionLimits) -> HttpRejection:
    """Return the rejection of a body that is too large, as declared or as received."""
    return HttpRejection(
        HTTP_STATUS[ErrorCode.PAYLOAD_TOO_LARGE],
        ErrorCode.PAYLOAD_TOO_LARGE,
        f"The request body must be at most {limits.body_bytes} bytes",
    )


def _invalid(detail: str) -> RequestRejected:
    return RequestRejected(HttpRejection(400, ErrorCode.INVALID_REQUEST, detail))
