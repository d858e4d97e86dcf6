"""Whether the head of a request is sound: where its body ends must be beyond doubt, and its size allowed.

Checked before a byte of the body is kept. What two parsers could read differently is refused, whatever ours makes of
it.

Source: docs/security.md "HTTP framing", A12, A18; RFC 9112 section 6.
Departs: RFC 9112 6.1 allows several transfer codings, and 6.3 a repeated equal Content-Length; no client of ours sends
either, and smuggling begins there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import httptools

from signet_actors.errors import HTTP_STATUS, ErrorCode
from signet_actors.gateway.server.admission import ConnectionLimits
from signet_actors.gateway.server.rejections import NOT_HTTP, SERVER_FAULT, HttpRejection, RequestRejected

MAX_HEADERS: Final = 128
_VERSIONS: Final = frozenset({"1.0", "1.1"})


class Framing(NamedTuple):
    """What a head says of its body: ``declared`` bytes, or ``streamed`` until it ends."""

    declared: int
    streamed: bool


def check_head(
    version: str, target: bytes, headers: Iterable[tuple[bytes, bytes]], limits: ConnectionLimits
) -> Framing:
    """The framing of a sound head; raises RequestRejected. Header names are lower-case."""
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
    if lengths > 1 or (length is not None and not length.isdigit()):
        raise _invalid("Invalid Content-Length")
    declared = 0 if length is None else int(length)
    if declared > limits.body_bytes:
        raise RequestRejected(body_too_large(limits))
    if unknown:
        raise RequestRejected(HttpRejection(417, ErrorCode.INVALID_REQUEST, "Unknown expectation"))
    return Framing(declared, bool(codings))


class HeadTracker:
    """How much of a head has arrived, on a connection that waits for one or is in the body behind it.

    ``fed`` are bytes that the parser got while the head is unfinished, which bounds a header that never ends; the sum
    of the finished lines is the exact figure.
    """

    __slots__ = ("_lines", "_number", "expected", "fed", "started")

    def __init__(self) -> None:
        self.expected = True  # also while it arrives
        self.started = False
        self.fed = 0
        self._lines = 0
        self._number = 0

    @property
    def is_empty(self) -> bool:
        """Nothing of it has arrived, not even an empty line."""
        return self.expected and not self.started and not self.fed

    def begin(self) -> None:
        """Its first line arrives."""
        self.started = True
        self._lines = self._number = 0

    def count(self, size: int, limits: ConnectionLimits) -> None:
        """One more part has arrived, ``size`` bytes with what separates it; raises RequestRejected."""
        self._lines += size
        if self._lines > limits.header_bytes:
            raise RequestRejected(headers_too_large(limits))

    def count_header(self, name: bytes, value: bytes, limits: ConnectionLimits) -> None:
        """One more header has arrived; raises RequestRejected."""
        self._number += 1
        if self._number > MAX_HEADERS:
            raise RequestRejected(headers_too_large(limits))
        self._lines += len(name) + len(value) + 4
        if self._lines > limits.header_bytes:
            raise RequestRejected(headers_too_large(limits))

    def finish(self) -> None:
        """It is whole: the body begins."""
        self.expected = self.started = False

    def await_next(self) -> None:
        """The body is whole: the next head is waited for."""
        self.expected = True
        self.fed = 0

    def is_too_large(self, limits: ConnectionLimits) -> bool:
        """Whether an unfinished head has grown beyond its bound."""
        return self.expected and self.fed > limits.header_bytes


def parser_rejection(error: httptools.HttpParserError) -> HttpRejection:
    """What stopped the parser: the request is not HTTP, or a callback of ours refused it, or failed."""
    if isinstance(error, httptools.HttpParserCallbackError):
        cause = error.__context__
        if isinstance(cause, RequestRejected):
            return cause.rejection
        if not isinstance(cause, httptools.HttpParserError):
            return SERVER_FAULT
    return NOT_HTTP


def headers_too_large(limits: ConnectionLimits) -> HttpRejection:
    """What is told where request line and headers together are beyond their bound, or the headers too many."""
    return HttpRejection(
        431,
        ErrorCode.PAYLOAD_TOO_LARGE,
        f"Request line and headers must be at most {limits.header_bytes} bytes and {MAX_HEADERS} headers",
    )


def body_too_large(limits: ConnectionLimits) -> HttpRejection:
    """What is told where a body is beyond its bound, by declaration or as it streams."""
    return HttpRejection(
        HTTP_STATUS[ErrorCode.PAYLOAD_TOO_LARGE],
        ErrorCode.PAYLOAD_TOO_LARGE,
        f"The request body must be at most {limits.body_bytes} bytes",
    )


def _invalid(detail: str) -> RequestRejected:
    return RequestRejected(HttpRejection(400, ErrorCode.INVALID_REQUEST, detail))
