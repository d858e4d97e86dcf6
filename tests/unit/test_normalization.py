"""Equal texts have the same hash, and SQLite can store every text."""

from __future__ import annotations

import hashlib
import unicodedata

import apsw
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from signet_actors.domain.normalization import (
    collapsed,
    compatibility_form,
    content_hash,
    normalized_content,
    sanitize_text,
    storage_content,
)

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
        "hello\u2003\u3000world!;",
        "hello\u200b world",
        "he\u00adllo world\u200d",
        "\uff48\uff45\uff4c\uff4c\uff4f\u3000\uff37orld",
    ],
)
def test_spellings_of_one_text_share_a_hash(text: str) -> None:
    assert content_hash(text) == content_hash(storage_content(text)) == HELLO


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("Hello, World?!.;:", "hello, world?"),
        ("Cafe\u0301 Gro\u0308\u00dfe", "caf\u00e9 gr\u00f6\u00dfe"),
        ("Look in /A/b or -D", "look in /A/b or -D"),
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


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ship on Friday", "Ship on Friday?"),
        ("Ship on Friday!", "Ship on Friday?!"),
        ("Look in /A/b", "Look in /a/B"),
        ("Run curl -D", "Run curl -d"),
        ("Set HOME_DIR", "Set home_dir"),
        ("The area is 10\u00b2", "The area is 102"),
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\u0645\u06cc\u062e\u0648\u0627\u0647\u0645"),
    ],
)
def test_texts_that_say_different_things_have_different_hashes(one: str, other: str) -> None:
    assert content_hash(one) != content_hash(other)


def test_the_worked_examples_of_hashes() -> None:
    assert content_hash("Hello, World!.;:").startswith("09ca7e4e")
    assert content_hash("...").startswith("ab5df625")
    assert content_hash("...") == hashlib.sha256(b"...").hexdigest()


def test_nul_is_removed_and_a_lone_surrogate_becomes_the_replacement_character() -> None:
    assert storage_content("a\x00b \ud800c") == "ab \ufffdc"
    assert sanitize_text("a\x00b\n\udfff") == "ab\n\ufffd"


def test_sanitized_text_keeps_its_white_space() -> None:
    assert sanitize_text("  a\t\nü ") == "  a\t\nü "


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("\n  \n\t\n    indented\n  less\n", "    indented\n  less"),
        ("  first line  \n\n\n  third\t\n\n ", "  first line  \n\n\n  third"),
        ("one\r\ntwo\rthree\n\rfour", "one\ntwo\nthree\n\nfour"),
        ("\r\n\r\n  code", "  code"),
        ("a\x00\r\x00\nb\x00", "a\nb"),
        ("tab\there, two  blanks, no-break\u00a0space", "tab\there, two  blanks, no-break\u00a0space"),
        ("\u200bzero\u200dwidth\ufeff\u200b", "\u200bzero\u200dwidth\ufeff\u200b"),
        ("line\u2028and\x0bother\x0cseparators\x85too", "line\u2028and\x0bother\x0cseparators\x85too"),
        (" \n\t\u00a0\ufeff", ""),
        ("", ""),
    ],
)
def test_content_keeps_its_layout_except_blank_ends_and_line_ends(text: str, stored: str) -> None:
    assert storage_content(text) == stored


@given(anything)
def test_storage_content_is_idempotent_and_hashes_like_its_text(text: str) -> None:
    stored = storage_content(text)
    assert storage_content(stored) == stored
    assert content_hash(stored) == content_hash(text)
    assert stored == stored.rstrip()
    assert stored.partition("\n")[0].strip() or not stored


@given(st.text(st.sampled_from("ab \t\n\r\x00\u00a0\ufeff\u200b\u3000")))
def test_only_the_ends_and_the_line_ends_of_a_text_change(text: str) -> None:
    stored = storage_content(text)
    lines = text.replace("\x00", "").replace("\r\n", "\n").replace("\r", "\n")
    assert stored in lines
    before, after = lines.split(stored, 1) if stored else (lines.replace("\ufeff", ""), "")
    assert not (before + after).strip()
    assert not before or not stored or before.endswith("\n")


@given(anything)
def test_a_collapsed_text_is_one_line_with_every_word(text: str) -> None:
    line = collapsed(text)
    assert line == " ".join(line.split())
    assert collapsed(line) == line
    assert line.split() == sanitize_text(text).replace("\ufeff", " ").split()


@given(anything)
def test_case_of_ascii_and_outer_white_space_never_change_the_hash(text: str) -> None:
    assert content_hash(storage_content(f"\n {text}\t")) == content_hash(storage_content(text))


@given(anything)
def test_sqlite_returns_the_stored_text_unchanged(text: str) -> None:
    connection = apsw.Connection(":memory:")
    stored = storage_content(text)
    assert connection.execute("SELECT ?, length(?)", (stored, stored)).fetchone() == (stored, len(stored))


ALPHABET = "a\u4e00\u304b\u3099\uff76\uff9e\u1112\u1161\u11ab\u0300\u0316\ufb01\u2460 "


@given(st.text(alphabet=st.sampled_from(ALPHABET), max_size=600))
def test_the_compatibility_form_is_that_of_unicode_for_every_text_of_a_language(text: str) -> None:
    # A run of more than thirty combining characters is in no language; the drawn texts hardly ever have one.
    runs = "".join(" " if unicodedata.combining(char) == 0 else "m" for char in unicodedata.normalize("NFKD", text))
    assume(len(max(runs.split(), key=len, default="")) <= 30)
    assert compatibility_form(text) == unicodedata.normalize("NFKC", text)
