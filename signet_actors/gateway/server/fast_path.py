"""Recognition of short, ordinary requests by their bytes, without the HTTP parser.

Under overload, thousands of requests a second are shed unparsed. For each, the server only has to know where it ends,
and that any strict parser would agree. All other requests go to the parser and its checks.

Source: docs/reliability.md R13; RFC 9112 sections 2 to 6 (a strict subset of that grammar).
"""

from __future__ import annotations

import re

MAX_PLAIN_BYTES = 16 * 1024
"""Longer data is never treated as a short request."""

_LENGTH = b"\r\ncontent-length:"
_HEAD = re.compile(
    rb"(?:GET|POST|PUT|PATCH|DELETE) /[!-~]* HTTP/1\.1\r\n"
    rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t -~\x80-\xff]*\r\n){1,128}\r\n"
)
_UNUSUAL = re.compile(rb"\r\n(?:transfer-encoding|expect|upgrade|connection:(?!\s*keep-alive\s*\r))")


def is_plain_request(data: bytes) -> bool:
    """Return True if ``data`` is exactly one HTTP/1.1 request, head and body, after which its connection can be reused.

    The head must follow the strict grammar and have at most one Content-Length, a decimal number that equals the length
    of the body. A transfer coding, an expectation, an upgrade, or ``Connection: close`` gives False.
    """
    if len(data) > MAX_PLAIN_BYTES:
        return False
    match = _HEAD.match(data)
    if match is None:
        return False
    end = match.end()
    head = data[:end].lower()
    if _UNUSUAL.search(head):
        return False
    _, found, rest = head.partition(_LENGTH)
    if not found:
        return len(data) == end
    value, _, after = rest.partition(b"\r")
    value = value.strip(b" \t")
    if not value.isdigit() or len(value) > 5 or _LENGTH in b"\r" + after:
        return False
    return len(data) == end + int(value)
