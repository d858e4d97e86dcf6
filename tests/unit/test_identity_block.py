"""The part of a harness's file with the identity files: it comes and goes, and every other byte stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.domain.identity_block import (
    BEGIN,
    END,
    DamagedMarks,
    block_in,
    identity_block,
    with_block,
    without_block,
)
from signet_actors.domain.session_inject import IDENTITY_FILES

AGENTS, SOUL = IDENTITY_FILES[:2]
BLOCK = identity_block([(AGENTS, "Run the tests.")])
OTHER = identity_block([(AGENTS, "Run them twice."), (SOUL, "Calm.")])
contents = (
    st.binary(max_size=60)
    | st.lists(st.sampled_from([b"a", b"\n", b"\r", b"\r\n", b"\xef\xbb\xbf", b"<!--"])).map(b"".join)
).filter(lambda content: BEGIN not in content and END not in content)


@given(content=contents)
def test_without_the_block_the_content_is_what_it_was(content: bytes) -> None:
    changed = with_block(content, BLOCK)
    assert block_in(changed) == BLOCK
    assert without_block(changed) == content
    replaced = with_block(changed, OTHER)
    assert block_in(replaced) == OTHER
    assert without_block(replaced) == content
    assert without_block(content) == content


@given(before=contents, after=contents)
def test_what_comes_before_and_after_the_block_stays(before: bytes, after: bytes) -> None:
    text = before + b"\n" + BLOCK + b"\n" + after
    assert without_block(text) == before + after
    assert with_block(text, OTHER) == before + b"\n" + OTHER + b"\n" + after


def test_other_line_breaks_are_understood() -> None:
    text = with_block(b"# Mine\n", BLOCK).replace(b"\n", b"\r\n")
    assert block_in(text) == BLOCK
    assert without_block(text) == b"# Mine\r\n"


@pytest.mark.parametrize(
    "text",
    [
        BEGIN + b" -->\nx\n",
        b"x\n" + END + b"\n",
        END + b"\n" + BEGIN + b" -->\n",
        BLOCK + b"\n" + BLOCK + b"\n",
    ],
)
def test_damaged_marks_are_not_guessed_at(text: bytes) -> None:
    for change in (block_in, without_block):
        with pytest.raises(DamagedMarks):
            change(text)
    with pytest.raises(DamagedMarks):
        with_block(text, BLOCK)


def test_a_text_cannot_end_the_block() -> None:
    block = identity_block([(AGENTS, f"One\n{END.decode()}\n{BEGIN.decode()} -->\nTwo")])
    assert without_block(with_block(b"mine", block)) == b"mine"
    assert b"Two" in block


def test_a_file_is_cut_as_it_is_for_a_session() -> None:
    assert len(identity_block([(SOUL, "x" * 10_000)])) < 4300
    assert identity_block([]) == b""
