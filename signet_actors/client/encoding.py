"""A request of a declared operation as bytes, and the bytes of a response as its declared reply or as an error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import Any, Final, Generic, TypeVar, get_args
from urllib.parse import urlencode

import msgspec

from signet_actors.client.errors import ClientError, InvalidReply, error_type
from signet_actors.errors import ErrorCode, code_of_status
from signet_actors.operations.headers import TRACE_HEADER, WARNINGS_HEADER, retry_after_ms
from signet_actors.operations.operation import Operation
from signet_actors.operations.request_path import fill_path

ReplyT = TypeVar("ReplyT")

JSON: Final = "application/json"
_MAX_DETAIL_CHARS: Final = 2000


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A response. The names of ``headers`` are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Reply(Generic[ReplyT]):
    """The declared reply, with the headers of the response, and ``warnings`` about what had no effect."""

    value: ReplyT
    headers: Mapping[str, str]
    warnings: tuple[str, ...]


def encode_target(operation: Operation[Any, Any], path: Mapping[str, str], request: msgspec.Struct) -> str:
    """Return path and query of a request.

    Raises TypeError if ``path`` has not exactly the parameters of the path, and InvalidPathValue, a ValueError.
    """
    template = operation.paths[0]
    unknown = [name for name in path if "{" + name + "}" not in template]
    if unknown:
        raise TypeError(f"{operation.name} has no parameter {unknown[0]!r}: {template}")
    try:
        target = fill_path(template, path)
    except KeyError as missing:
        raise TypeError(f"{operation.name} needs the parameter {missing}: {template}") from None
    if operation.in_body:
        return target
    fields = msgspec.to_builtins(request).items()  # a tuple stays one
    query = {name: _query_text(name, value) for name, value in fields if value is not None and value != ()}
    return f"{target}?{urlencode(query)}" if query else target


def _query_text(name: str, value: object) -> str:
    if isinstance(value, dict):
        raise TypeError(f"{name} is an object, which a query cannot hold")
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def encode_body(operation: Operation[Any, Any], request: msgspec.Struct) -> bytes | None:
    """Return the JSON body of a request; None if the operation has none."""
    if operation.body is None or operation.lines is not None:
        return None
    return msgspec.json.encode(request)


def read_reply(operation: Operation[Any, ReplyT], reply: HttpReply, *, request_id: str) -> Reply[ReplyT]:
    """Return the declared reply. Raises ClientError for an error response, and for one that was not declared."""
    usual = operation.success
    kind = operation.replies.get(reply.status, usual)
    if not 200 <= reply.status < 300 and (
        reply.status not in operation.replies or kind != usual
    ):  # the readiness of a daemon that is not ready is a reply too
        raise _error(operation, reply, request_id)
    try:
        value: Any = _decode(kind, reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _undeclared(operation, reply, request_id, str(error)) from error
    return Reply(value, reply.headers, _warnings(reply) if operation.media_types == () else _header_warnings(reply))


@cache
def _decoders(kind: Any) -> tuple[msgspec.json.Decoder[Any], ...]:
    """Return a decoder for each member of a union: msgspec decodes no union of objects without tags."""
    return tuple(msgspec.json.Decoder(each) for each in (get_args(kind) if isinstance(kind, UnionType) else (kind,)))


def _decode(kind: Any, body: bytes) -> Any:
    if kind is None or kind is bytes:
        return None if kind is None else body
    if kind is str:
        return body.decode()
    *first, last = _decoders(kind)
    for decoder in first:
        try:
            return decoder.decode(body)
        except msgspec.ValidationError:
            continue
    return last.decode(body)


class _Warned(msgspec.Struct):
    warnings: list[str] = []


_WARNED: Final = msgspec.json.Decoder(_Warned)
_TEXTS: Final = msgspec.json.Decoder(list[str])


def _warnings(reply: HttpReply) -> tuple[str, ...]:
    if b'"warnings":' in reply.body:
        try:
            return tuple(_WARNED.decode(reply.body).warnings)
        except msgspec.DecodeError:
            return ()
    return _header_warnings(reply)


def _header_warnings(reply: HttpReply) -> tuple[str, ...]:
    try:
        return tuple(_TEXTS.decode(reply.headers.get(WARNINGS_HEADER, "[]")))
    except msgspec.DecodeError:
        return ()


def _error(operation: Operation[Any, Any], reply: HttpReply, request_id: str) -> ClientError:
    """Return the error that an error response is."""
    if reply.status < 400:
        return _undeclared(operation, reply, request_id, "neither success nor an error")
    body = _object(reply.body)
    detail, field = body.get("error"), body.get("field")
    try:
        code = ErrorCode(body.get("code", ""))
    except ValueError:
        code = code_of_status(reply.status, changes=operation.has_effect)
    return error_type(reply.status)(
        detail[:_MAX_DETAIL_CHARS] if isinstance(detail, str) and detail else f"the daemon answered {reply.status}",
        code=code,
        field=field if isinstance(field, str) else None,
        retry_after_ms=retry_after_ms(reply.headers.get("retry-after")),
        status=reply.status,
        request_id=request_id,
        trace_id=reply.headers.get(TRACE_HEADER),
        body=body,
    )


def _undeclared(operation: Operation[Any, Any], reply: HttpReply, request_id: str, why: str) -> InvalidReply:
    return InvalidReply(
        f"the answer to {operation.name} is not one of this version ({reply.status}; {why})",
        status=reply.status,
        request_id=request_id,
        trace_id=reply.headers.get(TRACE_HEADER),
    )


def _object(body: bytes) -> dict[str, Any]:
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return decoded if isinstance(decoded, dict) else {}
