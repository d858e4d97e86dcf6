"""From a handler's reply, or from any failure, to the status, headers and bytes of an HTTP answer.

Every failure has the one body ``{"error", "code", "field"?}`` and the status of its code; nothing that a caller
sends can make the encoding fail, and no text of an unexpected exception leaves this process.

Source: docs/compatibility.md "Errors"; docs/decisions.md 30; docs/reliability.md "HTTP outcomes" and "Runtime traps".
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
from msgspec import UNSET

from signet_actors.errors import HTTP_STATUS, ErrorCode, MutationsFrozen, SignetError
from signet_actors.gateway.http.request_warnings import AND_MORE
from signet_actors.gateway.http.route import HttpResponse
from signet_actors.protocol.http.problem import Problem

JSON = "application/json"
WARNINGS_HEADER: Final = "x-signet-warnings"
MAX_WARNINGS_HEADER_CHARS: Final = 4096
SHORT_WAIT_MS: Final = 1000


@dataclass(frozen=True, slots=True)
class EncodedResponse:
    """What goes onto the wire. ``headers`` has no content-type and no content-length; ``code`` is that of an error."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    media_type: str = JSON
    code: ErrorCode | None = None


def encode_response(reply: HttpResponse, warnings: Sequence[str] = ()) -> EncodedResponse:
    """The reply's body as bytes, with ``warnings``; a 503 says when to come back.

    A body that is no Struct has no place for warnings: they go into a header, as an array in ASCII JSON.
    """
    body = reply.body
    headers = reply.headers
    if reply.status == 503 and "retry-after" not in headers:
        headers = {**headers, "retry-after": _seconds(_usual_wait_ms(getattr(body, "code", None)))}
    if warnings and not isinstance(body, msgspec.Struct):
        headers, warnings = {**headers, WARNINGS_HEADER: _header_value(warnings)}, ()
    if isinstance(body, bytes):
        return EncodedResponse(reply.status, headers, body, reply.media_type)
    if warnings and "warnings" in getattr(body, "__struct_fields__", ()):
        body, warnings = msgspec.structs.replace(body, warnings=[*body.warnings, *warnings]), ()
    return with_warnings(EncodedResponse(reply.status, headers, encode_json(body), reply.media_type), warnings)


def _header_value(warnings: Sequence[str]) -> str:
    """Return the first of ``warnings`` as an array in ASCII JSON that clients and proxies accept as a header."""
    value = json.dumps(warnings)
    told = len(warnings)
    while len(value) > MAX_WARNINGS_HEADER_CHARS and told:
        told -= 1
        value = json.dumps([*warnings[:told], AND_MORE])
    return value


def with_warnings(answer: EncodedResponse, warnings: Sequence[str]) -> EncodedResponse:
    """The same answer with ``warnings`` as the last field of its JSON object; unchanged without any."""
    if not warnings:
        return answer
    rest = b'"warnings":' + encode_json(warnings) + b"}"
    body = answer.body[:-1] + (rest if answer.body == b"{}" else b"," + rest)
    return replace(answer, body=body)


def error_response(error: SignetError) -> EncodedResponse:
    """The failure as its HTTP status; Retry-After in whole seconds, at least one."""
    return problem(
        HTTP_STATUS[error.code],
        error.code,
        error.detail,
        field=error.field,
        retry_after_ms=error.retry_after_ms,
    )


def problem(
    status: int,
    code: ErrorCode,
    detail: str,
    *,
    field: str | None = None,
    retry_after_ms: int | None = None,
    headers: Mapping[str, str] | None = None,
) -> EncodedResponse:
    """An error answer."""
    extra = dict(headers or {})
    if retry_after_ms is None and status == 503:
        retry_after_ms = _usual_wait_ms(code)
    if retry_after_ms is not None:
        extra["retry-after"] = _seconds(retry_after_ms)
    body = Problem(error=detail, code=code.value, field=UNSET if field is None else field)
    return EncodedResponse(status, extra, encode_json(body), code=code)


def _usual_wait_ms(code: str | None) -> int:
    """How long to wait after a 503 that does not say so itself."""
    return MutationsFrozen.retry_after_ms if code == ErrorCode.MUTATIONS_FROZEN else SHORT_WAIT_MS


def _seconds(wait_ms: int) -> str:
    """The value of a Retry-After header: whole seconds, at least one."""
    return str(max(1, math.ceil(wait_ms / 1000)))


def internal_problem(trace_id: str) -> EncodedResponse:
    """The answer to a fault of our own: the trace id, by which the log tells the rest."""
    return problem(500, ErrorCode.INTERNAL, f"Internal error; the log has the details under trace {trace_id}")


def encode_json(body: Any) -> bytes:
    """``body`` as UTF-8 JSON; a lone surrogate, which UTF-8 cannot hold, becomes U+FFFD."""
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:
        return msgspec.json.encode(_without_surrogates(msgspec.to_builtins(body)))


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in value)
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_surrogates(item) for item in value]
    return value
