"""Oversized content is split at sentences without losing text."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.domain.chunking import chunk_target, distinct_chunks
from signet_actors.domain.normalization import collapsed, content_hash, storage_content

MAX_CHUNKS = 2001
"""Two for each planned one, and a rest."""


@pytest.mark.parametrize(
    ("text", "target", "chunks"),
    [
        ("Hello world. This is a test! Is it? Yes.", 20, ["Hello world.", "This is a test!", "Is it? Yes."]),
        ("a" * 20, 10, ["a" * 20]),
        ("abcdefghijklmnopqrstu", 10, ["abcdefghij", "klmnopqrst", "u"]),
        ("no punctuation here at all", 5, ["no pu", "nctua", "tion", "here", "at al", "l"]),
        ("", 10, []),
        ("  \n ", 10, []),
        ("One. Two.\nThree.", 100, ["One. Two.\nThree."]),
        ("v1.2.3 is out. Good.", 100, ["v1.2.3 is out. Good."]),
    ],
)
def test_the_worked_examples(text: str, target: int, chunks: list[str]) -> None:
    assert distinct_chunks(text, target) == chunks


@given(st.text(st.sampled_from("ab .!?\n\u00e9\u4e2d")), st.integers(1, 40))
def test_every_character_except_white_space_is_kept_in_order(text: str, target: int) -> None:
    chunks = distinct_chunks(text, target)
    assert "".join("".join(chunks).split()) == "".join(text.split())
    assert all(chunk.strip() and chunk in text for chunk in chunks)


@given(
    st.lists(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), unique=True), st.randoms(), st.integers(1, 40)
)
def test_no_chunk_of_a_text_without_repetition_exceeds_twice_the_target(
    letters: list[str], rng: random.Random, target: int
) -> None:
    text = "".join(letter + rng.choice(["", " ", "\n"]) for letter in letters)
    assert all(len(chunk) <= 2 * target for chunk in distinct_chunks(text, target))


@given(st.text(), st.integers(1, 40))
def test_chunks_of_stored_content_are_in_storage_form(text: str, target: int) -> None:
    chunks = distinct_chunks(storage_content(text), target)
    assert all(storage_content(chunk) == (chunk if collapsed(chunk) else "") for chunk in chunks)


LISTING = """\
def walk(tree):
    if tree is None:
        return

    for child in tree.children:
        yield from walk(child)
\tyield tree
"""


def test_code_is_cut_between_lines_and_every_line_keeps_its_indentation() -> None:
    chunks = distinct_chunks(LISTING, 45)
    assert chunks == [
        "def walk(tree):\n    if tree is None:",
        "        return",
        "    for child in tree.children:",
        "        yield from walk(child)\n\tyield tree",
    ]
    assert distinct_chunks(LISTING, 1000) == [LISTING.rstrip()]


def test_the_number_of_a_list_item_stays_with_its_text() -> None:
    text = "Steps:\n1. Stop the daemon.\n2. Copy the file.\n\n10. Start it again."
    assert distinct_chunks(text, 20) == [
        "Steps:\n1. Stop the daemon.",
        "2. Copy the file.",
        "10. Start it again.",
    ]


@given(st.text(st.sampled_from("ab .!\n\t"), min_size=1), st.integers(1, 40))
def test_a_line_that_fits_is_never_split_inside_a_word(text: str, target: int) -> None:
    longest = max(map(len, text.split("\n")))
    if longest <= 2 * target:
        assert " ".join(distinct_chunks(text, target)).split() == text.split()


def test_a_target_below_one_raises_an_error() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        distinct_chunks("text", 0)


@given(st.text(st.sampled_from("ab .!"), min_size=2000, max_size=6000), st.integers(1, 50))
def test_no_text_has_more_chunks_than_the_writer_accepts_at_once(text: str, configured: int) -> None:
    target = chunk_target(len(text), configured)
    assert target >= configured
    assert len(distinct_chunks(text, target)) <= MAX_CHUNKS


def test_the_configured_target_applies_to_all_but_the_longest_texts() -> None:
    assert chunk_target(300_000, 300) == 300
    assert chunk_target(1_000_000, 300) == 1000


@pytest.mark.parametrize("unit", ["x. " + "y" * 2001 + ". ", "a. ", "word ", "y"])
def test_the_longest_content_stays_within_the_limit(unit: str) -> None:
    text = storage_content((unit * (1_000_000 // len(unit) + 1))[:1_000_000])
    assert len(distinct_chunks(text, chunk_target(len(text), 50))) <= MAX_CHUNKS


PARAGRAPH = "The nightly job copies the tables, then it checks them. Nobody watches it.\n\n"
TABLE = "| host | state |\n|---|---|\n" + "| web | up |\n| WEB | Up. |\n" * 60
LOG = "12:00:01 disk is full\n12:00:01 DISK IS FULL!\n12:00:01   disk is full.\n" * 40


@pytest.mark.parametrize("target", [50, 300])
@pytest.mark.parametrize(
    "text",
    [
        PARAGRAPH * 40,
        (PARAGRAPH * 4 + "\n") * 2 + PARAGRAPH.upper() * 20,
        TABLE,
        LOG,
        LOG + PARAGRAPH * 9 + LOG + TABLE + PARAGRAPH,
        "word " * 3000,
        "y" * 9000,
        "Done. " * 2000,
        "---\n" * 900,
    ],
)
def test_a_repetitive_text_loses_no_word(text: str, target: int) -> None:
    stored = storage_content(text)
    chunks = distinct_chunks(stored, target)
    assert "".join("".join(chunks).split()) == "".join(stored.split())
    assert len(set(map(content_hash, chunks))) == len(chunks)


@given(
    st.lists(st.sampled_from(["a.", "A!", "b", "b b", "\n\n", "c: d", "| a | b |\n", "xxxxxxxxxxxx", "\ufeff"])),
    st.sampled_from([" ", "\n", "  "]),
    st.integers(1, 12),
)
def test_no_two_chunks_are_equal_and_none_is_missing(parts: list[str], gap: str, target: int) -> None:
    text = storage_content(gap.join(parts))
    chunks = distinct_chunks(text, target)
    if collapsed(text):
        assert "".join("".join(chunks).split()) == "".join(text.split())
    assert len(set(map(content_hash, chunks))) == len(chunks)
    assert all(collapsed(chunk) and chunk in text for chunk in chunks)
