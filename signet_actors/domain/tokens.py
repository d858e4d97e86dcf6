"""Bearer tokens: ``base64url(payload).base64url(HMAC-SHA256)``, both without padding, and API keys.

The payload is JSON. Nothing in it names an algorithm: there is one. A text that is not the only spelling of its bytes
is refused, and each comparison with a secret takes the same time whatever differs.

Source: architecture.txt "Auth Middleware"; docs/compatibility.md "Authentication"; docs/guides/team.md "Tokens".
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Final, NamedTuple

import msgspec

from signet_actors.domain.permissions import Role

MAX_TOKEN_CHARS: Final = 4096
CLOCK_SKEW_S: Final = 60
"""A token may be issued so far in the future, for clocks that differ."""
KEY_PREFIX: Final = "signet_"
"""Begins an API key: ``signet_{id}_{secret}``."""
_KEY_PARTS: Final = 3


class TokenScope(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a token is limited to; a field that is None is no limit.

    ``agent``: it acts as this agent only. ``project``: memories of exactly this project. ``user``: memories with this
    ``who``.
    """

    project: str | None = None
    agent: str | None = None
    user: str | None = None


class Claims(msgspec.Struct, frozen=True, omit_defaults=True):
    """The payload of a token. ``iat``, ``exp``: when it was issued and expires, in seconds since 1970.

    ``jti``: the id of the token. ``kid``: names the secret that signed it.
    """

    sub: str
    role: Role
    iat: int
    exp: int
    jti: str
    kid: str
    scope: TokenScope = TokenScope()


class TokenRefused(Exception):
    """Why a token is not accepted; the text is what a client is told."""


class ApiKey(NamedTuple):
    """The parts of an API key; only the digest of ``secret`` is stored."""

    id: str
    secret: str


_read_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_read_claims = msgspec.json.Decoder(Claims).decode


def key_id(secret: bytes) -> str:
    """Return the name of a signing secret: it tells nothing about it."""
    return hashlib.sha256(b"signet key id\0" + secret).hexdigest()[:8]


def sign(secret: bytes, claims: Claims) -> str:
    """Return the token with these claims."""
    payload = _encoded(msgspec.json.encode(claims))
    return f"{payload}.{_encoded(_mac(secret, payload))}"


def verify(secret: bytes, token: str, now_s: int) -> Claims:
    """Return the claims of a token that is signed with ``secret`` and valid now. Raises TokenRefused."""
    payload, dot, signature = token.partition(".")
    if not dot or not signature or len(token) > MAX_TOKEN_CHARS:
        raise TokenRefused("malformed token")
    given = _decoded(signature)
    if given is None or not hmac.compare_digest(_mac(secret, payload), given):
        raise TokenRefused("invalid signature")
    try:
        text = _decoded(payload) or b""
        members = _read_object(text)
        if not {"iat", "exp"} <= members.keys():
            raise TokenRefused("missing timestamps")
        claims = _read_claims(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TokenRefused("malformed payload") from error
    if claims.iat > now_s + CLOCK_SKEW_S or claims.exp <= claims.iat:
        raise TokenRefused("malformed payload")
    if claims.exp <= now_s:
        raise TokenRefused("token expired")
    return claims


def api_key_text(key: ApiKey) -> str:
    return f"{KEY_PREFIX}{key.id}_{key.secret}"


def read_api_key(text: str) -> ApiKey | None:
    """Return the parts of an API key, None if the text is none."""
    parts = text.split("_")
    if not text.startswith(KEY_PREFIX) or len(parts) != _KEY_PARTS or len(text) > MAX_TOKEN_CHARS:
        return None
    return ApiKey(parts[1], parts[2])


def secret_digest(secret: str) -> bytes:
    """Return what is stored of the secret of an API key, which has 256 random bits."""
    return hashlib.sha256(secret.encode()).digest()


def _mac(secret: bytes, payload: str) -> bytes:
    return hmac.digest(secret, payload.encode("utf-8", "replace"), "sha256")


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decoded(text: str) -> bytes | None:
    """Return the bytes of base64url without padding, None if the text is not their only spelling."""
    try:
        raw = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        return None
    return raw if _encoded(raw) == text else None
