"""What the server writes by itself: why a request is refused, as bytes, and an answer in one piece.

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
"""Header lines: lower-case names, and values that hold nothing a client sent."""

_TRACE: Final = b"x-signet-trace-id"


@dataclass(frozen=True, slots=True)
class HttpRejection:
    """Why a request is refused, as its client will be encoded."""

    status: int
    code: ErrorCode
    detail: str
    retry_after_ms: int | None = None


BUSY: Final = HttpRejection(
    503, ErrorCode.BUSY, "Too many requests are waiting; nothing of this one was applied", retry_after_ms=1000
)
TOO_MANY_CONNECTIONS: Final = HttpRejection(503, ErrorCode.BUSY, "Too many connections", retry_after_ms=1000)
TOO_MANY_PIPELINED: Final = HttpRejection(503, ErrorCode.BUSY, "Too many pipelined requests", retry_after_ms=1000)
HEADERS_TIMEOUT: Final = HttpRejection(408, ErrorCode.REQUEST_TIMEOUT, "The request headers took too long to arrive")
BODY_TIMEOUT: Final = HttpRejection(408, ErrorCode.REQUEST_TIMEOUT, "The request body took too long to arrive")
NOT_HTTP: Final = HttpRejection(400, ErrorCode.INVALID_REQUEST, "The request is not valid HTTP/1.1")
SERVER_FAULT: Final = HttpRejection(500, ErrorCode.INTERNAL, "Internal error before the request was read")


class RequestRejected(Exception):
    """The request is refused with ``verdict``: what a callback of the parser raises to stop it."""

    def __init__(self, rejection: HttpRejection) -> None:
        self.rejection = rejection
        super().__init__(rejection.detail)


@dataclass(slots=True)
class RejectionCounts:
    """What was refused before the application ran. ``connections`` are among ``total``, and so are those of
    ``by_code``; connections that are closed untold have no code."""

    total: int = 0
    connections: int = 0
    by_code: Counter[ErrorCode] = field(default_factory=Counter)

    def count(self, code: ErrorCode) -> None:
        """One more was encoded ``code``."""
        self.total += 1
        self.by_code[code] += 1


def rejection_response(rejection: HttpRejection, trace_id: str) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Headers and body that tell of ``verdict``."""
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
    """The answer in one piece; ``keeps``: its connection stays; ``head_only``: nothing is read behind its head."""
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
    """The answer to a request for which there is no room, on a connection that stays.

    All but the trace id is written once for each list of default headers, which the server replaces with the time.
    """

    def __init__(self) -> None:
        self._default: list[tuple[bytes, bytes]] | None = None
        self._before = self._after = b""

    def render(self, default: list[tuple[bytes, bytes]], trace_id: str) -> bytes:
        """The whole answer."""
        if default is not self._default:
            headers, body = rejection_response(BUSY, "")
            headers.remove((_TRACE, b""))
            encoded = response_bytes(BUSY.status, default, headers, b"", keep_alive=True, head_only=True)
            self._default = default
            self._before, self._after = encoded.removesuffix(b"\r\n") + _TRACE + b": ", b"\r\n\r\n" + body
        return self._before + trace_id.encode() + self._after
