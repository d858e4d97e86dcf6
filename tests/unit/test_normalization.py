"""Equal texts hash alike, and SQLite can hold every one."""

from __future__ import annotations

import hashlib

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.domain.normalization import content_hash, normalized_content, safe_text, storage_content

HELLO = "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9"
anything = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    "text",
    [
        "Hello World",
        "  Hello   World  ",
        "Hello World.",
        "hello world!!!",
        "HELLO\tWORLD\n",
        "hello\u00a0world",
        "hello\r\nworld",
        "\ufeffhello world",
        "hello\u2003\u3000world?;",
    ],
)
def test_spellings_of_one_text_share_a_hash(text: str) -> None:
    assert content_hash(storage_content(text)) == HELLO


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("Hello, World?!.;:", "hello, world"),
        ("...", ""),
        ("ends with dot .", "ends with dot"),
        ("x .,", "x"),
        ("\u0130stanbul", "i\u0307stanbul"),
        ("Straße", "straße"),
        ("", ""),
    ],
)
def test_the_worked_examples_of_normalisation(text: str, normalized: str) -> None:
    assert normalized_content(storage_content(text)) == normalized


def test_the_worked_examples_of_hashes() -> None:
    assert content_hash("Hello, World?!.;:").startswith("09ca7e4e")
    assert content_hash("...").startswith("ab5df625")
    assert content_hash("...") == hashlib.sha256(b"...").hexdigest()


def test_nul_goes_and_a_lone_surrogate_becomes_the_replacement_character() -> None:
    assert storage_content("a\x00b \ud800c") == "ab \ufffdc"
    assert safe_text("a\x00b\n\udfff") == "ab\n\ufffd"


def test_safe_text_leaves_white_space_alone() -> None:
    assert safe_text("  a\t\nü ") == "  a\t\nü "


@given(anything)
def test_storage_content_is_idempotent_and_so_is_its_hash(text: str) -> None:
    stored = storage_content(text)
    assert storage_content(stored) == stored
    assert content_hash(storage_content(stored)) == content_hash(stored)
    assert stored == stored.strip()


@given(anything)
def test_case_of_ascii_and_outer_white_space_never_change_the_hash(text: str) -> None:
    assert content_hash(storage_content(f"\n {text}\t")) == content_hash(storage_content(text))


@given(anything)
def test_sqlite_gives_back_what_it_was_given(text: str) -> None:
    connection = apsw.Connection(":memory:")
    stored = storage_content(text)
    assert connection.execute("SELECT ?, length(?)", (stored, stored)).fetchone() == (stored, len(stored))
