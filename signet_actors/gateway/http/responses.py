"""Encoding of a handler's reply, or of any failure, as status, headers and body of an HTTP response.

Every failure has the body ``{"error", "code", "field"?}`` and the status of its code. No client input can make the
encoding fail, and the text of an unexpected exception is never sent.

Source: docs/compatibility.md "Errors"; docs/decisions.md 30; docs/reliability.md "HTTP outcomes" and "Runtime traps".
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET

from signet_actors.errors import HTTP_STATUS, ErrorCode, MutationsFrozen, RateLimited, SignetError
from signet_actors.gateway.http.event_streams import EventStream
from signet_actors.gateway.http.route import HttpResponse
from signet_actors.operations.headers import EVENT_STREAM, WARNINGS_HEADER
from signet_actors.operations.problem import Problem
from signet_actors.operations.request_reader import AND_MORE
from signet_actors.protocol.message import Answered

T = TypeVar("T", bound=msgspec.Struct)

JSON = "application/json"
MAX_WARNINGS_HEADER_CHARS: Final = 4096
SHORT_WAIT_MS: Final = 1000


def fill(kind: type[T], source: msgspec.Struct, **others: Any) -> T:
    """Return a ``kind`` with the fields of the same names in ``source``, and with ``others``.

    None in ``source`` leaves out a field that may be absent.
    """
    for name, may_be_absent in _common_fields(kind, type(source)):
        if name not in others and ((value := getattr(source, name)) is not None or not may_be_absent):
            others[name] = value
    return kind(**others)


@cache
def _common_fields(kind: type[msgspec.Struct], source: type[msgspec.Struct]) -> tuple[tuple[str, bool], ...]:
    """Return the fields that both have, and whether each may be absent in ``kind``."""
    fields = (field for field in msgspec.structs.fields(kind) if field.name in source.__struct_fields__)
    return tuple((field.name, field.default is UNSET) for field in fields)


def joined_tags(tags: Sequence[str]) -> str | None:
    """Return tags as most responses show them: a comma-separated string, or None if there are none."""
    return ",".join(tags) or None


@dataclass(frozen=True, slots=True)
class EncodedResponse:
    """A response as it is sent. ``headers`` lacks content-type and content-length; ``code`` is set for an error.

    ``events``: what follows, piece by piece, in a response that has no length.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    media_type: str = JSON
    code: ErrorCode | None = None
    events: EventStream | None = None


def described(answer: EncodedResponse) -> tuple[tuple[bytes, bytes], ...]:
    """Return the headers of the body; a 304 has none, and says nothing of the one that the client has. No stream has a
    length.

    Source: RFC 9110, section 15.4.5.
    """
    if answer.status == 304:
        return ()
    kind = (b"content-type", answer.media_type.encode())
    return (kind,) if answer.events is not None else (kind, (b"content-length", b"%d" % len(answer.body)))


def encode_response(reply: HttpResponse, warnings: Sequence[str] = ()) -> EncodedResponse:
    """Encode the reply with its ``warnings``; add Retry-After to a 503.

    If the body is no JSON object, the warnings go into a header, as a JSON array in ASCII.
    """
    body = reply.body
    headers = reply.headers
    if reply.status == 503 and "retry-after" not in headers:
        headers = {**headers, "retry-after": _seconds(_usual_wait_ms(getattr(body, "code", None)))}
    if warnings and (not isinstance(body, msgspec.Struct) or (isinstance(body, Answered) and body.body[:1] == b"[")):
        headers, warnings = {**headers, WARNINGS_HEADER: _header_value(warnings)}, ()
    if isinstance(body, EventStream):
        return EncodedResponse(reply.status, headers, b"", EVENT_STREAM, events=body)
    if isinstance(body, bytes):
        return EncodedResponse(reply.status, headers, body, reply.media_type)
    if isinstance(body, Answered):
        return with_warnings(EncodedResponse(reply.status, headers, body.body, reply.media_type), warnings)
    if warnings and "warnings" in getattr(body, "__struct_fields__", ()):
        body, warnings = msgspec.structs.replace(body, warnings=[*(body.warnings or ()), *warnings]), ()
    return with_warnings(EncodedResponse(reply.status, headers, encode_json(body), reply.media_type), warnings)


