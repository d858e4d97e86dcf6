"""Find keys and signatures in the query of a URL: ``?key=…``, ``&appid=…``, ``&sig=…``, ``X-Goog-Signature=…``.

The value must be random; what else has such a name (``?key=user_id``, ``?code=404``) is none.

Source: Azure Functions documentation, "Work with access keys"; Azure Storage, "Create a service SAS"; Amazon S3 API
Reference, "Signing requests" (versions 2 and 4); Google Cloud Storage, "Signed URLs"; OpenWeather, "How to start".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from signet_actors.domain.lazy_patterns import compile_later
from signet_actors.domain.redaction.values import (
    SecretSpan,
    is_hex_key,
    is_mixed,
    is_random_parameter,
    may_be_real_token,
)
from signet_actors.domain.windowed_search import windowed_matches

_REACH: Final = 4096
PARAMETER_MARKS: Final = ("key=", "appid=", "app_id=", "code=", "sig=", "signature=")
_PUBLIC: Final = (
    "public|pub|publishable|site|cache|primary|foreign|sort|order|partition|idempotency|row|object|index|group|map|dedup|event"
    "|query|storage|state|hash|session|message|translation|locale|file|host"
)
_PARAMETER = compile_later(
    rf"[?&;](?:(?P<key>(?!(?:[\w-]{{0,30}}[_-])?(?:{_PUBLIC})[_-]?key=)[\w-]{{0,30}}key)|(?P<app>app_?id)|(?P<code>code)"
    r"|(?P<signature>(?:x-[a-z]{2,8}-)?sig(?:nature)?))=(?P<value>[\w+/~.%-]{16,2048}={0,2})(?![\w(<>{}$\[:@])"
)
_HEX_SIGNATURE = compile_later(r"(?:[0-9a-f]{2}){20,1024}")
_DIGEST = compile_later(r"[\w+/~-]{26,2048}={0,2}")
_CODE_CHARS: Final = 40
_PADDING: Final = "="
_ISSUED: Final = "AzFu"
"""Stands in the keys that Azure has issued to functions since 2022."""


def parameter_values(plain: str, folded: str) -> Iterator[SecretSpan]:
    """Yield the keys and signatures among the parameters of URLs."""
    for found in windowed_matches(_PARAMETER, folded, _REACH):
        start, end = found.span("value")
        while end > start and plain[end - 1] in ".,":
            end -= 1
        value = plain[start:end]
        if found["key"]:
            accepted = is_random_parameter(value)
        elif found["app"]:
            accepted = is_hex_key(value) and is_random_parameter(value)
        elif found["code"]:
            accepted = len(value) >= _CODE_CHARS and (value.endswith(_PADDING) or _ISSUED in value) and is_mixed(value)
        else:
            accepted = _HEX_SIGNATURE.fullmatch(value) is not None or (
                _DIGEST.fullmatch(value) is not None and is_mixed(value)
            )
        if accepted and may_be_real_token(value):
            yield "credential", start, end
