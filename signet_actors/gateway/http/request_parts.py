"""The parts of an HTTP request as text: path, query, headers, and the whole body.

Source: docs/security.md A10, A12.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, unquote_to_bytes

from starlette.types import Receive

from signet_actors.errors import ErrorCode, InvalidRequest, SignetError
from signet_actors.gateway.auth.request_guard import Headers
from signet_actors.operations.request_reader import shortened

MAX_QUERY_FIELDS: Final = 64
OBSERVE_HEADER: Final = b"x-signet-observe"
_SET: Final = frozenset({b"1", b"true"})


async def read_body(receive: Receive, limit: int) -> bytes:
    """Return the whole body. The size is checked here too, for servers other than ours."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise InvalidRequest("The client closed the connection before the complete body arrived")
        size += len(message["body"])
        if size > limit:
            raise SignetError(f"The request body must be at most {limit} bytes", code=ErrorCode.PAYLOAD_TOO_LARGE)
        parts.append(message["body"])
        if not message["more_body"]:
            return b"".join(parts)


def is_clean_path(raw: bytes) -> bool:
    """Return True if the unescaped path is UTF-8 without control characters (such as NUL, CR and LF)."""
    if b"%" not in raw:
        return True
    try:
        text = unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        return False
    return all(char >= " " and not "\x7f" <= char <= "\x9f" for char in text)


def header(headers: Headers, name: bytes) -> bytes:
    """Return the value of the header, empty without it."""
    for key, value in headers:  # four times as fast as next() of a generator, and called for each request
        if key == name:
            return value
    return b""


def is_observed(headers: Headers) -> bool:
    """Return True if a person only looks: a read then changes nothing, not even what is counted."""
    return any(name == OBSERVE_HEADER and value.strip().lower() in _SET for name, value in headers)


def read_query(raw: bytes, warnings: list[str]) -> Mapping[str, str]:
    """Return the query parameters by name: the first of a repeated one, with a warning, as the reference does."""
    if not raw:
        return {}
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MAX_QUERY_FIELDS)
    except ValueError as error:  # also UnicodeDecodeError
        raise InvalidRequest("The query string is not valid") from error
    query: dict[str, str] = {}
    for name, value in pairs:
        if "\0" in name or "\0" in value:
            raise InvalidRequest("The query string is not valid")
        if query.setdefault(name, value) != value:
            warnings.append(f"the query parameter {shortened(name)} is given more than once; the first value is used")
    return query


def decoded_headers(headers: Headers) -> Mapping[str, str]:
    """Return the headers as text: UTF-8 if valid, else Latin-1. Repeated headers are joined by a comma."""
    decoded: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name = raw_name.decode("latin-1")
        try:
            value = raw_value.decode()
        except UnicodeDecodeError:
            value = raw_value.decode("latin-1")
        decoded[name] = f"{decoded[name]}, {value}" if name in decoded else value
    return decoded
