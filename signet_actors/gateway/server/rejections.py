"""Responses that the server writes without the application: rejections as JSON errors.

Source: docs/compatibility.md "Errors"; docs/security.md A12; docs/reliability.md R13.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from signet_actors.errors import ErrorCode

HeaderLines: TypeAlias = Iterable[tuple[bytes, bytes]]
"""Header lines with lower-case names. The values must not contain anything that a client sent."""

_TRACE: Final = b"x-signet-trace-id"


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
