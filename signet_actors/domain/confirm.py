"""Confirm tokens, which prove that the caller recently saw the preview of exactly this deletion.

A token is opaque to clients: base64url of the expiry (8 bytes, milliseconds since the Unix epoch) and an HMAC-SHA256
over expiry, force and the sorted id:version pairs. The daemon keeps no state between preview and execution.

Source: docs/decisions.md 42; memory-system.txt "Forget".
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Iterable
from enum import StrEnum

_EXPIRY_BYTES = 8
_MAC_BYTES = hashlib.sha256().digest_size
_LENGTH = len(base64.urlsafe_b64encode(bytes(_EXPIRY_BYTES + _MAC_BYTES)).rstrip(b"="))
_PURPOSE = b"signet.confirm.v1\0"


class ConfirmCheck(StrEnum):
    """Result of checking a token. CHANGED: it is for another set of memories, or not signed by us; preview again."""

    VALID = "valid"
    EXPIRED = "expired"
    CHANGED = "changed"
    MALFORMED = "malformed"


def _mac(key: bytes, expiry: bytes, force: bool, pairs: Iterable[tuple[str, int | None]]) -> bytes:
    ordered = sorted({(id_, -1 if version is None else version) for id_, version in pairs})
    body = json.dumps([force, ordered], separators=(",", ":")).encode("ascii")
    return hmac.digest(key, _PURPOSE + expiry + body, "sha256")


def confirm_token(key: bytes, expires_at_ms: int, force: bool, pairs: Iterable[tuple[str, int | None]]) -> str:
    """Return a token to delete exactly ``pairs`` (id, version), in any order, until ``expires_at_ms``."""
    expiry = expires_at_ms.to_bytes(_EXPIRY_BYTES, "big")
    token = expiry + _mac(key, expiry, force, pairs)
    return base64.urlsafe_b64encode(token).rstrip(b"=").decode("ascii")


def check_confirm_token(
    key: bytes, token: str, now_ms: int, force: bool, pairs: Iterable[tuple[str, int | None]]
) -> ConfirmCheck:
    """Return whether ``token`` permits deleting exactly ``pairs`` now. Compares in constant time."""
    if len(token) != _LENGTH or not token.isascii():
        return ConfirmCheck.MALFORMED
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return ConfirmCheck.MALFORMED
    if base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii") != token:
        return ConfirmCheck.MALFORMED
    expiry, mac = raw[:_EXPIRY_BYTES], raw[_EXPIRY_BYTES:]
    genuine = hmac.compare_digest(mac, _mac(key, expiry, force, pairs))
    if int.from_bytes(expiry, "big") <= now_ms:
        return ConfirmCheck.EXPIRED
    return ConfirmCheck.VALID if genuine else ConfirmCheck.CHANGED
