"""A bearer token is accepted in one spelling only, with one secret, until it expires."""

from __future__ import annotations

import base64
import hmac
import json
from string import ascii_letters, digits
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signet_actors.domain.permissions import API_KEY_PERMISSIONS, PERMISSIONS_OF, Permission, Role
from signet_actors.domain.tokens import (
    ApiKey,
    Claims,
    TokenRefused,
    TokenScope,
    api_key_text,
    key_id,
    read_api_key,
    sign,
    verify,
)

SECRET = bytes(range(32))
NOW = 1_800_000_000
CLAIMS = Claims("Ada", Role.AGENT, NOW - 10, NOW + 600, "id-1", key_id(SECRET), TokenScope(agent="ada"))
TOKEN = sign(SECRET, CLAIMS)


def refusal(token: str, now: int = NOW) -> str:
    with pytest.raises(TokenRefused) as refused:
        verify(SECRET, token, now)
    return str(refused.value)


def signed(payload: Any) -> str:
    """A token with any payload, signed as it should be."""
    raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    first = base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
    mac = hmac.digest(SECRET, first.encode(), "sha256")
    return f"{first}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


def test_a_token_is_two_parts_of_base64url_without_padding() -> None:
    payload, _, mac = TOKEN.partition(".")
    assert verify(SECRET, TOKEN, NOW) == CLAIMS
    assert json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))) == {
        "sub": "Ada",
        "role": "agent",
        "iat": NOW - 10,
        "exp": NOW + 600,
        "jti": "id-1",
        "kid": key_id(SECRET),
        "scope": {"agent": "ada"},
    }
    assert len(base64.urlsafe_b64decode(mac + "=")) == 32
    assert SECRET.hex()[:8] not in key_id(SECRET)


@pytest.mark.parametrize(
    "token", ["", "x", "a.", ".", "eyJhbGciOiJub25lIn0.e30.", TOKEN.replace(".", ""), "a." + "b" * 5000]
)
def test_what_is_not_two_parts_is_malformed(token: str) -> None:
    assert refusal(token) in {"malformed token", "invalid signature"}


def test_another_spelling_of_the_same_bytes_is_refused() -> None:
    payload, _, mac = TOKEN.partition(".")
    # The last of 43 characters has four bits that count, so three others stand for the same bytes.
    others = [mac[:-1] + char for char in ascii_letters + digits + "-_" if char != mac[-1]]
    standard = mac.replace("-", "+").replace("_", "/")
    for other in (*others, mac + "=", mac + "A", standard + "\n", " " + mac, mac + "\u0661"):
        assert refusal(f"{payload}.{other}") == "invalid signature", other


@settings(max_examples=300, deadline=None)
@given(at=st.integers(0, len(TOKEN) - 1), char=st.characters(min_codepoint=32, max_codepoint=0x2FF))
def test_no_token_with_a_changed_character_is_accepted(at: int, char: str) -> None:
    changed = TOKEN[:at] + char + TOKEN[at + 1 :]
    if changed != TOKEN:
        refusal(changed)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=200))
def test_no_text_is_taken_for_a_token(text: str) -> None:
    refusal(text)
    assert read_api_key(text) is None or text.startswith("signet_")


def test_a_token_of_another_installation_is_refused() -> None:
    assert refusal(sign(bytes(32), CLAIMS)) == "invalid signature"
    assert refusal(sign(b"", CLAIMS)) == "invalid signature"


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ([1, 2], "malformed payload"),
        (b"\xff\xfe", "malformed payload"),
        (b"", "malformed payload"),
        ({}, "missing timestamps"),
        ({"sub": "a", "role": "agent", "jti": "1", "kid": "1", "exp": NOW + 1}, "missing timestamps"),
        ({"sub": "a", "role": "root", "iat": NOW, "exp": NOW + 9, "jti": "1", "kid": "1"}, "malformed payload"),
        ({"sub": "a", "role": "admin", "iat": NOW, "exp": "never", "jti": "1", "kid": "1"}, "malformed payload"),
        (
            {"sub": "a", "role": "admin", "iat": NOW + 600, "exp": NOW + 900, "jti": "1", "kid": "1"},
            "malformed payload",
        ),
        ({"sub": "a", "role": "admin", "iat": NOW, "exp": NOW, "jti": "1", "kid": "1"}, "malformed payload"),
        (
            {"sub": "a", "role": "agent", "iat": NOW, "exp": NOW + 9, "jti": "1", "kid": "1", "scope": {"agnet": "x"}},
            "malformed payload",
        ),
        (
            {"sub": "a", "role": "agent", "iat": NOW, "exp": NOW + 9, "jti": "1", "kid": "1", "scope": []},
            "malformed payload",
        ),
    ],
)
def test_a_signed_payload_must_be_whole(payload: object, reason: str) -> None:
    assert refusal(signed(payload)) == reason


def test_a_token_expires_at_its_second() -> None:
    assert verify(SECRET, TOKEN, NOW + 599) == CLAIMS
    assert refusal(TOKEN, NOW + 600) == "token expired"
    with pytest.raises(TokenRefused, match="expired"):
        verify(SECRET, sign(SECRET, msgspec.structs.replace(CLAIMS, exp=NOW)), NOW)


def test_the_permissions_of_roles_are_the_documented_ones() -> None:
    everything = set(Permission)
    assert PERMISSIONS_OF[Role.ADMIN] == everything
    assert PERMISSIONS_OF[Role.OPERATOR] == everything - {Permission.ADMIN}
    assert PERMISSIONS_OF[Role.AGENT] == {"remember", "recall", "modify", "forget", "recover", "documents"}
    assert PERMISSIONS_OF[Role.READONLY] == {"recall"}
    assert {"recall", "remember", "documents"} == API_KEY_PERMISSIONS


def test_an_api_key_is_read_as_it_was_written() -> None:
    key = ApiKey("0a1b", "ff00")
    assert read_api_key(api_key_text(key)) == key
    for text in ("signet_", "signet_a", "signet_a_b_c", "Signet_a_b", "signet_a_" + "b" * 5000):
        assert read_api_key(text) is None
