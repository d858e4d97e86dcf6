"""A confirm token is valid for exactly one deletion and a short time."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.domain.confirm import ConfirmCheck, check_confirm_token, confirm_token

KEY = bytes(range(32))
PAIRS = [("b", 2), ("a", 1), ("c", None)]
NOW = 1_771_668_000_000


def check(token: str, *, key: bytes = KEY, now: int = NOW, force: bool = False, pairs: object = None) -> ConfirmCheck:
    return check_confirm_token(key, token, now, force, PAIRS if pairs is None else pairs)  # type: ignore[arg-type]


@pytest.fixture
def token() -> str:
    return confirm_token(KEY, NOW + 300_000, False, PAIRS)


def test_the_set_of_the_preview_is_confirmed_in_any_order(token: str) -> None:
    assert check(token) is ConfirmCheck.VALID
    assert check(token, pairs=list(reversed(PAIRS))) is ConfirmCheck.VALID


@pytest.mark.parametrize(
    "pairs",
    [[], PAIRS[:2], [*PAIRS, ("d", 1)], [("b", 3), ("a", 1), ("c", None)], [("b", 2), ("a", 1), ("c", 1)]],
)
def test_a_token_for_another_set_requires_a_new_preview(token: str, pairs: list[tuple[str, int | None]]) -> None:
    assert check(token, pairs=pairs) is ConfirmCheck.CHANGED


def test_a_token_for_soft_deletion_does_not_allow_a_hard_one(token: str) -> None:
    assert check(token, force=True) is ConfirmCheck.CHANGED


def test_a_token_expires(token: str) -> None:
    assert check(token, now=NOW + 299_999) is ConfirmCheck.VALID
    assert check(token, now=NOW + 300_000) is ConfirmCheck.EXPIRED


def test_another_daemons_token_is_invalid(token: str) -> None:
    assert check(token, key=bytes(32)) is ConfirmCheck.CHANGED


def test_the_expiry_of_a_token_cannot_be_forged(token: str) -> None:
    raw = bytearray(base64.urlsafe_b64decode(token + "=="))
    raw[0] = 0x7F
    assert check(base64.urlsafe_b64encode(bytes(raw)).rstrip(b"=").decode()) is ConfirmCheck.CHANGED


@pytest.mark.parametrize("text", ["", "x", "a" * 53, "!" * 54, "é" * 54, "a" * 54 + "=="])
def test_an_invalid_token_is_malformed(text: str) -> None:
    assert check(text) is ConfirmCheck.MALFORMED


@given(st.text(max_size=80))
def test_no_random_text_is_accepted_or_raises_an_error(text: str) -> None:
    assert check(text) is not ConfirmCheck.VALID


def test_separators_inside_ids_do_not_make_sets_ambiguous() -> None:
    token = confirm_token(KEY, NOW + 1, False, [("a:1", 2)])
    assert check(token, pairs=[("a", 1), ("2", None)]) is ConfirmCheck.CHANGED
    assert check(token, pairs=[("a:1", 2)]) is ConfirmCheck.VALID