def _header_value(warnings: Sequence[str]) -> str:
    """Return as many of ``warnings`` as fit into a header that clients and proxies accept, as a JSON array in ASCII."""
    value = json.dumps(warnings)
    shown = len(warnings)
    while len(value) > MAX_WARNINGS_HEADER_CHARS and shown:
        shown -= 1
        value = json.dumps([*warnings[:shown], AND_MORE])
    return value


def with_warnings(answer: EncodedResponse, warnings: Sequence[str]) -> EncodedResponse:
    """Return the response with ``warnings`` as the last field of its JSON object; unchanged if there are none."""
    if not warnings:
        return answer
    rest = b'"warnings":' + encode_json(warnings) + b"}"
    body = answer.body[:-1] + (rest if answer.body == b"{}" else b"," + rest)
    return replace(answer, body=body)


def error_response(error: SignetError) -> EncodedResponse:
    """Encode the failure with the HTTP status of its code."""
    return problem(
        HTTP_STATUS[error.code],
        error.code,
        error.detail,
        field=error.field,
        retry_after_ms=error.retry_after_ms,
        tells_wait=isinstance(error, RateLimited),
    )


def problem(
    status: int,
    code: ErrorCode,
    detail: str,
    *,
    field: str | None = None,
    retry_after_ms: int | None = None,
    headers: Mapping[str, str] | None = None,
    tells_wait: bool = False,
) -> EncodedResponse:
    """Encode an error response; a 503 gets a Retry-After in whole seconds, at least one.

    ``tells_wait``: the body, too, tells when a retry is possible, in milliseconds.
    """
    extra = dict(headers or {})
    if retry_after_ms is None and status == 503:
        retry_after_ms = _usual_wait_ms(code)
    if retry_after_ms is not None:
        extra["retry-after"] = _seconds(retry_after_ms)
    if status == HTTP_STATUS[ErrorCode.UNAUTHORIZED]:
        extra["www-authenticate"] = "Bearer"
    wait_ms = UNSET if retry_after_ms is None or not tells_wait else retry_after_ms
    body = Problem(error=detail, code=code.value, field=UNSET if field is None else field, retry_after=wait_ms)
    return EncodedResponse(status, extra, encode_json(body), code=code)


def _usual_wait_ms(code: str | None) -> int:
    """Return the Retry-After of a 503 that does not set its own."""
    return MutationsFrozen.retry_after_ms if code == ErrorCode.MUTATIONS_FROZEN else SHORT_WAIT_MS


def _seconds(wait_ms: int) -> str:
    """Return the value of a Retry-After header: whole seconds, at least one."""
    return str(max(1, math.ceil(wait_ms / 1000)))


def internal_problem(trace_id: str) -> EncodedResponse:
    """Encode the response to an internal error: it names the trace id, under which the log has the details."""
    return problem(500, ErrorCode.INTERNAL, f"Internal error; the log contains the details under trace {trace_id}")


def encode_json(body: Any) -> bytes:
    """Return ``body`` as UTF-8 JSON. A lone surrogate, which UTF-8 cannot encode, becomes U+FFFD."""
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


CACHE_TTL_NS: Final = 250_000_000


class ResponseCache:
    """The last response to each status probe, which is expensive under overload; the route table bounds its size.

    Source: docs/reliability.md R13.
    """

    def __init__(self) -> None:
        self._responses: dict[str, tuple[int, EncodedResponse]] = {}

    def get(self, path: str, now_ns: int) -> EncodedResponse | None:
        """Return the response stored for ``path`` within the last ``CACHE_TTL_NS``, or None."""
        at_ns, answer = self._responses.get(path, (0, None))
        return answer if answer is not None and now_ns - at_ns < CACHE_TTL_NS else None

    def store(self, path: str, answer: EncodedResponse, now_ns: int) -> None:
        self._responses[path] = (now_ns, answer)
